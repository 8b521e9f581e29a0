//! Endpoint processes: started in their host, watched, stopped. Nothing here waits: whatever
//! happens to a process arrives as an [`Event`] on one channel.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, PipeReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use suiro_hosts::Sandbox;

/// Longest part of an output line that is parsed; the rest only goes to the log.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// Most of an endpoint's standard output that is kept and parsed, and of its standard error that is
/// kept.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;
/// How much of the end of each stream stays in memory.
const END_BYTES_MAX: usize = 4096;
/// Longest part of a line of standard error in which [`REFUSED`] is sought.
const SOUGHT_BYTES_MAX: usize = 4096;
/// What the kernel of a guest prints when this machine refuses it memory or mappings, or kills one of its processes. The
/// program that was affected dies as if by its own fault.
const REFUSED: [&str; 3] = [
    "ran out of memory on the host side",
    "Error flushing stub syscalls",
    "failed to wait for stub",
];
/// How long the exit event waits for remaining output. Usually all of it arrives, unless a child
/// that the process left behind keeps the pipe open, or no reader takes what is relayed.
const DRAIN: Duration = Duration::from_millis(200);

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
    /// It ended. Its earlier output is saved, and the events of its lines came before this one.
    Exited {
        /// Number of the process.
        process: usize,
        /// Its exit status.
        status: ExitStatus,
    },
    /// A request to end the trial early.
    Interrupted,
}

/// A started process.
#[derive(Debug)]
pub struct Process {
    pidfd: OwnedFd,
    pid: i32,
    /// What it printed; nothing if its standard streams are not the lab's.
    printed: Printed,
    /// Sends the threads that relay its output word of a signal; dangling if there are none.
    relays: Weak<Sender<()>>,
}

/// What a process printed, as far as it is kept in memory.
#[derive(Debug, Default)]
struct Printed {
    /// The ends of standard error and of standard output.
    ends: [End; 2],
    /// The last line of standard error with one of [`REFUSED`].
    refusal: Arc<Mutex<Option<String>>>,
}

impl Process {
    /// Starts `command` with standard error going to the file `log` and standard output, if there
    /// is any, to the file next to it that ends in `.out`; lines of standard output are events too.
    /// `process` is the number in its events.
    pub fn start(
        command: Command,
        process: usize,
        log: &Path,
        events: &Sender<Event>,
    ) -> io::Result<Self> {
        let (mut child, pid, pidfd, [output, errors]) = spawn_piped(command)?;
        let printed = watch(move || child.wait(), (output, errors), log, process, events)?;
        Ok(Self { pidfd, pid: pid.as_raw_nonzero().get(), printed, relays: Weak::new() })
    }

    /// Starts `command` with the standard streams that it already has; only its exit is an event.
    pub fn start_attached(
        mut command: Command,
        process: usize,
        events: &Sender<Event>,
    ) -> io::Result<Self> {
        let (mut child, pid, pidfd) = spawn(&mut command)?;
        watch_end(move || child.wait(), process, events)?;
        let printed = Printed::default();
        Ok(Self { pidfd, pid: pid.as_raw_nonzero().get(), printed, relays: Weak::new() })
    }

    /// Starts `command` with pipes, whose content is copied to the standard output and standard error of this process; only
    /// its exit is an event, after the last copy. For a guest's kernel: it puts a terminal into raw mode, in which Ctrl-C is a
    /// byte and no signal. If the reader of the copies has gone, that is an [`Event::Interrupted`], as SIGPIPE is to a
    /// program. If a reader is there and does not read, the exit is delayed until a signal is sent to the process.
    pub fn start_relayed(
        command: Command,
        process: usize,
        events: &Sender<Event>,
    ) -> io::Result<Self> {
        let ours = io::stdout().as_fd().try_clone_to_owned()?;
        let our_errors = io::stderr().as_fd().try_clone_to_owned()?;
        Self::start_relayed_to(command, process, events, [ours, our_errors])
    }

