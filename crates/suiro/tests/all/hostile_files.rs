//! Files that block, never end or are too large are refused, with exit 1 or 2 and their name, at once
//! and without the memory that they would take.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, Done, Room};

/// Address space of the program in these tests, in KiB: what it needs, not what /dev/zero gives.
const MEMORY_KIB: u32 = 2 << 20;

/// Runs the program with bounded memory.
fn run(room: &Room, arguments: &[&str]) -> Done {
    let mut command = Command::new("sh");
    let bounded = format!("ulimit -v {MEMORY_KIB} && exec \"$@\"");
    command.args(["-c", &bounded, "sh", env!("CARGO_BIN_EXE_suiro")]).args(arguments);
    room.furnish(&mut command);
    Done::of(&mut command)
}

fn device(path: &Path) {
    std::os::unix::fs::symlink("/dev/zero", path).unwrap();
}

fn fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn devices_and_fifos_are_no_input() {
    let room = Room::new();
    let work = room.path("work");
    std::fs::create_dir_all(work.join("results")).unwrap();
    std::fs::create_dir_all(work.join("package")).unwrap();
    std::fs::create_dir_all(work.join("recording")).unwrap();
    room.write("real.pcap", "");
    let link = "rate = '1 Mbit/s'\ndelay = '1 ms'\ntrace = 'T'";
    room.write("link.toml", link);
    let kinds = [("a device", device as fn(&Path)), ("a FIFO", fifo)];
    for (found, make) in kinds {
        for name in [
            "bad",
            "bad.toml",
            "bad.sdp",
            "results/manifest.json",
            "package/package.json",
            "recording/layers.json",
        ] {
            let path = work.join(name);
            let _ = std::fs::remove_file(&path);
            make(&path);
        }
        let refused: &[&[&str]] = &[
            &["run", "./bad.toml"],
            &["check", "./bad.toml"],
            &["link", "--trace-down", "bad", "--", "true"],
            &["link", "--scenario-link", "bad", "--", "true"],
            &["serve", "package"],
            &["layers", "analyze", "bad", "real.pcap"],
            &["uncompressed", "receive", "./bad.sdp"],
            &["uncompressed", "info", "bad"],
            &["endpoint", "bad"],
        ];
        for arguments in refused {
            let done = run(&room, arguments);
            assert!(matches!(done.code, Some(1 | 2)), "{arguments:?}: {:?}", done.code);
            let all = format!("{}{}", done.stdout, done.stderr);
            assert!(all.contains(&format!("found {found}")), "{arguments:?}: {all}");
        }
        // In a folder that may be a stranger's, a link is refused before what it leads to.
        for arguments in [&["report", "results"][..], &["layers", "report", "recording"]] {
            let done = run(&room, arguments);
            assert_eq!(done.code, Some(1), "{arguments:?}: {}", done.stderr);
            let told = done.stderr.contains("neither is followed") || done.stderr.contains(found);
            assert!(told, "{arguments:?}: {}", done.stderr);
        }
    }
}

/// Where a file is opened otherwise than through `suiro_outside`, and why that is right.
const OTHERWISE: &[(&str, &str)] = &[
    ("outside/src/", "it is the place"),
    ("bench/src/", "what benchmarks have just written"),
    ("bpf-build/src/", "what clang has just written, when suiro is built"),
    ("browser/src/executable.rs", "an installed program, of which a block at a time is read"),
    ("hosts/src/", "the kernel's own files"),
    ("guest/src/inside.rs", "devices of the guest, and folders that it was given"),
    ("tcp/src/", "the kernel's own files"),
    ("lab/src/machine.rs", "the kernel's own files"),
    ("lab/src/listening.rs", "the kernel's own files"),
    ("lab/src/process.rs", "the log that it has written, and /dev/null"),
    ("layers/src/namespace.rs", "the kernel's own files"),
    ("layers/src/probe/", "the kernel's own files"),
    ("layers/src/record/mod.rs", "the kernel's own files"),
    ("suiro/src/doctor/", "the kernel's own files"),
    ("uncompressed/src/send/mod.rs", "the kernel's own files"),
    ("control/src/controller/lease.rs", "its own lock file, which is open, and 200 bytes of it"),
    ("suiro/src/run.rs", "the folder, for its lock"),
    ("suiro/src/folders.rs", "the folder, for its lock"),
    ("suiro/src/docs.rs", "a test"),
    ("page-types/src/lib.rs", "for tests"),
    ("suiro/src/uncompressed/stores.rs", "raw frames, read one at a time, also from a pipe"),
    ("media/src/quantised/prepare.rs", "what ffmpeg has just written into our own folder"),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in common::entries(folder) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn files_are_opened_through_the_bounded_reader() {
    let crates = Path::new("..").canonicalize().unwrap();
    let mut files = Vec::new();
    for part in common::entries(&crates) {
        sources(&part.join("src"), &mut files);
    }
    assert!(files.len() > 300, "{} sources", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let name = file.strip_prefix(&crates).unwrap().to_str().unwrap().to_owned();
        let is_test = name.ends_with("tests.rs") || name.contains("/tests/");
        if is_test || OTHERWISE.iter().any(|(place, _)| name.starts_with(place)) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let opens = ["fs::read(", "read_to_string(", "File::open("];
        for (number, line) in code.lines().enumerate() {
            let of_kernel = line.contains("\"/proc/") || line.contains("\"/sys/");
            if opens.iter().any(|open| line.contains(open)) && !of_kernel {
                wrong.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    let hint = "hint: suiro_outside::file::read, or name the file in OTHERWISE with the reason";
    assert!(wrong.is_empty(), "{}\n{hint}", wrong.join("\n"));
}
