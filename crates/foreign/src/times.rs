//! Times of sources, in nanoseconds: with a bound, so that sums and differences of two fit into 64 bits.

use chrono::DateTime;

/// No time is further from zero than this: from 1970 to the year 2096.
const LATEST_NS: i64 = 4_000_000_000_000_000_000;

/// The nearest time within the bound.
pub(crate) fn bounded(t_ns: i64) -> i64 {
    t_ns.clamp(-LATEST_NS, LATEST_NS)
}

/// A date as text (RFC 3339).
pub(crate) fn date(text: &str) -> Option<i64> {
    DateTime::parse_from_rfc3339(text).ok()?.timestamp_nanos_opt().map(bounded)
}

/// Milliseconds since 1970; none beyond the bound.
pub(crate) fn from_ms(ms: f64) -> Option<i64> {
    (0.0..4e12).contains(&ms).then_some((ms * 1e6) as i64)
}