    /// The same with copies of standard output and standard error to these files.
    fn start_relayed_to(
        command: Command,
        process: usize,
        events: &Sender<Event>,
        [ours, our_errors]: [OwnedFd; 2],
    ) -> io::Result<Self> {
        let (mut child, pid, pidfd, [output, errors]) = spawn_piped(command)?;
        // Both threads hold it, so that it disconnects once they are done.
        let (signals, news) = channel();
        let signals = Arc::new(signals);
        relay(output, File::from(ours), events.clone(), Arc::clone(&signals))?;
        let relays = Arc::downgrade(&signals);
        relay(errors, File::from(our_errors), events.clone(), signals)?;
        let relayed = move || {
            let status = child.wait();
            wait_for_relays(&news);
            status
        };
        watch_end(relayed, process, events)?;
        let printed = Printed::default();
        Ok(Self { pidfd, pid: pid.as_raw_nonzero().get(), printed, relays })
    }

    /// The same as [`start`](Self::start) for a process in a sandbox of its own.
    pub fn start_sandboxed(
        sandbox: Sandbox,
        process: usize,
        log: &Path,
        events: &Sender<Event>,
    ) -> anyhow::Result<Self> {
        let (output, their_output) = io::pipe()?;
        let (errors, their_errors) = io::pipe()?;
        let null = File::open("/dev/null")?;
        let worker = sandbox.stdin(null).stdout(their_output).stderr(their_errors).spawn()?;
        let pidfd = worker.pidfd().try_clone_to_owned()?;
        let pid = worker.pid();
        let mut worker = worker;
        let printed = watch(move || worker.wait(), (output, errors), log, process, events)?;
        Ok(Self { pidfd, pid, printed, relays: Weak::new() })
    }

    /// Sends a signal; harmless if the process has ended. From then on its exit waits for the copies of its output only
    /// for a moment.
    pub fn signal(&self, signal: Signal) {
        if let Some(relays) = self.relays.upgrade() {
            // Who listens may just have ended.
            let _ = relays.send(());
        }
        // ESRCH is the only error that a valid pidfd and signal can give: it has ended.
        let _ = pidfd_send_signal(&self.pidfd, signal);
    }

    /// Its process id in this PID namespace.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The last non-empty line of its standard error, or of its standard output if standard error
    /// is empty. Messages to the lab, for example that it is ready, are skipped.
    pub fn last_words(&self) -> Option<String> {
        self.printed.ends.iter().find_map(End::last_line)
    }

    /// What the kernel of a guest printed when this machine refused it what it needed, if it did.
    pub fn refusal(&self) -> Option<String> {
        self.printed.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The end of what a program printed on a stream.
#[derive(Debug, Clone, Default)]
struct End(Arc<Mutex<Vec<u8>>>);

/// Starts a process.
fn spawn(command: &mut Command) -> io::Result<(Child, Pid, OwnedFd)> {
    let child = command.spawn()?;
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a child has a process id");
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    Ok((child, pid, pidfd))
}

/// Starts a process without input; with it come the pipes of its standard output and standard error.
fn spawn_piped(mut command: Command) -> io::Result<(Child, Pid, OwnedFd, [PipeReader; 2])> {
    let (output, their_output) = io::pipe()?;
    let (errors, their_errors) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(their_output).stderr(their_errors);
    let (child, pid, pidfd) = spawn(&mut command)?;
    // The command, which is dropped here, holds our copies of the other ends of the pipes.
    Ok((child, pid, pidfd, [output, errors]))
}

impl End {
    fn push(&self, bytes: &[u8]) {
        let mut end = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        end.extend_from_slice(bytes);
        let over = end.len().saturating_sub(END_BYTES_MAX);
        end.drain(..over);
    }

    fn last_line(&self) -> Option<String> {
        let end = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&end);
        let is_said = |line: &&str| !line.is_empty() && !is_message(line);
        text.lines().map(str::trim).rfind(is_said).map(str::to_owned)
    }
}

/// A stream whose lines are searched for [`REFUSED`] as they are read.
struct Searched<R> {
    from: R,
    /// The line at hand.
    line: Vec<u8>,
    found: Arc<Mutex<Option<String>>>,
}

impl<R> Searched<R> {
    fn search(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = SOUGHT_BYTES_MAX - self.line.len();
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let text = String::from_utf8_lossy(&self.line).trim().to_owned();
        if REFUSED.iter().any(|refused| text.contains(refused)) {
            *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        }
        self.line.clear();
    }
}

impl<R: Read> Read for Searched<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(bytes)?;
        self.search(&bytes[..read]);
        if read == 0 {
            self.end_line();
        }
        Ok(read)
    }
}

