//! The bounds of what a user writes of a link, which are also those of a [`LinkConfig`](crate::LinkConfig).

use std::fmt;

use serde::Serialize;
use suiro_strict::Bounds;
use suiro_units::{BitRate, Bytes, Duration, Ratio};

use crate::trace::{MAX_RATE, MAX_TRACE_TIME};

/// Most packets a queue holds, whatever its limit: the emulator's own bound, some 100 MB.
pub const MAX_QUEUED: u32 = 1 << 20;
pub(crate) const DELAY: Bounds<Duration> = Bounds::new(Duration::ZERO, Duration::from_secs(3600));
/// Of holding back, and of the times that a discipline reckons with.
pub(crate) const SPAN: Bounds<Duration> = Bounds::above(Duration::ZERO, Duration::from_secs(60));
/// Of jitter's deviation; with 0 there is none.
pub(crate) const DEVIATION: Bounds<Duration> = Bounds::new(Duration::ZERO, *SPAN.most());
/// Of DualPI2's target and interval: its update period and its gains follow from them.
pub(crate) const DUAL_SPAN: Bounds<Duration> =
    Bounds::new(Duration::from_micros(100), *SPAN.most());
pub(crate) const PIE_UPDATE: Bounds<Duration> =
    Bounds::new(Duration::from_millis(1), Duration::from_millis(100));
pub(crate) const PIE_BURST: Bounds<Duration> = Bounds::new(Duration::ZERO, Duration::from_secs(60));
pub(crate) const FLOWS: Bounds<u32> = Bounds::new(1, 65_536);
pub(crate) const QUANTUM: Bounds<Bytes> = Bounds::new(Bytes::new(64), Bytes::new(64_000));
/// A bucket may be smaller than a packet, and holds no more work than a u64 of nanobits.
pub(crate) const BURST: Bounds<Bytes> = Bounds::new(Bytes::new(1), Bytes::new(1_000_000_000));
pub(crate) const QUEUE_PACKETS: Bounds<Packets> = Bounds::new(Packets(1), Packets(MAX_QUEUED));
pub(crate) const QUEUE_BYTES: Bounds<Bytes> = Bounds::new(Bytes::new(1), Bytes::new(1 << 40));
pub(crate) const QUEUE_TIME: Bounds<Duration> = Bounds::above(Duration::ZERO, *DELAY.most());
/// A rate of zero is an outage.
pub(crate) const RATE: Bounds<BitRate> = Bounds::new(BitRate::from_bps(0), MAX_RATE);
/// Of a ratio that must not be zero.
pub(crate) const CHANCE: Bounds<Ratio> = Bounds::above(Ratio::ZERO, Ratio::ONE);
/// Packets in a list of losses.
pub(crate) const LIST: Bounds<usize> = Bounds::new(0, 100_000);
/// Changes of a link during a trial.
pub(crate) const CHANGES: Bounds<usize> = Bounds::new(0, 100_000);
/// Stations of a segment: what IEEE 802.3 allows at the hubs of one collision domain.
pub(crate) const STATIONS: Bounds<usize> = Bounds::new(1, 1024);
/// When something changes.
pub(crate) const CHANGE_AT: Bounds<Duration> = Bounds::above(Duration::ZERO, MAX_TRACE_TIME);

/// A number of packets, written `"64p"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Packets(pub u32);

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}p", self.0)
    }
}

impl Serialize for Packets {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
