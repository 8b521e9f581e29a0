//! What a network has beyond hosts and cables: switches, multicast, cables with a capacity.

use std::process::{Command, Stdio};

use crate::{CableKind, Host, HostsError, NetworkSpec};

/// The interface that joins the ports of a switch.
const BRIDGE: &str = "bridge";
/// Smallest capacity of a cable in bits per second: below, the queue would not hold one packet.
pub const CAPACITY_MIN_BPS: u64 = 10_000_000;

/// What a network has beyond hosts and cables. By default nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Equipment {
    /// Whether cables carry multicast and, unless they are emulated, ARP. IPv4 only.
    pub multicast: bool,
    /// The version of IGMP that hosts speak, `2` or `3`; `None` for the system's.
    pub igmp: Option<&'static str>,
    /// Positions in [`NetworkSpec::hosts`] of those that are Ethernet switches: they have no address, and pass what comes
    /// in by one cable to where its destination was last seen, multicast to all other cables. Needs `multicast`.
    pub switches: Vec<usize>,
    /// Positions in [`NetworkSpec::hosts`] of those that are hubs: they have no address, and all their cables are emulated.
    /// An emulator carries them together, as one segment whose stations are the hosts at the other ends. Excludes
    /// `multicast`.
    pub hubs: Vec<usize>,
    /// Cables with a capacity: position in [`NetworkSpec::cables`], bits per second in each direction,
    /// [`CAPACITY_MIN_BPS`] or more. What exceeds it waits for up to 10 ms, and is dropped then (the kernel's token
    /// bucket, tc-tbf(8)).
    pub capacities: Vec<(usize, u64)>,
}

