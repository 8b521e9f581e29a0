//! Which one of several things of a kind a metric or a series is of.

use suiro_units::Direction;

/// True if a link is that of a hub's station: it has an up direction and no down one. `has` is whether the link has a
/// direction.
pub(crate) fn is_at_hub(has: impl Fn(Direction) -> bool) -> bool {
    has(Direction::Up) && !has(Direction::Down)
}

/// The one rule of what links carry towards viewers: what goes down, and everything that a station of a hub sends, as a hub
/// does not know on which side viewers are. The acknowledgements and reports of viewers are among the latter.
pub(crate) fn towards_viewers(direction: Direction, at_hub: bool) -> bool {
    at_hub || direction == Direction::Down
}

/// Which one of several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instance {
    /// What stands between family and field in a name; empty if there is nothing to distinguish.
    pub(crate) path: String,
    /// What sets it apart from others, in words; none if it is the only one, stands for all, or is
    /// drawn in one figure with the others.
    pub name: Option<String>,
    /// The direction of a link; none of what has no direction.
    pub direction: Option<Direction>,
    /// True of what a station of a hub sends. Its records have it as direction up, but a hub has no side of servers.
    pub(crate) at_hub: bool,
}

impl Instance {
    /// The only one, or all of them together.
    pub(crate) fn only() -> Self {
        Self::default()
    }

    /// One of several, by name.
    pub(crate) fn named(name: &str) -> Self {
        let words = (!name.is_empty()).then(|| name.to_owned());
        Self { path: name.to_owned(), name: words, ..Self::default() }
    }

    /// One of `several`, by name, or the only one.
    pub(crate) fn among(several: bool, name: &str) -> Self {
        if several { Self::named(name) } else { Self::only() }
    }

    /// The mean of many, which has the name of the only one.
    pub(crate) fn mean() -> Self {
        Self { name: Some("mean".to_owned()), ..Self::default() }
    }

    /// A direction of a link, which bears the link's name if there are several.
    pub(crate) fn direction(link: Option<&str>, direction: &str) -> Self {
        let way = direction.parse().ok();
        let path = link.map_or(direction.to_owned(), |link| format!("{link}.{direction}"));
        Self { path, name: link.map(str::to_owned), direction: way, at_hub: false }
    }

    /// With the knowledge of whether its link is that of a hub's station.
    pub(crate) fn at_hub(self, at_hub: bool) -> Self {
        Self { at_hub, ..self }
    }

    /// True of what links carry towards viewers; see [`towards_viewers`].
    pub fn is_towards_viewers(&self) -> bool {
        self.direction.is_some_and(|direction| towards_viewers(direction, self.at_hub))
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
