//! The parts of one rung of low-latency HLS: which comes next, and the request for the next version of its playlist; what
//! has come of segments and initialisation segments.

use std::sync::Arc;

use suiro_abr::Sample;
use suiro_media::mp4::Init;
use suiro_units::{Bytes, Duration, Time};

use super::request::What;
use super::retry;
use crate::presentation::{ListedPart, Parts, RUNGS_MAX, Resource, SKIP_DIRECTIVE, Segment};
use crate::url::Url;

/// The shortest time between two requests for a playlist, whatever the server holds them for.
const LEAST: Duration = Duration::from_millis(20);

impl Parts {
    /// The part to fetch at media time `next`: the one that begins nearest to it, forgiving rounding.
    pub(crate) fn at(&self, next: Duration) -> Option<&ListedPart> {
        let all = self.listed.iter().chain(&self.hint);
        let near = all.filter(|part| part.segment.start.abs_diff(next) < part.segment.duration / 2);
        near.min_by_key(|part| part.segment.start.abs_diff(next))
    }

    /// The segment or part to fetch at media time `next`, where the list of segments has `whole`. It is `whole`, with
    /// one request, if it begins there; else the part that does; else `whole` all the same, if its parts are not listed
    /// any more. In a gap it is what comes after it.
    pub(crate) fn next(&self, next: Duration, whole: Option<Segment>) -> Option<Segment> {
        let near = |segment: &&Segment| {
            // Nearer than its second part, by more than rounding.
            segment.start.abs_diff(next) < (segment.duration / 4).min(self.target / 2)
        };
        if let Some(begins) = whole.as_ref().filter(near) {
            return Some(begins.clone());
        }
        let part = self.at(next).map(|part| part.segment.clone());
        let holds = |segment: &&Segment| segment.start <= next && next < segment.end();
        part.or_else(|| whole.as_ref().filter(holds).cloned()).or_else(|| self.after(next, whole))
    }

    /// The first segment or part after media time `next` with which decoding can begin. A gap that is shorter than half of what
    /// follows it counts as rounding: the last frame before it is shown for as long, which is neither skipped nor a stall.
    fn after(&self, next: Duration, whole: Option<Segment>) -> Option<Segment> {
        let mut all = self.listed.iter().chain(&self.hint);
        let part = all.find(|part| part.independent && part.segment.start > next);
        let whole = whole.filter(|segment| segment.start > next);
        let both = whole.into_iter().chain(part.map(|part| part.segment.clone()));
        both.min_by_key(|segment| segment.start)
    }

    /// Where decoding must begin for media time `position` to be shown: the start of the last independent part before it.
    pub(crate) fn independent_before(&self, position: Duration) -> Option<Duration> {
        let all = self.listed.iter().chain(&self.hint);
        let mut before = all.filter(|part| part.independent && part.segment.start <= position);
        before.next_back().map(|part| part.segment.start)
    }

    /// The end of what is there.
    pub(crate) fn edge(&self) -> Option<Duration> {
        self.listed.last().map(|part| part.segment.end())
    }

    /// True if a delta update will do for a client whose list is this old and that goes on at media time `next`. §6.3.7: a
    /// list may be half as old as the skip boundary. What comes next must not be nearer to the boundary than that either.
    pub(crate) fn can_skip(&self, age: Duration, next: Duration) -> bool {
        let near = |boundary: Duration| {
            let behind = self.edge().map(|edge| edge.saturating_sub(next));
            age <= boundary / 2 && behind.is_some_and(|behind| behind <= boundary / 2)
        };
        self.can_skip.is_some_and(near)
    }

    /// The request that the server answers when the part is there that it hints at (rfc8216bis §6.2.5.2); without old
    /// segments, if so asked.
    pub(crate) fn reload(&self, playlist: &Url, skip: bool) -> Option<Resource> {
        let hint = self.hint.as_ref().filter(|_| self.can_block)?;
        let target = playlist.target();
        let joint = if target.contains('?') { '&' } else { '?' };
        let (segment, part) = (hint.segment.number, hint.part);
        let mut reference = format!("{target}{joint}_HLS_msn={segment}&_HLS_part={part}");
        if skip {
            reference.push('&');
            reference.push_str(SKIP_DIRECTIVE);
        }
        Some(Resource { url: playlist.join(&reference).ok()?, range: None })
    }
}

