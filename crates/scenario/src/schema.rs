//! The JSON Schema of a scenario file, for editors and other programs. What it cannot say (that
//! names refer to something, that numbers go together) `suiro check` says.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use suiro_link::{LinkSpec, SegmentSpec};
use suiro_media::MediaSpec;
use suiro_study::limit::LIMIT_MAX;
use suiro_units::Duration;

use crate::cell::DURATION;
use crate::endpoint::{Common, KINDS};
use crate::header::{Header, REPETITIONS};
use crate::network::Multicast;
use crate::setup::RecordOptions;
use crate::topology::{Bridge, Chain, Dumbbell, Explicit};

/// The JSON Schema (draft 2020-12) of a scenario file.
///
/// Wherever references are replaced, it takes a `"$name"` in the place of any value.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut root = inline::<Header>(&mut generator);
    let mut body = Map::new();
    body.insert("duration".into(), duration(&mut generator));
    body.insert("warm_up".into(), warm_up(&mut generator));
    body.insert("topology".into(), topology(&mut generator));
    let segments = named(
        "The shared media of an explicit topology, by name: hubs, Wi-Fi cells and cellular cells.",
        sub::<SegmentSpec>(&mut generator),
    );
    body.insert("segments".into(), segments);
    body.insert("multicast".into(), sub::<Multicast>(&mut generator));
    body.insert("links".into(), named("The links, by name.", sub::<LinkSpec>(&mut generator)));
    body.insert("media".into(), named("The media, by name.", sub::<MediaSpec>(&mut generator)));
    body.insert("endpoints".into(), endpoints(&mut generator));
    body.insert("record".into(), sub::<RecordOptions>(&mut generator));
    let mut definitions = generator.take_definitions(true);
    body.values_mut().chain(definitions.values_mut()).for_each(refer);
    for key in ["duration", "warm_up"] {
        body.get_mut(key).into_iter().for_each(refer_to);
    }
    let reference = json!({
        "description": "The value of a parameter or of an axis of the matrix.",
        "type": "string",
        "pattern": r"^\$[A-Za-z][A-Za-z0-9_-]{0,31}(\.[A-Za-z][A-Za-z0-9_-]{0,31})*$",
    });
    definitions.insert("Reference".into(), reference);

    root.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    root.insert("title".into(), json!("suiro scenario"));
    let properties = object(&mut root, "properties");
    properties.extend(body);
    properties.extend(cells());
    root.values_mut().chain(definitions.values_mut()).for_each(without_null);
    let required = root["required"].as_array_mut().expect("a header has keys that it needs");
    required.extend(["duration", "topology", "endpoints"].map(Value::from));
    root.insert("$defs".into(), definitions.into());
    root.into()
}

fn sub<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().into()
}

/// The schema of an object, in place.
fn inline<T: JsonSchema>(generator: &mut SchemaGenerator) -> Map<String, Value> {
    object_of(T::json_schema(generator))
}

fn object_of(schema: Schema) -> Map<String, Value> {
    match Schema::into(schema) {
        Value::Object(schema) => schema,
        _ => unreachable!("the schema of a struct is an object"),
    }
}

fn object<'m>(map: &'m mut Map<String, Value>, key: &str) -> &'m mut Map<String, Value> {
    let entry = map.entry(key).or_insert_with(|| json!({}));
    entry.as_object_mut().expect("it is only ever made an object")
}

fn named(description: &str, of: impl Into<Value>) -> Value {
    json!({ "description": description, "type": "object", "additionalProperties": of.into() })
}

fn duration(generator: &mut SchemaGenerator) -> Value {
    let mut schema = sub::<Duration>(generator);
    let keywords = schema.as_object_mut().expect("the schema of a quantity is an object");
    keywords.insert("description".into(), json!("How long each trial measures."));
    DURATION.describe_value(keywords);
    schema
}

fn warm_up(generator: &mut SchemaGenerator) -> Value {
    let mut schema = sub::<Duration>(generator);
    let keywords = schema.as_object_mut().expect("the schema of a quantity is an object");
    let text = "How much of each trial, from its start, metrics leave out. All of it is run, recorded and drawn. Less than \
                `duration`. Default: 0 s.";
    keywords.insert("description".into(), json!(text));
    schema
}

fn topology(generator: &mut SchemaGenerator) -> Value {
    let shapes = [
        tagged("shape", "dumbbell", inline::<Dumbbell>(generator)),
        tagged("shape", "chain", inline::<Chain>(generator)),
        tagged("shape", "bridge", inline::<Bridge>(generator)),
        tagged("shape", "explicit", inline::<Explicit>(generator)),
    ];
    json!({ "description": "The hosts and the cables between them.", "oneOf": shapes })
}

