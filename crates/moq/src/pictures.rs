//! The frames that a viewer plays: their numbers, and what each refers to. Pure.

use suiro_payload::{Base, FrameMark};
use suiro_realtime::{Delivered, Viewer};
use suiro_units::{BitRate, Time};
use suiro_viewer::{Parts, Policy};

use crate::container::Picture;

/// Where an object was: the track of a quality, and the number of its group there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub quality: usize,
    pub group: u64,
}

/// The frames of one broadcast, on their way to the viewer's playback.
pub(crate) struct Pictures {
    /// The playback.
    pub playing: Viewer,
    /// The number of the next frame, of publishers that do not number their frames.
    unnumbered: u64,
    /// Where the newest key frame of such a publisher was.
    keyed: Option<Place>,
    /// Frames that changed nothing: they came twice, or after they had been given up.
    pub refused: u64,
}

impl Pictures {
    /// Nothing has come yet.
    pub fn new(policy: Policy) -> Self {
        Self { playing: Viewer::new(policy), unnumbered: 0, keyed: None, refused: 0 }
    }

    /// A frame has come.
    pub fn on_picture(&mut self, at: Time, place: Place, picture: Picture) {
        let delivered = self.delivered(at, place, picture);
        let is_taken = delivered.is_some_and(|frame| self.playing.on_frame(at, frame).is_ok());
        self.refused += u64::from(!is_taken);
    }

    /// The frame in the form that the playback takes; `None` if it is not known which frame it refers to.
    fn delivered(&mut self, at: Time, place: Place, picture: Picture) -> Option<Delivered> {
        let mark = picture.mark;
        let base = mark.map(FrameMark::base);
        if base == Some(None) {
            return None;
        }
        if mark.is_none() {
            let is_left =
                |keyed: Place| keyed.quality == place.quality && place.group < keyed.group;
            // Groups are received concurrently. What is left of one behind the key frame of a newer one has lost its place.
            if self.keyed.is_some_and(is_left) {
                return None;
            }
            if picture.key {
                self.keyed = Some(place);
            }
        }
        let number = mark.map_or(self.unnumbered, |mark| mark.number.into());
        let last = self.unnumbered.checked_sub(1).filter(|last| *last < number);
        self.unnumbered = number + 1;
        let references = match base.flatten() {
            Some(Base::Nothing) => None,
            Some(Base::Frame(other)) => Some(other),
            Some(Base::Before) => last.or(number.checked_sub(1)),
            None if picture.key => None,
            None => number.checked_sub(1),
        };
        let captured_unix_ns = mark.map(|_| picture.time_us.saturating_mul(1000));
        let waited = mark.and_then(|mark| mark.waited());
        Some(Delivered {
            number,
            captured: Time::from_nanos(picture.time_us.saturating_mul(1000)),
            received: at,
            references,
            parts: Parts::All,
            captured_unix_ns,
            sent_unix_ns: captured_unix_ns
                .zip(waited)
                .and_then(|(at, waited)| at.checked_add(waited.as_nanos())),
            rate: mark.map(|mark| BitRate::from_bps(mark.rate_bps.into())),
            data: picture.data,
        })
    }
}

#[cfg(test)]
mod tests {
    use suiro_realtime::Seen;
    use suiro_units::Duration;
    use suiro_viewer::{Buffer, Fate};

    use super::*;
    use crate::container::mark;

    fn pictures() -> Pictures {
        let buffer = Buffer::Fixed(Duration::from_millis(20));
        Pictures::new(Policy { buffer, wait: Duration::ZERO, ..Policy::default() })
    }

    /// What became of the frames, and the first byte of each.
    fn fates(mut pictures: Pictures) -> Vec<(Fate, Option<u8>)> {
        pictures.playing.finish(Time::from_secs(10));
        pictures.playing.advance(Time::from_secs(10));
        let seen = std::iter::from_fn(|| pictures.playing.take_seen());
        let fate = |seen: Seen| (seen.outcome.fate, seen.data.map(|data| data[0]));
        seen.map(fate).collect()
    }

    #[test]
    fn frames_of_a_group_that_was_left_are_not_mixed_with_those_of_the_next() {
        let mut pictures = pictures();
        // The third frame of the first group comes when the second one has begun.
        let objects = [(true, 1), (false, 1), (true, 2), (false, 1), (false, 2)];
        for (n, (key, group)) in (0..).zip(objects) {
            let time_us = 1_000_000 + 40_000 * n;
            let at = Time::from_nanos(time_us * 1000);
            let picture = Picture { time_us, mark: None, key, data: vec![n as u8] };
            pictures.on_picture(at, Place { quality: 0, group }, picture);
            pictures.playing.advance(at);
        }
        assert_eq!(pictures.refused, 1);
        let shown = [0, 1, 2, 4].map(|n| (Fate::Displayed, Some(n)));
        assert_eq!(fates(pictures), shown);
    }

    #[test]
    fn another_quality_has_groups_of_its_own() {
        let mut pictures = pictures();
        for (n, quality, group) in [(0, 1, 9), (1, 0, 3)] {
            let time_us = 1_000_000 + 40_000 * n;
            let picture = Picture { time_us, mark: None, key: true, data: vec![n as u8] };
            pictures.on_picture(
                Time::from_nanos(time_us * 1000),
                Place { quality, group },
                picture,
            );
        }
        assert_eq!(pictures.refused, 0);
    }

    #[test]
    fn a_frame_that_comes_after_it_was_given_up_is_counted() {
        let mut pictures = pictures();
        let mut give = |number: u64, at_ms: u64| {
            let mark = Some(mark(number, None, BitRate::from_kbps(400)));
            let (time_us, data) = (1_000_000 + 40_000 * number, vec![number as u8]);
            let picture = Picture { time_us, mark, key: true, data };
            let (at, place) = (Time::from_millis(at_ms), Place { quality: 0, group: number });
            pictures.on_picture(at, place, picture);
            pictures.playing.advance(at);
            pictures.refused
        };
        assert_eq!([give(0, 1010), give(2, 1090), give(3, 1130), give(1, 1180)], [0, 0, 0, 1]);
        let missing = (Fate::Missing, None);
        assert_eq!(
            fates(pictures)[..3],
            [(Fate::Displayed, Some(0)), missing, (Fate::Displayed, Some(2))]
        );
    }

    #[test]
    fn a_frame_after_a_long_pause_refers_to_the_one_that_came_before() {
        let mut pictures = pictures();
        for (number, references) in [(0, None), (300, Some(0))] {
            let mark = Some(mark(number, references, BitRate::from_kbps(400)));
            let time_us = 1_000_000 + 20_000 * number;
            let picture = Picture { time_us, mark, key: references.is_none(), data: vec![7] };
            let at = Time::from_nanos(time_us * 1000);
            pictures.on_picture(at, Place { quality: 0, group: 0 }, picture);
            pictures.playing.advance(at);
        }
        let fates = fates(pictures);
        assert_eq!(fates.iter().filter(|(fate, _)| *fate == Fate::Displayed).count(), 2);
    }

    #[test]
    fn a_mark_that_refers_to_before_the_first_frame_is_refused() {
        let mut pictures = pictures();
        let mark = FrameMark { references: 9, ..mark(3, None, BitRate::from_kbps(400)) };
        let picture = Picture { time_us: 5, mark: Some(mark), key: false, data: vec![7] };
        pictures.on_picture(Time::from_secs(1), Place { quality: 0, group: 0 }, picture);
        assert_eq!(pictures.refused, 1);
        assert_eq!(fates(pictures), []);
    }
}
