//! What the viewer saw, end to end: a stream through a link, its screen made again, measured
//! and compared. Where no trial can run or ffmpeg is missing, these print that and pass.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::common::{Done, Room, Trials};
use suiro_media::Ffmpeg;
use suiro_media::ffmpeg::Feature;
use suiro_record::tables::QualityRow;
use suiro_record::{Reader, Screens, TrialSummary};

const FPS: f64 = 12.0;

/// Two seconds of video, so many bits that next to nothing is lost, streamed again and again. `quiet`
/// goes without a fault, `cut` loses its link for a second more than is buffered, `live` is three
/// segments behind once it has caught up, and `chunks` one second, of segments that come in chunks.
const SCENARIO: &str = r#"
name = "seen"
title = "what was seen: a link that is cut"
duration = "$trial.lasts"
[matrix]
trial = [
  { label = "quiet", value = { rate = "40 Mbit/s", mode = "vod", lasts = "4500 ms", whole = 1, chunks = 0 } },
  { label = "cut", value = { rate = "20 kbit/s", mode = "vod", lasts = "4500 ms", whole = 1, chunks = 0 } },
  { label = "live", value = { rate = "40 Mbit/s", mode = "live", lasts = "8 s", whole = 1, chunks = 0 } },
  { label = "chunks", value = { rate = "40 Mbit/s", mode = "live", lasts = "6 s", whole = 0, chunks = 1 } },
]
[topology]
shape = "dumbbell"
link = "access"
[links.access]
rate = "40 Mbit/s"
delay = "10 ms"
queue.limit = "200 kB"
down.changes = [{ at = "700 ms", rate = "$trial.rate" }, { at = "3400 ms", rate = "40 Mbit/s" }]
[media.main]
source = "synthetic"
length = "2 s"
segment = "500 ms"
fps = 12
ladder = [{ bitrate = "8 Mbit/s", height = 180 }]
[endpoints.origin]
kind = "origin"
host = "server"
count = "$trial.whole"
media = "main"
mode = "$trial.mode"
tcp = "reno"
[endpoints.player]
kind = "player"
host = "client"
count = "$trial.whole"
origin = "origin"
abr = "dynamic"
abandon = false
buffer = "1500 ms"
[endpoints.live]
kind = "origin"
host = "server"
count = "$trial.chunks"
media = "main"
mode = "live"
chunk = "1 ms" # a frame
tcp = "reno"
[endpoints.near]
kind = "player"
host = "client"
count = "$trial.chunks"
origin = "live"
abr = "dynamic"
target_latency = "1 s"
[record]
# Nothing here looks at table `tcp`, and each sample takes the guest's time.
tcp_interval = "1 s"
quality = true
"#;

fn ffmpeg() -> Option<Ffmpeg> {
    let found = Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()?;
    let able = found.has(Feature::Libvmaf) && found.has(Feature::Libx264);
    if !able {
        suiro_units::skipped("this ffmpeg has no libvmaf or no libx264");
    }
    able.then_some(found)
}

/// How a command ended that had this ffmpeg and our `p1203-standalone`.
fn done(mut command: Command, room: &Room, ffmpeg: &Ffmpeg) -> Done {
    // Prepared media is kept between the tests and their runs.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    command.env("XDG_CACHE_HOME", cache).env("SUIRO_FFMPEG", ffmpeg.path());
    command.env("SUIRO_P1203", p1203(room));
    Done::of(&mut command)
}

/// Stands in the place of `p1203-standalone`, which may not be shipped: it wants H.264 and gives a
/// number. This tests our side, not the model.
fn p1203(room: &Room) -> std::path::PathBuf {
    let path = room.path("work").join("p1203");
    std::fs::write(
        &path,
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 1.9.6 && exit\n\
         grep -q '\"codec\": \"h264\"' \"$3\" || exit 9\n\
         echo '{\"f\": {\"O46\": 3.25, \"O35\": 4, \"O23\": 4.5, \"mode\": 0}}'\n",
    )
    .expect("ours");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("ours");
    path
}

fn metric(trial: &TrialSummary, name: &str) -> f64 {
    trial.metrics.get(name).copied().flatten().unwrap_or_else(|| panic!("{name} is missing"))
}

/// Fails unless each frame of the screen is the one that the records name.
fn check_stamps(dir: &Path) {
    let text = std::fs::read_to_string(dir.join("screens.json")).expect("screens.json");
    let screens: Screens = serde_json::from_str(&text).expect("a document of ours");
    let screen = &screens.screens[0];
    assert_eq!((screen.stamps_differ, screen.stamps_unread, &screen.problem), (0, 0, &None));
    assert!(screen.stamps_agree > 40 && screen.ticks <= 8 * 12, "{screen:?}");
    assert!(screen.scored_by["model"].contains("vmaf"), "{screen:?}");
    assert_eq!(screen.scored_by["size"], "1920x1080");
    assert!(screen.scored_by["native size"].starts_with("320x180"), "{screen:?}");
    assert_eq!(screen.scored_by["p1203-standalone"], "1.9.6");
    let p1203 = screen.p1203.as_ref().expect("the program answered");
    assert_eq!((p1203.o46, p1203.o35, p1203.o23), (3.25, Some(4.0), Some(4.5)));
    assert!(p1203.media_s > 0.0 && p1203.media_s <= 8.0, "{p1203:?}");
    let video = dir.join(screen.video.as_ref().expect("the name of the video"));
    assert!(video.metadata().expect("a video").len() > 10_000);
}

