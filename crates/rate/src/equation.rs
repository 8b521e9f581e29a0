//! What a TCP would send: its throughput as a function of loss and round-trip time.
//!
//! Both forms come from Padhye, Firoiu, Towsley and Kurose, "Modeling TCP throughput: a simple model
//! and its empirical validation", SIGCOMM 1998, equation (32), for a receiver that acknowledges
//! every packet (b = 1). Rates are in bit/s and may be infinite; [`Bounds`] makes a target of one.

use suiro_units::{BitRate, Bytes, Duration};

/// The least and the most that a target may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The least.
    pub min: BitRate,
    /// The most; not below the least.
    pub max: BitRate,
}

impl Bounds {
    /// The nearest rate within; [`Self::min`] where `bps` is not a number.
    pub fn clamp(self, bps: f64) -> BitRate {
        let bps = bps.clamp(self.min.as_bps() as f64, self.max.as_bps() as f64);
        // A float may lie beyond the integer that it was made of.
        BitRate::from_bps(bps as u64).clamp(self.min, self.max)
    }
}

/// The model with its bound on the probability of a timeout, as TFRCP uses it. `p` is the share of
/// packets lost, `timeout` the retransmission timeout *T*₀.
pub fn padhye(size: Bytes, rtt: Duration, timeout: Duration, p: f64) -> f64 {
    let fast = rtt.as_secs_f64() * (2.0 * p / 3.0).sqrt();
    let slow = timeout.as_secs_f64() * (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0);
    size.bits() as f64 / (fast + slow * p * (1.0 + 32.0 * p * p))
}

/// The throughput equation of RFC 5348 §3.1, which leaves that bound out, with its
/// recommendations *b* = 1 and *t_RTO* = 4 *R*. `p` is the loss event rate.
pub fn rfc5348(size: Bytes, rtt: Duration, p: f64) -> f64 {
    let slow = 4.0 * 3.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p);
    size.bits() as f64 / (rtt.as_secs_f64() * ((2.0 * p / 3.0).sqrt() + slow))
}

/// The loss event rate at which [`rfc5348`] gives `bps`, between 10⁻⁸ and 1; the relative error is
/// below 10⁻⁶. RFC 5348 §6.3.1 asks for it when the first packet is lost.
pub fn loss_for(size: Bytes, rtt: Duration, bps: f64) -> f64 {
    // The equation falls with p: bisect its logarithm.
    let (mut low, mut high) = (1e-8_f64.ln(), 0.0);
    for _ in 0..48 {
        let middle = f64::midpoint(low, high);
        if rfc5348(size, rtt, middle.exp()) > bps { low = middle } else { high = middle }
    }
    high.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Bytes = Bytes::new(1460);
    const RTT: Duration = Duration::from_millis(100);

    fn near(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 1e-4, "{value} is not {expected}");
    }

    #[test]
    fn values_worked_out_by_hand() {
        // p = 1 %: √(2p/3) = 0.0816497; 12·√(3p/8)·p·(1+32p²) = 0.00737198.
        near(rfc5348(SIZE, RTT, 0.01), 1460.0 * 8.0 / (0.1 * (0.081_649_7 + 0.007_371_98)));
        // The same but for T₀ = 1 s: 0.00816497 + 1·0.183712·0.01·1.0032.
        let one = Duration::from_secs(1);
        near(padhye(SIZE, RTT, one, 0.01), 1460.0 * 8.0 / (0.008_164_97 + 0.001_842_999));
    }

    #[test]
    fn beyond_three_tenths_every_loss_may_be_a_timeout() {
        // 3√(3p/8) reaches 1 at p = 8/27.
        let t0 = RTT * 4;
        near(padhye(SIZE, RTT, t0, 0.2), rfc5348(SIZE, RTT, 0.2));
        assert!(padhye(SIZE, RTT, t0, 0.5) > rfc5348(SIZE, RTT, 0.5));
    }

    #[test]
    fn the_inverse_gives_the_loss_back() {
        for p in [1e-7, 1e-5, 0.001, 0.03, 0.4, 1.0] {
            near(loss_for(SIZE, RTT, rfc5348(SIZE, RTT, p)), p);
        }
        near(loss_for(SIZE, RTT, f64::INFINITY), 1e-8);
        near(loss_for(SIZE, RTT, 0.0), 1.0);
    }

    #[test]
    fn bounds_hold_for_any_number() {
        let bounds = Bounds { min: BitRate::from_kbps(1), max: BitRate::from_mbps(9) };
        for bps in [f64::NAN, f64::NEG_INFINITY, -1.0, 0.0, 1e5, 1e300, f64::INFINITY] {
            let rate = bounds.clamp(bps);
            assert!(bounds.min <= rate && rate <= bounds.max, "{bps} became {rate}");
        }
    }
}
