//! The throughput rule: the highest rung that needs at most a share of the estimated throughput.
//!
//! The oldest rule there is, for example Liu, Bouazizi and Gabbouj, "Rate adaptation for adaptive
//! HTTP streaming" (MMSys 2011). This form, with the share, is that of dash.js. It is called
//! THROUGHPUT in Spiteri, Sitaraman and Sparacio, "From theory to practice: improving bitrate
//! adaptation in the DASH reference player" (MMSys 2018).

use suiro_units::BitRate;

use crate::Ladder;

/// The share of the estimate that a rung may need: dash.js's `bandwidthSafetyFactor`.
pub const SAFETY: f64 = 0.9;

/// The rung for an estimate; the lowest while there is none.
pub fn rung(ladder: &Ladder, estimate: Option<BitRate>) -> usize {
    estimate.map_or(0, |rate| ladder.highest_within(rate.mul_f64(SAFETY)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_tenth_in_hand() {
        let ladder = Ladder::new([500, 900, 1800].map(BitRate::from_kbps).to_vec()).unwrap();
        let at = |kbps| rung(&ladder, Some(BitRate::from_kbps(kbps)));
        assert_eq!([at(1), at(999), at(1000), at(1999), at(2000)], [0, 0, 1, 1, 2]);
        assert_eq!(rung(&ladder, None), 0);
    }
}
