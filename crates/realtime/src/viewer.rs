//! The viewer's side: frames as they arrive, held until their time, and what became of each. Pure.

use std::collections::{BTreeMap, VecDeque};

use suiro_units::{BitRate, Duration, Time};
use suiro_viewer::{Fate, Frame, Outcome, Parts, Playout, Policy, Refused};

/// Details of frames that the playout does not keep, until it is known what happens to them.
const KNOWN_MAX: usize = 8192;

/// A frame that a transport has put together, as far as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// The source frame's number: its place in the order of display.
    pub number: u64,
    /// When it was captured, on any clock that runs as fast as the viewer's.
    pub captured: Time,
    /// When the last of its bytes came that it has.
    pub received: Time,
    /// The frame without which it cannot be decoded; `None` for a key frame.
    pub references: Option<u64>,
    /// What of it arrived.
    pub parts: Parts,
    /// When it was captured, in nanoseconds since 1970 by the sender's wall clock; `None` if that is not
    /// known.
    pub captured_unix_ns: Option<u64>,
    /// When the first of it left, by the same clock; `None` if that is not known.
    pub sent_unix_ns: Option<u64>,
    /// The bit rate of its version, track or encoder; `None` if that is not known.
    pub rate: Option<BitRate>,
    /// Its bytes, as far as they came.
    pub data: Vec<u8>,
}

/// What became of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its fate. Its times are those of the viewer, and its number that of the source; but the capture
    /// time counts from anywhere.
    pub outcome: Outcome,
    /// When it was captured, in nanoseconds since 1970 by the sender's wall clock; `None` if that is not
    /// known, as before a first report.
    pub captured_unix_ns: Option<u64>,
    /// When the first of it left, by the same clock; `None` if its sender does not report it.
    pub sent_unix_ns: Option<u64>,
    /// The bit rate of its version or encoder; `None` if its sender does not report it.
    pub rate: Option<BitRate>,
    /// Its bytes, as far as they came; `None` if nothing of it came.
    pub data: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Known {
    received: Time,
    captured_unix_ns: Option<u64>,
    sent_unix_ns: Option<u64>,
    rate: Option<BitRate>,
    data: Vec<u8>,
}

/// A viewer of one stream: its playout, and what is known of each frame next to.
///
/// Call [`Self::advance`] at [`Self::next_event`] and after each arrival, then fetch what was decided
/// with [`Self::take_seen`].
#[derive(Debug)]
pub struct Viewer {
    playout: Playout,
    known: BTreeMap<u64, Known>,
    seen: VecDeque<Seen>,
    /// From when to when the process did not run, since the last [`Self::advance`].
    absences: Vec<(Time, Time)>,
}

impl Viewer {
    /// A viewer that has seen nothing. The policy must be valid ([`Policy::validate`]).
    pub fn new(policy: Policy) -> Self {
        let playout = Playout::new(policy);
        Self { playout, known: BTreeMap::new(), seen: VecDeque::new(), absences: Vec::new() }
    }

    /// A frame arrives, whole or with parts that will not come any more.
    ///
    /// # Errors
    /// [`Refused`]: it changes nothing.
    pub fn on_frame(&mut self, now: Time, delivered: Delivered) -> Result<(), Refused> {
        let Delivered { number, captured, references, parts, .. } = delivered;
        self.playout.on_frame(now, Frame { number, captured, references, parts })?;
        let Delivered { received, captured_unix_ns, sent_unix_ns, rate, data, .. } = delivered;
        self.known.insert(number, Known { received, captured_unix_ns, sent_unix_ns, rate, data });
        if self.known.len() > KNOWN_MAX {
            self.known.pop_first();
        }
        Ok(())
    }

    /// The process did not run between these times, so it showed the same frame all the time: of the frames that were
    /// due meanwhile, the last is shown at the end and the others are skipped. To be called before [`Self::advance`] is
    /// called with the end, or later.
    pub fn on_absence(&mut self, from: Time, to: Time) {
        self.absences.push((from, to));
    }

    /// Decides what is due by `now`.
    pub fn advance(&mut self, now: Time) {
        let earlier = self.seen.len();
        while let Some(mut outcome) = self.playout.poll(now) {
            let known = self.known.remove(&outcome.frame);
            let seen = match known {
                Some(Known { received, captured_unix_ns, sent_unix_ns, rate, data }) => {
                    // The playout counts from when the rest was given up.
                    outcome.received = outcome.received.map(|at| at.min(received));
                    Seen { outcome, captured_unix_ns, sent_unix_ns, rate, data: Some(data) }
                }
                None => Seen {
                    outcome,
                    captured_unix_ns: None,
                    sent_unix_ns: None,
                    rate: None,
                    data: None,
                },
            };
            self.seen.push_back(seen);
        }
        for (from, to) in std::mem::take(&mut self.absences) {
            stand_still(self.seen.range_mut(earlier..).map(|seen| &mut seen.outcome), from, to);
        }
    }

    /// What became of the next frame, in the order of frames.
    pub fn take_seen(&mut self) -> Option<Seen> {
        self.seen.pop_front()
    }

