//! Endpoint processes: started in their host, watched, stopped. Nothing here waits: what happens to
//! a process arrives as an [`Event`] on one channel.

use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use suiro_hosts::Sandbox;

/// Longest line of an endpoint's output that is looked at; the rest of it goes to the log only.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// Most of an endpoint's standard output that is logged and looked at.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;

/// Something that a process did.
#[derive(Debug)]
pub enum Event {
    /// It printed a line on standard output.
    Line {
        /// Number of the process.
        process: usize,
        /// The line, without its end.
        text: String,
    },
    /// It ended.
    Exited {
        /// Number of the process.
        process: usize,
        /// How.
        status: ExitStatus,
    },
    /// Somebody asks the trial to end early.
    Interrupted,
}

/// A started process.
#[derive(Debug)]
pub struct Process {
    pidfd: OwnedFd,
    pid: i32,
    log: Option<PathBuf>,
}

impl Process {
    /// Starts `command` with standard error going to the file `log` and standard output, if there
    /// is any, to the file beside it that ends in `.out`; lines of standard output are events too.
    /// `process` is the number its events bear.
    pub fn start(
        mut command: Command,
        process: usize,
        log: &Path,
        events: &Sender<Event>,
    ) -> io::Result<Self> {
        let file = File::create(log)?;
        let (output, theirs) = io::pipe()?;
        command.stdin(Stdio::null()).stdout(theirs).stderr(file);
        let mut child = command.spawn()?;
        // It holds our copy of the pipe's other end.
        drop(command);
        let pid = Pid::from_raw(child.id().cast_signed()).expect("a child has a process id");
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        watch(move || child.wait(), output, log, process, events)?;
        Ok(Self { pidfd, pid: pid.as_raw_nonzero().get(), log: Some(log.to_owned()) })
    }

    /// Starts `command` with the standard streams that it bears; only its end is an event.
    pub fn start_attached(
        mut command: Command,
        process: usize,
        events: &Sender<Event>,
    ) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let pid = Pid::from_raw(child.id().cast_signed()).expect("a child has a process id");
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        watch_end(move || child.wait(), process, events)?;
        Ok(Self { pidfd, pid: pid.as_raw_nonzero().get(), log: None })
    }

    /// The same as [`start`](Self::start) for a process in a sandbox of its own.
    pub fn start_sandboxed(
        sandbox: Sandbox,
        process: usize,
        log: &Path,
        events: &Sender<Event>,
    ) -> anyhow::Result<Self> {
        let file = File::create(log)?;
        let (output, theirs) = io::pipe()?;
        let null = File::open("/dev/null")?;
        let worker = sandbox.stdin(null).stdout(theirs).stderr(file).spawn()?;
        let pidfd = worker.pidfd().try_clone_to_owned()?;
        let pid = worker.pid();
        let mut worker = worker;
        watch(move || worker.wait(), output, log, process, events)?;
        Ok(Self { pidfd, pid, log: Some(log.to_owned()) })
    }

    /// Sends a signal; a process that has ended does not mind.
    pub fn signal(&self, signal: Signal) {
        // ESRCH is the only error that a valid pidfd and signal can give: it has ended.
        let _ = pidfd_send_signal(&self.pidfd, signal);
    }

    /// Its process id in this PID namespace.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The last line of its standard error that is not empty; of its standard output, if it wrote
    /// no error.
    pub fn last_words(&self) -> Option<String> {
        let log = self.log.as_ref()?;
        last_line(log).or_else(|| last_line(&output_beside(log)))
    }
}

/// Where standard output goes, beside the log of standard error.
fn output_beside(log: &Path) -> PathBuf {
    log.with_extension("out")
}

fn last_line(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(4096))).ok()?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).ok()?;
    let text = String::from_utf8_lossy(&tail);
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
}

