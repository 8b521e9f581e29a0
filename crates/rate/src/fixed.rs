//! A rate that nothing changes: plain UDP, as the study compares with.

use suiro_units::{BitRate, Bytes, Time};

use crate::{Controller, Estimate, Feedback};

/// Sends at one rate, whatever the receiver says.
#[derive(Debug, Clone)]
pub struct Fixed {
    rate: BitRate,
}

impl Fixed {
    /// At this rate, for ever.
    pub const fn new(rate: BitRate) -> Self {
        Self { rate }
    }
}

impl Controller for Fixed {
    fn on_sent(&mut self, _: Time, _: Bytes) {}

    fn on_feedback(&mut self, _: Time, _: &Feedback) {}

    fn next_timer(&self) -> Option<Time> {
        None
    }

    fn on_timer(&mut self, _: Time) {}

    fn target(&self) -> BitRate {
        self.rate
    }

    fn estimate(&self) -> Estimate {
        Estimate::default()
    }
}
