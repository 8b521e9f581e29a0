//! A node that takes over a stream from one that does not obey.

use std::time::Duration as StdDuration;

use serde_json::{Value, json};
use suiro_control::client::Base;
use suiro_control::net::{self, Exposure};
use suiro_control::nmos::Ask;

use crate::loopback::{ask, only_node, start_node, start_registry};

const CLAIM: &str = "1-1-c";

async fn first_lane(node: &Base) -> Value {
    let status = format!("/x-suiro/node/v1.0/status/{CLAIM}");
    ask(node, None, &Ask::read(&status)).await.value()["lanes"][0].clone()
}

/// A node whose frames are ready.
async fn ready(node: &Base) -> Value {
    for _ in 0..400 {
        let lane = first_lane(node).await;
        if lane["phase"] == "standby" {
            return lane;
        }
        tokio::time::sleep(StdDuration::from_millis(10)).await;
    }
    panic!("the node does not become a standby");
}

#[tokio::test]
async fn a_node_that_began_before_the_old_one_refused_stops_again() {
    let (_registry, registry) = start_registry().await;
    let _node = start_node("n1", &registry).await;
    let node = only_node(&registry).await;
    // It accepts connections and does not answer.
    let silent = net::listen("127.0.0.1:0".parse().unwrap(), Exposure::Loopback).await.unwrap();
    let lane = ready(&node).await;
    let path =
        format!("/x-nmos/connection/v1.1/single/senders/{}/staged", lane["id"].as_str().unwrap());
    let body = json!({
        "master_enable": true,
        "activation": { "mode": "activate_scheduled_relative", "requested_time": "0:60000000" },
        "transport_params": [{ "destination_ip": "127.0.0.1", "destination_port": 5004 }],
    });
    let after = Some(format!("http://{}{path}", silent.local_addr().unwrap()));
    let claim = Some(CLAIM.to_owned());
    let reply = ask(&node, None, &Ask { after, claim, ..Ask::json("PATCH", &path, &body) }).await;
    assert_eq!(reply.status, 409, "{}", reply.body);
    assert!(reply.reason().ends_with("no answer in time"), "{}", reply.reason());
    let lane = first_lane(&node).await;
    assert_eq!((&lane["on"], &lane["scheduled"]), (&json!(false), &Value::Null), "{lane}");
    // It had begun: otherwise this shows nothing.
    assert!(lane["frames"].as_u64() > Some(0), "{lane}");
    ready(&node).await;
}
