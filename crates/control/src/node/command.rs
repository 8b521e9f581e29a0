//! What a controller asks a node in addition to NMOS: its state, with the claim of the controller, and the plan that it
//! keeps.

use serde_json::json;

use super::{Running, Status};
use crate::claim::{Claim, PlanId};
use crate::net;
use crate::nmos::door::{self, missing, not_allowed};
use crate::nmos::{Ask, Reply};

impl Running {
    /// Answers a request.
    pub(super) fn answer(&mut self, ask: &Ask) -> Reply {
        let parts = door::parts(&ask.path);
        let answered = match parts[..] {
            ["x-suiro", "node", "v1.0", "status"] => self.tell(ask, None),
            ["x-suiro", "node", "v1.0", "status", claim] => self.tell(ask, Some(claim)),
            ["x-suiro", "node", "v1.0", "plan", claim, revision] => self.plan(ask, claim, revision),
            _ => self.command(ask),
        };
        answered.unwrap_or_else(|reply| reply)
    }

    /// The state; a controller that asks with its claim is obeyed from now on, unless a greater claim is known.
    fn tell(&mut self, ask: &Ask, claim: Option<&str>) -> Result<Reply, Reply> {
        self.node.admit(ask)?;
        door::reads(ask)?;
        if let Some(claim) = claim {
            self.lead.claim(&claimed(claim)?, net::monotonic());
        }
        Ok(Reply::json(200, &json!(self.status())))
    }

    fn status(&self) -> Status {
        Status::of(&self.node, &self.lanes, &self.lead)
    }

    fn plan(&mut self, ask: &Ask, claim: &str, revision: &str) -> Result<Reply, Reply> {
        self.node.admit(ask)?;
        let number = revision.bytes().all(|c| c.is_ascii_digit()).then(|| revision.parse().ok());
        let revision = number.flatten().ok_or_else(|| missing(&ask.path))?;
        let id = PlanId { claim: claimed(claim)?, revision };
        match ask.method.as_str() {
            "GET" | "HEAD" => match self.lead.plan().filter(|(own, _)| **own == id) {
                Some((_, text)) => Ok(Reply::text("application/toml", text.to_owned())),
                None => Err(missing(&ask.path)),
            },
            "PUT" => {
                let text = std::str::from_utf8(&ask.body)
                    .map_err(|_| Reply::refusal(400, "plan: expected TOML, found no text"))?;
                let kept = self.lead.keep(id, text, net::monotonic());
                kept.map_err(|reason| Reply::refusal(409, reason))?;
                Ok(Reply::empty(204))
            }
            _ => Err(not_allowed(ask, "GET, HEAD, PUT")),
        }
    }

    /// A request to an API of NMOS. One with a claim is refused if a greater one is known: the controller was replaced. Others
    /// than suiro's controllers have none.
    fn command(&mut self, ask: &Ask) -> Result<Reply, Reply> {
        self.node.admit(ask)?;
        if let Some(claim) = &ask.claim
            && !self.lead.claim(&claimed(claim)?, net::monotonic())
        {
            let reply = Reply::refusal(409, self.lead.refusal());
            self.journal.note("refused", None, None, &reply.reason());
            return Err(reply);
        }
        let reply = self.node.answer(net::tai(), ask, &mut self.lanes);
        if reply.status >= 400 && matches!(ask.method.as_str(), "PATCH" | "POST") {
            self.journal.note("refused", None, None, &reply.reason());
        }
        Ok(reply)
    }
}

fn claimed(text: &str) -> Result<Claim, Reply> {
    text.parse().map_err(|expected| Reply::refusal(400, format!("claim: expected {expected}")))
}
