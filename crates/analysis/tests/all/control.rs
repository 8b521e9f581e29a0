//! Nodes that are replaced, computed by hand.

use crate::common::{assert_metrics, trial};
use suiro_analysis::{Records, summarise};
use suiro_record::Trial;
use suiro_record::tables::{ControlRow, UncompressedFrameRow};

const MS: i64 = 1_000_000;

/// Frame `frame` of a stream, 10 ms each; of a lost one nothing came.
fn frame(stream: i64, frame: i64, lost: bool) -> UncompressedFrameRow {
    let due = frame * 10 * MS;
    UncompressedFrameRow {
        t_ns: due,
        endpoint: "receiver".into(),
        stream,
        frame,
        period_ns: 10 * MS,
        due_ns: Some(due),
        last_ns: (!lost).then_some(due + 9 * MS),
        content: None,
        packets: if lost { 0 } else { 10 },
        lost_packets: if lost { 10 } else { 0 },
        duplicate_packets: 0,
        reordered_packets: 0,
        bytes: 1000,
        sound: None,
        burst_packets: None,
        over_packets: None,
        buffer_packets: None,
    }
}

fn row(ms: i64, endpoint: &str, what: &str, stream: Option<i64>, rest: (&str, &str)) -> ControlRow {
    let (node, detail) = rest;
    let node = (!node.is_empty()).then(|| node.into());
    let (endpoint, what, detail) = (endpoint.into(), what.into(), detail.into());
    ControlRow { t_ns: ms * MS, endpoint, what, stream, node, detail }
}

/// Of a trial that ends a second after [`killed`]'s streams.
fn metric(records: &Records, name: &str) -> Option<f64> {
    metric_in(2.0, records, name)
}

fn metric_in(duration_s: f64, records: &Records, name: &str) -> Option<f64> {
    let metrics = summarise(&trial(duration_s), records);
    *metrics.get(name).unwrap_or_else(|| panic!("{name} is missing"))
}

/// n1 dies in frame 50 of stream 0, which n2 sends from frame 56 on; stream 1 loses one frame.
fn killed() -> Records {
    let frames = (0..100).flat_map(|n| [frame(0, n, (50..56).contains(&n)), frame(1, n, n == 80)]);
    let control = vec![
        row(0, "c", "leads", None, ("", "holds state.toml.lock")),
        row(300, "c", "fault", None, ("n9", "it has not answered for 51 ms")),
        row(520, "c", "fault", None, ("n1", "it closed its connection")),
        row(521, "c", "replaced", Some(0), ("n2", "instead of n1: it closed its connection")),
    ];
    Records { uncompressed: frames.collect(), control, ..Records::default() }
}

#[test]
fn a_node_that_dies_is_timed_from_its_last_packet() {
    let records = killed();
    assert_eq!(metric(&records, "control.replaced"), Some(1.0));
    // The last packet came at 499 ms, the next at 560 ms.
    assert_eq!(metric(&records, "control.detected_max_frames"), Some(2.1));
    assert_eq!(metric(&records, "control.on_air_max_frames"), Some(4.0));
    assert_eq!(metric(&records, "control.gap_max_frames"), Some(6.0));
    assert_eq!(metric(&records, "control.others_lost_frames"), Some(1.0));
}

/// The same, but the controller says that the node starved.
fn starved() -> Records {
    let mut records = killed();
    for row in &mut records.control {
        let detail =
            row.detail.replace("it closed its connection", "it starves: 4 frames repeated");
        row.detail = detail.into();
    }
    records
}

#[test]
fn a_node_that_starves_is_timed_from_when_it_records_that() {
    let mut records = starved();
    records.control.push(row(440, "n1", "starved", Some(0), ("", "frame 44")));
    records.control.push(row(450, "n1", "lagging", Some(0), ("", "frame 45")));
    assert_eq!(metric(&records, "control.detected_max_frames"), Some(8.0));
    // It may have repeated its last frame before the controller noticed it.
    records.control.push(row(515, "n1", "recovered", Some(0), ("", "frame 51")));
    assert_eq!(metric(&records, "control.detected_max_frames"), Some(8.0));
}

#[test]
fn a_trouble_from_which_a_node_recovered_is_not_the_one_that_it_died_of() {
    let earlier = |mut records: Records| {
        records.control.push(row(100, "n1", "lagging", Some(0), ("", "frame 10")));
        records.control.push(row(120, "n1", "recovered", Some(0), ("", "frame 12")));
        records
    };
    assert_eq!(metric(&earlier(killed()), "control.detected_max_frames"), Some(2.1));
    let mut records = earlier(starved());
    records.control.push(row(440, "n1", "starved", Some(0), ("", "frame 44")));
    assert_eq!(metric(&records, "control.detected_max_frames"), Some(8.0));
}

