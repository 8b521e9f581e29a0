//! How a live player changes its speed to keep its latency.

use suiro_units::Duration;

/// The rule by which a live player chooses its speed.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum CatchUp {
    /// Faster or slower by all that is allowed from the tolerance on, until the target is met.
    #[default]
    Steps,
    /// dash.js's own: a curve of the distance to the target.
    Sigmoid,
    /// LoL+: a curve of the distance to the target, and slower when the buffer is thin.
    Lolp,
}

/// The speed for a latency, in nanoseconds, and a buffer.
pub(crate) type Curve = fn(&Live, i64, Duration) -> f64;

impl CatchUp {
    /// The curve by which the rule chooses the speed; `None` if it does so in steps.
    pub(crate) fn curve(self) -> Option<Curve> {
        match self {
            Self::Steps => None,
            Self::Sigmoid => Some(sigmoid),
            Self::Lolp => Some(lolp),
        }
    }
}

/// How a live stream keeps to its latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Live {
    /// When media time zero was captured, in nanoseconds on the clock of [`suiro_units::Time`]; negative if that
    /// was before its epoch.
    pub zero_ns: i64,
    /// How old the frame under the playhead should be.
    pub target: Duration,
    /// How far the latency may be from the target before the speed changes.
    pub tolerance: Duration,
    /// The most by which the speed may differ from 1, from 0 (no catching up) to 0.5.
    pub speed_change: f64,
    /// By which rule the speed is chosen.
    pub catch_up: CatchUp,
    /// Latency beyond which the playout asks to be moved to the target.
    pub latest: Duration,
    /// Whether media is passed over when playback begins, so that it begins at the target: for a low latency, of which the
    /// time that the first media took would be a large part.
    pub join_at_target: bool,
}

/// The buffer up to which the speed is normal where dash.js chooses it: its `lowLatencyStallThreshold`, of version 5.2 alone.
const STALLED: Duration = Duration::from_millis(300);
/// LoL+'s least buffer, below which playback slows down whatever the latency is: dash.js's `playbackBufferMin`. In steps, playback
/// does not hurry below it.
const LEAST_BUFFER: Duration = Duration::from_millis(500);
/// The share of the target by which the latency may be off at normal speed.
const TOLERANCE: f64 = 0.02;
/// How steep the curve is, per second.
const STEEPNESS: f64 = 5.0;
/// Changes that are smaller than this share of the most are not made: dash.js's `minPlaybackRateChange`, 0.02 where the speed
/// may change by 0.5. Those to normal speed are made all the same, as in its version 5.2 alone.
const LEAST_CHANGE: f64 = 0.04;

/// The speed as dash.js chooses it: `CatchupController`, mode `liveCatchupModeDefault`. For a latency L, a target T (both in
/// seconds) and a change of at most c, that is `1 − c + 2c / (1 + e^(−5 (L − T)))` in its versions 4.5 to 5.2. As in 5.2
/// alone, it is 1 while hardly anything is buffered, because a player that hurries after a stall stalls again. That much is at
/// most half of the target, which here may be below a second. In dash.js the speed is also 1 while playback is stalled and the
/// buffer is at most half of the target, which is left out here.
fn sigmoid(live: &Live, latency_ns: i64, buffer: Duration) -> f64 {
    if buffer <= STALLED.min(live.target / 2) {
        return 1.0;
    }
    curve(most(live), latency_ns as f64 / 1e9 - live.target.as_secs_f64())
}

/// The speed by LoL+'s rule: Bentaleb, Akcay, Lim, Begen and Zimmermann, "Catching the moment with LoL+ in Twitch-like
/// low-latency live streaming platforms" (IEEE Transactions on Multimedia, 2021), with the constants of dash.js.
fn lolp(live: &Live, latency_ns: i64, buffer: Duration) -> f64 {
    let change = most(live);
    let least = least_buffer(live);
    if buffer < least {
        return curve(change, -(least - buffer).as_secs_f64());
    }
    let target_s = live.target.as_secs_f64();
    let off_s = latency_ns as f64 / 1e9 - target_s;
    if off_s.abs() <= TOLERANCE * target_s { 1.0 } else { curve(change, off_s) }
}

