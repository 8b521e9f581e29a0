//! Text with a unit, to an integer of the base unit, and back.

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError {
    message: String,
}

impl UnitError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl std::fmt::Display for UnitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for UnitError {}

/// A unit's spellings and how many base units it is. The first spelling is the one we print.
pub(crate) struct Unit {
    pub names: &'static [&'static str],
    pub scale: u64,
}

/// Parses `NUMBER UNIT` (space optional) into base units, rounding to the nearest one.
///
/// The number is decimal without sign or exponent: a scenario is read by people.
pub(crate) fn parse(
    text: &str,
    what: &str,
    example: &str,
    units: &[Unit],
) -> Result<u64, UnitError> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim());
    let names = || units.iter().map(|u| u.names[0]).collect::<Vec<_>>().join(", ");
    if number.is_empty() {
        return Err(UnitError::new(format!(
            "`{text}` is not a {what}; write a number and a unit, such as \"{example}\""
        )));
    }
    if unit.is_empty() {
        return Err(UnitError::new(format!(
            "`{text}` has no unit; a {what} is written as \"{example}\" (units: {})",
            names()
        )));
    }
    let Some(found) = units.iter().find(|u| u.names.contains(&unit)) else {
        return Err(UnitError::new(format!(
            "`{unit}` is not a unit of {what} (units: {}); write for example \"{example}\"",
            names()
        )));
    };
    scaled(number, found.scale)
        .ok_or_else(|| UnitError::new(format!("`{text}` is malformed or too large for a {what}")))
}

/// `number × scale`, rounded, by integer arithmetic; `None` if malformed or too large.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || fraction.len() > 18 || whole.is_empty() {
        return None;
    }
    let whole: u128 = whole.parse().ok()?;
    let numerator: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let denominator = 10u128.pow(fraction.len() as u32);
    let scale = u128::from(scale);
    let part = (numerator * scale + denominator / 2) / denominator;
    u64::try_from(whole.checked_mul(scale)?.checked_add(part)?).ok()
}

/// Prints with the largest unit that needs at most three decimals and loses nothing; else the
/// smallest unit.
pub(crate) fn print(
    value: u64,
    units: &[Unit],
    f: &mut std::fmt::Formatter<'_>,
) -> std::fmt::Result {
    let exact =
        |u: &&Unit| value >= u.scale && (u128::from(value) * 1000) % u128::from(u.scale) == 0;
    let smallest = units.iter().min_by_key(|u| u.scale).expect("a unit list is not empty");
    let unit = units.iter().filter(exact).max_by_key(|u| u.scale).unwrap_or(smallest);
    let whole = value / unit.scale;
    let thousandths = u128::from(value % unit.scale) * 1000 / u128::from(unit.scale);
    let text = if thousandths == 0 {
        format!("{whole} {}", unit.names[0])
    } else {
        let digits = format!("{thousandths:03}");
        format!("{whole}.{} {}", digits.trim_end_matches('0'), unit.names[0])
    };
    f.pad(&text)
}

/// Implements text conversions for a newtype over `u64` of base units.
macro_rules! quantity_text {
    ($type:ident, $what:literal, $example:literal, $pattern:literal, $units:expr) => {
        impl std::str::FromStr for $type {
            type Err = $crate::UnitError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::parse::parse(text, $what, $example, $units).map(Self)
            }
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::parse::print(self.0, $units, f)
            }
        }
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("a ", $what, " with its unit, such as \"", $example, "\""))
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                d.deserialize_str(Visitor)
            }
        }
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "pattern": $pattern,
                    "examples": [$example],
                })
            }
        }
    };
}
pub(crate) use quantity_text;
