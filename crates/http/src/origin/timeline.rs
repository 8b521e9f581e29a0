//! Which segments there are when, pure.
//!
//! A package is a few seconds of media, played over and over: segment *n* of the stream is segment
//! *n* mod *k* of the package, moved to its place in time. A live stream began at a moment of the
//! wall clock, and segment *n* is there from the moment its last frame has been captured.

use suiro_units::Duration;

/// The segments of one track, repeated for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// Ticks per second.
    timescale: u64,
    /// Where each segment of the package begins, in ticks; rising from 0.
    starts: Vec<u64>,
    /// How long the package is, in ticks; beyond the last start.
    period: u64,
}

/// A segment of the endless stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its number, from 0.
    pub number: u64,
    /// Where it begins, in ticks of its track.
    pub start: u64,
    /// How long it is, in ticks of its track.
    pub duration: u64,
}

impl Loop {
    /// A loop of segments of these durations, in ticks; `None` if there is none, or one is zero, or
    /// they are beyond counting.
    pub fn new(timescale: u64, durations: &[u64]) -> Option<Self> {
        if timescale == 0 || durations.is_empty() || durations.contains(&0) {
            return None;
        }
        let mut period = 0u64;
        let mut starts = Vec::with_capacity(durations.len());
        for duration in durations {
            starts.push(period);
            period = period.checked_add(*duration)?;
        }
        Some(Self { timescale, starts, period })
    }

    /// Ticks per second.
    pub fn timescale(&self) -> u64 {
        self.timescale
    }

    /// The mean length of a segment in ticks, rounded down.
    pub fn mean_ticks(&self) -> u64 {
        self.period / self.starts.len() as u64
    }

    /// Segment `number` of the stream.
    pub fn place(&self, number: u64) -> Place {
        let start = self.start(number);
        Place { number, start, duration: self.start(number.saturating_add(1)) - start }
    }

    /// The number of the segment that begins at that tick; `None` if none does.
    pub fn number_at(&self, start: u64) -> Option<u64> {
        let index = self.starts.binary_search(&(start % self.period)).ok()?;
        (start / self.period).checked_mul(self.starts.len() as u64)?.checked_add(index as u64)
    }

    /// Which repetition it belongs to, and which segment of the package it is.
    pub fn source(&self, number: u64) -> (u64, usize) {
        let count = self.starts.len() as u64;
        let index = usize::try_from(number % count).expect("an index of a vector");
        (number / count, index)
    }

    fn start(&self, number: u64) -> u64 {
        let (repetition, index) = self.source(number);
        repetition.saturating_mul(self.period).saturating_add(self.starts[index])
    }

    /// How many segments have ended at media time `time`; also the number of the one that is
    /// playing then.
    pub fn ended_by(&self, time: Duration) -> u64 {
        let ticks = self.ticks(time);
        let (repetition, rest) = (ticks / self.period, ticks % self.period);
        // A segment ends where the next begins.
        let of_package = self.starts.partition_point(|start| *start <= rest) - 1;
        repetition * self.starts.len() as u64 + of_package as u64
    }

    /// How many segments it takes to be at least `time` long.
    pub fn needed_for(&self, time: Duration) -> u64 {
        let ended = self.ended_by(time);
        if self.time(self.start(ended)) < time { ended + 1 } else { ended.max(1) }
    }

    /// Media time at a tick, rounded up to a nanosecond: what ends there has then ended. What lies beyond 584 years is there.
    pub fn time(&self, ticks: u64) -> Duration {
        let ns = (u128::from(ticks) * 1_000_000_000).div_ceil(u128::from(self.timescale));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    fn ticks(&self, time: Duration) -> u64 {
        let ticks = u128::from(time.as_nanos()) * u128::from(self.timescale) / 1_000_000_000;
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// The longest segment.
    pub fn longest(&self) -> Duration {
        let count = self.starts.len() as u64;
        let longest = (0..count).map(|n| self.place(n).duration).max();
        self.time(longest.unwrap_or_default())
    }
}

/// How a stream's segments become available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// All from the start, for at least this long.
    Vod {
        /// How long the stream is to be.
        length: Duration,
    },
    /// Each when it has been captured.
    Live {
        /// When media time zero was captured, in nanoseconds since 1970.
        zero_unix_ns: u64,
        /// How much of the past is listed.
        window: Duration,
    },
}

/// Whether a segment can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// Not yet captured, or beyond the end.
    NotYet,
    /// Yes.
    There,
    /// It was, but is too old.
    Gone,
}

impl Schedule {
    /// The numbers of the segments that a manifest lists at a moment of the wall clock.
    pub fn listed(&self, track: &Loop, unix_ns: u64) -> std::ops::Range<u64> {
        match *self {
            Self::Vod { length } => 0..track.needed_for(length),
            Self::Live { zero_unix_ns, window } => {
                let captured = Duration::from_nanos(unix_ns.saturating_sub(zero_unix_ns));
                track.ended_by(captured.saturating_sub(window))..track.ended_by(captured)
            }
        }
    }

