//! What the reports of all pages have.

use schemars::JsonSchema;
use serde::Deserialize;
use suiro_units::{Duration, Time};

/// Most bytes of one report, and of one batch of frames.
pub(crate) const REPORT_BYTES_MAX: usize = 16 << 20;
/// Latest time in milliseconds since the trial's epoch: a year.
const TIME_MAX_MS: f64 = 366.0 * 86_400.0 * 1e3;

/// A time in milliseconds since the trial's epoch; what was before it counts as the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "f64")]
#[schemars(with = "f64")]
pub struct Ms(f64);

impl TryFrom<f64> for Ms {
    type Error = String;

    fn try_from(ms: f64) -> Result<Self, String> {
        match (-TIME_MAX_MS..=TIME_MAX_MS).contains(&ms) {
            true => Ok(Self(ms)),
            false => Err(format!("a time of {ms} ms")),
        }
    }
}

impl Ms {
    /// The time in the trial.
    pub fn time(self) -> Time {
        Time::ZERO + self.duration()
    }

    /// The same as a duration.
    pub fn duration(self) -> Duration {
        Duration::from_nanos((self.0.max(0.0) * 1e6) as u64)
    }
}
