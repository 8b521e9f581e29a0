//! The part after the one under way, asked for before that one has come. A player that is behind the live edge knows several parts,
//! and would otherwise wait for a round trip at each.
//!
//! The request is sent as long before the end of the part under way as that one waited for its first byte: then the next part comes
//! right behind it, and takes none of its share of the link. Only parts are asked for in which decoding cannot begin: no rung is
//! chosen for them. (A whole segment that is listed is one request anyway: `Parts::next`.) hls.js asks for parts one by one
//! (`doFragPartsLoad` of its `BaseStreamController`), and for whole segments where it is far behind.

use suiro_abr::Playout;
use suiro_units::Time;

use super::super::chunked::Chunk;
use super::super::failure::TOTAL_TIMEOUT;
use super::super::parts::Received;
use super::super::request::{AHEAD, Fetch, Fetched, Progress, Underway, What};
use super::super::watch::Abandoned;
use super::TrackState;
use crate::presentation::{ListedPart, Resource};

/// Why a part that was asked for ahead is given up, unless a seek passed over it.
pub(super) const NOT_COME: &str = "the part before it did not come";

/// A part that was asked for ahead.
#[derive(Debug)]
pub(crate) struct Ahead {
    pub request: Underway,
    /// What has come of it.
    pub chunks: Vec<Chunk>,
    /// What came of it, if it is over before the part before it.
    pub fetched: Option<Fetched>,
}

impl Ahead {
    pub(super) fn new(fetch: Fetch) -> Self {
        Self { request: Underway::new(fetch), chunks: Vec::new(), fetched: None }
    }
}

impl Progress {
    /// When to send a request that waits as long for its first byte as this one did, so that its body comes right behind: by the
    /// rate at which this one has come so far. `None` while that is not known.
    fn due(&self, now: Time) -> Option<Time> {
        let (requested, first_byte, length) = (self.requested?, self.first_byte?, self.length?);
        let came = self.has_rate().then(|| self.bytes - self.first_bytes)?;
        let waited = first_byte.saturating_since(requested).saturating_sub(self.handshake);
        let left = length.saturating_sub(self.bytes) as f64 / came as f64;
        let rest = now.saturating_since(first_byte).mul_f64(left).min(TOTAL_TIMEOUT);
        Some(now + rest.saturating_sub(waited))
    }
}

impl TrackState {
    /// The part after the one under way, if it is listed and of the same segment; and when to ask for it.
    pub(crate) fn next_ahead(
        &self,
        now: Time,
        playout: &Playout,
    ) -> Option<(Time, What, Resource)> {
        let Underway { fetch, progress } = self.in_flight.as_ref()?;
        // The server holds a part that is hinted at until it is there: that wait says nothing about the next one.
        if self.ahead.is_some() || fetch.attempt > 1 || self.hinted {
            return None;
        }
        let What::Segment { kind, rate, segment, generation } = &fetch.what else { return None };
        let rung = self.rungs.iter().find(|rung| rung.rate == *rate)?;
        let mut parts = rung.parts.as_ref()?.listed.iter();
        let this = parts.find(|part| part.segment.media == segment.media)?;
        // Not behind a gap, where decoding cannot go on.
        let follows = |next: &&ListedPart| next.part == this.part + 1 && !next.independent;
        let next = parts.next().filter(follows)?.segment.clone();
        if next.number != segment.number || next.init != segment.init {
            return None;
        }
        let room = playout.time_of_room(self.index, next.end())?;
        let (at, resource) = (progress.due(now)?.max(room), next.media.clone());
        let (kind, rate, generation) = (*kind, *rate, *generation);
        Some((at, What::Segment { kind, rate, segment: next, generation }, resource))
    }

    /// The lane for it: that of the two which is free.
    pub(crate) fn other_lane(&self) -> usize {
        let own = self.index + 1;
        let is_own = |request: &Underway| request.fetch.lane == own;
        if self.in_flight.as_ref().is_some_and(is_own) { self.index + AHEAD } else { own }
    }

    /// Whether the request of this number was made ahead, and the part before it has not come.
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
    pub(crate) fn promote(&mut self) -> Option<Ahead> {
        let ahead = self.ahead.take()?;
        let What::Segment { segment, .. } = &ahead.request.fetch.what else { return None };
        if segment.start.abs_diff(self.next) >= segment.duration / 4 {
            self.pass(ahead, NOT_COME);
            return None;
        }
        self.received = Received::default();
        self.hinted = false;
        self.choice = Some(self.current);
        self.in_flight = Some(ahead.request.clone());
        Some(ahead)
    }

    /// Gives up the part that was asked for ahead, for this reason.
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
