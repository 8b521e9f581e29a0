//! Points on one monotonic clock, and the spans between them.

use std::ops::{Add, AddAssign, Div, Mul, Sub};

use crate::parse::{Unit, quantity_text};
use crate::to_i64;

const UNITS: &[Unit] = &[
    Unit { names: &["ns"], scale: 1 },
    Unit { names: &["us", "µs", "μs"], scale: 1_000 },
    Unit { names: &["ms"], scale: 1_000_000 },
    Unit { names: &["s"], scale: 1_000_000_000 },
    Unit { names: &["min"], scale: 60_000_000_000 },
    Unit { names: &["h"], scale: 3_600_000_000_000 },
];

/// A span of time in whole nanoseconds, never negative; up to 584 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(pub(crate) u64);

quantity_text!(
    Duration,
    "duration",
    "20 ms",
    r"^[0-9]+(\.[0-9]+)? ?(ns|us|µs|μs|ms|s|min|h)$",
    UNITS
);

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// From whole nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// From whole microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// From whole milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// From whole seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// From seconds, rounded to the nearest nanosecond; negative and NaN become zero.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9).round() as u64)
    }
    /// In whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// In whole nanoseconds, as records hold them; at most [`i64::MAX`], 292 years.
    pub const fn as_nanos_i64(self) -> i64 {
        to_i64(self.0)
    }
    /// In milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// `self - other`, or zero where that would be negative.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// How far two spans are apart.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
    /// `self × factor`, rounded to the nearest nanosecond.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }
    /// True for [`Duration::ZERO`].
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl From<std::time::Duration> for Duration {
    fn from(d: std::time::Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for std::time::Duration {
    fn from(d: Duration) -> Self {
        Self::from_nanos(d.0)
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl Div for Duration {
    type Output = f64;
    fn div(self, other: Self) -> f64 {
        self.0 as f64 / other.0 as f64
    }
}

/// A point in time: nanoseconds since an epoch on one monotonic clock.
///
/// In a trial the epoch is the trial's start, so that every record of a trial shares one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The epoch itself.
    pub const ZERO: Self = Self(0);

    /// Nanoseconds since the epoch.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// Milliseconds since the epoch.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// Seconds since the epoch.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Nanoseconds since the epoch, as records hold them; at most [`i64::MAX`], 292 years.
    pub const fn as_nanos_i64(self) -> i64 {
        to_i64(self.0)
    }
    /// Seconds since the epoch.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// The time since `earlier`, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
    /// `self - span`, or the epoch where that would lie before it.
    pub const fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&Duration(self.0), f)
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        self.0 += span.0;
    }
}

impl Sub<Duration> for Time {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0 - span.0)
    }
}

impl Sub for Time {
    type Output = Duration;
    /// The time since `other`; panics in debug builds if `other` is later.
    fn sub(self, other: Self) -> Duration {
        Duration(self.0 - other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for text in ["0 ns", "20 ms", "1.5 s", "250 us", "1 min", "2 h", "1.001 s", "17 ns"] {
            assert_eq!(text.parse::<Duration>().unwrap().to_string(), text);
        }
        assert_eq!("20ms".parse(), Ok(Duration::from_millis(20)));
        assert_eq!("3 µs".parse(), Ok(Duration::from_micros(3)));
    }

    #[test]
    fn refusals_name_the_remedy() {
        let say = |t: &str| t.parse::<Duration>().unwrap_err().to_string();
        assert!(say("20").contains("has no unit"), "{}", say("20"));
        assert!(say("20 m").contains("`m` is not a unit"), "{}", say("20 m"));
        assert!(say("-5 ms").contains("is not a duration"), "{}", say("-5 ms"));
        assert!(say("1.2.3 ms").contains("too large"), "{}", say("1.2.3 ms"));
        assert!(say("99999999999 h").contains("too large"));
    }

    #[test]
    fn arithmetic() {
        let t = Time::from_secs(1) + Duration::from_millis(5);
        assert_eq!(t - Time::from_secs(1), Duration::from_millis(5));
        assert_eq!(Time::ZERO.saturating_since(t), Duration::ZERO);
        assert!((Duration::from_millis(3) / Duration::from_millis(2) - 1.5).abs() < 1e-12);
    }
}
