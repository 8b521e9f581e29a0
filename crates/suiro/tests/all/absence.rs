//! Endpoints that are stopped while a trial measures: the trial is invalid and says whom and when, and a player that was
//! not there shows a freeze. Where hosts or ffmpeg are missing, the test prints that and passes.

use crate::common::{self, Done, Room};
use suiro_media::Ffmpeg;
use suiro_record::tables::{FrameRow, LatenessRow};
use suiro_record::words::LatenessSource;
use suiro_record::{EndpointOutcome, Reader, Trial};

/// Two seconds after the start, `stopper` stops one of the others for a second. It finds the process by its job or its
/// argument; the bracket keeps it from finding itself.
const SCENARIO: &str = r#"
name = "stopped"
title = "an endpoint is stopped for a second"
duration = "5 s"
matrix.who = ["origin", "player", "idle"]
[topology]
shape = "explicit"
hosts = ["server", "client"]
cables = [{ from = "server", to = "client" }]
[links]
[media.main]
source = "synthetic"
length = "2 s"
segment = "500 ms"
audio = false
preset = "ultrafast"
ladder = [{ bitrate = "200 kbit/s", height = 180 }]
[endpoints.origin]
kind = "origin"
host = "server"
media = "main"
mode = "live"
tcp = "reno"
[endpoints.player]
kind = "player"
host = "client"
origin = "origin"
abr = "throughput"
buffer = "4 s"
target_latency = "2 s"
[endpoints.idle]
kind = "command"
host = "client"
command = ["sh", "-c", "exec tail -f /dev/null /idle.job.json"]
exit = "ignored"
[endpoints.stopper]
kind = "command"
host = "client"
start = "2 s"
command = ["sh", "-c", '''
cd /proc
for p in [0-9]*; do
  if tr '\0' ' ' < $p/cmdline 2>/dev/null | grep -q '[/]${who}.job.json'; then
    echo stopping $p; kill -STOP $p; sleep 1; kill -CONT $p
  fi
done
''']
"#;

fn endpoint<'t>(trial: &'t Trial, name: &str) -> &'t EndpointOutcome {
    trial.endpoints.iter().find(|endpoint| endpoint.name == name).expect("it took part")
}

fn worst_s(trial: &Trial, name: &str) -> f64 {
    endpoint(trial, name).lateness.as_ref().map_or(0.0, |lateness| lateness.worst_s)
}

/// The longest time between two frames shown, in seconds.
fn longest_picture(rows: &[FrameRow]) -> f64 {
    let mut shown: Vec<i64> = rows.iter().filter_map(|row| row.displayed_ns).collect();
    shown.sort_unstable();
    let gaps = shown.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.max().expect("frames were shown") as f64 / 1e9
}

#[test]
fn a_stopped_endpoint_makes_the_trial_invalid_and_a_stopped_player_shows_a_freeze() {
    let ffmpeg = Ffmpeg::locate().inspect_err(suiro_units::skipped);
    let Some(ffmpeg) = ffmpeg.ok().filter(|_| common::can_run()) else { return };
    let room = Room::new();
    room.write("x.toml", SCENARIO);
    let mut command = room.suiro(&["run", "x.toml", "--out", "out", "--jobs", "3"]);
    let done = Done::of(command.env("SUIRO_FFMPEG", ffmpeg.path())).exits(1);
    let out = room.results("out");
    for who in ["origin", "player", "idle"] {
        let trial = out.trial(&format!("who={who}/1"));
        let reason = trial.invalid_because.as_deref().unwrap_or_default();
        let told = format!("endpoint {who} did not run from 2.");
        assert!(!trial.valid && reason.contains(&told), "{who}: {reason}\n{}", done.stderr);
        for other in ["origin", "player", "idle"] {
            // `idle` is looked at every 100 ms: of the second, at least 800 ms are seen.
            let stopped = worst_s(&trial, other) >= 0.8;
            assert_eq!(stopped, other == who, "{who}: {other}: {:?}", endpoint(&trial, other));
        }
    }
    // What the player could not have shown, it does not claim to have shown.
    let dir = out.root().join("trials/who=player/1");
    let frames: Vec<FrameRow> = Reader::read_all(&dir).unwrap();
    assert!(longest_picture(&frames) >= 0.9, "{}", longest_picture(&frames));
    let summary = out.summary();
    let player = summary.trials.iter().find(|trial| trial.cell["who"] == "player").unwrap();
    assert!(player.metrics["video.freezes"] >= Some(1.0), "{:?}", player.metrics);

    let rows: Vec<LatenessRow> = Reader::read_all(&out.root().join("trials/who=idle/1")).unwrap();
    let stopped: Vec<_> = rows.iter().filter(|row| row.stopped).collect();
    assert!(!stopped.is_empty(), "{rows:?}");
    assert!(stopped.iter().all(|row| row.source == LatenessSource::Scheduler), "{stopped:?}");
    assert!(stopped.iter().all(|row| &*row.endpoint == "idle"), "{stopped:?}");
}
