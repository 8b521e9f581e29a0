//! Players of others, each that is installed, through a real link for a few seconds: what it was sent
//! is in its records, and it ends when it is told to.

mod common;

use std::path::Path;

use common::{Done, Room};
use suiro_media::Ffmpeg;
use suiro_record::Reader;
use suiro_record::tables::{AccessRow, PlayerRow, RequestRow};
use suiro_scenario::Program;

const RUNGS: [i64; 2] = [600_000, 200_000];

fn scenario(player: &str, protocol: &str) -> String {
    format!(
        r#"
name = "player"
title = "a small stream"
duration = "8 s"
[topology]
shape = "dumbbell"
link = "access"
[links.access]
rate = "5 Mbit/s"
delay = "10 ms"
queue.limit = "100 kB"
[media.main]
source = "synthetic"
length = "4 s"
segment = "1 s"
fps = 24
ladder = [{{ bitrate = "600 kbit/s", height = 180 }}, {{ bitrate = "200 kbit/s", height = 120 }}]
[endpoints.origin]
kind = "origin"
host = "server"
media = "main"
mode = "live"
[endpoints.player]
kind = "player"
host = "client"
origin = "origin"
player = "{player}"
protocol = "{protocol}"
abr = "dynamic"
"#
    )
}

/// Plays; what holds on a machine that is busy too.
fn plays(program: Program, protocol: &str) {
    if let Err(missing) = suiro_players::locate(program).expect("a player that is not ours") {
        return eprintln!("skipped: {missing}");
    }
    let Ok(ffmpeg) = Ffmpeg::locate().inspect_err(|reason| eprintln!("skipped: {reason}")) else {
        return;
    };
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    room.write("player.toml", &scenario(program.name(), protocol));
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    link_libraries(&cache);
    let mut command = room.suiro(&["run", "player.toml", "--out", "out"]);
    command.env("XDG_CACHE_HOME", cache).env("SUIRO_FFMPEG", ffmpeg.path());
    let done = Done::of(&mut command);
    let out = room.results("out");
    let trial = &out.summary().trials[0];
    if let Some(because) = &trial.invalid_because {
        assert!(!because.contains("endpoint"), "{because}\n{}", done.stderr);
    }
    check_records(&out.root().join("trials/all/1"));
    let version = |name: &String| name != "suiro" && name != "ffmpeg";
    assert!(out.manifest().versions.keys().any(version), "{:?}", out.manifest().versions);
}

/// The libraries of browser players are in the user's cache; the tests have one of their own.
fn link_libraries(cache: &Path) {
    let kept = suiro_media::cache::folder().join("players");
    let ours = cache.join("suiro/players");
    std::fs::create_dir_all(cache.join("suiro")).unwrap();
    if kept.is_dir() && !ours.exists() {
        // Another test may have made it meanwhile.
        let _ = std::os::unix::fs::symlink(kept, ours);
    }
}

fn check_records(trial: &Path) {
    let requests: Vec<RequestRow> = Reader::read_all(trial).unwrap();
    let access: Vec<AccessRow> = Reader::read_all(trial).unwrap();
    let states: Vec<PlayerRow> = Reader::read_all(trial).unwrap();
    let video = requests.iter().filter(|row| {
        &*row.kind == "segment" && row.track.as_deref() == Some("video") && row.error.is_none()
    });
    let mut count = 0;
    for row in video {
        count += 1;
        let sent = access.iter().find(|sent| sent.path == row.url);
        assert!(sent.is_some(), "the origin knows nothing of {}", row.url);
        let rung = row.rung_bps.unwrap();
        let near = |nominal: &i64| (rung / 3..rung * 3).contains(nominal);
        assert!(RUNGS.iter().any(near), "a rung of {rung} bit/s");
        assert!(
            row.media_ms.is_some() && row.duration_ms.is_some_and(|ms| (900..1100).contains(&ms))
        );
    }
    assert!(count >= 2, "{count} video segments in eight seconds");
    assert_eq!(&*states[0].state, "starting");
    assert!(states.iter().any(|row| &*row.state == "playing"), "it never played");
    assert!(states.iter().any(|row| row.rung_bps.is_some()), "it never told its rung");
    let left: Vec<_> = common::entries(trial)
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("profile"))
        .collect();
    assert!(left.is_empty(), "{left:?} was left behind");
}

#[test]
fn vlc_plays_dash() {
    plays(Program::Vlc, "dash");
}

#[test]
fn vlc_plays_hls() {
    plays(Program::Vlc, "hls");
}

#[test]
fn gstreamer_plays_hls() {
    plays(Program::Gstreamer, "hls");
}

#[test]
fn dashjs_plays() {
    plays(Program::Dashjs, "dash");
}

#[test]
fn hlsjs_plays() {
    plays(Program::Hlsjs, "hls");
}
