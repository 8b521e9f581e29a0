//! What a scenario's commands may do.
//!
//! As an ordinary user the lab is root only in a user namespace, so its commands have the rights of that user. As root
//! there is no such namespace: without a limit a command could load kernel modules, trace any process, or name itself in
//! `/proc/sys/kernel/core_pattern`. [`Confinement`] leaves it what acts on its own host (network administration, raw
//! sockets, low ports, `/proc/sys/net`), and mounts of its own. All is read-only except the trial's folder and the working
//! folder. /tmp, /var/tmp and /run are empty, shared by the trial's commands, and end with the trial. Of the folders of
//! users, and of what only root may read in /etc, there is nothing but the folders that were named.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
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
/// Most memory that the files in the trial's /tmp take, and in the others together.
const TMP_SIZE: &CStr = c"mode=1777,size=1g";
const COVER_SIZE: &CStr = c"mode=755,size=1m";
/// Folders that the commands see empty and may write to, and their memory.
const SHARED: [(&str, &CStr); 3] =
    [("/tmp", TMP_SIZE), ("/var/tmp", TMP_SIZE), ("/run", COVER_SIZE)];
/// Where users' folders are.
const HOMES: [&str; 2] = ["/home", "/root"];
/// What only root may read, and commands need not.
const SECRETS: [&CStr; 5] =
    [c"/etc/shadow", c"/etc/shadow-", c"/etc/gshadow", c"/etc/gshadow-", c"/etc/ssh"];
/// What stays writable.
const SYSTEM: [&CStr; 2] = [c"/dev", c"/proc"];
/// What of /proc acts on the whole machine (read-only in containers, too), and what of it on the own host only.
const GLOBAL: [&CStr; 6] =
    [c"/proc/sys", c"/proc/sysrq-trigger", c"/proc/irq", c"/proc/bus", c"/proc/fs", c"/proc/acpi"];
const OWN: &CStr = c"/proc/sys/net";
/// Most folders that stay visible.
const FOLDERS_MAX: usize = 32;
/// Longest name of a working folder (`PATH_MAX`).
const PATH_MAX: usize = 4096;

/// Limits for the commands of one trial; see the [module](self).
#[derive(Debug)]
pub struct Confinement {
    /// Unmounted when it is dropped.
    _memory: Memory,
    steps: Arc<Steps>,
    kept: CapabilitySet,
}

/// Where memory is mounted that the commands see elsewhere.
#[derive(Debug, Default)]
struct Memory(Vec<PathBuf>);

/// What happens in the new process, prepared in advance: after `fork` it must not allocate.
#[derive(Debug)]
struct Steps {
    /// Memory, and where the commands see it.
    covers: Vec<Cover>,
    /// Folders that the commands still see, at their own path: those that they may only read first.
    folders: Vec<Folder>,
}

#[derive(Debug)]
struct Cover {
    memory: CString,
    over: CString,
    writable: bool,
}

#[derive(Debug)]
struct Folder {
    path: CString,
    writable: bool,
}

impl Confinement {
    /// Prepares memory below the folder `at`. Commands may write in the folders `writable`, the trial's folder and the working
    /// folder, for example; below /tmp, /run and the homes of users they see only these and the folders `readable`. Of
    /// those that do not exist none is taken, of the others the first 32.
    ///
    /// # Errors
    /// If the memory cannot be mounted, or a folder of `writable` is not there.
    pub fn prepare(
        at: &Path,
        writable: &[&Path],
        readable: &[PathBuf],
    ) -> Result<Self, HostsError> {
        let mut named = Vec::new();
        for folder in writable {
            let found = folder.canonicalize();
            named.push((
                found.map_err(HostsError::os(format!("finding {}", folder.display())))?,
                true,
            ));
        }
        let covered = |folder: &PathBuf| {
            let shared = SHARED.iter().map(|(over, _)| *over);
            HOMES.into_iter().chain(shared).any(|over| folder.starts_with(over))
        };
        let found = readable.iter().filter_map(|folder| folder.canonicalize().ok()).filter(covered);
        named.splice(0..0, found.take(FOLDERS_MAX - writable.len()).map(|folder| (folder, false)));
        // One that holds what is covered, such as /, would show it again.
        named.retain(|(folder, _)| {
            !SHARED.iter().any(|(over, _)| Path::new(over).starts_with(folder))
        });
        let mut memory = Memory::default();
        let mut covers = Vec::new();
        for (over, size) in SHARED {
            covers.extend(memory.cover(at, over, (size, true), &named)?);
        }
        for over in HOMES {
            covers.extend(memory.cover(at, over, (COVER_SIZE, false), &named)?);
        }
        let folders = named
            .iter()
            .map(|(path, writable)| Ok(Folder { path: text(path)?, writable: *writable }));
        let folders = folders.collect::<Result<_, HostsError>>()?;
        let steps = Arc::new(Steps { covers, folders });
        Ok(Self { _memory: memory, steps, kept: KEPT })
    }

