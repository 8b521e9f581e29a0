//! A node's registration (IS-04 v1.3, Behaviour: Registration): all resources in their order, then heartbeats, and all
//! of it again if the registry has forgotten the node.

use std::time::Duration as StdDuration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::client::{Base, Client, Manners};
use crate::nmos::resources::Kind;
use crate::nmos::{Ask, Id};

/// Changed resources that may wait for the registry.
pub const WAITING_MAX: usize = 256;
/// IS-04 v1.3, Heartbeating.
const HEARTBEAT: StdDuration = StdDuration::from_secs(5);
/// How long a request may take.
const PATIENCE: StdDuration = StdDuration::from_secs(2);
/// How long to wait after a registry could not be reached.
const PAUSE: StdDuration = StdDuration::from_secs(1);

/// Keeps a node registered until `changed` has no sender any more, then removes it.
pub async fn run(
    base: Base,
    manners: Manners,
    node: Id,
    mut resources: Vec<(Kind, Value)>,
    mut changed: mpsc::Receiver<(Kind, Value)>,
) {
    let mut client = Client::new(base, manners);
    let mut registered = false;
    loop {
        if !registered {
            registered = all(&mut client, &resources).await;
        }
        let pause = if registered { HEARTBEAT } else { PAUSE };
        let told = tokio::time::timeout(pause, changed.recv()).await;
        match told {
            Ok(None) => break,
            Ok(Some((kind, value))) => {
                let same = |own: &&mut (Kind, Value)| own.0 == kind && own.1["id"] == value["id"];
                if let Some(own) = resources.iter_mut().find(same) {
                    own.1 = value.clone();
                }
                registered = registered && post(&mut client, kind, &value).await;
            }
            Err(_) if registered => registered = beat(&mut client, &node).await,
            Err(_) => {}
        }
    }
    if registered {
        let path = format!("/x-nmos/registration/v1.3/resource/nodes/{node}");
        let ask = Ask { method: "DELETE".to_owned(), path, ..Ask::default() };
        drop(client.ask(&ask, PATIENCE).await);
    }
}

async fn all(client: &mut Client, resources: &[(Kind, Value)]) -> bool {
    for (kind, value) in resources {
        if !post(client, *kind, value).await {
            return false;
        }
    }
    true
}

async fn post(client: &mut Client, kind: Kind, value: &Value) -> bool {
    let body = json!({ "type": kind.name(), "data": value });
    let ask = Ask::json("POST", "/x-nmos/registration/v1.3/resource", &body);
    client.ask(&ask, PATIENCE).await.is_ok_and(|reply| matches!(reply.status, 200 | 201))
}

async fn beat(client: &mut Client, node: &Id) -> bool {
    let path = format!("/x-nmos/registration/v1.3/health/nodes/{node}");
    let ask = Ask { method: "POST".to_owned(), path, ..Ask::default() };
    // 404: it was forgotten, and must register anew.
    client.ask(&ask, PATIENCE).await.is_ok_and(|reply| reply.status == 200)
}
