//! Statistics that several sources need.

/// The value below which this share of the values is; none of no values.
pub(crate) fn quantile(values: &mut [i64], share: f64) -> Option<i64> {
    let last = values.len().checked_sub(1)?;
    let at = (last as f64 * share).round() as usize;
    Some(*values.select_nth_unstable(at.min(last)).1)
}

/// A number of 32 bits that wraps, counted on from `first`, where it is near `near`: 0 is `first` itself.
pub(crate) fn unwrapped(number: u32, first: u32, near: i64) -> i64 {
    near + i64::from(number.wrapping_sub(first.wrapping_add(near as u32)).cast_signed())
}

/// Of what is in order of time, what is after one time and before another.
pub(crate) fn between<T>(
    all: &[T],
    time: impl Fn(&T) -> i64,
    (after_ns, before_ns): (i64, i64),
) -> &[T] {
    let first = all.partition_point(|it| time(it) <= after_ns);
    let last = all.partition_point(|it| time(it) < before_ns);
    all.get(first..last).unwrap_or_default()
}

/// Bits per second of so many bytes in so many nanoseconds.
pub(crate) fn bit_rate(bytes: u64, ns: i64) -> f64 {
    if ns <= 0 { 0.0 } else { bytes as f64 * 8e9 / ns as f64 }
}
