//! What the reader and the sender of a ring share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Error;
use super::arena::Arena;
use crate::clock::STOP_EVERY;
use crate::store::Trailer;

/// The counters of a ring. Each has one writer.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Frames whose reading has begun; by the reader.
    pub begun: AtomicU64,
    /// Frames read whole, in order; by the reader.
    pub filled: AtomicU64,
    /// Bytes read; by the reader.
    pub read_bytes: AtomicU64,
    /// Frames that the sender is done with; by the sender. The one that it has now is the next.
    pub released: AtomicU64,
    /// Frames handed to the sender, repeated ones included; by the sender.
    pub handed: AtomicU64,
    /// Of these, repeated ones; by the sender.
    pub repeats: AtomicU64,
}

/// Why a reader ended; `None` while it runs.
pub(super) type Failure = Arc<Mutex<Option<Error>>>;

/// What the lock protects: one value, consistent at any time.
pub(super) fn locked(failure: &Mutex<Option<Error>>) -> MutexGuard<'_, Option<Error>> {
    failure.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the reader and the sender of a ring share.
#[derive(Debug)]
pub(super) struct Shared {
    pub arena: Arena,
    /// Slots in the ring.
    pub slots: usize,
    /// Number and checksum of the contents of each slot; like the slots, ordered by the counters.
    trailers: Box<[[AtomicU64; 2]]>,
    pub counters: Arc<Counters>,
    /// Total number of frames; `None` if there is no end.
    pub total: Option<u64>,
    /// The sender is gone: the reader should end.
    pub stop: AtomicBool,
    pub failure: Failure,
    changed: Condvar,
}

impl Shared {
    /// With this many slots.
    pub fn new(arena: Arena, slots: usize, total: Option<u64>) -> Self {
        Self {
            arena,
            slots,
            trailers: (0..slots).map(|_| Default::default()).collect(),
            counters: Arc::default(),
            total,
            stop: AtomicBool::new(false),
            failure: Failure::default(),
            changed: Condvar::new(),
        }
    }

    /// Publishes `trailer`'s frame as filled, the last of so many, and wakes those who wait.
    pub fn publish(&self, filled: u64, trailer: Trailer) {
        let [number, checksum] = &self.trailers[self.place(filled - 1)];
        number.store(trailer.number, Ordering::Relaxed);
        checksum.store(trailer.checksum, Ordering::Relaxed);
        let _guard = self.failure();
        self.counters.filled.store(filled, Ordering::Release);
        self.changed.notify_all();
    }

    /// The contents of slot `index`, counted on without end.
    pub fn trailer(&self, index: u64) -> Trailer {
        let [number, checksum] = &self.trailers[self.place(index)];
        Trailer {
            number: number.load(Ordering::Relaxed),
            checksum: checksum.load(Ordering::Relaxed),
        }
    }

    /// The index in the ring of slot `index`, counted on without end.
    pub fn place(&self, index: u64) -> usize {
        (index % self.slots as u64) as usize
    }

    /// Sets the reason why the reader ended or nothing can be sent any more; the first reason stays.
    pub fn fail(&self, error: Error) {
        self.failure().get_or_insert(error);
        self.changed.notify_all();
    }

    pub fn failure(&self) -> MutexGuard<'_, Option<Error>> {
        locked(&self.failure)
    }

    /// Waits until `frames` are filled in all, the reader has ended, or `stop` is set.
    pub fn wait_for(&self, frames: u64, stop: &AtomicBool) -> Result<(), Error> {
        let mut failure = self.failure();
        while self.counters.filled.load(Ordering::Acquire) < frames {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            if let Some(error) = failure.take() {
                *failure = Some(Error::Ended(error.to_string()));
                return Err(error);
            }
            // A signal handler can set `stop`, but cannot wake a thread.
            let waited = self.changed.wait_timeout(failure, STOP_EVERY.into());
            failure = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}
