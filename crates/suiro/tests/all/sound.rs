//! Sound next to video, over WebRTC and Media over QUIC, with and without loss on the link.

use std::collections::BTreeSet;
use std::path::Path;

use suiro_record::Reader;
use suiro_record::tables::{AudioRow, AudioSentRow};
use suiro_record::words::AudioFate;

use crate::common::run_with_media;

const FPS: u32 = 25;

fn scenario() -> String {
    format!(
        r#"
name = "sound"
title = "a camera with a microphone"
duration = "12 s"
[matrix]
protocol = [
  {{ label = "webrtc", value = {{ webrtc = 1, moq = 0 }} }},
  {{ label = "moq", value = {{ webrtc = 0, moq = 1 }} }},
]
loss = ["0 %", "4 %"]
[topology]
shape = "dumbbell"
link = "access"
[links.access]
rate = "2 Mbit/s"
delay = "20 ms"
queue.limit = "50 kB"
loss = "$loss"
[parameters]
scene = {{ source = "synthetic", width = 320, height = 240, fps = {FPS}, length = "2 s" }}
audio = "32 kbit/s"
[endpoints.webrtc-camera]
kind = "webrtc-publisher"
host = "server"
count = "$protocol.webrtc"
camera = "$scene"
max_rate = "800 kbit/s"
audio = "$audio"
[endpoints.webrtc-viewer]
kind = "webrtc-viewer"
host = "client"
count = "$protocol.webrtc"
from = "webrtc-camera"
[endpoints.relay]
kind = "moq-relay"
host = "server"
count = "$protocol.moq"
[endpoints.camera]
kind = "moq-publisher"
host = "server"
count = "$protocol.moq"
to = "relay"
camera = "$scene"
rate = "400 kbit/s"
audio = "$audio"
[endpoints.viewer]
kind = "moq-viewer"
host = "client"
count = "$protocol.moq"
from = "relay"
[record]
# Nothing here looks at table `tcp`, and each sample takes the guest's time.
tcp_interval = "1 s"
"#
    )
}

/// What was played of the sound, by the records of a trial: rows in the order of frames, and the numbers that were sent.
fn records(trial: &Path) -> (Vec<AudioRow>, BTreeSet<i64>) {
    let mut rows: Vec<AudioRow> = Reader::read_all(trial).unwrap();
    rows.sort_by_key(|row| row.frame);
    let sent: Vec<AudioSentRow> = Reader::read_all(trial).unwrap();
    (rows, sent.iter().map(|row| row.frame).collect())
}

#[test]
fn sound_is_played_with_its_video_and_what_is_lost_is_concealed() {
    let Some((trials, room, done)) = run_with_media("sound", &scenario()) else { return };
    let out = room.results("out");
    let summary = out.summary();
    assert_eq!(summary.trials.len(), 4, "{}", done.stderr);
    for trial in &summary.trials {
        let protocol = trial.cell["protocol"].to_string();
        let has_loss = trial.cell["loss"].to_string().contains('4');
        let cell = format!("{protocol}, loss {has_loss}");
        if !trials.are_virtual() && !trial.valid {
            suiro_units::skipped(&format!("{cell}: {:?}", trial.invalid_because));
            continue;
        }
        assert!(trial.valid, "{cell}: {:?}\n{}", trial.invalid_because, done.stderr);
        let metric =
            |name: &str| trial.metrics[name].unwrap_or_else(|| panic!("{cell}: {name} is null"));
        // More than 10 s of 12 s.
        assert!(metric("audio.frames") > 500.0, "{cell}: {}", metric("audio.frames"));
        assert_eq!(metric("audio.misread"), 0.0, "{cell}");
        let loss = if has_loss { "4--" } else { "0--" };
        let folder = format!("trials/protocol={},loss={loss}/1", protocol.trim_matches('"'));
        let (rows, sent) = records(&out.root().join(folder));
        for (row, next) in rows.iter().zip(&rows[1..]) {
            assert_eq!(row.frame + 1, next.frame, "{cell}");
        }
        assert!(rows.iter().all(|row| sent.contains(&row.frame)), "{cell}");
        let count = |fate| rows.iter().filter(|row| row.fate == fate).count() as u64;
        let concealed: u64 = rows.iter().map(|row| row.concealed).sum();
        if has_loss && protocol.contains("webrtc") {
            let lost = metric("audio.loss_ratio");
            assert!((0.015..0.08).contains(&lost), "{cell}: {lost}");
            let missing = count(AudioFate::Lost) + count(AudioFate::Late);
            assert!(concealed >= missing && missing > 0, "{cell}: {concealed} for {missing}");
        } else {
            assert_eq!(count(AudioFate::Lost), 0, "{cell}");
        }
        if !has_loss {
            assert_eq!(count(AudioFate::Late), 0, "{cell}");
            let frame_ms = 1000.0 / f64::from(FPS);
            let skew = metric("audio.lip_sync_p50_ms");
            assert!(skew.abs() <= frame_ms, "{cell}: {skew} ms");
            assert_eq!(metric("audio.lip_sync_noticed_ratio"), 0.0, "{cell}");
            assert!(metric("audio.concealed_ratio") < 0.02, "{cell}");
            // 20 ms of the frame, 20 ms of the link, 10 ms of the buffer, 6.5 ms of the codec, and the link's queue.
            let latency = metric("audio.latency_p50_ms");
            assert!((55.0..90.0).contains(&latency), "{cell}: {latency} ms");
        }
    }
}
