//! The parts of one rung of low-latency HLS: which comes next, and the request for the next version of its playlist.

use suiro_units::{Duration, Time};

use super::request::What;
use super::retry;
use crate::presentation::{ListedPart, Parts, Resource, Segment};
use crate::url::Url;

/// The shortest time between two requests for a playlist, whatever the server holds them for.
const LEAST: Duration = Duration::from_millis(20);

impl Parts {
    /// The part to fetch at media time `next`: one that begins there, forgiving rounding.
    pub(crate) fn at(&self, next: Duration) -> Option<&ListedPart> {
        let all = self.listed.iter().chain(&self.hint);
        let mut all =
            all.filter(|part| part.segment.start.abs_diff(next) < part.segment.duration / 2);
        all.next_back()
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

    /// The request that the server answers when the part is there that it hints at (rfc8216bis §6.2.5.2).
    pub(crate) fn reload(&self, playlist: &Url) -> Option<Resource> {
        let hint = self.hint.as_ref().filter(|_| self.can_block)?;
        let target = playlist.target();
        let joint = if target.contains('?') { '&' } else { '?' };
        let (segment, part) = (hint.segment.number, hint.part);
        let reference = format!("{target}{joint}_HLS_msn={segment}&_HLS_part={part}");
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

    pub fn done(&mut self) {
        self.failed = 0;
    }

    /// A request failed; true if that goes on for too long.
    pub fn fail(&mut self, now: Time) -> bool {
        self.failed += 1;
        self.again = now + retry::delay(self.failed);
        self.failed >= retry::MANIFEST_TRIES
    }
}

/// What of a segment in progress has come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Received {
    /// Media time at which it ends; `None` before the first chunk.
    pub end: Option<Duration>,
}

impl Received {
    /// How much of the segment that was asked for has come in whole chunks.
    pub fn of(&self, what: &What) -> Duration {
        let What::Segment { segment, .. } = what else { return Duration::ZERO };
        self.end.map_or(Duration::ZERO, |end| end.saturating_sub(segment.start))
    }

    /// A chunk of that length came; the first begins at `start`, unless the segment does.
    pub fn add(
        &mut self,
        segment: &Segment,
        start: Option<Duration>,
        length: Duration,
    ) -> Duration {
        let near = |start: &Duration| start.abs_diff(segment.start) < segment.duration / 2;
        let from = self.end.unwrap_or(start.filter(near).unwrap_or(segment.start));
        let end = from + length;
        self.end = Some(end);
        end
    }
}
