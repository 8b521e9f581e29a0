//! When the video froze.
//!
//! W3C "Identifiers for WebRTC's Statistics API", `freezeCount` and `totalFreezesDuration`. A
//! freeze is an interval between two displayed frames that is at least three times the average
//! interval, and at least 150 ms longer than it. The average is of the last 30 frames. In libwebrtc
//! the interval itself is part of that average, and freezes are found from the fifth interval on.
//! Here the average is of the intervals before, so that a freeze does not hide itself. Until there are five, the source's
//! own interval stands for it if that is known; else it is of those that there are.

use std::collections::VecDeque;

use suiro_units::{Duration, Time};

/// Intervals that are averaged.
const INTERVALS: usize = 30;

/// Fewer intervals than this are no average.
const INTERVALS_LEAST: usize = 5;

/// What an interval must exceed the average by.
const EXCESS: Duration = Duration::from_millis(150);

/// The video froze.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freeze {
    /// When the frame that stood was displayed.
    pub from: Time,
    /// When another one was displayed, or the viewing ended.
    pub to: Time,
}

impl Freeze {
    /// How long it stood: the whole interval, as `totalFreezesDuration` counts it.
    pub fn duration(&self) -> Duration {
        self.to - self.from
    }
}

/// Finds freezes in the times at which frames were displayed.
///
/// ```
/// use suiro_units::{Duration, Time};
/// use suiro_viewer::Freezes;
///
/// let mut freezes = Freezes::default();
/// assert_eq!(freezes.on_displayed(Time::from_millis(0)), None);
/// assert_eq!(freezes.on_displayed(Time::from_millis(33)), None);
/// let freeze = freezes.on_displayed(Time::from_millis(533)).expect("half a second is one");
/// assert_eq!(freeze.duration(), Duration::from_millis(500));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Freezes {
    /// The time from one frame of the source to the next, if it is known.
    source: Option<Duration>,
    last: Option<Time>,
    intervals: VecDeque<Duration>,
}

impl Freezes {
    /// Of a source whose frames follow one another at that interval.
    pub fn of(source: Duration) -> Self {
        Self { source: Some(source), ..Self::default() }
    }

    /// Whether it is known at which rate frames are usually displayed. If not, there may have been more freezes.
    pub fn is_certain(&self) -> bool {
        self.source.is_some() || self.intervals.len() >= INTERVALS_LEAST
    }

    /// A frame was displayed; the freeze that this ended, if there was one. Times never decrease.
    pub fn on_displayed(&mut self, at: Time) -> Option<Freeze> {
        let freeze = self.on_end(at);
        if let Some(last) = self.last.replace(at) {
            self.intervals.push_back(at.saturating_since(last));
            if self.intervals.len() > INTERVALS {
                self.intervals.pop_front();
            }
        }
        freeze
    }

    /// Until then the source paused, and the frame on the screen stood without being frozen. Call [`Self::on_end`] for the time
    /// at which the pause began. Nothing changes before the first frame.
    pub fn on_resumed(&mut self, at: Time) {
        self.last = self.last.map(|last| last.max(at));
    }

    /// The viewing ended; the freeze in which it did, if it was one. (libwebrtc does not count it:
    /// no frame comes any more that would make it.)
    pub fn on_end(&self, at: Time) -> Option<Freeze> {
        let from = self.last?;
        let average = self.average()?;
        let least = (average * 3).max(average + EXCESS);
        (at.saturating_since(from) >= least).then_some(Freeze { from, to: at })
    }

