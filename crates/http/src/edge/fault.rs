//! Which requests a fault meets; pure.

use suiro_record::words::CacheFault;
use suiro_scenario::EdgeFault;
use suiro_units::{BitRate, Duration, Seed, Time};

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Met {
    Slow { delay: Option<Duration>, rate: Option<BitRate> },
    Stale,
    Unavailable { retry_after: Option<Duration> },
    Reset,
    Age(Duration),
}

impl Met {
    /// As it is recorded.
    pub const fn word(self) -> CacheFault {
        match self {
            Self::Slow { .. } => CacheFault::Slow,
            Self::Stale => CacheFault::Stale,
            Self::Unavailable { .. } => CacheFault::Unavailable,
            Self::Reset => CacheFault::Reset,
            Self::Age(_) => CacheFault::Age,
        }
    }
}

/// The fault of a cache, and the seed by which it meets requests.
#[derive(Debug)]
pub(super) struct Faults {
    pub spec: Option<EdgeFault>,
    pub seed: Seed,
}

impl Faults {
    /// What goes wrong with request number `number`, which came at `now`.
    pub fn of(&self, number: u64, now: Time) -> Option<Met> {
        let spec = self.spec.as_ref()?;
        let kind = spec.kind?;
        let since = now.saturating_since(Time::ZERO);
        let is_now = since >= spec.from && spec.to.is_none_or(|to| since < to);
        // Each request has a draw of its own, so that one that is made again may go well.
        let is_met = self.seed.nth(number).random().chance(spec.share.get());
        (is_now && is_met).then(|| match kind {
            CacheFault::Slow => Met::Slow { delay: spec.delay, rate: spec.rate },
            CacheFault::Stale => Met::Stale,
            CacheFault::Unavailable => Met::Unavailable { retry_after: spec.retry_after },
            CacheFault::Reset => Met::Reset,
            CacheFault::Age => Met::Age(spec.pretended_age()),
        })
    }
}

#[cfg(test)]
mod tests {
    use suiro_units::Ratio;

    use super::*;

    fn faults(share: f64) -> Faults {
        let spec = EdgeFault {
            kind: Some(CacheFault::Unavailable),
            from: Duration::from_secs(2),
            to: Some(Duration::from_secs(4)),
            share: Ratio::new(share).unwrap(),
            delay: None,
            rate: None,
            retry_after: Some(Duration::from_secs(1)),
            age: None,
        };
        Faults { spec: Some(spec), seed: Seed(7) }
    }

    #[test]
    fn a_fault_has_its_time_and_its_share() {
        let all = faults(1.0);
        let met = |ms| all.of(0, Time::from_millis(ms)).is_some();
        assert_eq!([1999, 2000, 3999, 4000].map(met), [false, true, true, false]);
        let some = faults(0.25);
        let meets = |number: &u64| some.of(*number, Time::from_secs(3)).is_some();
        let count = (0..4000).filter(meets).count();
        assert!((900..1100).contains(&count), "{count}");
        assert!((0..100).all(|number| meets(&number) == meets(&number)), "the seed decides");
        assert_eq!(Faults { spec: None, seed: Seed(1) }.of(0, Time::ZERO), None);
    }
}
