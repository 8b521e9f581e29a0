//! Carries out a step by the nodes' Connection APIs: the node that starts comes before those that stop.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::time::Duration as StdDuration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Base, Client, Manners};
use crate::desired::LEGS_MAX;
use crate::nmos::connection::Side;
use crate::nmos::{Ask, Tai, resources};
use crate::plan::{Change, Step};

/// How long a node may take to accept.
const PATIENCE: StdDuration = StdDuration::from_millis(500);

/// What became of a change.
#[derive(Debug)]
pub struct Outcome {
    /// The change.
    pub change: Change,
    /// Why it was refused; nothing of it has happened then.
    pub refused: Option<String>,
}

/// Sends all changes to the nodes at the same time.
pub async fn carry_out(
    step: Step,
    places: BTreeMap<String, Base>,
    manners: Manners,
    claim: Option<String>,
) -> Vec<Outcome> {
    let mut running = JoinSet::new();
    for change in step.changes {
        let at = step.at;
        let nodes =
            Nodes { places: places.clone(), manners: manners.clone(), claim: claim.clone() };
        running.spawn(async move {
            let refused = one(&change, at, &nodes).await.err();
            Outcome { change, refused }
        });
    }
    running.join_all().await
}

/// How the nodes are commanded.
struct Nodes {
    places: BTreeMap<String, Base>,
    manners: Manners,
    /// The controller's claim: nodes that know a greater one refuse.
    claim: Option<String>,
}

async fn one(change: &Change, at: Tai, nodes: &Nodes) -> Result<(), String> {
    let what = (change.side, change.stream);
    if let Some(node) = &change.on {
        let mut body = activation(true, at);
        body["transport_params"] = legs(change);
        // This node commands the others to stop, so that the whole change happens, or none of it.
        let after =
            change.off.iter().map(|off| nodes.staged(off, what)).collect::<Result<Vec<_>, _>>()?;
        let after = Some(after.join(" ")).filter(|after| !after.is_empty());
        return nodes.tell(node, what, &body, after).await;
    }
    for node in &change.off {
        nodes.tell(node, what, &activation(false, at), None).await?;
    }
    Ok(())
}

/// The legs of the node that starts: a sender's one, or all of a receiver's.
fn legs(change: &Change) -> Value {
    let leg = |to: &SocketAddrV4| match change.side {
        Side::Sender => {
            json!({ "destination_ip": to.ip().to_string(), "destination_port": to.port() })
        }
        Side::Receiver => {
            let group = Some(to.ip().to_string()).filter(|_| to.ip().is_multicast());
            json!({ "multicast_ip": group, "destination_port": to.port(), "rtp_enabled": true })
        }
    };
    let mut legs: Vec<Value> = change.to.iter().map(leg).collect();
    if change.side == Side::Receiver {
        legs.resize(LEGS_MAX, json!({ "rtp_enabled": false }));
    }
    json!(legs)
}

fn activation(enabled: bool, at: Tai) -> Value {
    json!({
        "master_enable": enabled,
        "activation": { "mode": "activate_scheduled_absolute", "requested_time": at.to_string() },
    })
}

/// The path of something of a stream at a node.
pub(super) fn single(node: &str, side: Side, stream: u32, what: &str) -> String {
    let id = resources::connection(node, side, stream);
    format!("/x-nmos/connection/v1.1/single/{}/{id}/{what}", side.plural())
}

impl Nodes {
    fn place(&self, node: &str) -> Result<&Base, String> {
        self.places.get(node).ok_or_else(|| format!("{node}: its address is not known"))
    }

    /// The URL of what is staged for a stream at a node.
    fn staged(&self, node: &str, (side, stream): (Side, u32)) -> Result<String, String> {
        Ok(format!("{}{}", self.place(node)?, single(node, side, stream, "staged")))
    }

    async fn tell(
        &self,
        node: &str,
        (side, stream): (Side, u32),
        body: &Value,
        after: Option<String>,
    ) -> Result<(), String> {
        let base = self.place(node)?;
        let path = single(node, side, stream, "staged");
        let ask = Ask { claim: self.claim.clone(), after, ..Ask::json("PATCH", &path, body) };
        let answer = Client::new(base.clone(), self.manners.clone()).command(&ask, PATIENCE).await;
        match answer {
            Ok(reply) if reply.status < 300 => Ok(()),
            Ok(reply) => Err(format!("{node}: {} (status {})", reply.reason(), reply.status)),
            Err(error) => Err(format!("{node}: {error}")),
        }
    }
}
