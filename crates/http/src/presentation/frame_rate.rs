//! Frames per second as manifests write them, and which frame is shown when.

use suiro_units::Duration;

/// A frame rate as a fraction, between 1 frame in ten seconds and 300 a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRate {
    frames: u64,
    seconds: u64,
}

impl FrameRate {
    /// `frames` in `seconds`; `None` outside the bounds.
    pub fn new(frames: u64, seconds: u64) -> Option<Self> {
        let most = frames <= seconds.checked_mul(300)?;
        let least = frames.checked_mul(10)? >= seconds;
        let known = frames > 0 && seconds > 0 && frames.max(seconds) <= u64::from(u32::MAX);
        (known && most && least).then_some(Self { frames, seconds })
    }

    /// DASH's `@frameRate`: `25` or `30000/1001` (ISO/IEC 23009-1 §5.3.7.2).
    pub fn from_fraction(text: &str) -> Option<Self> {
        let (frames, seconds) = text.trim().split_once('/').unwrap_or((text.trim(), "1"));
        Self::new(frames.parse().ok()?, seconds.parse().ok()?)
    }

    /// HLS's `FRAME-RATE`, a decimal number rounded to thousandths (RFC 8216 §4.3.4.2). What is a
    /// multiple of 1000/1001, rounded, means that: 29.970 is 30000/1001.
    pub fn from_decimal(text: &str) -> Option<Self> {
        let rate: f64 = text.trim().parse().ok()?;
        if !(0.1..=300.0).contains(&rate) {
            return None;
        }
        let thousandths = (rate * 1000.0).round() as u64;
        let ntsc = (rate * 1.001).round() as u64 * 1000;
        let is_ntsc = !thousandths.is_multiple_of(1000)
            && (ntsc as f64 / 1.001).round() as u64 == thousandths;
        if is_ntsc { Self::new(ntsc, 1001) } else { Self::new(thousandths, 1000) }
    }

    /// The frame that begins nearest to media time `at`.
    pub fn nearest(&self, at: Duration) -> u64 {
        let scaled = u128::from(at.as_nanos()) * u128::from(self.frames);
        let second = u128::from(self.seconds) * 1_000_000_000;
        u64::try_from((scaled + second / 2) / second).unwrap_or(u64::MAX)
    }

    /// Media time at which frame `frame` begins, rounded down to a nanosecond.
    pub fn start_of(&self, frame: u64) -> Duration {
        let ns = u128::from(frame) * u128::from(self.seconds) * 1_000_000_000;
        let ns = ns / u128::from(self.frames);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX / 4))
    }

    /// The greater of two.
    pub fn max(self, other: Self) -> Self {
        if self.frames * other.seconds >= other.frames * self.seconds { self } else { other }
    }

    /// How many frames of this rate make one of `other`; `None` if that is no whole number.
    pub fn per_frame_of(&self, other: Self) -> Option<u64> {
        let (this, that) = (self.frames * other.seconds, other.frames * self.seconds);
        this.is_multiple_of(that).then(|| this / that)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_as_manifests_write_them() {
        let fraction = |text| FrameRate::from_fraction(text).map(|r| (r.frames, r.seconds));
        assert_eq!(fraction("24"), Some((24, 1)));
        assert_eq!(fraction(" 30000/1001 "), Some((30000, 1001)));
        for bad in ["", "0", "1/0", "24.5", "-1", "301", "1/11", "99999999999999999999", "1e2"] {
            assert_eq!(fraction(bad), None, "{bad}");
        }
        let decimal = |text| FrameRate::from_decimal(text).map(|r| (r.frames, r.seconds));
        assert_eq!(decimal("24.000"), Some((24_000, 1000)));
        assert_eq!(decimal("23.976"), Some((24_000, 1001)));
        assert_eq!(decimal("29.970"), Some((30_000, 1001)));
        assert_eq!(decimal("59.94"), Some((60_000, 1001)));
        assert_eq!(decimal("12.500"), Some((12_500, 1000)));
        for bad in ["", "0", "nan", "inf", "-24", "1e9"] {
            assert_eq!(decimal(bad), None, "{bad}");
        }
    }

    #[test]
    fn frames_and_their_times() {
        let ntsc = FrameRate::from_decimal("29.97").expect("a rate");
        for frame in [0, 1, 2, 29, 30, 1_000_000] {
            assert_eq!(ntsc.nearest(ntsc.start_of(frame)), frame);
        }
        assert_eq!(ntsc.start_of(30_000), Duration::from_secs(1001));
        // A year, the longest media time.
        let year = Duration::from_secs(366 * 86_400);
        assert_eq!(ntsc.start_of(ntsc.nearest(year)).saturating_sub(year).as_nanos() >> 24, 0);
    }

    #[test]
    fn rates_among_each_other() {
        let rate = |text| FrameRate::from_fraction(text).expect("a rate");
        assert_eq!(rate("30").max(rate("24")), rate("30"));
        assert_eq!(rate("60000/1001").max(rate("59")), rate("60000/1001"));
        assert_eq!(rate("30").per_frame_of(rate("15")), Some(2));
        assert_eq!(rate("30").per_frame_of(rate("24")), None);
    }
}
