//! What became of the frames that a browser received: objects that came, and frames that were shown, joined by the
//! times in the objects. Pure.

use std::collections::BTreeMap;

use suiro_realtime::Seen;
use suiro_units::{BitRate, Duration, Time};
use suiro_viewer::{Fate, Outcome};

use super::report::{Object, ShownReport};
use crate::container::{self, Picture};

/// For how long a frame may be shown after one that was captured later: until then, its fate is open.
const OPEN_FOR_US: u64 = 10_000_000;
/// A frame that came this shortly before the last may have been shown after the last report.
const CLOSING: Duration = Duration::from_millis(300);
/// Frames whose fate is open at most; of more, the oldest is decided.
const OPEN_MAX: usize = 8192;

/// A frame whose fate is open.
#[derive(Debug, Default)]
struct Frame {
    came: Option<(Time, Picture)>,
    shown: Option<ShownReport>,
}

/// The frames of one viewer.
#[derive(Debug, Default)]
pub(super) struct Frames {
    open: BTreeMap<u64, Frame>,
    newest_shown: Option<u64>,
    /// When the newest object came.
    last: Time,
    /// When the fate of the last frame was decided.
    decided: Time,
    /// The number of the next frame of another make, which has none.
    unnumbered: u64,
    /// Objects that could not be read.
    pub malformed: u64,
    /// Frames that were shown.
    pub seen: u64,
    /// Of these, those whose stamp could not be read.
    pub unread: u64,
}

impl Frames {
    /// An object came.
    pub fn on_object(&mut self, object: &Object) {
        let Ok(picture) = container::read(&object.bytes) else {
            self.malformed += 1;
            return;
        };
        let at = object.at.time();
        self.last = self.last.max(at);
        let frame = self.open.entry(picture.time_us).or_default();
        frame.came.get_or_insert((at, picture));
    }

    /// A frame was shown.
    pub fn on_shown(&mut self, shown: ShownReport) {
        self.seen += 1;
        self.unread += u64::from(shown.frame.is_none());
        self.newest_shown = self.newest_shown.max(Some(shown.time_us));
        self.open.entry(shown.time_us).or_default().shown.get_or_insert(shown);
    }

    /// What became of the frames that are decided by now.
    pub fn take(&mut self) -> Vec<Seen> {
        let newest = self.newest_shown.unwrap_or(0);
        self.decide_before(newest.saturating_sub(OPEN_FOR_US))
    }

    /// What became of all others, at the end.
    pub fn finish(&mut self) -> Vec<Seen> {
        let last = self.last;
        // Of these, the page could report only one half.
        self.open.retain(|_, frame| match (&frame.came, &frame.shown) {
            (Some((at, _)), None) => *at + CLOSING < last,
            (None, _) => false,
            _ => true,
        });
        self.decide_before(u64::MAX)
    }

    fn decide_before(&mut self, before: u64) -> Vec<Seen> {
        let mut seen = Vec::new();
        while let Some((&time_us, _)) = self.open.first_key_value()
            && (time_us < before || self.open.len() > OPEN_MAX)
        {
            let (_, frame) = self.open.pop_first().expect("it was just looked at");
            let was_decoded = frame.shown.is_some() || self.later_is_shown();
            seen.extend(self.decide(time_us, frame, was_decoded));
        }
        seen
    }

    /// Whether a later frame of the same group of pictures was shown: then the ones before it were decoded, for each
    /// refers to the one before.
    fn later_is_shown(&self) -> bool {
        let is_key = |frame: &&Frame| frame.came.as_ref().is_some_and(|(_, picture)| picture.key);
        self.open.values().take_while(|frame| !is_key(frame)).any(|frame| frame.shown.is_some())
    }

