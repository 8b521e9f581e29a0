//! What must hold in the source texts of all crates.
//!
//! A cause is printed or chained, never both: an error whose text has its cause does not also return it from `source()`, or
//! a message that follows the chain would repeat it. `thiserror` chains fields called `source` and those with `#[source]` or
//! `#[from]`. And bounds that are checked are in the JSON Schema, where people and editors find them.

use std::path::{Path, PathBuf};

const REMEDY: &str =
    "hint: call the field `cause`, without #[source] or #[from], if the text prints it";

/// What follows the opening delimiter at the start of `text`, up to the closing one that matches it.
fn inside(text: &str) -> &str {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (at, char) in text.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 1 => return &text[1..at],
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    panic!("a delimiter is not closed: {text}");
}

/// The fields of the variant or struct that `text` begins with; other attributes may precede it.
fn fields(mut text: &str) -> Vec<String> {
    loop {
        text = text.trim_start();
        let Some(attribute) = text.strip_prefix('#') else { break };
        text = &attribute[inside(attribute).len() + 2..];
    }
    let end = text.find(['{', '(', ',', ';', '}']).expect("a variant or a struct ends");
    if !text[end..].starts_with(['{', '(']) {
        return Vec::new();
    }
    let (mut fields, mut depth) = (vec![String::new()], 0);
    for char in inside(&text[end..]).chars() {
        match char {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            _ => {}
        }
        match fields.last_mut().expect("there is one from the start") {
            _ if char == ',' && depth == 0 => fields.push(String::new()),
            field => field.push(char),
        }
    }
    fields.iter().map(|field| field.trim().to_owned()).filter(|field| !field.is_empty()).collect()
}

/// Name of a field or its number in a tuple, and whether thiserror returns it from `source()`.
fn chained(number: usize, field: &str) -> (String, bool) {
    let marked = field.contains("#[source]") || field.contains("#[from]");
    let declared = field.rsplit(']').next().unwrap_or(field).replace("::", "");
    match declared.split_once(':') {
        Some((name, _)) => {
            let name = name.trim().rsplit(' ').next().unwrap_or_default();
            (name.to_owned(), marked || name == "source")
        }
        None => (number.to_string(), marked),
    }
}

/// If the text of an error contains this field: in braces, or as an argument after the text.
fn prints(error: &str, field: &str) -> bool {
    let (text, arguments) = error.rsplit_once('"').unwrap_or((error, ""));
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    text.match_indices('{').any(|(at, _)| {
        let rest = text[at + 1..].strip_prefix(field);
        rest.is_some_and(|rest| rest.starts_with(['}', ':']))
    }) || arguments.split(|char| !is_word(char)).any(|word| word == field)
}

/// The errors of a source text, and of those the ones that print a field and chain it.
fn errors(text: &str) -> (usize, Vec<String>) {
    let no_comment = |line: &&str| !line.trim_start().starts_with("//");
    let text = text.lines().filter(no_comment).collect::<Vec<_>>().join("\n");
    let (mut count, mut both) = (0, Vec::new());
    for (at, start) in text.match_indices("#[error(") {
        let error = inside(&text[at + start.len() - 1..]);
        count += 1;
        if error.trim() == "transparent" {
            continue;
        }
        let after = at + start.len() + error.len() + ")]".len();
        for (number, field) in fields(&text[after..]).iter().enumerate() {
            let (name, chained) = chained(number, field);
            if chained && prints(error, &name) {
                both.push(format!("`{name}` of {}", error.trim()));
            }
        }
    }
    (count, both)
}

/// Every Rust file below a folder.
pub(crate) fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The sources of all crates, with their texts; tests left out.
fn crates() -> Vec<(PathBuf, String)> {
    let crates = PathBuf::from("..");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path().join("src");
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).unwrap();
        (file, text)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn a_cause_is_printed_or_chained() {
    let (mut count, mut found) = (0, Vec::new());
    for (file, text) in crates() {
        let (errors, both) = errors(&text);
        count += errors;
        found.extend(both.iter().map(|error| format!("{}: {error}", file.display())));
    }
    assert!(count > 200, "only {count} errors found: does this test still read them?");
    assert!(found.is_empty(), "printed and chained:\n{}\n{REMEDY}", found.join("\n"));
}

