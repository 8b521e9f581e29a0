//! A registry: the resources of nodes that are alive (IS-04 v1.3, Registration and Query API), as a function of
//! requests and the time. Pure.

mod api;
mod query;
pub mod serve;
mod socket;
mod subscriptions;
#[cfg(test)]
mod tests;
pub mod websocket;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use suiro_units::{Duration, Time};

pub use self::subscriptions::Change;
use self::subscriptions::Subscriptions;
pub use crate::nmos::resources::Kind;
use crate::nmos::resources::SERVICE;
use crate::nmos::{Ask, Id, Tai, found};

/// How long a node stays without a heartbeat (IS-04 v1.3, Heartbeating).
pub const EXPIRY: Duration = Duration::from_secs(12);
/// Resources of a registry at most.
pub const RESOURCES_MAX: usize = 8192;
/// Longest resource, in bytes of JSON.
pub const RESOURCE_BYTES_MAX: usize = 64 << 10;
/// All resources together at most, in bytes of JSON: a query for all of them is answered in one reply.
pub const BYTES_MAX: usize = 32 << 20;

/// A moment on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// TAI: what clients receive. It is set now and then, for instance when the kernel learns the leap seconds.
    pub tai: Tai,
    /// The monotonic clock: how long ago something was.
    pub monotonic: Time,
}

/// A registry.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    resources: BTreeMap<(Kind, Id), Entry>,
    /// When nodes were heard of last.
    health: BTreeMap<Id, Moment>,
    subscriptions: Subscriptions,
    /// Changes that were not sent yet.
    changes: Vec<Change>,
    /// The time of the last change: each has its own.
    changed: Tai,
    /// Whether it is served over TLS, and where.
    secure: bool,
    address: String,
}

#[derive(Debug, Clone)]
struct Entry {
    /// The node that it belongs to, and the device.
    node: Id,
    device: Option<Id>,
    value: Arc<Value>,
    /// When it was created, and when it changed last.
    created: Tai,
    updated: Tai,
    /// Its length in bytes of JSON.
    bytes: usize,
}

/// Why a registration was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// What is wrong with the resource.
    Wrong(String),
    /// Another node is registered with this identifier: where each of them is.
    Taken(String),
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self::Wrong(reason)
    }
}

/// What a registration did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registered {
    /// The resource is new.
    Created,
    /// It was known, and is replaced.
    Updated,
}

impl Registry {
    /// One that is served at this address, over TLS or not.
    pub fn at(address: impl Into<String>, secure: bool) -> Self {
        Self { secure, address: address.into(), ..Self::default() }
    }

