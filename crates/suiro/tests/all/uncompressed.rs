//! `suiro uncompressed`: stores made, split, joined and examined.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A geometry that is quick; of it 8K-DG is four planes of 32×8 samples in 16-bit words.
const SMALL: &str = "64x16 RGB 10 60000/1001";
const SMALL_BYTES: usize = 4 * 32 * 8 * 2;

fn suiro(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_suiro"));
    command.arg("uncompressed").args(arguments).current_dir(folder).output().unwrap()
}

fn done(folder: &Path, arguments: &[&str]) -> String {
    let output = suiro(folder, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(folder: &Path, code: i32, arguments: &[&str]) -> String {
    let output = suiro(folder, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn stores() -> Vec<String> {
    (1..=8).map(|node| format!("nodes/node-{node}.frames")).collect()
}

fn with_stores<'a>(first: &'a str, stores: &'a [String], rest: &[&'a str]) -> Vec<&'a str> {
    let stores = stores.iter().map(String::as_str);
    std::iter::once(first).chain(stores).chain(rest.iter().copied()).collect()
}

/// Three raw frames of samples that look random.
fn raw(folder: &Path, bytes: usize) -> (PathBuf, Vec<u8>) {
    let sample = |i: usize| ((i.wrapping_mul(2_654_435_761) >> 7) & 0x3ff) as u16;
    let frames: Vec<u8> = (0..bytes / 2).flat_map(|i| sample(i).to_le_bytes()).collect();
    let path = folder.join("8k.raw");
    std::fs::write(&path, &frames).unwrap();
    (path, frames)
}

#[test]
fn raw_pictures_come_back_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let (_, frames) = raw(folder.path(), 3 * SMALL_BYTES);
    let split = ["split", "8k.raw", "--raw", "--geometry", SMALL, "--out", "nodes"];
    assert_eq!(done(folder.path(), &split), "8 stores of 3 frames in nodes\n");
    let stores = stores();
    done(folder.path(), &with_stores("join", &stores, &["--out", "back.raw"]));
    assert_eq!(std::fs::read(folder.path().join("back.raw")).unwrap(), frames);
}

#[test]
fn nothing_is_written_over_unless_told_and_no_input_ever() {
    let folder = tempfile::tempdir().unwrap();
    raw(folder.path(), SMALL_BYTES);
    let split = ["split", "8k.raw", "--raw", "--geometry", SMALL, "--out", "nodes"];
    done(folder.path(), &split);
    let stores = stores();
    let before = std::fs::read(folder.path().join(&stores[0])).unwrap();
    std::fs::write(folder.path().join("thesis"), "years of work").unwrap();
    for (arguments, told) in [
        (&split[..], "nodes/node-1.frames is there already\nhint: --replace"),
        (&with_stores("join", &stores, &["--out", "thesis"]), "thesis is there already"),
        (
            &with_stores("join", &stores, &["--out", "nodes/node-1.frames", "--replace"]),
            "nodes/node-1.frames is the input nodes/node-1.frames",
        ),
        (&["synth", "--out", "nodes", "--frames", "1"], "nodes/node-1.frames is there already"),
    ] {
        let error = refused(folder.path(), 2, arguments);
        assert!(error.contains(told), "{arguments:?}: {error}");
    }
    assert_eq!(std::fs::read(folder.path().join(&stores[0])).unwrap(), before);
    let thesis = || std::fs::read(folder.path().join("thesis")).unwrap();
    assert_eq!(thesis(), b"years of work");
    done(folder.path(), &with_stores("join", &stores, &["--out", "thesis", "--replace"]));
    assert_eq!(thesis().len(), SMALL_BYTES);
    done(folder.path(), &with_stores("join", &stores, &["--out", "/dev/null"]));
    assert!(!Path::new("/dev/null").is_file(), "a device is written to, not replaced");
    done(folder.path(), &[&split[..], &["--replace"]].concat());
    // Nothing is left next to: the raw frames, the thesis, and the folder of eight.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    assert_eq!(std::fs::read_dir(folder.path().join("nodes")).unwrap().count(), 8);
}

