//! `web/src/generated/` is generated from the types of pages; this fails when it is stale. `make generate` writes it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use serde_json::{Map, Value};
use suiro_report::{Difference, Page};

#[test]
fn the_types_of_the_page_are_current() {
    check("page.ts", "page.rs", schemars::schema_for!(Page).as_value());
}

#[test]
fn the_types_of_the_page_of_a_comparison_are_current() {
    check("diff.ts", "diff/mod.rs", schemars::schema_for!(Difference).as_value());
}

fn check(file: &str, from: &str, schema: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/generated").join(file);
    let want = typescript(schema, from);
    if std::env::var_os("SUIRO_REGENERATE").is_some() {
        std::fs::write(&path, &want).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == want, "{} is stale\nhint: make generate", path.display());
}

#[test]
fn schemas_become_types() {
    let schema = serde_json::json!({
        "title": "A", "type": "object",
        "properties": {
            "n": {"type": ["number", "null"], "description": "How many."},
            "b": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]},
            "pairs": {"type": "array", "items": {"type": "array", "prefixItems": [
                {"type": "number"}, {"type": "string"}]}},
            "by": {"type": "object", "additionalProperties": {"type": "boolean"}},
        },
        "required": ["n", "pairs", "by"],
        "$defs": {"B": {"oneOf": [{"const": "x"}, {"const": "y"}]}},
    });
    let types = typescript(&schema, "page.rs");
    for line in [
        "  /** How many. */\n  n: number | null;",
        "  b?: B | null;",
        "  pairs: [number, string][];",
        "  by: Record<string, boolean>;",
        "export type B = \"x\" | \"y\";",
    ] {
        assert!(types.contains(line), "{line} is not in\n{types}");
    }
}

/// The TypeScript of a JSON Schema, as far as the page's types need it.
fn typescript(schema: &Value, from: &str) -> String {
    let mut out = format!(
        "// Generated from crates/report/src/{from}: do not edit.\n\
         // make generate\n",
    );
    let root = schema["title"].as_str().expect("the root type has a title");
    declare(&mut out, root, schema);
    for (name, definition) in schema["$defs"].as_object().unwrap_or(&Map::new()) {
        declare(&mut out, name, definition);
    }
    out
}

fn declare(out: &mut String, name: &str, schema: &Value) {
    out.push('\n');
    document(out, "", schema);
    let Some(properties) = schema["properties"].as_object() else {
        writeln!(out, "export type {name} = {};", of(schema)).unwrap();
        return;
    };
    writeln!(out, "export interface {name} {{").unwrap();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (field, schema) in properties {
        document(out, "  ", schema);
        // What serde writes is always there; only what it may leave out is not required.
        let optional =
            if required.iter().any(|name| name == field) || is_nullable(schema) { "" } else { "?" };
        writeln!(out, "  {field}{optional}: {};", of(schema)).unwrap();
    }
    out.push_str("}\n");
}

/// `Option` is written as null, though its schema does not require it.
fn is_nullable(schema: &Value) -> bool {
    schema["type"].as_array().is_some_and(|types| types.iter().any(|t| t == "null"))
}

fn document(out: &mut String, indent: &str, schema: &Value) {
    if let Some(text) = schema["description"].as_str() {
        let text = text.replace('\n', &format!("\n{indent} * "));
        let (open, close) = if text.contains('\n') {
            (format!("/**\n{indent} * "), format!("\n{indent} */"))
        } else {
            ("/** ".to_owned(), " */".to_owned())
        };
        writeln!(out, "{indent}{open}{text}{close}").unwrap();
    }
}

fn of(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.rsplit('/').next().expect("a split has a last part").to_owned();
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(options) = schema[choice].as_array() {
            return options.iter().map(of).collect::<Vec<_>>().join(" | ");
        }
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    match &schema["type"] {
        Value::Array(types) => {
            let each = types.iter().map(|kind| {
                let mut one = schema.clone();
                one["type"] = kind.clone();
                of(&one)
            });
            each.collect::<Vec<_>>().join(" | ")
        }
        Value::String(kind) => of_kind(kind, schema),
        _ => "unknown".into(),
    }
}

/// A map from names: any, or those of a closed list, which the schema has as properties.
fn map(schema: &Value) -> String {
    if let Some(known) = schema["properties"].as_object() {
        let names: Vec<String> = known.keys().map(|name| format!("{name:?}")).collect();
        let kinds: BTreeSet<String> = known.values().map(of).collect();
        let kinds = kinds.into_iter().collect::<Vec<_>>().join(" | ");
        return format!("Partial<Record<{}, {kinds}>>", names.join(" | "));
    }
    match schema.get("additionalProperties") {
        Some(value) => format!("Record<string, {}>", of(value)),
        None => panic!("the generator does not know what the map {schema} holds"),
    }
}

fn of_kind(kind: &str, schema: &Value) -> String {
    match kind {
        "integer" | "number" => "number".into(),
        "string" | "boolean" | "null" => kind.into(),
        "array" => match schema["prefixItems"].as_array() {
            Some(items) => format!("[{}]", items.iter().map(of).collect::<Vec<_>>().join(", ")),
            None => {
                let item = of(&schema["items"]);
                if item.contains(' ') && !item.starts_with('[') {
                    format!("({item})[]")
                } else {
                    format!("{item}[]")
                }
            }
        },
        "object" => map(schema),
        other => panic!("the generator does not know the type {other}"),
    }
}
