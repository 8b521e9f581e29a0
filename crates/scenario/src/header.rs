//! What a scenario says of itself and of its matrix, before any cell is looked at.

use std::borrow::Cow;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use suiro_strict::{Bounded, Bounds, bounds, bounds_of};
use suiro_units::Seed;
use toml::de::{DeTable, DeValue};

use crate::document::{Node, entries, entry, in_text, key_place, split, words};
use crate::refusal::{Refusal, Span};
use crate::substitute::is_name;

/// Keys of the root that are read per cell, where references may stand.
pub(crate) const BODY: [&str; 9] = [
    "duration",
    "warm_up",
    "topology",
    "segments",
    "multicast",
    "links",
    "media",
    "endpoints",
    "record",
];

/// Keys of the root that are read once: those of [`Header`].
pub(crate) const HEADER: [&str; 9] =
    ["name", "title", "description", "study", "repetitions", "seed", "jobs", "time", "date"];

/// Keys of the root that make the cells, and limits of what is measured in them.
pub(crate) const CELLS: [&str; 4] = ["parameters", "matrix", "quick", "limits"];

/// How often each cell is run.
pub(crate) const REPETITIONS: Bounds<u32> = Bounds::new(1, 1000);

/// How many trials run in parallel.
pub const JOBS: Bounds<u32> = Bounds::new(1, 64);

bounds! { Header { repetitions: REPETITIONS, jobs: JOBS } }

/// General facts about a scenario.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Header>)]
pub(crate) struct Header {
    /// Its name, as in `suiro run NAME`: letters, digits, `_` and `-`.
    pub name: String,
    /// One line on what it shows.
    pub title: String,
    /// What it is for, what to look at in the results, where its numbers come from.
    #[serde(default)]
    pub description: Option<String>,
    /// The study that it reproduces, such as `S0`.
    #[serde(default)]
    pub study: Option<String>,
    /// Repetitions of each cell. Default: 1.
    #[serde(default = "one")]
    pub repetitions: u32,
    /// Seed of all random numbers. Default: 1.
    #[serde(default = "first")]
    pub seed: Seed,
    /// Trials that run in parallel in the machine's time; `--jobs` overrides it. Default: 1. In virtual time trials do not
    /// disturb each other, and as many run as there are CPUs, or fewer if memory is short.
    #[serde(default = "one")]
    pub jobs: u32,
    /// The time that trials run in; `--virtual` sets it to `virtual`. Default: `real`.
    #[serde(default)]
    pub time: TimeKind,
    /// The date at which trials in virtual time begin, such as `2026-01-01T00:00:00Z` (RFC 3339), which is the default.
    #[serde(default)]
    pub date: Date,
}

/// The time that a trial runs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeKind {
    /// The machine's.
    #[default]
    Real,
    /// That of a guest kernel, which advances only when all of the trial's processes are idle: computation takes no time,
    /// and the same trial gives the same results.
    Virtual,
}

/// A moment of UTC, to the second, from 1970 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub struct Date {
    ns: u64,
}

impl Date {
    /// Nanoseconds since 1970 UTC.
    pub const fn as_nanos(self) -> u64 {
        self.ns
    }
}

impl Default for Date {
    /// 1 January 2026, 00:00 UTC.
    fn default() -> Self {
        Self { ns: 1_767_225_600_000_000_000 }
    }
}

impl std::str::FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = chrono::DateTime::parse_from_rfc3339(text).ok();
        let ns = parsed
            .and_then(|date| u64::try_from(date.timestamp()).ok()?.checked_mul(1_000_000_000));
        let ns = ns.filter(|ns| *ns <= u64::MAX / 4);
        ns.map(|ns| Self { ns }).ok_or_else(|| {
            "expected a date such as \"2026-01-01T00:00:00Z\", from 1970 on".to_owned()
        })
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

const fn one() -> u32 {
    1
}

const fn first() -> Seed {
    Seed(1)
}

/// An axis of the matrix: a name and the values that it takes.
#[derive(Debug, Clone)]
pub(crate) struct Axis<'t> {
    pub name: String,
    pub points: Vec<Point<'t>>,
}

/// One value of an axis.
#[derive(Debug, Clone)]
pub(crate) struct Point<'t> {
    /// What it is called in cells and reports.
    pub label: String,
    /// What it stands for.
    pub value: Node<'t>,
}

/// A scenario taken apart: what makes cells, and the body that each cell fills in.
#[derive(Debug)]
pub(crate) struct Parts<'t> {
    pub header: Option<Header>,
    pub parameters: Node<'t>,
    pub axes: Vec<Axis<'t>>,
    pub body: Node<'t>,
}

