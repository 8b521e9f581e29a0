//! Where the nodes are, as a registry says (IS-04 v1.3, Query API).

use std::collections::BTreeMap;
use std::time::Duration as StdDuration;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::client::{Base, Client, Manners};
use crate::desired::NODES_MAX;
use crate::discovery::{Choice, Registries, Service};
use crate::nmos::{Ask, resources};

/// How long the registry may take.
const PATIENCE: StdDuration = StdDuration::from_secs(2);

/// What a registry says of nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The addresses of nodes, by their labels.
    pub places: BTreeMap<String, Base>,
    /// Nodes that have the label of another one: the label, and the identifier.
    pub strangers: Vec<(String, String)>,
}

/// Asks a registry periodically, and sends what it found, or `None` if there was no answer. If it fails, the next one is asked.
pub async fn run(
    registries: Registries,
    manners: Manners,
    every: StdDuration,
    tell: mpsc::Sender<Option<Found>>,
) {
    let known = registries.follow(Service::Query, &manners);
    let (mut choice, mut client) = (Choice::default(), None::<Client>);
    // One page is not all of a large registry.
    let ask = Ask {
        query: Some(format!("paging.limit={NODES_MAX}")),
        ..Ask::read("/x-nmos/query/v1.3/nodes")
    };
    let mut tick = crate::net::every(every);
    loop {
        tick.tick().await;
        choice.know(&known.borrow());
        let mut found = None;
        if let Some(base) = choice.best(crate::net::monotonic()) {
            let own = client.take().filter(|own| *own.base() == base);
            let mut own = own.unwrap_or_else(|| Client::new(base.clone(), manners.clone()));
            found = match own.ask(&ask, PATIENCE).await {
                Ok(reply) if reply.status == 200 => read(&reply.value()),
                _ => None,
            };
            match found {
                Some(_) => choice.worked(&base),
                None => choice.failed(&base, crate::net::monotonic()),
            }
            client = Some(own);
        }
        if tell.send(found).await.is_err() {
            return;
        }
    }
}

/// The first endpoint of each node. A node is who its identifier says; the label alone is anybody's to give.
fn read(nodes: &Value) -> Option<Found> {
    let mut found = Found::default();
    for node in nodes.as_array()?.iter().take(NODES_MAX) {
        let Some((label, id)) = node["label"].as_str().zip(node["id"].as_str()) else { continue };
        if id != resources::node(label).as_str() {
            let shown = suiro_outside::text::printable(id).chars().take(40).collect();
            found.strangers.push((label.to_owned(), shown));
        } else if let Some(base) = place(node) {
            found.places.insert(label.to_owned(), base);
        }
    }
    Some(found)
}

fn place(node: &Value) -> Option<Base> {
    let endpoint = &node["api"]["endpoints"][0];
    let (host, port) = (endpoint["host"].as_str()?, endpoint["port"].as_u64()?);
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let url = format!("{}://{host}:{port}", endpoint["protocol"].as_str()?);
    Base::parse(&url).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn the_next_registry_is_asked_when_one_does_not_answer() {
        let listen = || async {
            let local = "127.0.0.1:0".parse().unwrap();
            let listener = crate::net::listen(local, crate::net::Exposure::Loopback).await.unwrap();
            let port = listener.local_addr().unwrap().port();
            (listener, Base { tls: false, host: "127.0.0.1".to_owned(), port })
        };
        let (closed, absent) = listen().await;
        drop(closed);
        let (listener, base) = listen().await;
        let log = crate::events::Log {
            name: "registry".to_owned(),
            folder: None,
            epoch: crate::net::monotonic(),
            print: |_| {},
        };
        let place =
            crate::node::Place { listener, door: crate::nmos::door::Door::open(), tls: None };
        let registry = crate::registry::serve::run(place, None, log, || {}, std::future::pending());
        tokio::spawn(registry);
        let registries = Registries { fixed: vec![absent, base], search: None };
        let (tell, mut found) = mpsc::channel(1);
        tokio::spawn(run(registries, Manners::default(), StdDuration::from_millis(10), tell));
        assert_eq!(found.recv().await, Some(None));
        assert_eq!(found.recv().await, Some(Some(Found::default())));
    }

    #[test]
    fn a_node_is_who_its_identifier_says() {
        let node = |id: &str, port: u16| {
            let endpoint = json!({ "host": "192.0.2.1", "port": port, "protocol": "http" });
            json!({ "id": id, "label": "n1", "api": { "endpoints": [endpoint] } })
        };
        let own = resources::node("n1");
        let other = "3b8be755-08ff-452b-b217-c9151eb21193";
        for nodes in
            [[node(own.as_str(), 80), node(other, 81)], [node(other, 81), node(own.as_str(), 80)]]
        {
            let found = read(&json!(nodes)).unwrap();
            assert_eq!(found.places["n1"].port, 80);
            assert_eq!(found.strangers, [("n1".to_owned(), other.to_owned())]);
        }
        assert_eq!(read(&json!({})), None);
    }
}
