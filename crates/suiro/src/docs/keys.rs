//! The keys of a scenario, from its JSON Schema: a section for each table, a row for each key.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use serde_json::{Map, Value};

const HEAD: &str = "# Scenario keys\n\n\
    Every key of a scenario. Generated from the JSON Schema, which `suiro schema` prints for editors \
    (`SUIRO_REGENERATE=1 cargo test -p suiro docs`): do not edit. `suiro list` prints the built-in scenarios, and \
    `suiro show NAME` prints one.\n\n\
    Quantities are texts with a unit: `\"8 Mbit/s\"`, `\"20 ms\"`, `\"100 kB\"`, `\"1 %\"`. A key with `$` also accepts \
    `\"$NAME\"`: the value of a parameter or of an axis of the matrix.\n";

/// A table that is still to be written: its path in a scenario, and its schema.
struct Section<'a> {
    path: String,
    schema: &'a Value,
}

struct Reference<'a> {
    root: &'a Value,
    text: String,
    /// The section of each definition that has one.
    known: BTreeMap<&'a str, String>,
    open: VecDeque<Section<'a>>,
}

/// The whole document.
pub fn keys(schema: &Value) -> String {
    let mut reference = Reference {
        root: schema,
        text: HEAD.to_owned(),
        known: BTreeMap::new(),
        open: VecDeque::new(),
    };
    reference.open.push_back(Section { path: String::new(), schema });
    while let Some(section) = reference.open.pop_front() {
        reference.section(&section);
    }
    reference.text
}

fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
}

