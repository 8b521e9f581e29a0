//! Lengths, levels and speeds, written with their unit.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Defines a number with a unit that is read and printed as text.
macro_rules! quantity {
    ($(#[$meta:meta])* $name:ident, $unit:literal, $example:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
        pub struct $name(pub f64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!("{} ", $unit), self.0)
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let number = text.trim().strip_suffix($unit).and_then(|n| n.trim_end().parse().ok());
                number.filter(|number: &f64| number.is_finite()).map(Self).ok_or_else(|| {
                    format!(concat!("`{}` is not a number of ", $unit, "; write \"", $example, "\""), text)
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("a text like \"", $example, "\""))
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Visitor)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "pattern": concat!(r"^-?[0-9]+(\.[0-9]+)? ?", $unit, "$"),
                    "examples": [$example],
                })
            }
        }
    };
}

quantity! {
    /// A length, written `"5 m"`.
    Metres, "m", "5 m"
}
quantity! {
    /// A ratio of powers, written `"10 dB"`.
    Decibels, "dB", "10 dB"
}
quantity! {
    /// A power relative to 1 mW, written `"15 dBm"`.
    Dbm, "dBm", "15 dBm"
}
quantity! {
    /// A speed, written `"3 km/h"`.
    KilometresPerHour, "km/h", "3 km/h"
}
