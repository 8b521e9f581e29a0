//! Pauses of live video.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::Bounds;
use suiro_units::{Duration, Time};

/// How many pauses a sender may have.
pub(super) const PAUSES: Bounds<usize> = Bounds::new(0, 100);

/// A time in which an endpoint sends no video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// When it begins, counted from the trial's start.
    pub from: Duration,
    /// When it ends, later than `from`.
    pub to: Duration,
}

impl Pause {
    /// From and until when it is, in the trial's time.
    pub fn span(&self) -> (Time, Time) {
        (Time::ZERO + self.from, Time::ZERO + self.to)
    }
}