fn definition(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// The key of a variant that has a constant value, as it is written: `kind = "player"`.
fn tag(schema: &Value) -> Option<String> {
    let is_tag = |(key, value): (&String, &Value)| Some(format!("{key} = {}", value.get("const")?));
    properties(schema)?.iter().find_map(is_tag)
}

/// The words of a closed list, with their meanings.
fn words(schema: &Value) -> Option<Vec<(String, &str)>> {
    let word = |one: &'_ Value| one.get("const").map(ToString::to_string);
    let all = alternatives(schema)?;
    all.iter().map(|one| Some((word(one)?, meaning(one)))).collect()
}

fn meaning(schema: &Value) -> &str {
    schema.get("description").and_then(Value::as_str).unwrap_or_default()
}

/// A meaning as the cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The anchor that a page of Markdown gives a heading.
fn anchor(heading: &str) -> String {
    let kept = |char: char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(|char| kept(*char)).collect::<String>().replace(' ', "-")
}

fn heading(path: &str) -> String {
    match path.split_once(", ") {
        Some((table, tag)) => format!("`{table}` with `{tag}`"),
        None if path.is_empty() => "Top level".to_owned(),
        None => format!("`{path}`"),
    }
}

impl<'a> Reference<'a> {
    fn line(&mut self, line: &str) {
        writeln!(self.text, "{line}").expect("a string takes all");
    }

    fn definition(&self, name: &str) -> &'a Value {
        &self.root["$defs"][name]
    }

    fn section(&mut self, Section { path, schema }: &Section<'a>) {
        self.line(&format!("\n## {}", heading(path)));
        if !meaning(schema).is_empty() && !path.is_empty() {
            self.line(&format!("\n{}", cell(meaning(schema))));
        }
        for one in alternatives(schema).into_iter().flatten() {
            let table = properties(self.resolved(one)).is_some() && tag(one).is_none();
            let kind = if table { "table".to_owned() } else { self.kind(one, path) };
            let meaning = cell(meaning(one));
            self.line(format!("\n- {kind}: {meaning}").trim_end_matches([':', ' ']));
            if table {
                self.rows(path, self.resolved(one));
            }
        }
        self.rows(path, schema);
    }

    /// The table of a section's keys.
    fn rows(&mut self, path: &str, schema: &'a Value) {
        let Some(keys) = properties(schema) else { return };
        self.line("\n| key | value | meaning |\n|---|---|---|");
        let required = schema.get("required").and_then(Value::as_array);
        for (key, value) in keys {
            let table = path.split_once(", ").map_or(path, |(table, _)| table);
            let below = if path.is_empty() { key.clone() } else { format!("{table}.{key}") };
            let needed = required.is_some_and(|all| all.iter().any(|one| one == key));
            let kind = self.kind(value, &below);
            let needed = if needed { ", required" } else { "" };
            let mut words = String::new();
            for (word, meaning) in self.listed(value) {
                let meaning = cell(meaning);
                let ends = meaning.trim_end_matches('.');
                words.push_str(format!("<br>`{word}`: {ends}").trim_end_matches([':', ' ']));
            }
            let own = meaning(value);
            let meaning = cell(if own.is_empty() { meaning(self.resolved(value)) } else { own });
            self.line(&format!("| `{key}` | {kind}{needed} | {meaning}{words} |"));
        }
    }

    fn resolved(&self, schema: &'a Value) -> &'a Value {
        definition(schema).map_or(schema, |name| self.definition(name))
    }

    /// The words that a key can hold.
    fn listed(&self, schema: &'a Value) -> Vec<(String, &'a str)> {
        let schema = self.resolved(schema);
        if let Some(words) = words(schema) {
            return words;
        }
        let nested = alternatives(schema).into_iter().flatten();
        nested
            .flat_map(|one| if self.is_table(one) { Vec::new() } else { self.listed(one) })
            .collect()
    }

    fn is_table(&self, schema: &'a Value) -> bool {
        let schema = self.resolved(schema);
        properties(schema).is_some()
            || alternatives(schema).is_some_and(|all| all.iter().any(|one| self.is_table(one)))
    }

    /// What a value is, in words; a table's section is put on the list of those to write.
    fn kind(&mut self, schema: &'a Value, path: &str) -> String {
        match definition(schema) {
            Some("Reference") => return "`$`".to_owned(),
            Some(name) if self.is_table(schema) => {
                let known = self.known.get(name).cloned();
                let path = known.unwrap_or_else(|| {
                    self.known.insert(name, path.to_owned());
                    self.queue(path, self.definition(name));
                    path.to_owned()
                });
                return format!("[table](#{})", anchor(&heading(&path)));
            }
            Some(name) => return self.kind(self.definition(name), path),
            None => {}
        }
        if let Some(tag) = tag(schema) {
            let path = format!("{path}, {tag}");
            self.queue(&path, schema);
            return format!("[`{tag}`](#{})", anchor(&heading(&path)));
        }
        if properties(schema).is_some() {
            self.queue(path, schema);
            return format!("[table](#{})", anchor(&heading(path)));
        }
        if let Some(all) = alternatives(schema) {
            if words(schema).is_some() {
                return "word".to_owned();
            }
            let mut kinds: Vec<String> = Vec::new();
            for one in all {
                let kind = self.kind(one, path);
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            return kinds.join(if kinds.len() > 4 { ", " } else { " or " });
        }
        self.plain(schema, path)
    }

    /// A value that is neither a table nor a choice.
    fn plain(&mut self, schema: &'a Value, path: &str) -> String {
        if let Some(word) = schema.get("const") {
            return format!("`{word}`");
        }
        if let Some(items) = schema.get("items") {
            let each = self.kind(items, &format!("{path}[]"));
            return format!("list of {}", each.trim_end_matches(" or `$`"));
        }
        if let Some(below) = schema.get("additionalProperties").filter(|below| below.is_object()) {
            return format!("by name: {}", self.kind(below, &format!("{path}.NAME")));
        }
        if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
        }
        let example = schema.get("examples").and_then(Value::as_array).and_then(|all| all.first());
        let kind = match schema.get("type") {
            Some(Value::Array(kinds)) => {
                kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
            }
            Some(kind) => kind.as_str().unwrap_or_default().to_owned(),
            None => "any value".to_owned(),
        };
        let kind = kind.replace("string", "text");
        example.map_or(kind.clone(), |example| format!("{kind}, such as `{example}`"))
    }

    fn queue(&mut self, path: &str, schema: &'a Value) {
        self.open.push_back(Section { path: path.to_owned(), schema });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_leads_to_one_heading() {
        let text = keys(&suiro_scenario::schema());
        let headings: Vec<String> =
            text.lines().filter_map(|line| line.strip_prefix("## ")).map(anchor).collect();
        let mut links = 0;
        for (at, _) in text.match_indices("](#") {
            let link = text[at + 3..].split(')').next().unwrap();
            assert_eq!(headings.iter().filter(|heading| *heading == link).count(), 1, "{link}");
            links += 1;
        }
        assert!(links > 40, "{links} links");
    }
}
