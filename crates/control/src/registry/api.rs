//! The paths of the Registration API and of the Query API.

use serde_json::{Value, json};

use super::{Kind, Refused, Registered, Registry, health};
use crate::nmos::door::{self, Door};
use crate::nmos::{Ask, Id, Reply, Tai, found};

impl Registry {
    /// Answers a request to `/x-nmos` and below.
    pub fn answer(&mut self, now: Tai, ask: &Ask, door: &Door) -> Reply {
        if let Err(reply) = door.admit(ask) {
            return reply;
        }
        self.collect(now);
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
            ["x-nmos", "query", "v1.3", "subscriptions", ..] => Reply::refusal(
                501,
                "this registry has no subscriptions\nhint: repeat the query instead",
            ),
            ["x-nmos", "query", "v1.3", ref rest @ ..] => match door::reads(ask) {
                Ok(()) => self.query(rest, ask),
                Err(reply) => reply,
            },
            _ => door::missing(&ask.path),
        }
    }

    fn post(&mut self, now: Tai, ask: &Ask) -> Reply {
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

    fn beat(&mut self, now: Tai, id: &str, ask: &Ask) -> Reply {
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
                Some(kind) => self.filtered(kind, ask.query.as_deref().unwrap_or_default()),
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

    /// Basic queries (IS-04 v1.3, Query Parameters): an attribute of the resource has this value.
    fn filtered(&self, kind: Kind, query: &str) -> Reply {
        let mut wanted = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if key.starts_with("paging.") || key.starts_with("query.") {
                let key: String = key.chars().take(40).collect();
                return Reply::refusal(501, format!("{key}: this registry has only basic queries"));
            }
            wanted.push((key, value));
        }
        let fits = |own: &&Value| wanted.iter().all(|(key, value)| is_at(own, key, value));
        let found: Vec<&Value> = self.of(kind).filter(fits).collect();
        Reply::json(200, &json!(found))
    }
}

/// Whether an attribute, with dots for those of objects, has this value.
fn is_at(own: &Value, path: &str, wanted: &str) -> bool {
    let found = path.split('.').fold(own, |value, key| &value[key]);
    let same = |value: &Value| match value {
        Value::String(text) => text == wanted,
        Value::Null => false,
        other => format!("{other}") == wanted,
    };
    match found {
        Value::Array(list) => list.iter().any(same),
        other => same(other),
    }
}
