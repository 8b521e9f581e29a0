//! The shapes of a topology, and the hosts and links they come to.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use suiro_strict::{Bounded, Bounds, Keys, bounds, bounds_of};
use suiro_units::BitRate;

use crate::document::{self, Node, in_text};
use crate::network::{Cell, Detour};
use crate::refusal::{Refusal, Span};

/// How many hosts a trial has: host n has the address 10.0.0.n.
pub(crate) const HOSTS: Bounds<usize> = Bounds::new(1, 254);

/// What a link's largest packet may be: from the least of IPv6 (RFC 8200 §5).
pub const MTU: Bounds<u16> = Bounds::new(1280, 9000);

/// What a plain cable may be limited to.
pub(crate) const CAPACITY: Bounds<BitRate> =
    Bounds::new(BitRate::from_mbps(10), BitRate::from_mbps(1_000_000));

const SIDE: Bounds<u8> = Bounds::new(1, 100);
const SIDE_NAMES: Bounds<usize> = Bounds::new(1, 100);

bounds! { Dumbbell { servers: SIDE, clients: SIDE, mtu: MTU } }
bounds! { Chain { links: Bounds::new(2, 2), mtu: MTU } }
bounds! { Bridge { clients: SIDE_NAMES, beyond: Bounds::new(0, 100), mtu: MTU } }
bounds! { Explicit { hosts: HOSTS, mtu: MTU } }

/// Hosts and links between them, in one of the shapes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    Dumbbell(Dumbbell),
    Chain(Chain),
    Bridge(Bridge),
    Explicit(Explicit),
}

/// Servers and clients, and one link between the two sides. One server and one client are connected
/// by the link directly. With more of either, plain cables connect them to two routers, `left` and
/// `right`, and the link is between the routers.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Dumbbell>)]
pub(crate) struct Dumbbell {
    /// How many servers: `server`, or `server1`, `server2`, … Default: 1.
    #[serde(default = "one")]
    pub servers: u8,
    /// How many clients: `client`, or `client1`, `client2`, … Default: 1.
    #[serde(default = "one")]
    pub clients: u8,
    /// The link between the sides: a name below `[links]`. Down is from servers to clients.
    pub link: String,
    /// Largest IP packet in bytes. Default: 1500.
    #[serde(default = "mtu")]
    pub mtu: u16,
}

/// `publisher`, `relay` and `viewer` in a row, with a link between neighbours.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Chain>)]
pub(crate) struct Chain {
    /// The links from publisher to relay and from relay to viewer: names below `[links]`. Down is
    /// towards the viewer.
    pub links: Vec<String>,
    /// Largest IP packet in bytes. Default: 1500.
    #[serde(default = "mtu")]
    pub mtu: u16,
}

/// Clients behind one `bridge`, which a link connects to a `router`. Packets from one client to another go through the
/// link to the router and back through it, so both directions of the link carry both directions of a connection.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Bridge>)]
pub(crate) struct Bridge {
    /// The clients' names. Default: `publisher` and `viewer`.
    #[serde(default = "publisher_and_viewer")]
    pub clients: Vec<String>,
    /// Hosts beyond the router, each on a cable of its own, such as a relay. Default: none.
    #[serde(default)]
    pub beyond: Vec<String>,
    /// The links of the cables to hosts beyond the router: `HOST = "LINK"`, a name below `[links]`. Down is towards
    /// the router. Default: nothing, plain cables.
    #[serde(default)]
    pub beyond_links: BTreeMap<String, String>,
    /// The link between router and bridge: a name below `[links]`. Down is towards the clients.
    pub link: String,
    /// Largest IP packet in bytes. Default: 1500.
    #[serde(default = "mtu")]
    pub mtu: u16,
}