    fn decide(&mut self, time_us: u64, frame: Frame, was_decoded: bool) -> Option<Seen> {
        let Frame { came, shown } = frame;
        let (received, picture) = came?;
        let stamp = shown.as_ref().and_then(|shown| shown.frame);
        let mark = picture.mark;
        let number = mark.map(|mark| mark.number).or(stamp).map_or(self.unnumbered, u64::from);
        self.unnumbered = number + 1;
        let captured_unix_ns = match (mark, shown.as_ref().and_then(|it| it.captured_unix_ms)) {
            (Some(_), _) => Some(time_us.saturating_mul(1000)),
            (None, stamped) => stamped.map(|ms| ms.saturating_mul(1_000_000)),
        };
        let waited = mark.and_then(|mark| mark.waited());
        let at = shown.as_ref().map(|shown| shown.shown_ms.time());
        self.decided = at.unwrap_or(received).max(self.decided);
        let fate = match (&shown, was_decoded) {
            (Some(_), _) => Fate::Displayed,
            (None, true) => Fate::Skipped,
            (None, false) => Fate::Undecodable,
        };
        Some(Seen {
            outcome: Outcome {
                frame: number,
                captured: Some(Time::from_nanos(time_us.saturating_mul(1000))),
                received: Some(received),
                fate,
                at: at.unwrap_or(self.decided),
                damaged: false,
            },
            captured_unix_ns,
            sent_unix_ns: captured_unix_ns
                .zip(waited)
                .and_then(|(at, waited)| at.checked_add(waited.as_nanos())),
            rate: mark.map(|mark| BitRate::from_bps(mark.rate_bps.into())),
            data: Some(picture.data),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suiro_browser::Ms;

    const EPOCH_US: u64 = 1_800_000_000_000_000;

    fn ms(ms: f64) -> Ms {
        Ms::try_from(ms).unwrap()
    }

    fn time_us(n: u64) -> u64 {
        EPOCH_US + n * 1_000_000 / 30
    }

    /// Frame `1000 + n` of 30 frames a second, received 50 ms after it was captured.
    fn came(n: u64, key: bool) -> Object {
        let references = (!key).then_some(999 + n);
        let mark = container::mark(1000 + n, references, BitRate::from_kbps(450));
        let mark = mark.leaving(Time::from_secs(1) + Duration::from_millis(4), Time::from_secs(1));
        let data = [0, 0, 1, if key { 0x65 } else { 0x41 }, n as u8];
        let bytes = container::write(time_us(n), mark, &data);
        Object { at: ms(n as f64 * 1e3 / 30.0 + 50.0), bytes }
    }

    /// It was shown 100 ms after it was captured.
    fn shown(n: u64) -> ShownReport {
        let shown_ms = ms(n as f64 * 1e3 / 30.0 + 100.0);
        let (frame, captured_unix_ms) = (Some(1000 + n as u32), Some(time_us(n) / 1000));
        ShownReport { time_us: time_us(n), shown_ms, frame, captured_unix_ms }
    }

    #[test]
    fn frames_have_the_numbers_and_times_of_their_marks() {
        let mut frames = Frames::default();
        let is_shown = |n: u64| n % 7 != 3 || n > 385;
        (0..400).for_each(|n| frames.on_object(&came(n, n == 0)));
        (0..400).filter(|n| is_shown(*n)).for_each(|n| frames.on_shown(shown(n)));
        let decided = frames.take();
        assert_eq!(decided.len(), 399 - 300, "10 s are open");
        let all: Vec<Seen> = decided.into_iter().chain(frames.finish()).collect();
        assert_eq!(all.len(), 400);
        for (n, seen) in (0..).zip(&all) {
            assert_eq!(seen.outcome.frame, 1000 + n);
            let expected = if is_shown(n) { Fate::Displayed } else { Fate::Skipped };
            assert_eq!(seen.outcome.fate, expected, "{n}");
            assert_eq!(seen.captured_unix_ns, Some(time_us(n) * 1000));
            assert_eq!(seen.sent_unix_ns, Some(time_us(n) * 1000 + 4_000_000));
            assert_eq!(seen.data.as_ref().unwrap()[4], n as u8);
        }
        assert_eq!((frames.seen, frames.unread, frames.malformed), (400 - 55, 0, 0));
    }

    #[test]
    fn only_frames_that_later_ones_need_are_known_to_be_decoded() {
        let mut frames = Frames::default();
        (0..4).for_each(|n| frames.on_object(&came(20 * n, n == 0 || n == 2)));
        frames.on_object(&Object { at: ms(1.0), bytes: vec![0xc0] });
        frames.on_shown(shown(0));
        frames.on_shown(shown(60));
        // Of this one, the other half would be in the next report.
        frames.on_shown(shown(61));
        let fates: Vec<Fate> = frames.finish().iter().map(|seen| seen.outcome.fate).collect();
        assert_eq!(fates, [Fate::Displayed, Fate::Undecodable, Fate::Skipped, Fate::Displayed]);
        assert_eq!(frames.malformed, 1);
    }
}
