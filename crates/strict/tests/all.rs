//! What a writer of TOML sees: places, expectations, hints; and what bounds do to values and schemas.

use serde::Deserialize;
use suiro_strict::document::{self, Node, entry};
use suiro_strict::refusal::{Refusal, Span};
use suiro_strict::source::Source;
use suiro_strict::{Bounded, Bounds, bounds, bounds_of};

#[derive(Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Queue>)]
struct Queue {
    /// Packets that it holds.
    packets: Option<u32>,
    /// Shares of flows.
    #[serde(default)]
    weights: Vec<f64>,
}

#[derive(Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Link>)]
struct Link {
    mtu: u16,
    up: bool,
    #[serde(default)]
    queue: Option<Queue>,
    #[serde(default)]
    steps: Vec<Queue>,
}

bounds! { Queue { packets: Bounds::new(1, 1000); each: weights: Bounds::above(0.0, 1.0) } }
bounds! { Link { mtu: Bounds::new(1280, 9000); tables: queue, steps } }

/// What the writer of this text reads about the table `link`; nothing if all is well.
fn told(text: &str) -> String {
    let source = Source::new("x.toml", text);
    let read = || -> Result<Link, Vec<Refusal<Span>>> {
        let root = document::parse(text)?;
        let link = entry(&root, "link").expect("it is there").clone();
        document::read(link, "[link]", &["also"]).map_err(|refusal| vec![refusal])
    };
    read().map_or_else(|refusals| source.error(refusals).to_string(), |_| String::new())
}

#[test]
fn what_is_right_is_read() {
    let text = "[link]\nmtu = 1500\nup = true\nqueue = { packets = 5, weights = [0.5] }\n";
    assert_eq!(told(text), "");
}

#[test]
fn each_kind_of_fault_has_its_place_and_its_remedy() {
    let cases = [
        (
            "[link]\nmtu = 1500\n",
            "x.toml:1:1: the key `up` is missing in [link]",
            "hint: add `up = …`",
        ),
        (
            "[link]\nmtu = \"1500\"\nup = true\n",
            "x.toml:2:7: ",
            "expected: a whole number, 0 to 65535",
        ),
        ("[link]\nmtu = 1500\nup = 1\n", "x.toml:3:6: ", "expected: true or false"),
        ("[link]\nmtu = 1500\nup = true\nqueue = []\n", "x.toml:4:9: ", "expected: a table"),
        (
            "[link]\nmtu = 1500\nupp = true\n",
            "x.toml:3:1: unknown key `upp` in [link]",
            "hint: did you mean `up`?",
        ),
        (
            "[link]\nalsoo = 1\n",
            "x.toml:2:1: unknown key `alsoo` in [link]",
            "did you mean `also`?",
        ),
        ("[link]\nmtu = slow\n", "x.toml:2:7: not TOML", "hint: put texts in quotes: \"20 ms\""),
        (
            "[link]\nmtu = fast\n",
            "x.toml:2:7: not TOML",
            "expected: `true`, `false`, or a text in quotes",
        ),
        (
            "[link]\nmtu = 1\nmtu = 2\n",
            "x.toml:3:1: not TOML: duplicate key",
            "hint: keep one of the two",
        ),
    ];
    for (text, place, remedy) in cases {
        let told = told(text);
        assert!(told.starts_with(place), "{told}");
        assert!(told.contains(remedy), "{told}");
    }
}

#[test]
fn one_fault_of_syntax_is_told_once_and_each_line_has_its_own() {
    let refusals = document::parse("a = = 1\nb = 2\nc = ]\n").unwrap_err();
    let lines: Vec<usize> = refusals
        .iter()
        .map(|it| {
            "a = = 1\nb = 2\nc = ]\n"[..it.place.bytes.clone().unwrap().start].lines().count()
        })
        .collect();
    assert_eq!(refusals.len(), 2, "{refusals:?}");
    assert!(lines[0] != lines[1], "{lines:?}");
}

#[test]
fn places_are_those_of_values_keys_and_entries() {
    let text = "top = 1\n[a]\nlist = [10, { deep = \"x\" }]\n";
    let root = document::parse(text).unwrap();
    let at = |path: &[&str]| document::place(&root, path).map(|span| &text[span]);
    assert_eq!(at(&["top"]), Some("1"));
    assert_eq!(at(&["a", "list", "0"]), Some("10"));
    assert_eq!(at(&["a", "list", "1", "deep"]), Some("\"x\""));
    assert_eq!(at(&["a", "list", "7"]), Some("[10, { deep = \"x\" }]"), "the list that lacks it");
    assert_eq!(at(&[]), None, "the root");
    let key = |path: &[&str]| document::key_place(&root, path).map(|span| &text[span]);
    assert_eq!(key(&["a", "list"]), Some("list"));
    assert_eq!(key(&["nowhere"]), None);
}

