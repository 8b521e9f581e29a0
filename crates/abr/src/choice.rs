//! The input and the output of every algorithm.

use suiro_units::{BitRate, Duration, Time};

/// The frame in which an algorithm works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Nominal duration of a segment.
    pub segment: Duration,
    /// The most media the player will hold: its buffer's capacity, or the target latency of a live
    /// stream if that is less.
    pub buffer: Duration,
}

/// What to fetch next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Index of the rung.
    pub rung: usize,
    /// Not before this much time has passed; then ask again.
    pub wait: Duration,
}

impl Choice {
    pub(crate) const fn at_once(rung: usize) -> Self {
        Self { rung, wait: Duration::ZERO }
    }
}

/// What a rule may look at when it chooses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub now: Time,
    pub buffer: Duration,
    pub estimate: Option<BitRate>,
    /// Whether segments are played while they come, chunk by chunk: then a download only takes from the buffer what it takes
    /// longer than its segment lasts.
    pub in_chunks: bool,
}
