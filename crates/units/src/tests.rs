//! What holds for all quantities, whatever their values.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use proptest::prelude::*;
use proptest::string::string_regex;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{BitRate, Bytes, Duration, Ratio, Time, UnitError};

/// Values of every magnitude; uniform ones would nearly all be of the largest unit.
fn magnitudes() -> impl Strategy<Value = u64> {
    (0..64u32, any::<u64>()).prop_map(|(shift, bits)| bits >> shift)
}

fn printed_is_read_again<T>(value: T) -> Result<(), TestCaseError>
where
    T: Copy + Debug + Display + PartialEq + FromStr<Err = UnitError> + Serialize + DeserializeOwned,
{
    prop_assert_eq!(value.to_string().parse(), Ok(value));
    let json = serde_json::to_string(&value).unwrap();
    prop_assert_eq!(serde_json::from_str::<T>(&json).unwrap(), value);
    Ok(())
}

/// Texts that a quantity's schema allows.
fn allowed<T: JsonSchema>() -> impl Strategy<Value = String> {
    let schema = T::json_schema(&mut SchemaGenerator::default());
    let pattern = schema.get("pattern").and_then(|it| it.as_str()).expect("it has a pattern");
    // The generator has no anchors: it always makes whole texts.
    let pattern = pattern.strip_prefix('^').and_then(|it| it.strip_suffix('$'));
    string_regex(pattern.expect("it is anchored")).expect("a pattern")
}

/// Text that the schema accepts is read, or refused as too large.
fn is_read<T: Debug + FromStr<Err = UnitError>>(text: &str) -> Result<(), TestCaseError> {
    if let Err(error) = text.parse::<T>() {
        prop_assert!(error.to_string().contains("malformed or too large"), "{}", error);
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_quantity_is_printed_exactly(value in magnitudes()) {
        printed_is_read_again(Duration::from_nanos(value))?;
        printed_is_read_again(BitRate::from_bps(value))?;
        printed_is_read_again(Bytes::new(value))?;
    }

    #[test]
    fn every_ratio_is_printed_exactly(value in 0.0..=1.0) {
        printed_is_read_again(Ratio::new(value).unwrap())?;
    }

    #[test]
    fn what_the_schema_allows_is_read(
        duration in allowed::<Duration>(),
        rate in allowed::<BitRate>(),
        size in allowed::<Bytes>(),
    ) {
        is_read::<Duration>(&duration)?;
        is_read::<BitRate>(&rate)?;
        is_read::<Bytes>(&size)?;
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in ".*", number in "[0-9.]{0,60}", unit in "[a-zµ/%]*") {
        for text in [&text, &number, &format!("{number} {unit}"), &format!("{number}{unit}")] {
            let _ = (text.parse::<Duration>(), text.parse::<BitRate>(), text.parse::<Bytes>());
            if let Ok(ratio) = text.parse::<Ratio>() {
                prop_assert!((0.0..=1.0).contains(&ratio.get()), "{:?}", ratio);
            }
        }
    }

    /// The time is rounded up: less of it would beat the rate, and a nanosecond less would not do.
    #[test]
    fn a_packet_takes_the_least_time_that_the_rate_allows(
        bytes in magnitudes(),
        bps in magnitudes().prop_filter("a rate", |bps| *bps > 0),
    ) {
        let (size, rate) = (Bytes::new(bytes), BitRate::from_bps(bps));
        let time = size / rate;
        let bit_ns = u128::from(bytes) * 8 * 1_000_000_000;
        if time == Duration::from_nanos(u64::MAX) {
            prop_assert!(u128::from(u64::MAX - 1) * u128::from(bps) < bit_ns);
        } else {
            prop_assert!(u128::from(time.as_nanos()) * u128::from(bps) >= bit_ns);
            prop_assert!(time.is_zero() || u128::from(time.as_nanos() - 1) * u128::from(bps) < bit_ns);
            prop_assert!(time.is_zero() || size / time <= rate);
        }
    }

    #[test]
    fn times_and_spans_agree(from in 0..u64::MAX / 2, span in 0..u64::MAX / 2) {
        let (begin, span) = (Time::from_nanos(from), Duration::from_nanos(span));
        let end = begin + span;
        prop_assert_eq!((end - begin, end - span), (span, begin));
        prop_assert_eq!(end.saturating_since(begin), span);
        prop_assert_eq!(end.saturating_sub(span), begin);
        prop_assert!(begin.saturating_since(end).is_zero());
        prop_assert_eq!(Duration::from(std::time::Duration::from(span)), span);
        prop_assert_eq!(end.to_string(), Duration::from_nanos(end.as_nanos()).to_string());
    }
}

#[test]
fn numbers_beyond_all_bounds_are_refused() {
    // 2^64, 2^128 − 1 and 2^128, whole and with a fraction that rounds up.
    let (beyond, most, more) =
        (1u128 << 64, u128::MAX, "340282366920938463463374607431768211456".to_owned());
    for number in [beyond.to_string(), most.to_string(), more] {
        for text in [format!("{number} B"), format!("{number}.9 B"), format!("{number}.9GiB")] {
            let error = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(error.ends_with("is malformed or too large for a size"), "{error}");
        }
    }
    assert_eq!("18446744073709551615 B".parse(), Ok(Bytes::new(u64::MAX)));
    assert!("18446744073709551615.5 B".parse::<Bytes>().is_err());
    assert_eq!("0.4999 B".parse(), Ok(Bytes::ZERO));
    assert_eq!("0.5 B".parse(), Ok(Bytes::new(1)));
    assert_eq!("0.000000000000000001 h".parse(), Ok(Duration::ZERO));
    assert!("0.0000000000000000001 h".parse::<Duration>().is_err(), "19 digits");
    for text in [". s", ".5 s", "1.s.", "1..2 s", "+1 s", "1e3 s", "１ s", "1 S", "∞ s"] {
        assert!(text.parse::<Duration>().is_err(), "{text}");
    }
}

#[test]
fn json_of_another_type_says_what_is_expected() {
    let refused = |json: &str| serde_json::from_str::<Duration>(json).unwrap_err().to_string();
    let expected = "expected a duration with its unit, such as \"20 ms\"";
    assert!(refused("20").contains(expected), "{}", refused("20"));
    assert!(refused("null").contains(expected), "{}", refused("null"));
    assert!(refused("\"20\"").contains("has no unit"), "{}", refused("\"20\""));
    let ratio = |json: &str| serde_json::from_str::<Ratio>(json).unwrap_err().to_string();
    assert!(ratio("-0.1").contains("a number from 0 to 1"), "{}", ratio("-0.1"));
    assert!(ratio("\"101 %\"").contains("is not a ratio"), "{}", ratio("\"101 %\""));
    assert_eq!(serde_json::from_str::<Ratio>("1").unwrap(), Ratio::ONE);
}
