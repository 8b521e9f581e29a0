//! A client's WebSocket at a registry: what it hears, and what it may not send.

use std::time::Duration as StdDuration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use suiro_control::client::Base;
use suiro_control::net;
use suiro_control::nmos::Ask;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::loopback::{ask, start_node, start_registry};

const PATIENCE: StdDuration = StdDuration::from_secs(10);

/// A connection that the registry has upgraded for a new subscription to all nodes.
async fn subscribed(registry: &Base) -> TcpStream {
    let wanted = json!({
        "max_update_rate_ms": 20, "resource_path": "/nodes", "params": {}, "persist": false, "secure": false,
    });
    let made =
        ask(registry, None, &Ask::json("POST", "/x-nmos/query/v1.3/subscriptions", &wanted)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let made = made.value();
    let place = made["ws_href"].as_str().unwrap().strip_prefix("ws://").unwrap();
    let (host, path) = place.split_once('/').unwrap();
    let mut stream = net::connect(&registry.host, registry.port).await.unwrap();
    let request = format!(
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = Vec::new();
    while !reply.ends_with(b"\r\n\r\n") {
        reply.push(stream.read_u8().await.unwrap());
    }
    let reply = String::from_utf8(reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 101 "), "{reply}");
    assert!(reply.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{reply}");
    stream
}

#[tokio::test]
async fn a_client_hears_of_a_node_and_its_ping_is_answered() {
    let (_registry, base) = start_registry().await;
    let stream = subscribed(&base).await;
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
    socket.send(Message::Ping("are you there".into())).await.unwrap();
    let _node = start_node("n1", &base).await;
    let (mut is_answered, mut label) = (false, Value::Null);
    while !is_answered || label.is_null() {
        let message = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap();
        match message.unwrap().unwrap() {
            Message::Pong(said) => is_answered = said == "are you there",
            Message::Text(text) => {
                let grain: Value = serde_json::from_str(&text).unwrap();
                label = grain["grain"]["data"][0]["post"]["label"].clone();
            }
            _ => {}
        }
    }
    assert_eq!(label, "n1");
    socket.close(None).await.unwrap();
}

#[tokio::test]
async fn a_frame_without_a_mask_ends_the_connection() {
    let (_registry, base) = start_registry().await;
    let mut stream = subscribed(&base).await;
    // RFC 6455 §5.1: a server closes the connection on it.
    stream.write_all(&[0x81, 2, b'h', b'i']).await.unwrap();
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
    loop {
        let message = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap();
        if let Some(Ok(Message::Close(reason))) = message {
            assert_eq!(reason.unwrap().code, CloseCode::Protocol);
            return;
        }
        assert!(matches!(message, Some(Ok(_))), "{message:?}");
    }
}
