//! One camera with two encodings over WebRTC, and viewers on links of different rates: what each was sent is in the records, and one
//! slow viewer does not degrade the other.

use std::collections::BTreeMap;
use std::path::Path;

use suiro_record::Reader;
use suiro_record::tables::{EncoderRow, FrameRow, WebrtcRow};
use suiro_record::words::FlowRole;

use crate::common::run_with_media;

const SCENARIO: &str = r#"
name = "simulcast"
title = "a camera with two encodings"
duration = "14 s"
[matrix]
encodings = [
  { label = "one", value = { lower = [] } },
  { label = "two", value = { lower = ["200 kbit/s"] } },
]
[topology]
shape = "explicit"
hosts = ["publisher", "router", "fast", "slow"]
cables = [
  { from = "publisher", to = "router" },
  { from = "router", to = "fast", link = "fast" },
  { from = "router", to = "slow", link = "slow" },
]
[links.fast]
rate = "2 Mbit/s"
delay = "20 ms"
queue.limit = "300 ms"
[links.slow]
rate = "180 kbit/s"
delay = "20 ms"
queue.limit = "300 ms"
[endpoints.camera]
kind = "webrtc-publisher"
host = "publisher"
camera = { source = "synthetic", width = 320, height = 240, fps = 25, length = "2 s" }
max_rate = "800 kbit/s"
qualities = "$encodings.lower"
[endpoints.fast]
kind = "webrtc-viewer"
host = "fast"
from = "camera"
[endpoints.slow]
kind = "webrtc-viewer"
host = "slow"
from = "camera"
[record]
# Nothing here looks at table `tcp`, and each sample takes the guest's time.
tcp_interval = "1 s"
"#;

/// The qualities that a viewer was sent, one after the other; each begins with a key frame.
fn qualities(dir: &Path, viewer: &str) -> Vec<u64> {
    let encoder: Vec<EncoderRow> = Reader::read_all(dir).unwrap();
    let made = |row: &EncoderRow| ((row.frame, row.target_bps.as_bps()), (row.quality, row.key));
    let made: BTreeMap<(i64, u64), (u64, bool)> = encoder.iter().map(made).collect();
    let frames: Vec<FrameRow> = Reader::read_all(dir).unwrap();
    let came = frames.iter().filter(|row| &*row.endpoint == viewer && row.received_ns.is_some());
    let (came, parts): (Vec<&FrameRow>, Vec<&FrameRow>) = came.partition(|row| row.decodable);
    // A queue may have dropped some, and the end has cut the last.
    assert!(parts.len() * 10 < came.len(), "{viewer}: {} frames in parts", parts.len());
    let mut sent: Vec<u64> = Vec::new();
    for row in came {
        let rung = row.rung_bps.expect("ours mark their frames").cast_unsigned();
        let (quality, key) = made[&(row.frame, rung)];
        if sent.last() != Some(&quality) {
            assert!(key, "{viewer}: frame {} of another encoder is no key frame", row.frame);
            sent.push(quality);
        }
    }
    sent
}

/// The mean rate of what came at a viewer from 8 s on, in kbit/s.
fn rate_kbps(dir: &Path, viewer: &str) -> u64 {
    let rows: Vec<WebrtcRow> = Reader::read_all(dir).unwrap();
    let late = rows
        .iter()
        .filter(|row| &*row.endpoint == viewer && row.t_ns.as_nanos() > 8_000_000_000)
        .map(|row| row.received_bps.as_bps() / 1000);
    let late: Vec<u64> = late.collect();
    late.iter().sum::<u64>() / late.len() as u64
}

#[test]
fn one_slow_viewer_does_not_degrade_the_other() {
    let Some((trials, room, done)) = run_with_media("simulcast", SCENARIO) else { return };
    let out = room.results("out");
    let summary = out.summary();
    assert_eq!(summary.trials.len(), 2, "{}", done.stderr);
    if let Some(trial) = summary.trials.iter().find(|trial| !trial.valid) {
        assert!(!trials.are_virtual(), "{:?}\n{}", trial.invalid_because, done.stderr);
        suiro_units::skipped(&format!("{:?}", trial.invalid_because));
        return;
    }
    let [one, two] =
        ["one", "two"].map(|encodings| out.root().join(format!("trials/encodings={encodings}/1")));
    assert_eq!(qualities(&one, "fast"), [0]);
    assert_eq!(qualities(&two, "fast").last(), Some(&0));
    assert_eq!(qualities(&two, "slow").last(), Some(&1));
    let sent: Vec<WebrtcRow> = Reader::read_all(&two).unwrap();
    let mut sent = sent.iter().filter(|row| row.role == FlowRole::Sender);
    assert!(sent.all(|row| row.quality.is_some()));
    let (alone, simulcast) = (rate_kbps(&one, "fast"), rate_kbps(&two, "fast"));
    assert!(alone < 220 && simulcast > 400, "{alone} kbit/s and {simulcast} kbit/s");
    assert!(rate_kbps(&two, "slow") > 80);
}
