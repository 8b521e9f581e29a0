//! What happened in a running node, for those who control it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use suiro_units::{Duration, Time};

/// Events that may wait for their reader.
pub const EVENTS_MAX: usize = 1024;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, on the monotonic clock.
    pub at: Time,
    /// When, as TAI since the SMPTE epoch.
    pub tai: Duration,
    /// The lane; `None` if it is about the node.
    pub lane: Option<u32>,
    /// What.
    pub what: What,
}

/// What happened. Frames are numbers since the SMPTE epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A lane's ring is full: it is a standby.
    Filled,
    /// A lane begins to send, or a receiver's lane has its first frame.
    Started {
        /// Its first frame.
        frame: u64,
    },
    /// A lane has stopped.
    Stopped {
        /// Its last frame.
        last: u64,
    },
    /// A change took effect that neither starts nor stops.
    Changed {
        /// The first frame with it.
        frame: u64,
    },
    /// A change took effect later than ordered.
    Late {
        /// The frame that was ordered.
        ordered: u64,
        /// The frame that it was.
        frame: u64,
    },
    /// The next frame was not there: a frame is sent again in its place.
    Starved {
        /// The first such frame.
        frame: u64,
    },
    /// Packets leave, or frames are complete, more than a frame time late.
    Lagging {
        /// The first such frame.
        frame: u64,
        /// By how much its last packet was late.
        late: Duration,
    },
    /// Frames are incomplete when their time is over.
    Incomplete {
        /// The first such frame.
        frame: u64,
        /// Packets that are missing in it.
        lost: u32,
    },
    /// Nothing arrives any more.
    Silent {
        /// The last frame of which something arrived; `None` if nothing did.
        last: Option<u64>,
        /// For how long.
        since: Duration,
    },
    /// A lane that starved, lagged or was silent is well again.
    Recovered {
        /// The first such frame.
        frame: u64,
    },
    /// Another sender continues the stream at a frame boundary.
    Seam {
        /// Its first frame.
        frame: u64,
        /// Its RTP synchronisation source.
        ssrc: u32,
        /// That of the sender before.
        before: u32,
    },
    /// Two senders send the same frames with different packets.
    Contested {
        /// The first such frame.
        frame: u64,
        /// The synchronisation source that is not used.
        ssrc: u32,
    },
    /// Packets of a path arrive later than the lane's delay budget.
    OverBudget {
        /// The path, from 0.
        path: usize,
        /// The frame.
        frame: u64,
        /// How long after the end of the budget, as far as it is known.
        by: Duration,
    },
    /// A sender's frames are further from their time than any delay explains: its clock is not this node's.
    ClockApart {
        /// Its synchronisation source.
        ssrc: u32,
        /// By how much.
        apart: Duration,
        /// True if it is ahead.
        ahead: bool,
    },
    /// A recording is complete.
    Stored {
        /// Its store.
        path: std::path::PathBuf,
        /// Frames in it.
        frames: u64,
        /// Frames missing in between.
        missing: u64,
        /// Frames that were left out because the disk was slow.
        slow: u64,
    },
    /// The lane cannot go on.
    Failed {
        /// The reason.
        because: String,
    },
    /// The node ends.
    Over {
        /// Why; `None` if it was asked to.
        because: Option<String>,
    },
}

/// Where a node's events arrive.
#[derive(Debug)]
pub struct Events {
    told: Receiver<Event>,
    missed: Arc<AtomicU64>,
}

impl Events {
    /// The next event that has arrived; `None` if there is none.
    pub fn next(&self) -> Option<Event> {
        self.told.try_recv().ok()
    }

    /// Waits for the next event for at most `time`; `None` if none came, or the node has ended.
    pub fn wait(&self, time: Duration) -> Option<Event> {
        self.told.recv_timeout(time.into()).ok()
    }

    /// Events that had no room because nobody read them.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// The count behind [`Self::missed`].
    pub(super) fn missed_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.missed)
    }
}

/// The other end of [`Events`]: its threads do not wait for their reader.
#[derive(Debug, Clone)]
pub(super) struct Teller {
    tell: SyncSender<Event>,
    missed: Arc<AtomicU64>,
    epoch: crate::epoch::Epoch,
}

impl Teller {
    pub fn new(epoch: crate::epoch::Epoch) -> (Self, Events) {
        let (tell, told) = sync_channel(EVENTS_MAX);
        let missed = Arc::new(AtomicU64::new(0));
        (Self { tell, missed: Arc::clone(&missed), epoch }, Events { told, missed })
    }

    pub fn tell(&self, at: Time, lane: Option<u32>, what: What) {
        let event = Event { at, tai: self.epoch.tai(at), lane, what };
        if let Err(TrySendError::Full(_)) = self.tell.try_send(event) {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
