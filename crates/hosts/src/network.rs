//! A network of hosts: cables between them, addresses, routes, names.

use std::fmt::Write;
use std::os::fd::AsRawFd;

use crate::equipment::Equipment;
use crate::ip::{self, Family};
use crate::plan::{End, Plan};
use crate::{
    CableKind, Detour, EmulatedLink, EmulatedSegment, Host, HostsError, MTU_MAX, MTU_MIN,
    NetworkSpec, ipv4, ipv6, names,
};

/// Most hosts in a network: they share 10.0.0.0/24.
const HOSTS_MAX: usize = 254;

/// Hosts and their cables. Dropping it removes them, unless processes or sockets still live there.
#[derive(Debug)]
pub struct Network {
    hosts: Vec<Host>,
    wire: Host,
    links: Vec<EmulatedLink>,
    segments: Vec<EmulatedSegment>,
    /// Per cable: the host and the interface of each end.
    ends: Vec<[(usize, String); 2]>,
}

impl Network {
    /// Builds everything. Call it once, in a [`Sandbox`](crate::Sandbox).
    pub fn build(spec: &NetworkSpec) -> Result<Self, HostsError> {
        Self::equipped(spec, &Equipment::default())
    }

    /// Builds everything, with switches, multicast and capacities. Call it once, in a [`Sandbox`](crate::Sandbox).
    pub fn equipped(spec: &NetworkSpec, equipment: &Equipment) -> Result<Self, HostsError> {
        check(spec)?;
        equipment.check(spec)?;
        let hosts = spec.hosts.iter().map(|name| Host::new(name)).collect::<Result<Vec<_>, _>>()?;
        let wire = Host::new("wire")?;
        // The emulator's interfaces carry frames and have no IP of their own.
        wire.set("net.ipv6.conf.default.disable_ipv6", "1")?;
        let plan = Plan::of(spec, equipment);
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
            plan.configure(spec, equipment, index, host)?;
        }
        let ups = plan.pairs.iter().flat_map(|pair| &pair.ends).filter(|end| end.host.is_none());
        let ups: Vec<_> = ups.map(|end| format!("link set {} up", end.interface)).collect();
        if !ups.is_empty() {
            wire.ip(&ups)?;
        }
        each_end(&|host, interface| host.settle(interface))?;
        for (n, (cable, [from, to])) in spec.cables.iter().zip(&plan.ends).enumerate() {
            equipment.limit(&hosts[cable.from], n, &from.name)?;
            equipment.limit(&hosts[cable.to], n, &to.name)?;
        }
        let links = plan.links.iter().map(|laid| laid.link(spec, &hosts)).collect();
        let segments = plan.segments.iter().map(|segment| segment.emulated(spec, &hosts)).collect();
        let ends = spec.cables.iter().zip(plan.ends);
        let ends = ends
            .map(|(cable, [from, to])| [(cable.from, from.name), (cable.to, to.name)])
            .collect();
        Ok(Self { hosts, wire, links, segments, ends })
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

    /// The segments of the hubs, in the order of [`Equipment::hubs`].
    pub fn segments(&self) -> &[EmulatedSegment] {
        &self.segments
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::spec;

    #[test]
    fn a_detour_needs_a_cable_of_its_host() {
        let mut bridge = spec(&["a", "b", "bridge", "router"], &[(0, 2), (1, 2), (2, 3)]);
        bridge.detours = vec![Detour { host: 0, cable: 2 }];
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