/// Any hosts and any cables between them. Every host must be reachable.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Explicit>)]
pub(crate) struct Explicit {
    /// The hosts' names: lower-case letters, digits and `-`.
    pub hosts: Vec<String>,
    /// The cables between them. Default: none, where `[segments]` connect them.
    #[serde(default)]
    pub cables: Vec<Cable>,
    /// The hosts that are Ethernet switches, which join the hosts at their cables into one segment. They have no
    /// address and run no endpoint, and pass multicast to all cables. Their cables are plain. Default: none.
    #[serde(default)]
    pub switches: Vec<String>,
    /// Largest IP packet in bytes. Default: 1500.
    #[serde(default = "mtu")]
    pub mtu: u16,
}

/// A cable between two hosts.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cable {
    /// The host at the upper end, the server's side.
    pub from: String,
    /// The host at the lower end. Down is from `from` to `to`.
    pub to: String,
    /// The link that the cable emulates: a name below `[links]`. Default: nothing, a plain cable.
    #[serde(default)]
    pub link: Option<String>,
    /// Plain cables only: whether its ends offload work as network cards do, for rates that are too
    /// high for a CPU: checksums, gathering packets from pieces, receiving packets together.
    /// Segmentation offload is always off: every packet crosses on its own, with or without cards.
    /// Default: false.
    #[serde(default)]
    pub cards: bool,
    /// Plain cables only: its rate in each direction, at least 10 Mbit/s. Packets above it wait for up to 10 ms, and
    /// are dropped then. The kernel limits it, not the emulator, so that it may be many Gbit/s. Default: as much as the
    /// machine can.
    #[serde(default)]
    pub capacity: Option<BitRate>,
}

fn publisher_and_viewer() -> Vec<String> {
    ["publisher", "viewer"].map(str::to_owned).to_vec()
}

const fn one() -> u8 {
    1
}

const fn mtu() -> u16 {
    1500
}

/// Refuses a name that no host has.
pub(crate) fn no_host(place: Option<Range<usize>>, name: &str, hosts: &[String]) -> Refusal<Span> {
    let refusal = Refusal::new(place, format!("no host is named `{name}`"));
    refusal.instead(name, hosts.iter().map(String::as_str))
}

/// The hosts and cables of a shape.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wiring {
    pub hosts: Vec<String>,
    pub wires: Vec<Wire>,
    pub detours: Vec<Detour>,
    pub switches: Vec<String>,
    /// Those of the hosts that are hubs, which `[segments]` add.
    pub hubs: Vec<String>,
    /// The Wi-Fi and cellular cells, which `[segments]` add.
    pub cells: Vec<Cell>,
    pub mtu: u16,
}

/// A cable, and where in the scenario its link is named.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wire {
    pub cable: Cable,
    pub path: Vec<String>,
}

impl Shape {
    /// The values of `shape`.
    pub const SHAPES: [&str; 4] = ["dumbbell", "chain", "bridge", "explicit"];

    /// Reads `[topology]`.
    pub fn read(mut node: Node<'_>) -> Result<Self, Refusal<Span>> {
        const WHAT: &str = "[topology]";
        match document::kind(&mut node, "shape", WHAT, &Self::SHAPES)? {
            "dumbbell" => document::read(node, WHAT, &["shape"]).map(Self::Dumbbell),
            "chain" => document::read(node, WHAT, &["shape"]).map(Self::Chain),
            "bridge" => document::read(node, WHAT, &["shape"]).map(Self::Bridge),
            _ => document::read(node, WHAT, &["shape"]).map(Self::Explicit),
        }
    }

    fn bounded(&self) -> &dyn Bounded {
        match self {
            Self::Dumbbell(shape) => shape,
            Self::Chain(shape) => shape,
            Self::Bridge(shape) => shape,
            Self::Explicit(shape) => shape,
        }
    }

    /// Whether `[segments]` may add to it.
    pub const fn takes_segments(&self) -> bool {
        matches!(self, Self::Explicit(_))
    }

