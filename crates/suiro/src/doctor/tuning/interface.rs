//! A network interface: MTU, queue, rings, offloads, interrupts.

use std::path::PathBuf;

use super::machine::{Machine, cpu_list};
use super::{Change, Finding};
use crate::doctor::State;

const GROUP: &str = "uncompressed: interface";
/// Packets of 8800 bytes, and what a switch may add.
const MTU: u64 = 9000;
/// Packets that wait for the card: a frame of eight streams, and some.
const QUEUE_PACKETS: u64 = 10_000;
/// What the card or the kernel should do for a sender and a receiver, by ethtool's names.
const OFFLOADS: [&str; 5] = [
    "tx-checksumming",
    "scatter-gather",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "tx-udp-segmentation",
];

/// All findings about one interface.
pub fn findings(machine: &Machine, interface: &str) -> Vec<Finding> {
    let folder = format!("/sys/class/net/{interface}");
    if machine.read(format!("{folder}/mtu")).is_none() {
        let purpose = "the interface of the streams";
        let finding = Finding::ok(GROUP, interface, purpose, "there is no such interface");
        return vec![finding.but(State::Missing, "ip -brief link")];
    }
    vec![
        size(machine, interface, "mtu", "packets of 8800 bytes", MTU),
        size(machine, interface, "tx_queue_len", "bursts wait, and are not dropped", QUEUE_PACKETS),
        rings(machine, interface),
        offloads(machine, interface),
        interrupts(machine, interface),
    ]
}

fn size(
    machine: &Machine,
    interface: &str,
    file: &str,
    purpose: &'static str,
    least: u64,
) -> Finding {
    let path = PathBuf::from(format!("/sys/class/net/{interface}/{file}"));
    let name = format!("{interface} {}", if file == "mtu" { "MTU" } else { "queue" });
    let found = machine.number(&path).unwrap_or(0);
    let finding = Finding::ok(GROUP, &name, purpose, &found.to_string());
    if found >= least {
        return finding;
    }
    let (was, value) = (found.to_string(), least.to_string());
    finding.mended_by(State::Limited, vec![Change::File { path, was, value }])
}

/// `RX` and `TX` in a section of `ethtool -g`.
fn ring_sizes(section: &str) -> Option<(u64, u64)> {
    let of = |name: &str| {
        let line = section.lines().find_map(|line| line.trim().strip_prefix(name));
        line?.trim().parse().ok()
    };
    Some((of("RX:")?, of("TX:")?))
}

fn rings(machine: &Machine, interface: &str) -> Finding {
    let (name, purpose) = (format!("{interface} rings"), "packets that the card keeps by itself");
    let told = match machine.ethtool(&["-g", interface]) {
        Ok(told) => told,
        Err(error) => return unknown(&name, purpose, &error),
    };
    let sections = told.split_once("Current hardware settings:");
    let sizes = sections.and_then(|(most, now)| Some((ring_sizes(most)?, ring_sizes(now)?)));
    let Some((most, now)) = sizes else {
        return unknown(&name, purpose, "ethtool prints no sizes");
    };
    let text = format!("{} of {} to receive, {} of {} to send", now.0, most.0, now.1, most.1);
    let finding = Finding::ok(GROUP, &name, purpose, &text);
    if now.0 >= most.0 && now.1 >= most.1 {
        return finding;
    }
    let arguments = |(rx, tx): (u64, u64)| {
        ["-G", interface, "rx", &rx.to_string(), "tx", &tx.to_string()].map(str::to_owned).to_vec()
    };
    let change = Change::Ethtool { apply: arguments(most), undo: arguments(now) };
    finding.mended_by(State::Limited, vec![change])
}