/// What a program printed on a stream: a file, and its end in memory, which a full disk does not lose.
struct Log {
    path: PathBuf,
    file: Option<File>,
    end: End,
}

impl Log {
    /// Creates the file when there is something to write. A full disk loses the output, not the trial.
    fn write(&mut self, bytes: &[u8]) {
        self.end.push(bytes);
        if self.file.is_none() {
            self.file = File::create(&self.path).ok();
        }
        if let Some(file) = &mut self.file {
            let _ = file.write_all(bytes);
        }
    }
}

/// The file for standard output, next to the log of standard error.
fn output_beside(log: &Path) -> PathBuf {
    log.with_extension("out")
}

/// A line of the protocol between the lab and its processes: `{"ready":…}`, `{"phase":…}`.
fn is_message(line: &str) -> bool {
    let fields = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(line);
    fields.is_ok_and(|fields| ["ready", "phase"].iter().any(|name| fields.contains_key(*name)))
}

/// Copies standard output to its log, and sends each line.
fn forward(output: impl Read, log: &mut Log, process: usize, events: &Sender<Event>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    let mut left = OUTPUT_BYTES_MAX;
    while left > 0 {
        line.clear();
        match output.by_ref().take(LINE_BYTES_MAX.min(left)).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(read) => left -= read as u64,
        }
        log.write(&line);
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if events.send(Event::Line { process, text }).is_err() {
            return;
        }
    }
    swallow(output, log);
}

