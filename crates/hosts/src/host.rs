//! One host: a network namespace held open by a file descriptor.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::{HostsError, ethtool};

/// Settings of every new host, with the reason for each.
const SETTINGS: &[(&str, &str)] = &[
    // Replies may leave by a different interface from the one the request arrived on.
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    ("net.ipv4.conf.all.send_redirects", "0"),
    ("net.ipv4.conf.default.send_redirects", "0"),
    ("net.ipv4.conf.all.accept_redirects", "0"),
    // No unsolicited IPv6 packets: no router discovery, no duplicate address detection, no
    // link-local address to announce.
    ("net.ipv6.conf.default.accept_ra", "0"),
    ("net.ipv6.conf.default.router_solicitations", "0"),
    ("net.ipv6.conf.default.accept_dad", "0"),
    ("net.ipv6.conf.default.dad_transmits", "0"),
    ("net.ipv6.conf.default.autoconf", "0"),
    ("net.ipv6.conf.default.addr_gen_mode", "1"),
    // A router answers every probe, instead of one per second.
    ("net.ipv4.icmp_ratelimit", "0"),
];

/// TCP settings that are per namespace; see [`Host::settings`].
const TCP_SETTINGS: &[&str] = &[
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
];

/// A network namespace. It exists as long as a clone of this value, or a thread, process or socket
/// inside it; it has no name in the file system.
#[derive(Debug, Clone)]
pub struct Host {
    name: Arc<str>,
    namespace: Arc<OwnedFd>,
}

impl Host {
    /// Makes a host with its loopback up and no other interface. `name` is used in messages.
    ///
    /// Needs CAP_SYS_ADMIN: call it inside a [`Sandbox`](crate::Sandbox).
    pub fn new(name: &str) -> Result<Self, HostsError> {
        let namespace = on_new_thread(|| {
            // SAFETY: the flag affects the network namespace of this thread, nothing that memory
            // safety depends on.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
                .map_err(HostsError::os(format!("making a network namespace for {name}")))?;
            let namespace = open_own(name)?;
            ethtool::set_up("lo")?;
            for (setting, value) in SETTINGS {
                write_setting(setting, value)?;
            }
            Ok(namespace)
        })?;
        Ok(Self { name: name.into(), namespace: Arc::new(namespace) })
    }

    /// The network namespace that the calling thread is in.
    pub fn current(name: &str) -> Result<Self, HostsError> {
        Ok(Self { name: name.into(), namespace: Arc::new(open_own(name)?) })
    }

    /// The host's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `task` on a thread inside this host and returns its result. Sockets that it opens stay
    /// in this host, wherever they are used.
    pub fn enter<T: Send>(&self, task: impl FnOnce() -> T + Send) -> Result<T, HostsError> {
        on_new_thread(|| {
            self.enter_thread()?;
            Ok(task())
        })
    }

    /// Moves the calling thread into this host permanently.
    pub fn enter_thread(&self) -> Result<(), HostsError> {
        move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(HostsError::os(format!("entering the namespace of {}", self.name)))
    }

