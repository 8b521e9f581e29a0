//! System daemons in a host: with files of their own where they would use those of the system.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::mount::{MountFlags, mount, mount_bind};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::HostsError;

/// Makes `command` start with the file `group` as its /etc/group, and with an empty /var/tmp in memory that ends with it.
/// Call it after [`Host::command`](crate::Host::command), in a [`Sandbox`](crate::Sandbox).
///
/// FRR's daemons want a group `frrvty`, and to be in it, and keep state in /var/tmp: with these files they run as the
/// sandbox's own user, and leave nothing.
///
/// # Errors
/// If the path has a null character.
pub fn private_files<'c>(
    command: &'c mut Command,
    group: &Path,
) -> Result<&'c mut Command, HostsError> {
    let group = CString::new(group.as_os_str().as_bytes())
        .map_err(|_| HostsError::Spec(format!("{}: a null character", group.display())))?;
    let separate = move || {
        // SAFETY: the flag gives this process mounts of its own; memory safety does not depend on them.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount(c"suiro", c"/var/tmp", c"tmpfs", flags, c"mode=1777,size=16m")?;
        mount_bind(&group, c"/etc/group")?;
        Ok(())
    };
    // SAFETY: between fork and exec it makes system calls on prepared data and allocates nothing.
    Ok(unsafe { command.pre_exec(separate) })
}
