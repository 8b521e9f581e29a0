//! The tests of socket records, of one program.

mod diag;
mod loopback;