    /// Hosts and cables; what is wrong with them goes to `refusals`, but for hosts that cannot be reached. `topology` is
    /// the section, for places.
    pub fn wiring(&self, topology: &Node<'_>, refusals: &mut Vec<Refusal<Span>>) -> Wiring {
        let wiring = match self {
            Self::Dumbbell(shape) => shape.wiring(),
            Self::Chain(shape) => shape.wiring(),
            Self::Bridge(shape) => shape.wiring(topology, refusals),
            Self::Explicit(shape) => shape.wiring(topology, refusals),
        };
        let refused = self.bounded().out_of_bounds().into_iter();
        refusals.extend(refused.map(|refusal| in_text(topology, &[], refusal)));
        wiring
    }
}

impl Dumbbell {
    fn wiring(&self) -> Wiring {
        let path = vec!["link".to_owned()];
        let (servers, clients) = (named("server", self.servers), named("client", self.clients));
        if let ([server], [client]) = (servers.as_slice(), clients.as_slice()) {
            let wires = vec![Wire { cable: cable(server, client, Some(&self.link)), path }];
            let hosts = vec![server.clone(), client.clone()];
            return Wiring::new(hosts, wires, self.mtu);
        }
        let plain = |cable| Wire { cable, path: Vec::new() };
        let mut wires: Vec<Wire> =
            servers.iter().map(|server| plain(cable(server, "left", None))).collect();
        wires.push(Wire { cable: cable("left", "right", Some(&self.link)), path });
        wires.extend(clients.iter().map(|client| plain(cable("right", client, None))));
        let routers = ["left".to_owned(), "right".to_owned()];
        let hosts = servers.into_iter().chain(routers).chain(clients).collect();
        Wiring::new(hosts, wires, self.mtu)
    }
}

/// `server`, or `server1`, `server2`, … if there are more.
fn named(what: &str, count: u8) -> Vec<String> {
    match count {
        1 => vec![what.to_owned()],
        _ => (1..=count).map(|n| format!("{what}{n}")).collect(),
    }
}

fn cable(from: &str, to: &str, link: Option<&str>) -> Cable {
    let link = link.map(str::to_owned);
    Cable { from: from.to_owned(), to: to.to_owned(), link, cards: false, capacity: None }
}

impl Chain {
    fn wiring(&self) -> Wiring {
        let hosts = ["publisher", "relay", "viewer"].map(str::to_owned);
        let wire = |(n, link): (usize, &String)| Wire {
            cable: cable(&hosts[n], &hosts[n + 1], Some(link)),
            path: vec!["links".to_owned(), n.to_string()],
        };
        let wires = self.links.iter().take(2).enumerate().map(wire).collect();
        Wiring::new(hosts.to_vec(), wires, self.mtu)
    }
}

impl Bridge {
    fn wiring(&self, topology: &Node<'_>, refusals: &mut Vec<Refusal<Span>>) -> Wiring {
        let [bridge, router] = ["bridge", "router"].map(str::to_owned);
        check_host_names("clients", &self.clients, topology, refusals);
        let ours = [bridge.clone(), router.clone()];
        let taken: Vec<String> = self.clients.iter().chain(&ours).cloned().collect();
        check_host_names("beyond", &self.beyond, topology, refusals);
        for (key, names, taken) in
            [("clients", &self.clients, &ours[..]), ("beyond", &self.beyond, &taken[..])]
        {
            for (n, name) in names.iter().enumerate().filter(|(_, name)| taken.contains(name)) {
                let place = document::place(topology, &[key, &n.to_string()]);
                let refusal = Refusal::new(place, format!("the host `{name}` is there already"));
                refusals.push(refusal.hint("give each host its own name"));
            }
        }
        let plain = |from: &str, to: &str| Wire { cable: cable(from, to, None), path: Vec::new() };
        for host in self.beyond_links.keys().filter(|host| !self.beyond.contains(host)) {
            let place = document::place(topology, &["beyond_links", host]);
            let refusal = Refusal::new(place, format!("`{host}` is not beyond the router"));
            refusals.push(refusal.instead(host, self.beyond.iter().map(String::as_str)));
        }
        let path = vec!["link".to_owned()];
        let mut wires: Vec<Wire> =
            self.clients.iter().map(|client| plain(&bridge, client)).collect();
        wires.push(Wire { cable: cable(&router, &bridge, Some(&self.link)), path });
        wires.extend(self.beyond.iter().map(|host| {
            let link = self.beyond_links.get(host).map(String::as_str);
            let path = vec!["beyond_links".to_owned(), host.clone()];
            Wire { cable: cable(host, &router, link), path }
        }));
        let detours = vec![Detour { host: bridge.clone(), link: self.link.clone() }];
        let hosts = self.clients.iter().cloned().chain([bridge, router]);
        let hosts = hosts.chain(self.beyond.iter().cloned()).collect();
        Wiring { detours, ..Wiring::new(hosts, wires, self.mtu) }
    }
}

