//! A node that only reads: each stream as fast as its storage delivers it, for benchmarks.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use suiro_record::Writer;
use suiro_record::table::Text;
use suiro_record::tables::UncompressedRingRow;
use suiro_units::{Duration, Time};

use super::{Error, Records};
use crate::bench::{GroupTimes, Groups};
use crate::clock;
use crate::reader::{self, Meter, Ring};

/// The configuration of a reading node.
#[derive(Debug, Clone)]
pub struct ReaderJob {
    /// The number and the store of each stream, at least one.
    pub stores: Vec<(u32, PathBuf)>,
    /// How rings are filled, from a disk or the page cache: reading from memory is not supported.
    pub ring: reader::Options,
    /// When to begin, at the earliest; `None` for immediately.
    pub begin: Option<Time>,
    /// How long to read, from the beginning; `None` until stopped.
    pub duration: Option<Duration>,
    /// Where records go: table `uncompressed_ring`.
    pub records: Records,
}

/// The totals of a stream's reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadTotal {
    /// The stream's number.
    pub stream: u32,
    /// How long it read.
    pub span: Duration,
    /// Frames that arrived in that time.
    pub frames: u64,
    /// Their bytes, without the store's padding and trailers.
    pub bytes: u64,
    /// How long 60 frames took, without those that were in the ring beforehand.
    pub times: Option<GroupTimes>,
}

/// Reads until the time is up or `stop` is set. Calls `ready` when all rings are full.
///
/// # Errors
/// If a store cannot be read, or the records cannot be written.
pub fn read(
    job: &ReaderJob,
    ready: impl FnOnce(&[Ring]),
    stop: &AtomicBool,
) -> Result<Vec<ReadTotal>, Error> {
    let rings = job.stores.iter().map(|(stream, path)| ring(job, *stream, path, stop));
    let mut rings = rings.collect::<Result<Vec<_>, _>>()?;
    ready(&rings);
    let begin = clock::monotonic().max(job.begin.unwrap_or(Time::ZERO));
    let mut log = Log::create(job, rings.iter().map(Ring::meter).collect())?;
    let until = job.duration.map(|time| begin + time);
    let (done, all_done) = channel();
    std::thread::scope(|scope| {
        let threads: Vec<_> = rings
            .iter_mut()
            .zip(&job.stores)
            .map(|(ring, (stream, _))| {
                let done: Sender<()> = done.clone();
                scope.spawn(move || {
                    // Dropped at the end: the last one wakes the thread that writes the rings'
                    // records.
                    let _done = done;
                    drain(*stream, ring, begin, until, stop)
                })
            })
            .collect();
        drop(done);
        // If records cannot be written, the node ends too.
        log.follow(&all_done).inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect::<Result<Vec<_>, _>>()
    })
    .and_then(|totals| log.close().map(|()| totals))
}

fn ring(job: &ReaderJob, stream: u32, path: &Path, stop: &AtomicBool) -> Result<Ring, Error> {
    Ring::open(path, None, &job.ring, stop).map_err(|cause| Error::Frames { stream, cause })
}

/// Takes each frame as soon as it is available.
fn drain(
    stream: u32,
    ring: &mut Ring,
    begin: Time,
    until: Option<Time>,
    stop: &AtomicBool,
) -> Result<ReadTotal, Error> {
    let failed = |cause| Error::Frames { stream, cause };
    let Some(mut now) = clock::wait_unless(stop, begin) else {
        return Ok(ReadTotal { stream, span: Duration::ZERO, frames: 0, bytes: 0, times: None });
    };
    // What is in the ring already would count as read in no time.
    for _ in 0..ring.bound().frames {
        if !is_there(ring, stop).map_err(failed)? {
            break;
        }
        ring.advance();
    }
    let start = clock::monotonic();
    let (mut frames, mut groups) = (0, Groups::new(start));
    while !stop.load(Ordering::Relaxed) && until.is_none_or(|until| now < until) {
        if !is_there(ring, stop).map_err(failed)? || ring.next_frame().is_none() {
            break;
        }
        now = clock::monotonic();
        groups.frame(now);
        frames += 1;
    }
    let bytes = frames * ring.header().geometry.frame_bytes() as u64;
    let span = now.saturating_since(start);
    Ok(ReadTotal { stream, span, frames, bytes, times: groups.times() })
}

/// Waits for the next frame; returns false if it should stop first.
fn is_there(ring: &Ring, stop: &AtomicBool) -> Result<bool, reader::Error> {
    match ring.wait(stop) {
        Err(reader::Error::Stopped) => Ok(false),
        waited => waited.map(|()| true),
    }
}

/// The records of a reading node: its rings, once a second.
struct Log<'a> {
    job: &'a ReaderJob,
    name: Text,
    meters: Vec<Meter>,
    rings: Option<Writer<UncompressedRingRow>>,
}

impl<'a> Log<'a> {
    fn create(job: &'a ReaderJob, meters: Vec<Meter>) -> Result<Self, Error> {
        let records = &job.records;
        let rings = records.dir.as_deref().map(|dir| Writer::create_of(dir, &records.endpoint));
        Ok(Self { job, name: records.name(), meters, rings: rings.transpose()? })
    }

    /// Records the rings once a second, until all readers have ended.
    fn follow(&mut self, all_done: &Receiver<()>) -> Result<(), Error> {
        let mut next = clock::monotonic();
        loop {
            let now = clock::monotonic();
            if now >= next {
                self.look(now)?;
                next += Duration::from_secs(1);
            }
            let left = next.saturating_since(now);
            if let Err(RecvTimeoutError::Disconnected) = all_done.recv_timeout(left.into()) {
                return self.look(clock::monotonic());
            }
        }
    }

    fn look(&mut self, now: Time) -> Result<(), Error> {
        let t_ns = self.job.records.t_ns(now);
        for (meter, (stream, _)) in self.meters.iter_mut().zip(&self.job.stores) {
            let row = meter.row(now, t_ns, &self.name, *stream);
            if let Some(rings) = &mut self.rings {
                rings.push(row)?;
            }
        }
        Ok(())
    }

    fn close(self) -> Result<(), Error> {
        self.rings.map(Writer::close).transpose()?;
        Ok(())
    }
}
