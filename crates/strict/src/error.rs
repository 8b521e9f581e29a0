//! Everything that is wrong with a text.

use std::fmt;

use crate::refusal::{Place, Refusal};

/// Most refusals that one error prints; the rest is counted.
pub const REFUSALS_MAX: usize = 20;

/// Why a text is refused: everything that was found wrong, in the order of the file.
///
/// Displays as one paragraph per refusal, ready to be printed:
///
/// ```text
/// quick.toml:14:1: unknown key `delai`
///    |
/// 14 | delai = "20 ms"
///    | ^^^^^
/// expected: `delay`, `down`, `up` or `queue`
/// hint: did you mean `delay`?
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// What was found, at most [`REFUSALS_MAX`]; never empty.
    pub refusals: Vec<Refusal<Place>>,
    /// How many more were found before the search ended.
    pub more: usize,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, refusal) in self.refusals.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            refusal.fmt(f)?;
        }
        if self.more > 0 {
            write!(f, "\n\n… and at least {} more", self.more)?;
        }
        Ok(())
    }
}

impl From<Refusal<Place>> for Error {
    fn from(refusal: Refusal<Place>) -> Self {
        Self { refusals: vec![refusal], more: 0 }
    }
}
