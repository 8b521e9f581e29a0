//! The CPUs: governor, nodes, pinning, virtualisation and steal.

use std::path::PathBuf;

use super::machine::{Machine, cpu_list};
use super::{Change, Finding};
use crate::doctor::State;

/// What these findings belong to.
pub const GROUP: &str = "uncompressed: CPUs";
/// Share of time stolen by the hypervisor above which frames were late.
const STEAL_MAX: f64 = 0.01;

/// All findings of this module.
pub fn findings(machine: &Machine) -> Vec<Finding> {
    vec![
        cores(machine),
        nodes(machine),
        governor(machine),
        virtual_machine(machine),
        steal(machine),
    ]
}

fn cores(machine: &Machine) -> Finding {
    let purpose = "one core per 12 Gbit/s sent; kept from other work they are never late";
    let online = machine.cpus().len();
    let isolated = cpu_list(&machine.read("/sys/devices/system/cpu/isolated").unwrap_or_default());
    let text = format!("{online} on line, {} isolated", isolated.len());
    let finding = Finding::ok(GROUP, "cores", purpose, &text);
    if online >= 2 { finding } else { finding.but(State::Limited, "two cores or more") }
}

/// A process on one node and its network card on another pay for every packet.
fn nodes(machine: &Machine) -> Finding {
    let purpose = "memory, cores and network card on one node";
    let online = machine.read("/sys/devices/system/node/online");
    let nodes = cpu_list(&online.unwrap_or_else(|| "0".to_owned()));
    let text = format!("{} memory nodes", nodes.len());
    let finding = Finding::ok(GROUP, "NUMA", purpose, &text);
    if nodes.len() < 2 {
        return Finding::ok(GROUP, "NUMA", purpose, "one memory node");
    }
    let mut cards = machine.interfaces().into_iter();
    let node =
        cards.find_map(|card| machine.number(format!("/sys/class/net/{card}/device/numa_node")));
    let node = node.unwrap_or(0);
    let mend = format!("numactl --cpunodebind={node} --membind={node} suiro uncompressed …");
    finding.but(State::Limited, &mend)
}

fn governor(machine: &Machine) -> Finding {
    let purpose = "a core that has to speed up first is late";
    let path = |cpu: u32| {
        PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"))
    };
    let governors: Vec<_> = machine
        .cpus()
        .into_iter()
        .filter_map(|cpu| Some((path(cpu), machine.read(path(cpu))?)))
        .collect();
    let others: Vec<_> =
        governors.iter().filter(|(_, governor)| governor != "performance").cloned().collect();
    let Some((_, governor)) = others.first() else {
        let found = if governors.is_empty() {
            "none: the system does not set frequencies"
        } else {
            "performance"
        };
        return Finding::ok(GROUP, "governor", purpose, found);
    };
    let text = format!("{governor} on {} of {} cores", others.len(), governors.len());
    let change = |(path, was)| Change::File { path, was, value: "performance".to_owned() };
    let changes = others.into_iter().map(change).collect();
    Finding::ok(GROUP, "governor", purpose, &text).mended_by(State::Limited, changes)
}

fn virtual_machine(machine: &Machine) -> Finding {
    let purpose = "the study's virtual machines needed pinning, SR-IOV and fewer cores";
    let flags = machine.read("/proc/cpuinfo").unwrap_or_default();
    let is_virtual =
        flags.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"));
    if !is_virtual {
        return Finding::ok(GROUP, "virtualisation", purpose, "none");
    }
    let vendor = machine.read("/sys/class/dmi/id/sys_vendor");
    let text = vendor
        .map_or_else(|| "a virtual machine".to_owned(), |v| format!("a virtual machine ({v})"));
    let mend = "on the machine below: pin each virtual core to one of a single node, \
                pass the network card through (SR-IOV)";
    Finding::ok(GROUP, "virtualisation", purpose, &text).but(State::Limited, mend)
}

fn steal(machine: &Machine) -> Finding {
    let purpose = "time that the machine below took away";
    let stat = machine.read("/proc/stat").unwrap_or_default();
    let Some(share) = steal_share(&stat) else {
        return Finding::ok(GROUP, "steal", purpose, "unknown").but(State::Limited, "");
    };
    let text = format!("{:.2} % of all time since the start of the system", share * 100.0);
    let finding = Finding::ok(GROUP, "steal", purpose, &text);
    if share <= STEAL_MAX {
        return finding;
    }
    finding.but(State::Limited, "a machine that is not shared, or fewer virtual cores on it")
}

/// The share of stolen time in /proc/stat (proc(5): the eighth number of the line `cpu`).
fn steal_share(stat: &str) -> Option<f64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().map_while(|n| n.parse().ok()).collect();
    // Guests' time is contained in the first two.
    let total: u64 = ticks.iter().take(8).sum();
    (total > 0).then_some(*ticks.get(7)? as f64 / total as f64)
}
