//! Host names: a private /etc/hosts.

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

use crate::HostsError;

/// Folders that exist on every system and that a trial does not use; the first one found is
/// borrowed briefly.
const BORROWED: &[&str] = &["/mnt", "/media", "/srv"];

/// Replaces /etc/hosts with `text` for this process and its children.
///
/// The text lives in an in-memory file system that is reachable only as /etc/hosts, so nothing is
/// left when the mount namespace goes. Call it before other threads use the [`BORROWED`] folders.
pub(crate) fn replace_etc_hosts(text: &str) -> Result<(), HostsError> {
    let target = "/etc/hosts";
    if !Path::new(target).exists() {
        return Err(HostsError::Spec(
            "/etc/hosts does not exist, and host names are published by mounting over it\nhint: run `sudo touch /etc/hosts`"
                .into(),
        ));
    }
    let folder = BORROWED.iter().find(|folder| Path::new(folder).is_dir()).ok_or_else(|| {
        HostsError::Spec(
            "none of /mnt, /media and /srv is a folder\nhint: run `sudo mkdir /mnt`".into(),
        )
    })?;
    mount("suiro", *folder, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None)
        .map_err(HostsError::os(format!("mounting memory on {folder}")))?;
    let bound = write_and_bind(folder, text, target);
    let freed = unmount(*folder, UnmountFlags::DETACH)
        .map_err(HostsError::os(format!("unmounting {folder}")));
    bound.and(freed)
}

fn write_and_bind(folder: &str, text: &str, target: &str) -> Result<(), HostsError> {
    let file = format!("{folder}/hosts");
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&file, flags, Mode::from_raw_mode(0o644))
        .map_err(HostsError::os(format!("making {file}")))?;
    std::io::Write::write_all(&mut std::fs::File::from(opened), text.as_bytes())
        .map_err(HostsError::os(format!("writing {file}")))?;
    mount_bind(&file, target).map_err(HostsError::os(format!("binding {file} to {target}")))
}