    /// Makes `command` start inside this host.
    pub fn command<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let namespace = Arc::clone(&self.namespace);
        let enter = move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(Into::into)
        };
        // SAFETY: between fork and exec it makes one system call and allocates nothing.
        unsafe { command.pre_exec(enter) }
    }

    /// Reads a setting of this host's namespace, such as `net.ipv4.tcp_rmem`. Whitespace between
    /// its words becomes single spaces.
    pub fn setting(&self, setting: &str) -> Result<String, HostsError> {
        self.enter(|| read_setting(setting))?
    }

    /// Changes a setting of this host's namespace.
    pub fn set(&self, setting: &str, value: &str) -> Result<(), HostsError> {
        self.enter(|| write_setting(setting, value))?
    }

    /// The settings of this host that affect TCP, for the records. Settings that the kernel does
    /// not have are absent.
    pub fn settings(&self) -> Result<std::collections::BTreeMap<String, String>, HostsError> {
        self.enter(|| {
            let read = |name: &&str| Some(((*name).to_owned(), read_setting(name).ok()?));
            TCP_SETTINGS.iter().filter_map(read).collect()
        })
    }

    /// The counters of an interface of this host since it was made.
    pub fn interface_counts(&self, interface: &str) -> Result<InterfaceCounts, HostsError> {
        let text = self.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?;
        let text = text.map_err(HostsError::os("reading /proc/thread-self/net/dev"))?;
        InterfaceCounts::find(&text, interface)
            .ok_or_else(|| HostsError::Spec(format!("{} has no interface {interface}", self.name)))
    }

    /// Switches off the segmentation, receive and checksum offloads of an interface, so that every
    /// packet on the wire is one complete packet.
    pub fn offloads_off(&self, interface: &str) -> Result<(), HostsError> {
        self.enter(|| ethtool::offloads_off(interface))?
    }

    /// Leaves a network card's offloads on: checksums, reassembly of packets from pieces, and
    /// handing over received packets of a flow together (GRO). Segmentation is off, so that every
    /// packet on the wire is one packet.
    pub fn offloads_of_a_card(&self, interface: &str) -> Result<(), HostsError> {
        self.enter(|| ethtool::offloads_of_a_card(interface))?
    }

    /// Which of the segmentation, receive and checksum offloads of an interface are on, sorted, by
    /// the kernel's names (`ethtool -k` names some differently).
    pub fn offloads(&self, interface: &str) -> Result<Vec<String>, HostsError> {
        self.enter(|| ethtool::offloads(interface))?
    }

    /// Waits until an interface carries packets. Both its ends must be up.
    pub(crate) fn settle(&self, interface: &str) -> Result<(), HostsError> {
        self.enter(|| ethtool::settle(interface))?
    }

    pub(crate) fn namespace(&self) -> &OwnedFd {
        &self.namespace
    }
}

/// Counters of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceCounts {
    /// Packets received.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that were lost instead of sent: on a veth, because the other side's backlog
    /// (`net.core.netdev_max_backlog`) was full.
    pub send_drops: u64,
}

impl InterfaceCounts {
    /// From the text of /proc/net/dev: one line per interface, with eight counters for receiving,
    /// then eight for sending: bytes, packets, errors, drops, …
    fn find(text: &str, interface: &str) -> Option<Self> {
        let counts = text.lines().find_map(|line| {
            let (name, counts) = line.split_once(':')?;
            (name.trim() == interface).then_some(counts)
        })?;
        let counts: Vec<u64> =
            counts.split_whitespace().map(|count| count.parse().unwrap_or(0)).collect();
        match counts[..] {
            [_, received, _, _, _, _, _, _, _, sent, _, send_drops, ..] => {
                Some(Self { received, sent, send_drops })
            }
            _ => None,
        }
    }
}

/// The namespace of the calling thread. Only the thread that reads it may change it.
fn open_own(name: &str) -> Result<OwnedFd, HostsError> {
    let path = "/proc/thread-self/ns/net";
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(HostsError::os(format!("opening the network namespace of {name}")))
}

/// Runs `task` on a thread of its own that ends with it, so a namespace entered there is left
/// there.
fn on_new_thread<T: Send>(
    task: impl FnOnce() -> Result<T, HostsError> + Send,
) -> Result<T, HostsError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("enter-host".into())
            .spawn_scoped(scope, task)
            .map_err(HostsError::os("starting a thread"))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn setting_path(setting: &str) -> String {
    format!("/proc/sys/{}", setting.replace('.', "/"))
}

fn read_setting(setting: &str) -> Result<String, HostsError> {
    let text = std::fs::read_to_string(setting_path(setting))
        .map_err(HostsError::os(format!("reading {setting}")))?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn write_setting(setting: &str, value: &str) -> Result<(), HostsError> {
    std::fs::write(setting_path(setting), value)
        .map_err(HostsError::os(format!("setting {setting} to {value}")))
}