/// Copies standard error to its log.
fn keep(mut errors: impl Read, log: &mut Log) {
    let mut piece = [0; 8192];
    let mut within = errors.by_ref().take(OUTPUT_BYTES_MAX);
    loop {
        match within.read(&mut piece) {
            Ok(read @ 1..) => log.write(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
        }
    }
    swallow(errors, log);
}

/// Keeps reading beyond the bound, because a full pipe would block the program, and counts the
/// bytes.
fn swallow(mut output: impl Read, log: &mut Log) {
    if let Ok(more @ 1..) = io::copy(&mut output, &mut io::sink()) {
        log.write(format!("\nsuiro: {more} more bytes were discarded\n").as_bytes());
    }
}

/// A thread that copies a pipe to its end. If that fails, it discards the rest, so that the program does not wait. It holds
/// `signals` as long.
fn relay(
    mut from: PipeReader,
    mut to: impl Write + Send + 'static,
    events: Sender<Event>,
    signals: Arc<Sender<()>>,
) -> io::Result<JoinHandle<()>> {
    let copy = move || {
        let _signals = signals;
        if io::copy(&mut from, &mut to).is_err() {
            // The trial may already be over.
            let _ = events.send(Event::Interrupted);
            let _ = io::copy(&mut from, &mut io::sink());
        }
    };
    std::thread::Builder::new().name("relay".to_owned()).spawn(copy)
}

/// Waits until the threads that hold the other end of the channel are done, and after a signal to the process for [`DRAIN`]
/// at most: without a reader they are never done.
fn wait_for_relays(signals: &Receiver<()>) {
    if signals.recv().is_ok() {
        while signals.recv_timeout(DRAIN).is_ok() {}
    }
}

/// Threads that save output and errors, and turn lines and the exit into events.
fn watch(
    wait: impl FnOnce() -> io::Result<ExitStatus> + Send + 'static,
    (output, errors): (PipeReader, PipeReader),
    log: &Path,
    process: usize,
    events: &Sender<Event>,
) -> io::Result<Printed> {
    let sender = events.clone();
    let kept = Printed::default();
    let [said, printed] = kept.ends.clone();
    let errors = Searched { from: errors, line: Vec::new(), found: Arc::clone(&kept.refusal) };
    let mut printed = Log { path: output_beside(log), file: None, end: printed };
    let mut said = Log { path: log.to_owned(), file: Some(File::create(log)?), end: said };
    // Nothing is sent on it: it disconnects once both threads are done.
    let (copying, all_copied) = channel::<()>();
    let copying_too = copying.clone();
    std::thread::Builder::new().name(format!("output-{process}")).spawn(move || {
        forward(output, &mut printed, process, &sender);
        drop(copying);
    })?;
    std::thread::Builder::new().name(format!("errors-{process}")).spawn(move || {
        keep(errors, &mut said);
        drop(copying_too);
    })?;
    let drained = move || {
        let status = wait();
        let _ = all_copied.recv_timeout(DRAIN);
        status
    };
    watch_end(drained, process, events)?;
    Ok(kept)
}

fn watch_end(
    wait: impl FnOnce() -> io::Result<ExitStatus> + Send + 'static,
    process: usize,
    events: &Sender<Event>,
) -> io::Result<()> {
    let sender = events.clone();
    std::thread::Builder::new().name(format!("wait-{process}")).spawn(move || {
        if let Ok(status) = wait() {
            // The trial may already be over.
            let _ = sender.send(Event::Exited { process, status });
        }
    })?;
    Ok(())
}

/// `exit code 3`, `signal 9`.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        // The shell's code for it (POSIX XCU §2.8.2), and that of `env` and of shims.
        (Some(127), _) => "exit code 127: a program was not found; of users' folders, commands of a trial see those on PATH \
             (docs/scenarios.md, `privileged`)"
            .to_owned(),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
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
        assert!(describe(run("exit 127").1).contains("was not found"));
        assert_eq!(last.unwrap(), "sorry", "standard error comes first");
        assert_eq!(run("echo one; echo two").2.unwrap(), "two", "unless it is empty");
        let ready = r#"echo '{"ready":true,"versions":{}}'; kill -9 $$"#;
        assert_eq!(run(ready).2, None, "messages are skipped");
        let phase = r#"echo sorry; echo '{"phase":"running","duration_s":8.0}'"#;
        assert_eq!(run(phase).2.unwrap(), "sorry");
    }

    #[test]
    fn a_full_disk_loses_the_log_and_not_the_last_words() {
        let (sender, events) = channel();
        let mut command = Command::new("sh");
        command.args(["-c", "echo first >&2; echo no room >&2; exit 1"]);
        let process = Process::start(command, 0, Path::new("/dev/full"), &sender).unwrap();
        drop(sender);
        assert!(events.iter().any(|event| matches!(event, Event::Exited { .. })));
        assert_eq!(process.last_words().unwrap(), "no room");
    }

    #[test]
    fn endless_output_is_truncated_and_counted() {
        let bytes = OUTPUT_BYTES_MAX + 5;
        let (lines, status, last) = run(&format!("head -c {bytes} /dev/zero"));
        assert!(status.success());
        let seen: u64 = lines.iter().map(|line| line.len() as u64).sum();
        assert_eq!(seen, OUTPUT_BYTES_MAX);
        assert_eq!(last.unwrap(), "suiro: 5 more bytes were discarded");
    }

    #[test]
    fn endless_errors_are_truncated_and_counted() {
        let bytes = OUTPUT_BYTES_MAX + 5;
        let (_, status, last) = run(&format!("head -c {bytes} /dev/zero >&2"));
        assert!(status.success());
        assert_eq!(last.unwrap(), "suiro: 5 more bytes were discarded");
    }

    #[test]
    fn the_exit_event_follows_the_last_line_but_does_not_wait_for_children() {
        let dir = tempfile::tempdir().unwrap();
        let (sender, events) = channel();
        let mut command = Command::new("sh");
        command.current_dir(dir.path());
        command.args(["-c", "mkfifo later; cat later & echo bye"]);
        let process = Process::start(command, 0, &dir.path().join("log"), &sender).unwrap();
        assert!(matches!(events.recv().unwrap(), Event::Line { text, .. } if text == "bye"));
        assert!(matches!(events.recv().unwrap(), Event::Exited { .. }));
        assert_eq!(process.last_words().unwrap(), "bye");
        std::fs::write(dir.path().join("later"), "late\n").unwrap();
        assert!(matches!(events.recv().unwrap(), Event::Line { text, .. } if text == "late"));
    }

    #[test]
    fn output_that_nobody_takes_is_an_interruption_and_does_not_block() {
        let (sender, events) = channel();
        let (from, mut into) = io::pipe().unwrap();
        let (theirs, to) = io::pipe().unwrap();
        drop(theirs);
        let copying = relay(from, to, sender, Arc::new(channel().0)).unwrap();
        // More than a pipe holds.
        into.write_all(&[b'x'; 1 << 20]).unwrap();
        drop(into);
        copying.join().unwrap();
        assert!(matches!(events.recv().unwrap(), Event::Interrupted));
        assert!(events.recv().is_err(), "it is sent once");
    }

    #[test]
    fn what_is_relayed_arrives_before_the_end() {
        let (sender, events) = channel();
        let (from, mut into) = io::pipe().unwrap();
        let (mut copied, to) = io::pipe().unwrap();
        let copying = relay(from, to, sender, Arc::new(channel().0)).unwrap();
        into.write_all(b"one\ntwo\n").unwrap();
        drop(into);
        copying.join().unwrap();
        let mut text = String::new();
        copied.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\ntwo\n");
        assert!(events.recv().is_err(), "nobody was interrupted");
    }

    #[test]
    fn a_reader_that_stalls_does_not_hold_up_a_process_that_was_signalled() {
        let (sender, events) = channel();
        let (_stalls, output) = io::pipe().unwrap();
        let (errors, their_errors) = io::pipe().unwrap();
        let mut command = Command::new("sh");
        // Two pipes hold that, and one does not.
        command.args(["-c", "head -c 100000 /dev/zero; echo written >&2"]);
        let to = [output.into(), their_errors.into()];
        let process = Process::start_relayed_to(command, 3, &sender, to).unwrap();
        // A reader that leaves would be an interruption.
        let mut errors = BufReader::new(errors);
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        assert_eq!(line, "written\n");
        process.signal(Signal::TERM);
        assert!(matches!(events.recv().unwrap(), Event::Exited { process: 3, .. }));
    }

    #[test]
    fn refused_memory_is_found_however_much_follows_and_however_it_is_cut() {
        let found: Arc<Mutex<Option<String>>> = Arc::default();
        let lines = [&b"one\nx failed to wait for stub y\r\n"[..], &b"later\n".repeat(9)].concat();
        let mut errors = Searched { from: &lines[..], line: Vec::new(), found: Arc::clone(&found) };
        while errors.read(&mut [0; 7]).unwrap() > 0 {}
        assert_eq!(found.lock().unwrap().as_deref(), Some("x failed to wait for stub y"));
        // A line without an end, too long to be searched to it.
        let long = [&[b'x'; SOUGHT_BYTES_MAX][..], REFUSED[0].as_bytes()].concat();
        let found: Arc<Mutex<Option<String>>> = Arc::default();
        let mut errors = Searched { from: &long[..], line: Vec::new(), found: Arc::clone(&found) };
        io::copy(&mut errors, &mut io::sink()).unwrap();
        assert_eq!(*found.lock().unwrap(), None);
        errors.from = &long[SOUGHT_BYTES_MAX..];
        io::copy(&mut errors, &mut io::sink()).unwrap();
        assert_eq!(found.lock().unwrap().as_deref(), Some(REFUSED[0]));
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