/// Takes a scenario apart and checks all but the body.
pub(crate) fn read<'t>(root: &Node<'t>, refusals: &mut Vec<Refusal<Span>>) -> Parts<'t> {
    let (body, rest) = split(root.clone(), &BODY);
    let (cells, rest) = split(rest, &CELLS);
    let others: Vec<&str> = BODY.into_iter().chain(CELLS).collect();
    let header = match crate::document::read::<Header>(rest, "the scenario", &others) {
        Ok(header) => {
            check(root, &header, refusals);
            Some(header)
        }
        Err(refusal) => {
            refusals.push(refusal);
            None
        }
    };
    let parameters = table(&cells, "parameters", refusals);
    for (name, span, _) in entries(&parameters) {
        check_name(name, span, "a parameter", refusals);
    }
    let axes = axes(&cells, &parameters, refusals);
    check_quick(&cells, refusals);
    Parts { header, parameters: parameters.into_owned(), axes, body }
}

/// A section of the root; an empty table if it is absent or no table.
pub(crate) fn table<'a, 't>(
    root: &'a Node<'t>,
    key: &str,
    refusals: &mut Vec<Refusal<Span>>,
) -> Cow<'a, Node<'t>> {
    match entry(root, key) {
        Some(node) if node.get_ref().is_table() => return Cow::Borrowed(node),
        Some(node) => {
            let found = node.get_ref().type_str();
            refusals.push(
                Refusal::new(node.span(), format!("`{key}` is of type {found}"))
                    .expected(format!("a table: [{key}]")),
            );
        }
        None => {}
    }
    Cow::Owned(toml::Spanned::new(0..0, DeValue::Table(DeTable::new())))
}

fn check(root: &Node<'_>, header: &Header, refusals: &mut Vec<Refusal<Span>>) {
    if let Some(study) =
        header.study.as_ref().filter(|id| !suiro_study::ids().any(|known| known == *id))
    {
        let span = crate::document::place(root, &["study"]);
        let message = format!("there is no study `{study}`");
        refusals.push(Refusal::new(span, message).instead(study, suiro_study::ids()));
    }
    let mut refuse = |key: &str, bad: bool, message: String, expected: &str| {
        if bad {
            let span = crate::document::place(root, &[key]);
            refusals.push(Refusal::new(span, message).expected(expected));
        }
    };
    let Header { name, title, .. } = header;
    // Nothing refers to it, so that it may begin like a number.
    let letters = name.trim_start_matches(|c: char| c.is_ascii_digit());
    let bad = name.len() > 32 || !is_name(letters);
    let message = format!("`{name}` cannot be a scenario's name");
    refuse(
        "name",
        bad,
        message,
        "letters, digits, `_` or `-`, not only digits; at most 32 characters",
    );
    let lines = title.trim().lines().count();
    refuse("title", lines != 1, format!("the title has {lines} lines"), "one line");
    let refused = header.out_of_bounds().into_iter();
    refusals.extend(refused.map(|refusal| in_text(root, &[], refusal)));
}

/// What a name must be.
pub(crate) const NAME: &str = "a letter, then letters, digits, `_` or `-`; at most 32 characters";

/// Refuses what [`is_name`] does not take. `what` bears its article: `an axis`.
pub(crate) fn check_name(
    name: &str,
    span: Range<usize>,
    what: &str,
    refusals: &mut Vec<Refusal<Span>>,
) {
    if !is_name(name) {
        let message = format!("`{name}` is not a valid name for {what}");
        refusals.push(Refusal::new(span, message).expected(NAME));
    }
}

fn axes<'t>(
    cells: &Node<'t>,
    parameters: &Node<'t>,
    refusals: &mut Vec<Refusal<Span>>,
) -> Vec<Axis<'t>> {
    let matrix = table(cells, "matrix", refusals);
    let mut axes = Vec::new();
    for (name, span, values) in entries(&matrix) {
        check_name(name, span.clone(), "an axis", refusals);
        let mut points = points(name, values, refusals);
        match entry(parameters, name).map(|usual| (usual, usual.get_ref().as_table())) {
            None => {}
            Some((_, Some(usual))) => {
                for point in &mut points {
                    complete(point, usual, name, refusals);
                }
            }
            Some((_, None)) => {
                let message = format!("`{name}` is both a parameter and an axis");
                let hint =
                    format!("remove `{name}` from [parameters]: --set {name}=… fixes the axis");
                refusals.push(Refusal::new(span, message).hint(hint));
            }
        }
        axes.push(Axis { name: name.to_owned(), points });
    }
    axes
}

