//! Carries out a step by the nodes' Connection APIs: the node that starts comes before those that stop.

use std::collections::BTreeMap;
use std::time::Duration as StdDuration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Base, Client, Manners};
use crate::nmos::connection::Side;
use crate::nmos::{Ask, Id, Tai};
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

/// Tells the nodes of all changes at the same time.
pub async fn carry_out(
    step: Step,
    places: BTreeMap<String, Base>,
    manners: Manners,
) -> Vec<Outcome> {
    let mut running = JoinSet::new();
    for change in step.changes {
        let (places, manners, at) = (places.clone(), manners.clone(), step.at);
        running.spawn(async move {
            let refused = one(&change, at, &places, &manners).await.err();
            Outcome { change, refused }
        });
    }
    running.join_all().await
}

async fn one(
    change: &Change,
    at: Tai,
    places: &BTreeMap<String, Base>,
    manners: &Manners,
) -> Result<(), String> {
    if let (Some(node), Some(to)) = (&change.on, change.to) {
        let leg = json!({ "destination_ip": to.ip().to_string(), "destination_port": to.port() });
        let mut body = activation(true, at);
        body["transport_params"] = json!([leg]);
        tell(node, change.stream, &body, places, manners).await?;
    }
    for node in &change.off {
        let told = tell(node, change.stream, &activation(false, at), places, manners).await;
        if let (Err(reason), Some(new)) = (told, &change.on) {
            // Two senders of one stream would be worse than the old one alone.
            let cancel = json!({ "activation": { "mode": null }, "master_enable": false });
            let undone = tell(new, change.stream, &cancel, places, manners).await;
            let undone =
                undone.err().map(|error| format!(", and {new} could not be told: {error}"));
            return Err(format!("{reason}{}", undone.unwrap_or_default()));
        }
    }
    Ok(())
}

fn activation(enabled: bool, at: Tai) -> Value {
    json!({
        "master_enable": enabled,
        "activation": { "mode": "activate_scheduled_absolute", "requested_time": at.to_string() },
    })
}

async fn tell(
    node: &str,
    stream: u32,
    body: &Value,
    places: &BTreeMap<String, Base>,
    manners: &Manners,
) -> Result<(), String> {
    let base = places.get(node).ok_or_else(|| format!("{node}: its address is not known"))?;
    let side = Side::Sender;
    let id = Id::named(&format!("suiro/{node}/sender/{stream}"));
    let path = format!("/x-nmos/connection/v1.1/single/{}/{id}/staged", side.plural());
    let mut client = Client::new(base.clone(), manners.clone());
    let reply = client.ask(&Ask::json("PATCH", &path, body), PATIENCE).await;
    match reply {
        Ok(reply) if reply.status < 300 => Ok(()),
        Ok(reply) => Err(format!("{node}: {} (status {})", reply.reason(), reply.status)),
        Err(error) => Err(format!("{node}: {error}")),
    }
}
