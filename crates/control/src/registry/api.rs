//! The paths of the Registration API and of the Query API.

use super::query::Query;
use super::{Kind, Moment, Refused, Registered, Registry, health};
use crate::nmos::door::{self, Door};
use crate::nmos::{Ask, Id, Reply, found};

impl Registry {
    /// Answers a request to `/x-nmos` and below.
    pub fn answer(&mut self, now: Moment, ask: &Ask, door: &Door) -> Reply {
        if let Err(reply) = door.admit(ask) {
            return reply;
        }
        self.collect(now.monotonic);
        let listed = |children: &[&str]| match door::reads(ask) {
            Ok(()) => door::listing(children),
            Err(reply) => reply,
        };
        match door::parts(&ask.path)[..] {
            ["x-nmos"] => listed(&["registration/", "query/"]),
            ["x-nmos", "registration" | "query"] => listed(&["v1.3/"]),
            ["x-nmos", "registration", "v1.3"] => listed(&["resource/", "health/"]),
            ["x-nmos", "registration", "v1.3", "resource"] => match ask.method.as_str() {
                "POST" => self.post(now, ask),
                _ => door::not_allowed(ask, "POST"),
            },
            ["x-nmos", "registration", "v1.3", "resource", kind, id] => {
                self.resource(kind, id, ask)
            }
            ["x-nmos", "registration", "v1.3", "health", "nodes", id] => self.beat(now, id, ask),
            ["x-nmos", "query", "v1.3"] => listed(&[
                "nodes/",
                "sources/",
                "flows/",
                "devices/",
                "senders/",
                "receivers/",
                "subscriptions/",
            ]),
            ["x-nmos", "query", "v1.3", "subscriptions", ref rest @ ..] => {
                self.subscriptions(now, rest, ask, door.is_closed())
            }
            ["x-nmos", "query", "v1.3", ref rest @ ..] => match door::reads(ask) {
                Ok(()) => self.query(rest, ask),
                Err(reply) => reply,
            },
            _ => door::missing(&ask.path),
        }
    }

    fn post(&mut self, now: Moment, ask: &Ask) -> Reply {
        let body = match ask.body() {
            Ok(body) => body,
            Err(reply) => return reply,
        };
        let pairs = body.as_object().filter(|pairs| pairs.len() == 2);
        let Some((kind, data)) = pairs.and_then(|pairs| pairs.get("type").zip(pairs.get("data")))
        else {
            let found = found(&body);
            return Reply::refusal(
                400,
                format!("expected an object of type and data, found {found}"),
            );
        };
        let Some(kind) = Kind::ALL.into_iter().find(|known| kind == known.name()) else {
            let known = Kind::ALL.map(Kind::name).join(", ");
            return Reply::refusal(
                400,
                format!("type: expected one of {known}, found {}", found(kind)),
            );
        };
        match self.register(kind, data, now) {
            Ok((id, outcome)) => {
                let status = match outcome {
                    Registered::Created => 201,
                    Registered::Updated => 200,
                };
                let plural = kind.plural();
                let place = format!("/x-nmos/registration/v1.3/resource/{plural}/{id}/");
                Reply::json(status, data).with("location", place)
            }
            Err(Refused::Wrong(reason)) => Reply::refusal(400, reason),
            Err(Refused::Taken(reason)) => Reply::refusal(409, reason),
        }
    }

    fn resource(&mut self, kind: &str, id: &str, ask: &Ask) -> Reply {
        let found = Kind::of_plural(kind).zip(id.parse::<Id>().ok());
        let Some((kind, id)) = found else { return door::missing(&ask.path) };
        match ask.method.as_str() {
            "DELETE" if self.remove(kind, &id) => Reply::empty(204),
            "DELETE" => door::missing(&ask.path),
            "GET" | "HEAD" => match self.get(kind, &id) {
                Some(value) => Reply::json(200, value),
                None => door::missing(&ask.path),
            },
            _ => door::not_allowed(ask, "GET, HEAD, DELETE"),
        }
    }

    fn beat(&mut self, now: Moment, id: &str, ask: &Ask) -> Reply {
        let Ok(id) = id.parse::<Id>() else { return door::missing(&ask.path) };
        let at = match ask.method.as_str() {
            "POST" => self.heartbeat(&id, now),
            "GET" | "HEAD" => self.health(&id),
            _ => return door::not_allowed(ask, "GET, HEAD, POST"),
        };
        match at {
            Some(at) => Reply::json(200, &health(at)),
            None => door::missing(&ask.path),
        }
    }

    fn query(&self, rest: &[&str], ask: &Ask) -> Reply {
        match *rest {
            [plural] => match Kind::of_plural(plural) {
                Some(kind) => self.page(kind, ask),
                None => door::missing(&ask.path),
            },
            [plural, id] => {
                let both = Kind::of_plural(plural).zip(id.parse::<Id>().ok());
                match both.and_then(|(kind, id)| self.get(kind, &id)) {
                    Some(value) => Reply::json(200, value),
                    None => door::missing(&ask.path),
                }
            }
            _ => door::missing(&ask.path),
        }
    }

    /// A page of the resources that a query asks for.
    fn page(&self, kind: Kind, ask: &Ask) -> Reply {
        let query = match Query::parse(ask.query.as_deref().unwrap_or_default()) {
            Ok(query) => query,
            Err(reply) => return reply,
        };
        let page = match query.page(self.timed(kind)) {
            Ok(page) => page,
            Err(reply) => return reply,
        };
        let scheme = if self.secure { "https" } else { "http" };
        let base = format!("{scheme}://{}/x-nmos/query/v1.3/{}", self.host(ask), kind.plural());
        let reply = Reply::json(200, &page.resources);
        page.headers(&query, &base)
            .into_iter()
            .fold(reply, |reply, (name, value)| reply.with(name, value))
    }
}
