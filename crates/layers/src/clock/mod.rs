//! How two hosts' clocks relate to each other.

pub mod discipline;
mod exchange;

use serde::Serialize;

pub use exchange::{Pair, estimate};

use crate::event::Recording;
use suiro_units::to_i64;

/// How the second host's clock was aligned to the first's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Both recordings were made on one kernel: one clock.
    SameHost,
    /// By whatever disciplines each host's CLOCK_REALTIME (chrony, ptp4l).
    Disciplined,
    /// By packets exchanged between the hosts in both directions.
    Exchange,
    /// By CLOCK_REALTIME as it was, with an unknown error.
    Unknown,
}

/// The second host's CLOCK_MONOTONIC relative to the first's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Alignment {
    /// How it was determined.
    pub how: How,
    /// What to add to the second's time at `reference_ns` to get the first's.
    pub offset_ns: i64,
    /// The second's time to which the offset applies.
    pub reference_ns: u64,
    /// How fast the offset grows: nanoseconds per second of the second's clock.
    pub drift_ppb: f64,
    /// Largest error of a one-way delay between the hosts; `None` if unknown.
    pub error_ns: Option<u64>,
}

impl Alignment {
    /// For recordings that share a clock.
    pub const SAME: Self = Self {
        how: How::SameHost,
        offset_ns: 0,
        reference_ns: 0,
        drift_ppb: 0.0,
        error_ns: Some(0),
    };

    /// A time of the second host on the first's clock.
    pub fn to_first(&self, t_ns: u64) -> i64 {
        let elapsed = to_i64(t_ns).saturating_sub(to_i64(self.reference_ns));
        let drift = (elapsed as f64 * self.drift_ppb / 1e9) as i64;
        to_i64(t_ns).saturating_add(self.offset_ns).saturating_add(drift)
    }

    /// The more certain of what disciplines the clocks and what packets between the hosts show, if
    /// they show anything.
    pub fn or_seen(self, seen: Option<Self>) -> Self {
        match (self.error_ns, seen) {
            (Some(error), Some(seen)) if seen.error_ns.is_some_and(|seen| seen < error) => seen,
            (None, Some(seen)) => seen,
            _ => self,
        }
    }

    /// The second host's clock relative to the first's, when both are known relative to a third
    /// clock: `first` is the first host's, `second` the second's.
    pub fn through(first: &Self, second: &Self) -> Self {
        let third_ns = second.to_first(second.reference_ns);
        // The first's reading at that moment, close enough for its drift.
        let reading = third_ns.saturating_sub(first.offset_ns);
        let drifted = first.to_first(u64::try_from(reading).unwrap_or(0)).saturating_sub(third_ns);
        let first_ns = reading.saturating_sub(drifted);
        Self {
            how: How::Exchange,
            offset_ns: first_ns.saturating_sub(to_i64(second.reference_ns)),
            reference_ns: second.reference_ns,
            drift_ppb: second.drift_ppb - first.drift_ppb,
            error_ns: first.error_ns.zip(second.error_ns).map(|(a, b)| a.saturating_add(b)),
        }
    }

    /// What two recordings contain about their clocks.
    pub fn told(first: &Recording, second: &Recording) -> Self {
        if first.boot_id == second.boot_id {
            return Self::SAME;
        }
        // On each host, CLOCK_REALTIME minus CLOCK_MONOTONIC, corrected by what is known about its
        // discipline.
        let real = |recording: &Recording| {
            let ahead = recording.clock.as_ref().map_or(0, |clock| i128::from(clock.offset_ns));
            let moment = recording.start;
            i128::from(moment.realtime_ns) - ahead - i128::from(moment.monotonic_ns)
        };
        let error = |recording: &Recording| Some(recording.clock.as_ref()?.error_ns);
        let error_ns = error(first).zip(error(second)).map(|(a, b)| a.saturating_add(b));
        let clamped = (real(second) - real(first)).clamp(i64::MIN.into(), i64::MAX.into());
        Self {
            how: if error_ns.is_some() { How::Disciplined } else { How::Unknown },
            offset_ns: clamped as i64,
            reference_ns: second.start.monotonic_ns,
            drift_ppb: 0.0,
            error_ns,
        }
    }
}
