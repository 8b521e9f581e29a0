//! A text as used: the file's, with overrides put in; and the way back from a span
//! of it to a line of the file.

use std::ops::Range;

use crate::error::{Error, REFUSALS_MAX};
use crate::refusal::{Line, Place, Refusal, Span};

/// Most characters of a line that an error shows.
const EXCERPT_MAX: usize = 100;

/// A text, and what in it is not from the file.
#[derive(Debug, Clone)]
pub struct Source {
    file: String,
    text: String,
    edits: Vec<Edit>,
}

/// A piece of the text that an override put in.
#[derive(Debug, Clone)]
struct Edit {
    /// Where it stands now.
    at: Range<usize>,
    /// Lines of the file that it hides, less lines that it adds.
    hidden_lines: isize,
    /// What put it in, such as `--set tcp=reno`.
    by: String,
}

impl Source {
    /// A text as it stands in `file`, which is what errors call it.
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> Self {
        Self { file: file.into(), text: text.into(), edits: Vec::new() }
    }

    /// The text as used.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Puts `new` where `at` was, on behalf of `by`.
    pub fn replace(&mut self, at: Range<usize>, new: &str, by: &str) {
        let mut hidden_lines = newlines(&self.text[at.clone()]) - newlines(new);
        let moved = |offset: usize| offset - at.len() + new.len();
        // Earlier edits inside the replaced text vanish with it, but not the lines they hid.
        self.edits.retain_mut(|edit| {
            let inside = edit.at.start >= at.start && edit.at.end <= at.end;
            if inside {
                hidden_lines += edit.hidden_lines;
            } else if edit.at.start >= at.end {
                edit.at = moved(edit.at.start)..moved(edit.at.end);
            }
            !inside
        });
        self.text.replace_range(at.clone(), new);
        self.edits.push(Edit {
            at: at.start..at.start + new.len(),
            hidden_lines,
            by: by.to_owned(),
        });
    }

    /// The line of the file, from 1, that an offset of the text lies in.
    pub fn line(&self, offset: usize) -> usize {
        let before = &self.text[..self.floor(offset)];
        let hidden: isize =
            self.edits.iter().filter(|e| e.at.end <= offset).map(|e| e.hidden_lines).sum();
        (newlines(before) + hidden).max(0).cast_unsigned() + 1
    }

    /// The error of these refusals: in the order of the text, each once.
    pub fn error(&self, mut refusals: Vec<Refusal<Span>>) -> Error {
        refusals.sort_by_key(|refusal| {
            refusal.place.bytes.as_ref().map_or(usize::MAX, |bytes| bytes.start)
        });
        refusals.dedup();
        let more = refusals.len().saturating_sub(REFUSALS_MAX);
        let shown = refusals.into_iter().take(REFUSALS_MAX);
        Error { refusals: shown.map(|refusal| refusal.at(|span| self.place(span))).collect(), more }
    }

    /// The override that put in what stands at `span`, if one did.
    pub fn set_by(&self, span: &Range<usize>) -> Option<&str> {
        let touches = |edit: &&Edit| span.start < edit.at.end && edit.at.start < span.end;
        self.edits.iter().find(touches).map(|edit| edit.by.as_str())
    }

    fn place(&self, span: Span) -> Place {
        let Span { bytes, mut notes } = span;
        let by = bytes.as_ref().and_then(|bytes| self.set_by(bytes));
        notes.extend(by.map(|by| format!("set by {by}")));
        Place { file: self.file.clone(), line: bytes.map(|bytes| self.marked(bytes)), notes }
    }

    fn marked(&self, span: Range<usize>) -> Line {
        let start = self.floor(span.start);
        let end = self.floor(span.end).max(start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        let line = self.text[line_start..line_end].trim_end();
        let column = self.text[line_start..start].chars().count();
        let width = self.text[start..end.min(line_end)].trim_end().chars().count();
        // A long line is shown from a little before the mark.
        let skipped =
            if line.chars().count() > EXCERPT_MAX { column.saturating_sub(20) } else { 0 };
        let shown = line.chars().skip(skipped).take(EXCERPT_MAX);
        let excerpt: String =
            shown.map(|c| if c.is_control() && c != '\t' { '�' } else { c }).collect();
        let before = column - skipped;
        let width = width.min(EXCERPT_MAX.saturating_sub(before)).max(1);
        Line { number: self.line(start), column: column + 1, excerpt, before, width }
    }

    /// The offset, or the nearest before it that is between two characters of the text.
    fn floor(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

fn newlines(text: &str) -> isize {
    text.bytes().filter(|&byte| byte == b'\n').count().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_those_of_the_file() {
        let mut source = Source::new("f", "a = [\n1,\n2]\nb = 3\nc = 4\n");
        let at = source.text().find("[\n1,\n2]").unwrap();
        source.replace(at..at + 7, "7", "--set a=7");
        source.replace(0..0, "d = 1\n", "--set d=1");
        assert_eq!(source.text(), "d = 1\na = 7\nb = 3\nc = 4\n");
        let line = |what: &str| source.line(source.text().find(what).unwrap());
        assert_eq!((line("a = 7"), line("b = 3"), line("c = 4")), (1, 4, 5));
        let at = source.text().find("7").unwrap();
        source.replace(at..at + 1, "[]", "--set a=[]");
        assert_eq!(source.line(source.text().find("b = 3").unwrap()), 4);
    }

    #[test]
    fn a_problem_of_an_override_names_it() {
        let mut source = Source::new("f", "tcp = \"reno\"\n");
        source.replace(6..12, "\"x\"", "--set tcp=x");
        let error = source.error(vec![Refusal::new(6..9, "no")]);
        assert_eq!(error.refusals[0].place.notes, ["set by --set tcp=x"]);
    }

    #[test]
    fn marks_stand_in_long_and_odd_lines() {
        let long = format!("{} = 1", "é".repeat(300));
        let source = Source::new("f", long.as_str());
        let place = source.marked(long.len() - 1..long.len());
        assert_eq!((place.number, place.column, place.width), (1, 304, 1));
        assert_eq!(place.excerpt.chars().nth(place.before), Some('1'));
        let place = source.marked(5..9999);
        assert!(place.before + place.width <= EXCERPT_MAX);
    }
}
