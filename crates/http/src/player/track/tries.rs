//! What a track does when a request has failed: when it tries again, what it skips, and when it gives up.

use suiro_units::{Duration, Time};

use super::super::request::What;
use super::super::retry;
use super::{PlaylistState, TrackState};
use crate::presentation::{Resource, Segment};

/// Tries that failed at what is wanted now. Counted apart: that an initialisation segment arrived
/// does not make the segment after it new.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Failed {
    pub playlist: u32,
    pub init: u32,
    segment: u32,
}

impl Failed {
    pub fn next_segment(&mut self) {
        (self.init, self.segment) = (0, 0);
    }

    fn at(&mut self, what: &What) -> &mut u32 {
        match what {
            What::Manifest | What::Clock | What::Playlist { .. } => &mut self.playlist,
            What::Init { .. } => &mut self.init,
            What::Segment { .. } => &mut self.segment,
        }
    }
}

/// A part that was hinted at and is not there.
#[derive(Debug)]
pub(super) struct Refused {
    media: Resource,
    /// When that was known.
    at: Time,
}

/// Media was asked for, and none has come.
#[derive(Debug)]
pub(super) struct Trouble {
    /// When the first request and the last one came to nothing.
    since: Time,
    last: Time,
    /// What went wrong last.
    reason: String,
}

impl Trouble {
    fn is_recent(&self, now: Time) -> bool {
        now.saturating_since(self.last) < retry::BETWEEN_TRIES
    }
}

impl TrackState {
    /// A request for media came to nothing.
    pub(crate) fn without_media(&mut self, now: Time, reason: &str) {
        // If none was made for long, because there was nothing to ask for, that is another trouble.
        let before = self.trouble.take().filter(|it| it.is_recent(now));
        let since = before.map_or(now, |trouble| trouble.since);
        self.trouble = Some(Trouble { since, last: now, reason: reason.to_owned() });
    }

    /// Media has come, played or not.
    pub(crate) fn on_media(&mut self) {
        self.trouble = None;
    }

    /// Why media does not come, with how long that has been so.
    pub(crate) fn trouble(&self, now: Time) -> Option<(Duration, String)> {
        let trouble = self.trouble.as_ref().filter(|it| it.is_recent(now))?;
        let lasts = now.saturating_since(trouble.since);
        Some((lasts, format!("no {} for {lasts}: {}", self.kind.name(), trouble.reason)))
    }

    /// The same, if that is long enough to give up playback.
    pub(crate) fn is_hopeless(&self, now: Time) -> Option<String> {
        self.trouble(now).filter(|(lasts, _)| *lasts >= retry::WITHOUT_MEDIA).map(|(_, why)| why)
    }

    /// Which try at it the next one is, from 1.
    pub(crate) fn attempt(&mut self, what: &What) -> u32 {
        *self.failed.at(what) + 1
    }

    /// A request failed, with this status and wait that the server asks for, if any. Tries again later, at the lowest rung; skips
    /// a segment that is not to be had; says why if that goes on.
    pub(crate) fn on_failure(
        &mut self,
        now: Time,
        what: &What,
        reason: &str,
        (status, asked): (Option<u16>, Option<Duration>),
    ) -> Option<String> {
        if asked.is_none() && self.refuse(now, what, status) {
            return None;
        }
        if let What::Playlist { rung } = what
            && self.goes_without(*rung)
        {
            return None;
        }
        let failed = self.failed.at(what);
        *failed += 1;
        let tried = *failed;
        self.not_before = now + retry::delay(tried, asked);
        // Within a segment another rung cannot follow.
        let in_parts = self.rungs[self.current].parts.is_some();
        self.choice = (!in_parts).then_some(0);
        if let What::Playlist { .. } = what {
            let over = tried >= retry::MANIFEST_TRIES;
            return over.then(|| format!("a {} playlist: {reason}", self.kind.name()));
        }
        self.without_media(now, reason);
        if tried < retry::SEGMENT_TRIES {
            return None;
        }
        self.failed.next_segment();
        self.skipped += 1;
        self.not_before = now;
        self.choice = None;
        if let What::Segment { segment, .. } = what {
            self.next = segment.end();
        }
        let (skipped, kind) = (self.skipped, self.kind.name());
        (skipped >= retry::SKIPS).then(|| format!("{skipped} {kind} segments in a row: {reason}"))
    }

    /// True if a request was for a part that was hinted at and is not there. A server may change its mind about what comes next
    /// (rfc8216bis §4.4.5.3), so its playlist decides, without a wait. Until a part has come, that happens once.
    fn refuse(&mut self, now: Time, what: &What, status: Option<u16>) -> bool {
        let What::Segment { segment, .. } = what else { return false };
        let gone = matches!(status, Some(404 | 410 | 416));
        if !gone || !self.hinted || self.refused.is_some() {
            return false;
        }
        self.refused = Some(Refused { media: segment.media.clone(), at: now });
        true
    }

    /// Whether a request is for a part that is hinted at, and not listed.
    pub(super) fn is_hint(&self, what: &What) -> bool {
        let rung = self.choice.unwrap_or(self.current);
        matches!(what, What::Segment { segment, .. } if self.is_hinted(rung, segment))
    }

    fn is_hinted(&self, rung: usize, segment: &Segment) -> bool {
        let hint = self.rungs[rung].parts.as_ref().and_then(|parts| parts.hint.as_ref());
        hint.is_some_and(|hint| hint.segment.media == segment.media)
    }

    /// Whether this part is still hinted at after its request was refused. It is asked for again once it is listed.
    pub(super) fn is_refused(&self, rung: usize, segment: &Segment) -> bool {
        let refused = self.refused.as_ref();
        refused.is_some_and(|part| part.media == segment.media) && self.is_hinted(rung, segment)
    }

    /// Whether a playlist was requested before its hint was refused. Then the next version is fetched at once, without
    /// a wait for news.
    pub(super) fn is_refuted(&self, playlist: &PlaylistState) -> bool {
        self.refused.as_ref().is_some_and(|part| playlist.fetched < part.at)
    }
}
