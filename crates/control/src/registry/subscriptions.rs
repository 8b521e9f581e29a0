//! Subscriptions of the Query API (IS-04 v1.3, Behaviour: Querying, WebSockets): which resources a client wants to hear of, and
//! the messages about them. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use suiro_units::{Duration, Time};

use super::query::{Filter, Steps};
use super::{Kind, Moment, Registry};
use crate::nmos::door::{self, missing, not_allowed};
use crate::nmos::{Ask, Id, Reply, Tai, found};

/// Subscriptions of a registry at most.
pub const SUBSCRIPTIONS_MAX: usize = 256;
/// How long a subscription that need not persist stays without a connection.
const UNUSED_MAX: Duration = Duration::from_secs(60);
/// The longest pause between messages that a client may ask for.
const RATE_MAX: Duration = Duration::from_secs(3600);

/// A subscription.
#[derive(Debug, Clone)]
pub(super) struct Subscription {
    kind: Kind,
    filter: Filter,
    params: Map<String, Value>,
    every: Duration,
    persist: bool,
    /// Its open connections, and since when there has been none.
    connections: usize,
    unused: Time,
}

/// All subscriptions.
#[derive(Debug, Clone, Default)]
pub(super) struct Subscriptions {
    all: BTreeMap<Id, Subscription>,
    made: u64,
}

/// A resource that was created, changed or removed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What it is.
    pub kind: Kind,
    /// As it was; `None` if it is new.
    pub pre: Option<Arc<Value>>,
    /// As it is now; `None` if it is gone.
    pub post: Option<Arc<Value>>,
}

/// What a client hears of a resource. It shares the resource with the registry and with what all other clients hear.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct News {
    pub pre: Option<Arc<Value>>,
    pub post: Option<Arc<Value>>,
}

impl News {
    /// As an entry of a grain.
    pub fn text(&self) -> String {
        let id = self.post.as_ref().or(self.pre.as_ref()).map(|own| &own["id"]);
        let mut text = format!("{{\"path\":{}", id.unwrap_or(&Value::Null));
        for (key, value) in [("pre", &self.pre), ("post", &self.post)] {
            if let Some(value) = value {
                text += &format!(",\"{key}\":{value}");
            }
        }
        text + "}"
    }
}

impl Subscription {
    /// What a change is to a client; `None` if it is of no interest. A resource that no longer fits is gone to it.
    pub fn entry(&self, change: &Change, steps: &mut Steps) -> Option<News> {
        if change.kind != self.kind {
            return None;
        }
        let mut shown =
            |value: &Option<Arc<Value>>| value.clone().filter(|own| self.filter.fits(own, steps));
        let (pre, post) = (shown(&change.pre), shown(&change.post));
        (pre.is_some() || post.is_some()).then_some(News { pre, post })
    }

    /// What a new connection hears first: everything as it is. `None` if finding it takes too long.
    pub fn sync(&self, registry: &Registry) -> Option<Vec<News>> {
        let mut steps = Steps::of_query();
        let all = registry.shared(self.kind).filter(|value| self.filter.fits(value, &mut steps));
        let news = all
            .map(|value| News { pre: Some(Arc::clone(value)), post: Some(Arc::clone(value)) })
            .collect();
        (!steps.is_over()).then_some(news)
    }

    /// How long messages must be apart.
    pub const fn every(&self) -> Duration {
        self.every
    }

    /// A message, as a grain: the text before its entries, which are [`News`] with commas in between, and the text after them.
    pub fn message(&self, id: &Id, now: Tai) -> (String, String) {
        let (at, none) = (now.to_string(), json!({ "numerator": 0, "denominator": 1 }));
        let mut head = json!({
            "grain_type": "event",
            "source_id": Id::named("suiro/registry/query").as_str(),
            "flow_id": id.as_str(),
            "origin_timestamp": at,
            "sync_timestamp": at,
            "creation_timestamp": at,
            "rate": none,
            "duration": none,
            "grain": {
                "type": "urn:x-nmos:format:data.event",
                "topic": format!("/{}/", self.kind.plural()),
                "data": [],
            },
        })
        .to_string();
        let at = head.find("[]").expect("the only list is that of the entries") + 1;
        let tail = head.split_off(at);
        (head, tail)
    }
}

