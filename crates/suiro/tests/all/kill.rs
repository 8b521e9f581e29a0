//! SIGKILL of suiro at any moment leaves no process, namespace, mount or file behind.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{self, Done, Lines, Room};
use rustix::process::Signal;
use suiro_media::Ffmpeg;
use suiro_units::Seed;

/// How often it is killed, unless `SUIRO_TEST_KILLS` says otherwise.
const KILLS: u32 = 5;
/// A little longer than the run below takes.
const RUN: Duration = Duration::from_millis(4500);

/// Two trials at a time on an emulated link each, with children of children; the second pair is
/// about to be made when the first ends.
const SCENARIO: &str = r#"
name = "x"
title = "x"
duration = "1 s"
repetitions = 4
jobs = 2
[topology]
shape = "dumbbell"
link = "access"
[links.access]
rate = "10 Mbit/s"
delay = "5 ms"
queue.limit = "50 ms"
[endpoints.busy]
kind = "command"
host = "server"
command = ["sh", "-c", "setsid sh -c 'trap : TERM INT HUP; while :; do sleep 0.1; done' & echo up; wait"]
ready = { line = "up" }
[endpoints.idle]
kind = "command"
host = "client"
command = ["sleep", "1000"]
"#;

/// Media that takes a second or more to encode, and a plain cable to stream it over.
const MEDIA: &str = r#"
name = "x"
title = "x"
duration = "1 s"
[topology]
shape = "explicit"
hosts = ["server", "client"]
cables = [{ from = "server", to = "client" }]
[links]
[media.main]
source = "synthetic"
length = "8 s"
ladder = [{ bitrate = "500 kbit/s", height = 360 }]
[endpoints.origin]
kind = "origin"
host = "server"
media = "main"
mode = "vod"
"#;

/// A run of the program, and the pipe that every process of it holds open.
struct Run {
    child: Child,
    mark: String,
}

impl Run {
    /// Starts it with the output folder `out-NUMBER`, in an environment that `change` changes.
    fn start(room: &Room, number: u32, change: impl FnOnce(&mut Command)) -> Self {
        // The tests of this program run side by side, and each counts its runs from 1.
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let mark = format!("SUIRO_TEST_MARK={}-{run}", std::process::id());
        let (name, value) = mark.split_once('=').unwrap();
        // Descriptor 9 is inherited by all that suiro starts: its other end is at its end when the
        // last of them is gone.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 9>&1 >/dev/null", "sh", env!("CARGO_BIN_EXE_suiro")]);
        command.args(["run", "x.toml", "--out", &format!("out-{number}")]);
        room.furnish(&mut command);
        command.env(name, value).stdout(Stdio::piped()).stderr(Stdio::null());
        change(&mut command);
        let child = command.spawn().unwrap();
        Self { child, mark }
    }

    /// Processes of this run, recognised by their environment.
    fn processes(&self) -> Vec<PathBuf> {
        let mark = self.mark.as_bytes();
        let marked = |process: &PathBuf| {
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark)
        };
        processes().into_iter().filter(marked).collect()
    }

    /// Kills it after a while, and waits until the kernel has killed the rest. Returns the
    /// namespaces that it had, beyond `ours`.
    fn kill_after(mut self, delay: Duration, ours: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        let everybody = self.child.stdout.take().unwrap();
        let ended = common::readable(&everybody, delay);
        let mut theirs: BTreeSet<PathBuf> =
            self.processes().iter().flat_map(|process| namespaces(process)).collect();
        theirs.retain(|namespace| !ours.contains(namespace));
        if !ended {
            common::signal(&self.child, Signal::KILL);
        }
        self.child.wait().unwrap();
        let gone = common::readable(&everybody, Duration::from_secs(20));
        assert!(gone, "20 s after the kill there live: {:?}", self.processes());
        // An encoder does not hold the pipe, so on a busy machine it may end later.
        let left = || format!("after the kill there live: {:?}", self.processes());
        common::eventually(|| self.processes().is_empty(), left);
        theirs
    }
}

fn processes() -> Vec<PathBuf> {
    let is_process = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.bytes().all(|byte| byte.is_ascii_digit())
    };
    common::entries(Path::new("/proc")).into_iter().filter(is_process).collect()
}

