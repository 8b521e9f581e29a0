//! What the operator wants: which stream on which node, and what sites and nodes can do. A strict TOML file. Pure.

mod check;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::source::Source;
use suiro_strict::{Error, Refusal, Span, document};
use suiro_units::BitRate;

/// Longest file, in bytes.
pub const BYTES_MAX: usize = 256 << 10;
/// Sites at most.
pub const SITES_MAX: usize = 64;
/// Nodes at most.
pub const NODES_MAX: usize = 256;
/// Streams at most: their numbers are below.
pub const STREAMS_MAX: u32 = 64;
/// Destinations of a stream that is stored: a receiver has two legs.
pub const LEGS_MAX: usize = 2;

/// The desired state of a stream server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Desired {
    /// Whether the streams are on air. All start, and stop, at the same frame.
    pub running: bool,
    /// Whether the streams are stored where their `stored_by` says. All recordings start, and stop, at the same frame.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub storing: bool,
    /// The sites, by name.
    pub sites: BTreeMap<String, Site>,
    /// The nodes, by name: those that carry no stream are standbys.
    pub nodes: BTreeMap<String, Node>,
    /// The streams, by number.
    pub streams: BTreeMap<String, Stream>,
}

/// A site: a data centre with a storage of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// The rate of its uplink: the streams of its nodes must fit.
    pub uplink: BitRate,
    /// The numbers of the streams whose material its storage has.
    pub material: Vec<u32>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its site.
    pub site: String,
    /// The URL of its APIs, such as `http://192.0.2.1:8080`; without one, the registry must know the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub href: Option<String>,
    /// How many streams it can send at a time, 1 to 64.
    #[serde(default = "one")]
    pub streams: u32,
}

/// A stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// The node that sends it.
    pub node: String,
    /// Its rate as IP.
    pub rate: BitRate,
    /// Where it goes: a group's or a host's address and port.
    #[schemars(with = "String")]
    pub to: SocketAddrV4,
    /// The nodes that receive and store it while `storing` is true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stored_by: Vec<String>,
    /// Other nodes that send the same packets at the same time over other paths (SMPTE ST 2022-7): the receiver loses
    /// nothing as long as one of them arrives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub twins: Vec<Twin>,
}

/// A node that sends the same packets as a stream's node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Twin {
    /// The node.
    pub node: String,
    /// Where its packets go; where the stream goes unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub to: Option<SocketAddrV4>,
}

impl Stream {
    /// The nodes that send it, and where to: its own, then its twins.
    pub fn legs(&self) -> impl Iterator<Item = (&str, SocketAddrV4)> {
        let twins = self.twins.iter().map(|twin| (twin.node.as_str(), twin.to.unwrap_or(self.to)));
        std::iter::once((self.node.as_str(), self.to)).chain(twins)
    }

    /// Whether a node sends it.
    pub fn is_sent_by(&self, node: &str) -> bool {
        self.legs().any(|(own, _)| own == node)
    }

    /// Where it goes, each address once.
    pub fn destinations(&self) -> Vec<SocketAddrV4> {
        let mut all: Vec<SocketAddrV4> = Vec::new();
        for (_, to) in self.legs() {
            if !all.contains(&to) {
                all.push(to);
            }
        }
        all
    }

    /// Gives a node's part to another node.
    pub fn replace(&mut self, node: &str, by: &str) {
        let twins = self.twins.iter_mut().map(|twin| &mut twin.node);
        if let Some(own) = std::iter::once(&mut self.node).chain(twins).find(|own| *own == node) {
            by.clone_into(own);
        }
    }
}

const fn one() -> u32 {
    1
}

impl Desired {
    /// Reads a desired state whole; `file` is what errors call it.
    ///
    /// # Errors
    /// All that is wrong, with its lines.
    pub fn parse(text: &str, file: &str) -> Result<Self, Error> {
        let source = Source::new(file, text);
        if text.len() > BYTES_MAX {
            let refusal = Refusal::new(Span::from(None), format!("a file of {} bytes", text.len()));
            return Err(source.error(vec![refusal.expected(format!("{BYTES_MAX} bytes at most"))]));
        }
        let root = document::parse(text).map_err(|refusals| source.error(refusals))?;
        let desired: Self = document::read(root, "the desired state", &[])
            .map_err(|refusal| source.error(vec![refusal]))?;
        let refusals = desired.refusals();
        if refusals.is_empty() {
            return Ok(desired);
        }
        let root = document::parse(text).map_err(|refusals| source.error(refusals))?;
        let place = |refusal: Refusal| {
            refusal.at(|keys| {
                let path: Vec<&str> = keys.0.iter().map(String::as_str).collect();
                // What is missing has no place: its table has.
                let of = |count| document::place(&root, &path[..count]);
                Span::from((0..=path.len()).rev().find_map(of))
            })
        };
        Err(source.error(refusals.into_iter().map(place).collect()))
    }

    /// The state as a file that [`Self::parse`] reads.
    ///
    /// # Panics
    /// Never: all its types can be written as TOML.
    pub fn text(&self) -> String {
        toml::to_string(self).expect("a state is a table of tables")
    }

    /// The streams, by number.
    pub fn streams(&self) -> impl Iterator<Item = (u32, &Stream)> {
        self.streams.iter().filter_map(|(name, stream)| Some((name.parse().ok()?, stream)))
    }

    /// One stream.
    pub fn stream(&self, number: u32) -> Option<&Stream> {
        self.streams.get(&number.to_string())
    }

    /// The same with a stream on another node, checked.
    ///
    /// # Errors
    /// Why it cannot be there.
    pub fn moved(&self, stream: u32, node: &str) -> Result<Self, String> {
        let mut moved = self.clone();
        let Some(own) = moved.streams.get_mut(&stream.to_string()) else {
            let known: Vec<&str> = self.streams.keys().map(String::as_str).collect();
            return Err(format!("stream {stream}: expected one of {}", known.join(", ")));
        };
        node.clone_into(&mut own.node);
        moved.checked()
    }

    /// The same, started or stopped.
    pub fn running(&self, running: bool) -> Self {
        Self { running, ..self.clone() }
    }

    /// The same, stored or not.
    pub fn storing(&self, storing: bool) -> Self {
        Self { storing, ..self.clone() }
    }

    /// Itself, if nothing is wrong with it.
    ///
    /// # Errors
    /// Everything that is wrong, in words.
    pub fn checked(self) -> Result<Self, String> {
        let refusals: Vec<String> = self.refusals().iter().map(told).collect();
        if refusals.is_empty() { Ok(self) } else { Err(refusals.join("; ")) }
    }

    /// The bits per second that a site's nodes send.
    pub fn sent_by(&self, site: &str) -> u64 {
        let is_here = |node: &str| self.nodes.get(node).is_some_and(|node| node.site == site);
        let own = self.streams.values().flat_map(|stream| {
            let here = stream.legs().filter(|(node, _)| is_here(node));
            here.map(|_| stream.rate.as_bps())
        });
        own.fold(0, u64::saturating_add)
    }

    /// How many streams a node sends.
    pub fn on(&self, node: &str) -> usize {
        self.streams.values().filter(|stream| stream.is_sent_by(node)).count()
    }
}

/// A refusal in one line.
fn told(refusal: &Refusal) -> String {
    let place = refusal.place.0.join(".");
    let mut text = format!("{place}: {}", refusal.found);
    if let Some(expected) = &refusal.expected {
        text += &format!("; expected {expected}");
    }
    text
}