impl Explicit {
    fn wiring(&self, topology: &Node<'_>, refusals: &mut Vec<Refusal<Span>>) -> Wiring {
        check_host_names("hosts", &self.hosts, topology, refusals);
        self.check_cables(topology, refusals);
        let wire = |(n, cable): (usize, &Cable)| Wire {
            cable: cable.clone(),
            path: ["cables", &n.to_string(), "link"].map(str::to_owned).to_vec(),
        };
        let wires = self.cables.iter().enumerate().map(wire).collect();
        self.check_switches(topology, refusals);
        let (hosts, switches) = (self.hosts.clone(), self.switches.clone());
        Wiring { switches, ..Wiring::new(hosts, wires, self.mtu) }
    }

    fn check_cables(&self, topology: &Node<'_>, refusals: &mut Vec<Refusal<Span>>) {
        let mut seen = BTreeSet::new();
        for (n, cable) in self.cables.iter().enumerate() {
            let n = n.to_string();
            cable.check_capacity(&n, topology, refusals);
            let Cable { from, to, link, cards, .. } = cable;
            if *cards && link.is_some() {
                let place = document::place(topology, &["cables", &n, "cards"]);
                let refusal = Refusal::new(place, "`cards` on a cable with a link".to_owned());
                refusals.push(refusal.hint(
                    "remove one of the two: `cards` is for plain cables, an emulated link has no cards",
                ));
            }
            for (key, host) in [("from", from), ("to", to)] {
                if !self.hosts.contains(host) {
                    let place = document::place(topology, &["cables", &n, key]);
                    refusals.push(no_host(place, host, &self.hosts));
                }
            }
            let place = || document::place(topology, &["cables", &n]);
            if from == to {
                let refusal = Refusal::new(place(), format!("a cable from `{from}` to itself"));
                refusals.push(refusal.expected("two hosts"));
            }
            if !seen.insert((from.min(to), from.max(to))) {
                let message = format!("a second cable between `{from}` and `{to}`");
                refusals.push(
                    Refusal::new(place(), message)
                        .hint("put another host in the middle of one of them"),
                );
            }
        }
    }

    /// Switches are hosts, each once, with plain cables, and not all of the hosts.
    fn check_switches(&self, topology: &Node<'_>, refusals: &mut Vec<Refusal<Span>>) {
        for (n, switch) in self.switches.iter().enumerate() {
            let place = || document::place(topology, &["switches", &n.to_string()]);
            if !self.hosts.contains(switch) {
                refusals.push(no_host(place(), switch, &self.hosts));
            }
            if self.switches[..n].contains(switch) {
                let refusal =
                    Refusal::new(place(), format!("the switch `{switch}` is listed twice"));
                refusals.push(refusal.expected("each switch once"));
            }
            let mut own =
                self.cables.iter().filter(|cable| [&cable.from, &cable.to].contains(&switch));
            if let Some(link) = own.find_map(|cable| cable.link.as_ref()) {
                let message = format!("the switch `{switch}` has a cable with the link `{link}`");
                let hint =
                    "put a host between them: an emulated link carries IP, a switch also ARP";
                refusals.push(Refusal::new(place(), message).hint(hint));
            }
        }
    }
}

