//! What became of the frames that a browser received: coded frames on their way to its decoder, and frames that were
//! shown, joined by their RTP timestamps. Pure.

use std::collections::BTreeMap;

use suiro_payload::Numbering;
use suiro_payload::sequence::Timestamps;
use suiro_realtime::Seen;
use suiro_units::{Duration, Time};
use suiro_viewer::{Fate, Outcome};

use super::report::{Coded, ShownReport};

/// Ticks of the RTP clock in a second.
const CLOCK: u64 = 90_000;
/// For how long a frame may be shown after one that was captured later: until then, its fate is open.
const OPEN_FOR: u64 = 2 * CLOCK;
/// A frame that came this shortly before the last report may have been shown after it.
const CLOSING: Duration = Duration::from_millis(300);
/// Frames whose fate is open at most; of more, the oldest is decided.
const OPEN_MAX: usize = 8192;

/// A frame whose fate is open.
#[derive(Debug, Default)]
struct Frame {
    coded: Option<Coded>,
    shown: Option<ShownReport>,
}

/// The frames of one viewer.
#[derive(Debug, Default)]
pub(super) struct Frames {
    timestamps: Timestamps,
    numbering: Numbering,
    open: BTreeMap<u64, Frame>,
    newest_shown: Option<u64>,
    /// The newest frame on its way to the decoder, and when the newest came.
    newest_coded: Option<(u64, Time)>,
    /// A timestamp and its capture time in nanoseconds since 1970.
    captured: Option<(u64, u64)>,
    /// When the fate of the last frame was decided.
    decided: Time,
    /// Frames that were shown and whose stamp could not be read.
    pub unread: u64,
    /// Frames that the page saw.
    pub seen: u64,
    /// Frames that were presented, by the last report.
    pub presented: u64,
}

impl Frames {
    /// A coded frame came.
    pub fn on_coded(&mut self, coded: Coded) {
        let timestamp = self.timestamps.take(coded.rtp);
        let at = coded.at.time();
        self.newest_coded = self.newest_coded.max(Some((timestamp, at)));
        self.open.entry(timestamp).or_default().coded.get_or_insert(coded);
    }

    /// A frame was shown.
    pub fn on_shown(&mut self, shown: ShownReport) {
        self.seen += 1;
        self.presented = shown.presented;
        self.unread += u64::from(shown.frame.is_none());
        let timestamp = self.timestamps.take(shown.rtp);
        self.newest_shown = self.newest_shown.max(Some(timestamp));
        self.open.entry(timestamp).or_default().shown.get_or_insert(shown);
    }

    /// What became of the frames that are decided by now.
    pub fn take(&mut self) -> Vec<Seen> {
        self.decide_before(self.newest_shown.map_or(0, |newest| newest.saturating_sub(OPEN_FOR)))
    }

    /// What became of all others, at the end. Those of which the page could report only one half are left out.
    pub fn finish(&mut self) -> Vec<Seen> {
        let newest = self.newest_coded;
        self.open.retain(|timestamp, frame| match (&frame.coded, &frame.shown) {
            (Some(coded), None) => newest.is_none_or(|(_, last)| coded.at.time() + CLOSING < last),
            (None, _) => newest.is_some_and(|(newest, _)| *timestamp < newest),
            _ => true,
        });
        self.decide_before(u64::MAX)
    }

    fn decide_before(&mut self, before: u64) -> Vec<Seen> {
        let mut seen = Vec::new();
        while let Some((&timestamp, _)) = self.open.first_key_value()
            && (timestamp < before || self.open.len() > OPEN_MAX)
        {
            let (_, frame) = self.open.pop_first().expect("it was just looked at");
            let was_decoded = frame.shown.is_some() || self.later_is_shown();
            seen.push(self.decide(timestamp, frame, was_decoded));
        }
        seen
    }

    /// Whether a later frame of the same group of pictures was shown: then the ones before it were decoded, for each
    /// refers to the one before.
    fn later_is_shown(&self) -> bool {
        let is_key = |frame: &&Frame| frame.coded.as_ref().is_some_and(|coded| coded.key);
        let group = self.open.values().take_while(|frame| !is_key(frame));
        group.into_iter().any(|frame| frame.shown.is_some())
    }

