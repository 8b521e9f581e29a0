//! What the tests of the program share: a room of their own to run it in, and functions that wait
//! for it, without sleeping and not for ever.
#![allow(dead_code, reason = "each test program uses its part")]

use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde::de::DeserializeOwned;
use suiro_guest::Kernel;
use suiro_hosts::{Privilege, sandbox};
use suiro_media::{Ffmpeg, cache};
use suiro_record::{Folder, Manifest, Summary, Trial};
use tempfile::TempDir;

/// Far longer than any run of these tests takes.
pub const WITHIN: Duration = Duration::from_secs(600);

/// Whether hosts can be made here; prints the reason if not.
pub fn can_run() -> bool {
    sandbox::probe(Privilege::of_this_process()).inspect_err(suiro_units::skipped).is_ok()
}

/// Whether there is such a program; prints it if not.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        suiro_units::skipped(&format!("there is no {program} here"));
    }
    found
}

/// The folder of the kernel of virtual time, for `SUIRO_KERNEL`; prints a line if there is none. A test that does not measure
/// this machine uses it if it can: then it does not matter how busy the machine is.
pub fn kernel() -> Option<PathBuf> {
    let kernel = Kernel::find(&cache::folder());
    let kernel = kernel.inspect_err(|error| eprintln!("not in virtual time: {error}"));
    Some(kernel.ok()?.program.parent()?.to_owned())
}

/// Where trials run whose subject is not this machine: in virtual time if there is a kernel for it, so that it matters neither
/// how long they last nor how busy the machine is; live otherwise.
pub struct Trials {
    kernel: Option<PathBuf>,
}

impl Trials {
    /// Prints which it is, or why no trial can run.
    pub fn find() -> Option<Self> {
        let kernel = kernel();
        if kernel.is_some() {
            eprintln!("in virtual time");
            return Some(Self { kernel });
        }
        Self::live()
    }

    /// On this machine, whatever there is; prints why no trial can run.
    pub fn live() -> Option<Self> {
        can_run().then_some(Self { kernel: None })
    }

    /// Whether time is virtual. Then nothing excuses a trial that is not valid: no machine can be too busy for it.
    pub fn are_virtual(&self) -> bool {
        self.kernel.is_some()
    }

    /// `suiro run` of this scenario, with the results in the folder `out`.
    pub fn run(&self, room: &Room, scenario: &str) -> Command {
        self.run_to(room, scenario, "out")
    }

    /// The same, with the results in a folder of another name.
    pub fn run_to(&self, room: &Room, scenario: &str, out: &str) -> Command {
        let mut command = room.suiro(&["run", scenario, "--out", out]);
        if self.are_virtual() {
            command.arg("--virtual");
        }
        self.equip(&mut command);
        command
    }

    /// Names the kernel of virtual time to a command that runs trials, if there is one.
    pub fn equip(&self, command: &mut Command) {
        if let Some(kernel) = &self.kernel {
            command.env("SUIRO_KERNEL", kernel);
        }
    }
}

/// Runs a scenario that needs prepared media, which is kept between the tests and their runs; the results are in the folder
/// `out`. `None` if it cannot run here, for the reason that is printed.
pub fn run_with_media(name: &str, scenario: &str) -> Option<(Trials, Room, Done)> {
    let ffmpeg = Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()?;
    let trials = Trials::find()?;
    let room = Room::new();
    let file = format!("{name}.toml");
    room.write(&file, scenario);
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let mut command = trials.run(&room, &file);
    command.env("XDG_CACHE_HOME", cache).env("SUIRO_FFMPEG", ffmpeg.path());
    let done = Done::of(&mut command);
    Some((trials, room, done))
}

/// A folder to run in: `work` is the working folder, `home` and `tmp` are for what does not belong
/// there.
pub struct Room {
    folder: TempDir,
}

impl Room {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for part in ["work", "home", "tmp"] {
            std::fs::create_dir(folder.path().join(part)).unwrap();
        }
        Self { folder }
    }

    pub fn path(&self, part: &str) -> PathBuf {
        self.folder.path().join(part)
    }

    /// Writes a file in the working folder.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path("work").join(name), text).unwrap();
    }

    /// Makes this the environment of a command.
    pub fn furnish(&self, command: &mut Command) {
        command.current_dir(self.path("work")).stdin(Stdio::null());
        command.env("HOME", self.path("home")).env("XDG_CACHE_HOME", self.path("home"));
        command.env("TMPDIR", self.path("tmp")).env("XDG_RUNTIME_DIR", self.path("tmp"));
    }

    /// The program with these arguments.
    pub fn suiro(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_suiro"));
        self.furnish(&mut command);
        command.args(arguments);
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Done {
        Done::of(&mut self.suiro(arguments))
    }

    /// The results folder of that name in the working folder.
    pub fn results(&self, name: &str) -> Results {
        Results { folder: Folder::new(self.path("work").join(name)) }
    }

    /// The files where there should be none: outside of the working folder.
    pub fn strays(&self) -> Vec<PathBuf> {
        ["home", "tmp"].iter().flat_map(|part| entries(&self.path(part))).collect()
    }
}