    /// The interval that others are compared with; `None` if nothing is known of it.
    fn average(&self) -> Option<Duration> {
        if let Some(source) = self.source.filter(|_| self.intervals.len() < INTERVALS_LEAST) {
            return Some(source);
        }
        let sum: Duration = self.intervals.iter().fold(Duration::ZERO, |sum, &i| sum + i);
        Some(sum / u64::try_from(self.intervals.len()).ok().filter(|&n| n > 0)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The freezes, as pairs of milliseconds, in frames displayed at these times and an end.
    fn freezes(displayed: impl IntoIterator<Item = u64>, end: u64) -> Vec<(u64, u64)> {
        found(&mut Freezes::default(), displayed, end)
    }

    fn found(
        freezes: &mut Freezes,
        displayed: impl IntoIterator<Item = u64>,
        end: u64,
    ) -> Vec<(u64, u64)> {
        let mut found: Vec<Freeze> = displayed
            .into_iter()
            .filter_map(|ms| freezes.on_displayed(Time::from_millis(ms)))
            .collect();
        found.extend(freezes.on_end(Time::from_millis(end)));
        let ms = |time: Time| time.as_nanos() / 1_000_000;
        found.iter().map(|freeze| (ms(freeze.from), ms(freeze.to))).collect()
    }

    #[test]
    fn an_even_stream_has_none() {
        assert_eq!(freezes((0..100).map(|n| 33 * n), 3300), []);
        assert_eq!(freezes((0..10).map(|n| 1000 * n), 10_000), [], "one frame a second is a rate");
        assert_eq!(freezes([], 9000), [], "nothing displayed: start-up, not a freeze");
    }

    #[test]
    fn few_frames_are_compared_with_the_source() {
        let mut of_30 = Freezes::of(Duration::from_millis(33));
        assert_eq!(found(&mut of_30, [0], 9000), [(0, 9000)]);
        let mut of_30 = Freezes::of(Duration::from_millis(33));
        assert_eq!(found(&mut of_30, [0, 30_000], 60_000), [(0, 30_000), (30_000, 60_000)]);
        assert!(of_30.is_certain());
        // After five intervals their own average counts: 300 ms is a freeze, and 183 ms is none.
        for (end, freezes) in [(799, vec![]), (800, vec![(500, 800)])] {
            let mut of_30 = Freezes::of(Duration::from_millis(33));
            assert_eq!(found(&mut of_30, (0..6).map(|n| 100 * n), end), freezes);
        }
        // Where the source is not known, nobody can say.
        let mut freezes = Freezes::default();
        assert_eq!(found(&mut freezes, [0, 30_000], 60_000), []);
        assert!(!freezes.is_certain());
        found(&mut freezes, (0..6).map(|n| 60_000 + 33 * n), 61_000);
        assert!(freezes.is_certain());
    }

    #[test]
    fn the_threshold_at_a_high_rate_is_150_ms_more() {
        assert_eq!(freezes([0, 20, 40, 209], 209), []);
        assert_eq!(freezes([0, 20, 40, 210], 210), [(40, 210)]);
    }

    #[test]
    fn the_threshold_at_a_low_rate_is_three_times_the_average() {
        assert_eq!(freezes([0, 100, 200, 499], 499), []);
        assert_eq!(freezes([0, 100, 200, 500], 500), [(200, 500)]);
    }

    #[test]
    fn a_freeze_counts_in_the_average_of_the_next_30() {
        // 29 × 10 ms and 1 s: the average is 43 ms, so 190 ms is none and 200 ms is one.
        let before = (0..=30).map(|n| 10 * n).chain([1300]);
        let after = |gap: u64| before.clone().chain([1300 + gap]);
        assert_eq!(freezes(after(190), 1490), [(300, 1300)]);
        assert_eq!(freezes(after(200), 1500), [(300, 1300), (1300, 1500)]);
    }

    #[test]
    fn a_pause_of_the_source_is_none_and_what_is_late_after_it_is() {
        let ms = Time::from_millis;
        let mut freezes = Freezes::default();
        freezes.on_resumed(ms(5));
        assert_eq!(freezes.on_end(ms(9000)), None, "nothing was displayed");
        for n in 0..10 {
            assert_eq!(freezes.on_displayed(ms(40 * n)), None);
        }
        // The last frame of 40 ms comes at 360 ms; the pause is from 400 to 5000 ms.
        assert_eq!(freezes.on_end(ms(400)), None);
        freezes.on_resumed(ms(5000));
        let mut late = freezes.clone();
        assert_eq!(freezes.on_displayed(ms(5010)), None);
        assert_eq!(late.on_displayed(ms(5300)), Some(Freeze { from: ms(5000), to: ms(5300) }));
    }

    #[test]
    fn one_in_which_the_viewing_ends_counts() {
        assert_eq!(freezes([0, 33, 66], 2066), [(66, 2066)]);
    }
}
