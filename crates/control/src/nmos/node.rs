//! The APIs of a node: IS-04 v1.3 Node API and IS-05 v1.1 Connection API, as a function of requests and the time. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::connection::{Connection, Media, Own, Side};
use super::door::{self, Door};
use super::resources::{About, Kind, Outgoing};
use super::{Ask, Id, Reply, Tai, found};

/// Streams that a node can send and receive, together.
pub const STREAMS_MAX: usize = 64;

/// What a node has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streams {
    /// What it can send, with what each sender chooses for `auto`.
    pub outgoing: Vec<(Outgoing, Own)>,
    /// What it can receive: the stream's number, and what its receiver chooses for `auto`.
    pub incoming: Vec<(u32, Own)>,
}

/// A node: its resources and their state.
#[derive(Debug, Clone)]
pub struct Node {
    about: About,
    door: Door,
    outgoing: Vec<Outgoing>,
    connections: BTreeMap<Id, (u32, Connection)>,
}

impl Node {
    /// A node that sends and receives nothing yet. At most [`STREAMS_MAX`] of its streams are taken.
    pub fn new(about: About, door: Door, streams: &Streams) -> Self {
        let mut connections = BTreeMap::new();
        let senders = streams.outgoing.iter().map(|(out, own)| (Side::Sender, out.stream, own));
        let receivers = streams.incoming.iter().map(|(stream, own)| (Side::Receiver, *stream, own));
        for (side, stream, own) in senders.chain(receivers).take(STREAMS_MAX) {
            let id = about.connection(side, stream);
            let connection = Connection::new(id.clone(), side, own.clone(), about.since);
            connections.insert(id, (stream, connection));
        }
        let outgoing = streams.outgoing.iter().map(|(outgoing, _)| outgoing.clone()).collect();
        Self { about, door, outgoing, connections }
    }

    /// What it says of itself.
    pub const fn about(&self) -> &About {
        &self.about
    }

    /// Lets a request in, or answers it ([`Door::admit`]).
    ///
    /// # Errors
    /// The reply.
    pub fn admit(&self, ask: &Ask) -> Result<(), Reply> {
        self.door.admit(ask)
    }

    /// Its senders and receivers, with the numbers of their streams.
    pub fn connections(&self) -> impl Iterator<Item = (u32, &Connection)> {
        self.connections.values().map(|(stream, connection)| (*stream, connection))
    }

    /// One of them.
    pub fn connection(&self, id: &Id) -> Option<&Connection> {
        self.connections.get(id).map(|(_, connection)| connection)
    }

    /// Completes the activations whose time has come; the identifiers of what has changed.
    pub fn advance(&mut self, now: Tai) -> Vec<Id> {
        let all = self.connections.iter_mut();
        let changed = all.filter_map(|(id, (_, own))| own.advance(now).then(|| id.clone()));
        changed.collect()
    }

    /// The time of the next activation.
    pub fn next(&self) -> Option<Tai> {
        self.connections.values().filter_map(|(_, connection)| connection.scheduled()).min()
    }

    /// A stream ended by itself. True if that is news.
    pub fn ended(&mut self, id: &Id, now: Tai) -> bool {
        self.connections.get_mut(id).is_some_and(|(_, connection)| connection.ended(now))
    }

    /// All resources, in the order of registration.
    pub fn resources(&self) -> Vec<(Kind, Value)> {
        Kind::ALL
            .into_iter()
            .flat_map(|kind| self.of(kind).into_iter().map(move |own| (kind, own)))
            .collect()
    }

    /// The resource of a sender or receiver.
    pub fn resource(&self, id: &Id) -> Option<(Kind, Value)> {
        let (stream, connection) = self.connections.get(id)?;
        Some(match connection.side() {
            Side::Sender => {
                let outgoing = self.outgoing.iter().find(|own| own.stream == *stream)?;
                (Kind::Sender, self.about.sender_resource(outgoing, connection))
            }
            Side::Receiver => (Kind::Receiver, self.about.receiver_resource(*stream, connection)),
        })
    }

    fn of(&self, kind: Kind) -> Vec<Value> {
        let side = |side| {
            let own = self.connections.iter().filter(move |(_, (_, own))| own.side() == side);
            own.filter_map(|(id, _)| self.resource(id)).map(|(_, value)| value).collect()
        };
        match kind {
            Kind::Node => vec![self.about.node_resource()],
            Kind::Device => {
                let all: Vec<_> = self.connections.values().map(|(_, own)| own).collect();
                vec![self.about.device_resource(&all)]
            }
            Kind::Source => {
                self.outgoing.iter().map(|own| self.about.source_resource(own)).collect()
            }
            Kind::Flow => self.outgoing.iter().map(|own| self.about.flow_resource(own)).collect(),
            Kind::Sender => side(Side::Sender),
            Kind::Receiver => side(Side::Receiver),
        }
    }

    /// Answers a request to `/x-nmos` and below.
    pub fn answer(&mut self, now: Tai, ask: &Ask, media: &mut dyn Media) -> Reply {
        if let Err(reply) = self.door.admit(ask) {
            return reply;
        }
        self.advance(now);
        let parts = door::parts(&ask.path);
        let listed = |children: &[&str]| match door::reads(ask) {
            Ok(()) => door::listing(children),
            Err(reply) => reply,
        };
        match parts[..] {
            ["x-nmos"] => listed(&["node/", "connection/"]),
            ["x-nmos", "node"] => listed(&["v1.3/"]),
            ["x-nmos", "connection"] => listed(&["v1.1/"]),
            ["x-nmos", "node", "v1.3", ref rest @ ..] => self.node_api(rest, ask),
            ["x-nmos", "connection", "v1.1", ref rest @ ..] => {
                self.connection_api(now, rest, ask, media)
            }
            _ => door::missing(&ask.path),
        }
    }

