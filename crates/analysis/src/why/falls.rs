//! Falls of a link's rate. What `why` names and what `suiro why --prove` leaves out are the same.

/// A time in which a link's rate was below what it had been.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fall {
    /// When it began.
    pub from_ns: i64,
    /// When the rate rose or fell again, or the end.
    pub to_ns: i64,
    /// The rate before.
    pub before_bps: f64,
    /// The lowest that it fell to.
    pub after_bps: f64,
}

/// Steps down that follow each other within this time are one fall.
const STEPS_APART_NS: i64 = 1_000_000_000;

/// The times in which a rate was below `fallen` (0 to 1) of what it had been, until it rose, fell again or the time ended.
/// `rates` has from when on which rate there was.
///
/// A span in which the rate changed may have a mean of both rates: then the fall goes on in the next.
pub fn falls(rates: &[(i64, f64)], end_ns: i64, fallen: f64) -> Vec<Fall> {
    let mut falls: Vec<Fall> = Vec::new();
    let mut level: Option<f64> = None;
    // When the last step of a fall that goes on was.
    let mut stepped_ns: Option<i64> = None;
    for (from_ns, rate) in rates {
        let before = *level.get_or_insert(*rate);
        let is_apart = stepped_ns.is_some_and(|stepped| from_ns - stepped >= STEPS_APART_NS);
        if let Some(fall) = falls.last_mut().filter(|_| is_apart && *rate < before * fallen) {
            fall.to_ns = *from_ns;
            stepped_ns = None;
        }
        match falls.last_mut().filter(|_| stepped_ns.is_some()) {
            Some(fall) if *rate * fallen > fall.after_bps => {
                fall.to_ns = *from_ns;
                stepped_ns = None;
                level = Some(*rate);
            }
            Some(fall) if *rate < fall.after_bps => {
                fall.after_bps = *rate;
                level = Some(*rate);
                stepped_ns = Some(*from_ns);
            }
            Some(_) => {}
            None if *rate < before * fallen => {
                let fall =
                    Fall { from_ns: *from_ns, to_ns: end_ns, before_bps: before, after_bps: *rate };
                falls.push(fall);
                level = Some(*rate);
                stepped_ns = Some(*from_ns);
            }
            None => level = Some(before.max(*rate)),
        }
    }
    falls
}

/// The last fall that was in force in a stretch of time.
pub fn last_fall(falls: &[Fall], (from_ns, to_ns): (i64, i64)) -> Option<Fall> {
    let meets = |fall: &&Fall| fall.from_ns < to_ns && fall.to_ns > from_ns;
    falls.iter().filter(meets).max_by_key(|fall| fall.from_ns).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fall_lasts_until_the_rate_rises() {
        let rates = [(0, 8e6), (119, 5e6), (120, 1.5e6), (260, 4e6), (300, 4.5e6)];
        let found = falls(&rates, 400, 0.8);
        let fall = Fall { from_ns: 119, to_ns: 260, before_bps: 8e6, after_bps: 1.5e6 };
        assert_eq!(found, [fall]);
        assert!(falls(&[(0, 8e6), (1, 7e6), (2, 9e6), (3, 7.5e6)], 9, 0.8).is_empty());
    }

    #[test]
    fn a_rate_that_falls_again_later_has_two_falls() {
        const S: i64 = 1_000_000_000;
        let rates = [(0, 3e6), (15 * S, 1e6), (22 * S, 6e5), (22 * S + S / 10, 3e5), (30 * S, 3e6)];
        let found = falls(&rates, 40 * S, 0.8);
        let first = Fall { from_ns: 15 * S, to_ns: 22 * S, before_bps: 3e6, after_bps: 1e6 };
        let second = Fall { from_ns: 22 * S, to_ns: 30 * S, before_bps: 1e6, after_bps: 3e5 };
        assert_eq!(found, [first, second]);
        // Steps of a trace that follow each other are one.
        let slope: Vec<(i64, f64)> = (0..8).map(|n| (n * S / 2, 8e6 / (n + 1) as f64)).collect();
        assert_eq!(falls(&slope, 9 * S, 0.8).len(), 1);
    }
}
