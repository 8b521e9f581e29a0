//! What a frame costs in time, and how likely it arrives: 802.11n, one stream, 20 MHz.

use suiro_units::Duration;

use crate::erfc::erfc;

/// Short interframe space with the signal extension of 2.4 GHz: 10 µs + 6 µs (IEEE 802.11-2012,
/// §20.4.4). At 5 GHz it is 16 µs as well.
pub(crate) const SIFS: Duration = Duration::from_micros(16);
pub(crate) const SLOT: Duration = Duration::from_micros(9);
/// Arbitration interframe space of best effort: SIFS and 3 slots (IEEE 802.11-2012, table 8-105).
pub(crate) const AIFS: Duration = Duration::from_micros(43);
/// HT-mixed preamble of one stream: 8 + 8 + 4 + 8 + 4 + 4 µs (IEEE 802.11-2012, §20.3.2).
const PREAMBLE_NS: u64 = 36_000;
const LEGACY_PREAMBLE_NS: u64 = 20_000;
/// Bytes of a compressed block ACK (IEEE 802.11-2012, §8.3.1.9).
const BLOCK_ACK_BYTES: u64 = 32;
/// LLC/SNAP 8, QoS header 26, FCS 4 and the A-MPDU delimiter 4; no encryption.
const OVERHEAD_BYTES: u64 = 42;
/// Service field and tail of a PPDU.
const PPDU_BITS: u64 = 16 + 6;

/// Most bytes of an A-MPDU: what its length field holds in HT (IEEE 802.11-2012, §8.4.2.58.3).
pub(crate) const MAX_AMPDU_BYTES: u64 = 65_535;
/// Largest IP packet: an MSDU of 2304 bytes less LLC/SNAP.
pub(crate) const MAX_IP_BYTES: u64 = 2_296;
pub(crate) const MCS_COUNT: usize = 8;

/// Data bits per symbol at MCS 0–7 (IEEE 802.11-2012, table 20-30).
const BITS_PER_SYMBOL: [u64; MCS_COUNT] = [26, 52, 78, 104, 156, 208, 234, 260];
const MODULATION: [(Modulation, Code); MCS_COUNT] = {
    use {Code as C, Modulation as M};
    [
        (M::Bpsk, C::Half),
        (M::Qpsk, C::Half),
        (M::Qpsk, C::ThreeQuarters),
        (M::Qam16, C::Half),
        (M::Qam16, C::ThreeQuarters),
        (M::Qam64, C::TwoThirds),
        (M::Qam64, C::ThreeQuarters),
        (M::Qam64, C::FiveSixths),
    ]
};

/// Modulation and coding scheme, 0 to 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mcs(usize);

impl Mcs {
    pub const LEAST: Self = Self(0);

    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..MCS_COUNT).map(Self)
    }

    pub const fn below(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    pub const fn index(self) -> usize {
        self.0
    }

    /// Time on air of a PPDU with this many bytes; a symbol takes 4 µs, 3.6 with the short guard
    /// interval.
    pub fn airtime(self, bytes: u64, short_gi: bool) -> Duration {
        let symbols = (bytes * 8 + PPDU_BITS).div_ceil(BITS_PER_SYMBOL[self.0]);
        let symbol_ns = if short_gi { 3_600 } else { 4_000 };
        Duration::from_nanos(PREAMBLE_NS + (symbols * symbol_ns).next_multiple_of(4_000))
    }

    /// The mandatory OFDM rate at which the answer comes, at most its own (IEEE 802.11-2012,
    /// §9.7.6.5): bits per symbol of 6, 12 or 24 Mbit/s, and the scheme with the same modulation.
    const fn answer(self) -> (u64, Self) {
        match self.0 {
            0 => (24, Self(0)),
            1 | 2 => (48, Self(1)),
            _ => (96, Self(3)),
        }
    }

    pub fn block_ack_airtime(self) -> Duration {
        let symbols = (BLOCK_ACK_BYTES * 8 + PPDU_BITS).div_ceil(self.answer().0);
        Duration::from_nanos(LEGACY_PREAMBLE_NS + symbols * 4_000)
    }

    pub fn block_ack_arrives(self, snr_db: f64) -> f64 {
        self.answer().1.arrives(snr_db, BLOCK_ACK_BYTES)
    }

    /// Probability that this many bytes arrive without error.
    pub fn arrives(self, snr_db: f64, bytes: u64) -> f64 {
        (1.0 - self.bit_error(snr_db)).powf(bytes as f64 * 8.0)
    }

    /// Bit error ratio after decoding: that of the modulation in white noise, and the union bound
    /// over the convolutional code's distance spectrum with hard decisions. This is the NIST model
    /// (Pei and Henderson, "Validation of OFDM error rate model in ns-3", 2010).
    pub fn bit_error(self, snr_db: f64) -> f64 {
        let (modulation, code) = MODULATION[self.0];
        code.bit_error(modulation.bit_error(10f64.powf(snr_db / 10.0)))
    }
}

