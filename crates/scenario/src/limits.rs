//! `[limits]`: what a run must keep to, each with a name.

use suiro_strict::document;
use suiro_study::limit::{self, Limit};

use crate::document::{Node, entries};
use crate::error::Error as ScenarioError;
use crate::header::{Axis, check_name, table};
use crate::refusal::{Place, Refusal, Span};
use crate::source::Source;

/// Most limits of a scenario.
const LIMITS_MAX: usize = 200;

/// A limit of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedLimit {
    /// Its key below `[limits]`.
    pub name: String,
    /// The limit.
    pub limit: Limit,
    /// Where it is written.
    pub place: Place,
}

/// The limits of a scenario's text, such as that of a manifest. Nothing else of the text is checked.
///
/// # Errors
/// The text is not TOML, or a limit is wrong.
pub fn limits(text: &str, file: &str) -> Result<Vec<NamedLimit>, ScenarioError> {
    let source = Source::new(file, text);
    let root = document::parse(text).map_err(|refusals| source.error(refusals))?;
    let mut refusals = Vec::new();
    let found = read(&root, None, &source, &mut refusals);
    if refusals.is_empty() { Ok(found) } else { Err(source.error(refusals)) }
}

/// The limits below `root`. Labels that they name must be of `axes`, if these are known.
pub(crate) fn read(
    root: &Node<'_>,
    axes: Option<&[Axis<'_>]>,
    source: &Source,
    refusals: &mut Vec<Refusal<Span>>,
) -> Vec<NamedLimit> {
    let section = table(root, "limits", refusals);
    let mut found = Vec::new();
    for (name, span, value) in entries(&section) {
        check_name(name, span, "a limit", refusals);
        let read = text_of(value).and_then(|text| {
            let limit = limit::parse(text).map_err(|refusal| within(value, text, refusal))?;
            match axes {
                Some(axes) => known(&limit, axes, value).map(|()| limit),
                None => Ok(limit),
            }
        });
        match read {
            Ok(limit) => {
                let place = place(source, value);
                found.push(NamedLimit { name: name.to_owned(), limit, place });
            }
            Err(refusal) => refusals.push(refusal),
        }
    }
    if found.len() > LIMITS_MAX {
        let message = format!("[limits] has {} limits", found.len());
        let refusal = Refusal::new(document::key_place(root, &["limits"]), message);
        refusals.push(refusal.expected(format!("at most {LIMITS_MAX}")));
    }
    found
}

fn text_of<'n>(value: &'n Node<'_>) -> Result<&'n str, Refusal<Span>> {
    value.get_ref().as_str().ok_or_else(|| {
        let message = format!("a limit is of type {}", value.get_ref().type_str());
        let refusal = Refusal::new(value.span(), message);
        refusal.expected("a text such as \"media.latency_p95_ms < 250 ms\"")
    })
}

/// A refusal with a part of a limit: at that part of the text, if it stands there as it is.
fn within(value: &Node<'_>, text: &str, refusal: Refusal<Span>) -> Refusal<Span> {
    let span = value.span();
    // A text without escapes, in one quote at each end.
    let is_plain = span.len() == text.len() + 2;
    refusal.at(|inner| {
        let bytes = match inner.bytes {
            // The end of the text is its closing quote.
            Some(bytes) if is_plain => {
                let start = span.start + 1 + bytes.start;
                start..(span.start + 1 + bytes.end).max(start + 1)
            }
            _ => span,
        };
        Span { bytes: Some(bytes), notes: inner.notes }
    })
}

/// Refuses a limit for cells that the matrix does not have.
fn known(limit: &Limit, axes: &[Axis<'_>], value: &Node<'_>) -> Result<(), Refusal<Span>> {
    let axes = axes.iter().map(|axis| {
        (&*axis.name, axis.points.iter().map(|point| &*point.label).collect::<Vec<&str>>())
    });
    let checked = limit.check_labels(&axes.collect::<Vec<_>>());
    checked.map_err(|refusal| refusal.at(|()| value.span().into()))
}

fn place(source: &Source, value: &Node<'_>) -> Place {
    let refusal = Refusal::new(value.span(), "");
    let error = source.error(vec![refusal]);
    error.refusals.into_iter().next().expect("an error has what it is made of").place
}
