//! A network of hosts: cables between them, addresses, routes, names.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

use crate::ip::{self, Family};
use crate::{Host, HostsError, names};

/// Smallest MTU of a cable: the minimum for IPv6 (RFC 8200 §5).
pub const MTU_MIN: u32 = 1280;
/// Largest MTU of a cable: a jumbo frame.
pub const MTU_MAX: u32 = 9000;
/// Most hosts in a network: they share 10.0.0.0/24.
const HOSTS_MAX: usize = 254;

/// IPv4 address of host number `index + 1`: `10.0.0.n`.
pub fn ipv4(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, u8::try_from(index + 1).unwrap_or(u8::MAX))
}

/// IPv6 address of host number `index + 1`: `fd00::n`, with *n* in hexadecimal.
pub fn ipv6(index: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::try_from(index + 1).unwrap_or(u16::MAX))
}

/// What a network consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkSpec {
    /// Names of the hosts, 1 to 254, all different; letters, digits, `-` and `.` only. Host numbers
    /// *n* count from 1.
    pub hosts: Vec<String>,
    /// The cables between them.
    pub cables: Vec<CableSpec>,
    /// Where packets do not take the shortest path.
    pub detours: Vec<Detour>,
}

/// A host that passes on by one cable whatever comes to it by another, also what is meant for its neighbours: a bridge
/// whose router switches between its clients. What comes by that cable takes the shortest path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detour {
    /// Position in [`NetworkSpec::hosts`].
    pub host: usize,
    /// Position in [`NetworkSpec::cables`] of a cable of this host.
    pub cable: usize,
}

/// A cable between two hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CableSpec {
    /// Position in [`NetworkSpec::hosts`] of its first end.
    pub from: usize,
    /// Position in [`NetworkSpec::hosts`] of its second end.
    pub to: usize,
    /// Largest IP packet in bytes, [`MTU_MIN`] to [`MTU_MAX`].
    pub mtu: u32,
    /// Whether it connects the hosts directly or through the emulator.
    pub kind: CableKind,
}

/// What carries packets between a cable's ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CableKind {
    /// One veth pair without offloads: every packet is complete and handed over on its own.
    Plain,
    /// One veth pair whose ends keep a network card's offloads ([`Host::offloads_of_a_card`]), for
    /// rates at which the processor cannot compute checksums. Every packet still crosses on its
    /// own.
    Card,
    /// A veth pair from each host to the wire namespace; nothing passes between the two until an
    /// emulator carries it.
    Emulated,
}

/// A link for an emulator to carry: two interfaces in the wire namespace, one for each host.
#[derive(Debug, Clone)]
pub struct EmulatedLink {
    /// Position of its cable in [`NetworkSpec::cables`].
    pub cable: usize,
    /// The end at the host `from`.
    pub from: LinkEnd,
    /// The end at the host `to`.
    pub to: LinkEnd,
    /// Largest IP packet in bytes.
    pub mtu: u32,
}

/// One end of an emulated link: a veth pair between a host and the wire namespace.
#[derive(Debug, Clone)]
pub struct LinkEnd {
    /// Position of the host in [`NetworkSpec::hosts`]; its addresses are [`ipv4`] and [`ipv6`] of
    /// it.
    pub index: usize,
    /// The host.
    pub host: Host,
    /// The interface in the host.
    pub host_interface: String,
    /// The interface in the wire namespace.
    pub wire_interface: String,
}

/// Hosts and their cables. Dropping it removes them, unless processes or sockets still live there.
#[derive(Debug)]
pub struct Network {
    hosts: Vec<Host>,
    wire: Host,
    links: Vec<EmulatedLink>,
    /// Per cable: the host and the interface of each end.
    ends: Vec<[(usize, String); 2]>,
}

