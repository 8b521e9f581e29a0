//! A camera with two qualities over Media over QUIC, and a viewer that changes between them.

use suiro_record::Reader;
use suiro_record::tables::{FrameRow, MoqSessionRow};

use crate::common::run_with_media;

const SCENARIO: &str = r#"
name = "qualities"
title = "a camera with two qualities"
duration = "14 s"
[topology]
shape = "dumbbell"
link = "access"
[links.access]
rate = "2 Mbit/s"
delay = "20 ms"
queue.limit = "300 ms"
[endpoints.relay]
kind = "moq-relay"
host = "server"
[endpoints.camera]
kind = "moq-publisher"
host = "server"
to = "relay"
camera = { source = "synthetic", width = 320, height = 240, fps = 25, length = "2 s" }
rate = "400 kbit/s"
qualities = ["100 kbit/s"]
adaptation = "qualities"
[endpoints.viewer]
kind = "moq-viewer"
host = "client"
from = "relay"
adaptation = "qualities"
"#;

#[test]
fn a_viewer_changes_to_a_higher_quality_where_nothing_waits() {
    let Some((trials, room, done)) = run_with_media("qualities", SCENARIO) else { return };
    let trial = room.results("out").trial("all/1");
    if !trial.valid {
        assert!(!trials.are_virtual(), "{:?}\n{}", trial.invalid_because, done.stderr);
        suiro_units::skipped(&format!("a trial was not valid: {:?}", trial.invalid_because));
        return;
    }
    let dir = room.path("work").join("out/trials/all/1");
    let sessions: Vec<MoqSessionRow> = Reader::read_all(&dir).unwrap();
    let switches = sessions.iter().find(|row| &*row.endpoint == "viewer").unwrap().switches;
    let frames: Vec<FrameRow> = Reader::read_all(&dir).unwrap();
    let shown = |bps: i64| {
        let of = |row: &&FrameRow| row.displayed_ns.is_some() && row.rung_bps == Some(bps);
        frames.iter().filter(of).count()
    };
    let (low, high) = (shown(100_000), shown(400_000));
    assert!(switches >= Some(1), "{switches:?}: {low} and {high} frames");
    // Each for a second at least.
    assert!(low >= 25 && high >= 25, "{low} of the lower quality, {high} of the higher");
    let received = frames.iter().filter(|row| row.received_ns.is_some());
    let lost = received.filter(|row| !row.decodable).count();
    assert_eq!(lost, 0, "every frame has what it refers to");
    // In a higher number comes what was captured later, whichever quality it is of.
    let mut captured: Vec<(i64, i64)> =
        frames.iter().filter_map(|row| Some((row.frame, row.captured_ns?))).collect();
    captured.sort_unstable();
    assert!(captured.is_sorted_by(|a, b| a.1 < b.1), "{captured:?}");
}