    /// When to call [`Self::advance`] next; `None`: nothing happens without another arrival.
    pub fn next_event(&self) -> Option<Time> {
        self.playout.next_event()
    }

    /// When a frame is due that was captured then, as [`Playout::due`] says.
    pub fn due(&self, now: Time, captured: Time) -> Option<Time> {
        self.playout.due(now, captured)
    }

    /// Since when frames could not be decoded because one that others need was given up; `None` while
    /// all is well. The endpoint asks its sender for a key frame.
    pub fn broken_since(&self) -> Option<Time> {
        self.playout.broken_since()
    }

    /// For how long frames are held now, beyond what the fastest recent one took; `None` before the
    /// first.
    pub fn buffer(&self) -> Option<Duration> {
        self.playout.buffer()
    }

    /// Ends the viewing: everything still held has its fate, which [`Self::take_seen`] hands out.
    pub fn finish(&mut self, now: Time) {
        self.advance(now);
        self.playout.finish(now);
        self.advance(now);
    }
}

/// Of the frames that were due while the viewer did not run, the last is shown at the end.
fn stand_still<'a>(outcomes: impl Iterator<Item = &'a mut Outcome>, from: Time, to: Time) {
    let mut last = None;
    for outcome in outcomes.filter(|outcome| from < outcome.at && outcome.at < to) {
        outcome.at = to;
        if outcome.fate == Fate::Displayed {
            outcome.fate = Fate::Skipped;
            last = Some(outcome);
        }
    }
    if let Some(outcome) = last {
        outcome.fate = Fate::Displayed;
    }
}

#[cfg(test)]
mod tests {
    use suiro_viewer::Buffer;

    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn delivered(number: u64) -> Delivered {
        Delivered {
            number,
            captured: ms(40 * number),
            received: ms(40 * number + 20),
            references: number.checked_sub(1),
            parts: Parts::All,
            captured_unix_ns: Some(1_000_000 + number),
            sent_unix_ns: Some(2_000_000 + number),
            rate: Some(BitRate::from_kbps(500)),
            data: vec![number as u8; 3],
        }
    }

    fn viewer() -> Viewer {
        Viewer::new(Policy {
            buffer: Buffer::Fixed(Duration::from_millis(50)),
            wait: Duration::ZERO,
            ..Policy::default()
        })
    }

    #[test]
    fn what_is_known_of_a_frame_comes_with_its_fate() {
        let mut viewer = viewer();
        viewer.on_frame(ms(20), delivered(0)).unwrap();
        assert_eq!((viewer.take_seen(), viewer.next_event()), (None, Some(ms(70))));
        viewer.advance(ms(70));
        let seen = viewer.take_seen().unwrap();
        assert_eq!(seen.outcome.displayed(), Some(ms(70)));
        assert_eq!((seen.captured_unix_ns, seen.sent_unix_ns), (Some(1_000_000), Some(2_000_000)));
        assert_eq!((seen.rate, seen.data), (Some(BitRate::from_kbps(500)), Some(vec![0; 3])));
    }

    #[test]
    fn a_lost_frame_has_a_fate_and_no_data_and_a_key_frame_is_needed() {
        let mut viewer = viewer();
        for number in [0, 2] {
            viewer.on_frame(ms(40 * number + 20), delivered(number)).unwrap();
        }
        assert_eq!(viewer.buffer(), Some(Duration::from_millis(50)));
        viewer.finish(ms(1000));
        let seen: Vec<Seen> = std::iter::from_fn(|| viewer.take_seen()).collect();
        let fates: Vec<Fate> = seen.iter().map(|seen| seen.outcome.fate).collect();
        assert_eq!(fates, [Fate::Displayed, Fate::Missing, Fate::Undecodable]);
        assert_eq!((&seen[1].data, &seen[2].data), (&None, &Some(vec![2; 3])));
        assert!(viewer.broken_since().is_some());
    }

    #[test]
    fn a_frame_that_is_refused_changes_nothing() {
        let mut viewer = viewer();
        viewer.on_frame(ms(20), delivered(0)).unwrap();
        let again = Delivered { data: vec![9; 9], ..delivered(0) };
        assert_eq!(viewer.on_frame(ms(21), again), Err(Refused::Duplicate(0)));
        viewer.finish(ms(1000));
        assert_eq!(viewer.take_seen().unwrap().data, Some(vec![0; 3]));
        assert_eq!(viewer.take_seen(), None);
    }

    #[test]
    fn a_viewer_that_was_not_there_shows_no_smooth_picture() {
        let mut viewer = viewer();
        for number in 0..4 {
            viewer.on_frame(ms(40 * number + 20), delivered(number)).unwrap();
        }
        viewer.advance(ms(70));
        // Frames 1 to 3 are due at 110, 150 and 190 ms.
        viewer.on_absence(ms(72), ms(172));
        viewer.advance(ms(200));
        let seen: Vec<Seen> = std::iter::from_fn(|| viewer.take_seen()).collect();
        let shown: Vec<_> = seen.iter().map(|seen| seen.outcome.displayed()).collect();
        assert_eq!(shown, [Some(ms(70)), None, Some(ms(172)), Some(ms(190))]);
        assert_eq!(seen[1].outcome.fate, Fate::Skipped);
    }
}