/// Writes a shell script that can be started by this name in this folder.
pub fn script(folder: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
}

pub fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// How a run of the program ended.
pub struct Done {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::wait(command.spawn().unwrap())
    }

    /// Waits for the program's end and takes what it printed.
    pub fn wait(mut child: Child) -> Self {
        let drain = |stream: Option<Box<dyn Read + Send>>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                stream.map(|mut stream| stream.read_to_end(&mut bytes)).transpose().unwrap();
                String::from_utf8(bytes).expect("what suiro prints is UTF-8")
            })
        };
        let stdout = drain(child.stdout.take().map(|s| Box::new(s) as _));
        let stderr = drain(child.stderr.take().map(|s| Box::new(s) as _));
        let status = end_of(&mut child);
        let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
        assert!(!stderr.contains("panicked"), "{stderr}");
        Self { code: status.code(), stdout, stderr }
    }

    /// Fails with what was printed unless the program exited so.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Fails unless standard error holds all of this.
    #[track_caller]
    pub fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "no `{text}` in:\n{}", self.stderr);
        }
        self
    }

    /// What it printed on standard output, as one JSON document.
    pub fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout))
    }
}

/// Waits for the end of a process; kills it and fails where it does not end.
pub fn end_of(child: &mut Child) -> ExitStatus {
    let ended = pidfd_open(pid(child), PidfdFlags::empty()).unwrap();
    if !readable(&ended, WITHIN) {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("it runs after {WITHIN:?} and has been killed");
    }
    child.wait().unwrap()
}

/// Waits until there is something to read, or the end.
pub fn readable(fd: &impl std::os::fd::AsFd, within: Duration) -> bool {
    let within = Timespec::try_from(within).unwrap();
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut fds, Some(&within)).unwrap() > 0
}

/// Waits until something holds that nothing reports: that the kernel has tidied up after a dead
/// process. Fails with `otherwise` if it never does.
#[track_caller]
pub fn eventually(holds: impl Fn() -> bool, otherwise: impl Fn() -> String) {
    let looks = 5000;
    let between = Timespec::try_from(WITHIN / looks).unwrap();
    for _ in 0..looks {
        if holds() {
            return;
        }
        poll(&mut [], Some(&between)).unwrap();
    }
    panic!("{}", otherwise());
}

pub fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).unwrap()
}

pub fn signal(child: &Child, signal: Signal) {
    kill_process(pid(child), signal).unwrap();
}

/// The lines of a running program's standard error, as they come.
pub struct Lines(Receiver<String>);

impl Lines {
    pub fn of(stderr: ChildStderr) -> Self {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // A test that has seen enough hears no more.
            BufReader::new(stderr).lines().map_while(Result::ok).try_for_each(|l| sender.send(l))
        });
        Self(lines)
    }

    /// Waits for a line that holds `text`.
    #[track_caller]
    pub fn until(&self, text: &str) {
        let mut before = Vec::new();
        while let Ok(line) = self.0.recv_timeout(WITHIN) {
            if line.contains(text) {
                return;
            }
            before.push(line);
        }
        panic!("no line with `{text}`, but:\n{}", before.join("\n"));
    }
}

/// A results folder that is read through the types of its contract.
pub struct Results {
    folder: Folder,
}

impl Results {
    pub fn root(&self) -> &Path {
        self.folder.root()
    }

    pub fn manifest(&self) -> Manifest {
        self.folder.manifest().unwrap()
    }

    pub fn summary(&self) -> Summary {
        self.folder.summary().unwrap()
    }

    /// The record of the trial whose folder is `trials/PATH`.
    pub fn trial(&self, path: &str) -> Trial {
        serde_json::from_slice(&self.bytes(path)).unwrap()
    }

    /// The bytes of that trial's `trial.json`.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.root().join("trials").join(path).join("trial.json")).unwrap()
    }

    pub fn has(&self, path: &str) -> bool {
        self.root().join(path).exists()
    }

    pub fn open(&self, path: &str) -> File {
        File::open(self.root().join(path)).unwrap()
    }
}

/// The output of any command, which has to succeed.
pub fn output(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}
