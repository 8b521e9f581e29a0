//! The viewer's tests, of one program.

mod by_hand;
mod over_link;
mod properties;
