//! Whether a capture's times can be compared with TAI, from which frames and RTP timestamps count.

use serde::Serialize;

use super::frames::Frame;
use super::packets::Packet;

/// How far RTP timestamps may be from the time of arrival and still follow the same clock, in ticks: one second.
const NEAR_TICKS: i64 = 90_000;
/// TAI − UTC, in seconds, since 2017.
pub const LEAP_SECONDS: i64 = 37;

/// What must be added to a capture's times to make them TAI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Clock {
    /// In seconds.
    pub tai_offset_s: i64,
    /// How that is known.
    pub from: Known,
}

/// How a capture's clock is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// The user says it.
    Given,
    /// RTP timestamps are within a second of the times of arrival, with this offset.
    Timestamps,
    /// It is not known: RTP timestamps are near the capture's times neither as TAI nor as UTC. What counts from the
    /// beginning of a frame is not known either.
    Unknown,
}

impl Clock {
    /// Whether times can be compared with TAI.
    pub fn is_known(self) -> bool {
        self.from != Known::Unknown
    }

    /// The offset in nanoseconds.
    pub const fn to_tai_ns(self) -> i64 {
        self.tai_offset_s.saturating_mul(1_000_000_000)
    }

    /// What was given, or what the RTP timestamps of these frames show.
    pub fn of(given: Option<i64>, packets: &[Packet<'_>], frames: &[Frame]) -> Self {
        if let Some(tai_offset_s) = given {
            return Self { tai_offset_s, from: Known::Given };
        }
        let mut apart: Vec<i64> =
            frames.iter().map(|frame| apart(packets[frame.first].t_ns, frame.timestamp)).collect();
        apart.sort_unstable();
        let usual = apart.get(apart.len() / 2).copied().unwrap_or(i64::MAX);
        let fits = |offset_s: &i64| usual.saturating_add(offset_s * 90_000).abs() <= NEAR_TICKS;
        match [0, LEAP_SECONDS].into_iter().find(fits) {
            Some(tai_offset_s) => Self { tai_offset_s, from: Known::Timestamps },
            None => Self { tai_offset_s: 0, from: Known::Unknown },
        }
    }
}

/// How many ticks a time is after a timestamp; timestamps repeat after 13 hours.
fn apart(t_ns: i64, timestamp: u32) -> i64 {
    let ticks = i128::from(t_ns) * 9 / 100_000;
    (ticks as u32).wrapping_sub(timestamp).cast_signed().into()
}
