//! A text as a tree of TOML values that know their place in it.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::refusal::{Keys, Refusal, Span, did_you_mean, listed};

/// A TOML value and its place.
pub type Node<'t> = Spanned<DeValue<'t>>;

/// Reads a text as TOML: the root table, or every fault of its syntax.
pub fn parse(text: &str) -> Result<Node<'_>, Vec<Refusal<Span>>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(Spanned::new(0..0, DeValue::Table(table.into_inner())));
    }
    let mut refusals: Vec<Refusal<Span>> = errors.iter().map(syntax).collect();
    // The parser may report several errors for one fault; the last is the most specific one.
    refusals.reverse();
    refusals
        .dedup_by_key(|refusal| refusal.place.bytes.as_ref().map(|span| line_of(text, span.start)));
    Err(refusals)
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

fn syntax(error: &toml::de::Error) -> Refusal<Span> {
    let (message, expected) = match error.message().split_once(", expected ") {
        Some((message, expected)) => (message, Some(expected)),
        None => (error.message(), None),
    };
    let refusal = Refusal::new(error.span(), format!("not TOML: {message}"));
    match expected {
        // A text without quotes that begins like `true` or `false`.
        _ if message == "invalid boolean" => {
            refusal.expected("`true`, `false`, or a text in quotes")
        }
        Some("literal string") => refusal.hint("put texts in quotes: \"20 ms\""),
        Some(expected) => refusal.expected(expected),
        None if message == "duplicate key" => refusal.hint("keep one of the two"),
        None => refusal,
    }
}

/// A table's entry, if `node` is a table that has it.
pub fn entry<'a, 't>(node: &'a Node<'t>, key: &str) -> Option<&'a Node<'t>> {
    node.get_ref().as_table()?.get(key)
}

/// A table's entries with the places of their keys, in the order of the text; nothing if `node` is
/// no table.
pub fn entries<'a, 't>(
    node: &'a Node<'t>,
) -> impl Iterator<Item = (&'a str, Range<usize>, &'a Node<'t>)> {
    let table = node.get_ref().as_table().into_iter().flatten();
    table.map(|(key, value)| (key.get_ref().as_ref(), key.span(), value))
}

/// Takes an entry out of a table.
pub fn take<'t>(node: &mut Node<'t>, key: &str) -> Option<Node<'t>> {
    match node.get_mut() {
        DeValue::Table(table) => table.remove(key),
        _ => None,
    }
}

/// Splits a table: the entries named, and the rest.
pub fn split<'t>(mut node: Node<'t>, keys: &[&str]) -> (Node<'t>, Node<'t>) {
    let mut named = DeTable::new();
    if let DeValue::Table(table) = node.get_mut() {
        for key in keys {
            if let Some((key, value)) = table.remove_entry(*key) {
                named.insert(key, value);
            }
        }
    }
    (Spanned::new(node.span(), DeValue::Table(named)), node)
}

/// Where the value at `path` stands; of what is missing, the table that does not have it. `None` for what
/// has no place: the root.
pub fn place(root: &Node<'_>, path: &[&str]) -> Option<Range<usize>> {
    let mut node = root;
    let mut span = None;
    for step in path {
        let next = match node.get_ref() {
            DeValue::Array(array) => step.parse::<usize>().ok().and_then(|index| array.get(index)),
            _ => entry(node, step),
        };
        let Some(next) = next else { break };
        node = next;
        span = Some(node.span());
    }
    span
}

/// What is wrong with a key of the table at `path`, at its place in the text.
pub fn in_text(body: &Node<'_>, path: &[&str], refusal: Refusal) -> Refusal<Span> {
    let Keys(keys) = &refusal.place;
    let steps: Vec<&str> = path.iter().copied().chain(keys.iter().map(String::as_str)).collect();
    let found_at = place(body, &steps);
    let found = match keys.as_slice() {
        [] => refusal.found.clone(),
        keys => format!("{}: {}", keys.join("."), refusal.found),
    };
    Refusal { found, ..refusal.at(|_| found_at.into()) }
}

/// Where the key at `path` stands, or [`place`] if there is no such key.
pub fn key_place(root: &Node<'_>, path: &[&str]) -> Option<Range<usize>> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(root, |node, step| entry(node, step));
    let key = parent.and_then(|parent| entries(parent).find(|(key, ..)| key == last));
    key.map_or_else(|| place(root, path), |(_, span, _)| Some(span))
}