/// A known delay: the one that the scenario sets, or three segments, the default.
fn check_live(trial: &TrialSummary, wanted_ms: f64) {
    let latency = metric(trial, "media.latency_p50_ms");
    // A player lets its latency be 100 ms off, and joins in the middle of a frame.
    assert!((latency - wanted_ms).abs() <= 100.0 + 1000.0 / FPS, "{latency}");
    assert!(metric(trial, "video.vmaf_native_mean") >= 99.0);
}

/// VMAF of frame and experience, in the size of the rung.
fn native(trial: &TrialSummary) -> (f64, f64) {
    let [picture, experience] =
        ["vmaf", "experience_vmaf"].map(|of| format!("video.{of}_native_mean"));
    (metric(trial, &picture), metric(trial, &experience))
}

/// Nothing lost: both scores are those of the source itself.
fn check_quiet(trial: &TrialSummary) {
    let (picture, experience) = native(trial);
    assert!(picture >= 99.0 && experience >= 99.0, "{picture} {experience}");
    // Both rung and source are scaled to the model's 1080 lines; the source has more of its own.
    let picture = metric(trial, "video.vmaf_mean");
    assert!(picture < 90.0, "{picture}");
    assert_eq!(metric(trial, "video.freezes"), 0.0);
    assert_eq!(metric(trial, "video.p1203_mos"), 3.25);
    assert!((metric(trial, "video.mos_estimate") - (picture / 20.0).max(1.0)).abs() < 1e-9);
}

/// A freeze is as long as the player stalled, in the records and on the screen.
fn check_cut(trial: &TrialSummary, dir: &Path) {
    let (frozen, stalled) = (metric(trial, "video.freeze_s"), metric(trial, "player.stall_s"));
    assert!(stalled > 1.0, "{stalled}");
    // The frame was shown before the stall began, for up to a frame time, and an interval is one
    // more.
    assert!((-0.001..=2.0 / FPS).contains(&(frozen - stalled)), "{frozen} {stalled}");
    let rows: Vec<QualityRow> = Reader::read_all(dir).expect("the table quality");
    let repeats = rows.iter().filter(|row| row.repeated).count() as f64 / FPS;
    assert!((repeats - stalled).abs() <= 2.0 / FPS, "{repeats} {stalled}");
    let (picture, experience) = native(trial);
    assert!(picture >= 99.0, "a freeze takes nothing from the frames: {picture}");
    assert!(experience < picture - 5.0, "but from the experience: {experience}");
}

#[test]
fn what_was_seen_is_made_again_measured_and_compared() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let Some(trials) = Trials::find() else { return };
    let room = Room::new();
    room.write("seen.toml", SCENARIO);
    let suiro = |arguments: &[&str]| done(room.suiro(arguments), &room, &ffmpeg);
    let ran = done(trials.run(&room, "seen.toml"), &room, &ffmpeg);
    // Live, a busy machine may be too late for the link.
    assert!(ran.code == Some(0) || ran.code == Some(1) && !trials.are_virtual(), "{}", ran.stderr);
    let out = room.results("out");
    let (summary, plan) = (out.summary(), out.manifest().plan);
    for (trial, planned) in summary.trials.iter().zip(&plan) {
        let dir = out.root().join(&planned.folder);
        check_stamps(&dir);
        if let Some(because) = &trial.invalid_because {
            suiro_units::skipped(&format!("the figures: {because}"));
        } else if planned.folder.contains("quiet") {
            check_quiet(trial);
        } else if planned.folder.contains("cut") {
            check_cut(trial, &dir);
        } else {
            check_live(trial, if planned.folder.contains("chunks") { 1000.0 } else { 1500.0 });
        }
    }
    let done = suiro(&["compare", "out", "--cells", "quiet,cut", "--out", "c.mp4"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let written = |name: &str| room.path("work").join(name).metadata().map(|file| file.len());
    assert!(written("c.mp4").is_ok_and(|bytes| bytes > 10_000));
    assert!(written("c.png").is_ok_and(|bytes| bytes > 10_000));
    let wrong = suiro(&["compare", "out", "--cells", "quite"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("did you mean `trial=quiet`?"), "{}", wrong.stderr);
    std::fs::remove_file(out.root().join(&plan[0].folder).join("screens.json"))
        .expect("it was there");
    let lacks = suiro(&["compare", "out"]);
    assert_eq!(lacks.code, Some(2));
    assert!(lacks.stderr.contains("--set record.quality=true"), "{}", lacks.stderr);
}