/// LoL+'s least buffer: at most half of the target, which here may be below a second.
pub(crate) fn least_buffer(live: &Live) -> Duration {
    LEAST_BUFFER.min(live.target / 2)
}

/// The least change of speed that a curve makes.
pub(crate) fn least_change(live: &Live) -> f64 {
    LEAST_CHANGE * most(live)
}

/// The most by which the speed differs from 1.
fn most(live: &Live) -> f64 {
    live.speed_change.clamp(0.0, 0.5)
}

/// A logistic curve through 1 from `1 − change` to `1 + change`.
fn curve(change: f64, off_s: f64) -> f64 {
    (1.0 - change) + 2.0 * change / (1.0 + (-STEEPNESS * off_s).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: Live = Live {
        zero_ns: 0,
        target: Duration::from_secs(2),
        tolerance: Duration::from_millis(100),
        speed_change: 0.1,
        catch_up: CatchUp::Lolp,
        latest: Duration::from_secs(5),
        join_at_target: true,
    };

    #[test]
    fn the_curve_of_dash_js_by_hand() {
        let speed = |live: &Live, latency_ms: i64, buffer_ms: u64| {
            sigmoid(live, latency_ms * 1_000_000, Duration::from_millis(buffer_ms))
        };
        assert_eq!(speed(&LIVE, 2000, 1500), 1.0);
        // 1 / (1 + e^-0.195) = 0.5486 and 1 / (1 + e^-1) = 0.7311: 0.9 + 0.2 · that. LoL+ leaves the first at normal speed.
        assert!((speed(&LIVE, 2039, 1500) - 1.0097).abs() < 1e-4);
        assert!((speed(&LIVE, 2200, 1500) - 1.0462).abs() < 1e-4);
        assert!((speed(&LIVE, 1800, 1500) - 0.9538).abs() < 1e-4);
        // A thin buffer does not slow it down; one that is almost empty keeps it at normal speed.
        assert!(speed(&LIVE, 9000, 301) > 1.0999);
        assert_eq!([speed(&LIVE, 9000, 300), speed(&LIVE, 100, 300)], [1.0; 2]);
        // Of a target of 0.4 s, half is less.
        let near = Live { target: Duration::from_millis(400), ..LIVE };
        assert!((speed(&near, 600, 201) - 1.0462).abs() < 1e-4);
        assert_eq!(speed(&near, 600, 200), 1.0);
    }

    #[test]
    fn the_least_change_by_hand() {
        assert!((least_change(&LIVE) - 0.004).abs() < 1e-12);
        assert!((least_change(&Live { speed_change: 0.7, ..LIVE }) - 0.02).abs() < 1e-12);
    }

    fn speed(latency_ms: i64, buffer_ms: u64) -> f64 {
        lolp(&LIVE, latency_ms * 1_000_000, Duration::from_millis(buffer_ms))
    }

    #[test]
    fn the_curve_of_lolp_by_hand() {
        assert_eq!([speed(2000, 1500), speed(2039, 1500), speed(1961, 1500)], [1.0; 3]);
        // 1 / (1 + e^-1) = 0.731: 0.9 + 0.2 · 0.731.
        assert!((speed(2200, 1500) - 1.0462).abs() < 1e-4);
        assert!((speed(1800, 1500) - 0.9538).abs() < 1e-4);
        assert!(speed(9000, 1500) > 1.0999 && speed(9000, 1500) <= 1.1);
        // With 0.3 s of 0.5 s, whatever the latency is.
        assert!((speed(9000, 300) - 0.9538).abs() < 1e-4);
        assert!(speed(9000, 0) < 0.9153);
    }
}