impl Wiring {
    /// Hosts and cables, and nothing else.
    fn new(hosts: Vec<String>, wires: Vec<Wire>, mtu: u16) -> Self {
        let (detours, switches, hubs, cells) = (vec![], vec![], vec![], vec![]);
        Self { hosts, wires, detours, switches, hubs, cells, mtu }
    }

    /// Refuses a host that cannot be reached from the first one; only where all cables lead to hosts that there are.
    pub fn check_reach(&self, topology: &Node<'_>, refusals: &mut Vec<Refusal<Span>>) {
        let cables = || self.wires.iter().map(|wire| &wire.cable);
        if !cables()
            .all(|cable| [&cable.from, &cable.to].iter().all(|end| self.hosts.contains(end)))
        {
            return;
        }
        if let Some(island) = self.island() {
            let place = |key: &str| document::place(topology, &[key]);
            let place = place("cables").or_else(|| place("hosts"));
            let message = format!("no cable leads from `{}` to `{island}`", self.hosts[0]);
            refusals.push(Refusal::new(place, message).hint(format!("add a cable to `{island}`")));
        }
    }

    /// A host that cannot be reached from the first one.
    fn island(&self) -> Option<&str> {
        let mut reached: BTreeSet<&str> =
            self.hosts.first().into_iter().map(String::as_str).collect();
        // Each round reaches at least one more host, or all that can be.
        for _ in 0..self.hosts.len() {
            for Cable { from, to, .. } in self.wires.iter().map(|wire| &wire.cable) {
                if reached.contains(from.as_str()) || reached.contains(to.as_str()) {
                    reached.extend([from.as_str(), to.as_str()]);
                }
            }
        }
        self.hosts.iter().map(String::as_str).find(|host| !reached.contains(host))
    }
}

impl Cable {
    fn check_capacity(&self, n: &str, topology: &Node<'_>, refusals: &mut Vec<Refusal<Span>>) {
        let Some(capacity) = self.capacity else { return };
        let place = || document::place(topology, &["cables", n, "capacity"]);
        if self.link.is_some() {
            let refusal = Refusal::new(place(), "`capacity` on a cable with a link".to_owned());
            refusals.push(refusal.hint(
                "remove one of the two: `capacity` is for plain cables, a link has its `rate`",
            ));
        }
        if let Err(refusal) = CAPACITY.check(Keys::of("capacity"), capacity) {
            refusals.push(in_text(topology, &["cables", n], refusal));
        }
    }
}

/// Names of hosts, listed below `key`.
fn check_host_names(
    key: &str,
    names: &[String],
    topology: &Node<'_>,
    refusals: &mut Vec<Refusal<Span>>,
) {
    let mut seen = BTreeSet::new();
    for (n, host) in names.iter().enumerate() {
        let place = || document::place(topology, &[key, &n.to_string()]);
        if !is_host_name(host) {
            refusals.push(
                Refusal::new(place(), format!("`{host}` is not a valid host name"))
                    .expected("a lower-case letter, then letters, digits or `-`; at most 32"),
            );
        }
        if !seen.insert(host) {
            let refusal = Refusal::new(place(), format!("the host `{host}` is listed twice"));
            refusals.push(refusal.hint("give each host its own name"));
        }
    }
}