    /// Whether a folder of that name, below the `at` of [`prepare`](Self::prepare), is one where memory was mounted.
    pub fn is_memory(folder: &OsStr) -> bool {
        let shared = SHARED.iter().map(|(over, _)| *over);
        HOMES.into_iter().chain(shared).any(|over| *folder == *memory_name(over))
    }

    /// The same, and commands may read and write files whoever owns them. In a guest, files have the owners that they have on
    /// the host, commands are root, and the host allows what the user may who started the guest.
    pub fn whoever_owns_files(mut self) -> Self {
        self.kept = KEPT.union(CapabilitySet::DAC_OVERRIDE);
        self
    }

    /// Makes `command` start with these limits. Call it after [`Host::command`](crate::Host::command), because the
    /// command can change its namespaces no more afterwards.
    pub fn command<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        // They would name a folder that the command does not see.
        for variable in ["TMPDIR", "TMP", "TEMP", "XDG_RUNTIME_DIR"] {
            command.env_remove(variable);
        }
        // Programs that keep settings in it shall find a place.
        command.env("HOME", "/tmp");
        let (steps, kept) = (Arc::clone(&self.steps), self.kept);
        // SAFETY: between fork and exec it makes system calls on prepared data and allocates nothing.
        unsafe { command.pre_exec(move || steps.take(kept).map_err(Into::into)) }
    }
}

impl Memory {
    /// Memory for the folder `over`, with places for the folders below it. None if it is a link or not there, or a home that
    /// is to be seen itself.
    fn cover(
        &mut self,
        at: &Path,
        over: &str,
        (size, writable): (&CStr, bool),
        named: &[(PathBuf, bool)],
    ) -> Result<Option<Cover>, HostsError> {
        let is_seen = !writable && named.iter().any(|(folder, _)| folder == Path::new(over));
        if is_seen || !std::fs::symlink_metadata(over).is_ok_and(|found| found.is_dir()) {
            return Ok(None);
        }
        let memory = at.join(memory_name(over));
        let doing = || format!("making {}", memory.display());
        std::fs::create_dir_all(&memory).map_err(HostsError::os(doing()))?;
        mount("suiro", &memory, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, size)
            .map_err(HostsError::os(format!("mounting memory on {}", memory.display())))?;
        self.0.push(memory.clone());
        for (folder, _) in named {
            if let Ok(below) = folder.strip_prefix(over) {
                std::fs::create_dir_all(memory.join(below)).map_err(HostsError::os(doing()))?;
            }
        }
        Ok(Some(Cover { memory: text(&memory)?, over: text(Path::new(over))?, writable }))
    }
}

/// The name of the folder whose memory the commands see at `over`.
fn memory_name(over: &str) -> String {
    format!(".{}", over.trim_start_matches('/').replace('/', "-"))
}

impl Drop for Memory {
    fn drop(&mut self) {
        for memory in &self.0 {
            // The mount is gone with the trial's mount namespace at the latest.
            let _ = unmount(memory, UnmountFlags::DETACH);
            let _ = std::fs::remove_dir(memory);
        }
    }
}

