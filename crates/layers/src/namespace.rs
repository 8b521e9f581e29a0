//! Selecting the network: a namespace by name, path or process; and the ports that a process has
//! open.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::event::Protocol;

/// The folder of the namespaces made by `ip netns add`.
const NAMED: &str = "/run/netns";
/// Most sockets of one process that are examined.
const SOCKETS_MAX: usize = 4096;
const TABLES: [(&str, Protocol); 4] = [
    ("udp", Protocol::Udp),
    ("udp6", Protocol::Udp),
    ("tcp", Protocol::Tcp),
    ("tcp6", Protocol::Tcp),
];

/// Why a namespace or a process cannot be examined.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {cause}\nhint: {hint}")]
pub struct NamespaceError {
    path: PathBuf,
    cause: io::Error,
    hint: &'static str,
}

/// A network namespace, held open.
#[derive(Debug)]
pub struct Namespace {
    path: PathBuf,
    file: OwnedFd,
    inode: u32,
}

impl Namespace {
    /// The calling thread's namespace.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn current() -> Result<Self, NamespaceError> {
        Self::open("/proc/thread-self/ns/net".into(), "is /proc mounted?")
    }

    /// A process's namespace.
    ///
    /// # Errors
    /// No such process, or missing privileges.
    pub fn of_process(process: u32) -> Result<Self, NamespaceError> {
        let path = format!("/proc/{process}/ns/net").into();
        Self::open(path, "give --pid a running process; run it as root for other users' processes")
    }

    /// A namespace by its name, as in `ip netns`, or by its path.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn named(name: &str) -> Result<Self, NamespaceError> {
        let path = if name.contains('/') { name.into() } else { Path::new(NAMED).join(name) };
        Self::open(
            path,
            "give --netns a name from `ip netns list`, or a path such as /proc/PID/ns/net",
        )
    }

    fn open(path: PathBuf, hint: &'static str) -> Result<Self, NamespaceError> {
        let told = |cause: io::Error| NamespaceError { path: path.clone(), cause, hint };
        let file = openat(CWD, &path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| told(error.into()))?;
        let inode = std::fs::metadata(&path).map_err(told)?.ino();
        // The kernel's own number has 32 bits.
        Ok(Self { path, file, inode: inode as u32 })
    }

    /// Its number.
    pub fn inode(&self) -> u32 {
        self.inode
    }

    /// Moves the calling thread into it.
    ///
    /// # Errors
    /// Missing privileges, or not a network namespace.
    pub fn enter(&self) -> Result<(), NamespaceError> {
        // No privileges are needed if the thread is already there.
        if Self::current().is_ok_and(|current| current.inode == self.inode) {
            return Ok(());
        }
        let told = |error: rustix::io::Errno| NamespaceError {
            path: self.path.clone(),
            cause: error.into(),
            hint: "entering another network namespace needs root (CAP_SYS_ADMIN): run it with sudo",
        };
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(told)
    }
}

/// The local ports of the UDP and TCP sockets that a process has open now.
///
/// # Errors
/// No such process, or missing privileges.
pub fn ports_of(process: u32) -> Result<BTreeSet<(Protocol, u16)>, NamespaceError> {
    let folder = PathBuf::from(format!("/proc/{process}"));
    let told = |path: PathBuf| {
        let hint = "give --pid a running process; run it as root for other users' processes";
        move |cause| NamespaceError { path, cause, hint }
    };
    let files = folder.join("fd");
    let entries = std::fs::read_dir(&files).map_err(told(files))?;
    let sockets: BTreeSet<u64> = entries
        .filter_map(|entry| socket_inode(std::fs::read_link(entry.ok()?.path()).ok()?.to_str()?))
        .take(SOCKETS_MAX)
        .collect();
    let mut ports = BTreeSet::new();
    for (table, protocol) in TABLES {
        let path = folder.join("net").join(table);
        // A kernel without IPv6 has no such table.
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        let open = text.lines().filter_map(port_and_inode);
        let own = open.filter(|(_, inode)| sockets.contains(inode));
        ports.extend(own.map(|(port, _)| (protocol, port)));
    }
    Ok(ports)
}

/// proc_pid_fd(5): `socket:[INODE]`.
fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// proc_pid_net(5): `sl: ADDRESS:PORT …`, the tenth word is the inode.
fn port_and_inode(line: &str) -> Option<(u16, u64)> {
    let mut words = line.split_whitespace();
    let (_, port) = words.nth(1)?.rsplit_once(':')?;
    let inode = words.nth(7)?.parse().ok()?;
    Some((u16::from_str_radix(port, 16).ok()?, inode)).filter(|(port, _)| *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_are_read() {
        let line = "   9: 0100007F:1388 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        \
                    0 31337 2 0000000000000000 0";
        assert_eq!(port_and_inode(line), Some((5000, 31337)));
        assert_eq!(port_and_inode("  sl  local_address rem_address   st tx_queue"), None);
        assert_eq!(socket_inode("socket:[31337]"), Some(31337));
        assert_eq!(socket_inode("/dev/null"), None);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test is the process that has it open")]
    fn the_ports_of_this_process_are_found() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let ports = ports_of(std::process::id()).unwrap();
        assert!(ports.contains(&(Protocol::Udp, port)), "{ports:?}");
    }

    #[test]
    fn a_missing_namespace_is_reported() {
        let error = Namespace::named("no-such").unwrap_err().to_string();
        assert!(
            error.contains("/run/netns/no-such: ") && error.contains("ip netns list"),
            "{error}"
        );
        assert!(Namespace::of_process(u32::MAX).unwrap_err().to_string().contains("--pid"));
        assert!(ports_of(u32::MAX).unwrap_err().to_string().contains("/fd: "));
        Namespace::current().unwrap().enter().unwrap();
    }
}