impl Subscriptions {
    /// One of them.
    pub fn get(&self, id: &Id) -> Option<&Subscription> {
        self.all.get(id)
    }

    /// Removes those that nobody uses.
    pub fn collect(&mut self, now: Time) {
        self.all.retain(|_, own| {
            own.persist || own.connections > 0 || now.saturating_since(own.unused) <= UNUSED_MAX
        });
    }

    /// A connection of a subscription was opened.
    pub fn opened(&mut self, id: &Id) {
        if let Some(own) = self.all.get_mut(id) {
            own.connections += 1;
        }
    }

    /// A connection was closed. With the last one, a subscription that need not persist ends.
    pub fn closed(&mut self, id: &Id, now: Time) {
        if let Some(own) = self.all.get_mut(id) {
            own.connections = own.connections.saturating_sub(1);
            own.unused = now;
            if own.connections == 0 && !own.persist {
                self.all.remove(id);
            }
        }
    }
}

impl Registry {
    /// Answers a request to `subscriptions` and below.
    pub(super) fn subscriptions(
        &mut self,
        now: Moment,
        rest: &[&str],
        ask: &Ask,
        is_closed: bool,
    ) -> Reply {
        self.subscriptions.collect(now.monotonic);
        let value = |registry: &Self, id: &Id| {
            registry.subscriptions.get(id).map(|own| registry.shown(id, own, ask, is_closed))
        };
        match (rest, ask.method.as_str()) {
            ([], "POST") => self.subscribe(now, ask, is_closed),
            ([], "GET" | "HEAD") => {
                let all: Vec<Value> =
                    self.subscriptions.all.keys().filter_map(|id| value(self, id)).collect();
                Reply::json(200, &json!(all))
            }
            ([], _) => not_allowed(ask, "GET, HEAD, POST"),
            ([id], method) => {
                let known = id.parse::<Id>().ok().and_then(|id| Some((value(self, &id)?, id)));
                let Some((value, id)) = known else { return missing(&ask.path) };
                match method {
                    "GET" | "HEAD" => Reply::json(200, &value),
                    "DELETE" if value["persist"] == true => {
                        self.subscriptions.all.remove(&id);
                        Reply::empty(204)
                    }
                    // IS-04 v1.3, Query API: such a subscription ends with its connections.
                    "DELETE" => Reply::refusal(
                        403,
                        "this subscription does not persist: close its connections",
                    ),
                    _ => not_allowed(ask, "GET, HEAD, DELETE"),
                }
            }
            ([id, "ws"], _) => match door::reads(ask) {
                Ok(()) => self.upgrade(id, ask),
                Err(reply) => reply,
            },
            _ => missing(&ask.path),
        }
    }

    fn subscribe(&mut self, now: Moment, ask: &Ask, is_closed: bool) -> Reply {
        let body = match ask.body() {
            Ok(body) => body,
            Err(reply) => return reply,
        };
        let made = match self.wanted(&body, now.monotonic) {
            Ok(made) if made.sync(self).is_none() => return Steps::refusal(),
            Ok(made) => made,
            Err(reply) => return reply,
        };
        let is_same = |own: &Subscription| {
            (own.kind, own.every, own.persist) == (made.kind, made.every, made.persist)
                && own.params == made.params
        };
        let known = self.subscriptions.all.iter().find(|(_, own)| is_same(own));
        let (status, id) = match known {
            Some((id, _)) => (200, id.clone()),
            None if self.subscriptions.all.len() >= SUBSCRIPTIONS_MAX => {
                let error = format!("this registry has {SUBSCRIPTIONS_MAX} subscriptions already");
                return Reply::refusal(503, error);
            }
            None => {
                self.subscriptions.made += 1;
                let (made_before, tai) = (self.subscriptions.made, now.tai);
                let id = Id::named(&format!("suiro/subscription/{made_before}/{tai}"));
                self.subscriptions.all.insert(id.clone(), made);
                (201, id)
            }
        };
        let value = self.shown(&id, &self.subscriptions.all[&id], ask, is_closed);
        let place = format!("/x-nmos/query/v1.3/subscriptions/{id}");
        Reply::json(status, &value).with("location", place)
    }