/// Adds to a value of an axis what the parameter of its name has and it does not name.
fn complete<'t>(
    point: &mut Point<'t>,
    usual: &DeTable<'t>,
    name: &str,
    refusals: &mut Vec<Refusal<Span>>,
) {
    let span = point.value.span();
    let found = point.value.get_ref().type_str();
    let DeValue::Table(own) = point.value.get_mut() else {
        let message = format!("`{}` of the axis `{name}` is of type {found}", point.label);
        let expected = format!("a table of what differs from the parameter `{name}`");
        refusals.push(Refusal::new(span.clone(), message).expected(expected));
        // What refers to it is not refused as well.
        point.value = toml::Spanned::new(span, DeValue::Table(usual.clone()));
        return;
    };
    for key in own.keys().filter(|key| !usual.contains_key(*key)) {
        let message = format!("the parameter `{name}` has no `{}`", key.get_ref());
        let known: Vec<&str> = usual.keys().map(|key| &**key.get_ref()).collect();
        refusals.push(Refusal::new(key.span(), message).instead(key.get_ref(), known));
    }
    for (key, value) in usual {
        if !own.contains_key(key) {
            own.insert(key.clone(), value.clone());
        }
    }
}

fn points<'t>(name: &str, values: &Node<'t>, refusals: &mut Vec<Refusal<Span>>) -> Vec<Point<'t>> {
    let array = values.get_ref().as_array().filter(|array| !array.is_empty());
    let Some(array) = array else {
        let message = match values.get_ref().as_array() {
            Some(_) => format!("the axis `{name}` has 0 values"),
            None => format!("the axis `{name}` is not a list of values"),
        };
        let expected =
            format!("{name} = [VALUE, …] with 1 or more: a text, a number or {LABELLED}");
        refusals.push(Refusal::new(values.span(), message).expected(expected));
        return Vec::new();
    };
    let mut points: Vec<Point<'t>> = Vec::new();
    for value in array.iter() {
        match point(value) {
            Ok(point) if points.iter().any(|other| other.label == point.label) => {
                let message = format!("the axis `{name}` has the value `{}` twice", point.label);
                refusals.push(
                    Refusal::new(value.span(), message).hint("give each value its own label"),
                );
            }
            Ok(point) => points.push(point),
            Err(refusal) => refusals.push(refusal),
        }
    }
    points
}

const LABELLED: &str = "{ label = \"…\", value = … }";

fn point<'t>(node: &Node<'t>) -> Result<Point<'t>, Refusal<Span>> {
    match node.get_ref() {
        DeValue::Array(_) => {
            Err(Refusal::new(node.span(), "an array as a value needs a label").expected(LABELLED))
        }
        DeValue::Table(table) => {
            let label = table.get("label").and_then(|label| label.get_ref().as_str());
            let value = table.get("value").filter(|_| table.len() == 2);
            match (label, value) {
                (Some(label), Some(value)) if is_label(label) => {
                    Ok(Point { label: label.to_owned(), value: value.clone() })
                }
                _ => Err(Refusal::new(node.span(), "not a value of an axis").expected(LABELLED)),
            }
        }
        scalar if is_label(&words(scalar)) => {
            Ok(Point { label: words(scalar), value: node.clone() })
        }
        _ => {
            Err(Refusal::new(node.span(), "not a label: one line of 1 to 64 bytes without commas")
                .expected(LABELLED))
        }
    }
}

/// Labels stand in tables, in folders and, between commas, in `--only`.
fn is_label(text: &str) -> bool {
    let odd = |c: char| c.is_control() || c == ',';
    !text.is_empty() && text.len() <= 64 && text.trim() == text && !text.contains(odd)
}

/// The keys of `[quick]`.
const QUICK: [&str; 5] = ["duration", "warm_up", "repetitions", "parameters", "matrix"];

/// `[quick]` may change what the scenario has: its values are put in the scenario's place when
/// `--quick` is given, and checked there.
fn check_quick(cells: &Node<'_>, refusals: &mut Vec<Refusal<Span>>) {
    let quick = table(cells, "quick", refusals);
    for (key, span, value) in entries(&quick) {
        if !QUICK.contains(&key) {
            refusals.push(
                Refusal::new(span, format!("unknown key `{key}` in [quick]")).instead(key, QUICK),
            );
            continue;
        }
        let section = entry(cells, key);
        for (name, _, _) in entries(value) {
            let known = || section.into_iter().flat_map(entries).map(|(name, ..)| name);
            if !known().any(|known| known == name) {
                let span = key_place(cells, &["quick", key, name]);
                let message = format!("[{key}] has no `{name}` that [quick] could change");
                let known: Vec<&str> = known().collect();
                let refusal = Refusal::new(span, message).instead(name, known);
                refusals.push(refusal.or_hint(format!("add `{name}` to [{key}]")));
            }
        }
    }
}
