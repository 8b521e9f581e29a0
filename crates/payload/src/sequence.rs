//! Numbers that wrap, counted on.

/// A counter of `BITS` bits, as packets carry it, extended to one that does not wrap: each value is
/// taken as the one nearest to the newest before it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwrap<const BITS: u32> {
    newest: Option<u64>,
}

/// RTP sequence numbers (RFC 3550 §5.1).
pub type Sequences = Unwrap<16>;
/// RTP timestamps (RFC 3550 §5.1).
pub type Timestamps = Unwrap<32>;

impl<const BITS: u32> Unwrap<BITS> {
    const SPAN: u64 = 1 << BITS;

    /// The value extended; it becomes the newest if it is. The first gets one turn of the counter
    /// added, so that there is room below it for what was sent before and comes later.
    pub fn take(&mut self, value: u32) -> u64 {
        let extended = self.peek(value);
        self.newest = Some(self.newest.map_or(extended, |newest| newest.max(extended)));
        extended
    }

    /// The value extended; nothing changes.
    pub fn peek(&self, value: u32) -> u64 {
        let value = u64::from(value) % Self::SPAN;
        let Some(newest) = self.newest else { return value + Self::SPAN };
        let base = newest - newest % Self::SPAN + value;
        let half = Self::SPAN / 2;
        if base > newest + half {
            base.saturating_sub(Self::SPAN)
        } else if base + half < newest {
            base + Self::SPAN
        } else {
            base
        }
    }

    /// The newest so far.
    pub fn newest(&self) -> Option<u64> {
        self.newest
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wraps_are_counted_and_late_ones_stay_behind() {
        let mut sequences = Sequences::default();
        assert_eq!(sequences.take(65_534), 65_536 + 65_534);
        assert_eq!(sequences.take(1), 2 * 65_536 + 1);
        assert_eq!(sequences.take(65_535), 65_536 + 65_535);
        assert_eq!(sequences.newest(), Some(2 * 65_536 + 1));
    }

    proptest! {
        /// Whatever comes in steps of less than half a turn is counted exactly.
        #[test]
        fn steps_add_up(first: u16, steps in prop::collection::vec(-32_000..32_000i64, 1..50)) {
            let mut sequences = Sequences::default();
            let mut truth = i64::from(first) + 65_536;
            sequences.take(first.into());
            let mut newest = truth;
            for step in steps {
                truth = (newest + step).max(0);
                let carried = u32::try_from(truth % 65_536).unwrap();
                prop_assert_eq!(sequences.take(carried), u64::try_from(truth).unwrap());
                newest = newest.max(truth);
            }
        }
    }
}
