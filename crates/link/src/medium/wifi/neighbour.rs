//! Other stations on the same channel: they take the air in turns with ours.

use suiro_units::{Duration, Random, Seed, Time};

/// Mean time that others hold the air, exponentially distributed: half of a longest A-MPDU.
const HOLD: Duration = Duration::from_millis(2);
/// After so long a pause the past says nothing any more of who holds the air.
const FORGOTTEN: Duration = Duration::from_secs(1);

/// Others want the air at the times of a Poisson process, as often as their share needs. Whoever
/// wants it while it is taken begins when it is free, before ours; they never collide with ours.
#[derive(Debug)]
pub(crate) struct Neighbour {
    /// When they next want the air; `None` while there are none.
    next: Option<Time>,
    random: Random,
}

impl Neighbour {
    pub fn new(seed: Seed) -> Self {
        Self { next: None, random: seed.random() }
    }

    /// When they first held the air since `free`, up to `now`: from when to when. Nobody has held it between `free` and then.
    /// `busy` is their share of the time, below 1.
    pub fn holds(&mut self, free: Time, now: Time, busy: f64) -> Option<(Time, Time)> {
        if busy == 0.0 {
            self.next = None;
            return None;
        }
        let interval = HOLD.mul_f64(1.0 / busy);
        let next = match self.next {
            Some(next) if now.saturating_since(next) < FORGOTTEN => next,
            // The state in the long run, from now on.
            _ if self.random.chance(busy) => now,
            _ => now + self.span(interval),
        };
        let begins = next.max(free);
        if begins > now {
            self.next = Some(next);
            return None;
        }
        let ends = begins + self.span(HOLD);
        self.next = Some(next + self.span(interval));
        Some((begins, ends))
    }

    fn span(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(self.random.exponential()) + Duration::from_micros(1)
    }
}
