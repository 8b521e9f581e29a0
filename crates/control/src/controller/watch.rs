//! One task for each node: it asks for the node's status again and again over one connection.

use std::time::Duration as StdDuration;

use suiro_units::Time;
use tokio::sync::mpsc;

use crate::client::{Base, Client, ClientError, Manners};
use crate::net;
use crate::nmos::Ask;
use crate::node::Status;

/// What was heard of a node.
#[derive(Debug)]
pub struct Heard {
    /// Its name.
    pub node: String,
    /// When it was asked, on the monotonic clock: what it says is no older.
    pub asked: Time,
    /// What it said, or why nothing was heard.
    pub said: Result<Status, Silence>,
}

/// Why nothing was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Silence {
    /// There is no connection, or it was closed.
    Closed(String),
    /// No answer in time.
    Late,
    /// It is not the node that was expected, or its answer cannot be read.
    Strange(String),
}

/// How long a node may take to answer before the connection is given up.
const PATIENCE: StdDuration = StdDuration::from_millis(500);
/// How long to wait before a connection is tried again.
const PAUSE: StdDuration = StdDuration::from_millis(250);

/// Asks a node periodically, until the receiver of its answers is gone.
pub async fn run(
    node: String,
    base: Base,
    manners: Manners,
    every: StdDuration,
    tell: mpsc::Sender<Heard>,
) {
    let mut client = Client::new(base, manners);
    let ask = Ask::read("/x-suiro/node/v1.0/status");
    let mut tick = tokio::time::interval(every);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let asked = net::monotonic();
        let said = match client.ask(&ask, PATIENCE).await {
            Ok(reply) if reply.status == 200 => read(&node, &reply.body),
            Ok(reply) => {
                Err(Silence::Strange(format!("status {}: {}", reply.status, reply.reason())))
            }
            Err(ClientError::Late(_)) => Err(Silence::Late),
            Err(error) => Err(Silence::Closed(error.to_string())),
        };
        let failed = said.is_err();
        if tell.send(Heard { node: node.clone(), asked, said }).await.is_err() {
            return;
        }
        if failed {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn read(node: &str, body: &str) -> Result<Status, Silence> {
    let status: Status =
        serde_json::from_str(body).map_err(|error| Silence::Strange(error.to_string()))?;
    if status.name != node {
        let name: String = status.name.chars().take(80).collect();
        return Err(Silence::Strange(format!("expected the node {node}, found {name:?}")));
    }
    Ok(status)
}