impl Network {
    /// Builds everything. Call it once, in a [`Sandbox`](crate::Sandbox).
    pub fn build(spec: &NetworkSpec) -> Result<Self, HostsError> {
        check(spec)?;
        let hosts = spec.hosts.iter().map(|name| Host::new(name)).collect::<Result<Vec<_>, _>>()?;
        let wire = Host::new("wire")?;
        // The emulator's interfaces carry frames and have no IP of their own.
        wire.set("net.ipv6.conf.default.disable_ipv6", "1")?;
        let plan = Plan::of(spec);
        let inherited: Vec<_> = hosts.iter().map(Host::namespace).collect();
        let place = |end: &End| match end.host {
            Some(host) => format!("netns /proc/self/fd/{}", inherited[host].as_raw_fd()),
            None => String::new(),
        };
        let lines: Vec<_> = plan.pairs.iter().map(|pair| pair.line(place)).collect();
        if !lines.is_empty() {
            ip::batch(&wire, Family::Any, &lines, &inherited)?;
        }
        let each_end = |act: &dyn Fn(&Host, &str) -> Result<(), HostsError>| {
            let mut ends = plan.pairs.iter().flat_map(|pair| &pair.ends);
            ends.try_for_each(|end| act(end.host.map_or(&wire, |at| &hosts[at]), &end.interface))
        };
        for pair in &plan.pairs {
            for end in &pair.ends {
                let host = end.host.map_or(&wire, |at| &hosts[at]);
                match pair.kind {
                    CableKind::Card => host.offloads_of_a_card(&end.interface)?,
                    CableKind::Plain | CableKind::Emulated => host.offloads_off(&end.interface)?,
                }
            }
        }
        for (index, host) in hosts.iter().enumerate() {
            // A router at the end of a detour sends packets back the way they came.
            let returns = spec.detours.iter().any(|detour| {
                let cable = &spec.cables[detour.cable];
                [cable.from, cable.to].contains(&index)
            });
            if returns || plan.interfaces(spec, index).count() > 1 {
                host.set("net.ipv4.ip_forward", "1")?;
                host.set("net.ipv6.conf.all.forwarding", "1")?;
            }
            host.ip(&plan.host_lines(spec, index))?;
            for family in [Family::V4, Family::V6] {
                let lines = plan.detour_lines(spec, index, family);
                if !lines.is_empty() {
                    ip::batch(host, family, &lines, &[])?;
                }
            }
        }
        let ups = plan.pairs.iter().flat_map(|pair| &pair.ends).filter(|end| end.host.is_none());
        let ups: Vec<_> = ups.map(|end| format!("link set {} up", end.interface)).collect();
        if !ups.is_empty() {
            wire.ip(&ups)?;
        }
        each_end(&|host, interface| host.settle(interface))?;
        let links = plan.links.iter().map(|laid| laid.link(spec, &hosts)).collect();
        let ends = spec.cables.iter().zip(plan.ends);
        let ends = ends
            .map(|(cable, [from, to])| [(cable.from, from.name), (cable.to, to.name)])
            .collect();
        Ok(Self { hosts, wire, links, ends })
    }

