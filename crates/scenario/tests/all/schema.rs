//! The committed JSON Schema is what the types say, and takes the built-in scenarios.

use std::path::PathBuf;

use serde_json::Value;
use suiro_scenario::{Scenario, built_in, schema};

fn committed() -> PathBuf {
    PathBuf::from("../../scenarios/schema.json")
}

#[test]
fn the_committed_schema_is_up_to_date() {
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("SUIRO_REGENERATE").is_some() {
        std::fs::write(committed(), &text).unwrap();
    }
    let found = std::fs::read_to_string(committed()).unwrap_or_default();
    assert!(found == text, "scenarios/schema.json is stale\nhint: make generate");
}

#[test]
fn built_in_scenarios_conform() {
    let schema = schema();
    for scenario in built_in() {
        let value: Value = toml::from_str(scenario.text()).unwrap();
        conforms(&schema, &schema, &value).unwrap_or_else(|e| panic!("{}{e}", scenario.file()));
    }
}

#[test]
fn what_is_wrong_does_not_conform() {
    let schema = schema();
    let quick = Scenario::load("quick").unwrap().text().to_owned();
    for (good, bad) in [
        ("jobs = 2", "jbos = 2"),
        ("delay = \"20 ms\"", "delay = 20"),
        ("delay = \"20 ms\"", "delay = \"20\""),
        ("kind = \"player\"", "kind = \"viewer\""),
        ("mode = \"live\"", "mode = \"smooth\""),
        ("media = \"main\"", ""),
        ("tcp = [\"reno\", \"cubic\"]", "tcp = \"reno\""),
    ] {
        let text = quick.replacen(good, bad, 1);
        assert_ne!(text, quick, "the scenario has {good}");
        let value: Value = toml::from_str(&text).unwrap();
        assert!(conforms(&schema, &schema, &value).is_err(), "{bad} conforms");
    }
}

/// The part of JSON Schema that the scenario's uses; anything else in it is a failure.
fn conforms(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let Value::Object(map) = schema else {
        return if schema == &Value::Bool(false) { Err(": not allowed".into()) } else { Ok(()) };
    };
    for (keyword, rule) in map {
        match keyword.as_str() {
            "$ref" => {
                let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                conforms(
                    root,
                    root.pointer(pointer).expect("the reference leads somewhere"),
                    value,
                )?;
            }
            "anyOf" => {
                let errors: Vec<String> =
                    list(rule).filter_map(|one| conforms(root, one, value).err()).collect();
                check(errors.len() < list(rule).count(), || errors.join(" or "))?;
            }
            "oneOf" => {
                let errors: Vec<String> =
                    list(rule).filter_map(|one| conforms(root, one, value).err()).collect();
                check(errors.len() + 1 == list(rule).count(), || errors.join(" or "))?;
            }
            "type" => {
                let types = if rule.is_array() { list(rule).collect() } else { vec![rule] };
                check(types.iter().any(|one| is(one, value)), || format!(": not a {rule}"))?;
            }
            "const" => check(rule == value, || format!(": not {rule}"))?,
            "enum" => check(list(rule).any(|one| one == value), || format!(": not in {rule}"))?,
            "required" => {
                let lacks = list(rule).find(|key| value.get(key.as_str().unwrap()).is_none());
                check(lacks.is_none() || !value.is_object(), || {
                    format!(": does not have {lacks:?}")
                })?;
            }
            "pattern" => check(value.as_str().is_none_or(|text| fits(rule, text)), || {
                format!(": does not match {rule}")
            })?,
            "properties" | "additionalProperties" => {}
            "items" => {
                for one in list(value) {
                    conforms(root, rule, one)?;
                }
            }
            "title" | "description" | "default" | "examples" | "$schema" | "$defs" | "format" => {}
            "minimum" | "maximum" | "minItems" | "maxItems" | "minLength" | "maxLength" => {}
            "exclusiveMinimum" | "uniqueItems" | "prefixItems" | "x-bounds" => {}
            other => panic!("the test does not know the keyword {other}"),
        }
    }
    members(root, schema, value)
}

fn members(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let Value::Object(members) = value else { return Ok(()) };
    for (key, member) in members {
        let own = schema.get("properties").and_then(|all| all.get(key));
        let rule = own.or_else(|| schema.get("additionalProperties")).unwrap_or(&Value::Bool(true));
        conforms(root, rule, member).map_err(|error| format!(".{key}{error}"))?;
    }
    Ok(())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn check(holds: bool, error: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(error()) }
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the test does not know the type {other}"),
    }
}

/// Patterns are distinguished by how they begin: a number needs a unit, a reference its sign.
fn fits(pattern: &Value, text: &str) -> bool {
    let pattern = pattern.as_str().unwrap();
    if pattern.starts_with("^[0-9]+") {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        return text.starts_with(|c: char| c.is_ascii_digit()) && !unit.trim().is_empty();
    }
    if pattern.starts_with(r"^\$") { text.starts_with('$') } else { true }
}
