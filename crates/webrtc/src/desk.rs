//! Requests of WHIP and WHEP, handed over to a program of others, or to a page in a browser: it answers offers, takes candidates
//! and closes sessions.

use std::collections::BTreeMap;

use serde::Serialize;
use suiro_browser::written;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

use crate::signalling::server::Waiting;
use crate::signalling::{Command, Door, Handle, Reply};

/// Sessions that are open or recorded at most.
pub(crate) const SESSIONS_MAX: usize = 1000;
/// Offers that the other program has not answered yet; more are refused.
const UNANSWERED_MAX: usize = 64;

/// What the endpoint wants next.
#[derive(Debug, Serialize)]
#[serde(tag = "do", rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Command"))]
pub(crate) enum Order<'a> {
    Begin,
    Answer { session: u64, offer: &'a str },
    Candidate { session: u64, candidate: &'a str },
    Close { session: u64 },
}

/// A session that was opened at the desk.
#[derive(Debug)]
struct Session {
    handle: Handle,
    /// Who waits for the answer.
    waits: Option<oneshot::Sender<Reply>>,
}

/// Where requests become orders to the other program.
pub(crate) struct Desk {
    door: Door,
    orders: Sender<String>,
    sessions: BTreeMap<u64, Session>,
    opened: u64,
}

impl Desk {
    /// Orders go to `orders`, as JSON.
    pub fn new(door: Door, orders: Sender<String>) -> Self {
        Self { door, orders, sessions: BTreeMap::new(), opened: 0 }
    }

    /// The trial begins.
    pub fn begin(&mut self) {
        let _ = self.order(&Order::Begin);
    }

    fn order(&self, order: &Order<'_>) -> Option<()> {
        self.orders.try_send(written(order)).ok()
    }

    /// Somebody asks for something. An offer is replied to when the other program has answered it: the number of its
    /// session.
    pub fn on_asked(&mut self, Waiting { ask, reply }: Waiting) -> Option<u64> {
        let replied = match self.door.judge(&ask) {
            Ok(Command::Offer(offer, _)) => return self.on_offer(&offer, reply),
            Ok(Command::Trickle(name, tag, fragment)) => {
                self.on_candidates(&name, tag.as_deref(), &fragment.candidates)
            }
            Ok(Command::Delete(name)) => self.on_delete(&name),
            Err(refusal) => refusal,
        };
        // Who asked may be gone.
        let _ = reply.send(replied);
        None
    }

    fn on_offer(&mut self, offer: &str, reply: oneshot::Sender<Reply>) -> Option<u64> {
        // Who waited in vain for the answer is gone.
        let is_gone = |waits: &oneshot::Sender<Reply>| waits.is_closed();
        self.sessions.retain(|_, session| !session.waits.as_ref().is_some_and(is_gone));
        let unanswered = self.sessions.values().filter(|session| session.waits.is_some()).count();
        let number = self.opened + 1;
        let answer = Order::Answer { session: number, offer };
        let full = unanswered >= UNANSWERED_MAX || self.sessions.len() >= SESSIONS_MAX;
        if full || self.order(&answer).is_none() {
            let _ = reply.send(Reply::problem(503, "busy", "too many offers; try again"));
            return None;
        }
        self.opened = number;
        self.sessions.insert(number, Session { handle: Handle::draw(), waits: Some(reply) });
        Some(number)
    }

    /// The offer of a session was answered, or refused with a reason.
    pub fn on_answer(&mut self, number: u64, answer: Result<String, String>) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let Some(waits) = session.waits.take() else { return };
        let reply = match answer {
            Ok(answer) => self.door.created(&session.handle.name, &session.handle.tag, answer),
            Err(reason) => {
                self.sessions.remove(&number);
                Reply::problem(400, "malformed offer", &reason)
            }
        };
        let _ = waits.send(reply);
    }

    /// The offer of a session cannot be answered now.
    pub fn on_busy(&mut self, number: u64, reason: &str) {
        let session = self.sessions.remove(&number);
        if let Some(waits) = session.and_then(|session| session.waits) {
            let _ = waits.send(Reply::problem(503, "busy", reason));
        }
    }

    /// A session has ended, by the other program's report.
    pub fn on_ended(&mut self, number: u64) {
        self.sessions.remove(&number);
    }

    fn named(&self, name: &str) -> Option<(u64, &Session)> {
        let mut sessions = self.sessions.iter();
        sessions.find(|(_, session)| session.handle.name == name).map(|(number, it)| (*number, it))
    }

    /// RFC 9725 §4.3.1: the entity tag says to which ICE session candidates belong.
    fn on_candidates(&self, name: &str, tag: Option<&str>, candidates: &[String]) -> Reply {
        let Some((number, session)) = self.named(name) else { return unknown() };
        let expected = format!("\"{}\"", session.handle.tag);
        if tag != Some(&expected) {
            let detail = format!("expected If-Match: {expected}");
            return Reply::problem(412, "precondition failed", &detail);
        }
        for candidate in candidates {
            let add = Order::Candidate { session: number, candidate };
            if self.order(&add).is_none() {
                return Reply::problem(503, "busy", "too many candidates; try again");
            }
        }
        Reply::empty(204)
    }

    fn on_delete(&mut self, name: &str) -> Reply {
        let Some((number, _)) = self.named(name) else { return unknown() };
        self.sessions.remove(&number);
        match self.order(&Order::Close { session: number }) {
            Some(()) => Reply::empty(200),
            None => Reply::problem(503, "busy", "too many requests; try again"),
        }
    }
}

fn unknown() -> Reply {
    Reply::problem(404, "not found", "no session of that name")
}

#[cfg(test)]
mod tests {
    use suiro_record::words::Signalling;
    use tokio::sync::mpsc;

    use super::*;
    use crate::signalling::door::{Ask, SDP};

    /// A desk, and what the page is asked for.
    fn desk() -> (Desk, mpsc::Receiver<String>) {
        let (orders, ordered) = mpsc::channel(1);
        let door = Door { signalling: Signalling::Whep, token: None };
        (Desk::new(door, orders), ordered)
    }

    /// Somebody offers something; the page hears of it.
    fn offer((desk, ordered): &mut (Desk, mpsc::Receiver<String>)) -> oneshot::Receiver<Reply> {
        let ask = Ask {
            method: "POST".to_owned(),
            path: "/whep".to_owned(),
            content_type: Some(SDP.to_owned()),
            body: "v=0".to_owned(),
            ..Ask::default()
        };
        let (reply, replied) = oneshot::channel();
        desk.on_asked(Waiting { ask, reply });
        let _ = ordered.try_recv();
        replied
    }

    #[test]
    fn sessions_that_have_ended_leave_room_for_others() {
        let mut desk = desk();
        for number in 1..=SESSIONS_MAX as u64 + 1 {
            let mut replied = offer(&mut desk);
            desk.0.on_answer(number, Ok("v=0".to_owned()));
            assert_eq!(replied.try_recv().unwrap().status, 201, "{number}");
            desk.0.on_ended(number);
        }
    }

    #[test]
    fn offers_that_the_page_never_answers_end_no_others() {
        let mut desk = desk();
        let waiting: Vec<_> = (0..UNANSWERED_MAX).map(|_| offer(&mut desk)).collect();
        assert_eq!(offer(&mut desk).try_recv().unwrap().status, 503);
        // They give up.
        drop(waiting);
        let mut replied = offer(&mut desk);
        desk.0.on_answer(UNANSWERED_MAX as u64 + 1, Ok("v=0".to_owned()));
        assert_eq!(replied.try_recv().unwrap().status, 201);
    }
}
