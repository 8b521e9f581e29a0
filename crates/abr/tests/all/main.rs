//! The tests of algorithms and playout, of one program.

mod playout;
mod properties;
