//! The rate controls' tests, of one program.

mod common;
mod properties;
mod tfrc;
mod tfrcp;
