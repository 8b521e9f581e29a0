//! How an encoder follows the rate that a transport allows: bit rate first, then frame rate, then size. Pure.
//!
//! The bit rate is always what is allowed. A *rung* is a size and a frame rate, and needs a least bit rate: so
//! many bits for each pixel. When the rate falls below what the rung needs, a lower one is taken: first fewer frames of
//! the same size, then smaller frames. A higher one is taken only when the rate has been clearly enough for it for a
//! while: each change of size costs a key frame.

use suiro_units::{BitRate, Duration, Time};

/// Bits for each pixel that an H.264 frame of ordinary motion should have at least: half of what
/// libwebrtc's defaults come to (2.5 Mbit/s for 1920×1080 at 30 per second are 0.04).
const BITS_PER_PIXEL: f64 = 0.02;
/// Heights of frames, of a camera of 1080 lines or less.
pub const HEIGHTS: [u32; 6] = [1080, 720, 540, 360, 270, 180];
/// Frame rates, as shares of the camera's: all frames, two of three.
const FRAMES: [(u32, u32); 2] = [(1, 1), (2, 3)];

/// How reluctant it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hysteresis {
    /// For how long the rate must be too low before a lower rung is taken. Default: 300 ms.
    pub down_after: Duration,
    /// For how long it must be enough before a higher one is taken. Default: 3 s.
    pub up_after: Duration,
    /// How many times what a higher rung needs is enough for it, 1 or more. Default: 1.2.
    pub up_margin: f64,
}

impl Default for Hysteresis {
    fn default() -> Self {
        Self {
            down_after: Duration::from_millis(300),
            up_after: Duration::from_secs(3),
            up_margin: 1.2,
        }
    }
}

/// What the encoder is to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rung {
    /// Width and height in pixels, both even.
    pub size: (u32, u32),
    /// Frames per second.
    pub fps: u32,
}

impl Rung {
    /// The bit rate below which it is not worth having.
    pub fn needs(self) -> BitRate {
        let pixels = u64::from(self.size.0) * u64::from(self.size.1) * u64::from(self.fps);
        BitRate::from_bps((pixels as f64 * BITS_PER_PIXEL) as u64)
    }
}

/// Steps from the best to the least, each for bit rates from its need on, over time.
#[derive(Debug, Clone)]
pub struct Steps {
    /// What each needs, falling.
    needs: Vec<BitRate>,
    at: usize,
    hysteresis: Hysteresis,
    /// Since when the rate has been too low, or enough for more.
    low_since: Option<Time>,
    high_since: Option<Time>,
}

impl Steps {
    /// One step at least, with what each needs, falling; at a bit rate of the start.
    pub fn new(needs: Vec<BitRate>, start: BitRate, hysteresis: Hysteresis) -> Self {
        let mut steps = Self { needs, at: 0, hysteresis, low_since: None, high_since: None };
        steps.at = steps.best(start, 1.0);
        steps
    }

    /// The bit rate from which on a step may be taken.
    pub fn needs(&self, step: usize) -> BitRate {
        self.needs[step]
    }

    /// The step that is taken now, from 0, the best.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The rate that is allowed now; the new step, if it is another.
    pub fn on_rate(&mut self, now: Time, rate: BitRate) -> Option<usize> {
        let fits = self.best(rate, 1.0);
        let fits_well = self.best(rate, self.hysteresis.up_margin);
        let lasted = |since: Option<Time>| since.map(|since| now.saturating_since(since));
        self.low_since = (fits > self.at).then(|| self.low_since.unwrap_or(now));
        self.high_since = (fits_well < self.at).then(|| self.high_since.unwrap_or(now));
        let to = if lasted(self.low_since).is_some_and(|time| time >= self.hysteresis.down_after) {
            fits
        } else if lasted(self.high_since).is_some_and(|time| time >= self.hysteresis.up_after) {
            // One at a time: what a probe found may not last.
            self.at - 1
        } else {
            return None;
        };
        (self.at, self.low_since, self.high_since) = (to, None, None);
        Some(to)
    }

    /// The best step for which the rate is so many times what it needs; the least, if it is for none.
    fn best(&self, rate: BitRate, margin: f64) -> usize {
        let enough = |needs: &BitRate| rate >= needs.mul_f64(margin);
        self.needs.iter().position(enough).unwrap_or(self.needs.len().saturating_sub(1))
    }
}

/// The rung, over time.
#[derive(Debug, Clone)]
pub struct Ladder {
    /// From the best to the least.
    rungs: Vec<Rung>,
    steps: Steps,
}

impl Ladder {
    /// Of a camera with frames of that size and so many of them per second, at a bit rate of the
    /// start.
    pub fn new(camera: (u32, u32), fps: u32, start: BitRate, hysteresis: Hysteresis) -> Self {
        let rungs = rungs(camera, fps);
        let needs = rungs.iter().map(|rung| rung.needs()).collect();
        Self { rungs, steps: Steps::new(needs, start, hysteresis) }
    }

    /// What the encoder is to make now.
    pub fn rung(&self) -> Rung {
        self.rungs[self.steps.at()]
    }

