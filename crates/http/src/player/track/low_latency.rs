//! What a track does at low latency: segments that come chunk by chunk, parts, playlists that the server holds.

use std::sync::Arc;

use suiro_abr::Sample;
use suiro_media::mp4::Init;
use suiro_units::{BitRate, Duration, Time};

use super::super::chunked::Chunk;
use super::super::request::What;
use super::super::watch::Abandoned;
use super::{TrackState, ahead};
use crate::presentation::{Resource, Segment, Segments};
use crate::url::Url;

impl TrackState {
    /// Whether the request of this number is under way here.
    pub(crate) fn is_fetching(&self, number: u64) -> bool {
        self.in_flight.as_ref().is_some_and(|request| request.fetch.number == number)
    }

    /// True if segments come in chunks, or in parts.
    pub(crate) fn is_low_latency(&self) -> bool {
        self.rungs.iter().any(|rung| {
            let in_chunks = rung.segments.as_ref().is_some_and(Segments::in_chunks);
            in_chunks || rung.parts.is_some()
        })
    }

    /// `PART-HOLD-BACK`, and the end of what is there, of the first rung that has parts. It must be at least twice the part
    /// target (draft-pantos-hls-rfc8216bis §4.4.3.8); a player that is nearer waits at each part.
    pub(crate) fn hold_back_and_edge(&self) -> Option<(Option<Duration>, Option<Duration>)> {
        let parts = self.rungs.iter().find_map(|rung| rung.parts.as_ref())?;
        Some((parts.hold_back.map(|back| back.max(parts.target * 2)), parts.edge()))
    }

    /// What the body of a segment is read by, where it comes in chunks.
    pub(crate) fn chunks(&self) -> Option<Arc<Init>> {
        self.inits.parsed().filter(|_| self.is_low_latency())
    }

