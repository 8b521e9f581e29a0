//! How often and when a player tries again.
//!
//! The delays double from one second to eight, as hls.js's do (`errorRetry` of its
//! `fragLoadPolicy`: `retryDelayMs` 1000, `maxRetryDelayMs` 8000, exponential).

use suiro_units::Duration;

/// Tries at one segment before it is skipped.
pub(crate) const SEGMENT_TRIES: u32 = 4;
/// Tries at one manifest or playlist before playback is given up.
pub(crate) const MANIFEST_TRIES: u32 = 6;
/// Segments skipped in a row before playback is given up.
pub(crate) const SKIPS: u32 = 5;

/// How long to wait after try number `tried` (from 1) has failed.
pub(crate) fn delay(tried: u32) -> Duration {
    let seconds = 1u64 << tried.saturating_sub(1).min(3);
    Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_eight_seconds() {
        let delays: Vec<u64> = (1..=6).map(|n| delay(n).as_nanos() / 1_000_000_000).collect();
        assert_eq!(delays, [1, 2, 4, 8, 8, 8]);
        assert_eq!(delay(u32::MAX), Duration::from_secs(8));
    }
}
