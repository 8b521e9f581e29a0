//! What an encoder makes of its bit rate, and what to ask it for so that it makes as much as is allowed. Pure.
//!
//! openh264 leaves frames out rather than exceed its bit rate, and stays 10 to 20 % below it. A sender that sends less than
//! it may cannot learn that it may send more: congestion control follows what arrives.

use suiro_units::{BitRate, Bytes, Duration, Time};

/// How long the encoder is observed before it is asked for another share.
const WINDOW: Duration = Duration::from_secs(1);
/// The most that it is asked for, as a share of what is allowed.
const MOST: f64 = 1.3;
/// The most that this changes by at once.
const STEP: f64 = 1.1;
/// A fall of the allowed rate to less than this share resets everything: what the encoder made before no longer
/// predicts what it will make.
const FELL: f64 = 0.9;
/// Where it makes nothing for longer than this, its camera pauses.
const GAP: Duration = Duration::from_millis(200);

/// The share of the allowed rate that the encoder is asked for.
#[derive(Debug, Clone)]
pub struct Fill {
    share: f64,
    /// When the window began, which is when a frame was captured; `None`: with the next one.
    since: Option<Time>,
    /// When the latest frame was captured.
    latest: Time,
    /// Until when `allowed_bits` counts.
    counted: Time,
    allowed: BitRate,
    allowed_bits: f64,
    made: Bytes,
}

impl Default for Fill {
    fn default() -> Self {
        Self {
            share: 1.0,
            since: None,
            latest: Time::ZERO,
            counted: Time::ZERO,
            allowed: BitRate::from_bps(0),
            allowed_bits: 0.0,
            made: Bytes::ZERO,
        }
    }
}

impl Fill {
    /// The encoder has made a frame of that size. A window that a pause cuts short says nothing: another one begins after it.
    pub fn on_frame(&mut self, captured: Time, size: Bytes) {
        self.count(captured);
        let is_cut = captured.saturating_since(self.latest) > GAP;
        self.latest = captured;
        let since = self.since.filter(|_| !is_cut);
        let is_over = since.is_some_and(|since| captured.saturating_since(since) >= WINDOW);
        if is_over {
            let made = self.made.get() as f64 * 8.0 / self.allowed_bits.max(1.0);
            let change = (1.0 / made.max(0.01)).clamp(1.0 / STEP, STEP);
            self.share = (self.share * change).clamp(1.0, MOST);
        }
        if since.is_none() || is_over {
            (self.since, self.allowed_bits, self.made) = (Some(captured), 0.0, Bytes::ZERO);
        }
        self.made += size;
    }

    /// So much is allowed from now on: what the encoder is to be asked for.
    pub fn ask(&mut self, now: Time, allowed: BitRate) -> BitRate {
        self.count(now);
        if (allowed.as_bps() as f64) < self.allowed.as_bps() as f64 * FELL {
            (self.share, self.since) = (1.0, None);
        }
        self.allowed = allowed;
        allowed.mul_f64(self.share)
    }

    /// Counts what was allowed until now.
    fn count(&mut self, now: Time) {
        let span = now.saturating_since(self.counted);
        self.allowed_bits += self.allowed.as_bps() as f64 * span.as_secs_f64();
        self.counted = self.counted.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an encoder is asked for after some seconds of making this share of it, 20 times a second.
    fn asked(makes: f64, seconds: u64) -> f64 {
        let (mut fill, allowed) = (Fill::default(), BitRate::from_kbps(1000));
        let mut asked = allowed;
        for n in 0..seconds * 20 {
            asked = fill.ask(Time::from_millis(50 * n), allowed);
            let size = Bytes::new((asked.as_bps() as f64 * makes / 8.0 / 20.0) as u64);
            fill.on_frame(Time::from_millis(50 * n), size);
        }
        asked.as_bps() as f64 / allowed.as_bps() as f64
    }

    #[test]
    fn an_encoder_that_makes_less_is_asked_for_more() {
        assert_eq!(asked(1.0, 20), 1.0);
        assert!((asked(0.85, 20) - 1.0 / 0.85).abs() < 0.01, "{}", asked(0.85, 20));
        assert_eq!(asked(0.5, 20), MOST);
        assert_eq!(asked(1.2, 20), 1.0, "an encoder that makes more is not asked for less");
    }

    /// As the camera of RFC 8867 (section 5.8), which pauses for 20 s.
    #[test]
    fn after_a_pause_an_encoder_is_not_asked_for_more_than_is_allowed() {
        let (mut fill, allowed) = (Fill::default(), BitRate::from_kbps(1000));
        for n in 0..450 {
            // It makes all of it, 20 frames in a second, but nothing from 1.5 to 19.5 s.
            let now = Time::from_millis(50 * n);
            let asked = fill.ask(now, allowed);
            assert_eq!(asked, allowed, "after {n} times 50 ms");
            if !(30..390).contains(&n) {
                fill.on_frame(now, Bytes::new(6250));
            }
        }
    }

    #[test]
    fn a_fall_ends_it() {
        let mut fill = Fill::default();
        for n in 0..60 {
            fill.ask(Time::from_millis(50 * n), BitRate::from_kbps(1000));
            fill.on_frame(Time::from_millis(50 * n), Bytes::new(3000));
        }
        let low = BitRate::from_kbps(400);
        assert_eq!(fill.ask(Time::from_secs(3), low), low);
    }
}