    /// The subscription that a body asks for.
    fn wanted(&self, body: &Value, now: Time) -> Result<Subscription, Reply> {
        let wrong = |key: &str, expected: &str| {
            let error = format!("{key}: expected {expected}, found {}", found(&body[key]));
            Reply::refusal(400, error)
        };
        let every = body["max_update_rate_ms"].as_u64().map(Duration::from_millis);
        let every = every.filter(|every| *every <= RATE_MAX);
        let every =
            every.ok_or_else(|| wrong("max_update_rate_ms", "milliseconds, an hour at most"))?;
        let persist = body["persist"].as_bool().ok_or_else(|| wrong("persist", "true or false"))?;
        let path = body["resource_path"].as_str().and_then(|path| path.strip_prefix('/'));
        let kind = path.and_then(Kind::of_plural);
        let kind = kind.ok_or_else(|| wrong("resource_path", "a path such as \"/nodes\""))?;
        let params = body["params"].as_object().ok_or_else(|| wrong("params", "an object"))?;
        let filter = Filter::of(params)?;
        match &body["secure"] {
            Value::Null => {}
            Value::Bool(secure) if *secure == self.secure => {}
            Value::Bool(_) => return Err(wrong("secure", "the protocol of this server")),
            _ => return Err(wrong("secure", "true or false")),
        }
        Ok(Subscription {
            kind,
            filter,
            params: params.clone(),
            every,
            persist,
            connections: 0,
            unused: now,
        })
    }

    fn shown(&self, id: &Id, own: &Subscription, ask: &Ask, is_closed: bool) -> Value {
        let scheme = if self.secure { "wss" } else { "ws" };
        let host = self.host(ask);
        json!({
            "id": id.as_str(),
            "ws_href": format!("{scheme}://{host}/x-nmos/query/v1.3/subscriptions/{id}/ws"),
            "max_update_rate_ms": own.every.as_nanos() / 1_000_000,
            "persist": own.persist,
            "secure": self.secure,
            "resource_path": format!("/{}", own.kind.plural()),
            "params": own.params,
            "authorization": is_closed,
        })
    }

    /// The beginning of a WebSocket.
    fn upgrade(&self, id: &str, ask: &Ask) -> Reply {
        let known = id.parse::<Id>().ok().filter(|id| self.subscriptions.get(id).is_some());
        if known.is_none() {
            return missing(&ask.path);
        }
        let Some(key) = &ask.upgrade else {
            return Reply::refusal(426, "expected a WebSocket of version 13 (RFC 6455)")
                .with("upgrade", "websocket")
                .with("sec-websocket-version", "13");
        };
        match super::websocket::accept(key) {
            Some(accept) => Reply::empty(101)
                .with("upgrade", "websocket")
                .with("connection", "Upgrade")
                .with("sec-websocket-accept", accept),
            None => Reply::refusal(400, "Sec-WebSocket-Key: expected 16 bytes in base64"),
        }
    }

    /// The subscription of a WebSocket's path.
    pub(super) fn subscription_at(&self, path: &str) -> Option<(Id, &Subscription)> {
        let ["x-nmos", "query", "v1.3", "subscriptions", id, "ws"] = door::parts(path)[..] else {
            return None;
        };
        let id: Id = id.parse().ok()?;
        let own = self.subscriptions.get(&id)?;
        Some((id, own))
    }
}
