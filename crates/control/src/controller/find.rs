//! Where the nodes are, as a registry says (IS-04 v1.3, Query API).

use std::collections::BTreeMap;
use std::time::Duration as StdDuration;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::client::{Base, Client, Manners};
use crate::desired::NODES_MAX;
use crate::nmos::Ask;

/// How long the registry may take.
const PATIENCE: StdDuration = StdDuration::from_secs(2);

/// Asks the registry periodically, and sends the addresses of nodes by their labels, or `None` if there was no answer.
pub async fn run(
    base: Base,
    manners: Manners,
    every: StdDuration,
    tell: mpsc::Sender<Option<BTreeMap<String, Base>>>,
) {
    let mut client = Client::new(base, manners);
    let ask = Ask::read("/x-nmos/query/v1.3/nodes");
    let mut tick = crate::net::every(every);
    loop {
        tick.tick().await;
        let found = match client.ask(&ask, PATIENCE).await {
            Ok(reply) if reply.status == 200 => places(&reply.value()),
            _ => None,
        };
        if tell.send(found).await.is_err() {
            return;
        }
    }
}

/// The first endpoint of each node, by the node's label.
fn places(nodes: &Value) -> Option<BTreeMap<String, Base>> {
    let place = |node: &Value| {
        let endpoint = &node["api"]["endpoints"][0];
        let (host, port) = (endpoint["host"].as_str()?, endpoint["port"].as_u64()?);
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let url = format!("{}://{host}:{port}", endpoint["protocol"].as_str()?);
        Some((node["label"].as_str()?.to_owned(), Base::parse(&url).ok()?))
    };
    Some(nodes.as_array()?.iter().take(NODES_MAX).filter_map(place).collect())
}
