//! A live stream's media time on the session's clock.

use suiro_units::{Duration, Time};

use crate::presentation::LiveStream;

/// Media time zero on the session's clock, in nanoseconds.
pub(crate) fn zero_ns(live: &LiveStream, epoch_unix_ns: u64) -> Option<i64> {
    let difference = i128::from(live.zero_unix_ns?) - i128::from(epoch_unix_ns);
    i64::try_from(difference).ok()
}

/// The media time that is captured now.
pub(crate) fn captured(live: &LiveStream, epoch_unix_ns: u64, now: Time) -> Option<Duration> {
    let unix_ns = epoch_unix_ns.saturating_add(now.as_nanos());
    Some(Duration::from_nanos(unix_ns.saturating_sub(live.zero_unix_ns?)))
}

/// Where to join a live stream: `target` behind what is captured now, within what is there, from a start to an end.
pub(crate) fn join_at(
    live: &LiveStream,
    epoch_unix_ns: u64,
    now: Time,
    target: Duration,
    listed: Option<(Duration, Duration)>,
) -> Duration {
    let captured = captured(live, epoch_unix_ns, now);
    match (captured, listed) {
        (Some(captured), Some((start, end))) => {
            captured.saturating_sub(target).clamp(start, end.max(start))
        }
        (None, Some((start, end))) => end.saturating_sub(target).max(start),
        (Some(captured), None) => captured.saturating_sub(target),
        (None, None) => Duration::ZERO,
    }
}
