//! Reads what the BPF programs wrote: passages, counted by point.

use super::RecorderError;
use super::cost::Passed;
use super::intake::Intake;
use crate::event::{Event, Flow, Point, Recording};
use crate::probe::raw::{RAW_BYTES, Raw};

/// Most passages in one recording; further ones count as lost.
const EVENTS_MAX: u64 = 1_000_000_000;

/// What has been read so far.
#[derive(Debug, Default)]
pub struct Reading {
    /// State carried from one event to the next.
    pub intake: Intake,
    /// Passages passed on.
    pub written: u64,
    /// By point.
    pub counts: [u64; Point::ALL.len()],
    /// Passages beyond the bound, by point.
    pub beyond: [u64; Point::ALL.len()],
    /// Packets, by point, those beyond the bound too.
    pub passed: Passed,
}

impl Reading {
    /// Reads raw events, one after the other. Invalid ones are skipped: the programs write none.
    ///
    /// # Errors
    /// The first error of `each`.
    pub fn take(
        &mut self,
        raw: &[u8],
        mut each: impl FnMut(&Event, &[Flow]) -> Result<(), RecorderError>,
    ) -> Result<(), RecorderError> {
        // A raw event usually holds several passages.
        let mut told = Vec::with_capacity(8);
        for raw in raw.as_chunks::<RAW_BYTES>().0.iter().filter_map(Raw::parse) {
            self.intake.take(&raw, |event| told.push(event));
            for event in told.drain(..) {
                if self.count(&event) {
                    each(&event, &self.intake.flows)?;
                }
            }
        }
        Ok(())
    }

    /// Hands over what was held until all is read.
    ///
    /// # Errors
    /// The first error of `each`.
    pub fn finish(
        &mut self,
        mut each: impl FnMut(&Event, &[Flow]) -> Result<(), RecorderError>,
    ) -> Result<(), RecorderError> {
        let mut told = Vec::new();
        self.intake.finish(|event| told.push(event));
        for event in told {
            if self.count(&event) {
                each(&event, &self.intake.flows)?;
            }
        }
        Ok(())
    }

    /// Completes a recording with what was read.
    pub fn tell(&self, recording: &mut Recording) {
        recording.flows = self.intake.flows.clone();
        recording.unjoined = self.intake.queues.unjoined;
        recording.unplaced = self.intake.unplaced;
        if let Some(cost) = &mut recording.cost {
            cost.packets = self.passed.packets();
        }
        for status in &mut recording.points {
            let at = status.point as usize;
            status.events = self.counts[at];
            status.lost += self.beyond[at];
        }
    }

    /// Returns false for a passage beyond the bound.
    fn count(&mut self, event: &Event) -> bool {
        let at = event.point as usize;
        self.passed.add(event.point, event.segments.into());
        if self.written >= EVENTS_MAX {
            self.beyond[at] += 1;
            return false;
        }
        self.counts[at] += 1;
        self.written += 1;
        true
    }
}
