//! What a network needs of the kernel, planned before anything is made: interfaces, hardware addresses, routes.

use std::collections::{BTreeMap, VecDeque};

use crate::equipment::{self, Equipment};
use crate::ip::{self, Family};
use crate::{
    CableKind, CableSpec, EmulatedLink, EmulatedSegment, Host, HostsError, LinkEnd, NetworkSpec,
    Station, ipv4, ipv6,
};

/// Routing table of detours; the kernel's own are 253 to 255.
const DETOUR_TABLE: u8 = 100;

/// Interfaces, MAC addresses and routes, planned before anything is made.
pub(crate) struct Plan {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) links: Vec<Laid>,
    /// The segment of each hub.
    pub(crate) segments: Vec<Segment>,
    /// Per cable: the interface at its `from` and at its `to`.
    pub(crate) ends: Vec<[Interface; 2]>,
    /// Per host and destination: the cable to take and the next host that is no switch.
    routes: Vec<BTreeMap<usize, Hop>>,
    equipment: Equipment,
}

/// An interface of a host.
#[derive(Clone)]
pub(crate) struct Interface {
    pub(crate) name: String,
    mac: Mac,
}

/// A hardware address.
type Mac = [u8; 6];

/// An emulated cable: the interfaces at `from` and at `to`.
pub(crate) struct Laid {
    cable: usize,
    host_interfaces: [String; 2],
    wire_interfaces: [String; 2],
}

