//! As much of JSON Schema (draft 4) as NMOS uses, to check our answers with.

use regex::Regex;
use serde_json::Value;

/// What of `value` does not match `schema`; empty if it does.
pub fn violations(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(schema, value, "$", &mut found);
    found
}

fn walk(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    for (word, rule) in schema.as_object().expect("a schema is an object") {
        let fits = match word.as_str() {
            "type" => is_type(rule, value),
            "enum" => rule.as_array().unwrap().contains(value),
            "pattern" => value.as_str().is_none_or(|text| pattern(rule).is_match(text)),
            "format" => value.as_str().is_none_or(|text| is_format(rule.as_str().unwrap(), text)),
            "minimum" => value.as_f64().is_none_or(|n| n >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|n| n <= rule.as_f64().unwrap()),
            "minItems" => value.as_array().is_none_or(|l| l.len() as u64 >= rule.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|l| l.len() as u64 <= rule.as_u64().unwrap()),
            "uniqueItems" => value.as_array().is_none_or(|list| {
                list.iter().enumerate().all(|(at, one)| !list[..at].contains(one))
            }),
            "anyOf" => count(rule, value) > 0,
            "oneOf" => count(rule, value) == 1,
            "not" => !violations(rule, value).is_empty(),
            "required" => value.as_object().is_none_or(|pairs| {
                rule.as_array().unwrap().iter().all(|key| pairs.contains_key(key.as_str().unwrap()))
            }),
            "additionalProperties" => rule != &Value::Bool(false) || has_only_known(schema, value),
            "allOf" => {
                rule.as_array().unwrap().iter().for_each(|own| walk(own, value, at, found));
                true
            }
            "properties" | "patternProperties" | "items" => {
                children(word, rule, value, at, found);
                true
            }
            "$schema" | "title" | "description" | "default" | "id" | "definitions" => true,
            other => panic!("this validator does not know `{other}`"),
        };
        if !fits {
            found.push(format!("{at}: {word} {rule}, found {value}"));
        }
    }
}

fn children(word: &str, rule: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    match (word, value) {
        ("items", Value::Array(list)) => {
            for (n, own) in list.iter().enumerate() {
                walk(rule, own, &format!("{at}[{n}]"), found);
            }
        }
        ("properties", Value::Object(pairs)) => {
            for (key, rule) in rule.as_object().unwrap() {
                if let Some(own) = pairs.get(key) {
                    walk(rule, own, &format!("{at}.{key}"), found);
                }
            }
        }
        ("patternProperties", Value::Object(pairs)) => {
            for (key, rule) in rule.as_object().unwrap() {
                let keys = Regex::new(key).unwrap();
                for (name, own) in pairs.iter().filter(|(name, _)| keys.is_match(name)) {
                    walk(rule, own, &format!("{at}.{name}"), found);
                }
            }
        }
        _ => {}
    }
}

fn has_only_known(schema: &Value, value: &Value) -> bool {
    let Value::Object(pairs) = value else { return true };
    let own = schema["properties"].as_object();
    let patterns = schema["patternProperties"].as_object();
    pairs.keys().all(|key| {
        own.is_some_and(|own| own.contains_key(key))
            || patterns.is_some_and(|all| all.keys().any(|p| Regex::new(p).unwrap().is_match(key)))
    })
}

fn count(rules: &Value, value: &Value) -> usize {
    rules.as_array().unwrap().iter().filter(|rule| violations(rule, value).is_empty()).count()
}

fn pattern(rule: &Value) -> Regex {
    Regex::new(&rule.as_str().unwrap().replace("\\/", "/")).unwrap()
}

fn is_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    };
    match rule {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
        _ => panic!("type {rule}"),
    }
}

fn is_format(name: &str, text: &str) -> bool {
    match name {
        "uri" => text.split_once(':').is_some_and(|(scheme, rest)| {
            !scheme.is_empty() && !rest.is_empty() && !text.contains(char::is_whitespace)
        }),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "hostname" => {
            Regex::new("^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$").unwrap().is_match(text)
        }
        "regex" => Regex::new(text).is_ok(),
        other => panic!("format {other}"),
    }
}
