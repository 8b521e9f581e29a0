use proptest::prelude::*;
use suiro_units::Time;

use super::*;
use crate::desired::tests::study;

const LEAD: Duration = Duration::from_millis(200);
const NOW: Tai = Tai::from_nanos(1_000_000_000_000);

/// All ten nodes, each with a sender for all eight streams.
fn idle() -> Observed {
    let senders = (0..8).map(|stream| (stream, Sender::default())).collect();
    let seen = Seen { senders, unfit: None };
    (1..=10).map(|n| (format!("n{n}"), seen.clone())).collect()
}

/// Does what a step says; its changes have come to pass.
fn carry_out(observed: &mut Observed, step: &Step) {
    for change in &step.changes {
        let mut set = |node: &String, on| {
            let sender = observed.get_mut(node).unwrap().senders.get_mut(&change.stream).unwrap();
            *sender = Sender { on, to: change.to.or(sender.to), scheduled: None };
        };
        change.on.iter().for_each(|node| set(node, true));
        change.off.iter().for_each(|node| set(node, false));
    }
}

fn on_air(desired: &Desired) -> Observed {
    let mut observed = idle();
    let step = step(desired, &observed, NOW, LEAD);
    carry_out(&mut observed, &step);
    observed
}

/// Where each stream is sent.
fn senders(observed: &Observed, stream: u32) -> Vec<&str> {
    let on = observed.iter().filter(|(_, seen)| seen.senders[&stream].on);
    on.map(|(node, _)| node.as_str()).collect()
}

#[test]
fn all_eight_start_in_one_step_and_stop_in_one() {
    let desired = study();
    let first = step(&desired, &idle(), NOW, LEAD);
    assert_eq!((first.changes.len(), first.at), (8, NOW.after(LEAD)));
    let observed = on_air(&desired);
    assert_eq!(senders(&observed, 6), ["n9"]);
    // What is there is left alone: a controller that starts again does nothing.
    assert!(step(&desired, &observed, NOW, LEAD).is_empty());
    let stop = step(&desired.running(false), &observed, NOW, LEAD);
    assert!(
        stop.changes.len() == 8
            && stop.changes.iter().all(|own| own.on.is_none() && own.off.len() == 1)
    );
}

#[test]
fn a_node_with_another_clock_is_neither_commanded_nor_a_standby() {
    let desired = study();
    let mut observed = on_air(&desired);
    let reason = "its clock is 2 s behind".to_owned();
    observed.insert("n7".to_owned(), Seen { senders: BTreeMap::new(), unfit: Some(reason) });
    let moved = desired.moved(1, "n7").unwrap();
    let step = step(&moved, &observed, NOW, LEAD);
    // The old node goes on, and the hook is not asked for a node that is there.
    assert!(step.is_empty() && step.absent.is_empty(), "{step:?}");
    assert_eq!(step.stuck, [(1, "node n7: its clock is 2 s behind".to_owned())]);
    let faulty = BTreeMap::from([("n3".to_owned(), Fault::Dead)]);
    let found = replacements(&desired, &observed, &faulty);
    assert_eq!(found, [(2, Ok("n8".to_owned()))]);
}

#[test]
fn two_moves_are_one_step_and_touch_no_other_stream() {
    let desired = study();
    let mut observed = on_air(&desired);
    let moved = desired.moved(1, "n7").unwrap().moved(7, "n8").unwrap();
    let step = step(&moved, &observed, NOW, LEAD);
    let change = |stream, on: &str, off: &str| {
        let to = moved.stream(stream).map(|own| own.to);
        Change { stream, to, on: Some(on.to_owned()), off: vec![off.to_owned()] }
    };
    assert_eq!(step.changes, [change(1, "n7", "n2"), change(7, "n8", "n10")]);
    carry_out(&mut observed, &step);
    assert_eq!((senders(&observed, 1), senders(&observed, 7)), (vec!["n7"], vec!["n8"]));
}

