//! Our answers match the schemas of AMWA: those of IS-04 v1.3 are in the package `registryaggregator` of PyPI (BBC, generated
//! from AMWA's), those of IS-05 v1.1 are written from the specification.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use suiro_control::nmos::connection::Side;
use suiro_control::nmos::node::Node;
use suiro_control::nmos::{Ask, Reply};

use crate::common::schema::violations;
use crate::common::{NOW, Obedient, node};

const UUID: &str = "^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$";
const TIME: &str = "^[0-9]+:[0-9]+$";
const CONNECTION: &str = "/x-nmos/connection/v1.1";

/// Takes the schemas out of the package without running it.
const EXTRACT: &str = "
import ast, json, sys, tarfile
with tarfile.open(sys.argv[1]) as package:
    name = next(n for n in package.getnames() if n.endswith('v1_3/schema.py'))
    text = package.extractfile(name).read().decode()
json.dump(ast.literal_eval(text.split('SCHEMA = ', 1)[1]), sys.stdout)
";

/// The schemas of IS-04 v1.3 by resource; an error if they cannot be had.
fn is04() -> Result<Value, String> {
    const PACKAGE: &str = "registryaggregator-0.8.1.tar.gz";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    if !folder.join(PACKAGE).exists() {
        let pip = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"];
        let fetched = Command::new("python3")
            .args(pip)
            .args(["--timeout", "10", "--retries", "0", "registryaggregator==0.8.1", "--dest"])
            .arg(folder)
            .output()
            .map_err(|error| format!("python3: {error}"))?;
        if !folder.join(PACKAGE).exists() {
            return Err(String::from_utf8_lossy(&fetched.stderr).trim().to_owned());
        }
    }
    let read = Command::new("python3").args(["-c", EXTRACT]).arg(folder.join(PACKAGE)).output();
    let read = read.map_err(|error| format!("python3: {error}"))?;
    serde_json::from_slice(&read.stdout).map_err(|error| format!("{PACKAGE}: {error}"))
}

fn get(node: &mut Node, path: &str) -> Value {
    let reply = node.answer(NOW, &Ask::read(path), &mut Obedient);
    assert_eq!(reply.status, 200, "{path}: {}", reply.body);
    reply.value()
}

fn patch(node: &mut Node, side: Side, stream: u32, body: &Value) -> Reply {
    let id = node.about().connection(side, stream);
    let path = format!("{CONNECTION}/single/{}/{id}/staged", side.plural());
    node.answer(NOW, &Ask::json("PATCH", &path, body), &mut Obedient)
}

fn start() -> Value {
    json!({ "master_enable": true, "activation": { "mode": "activate_immediate" } })
}

#[track_caller]
fn valid(schema: &Value, value: &Value) {
    assert_eq!(violations(schema, value), Vec::<String>::new());
}

#[test]
fn resources_match_amwas_schemas() {
    let schemas = match is04() {
        Ok(schemas) => schemas,
        Err(reason) => {
            let missing = "the package registryaggregator of PyPI is not there";
            suiro_units::skipped(&format!("{missing}: {reason}"));
            return;
        }
    };
    let mut node = node();
    for _ in 0..2 {
        let mut seen = 0;
        for (kind, resource) in node.resources() {
            let schema = &schemas[kind.name()];
            assert!(schema.is_object(), "the package has no schema of {}", kind.name());
            valid(schema, &resource);
            seen += 1;
        }
        assert_eq!(seen, 2 + 2 * 3 + 1);
        // And when they are active.
        assert_eq!(patch(&mut node, Side::Sender, 1, &start()).status, 200);
        assert_eq!(patch(&mut node, Side::Receiver, 0, &start()).status, 200);
    }
    // The validator does find what is wrong.
    let mut own = get(&mut node, "/x-nmos/node/v1.3/self");
    own["id"] = json!("7");
    assert!(!violations(&schemas["node"], &own).is_empty());
}

