//! The network compatibility model of ST 2110-21: how far the packets of a sender are ahead of a network that takes
//! them at β = 1.1 times their mean rate.

use crate::geometry::FrameRate;

/// β as a fraction.
const DRAIN: (u128, u128) = (11, 10);

/// A bucket from which a packet drains each T_DRAIN = T_FRAME / (N · β), if there is one.
///
/// As in the EBU's LIST, T_DRAIN counts from the first packet on, and C_INST is how many packets an arriving packet
/// finds that have not drained. A packet alone has 0, and a burst of *k* packets into an empty bucket ends with
/// *k* − 1.
#[derive(Debug, Clone)]
pub struct Network {
    /// Packets that drain in `per` nanoseconds.
    packets: u128,
    per: u128,
    /// When the first packet came, and how many could have drained since.
    began: Option<i64>,
    drained: u128,
    level: u128,
}

impl Network {
    /// For `packets` in each frame, of which `rate` come per second.
    pub fn new(packets: u32, rate: FrameRate) -> Self {
        Self {
            packets: u128::from(packets) * u128::from(rate.frames()) * DRAIN.0,
            per: u128::from(rate.seconds()) * 1_000_000_000 * DRAIN.1,
            began: None,
            drained: 0,
            level: 0,
        }
    }

    /// A packet comes at `t_ns`, which does not decrease. Returns C_INST.
    pub fn packet(&mut self, t_ns: i64) -> i64 {
        let Some(began) = self.began else {
            self.began = Some(t_ns);
            return 0;
        };
        let since = u128::from(t_ns.saturating_sub(began).max(0).unsigned_abs());
        let drained = since * self.packets / self.per;
        self.level = (self.level + 1).saturating_sub(drained.saturating_sub(self.drained));
        self.drained = drained;
        i64::try_from(self.level).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 1000 packets in each of 50 frames per second: 20 µs from packet to packet, T_DRAIN 18.18 µs.
    fn network() -> Network {
        Network::new(1000, FrameRate::new(50, 1).unwrap())
    }

    fn levels(times: impl IntoIterator<Item = i64>) -> Vec<i64> {
        let mut network = network();
        times.into_iter().map(|t_ns| network.packet(t_ns)).collect()
    }

    #[test]
    fn packets_at_their_rate_find_the_bucket_empty() {
        assert_eq!(levels((0..3000).map(|at| at * 20_000)), vec![0; 3000]);
    }

    #[test]
    fn a_burst_fills_the_bucket() {
        assert_eq!(levels([0, 0, 0, 0, 0]), [0, 1, 2, 3, 4]);
        // 100 µs later 5.5 could have drained: 5, and the burst itself counts again from there.
        assert_eq!(levels([0, 0, 0, 0, 0, 100_000, 100_000]), [0, 1, 2, 3, 4, 0, 1]);
        // 36.4 µs: exactly two have drained.
        assert_eq!(levels([0, 0, 0, 0, 36_364]), [0, 1, 2, 3, 2]);
    }

    #[test]
    fn a_pause_does_not_leave_credit() {
        assert_eq!(levels([0, 1_000_000_000, 1_000_000_000]), [0, 0, 1]);
    }

    proptest! {
        #[test]
        fn a_burst_of_k_packets_ends_with_one_less(k in 1..500i64, t_ns in 0..1_000_000_000i64) {
            let mut network = network();
            network.packet(0);
            let all: Vec<i64> = (0..k).map(|_| network.packet(t_ns + 1_000_000)).collect();
            prop_assert_eq!(all, (0..k).collect::<Vec<_>>());
        }

        #[test]
        fn it_is_a_bucket_that_drains_evenly_within_a_packet(
            steps in prop::collection::vec(0..60_000i64, 1..400)
        ) {
            let (mut network, mut even, mut t_ns) = (network(), 0f64, 0);
            network.packet(0);
            for step in steps {
                t_ns += step;
                even = (even + 1.0 - step as f64 / (20_000.0 / 1.1)).max(0.0);
                let level = network.packet(t_ns) as f64;
                prop_assert!((level - even).abs() <= 1.0 + 1e-6, "{level} {even}");
            }
        }
    }
}
