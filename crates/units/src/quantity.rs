//! Bit rates, sizes and ratios.

use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use crate::Duration;
use crate::parse::{Unit, UnitError, quantity_text};

const RATES: &[Unit] = &[
    Unit { names: &["bit/s", "bps", "bit"], scale: 1 },
    Unit { names: &["kbit/s", "kbps", "kbit"], scale: 1_000 },
    Unit { names: &["Mbit/s", "Mbps", "Mbit"], scale: 1_000_000 },
    Unit { names: &["Gbit/s", "Gbps", "Gbit"], scale: 1_000_000_000 },
];

const SIZES: &[Unit] = &[
    Unit { names: &["B"], scale: 1 },
    Unit { names: &["kB"], scale: 1_000 },
    Unit { names: &["KiB"], scale: 1 << 10 },
    Unit { names: &["MB"], scale: 1_000_000 },
    Unit { names: &["MiB"], scale: 1 << 20 },
    Unit { names: &["GB"], scale: 1_000_000_000 },
    Unit { names: &["GiB"], scale: 1 << 30 },
];

/// Bits per second; prefixes are decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BitRate(u64);

quantity_text!(
    BitRate,
    "bit rate",
    "1.5 Mbit/s",
    r"^[0-9]+(\.[0-9]+)? ?[kMG]?(bit/s|bps|bit)$",
    RATES
);

impl BitRate {
    /// From bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }
    /// From thousands of bits per second.
    pub const fn from_kbps(kbps: u64) -> Self {
        Self(kbps * 1_000)
    }
    /// From millions of bits per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }
    /// In bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// In millions of bits per second.
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// `self × factor`, rounded to the nearest bit per second.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }
    /// True for a rate of nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// A number of bytes (octets).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

quantity_text!(Bytes, "size", "100 kB", r"^[0-9]+(\.[0-9]+)? ?(B|kB|KiB|MB|MiB|GB|GiB)$", SIZES);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// From a count of bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }
    /// As a count of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// As a count of bits.
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
    /// `self - other`, or zero where that would be negative.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        Self(all.map(|b| b.0).sum())
    }
}

impl Div<BitRate> for Bytes {
    type Output = Duration;
    /// The time to serialise this many bytes at that rate, rounded up to a nanosecond, so that no
    /// window ever carries more than the rate allows. Panics at a rate of zero.
    #[expect(clippy::suspicious_arithmetic_impl, reason = "bits are eight to the byte")]
    fn div(self, rate: BitRate) -> Duration {
        let ns = (u128::from(self.0) * 8_000_000_000).div_ceil(u128::from(rate.0));
        Duration(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

impl Div<Duration> for Bytes {
    type Output = BitRate;
    /// The mean rate of this many bytes over that time, rounded down. Panics at no time.
    fn div(self, span: Duration) -> BitRate {
        let bps = u128::from(self.0) * 8_000_000_000 / u128::from(span.0);
        BitRate(u64::try_from(bps).unwrap_or(u64::MAX))
    }
}

impl Mul<Duration> for BitRate {
    type Output = Bytes;
    /// What that rate carries in that time, rounded down to whole bytes.
    fn mul(self, span: Duration) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(span.0) / 8_000_000_000;
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

/// A share of a whole: a finite number from 0 to 1, written `0.01` or `"1 %"`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Ratio(f64);

impl Ratio {
    /// None of it.
    pub const ZERO: Self = Self(0.0);
    /// All of it.
    pub const ONE: Self = Self(1.0);

    /// A ratio of the program text.
    ///
    /// # Panics
    /// Unless `value` lies in 0..=1; when the program is built, if it is a constant.
    pub const fn constant(value: f64) -> Self {
        assert!(value >= 0.0 && value <= 1.0, "a ratio lies between 0 and 1");
        Self(value)
    }
    /// `None` unless `value` lies in 0..=1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }
    /// As a number from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl std::str::FromStr for Ratio {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let trimmed = text.trim();
        let (number, scale) = match trimmed.strip_suffix('%') {
            Some(percent) => (percent.trim(), 100.0),
            None => (trimmed, 1.0),
        };
        let value = number.parse::<f64>().ok().and_then(|v| Self::new(v / scale));
        value.ok_or_else(|| {
            UnitError::new(format!(
                "`{text}` is not a ratio; write 0 to 1, or \"0 %\" to \"100 %\""
            ))
        })
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}

impl serde::Serialize for Ratio {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Ratio {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Ratio;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a ratio: a number from 0 to 1, or a text such as \"1 %\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Ratio, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Ratio, E> {
                let found = serde::de::Unexpected::Float(value);
                Ratio::new(value).ok_or_else(|| E::invalid_value(found, &self))
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Ratio, E> {
                self.visit_f64(value as f64)
            }
            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Ratio, E> {
                self.visit_f64(value as f64)
            }
        }
        d.deserialize_any(Visitor)
    }
}

impl schemars::JsonSchema for Ratio {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ratio".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                { "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?%$" },
            ],
            "examples": [0.01, "1 %"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for text in ["300 kbit/s", "1.5 Mbit/s", "8 Mbit/s", "2.97 Gbit/s", "0 bit/s"] {
            assert_eq!(text.parse::<BitRate>().unwrap().to_string(), text);
        }
        assert_eq!("2Mbps".parse(), Ok(BitRate::from_mbps(2)));
        for text in ["100 kB", "1500 B", "64 KiB", "1 GiB"] {
            let size: Bytes = text.parse().unwrap();
            assert_eq!(size.to_string().parse(), Ok(size));
        }
    }

    #[test]
    fn bytes_per_second_are_refused_as_a_rate() {
        let error = "5 MB/s".parse::<BitRate>().unwrap_err().to_string();
        assert!(error.contains("`MB/s` is not a unit of bit rate"), "{error}");
    }

    #[test]
    fn serialisation_time_never_beats_the_rate() {
        let rate = BitRate::from_bps(3);
        let time = Bytes::new(1) / rate;
        assert!(rate * time <= Bytes::new(1) && time.as_secs_f64() * 3.0 >= 8.0);
    }

    #[test]
    fn ratios() {
        assert_eq!("1 %".parse(), Ok(Ratio(0.01)));
        assert!("1.5".parse::<Ratio>().is_err());
        assert!("NaN".parse::<Ratio>().is_err());
        assert_eq!(serde_json::from_str::<Ratio>("0.25").unwrap().get(), 0.25);
        assert!(serde_json::from_str::<Ratio>("2").is_err());
    }
}