fn offloads(machine: &Machine, interface: &str) -> Finding {
    let name = format!("{interface} offloads");
    let purpose = "the card cuts, joins and checks packets";
    let told = match machine.ethtool(&["-k", interface]) {
        Ok(told) => told,
        Err(error) => return unknown(&name, purpose, &error),
    };
    let state = |offload: &str| {
        told.lines()
            .find_map(|line| Some(line.trim().strip_prefix(offload)?.strip_prefix(": ")?.trim()))
    };
    let off: Vec<_> = OFFLOADS.into_iter().filter(|o| state(o) == Some("off")).collect();
    let fixed: Vec<_> =
        OFFLOADS.into_iter().filter(|o| state(o).is_none_or(|s| s == "off [fixed]")).collect();
    let text = match (&off[..], &fixed[..]) {
        ([], []) => "all that help are on".to_owned(),
        _ => format!("off: {}", [&off[..], &fixed[..]].concat().join(", ")),
    };
    let finding = Finding::ok(GROUP, &name, purpose, &text);
    if off.is_empty() {
        let card = "a card with UDP segmentation; the kernel cuts packets meanwhile";
        return if fixed.is_empty() { finding } else { finding.but(State::Limited, card) };
    }
    let arguments = |state: &str| {
        let switches = off.iter().flat_map(|offload| [(*offload).to_owned(), state.to_owned()]);
        ["-K".to_owned(), interface.to_owned()].into_iter().chain(switches).collect()
    };
    let change = Change::Ethtool { apply: arguments("on"), undo: arguments("off") };
    finding.mended_by(State::Limited, vec![change])
}

/// The interrupts of a card; virtual ones have theirs a device further up.
fn irqs(machine: &Machine, interface: &str) -> Vec<String> {
    let device = format!("/sys/class/net/{interface}/device");
    let own = machine.names(format!("{device}/msi_irqs"));
    if own.is_empty() { machine.names(format!("{device}/../msi_irqs")) } else { own }
}

fn interrupts(machine: &Machine, interface: &str) -> Finding {
    let (name, purpose) = (format!("{interface} interrupts"), "each queue's on a core of its own");
    let affinity = |irq: &String| PathBuf::from(format!("/proc/irq/{irq}/smp_affinity_list"));
    let known: Vec<_> = irqs(machine, interface)
        .into_iter()
        .filter_map(|irq| Some((affinity(&irq), machine.read(affinity(&irq))?)))
        .collect();
    if known.is_empty() {
        return unknown(&name, purpose, "its interrupts cannot be determined");
    }
    let cpus = near(machine, interface);
    // Where they are served, not where they may be: by default that is anywhere.
    let served = |irq: &String| machine.read(format!("/proc/irq/{irq}/effective_affinity_list"));
    let used: std::collections::BTreeSet<_> = irqs(machine, interface)
        .iter()
        .filter_map(|irq| served(irq).or_else(|| machine.read(affinity(irq))))
        .flat_map(|list| cpu_list(&list))
        .collect();
    let text = format!("{} interrupts on {} cores", known.len(), used.len());
    let finding = Finding::ok(GROUP, &name, purpose, &text);
    if used.len() >= known.len().min(cpus.len()) || cpus.is_empty() {
        return finding;
    }
    let spread = |(at, (path, was)): (usize, (PathBuf, String))| {
        let value = cpus[at % cpus.len()].to_string();
        Change::File { path, was, value }
    };
    finding.mended_by(State::Limited, known.into_iter().enumerate().map(spread).collect())
}

/// The cores of the card's node, or all.
fn near(machine: &Machine, interface: &str) -> Vec<u32> {
    let node = machine.number(format!("/sys/class/net/{interface}/device/numa_node"));
    let list =
        node.and_then(|node| machine.read(format!("/sys/devices/system/node/node{node}/cpulist")));
    list.map_or_else(|| machine.cpus(), |list| cpu_list(&list))
}

fn unknown(name: &str, purpose: &'static str, because: &str) -> Finding {
    Finding::ok(GROUP, name, purpose, because).but(State::Limited, "")
}
