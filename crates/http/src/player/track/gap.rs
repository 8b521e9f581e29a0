//! What a track plays where the list of its rung has a gap.

use suiro_abr::Playout;
use suiro_units::Duration;

use super::{Next, Situation, Step, TrackState};
use crate::presentation::{Segment, Segments};

/// Whether a hole lies between `end` and a segment. Less than half a segment is rounding, or rungs that were not cut alike.
pub(super) fn is_beyond(segment: &Segment, end: Duration) -> bool {
    segment.start > end + segment.duration / 2
}

impl TrackState {
    /// What to play instead of a segment that lies behind a gap: what another rung has there, a lower one first (rfc8216bis
    /// §6.3.3), by the lists that are at hand. The same again without a gap, or if no other rung has anything. The error is the
    /// request for the playlist of a rung that may have something.
    pub(super) fn around_gap(
        &self,
        (rung, segment): (usize, Segment),
        situation: &Situation,
        playout: &Playout,
    ) -> Result<(usize, Segment), Step> {
        let end = playout.end_of(self.index).max(self.next);
        if !is_beyond(&segment, end) || !self.is_within_list(rung) {
            return Ok((rung, segment));
        }
        let others = || (0..rung).rev().chain(rung + 1..self.rungs.len());
        for other in others() {
            // Only where decoding can begin may another rung follow.
            if let Next::Found(its) = self.next_of(other, situation)
                && !is_beyond(&its, end)
                && !self.is_inside(other, &its)
            {
                return Ok((other, its));
            }
        }
        let unknown = others().filter(|&other| self.may_have_more(other, situation));
        let mut steps = unknown.map(|other| self.fetch_playlist(other, situation.now));
        let fetch = steps.find(|step| matches!(step, Step::Fetch(_)));
        fetch.map_or(Ok((rung, segment)), Err)
    }

    /// Whether a rung may have more than is known of it.
    fn may_have_more(&self, rung: usize, situation: &Situation) -> bool {
        let is_there = self.rungs[rung].playlist.as_ref().is_some_and(|known| !known.missing);
        is_there && matches!(self.next_of(rung, situation), Next::Unknown | Next::Later)
    }

    /// The playlist of a rung did not come. True if it was fetched because of a gap in that of another one: then nothing depends
    /// on it.
    pub(super) fn goes_without(&mut self, rung: usize) -> bool {
        if let Some(playlist) = &mut self.rungs[rung].playlist {
            playlist.missing = true;
        }
        rung != self.choice.unwrap_or(self.current)
    }

    /// Whether the list of a rung begins no later than what comes next. What a live list does not have any more, no rung has.
    fn is_within_list(&self, rung: usize) -> bool {
        let first = self.rungs[rung].segments.as_ref().and_then(Segments::first);
        first.is_some_and(|first| first.start <= self.next)
    }
}
