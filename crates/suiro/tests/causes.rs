//! A cause is printed or chained, never both: an error whose text has its cause does not also return it from `source()`, or
//! a message that follows the chain would repeat it. `thiserror` chains fields called `source` and those with `#[source]` or
//! `#[from]`.

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

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn a_cause_is_printed_or_chained() {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path().join("src");
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    let (mut count, mut found) = (0, Vec::new());
    for file in files {
        let (errors, both) = errors(&std::fs::read_to_string(&file).unwrap());
        count += errors;
        found.extend(both.iter().map(|error| format!("{}: {error}", file.display())));
    }
    assert!(count > 200, "only {count} errors found: does this test still read them?");
    assert!(found.is_empty(), "printed and chained:\n{}\n{REMEDY}", found.join("\n"));
}

#[test]
fn the_rule_finds_what_it_should() {
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
