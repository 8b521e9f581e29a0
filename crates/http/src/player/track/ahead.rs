//! Requests ahead: for the next part, or the next segment in chunks, while the one under way is still coming. Without them, a
//! player that is behind the live edge would wait for a round trip at each. And if the last packet of a segment is lost, the
//! acknowledgements of the next segment's packets show that. Without these a timer does, which waits for two round trips and the
//! longest delay of an acknowledgement (RFC 8985 §7.2, RFC 9002 §6.2). A part that is only hinted at is sent when it
//! exists (draft-pantos-hls-rfc8216bis §6.2.6).
//!
//! It is less urgent than what is under way, or equally urgent and later (`told.rs`), so a server that heeds RFC 9218 sends it
//! behind that, and it takes none of its share of the link. There is one at a time, of the same rung. Where decoding can begin,
//! the rung is chosen when it is asked for, early by what is still to come. If that is another rung, nothing is asked for
//! ahead, and the choice stands.
//!
//! The hls.js player asks for parts one by one (`doFragPartsLoad` of its `BaseStreamController`), and for whole segments where it
//! is far behind. Segments of dash.js come one by one.

use suiro_units::{Duration, Time};

use super::super::chunked::Chunk;
use super::super::request::{AHEAD, Fetched, Underway, What};
use super::super::watch::Abandoned;
use super::{Situation, TrackState};
use crate::presentation::{Resource, Segment, Segments, TrackKind};

/// Why what was asked for ahead is given up, unless a seek passed over it.
pub(super) const NOT_COME: &str = "what comes before it did not come";

/// A part or segment that was asked for ahead.
#[derive(Debug)]
pub(crate) struct Ahead {
    pub request: Underway,
    /// What has come of it.
    pub chunks: Vec<Chunk>,
    /// What came of it, if it is over before what comes before it.
    pub fetched: Option<Fetched>,
    /// Whether it was hinted at, and not listed, when it was asked for.
    hinted: bool,
}

impl Ahead {
    pub(super) fn new(request: Underway, hinted: bool) -> Self {
        Self { request, chunks: Vec::new(), fetched: None, hinted }
    }

    /// Media time at which it ends.
    pub(super) fn end(&self) -> Option<Duration> {
        match &self.request.fetch.what {
            What::Segment { segment, .. } => Some(segment.end()),
            _ => None,
        }
    }
}

impl TrackState {
    /// The next request ahead, if the rung stays the same; and when it can be made: there is room for the answer, and it exists.
    pub(crate) fn next_ahead(&mut self, situation: &Situation) -> Option<(Time, What, Resource)> {
        let playout = situation.playout?;
        let (rung, segment) = self.behind()?;
        let room = playout.time_of_room(self.index, segment.end())?;
        let at = room.max(self.not_before).max(self.there(&segment, situation));
        if at <= situation.now && !self.is_inside(rung, &segment) {
            if self.following.is_none() {
                self.following = self.choose(situation.now, playout);
            }
            self.following.filter(|following| *following == rung)?;
        }
        let (kind, rate, generation) = (self.kind, self.rungs[rung].rate, self.generation);
        let resource = segment.media.clone();
        Some((at, What::Segment { kind, rate, segment, generation }, resource))
    }

    /// The part or segment behind the one under way, in the list of the same rung; and that rung.
    fn behind(&self) -> Option<(usize, Segment)> {
        let Underway { fetch, .. } = self.in_flight.as_ref()?;
        if self.ahead.is_some() || fetch.attempt > 1 {
            return None;
        }
        let What::Segment { rate, segment, generation, .. } = &fetch.what else { return None };
        let rung = self.rungs.iter().position(|rung| rung.rate == *rate)?;
        let state = &self.rungs[rung];
        let segments = state.segments.as_ref()?;
        let (this, next) = match &state.parts {
            Some(parts) => {
                let mut all = parts.listed.iter().chain(&parts.hint);
                let this = &all.find(|part| part.segment.media == segment.media)?.segment;
                (this, parts.next(this.end(), segments.following(this.end()))?)
            }
            None => (segment, self.behind_segment(segments, segment)?),
        };
        // Not behind a gap, where decoding cannot go on.
        let is_next = next.start.abs_diff(this.end()) < next.duration / 4;
        let is_same = next.init == this.init && *generation == self.generation;
        (is_next && is_same && !self.is_refused(rung, &next)).then_some((rung, next))
    }

