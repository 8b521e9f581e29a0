//! Attaching the programs that see packets: to netfilter, by network namespace and family, and to
//! the root of the control groups, for all sockets of the machine.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use libbpf_rs::{Link, NetfilterOpts, ProgramMut};
use libbpf_rs::{
    NF_INET_LOCAL_IN, NF_INET_LOCAL_OUT, NF_INET_POST_ROUTING, NF_INET_PRE_ROUTING, NFPROTO_IPV4,
    NFPROTO_IPV6,
};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// The program at the netfilter hooks.
pub const NETFILTER: &str = "netfilter_hook";
/// The program of the control groups.
pub const CGROUP: &str = "cgroup_ingress";
/// Those where UDP begins with a datagram. Without them, it is taken to begin with the system call.
pub const UDP_BEGINS: [&str; 2] = ["udp_sendmsg4", "udp_sendmsg6"];

/// Whether the program is attached to the root of the control groups.
pub fn is_of_cgroup(name: &str) -> bool {
    name == CGROUP || UDP_BEGINS.contains(&name)
}

// The kernel reserves the very first and the very last position.
const BEFORE_ALL_RULES: i32 = i32::MIN + 1;
const AFTER_ALL_RULES: i32 = i32::MAX - 1;

/// At the beginning of IP all rules are still to come, at its end they have been applied: the
/// firewall belongs to IP.
const HOOKS: [(i32, i32); 4] = [
    (NF_INET_LOCAL_OUT, BEFORE_ALL_RULES),
    (NF_INET_POST_ROUTING, AFTER_ALL_RULES),
    (NF_INET_PRE_ROUTING, BEFORE_ALL_RULES),
    (NF_INET_LOCAL_IN, AFTER_ALL_RULES),
];

/// Attaches to the four hooks of both families, in the calling thread's network namespace.
///
/// # Errors
/// If the kernel refuses one of them.
pub fn attach_netfilter(program: &ProgramMut<'_>) -> libbpf_rs::Result<Vec<Link>> {
    let mut links = Vec::new();
    for protocol_family in [NFPROTO_IPV4, NFPROTO_IPV6] {
        for (hooknum, priority) in HOOKS {
            let options =
                NetfilterOpts { protocol_family, hooknum, priority, ..Default::default() };
            links.push(program.attach_netfilter_with_opts(options)?);
        }
    }
    Ok(links)
}

/// Why the program could not be attached to the root of the control groups.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// The root is not available.
    #[error("opening the root of control groups: {0}")]
    Root(std::io::Error),
    /// The kernel refused.
    #[error("attaching to the root of control groups: {0:#}")]
    Attach(libbpf_rs::Error),
}

impl From<libbpf_rs::Error> for CgroupError {
    fn from(cause: libbpf_rs::Error) -> Self {
        Self::Attach(cause)
    }
}

/// Attaches to the root of the control groups (version 2).
///
/// # Errors
/// If there is none, or the kernel refuses.
pub fn attach_cgroup(program: &ProgramMut<'_>) -> Result<Vec<Link>, CgroupError> {
    let root = cgroup_root().map_err(CgroupError::Root)?;
    Ok(vec![program.attach_cgroup(root.as_raw_fd())?])
}

/// The existing mount point, or else a private mount.
fn cgroup_root() -> std::io::Result<OwnedFd> {
    let mounts = std::fs::read_to_string("/proc/thread-self/mountinfo")?;
    if let Some(path) = mounts.lines().find_map(cgroup2_at) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        return Ok(openat(CWD, path, flags, Mode::empty())?);
    }
    let context = fsopen("cgroup2", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}

/// proc(5): `… ROOT MOUNTPOINT OPTIONS [TAGS] - TYPE …`, fields 4 and 5; the whole tree has ROOT `/`.
fn cgroup2_at(line: &str) -> Option<PathBuf> {
    let (left, right) = line.split_once(" - ")?;
    let mut fields = left.split(' ').skip(3);
    let (root, path) = (fields.next()?, fields.next()?);
    let is_whole = right.starts_with("cgroup2 ") && root == "/";
    // A path with blanks is written with escapes: it is skipped.
    (is_whole && !path.contains('\\')).then(|| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_control_groups_is_found_among_mounts() {
        let line = "42 32 0:28 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(cgroup2_at(line), Some("/sys/fs/cgroup/unified".into()));
        let line = "42 32 0:28 /part /cg rw - cgroup2 cgroup2 rw";
        assert_eq!(cgroup2_at(line), None);
        let line = "33 32 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu";
        assert_eq!(cgroup2_at(line), None);
        assert_eq!(cgroup2_at("nonsense"), None);
    }
}
