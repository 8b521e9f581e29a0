//! The one shape in which something that a person wrote is refused.

use std::fmt;
use std::ops::Range;

/// Why something that a person wrote is refused: where it stands, what was found there, what would
/// be right, and how to fix it.
///
/// The place has one of three types, from where it is found to where it is printed: the [`Keys`] of
/// a table that was already read, the [`Span`] of a text, or the [`Place`] in a file.
///
/// ```
/// let refusal = suiro_strict::Refusal::key("queue.flows", "0 is out of range").expected("1 to 65536");
/// assert_eq!(refusal.to_string(), "queue.flows: 0 is out of range\nexpected: 1 to 65536");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal<P = Keys> {
    /// Where it stands.
    pub place: P,
    /// What was found there, and why it does not fit.
    pub found: String,
    /// What would be right.
    pub expected: Option<String>,
    /// How to fix it, if `expected` alone does not show it.
    pub hint: Option<String>,
}

/// A kind of place at which something is refused.
pub trait Site {
    /// The place in one line; empty for the whole of what was read.
    fn name(&self) -> String;

    /// The text at that place, marked; begins with a line break. Empty if there is none to show.
    fn excerpt(&self) -> String {
        String::new()
    }

    /// What else the reader must know to find the place.
    fn notes(&self) -> &[String] {
        &[]
    }
}

impl<P> Refusal<P> {
    /// A refusal with nothing but a place and what was found there.
    pub fn new(place: impl Into<P>, found: impl Into<String>) -> Self {
        Self { place: place.into(), found: found.into(), expected: None, hint: None }
    }

    /// With what would be right.
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// With how to fix it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With the names that exist, and the one that `name` may have been meant to be.
    pub fn instead<'a>(
        mut self,
        name: &str,
        known: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Self {
        self.expected = listed(known.clone());
        self.hint = did_you_mean(name, known);
        self
    }

    /// With this hint, unless it already has one.
    pub fn or_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// The same refusal at another kind of place.
    pub fn at<Q>(self, place: impl FnOnce(P) -> Q) -> Refusal<Q> {
        let Self { place: old, found, expected, hint } = self;
        Refusal { place: place(old), found, expected, hint }
    }
}

impl Refusal {
    /// The value at a path of keys, such as `queue.limit`.
    pub fn key(path: &str, found: impl Into<String>) -> Self {
        Self::new(Keys::of(path), found)
    }

    /// The same, of a table that is itself at this path.
    pub fn below(self, path: &str) -> Self {
        self.at(|Keys(inner)| Keys(Keys::of(path).0.into_iter().chain(inner).collect()))
    }
}

impl<P: Site> fmt::Display for Refusal<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.place.name();
        if !name.is_empty() {
            write!(f, "{name}: ")?;
        }
        write!(f, "{}{}", self.found, self.place.excerpt())?;
        if let Some(expected) = &self.expected {
            write!(f, "\nexpected: {expected}")?;
        }
        for note in self.place.notes() {
            write!(f, "\nnote: {note}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl<P: Site + fmt::Debug> std::error::Error for Refusal<P> {}

/// A path of keys, from the outer table inwards. Elements of arrays are their index, from 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keys(pub Vec<String>);

impl Keys {
    /// From a text with dots between the keys.
    pub fn of(path: &str) -> Self {
        Self(path.split('.').filter(|key| !key.is_empty()).map(str::to_owned).collect())
    }

    /// The path of a key of the table at this one.
    pub fn below(&self, key: &str) -> Self {
        Self(self.0.iter().cloned().chain([key.to_owned()]).collect())
    }
}

impl Site for Keys {
    fn name(&self) -> String {
        self.0.join(".")
    }
}

/// A line of a text, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLine(pub usize);

impl From<usize> for TextLine {
    fn from(number: usize) -> Self {
        Self(number)
    }
}

impl Site for TextLine {
    fn name(&self) -> String {
        format!("line {}", self.0)
    }
}

/// Bytes of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    /// The bytes; `None` if it has no one place.
    pub bytes: Option<Range<usize>>,
    /// How the value came to stand there.
    pub notes: Vec<String>,
}

impl From<Range<usize>> for Span {
    fn from(bytes: Range<usize>) -> Self {
        Some(bytes).into()
    }
}

impl From<Option<Range<usize>>> for Span {
    fn from(bytes: Option<Range<usize>>) -> Self {
        Self { bytes, notes: Vec::new() }
    }
}

impl Refusal<Span> {
    /// With how the value came to stand there.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.place.notes.push(note.into());
        self
    }
}

/// A place in a file, or an argument of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file or argument.
    pub file: String,
    /// Where in the file; `None` if it has no one place.
    pub line: Option<Line>,
    /// How the value came to stand there.
    pub notes: Vec<String>,
}

/// A marked part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1.
    pub number: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What of the line is shown.
    pub excerpt: String,
    /// Characters of the excerpt before the marked ones.
    pub before: usize,
    /// How many characters are marked; at least 1.
    pub width: usize,
}

impl From<String> for Place {
    fn from(file: String) -> Self {
        Self { file, line: None, notes: Vec::new() }
    }
}

impl From<&str> for Place {
    fn from(file: &str) -> Self {
        file.to_owned().into()
    }
}

impl Site for Place {
    fn name(&self) -> String {
        match &self.line {
            Some(line) => format!("{}:{}:{}", self.file, line.number, line.column),
            None => self.file.clone(),
        }
    }

    fn excerpt(&self) -> String {
        let Some(line) = &self.line else { return String::new() };
        let margin = " ".repeat(line.number.to_string().len());
        // A tab stays a tab, so that the mark stands below what it marks at any tab width.
        let lead: String = line
            .excerpt
            .chars()
            .take(line.before)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let mark = "^".repeat(line.width);
        let (number, excerpt) = (line.number, &line.excerpt);
        format!("\n{margin} |\n{number} | {excerpt}\n{margin} | {lead}{mark}")
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// `` `a`, `b` or `c` ``; `None` for an empty list. At most 24 names.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(24);
    names.truncate(24);
    if more > 0 {
        return Some(format!("{} or {more} others", names.join(", ")));
    }
    let last = names.pop()?;
    Some(if names.is_empty() { last } else { format!("{} or {last}", names.join(", ")) })
}

/// `` did you mean `…`? `` for the known name that resembles `name` most, if any does.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let lower = name.to_lowercase();
    let likeness = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let slip = strsim::osa_distance(&lower, &candidate) <= 1 && candidate.len() > 2;
        strsim::jaro_winkler(&lower, &candidate).max(if slip { 0.9 } else { 0.0 })
    };
    known
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_near_or_absent() {
        let known = ["delay", "down", "queue"];
        assert_eq!(did_you_mean("delai", known).as_deref(), Some("did you mean `delay`?"));
        assert_eq!(did_you_mean("Queue", known).as_deref(), Some("did you mean `queue`?"));
        assert_eq!(did_you_mean("loss", known), None);
        assert_eq!(did_you_mean("tpc", ["tcp"]).as_deref(), Some("did you mean `tcp`?"));
        assert_eq!(did_you_mean("b", ["a"]), None);
    }

    #[test]
    fn lists_read_as_text() {
        assert_eq!(listed([]), None);
        assert_eq!(listed(["a"]).as_deref(), Some("`a`"));
        assert_eq!(listed(["a", "b", "c"]).as_deref(), Some("`a`, `b` or `c`"));
    }
}
