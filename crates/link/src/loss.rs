//! Which packets are lost at the entrance.

use suiro_units::{Random, Seed, Time};

use crate::config::{GilbertElliott, LossConfig};
use crate::packet::Passage;
use crate::schedule::{Follow, Schedule};
use crate::turns;

/// The loss model in force, and its random numbers.
#[derive(Debug)]
pub(crate) struct Loss {
    model: Follow<Model>,
    /// Of packets that are lost or not by themselves.
    seed: Seed,
    /// Of the state that all packets have in common.
    random: Random,
}

#[derive(Debug)]
enum Model {
    None,
    Bernoulli(f64),
    GilbertElliott(GilbertElliott, State),
    List { packets: Box<[u64]>, next: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Drawn at the first packet, by the shares of both states in the long run.
    Unknown,
    Good,
    Bad,
}

impl Loss {
    pub fn new(config: &Schedule<LossConfig>, seed: Seed) -> Self {
        Self { model: Follow::new(config.map(Model::new)), seed, random: seed.random() }
    }

    /// Whether a packet is lost. Numbers and times increase.
    pub fn loses(&mut self, now: Time, passage: &Passage) -> bool {
        match self.model.at(now) {
            Model::None => false,
            Model::Bernoulli(ratio) => {
                turns::random(self.seed, passage.packet.flow, passage.turn).chance(*ratio)
            }
            Model::GilbertElliott(model, state) => state.loses(model, &mut self.random),
            Model::List { packets, next } => {
                while packets.get(*next).is_some_and(|&listed| listed < passage.number) {
                    *next += 1;
                }
                packets.get(*next) == Some(&passage.number)
            }
        }
    }
}

impl Model {
    fn new(config: &LossConfig) -> Self {
        match config {
            LossConfig::None => Self::None,
            LossConfig::Bernoulli(ratio) => Self::Bernoulli(ratio.get()),
            LossConfig::GilbertElliott(model) => Self::GilbertElliott(*model, State::Unknown),
            LossConfig::List(packets) => Self::List { packets: packets.as_slice().into(), next: 0 },
        }
    }
}

impl State {
    fn loses(&mut self, model: &GilbertElliott, random: &mut Random) -> bool {
        if *self == Self::Unknown {
            *self = if random.chance(model.share_bad().get()) { Self::Bad } else { Self::Good };
        }
        let (loss, change, other) = match self {
            Self::Bad => (model.loss_bad, model.bad_to_good, Self::Good),
            _ => (model.loss_good, model.good_to_bad, Self::Bad),
        };
        let lost = random.chance(loss.get());
        if random.chance(change.get()) {
            *self = other;
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use suiro_units::{Bytes, Ratio};

    use super::*;
    use crate::packet::{Backlog, Ecn, Packet};

    fn losses(config: LossConfig, packets: u64) -> Vec<bool> {
        let mut loss = Loss::new(&Schedule::constant(config), Seed(3));
        (0..packets).map(|n| loss.loses(Time::from_millis(n), &packet(0, n, n))).collect()
    }

    fn packet(flow: u64, turn: u64, number: u64) -> Passage {
        let packet = Packet { id: 0, size: Bytes::new(1000), flow, ecn: Ecn::NotEct };
        let arrived = Time::from_millis(number);
        let backlog = Backlog::default();
        let (dequeued, ecn_marked, attempts) = (None, false, 0);
        Passage { packet, number, turn, arrived, backlog, dequeued, ecn_marked, attempts }
    }

    fn ratio(value: f64) -> Ratio {
        Ratio::new(value).unwrap()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64
    }

    #[test]
    fn bernoulli_loses_its_share_without_memory() {
        let lost = losses(LossConfig::Bernoulli(ratio(0.02)), 500_000);
        // Four standard errors of a binomial share.
        assert!((share(&lost) - 0.02).abs() < 4.0 * (0.02 * 0.98 / 500_000.0_f64).sqrt());
        let after_loss: Vec<bool> =
            lost.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        assert!((share(&after_loss) - 0.02).abs() < 0.006, "{}", share(&after_loss));
        assert_eq!(share(&losses(LossConfig::Bernoulli(ratio(1.0)), 100)), 1.0);
    }

    #[test]
    fn what_others_send_does_not_decide_about_a_packet() {
        let model = Schedule::constant(LossConfig::Bernoulli(ratio(0.3)));
        let (mut alone, mut among) = (Loss::new(&model, Seed(3)), Loss::new(&model, Seed(3)));
        let at = Time::from_millis;
        let alone: Vec<bool> = (0..1000).map(|n| alone.loses(at(n), &packet(7, n, n))).collect();
        let among: Vec<bool> = (0..1000)
            .map(|n| {
                let other = among.loses(at(n), &packet(8, n, 2 * n));
                (other, among.loses(at(n), &packet(7, n, 2 * n + 1)))
            })
            .map(|(_, own)| own)
            .collect();
        assert_eq!(alone, among);
        assert!((share(&alone) - 0.3).abs() < 0.06, "{}", share(&alone));
    }

    #[test]
    fn gilbert_elliott_has_its_stationary_loss_and_burst_length() {
        let model = GilbertElliott {
            good_to_bad: ratio(0.01),
            bad_to_good: ratio(0.25),
            loss_good: ratio(0.0),
            loss_bad: ratio(1.0),
        };
        let lost = losses(LossConfig::GilbertElliott(model), 2_000_000);
        let expected = 0.01 / 0.26;
        assert!((model.mean().get() - expected).abs() < 1e-12);
        assert!((share(&lost) / expected - 1.0).abs() < 0.03, "{}", share(&lost));
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let mean = lost.iter().filter(|&&lost| lost).count() as f64 / bursts as f64;
        assert!((mean - 4.0).abs() < 0.1, "mean burst {mean}");
    }

    #[test]
    fn all_four_parameters_count() {
        let model = GilbertElliott {
            good_to_bad: ratio(0.1),
            bad_to_good: ratio(0.3),
            loss_good: ratio(0.02),
            loss_bad: ratio(0.6),
        };
        let lost = losses(LossConfig::GilbertElliott(model), 1_000_000);
        let expected = 0.25 * 0.6 + 0.75 * 0.02;
        assert!((model.mean().get() - expected).abs() < 1e-12);
        assert!((share(&lost) / expected - 1.0).abs() < 0.02, "{}", share(&lost));
    }

    #[test]
    fn a_list_loses_exactly_its_packets() {
        let lost = losses(LossConfig::List(vec![0, 3, 4, 9]), 8);
        assert_eq!(lost, [true, false, false, true, true, false, false, false]);
    }

    #[test]
    fn a_change_brings_another_model() {
        let config = Schedule {
            first: LossConfig::Bernoulli(ratio(1.0)),
            changes: vec![crate::Change {
                at: suiro_units::Duration::from_millis(10),
                value: LossConfig::List(vec![11]),
            }],
        };
        let mut loss = Loss::new(&config, Seed(1));
        let lost: Vec<u64> =
            (0..20).filter(|&n| loss.loses(Time::from_millis(n), &packet(0, n, n))).collect();
        assert_eq!(lost, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11]);
    }
}