    /// The hosts, in the order of the specification.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The host with that name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name() == name)
    }

    /// The namespace of the emulators.
    pub fn wire(&self) -> &Host {
        &self.wire
    }

    /// The emulated links, in the order of their cables.
    pub fn links(&self) -> &[EmulatedLink] {
        &self.links
    }

    /// Which offloads each end of a cable has on ([`Host::offloads`]), read from the kernel; the
    /// end at `from` first. `cable` is its position in [`NetworkSpec::cables`].
    ///
    /// # Errors
    /// If there is no such cable, or the kernel cannot be asked.
    pub fn offloads(&self, cable: usize) -> Result<[Vec<String>; 2], HostsError> {
        let of = |(host, interface): (&Host, &str)| host.offloads(interface);
        Ok([of(self.end(cable, 0)?)?, of(self.end(cable, 1)?)?])
    }

    /// The host at one end of a cable and the name of its interface. `cable` is its position in
    /// [`NetworkSpec::cables`], `end` is 0 for the end at `from` and 1 for that at `to`.
    ///
    /// # Errors
    /// If there is no such cable or end.
    pub fn end(&self, cable: usize, end: usize) -> Result<(&Host, &str), HostsError> {
        let none = || HostsError::Spec(format!("there is no cable {}", cable + 1));
        let ends = self.ends.get(cable).ok_or_else(none)?;
        let none = || HostsError::Spec(format!("a cable has no end {end}, only 0 and 1"));
        let (host, interface) = ends.get(end).ok_or_else(none)?;
        Ok((&self.hosts[*host], interface))
    }

    /// Publishes the hosts' names to this process and its children in a private /etc/hosts. Call it
    /// once, early, in a [`Sandbox`](crate::Sandbox), never outside one.
    pub fn publish_names(&self) -> Result<(), HostsError> {
        names::replace_etc_hosts(&self.etc_hosts())
    }

    /// What [`publish_names`](Self::publish_names) writes to /etc/hosts.
    pub fn etc_hosts(&self) -> String {
        let mut text = String::from("127.0.0.1 localhost\n::1 localhost ip6-localhost\n");
        for (index, host) in self.hosts.iter().enumerate() {
            let name = host.name();
            writeln!(text, "{} {name}\n{} {name}", ipv4(index), ipv6(index))
                .expect("writing to a string cannot fail");
        }
        text
    }
}

fn check(spec: &NetworkSpec) -> Result<(), HostsError> {
    let refuse = |problem: String| Err(HostsError::Spec(problem));
    if spec.hosts.is_empty() || spec.hosts.len() > HOSTS_MAX {
        return refuse(format!("a network has 1 to {HOSTS_MAX} hosts, found {}", spec.hosts.len()));
    }
    for (index, name) in spec.hosts.iter().enumerate() {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        if name.is_empty() || name.len() > 63 || !name.chars().all(plain) {
            return refuse(format!(
                "`{name}` is not a host name; use 1 to 63 letters, digits, `-` and `.`"
            ));
        }
        if name == "localhost" || spec.hosts[..index].contains(name) {
            return refuse(format!("the host name `{name}` is taken"));
        }
    }
    for (index, cable) in spec.cables.iter().enumerate() {
        let of = format!("cable {}", index + 1);
        if cable.from >= spec.hosts.len() || cable.to >= spec.hosts.len() {
            return refuse(format!("{of}: one end is at a host that does not exist"));
        }
        if cable.from == cable.to {
            return refuse(format!("{of}: both ends are at {}", spec.hosts[cable.from]));
        }
        if !(MTU_MIN..=MTU_MAX).contains(&cable.mtu) {
            return refuse(format!(
                "{of}: expected an MTU from {MTU_MIN} to {MTU_MAX} bytes, found {}",
                cable.mtu
            ));
        }
    }
    for Detour { host, cable } in &spec.detours {
        let ends = spec.cables.get(*cable).map(|cable| [cable.from, cable.to]);
        if !ends.is_some_and(|ends| ends.contains(host)) {
            return refuse(format!(
                "a detour by cable {}: host {} has no such cable",
                cable + 1,
                host + 1
            ));
        }
    }
    Ok(())
}

/// Routing table of detours; the kernel's own are 253 to 255.
const DETOUR_TABLE: u8 = 100;

/// Interfaces, MAC addresses and routes, planned before anything is made.
struct Plan {
    pairs: Vec<Pair>,
    links: Vec<Laid>,
    /// Per cable: the interface at its `from` and at its `to`.
    ends: Vec<[Interface; 2]>,
    /// Per host and destination: the cable to take and the next host.
    routes: Vec<BTreeMap<usize, Hop>>,
}

/// An interface of a host.
#[derive(Clone)]
struct Interface {
    name: String,
    mac: String,
}

/// An emulated cable: the interfaces at `from` and at `to`.
struct Laid {
    cable: usize,
    host_interfaces: [String; 2],
    wire_interfaces: [String; 2],
}