/// Bytes of a packet in an A-MPDU, padded to four.
pub(crate) const fn mpdu_bytes(ip_bytes: u64) -> u64 {
    (ip_bytes + OVERHEAD_BYTES).next_multiple_of(4)
}

#[derive(Debug, Clone, Copy)]
enum Modulation {
    Bpsk,
    Qpsk,
    Qam16,
    Qam64,
}

impl Modulation {
    /// Before decoding; `snr` is a ratio, per symbol.
    fn bit_error(self, snr: f64) -> f64 {
        match self {
            Self::Bpsk => 0.5 * erfc(snr.sqrt()),
            Self::Qpsk => 0.5 * erfc((snr / 2.0).sqrt()),
            Self::Qam16 => 0.75 * 0.5 * erfc((snr / 10.0).sqrt()),
            Self::Qam64 => 7.0 / 12.0 * 0.5 * erfc((snr / 42.0).sqrt()),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Code {
    Half,
    TwoThirds,
    ThreeQuarters,
    FiveSixths,
}

impl Code {
    fn bit_error(self, raw: f64) -> f64 {
        // Input bits, the free distance, the step to the next distance, and the bit weights: the
        // first terms of the spectrum; further ones matter only where nothing arrives anyway.
        let (bits, free, step, weights): (f64, i32, i32, [f64; 6]) = match self {
            Self::Half => (1.0, 10, 2, [36.0, 211.0, 1404.0, 11_633.0, 77_433.0, 502_690.0]),
            Self::TwoThirds => (2.0, 6, 1, [3.0, 70.0, 285.0, 1276.0, 6160.0, 27_128.0]),
            Self::ThreeQuarters => {
                (3.0, 5, 1, [42.0, 201.0, 1492.0, 10_469.0, 62_935.0, 379_644.0])
            }
            Self::FiveSixths => {
                (5.0, 4, 1, [92.0, 528.0, 8694.0, 79_453.0, 792_114.0, 7_375_573.0])
            }
        };
        let d = (4.0 * raw * (1.0 - raw)).sqrt();
        let terms = (0i32..).zip(weights).map(|(i, weight)| weight * d.powi(free + i * step));
        (terms.sum::<f64>() / (2.0 * bits)).min(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erfc_has_its_tabulated_values() {
        for (x, value) in [(0.0, 1.0), (0.5, 0.479_500_1), (1.0, 0.157_299_2), (2.0, 0.004_677_7)] {
            assert!((erfc(x) - value).abs() < 1e-6, "{x}: {}", erfc(x));
        }
    }

    #[test]
    fn a_faster_scheme_needs_a_better_channel() {
        for bytes in [100, 1500] {
            let needs = Mcs::all().map(|mcs| {
                (0..400).map(|i| f64::from(i) / 10.0 - 5.0).find(|&db| mcs.arrives(db, bytes) > 0.9)
            });
            let needs: Vec<f64> = needs.map(|db| db.expect("35 dB is enough")).collect();
            assert!(needs.is_sorted_by(|a, b| a < b), "{needs:?}");
        }
    }

    /// A receiver must do with −82 … −64 dBm (IEEE 802.11-2012, table 20-23), where it is allowed a
    /// noise figure of 10 dB and an implementation loss of 5 dB; an ideal one needs less.
    #[test]
    fn the_ideal_receiver_is_better_than_the_standard_demands() {
        let sensitivity = [-82.0, -79.0, -77.0, -74.0, -70.0, -66.0, -65.0, -64.0];
        for (mcs, dbm) in Mcs::all().zip(sensitivity) {
            let snr_db = dbm + 101.0 - 10.0;
            assert!(mcs.arrives(snr_db, 4096) > 0.9, "{mcs:?}");
            assert!(mcs.arrives(snr_db - 9.0, 4096) < 0.9, "{mcs:?}");
        }
    }

    #[test]
    fn a_symbol_more_takes_four_microseconds() {
        // 1500 bytes at 65 Mbit/s: (12000 + 22) / 260 = 46.2, 47 symbols.
        let top = Mcs::all().next_back().unwrap();
        assert_eq!(top.airtime(1500, false), Duration::from_micros(36 + 47 * 4));
        assert_eq!(top.block_ack_airtime(), Duration::from_micros(20 + 3 * 4));
    }
}
