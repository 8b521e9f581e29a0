//! The clock that frames begin by.

use suiro_uncompressed::clock::TaiState;

use super::Finding;
use crate::doctor::State;

/// What the kernel says of CLOCK_TAI.
pub fn finding(told: Option<TaiState>) -> Finding {
    let purpose = "frame k of every stream begins at the same time, whichever host sends it";
    let finding = |found: &str| Finding::ok("uncompressed: clock", "TAI", purpose, found);
    let Some(state) = told else {
        return finding("the kernel does not report it").but(State::Limited, "");
    };
    match state.complaint() {
        None => finding(&format!("{} s ahead of UTC, synchronised", state.offset_s)),
        Some(complaint) => {
            let mend = "ptp4l and phc2sys of linuxptp, or chronyd with `leapsectz right/UTC`";
            finding(complaint).but(State::Limited, mend)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_without_leap_seconds_or_master_is_limited() {
        let check =
            |offset_s, synchronised| finding(Some(TaiState { offset_s, synchronised })).check;
        assert_eq!(check(37, true).found, "37 s ahead of UTC, synchronised");
        assert_eq!((check(37, true).state, check(0, true).state), (State::Ok, State::Limited));
        assert!(check(37, false).found.contains("is not synchronised"));
        assert_eq!(finding(None).check.state, State::Limited);
    }
}