impl Laid {
    fn link(&self, spec: &NetworkSpec, hosts: &[Host]) -> EmulatedLink {
        let cable = &spec.cables[self.cable];
        let end = |index: usize, side: usize| LinkEnd {
            index,
            host: hosts[index].clone(),
            host_interface: self.host_interfaces[side].clone(),
            wire_interface: self.wire_interfaces[side].clone(),
        };
        EmulatedLink {
            cable: self.cable,
            from: end(cable.from, 0),
            to: end(cable.to, 1),
            mtu: cable.mtu,
        }
    }
}

/// A veth pair.
struct Pair {
    ends: [End; 2],
    mtu: u32,
    kind: CableKind,
}

/// One end of a veth pair; in the wire namespace if it does not belong to a host.
struct End {
    host: Option<usize>,
    interface: String,
    mac: String,
}

#[derive(Clone, Copy)]
struct Hop {
    cable: usize,
    next: usize,
}

impl Pair {
    fn line(&self, place: impl Fn(&End) -> String) -> String {
        let [a, b] = &self.ends;
        let (mtu, at_a, at_b) = (self.mtu, place(a), place(b));
        format!(
            "link add name {} address {} mtu {mtu} {at_a} type veth \
             peer name {} address {} mtu {mtu} {at_b}",
            a.interface, a.mac, b.interface, b.mac
        )
    }
}

impl Plan {
    fn of(spec: &NetworkSpec) -> Self {
        let mut plan = Self {
            pairs: Vec::new(),
            links: Vec::new(),
            ends: Vec::new(),
            routes: (0..spec.hosts.len()).map(|host| routes_from(spec, host)).collect(),
        };
        let mut interfaces = vec![0; spec.hosts.len()];
        for (index, cable) in spec.cables.iter().enumerate() {
            let [from, to] = [(cable.from, 1), (cable.to, 2)].map(|(host, end)| {
                let name = format!("eth{}", interfaces[host]);
                interfaces[host] += 1;
                Interface { name, mac: mac(index, end) }
            });
            plan.lay(index, cable, &from, &to);
            plan.ends.push([from, to]);
        }
        plan
    }

    /// Adds the veth pairs of one cable.
    fn lay(&mut self, index: usize, cable: &CableSpec, from: &Interface, to: &Interface) {
        let end = |host: usize, interface: &Interface| End {
            host: Some(host),
            interface: interface.name.clone(),
            mac: interface.mac.clone(),
        };
        let (from, to) = (end(cable.from, from), end(cable.to, to));
        let (mtu, kind) = (cable.mtu, cable.kind);
        if kind != CableKind::Emulated {
            self.pairs.push(Pair { ends: [from, to], mtu, kind });
            return;
        }
        let [wire_from, wire_to] = [("from", 3), ("to", 4)].map(|(side, end)| End {
            host: None,
            interface: format!("{side}{index}"),
            mac: mac(index, end),
        });
        self.links.push(Laid {
            cable: index,
            host_interfaces: [from.interface.clone(), to.interface.clone()],
            wire_interfaces: [wire_from.interface.clone(), wire_to.interface.clone()],
        });
        self.pairs.push(Pair { ends: [from, wire_from], mtu, kind });
        self.pairs.push(Pair { ends: [to, wire_to], mtu, kind });
    }

