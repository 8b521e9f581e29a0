//! A cache at work: what all of its requests share.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suiro_record::RecordError;
use suiro_record::words::CacheOutcome;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::fault::Faults;
use super::object::{Bounds, Objects};
use super::upstream::Upstream;
use crate::Clock;
use crate::server::{AccessLog, Counts, Tally};

/// A cache at work.
pub(super) struct Service {
    pub name: String,
    pub clock: Clock,
    /// `http` or `https`.
    pub scheme: &'static str,
    pub faults: Faults,
    pub upstream: Upstream,
    pub objects: Mutex<Objects>,
    /// Places for objects that are on their way.
    pub places: Arc<Semaphore>,
    pub bounds: Bounds,
    pub log: Option<AccessLog>,
    pub tally: Tally,
    /// Requests so far, by which faults meet them.
    pub numbers: AtomicU64,
    pub done: Done,
    /// What brings objects, and what sends them on.
    pub tasks: Mutex<JoinSet<()>>,
}

/// What a cache has done apart from answering.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub outcomes: [AtomicU64; CacheOutcome::ALL.len()],
    pub failed: AtomicU64,
    /// Requests for which there was no place.
    pub full: AtomicU64,
}

impl Service {
    /// Begins what brings an object, or sends one on.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    pub fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An object did not come, or not all of it.
    pub fn failed(&self) {
        self.done.failed.fetch_add(1, Relaxed);
    }

    /// Cuts off what is still on its way.
    pub async fn stop(&self) {
        let mut tasks =
            std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
    }

    /// Makes its record whole.
    pub fn close(self) -> Result<(), RecordError> {
        self.log.map_or(Ok(()), AccessLog::close)
    }

    pub fn counts(&self) -> super::Counted {
        let of = |outcome: CacheOutcome| self.done.outcomes[outcome as usize].load(Relaxed);
        let Counts { requests, body_bytes, .. } = self.tally.counts();
        super::Counted {
            requests,
            body_bytes,
            hits: of(CacheOutcome::Hit) + of(CacheOutcome::Stale),
            joined: of(CacheOutcome::Joined),
            revalidated: of(CacheOutcome::Revalidated),
            misses: of(CacheOutcome::Miss),
            failed: self.done.failed.load(Relaxed),
            full: self.done.full.load(Relaxed),
            evicted: self.objects().evicted(),
        }
    }
}