    fn decide(&mut self, timestamp: u64, frame: Frame, was_decoded: bool) -> Seen {
        let Frame { coded, shown } = frame;
        let stamp = shown.as_ref().and_then(|shown| Some((shown.frame?, shown.captured_unix_ms?)));
        let number = match stamp {
            Some((number, _)) => self.numbering.stamped(timestamp, number.into()),
            None => self.numbering.number(timestamp, None),
        };
        if let Some((_, captured_ms)) = stamp {
            self.captured = Some((timestamp, captured_ms.saturating_mul(1_000_000)));
        }
        let captured_unix_ns = self.captured.and_then(|(at, unix_ns)| {
            let ticks = timestamp.cast_signed() - at.cast_signed();
            unix_ns.checked_add_signed(ticks * 100_000 / 9)
        });
        let received = shown.as_ref().and_then(|shown| shown.received_ms);
        let received = received.or(coded.as_ref().map(|coded| coded.at)).map(|ms| ms.time());
        let at = shown.as_ref().map(|shown| shown.shown_ms.time());
        self.decided = at.or(received).unwrap_or(self.decided).max(self.decided);
        let fate = match (&shown, was_decoded) {
            (Some(_), _) => Fate::Displayed,
            (None, true) => Fate::Skipped,
            (None, false) => Fate::Undecodable,
        };
        Seen {
            outcome: Outcome {
                frame: number,
                captured: Some(Time::ZERO + Duration::from_nanos(timestamp * 100_000 / 9)),
                received,
                fate,
                at: at.unwrap_or(self.decided),
                damaged: false,
            },
            captured_unix_ns,
            sent_unix_ns: None,
            rate: None,
            data: coded.map(|coded| coded.data),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suiro_browser::Ms;

    const EPOCH_MS: u64 = 1_800_000_000_000;

    fn ms(ms: f64) -> Ms {
        Ms::try_from(ms).unwrap()
    }

    /// Frame `n` of 30 frames a second, received 50 ms after it was captured.
    fn coded(n: u32, key: bool) -> Coded {
        let at = ms(f64::from(n) * 1e3 / 30.0 + 50.0);
        Coded { rtp: 4_294_000_000_u32.wrapping_add(3000 * n), at, key, data: vec![n as u8; 5] }
    }

    /// It was shown 100 ms after it was captured; its stamp says that it is frame `1000 + n`.
    fn shown(n: u32, readable: bool) -> ShownReport {
        let captured = f64::from(n) * 1e3 / 30.0;
        ShownReport {
            rtp: coded(n, false).rtp,
            shown_ms: ms(captured + 100.0),
            received_ms: Some(ms(captured + 40.0)),
            frame: readable.then_some(1000 + n),
            captured_unix_ms: readable.then_some(EPOCH_MS + captured as u64),
            presented: u64::from(n) + 1,
        }
    }

    #[test]
    fn frames_are_numbered_by_their_stamps_and_those_between_by_their_times() {
        let mut frames = Frames::default();
        // The RTP timestamps wrap within the stream.
        let is_shown = |n: u32| n % 7 != 3 || n > 385;
        (0..400).for_each(|n| frames.on_coded(coded(n, n == 0)));
        (0..400).filter(|n| is_shown(*n)).for_each(|n| frames.on_shown(shown(n, n % 5 != 4)));
        let decided = frames.take();
        assert_eq!(decided.len(), 399 - 60, "2 s are open");
        let all: Vec<Seen> = decided.into_iter().chain(frames.finish()).collect();
        for (n, seen) in (0..).zip(&all) {
            assert_eq!(seen.outcome.frame, 1000 + n);
            let expected = if is_shown(n as u32) { Fate::Displayed } else { Fate::Skipped };
            assert_eq!(seen.outcome.fate, expected, "{n}");
            let captured = EPOCH_MS * 1_000_000 + n * 1_000_000_000 / 30;
            let off = seen.captured_unix_ns.unwrap().abs_diff(captured);
            assert!(off < 1_100_000, "frame {n} is {off} ns off");
            assert_eq!(seen.data, Some(vec![n as u8; 5]));
        }
        assert_eq!((frames.seen, frames.unread), (400 - 55, 69));
    }

    #[test]
    fn a_browser_that_shows_few_stamps_is_numbered_at_its_own_rate() {
        let mut frames = Frames::default();
        // 15 frames a second, of which the first and the last show their numbers.
        let half = |n: u32, report: ShownReport| ShownReport {
            frame: report.frame.map(|_| 1000 + n),
            ..report
        };
        (0..40).for_each(|n| frames.on_coded(coded(2 * n, n == 0)));
        (0..40).for_each(|n| frames.on_shown(half(n, shown(2 * n, n == 0 || n == 39))));
        let numbers: Vec<u64> =
            frames.take().into_iter().chain(frames.finish()).map(|it| it.outcome.frame).collect();
        assert_eq!(numbers, (1000..1040).collect::<Vec<u64>>());
    }

    #[test]
    fn only_frames_that_later_ones_need_are_known_to_be_decoded() {
        let mut frames = Frames::default();
        (0..4).for_each(|n| frames.on_coded(coded(20 * n, n == 0 || n == 2)));
        frames.on_shown(shown(0, true));
        frames.on_shown(shown(60, true));
        // Of these, the other half would be in the next report.
        frames.on_shown(shown(61, true));
        let fates: Vec<Fate> = frames.finish().iter().map(|seen| seen.outcome.fate).collect();
        let (yes, no) = (Fate::Displayed, Fate::Undecodable);
        assert_eq!(fates, [yes, no, Fate::Skipped, yes]);
    }

    #[test]
    fn what_came_just_before_the_end_is_left_out_and_what_came_earlier_was_not_shown() {
        let mut frames = Frames::default();
        (0..40).for_each(|n| frames.on_coded(coded(n, n == 0)));
        (0..10).for_each(|n| frames.on_shown(shown(n, true)));
        let seen = frames.finish();
        // 40 frames last 1.3 s; the last 300 ms are nine of them.
        let undecodable = seen.iter().filter(|seen| seen.outcome.fate == Fate::Undecodable);
        assert_eq!((seen.len(), undecodable.count()), (30, 20));
    }
}
