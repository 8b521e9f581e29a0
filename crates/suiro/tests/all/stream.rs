//! A real stream through a link: small synthetic video, live DASH and HLS on demand, played by
//! suiro's own player. What it saved, ffmpeg decodes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, Done, Results, Room, Trials};
use suiro_media::Ffmpeg;
use suiro_record::Reader;
use suiro_record::tables::{AccessRow, RequestRow};
use suiro_record::words::{RequestKind, Track};

const FPS: u64 = 24;
/// Frames in a segment of half a second.
const SEGMENT: u64 = FPS / 2;

/// Four seconds of synthetic video in two rungs, streamed for eight.
fn scenario(mode: &str, protocol: &str) -> String {
    format!(
        r#"
name = "stream"
title = "a small stream"
duration = "8 s"
[topology]
shape = "dumbbell"
link = "access"
[links.access]
rate = "3 Mbit/s"
delay = "10 ms"
queue.limit = "60 kB"
[media.main]
source = "synthetic"
length = "4 s"
segment = "500 ms"
fps = {FPS}
ladder = [{{ bitrate = "600 kbit/s", height = 180 }}, {{ bitrate = "200 kbit/s", height = 120 }}]
[endpoints.origin]
kind = "origin"
host = "server"
media = "main"
mode = "{mode}"
tcp = "reno"
[endpoints.player]
kind = "player"
host = "client"
origin = "origin"
protocol = "{protocol}"
abr = "dynamic"
buffer = "4 s"
save = true
"#
    )
}

fn ffmpeg() -> Option<Ffmpeg> {
    Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()
}

/// Streams one way; the room and how the run ended.
fn stream(trials: &Trials, ffmpeg: &Ffmpeg, mode: &str, protocol: &str) -> (Room, Done) {
    let room = Room::new();
    room.write("stream.toml", &scenario(mode, protocol));
    // Prepared media is kept between the tests and their runs.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let mut command = trials.run(&room, "stream.toml");
    command.env("XDG_CACHE_HOME", cache).env("SUIRO_FFMPEG", ffmpeg.path());
    let done = Done::of(&mut command);
    (room, done)
}

/// Fails unless the figures are those of a stream that played well.
fn check_metrics(trials: &Trials, out: &Results, done: &Done) {
    let summary = out.summary();
    let trial = &summary.trials[0];
    // Live, a busy machine may be too late for the link; then the trial has to report that, and
    // nothing else.
    assert_eq!(done.code, Some(i32::from(!trial.valid)), "{}", done.stderr);
    if let Some(because) = &trial.invalid_because {
        let late = because.contains("did not run") || because.contains("waited for a CPU");
        let excused = !trials.are_virtual() && (late || !because.contains("endpoint"));
        assert!(excused, "{because}");
        suiro_units::skipped(&format!("the figures: {because}"));
        return;
    }
    let metric = |name: &str| trial.metrics[name].unwrap_or_else(|| panic!("{name} is null"));
    let bitrate = metric("video.bitrate_mean_bps");
    assert!((100e3..1e6).contains(&bitrate), "{bitrate}");
    assert!(metric("tcp.cwnd_mean_bytes") > 1000.0);
    assert!(metric("tcp.srtt_mean_ms") >= 20.0);
    let goodput = metric("flow.goodput_mean_bps");
    assert!((50e3..3e6).contains(&goodput), "{goodput}");
    assert!(metric("player.stall_s") < 8.0);
    assert!((0.0..1.0).contains(&metric("link.down.loss_ratio")));
}

/// Decodes a file, of which ffmpeg must not complain; the number of its frames.
fn pictures(ffmpeg: &Ffmpeg, file: &Path) -> u64 {
    let mut command = Command::new(ffmpeg.path());
    command.args(["-nostdin", "-hide_banner", "-loglevel", "warning", "-progress", "pipe:1", "-i"]);
    command.arg(file).args(["-f", "null", "-"]);
    let output = common::output(&mut command);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(complaints.is_empty(), "{}: {complaints}", file.display());
    let told = String::from_utf8_lossy(&output.stdout);
    let frames = told.lines().filter_map(|line| line.strip_prefix("frame=")).next_back();
    frames.map_or(0, |frames| frames.trim().parse().unwrap())
}

/// What was saved is what was fetched, and a decoder takes it.
fn check_saved(out: &Results, ffmpeg: &Ffmpeg) {
    let trial = out.root().join("trials/all/1");
    let requests: Vec<RequestRow> = Reader::read_all(&trial).unwrap();
    let of_video = |row: &&RequestRow| {
        row.kind == RequestKind::Segment && row.track == Some(Track::Video) && row.done_ns.is_some()
    };
    let segments = requests.iter().filter(of_video).count() as u64;
    assert!(segments >= 6, "{segments} segments in eight seconds");
    let saved = |kind: &str| -> Vec<PathBuf> {
        let is_it = |path: &PathBuf| path.to_string_lossy().contains(kind);
        common::entries(&trial).into_iter().filter(is_it).collect()
    };
    let decoded: u64 = saved(".video.").iter().map(|file| pictures(ffmpeg, file)).sum();
    let expected = segments * SEGMENT;
    assert!(decoded.abs_diff(expected) <= SEGMENT, "{decoded} frames, {expected} fetched");
    for file in saved(".audio.") {
        assert_eq!(pictures(ffmpeg, &file), 0, "{}", file.display());
    }
}

/// What the player got, the origin says that it sent, to the player's host.
fn check_access(out: &Results) {
    let trial = out.root().join("trials/all/1");
    let requests: Vec<RequestRow> = Reader::read_all(&trial).unwrap();
    let access: Vec<AccessRow> = Reader::read_all(&trial).unwrap();
    for got in requests.iter().filter(|row| row.status == Some(200) && row.done_ns.is_some()) {
        let sent = access.iter().find(|row| {
            row.path == got.url && row.status == 200 && row.body_bytes == got.body_bytes
        });
        let sent = sent.unwrap_or_else(|| panic!("no record of {}", got.url));
        assert!(sent.peer.contains("10.0.0.2") || sent.peer.contains("fd00::2"), "{}", sent.peer);
        assert!(sent.t_ns <= sent.answered_ns && Some(sent.answered_ns) <= got.done_ns);
    }
}

fn streams(mode: &str, protocol: &str, place: impl FnOnce() -> Option<Trials>) {
    let Some(ffmpeg) = ffmpeg() else { return };
    let Some(trials) = place() else { return };
    let (room, done) = stream(&trials, &ffmpeg, mode, protocol);
    let out = room.results("out");
    check_metrics(&trials, &out, &done);
    check_saved(&out, &ffmpeg);
    check_access(&out);
    assert!(out.manifest().versions.contains_key("ffmpeg"));
    assert!(room.strays().is_empty(), "{:?}", room.strays());
}

#[test]
fn dash_live() {
    streams("live", "dash", Trials::find);
}

/// Live, because a guest has no BPF: this is the stream whose TCP is sampled at each ACK.
#[test]
fn hls_on_demand() {
    streams("vod", "hls", Trials::live);
}
