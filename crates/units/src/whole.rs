//! Whole numbers as records hold them.

/// `value` as a signed number, as records hold them; what does not fit is [`i64::MAX`].
pub const fn to_i64(value: u64) -> i64 {
    if value > i64::MAX as u64 { i64::MAX } else { value.cast_signed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_the_largest() {
        assert_eq!(to_i64(7), 7);
        assert_eq!(to_i64(i64::MAX as u64), i64::MAX);
        assert_eq!(to_i64(i64::MAX as u64 + 1), i64::MAX);
        assert_eq!(to_i64(u64::MAX), i64::MAX);
    }
}
