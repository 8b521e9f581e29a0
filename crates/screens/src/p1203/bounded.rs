//! Runs a program that is not ours, within bounds of time and output.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::Stop;

/// How often it is seen whether the user wants to end.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Bounds.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most seconds it may take.
    pub seconds: i64,
    /// Most bytes it may write on standard output, and as many on standard error.
    pub bytes: usize,
}

/// A program that has ended within its bounds.
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// What it wrote on standard output.
    pub output: Vec<u8>,
    /// What it wrote on standard error.
    pub errors: Vec<u8>,
}

/// Kills what it guards, with all that it started, when dropped.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // An error means that no process is left.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// Runs a program to its end, without input.
///
/// # Errors
/// If it cannot be started, exceeds a bound, or the user interrupts; then it has been killed.
pub fn run(program: &Path, arguments: &[&OsStr], limits: Limits, stop: Stop) -> Result<Ended> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).process_group(0);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().with_context(|| format!("starting {}", program.display()))?;
    let mut guard = Guard(child);
    let pid = i32::try_from(guard.0.id()).ok().and_then(Pid::from_raw);
    let ended = pidfd_open(pid.context("a process has an id")?, PidfdFlags::empty())?;
    let timer = timer(limits.seconds)?;
    let mut output = Stream::new(guard.0.stdout.take());
    let mut errors = Stream::new(guard.0.stderr.take());
    while output.source.is_some() || errors.source.is_some() {
        wait(&[output.source.as_ref(), errors.source.as_ref()], &timer, limits, stop)?;
        output.read(limits)?;
        errors.read(limits)?;
    }
    while !wait(&[Some(&ended)], &timer, limits, stop)? {}
    let status = guard.0.wait()?;
    Ok(Ended { status, output: output.read, errors: errors.read })
}

fn timer(seconds: i64) -> Result<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::empty())?;
    let it_value = Timespec { tv_sec: seconds, tv_nsec: 0 };
    let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value })?;
    Ok(timer)
}

/// Waits a moment for one of the sources; true if one is ready.
fn wait(sources: &[Option<&OwnedFd>], timer: &OwnedFd, limits: Limits, stop: Stop) -> Result<bool> {
    let mut ready = vec![PollFd::new(timer, PollFlags::IN)];
    ready.extend(sources.iter().flatten().map(|source| PollFd::new(*source, PollFlags::IN)));
    match poll(&mut ready, Some(&LOOK)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if stop() {
        bail!("interrupted");
    }
    if !ready[0].revents().is_empty() {
        bail!("it did not end within {} s and was stopped", limits.seconds);
    }
    Ok(ready[1..].iter().any(|source| !source.revents().is_empty()))
}

/// What a program writes; the source is gone when it has ended.
struct Stream {
    source: Option<OwnedFd>,
    read: Vec<u8>,
}

impl Stream {
    fn new(source: Option<impl Into<OwnedFd>>) -> Self {
        Self { source: source.map(Into::into), read: Vec::new() }
    }

    /// Reads what is there now, some of it.
    fn read(&mut self, limits: Limits) -> Result<()> {
        let Some(source) = &self.source else { return Ok(()) };
        let mut ready = [PollFd::new(source, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if !matches!(poll(&mut ready, Some(&now)), Ok(1..)) {
            return Ok(());
        }
        let mut buffer = [0; 16 << 10];
        match rustix::io::read(source, &mut buffer) {
            Ok(0) => self.source = None,
            Ok(length) => self.read.extend_from_slice(&buffer[..length]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        if self.read.len() > limits.bytes {
            bail!("it wrote more than {} bytes and was stopped", limits.bytes);
        }
        Ok(())
    }
}