    /// The interfaces of a host, in the order of their cables.
    fn interfaces<'a>(
        &'a self,
        spec: &'a NetworkSpec,
        host: usize,
    ) -> impl Iterator<Item = &'a Interface> {
        spec.cables
            .iter()
            .zip(&self.ends)
            .flat_map(|(cable, [from, to])| [(cable.from, from), (cable.to, to)])
            .filter(move |(at, _)| *at == host)
            .map(|(_, interface)| interface)
    }

    /// The `ip` commands of a host: interfaces up, addresses, neighbours, routes.
    fn host_lines(&self, spec: &NetworkSpec, host: usize) -> Vec<String> {
        let (own4, own6) = (ipv4(host), ipv6(host));
        let mut lines = Vec::new();
        for interface in self.interfaces(spec, host) {
            let name = &interface.name;
            // Without ARP the kernel neither asks for neighbours nor joins their multicast groups.
            lines.push(format!("link set {name} arp off multicast off up"));
            lines.push(format!("addr add {own4}/32 dev {name}"));
            lines.push(format!("addr add {own6}/128 dev {name} nodad"));
        }
        if !lines.is_empty() {
            // The kernel adds this route to an IPv6 address of its own later, on another thread; until then a packet
            // to the address leaves by the cable and is lost.
            lines.push(format!("route add local {own6}/128 dev lo table local"));
        }
        for (cable, [from, to]) in spec.cables.iter().zip(&self.ends) {
            let (own, peer, next) = match host {
                _ if host == cable.from => (from, to, cable.to),
                _ if host == cable.to => (to, from, cable.from),
                _ => continue,
            };
            for address in [ipv4(next).to_string(), ipv6(next).to_string()] {
                let (mac, name) = (&peer.mac, &own.name);
                lines
                    .push(format!("neigh replace {address} lladdr {mac} dev {name} nud permanent"));
            }
        }
        for (&destination, hop) in &self.routes[host] {
            let [from, to] = &self.ends[hop.cable];
            let name = if spec.cables[hop.cable].from == host { &from.name } else { &to.name };
            let direct = hop.next == destination;
            let via4 = if direct { String::new() } else { format!("via {} ", ipv4(hop.next)) };
            let via6 = if direct { String::new() } else { format!("via {} ", ipv6(hop.next)) };
            let (to4, to6) = (ipv4(destination), ipv6(destination));
            let onlink = if direct { "" } else { " onlink" };
            lines.push(format!("route add {to4}/32 {via4}dev {name} src {own4}{onlink}"));
            lines.push(format!("route add {to6}/128 {via6}dev {name} src {own6}{onlink}"));
        }
        lines
    }

    /// The `ip` commands for the detours of a host, of one family of addresses.
    fn detour_lines(&self, spec: &NetworkSpec, host: usize, family: Family) -> Vec<String> {
        let mut lines = Vec::new();
        for detour in spec.detours.iter().filter(|detour| detour.host == host) {
            let (cable, [from, to]) = (&spec.cables[detour.cable], &self.ends[detour.cable]);
            let (own, next) = if cable.from == host { (from, cable.to) } else { (to, cable.from) };
            let via = match family {
                Family::V6 => ipv6(next).to_string(),
                Family::V4 | Family::Any => ipv4(next).to_string(),
            };
            let name = &own.name;
            lines.push(format!(
                "route add default via {via} dev {name} onlink table {DETOUR_TABLE}"
            ));
            let others = self.interfaces(spec, host).filter(|other| other.name != *name);
            lines.extend(
                others.map(|other| format!("rule add iif {} lookup {DETOUR_TABLE}", other.name)),
            );
        }
        lines
    }
}

/// Locally administered, and different for every end (1, 2: hosts; 3, 4: emulator) of every cable.
fn mac(cable: usize, end: u8) -> String {
    format!("02:00:00:{:02x}:{:02x}:{end:02x}", cable >> 8 & 0xff, cable & 0xff)
}