    /// The segment after the one under way, of video in chunks, once that has begun to come and shows what the network carries.
    /// Sound comes in its turn: a whole segment of it that is less urgent would wait for the segment of video that is under way,
    /// and each is a small part of the bytes.
    fn behind_segment(&self, segments: &Segments, segment: &Segment) -> Option<Segment> {
        let is_meant = self.kind == TrackKind::Video && segments.in_chunks();
        let has_begun = self.received.end.is_some();
        segments.following(segment.end()).filter(|_| is_meant && has_begun)
    }

    /// The lane for it: that of the two which is free.
    pub(crate) fn other_lane(&self) -> usize {
        let own = self.index + 1;
        let is_own = |request: &Underway| request.fetch.lane == own;
        if self.in_flight.as_ref().is_some_and(is_own) { self.index + AHEAD } else { own }
    }

    /// Whether the request of this number was made ahead, and what comes before it has not come.
    pub(crate) fn is_ahead(&self, number: u64) -> bool {
        self.ahead.as_ref().is_some_and(|ahead| ahead.request.fetch.number == number)
    }

    /// Keeps a chunk of what was asked for ahead; false if it is of another request.
    pub(crate) fn keep_chunk(&mut self, number: u64, chunk: &Chunk) -> bool {
        let ahead = self.ahead.as_mut().filter(|ahead| ahead.request.fetch.number == number);
        let Some(ahead) = ahead else { return false };
        ahead.chunks.push(*chunk);
        true
    }

    /// Keeps what came of a request that was made ahead; returns that of another.
    pub(crate) fn keep_fetched(&mut self, number: u64, fetched: Fetched) -> Option<Fetched> {
        // What is over cannot be cancelled any more, also if a seek has just passed over it.
        self.passed.retain(|passed| passed.request.fetch.number != number);
        let ahead = self.ahead.as_mut().filter(|ahead| ahead.request.fetch.number == number);
        let Some(ahead) = ahead else { return Some(fetched) };
        ahead.fetched = Some(fetched);
        None
    }

    /// The request under way is over: that which was made ahead takes its place, if it is for what comes next.
    pub(crate) fn promote(&mut self, now: Time) -> Option<Ahead> {
        let ahead = self.ahead.take()?;
        let What::Segment { segment, .. } = &ahead.request.fetch.what else { return None };
        if segment.start.abs_diff(self.next) >= segment.duration / 4 {
            self.pass(ahead, NOT_COME);
            return None;
        }
        // A request ahead that failed may have been too early: the next try is made in its turn.
        let refused = |fetched: &Fetched| fetched.body.is_err() && fetched.retry_after.is_none();
        if !ahead.hinted && ahead.fetched.as_ref().is_some_and(refused) {
            return None;
        }
        if let Some(controller) = &mut self.controller {
            controller.on_request();
        }
        self.choice = Some(self.current);
        self.put_under_way(now, ahead.request.clone(), ahead.hinted);
        Some(ahead)
    }

    /// Gives up what was asked for ahead, for this reason.
    pub(super) fn drop_ahead(&mut self, reason: &str) {
        if let Some(ahead) = self.ahead.take() {
            self.pass(ahead, reason);
        }
    }

    fn pass(&mut self, ahead: Ahead, reason: &str) {
        if ahead.fetched.is_none() {
            self.passed.push(Abandoned { request: ahead.request, reason: reason.to_owned() });
        }
    }

    /// The requests that are under way.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &Underway> {
        let ahead = self.ahead.iter().filter(|ahead| ahead.fetched.is_none());
        let ahead = ahead.map(|ahead| &ahead.request);
        self.in_flight.iter().chain(&self.reload).chain(ahead)
    }

    /// The same, and one that was made ahead and is over.
    pub(crate) fn requests_mut(&mut self) -> impl Iterator<Item = &mut Underway> {
        let ahead = self.ahead.iter_mut().map(|ahead| &mut ahead.request);
        self.in_flight.iter_mut().chain(&mut self.reload).chain(ahead)
    }
}