    /// Whether segment `number` can be had. One that is no longer listed can be had for a window
    /// and two segments more: RFC 8216 §6.2.2 asks for the duration of the longest playlist that
    /// listed it and its own, and DASH for less.
    pub fn availability(&self, track: &Loop, number: u64, unix_ns: u64) -> Availability {
        let listed = self.listed(track, unix_ns);
        let Self::Live { zero_unix_ns, window } = *self else {
            return if listed.contains(&number) {
                Availability::There
            } else {
                Availability::NotYet
            };
        };
        if number >= listed.end {
            return Availability::NotYet;
        }
        let captured = Duration::from_nanos(unix_ns.saturating_sub(zero_unix_ns));
        let kept = window * 2 + track.longest() * 2;
        let oldest = track.ended_by(captured.saturating_sub(kept));
        if number < oldest { Availability::Gone } else { Availability::There }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 48 kHz, three segments of 94, 94 and 93 frames of 1024 samples.
    fn audio() -> Loop {
        Loop::new(48_000, &[96_256, 96_256, 95_232]).unwrap()
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn refuses_what_is_no_loop() {
        assert_eq!(Loop::new(0, &[1]), None);
        assert_eq!(Loop::new(1, &[]), None);
        assert_eq!(Loop::new(1, &[1, 0]), None);
        assert_eq!(Loop::new(1, &[u64::MAX, 1]), None);
    }

    #[test]
    fn places_repeat_exactly() {
        let audio = audio();
        assert_eq!(audio.place(0), Place { number: 0, start: 0, duration: 96_256 });
        assert_eq!(audio.place(2), Place { number: 2, start: 192_512, duration: 95_232 });
        // After a hundred repetitions of 287,744 ticks.
        assert_eq!(
            audio.place(301),
            Place { number: 301, start: 28_774_400 + 96_256, duration: 96_256 }
        );
        assert_eq!(audio.source(301), (100, 1));
        let numbers = [28_870_656, 28_870_657].map(|start| audio.number_at(start));
        assert_eq!(numbers, [Some(301), None]);
    }

    #[test]
    fn a_segment_has_ended_at_its_end_and_not_before() {
        let audio = audio();
        // Segment 0 ends after 96,256 ÷ 48,000 s = 2.005333… s.
        assert_eq!(audio.ended_by(Duration::from_nanos(2_005_333_333)), 0);
        assert_eq!(audio.ended_by(Duration::from_nanos(2_005_333_334)), 1);
        assert_eq!(audio.ended_by(ms(0)), 0);
    }

    #[test]
    fn vod_is_long_enough() {
        let video = Loop::new(1, &[2, 2]).unwrap();
        let listed = |s| Schedule::Vod { length: Duration::from_secs(s) }.listed(&video, 0);
        assert_eq!([listed(1), listed(2), listed(3), listed(9)], [0..1, 0..1, 0..2, 0..5]);
        let schedule = Schedule::Vod { length: Duration::from_secs(9) };
        assert_eq!(schedule.availability(&video, 4, 0), Availability::There);
        assert_eq!(schedule.availability(&video, 5, 0), Availability::NotYet);
    }

    #[test]
    fn live_by_hand() {
        let video = Loop::new(1, &[2, 2, 2]).unwrap();
        let zero_unix_ns = 1_000_000_000_000;
        let schedule = Schedule::Live { zero_unix_ns, window: Duration::from_secs(10) };
        let at = |ms: u64| zero_unix_ns + ms * 1_000_000;
        assert_eq!(schedule.listed(&video, 0), 0..0);
        assert_eq!(schedule.listed(&video, at(1_999)), 0..0);
        assert_eq!(schedule.listed(&video, at(2_000)), 0..1);
        assert_eq!(schedule.listed(&video, at(100_000)), 45..50);
        let is = |number| schedule.availability(&video, number, at(100_000));
        assert_eq!(
            (is(50), is(49), is(45)),
            (Availability::NotYet, Availability::There, Availability::There)
        );
        // Kept for 24 s: segment 38 ended at 78 s, 37 at 76 s.
        assert_eq!((is(38), is(37)), (Availability::There, Availability::Gone));
    }

    proptest! {
        #[test]
        fn a_stream_has_no_holes(
            durations in prop::collection::vec(1u64..1_000_000, 1..20),
            number in 0u64..1_000_000,
            ns in 0u64..10_000_000_000_000,
        ) {
            let track = Loop::new(90_000, &durations).expect("durations are not zero");
            let (this, next) = (track.place(number), track.place(number + 1));
            prop_assert_eq!(this.start + this.duration, next.start);
            prop_assert_eq!(track.number_at(this.start), Some(number));
            prop_assert_eq!(track.ended_by(track.time(next.start)), number + 1);
            let ended = track.ended_by(Duration::from_nanos(ns));
            prop_assert!(track.time(track.place(ended).start) <= Duration::from_nanos(ns + 1));
            prop_assert!(track.time(track.place(ended + 1).start) > Duration::from_nanos(ns));
        }
    }
}
