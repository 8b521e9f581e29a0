//! Host names: a private /etc/hosts.

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

use crate::HostsError;

/// Folders that every system has and that nothing of a trial lives in; the first is borrowed for a
/// moment.
const BORROWED: &[&str] = &["/mnt", "/media", "/srv"];

/// Puts `text` in the place of /etc/hosts for this process and its children.
///
/// The text lies in a file system in memory that has no other place than /etc/hosts, so nothing is
/// left when the mount namespace goes. Call it before other threads look at [`BORROWED`] folders.
pub(crate) fn replace_etc_hosts(text: &str) -> Result<(), HostsError> {
    let target = "/etc/hosts";
    if !Path::new(target).exists() {
        return Err(HostsError::Spec(
            "there is no /etc/hosts to put the hosts' names in\nhint: run `sudo touch /etc/hosts`"
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