impl Steps {
    fn take(&self, kept: CapabilitySet) -> io::Result<()> {
        let mut working = [0; PATH_MAX];
        // SAFETY: the array is live and as long as is said.
        let here = unsafe { libc::getcwd(working.as_mut_ptr(), working.len()) };
        // SAFETY: the flag gives this process mounts of its own; memory safety does not depend on them.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
        // What is seen elsewhere, or stays writable, is taken out before everything becomes read-only.
        let mut covers = [const { None }; SHARED.len() + HOMES.len()];
        for (tree, cover) in covers.iter_mut().zip(&self.covers) {
            *tree = Some(taken(&cover.memory)?);
        }
        let mut folders = [const { None }; FOLDERS_MAX];
        for (tree, folder) in folders.iter_mut().zip(&self.folders) {
            *tree = Some(taken(&folder.path)?);
        }
        let mut system = [const { None }; SYSTEM.len()];
        for (tree, path) in system.iter_mut().zip(SYSTEM) {
            *tree = Some(taken(path)?);
        }
        read_only(CWD, c"/", true)?;
        for (tree, path) in system.iter().flatten().zip(SYSTEM) {
            put(tree, path)?;
        }
        limit_proc()?;
        for secret in SECRETS {
            hide(secret)?;
        }
        for (tree, cover) in covers.iter().flatten().zip(&self.covers) {
            put(tree, &cover.over)?;
        }
        for (tree, folder) in folders.iter().flatten().zip(&self.folders) {
            if !folder.writable {
                read_only(tree, c"", true)?;
            }
            put(tree, &folder.path)?;
        }
        for cover in self.covers.iter().filter(|cover| !cover.writable) {
            read_only(CWD, &cover.over, false)?;
        }
        if !here.is_null() {
            // SAFETY: getcwd wrote a C string. A working folder that is hidden leaves this process in one it can only read.
            unsafe { libc::chdir(here) };
        }
        drop_capabilities(kept)
    }
}

fn limit_proc() -> io::Result<()> {
    let own = taken(OWN)?;
    for path in GLOBAL {
        match mount_bind(path, path) {
            Ok(()) => read_only(CWD, path, false)?,
            // Not all kernels have all of them.
            Err(io::Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    put(&own, OWN)
}

/// A file becomes an empty one; a folder becomes one without entries.
fn hide(path: &CStr) -> io::Result<()> {
    let hidden = match mount_bind(c"/dev/null", path) {
        Err(io::Errno::NOTDIR) => {
            mount(c"suiro", path, c"tmpfs", MountFlags::RDONLY, c"mode=0,size=4k")
        }
        bound => bound,
    };
    match hidden {
        Ok(()) => read_only(CWD, path, false),
        Err(io::Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A copy of what is mounted at a path, with what is mounted below it.
fn taken(path: &CStr) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE;
    open_tree(CWD, path, flags | OpenTreeFlags::OPEN_TREE_CLOEXEC)
}

fn put(tree: impl AsFd, path: &CStr) -> io::Result<()> {
    move_mount(tree, c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// mount_setattr(2), of Linux 5.12. An empty path is the mount `at` itself.
fn read_only(at: impl AsFd, path: &CStr, recursive: bool) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let empty = if path.is_empty() { libc::AT_EMPTY_PATH } else { 0 };
    let flags = empty | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: a live C string and structure, whose size is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at.as_fd().as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    match result {
        0 => Ok(()),
        // SAFETY: errno of this thread.
        _ => Err(io::Errno::from_raw_os_error(unsafe { *libc::__errno_location() })),
    }
}

/// Leaves this process, and what it executes, the capabilities `kept` and no other.
fn drop_capabilities(kept: CapabilitySet) -> io::Result<()> {
    for capability in CapabilitySet::all().difference(kept).iter() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // The kernel does not know this one.
            Ok(()) | Err(io::Errno::INVAL) => {}
            Err(e) => return Err(e),
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let inheritable = CapabilitySet::empty();
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable };
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::set_no_new_privs(true)
}

fn text(path: &Path) -> Result<CString, HostsError> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| HostsError::Spec(format!("{}: a null character", path.display())))
}
