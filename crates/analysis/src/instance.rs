//! Which one of several things of a kind a metric or a series is of.

use schemars::JsonSchema;
use serde::Serialize;

/// A direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From the link's first end to its second: from servers to clients.
    Down,
    /// The other one.
    Up,
}

impl Way {
    /// As records and names of metrics write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }

    pub(crate) fn of_word(word: &str) -> Option<Self> {
        [Self::Down, Self::Up].into_iter().find(|way| way.word() == word)
    }
}

/// Which one of several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instance {
    /// What stands between family and field in a name; empty if there is nothing to tell apart.
    pub(crate) path: String,
    /// What sets it apart from others, in words; none if it is the only one, stands for all, or is
    /// drawn in one figure with the others.
    pub name: Option<String>,
    /// The direction of a link; none of what has no direction.
    pub direction: Option<Way>,
}

impl Instance {
    /// The only one, or all of them together.
    pub(crate) fn only() -> Self {
        Self::default()
    }

    /// One of several, by name.
    pub(crate) fn named(name: &str) -> Self {
        let words = (!name.is_empty()).then(|| name.to_owned());
        Self { path: name.to_owned(), name: words, direction: None }
    }

    /// The mean of many, which has the name of the only one.
    pub(crate) fn mean() -> Self {
        Self { name: Some("mean".to_owned()), ..Self::default() }
    }

    /// A direction of a link, which bears the link's name if there are several.
    pub(crate) fn direction(link: Option<&str>, direction: &str) -> Self {
        let way = Way::of_word(direction);
        let path = link.map_or(direction.to_owned(), |link| format!("{link}.{direction}"));
        Self { path, name: link.map(str::to_owned), direction: way }
    }

    /// The name of a metric or a series of this one.
    pub(crate) fn name_of(&self, family: &str, field: &str) -> String {
        match &*self.path {
            "" => format!("{family}.{field}"),
            path => format!("{family}.{path}.{field}"),
        }
    }

    /// Name and direction, such as `access down`; empty if neither is known.
    pub fn words(&self) -> String {
        let way = self.direction.map(Way::word);
        let parts: Vec<&str> = self.name.as_deref().into_iter().chain(way).collect();
        parts.join(" ")
    }
}
