//! A capture point: everything that passes one interface, in a file of its own.

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use suiro_clock::kernel;

use crate::file::{Counted, Described, ETHERNET, Writer};
use crate::ring::Ring;

/// Longest file, in bytes. Packets beyond it are counted and not written.
pub const FILE_BYTES_MAX: u64 = 512 << 20;
/// How long the thread waits for a block, so that it notices the end.
const WAIT_MS: i64 = 50;
/// Most waits for the last blocks after the end; a block is handed over within 20 ms.
const LAST_WAITS_MAX: u32 = 20;

/// Why a capture failed.
#[derive(Debug, thiserror::Error)]
pub enum PointError {
    /// The socket could not be made or read.
    #[error("capturing on interface {interface}: {cause}")]
    Socket {
        /// The interface.
        interface: String,
        /// Why.
        cause: io::Error,
    },
    /// The file could not be written.
    #[error("writing {}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
}

/// What is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointSpec<'a> {
    /// The interface, in the network namespace of the calling thread.
    pub interface: &'a str,
    /// What it is, for readers of the file.
    pub description: &'a str,
    /// Bytes that are kept of each packet, its Ethernet header included.
    pub snap: u32,
    /// The file.
    pub path: &'a Path,
}

/// What a capture point saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Packets in the file.
    pub written: u64,
    /// Packets that the kernel dropped because they were not read in time.
    pub dropped: u64,
    /// Packets that are not in the file because it was full.
    pub beyond: u64,
    /// CPU time of the thread, in nanoseconds; the kernel's copying of packets is not in it.
    pub cpu_ns: u64,
}

impl Counts {
    /// Whether every packet is in the file.
    pub const fn is_complete(&self) -> bool {
        self.dropped == 0 && self.beyond == 0
    }
}

/// The two clocks at the time zero of a capture's times. Packets have times of the wall clock at that moment, counted on
/// by the monotonic clock: a step of the wall clock does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zero {
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME.
    pub realtime_ns: u64,
}

impl Zero {
    /// The time in the file of a packet with the kernel's timestamp, while CLOCK_REALTIME is ahead of CLOCK_MONOTONIC by
    /// `lead_ns`.
    pub(crate) fn time(self, realtime_ns: u64, lead_ns: i64) -> u64 {
        let step =
            (self.realtime_ns.wrapping_sub(self.monotonic_ns)).cast_signed().wrapping_sub(lead_ns);
        realtime_ns.saturating_add_signed(step)
    }

    /// The time in the file at a moment of CLOCK_MONOTONIC.
    pub(crate) const fn at(self, monotonic_ns: u64) -> u64 {
        self.realtime_ns.saturating_add(monotonic_ns.saturating_sub(self.monotonic_ns))
    }
}

/// A capture point whose packets wait in its ring, until [`start`](Self::start) writes them.
#[derive(Debug)]
pub struct Prepared {
    interface: String,
    path: PathBuf,
    ring: Ring,
    writer: Writer<BufWriter<File>>,
}

/// A capture point that is written by a thread of its own.
#[derive(Debug)]
pub struct Point {
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Counts, PointError>>>,
}

impl Prepared {
    /// Opens the socket and creates the file. What passes the interface from now on is captured, if the capture starts
    /// within a second.
    ///
    /// # Errors
    /// If the socket cannot be made (it needs CAP_NET_RAW), or the file cannot be created.
    pub fn open(spec: &PointSpec<'_>) -> Result<Self, PointError> {
        let (interface, path) = (spec.interface.to_owned(), spec.path.to_owned());
        let created = File::create(spec.path).and_then(|file| {
            let described = Described {
                name: spec.interface,
                description: spec.description,
                link: ETHERNET,
                snap: spec.snap,
            };
            Writer::new(BufWriter::with_capacity(1 << 18, file), &described)
        });
        let writer = created.map_err(|cause| PointError::File { path: path.clone(), cause })?;
        let ring = Ring::open(spec.interface, spec.snap);
        let failed = |cause| PointError::Socket { interface: interface.clone(), cause };
        let ring = ring.map_err(failed)?;
        Ok(Self { interface, path, ring, writer })
    }

