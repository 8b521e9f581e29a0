//! Statistics that several sources need.

/// The value below which this share of the values is; none of no values.
pub(crate) fn quantile(values: &mut [i64], share: f64) -> Option<i64> {
    let last = values.len().checked_sub(1)?;
    let at = (last as f64 * share).round() as usize;
    Some(*values.select_nth_unstable(at.min(last)).1)
}

/// Bits per second of so many bytes in so many nanoseconds.
pub(crate) fn bit_rate(bytes: u64, ns: i64) -> f64 {
    if ns <= 0 { 0.0 } else { bytes as f64 * 8e9 / ns as f64 }
}
