use proptest::prelude::*;

use super::*;

/// Ten nodes at three sites, of which eight send: 2 + 4 + 2.
pub fn study() -> Desired {
    let mut text = String::from("running = true\n");
    for (site, uplink) in [("east", 12), ("core", 20), ("west", 12)] {
        text += &format!(
            "[sites.{site}]\nuplink = \"{uplink} Gbit/s\"\nmaterial = [0, 1, 2, 3, 4, 5, 6, 7]\n"
        );
    }
    for n in 1..=10 {
        let site = match n {
            1 | 2 => "east",
            3..=8 => "core",
            _ => "west",
        };
        text += &format!("[nodes.n{n}]\nsite = \"{site}\"\n");
    }
    for (stream, node) in [1, 2, 3, 4, 5, 6, 9, 10].into_iter().enumerate() {
        text += &format!(
            "[streams.{stream}]\nnode = \"n{node}\"\nrate = \"3 Gbit/s\"\nto = \"239.8.0.{stream}:5004\"\n"
        );
    }
    Desired::parse(&text, "study.toml").unwrap()
}

#[test]
fn the_study_is_wanted_and_comes_back_from_its_text() {
    let desired = study();
    assert_eq!(Desired::parse(&desired.text(), "again"), Ok(desired.clone()));
    assert_eq!((desired.sent_by("east"), desired.sent_by("core")), (6_000_000_000, 12_000_000_000));
    // 1 + 6 + 1: what the study switched to.
    let moved = desired.moved(1, "n7").unwrap().moved(7, "n8").unwrap();
    assert_eq!([1, 7].map(|stream| moved.stream(stream).unwrap().node.clone()), ["n7", "n8"]);
    assert_eq!(moved.sent_by("core"), 18_000_000_000);
}

fn refused(from: &str, to: &str) -> String {
    let text = study().text();
    assert!(text.contains(from), "{text}");
    Desired::parse(&text.replacen(from, to, 1), "s.toml").unwrap_err().to_string()
}

#[test]
fn what_cannot_be_is_refused_with_its_line_and_numbers() {
    let error = refused("node = \"n1\"", "node = \"n11\"");
    assert!(error.contains("s.toml:") && error.contains("there is no node \"n11\""), "{error}");
    assert!(error.contains("hint: did you mean"), "{error}");
    let error = refused("to = \"239.8.0.1:5004\"", "to = \"239.8.0.0:5004\"");
    assert!(error.contains("streams 0 and 1 both go to 239.8.0.0:5004"), "{error}");
    let error = refused("material = [0, 1, 2, 3, 4, 5, 6, 7]", "material = [0, 1]");
    assert!(
        error.contains("does not have the material of stream 2")
            && error.contains("sites that have it: east, west"),
        "{error}"
    );
    let error = refused("uplink = \"20 Gbit/s\"", "uplink = \"10 Gbit/s\"");
    assert!(
        error.contains("its streams need 12 Gbit/s") && error.contains("10 Gbit/s at most"),
        "{error}"
    );
    let error = refused("node = \"n2\"", "node = \"n1\"");
    assert!(error.contains("streams 0, 1 on one node"), "{error}");
    let error = refused("running = true", "runing = true");
    assert!(error.contains("unknown key `runing`") && error.contains("running"), "{error}");
    let error = refused("site = \"east\"", "site = \"eats\"");
    assert!(error.contains("there is no site \"eats\"") && error.contains("east"), "{error}");
    let error = refused("[streams.7]", "[streams.64]");
    assert!(error.contains("a number, 0 to 63"), "{error}");
    let error = refused("to = \"239.8.0.1:5004\"", "to = \"239.8.0.1:0\"");
    assert!(error.contains("the address and port"), "{error}");
    assert!(refused("rate = \"3 Gbit/s\"", "rate = \"0 bit/s\"").contains("more than 0"));
}

#[test]
fn twins_and_stores_that_cannot_be_are_refused() {
    let with = |line: &str| refused("[streams.1]", &format!("[streams.1]\n{line}"));
    let error = with("twins = [{ node = \"n2\" }]");
    assert!(error.contains("node \"n2\" sends stream 1 already"), "{error}");
    let error = with("twins = [{ node = \"n77\" }]");
    assert!(error.contains("there is no node \"n77\""), "{error}");
    let error = with("twins = [{ node = \"n7\", to = \"239.8.0.3:5004\" }]");
    assert!(error.contains("streams 1 and 3 both go to 239.8.0.3:5004"), "{error}");
    // n10 sends stream 7, and one at a time.
    let error = with("twins = [{ node = \"n10\" }]");
    assert!(error.contains("streams 1, 7 on one node"), "{error}");
    let error = with("stored_by = [\"n7\", \"n7\"]");
    assert!(error.contains("node \"n7\" is named twice"), "{error}");
    let error = with("stored_by = [\"n77\"]");
    assert!(error.contains("there is no node \"n77\""), "{error}");
    // A twin counts against the uplink of its own site.
    let mut desired = study();
    let twin = Twin { node: "n7".to_owned(), to: None };
    desired.streams.get_mut("1").unwrap().twins.push(twin);
    assert_eq!((desired.sent_by("east"), desired.sent_by("core")), (6_000_000_000, 15_000_000_000));
    let text = desired.clone().checked().unwrap().text();
    assert_eq!(Desired::parse(&text, "again"), Ok(desired));
}

#[test]
fn too_few_nodes_are_counted() {
    let mut desired = study();
    for n in [3, 4, 5] {
        desired.nodes.remove(&format!("n{n}"));
        for stream in desired.streams.values_mut().filter(|own| own.node == format!("n{n}")) {
            stream.node = "n7".to_owned();
        }
    }
    let error = desired.checked().unwrap_err();
    assert!(error.contains("8 streams, but the nodes can send 7"), "{error}");
}

#[test]
fn a_move_that_cannot_be_leaves_everything() {
    let desired = study();
    assert!(desired.moved(9, "n7").unwrap_err().starts_with("stream 9: expected one of 0, 1"));
    assert!(desired.moved(1, "n99").unwrap_err().contains("there is no node \"n99\""));
    assert!(desired.moved(1, "n1").unwrap_err().contains("streams 0, 1 on one node"));
}

proptest! {
    /// No text does harm, and what is read comes back from its own text.
    #[test]
    fn every_text_is_read_or_refused(at in 0_usize..2000, with in "[ -~\n]{0,20}") {
        let mut text = study().text();
        let at = at.min(text.len());
        text.replace_range(at..(at + with.len()).min(text.len()), &with);
        match Desired::parse(&text, "f") {
            Ok(desired) => prop_assert_eq!(Desired::parse(&desired.text(), "f"), Ok(desired)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
