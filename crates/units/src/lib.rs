//! Time, duration, bit rate, size, seed and closed lists of words: the types that every other crate
//! measures in.
//!
//! Each type is a newtype over one integer (or one `f64` for [`Ratio`]), parses from text with its
//! unit written out (`"20 ms"`, `"1.5 Mbit/s"`, `"100 kB"`), prints the same way, and serialises
//! as that text. Arithmetic exists only where it has a physical meaning:
//!
//! ```
//! use suiro_units::{BitRate, Bytes, Time};
//! let departs = Time::ZERO + Bytes::new(1500) / BitRate::from_mbps(12);
//! assert_eq!(departs, Time::from_millis(1));
//! ```

mod hash;
mod parse;
mod quantity;
mod seed;
mod skipped;
#[cfg(test)]
mod tests;
mod time;
mod whole;
mod word;

pub use hash::fnv1a;
pub use parse::UnitError;
pub use quantity::{BitRate, Bytes, Ratio};
pub use seed::{Random, Seed};
pub use skipped::skipped;
pub use time::{Duration, Time};
pub use whole::to_i64;
pub use word::{Direction, UnknownWord, Word, for_words};
