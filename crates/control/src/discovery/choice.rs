//! Which of several registries is used. Pure.

use suiro_units::{Duration, Time};

use super::Candidate;
use crate::client::Base;

/// The first pause of a registry that failed; the next ones are twice as long each.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause: less than the interval of heartbeats, so that a registry that comes back is found as soon.
const PAUSE_MAX: Duration = Duration::from_secs(4);

/// The registries that are known, and how they did.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Which of several with one priority comes first: different for each node (IS-04 v1.3: a random selection).
    seed: u64,
    all: Vec<Known>,
    current: Option<Base>,
}

#[derive(Debug, Clone)]
struct Known {
    candidate: Candidate,
    /// Failures since it last did what it was asked, and until when it is left alone.
    failures: u32,
    until: Time,
}

impl Choice {
    /// None is known. `seed` decides between equals.
    pub const fn new(seed: u64) -> Self {
        Self { seed, all: Vec::new(), current: None }
    }

    /// Those that are known now; how they did is not forgotten.
    pub fn know(&mut self, candidates: &[Candidate]) {
        let known = std::mem::take(&mut self.all);
        let mut all: Vec<Known> = Vec::new();
        for candidate in candidates {
            if all.iter().any(|own| own.candidate.base == candidate.base) {
                continue;
            }
            let before = known.iter().find(|own| own.candidate.base == candidate.base);
            let (failures, until) = before.map_or((0, Time::ZERO), |own| (own.failures, own.until));
            all.push(Known { candidate: candidate.clone(), failures, until });
        }
        all.sort_by_cached_key(|own| {
            (own.candidate.pri, self.rank(&own.candidate.base), own.candidate.base.clone())
        });
        self.all = all;
    }

    /// FNV-1a of the seed and an address.
    fn rank(&self, base: &Base) -> u64 {
        let bytes = self.seed.to_le_bytes().into_iter().chain(base.to_string().into_bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Whether none is known.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The one to use at `now`: the one in use as long as it does not fail and is known, else the first that is not left alone.
    pub fn best(&mut self, now: Time) -> Option<Base> {
        let usable = |own: &&Known| own.until <= now;
        let kept = self.all.iter().find(|own| Some(&own.candidate.base) == self.current.as_ref());
        let best = kept.filter(usable).or_else(|| self.all.iter().find(usable));
        self.current = best.map(|own| own.candidate.base.clone());
        self.current.clone()
    }

    /// It did not do what it was asked at `now`.
    pub fn failed(&mut self, base: &Base, now: Time) {
        if let Some(own) = self.all.iter_mut().find(|own| own.candidate.base == *base) {
            own.until = now + (PAUSE * (1 << own.failures.min(8))).min(PAUSE_MAX);
            own.failures += 1;
        }
        self.current = None;
    }

    /// It did.
    pub fn worked(&mut self, base: &Base) {
        if let Some(own) = self.all.iter_mut().find(|own| own.candidate.base == *base) {
            (own.failures, own.until) = (0, Time::ZERO);
        }
    }

    /// How long it is from `now` until one can be tried; `None` if none is known.
    pub fn wait(&self, now: Time) -> Option<Duration> {
        self.all.iter().map(|own| own.until.saturating_since(now)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(port: u16, pri: u32) -> Candidate {
        Candidate { pri, base: base(port) }
    }

    fn base(port: u16) -> Base {
        Base::parse(&format!("http://192.0.2.1:{port}")).unwrap()
    }

    fn at(seconds: u64) -> Time {
        Time::from_secs(100 + seconds)
    }

    #[test]
    fn the_first_priority_is_used_and_the_next_one_if_it_fails() {
        let mut choice = Choice::new(1);
        assert_eq!(choice.best(at(0)), None);
        choice.know(&[of(3, 30), of(1, 10), of(2, 20)]);
        assert_eq!(choice.best(at(0)), Some(base(1)));
        choice.failed(&base(1), at(0));
        assert_eq!(choice.best(at(0)), Some(base(2)));
        choice.failed(&base(2), at(0));
        assert_eq!(choice.best(at(0)), Some(base(3)));
        choice.worked(&base(3));
        // It stays there when the others can be tried again, also when one with a higher priority appears.
        choice.know(&[of(3, 30), of(1, 10), of(2, 20), of(4, 0)]);
        assert_eq!(choice.best(at(60)), Some(base(3)));
        // Its announcement is withdrawn.
        choice.know(&[of(1, 10), of(2, 20)]);
        assert_eq!(choice.best(at(60)), Some(base(1)));
    }

    #[test]
    fn pauses_grow_while_all_fail_and_end_with_success() {
        let mut choice = Choice::new(1);
        choice.know(&[of(1, 10)]);
        let mut now = at(0);
        let mut pauses = Vec::new();
        for _ in 0..5 {
            assert_eq!(choice.best(now), Some(base(1)));
            choice.failed(&base(1), now);
            let pause = choice.wait(now).unwrap();
            assert_eq!(choice.best(now), None);
            pauses.push(pause.as_nanos() / 1_000_000_000);
            now += pause;
        }
        assert_eq!(pauses, [1, 2, 4, 4, 4]);
        choice.worked(&base(1));
        choice.failed(&base(1), now);
        assert_eq!(choice.wait(now), Some(PAUSE));
    }

    #[test]
    fn nodes_spread_over_registries_of_one_priority() {
        let first = |seed| {
            let mut choice = Choice::new(seed);
            choice.know(&[of(1, 10), of(2, 10), of(3, 10)]);
            choice.best(at(0)).unwrap().port
        };
        let counts = [1, 2, 3].map(|port| (0..300).filter(|seed| first(*seed) == port).count());
        assert!(counts.iter().all(|count| *count > 60), "{counts:?}");
        assert_eq!(first(7), first(7));
    }
}