impl Equipment {
    pub(crate) fn check(&self, spec: &NetworkSpec) -> Result<(), HostsError> {
        let refuse = |problem: String| Err(HostsError::Spec(problem));
        if !self.switches.is_empty() && !self.multicast {
            return refuse("a switch needs cables that carry ARP: set `multicast`".to_owned());
        }
        for switch in &self.switches {
            let Some(name) = spec.hosts.get(*switch) else {
                return refuse(format!("switch {}: there is no such host", switch + 1));
            };
            let own = spec.cables.iter().filter(|cable| [cable.from, cable.to].contains(switch));
            if own.clone().any(|cable| cable.kind == CableKind::Emulated) {
                return refuse(format!("switch {name}: an emulated cable does not carry ARP"));
            }
        }
        self.check_hubs(spec)?;
        for (cable, bps) in &self.capacities {
            let of = format!("capacity of cable {}", cable + 1);
            match spec.cables.get(*cable) {
                None => return refuse(format!("{of}: there is no such cable")),
                Some(cable) if cable.kind == CableKind::Emulated => {
                    return refuse(format!("{of}: its emulator has the rate"));
                }
                Some(_) if *bps < CAPACITY_MIN_BPS => {
                    return refuse(format!(
                        "{of}: expected {CAPACITY_MIN_BPS} bit/s or more, found {bps}"
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn check_hubs(&self, spec: &NetworkSpec) -> Result<(), HostsError> {
        let refuse = |problem: String| Err(HostsError::Spec(problem));
        if !self.hubs.is_empty() && self.multicast {
            return refuse("a hub's emulator carries only IP: unset `multicast`".to_owned());
        }
        for hub in &self.hubs {
            let Some(name) = spec.hosts.get(*hub) else {
                return refuse(format!("hub {}: there is no such host", hub + 1));
            };
            for cable in spec.cables.iter().filter(|cable| cable.from == *hub || cable.to == *hub) {
                let other = if cable.from == *hub { cable.to } else { cable.from };
                if cable.kind != CableKind::Emulated {
                    return refuse(format!("hub {name}: its cables must be emulated"));
                }
                if self.hubs.contains(&other) {
                    return refuse(format!("hub {name}: its cables must end at hosts"));
                }
            }
        }
        Ok(())
    }

    /// Whether a host passes everything on and has no address: what is behind it is next to what is before it.
    pub(crate) fn is_passed(&self, host: usize) -> bool {
        self.switches.contains(&host) || self.hubs.contains(&host)
    }

    /// Limits what leaves by one end of a cable, if the cable has a capacity.
    pub(crate) fn limit(&self, host: &Host, cable: usize, end: &str) -> Result<(), HostsError> {
        let own = self.capacities.iter().find(|(limited, _)| *limited == cable);
        let Some((_, bps)) = own else { return Ok(()) };
        // The bucket holds 1 ms, so that a late timer costs no throughput, and at least a few of the largest packets.
        let burst = (bps / 8 / 1000).max(64 * 1024);
        let arguments = [
            format!("qdisc replace dev {end} root tbf rate {bps}bit"),
            format!("burst {burst} latency 10ms"),
        ];
        let arguments = arguments.join(" ");
        let mut command = Command::new("tc");
        command.args(arguments.split(' ')).stdin(Stdio::null());
        let output = host.command(&mut command).output().map_err(HostsError::os(format!(
            "starting tc in {}; it is part of iproute2",
            host.name()
        )))?;
        if output.status.success() {
            return Ok(());
        }
        Err(HostsError::Spec(format!(
            "limiting {end} of {} to {bps} bit/s: {}\nhint: sudo modprobe sch_tbf, or remove the cable's `capacity`",
            host.name(),
            String::from_utf8_lossy(&output.stderr).trim()
        )))
    }
}

/// Makes `host` a switch with these interfaces as its ports.
pub(crate) fn make_switch(host: &Host, interfaces: &[String]) -> Result<(), HostsError> {
    // It has no address, not even one that announces itself.
    host.set("net.ipv6.conf.all.disable_ipv6", "1")?;
    host.set("net.ipv6.conf.default.disable_ipv6", "1")?;
    let bridge = format!("link add name {BRIDGE} type bridge mcast_snooping 0 stp_state 0");
    let port =
        |name: &String| [format!("link set {name} master {BRIDGE}"), format!("link set {name} up")];
    let lines = std::iter::once(bridge).chain(interfaces.iter().flat_map(port));
    host.ip(&lines.chain([format!("link set {BRIDGE} up")]).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CableSpec;

    #[test]
    fn impossible_equipment_is_refused() {
        let cable = |kind| CableSpec { from: 0, to: 1, mtu: 1500, kind };
        let spec = |kind| NetworkSpec {
            hosts: vec!["a".into(), "b".into()],
            cables: vec![cable(kind)],
            detours: vec![],
        };
        let say = |equipment: Equipment, kind| {
            equipment.check(&spec(kind)).map_err(|error| error.to_string())
        };
        let switch = Equipment { multicast: true, switches: vec![1], ..Equipment::default() };
        assert_eq!(say(switch.clone(), CableKind::Plain), Ok(()));
        let refused = say(switch.clone(), CableKind::Emulated).unwrap_err();
        assert!(refused.contains("switch b: an emulated cable"), "{refused}");
        let deaf = Equipment { multicast: false, ..switch };
        assert!(say(deaf, CableKind::Plain).unwrap_err().contains("set `multicast`"));
        let unknown = Equipment { multicast: true, switches: vec![2], ..Equipment::default() };
        assert!(say(unknown, CableKind::Plain).unwrap_err().contains("no such host"));
        let limited =
            |cable, bps| Equipment { capacities: vec![(cable, bps)], ..Equipment::default() };
        assert_eq!(say(limited(0, CAPACITY_MIN_BPS), CableKind::Card), Ok(()));
        assert!(
            say(limited(0, 1), CableKind::Card).unwrap_err().contains("10000000 bit/s or more")
        );
        assert!(say(limited(1, CAPACITY_MIN_BPS), CableKind::Card).is_err());
        assert!(say(limited(0, CAPACITY_MIN_BPS), CableKind::Emulated).is_err());
        let hub = |at| Equipment { hubs: vec![at], ..Equipment::default() };
        assert_eq!(say(hub(1), CableKind::Emulated), Ok(()));
        assert!(say(hub(1), CableKind::Plain).unwrap_err().contains("must be emulated"));
        assert!(say(hub(2), CableKind::Emulated).unwrap_err().contains("no such host"));
        let asks = Equipment { multicast: true, ..hub(1) };
        assert!(say(asks, CableKind::Emulated).unwrap_err().contains("carries only IP"));
    }
}