    /// Where a client reaches it: the `Host` that it asked for.
    fn host(&self, ask: &Ask) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-.:[]_".contains(c);
        let asked = ask.host.as_ref().filter(|host| !host.is_empty() && host.chars().all(fits));
        asked.unwrap_or(&self.address).clone()
    }

    /// What has changed since it was last asked for.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Takes a resource.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn register(
        &mut self,
        kind: Kind,
        value: &Value,
        now: Moment,
    ) -> Result<(Id, Registered), Refused> {
        let (id, bytes) = checked(kind, value)?;
        let (node, device) = self.owner(kind, &id, value)?;
        let known = self.resources.get(&(kind, id.clone()));
        if known.is_none() && self.resources.len() >= RESOURCES_MAX {
            return Err(format!("the registry has {RESOURCES_MAX} resources already").into());
        }
        let held: usize = self.resources.values().map(|entry| entry.bytes).sum();
        if held - known.map_or(0, |known| known.bytes) + bytes > BYTES_MAX {
            return Err(format!("the registry has {held} of {BYTES_MAX} bytes already").into());
        }
        if let Some(other) = known.filter(|known| known.node != node) {
            return Err(format!("id: it belongs to the node {}", other.node).into());
        }
        let other =
            known.filter(|known| kind == Kind::Node && known.value["href"] != value["href"]);
        if let Some(other) = other.filter(|other| is_named(&other.value) || is_named(value)) {
            return Err(Refused::Taken(format!(
                "the node {} is registered at {}, and this one is at {}",
                found(&value["label"]),
                found(&other.value["href"]),
                found(&value["href"])
            )));
        }
        let outcome = if known.is_some() { Registered::Updated } else { Registered::Created };
        let updated = now.tai.max(self.changed.after(Duration::from_nanos(1)));
        let created = known.map_or(updated, |known| known.created);
        let value = Arc::new(value.clone());
        let post = Some(Arc::clone(&value));
        let entry = Entry { node, device, value, created, updated, bytes };
        let pre = self.resources.insert((kind, id.clone()), entry).map(|entry| entry.value);
        self.changed = updated;
        self.changes.push(Change { kind, pre, post });
        if kind == Kind::Node {
            self.health.entry(id.clone()).or_insert(now);
        }
        Ok((id, outcome))
    }

    /// The node and device that a resource belongs to: both must be known (IS-04 v1.3, Referential Integrity).
    fn owner(&self, kind: Kind, id: &Id, value: &Value) -> Result<(Id, Option<Id>), String> {
        let parent = |key: &str, kind: Kind| {
            let id: Option<Id> = value[key].as_str().and_then(|id| id.parse().ok());
            let id = id.ok_or_else(|| {
                format!("{key}: expected a UUID in lower case, found {}", found(&value[key]))
            })?;
            let known = self.resources.get(&(kind, id.clone()));
            let node = known.map(|known| known.node.clone());
            node.map(|node| (node, id.clone()))
                .ok_or_else(|| format!("{key}: the {} {id} is not registered", kind.name()))
        };
        match kind {
            Kind::Node => Ok((id.clone(), None)),
            Kind::Device => parent("node_id", Kind::Node).map(|(node, _)| (node, None)),
            Kind::Source | Kind::Flow | Kind::Sender | Kind::Receiver => {
                let (node, device) = parent("device_id", Kind::Device)?;
                if kind == Kind::Flow {
                    parent("source_id", Kind::Source)?;
                }
                Ok((node, Some(device)))
            }
        }
    }

    /// A node lives. `None` if it is not known.
    pub fn heartbeat(&mut self, node: &Id, now: Moment) -> Option<Tai> {
        let health = self.health.get_mut(node)?;
        *health = now;
        Some(now.tai)
    }

    /// When a node was heard of last.
    pub fn health(&self, node: &Id) -> Option<Tai> {
        self.health.get(node).map(|heard| heard.tai)
    }

    /// The registry itself did not run for so long, up to `now`: what nodes sent meanwhile still waits.
    pub fn stalled(&mut self, by: Duration, now: Time) {
        for heard in self.health.values_mut() {
            heard.monotonic = (heard.monotonic + by).min(now);
        }
    }

    /// Removes a resource with all that belongs to it. False if there is none.
    pub fn remove(&mut self, kind: Kind, id: &Id) -> bool {
        if !self.resources.contains_key(&(kind, id.clone())) {
            return false;
        }
        if kind == Kind::Node {
            self.health.remove(id);
        }
        let is_gone = |(own, own_id): &(Kind, Id), entry: &Entry| match kind {
            _ if (*own, own_id) == (kind, id) => true,
            Kind::Node => entry.node == *id,
            Kind::Device => entry.device.as_ref() == Some(id),
            Kind::Source => *own == Kind::Flow && entry.value["source_id"] == id.as_str(),
            Kind::Flow | Kind::Sender | Kind::Receiver => false,
        };
        let gone = self.resources.extract_if(.., |key, entry| is_gone(key, entry));
        self.changes.extend(gone.map(|((kind, _), entry)| Change {
            kind,
            pre: Some(entry.value),
            post: None,
        }));
        true
    }

    /// Removes the nodes that were not heard of for [`EXPIRY`]; their identifiers.
    pub fn collect(&mut self, now: Time) -> Vec<Id> {
        let since = |heard: &Moment| now.saturating_since(heard.monotonic);
        let silent = self.health.iter().filter(|(_, heard)| since(heard) > EXPIRY);
        let silent: Vec<Id> = silent.map(|(id, _)| id.clone()).collect();
        for id in &silent {
            self.remove(Kind::Node, id);
        }
        silent
    }

    fn entries(&self, kind: Kind) -> impl Iterator<Item = &Entry> {
        let own = self.resources.iter().filter(move |((own, _), _)| *own == kind);
        own.map(|(_, entry)| entry)
    }

    /// The resources of a kind, with the times of their creation and of their last change.
    fn timed(&self, kind: Kind) -> impl Iterator<Item = (Tai, Tai, &Value)> {
        self.entries(kind).map(|entry| (entry.created, entry.updated, &*entry.value))
    }

    /// The resources of a kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Value> {
        self.entries(kind).map(|entry| &*entry.value)
    }

    /// The same, to be kept.
    fn shared(&self, kind: Kind) -> impl Iterator<Item = &Arc<Value>> {
        self.entries(kind).map(|entry| &entry.value)
    }

    /// One resource.
    pub fn get(&self, kind: Kind, id: &Id) -> Option<&Value> {
        self.resources.get(&(kind, id.clone())).map(|entry| &*entry.value)
    }
}

