//! A live stream's media time on the session's clock.

use suiro_units::{Duration, Time};

use crate::presentation::{LiveStream, MediaPlaylist};

/// A date by which the newest media is further from now than this is not that of its capture.
const DATE_OFF_MAX: Duration = Duration::from_secs(3600);

/// The stream of a live playlist, by the date of its first segment.
pub(crate) fn of_playlist(playlist: &MediaPlaylist, unix_ns: u64) -> LiveStream {
    let zero_unix_ns = playlist.date_unix_ns;
    let newest = zero_unix_ns.map(|date| date.saturating_add(playlist.duration().as_nanos()));
    let is_mistimed = newest.is_some_and(|at| at.abs_diff(unix_ns) > DATE_OFF_MAX.as_nanos());
    LiveStream { zero_unix_ns, is_mistimed, ..LiveStream::default() }
}

/// When media time zero was captured, if that is known.
fn zero_unix_ns(live: &LiveStream) -> Option<u64> {
    live.zero_unix_ns.filter(|_| !live.is_mistimed)
}

/// Media time zero on the session's clock, in nanoseconds.
pub(crate) fn zero_ns(live: &LiveStream, epoch_unix_ns: u64) -> Option<i64> {
    let difference = i128::from(zero_unix_ns(live)?) - i128::from(epoch_unix_ns);
    i64::try_from(difference).ok()
}

/// The media time that is captured now.
pub(crate) fn captured(live: &LiveStream, epoch_unix_ns: u64, now: Time) -> Option<Duration> {
    let unix_ns = epoch_unix_ns.saturating_add(now.as_nanos());
    Some(Duration::from_nanos(unix_ns.saturating_sub(zero_unix_ns(live)?)))
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