#[test]
fn what_is_scheduled_is_not_told_again() {
    let desired = study();
    let mut observed = idle();
    let first = step(&desired, &observed, NOW, LEAD);
    for change in &first.changes {
        let node = change.on.as_ref().unwrap();
        let sender = observed.get_mut(node).unwrap().senders.get_mut(&change.stream).unwrap();
        sender.scheduled = Some((true, first.at));
    }
    assert!(step(&desired, &observed, NOW, LEAD).is_empty());
}

#[test]
fn nobody_starts_as_long_as_one_is_missing_but_those_on_air_go_on() {
    let desired = study();
    let mut observed = idle();
    observed.remove("n9");
    let waits = step(&desired, &observed, NOW, LEAD);
    assert!(waits.is_empty() && waits.absent == ["n9"]);
    assert_eq!(waits.stuck.len(), 8);
    let reason = &waits.stuck.iter().find(|(stream, _)| *stream == 0).unwrap().1;
    assert_eq!(reason, "all streams start together: it waits for 6");
    // On air, a missing standby keeps no move from being made, and the old node goes on until its successor is there.
    let mut observed = on_air(&desired);
    observed.remove("n7");
    let moved = desired.moved(1, "n7").unwrap();
    let step = step(&moved, &observed, NOW, LEAD);
    assert!(step.is_empty() && step.absent == ["n7"], "{step:?}");
}

#[test]
fn a_faulty_node_has_a_standby_at_its_site_first() {
    let desired = study();
    let mut observed = on_air(&desired);
    observed.remove("n3");
    let faulty = BTreeMap::from([("n3".to_owned(), Fault::Dead)]);
    assert_eq!(replacements(&desired, &observed, &faulty), [(2, Ok("n7".to_owned()))]);
    // In the east there is no standby: the core has room.
    let faulty = BTreeMap::from([("n1".to_owned(), Fault::Dead), ("n2".to_owned(), Fault::Dead)]);
    let both = replacements(&desired, &observed, &faulty);
    assert_eq!(both, [(0, Ok("n7".to_owned())), (1, Ok("n8".to_owned()))]);
    let faulty = (1..=3).map(|n| (format!("n{n}"), Fault::Dead)).collect();
    let three = replacements(&desired, &observed, &faulty);
    let reason = three[2].1.as_ref().unwrap_err();
    assert!(reason.starts_with("no standby: of 7 nodes that are well, 0 have room"), "{reason}");
    // A full uplink is no room.
    let mut narrow = desired.clone();
    narrow.sites.get_mut("core").unwrap().uplink = "12 Gbit/s".parse().unwrap();
    let faulty = BTreeMap::from([("n1".to_owned(), Fault::Dead)]);
    assert!(replacements(&narrow, &observed, &faulty)[0].1.is_err());
}

const LIMITS: Limits = Limits {
    silence: Duration::from_millis(50),
    frames: 3,
    window: Duration::from_secs(1),
    probation: Duration::from_secs(10),
};

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

#[test]
fn a_node_is_faulty_when_it_is_silent_starves_lags_or_dies() {
    let mut faults = Faults::default();
    let report = |repeated, late| Report { repeated, late };
    faults.closed("n1");
    assert!(faults.faulty(at(0), &LIMITS).is_empty(), "it was never there");
    faults.heard("n1", report(7, 7), at(0), &LIMITS);
    assert!(faults.faulty(at(50), &LIMITS).is_empty());
    assert_eq!(faults.faulty(at(51), &LIMITS)["n1"], Fault::Silent(Duration::from_millis(51)));
    // It must be well for ten seconds before it counts as such.
    for ms in (60..11_000).step_by(20) {
        faults.heard("n1", report(7, 7), at(ms), &LIMITS);
        assert_eq!(faults.faulty(at(ms), &LIMITS).is_empty(), ms >= 10_051, "{ms}");
    }
    faults.heard("n1", report(10, 7), at(11_010), &LIMITS);
    assert!(faults.faulty(at(11_010), &LIMITS).is_empty());
    faults.heard("n1", report(11, 7), at(11_030), &LIMITS);
    assert_eq!(faults.faulty(at(11_030), &LIMITS)["n1"], Fault::Starves(4));
    faults.heard("n2", report(0, 0), at(11_030), &LIMITS);
    faults.heard("n2", report(0, 9), at(11_050), &LIMITS);
    assert_eq!(faults.faulty(at(11_050), &LIMITS)["n2"], Fault::Lags(9));
    faults.heard("n3", report(0, 0), at(11_050), &LIMITS);
    faults.closed("n3");
    assert_eq!(faults.faulty(at(11_051), &LIMITS)["n3"], Fault::Dead);
}