    /// The rate that is allowed now; the new rung, if it is another.
    pub fn on_rate(&mut self, now: Time, rate: BitRate) -> Option<Rung> {
        self.steps.on_rate(now, rate).map(|at| self.rungs[at])
    }
}

/// The sizes of frames for a camera, from the largest to the smallest: its own, and the usual heights below it in the
/// same shape.
pub fn sizes(camera: (u32, u32)) -> impl Iterator<Item = (u32, u32)> {
    let even = |pixels: u32| (pixels & !1).max(16);
    let heights = HEIGHTS.into_iter().filter(move |height| *height < camera.1);
    let lower = heights.map(move |height| {
        let width = u64::from(camera.0) * u64::from(height) / u64::from(camera.1.max(1));
        (even(u32::try_from(width).unwrap_or(camera.0)), height)
    });
    [camera].into_iter().chain(lower)
}

/// The rungs of a camera, each with a lower need than the one before.
fn rungs(camera: (u32, u32), fps: u32) -> Vec<Rung> {
    let all = sizes(camera)
        .flat_map(|size| FRAMES.map(|(share, of)| Rung { size, fps: (fps * share / of).max(1) }));
    let mut rungs: Vec<Rung> = Vec::new();
    for rung in all {
        if rungs.last().is_none_or(|before| rung.needs() < before.needs()) {
            rungs.push(rung);
        }
    }
    rungs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FULL_HD: (u32, u32) = (1920, 1080);

    fn kbps(kbps: u64) -> BitRate {
        BitRate::from_kbps(kbps)
    }

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn ladder(start: u64) -> Ladder {
        Ladder::new(FULL_HD, 30, kbps(start), Hysteresis::default())
    }

    #[test]
    fn fewer_frames_come_before_smaller_pictures() {
        let rungs = rungs(FULL_HD, 30);
        let names: Vec<(u32, u32)> = rungs.iter().map(|rung| (rung.size.1, rung.fps)).collect();
        let first = [(1080, 30), (1080, 20), (720, 30), (720, 20), (540, 30), (540, 20)];
        assert_eq!(names[..6], first);
        // 1920 × 1080 × 30 × 0.02 bit.
        assert_eq!(rungs[0].needs(), BitRate::from_bps(1_244_160));
        let small = self::rungs((320, 240), 15);
        assert_eq!(small.last(), Some(&Rung { size: (240, 180), fps: 10 }));
    }

    #[test]
    fn it_begins_at_what_the_first_rate_is_enough_for() {
        let rungs = [2000, 1000, 500, 300, 1].map(|rate| {
            let rung = ladder(rate).rung();
            (rung.size.1, rung.fps)
        });
        assert_eq!(rungs, [(1080, 30), (1080, 20), (720, 20), (540, 20), (180, 20)]);
    }

    #[test]
    fn it_falls_soon_and_to_what_fits() {
        let mut ladder = ladder(2000);
        assert_eq!(ladder.on_rate(ms(0), kbps(400)), None);
        assert_eq!(ladder.on_rate(ms(299), kbps(400)), None);
        let rung = ladder.on_rate(ms(300), kbps(400)).unwrap();
        assert_eq!((rung.size, rung.fps), ((1280, 720), 20));
        // A dip that is over soon changes nothing.
        assert_eq!(ladder.on_rate(ms(400), kbps(100)), None);
        assert_eq!(ladder.on_rate(ms(600), kbps(400)), None);
        assert_eq!(ladder.on_rate(ms(800), kbps(100)), None);
    }

    #[test]
    fn it_rises_late_by_one_rung_and_only_with_a_margin() {
        let mut ladder = ladder(400);
        assert_eq!(ladder.rung(), Rung { size: (1280, 720), fps: 20 });
        // 720 lines at 30 per second need 553 kbit/s; with the margin, 664.
        for at in 0..100 {
            assert_eq!(ladder.on_rate(ms(100 * at), kbps(660)), None);
        }
        assert_eq!(ladder.on_rate(ms(10_000), kbps(2000)), None);
        assert_eq!(ladder.on_rate(ms(12_999), kbps(2000)), None);
        let rung = ladder.on_rate(ms(13_000), kbps(2000)).unwrap();
        assert_eq!(rung, Rung { size: (1280, 720), fps: 30 });
        assert_eq!(ladder.on_rate(ms(13_100), kbps(2000)), None, "the next one takes as long");
    }

    proptest! {
        /// Whatever the rates are, the rung is one of the camera's, and a change is never within
        /// 300 ms of the one before.
        #[test]
        fn changes_are_apart(rates in prop::collection::vec(20_000..5_000_000u64, 1..200)) {
            let mut ladder = ladder(1000);
            let mut last: Option<Time> = None;
            for (n, rate) in (0..).zip(rates) {
                let now = ms(100 * n);
                if let Some(rung) = ladder.on_rate(now, BitRate::from_bps(rate)) {
                    prop_assert!(rung.size.0 % 2 == 0 && rung.size.1 % 2 == 0 && rung.fps >= 1);
                    let apart = last.is_none_or(|last| now - last >= Duration::from_millis(300));
                    prop_assert!(apart);
                    last = Some(now);
                }
            }
        }
    }
}
