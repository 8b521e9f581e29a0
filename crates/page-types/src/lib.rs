//! For tests: the TypeScript of types that a page and a program share, from their JSON Schema, kept in `web/src/generated/`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Fails if `web/src/generated/FILE` is not what the type `T` gives, as it is written in JSON; writes it first where `SUIRO_REGENERATE` is set, as
/// `make generate` does. `from` is the file with the types, from the folder of crates.
///
/// # Panics
/// If it is stale, or the schema has what the generator does not know.
pub fn check<T: JsonSchema>(file: &str, from: &str) {
    let path = Path::new("../../web/src/generated").join(file);
    let schema = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let want = typescript(schema.into_root_schema_for::<T>().as_value(), from);
    if std::env::var_os("SUIRO_REGENERATE").is_some() {
        std::fs::write(&path, &want).expect("the folder is there and may be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == want, "{} is stale\nhint: make generate", path.display());
}

/// The TypeScript of a JSON Schema, as far as types of pages need it.
fn typescript(schema: &Value, from: &str) -> String {
    let mut out = format!(
        "// Generated from crates/{from}: do not edit.\n\
         // make generate\n",
    );
    let root = schema["title"].as_str().expect("the root type has a title");
    declare(&mut out, root, schema);
    assert!(schema["$defs"].get(root).is_none(), "two types are called {root}");
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
        let optional = if required.iter().any(|name| name == field) { "" } else { "?" };
        writeln!(out, "  {field}{optional}: {};", of(schema)).unwrap();
    }
    out.push_str("}\n");
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

/// A variant of an enum, with its fields.
fn inline(schema: &Value) -> String {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let fields: Vec<String> =
        properties.map(|(name, schema)| format!("{name}: {}", of(schema))).collect();
    format!("{{ {} }}", fields.join("; "))
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
        "object" if schema.get("required").is_some() => inline(schema),
        "object" => map(schema),
        other => panic!("the generator does not know the type {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_become_types() {
        let schema = serde_json::json!({
            "title": "A", "type": "object",
            "properties": {
                "n": {"type": ["number", "null"], "description": "How many."},
                "left_out": {"type": "string"},
            "b": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]},
                "pairs": {"type": "array", "items": {"type": "array", "prefixItems": [
                    {"type": "number"}, {"type": "string"}]}},
                "by": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "order": {"oneOf": [
                {"type": "object", "properties": {"do": {"const": "stop"}}, "required": ["do"]},
                {"type": "object", "properties": {"do": {"const": "go"}, "to": {"type": "string"}},
                    "required": ["do", "to"]},
            ]},
            },
            "required": ["n", "b", "pairs", "by", "order"],
            "$defs": {"B": {"oneOf": [{"const": "x"}, {"const": "y"}]}},
        });
        let types = typescript(&schema, "page.rs");
        for line in [
            "  /** How many. */\n  n: number | null;",
            "  b: B | null;",
            "  left_out?: string;",
            "  pairs: [number, string][];",
            "  by: Record<string, boolean>;",
            "  order: { do: \"stop\" } | { do: \"go\"; to: string };",
            "export type B = \"x\" | \"y\";",
        ] {
            assert!(types.contains(line), "{line} is not in\n{types}");
        }
    }
}
