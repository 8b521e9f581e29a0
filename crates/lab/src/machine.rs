//! The machine that a run was made on. Read from the kernel; what cannot be read is left empty.

use std::collections::BTreeMap;
use std::fs;

use suiro_record::Machine;
use suiro_record::words::Privilege;
use suiro_units::Bytes;

use crate::cgroup;

/// Kernel settings that affect what a trial measures.
const SETTINGS: &[&str] = &[
    "kernel.sched_autogroup_enabled",
    "net.core.default_qdisc",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_wmem",
];

/// Reads the machine's facts.
pub fn describe() -> Machine {
    let root = rustix::process::geteuid().is_root();
    let system = rustix::system::uname();
    Machine {
        name: system.nodename().to_string_lossy().into_owned(),
        kernel: system.release().to_string_lossy().into_owned(),
        system: value_of("/etc/os-release", "PRETTY_NAME", '=').trim_matches('"').to_owned(),
        cpu: value_of("/proc/cpuinfo", "model name", ':'),
        cores: std::thread::available_parallelism()
            .map_or(0, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        memory_bytes: meminfo("MemTotal").map_or(0, Bytes::get),
        clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        privilege: if root { Privilege::Root } else { Privilege::User },
        settings: settings(),
    }
}

/// What a guest's system is called.
pub(crate) const GUEST: &str = "User-Mode Linux";

/// The guest that this process runs in, in which nothing is this machine's.
pub(crate) fn describe_guest() -> Machine {
    within_trial(&Machine { system: GUEST.to_owned(), ..describe() })
}

/// The same machine as a trial's own process sees it: with the priority that its processes have.
pub(crate) fn within_trial(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    let nice = crate::priority::nice().map(|nice| ("nice".to_owned(), nice.to_string()));
    machine.settings.extend(nice);
    machine
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// The value after `key` and `separator` on the first line that begins with `key`.
fn value_of(path: &str, key: &str, separator: char) -> String {
    let text = read(path);
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim().to_owned())
        .unwrap_or_default()
}

/// The memory that programs can still take, by the kernel's estimate and the limits of this process's cgroups; `None` if
/// nothing is known of either.
pub fn available() -> Option<Bytes> {
    let cgroups = cgroup::room(|path| fs::read_to_string(path).ok());
    [meminfo("MemAvailable"), cgroups].into_iter().flatten().min()
}

fn meminfo(key: &str) -> Option<Bytes> {
    let value = value_of("/proc/meminfo", key, ':');
    let kib: u64 = value.split_whitespace().next()?.parse().ok()?;
    Some(Bytes::new(kib.checked_mul(1024)?))
}

fn settings() -> BTreeMap<String, String> {
    let kernel = SETTINGS.iter().filter_map(|name| {
        let text = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?;
        Some(((*name).to_owned(), text.split_whitespace().collect::<Vec<_>>().join(" ")))
    });
    kernel.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_facts() {
        let machine = describe();
        assert!(!machine.kernel.is_empty() && machine.cores > 0 && machine.memory_bytes > 1 << 20);
        assert!(available().unwrap() <= Bytes::new(machine.memory_bytes));
    }
}