#[test]
fn every_level_of_the_apis_lists_its_children() {
    let mut node = node();
    let listing = |names: &[&str]| {
        let count = names.len();
        json!({ "type": "array", "items": { "enum": names }, "minItems": count, "maxItems": count,
            "uniqueItems": true })
    };
    let sender = node.about().connection(Side::Sender, 0);
    let receiver = node.about().connection(Side::Receiver, 0);
    let sender = format!("{CONNECTION}/single/senders/{sender}");
    let receiver = format!("{CONNECTION}/single/receivers/{receiver}");
    let api = ["self/", "sources/", "flows/", "devices/", "senders/", "receivers/"];
    for (path, names) in [
        ("/x-nmos", &["node/", "connection/"][..]),
        ("/x-nmos/node/v1.3/", &api),
        (CONNECTION, &["bulk/", "single/"]),
        (&sender, &["constraints/", "staged/", "active/", "transportfile/", "transporttype/"]),
        (&receiver, &["constraints/", "staged/", "active/", "transporttype/"]),
    ] {
        valid(&listing(names), &get(&mut node, path));
    }
    let ids = json!({ "type": "array", "items": { "type": "string", "pattern": UUID.replace('$', "/$") }, "minItems": 2 });
    valid(&ids, &get(&mut node, &format!("{CONNECTION}/single/senders/")));
}

/// sender-response-schema and receiver-response-schema of IS-05 v1.1, with the parameters of RTP.
fn response(side: Side) -> Value {
    let address =
        json!({ "type": "string", "anyOf": [{ "format": "ipv4" }, { "pattern": "^auto$" }] });
    let address_or_null =
        json!({ "anyOf": [{ "type": "null" }, { "type": "string", "format": "ipv4" }] });
    let port = |least: u32| json!({ "type": ["integer", "string"], "minimum": least, "maximum": 65535, "pattern": "^auto$" });
    let flag = json!({ "type": "boolean" });
    let params = match side {
        Side::Sender => {
            json!({ "source_ip": address, "destination_ip": address, "source_port": port(0),
            "destination_port": port(1), "rtp_enabled": flag })
        }
        Side::Receiver => json!({ "source_ip": address_or_null, "multicast_ip": address_or_null,
            "interface_ip": address, "destination_port": port(1), "rtp_enabled": flag }),
    };
    let keys: Vec<&String> = params.as_object().unwrap().keys().collect();
    let leg = json!({ "type": "object", "properties": params, "required": keys, "additionalProperties": false });
    let time = json!({ "anyOf": [{ "type": "string", "pattern": TIME }, { "type": "null" }] });
    let modes =
        ["activate_immediate", "activate_scheduled_absolute", "activate_scheduled_relative"];
    let activation = json!({
        "type": "object", "additionalProperties": false,
        "required": ["mode", "requested_time", "activation_time"],
        "properties": {
            "mode": { "anyOf": [{ "enum": modes }, { "type": "null" }] },
            "requested_time": time, "activation_time": time,
        },
    });
    let peer = json!({ "type": ["string", "null"], "pattern": UUID });
    let mut properties = json!({ "master_enable": flag, "activation": activation,
        "transport_params": { "type": "array", "items": leg, "minItems": 2, "maxItems": 2 } });
    match side {
        Side::Sender => properties["receiver_id"] = peer,
        Side::Receiver => {
            properties["sender_id"] = peer;
            properties["transport_file"] = json!({ "type": "object", "additionalProperties": false,
                "required": ["data", "type"], "properties": {
                    "data": { "type": ["string", "null"] }, "type": { "type": ["string", "null"] } } });
        }
    }
    let keys: Vec<&String> = properties.as_object().unwrap().keys().collect();
    json!({ "type": "object", "properties": properties, "required": keys, "additionalProperties": false })
}