/// A label of a domain name (RFC 1123 §2.1), lower case, short enough for names of namespaces.
fn is_host_name(name: &str) -> bool {
    name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && !name.ends_with('-')
        && name != "localhost"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wiring(text: &str) -> (Wiring, Vec<String>) {
        let node = document::parse(text).unwrap();
        let mut refusals = Vec::new();
        let wiring = Shape::read(node.clone()).unwrap().wiring(&node, &mut refusals);
        wiring.check_reach(&node, &mut refusals);
        (wiring, refusals.into_iter().map(|refusal| refusal.found).collect())
    }

    fn ends(wiring: &Wiring) -> Vec<(&str, &str, Option<&str>)> {
        let cables = wiring.wires.iter().map(|wire| &wire.cable);
        cables.map(|c| (c.from.as_str(), c.to.as_str(), c.link.as_deref())).collect()
    }

    #[test]
    fn a_dumbbell_of_two_is_one_link() {
        let (wiring, refusals) = wiring("shape = 'dumbbell'\nlink = 'x'");
        assert_eq!(wiring.hosts, ["server", "client"]);
        assert_eq!(ends(&wiring), [("server", "client", Some("x"))]);
        assert!(refusals.is_empty() && wiring.mtu == 1500);
    }

    #[test]
    fn a_dumbbell_of_more_has_routers() {
        let (wiring, _) = wiring("shape = 'dumbbell'\nlink = 'x'\nclients = 2");
        assert_eq!(wiring.hosts, ["server", "left", "right", "client1", "client2"]);
        let expected = [
            ("server", "left", None),
            ("left", "right", Some("x")),
            ("right", "client1", None),
            ("right", "client2", None),
        ];
        assert_eq!(ends(&wiring), expected);
    }

    #[test]
    fn a_chain_has_two_links() {
        let (wiring, _) = wiring("shape = 'chain'\nlinks = ['a', 'b']\nmtu = 9000");
        let expected = [("publisher", "relay", Some("a")), ("relay", "viewer", Some("b"))];
        assert_eq!(ends(&wiring), expected);
        assert_eq!(wiring.mtu, 9000);
    }

    #[test]
    fn clients_behind_a_bridge_meet_at_the_router() {
        let (wiring, refusals) = wiring("shape = 'bridge'\nlink = 'x'\nbeyond = ['relay']");
        assert_eq!(wiring.hosts, ["publisher", "viewer", "bridge", "router", "relay"]);
        let expected = [
            ("bridge", "publisher", None),
            ("bridge", "viewer", None),
            ("router", "bridge", Some("x")),
            ("relay", "router", None),
        ];
        assert_eq!(ends(&wiring), expected);
        assert_eq!(wiring.detours, [Detour { host: "bridge".into(), link: "x".into() }]);
        assert!(refusals.is_empty(), "{refusals:?}");
    }

    #[test]
    fn cables_beyond_the_router_may_have_links() {
        let text =
            "shape = 'bridge'\nlink = 'x'\nbeyond = ['relay']\nbeyond_links = { relay = 'wan' }";
        let (good, refusals) = wiring(text);
        assert_eq!(ends(&good).last(), Some(&("relay", "router", Some("wan"))));
        assert!(refusals.is_empty(), "{refusals:?}");

        let (_, refusals) = wiring(&text.replace("relay =", "rely ="));
        assert_eq!(refusals, ["`rely` is not beyond the router"]);
    }

    #[test]
    fn names_of_a_bridge_are_its_own() {
        let text = "shape = 'bridge'\nlink = 'x'\nclients = ['a', 'router']\nbeyond = ['a', 'B']";
        let (_, refusals) = wiring(text);
        let expected = [
            "`B` is not a valid host name",
            "the host `router` is there already",
            "the host `a` is there already",
        ];
        assert_eq!(refusals, expected);
    }

    #[test]
    fn islands_loops_and_doubles_are_refused() {
        let (_, refusals) = wiring(
            "shape = 'explicit'\nhosts = ['a', 'b', 'c', 'C', 'a']
             cables = [{from='a', to='b', cards=true}, {from='b', to='a'}, {from='c', to='c'},
                       {from='a', to='C', cards=true, link='x'}]",
        );
        assert_eq!(
            refusals,
            [
                "`C` is not a valid host name",
                "the host `a` is listed twice",
                "a second cable between `b` and `a`",
                "a cable from `c` to itself",
                "`cards` on a cable with a link",
                "no cable leads from `a` to `c`",
            ]
        );
    }
}