#[test]
fn tables_are_split_and_their_kind_is_taken() {
    let root = document::parse("a = 1\nb = 2\nc = 3\n").unwrap();
    let names = |node: &Node<'_>| -> Vec<String> {
        document::entries(node).map(|(name, ..)| name.to_owned()).collect()
    };
    let (named, rest) = document::split(root, &["c", "a", "none"]);
    let mut named = names(&named);
    named.sort();
    assert_eq!((named, names(&rest)), (vec!["a".into(), "c".into()], vec!["b".into()]));

    let kind = |text: &str| {
        let mut node = entry(&document::parse(text).unwrap(), "it").unwrap().clone();
        let found = document::kind(&mut node, "kind", "[it]", &["origin", "player"]);
        found.map_err(|refusal| Source::new("x.toml", text).error(vec![refusal]).to_string())
    };
    assert_eq!(kind("[it]\nkind = \"player\"\n").as_deref(), Ok("player"));
    let refused = kind("[it]\nkind = \"playr\"\n").unwrap_err();
    assert!(refused.starts_with("x.toml:2:8: unknown kind `playr` in [it]"), "{refused}");
    assert!(refused.contains("did you mean `player`?"), "{refused}");
    assert!(kind("[it]\n").unwrap_err().contains("`origin` or `player`"));
    assert!(kind("it = 3\n").unwrap_err().contains("[it] is not a table"));
}

#[test]
fn values_are_named_as_a_person_would() {
    let root =
        document::parse("a = \"x\"\nb = 1.5\nc = [1]\nd = {}\ne = 2026-01-01\nf = true\n").unwrap();
    let words: Vec<String> =
        document::entries(&root).map(|(_, _, value)| document::words(value.get_ref())).collect();
    assert_eq!(words, ["x", "1.5", "an array", "a table", "2026-01-01", "true"]);
}

#[test]
fn values_are_the_same_wherever_they_stand() {
    let text = "a = { n = 1, list = [1.5, true], date = 2027-01-01, of = { x = \"y\" } }\n\
                b = { n = 1, list = [1.5, true], date = 2027-01-01, of = { x = \"y\" } }\n";
    let is_same = |text: &str| {
        let root = document::parse(text).unwrap();
        document::same(entry(&root, "a").unwrap(), entry(&root, "b").unwrap())
    };
    assert!(is_same(text));
    // Each part of it differs in its turn: what was there first, in `a` only.
    for (from, to) in [
        ("n = 1", "n = 2"),
        ("n = 1", "n = 0x1"),
        ("n = 1", "n = \"1\""),
        ("n = 1", "m = 1"),
        ("n = 1, ", ""),
        ("1.5", "1.6"),
        ("true", "false"),
        (", true", ""),
        ("2027-01-01", "2027-01-02"),
        ("\"y\"", "\"z\""),
        ("{ x = \"y\" }", "\"a table\""),
    ] {
        assert!(!is_same(&text.replacen(from, to, 1)), "{from} and {to}");
    }
}

#[test]
fn bounds_include_their_ends_unless_they_lie_above() {
    let closed = Bounds::new(1, 3);
    assert_eq!([0, 1, 3, 4].map(|value| closed.contains(&value)), [false, true, true, false]);
    let open = Bounds::above(0.0, 1.0);
    assert_eq!([0.0, 1e-9, 1.0, f64::NAN].map(|it| open.contains(&it)), [false, true, true, false]);
    assert_eq!([closed.to_string(), Bounds::new(2, 2).to_string()], ["1 to 3", "2"]);
    assert_eq!(open.to_string(), "more than 0, at most 1");
    let refused: Refusal = closed.check(suiro_strict::Keys::of("links.a.n"), 4).unwrap_err();
    assert_eq!(refused.to_string(), "links.a.n: 4 is out of range\nexpected: 1 to 3");
}

#[test]
fn everything_out_of_bounds_is_told_in_the_order_of_the_keys() {
    let queue = |packets, weights: &[f64]| Queue { packets, weights: weights.to_vec() };
    let link = Link {
        mtu: 100,
        up: true,
        queue: Some(queue(Some(0), &[0.5, 0.0])),
        steps: vec![queue(None, &[]), queue(Some(1001), &[1.5])],
    };
    let told: Vec<String> = link.out_of_bounds().iter().map(ToString::to_string).collect();
    let places: Vec<&str> = told.iter().map(|it| it.split(':').next().unwrap()).collect();
    assert_eq!(
        places,
        ["mtu", "queue.packets", "queue.weights.1", "steps.1.packets", "steps.1.weights.0"]
    );
    assert!(link.check_bounds().unwrap_err().to_string().starts_with("mtu: 100 is out of range"));
    let fine = Link { mtu: 1500, up: true, queue: None, steps: Vec::new() };
    assert!(fine.check_bounds().is_ok());
}

#[test]
fn bounds_are_in_the_schema_as_keywords_and_as_words() {
    let schema = schemars::schema_for!(Queue);
    let packets = &schema.get("properties").unwrap()["packets"];
    assert_eq!((&packets["minimum"], &packets["maximum"]), (&1.into(), &1000.into()));
    assert_eq!(packets["description"], "Packets that it holds. Range: 1 to 1000.");
    let weights = &schema.get("properties").unwrap()["weights"];
    assert_eq!(weights["items"]["exclusiveMinimum"], 0.0);
    assert_eq!(weights["description"], "Shares of flows. Each entry: more than 0, at most 1.");
}

#[test]
fn the_line_of_an_override_is_told_by_the_option_that_made_it() {
    let text = "[link]\nmtu = 1500\nup = true\n";
    let mut source = Source::new("x.toml", text);
    let at = text.find("1500").unwrap();
    source.replace(at..at + 4, "\"wide\"", "--set link.mtu=wide");
    let root = document::parse(source.text()).unwrap();
    let refused = document::read::<Link>(entry(&root, "link").unwrap().clone(), "[link]", &[]);
    let told = source.error(vec![refused.unwrap_err()]).to_string();
    assert!(told.contains("note: set by --set link.mtu=wide"), "{told}");
    assert!(told.contains("expected: a whole number, 0 to 65535"), "{told}");
}