    fn node_api(&self, rest: &[&str], ask: &Ask) -> Reply {
        if let ["receivers", _, "target"] = rest {
            // IS-04 v1.3: the deprecated way to connect; IS-05 replaces it.
            return Reply::refusal(501, "target: connect receivers by the Connection API instead");
        }
        if let Err(reply) = door::reads(ask) {
            return reply;
        }
        match *rest {
            [] => door::listing(&[
                "self/",
                "sources/",
                "flows/",
                "devices/",
                "senders/",
                "receivers/",
            ]),
            ["self"] => Reply::json(200, &self.about.node_resource()),
            [plural] => match Kind::of_plural(plural).filter(|kind| *kind != Kind::Node) {
                Some(kind) => Reply::json(200, &json!(self.of(kind))),
                None => door::missing(&ask.path),
            },
            [plural, id] => {
                let kind = Kind::of_plural(plural).filter(|kind| *kind != Kind::Node);
                let mut all = kind.map(|kind| self.of(kind)).unwrap_or_default().into_iter();
                match all.find(|own| own["id"] == id) {
                    Some(own) => Reply::json(200, &own),
                    None => door::missing(&ask.path),
                }
            }
            _ => door::missing(&ask.path),
        }
    }

    fn connection_api(
        &mut self,
        now: Tai,
        rest: &[&str],
        ask: &Ask,
        media: &mut dyn Media,
    ) -> Reply {
        let side = |name: &str| match name {
            "senders" => Some(Side::Sender),
            "receivers" => Some(Side::Receiver),
            _ => None,
        };
        let listed = |children: &[&str]| match door::reads(ask) {
            Ok(()) => door::listing(children),
            Err(reply) => reply,
        };
        match *rest {
            [] => listed(&["bulk/", "single/"]),
            ["bulk" | "single"] => listed(&["senders/", "receivers/"]),
            ["bulk", name] => match (side(name), ask.method.as_str()) {
                (Some(side), "POST") => self.bulk(now, side, ask, media),
                (Some(_), _) => door::not_allowed(ask, "POST"),
                (None, _) => door::missing(&ask.path),
            },
            ["single", name] => match side(name) {
                Some(side) => {
                    let all = self.connections.iter().filter(|(_, (_, own))| own.side() == side);
                    let ids: Vec<String> = all.map(|(id, _)| format!("{id}/")).collect();
                    listed(&ids.iter().map(String::as_str).collect::<Vec<_>>())
                }
                None => door::missing(&ask.path),
            },
            ["single", name, id, ref rest @ ..] => match self.find(side(name), id) {
                Some(connection) => connection.answer(now, rest, ask, media),
                None => door::missing(&ask.path),
            },
            _ => door::missing(&ask.path),
        }
    }

    fn find(&mut self, side: Option<Side>, id: &str) -> Option<&mut Connection> {
        let id: Id = id.parse().ok()?;
        let (_, connection) = self.connections.get_mut(&id)?;
        Some(connection).filter(|own| Some(own.side()) == side)
    }

    /// Several requests in one; each has its own outcome.
    fn bulk(&mut self, now: Tai, side: Side, ask: &Ask, media: &mut dyn Media) -> Reply {
        let entries = match ask.body().and_then(|body| entries(&body)) {
            Ok(entries) => entries,
            Err(reply) => return reply,
        };
        let outcome = |(id, params): (Id, Value)| {
            let reply = match self.find(Some(side), id.as_str()) {
                Some(connection) => connection.patch(now, &params, media),
                None => Reply::refusal(404, format!("{id}: this device has no such resource")),
            };
            let mut outcome = json!({ "id": id.as_str(), "code": reply.status });
            if reply.status >= 400 {
                outcome["error"] = json!(reply.reason());
                outcome["debug"] = Value::Null;
            }
            outcome
        };
        Reply::json(200, &json!(entries.into_iter().map(outcome).collect::<Vec<_>>()))
    }
}

/// The entries of a bulk request.
fn entries(body: &Value) -> Result<Vec<(Id, Value)>, Reply> {
    let wrong = |error: String| Reply::refusal(400, error);
    let Value::Array(entries) = body else {
        return Err(wrong(format!("expected an array, found {}", found(body))));
    };
    if entries.len() > STREAMS_MAX {
        return Err(wrong(format!(
            "expected at most {STREAMS_MAX} entries, found {}",
            entries.len()
        )));
    }
    let entry = |(at, entry): (usize, &Value)| {
        let keys = entry.as_object().filter(|pairs| pairs.len() == 2);
        let both = keys.and_then(|pairs| pairs.get("id").zip(pairs.get("params")));
        let Some((id, params)) = both else {
            let found = found(entry);
            return Err(wrong(format!(
                "[{at}]: expected an object of id and params, found {found}"
            )));
        };
        let parsed = id.as_str().and_then(|id| id.parse().ok());
        let parsed = parsed.ok_or_else(|| {
            wrong(format!("[{at}].id: expected a UUID in lower case, found {}", found(id)))
        })?;
        Ok((parsed, params.clone()))
    };
    entries.iter().enumerate().map(entry).collect()
}
