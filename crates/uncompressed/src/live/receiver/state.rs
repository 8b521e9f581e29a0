//! A running receiver as others see it: its lanes and their paths, and what its thread and its handle share.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use suiro_units::Duration;

use crate::live::merge::{LaneCounts, PathCounts, SkewClass, Trouble};
use crate::packet::Layout;

/// A path that a lane receives on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    /// The group, or a local address for a stream that is sent to this host, and the port; port 0 takes a free one.
    pub address: SocketAddrV4,
    /// Local address of the interface to receive a group on; unspecified to use the routes.
    pub interface: Ipv4Addr,
    /// The only sender of a group whose packets are wanted (IGMPv3); `None` for all.
    pub source: Option<Ipv4Addr>,
    /// The RTP payload type of its packets; `None`: the lane's.
    pub payload_type: Option<u8>,
}

/// A lane of a running receiver: what never changes, and its first delay budget.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiverLaneConfig {
    /// Its number, unique in its node.
    pub number: u32,
    /// How its packets are formatted, and its frames.
    pub layout: Layout,
    /// RTP payload type.
    pub payload_type: u8,
    /// The delay budget.
    pub budget: Duration,
}

/// A path at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathState {
    /// Where it receives.
    pub leg: Leg,
    /// The first frame that is taken from it.
    pub from: u64,
    /// The first frame that is not taken from it any more; `None` if it stays.
    pub until: Option<u64>,
    /// The last sender that was heard.
    pub source: Option<SocketAddrV4>,
    /// What was counted.
    pub counts: PathCounts,
    /// How often packets found the socket's buffer full.
    pub dropped: u32,
}

/// A lane of a running receiver at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiverLane {
    /// Its number.
    pub number: u32,
    /// The first frame that arrived whole since it began to receive; `None` if none did.
    pub first: Option<u64>,
    /// The last frame that was decided.
    pub last: Option<u64>,
    /// The synchronisation source of the sender in use.
    pub ssrc: Option<u32>,
    /// What was counted after merging.
    pub counts: LaneCounts,
    /// Its paths; empty if it receives nothing.
    pub paths: Vec<PathState>,
    /// Its delay budget.
    pub budget: Duration,
    /// The receiver class of ST 2022-7 that the budget covers; `None` if none.
    pub class: Option<SkewClass>,
    /// What is wrong; `None` if nothing is.
    pub trouble: Option<Trouble>,
    /// Where it stores.
    pub storing: Option<PathBuf>,
    /// Changes that wait for their frame.
    pub planned: usize,
}

/// A running receiver at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiverState {
    /// Its clock: TAI since the SMPTE epoch.
    pub tai: Duration,
    /// The frame that its clock is in, at the first lane's rate.
    pub frame: u64,
    /// How long ago its thread last looked at the clock.
    pub idle: Duration,
    /// Its lanes.
    pub lanes: Vec<ReceiverLane>,
    /// Events that were lost, because their reader was too slow.
    pub events_missed: u64,
    /// Why the node has ended; `None` while it runs.
    pub over: Option<String>,
}

/// What the thread and the handle share.
#[derive(Debug)]
pub(in super::super) struct Shared {
    pub lanes: Vec<Mutex<ReceiverLane>>,
    /// When the thread last looked at the clock, in nanoseconds.
    pub beat: AtomicU64,
    pub over: Mutex<Option<String>>,
}

impl Shared {
    pub fn lane(&self, at: usize) -> MutexGuard<'_, ReceiverLane> {
        self.lanes[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn try_lane(&self, at: usize) -> Option<MutexGuard<'_, ReceiverLane>> {
        self.lanes[at].try_lock().ok()
    }

    pub fn over(&self) -> MutexGuard<'_, Option<String>> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