    /// Writes packets from now on; their times count from `zero`.
    ///
    /// # Errors
    /// If no thread can be made.
    pub fn start(self, zero: Zero) -> Result<Point, PointError> {
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let interface = self.interface.clone();
        let thread = std::thread::Builder::new()
            .name(format!("capture-{interface}"))
            .spawn(move || {
                yield_to_others();
                self.run(zero, &stop)
            })
            .map_err(|cause| PointError::Socket { interface, cause })?;
        Ok(Point { stopped, thread: Some(thread) })
    }

    fn run(mut self, zero: Zero, stopped: &AtomicBool) -> Result<Counts, PointError> {
        let mut counts = Counts::default();
        while !stopped.load(Ordering::Relaxed) {
            if self.write_block(zero, &mut counts)? {
                continue;
            }
            self.wait()?;
        }
        self.ring.end().map_err(|cause| self.socket(cause))?;
        let passed = self.ring.passed().map_err(|cause| self.socket(cause))?;
        let accepted = passed.all.saturating_sub(passed.dropped);
        let mut waits = 0;
        while counts.written + counts.beyond < accepted && waits < LAST_WAITS_MAX {
            if !self.write_block(zero, &mut counts)? {
                self.wait()?;
                waits += 1;
            }
        }
        let read = counts.written + counts.beyond;
        counts.dropped = passed.dropped + accepted.saturating_sub(read);
        let now = kernel::realtime();
        let t_ns = zero.time(now.other, now.lead_ns());
        let dropped = counts.dropped + counts.beyond;
        let end = Counted { t_ns, received: passed.all, dropped };
        let path = self.path;
        self.writer.finish(&end).map_err(|cause| PointError::File { path, cause })?;
        counts.cpu_ns = kernel::thread_cpu_ns();
        Ok(counts)
    }

    /// Writes the packets of the next block; false if none is ready.
    fn write_block(&mut self, zero: Zero, counts: &mut Counts) -> Result<bool, PointError> {
        let Self { ring, writer, .. } = self;
        let mut failed = None;
        let mut lead_ns = None;
        let read = ring.block(|packet| {
            // The wall clock may be set at any time, but hardly within a block.
            let lead_ns = *lead_ns.get_or_insert_with(|| kernel::realtime().lead_ns());
            if writer.written() >= FILE_BYTES_MAX || failed.is_some() {
                counts.beyond += 1;
                return;
            }
            let t_ns = zero.time(packet.realtime_ns, lead_ns);
            match writer.packet(t_ns, packet.data, packet.length, Some(packet.sent)) {
                Ok(()) => counts.written += 1,
                Err(error) => failed = Some(error),
            }
        });
        match failed {
            Some(cause) => Err(PointError::File { path: self.path.clone(), cause }),
            None => Ok(read.is_some()),
        }
    }

    /// Waits for a block, for a short time.
    fn wait(&self) -> Result<(), PointError> {
        let within = Timespec { tv_sec: 0, tv_nsec: WAIT_MS * 1_000_000 };
        let fd = self.ring.as_fd();
        match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&within)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(self.socket(errno.into())),
        }
    }

    fn socket(&self, cause: io::Error) -> PointError {
        PointError::Socket { interface: self.interface.clone(), cause }
    }
}

impl Point {
    /// Ends the capture, writes what is still in the ring, and closes the file.
    ///
    /// # Errors
    /// If the socket or the file failed; the file has the packets until then.
    pub fn stop(mut self) -> Result<Counts, PointError> {
        self.stopped.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("the thread runs until it is stopped");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The result cannot be returned from here.
            let _ = thread.join();
        }
    }
}

/// The ring can wait, packets on a link cannot.
fn yield_to_others() {
    // SAFETY: plain numbers; on Linux 0 is the calling thread. Failing costs nothing.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_wall_clock_does_not_show() {
        let zero = Zero { monotonic_ns: 1_000, realtime_ns: 1_000_000 };
        // 500 ns after time zero, before and after a step of an hour.
        assert_eq!(zero.time(1_000_500, 999_000), 1_000_500);
        let hour = 3_600_000_000_000;
        assert_eq!(zero.time(1_000_500 + hour, 999_000 + hour.cast_signed()), 1_000_500);
    }
}
