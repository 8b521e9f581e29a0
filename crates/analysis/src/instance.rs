//! Which one of several things of a kind a metric or a series is of.

use suiro_units::Direction;

/// Which one of several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instance {
    /// What stands between family and field in a name; empty if there is nothing to tell apart.
    pub(crate) path: String,
    /// What sets it apart from others, in words; none if it is the only one, stands for all, or is
    /// drawn in one figure with the others.
    pub name: Option<String>,
    /// The direction of a link; none of what has no direction.
    pub direction: Option<Direction>,
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
        let way = direction.parse().ok();
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
        let way = self.direction.map(Direction::name);
        let parts: Vec<&str> = self.name.as_deref().into_iter().chain(way).collect();
        parts.join(" ")
    }
}
