//! The guide's commands work as a reader types them: all blocks of shell in `docs/guide.md`, in order, in one shell, which
//! begins in an empty folder. Trials of TCP last one second and those of the film three; nothing else is changed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, Done, Room};
use suiro_media::Ffmpeg;
use suiro_media::ffmpeg::Feature;

/// A block of shell of the page, and the line that it begins at.
struct Block {
    line: usize,
    script: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in page.lines().enumerate() {
        match &mut open {
            None if line == "```sh" => {
                open = Some(Block { line: number + 1, script: String::new() });
            }
            Some(_) if line == "```" => blocks.extend(open.take()),
            Some(block) => block.script.extend([line, "\n"]),
            None => {}
        }
    }
    blocks
}

/// What a block needs that this machine does not have.
fn missing(script: &str, ffmpeg: Option<&Ffmpeg>) -> Option<&'static str> {
    let python = |modules: &str| {
        let look = format!("import sys, {modules}; assert sys.version_info >= (3, 10)");
        let done = Command::new("python3").args(["-c", &look]).output();
        done.is_ok_and(|output| output.status.success())
    };
    let films = ffmpeg.is_some_and(|f| f.has(Feature::Libvmaf) && f.has(Feature::Libx264));
    if script.contains("film.toml") && !films {
        return Some("it needs an ffmpeg with libvmaf and libx264");
    }
    if script.contains("matplotlib") && !python("pyarrow, matplotlib") {
        return Some("it needs pyarrow and matplotlib");
    }
    if script.contains("import suiro") && !python("pyarrow, pandas") {
        return Some("it needs pyarrow and pandas");
    }
    if script.contains("suiro sweep") && !python("json") {
        return Some("it needs Python 3.10 or later");
    }
    None
}

/// What a reader types: the blocks one after another, each announced by its line. Blocks that need what this machine
/// does not have are left out.
fn session(blocks: &[Block], ffmpeg: Option<&Ffmpeg>) -> String {
    let mut session = String::new();
    for Block { line, script } in blocks {
        if let Some(reason) = missing(script, ffmpeg) {
            suiro_units::skipped(&format!("the commands at docs/guide.md line {line}: {reason}"));
            continue;
        }
        session.push_str(&format!("echo 'docs/guide.md line {line}:' >&2\n{script}\n"));
    }
    session
}

/// A folder with a `suiro` whose trials are short, and in virtual time if there is a kernel for it: it is put before
/// everything else on the PATH. Where this machine was too busy to carry a live link in time, which is no fault of the guide, it
/// does not fail.
fn short_suiro(room: &Room, kernel: Option<&Path>) -> PathBuf {
    let folder = room.path("bin");
    std::fs::create_dir(&folder).unwrap();
    let script = format!(
        r#"#!/bin/sh
case "$*" in
run*film.toml*) length='3 s';;
*) length='1 s';;
esac
excused={live}
case "$1" in
run | sweep) command=$1; shift; set -- $command {virtually} --duration "$length" "$@";;
link) excused=true;;
esac
printed='{}'
'{}' "$@" >"$printed.out" 2>"$printed.err"
code=$?
cat "$printed.out"
cat "$printed.err" >&2
if $excused && [ $code = 1 ] && grep -qE 'packet in a hundred left|waited for a CPU|did not run' "$printed.out" "$printed.err"; then exit 0; fi
exit $code
"#,
        folder.join("printed").display(),
        env!("CARGO_BIN_EXE_suiro"),
        virtually = kernel.map_or("", |_| "--virtual"),
        live = kernel.is_none(),
    );
    std::fs::write(folder.join("suiro"), script).unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.join("suiro"), executable).unwrap();
    folder
}

#[test]
fn every_command_of_the_guide_works() {
    if !common::can_run() || !common::has("python3") {
        return;
    }
    let page = Path::new("../../docs/guide.md");
    let blocks = blocks(&std::fs::read_to_string(page).unwrap());
    assert!(blocks.len() >= 10, "{} blocks of shell", blocks.len());
    let ffmpeg = Ffmpeg::locate().ok();
    let room = Room::new();
    let path = std::env::var("PATH").unwrap();
    let kernel = common::kernel();
    let path = format!("{}:{path}", short_suiro(&room, kernel.as_deref()).display());
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let package = Path::new("../../python").canonicalize().unwrap();
    let mut command = Command::new("bash");
    room.furnish(&mut command);
    // Errors end the shell; apart from that it is the one that a reader types into.
    command.args(["-euo", "pipefail", "-c", &session(&blocks, ffmpeg.as_ref())]).env("PATH", &path);
    // Prepared media is kept between runs of the tests.
    command.env("XDG_CACHE_HOME", &cache);
    command.env("PYTHONPATH", &package).env("SUIRO_PYTHON", "python3");
    if let Some(ffmpeg) = &ffmpeg {
        command.env("SUIRO_FFMPEG", ffmpeg.path());
    }
    if let Some(kernel) = &kernel {
        command.env("SUIRO_KERNEL", kernel);
    }
    let done = Done::of(&mut command);
    assert_eq!(
        done.code,
        Some(0),
        "the block that is named last failed; printed:\n{}\n{}",
        done.stdout,
        done.stderr
    );
    made(&room, ffmpeg.is_some());
}

/// What the guide promises is there.
fn made(room: &Room, film: bool) {
    let work = room.path("work");
    let queues = room.results("results/queues").summary();
    assert_eq!(queues.trials.len(), 4);
    let again = room.results("results/again").summary();
    assert_eq!(
        queues.trials.iter().map(|t| (&t.cell, t.seed)).collect::<Vec<_>>(),
        again.trials.iter().map(|t| (&t.cell, t.seed)).collect::<Vec<_>>(),
        "a run repeated from its folder has the same cells and seeds"
    );
    let swept = room.results("results/swept").summary();
    assert_eq!(swept.trials.len(), 4, "a sweep runs every trial of the plan once");
    let csv = std::fs::read_to_string(work.join("rtt.csv")).unwrap();
    assert!(csv.starts_with("tcp,mean,deviation,trials\n"), "{csv}");
    let valid =
        room.results("results/repeated").summary().trials.iter().filter(|t| t.valid).count();
    let rows = csv.lines().skip(1).filter_map(|row| row.rsplit(',').next()?.parse::<usize>().ok());
    assert_eq!(rows.sum::<usize>(), valid, "{csv}");
    assert!(!film || work.join("film.mp4").exists());
}
