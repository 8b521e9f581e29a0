//! Closed lists of words, as records, documents and scenarios write them.

/// A closed list of words that is a type: each value is one word. Made by [`words!`](crate::words!).
pub trait Word: Copy + Eq + Ord + Send + Sync + 'static {
    /// Every word, in the order of declaration.
    const ALL: &'static [Self];
    /// Every word as it is written, and what it means; in the order of [`Word::ALL`].
    const WORDS: &'static [(&'static str, &'static str)];

    /// The word as it is written.
    fn name(self) -> &'static str;

    /// The value that is written so; `None` for a word that is not in the list.
    fn named(name: &str) -> Option<Self> {
        let at = Self::WORDS.iter().position(|(word, _)| *word == name)?;
        Self::ALL.get(at).copied()
    }
}

/// A word that is not in the list of its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    /// What was found.
    pub found: String,
    /// The list, with meanings.
    pub expected: &'static [(&'static str, &'static str)],
}

impl UnknownWord {
    /// `found` is none of the words of `W`.
    pub fn new<W: Word>(found: &str) -> Self {
        Self { found: found.to_owned(), expected: W::WORDS }
    }
}

impl std::fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected {}, found `{}`", one_of(self.expected), self.found)
    }
}

impl std::error::Error for UnknownWord {}

/// `a`, `b` or `c`.
fn one_of(words: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (at, (word, _)) in words.iter().enumerate() {
        let before = match at {
            0 => "",
            _ if at + 1 == words.len() => " or ",
            _ => ", ",
        };
        text = text + before + "`" + word + "`";
    }
    text
}

/// Declares a closed list of words: an enum whose values are written as the given words, in text,
/// in JSON and in the columns of records. The documentation of a value is the meaning of its word.
///
/// ```
/// suiro_units::words! {
///     /// Where a packet goes.
///     pub enum Way {
///         /// Out of this host.
///         Out = "out",
///         /// Into this host.
///         In = "in",
///     }
/// }
/// assert_eq!(Way::Out.name(), "out");
/// assert_eq!("in".parse(), Ok(Way::In));
/// let refused = "up".parse::<Way>().unwrap_err().to_string();
/// assert_eq!(refused, "expected `out` or `in`, found `up`");
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $vis:vis enum $type:ident {
        $($(#[doc = $doc:literal])+ $value:ident = $word:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $type {
            $($(#[doc = $doc])+ $value,)+
        }
        impl $type {
            /// Every one of them, in the order of declaration.
            pub const ALL: [Self; [$($type::$value),+].len()] = [$(Self::$value),+];

            /// The word as it is written in records and documents.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }
        impl $crate::Word for $type {
            const ALL: &'static [Self] = &Self::ALL;
            const WORDS: &'static [(&'static str, &'static str)] =
                &[$(($word, concat!($($doc),+))),+];
            fn name(self) -> &'static str {
                Self::name(self)
            }
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
        impl std::str::FromStr for $type {
            type Err = $crate::UnknownWord;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                <Self as $crate::Word>::named(text)
                    .ok_or_else(|| $crate::UnknownWord::new::<Self>(text))
            }
        }
        impl $crate::for_words::Serialize for $type {
            fn serialize<S: $crate::for_words::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(self.name())
            }
        }
        impl<'de> $crate::for_words::Deserialize<'de> for $type {
            fn deserialize<D: $crate::for_words::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                $crate::for_words::read(d)
            }
        }
        impl $crate::for_words::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut $crate::for_words::SchemaGenerator) -> $crate::for_words::Schema {
                $crate::for_words::schema::<Self>()
            }
        }
    };
}

/// What [`words!`](crate::words!) needs from other crates.
#[doc(hidden)]
pub mod for_words {
    pub use schemars::{JsonSchema, Schema, SchemaGenerator};
    pub use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{UnknownWord, Word, one_of};

    pub fn read<'de, W: Word, D: Deserializer<'de>>(d: D) -> Result<W, D::Error> {
        struct Visitor<W>(std::marker::PhantomData<W>);
        impl<W: Word> serde::de::Visitor<'_> for Visitor<W> {
            type Value = W;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&one_of(W::WORDS))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<W, E> {
                W::named(text).ok_or_else(|| E::custom(UnknownWord::new::<W>(text)))
            }
        }
        d.deserialize_str(Visitor(std::marker::PhantomData))
    }

    pub fn schema<W: Word>() -> Schema {
        let words: Vec<&str> = W::WORDS.iter().map(|(word, _)| *word).collect();
        schemars::json_schema!({ "type": "string", "enum": words })
    }
}

words! {
    /// One of a link's two directions.
    pub enum Direction {
        /// From the link's first end, the server's side, to its second.
        Down = "down",
        /// From the link's second end, the client's side, to its first.
        Up = "up",
    }
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Self; 2] = Self::ALL;

    /// The other one.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_others_are_refused() {
        for direction in Direction::BOTH {
            assert_eq!(direction.name().parse(), Ok(direction));
            let json = serde_json::to_string(&direction).unwrap();
            assert_eq!(json, format!("\"{direction}\""));
            assert_eq!(serde_json::from_str::<Direction>(&json).unwrap(), direction);
        }
        let refused = serde_json::from_str::<Direction>("\"left\"").unwrap_err().to_string();
        assert!(refused.starts_with("expected `down` or `up`, found `left`"), "{refused}");
        assert!(serde_json::from_str::<Direction>("3").is_err());
    }
}