/// Shortest paths by breadth-first search; ties go to the earliest cables.
fn routes_from(spec: &NetworkSpec, start: usize) -> BTreeMap<usize, Hop> {
    let mut hops = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(host) = open.pop_front() {
        for (cable, ends) in spec.cables.iter().enumerate() {
            let next = match host {
                _ if host == ends.from => ends.to,
                _ if host == ends.to => ends.from,
                _ => continue,
            };
            if next != start && !hops.contains_key(&next) {
                let first = hops.get(&host).copied().unwrap_or(Hop { cable, next });
                hops.insert(next, first);
                open.push_back(next);
            }
        }
    }
    hops
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(hosts: &[&str], cables: &[(usize, usize)]) -> NetworkSpec {
        NetworkSpec {
            hosts: hosts.iter().map(|name| (*name).to_owned()).collect(),
            cables: cables
                .iter()
                .map(|&(from, to)| CableSpec { from, to, mtu: 1500, kind: CableKind::Plain })
                .collect(),
            detours: vec![],
        }
    }

    #[test]
    fn paths_are_shortest() {
        // 0 - 1 - 2 - 3, with a shortcut 0 - 3.
        let ring = spec(&["a", "b", "c", "d"], &[(0, 1), (1, 2), (2, 3), (0, 3)]);
        let next = |from| {
            let routes = routes_from(&ring, from);
            routes.into_iter().map(|(to, hop)| (to, hop.next)).collect::<Vec<_>>()
        };
        assert_eq!(next(0), [(1, 1), (2, 1), (3, 3)]);
        assert_eq!(next(3), [(0, 0), (1, 2), (2, 2)]);
    }

    #[test]
    fn unreachable_hosts_have_no_route() {
        assert!(routes_from(&spec(&["a", "b"], &[]), 0).is_empty());
    }

    #[test]
    fn a_chain_becomes_ip_commands() {
        let chain = spec(&["publisher", "relay", "viewer"], &[(0, 1), (1, 2)]);
        let lines = Plan::of(&chain).host_lines(&chain, 0);
        assert_eq!(
            lines,
            [
                "link set eth0 arp off multicast off up",
                "addr add 10.0.0.1/32 dev eth0",
                "addr add fd00::1/128 dev eth0 nodad",
                "route add local fd00::1/128 dev lo table local",
                "neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev eth0 nud permanent",
                "neigh replace fd00::2 lladdr 02:00:00:00:00:02 dev eth0 nud permanent",
                "route add 10.0.0.2/32 dev eth0 src 10.0.0.1",
                "route add fd00::2/128 dev eth0 src fd00::1",
                "route add 10.0.0.3/32 via 10.0.0.2 dev eth0 src 10.0.0.1 onlink",
                "route add fd00::3/128 via fd00::2 dev eth0 src fd00::1 onlink",
            ]
        );
    }

    #[test]
    fn a_detour_is_a_table_of_its_own_for_what_comes_from_elsewhere() {
        let mut bridge = spec(&["a", "b", "bridge", "router"], &[(0, 2), (1, 2), (2, 3)]);
        bridge.detours = vec![Detour { host: 2, cable: 2 }];
        let plan = Plan::of(&bridge);
        let expected = [
            "route add default via fd00::4 dev eth2 onlink table 100",
            "rule add iif eth0 lookup 100",
            "rule add iif eth1 lookup 100",
        ];
        assert_eq!(plan.detour_lines(&bridge, 2, Family::V6), expected);
        assert_eq!(plan.detour_lines(&bridge, 3, Family::V4), [""; 0]);
        bridge.detours[0].host = 0;
        let refused = check(&bridge).unwrap_err().to_string();
        assert!(refused.contains("a detour by cable 3: host 1 has no such cable"), "{refused}");
    }

    #[test]
    fn impossible_networks_are_refused() {
        let say = |spec: &NetworkSpec| check(spec).unwrap_err().to_string();
        assert!(say(&spec(&[], &[])).contains("1 to 254 hosts"));
        assert!(say(&spec(&["a", "a"], &[])).contains("`a` is taken"));
        assert!(say(&spec(&["a b"], &[])).contains("not a host name"));
        assert!(say(&spec(&["a"], &[(0, 1)])).contains("does not exist"));
        assert!(say(&spec(&["a", "b"], &[(1, 1)])).contains("both ends are at b"));
        let mut jumbo = spec(&["a", "b"], &[(0, 1)]);
        jumbo.cables[0].mtu = 9001;
        assert!(say(&jumbo).contains("1280 to 9000"));
    }
}