    /// A chunk of the segment under way has come: its rung, and from when to when it is shown.
    pub(crate) fn on_chunk(&mut self, chunk: &Chunk) -> Option<(BitRate, Duration, Duration)> {
        let request = self.in_flight.as_ref()?;
        let What::Segment { rate, segment, generation, .. } = &request.fetch.what else {
            return None;
        };
        if *generation != self.generation {
            return None;
        }
        let ns = u128::from(chunk.duration) * 1_000_000_000 / u128::from(chunk.timescale);
        let length = Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX / 4));
        // The times of HLS are those of its playlist.
        let list = self.rungs.iter().find_map(|rung| rung.segments.as_ref());
        let list = list.filter(|segments| segments.in_chunks());
        let start = list.and_then(|list| list.time_of(chunk.decode_time, chunk.timescale));
        let size = (chunk.bytes, length.min(segment.duration * 2));
        let (rate, end) = (*rate, self.received.add(segment, start, size));
        self.received.chunks.push(chunk.arrival().whole);
        self.on_media();
        Some((rate, end.saturating_sub(length), end))
    }

    /// How the chunks of the segment under way came.
    pub(crate) fn take_chunks(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.received.chunks)
    }

    /// How long the segment under way is, by the chunks that have come; `None` without any.
    pub(crate) fn length(&self) -> Option<Duration> {
        self.received.end.map(|_| self.received.length)
    }

    /// A request that is to be cancelled.
    pub(crate) fn take_passed(&mut self) -> Option<Abandoned> {
        self.passed.pop()
    }

    /// A seek at low latency: a segment under way that holds the position goes on, another is cancelled.
    pub(crate) fn seek_near(&mut self, now: Time, position: Duration) {
        let segment = self.in_flight.as_ref().and_then(|request| match &request.fetch.what {
            What::Segment { segment, .. } => Some(segment),
            _ => None,
        });
        match segment {
            Some(segment) if segment.end() > position => {
                self.marks.clear();
                return;
            }
            Some(_) => {
                let reason = "what it holds was passed over";
                let passed = self.in_flight.take();
                if passed.as_ref().is_some_and(|request| request.progress.bytes == 0) {
                    self.without_media(now, "nothing came in time");
                }
                let given_up = |request| Abandoned { request, reason: reason.to_owned() };
                self.passed.extend(passed.map(given_up));
                let holds = self.ahead.as_ref().is_some_and(|ahead| ahead.end() > Some(position));
                self.drop_ahead(if holds { ahead::NOT_COME } else { reason });
                self.watch.end();
            }
            None => {}
        }
        self.seek(position);
        self.anywhere = Some(now);
    }

    /// What the last listed segment or part of a rung needs before it, which a delta update does not repeat.
    pub(crate) fn init_of(&self, rung: usize) -> Option<Resource> {
        let state = self.rungs.get(rung)?;
        let part = state.parts.as_ref().and_then(|parts| parts.listed.last());
        let last = state.segments.as_ref().and_then(Segments::last);
        part.and_then(|part| part.segment.init.clone()).or_else(|| last?.init)
    }

    /// Where the segment after that number of a rung is; `None` if it is not known, as that of parts, or only bytes of it are.
    pub(crate) fn after(&self, rate: BitRate, number: u64) -> Option<Url> {
        let rung = self.rungs.iter().find(|rung| rung.rate == rate && rung.parts.is_none())?;
        let next = rung.segments.as_ref()?.by_number(number.checked_add(1)?)?.media;
        next.range.is_none().then_some(next.url)
    }

    /// The request for the next version of the playlist has failed; says why if that goes on.
    pub(crate) fn on_reload_failure(
        &mut self,
        now: Time,
        reason: &str,
        asked: Option<Duration>,
    ) -> Option<String> {
        let kind = self.kind.name();
        self.reloads.fail(now, asked).then(|| format!("a {kind} playlist: {reason}"))
    }

    /// After a start or a seek at low latency: goes back to where decoding can begin.
    pub(super) fn settle(&mut self, rung: usize) {
        if self.anywhere.is_none() || self.is_outdated(rung) {
            return;
        }
        let state = &self.rungs[rung];
        let (Some(segments), parts) = (&state.segments, state.parts.as_ref()) else { return };
        let part = parts.and_then(|parts| parts.independent_before(self.next));
        let segment = segments.at(self.next).map(|segment| segment.start);
        if let Some(start) = part.max(segment.filter(|start| *start <= self.next)) {
            self.next = start;
            self.anywhere = None;
        }
    }

    /// Whether a rung's list is of before the last seek, and ends before what comes next: all of it was passed over.
    fn is_outdated(&self, rung: usize) -> bool {
        let state = &self.rungs[rung];
        let (Some(since), Some(playlist)) = (self.anywhere, &state.playlist) else { return false };
        let ends = state.parts.as_ref().and_then(|parts| Some(parts.edge()? + parts.target));
        !playlist.ended && playlist.fetched < since && ends.is_some_and(|end| end < self.next)
    }

    /// Whether a rung must be chosen before any list has what comes next. Only the list of that rung is fetched then.
    pub(super) fn is_lost(&self, rung: usize) -> bool {
        self.choice.is_none() && self.is_outdated(rung)
    }

    /// Whether the same media may come of another rung instead: not within a segment, where decoding cannot begin.
    pub(super) fn is_replaceable(&self, what: &What) -> bool {
        let rung = self.choice.unwrap_or(self.current);
        !matches!(what, What::Segment { segment, .. } if self.is_inside(rung, segment))
    }

    /// Whether this is a part of a segment that does not begin it.
    pub(super) fn is_inside(&self, rung: usize, segment: &Segment) -> bool {
        let parts = self.rungs[rung].parts.as_ref();
        let part = parts.and_then(|parts| parts.at(segment.start));
        part.is_some_and(|part| part.segment.media == segment.media && !part.independent)
    }

    /// The request for the next version of the playlist, which the server holds until it is there; and when it may be made.
    pub(crate) fn next_reload(&self, now: Time) -> Option<(Time, What, Resource)> {
        if self.reload.is_some() || self.complete {
            return None;
        }
        let rung = self.choice.unwrap_or(self.current);
        let state = &self.rungs[rung];
        let playlist = state.playlist.as_ref().filter(|playlist| !playlist.ended)?;
        let parts = state.parts.as_ref()?;
        // Whoever is behind knows what comes next, and needs the link for it. A list of long ago, as after a change of rung,
        // has nothing of what follows: all of it is fetched.
        let margin = parts.target * 2;
        let is_far = |edge: Duration| edge > self.next + margin || edge + margin < self.next;
        if parts.edge().is_some_and(is_far) {
            return None;
        }
        let skip = parts.can_skip(now.saturating_since(playlist.fetched), self.next);
        let resource = parts.reload(&playlist.url, skip)?;
        Some((self.reloads.again, What::Playlist { rung }, resource))
    }

    /// Whether the next version of a rung's playlist is on its way.
    pub(super) fn is_reloading(&self, rung: usize) -> bool {
        let what = self.reload.as_ref().map(|reload| &reload.fetch.what);
        what == Some(&What::Playlist { rung })
    }
}
