//! What cannot be wanted: each refusal has the key and the numbers.

use std::collections::BTreeMap;

use suiro_strict::{Keys, Refusal};
use suiro_units::BitRate;

use super::{Desired, LEGS_MAX, NODES_MAX, Node, SITES_MAX, STREAMS_MAX, Stream};

/// The streams that a node can send at most.
const PER_NODE_MAX: u32 = 64;

impl Desired {
    /// All that is wrong.
    pub(super) fn refusals(&self) -> Vec<Refusal> {
        let mut found = self.sizes();
        found.extend(self.names());
        for (name, site) in &self.sites {
            let unknown =
                site.material.iter().enumerate().find(|(_, stream)| **stream >= STREAMS_MAX);
            if let Some((at, stream)) = unknown {
                let keys = keys(&["sites", name, "material", &at.to_string()]);
                found.push(Refusal::new(keys, format!("stream {stream}")).expected(number()));
            }
        }
        for (name, node) in &self.nodes {
            found.extend(self.node(name, node));
        }
        for (name, stream) in &self.streams {
            found.extend(self.one_stream(name, stream));
        }
        // Sums say nothing as long as names are wrong.
        if found.is_empty() {
            found.extend(self.room());
        }
        found
    }

    fn sizes(&self) -> Vec<Refusal> {
        let sizes = [
            ("sites", self.sites.len(), SITES_MAX),
            ("nodes", self.nodes.len(), NODES_MAX),
            ("streams", self.streams.len(), STREAMS_MAX as usize),
        ];
        let over = sizes.into_iter().filter(|(_, count, most)| count > most);
        let refusal = |(key, count, most): (&str, usize, usize)| {
            Refusal::key(key, format!("{count} of them")).expected(format!("{most} at most"))
        };
        over.map(refusal).collect()
    }