#[test]
fn a_cause_that_is_printed_and_chained_is_found() {
    let both = |text: &str| errors(text).1.len();
    let named = |error: &str, field: &str| {
        both(&format!(
            "enum E {{\n#[error({error})]\nA {{\n/// The (path.\npath: P,\n{field},\n}},\n}}"
        ))
    };
    assert_eq!(named("\"{path}: {source}\"", "source: io::Error"), 1);
    assert_eq!(named("\"{path}: {source:#}\\nhint: (a\"", "pub source: io::Error"), 1);
    assert_eq!(named("\"{path}: {}\", told(.source)", "source: io::Error"), 1);
    assert_eq!(named("\"{path}: {why}\"", "#[source]\nwhy: io::Error"), 1);
    assert_eq!(named("\"{path}: {cause}\"", "cause: io::Error"), 0);
    assert_eq!(named("\"reading {path}\"", "source: io::Error"), 0);
    let tuple = |error: &str, fields: &str| {
        both(&format!("enum E {{\n#[error({error})]\n#[x(y = \")\")]\nA({fields}),\nB,\n}}"))
    };
    assert_eq!(tuple("\"http: {0}\"", "#[from] hyper::Error"), 1);
    assert_eq!(tuple("\"http: {}\", chain(.0)", "#[from] hyper::Error"), 1);
    assert_eq!(tuple("\n\"a: {1:#}\"\n", "Map<A, B>, #[source] io::Error"), 1);
    assert_eq!(tuple("\"a: {0}\"", "Map<A, B>, #[source] io::Error"), 0);
    assert_eq!(tuple("transparent", "#[from] io::Error"), 0);
    assert_eq!(tuple("\"http: {0}\"", "hyper::Error"), 0);
    assert_eq!(both("#[error(\"{source}\")]\nstruct E { source: io::Error }"), 1);
    assert_eq!(both("enum E {\n#[error(\"no source\")]\nNone,\n}"), 0);
}

/// The types for which a source text declares bounds that are to be in a schema.
fn bounded(text: &str) -> Vec<&str> {
    let name = |rest: &'static str| {
        text.match_indices(rest).filter_map(move |(at, start)| {
            let rest = text[at + start.len()..].trim_start();
            let end = rest.find(|char: char| !(char.is_alphanumeric() || "_$".contains(char)))?;
            Some((&rest[..end], &rest[end..]))
        })
    };
    let declared = name("bounds! {").chain(name("Bounded for ").filter(|(_, rest)| {
        let implementation = rest.split("\n}\n").next().unwrap_or_default();
        implementation.starts_with(" {") && !implementation.contains("fn describe(_:")
    }));
    let declared = declared.map(|(name, _)| name).filter(|name| !name.is_empty());
    declared.filter(|name| has_schema(text, name)).collect()
}

/// Whether the type derives its schema here: others have none, or write their own.
fn has_schema(text: &str, name: &str) -> bool {
    ["struct", "enum"].iter().any(|kind| {
        let Some(at) = text.find(&format!("{kind} {name} {{")) else { return false };
        let item = text[..at].rsplit("\n\n").next().unwrap_or_default();
        item.contains("JsonSchema")
    })
}

/// The types of one source text whose bounds are not in their schema.
fn unpublished(text: &str) -> (usize, Vec<String>) {
    let bounded = bounded(text);
    let missing = |name: &&&str| !text.contains(&format!("bounds_of::<{name}>"));
    (bounded.len(), bounded.iter().filter(missing).map(ToString::to_string).collect())
}

#[test]
fn bounds_that_are_checked_are_in_the_schema() {
    let (mut count, mut found) = (0, Vec::new());
    for (file, text) in crates() {
        // Its examples are not of a schema.
        if file.ends_with("strict/src/bounds.rs") {
            continue;
        }
        let (bounded, missing) = unpublished(&text);
        count += bounded;
        found.extend(missing.iter().map(|name| format!("{}: {name}", file.display())));
    }
    assert!(count > 20, "only {count} types with bounds found: does this test still read them?");
    assert!(
        found.is_empty(),
        "bounds that are not in the schema:\n{}\nhint: #[schemars(transform = bounds_of::<TYPE>)]",
        found.join("\n")
    );
}

#[test]
fn bounds_without_a_transform_are_found() {
    let text = |derive, transform| {
        format!(
            "bounds! {{ Queue {{ flows: FLOWS }} }}\n\n#[derive({derive})]\n{transform}pub struct Queue {{\n}}\n"
        )
    };
    let transform = "#[schemars(transform = bounds_of::<Queue>)]\n";
    assert_eq!(unpublished(&text("Debug, JsonSchema", "")).1, ["Queue"]);
    assert_eq!(unpublished(&text("Debug, JsonSchema", transform)), (1, Vec::new()));
    assert_eq!(unpublished(&text("Debug", "")).0, 0);
    let by_hand = |describe| {
        format!(
            "impl Bounded for Ready {{\n{describe}\n}}\n\n#[derive(JsonSchema)]\nenum Ready {{\n}}\n"
        )
    };
    assert_eq!(unpublished(&by_hand("fn describe(schema: &mut Schema) {}")).1, ["Ready"]);
    assert_eq!(unpublished(&by_hand("fn describe(_: &mut Schema) {}")).0, 0);
}
