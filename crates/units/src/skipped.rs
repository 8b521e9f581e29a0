//! The line of a test that cannot run here. It is in this crate because every other one depends on it.

use std::fmt::Display;
use std::io::Write;

/// For tests: prints `skipped: REASON` to standard error, which `make test` lists at its end. A passing test's output
/// through `println!` and `eprintln!` is kept back; this is not.
pub fn skipped<R: Display + ?Sized>(reason: &R) {
    // In one piece: other tests print at the same time.
    let line = format!("skipped: {reason}\n");
    // Without standard error, nobody reads it.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
