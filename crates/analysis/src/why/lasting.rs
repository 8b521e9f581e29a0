//! Effects of real-time video that last: frames that are late throughout, and frames that are smaller than they were.

use suiro_record::tables::WebrtcRow;
use suiro_record::words::{Cause, Effect};

use super::evidence::Rows;
use super::realtime::Stream;
use super::wording::{milliseconds, opening, span};
use super::{Change, Evidence, Explained, Step, since};

/// A conversation suffers from a longer delay, whatever it is for (ITU-T G.114: 400 ms one way).
const CONVERSATION_NS: i64 = 400_000_000;
/// Frames that are smaller for a shorter time are not worth a sentence.
const SMALLER_NS: i64 = 500_000_000;

impl Stream<'_, '_> {
    /// Frames that are late from the first to the last: nine of ten are older than a conversation allows. The cause is what
    /// takes most of that time.
    pub fn constantly_late(&self) -> Option<Explained> {
        let shown = self.player.screen.shown();
        let (first, last) = (shown.first()?, shown.last()?);
        let usual = self.usual.least();
        if usual.age_ns <= CONVERSATION_NS {
            return None;
        }
        let link = self.data.iter().map(|way| way.usual.at(last.0)).fold(0, i64::saturating_add);
        let parts = [
            (Cause::Delay, link),
            (Cause::JitterBuffer, usual.held_ns),
            (Cause::Unknown, since(since(usual.age_ns, link), usual.held_ns)),
        ];
        let (cause, most) = parts.into_iter().max_by_key(|(_, ns)| *ns)?;
        let reason = match cause {
            Cause::Delay => {
                format!("the links take {} of them without any queue", milliseconds(most))
            }
            Cause::JitterBuffer => {
                format!("the jitter buffer holds each for {}", milliseconds(most))
            }
            _ => return None,
        };
        let sentence = format!(
            "frames late throughout, nine of ten by {} or more: {reason}",
            milliseconds(usual.age_ns)
        );
        let evidence = Evidence::of("frames", &self.records.frames, first.1, last.1);
        let own = format!("endpoint={}", self.player.name);
        let frames =
            evidence.map(|it| Step { what: "frames shown".into(), evidence: it.only(own) });
        let delayed = || {
            let (from, to) = (first.0, last.0);
            Rows { rows: self.packets(from, to).collect(), from, to }
        };
        let steps = match cause {
            Cause::Delay => delayed().steps(self.records, |_| reason.clone(), ""),
            _ => Vec::new(),
        };
        Some(Explained {
            subject: self.player.name.to_owned(),
            effect: Effect::Late,
            from_ns: first.0,
            to_ns: last.0,
            shares: vec![(cause, 1.0)],
            chain: frames.into_iter().chain(steps).collect(),
            sentence,
            because: Some(reason),
            change: None,
        })
    }

    /// Stretches in which the encoder was set to smaller frames than before.
    pub fn smaller(&self) -> Vec<Explained> {
        let sized: Vec<&WebrtcRow> = self.webrtc().filter(|row| row.width.is_some()).collect();
        let mut found = Vec::new();
        let (mut full, mut begun): (Option<&WebrtcRow>, Option<&WebrtcRow>) = (None, None);
        for row in &sized {
            let is_smaller = full.is_some_and(|full| row.width < full.width);
            match (is_smaller, begun) {
                (true, None) => begun = Some(row),
                (false, Some(from)) => {
                    found.extend(full.and_then(|full| self.was_smaller(full, from, row)));
                    begun = None;
                }
                _ => {}
            }
            if !is_smaller {
                full = Some(row);
            }
        }
        let last = full.zip(begun).zip(sized.last());
        found.extend(last.and_then(|((full, from), to)| self.was_smaller(full, from, to)));
        found
    }

    fn was_smaller(&self, full: &WebrtcRow, from: &WebrtcRow, to: &WebrtcRow) -> Option<Explained> {
        let (from_ns, to_ns) = (from.t_ns.as_nanos_i64(), to.t_ns.as_nanos_i64());
        if since(to_ns, from_ns) < SMALLER_NS {
            return None;
        }
        let size = |row: &WebrtcRow| Some(format!("{} × {}", row.width?, row.height?));
        let sentence = format!(
            "{}: the encoder was set to frames of {}, {} before",
            opening(Effect::Quality, from_ns, to_ns),
            size(from)?,
            size(full)?
        );
        let evidence = Evidence::of("webrtc", &self.records.webrtc, full, to)?;
        let own = format!("endpoint={},session={}", from.endpoint, from.session);
        let evidence = evidence.only(own);
        let what =
            format!("the encoder was set to smaller frames for {}", span(since(to_ns, from_ns)));
        Some(Explained {
            subject: self.player.name.to_owned(),
            effect: Effect::Quality,
            from_ns,
            to_ns,
            shares: vec![(Cause::EncoderChoice, 1.0)],
            chain: vec![Step { what, evidence }],
            sentence,
            because: None,
            change: self.smallest(full, from, to),
        })
    }

    /// The smallest frames of a stretch, compared with those before it.
    fn smallest(&self, full: &WebrtcRow, from: &WebrtcRow, to: &WebrtcRow) -> Option<Change> {
        let is_own =
            |row: &&WebrtcRow| (&row.endpoint, row.session) == (&from.endpoint, from.session);
        let rows = self.records.webrtc.iter().filter(is_own);
        let during = rows.filter(|row| (from.t_ns..=to.t_ns).contains(&row.t_ns));
        let level = during.filter_map(|row| row.height).min()?;
        Some(Change {
            from: format!("{}p", full.height?),
            to: format!("{level}p"),
            level,
            seen_ns: Some(from.t_ns.as_nanos_i64()),
        })
    }
}