/// Copies output to the file `kept`, made when there is something to keep, and sends each line.
fn forward(output: impl Read, kept: &Path, process: usize, events: &Sender<Event>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    let mut file = None;
    let mut left = OUTPUT_BYTES_MAX;
    while left > 0 {
        line.clear();
        match output.by_ref().take(LINE_BYTES_MAX.min(left)).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(read) => left -= read as u64,
        }
        // A full disk costs the output, not the trial.
        if file.is_none() {
            file = File::create(kept).ok();
        }
        if let Some(file) = &mut file {
            let _ = file.write_all(&line);
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if events.send(Event::Line { process, text }).is_err() {
            return;
        }
    }
    // What follows is read all the same: a full pipe would stop the program.
    if let (Ok(more @ 1..), Some(file)) = (io::copy(&mut output, &mut io::sink()), &mut file) {
        let _ = writeln!(file, "\nsuiro: {more} more bytes were not kept");
    }
}

/// Two threads that turn output and end into events.
fn watch(
    wait: impl FnOnce() -> io::Result<ExitStatus> + Send + 'static,
    output: PipeReader,
    log: &Path,
    process: usize,
    events: &Sender<Event>,
) -> io::Result<()> {
    let (sender, kept) = (events.clone(), output_beside(log));
    std::thread::Builder::new()
        .name(format!("output-{process}"))
        .spawn(move || forward(output, &kept, process, &sender))?;
    watch_end(wait, process, events)
}

fn watch_end(
    wait: impl FnOnce() -> io::Result<ExitStatus> + Send + 'static,
    process: usize,
    events: &Sender<Event>,
) -> io::Result<()> {
    let sender = events.clone();
    std::thread::Builder::new().name(format!("wait-{process}")).spawn(move || {
        if let Ok(status) = wait() {
            // The trial may be over already.
            let _ = sender.send(Event::Exited { process, status });
        }
    })?;
    Ok(())
}

/// `exit code 3`, `signal 9`.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown end".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn run(script: &str) -> (Vec<String>, ExitStatus, Option<String>) {
        let dir = tempfile::tempdir().unwrap();
        let (sender, events) = channel();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let process = Process::start(command, 0, &dir.path().join("log"), &sender).unwrap();
        drop(sender);
        let (mut lines, mut ended) = (Vec::new(), None);
        for event in events {
            match event {
                Event::Line { text, .. } => lines.push(text),
                Event::Exited { status, .. } => ended = Some(status),
                Event::Interrupted => unreachable!(),
            }
        }
        (lines, ended.expect("it ended"), process.last_words())
    }

    #[test]
    fn lines_and_the_end_are_events() {
        let (lines, status, last) = run("echo one; echo sorry >&2; echo >&2; echo two; exit 3");
        assert_eq!(lines, ["one", "two"]);
        assert_eq!(describe(status), "exit code 3");
        assert_eq!(last.unwrap(), "sorry", "what it said on standard error counts");
        assert_eq!(run("echo one; echo two").2.unwrap(), "two", "unless it said nothing there");
    }

    #[test]
    fn endless_output_is_cut_and_counted() {
        let bytes = OUTPUT_BYTES_MAX + 5;
        let (lines, status, last) = run(&format!("head -c {bytes} /dev/zero"));
        assert!(status.success());
        let seen: u64 = lines.iter().map(|line| line.len() as u64).sum();
        assert_eq!(seen, OUTPUT_BYTES_MAX);
        assert_eq!(last.unwrap(), "suiro: 5 more bytes were not kept");
    }

    #[test]
    fn signals_reach_it() {
        let dir = tempfile::tempdir().unwrap();
        let (sender, events) = channel();
        let mut command = Command::new("sh");
        command.args(["-c", "echo ready; exec sleep 1000"]);
        let process = Process::start(command, 7, &dir.path().join("log"), &sender).unwrap();
        assert!(matches!(events.recv().unwrap(), Event::Line { process: 7, .. }));
        process.signal(Signal::KILL);
        let Event::Exited { process: 7, status } = events.recv().unwrap() else { panic!() };
        assert_eq!(describe(status), "signal 9");
        process.signal(Signal::KILL);
    }
}
