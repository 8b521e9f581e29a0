//! MPEG-2 transport streams (ISO/IEC 13818-1, ITU-T H.222.0): written exactly, moved in time.

mod mux;
mod restamp;

use serde::{Deserialize, Serialize};
use suiro_units::Duration;

pub(crate) use mux::{Muxer, Timed};
pub use restamp::restamp;

/// Bytes of a packet.
pub(crate) const PACKET: usize = 188;

/// Ticks per second of time stamps.
pub const TIMESCALE: u32 = 90_000;

/// Time stamp of a loop's start. Not 0: frames that are reordered, and the clock, come before.
pub const START: u64 = 10 * TIMESCALE as u64;

/// How many packets of a PID there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packets {
    /// The packet identifier, 0 to 8191.
    pub pid: u16,
    /// Packets with payload: those that advance the continuity counter.
    pub count: u64,
}

/// How far a segment is moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shift {
    /// Added to PTS and DTS, modulo 2³³, and to the base of PCR: ticks of 90 kHz.
    pub ticks: u64,
    /// Added to the continuity counters of each PID, modulo 16; 0 for a PID not named.
    pub counters: Vec<Packets>,
}

impl Shift {
    /// By `loops` loops of that length and those packets. Time stamps wrap, as §2.4.3.7 has it,
    /// after 26.5 hours.
    pub fn new(length: Duration, loops: u64, packets: &[Packets]) -> Self {
        let ticks = u128::from(length.as_nanos()) * u128::from(TIMESCALE) / 1_000_000_000;
        let moved = |of: &Packets| Packets { pid: of.pid, count: of.count.wrapping_mul(loops) };
        Self {
            ticks: (ticks as u64).wrapping_mul(loops),
            counters: packets.iter().map(moved).collect(),
        }
    }
}