#[test]
fn a_stream_that_ends_loses_all_that_would_have_followed() {
    let cut = |stream: i64, at: i64| {
        let mut records = killed();
        records.uncompressed.retain(|row| row.stream != stream || row.frame < at);
        records
    };
    // Another one: frames 60 to 99, of which 80 was lost before.
    let other = cut(1, 60);
    assert_eq!(metric(&other, "control.others_lost_frames"), Some(40.0));
    assert_eq!(metric(&other, "control.gap_max_frames"), Some(6.0));
    for up_to_its_end in ["stream.lost_frames", "stream.late_frames"] {
        assert_eq!(metric(&other, up_to_its_end), Some(6.0), "{up_to_its_end}");
    }
    // The standby never sends: nothing came in frames 50 to 99, and the trial ends 148 frame times after the fault was noticed.
    let replaced = cut(0, 50);
    assert_eq!(metric(&replaced, "control.gap_max_frames"), Some(50.0));
    assert_eq!(metric(&replaced, "control.on_air_max_frames"), Some(148.0));
    assert_eq!(metric(&replaced, "control.others_lost_frames"), Some(1.0));
}

#[test]
fn streams_that_an_operator_stops_lose_nothing() {
    let mut records = killed();
    records.control.push(row(1010, "operator", "action", None, ("", "stop")));
    let lost = |records: &Records| metric_in(30.0, records, "control.others_lost_frames");
    assert_eq!(lost(&records), Some(1.0));
    assert_eq!(metric_in(30.0, &records, "control.gap_max_frames"), Some(6.0));
    // They are started again, and none of them comes: frames 100 to 2899.
    records.control.push(row(1020, "c", "accepted", None, ("", "start")));
    assert_eq!(lost(&records), Some(2801.0));
}

/// A frame of one second.
fn second(stream: i64, n: i64, lost: bool) -> UncompressedFrameRow {
    let due_ns = n * 1000 * MS;
    UncompressedFrameRow {
        t_ns: due_ns,
        period_ns: 1000 * MS,
        due_ns: Some(due_ns),
        last_ns: (!lost).then_some(due_ns + 900 * MS),
        ..frame(stream, n, lost)
    }
}

#[test]
fn of_what_failed_in_the_warm_up_the_frames_after_it_are_lost() {
    let warmed = Trial { warm_up_s: 10.0, ..trial(20.0) };
    let leads = row(0, "c", "leads", None, ("", "holds state.toml.lock"));
    // Stream 1 has its last frame at 4 s. Of those that are due from 10 s on, nine are over at 19 s.
    let uncompressed: Vec<_> =
        (0..20).map(|n| second(0, n, false)).chain((0..5).map(|n| second(1, n, false))).collect();
    let records = Records { uncompressed, control: vec![leads], ..Records::default() };
    let lost = |trial: &Trial, frames| {
        assert_metrics(trial, &records, &[("control.others_lost_frames", Some(frames))]);
    };
    lost(&trial(20.0), 14.0);
    lost(&warmed, 9.0);
    // The frame that is due at 10 s is not of the warm-up, the one before is.
    lost(&Trial { warm_up_s: 9.5, ..warmed.clone() }, 9.0);
    // Stream 0 is given to a standby at 9 s, which sends from 12 s on.
    let mut records = records;
    records.uncompressed = (0..20).map(|n| second(0, n, (9..12).contains(&n))).collect();
    records.control.push(row(9000, "c", "fault", None, ("n1", "it closed its connection")));
    let replaced =
        row(9001, "c", "replaced", Some(0), ("n2", "instead of n1: it closed its connection"));
    records.control.push(replaced);
    let want = [
        ("control.replaced", Some(0.0)),
        ("control.on_air_max_frames", None),
        ("control.gap_max_frames", Some(2.0)),
        ("control.others_lost_frames", Some(0.0)),
    ];
    assert_metrics(&warmed, &records, &want);
}

#[test]
fn a_stream_is_handed_over_if_one_node_begins_and_another_ends() {
    let mut records = killed();
    assert_eq!(metric_in(30.0, &records, "control.handed_over"), Some(0.0));
    let mut node = |ms, of, what, stream| {
        records.control.push(row(ms, of, what, Some(stream), ("", "frame 9")));
    };
    node(0, "n1", "started", 0);
    node(900, "n3", "started", 1);
    node(905, "n4", "stopped", 1);
    // Another stream, the same node, and too long after.
    node(906, "n5", "stopped", 2);
    node(2000, "n6", "started", 3);
    node(2100, "n6", "stopped", 3);
    node(3101, "n7", "stopped", 3);
    assert_eq!(metric_in(30.0, &records, "control.handed_over"), Some(1.0));
}

#[test]
fn without_a_replacement_there_is_no_time_and_without_a_controller_nothing() {
    let mut records = killed();
    records.control.truncate(2);
    assert_eq!(metric(&records, "control.replaced"), Some(0.0));
    assert_eq!(metric(&records, "control.detected_max_frames"), None);
    assert_eq!(metric(&records, "control.gap_max_frames"), None);
    assert_eq!(metric(&records, "control.others_lost_frames"), Some(7.0));
    records.control.clear();
    assert!(!summarise(&trial(30.0), &records).contains_key("control.replaced"));
}