fn endpoints(generator: &mut SchemaGenerator) -> Value {
    let common = inline::<Common>(generator);
    let mut kinds = Vec::new();
    for kind in KINDS {
        let own = object_of((kind.schema)(generator));
        kinds.push(tagged("kind", kind.name, joined(common.clone(), own)));
    }
    named("The processes of a trial, by name.", json!({ "oneOf": kinds }))
}

/// An object with the keys of both.
fn joined(common: Map<String, Value>, mut own: Map<String, Value>) -> Map<String, Value> {
    for (key, value) in common {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                object(&mut own, "properties").extend(properties);
            }
            ("required", Value::Array(required)) => require(&mut own, required),
            _ => {}
        }
    }
    own
}

fn require(schema: &mut Map<String, Value>, keys: Vec<Value>) {
    let required = schema.entry("required").or_insert_with(|| json!([]));
    required.as_array_mut().expect("it is only ever made an array").extend(keys);
}

/// An object that says by `key` what it is.
fn tagged(key: &str, name: &str, mut schema: Map<String, Value>) -> Value {
    object(&mut schema, "properties").insert(key.into(), json!({ "const": name }));
    require(&mut schema, vec![key.into()]);
    schema.remove("title");
    schema.into()
}

/// The sections that make cells; references have no meaning there.
fn cells() -> Map<String, Value> {
    let label = r"^[^,\u0000-\u001f]{1,64}$";
    let point = json!({ "anyOf": [
        { "type": ["number", "boolean"] },
        { "type": "string", "pattern": label },
        {
            "type": "object",
            "properties": { "label": { "type": "string", "pattern": label }, "value": {} },
            "required": ["label", "value"],
            "additionalProperties": false,
        },
    ] });
    let axes = json!({ "type": "array", "items": point, "minItems": 1 });
    let parameters =
        named("Named values: \"$name\" elsewhere in the scenario stands for one.", json!({}));
    let matrix = named(
        "Axes by name; every combination of their values is a cell. If a parameter that is a table has the name of an axis, \
             each value of the axis names only the keys that differ from it.",
        axes,
    );
    let mut repetitions = json!({ "type": "integer" });
    REPETITIONS.describe_value(repetitions.as_object_mut().expect("it was made an object"));
    let quick = json!({
        "description": "The changes that `--quick` makes.",
        "type": "object",
        "properties": {
            "duration": { "type": "string" },
            "warm_up": { "type": "string" },
            "repetitions": repetitions,
            "parameters": parameters.clone(),
            "matrix": matrix.clone(),
        },
        "additionalProperties": false,
    });
    let limits = named(
        "What the results must keep to, by name: `METRIC < NUMBER UNIT`, with `<`, `<=`, `>` or `>=`, such as \
         \"media.latency_p95_ms < 250 ms\"; or relative to the run that `--baseline` names: \"flow.goodput_mean_bps >= \
         baseline - 5 %\". `AXIS=LABEL, …:` before it restricts it to those cells. It is judged by the mean of the valid \
         repetitions of each cell, and is not kept if one of them did not measure the metric. If one is not kept, `suiro run` and `suiro report` exit with 3.",
        json!({ "type": "string", "minLength": 3, "maxLength": LIMIT_MAX }),
    );
    [("parameters", parameters), ("matrix", matrix), ("quick", quick), ("limits", limits)]
        .map(|(key, schema)| (key.to_owned(), schema))
        .into_iter()
        .collect()
}

/// TOML has no null: what may be absent is absent.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.retain(|key, value| key != "default" || !value.is_null());
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|one| one != "null");
            }
            if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
                choices.retain(|one| one.get("type") != Some(&json!("null")));
            }
            map.values_mut().for_each(without_null);
        }
        Value::Array(all) => all.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// Lets a reference stand in the place of every value below.
fn refer(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    for (key, value) in map.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(all)) => all.values_mut().for_each(refer_to),
            ("items" | "additionalProperties", value @ Value::Object(_)) => refer_to(value),
            ("prefixItems", Value::Array(items)) => items.iter_mut().for_each(refer_to),
            ("anyOf" | "oneOf" | "allOf", Value::Array(all)) => all.iter_mut().for_each(refer),
            _ => {}
        }
    }
}

fn refer_to(schema: &mut Value) {
    refer(schema);
    let any_text = schema.get("type") == Some(&json!("string"))
        && ["pattern", "enum", "const"].iter().all(|key| schema.get(key).is_none());
    if any_text || schema.get("const").is_some() {
        return;
    }
    let mut outer = Map::new();
    if let Some(map) = schema.as_object_mut() {
        for key in ["description", "default"] {
            outer.extend(map.remove(key).map(|value| (key.to_owned(), value)));
        }
    }
    outer.insert("anyOf".into(), json!([schema.take(), { "$ref": "#/$defs/Reference" }]));
    *schema = outer.into();
}
