//! What people load and when: pure, from a seed.

use suiro_scenario::{ObjectSizes, WebClients};
use suiro_units::{Bytes, Duration, Random, Seed};

/// Halvings of the interval in which the least size is sought: enough for the least of all.
const HALVINGS: u32 = 100;

/// Longest think time, in means: one in 10²² is longer.
const THINK_MAX: f64 = 50.0;

/// Sizes of objects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sizes {
    /// Many small ones and a few large ones.
    Pareto(Pareto),
    /// Each from the first to the last is as likely as any other.
    Uniform(Bytes, Bytes),
}

impl Sizes {
    /// Those of what these clients load.
    pub fn of(clients: &WebClients) -> Self {
        let WebClients { size, largest, shape, .. } = *clients;
        match clients.sizes {
            ObjectSizes::Pareto => Self::Pareto(Pareto::new(size, largest, shape)),
            ObjectSizes::Uniform => {
                let least = (2 * size.get()).saturating_sub(largest.get());
                Self::Uniform(Bytes::new(least.max(1)), largest)
            }
        }
    }

    /// One size; at least a byte.
    pub fn draw(&self, random: &mut Random) -> Bytes {
        match self {
            Self::Pareto(pareto) => pareto.draw(random),
            Self::Uniform(least, largest) => {
                let sizes = largest.get().saturating_sub(least.get()) + 1;
                let above = (random.uniform() * sizes as f64) as u64;
                Bytes::new(least.get() + above.min(sizes - 1))
            }
        }
    }
}

/// A Pareto distribution of this shape, cut off below and above. Of sizes x from
/// `least` to `largest`, the share 1 − (1 − (least ∕ x)^α) ∕ (1 − (least ∕ largest)^α) is larger than x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pareto {
    least: f64,
    largest: f64,
    shape: f64,
}

impl Pareto {
    /// With this mean, less than `largest`, and shape α, more than zero: that sets the least size.
    pub fn new(mean: Bytes, largest: Bytes, shape: f64) -> Self {
        let (mean, largest) = (mean.get() as f64, largest.get() as f64);
        // The mean grows with the least size, from nothing to the largest.
        let (mut below, mut above) = (0.0, largest);
        for _ in 0..HALVINGS {
            let least = f64::midpoint(below, above);
            if (Self { least, largest, shape }).mean() < mean {
                below = least;
            } else {
                above = least;
            }
        }
        Self { least: above, largest, shape }
    }

    /// The mean, in bytes: α·L·((1 − (L∕H)^(α−1)) ∕ (α−1)) ∕ (1 − (L∕H)^α), and ln(H∕L) for the
    /// inner quotient at α = 1.
    fn mean(&self) -> f64 {
        let Self { least, largest, shape } = *self;
        let decades = (largest / least).ln();
        let more = shape - 1.0;
        let inner = if more == 0.0 { decades } else { -(-more * decades).exp_m1() / more };
        shape * least * inner / -(-shape * decades).exp_m1()
    }

    /// One size, by the inverse of the distribution function; at least a byte.
    pub fn draw(&self, random: &mut Random) -> Bytes {
        let Self { least, largest, shape } = *self;
        let share = 1.0 - (least / largest).powf(shape);
        let size = least * (1.0 - random.uniform() * share).powf(-1.0 / shape);
        Bytes::new((size.round() as u64).max(1))
    }
}

/// A page to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// How long one thinks before it.
    pub think: Duration,
    /// Sizes of its objects, one at least.
    pub objects: Vec<Bytes>,
}

/// The pages of one person, one after the other, without an end.
#[derive(Debug)]
pub struct Pages {
    random: Random,
    sizes: Sizes,
    think: Duration,
    objects: u16,
}

impl Pages {
    /// What the person number `user` of these clients loads.
    pub fn new(clients: &WebClients, user: u16, seed: Seed) -> Self {
        Self {
            random: seed.derive(&format!("user {user}")).random(),
            sizes: Sizes::of(clients),
            think: clients.think,
            objects: clients.objects,
        }
    }
}

impl Iterator for Pages {
    type Item = Page;

