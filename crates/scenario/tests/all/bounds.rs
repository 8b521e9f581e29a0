//! Every key with a bound in the schema refuses a value below and one above it, and says where the
//! value stands, what it is, and what is expected. The cases are made from the schema, so that a bound
//! that stands only there fails.

use serde_json::{Map, Value, json};
use suiro_scenario::{NoFiles, Overrides, Refusal, Scenario, parse};
use suiro_units::{BitRate, Bytes, Duration};

/// A scenario that is sound but for the value under test.
const BASE: &str = r#"
    name = "base"
    title = "A base"
    duration = "10 s"
    topology = { shape = "dumbbell", link = "access" }
    links.access = { rate = "8 Mbit/s" }
    endpoints.ping = { kind = "command", host = "client", command = ["ping", "server"] }
"#;

/// Longest list that is tried.
const ENTRIES_MAX: u64 = 1100;

/// One value that must be refused.
struct Case {
    scenario: Value,
    key: String,
    /// The value as a refusal prints it.
    found: String,
    /// The bound that it breaks.
    bound: String,
}

/// Walks a schema; `build` puts a value at the place of the schema into a scenario.
struct Walk<'a> {
    root: &'a Value,
    cases: Vec<Case>,
}

type Build<'b> = &'b dyn Fn(Value) -> Value;

impl Walk<'_> {
    fn resolved<'s>(&'s self, schema: &'s Value) -> &'s Value {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(to) => self.root.pointer(to.trim_start_matches('#')).expect("it leads somewhere"),
            None => schema,
        }
    }

    /// The least value that conforms to a schema.
    fn minimal(&self, schema: &Value) -> Value {
        let schema = self.resolved(schema);
        let first = |key| schema.get(key).and_then(Value::as_array).and_then(|all| all.first());
        if let Some(value) = schema.get("const").or(first("enum")).or(first("examples")) {
            return value.clone();
        }
        if let Some(one) = first("anyOf").or(first("oneOf")) {
            return self.minimal(one);
        }
        match kind(schema) {
            "object" => self.table(schema),
            "array" => self.list(schema, schema.get("minItems").and_then(Value::as_u64)),
            "boolean" => json!(true),
            "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
            _ if schema.get("format") == Some(&json!("ipv4")) => json!("239.1.1.1"),
            _ => json!("x"),
        }
    }

    fn table(&self, schema: &Value) -> Value {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let entry = |key: &Value| {
            let key = key.as_str().expect("names are texts");
            // An endpoint is only read further if its host exists.
            let value = match key {
                "host" => json!("server"),
                _ => self.minimal(&schema["properties"][key]),
            };
            (key.to_owned(), value)
        };
        Value::Object(required.map(entry).collect::<Map<_, _>>())
    }

    fn list(&self, schema: &Value, entries: Option<u64>) -> Value {
        let one = schema.get("items").map_or(json!("x"), |items| self.minimal(items));
        (0..entries.unwrap_or(0)).map(|_| one.clone()).collect()
    }

    fn visit(&mut self, schema: &Value, key: &str, build: Build<'_>) {
        let schema = self.resolved(schema).clone();
        self.bounds(&schema, key, build);
        for choices in ["anyOf", "oneOf"] {
            for choice in schema.get(choices).and_then(Value::as_array).into_iter().flatten() {
                self.visit(choice, key, build);
            }
        }
        let below = |key: &str, inner: &str| format!("{key}.{inner}");
        for (name, inner) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let table = self.minimal(&schema);
            let build = |value| {
                let mut table = table.clone();
                table[name] = value;
                build(table)
            };
            self.visit(inner, &below(key, name), &build);
        }
        if let Some(inner @ Value::Object(_)) = schema.get("additionalProperties") {
            self.visit(inner, &below(key, "x"), &|value| build(json!({ "x": value })));
        }
        if let Some(items) = schema.get("items") {
            self.visit(items, &below(key, "0"), &|value| build(json!([value])));
        }
    }

    fn bounds(&mut self, schema: &Value, key: &str, build: Build<'_>) {
        let mut refused = Vec::new();
        for (name, step) in [("minimum", -1), ("maximum", 1), ("exclusiveMinimum", 0)] {
            refused.extend(schema.get(name).map(|end| beyond(end, step)));
        }
        for quantity in schema.get("x-bounds").and_then(Value::as_array).into_iter().flatten() {
            refused.extend(quantities(quantity));
        }
        for (name, step) in [("minItems", -1), ("maxItems", 1)] {
            let Some(end) = schema.get(name).and_then(Value::as_u64) else { continue };
            let Some(entries) = end.checked_add_signed(step).filter(|n| *n <= ENTRIES_MAX) else {
                continue;
            };
            let list = self.list(schema, Some(entries));
            refused.push((list, entries.to_string(), end.to_string()));
        }
        self.cases.extend(refused.into_iter().map(|(value, found, bound)| Case {
            scenario: build(value),
            key: key.to_owned(),
            found,
            bound,
        }));
    }
}

