//! A peer's packets are handed to str0m, whose panics end the connection to that peer and nothing else.
//!
//! str0m 0.25.0 panics on a report of transport-wide feedback that has a run of no packets before one whose deltas have the
//! other size (`TwccIter`). Reports come encrypted, so that nobody can look at them before.

use std::panic::{AssertUnwindSafe, catch_unwind};

use str0m::RtcError;

use super::PeerError;

/// What `act` returns, which uses the connection; after a panic, the connection is not used again.
///
/// # Errors
/// [`PeerError::Broken`], and [`PeerError::Panicked`] after a panic.
pub(super) fn guarded<T>(act: impl FnOnce() -> Result<T, RtcError>) -> Result<T, PeerError> {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(done) => done.map_err(PeerError::Broken),
        Err(_) => Err(PeerError::Panicked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        assert!(matches!(guarded(|| Ok(5)), Ok(5)));
        let panicked = guarded::<()>(|| panic!("as str0m does"));
        assert!(matches!(panicked, Err(PeerError::Panicked)), "{panicked:?}");
    }
}
