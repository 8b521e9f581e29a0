//! A stream passes from one node to another: the new node commands the old one to stop. So a controller that ends
//! between two commands leaves no stream with two senders: its one command does all of it, or nothing.

use std::time::Duration as StdDuration;

use serde_json::{Value, json};

use super::Running;
use crate::client::{Base, Client, Manners};
use crate::nmos::connection::Connection;
use crate::nmos::door;
use crate::nmos::{Ask, Id, Reply, Tai};
use crate::server::Waiting;

/// How long an old node may take to accept.
const PATIENCE: StdDuration = StdDuration::from_millis(300);
/// Nodes that one command stops at most.
const NODES_MAX: usize = 8;
/// Commands that wait for other nodes at most.
pub(super) const WAITING_MAX: usize = 64;

/// A command that was accepted, and what the old nodes said.
pub(super) struct Handover {
    waiting: Waiting,
    accepted: Reply,
    /// When this node's state had changed last when it accepted.
    since: Option<Tai>,
    refused: Option<String>,
}

/// What must be stopped: the server, and the path of what is staged there.
fn stops(after: &str) -> Result<Vec<(Base, String)>, String> {
    let stop = |url: &str| {
        let base = Base::parse(url)?;
        let path = url.split_once("/x-nmos/connection/").map(|(_, path)| path);
        let path =
            path.filter(|path| !path.contains(['?', '#'])).ok_or("a path of the Connection API")?;
        Ok((base, format!("/x-nmos/connection/{path}")))
    };
    let urls: Vec<&str> = after.split_ascii_whitespace().collect();
    if urls.len() > NODES_MAX {
        return Err(format!("{NODES_MAX} URLs at most"));
    }
    let all: Result<Vec<_>, &str> = urls.into_iter().map(stop).collect();
    all.map_err(str::to_owned)
}

/// Commands the old nodes to stop at the time of a command.
async fn tell(ask: &Ask, manners: Manners) -> Result<(), String> {
    let wrong = |expected: String| format!("x-suiro-after: expected {expected}");
    let body: Value = serde_json::from_slice(&ask.body).unwrap_or_default();
    let off = json!({ "master_enable": false, "activation": body["activation"] });
    for (base, path) in stops(ask.after.as_deref().unwrap_or_default()).map_err(wrong)? {
        let off = Ask { claim: ask.claim.clone(), ..Ask::json("PATCH", &path, &off) };
        let mut client = Client::new(base.clone(), manners.clone());
        match client.command(&off, PATIENCE).await {
            Ok(reply) if reply.status < 300 => {}
            Ok(reply) => {
                return Err(format!("{base}: {} (status {})", reply.reason(), reply.status));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

impl Running {
    /// Lets a command that was accepted here wait until the old nodes have answered.
    pub(super) fn hand_over(&mut self, waiting: Waiting, accepted: Reply) {
        let since = self.commanded(&waiting.ask).map(Connection::changed);
        let manners = self.manners.clone();
        self.handing.spawn(async move {
            let refused = tell(&waiting.ask, manners).await.err();
            Handover { waiting, accepted, since, refused }
        });
    }

    /// The old nodes have answered. If one of them goes on, this one does not start: two senders of one stream would be worse
    /// than the old one alone. Returns what has changed here.
    pub(super) fn handed_over(&mut self, handover: Handover) -> Vec<Id> {
        let Handover { waiting, accepted, since, refused } = handover;
        self.changed_by(|own| {
            let reply = match refused {
                None => accepted,
                Some(reason) => {
                    let undone = own.undo(&waiting.ask, since).status < 300;
                    let more = if undone { "" } else { ", and this node could not be stopped" };
                    Reply::refusal(409, format!("{reason}{more}"))
                }
            };
            // Who asked may have gone.
            drop(waiting.reply.send(reply));
        })
    }

    /// Cancels a command; if its time has come meanwhile, stops what it began.
    fn undo(&mut self, ask: &Ask, since: Option<Tai>) -> Reply {
        let patch = |mode: Option<&str>| {
            let body = json!({ "activation": { "mode": mode }, "master_enable": false });
            let authorization = ask.authorization.clone();
            Ask { authorization, ..Ask::json("PATCH", &ask.path, &body) }
        };
        let cancelled = self.answer(&patch(None));
        let began = self.commanded(ask).map(Connection::changed) != since;
        if cancelled.status < 300 && !began {
            return cancelled;
        }
        self.answer(&patch(Some("activate_immediate")))
    }

    /// The sender or receiver that a command is for.
    fn commanded(&self, ask: &Ask) -> Option<&Connection> {
        let [.., id, "staged"] = door::parts(&ask.path)[..] else { return None };
        self.node.connection(&id.parse().ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_connection_apis_are_told_to_stop() {
        let one =
            stops("http://192.0.2.1:80/x-nmos/connection/v1.1/single/senders/x/staged").unwrap();
        assert_eq!(one[0].0.to_string(), "http://192.0.2.1:80");
        assert_eq!(one[0].1, "/x-nmos/connection/v1.1/single/senders/x/staged");
        assert_eq!(stops(" "), Ok(Vec::new()));
        for wrong in [
            "x",
            "http://192.0.2.1/",
            "ftp://192.0.2.1/x-nmos/connection/",
            "http://h/x-nmos/connection/a?b",
        ] {
            assert!(stops(wrong).is_err(), "{wrong}");
        }
        let many = "http://192.0.2.1/x-nmos/connection/a ".repeat(NODES_MAX + 1);
        assert_eq!(stops(&many), Err("8 URLs at most".to_owned()));
    }
}