/// The value as text, as a person would name it: strings bare, tables and arrays by kind.
pub fn words(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(value) => value.to_string(),
        DeValue::Array(_) => "an array".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

/// Whether two values are the same, wherever each stands. The entries of tables are in the same order.
pub fn same(one: &Node<'_>, other: &Node<'_>) -> bool {
    match (one.get_ref(), other.get_ref()) {
        (DeValue::String(one), DeValue::String(other)) => one == other,
        (DeValue::Integer(one), DeValue::Integer(other)) => {
            (one.radix(), one.as_str()) == (other.radix(), other.as_str())
        }
        (DeValue::Float(one), DeValue::Float(other)) => one.as_str() == other.as_str(),
        (DeValue::Boolean(one), DeValue::Boolean(other)) => one == other,
        (DeValue::Datetime(one), DeValue::Datetime(other)) => one == other,
        (DeValue::Array(one), DeValue::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other.iter()).all(|(a, b)| same(a, b))
        }
        (DeValue::Table(one), DeValue::Table(other)) => {
            let mut pairs = one.iter().zip(other.iter());
            one.len() == other.len()
                && pairs.all(|((x, a), (y, b))| x.get_ref() == y.get_ref() && same(a, b))
        }
        _ => false,
    }
}

/// Reads a value as a `T`. `what` names the value in messages, such as `[links.access]`;
/// `also` are keys that it may have in addition to those of `T`, for suggestions.
pub fn read<T: DeserializeOwned>(
    node: Node<'_>,
    what: &str,
    also: &[&str],
) -> Result<T, Refusal<Span>> {
    let span = node.span();
    T::deserialize(ValueDeserializer::from(node)).map_err(|error| explain(&error, span, what, also))
}

/// Turns what serde says into what a writer of scenarios can use.
fn explain(
    error: &toml::de::Error,
    whole: Range<usize>,
    what: &str,
    also: &[&str],
) -> Refusal<Span> {
    let message = error.message();
    // The root has no place of its own.
    let span = error.span().or(Some(whole)).filter(|span| !span.is_empty());
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match (message.split_once(" `").map(|(start, _)| start), quoted.as_slice()) {
        (Some("unknown field"), [key, known @ ..]) => {
            let known: Vec<&str> = known.iter().chain(also).copied().collect();
            Refusal::new(span, format!("unknown key `{key}` in {what}"))
                .instead(key, known.iter().copied())
        }
        (Some("unknown variant"), [value, known @ ..]) => {
            Refusal::new(span, format!("unknown value `{value}` in {what}"))
                .instead(value, known.iter().copied())
        }
        (Some("missing field"), [key]) => {
            Refusal::new(span, format!("the key `{key}` is missing in {what}"))
                .hint(format!("add `{key} = …`"))
        }
        _ => mismatch(message, span, what),
    }
}

fn mismatch(message: &str, span: Option<Range<usize>>, what: &str) -> Refusal<Span> {
    let found = ["invalid type: ", "invalid value: ", "invalid length "];
    let Some(rest) = found.iter().find_map(|start| message.strip_prefix(start)) else {
        // The types of other crates say what is wrong, then what would be right.
        return match message.split_once("; ") {
            Some((message, hint)) => Refusal::new(span, message).hint(hint),
            None => Refusal::new(span, message),
        };
    };
    match rest.split_once(", expected ") {
        Some((found, expected)) => {
            Refusal::new(span, format!("{found} does not fit in {what}")).expected(plain(expected))
        }
        None => Refusal::new(span, format!("{rest} does not fit in {what}")),
    }
}

/// Rust's names of types, for people.
fn plain(expected: &str) -> &str {
    match expected {
        "u8" => "a whole number, 0 to 255",
        "u16" => "a whole number, 0 to 65535",
        "u32" => "a whole number, 0 to 4294967295",
        "u64" | "usize" => "a whole number, not negative",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        "a string" => "a text in quotes",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a table",
        other => other,
    }
}

/// Takes the entry `key` of a table, which says of what kind the table is. `kinds` are the kinds
/// there are.
pub fn kind(
    node: &mut Node<'_>,
    key: &str,
    what: &str,
    kinds: &[&'static str],
) -> Result<&'static str, Refusal<Span>> {
    let expected = listed(kinds.iter().copied()).unwrap_or_default();
    if !node.get_ref().is_table() {
        return Err(Refusal::new(node.span(), format!("{what} is not a table"))
            .expected(format!("a table with the key `{key}`: {expected}")));
    }
    let Some(value) = take(node, key) else {
        return Err(Refusal::new(
            Some(node.span()).filter(|span| !span.is_empty()),
            format!("the key `{key}` is missing in {what}"),
        )
        .expected(expected));
    };
    let name = words(value.get_ref());
    kinds.iter().copied().find(|kind| *kind == name).ok_or_else(|| {
        let mut refusal = Refusal::new(value.span(), format!("unknown {key} `{name}` in {what}"));
        refusal.hint = did_you_mean(&name, kinds.iter().copied());
        refusal.expected(expected)
    })
}