/// When the playlist of a track may be asked for again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reloads {
    /// Not before.
    pub again: Time,
    failed: u32,
}

impl Reloads {
    /// A request was made at `now`.
    pub fn begin(&mut self, now: Time) {
        self.again = now + LEAST;
    }

    /// A playlist came that was asked for then. Where the server answers at once and has nothing new, it is asked again after
    /// half a part, as §6.3.4 has it for playlists that did not change.
    pub fn came(&mut self, requested: Time, before: Option<Duration>, parts: Option<&Parts>) {
        self.failed = 0;
        if let Some(parts) = parts.filter(|parts| before.is_some() && parts.edge() <= before) {
            self.again = self.again.max(requested + parts.target / 2);
        }
    }

    /// A request failed, and the server may have asked for a wait; true if that goes on for too long.
    pub fn fail(&mut self, now: Time, asked: Option<Duration>) -> bool {
        self.failed += 1;
        self.again = now + retry::delay(self.failed, asked);
        self.failed >= retry::MANIFEST_TRIES
    }
}

/// Initialisation segments that have come, the one in use last.
#[derive(Debug)]
pub(super) struct Inits {
    known: Vec<(Resource, Option<Arc<Init>>)>,
    /// True if those that are not in use are kept: a change back to their rung then waits for no round trip.
    kept: bool,
}

impl Inits {
    pub fn new(kept: bool) -> Self {
        Self { known: Vec::new(), kept }
    }

    /// One has come, and is in use from now on; with what it says, where segments come in chunks.
    pub fn add(&mut self, resource: Resource, parsed: Option<Arc<Init>>) {
        let most = if self.kept { RUNGS_MAX } else { 1 };
        self.known.retain(|(known, _)| *known != resource);
        self.known.push((resource, parsed));
        let over = self.known.len().saturating_sub(most);
        self.known.drain(..over);
    }

    /// Takes one into use; false if it has not come.
    pub fn take(&mut self, resource: &Resource) -> bool {
        let Some(at) = self.known.iter().position(|(known, _)| known == resource) else {
            return false;
        };
        let one = self.known.remove(at);
        self.known.push(one);
        true
    }

    /// What the one in use says.
    pub fn parsed(&self) -> Option<Arc<Init>> {
        self.known.last()?.1.clone()
    }
}

/// What of a segment in progress has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Received {
    /// Media time at which it ends; `None` before the first chunk.
    pub end: Option<Duration>,
    /// How long all chunks are together.
    pub length: Duration,
    /// Size of all chunks together.
    pub bytes: Bytes,
    /// Size and length of the first chunk, which has the key frame.
    pub first: Option<(Bytes, Duration)>,
    /// How its chunks came.
    pub chunks: Vec<Sample>,
}

impl Received {
    /// How much of the segment that was asked for has come in whole chunks.
    pub fn of(&self, what: &What) -> Duration {
        let What::Segment { segment, .. } = what else { return Duration::ZERO };
        self.end.map_or(Duration::ZERO, |end| end.saturating_sub(segment.start))
    }

    /// A chunk of that size and length came; the first begins at `start`, unless the segment does.
    pub fn add(
        &mut self,
        segment: &Segment,
        start: Option<Duration>,
        (bytes, length): (Bytes, Duration),
    ) -> Duration {
        self.first.get_or_insert((bytes, length));
        self.bytes += bytes;
        let near = |start: &Duration| start.abs_diff(segment.start) < segment.duration / 2;
        let from = self.end.unwrap_or(start.filter(near).unwrap_or(segment.start));
        let end = from + length;
        (self.end, self.length) = (Some(end), self.length + length);
        end
    }
}