impl Laid {
    pub(crate) fn link(&self, spec: &NetworkSpec, hosts: &[Host]) -> EmulatedLink {
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

/// The stations of a hub.
pub(crate) struct Segment {
    hub: usize,
    stations: Vec<Attached>,
}

/// A station's cable to its hub.
struct Attached {
    cable: usize,
    host: usize,
    interface: Interface,
    wire_interface: String,
}

impl Segment {
    pub(crate) fn emulated(&self, spec: &NetworkSpec, hosts: &[Host]) -> EmulatedSegment {
        let station = |at: &Attached| Station {
            cable: at.cable,
            end: LinkEnd {
                index: at.host,
                host: hosts[at.host].clone(),
                host_interface: at.interface.name.clone(),
                wire_interface: at.wire_interface.clone(),
            },
            mac: at.interface.mac,
        };
        let stations: Vec<_> = self.stations.iter().map(station).collect();
        EmulatedSegment { hub: spec.hosts[self.hub].clone(), stations }
    }
}

/// A veth pair.
pub(crate) struct Pair {
    pub(crate) ends: [End; 2],
    mtu: u32,
    pub(crate) kind: CableKind,
}

/// One end of a veth pair; in the wire namespace if it does not belong to a host.
pub(crate) struct End {
    pub(crate) host: Option<usize>,
    pub(crate) interface: String,
    mac: Mac,
}

#[derive(Clone, Copy)]
struct Hop {
    cable: usize,
    next: usize,
}

impl Pair {
    pub(crate) fn line(&self, place: impl Fn(&End) -> String) -> String {
        let [a, b] = &self.ends;
        let (mtu, at_a, at_b) = (self.mtu, place(a), place(b));
        format!(
            "link add name {} address {} mtu {mtu} {at_a} type veth \
             peer name {} address {} mtu {mtu} {at_b}",
            a.interface,
            text(a.mac),
            b.interface,
            text(b.mac)
        )
    }
}

impl Plan {
    pub(crate) fn of(spec: &NetworkSpec, equipment: &Equipment) -> Self {
        let segment = |hub: &usize| Segment { hub: *hub, stations: Vec::new() };
        let mut plan = Self {
            pairs: Vec::new(),
            links: Vec::new(),
            segments: equipment.hubs.iter().map(segment).collect(),
            ends: Vec::new(),
            routes: (0..spec.hosts.len()).map(|host| routes_from(spec, equipment, host)).collect(),
            equipment: equipment.clone(),
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
        let at_hub = |segment: &&mut Segment| [cable.from, cable.to].contains(&segment.hub);
        if let Some(segment) = self.segments.iter_mut().find(at_hub) {
            let (host, own) =
                if segment.hub == cable.from { (cable.to, to) } else { (cable.from, from) };
            let wire_interface = format!("hub{index}");
            let interface = own.name.clone();
            let station = End { host: Some(host), interface, mac: own.mac };
            let wire = End { host: None, interface: wire_interface.clone(), mac: mac(index, 3) };
            self.pairs.push(Pair { ends: [station, wire], mtu: cable.mtu, kind: cable.kind });
            let interface = own.clone();
            segment.stations.push(Attached { cable: index, host, interface, wire_interface });
            return;
        }
        let end = |host: usize, interface: &Interface| End {
            host: Some(host),
            interface: interface.name.clone(),
            mac: interface.mac,
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

    /// Makes what a host has: forwarding, addresses, routes, or the ports of a switch.
    pub(crate) fn configure(
        &self,
        spec: &NetworkSpec,
        equipment: &Equipment,
        index: usize,
        host: &Host,
    ) -> Result<(), HostsError> {
        let interfaces: Vec<_> = self.interfaces(spec, index).map(|own| own.name.clone()).collect();
        if equipment.switches.contains(&index) {
            return equipment::make_switch(host, &interfaces);
        }
        if equipment.hubs.contains(&index) {
            // The emulator has its cables.
            return Ok(());
        }
        // A router at the end of a detour sends packets back the way they came.
        let returns = spec.detours.iter().any(|detour| {
            let cable = &spec.cables[detour.cable];
            [cable.from, cable.to].contains(&index)
        });
        if let Some(version) = equipment.igmp {
            host.set("net.ipv4.conf.all.force_igmp_version", version)?;
        }
        host.ip(&self.host_lines(spec, index))?;
        // After the interfaces: on one that carries multicast, as each does at first, a router joins a group, and reports it.
        if returns || interfaces.len() > 1 {
            host.set("net.ipv4.ip_forward", "1")?;
            host.set("net.ipv6.conf.all.forwarding", "1")?;
        }
        for family in [Family::V4, Family::V6] {
            let lines = self.detour_lines(spec, index, family);
            if !lines.is_empty() {
                ip::batch(host, family, &lines, &[])?;
            }
        }
        Ok(())
    }

    /// The `ip` commands of a host: interfaces up, addresses, neighbours, routes.
    fn host_lines(&self, spec: &NetworkSpec, host: usize) -> Vec<String> {
        let (own4, own6) = (ipv4(host), ipv6(host));
        let mut lines = Vec::new();
        for (cable, interface) in self.own(spec, host) {
            let name = &interface.name;
            if self.equipment.multicast {
                let arp = if self.asks(spec, cable) { "on" } else { "off" };
                lines.push(format!("link set {name} arp {arp} multicast on up"));
            } else {
                // Without ARP the kernel neither asks for neighbours nor joins their multicast groups.
                lines.push(format!("link set {name} arp off multicast off up"));
            }
            lines.extend(self.address_lines(host, cable, name));
            lines.push(format!("addr add {own6}/128 dev {name} nodad"));
        }
        if !lines.is_empty() {
            // The kernel adds this route to an IPv6 address of its own later, on another thread; until then a packet
            // to the address leaves by the cable and is lost.
            lines.push(format!("route add local {own6}/128 dev lo table local"));
        }
        for (cable, own) in self.own(spec, host).filter(|(cable, _)| !self.asks(spec, *cable)) {
            for (next, mac) in self.neighbours(spec, host, cable) {
                for address in [ipv4(next).to_string(), ipv6(next).to_string()] {
                    let (mac, name) = (text(mac), &own.name);
                    lines.push(format!(
                        "neigh replace {address} lladdr {mac} dev {name} nud permanent"
                    ));
                }
            }
        }
        let is_host = |to: &usize| !self.equipment.is_passed(*to);
        for (&destination, hop) in self.routes[host].iter().filter(|(to, _)| is_host(to)) {
            let [from, to] = &self.ends[hop.cable];
            let name = if spec.cables[hop.cable].from == host { &from.name } else { &to.name };
            let direct = hop.next == destination;
            let via4 = if direct { String::new() } else { format!("via {} ", ipv4(hop.next)) };
            let via6 = if direct { String::new() } else { format!("via {} ", ipv6(hop.next)) };
            let (to4, to6) = (ipv4(destination), ipv6(destination));
            let onlink = if direct { "" } else { " onlink" };
            // The address of a neighbour made this route, where cables carry multicast.
            if !(direct && self.equipment.multicast) {
                lines.push(format!("route add {to4}/32 {via4}dev {name} src {own4}{onlink}"));
            }
            lines.push(format!("route add {to6}/128 {via6}dev {name} src {own6}{onlink}"));
        }
        lines.extend(self.group_line(spec, host));
        lines
    }

    /// The cables of a host, with its interface at each.
    fn own<'a>(
        &'a self,
        spec: &'a NetworkSpec,
        host: usize,
    ) -> impl Iterator<Item = (usize, &'a Interface)> {
        spec.cables.iter().zip(&self.ends).enumerate().filter_map(
            move |(n, (cable, [from, to]))| match host {
                _ if host == cable.from => Some((n, from)),
                _ if host == cable.to => Some((n, to)),
                _ => None,
            },
        )
    }

    /// Who is reached by a cable of a host without a router: the host at its other end, or the other stations of the hub there.
    fn neighbours(&self, spec: &NetworkSpec, host: usize, cable: usize) -> Vec<(usize, Mac)> {
        let ([from, to], ends) = (&self.ends[cable], &spec.cables[cable]);
        let (peer, next) = if ends.from == host { (to, ends.to) } else { (from, ends.from) };
        match self.segments.iter().find(|segment| segment.hub == next) {
            None => vec![(next, peer.mac)],
            Some(segment) => {
                let others = segment.stations.iter().filter(|station| station.host != host);
                others.map(|station| (station.host, station.interface.mac)).collect()
            }
        }
    }

    /// Whether a cable carries ARP, by which hosts find each other's hardware addresses: an emulator carries only IP.
    fn asks(&self, spec: &NetworkSpec, cable: usize) -> bool {
        self.equipment.multicast && spec.cables[cable].kind != CableKind::Emulated
    }

    /// The lines that give a host its IPv4 address on a cable. A router takes packets into a group only from sources that
    /// are neighbours by the address of an interface (RFC 7761 §4.2); so each neighbour is the peer of one.
    fn address_lines(&self, host: usize, cable: usize, name: &str) -> Vec<String> {
        let own = ipv4(host);
        if !self.equipment.multicast {
            return vec![format!("addr add {own}/32 dev {name}")];
        }
        let is_switch = |host: &usize| self.equipment.is_passed(*host);
        let direct = self.routes[host]
            .iter()
            .filter(|(to, hop)| hop.cable == cable && hop.next == **to && !is_switch(to));
        let lines =
            direct.map(|(to, _)| format!("addr add {own} peer {}/32 dev {name}", ipv4(*to)));
        let lines: Vec<_> = lines.collect();
        // Towards a host that has a shorter way than this cable.
        if lines.is_empty() { vec![format!("addr add {own}/32 dev {name}")] } else { lines }
    }

    /// The route of groups: by the first cable of a host that is not a router of groups. A router has its own.
    fn group_line(&self, spec: &NetworkSpec, host: usize) -> Option<String> {
        let (_, first) = self.own(spec, host).next().filter(|_| self.equipment.multicast)?;
        Some(format!("route add 224.0.0.0/4 dev {} src {}", first.name, ipv4(host)))
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
fn mac(cable: usize, end: u8) -> Mac {
    let [.., high, low] = cable.to_be_bytes();
    [2, 0, 0, high, low, end]
}

fn text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Shortest paths by breadth-first search; ties go to the earliest cables.
/// A switch or a hub is never the next host: what is behind it is.
fn routes_from(spec: &NetworkSpec, equipment: &Equipment, start: usize) -> BTreeMap<usize, Hop> {
    let mut hops: BTreeMap<usize, Hop> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(host) = open.pop_front() {
        for (cable, ends) in spec.cables.iter().enumerate() {
            let next = match host {
                _ if host == ends.from => ends.to,
                _ if host == ends.to => ends.from,
                _ => continue,
            };
            if next != start && !hops.contains_key(&next) {
                let first = match hops.get(&host) {
                    None => Hop { cable, next },
                    Some(first) if equipment.is_passed(first.next) => Hop { next, ..*first },
                    Some(first) => *first,
                };
                hops.insert(next, first);
                open.push_back(next);
            }
        }
    }
    hops
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Detour;

    /// Hosts and plain cables between them.
    pub(crate) fn spec(hosts: &[&str], cables: &[(usize, usize)]) -> NetworkSpec {
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
            let routes = routes_from(&ring, &Equipment::default(), from);
            routes.into_iter().map(|(to, hop)| (to, hop.next)).collect::<Vec<_>>()
        };
        assert_eq!(next(0), [(1, 1), (2, 1), (3, 3)]);
        assert_eq!(next(3), [(0, 0), (1, 2), (2, 2)]);
    }

    #[test]
    fn unreachable_hosts_have_no_route() {
        let routes = routes_from(&spec(&["a", "b"], &[]), &Equipment::default(), 0);
        assert!(routes.is_empty());
    }

    #[test]
    fn a_chain_becomes_ip_commands() {
        let chain = spec(&["publisher", "relay", "viewer"], &[(0, 1), (1, 2)]);
        let lines = Plan::of(&chain, &Equipment::default()).host_lines(&chain, 0);
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
        let plan = Plan::of(&bridge, &Equipment::default());
        let expected = [
            "route add default via fd00::4 dev eth2 onlink table 100",
            "rule add iif eth0 lookup 100",
            "rule add iif eth1 lookup 100",
        ];
        assert_eq!(plan.detour_lines(&bridge, 2, Family::V6), expected);
        assert_eq!(plan.detour_lines(&bridge, 3, Family::V4), [""; 0]);
    }

    #[test]
    fn the_stations_of_a_hub_are_neighbours() {
        // Two stations and a router at a hub, a viewer beyond.
        let mut lan = spec(&["a", "b", "core", "viewer", "hub"], &[(4, 0), (4, 1), (4, 2), (2, 3)]);
        lan.cables[..3].iter_mut().for_each(|cable| cable.kind = CableKind::Emulated);
        let plan = Plan::of(&lan, &Equipment { hubs: vec![4], ..Equipment::default() });
        let lines = plan.host_lines(&lan, 0);
        let v4: Vec<_> = lines.iter().filter(|line| !line.contains("fd00")).collect();
        assert_eq!(
            v4,
            [
                "link set eth0 arp off multicast off up",
                "addr add 10.0.0.1/32 dev eth0",
                "neigh replace 10.0.0.2 lladdr 02:00:00:00:01:02 dev eth0 nud permanent",
                "neigh replace 10.0.0.3 lladdr 02:00:00:00:02:02 dev eth0 nud permanent",
                "route add 10.0.0.2/32 dev eth0 src 10.0.0.1",
                "route add 10.0.0.3/32 dev eth0 src 10.0.0.1",
                "route add 10.0.0.4/32 via 10.0.0.3 dev eth0 src 10.0.0.1 onlink",
            ]
        );
        let wired: Vec<_> = plan.pairs.iter().filter(|pair| pair.ends[1].host.is_none()).collect();
        let ends: Vec<_> =
            wired.iter().map(|pair| (pair.ends[0].host, &*pair.ends[1].interface)).collect();
        assert_eq!(ends, [(Some(0), "hub0"), (Some(1), "hub1"), (Some(2), "hub2")]);
        assert!(plan.links.is_empty() && plan.segments[0].stations.len() == 3);
    }

    #[test]
    fn what_is_behind_a_switch_is_a_neighbour() {
        // Two nodes and a router at a switch, a viewer beyond.
        let lan = spec(&["a", "b", "switch", "core", "viewer"], &[(0, 2), (1, 2), (2, 3), (3, 4)]);
        let equipment = Equipment { multicast: true, switches: vec![2], ..Equipment::default() };
        let plan = Plan::of(&lan, &equipment);
        let lines = plan.host_lines(&lan, 3);
        let v4: Vec<_> = lines.iter().filter(|line| !line.contains("fd00")).collect();
        assert_eq!(
            v4,
            [
                "link set eth0 arp on multicast on up",
                "addr add 10.0.0.4 peer 10.0.0.1/32 dev eth0",
                "addr add 10.0.0.4 peer 10.0.0.2/32 dev eth0",
                "link set eth1 arp on multicast on up",
                "addr add 10.0.0.4 peer 10.0.0.5/32 dev eth1",
                "route add 224.0.0.0/4 dev eth0 src 10.0.0.4",
            ]
        );
        let lines = plan.host_lines(&lan, 0);
        let to = |address: &str| lines.iter().any(|line| line.starts_with(address));
        assert!(to("addr add 10.0.0.1 peer 10.0.0.2/32"), "{lines:?}");
        assert!(to("route add 10.0.0.5/32 via 10.0.0.4 dev eth0"), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("10.0.0.3")), "{lines:?}");
    }
}