    fn names(&self) -> Vec<Refusal> {
        let of = |table: &'static str, names: Vec<&String>| {
            let wrong = names.into_iter().filter(|name| !is_name(name));
            let refusal = move |name: &String| {
                let shown: String = name.chars().take(80).collect();
                Refusal::new(keys(&[table, name]), format!("the name {shown:?}"))
                    .expected("1 to 63 of the characters a-z 0-9 -, as of a host")
            };
            wrong.map(refusal).collect::<Vec<_>>()
        };
        let mut found = of("sites", self.sites.keys().collect());
        found.extend(of("nodes", self.nodes.keys().collect()));
        found
    }

    fn node(&self, name: &str, node: &Node) -> Vec<Refusal> {
        let mut found = Vec::new();
        if !self.sites.contains_key(&node.site) {
            let refusal = Refusal::new(
                keys(&["nodes", name, "site"]),
                format!("there is no site {:?}", node.site),
            );
            found.push(refusal.instead(&node.site, self.sites.keys().map(String::as_str)));
        }
        if !(1..=PER_NODE_MAX).contains(&node.streams) {
            let refusal = Refusal::new(
                keys(&["nodes", name, "streams"]),
                format!("{} streams", node.streams),
            );
            found.push(refusal.expected(format!("1 to {PER_NODE_MAX}")));
        }
        if let Some(href) = &node.href
            && let Err(expected) = crate::client::Base::parse(href)
        {
            let refusal = Refusal::new(keys(&["nodes", name, "href"]), format!("{href:?}"));
            found.push(refusal.expected(expected));
        }
        found
    }

    fn one_stream(&self, name: &str, stream: &Stream) -> Vec<Refusal> {
        let mut found = Vec::new();
        let parsed = name
            .parse()
            .ok()
            .filter(|number: &u32| *number < STREAMS_MAX && number.to_string() == name);
        let Some(number) = parsed else {
            let shown: String = name.chars().take(80).collect();
            return vec![
                Refusal::new(keys(&["streams", name]), format!("stream {shown:?}"))
                    .expected(self::number()),
            ];
        };
        found.extend(self.sender(name, number, &stream.node, &["node"]));
        for (at, twin) in stream.twins.iter().enumerate() {
            found.extend(self.sender(
                name,
                number,
                &twin.node,
                &["twins", &at.to_string(), "node"],
            ));
        }
        found.extend(self.apart(name, stream));
        found.extend(self.destinations(name, number, stream));
        found.extend(self.stores(name, stream));
        if stream.rate.as_bps() == 0 {
            let at = keys(&["streams", name, "rate"]);
            found.push(Refusal::new(at, "0 bit/s").expected("more than 0"));
        }
        found
    }

    fn no_node(&self, at: Keys, node: &str) -> Refusal {
        let refusal = Refusal::new(at, format!("there is no node {node:?}"));
        refusal.instead(node, self.nodes.keys().map(String::as_str))
    }

    /// A node that shall send a stream: it must be known, and have the material.
    fn sender(&self, name: &str, number: u32, node: &str, key: &[&str]) -> Option<Refusal> {
        let at = keys(&[&["streams", name], key].concat());
        let Some(own) = self.nodes.get(node) else { return Some(self.no_node(at, node)) };
        self.sites.get(&own.site).filter(|site| !site.material.contains(&number))?;
        let has: Vec<&str> = self.having(number).collect();
        let hint = match has[..] {
            [] => "no site has it".to_owned(),
            _ => format!("sites that have it: {}", has.join(", ")),
        };
        let text = format!(
            "node {node:?} is at site {:?}, which does not have the material of stream {number}",
            own.site
        );
        Some(Refusal::new(at, text).hint(hint))
    }

    /// A twin is another node than the others that send the stream.
    fn apart(&self, name: &str, stream: &Stream) -> Option<Refusal> {
        let nodes: Vec<&str> = stream.legs().map(|(node, _)| node).collect();
        let (at, node) =
            nodes.iter().enumerate().find(|(at, node)| nodes[..*at].contains(*node))?;
        let place = keys(&["streams", name, "twins", &(at - 1).to_string(), "node"]);
        let text = format!("node {node:?} sends stream {name} already");
        Some(Refusal::new(place, text).expected("another node, whose packets take another path"))
    }

    /// Where a stream and its twins go: to hosts or groups that no other stream goes to.
    fn destinations(&self, name: &str, number: u32, stream: &Stream) -> Vec<Refusal> {
        let mut found = Vec::new();
        for (leg, (_, to)) in stream.legs().enumerate() {
            let place = || match leg.checked_sub(1) {
                None => keys(&["streams", name, "to"]),
                Some(twin) => keys(&["streams", name, "twins", &twin.to_string(), "to"]),
            };
            if to.port() == 0 || to.ip().is_unspecified() || to.ip().is_broadcast() {
                let refusal = Refusal::new(place(), to.to_string());
                found.push(refusal.expected("the address and port of a host or group"));
            }
            let goes = |other: &Stream| other.legs().any(|(_, other)| other == to);
            let mut earlier = self.streams.range(..name.to_owned());
            if let Some((other, _)) = earlier.find(|(_, other)| goes(other)) {
                let text = format!("streams {other} and {number} both go to {to}");
                let refusal = Refusal::new(place(), text);
                found.push(refusal.expected("one stream for each destination"));
            }
        }
        found
    }

    /// The nodes that store a stream.
    fn stores(&self, name: &str, stream: &Stream) -> Vec<Refusal> {
        let mut found = Vec::new();
        for (at, node) in stream.stored_by.iter().enumerate() {
            let place = || keys(&["streams", name, "stored_by", &at.to_string()]);
            if !self.nodes.contains_key(node) {
                found.push(self.no_node(place(), node));
            }
            if stream.stored_by[..at].contains(node) {
                let refusal = Refusal::new(place(), format!("node {node:?} is named twice"));
                found.push(refusal.expected("each node once"));
            }
        }
        let legs = stream.destinations().len();
        if !stream.stored_by.is_empty() && legs > LEGS_MAX {
            let refusal = Refusal::new(
                keys(&["streams", name, "stored_by"]),
                format!("stream {name} goes to {legs} addresses"),
            );
            found.push(refusal.expected(format!("{LEGS_MAX} at most if it is stored")));
        }
        found
    }

    /// The sites that have a stream's material.
    pub fn having(&self, stream: u32) -> impl Iterator<Item = &str> {
        let own = self.sites.iter().filter(move |(_, site)| site.material.contains(&stream));
        own.map(|(name, _)| name.as_str())
    }

    /// Nodes and uplinks that are too small.
    fn room(&self) -> Vec<Refusal> {
        let mut found = Vec::new();
        let places: u32 = self.nodes.values().map(|node| node.streams).sum();
        let streams = self.streams.len();
        let twins: usize = self.streams.values().map(|stream| stream.twins.len()).sum();
        if streams + twins > places as usize {
            let twins = if twins == 0 { String::new() } else { format!(" and {twins} twins") };
            let text = format!("{streams} streams{twins}, but the nodes can send {places}");
            found.push(Refusal::key("streams", text).hint("add nodes, or remove streams"));
        }
        let mut on: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, stream) in &self.streams {
            stream.legs().for_each(|(node, _)| on.entry(node).or_default().push(name));
        }
        for (node, names) in on {
            let most = self.nodes[node].streams;
            if names.len() > most as usize {
                let text = format!("streams {} on one node", names.join(", "));
                let refusal = Refusal::new(keys(&["nodes", node]), text);
                found.push(
                    refusal.expected(format!("{most} at most, the value of its key `streams`")),
                );
            }
        }
        for (name, site) in &self.sites {
            let sent = self.sent_by(name);
            if sent > site.uplink.as_bps() {
                let text = format!("its streams need {}", BitRate::from_bps(sent));
                let refusal = Refusal::new(keys(&["sites", name, "uplink"]), text);
                found.push(refusal.expected(format!("{} at most", site.uplink)));
            }
        }
        found
    }
}

fn keys(path: &[&str]) -> Keys {
    Keys(path.iter().map(|key| (*key).to_owned()).collect())
}

fn number() -> String {
    format!("a number, 0 to {}", STREAMS_MAX - 1)
}

fn is_name(name: &str) -> bool {
    let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(fits)
}
