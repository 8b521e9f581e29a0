//! A running sender as others see it: its lanes, and what its thread and its handle share.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use suiro_units::Duration;

use crate::geometry::Geometry;
use crate::packet::{self, Format};
use crate::reader::Meter;
use crate::send::Counts;
use crate::socket::Route;

/// A lane of a running sender: what never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneConfig {
    /// Its number, unique in its node.
    pub number: u32,
    /// How its packets are formatted.
    pub format: Format,
    /// Its frames.
    pub geometry: Geometry,
    /// Largest IP packet in bytes.
    pub packet_bytes: u32,
    /// RTP payload type and synchronisation source. A twin over another path has the same (ST 2022-7).
    pub stream: packet::Stream,
}

/// What a sender's lane does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It has no frames.
    Empty,
    /// Its ring is being filled.
    Filling,
    /// Its ring is full; it can begin at any frame boundary.
    Standby,
    /// It sends.
    Running,
    /// It cannot send: [`SenderLane::failed`].
    Failed,
}

/// A lane's ring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingState {
    /// Frames that it has room for.
    pub slots: u64,
    /// Frames that were read and wait to be sent.
    pub waiting: u64,
    /// Frames that are being read.
    pub reading: u64,
    /// Frames sent in place of others that were not there in time, since the ring was opened.
    pub repeats: u64,
}

/// A lane of a running sender at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct SenderLane {
    /// Its number.
    pub number: u32,
    /// What it does.
    pub phase: Phase,
    /// The frame that is being sent, since the SMPTE epoch; `None` if it does not send.
    pub frame: Option<u64>,
    /// Its ring; `None` if it has none.
    pub ring: Option<RingState>,
    /// What was counted since its ring's first material was given.
    pub counts: Counts,
    /// Where it sends, or would.
    pub routes: Vec<Route>,
    /// Since which frame it has been sending frames again because the next was not there; `None` if it is not.
    pub starved: Option<u64>,
    /// Since which frame packets have been leaving more than a frame time late; `None` if they are not.
    pub lagging: Option<u64>,
    /// Changes that wait for their frame.
    pub planned: usize,
    /// Why it cannot send; `None` if it can.
    pub failed: Option<String>,
}

/// A running sender at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct SenderState {
    /// Its clock: TAI since the SMPTE epoch.
    pub tai: Duration,
    /// The frame that its clock is in, at the first lane's rate.
    pub frame: u64,
    /// How long ago its thread last looked at the clock: more than 0.2 s is a thread that does not run.
    pub idle: Duration,
    /// Its lanes.
    pub lanes: Vec<SenderLane>,
    /// Events that were lost, because their reader was too slow.
    pub events_missed: u64,
    /// Why the node has ended; `None` while it runs.
    pub over: Option<String>,
}

/// What the thread and the handle share.
#[derive(Debug)]
pub(in super::super) struct Shared {
    pub lanes: Vec<Mutex<SenderLane>>,
    pub meters: Vec<Mutex<Option<Meter>>>,
    /// When the thread last looked at the clock, in nanoseconds.
    pub beat: AtomicU64,
    pub over: Mutex<Option<String>>,
}

impl Shared {
    pub fn lane(&self, at: usize) -> MutexGuard<'_, SenderLane> {
        self.lanes[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn try_lane(&self, at: usize) -> Option<MutexGuard<'_, SenderLane>> {
        self.lanes[at].try_lock().ok()
    }

    pub fn meter(&self, at: usize) -> MutexGuard<'_, Option<Meter>> {
        self.meters[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn over(&self) -> MutexGuard<'_, Option<String>> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
