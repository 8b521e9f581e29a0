//! What operators ask a controller for: its page, the status, and changes of the desired state.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Control;
use crate::desired::{BYTES_MAX, Desired};
use crate::nmos::door::{self, missing, not_allowed};
use crate::nmos::{Ask, Reply};
use crate::page;

/// Something that happened, as the page shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Event {
    /// When, in TAI.
    pub tai: String,
    /// A word for it.
    pub what: String,
    /// The stream that it is about.
    pub stream: Option<u32>,
    /// The node that it is about.
    pub node: Option<String>,
    /// More, in words.
    pub detail: String,
}

/// A stream and the node that shall send it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Move {
    stream: u32,
    node: String,
}

impl Control {
    /// Answers a request.
    pub(super) fn answer(&mut self, ask: &Ask) -> Reply {
        let parts = door::parts(&ask.path);
        // The page itself says nothing of the streams, and asks for the token.
        if matches!(parts[..], [""]) {
            return match door::reads(ask) {
                Ok(()) => page::reply(),
                Err(reply) => reply,
            };
        }
        if let Err(reply) = self.door.admit(ask) {
            return reply;
        }
        let ["x-suiro", "control", "v1.0", what] = parts[..] else { return missing(&ask.path) };
        match (what, ask.method.as_str()) {
            ("status", "GET" | "HEAD") => Reply::json(200, &self.status()),
            ("state", "GET" | "HEAD") => Reply::text("application/toml", self.desired.text()),
            ("state", "PUT") => self.put(ask),
            ("start" | "stop" | "start-storing" | "stop-storing" | "move", method) => {
                match method {
                    "POST" => self.command(what, ask),
                    _ => not_allowed(ask, "POST"),
                }
            }
            ("status", _) => not_allowed(ask, "GET, HEAD"),
            ("state", _) => not_allowed(ask, "GET, HEAD, PUT"),
            _ => missing(&ask.path),
        }
    }

    /// Another state whole, in TOML.
    fn put(&mut self, ask: &Ask) -> Reply {
        let text = match std::str::from_utf8(&ask.body) {
            Ok(text) if text.len() <= BYTES_MAX => text,
            _ => return Reply::refusal(400, "expected TOML of 256 KiB at most"),
        };
        self.reread();
        match Desired::parse(text, "request") {
            Ok(desired) => self.change(desired, "another state"),
            Err(error) => self.refuse(&error.to_string()),
        }
    }

    fn command(&mut self, what: &str, ask: &Ask) -> Reply {
        // What an editor has just saved comes first.
        self.reread();
        let changed = match what {
            "start" => Ok((self.desired.running(true), "start".to_owned())),
            "stop" => Ok((self.desired.running(false), "stop".to_owned())),
            "start-storing" => self.store().map(|desired| (desired, "start storing".to_owned())),
            "stop-storing" => Ok((self.desired.storing(false), "stop storing".to_owned())),
            _ => {
                let body = match ask.body() {
                    Ok(body) => body,
                    Err(reply) => return reply,
                };
                let wanted: Result<Move, _> = serde_json::from_value(body);
                wanted.map_err(|error| error.to_string()).and_then(|wanted| {
                    let moved = self.desired.moved(wanted.stream, &wanted.node)?;
                    Ok((moved, format!("stream {} to {}", wanted.stream, wanted.node)))
                })
            }
        };
        match changed {
            Ok((desired, told)) => self.change(desired, &told),
            Err(reason) => self.refuse(&reason),
        }
    }

    /// The state with recordings, if any stream is stored at all.
    fn store(&self) -> Result<Desired, String> {
        if self.desired.streams.values().all(|stream| stream.stored_by.is_empty()) {
            return Err(
                "no stream has nodes that store it: expected stored_by in the state".to_owned()
            );
        }
        Ok(self.desired.storing(true))
    }

    fn refuse(&mut self, reason: &str) -> Reply {
        self.note("refused", None, None, &format!("the old state is kept: {reason}"));
        Reply::refusal(400, reason)
    }

    fn change(&mut self, desired: Desired, told: &str) -> Reply {
        if let Err(reply) = self.may_command() {
            return reply;
        }
        self.note("accepted", None, None, told);
        self.want(desired);
        Reply::json(202, &json!({ "accepted": told, "unwritten": self.unwritten }))
    }
}