fn kind(schema: &Value) -> &str {
    let kinds = schema.get("type");
    kinds.and_then(|one| one.as_str().or_else(|| one.get(0)?.as_str())).unwrap_or_default()
}

/// A number beyond an end, how it prints, and the end.
fn beyond(end: &Value, step: i64) -> (Value, String, String) {
    match end.as_i64() {
        Some(end) => (json!(end + step), (end + step).to_string(), end.to_string()),
        None => {
            let end = end.as_f64().expect("a bound is a number");
            let value = end + step as f64 * 0.01;
            (json!(value), value.to_string(), end.to_string())
        }
    }
}

/// The same for the ends of a quantity. One that begins at zero has nothing below.
fn quantities(bounds: &Value) -> Vec<(Value, String, String)> {
    let ends = [("minimum", -1.0), ("exclusiveMinimum", 0.0), ("maximum", 1.0)];
    let texts = ends.into_iter().filter_map(|(name, step)| {
        let end = bounds.get(name)?.as_str()?;
        let at = end.find(|c: char| c.is_ascii_alphabetic())?;
        let number: f64 = end[..at].trim().parse().ok()?;
        let signed = end.ends_with('B') && end.contains("dB") || end.contains("dBm");
        if number == 0.0 && step < 0.0 && !signed {
            return None;
        }
        let space = &end[end[..at].trim_end().len()..at];
        let value = format!("{}{space}{}", number + step, &end[at..]);
        Some((json!(value), printed(&value), end.to_owned()))
    });
    texts.collect()
}

/// A quantity as it is printed.
fn printed(text: &str) -> String {
    let duration = text.parse::<Duration>().map(|it| it.to_string());
    let rate = text.parse::<BitRate>().map(|it| it.to_string());
    let size = text.parse::<Bytes>().map(|it| it.to_string());
    duration.or(rate).or(size).unwrap_or_else(|_| text.to_owned())
}

/// Every case that the schema makes.
fn cases() -> Vec<Case> {
    let schema = suiro_scenario::schema();
    let base: Value = toml::from_str(BASE).unwrap();
    let mut walk = Walk { root: &schema, cases: Vec::new() };
    for (key, inner) in schema["properties"].as_object().unwrap() {
        // What `[quick]` says is put in the place of the keys that are tried here.
        if key == "quick" {
            continue;
        }
        let build = |value| {
            let mut scenario = base.clone();
            scenario[key] = value;
            scenario
        };
        walk.visit(inner, key, &build);
    }
    walk.cases
}

#[test]
fn every_bound_of_the_schema_refuses_what_is_beyond() {
    let cases = cases();
    assert!(cases.len() > 250, "only {} cases", cases.len());
    let mut wrong = Vec::new();
    for Case { scenario, key, found, bound } in &cases {
        let text = toml::to_string(scenario).unwrap();
        let plan = parse(&text, "case.toml")
            .and_then(|scenario: Scenario| scenario.plan_with(&Overrides::default(), &NoFiles));
        let refusals = plan.err().map(|error| error.refusals).unwrap_or_default();
        let fits = |refusal: &&Refusal<_>| {
            let expected = refusal.expected.as_deref().unwrap_or_default();
            // Of a type that has no negative numbers, the type is refused.
            let names_bound = expected.contains(bound.as_str()) || found.starts_with('-');
            refusal.found.contains(found.as_str()) && !expected.is_empty() && names_bound
        };
        match refusals.iter().find(fits) {
            Some(refusal) if refusal.place.line.is_some() => {}
            Some(refusal) => wrong.push(format!("{key}: no place: {refusal}")),
            None => {
                let told: Vec<String> = refusals.iter().map(|it| it.found.clone()).collect();
                wrong.push(format!("{key}: {found} beyond {bound} is not refused: {told:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