/// Whether a node is one of suiro's. Their identifiers are made of their names, and they stay where they are: one at another
/// place is another node of the same name. All other nodes have an identifier of their own, and may move.
fn is_named(node: &Value) -> bool {
    let services = node["services"].as_array();
    services.is_some_and(|all| all.iter().any(|own| own["type"] == SERVICE))
}

/// A key that a resource must have, and what it must be.
type Required = (&'static str, fn(&Value) -> bool, &'static str);

const TEXT: fn(&Value) -> bool = Value::is_string;
const LIST: fn(&Value) -> bool = Value::is_array;
const OBJECT: fn(&Value) -> bool = Value::is_object;

fn is_id(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.parse::<Id>().is_ok())
}

fn is_id_or_null(value: &Value) -> bool {
    value.is_null() || is_id(value)
}

fn is_text_or_null(value: &Value) -> bool {
    value.is_null() || value.is_string()
}

fn is_version(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.parse::<Tai>().is_ok())
}

const ID: &str = "a UUID in lower case";
const A_TEXT: &str = "a text";
const A_LIST: &str = "an array";
const AN_OBJECT: &str = "an object";

const CORE: &[Required] = &[
    ("id", is_id, ID),
    ("version", is_version, "a version, SECONDS:NANOSECONDS"),
    ("label", TEXT, A_TEXT),
    ("description", TEXT, A_TEXT),
    ("tags", OBJECT, AN_OBJECT),
];

const fn required(kind: Kind) -> &'static [Required] {
    match kind {
        Kind::Node => &[
            ("href", TEXT, "a URL"),
            ("api", OBJECT, AN_OBJECT),
            ("caps", OBJECT, AN_OBJECT),
            ("services", LIST, A_LIST),
            ("clocks", LIST, A_LIST),
            ("interfaces", LIST, A_LIST),
        ],
        Kind::Device => &[
            ("type", TEXT, "a URN"),
            ("node_id", is_id, ID),
            ("senders", LIST, A_LIST),
            ("receivers", LIST, A_LIST),
            ("controls", LIST, A_LIST),
        ],
        Kind::Source => &[
            ("format", TEXT, "a URN"),
            ("device_id", is_id, ID),
            ("parents", LIST, A_LIST),
            ("caps", OBJECT, AN_OBJECT),
            ("clock_name", is_text_or_null, "the name of a clock or null"),
        ],
        Kind::Flow => &[
            ("format", TEXT, "a URN"),
            ("source_id", is_id, ID),
            ("device_id", is_id, ID),
            ("parents", LIST, A_LIST),
        ],
        Kind::Sender => &[
            ("flow_id", is_id_or_null, "a UUID in lower case or null"),
            ("transport", TEXT, "a URN"),
            ("device_id", is_id, ID),
            ("manifest_href", is_text_or_null, "a URL or null"),
            ("interface_bindings", LIST, A_LIST),
            ("subscription", OBJECT, AN_OBJECT),
        ],
        Kind::Receiver => &[
            ("format", TEXT, "a URN"),
            ("caps", OBJECT, AN_OBJECT),
            ("transport", TEXT, "a URN"),
            ("device_id", is_id, ID),
            ("interface_bindings", LIST, A_LIST),
            ("subscription", OBJECT, AN_OBJECT),
        ],
    }
}

/// Checks what every resource of this kind must have; its identifier, and its length in bytes of JSON.
fn checked(kind: Kind, value: &Value) -> Result<(Id, usize), String> {
    let Value::Object(pairs) = value else {
        return Err(format!("data: expected an object, found {}", found(value)));
    };
    let bytes = value.to_string().len();
    if bytes > RESOURCE_BYTES_MAX {
        return Err(format!("data: expected at most {RESOURCE_BYTES_MAX} bytes"));
    }
    for (key, fits, expected) in CORE.iter().chain(required(kind)) {
        let given = pairs.get(*key).unwrap_or(&Value::Null);
        if !pairs.contains_key(*key) {
            return Err(format!("{key}: expected {expected}, found none"));
        }
        if !fits(given) {
            return Err(format!("{key}: expected {expected}, found {}", found(given)));
        }
    }
    let lists =
        pairs.get("tags").and_then(Value::as_object).into_iter().flat_map(|tags| tags.values());
    for list in lists {
        let texts = list.as_array().is_some_and(|list| list.iter().all(Value::is_string));
        if !texts {
            return Err(format!("tags: expected arrays of texts, found {}", found(list)));
        }
    }
    let id = pairs["id"].as_str().and_then(|id| id.parse().ok());
    id.map(|id| (id, bytes)).ok_or_else(|| format!("id: expected {ID}"))
}

/// The body of a health response.
fn health(at: Tai) -> Value {
    json!({ "health": (at.as_nanos() / 1_000_000_000).to_string() })
}
