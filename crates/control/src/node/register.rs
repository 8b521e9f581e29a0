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

/// Keeps a node registered until `changed` has no sender any more, then removes it. What the registry refuses goes to `tell`,
/// once for each reason.
pub async fn run(
    base: Base,
    manners: Manners,
    node: Id,
    mut resources: Vec<(Kind, Value)>,
    mut changed: mpsc::Receiver<(Kind, Value)>,
    tell: mpsc::Sender<String>,
) {
    let mut client = Client::new(base, manners);
    let (mut registered, mut told) = (false, String::new());
    loop {
        if !registered {
            let refused = all(&mut client, &node, &resources).await;
            registered = refused.is_ok();
            if let Err(Some(reason)) = refused
                && told != reason
            {
                told.clone_from(&reason);
                // A node that does not read it has ended.
                let _ = tell.try_send(reason);
            }
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
                registered =
                    registered && matches!(post(&mut client, kind, &value).await, Ok(200 | 201));
            }
            Err(_) if registered => registered = beat(&mut client, &node).await,
            Err(_) => {}
        }
    }
    if registered {
        remove(&mut client, &node).await;
    }
}

/// Takes the node out of the registry, with all that belongs to it.
async fn remove(client: &mut Client, node: &Id) {
    let path = format!("/x-nmos/registration/v1.3/resource/nodes/{node}");
    let ask = Ask { method: "DELETE".to_owned(), path, ..Ask::default() };
    drop(client.ask(&ask, PATIENCE).await);
}

/// Registers all resources; the error is why the registry refused one, or `None` if it cannot be reached.
/// A node that the registry knows already is removed first, with what it may have left there (IS-04 v1.3, Registration: 200).
async fn all(
    client: &mut Client,
    node: &Id,
    resources: &[(Kind, Value)],
) -> Result<(), Option<String>> {
    for (kind, value) in resources {
        if post(client, *kind, value).await? == 200 && *kind == Kind::Node {
            remove(client, node).await;
            post(client, *kind, value).await?;
        }
    }
    Ok(())
}

/// Registers a resource; the status: 201 if it is new, 200 if it was known.
async fn post(client: &mut Client, kind: Kind, value: &Value) -> Result<u16, Option<String>> {
    let body = json!({ "type": kind.name(), "data": value });
    let ask = Ask::json("POST", "/x-nmos/registration/v1.3/resource", &body);
    match client.ask(&ask, PATIENCE).await {
        Ok(reply) if matches!(reply.status, 200 | 201) => Ok(reply.status),
        Ok(reply) => Err(Some(format!("{} (status {})", reply.reason(), reply.status))),
        Err(_) => Err(None),
    }
}

async fn beat(client: &mut Client, node: &Id) -> bool {
    let path = format!("/x-nmos/registration/v1.3/health/nodes/{node}");
    let ask = Ask { method: "POST".to_owned(), path, ..Ask::default() };
    // 404: it was forgotten, and must register anew.
    client.ask(&ask, PATIENCE).await.is_ok_and(|reply| reply.status == 200)
}