#[test]
fn staged_and_active_parameters_match_the_specification() {
    let mut node = node();
    for (side, stream) in [(Side::Sender, 1), (Side::Receiver, 0)] {
        let path = format!(
            "{CONNECTION}/single/{}/{}",
            side.plural(),
            node.about().connection(side, stream)
        );
        let schema = response(side);
        for what in ["staged", "active"] {
            valid(&schema, &get(&mut node, &format!("{path}/{what}")));
        }
        valid(&schema, &patch(&mut node, side, stream, &start()).value());
        valid(&schema, &get(&mut node, &format!("{path}/active")));
        let later = json!({ "master_enable": false, "activation": {
            "mode": "activate_scheduled_relative", "requested_time": "5:0" } });
        let reply = patch(&mut node, side, stream, &later);
        assert_eq!(reply.status, 202);
        valid(&schema, &reply.value());
        valid(&schema, &get(&mut node, &format!("{path}/staged")));
        assert_eq!(get(&mut node, &format!("{path}/transporttype")), "urn:x-nmos:transport:rtp");
        let constraint = json!({ "type": "object", "additionalProperties": false, "properties": {
            "maximum": { "type": "number" }, "minimum": { "type": "number" }, "pattern": { "type": "string", "format": "regex" },
            "enum": { "type": "array", "minItems": 1, "uniqueItems": true } } });
        let leg = json!({ "type": "object", "required": ["source_ip", "destination_port", "rtp_enabled"],
            "patternProperties": { ".": constraint } });
        let schema = json!({ "type": "array", "items": leg, "minItems": 2, "maxItems": 2 });
        valid(&schema, &get(&mut node, &format!("{path}/constraints")));
    }
}

#[test]
fn refusals_match_the_schema_of_errors() {
    let error = json!({ "type": "object", "required": ["code", "error", "debug"], "properties": {
        "code": { "type": "integer", "minimum": 400, "maximum": 599 },
        "error": { "type": "string" }, "debug": { "type": ["null", "string"] } } });
    let mut node = node();
    let id = node.about().connection(Side::Sender, 0);
    let staged = format!("{CONNECTION}/single/senders/{id}/staged");
    for (ask, status) in [
        (Ask::read("/x-nmos/node/v1.2"), 404),
        (Ask::read(&staged.replace("senders", "receivers")), 404),
        (Ask::read(&format!("{CONNECTION}/bulk/senders")), 405),
        (Ask::json("POST", &format!("{CONNECTION}/bulk/senders"), &json!({})), 400),
        (Ask::json("PATCH", &staged, &json!({ "x": 1 })), 400),
        (Ask { body: b"{".to_vec(), ..Ask::json("PATCH", &staged, &json!({})) }, 400),
        (Ask { content_type: None, ..Ask::json("PATCH", &staged, &json!({})) }, 415),
    ] {
        let reply = node.answer(NOW, &ask, &mut Obedient);
        assert_eq!(
            (reply.status, reply.value()["code"].as_u64()),
            (status, Some(status.into())),
            "{ask:?}"
        );
        valid(&error, &reply.value());
    }
}

#[test]
fn a_bulk_request_has_an_outcome_for_each() {
    let mut node = node();
    let (one, two) =
        (node.about().connection(Side::Sender, 0), node.about().connection(Side::Sender, 1));
    let receiver = node.about().connection(Side::Receiver, 0);
    let body = json!([
        { "id": one.as_str(), "params": start() },
        { "id": two.as_str(), "params": { "master_enable": "yes" } },
        { "id": receiver.as_str(), "params": start() },
    ]);
    let reply = node.answer(
        NOW,
        &Ask::json("POST", &format!("{CONNECTION}/bulk/senders"), &body),
        &mut Obedient,
    );
    assert_eq!(reply.status, 200);
    let outcome = json!({ "type": "object", "required": ["id", "code"], "properties": {
        "id": { "type": "string", "pattern": UUID },
        "code": { "type": "integer", "anyOf": [{ "minimum": 200, "maximum": 299 }, { "minimum": 400, "maximum": 599 }] },
        "error": { "type": "string" }, "debug": { "type": ["null", "string"] } } });
    valid(
        &json!({ "type": "array", "items": outcome, "minItems": 3, "maxItems": 3 }),
        &reply.value(),
    );
    let codes: Vec<u64> =
        reply.value().as_array().unwrap().iter().map(|own| own["code"].as_u64().unwrap()).collect();
    assert_eq!(codes, [200, 400, 404]);
    let active: Vec<bool> = node.connections().map(|(_, own)| own.is_active()).collect();
    assert_eq!(active.iter().filter(|active| **active).count(), 1);
}
