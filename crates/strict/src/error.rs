//! What is wrong with a text: where, what was expected, and what would mend it.

use std::fmt;
use std::ops::Range;

/// Most problems that one error tells; what comes after them is counted.
pub const PROBLEMS_MAX: usize = 20;

/// Why a text is refused: every problem found, in the order of the file.
///
/// Displays as one paragraph per problem, ready to be printed:
///
/// ```text
/// quick.toml:14:1: unknown key `delai`
///    |
/// 14 | delai = "20 ms"
///    | ^^^^^
/// expected: `delay`, `down`, `up` or `queue`
/// hint: did you mean `delay`?
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// What was found, at most [`PROBLEMS_MAX`]; never empty.
    pub problems: Vec<Problem>,
    /// How many more were found before the search ended.
    pub more: usize,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// File or argument that it is in.
    pub file: String,
    /// Where in that file; `None` if it has no one place.
    pub place: Option<Place>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub expected: Option<String>,
    /// What else bears on it.
    pub notes: Vec<String>,
    /// What to try.
    pub hint: Option<String>,
}

/// A place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What of the line is shown.
    pub excerpt: String,
    /// Characters of the excerpt before the marked ones.
    pub before: usize,
    /// How many characters are marked; at least 1.
    pub width: usize,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            problem.fmt(f)?;
        }
        if self.more > 0 {
            write!(f, "\n\n… and at least {} more", self.more)?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => {
                write!(f, "{}:{}:{}: {}", self.file, place.line, place.column, self.message)?;
                place.fmt(f)?;
            }
            None => write!(f, "{}: {}", self.file, self.message)?,
        }
        if let Some(expected) = &self.expected {
            write!(f, "\nexpected: {expected}")?;
        }
        for note in &self.notes {
            write!(f, "\nnote: {note}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        // A tab stays a tab, so that the mark stands below what it marks at any tab width.
        let lead: String = self
            .excerpt
            .chars()
            .take(self.before)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let mark = "^".repeat(self.width);
        write!(f, "\n{margin} |\n{number} | {}\n{margin} | {lead}{mark}", self.excerpt)
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem], more: 0 }
    }
}

impl Problem {
    /// A problem of `file` as a whole.
    pub fn of(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            place: None,
            message: message.into(),
            expected: None,
            notes: Vec::new(),
            hint: None,
        }
    }

    /// With a hint, if there is one.
    pub fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

/// A problem whose place is still a span of the text as run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// The bytes that it is about; `None` if it has no one place.
    pub span: Option<Range<usize>>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub expected: Option<String>,
    /// What else bears on it.
    pub notes: Vec<String>,
    /// What to try.
    pub hint: Option<String>,
}

impl Issue {
    /// An issue with nothing but a place and a message.
    pub fn new(span: impl Into<Option<Range<usize>>>, message: impl Into<String>) -> Self {
        let (span, message) = (span.into(), message.into());
        Self { span, message, expected: None, notes: Vec::new(), hint: None }
    }

    /// With what would be right.
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// With something else that bears on it.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// With what to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Tells what there is, and what `name` may have been meant to be.
    pub fn instead<'a>(
        mut self,
        name: &str,
        known: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Self {
        self.expected = listed(known.clone());
        self.hint = did_you_mean(name, known);
        self
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
