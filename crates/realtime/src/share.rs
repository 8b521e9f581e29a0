//! What a rate control allows, as bit rates of encoders. Pure.

use suiro_media::live::RATES;
use suiro_units::{BitRate, Bytes, Duration};

/// How an encoder's bit rate follows from what a rate control allows.
///
/// The allowance counts what is on the wire, headers and retransmissions included; an encoder counts
/// its own bytes and hits its rate only in the mean. So it is given a share of the allowance, less what
/// drains the sender's queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Share of the allowance that the encoder is given, 0 to 1. Default: 0.93; RTP's headers take some
    /// 3 % of full packets and more of others, and encoders do not hit their rate in each second.
    pub encoder: f64,
    /// Time within which the sender's queue should drain. Default: 1 s.
    pub drain: Duration,
    /// Share of the allowance that the encoder is given however much waits, 0 to 1. Default: 0.3.
    pub least: f64,
}

impl Default for Share {
    fn default() -> Self {
        Self { encoder: 0.93, drain: Duration::from_secs(1), least: 0.3 }
    }
}

impl Share {
    /// The encoder's bit rate, within [`RATES`], while `allowed` bits per second may leave and `queued`
    /// bytes wait to.
    pub fn encoder_rate(&self, allowed: BitRate, queued: Bytes) -> BitRate {
        let share = allowed.mul_f64(self.encoder);
        let waiting = queued / self.drain;
        let rate = BitRate::from_bps(share.as_bps().saturating_sub(waiting.as_bps()));
        rate.max(allowed.mul_f64(self.least)).clamp(*RATES.least(), *RATES.most())
    }
}

/// What one medium of several asks of an allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Below this it is of no use and gets nothing.
    pub least: BitRate,
    /// More than this it cannot use; at least [`Self::least`].
    pub most: BitRate,
    /// Its part of what is left when all have their least, against the others'; 0: it gets no more.
    pub weight: u32,
}

/// Divides an allowance among media, the most important first: each in turn gets its least, or nothing
/// where that is not left any more; the rest goes to those that got it, by weight, up to their most.
///
/// The rates are in the order of the demands; their sum is never more than `allowed`.
pub fn split(allowed: BitRate, demands: &[Demand]) -> Vec<BitRate> {
    let mut left = allowed.as_bps();
    let mut given: Vec<u64> = Vec::with_capacity(demands.len());
    for demand in demands {
        let least = demand.least.as_bps();
        let gets = if least <= left { least } else { 0 };
        left -= gets;
        given.push(gets);
    }
    let is_served = |n: usize| given[n] > 0 || demands[n].least.is_zero();
    let mut open: Vec<usize> = (0..demands.len()).filter(|&n| is_served(n)).collect();
    // In each round one medium at least reaches its most, or the rest is shared out and this ends.
    loop {
        let room = |n: usize| demands[n].most.as_bps().saturating_sub(given[n]);
        open.retain(|&n| room(n) > 0 && demands[n].weight > 0);
        let weights: u64 = open.iter().map(|&n| u64::from(demands[n].weight)).sum();
        if weights == 0 || left == 0 {
            break;
        }
        let part = |n: usize| {
            let part = u128::from(left) * u128::from(demands[n].weight) / u128::from(weights);
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let full: Vec<usize> = open.iter().copied().filter(|&n| room(n) <= part(n)).collect();
        let takes: Vec<(usize, u64)> = match full.is_empty() {
            true => open.iter().map(|&n| (n, part(n))).collect(),
            false => full.iter().map(|&n| (n, room(n))).collect(),
        };
        for (n, take) in takes {
            given[n] += take;
            left -= take;
        }
        if full.is_empty() {
            break;
        }
    }
    given.into_iter().map(BitRate::from_bps).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kbps(kbps: u64) -> BitRate {
        BitRate::from_kbps(kbps)
    }

    #[test]
    fn the_encoder_gets_its_share_less_what_drains_the_queue() {
        let share = Share::default();
        assert_eq!(share.encoder_rate(kbps(1000), Bytes::ZERO), kbps(930));
        // 25 kB within a second are 200 kbit/s.
        assert_eq!(share.encoder_rate(kbps(1000), Bytes::new(25_000)), kbps(730));
        assert_eq!(share.encoder_rate(kbps(1000), Bytes::new(1_000_000)), kbps(300), "never less");
        assert_eq!(share.encoder_rate(kbps(1), Bytes::ZERO), *RATES.least());
        assert_eq!(share.encoder_rate(BitRate::from_mbps(9000), Bytes::ZERO), *RATES.most());
    }

    fn demand(least: u64, most: u64, weight: u32) -> Demand {
        Demand { least: kbps(least), most: kbps(most), weight }
    }

    #[test]
    fn sound_comes_first_and_video_takes_the_rest() {
        let media = [demand(32, 64, 1), demand(100, 5000, 9)];
        let rates = |allowed| split(kbps(allowed), &media);
        assert_eq!(rates(20), [kbps(0), kbps(0)], "nothing is of use");
        assert_eq!(rates(90), [kbps(64), kbps(0)], "the video would need 100");
        // 132 are given; of 100 more a tenth is the sound's.
        assert_eq!(rates(232), [kbps(42), kbps(190)]);
        // The sound is full at 64.
        assert_eq!(rates(2064), [kbps(64), kbps(2000)]);
        assert_eq!(rates(9000), [kbps(64), kbps(5000)], "more cannot be used");
    }

    #[test]
    fn what_is_left_is_shared_by_weight() {
        let media = [demand(0, 1000, 1), demand(0, 200, 1), demand(0, 1000, 2)];
        assert_eq!(split(kbps(400), &media), [kbps(100), kbps(100), kbps(200)]);
        // The second is full: the others share its part, 1 to 2.
        assert_eq!(split(kbps(1100), &media), [kbps(300), kbps(200), kbps(600)]);
        let still = [demand(50, 1000, 0), demand(50, 1000, 1)];
        assert_eq!(split(kbps(500), &still), [kbps(50), kbps(450)]);
    }

    proptest! {
        #[test]
        fn no_more_is_given_than_is_allowed_and_little_is_left(
            allowed in 0..10_000_000u64,
            media in prop::collection::vec((0..2_000_000u64, 0..2_000_000u64, 1..10u32), 0..8),
        ) {
            let media: Vec<Demand> = media.into_iter().map(|(least, more, weight)| {
                let (least, most) = (BitRate::from_bps(least), BitRate::from_bps(least + more));
                Demand { least, most, weight }
            }).collect();
            let rates = split(BitRate::from_bps(allowed), &media);
            let sum: u64 = rates.iter().map(|rate| rate.as_bps()).sum();
            prop_assert!(sum <= allowed);
            let mut wants = false;
            for (rate, demand) in rates.iter().zip(&media) {
                prop_assert!(rate.is_zero() || (demand.least..=demand.most).contains(rate));
                wants |= rate >= &demand.least && rate < &demand.most;
            }
            // Rounding leaves less than a bit per second for each.
            prop_assert!(!wants || allowed - sum < 8, "{} of {allowed} are left", allowed - sum);
        }
    }
}
