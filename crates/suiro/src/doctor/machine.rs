//! The machine: clock, cores, memory, disk, limits.

use std::fs;
use std::path::Path;

use rustix::time::{ClockId, clock_getres};
use suiro_units::Bytes;

use super::{Check, State};

const GROUP: &str = "machine";
const GIB: u64 = 1 << 30;
/// Below this a run of one trial may swap.
const MEMORY_BYTES_MIN: u64 = 2 * GIB;
/// Footage, an encoded ladder and a results folder.
const DISK_BYTES_MIN: u64 = 3 * GIB;
/// A packet socket's buffer that holds 10 ms of 1 Gbit/s.
const SOCKET_BYTES_MIN: u64 = 1 << 20;

/// All checks of this module.
pub fn checks() -> Vec<Check> {
    vec![clock_source(), timers(), cores(), memory(), disk(), socket_memory()]
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn clock_source() -> Check {
    let purpose = "every time that is measured, and when a packet leaves the link";
    let folder = "/sys/devices/system/clocksource/clocksource0";
    let Some(source) = read(&format!("{folder}/current_clocksource")) else {
        return Check::ok(GROUP, "clock source", purpose, "unknown").but(State::Limited, "");
    };
    let others = read(&format!("{folder}/available_clocksource")).unwrap_or_default();
    let found = format!("{source} (available: {others})");
    let check = Check::ok(GROUP, "clock source", purpose, &found);
    match source.as_str() {
        // Read in user space, without a system call.
        "tsc" | "kvm-clock" | "arch_sys_counter" | "hyperv_clocksource_tsc_page" => check,
        _ if others.split_whitespace().any(|other| other == "tsc") => {
            let mend = format!("echo tsc | sudo tee {folder}/current_clocksource");
            check.but(State::Limited, &mend)
        }
        _ => check.but(State::Limited, ""),
    }
}

fn timers() -> Check {
    let purpose = "sleeping until shortly before a packet's time";
    let resolution = clock_getres(ClockId::Monotonic);
    let slack = read("/proc/self/timerslack_ns").unwrap_or_else(|| "?".into());
    let found = format!("resolution {} ns, slack {slack} ns", resolution.tv_nsec);
    let check = Check::ok(GROUP, "timers", purpose, &found);
    // Without high-resolution timers the kernel reports the length of a tick.
    let fine = resolution.tv_sec == 0 && resolution.tv_nsec < 1_000_000;
    if fine { check } else { check.but(State::Limited, "boot without highres=off") }
}

fn cores() -> Check {
    let purpose = "a link's thread spins; endpoints need the other cores";
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let check = Check::ok(GROUP, "cores", purpose, &format!("{cores} for this process"));
    if cores >= 2 { check } else { check.but(State::Limited, "use a machine with 2 cores or more") }
}

fn memory() -> Check {
    let bytes = suiro_lab::machine::available().map(Bytes::get);
    size_check("memory", "encoders, queues, records", bytes, MEMORY_BYTES_MIN)
}

fn disk() -> Check {
    let folder = suiro_media::cache::folder();
    let mut there: &Path = &folder;
    // The folder may not be made yet: its nearest parent is on the same disk.
    while !there.exists() {
        let Some(parent) = there.parent() else { break };
        there = parent;
    }
    let free = rustix::fs::statvfs(there).ok();
    let bytes = free.map(|vfs| vfs.f_bavail.saturating_mul(vfs.f_frsize));
    let mut check = size_check("disk", "cached footage and encodings", bytes, DISK_BYTES_MIN);
    check.found.push_str(&format!(" in {}", folder.display()));
    check
}

fn size_check(name: &str, purpose: &'static str, bytes: Option<u64>, least: u64) -> Check {
    let Some(bytes) = bytes else {
        return Check::ok(GROUP, name, purpose, "unknown").but(State::Limited, "");
    };
    let found = format!("{:.1} GiB free", bytes as f64 / GIB as f64);
    let check = Check::ok(GROUP, name, purpose, &found);
    let mend = format!("free some space: {} GiB are recommended", least / GIB);
    if bytes >= least { check } else { check.but(State::Limited, &mend) }
}

fn socket_memory() -> Check {
    let purpose = "bursts at the emulated link, windows of fast long paths";
    let limit = |name: &str| {
        let path = format!("/proc/sys/net/core/{name}");
        read(&path).and_then(|text| text.parse::<u64>().ok())
    };
    let (Some(receive), Some(send)) = (limit("rmem_max"), limit("wmem_max")) else {
        return Check::ok(GROUP, "socket memory", purpose, "unknown").but(State::Limited, "");
    };
    let window = |name: &str| {
        let text = read(&format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
        text.split_whitespace().next_back().unwrap_or("?").to_owned()
    };
    let found = format!(
        "rmem_max {receive}, wmem_max {send}, tcp_rmem to {}, tcp_wmem to {} bytes",
        window("tcp_rmem"),
        window("tcp_wmem")
    );
    let check = Check::ok(GROUP, "socket memory", purpose, &found);
    if receive.min(send) >= SOCKET_BYTES_MIN || rustix::process::geteuid().is_root() {
        return check;
    }
    let mend = "sudo sysctl -w net.core.rmem_max=8388608 net.core.wmem_max=8388608";
    check.but(State::Limited, mend)
}
