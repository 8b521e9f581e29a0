//! What a scenario says of a sender's sound.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::Holds;
use suiro_units::BitRate;

/// Whether a sender has sound, and at which bit rate: `none`, or a bit rate such as `"32 kbit/s"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Audio {
    /// It has none.
    #[default]
    None,
    /// Opus at this bit rate, in frames of 20 ms.
    Opus(BitRate),
}

impl Audio {
    /// The bit rate; `None` without sound.
    pub const fn rate(self) -> Option<BitRate> {
        match self {
            Self::None => None,
            Self::Opus(rate) => Some(rate),
        }
    }
}

impl Holds<BitRate> for Audio {
    fn held(&self) -> Option<BitRate> {
        self.rate()
    }
}

impl std::str::FromStr for Audio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "none" {
            return Ok(Self::None);
        }
        text.parse().map(Self::Opus).map_err(|error| {
            format!("{error}\nhint: write \"none\", or a bit rate such as \"32 kbit/s\"")
        })
    }
}

impl fmt::Display for Audio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Opus(rate) => write!(f, "{rate}"),
        }
    }
}

impl Serialize for Audio {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Audio {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Audio {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Audio".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let rate = generator.subschema_for::<BitRate>();
        schemars::json_schema!({ "anyOf": [{ "const": "none" }, rate] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_refusals_say_what_to_write() {
        for text in ["none", "32 kbit/s"] {
            assert_eq!(text.parse::<Audio>().unwrap().to_string(), text);
        }
        assert_eq!("32 kbit/s".parse::<Audio>().unwrap().rate(), Some(BitRate::from_kbps(32)));
        assert!("loud".parse::<Audio>().unwrap_err().contains("hint: write \"none\""));
    }
}
