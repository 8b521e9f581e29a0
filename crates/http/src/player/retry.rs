//! How often and when a player tries again.
//!
//! The delays double from one second to eight, as hls.js's do (`errorRetry` of its
//! `fragLoadPolicy`: `retryDelayMs` 1000, `maxRetryDelayMs` 8000, exponential).

use hyper::header::{HeaderMap, RETRY_AFTER};
use suiro_units::Duration;

use crate::caching::number;

/// Tries at one segment before it is skipped.
pub(crate) const SEGMENT_TRIES: u32 = 4;
/// Tries at one manifest or playlist before playback is given up.
pub(crate) const MANIFEST_TRIES: u32 = 6;
/// Segments skipped in a row before playback is given up.
pub(crate) const SKIPS: u32 = 5;
/// A player that moves on before its tries are over gives up after so long in which media was asked for and none came. Connections
/// survive outages of half of that: TCP's last try within it may come as late as the outage was long (RFC 6298 §5.5).
pub(crate) const WITHOUT_MEDIA: Duration = Duration::from_secs(120);
/// The longest time between two requests that come to nothing, while media is asked for: until one is given up, and until the next.
pub(crate) const BETWEEN_TRIES: Duration = Duration::from_secs(20);

/// The longest wait, in seconds.
const LONGEST_S: u64 = 8;
/// The same.
const LONGEST: Duration = Duration::from_secs(LONGEST_S);

/// How long to wait after try number `tried` (from 1) has failed; as long as the server asks for, if that is longer, within
/// the same bound.
pub(crate) fn delay(tried: u32, asked: Option<Duration>) -> Duration {
    let seconds = 1u64 << tried.saturating_sub(1).min(3);
    let own = Duration::from_secs(seconds).min(LONGEST);
    own.max(asked.unwrap_or_default().min(LONGEST))
}

/// How long the server asks to wait (RFC 9110 §10.2.3); a date is not read.
pub(crate) fn asked(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    number(text).map(|seconds| Duration::from_secs(seconds.min(LONGEST_S)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_eight_seconds() {
        let delays: Vec<u64> = (1..=6).map(|n| delay(n, None).as_nanos() / 1_000_000_000).collect();
        assert_eq!(delays, [1, 2, 4, 8, 8, 8]);
        assert_eq!(delay(u32::MAX, None), Duration::from_secs(8));
    }

    #[test]
    fn a_server_may_ask_for_longer_within_the_same_bound() {
        let after = |text: &'static str| {
            let text = hyper::header::HeaderValue::from_static(text);
            asked(&HeaderMap::from_iter([(RETRY_AFTER, text)]))
        };
        let seconds = |text| after(text).map(|wait| wait.as_nanos() / 1_000_000_000);
        assert_eq!([seconds("3"), seconds("99999999999999999999")], [Some(3), Some(8)]);
        for none in ["", "-1", "soon", "Sun, 06 Nov 1994 08:49:37 GMT"] {
            assert_eq!(seconds(none), None, "{none}");
        }
        assert_eq!(delay(1, after("3")), Duration::from_secs(3));
        assert_eq!(delay(3, after("3")), Duration::from_secs(4));
        assert_eq!(delay(1, Some(Duration::from_secs(3600))), Duration::from_secs(8));
        assert_eq!(asked(&HeaderMap::new()), None);
    }
}
