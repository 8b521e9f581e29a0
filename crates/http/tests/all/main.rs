//! The tests of origin and players, of one program.

mod common;
mod faults;
mod loopback;
mod origin;
mod real;