#[test]
fn a_cut_sequence_is_refused_and_what_came_before_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    raw(folder.path(), 2 * SMALL_BYTES + 100);
    let split = ["split", "8k.raw", "--raw", "--geometry", SMALL, "--out", "nodes"];
    let error = refused(folder.path(), 1, &split);
    assert!(error.contains("reading 8k.raw: the last frame is cut: 100 of 2048 bytes"), "{error}");
    let told = done(folder.path(), &["info", "nodes/node-1.frames", "--verify"]);
    assert!(told.contains("2 frames of 16x4 YCbCr-4:2:2 10 bit"), "{told}");
}

#[test]
fn synthetic_frames_are_verified_and_a_truncated_store_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let geometry = "64x16 4:2:2 10 60000/1001";
    let synth = ["synth", "--out", "nodes", "--frames", "3", "--geometry", geometry];
    done(folder.path(), &synth);
    let stores = stores();
    let told = done(folder.path(), &with_stores("info", &stores, &["--verify"]));
    assert_eq!(told.matches("3 verified, 3 stamped").count(), 8, "{told}");
    let store = folder.path().join(&stores[4]);
    let file = OpenOptions::new().write(true).open(&store).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    let output = suiro(folder.path(), &with_stores("info", &stores, &["--json"]));
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("truncated: 2 of 3 frames are complete"), "{told}");
    let told = done(folder.path(), &["info", &stores[4], "--repair", "--verify"]);
    assert!(told.contains("2 verified, 2 stamped"), "{told}");
}

#[test]
fn what_cannot_be_split_or_drawn_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    let odd = ["split", "x", "--raw", "--geometry", "64x18 RGB 10 50", "--out", "nodes"];
    let error = refused(folder.path(), 2, &odd);
    assert!(error.contains("expected a multiple of 4×4 pixels, found 64×18"), "{error}");
    let small = ["synth", "--out", "nodes", "--geometry", "16x4 4:2:2 10 50"];
    assert!(refused(folder.path(), 2, &small).contains("too short for the stamp"));
    let raster = ["synth", "--out", "nodes", "--geometry", "64x16 4:2:2 10 50", "--raster"];
    assert!(refused(folder.path(), 2, &raster).contains("--raster needs frames of 1920x1080"));
    let error = refused(folder.path(), 1, &["info", "nowhere.frames"]);
    assert_eq!(error, "");
}

#[test]
fn any_file_that_ffmpeg_reads_is_split() {
    let Ok(ffmpeg) = suiro_media::Ffmpeg::locate() else {
        suiro_units::skipped("no ffmpeg");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("film.mkv");
    let mut command = Command::new(ffmpeg.path());
    command.args(["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=64x16:rate=60000/1001"]);
    command.args(["-frames:v", "4", "-pix_fmt", "yuv422p10le", "-c:v", "ffv1"]).arg(&film);
    assert!(command.status().unwrap().success());
    let geometry = "64x16 4:2:2 10 60000/1001";
    let split = ["split", "film.mkv", "--as", "tiles", "--geometry", geometry, "--out", "nodes"];
    done(folder.path(), &split);
    let stores = stores();
    done(folder.path(), &with_stores("join", &stores, &["--out", "back.raw"]));
    let mut command = Command::new(ffmpeg.path());
    command.args(["-v", "error", "-i"]).arg(&film);
    command.args(["-f", "rawvideo", "-pix_fmt", "yuv422p10le", "-"]);
    let original = command.output().unwrap().stdout;
    assert_eq!(original.len(), 4 * 64 * 16 * 2 * 2);
    assert!(std::fs::read(folder.path().join("back.raw")).unwrap() == original, "bit for bit");
    // As dual green it is sampled, and the folder is written anew.
    let split =
        ["split", "film.mkv", "--geometry", SMALL, "--out", "nodes", "--replace", "--frames", "2"];
    assert_eq!(done(folder.path(), &split), "8 stores of 2 frames in nodes\n");
}