/// The namespaces of a process and of its threads, such as `net:[4026531840]`. The dead that wait
/// for somebody to read their exit code have none.
fn namespaces(process: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf| {
        let entries = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let tasks = below(process.join("task")).into_iter().filter(|task| !is_dead(task));
    let links = tasks.flat_map(|task| below(task.join("ns")));
    links.filter_map(|link| std::fs::read_link(link).ok()).collect()
}

/// Whether a thread is a zombie: `PID (NAME) STATE …`, where NAME may hold anything.
fn is_dead(task: &Path) -> bool {
    let stat = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X']))
}

fn mounts() -> BTreeSet<String> {
    let text = std::fs::read_to_string("/proc/self/mounts").unwrap();
    text.lines().map(str::to_owned).collect()
}

/// What `ip netns` would list.
fn named_namespaces() -> Vec<PathBuf> {
    let folder = Path::new("/run/netns");
    if folder.exists() { common::entries(folder) } else { Vec::new() }
}

/// Those of these namespaces that some process or mount of this system holds.
fn still_held(of: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let held = processes().iter().flat_map(|process| namespaces(process)).collect::<BTreeSet<_>>();
    let mounted = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let is_held =
        |n: &&PathBuf| held.contains(*n) || mounted.contains(n.to_str().expect("they are ASCII"));
    of.iter().filter(is_held).cloned().collect()
}

#[test]
fn a_kill_leaves_nothing_behind() {
    if !common::can_run() {
        return;
    }
    let set = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let kills = set("SUIRO_TEST_KILLS").map_or(KILLS, |n| u32::try_from(n).unwrap());
    // The same moments in every run; another SUIRO_TEST_SEED chooses others.
    let seed = set("SUIRO_TEST_SEED").unwrap_or(1);
    eprintln!("SUIRO_TEST_SEED={seed}");
    let mut random = Seed(seed).random();
    let room = Room::new();
    room.write("x.toml", SCENARIO);
    let ours = namespaces(Path::new("/proc/self")).into_iter().collect();
    let (mounts_before, named_before) = (mounts(), named_namespaces());
    let mut seen = 0;
    for number in 0..kills {
        // One moment in each of `kills` equal parts of the run.
        let part = (f64::from(number) + random.uniform()) / f64::from(kills);
        let delay = RUN.mul_f64(part);
        let theirs = Run::start(&room, number, |_| ()).kill_after(delay, &ours);
        eprintln!("killed after {delay:?}, with {} namespaces", theirs.len());
        seen += theirs.len();
        common::eventually(
            || still_held(&theirs).is_empty(),
            || format!("killed after {delay:?}, held: {:?}", still_held(&theirs)),
        );
        assert_eq!(mounts(), mounts_before, "after {delay:?}");
        assert_eq!(named_namespaces(), named_before, "after {delay:?}");
        assert_eq!(room.strays(), Vec::<PathBuf>::new(), "after {delay:?}");
        let outside = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name != "x.toml" && !name.starts_with("out-")
        };
        assert_eq!(common::entries(&room.path("work")).iter().find(|p| outside(p)), None);
    }
    assert!(seen > 0, "no kill met a running trial");
}

#[test]
fn a_kill_while_media_are_prepared_leaves_no_encoder() {
    let ffmpeg = Ffmpeg::locate().inspect_err(suiro_units::skipped);
    let Some(ffmpeg) = ffmpeg.ok().filter(|_| common::can_run()) else { return };
    let room = Room::new();
    room.write("x.toml", MEDIA);
    let told = |command: &mut Command| {
        command.env("SUIRO_FFMPEG", ffmpeg.path()).stderr(Stdio::piped());
    };
    let mut run = Run::start(&room, 1, told);
    let lines = Lines::of(run.child.stderr.take().unwrap());
    lines.until("encoding");
    run.kill_after(Duration::ZERO, &BTreeSet::new());
    // What it left in the cache is no obstacle: the same command prepares the media and runs.
    let mut again = room.suiro(&["run", "x.toml", "--out", "out-1"]);
    let done = Done::of(again.env("SUIRO_FFMPEG", ffmpeg.path()));
    assert!(room.results("out-1").has("summary.json"), "{}", done.stderr);
    assert_eq!(room.results("out-1").trial("all/1").invalid_because, None);
}