#[test]
fn four_repeats_in_a_minute_are_no_fault_and_a_restart_is_none() {
    let mut faults = Faults::default();
    for second in 0..60 {
        let report = Report { repeated: second / 15, late: 0 };
        faults.heard("n1", report, at(second * 1000), &LIMITS);
        assert!(faults.faulty(at(second * 1000), &LIMITS).is_empty());
    }
    faults.heard("n1", Report::default(), at(60_020), &LIMITS);
    faults.heard("n1", Report { repeated: 3, late: 3 }, at(60_040), &LIMITS);
    assert!(faults.faulty(at(60_040), &LIMITS).is_empty());
}

proptest! {
    /// From any state of senders, a step and what it leads to: one sender for each stream, the wanted one, and nothing
    /// left to do; and in no step a stream loses its sender without getting another.
    #[test]
    fn one_step_leads_to_what_is_wanted(
        on in prop::collection::vec((1_usize..=10, 0_u32..8), 0..12),
        gone in prop::collection::btree_set(1_usize..=10, 0..3),
        running: bool,
        moves in prop::collection::vec((0_u32..8, 1_usize..=10), 0..4),
    ) {
        let mut desired = study().running(running);
        for (stream, node) in moves {
            desired = desired.moved(stream, &format!("n{node}")).unwrap_or(desired);
        }
        let mut observed = idle();
        for (node, stream) in on {
            let to = desired.stream(stream).map(|own| own.to);
            observed.get_mut(&format!("n{node}")).unwrap().senders.insert(stream, Sender { on: true, to, scheduled: None });
        }
        gone.iter().for_each(|n| { observed.remove(&format!("n{n}")); });
        let before = observed.clone();
        let first = step(&desired, &observed, NOW, LEAD);
        carry_out(&mut observed, &first);
        prop_assert!(step(&desired, &observed, NOW, LEAD).is_empty());
        for stream in 0..8 {
            let (was, is) = (senders(&before, stream), senders(&observed, stream));
            let stuck = first.stuck.iter().any(|(own, _)| *own == stream);
            let wanted = desired.stream(stream).unwrap().node.as_str();
            match (running, stuck) {
                (true, false) => prop_assert_eq!(is, [wanted]),
                // Its node is not there: who sends it goes on.
                (true, true) => prop_assert_eq!(is, was),
                (false, _) => prop_assert!(is.is_empty()),
            }
        }
    }

    /// A replacement is a node that is well, has room and the material, and all of them together fit.
    #[test]
    fn replacements_are_a_state_that_can_be_wanted(dead in prop::collection::btree_set(1_usize..=10, 0..6)) {
        let desired = study();
        let observed = on_air(&desired);
        let faulty: BTreeMap<String, Fault> = dead.iter().map(|n| (format!("n{n}"), Fault::Dead)).collect();
        let mut next = desired.clone();
        for (stream, standby) in replacements(&desired, &observed, &faulty) {
            let Ok(node) = standby else { continue };
            prop_assert!(!faulty.contains_key(&node));
            next.streams.get_mut(&stream.to_string()).unwrap().node = node;
        }
        let checked = next.checked();
        prop_assert!(checked.is_ok(), "{:?}", checked);
    }
}
