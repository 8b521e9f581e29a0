use proptest::prelude::*;
use suiro_units::Time;

use super::*;
use crate::desired::Twin;
use crate::desired::tests::study;

const LEAD: Duration = Duration::from_millis(200);
const NOW: Tai = Tai::from_nanos(1_000_000_000_000);

/// All ten nodes, each with a sender for all eight streams.
fn idle() -> Observed {
    let lanes: BTreeMap<u32, Lane> = (0..8).map(|stream| (stream, Lane::default())).collect();
    let seen = Seen { senders: lanes.clone(), receivers: lanes, unfit: None };
    (1..=10).map(|n| (format!("n{n}"), seen.clone())).collect()
}

/// Does what a step says; its changes have come to pass.
fn carry_out(observed: &mut Observed, step: &Step) {
    for change in &step.changes {
        let mut set = |node: &String, on| {
            let seen = observed.get_mut(node).unwrap();
            let lanes = match change.side {
                Side::Sender => &mut seen.senders,
                Side::Receiver => &mut seen.receivers,
            };
            let lane = lanes.get_mut(&change.stream).unwrap();
            let to = if on { change.to.clone() } else { lane.to.clone() };
            *lane = Lane { on, to, ..Lane::default() };
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
    observed.insert("n7".to_owned(), Seen { unfit: Some(reason), ..Seen::default() });
    let moved = desired.moved(1, "n7").unwrap();
    let step = step(&moved, &observed, NOW, LEAD);
    // The old node goes on, and the hook is not asked for a node that is there.
    assert!(step.is_empty() && step.absent.is_empty(), "{step:?}");
    assert_eq!(step.stuck, [(1, "node n7: its clock is 2 s behind".to_owned())]);
    let faulty = BTreeMap::from([("n3".to_owned(), Fault::Dead)]);
    assert_eq!(given(&desired, &observed, &faulty), [(2, Ok("n8".to_owned()))]);
}

#[test]
fn two_moves_are_one_step_and_touch_no_other_stream() {
    let desired = study();
    let mut observed = on_air(&desired);
    let moved = desired.moved(1, "n7").unwrap().moved(7, "n8").unwrap();
    let step = step(&moved, &observed, NOW, LEAD);
    let change = |stream, on: &str, off: &str| {
        let to = vec![moved.stream(stream).unwrap().to];
        Change {
            side: Side::Sender,
            stream,
            to,
            on: Some(on.to_owned()),
            off: vec![off.to_owned()],
        }
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
    assert_eq!(given(&desired, &observed, &faulty), [(2, Ok("n7".to_owned()))]);
    // In the east there is no standby: the core has room.
    let faulty = BTreeMap::from([("n1".to_owned(), Fault::Dead), ("n2".to_owned(), Fault::Dead)]);
    let both = given(&desired, &observed, &faulty);
    assert_eq!(both, [(0, Ok("n7".to_owned())), (1, Ok("n8".to_owned()))]);
    let faulty = (1..=3).map(|n| (format!("n{n}"), Fault::Dead)).collect();
    let three = given(&desired, &observed, &faulty);
    let reason = three[2].1.as_ref().unwrap_err();
    assert!(reason.starts_with("no standby: of 7 nodes that are well, 0 have room"), "{reason}");
    // A full uplink is no room.
    let mut narrow = desired.clone();
    narrow.sites.get_mut("core").unwrap().uplink = "12 Gbit/s".parse().unwrap();
    let faulty = BTreeMap::from([("n1".to_owned(), Fault::Dead)]);
    assert!(given(&narrow, &observed, &faulty)[0].1.is_err());
}

/// Stream 1 has a twin on n8, in the core: n2 is in the east.
fn twinned() -> Desired {
    let mut desired = study();
    let twin = Twin { node: "n8".to_owned(), to: Some("239.9.0.1:5004".parse().unwrap()) };
    desired.streams.get_mut("1").unwrap().twins.push(twin);
    desired.checked().unwrap()
}

#[test]
fn a_twin_sends_with_its_node_and_each_is_replaced_by_itself() {
    let desired = twinned();
    let mut observed = on_air(&desired);
    assert_eq!(senders(&observed, 1), ["n2", "n8"]);
    assert_eq!(observed["n8"].senders[&1].to, ["239.9.0.1:5004".parse().unwrap()]);
    assert!(step(&desired, &observed, NOW, LEAD).is_empty());
    // Its twin goes on, and n7 takes the node's part: not n8, which sends the stream already.
    let faulty = BTreeMap::from([("n2".to_owned(), Fault::Dead)]);
    let found = replacements(&desired, &observed, &faulty);
    let (node, standby) = ("n2".to_owned(), Ok("n7".to_owned()));
    assert_eq!(found, [Replacement { stream: 1, node, standby }]);
    let mut next = desired.clone();
    next.streams.get_mut("1").unwrap().replace("n2", "n7");
    observed.remove("n2");
    let first = step(&next, &observed, NOW, LEAD);
    assert_eq!(first.changes.len(), 1, "{first:?}");
    carry_out(&mut observed, &first);
    assert_eq!(senders(&observed, 1), ["n7", "n8"]);
    // Without the twin in the state, it stops; the node goes on.
    next.streams.get_mut("1").unwrap().twins.clear();
    let last = step(&next, &observed, NOW, LEAD);
    carry_out(&mut observed, &last);
    assert_eq!(senders(&observed, 1), ["n7"]);
}

#[test]
fn a_missing_twin_keeps_no_stream_from_starting() {
    let desired = twinned();
    let mut observed = idle();
    observed.remove("n8");
    let first = step(&desired, &observed, NOW, LEAD);
    assert_eq!((first.changes.len(), first.absent.as_slice()), (8, ["n8".to_owned()].as_slice()));
    assert_eq!(first.stuck, [(1, "node n8 is not there".to_owned())]);
}

/// A standby that is where a twin is would share its path.
#[test]
fn a_standby_is_not_where_its_twin_is() {
    let mut desired = twinned();
    desired.streams.remove("7");
    let observed = on_air(&desired);
    // n10 is free in the west; n7 in the core, where the twin is.
    let faulty = BTreeMap::from([("n2".to_owned(), Fault::Dead)]);
    assert_eq!(given(&desired, &observed, &faulty), [(1, Ok("n10".to_owned()))]);
}

#[test]
fn recordings_start_and_stop_together() {
    let mut desired = study().storing(true);
    for stream in [0, 5] {
        let own = desired.streams.get_mut(&stream.to_string()).unwrap();
        own.stored_by = vec!["n7".to_owned(), "n8".to_owned()];
    }
    let desired = desired.checked().unwrap();
    let mut observed = on_air(&desired.storing(false));
    let stored = |observed: &Observed| {
        let of = |node: &str| observed[node].receivers.values().filter(|own| own.on).count();
        (of("n7"), of("n8"))
    };
    // As long as one cannot store, none does; the streams themselves are not touched.
    let removed = observed.get_mut("n8").unwrap().receivers.remove(&5).unwrap();
    let waits = step(&desired, &observed, NOW, LEAD);
    assert!(waits.is_empty(), "{waits:?}");
    let told = |text: &str| waits.stuck.iter().any(|(_, reason)| reason == text);
    assert!(told("node n8 cannot store stream 5"), "{waits:?}");
    assert!(told("all recordings start together: it waits for 5"), "{waits:?}");
    observed.get_mut("n8").unwrap().receivers.insert(5, removed);
    let first = step(&desired, &observed, NOW, LEAD);
    assert!(first.changes.iter().all(|change| change.side == Side::Receiver));
    carry_out(&mut observed, &first);
    assert_eq!(stored(&observed), (2, 2));
    let stop = step(&desired.storing(false), &observed, NOW, LEAD);
    assert_eq!(stop.changes.len(), 2, "one change of each stream: {stop:?}");
    carry_out(&mut observed, &stop);
    assert_eq!((stored(&observed), senders(&observed, 5)), ((0, 0), vec!["n6"]));
}

/// The streams whose node is faulty, and who takes them.
fn given(
    desired: &Desired,
    observed: &Observed,
    faulty: &BTreeMap<String, Fault>,
) -> Vec<(u32, Result<String, String>)> {
    let all = replacements(desired, observed, faulty).into_iter();
    all.map(|own| (own.stream, own.standby)).collect()
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
fn a_controller_that_is_cut_off_or_did_not_run_blames_no_node() {
    let mut faults = Faults::default();
    for node in ["n1", "n2"] {
        faults.heard(node, Report::default(), at(0), &LIMITS);
    }
    assert!(faults.faulty(at(90), &LIMITS).is_empty(), "neither of the two is heard");
    faults.heard("n2", Report::default(), at(100), &LIMITS);
    let found = faults.faulty(at(100), &LIMITS);
    assert_eq!(
        found.into_iter().collect::<Vec<_>>(),
        [("n1".to_owned(), Fault::Silent(Duration::from_millis(100)))]
    );
    let mut faults = Faults::default();
    for (node, ms) in [("n1", 0), ("n2", 70)] {
        faults.heard(node, Report::default(), at(ms), &LIMITS);
    }
    faults.stalled(Duration::from_millis(30), at(75));
    assert!(faults.faulty(at(75), &LIMITS).is_empty());
    assert_eq!(faults.faulty(at(81), &LIMITS).len(), 1);
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
            let to = vec![desired.stream(stream).unwrap().to];
            let lane = Lane { on: true, to, ..Lane::default() };
            observed.get_mut(&format!("n{node}")).unwrap().senders.insert(stream, lane);
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
        for Replacement { stream, node, standby } in replacements(&desired, &observed, &faulty) {
            let Ok(by) = standby else { continue };
            prop_assert!(!faulty.contains_key(&by));
            next.streams.get_mut(&stream.to_string()).unwrap().replace(&node, &by);
        }
        let checked = next.checked();
        prop_assert!(checked.is_ok(), "{:?}", checked);
    }
}

#[test]
fn what_another_program_has_scheduled_is_overruled() {
    let desired = study();
    let later = NOW.after(Duration::from_secs(1800));
    let with = |node: &str, stream: u32, on: bool, at: Tai| {
        let mut observed = on_air(&desired);
        let lane = observed.get_mut(node).unwrap().senders.get_mut(&stream).unwrap();
        lane.scheduled = Some((on, at));
        step(&desired, &observed, NOW, LEAD).changes
    };
    // The sender of stream 0 would stop in half an hour: it receives a command to go on.
    let changes = with("n1", 0, false, later);
    assert_eq!((changes.len(), changes[0].on.as_deref()), (1, Some("n1")));
    assert!(changes[0].off.is_empty(), "{changes:?}");
    // A standby would start then: it receives a command to stay off.
    let changes = with("n7", 0, true, later);
    assert_eq!(
        (changes.len(), &changes[0].on, &changes[0].off[..]),
        (1, &None, &["n7".to_owned()][..])
    );
    // What is scheduled soon may be an own step.
    assert_eq!(with("n1", 0, false, NOW.after(LEAD)), []);
    assert_eq!(with("n7", 1, false, later), [], "it is off and would stay so");
}
