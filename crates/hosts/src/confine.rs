//! What a scenario's commands may do when the lab runs as root.
//!
//! As an ordinary user the lab is root only in a user namespace, so its commands have the rights of that user. As root
//! there is no such namespace: without a limit a command could load kernel modules, change any file's owner or trace
//! any process. [`Confinement`] leaves it what acts on its own host (network administration, raw sockets, low ports),
//! and gives it a /tmp that the trial's commands share and that ends with the trial.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustix::fs::CWD;
use rustix::io;
use rustix::mount::{
    MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_bind, move_mount,
    open_tree, unmount,
};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, unshare_unsafe};

use crate::HostsError;

/// The capabilities that a command keeps: those whose effect ends at its own network namespace.
const KEPT: CapabilitySet =
    CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_RAW).union(CapabilitySet::NET_BIND_SERVICE);
/// Most memory that the files in the trial's /tmp take.
const TMP_SIZE: &std::ffi::CStr = c"mode=1777,size=1g";
/// Most folders that stay visible below /tmp.
const FOLDERS_MAX: usize = 4;

/// Limits for the commands of one trial; see the [module](self).
#[derive(Debug)]
pub struct Confinement {
    /// Where the memory is mounted that the commands see as /tmp.
    tmp: PathBuf,
    steps: Arc<Steps>,
}

/// What happens in the new process, prepared in advance: after `fork` it must not allocate.
#[derive(Debug)]
struct Steps {
    tmp: CString,
    /// Folders below /tmp that the commands still see, at their own path.
    folders: Vec<CString>,
}

impl Confinement {
    /// Prepares a /tmp below the folder `at`. Of the real /tmp, commands see only those of `folders` that lie in it:
    /// the trial's folder and the working folder, for example. At most four are taken.
    ///
    /// # Errors
    /// If the memory cannot be mounted, or a folder is not there.
    pub fn prepare(at: &Path, folders: &[&Path]) -> Result<Self, HostsError> {
        let tmp = at.join(".tmp");
        let doing = || format!("making {}", tmp.display());
        std::fs::create_dir_all(&tmp).map_err(HostsError::os(doing()))?;
        mount("suiro", &tmp, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, TMP_SIZE)
            .map_err(HostsError::os(format!("mounting memory on {}", tmp.display())))?;
        let mut visible = Vec::new();
        for folder in folders.iter().take(FOLDERS_MAX) {
            let reading = || HostsError::os(format!("finding {}", folder.display()));
            let folder = folder.canonicalize().map_err(reading())?;
            let Ok(below) = folder.strip_prefix("/tmp") else { continue };
            if below.as_os_str().is_empty() {
                continue;
            }
            std::fs::create_dir_all(tmp.join(below)).map_err(HostsError::os(doing()))?;
            visible.push(text(&folder)?);
        }
        let steps = Steps { tmp: text(&tmp)?, folders: visible };
        Ok(Self { tmp, steps: Arc::new(steps) })
    }

    /// Makes `command` start with these limits. Call it after [`Host::command`](crate::Host::command), because the
    /// command can change its namespaces no more afterwards.
    pub fn command<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        // They would name a folder that the command does not see.
        for variable in ["TMPDIR", "TMP", "TEMP", "XDG_RUNTIME_DIR"] {
            command.env_remove(variable);
        }
        let steps = Arc::clone(&self.steps);
        // SAFETY: between fork and exec it makes system calls on prepared data and allocates nothing.
        unsafe { command.pre_exec(move || steps.take().map_err(Into::into)) }
    }
}

impl Drop for Confinement {
    fn drop(&mut self) {
        // The mount is gone with the trial's mount namespace at the latest.
        let _ = unmount(&self.tmp, UnmountFlags::DETACH);
        let _ = std::fs::remove_dir(&self.tmp);
    }
}

impl Steps {
    fn take(&self) -> io::Result<()> {
        // SAFETY: the flag gives this process mounts of its own; memory safety does not depend on them.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
        let mut trees = [const { None }; FOLDERS_MAX];
        for (tree, folder) in trees.iter_mut().zip(&self.folders) {
            *tree = Some(open_tree(CWD, folder, OpenTreeFlags::OPEN_TREE_CLONE)?);
        }
        mount_bind(&self.tmp, c"/tmp")?;
        for (tree, folder) in trees.iter().zip(&self.folders) {
            let Some(tree) = tree else { continue };
            move_mount(tree, c"", CWD, folder, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        }
        drop_capabilities()
    }
}

/// Leaves this process, and what it executes, the capabilities [`KEPT`] and no other.
fn drop_capabilities() -> io::Result<()> {
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // The kernel does not know this one.
            Ok(()) | Err(io::Errno::INVAL) => {}
            Err(e) => return Err(e),
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let inheritable = CapabilitySet::empty();
    let sets = CapabilitySets { effective: KEPT, permitted: KEPT, inheritable };
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::set_no_new_privs(true)
}

fn text(path: &Path) -> Result<CString, HostsError> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| HostsError::Spec(format!("{}: a null character", path.display())))
}
