//! Tables and arrays of tables that a text writes as sections (`[name]`, `[[name]]`) instead of one value.

use std::ops::Range;

use toml::de::DeValue;

use crate::document::Node;

/// True if the text writes this table or array as sections.
pub fn is_section(text: &str, node: &Node<'_>) -> bool {
    match node.get_ref() {
        // The place of a section is its header; that of dotted keys, the key.
        DeValue::Table(_) => text[node.span()].starts_with('['),
        // An array of sections has the place of its first.
        DeValue::Array(array) => array.first().is_some_and(|first| first.span() == node.span()),
        _ => false,
    }
}

/// The sections of a node, those in them included: from their headers to whatever section comes next.
pub fn extent(text: &str, root: &Node<'_>, node: &Node<'_>) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    headers(text, root, &mut all);
    all.sort_unstable();
    all.dedup();
    let mut own = Vec::new();
    headers(text, node, &mut own);
    own.sort_unstable();
    own.dedup();
    let end = |start: usize| all.iter().copied().find(|next| *next > start).unwrap_or(text.len());
    own.into_iter().map(|start| start..end(start)).collect()
}

/// Where the headers of a node's sections begin.
fn headers(text: &str, node: &Node<'_>, found: &mut Vec<usize>) {
    match node.get_ref() {
        DeValue::Table(table) => {
            if is_section(text, node) {
                found.push(node.span().start);
            }
            table.values().for_each(|value| headers(text, value, found));
        }
        DeValue::Array(array) => array.iter().for_each(|value| headers(text, value, found)),
        _ => {}
    }
}

/// A value as TOML in one line, from the text where that has it so.
pub fn inline(text: &str, node: &Node<'_>) -> String {
    let entry = |key: &str, value| format!("{} = {}", key_of(key), inline(text, value));
    match node.get_ref() {
        DeValue::Array(array) if is_section(text, node) => {
            let values: Vec<String> = array.iter().map(|value| inline(text, value)).collect();
            format!("[{}]", values.join(", "))
        }
        DeValue::Table(table) if !text[node.span()].starts_with('{') => {
            let entries = table.iter().map(|(key, value)| entry(key.get_ref().as_ref(), value));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        _ => text[node.span()].to_owned(),
    }
}

/// A key of TOML, in quotes if it needs them.
pub fn key_of(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { quote(key) }
}

/// A basic string of TOML.
pub fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