    fn next(&mut self) -> Option<Page> {
        let think = self.random.exponential().min(THINK_MAX) * self.think.as_secs_f64();
        let draw = |_| self.sizes.draw(&mut self.random);
        let objects = (0..self.objects.max(1)).map(draw).collect();
        Some(Page { think: Duration::from_nanos((think * 1e9) as u64), objects })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_mean_is_as_asked_and_the_tail_as_heavy() {
        // At α = 2.5 the mean of many settles; heavier tails are checked by their quantiles.
        let sizes = Pareto::new(Bytes::new(30_000), Bytes::new(5_000_000), 2.5);
        let mut random = Seed(1).random();
        let count = 200_000;
        let sum: u64 = (0..count).map(|_| sizes.draw(&mut random).get()).sum();
        let mean = sum as f64 / f64::from(count);
        assert!((mean / 30_000.0 - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn a_tenth_is_larger_than_the_ninth_decile() {
        let sizes = Pareto::new(Bytes::new(30_000), Bytes::new(5_000_000), 1.2);
        let Pareto { least, largest, shape } = sizes;
        let decile = least * (1.0 - 0.9 * (1.0 - (least / largest).powf(shape))).powf(-1.0 / shape);
        let mut random = Seed(2).random();
        let above = (0..100_000).filter(|_| sizes.draw(&mut random).get() as f64 > decile).count();
        assert!((9_700..10_300).contains(&above), "{above}");
    }

    #[test]
    fn by_hand() {
        // α = 1, L = 1, H = e: the mean is e ∕ (e − 1).
        let e = std::f64::consts::E;
        let sizes = Pareto { least: 1.0, largest: e, shape: 1.0 };
        assert!((sizes.mean() - e / (e - 1.0)).abs() < 1e-12);
        // α = 2, L = 1, H = 2: density (8 ∕ 3) x⁻³, mean 4 ∕ 3.
        let sizes = Pareto { least: 1.0, largest: 2.0, shape: 2.0 };
        assert!((sizes.mean() - 4.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn uniform_sizes_are_as_often_small_as_large() {
        let (size, largest) = (Bytes::new(40_000), Bytes::new(50_000));
        let clients = WebClients {
            size,
            largest,
            sizes: ObjectSizes::Uniform,
            ..WebClients::of("web".into())
        };
        let sizes = Sizes::of(&clients);
        let mut random = Seed(5).random();
        let mut drawn: Vec<u64> = (0..100_000).map(|_| sizes.draw(&mut random).get()).collect();
        drawn.sort_unstable();
        assert!(drawn[0] >= 30_000 && drawn[99_999] <= 50_000);
        for (quarter, want) in [(1, 35_000), (2, 40_000), (3, 45_000)] {
            let found = drawn[25_000 * quarter];
            assert!(found.abs_diff(want) < 200, "quarter {quarter}: {found}");
        }
    }

    #[test]
    fn people_repeat_and_differ() {
        let clients = WebClients::of("web".into());
        let first = |user| Pages::new(&clients, user, Seed(3)).take(5).collect::<Vec<_>>();
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
        assert!(first(1).iter().all(|page| page.objects.len() == 8));
        let thinks = Pages::new(&clients, 1, Seed(4)).take(20_000);
        let mean = thinks.map(|page| page.think.as_secs_f64()).sum::<f64>() / 20_000.0;
        assert!((mean - 5.0).abs() < 0.15, "{mean}");
    }

    proptest! {
        #[test]
        fn sizes_lie_between_and_have_their_mean(
            mean in 100u64..1_000_000, more in 2u64..1000, shape in 0.5f64..10.0, seed: u64,
        ) {
            let largest = mean * more;
            let sizes = Pareto::new(Bytes::new(mean), Bytes::new(largest), shape);
            prop_assert!((sizes.mean() / mean as f64 - 1.0).abs() < 1e-6, "{sizes:?}");
            let mut random = Seed(seed).random();
            for _ in 0..100 {
                let size = sizes.draw(&mut random).get();
                prop_assert!(size >= 1 && size as f64 >= sizes.least.floor() && size <= largest);
            }
        }
    }
}
