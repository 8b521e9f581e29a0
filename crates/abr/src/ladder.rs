//! The rungs that a player may choose from.

use suiro_units::BitRate;

/// The nominal bit rates of a track's rungs: at least one, at most [`Ladder::MAX`], none of them
/// zero, in rising order. A rung is named by its index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ladder {
    rungs: Vec<BitRate>,
}

/// Why a list of bit rates is not a ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LadderError {
    /// There is no rung.
    Empty,
    /// There are more than [`Ladder::MAX`] rungs.
    TooMany,
    /// A rung has a bit rate of zero.
    Zero,
    /// A rung has a lower bit rate than the one before it.
    NotRising,
}

impl std::fmt::Display for LadderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("a ladder needs at least one rung"),
            Self::TooMany => write!(f, "a ladder has at most {} rungs", Ladder::MAX),
            Self::Zero => f.write_str("a rung's bit rate must not be zero"),
            Self::NotRising => f.write_str("a ladder's bit rates must not fall"),
        }
    }
}

impl std::error::Error for LadderError {}

impl Ladder {
    /// The most rungs a ladder may have.
    pub const MAX: usize = 256;

    /// A ladder of these rungs.
    pub fn new(rungs: Vec<BitRate>) -> Result<Self, LadderError> {
        if rungs.is_empty() {
            Err(LadderError::Empty)
        } else if rungs.len() > Self::MAX {
            Err(LadderError::TooMany)
        } else if rungs.iter().any(|r| r.is_zero()) {
            Err(LadderError::Zero)
        } else if !rungs.is_sorted() {
            Err(LadderError::NotRising)
        } else {
            Ok(Self { rungs })
        }
    }

    /// The bit rates, lowest first.
    pub fn rungs(&self) -> &[BitRate] {
        &self.rungs
    }

    /// Number of rungs, at least 1. (There is no `is_empty`: a ladder never is.)
    #[expect(clippy::len_without_is_empty, reason = "a ladder is never empty")]
    pub fn len(&self) -> usize {
        self.rungs.len()
    }

    /// Index of the highest rung.
    pub fn top(&self) -> usize {
        self.rungs.len() - 1
    }

    /// The highest rung that needs at most `rate`; the lowest if none does.
    pub fn highest_within(&self, rate: BitRate) -> usize {
        self.rungs.partition_point(|&rung| rung <= rate).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps(rungs: &[u64]) -> Result<Ladder, LadderError> {
        Ladder::new(rungs.iter().map(|&r| BitRate::from_kbps(r)).collect())
    }

    #[test]
    fn refuses_what_is_no_ladder() {
        assert_eq!(kbps(&[]), Err(LadderError::Empty));
        assert_eq!(kbps(&[0, 5]), Err(LadderError::Zero));
        assert_eq!(kbps(&[5, 4]), Err(LadderError::NotRising));
        assert_eq!(kbps(&vec![1; 257]), Err(LadderError::TooMany));
    }

    #[test]
    fn highest_within_a_rate() {
        let ladder = kbps(&[100, 200, 400]).unwrap();
        let at = |rate| ladder.highest_within(BitRate::from_kbps(rate));
        assert_eq!([at(50), at(100), at(199), at(200), at(9000)], [0, 0, 0, 1, 2]);
    }
}
