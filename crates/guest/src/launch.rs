//! Starting a guest: the command of its kernel.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use rustix::thread::CpuSet;
use suiro_units::{Bytes, Seed};

use crate::clock::{Clock, UP};
use crate::kernel::Kernel;

/// A guest that is to be started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Its kernel.
    pub kernel: Kernel,
    /// Its memory. It takes of the machine what it uses, this much at most.
    pub memory: Bytes,
    /// What all random numbers of its kernel come from.
    pub seed: Seed,
    /// Its wall clock when its program starts, in nanoseconds since 1970 UTC.
    pub wall_clock_ns: u64,
    /// The CPU to run on. A guest is one process at a time; the handing over between them costs five times as much from one
    /// CPU to another.
    pub cpu: Option<usize>,
}

/// Why a guest cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A path that the kernel's command line cannot hold.
    #[error(
        "{0}: a guest's kernel takes no path with a quotation mark or a line break\nhint: use another folder"
    )]
    Path(PathBuf),
    /// The system refused.
    #[error("{doing}: {cause}")]
    Os {
        /// What was being done.
        doing: &'static str,
        /// The system's error.
        cause: io::Error,
    },
}

impl Launch {
    /// The command that starts the guest, and its clock. `program` is this program on the host, started in the guest as
    /// `PROGRAM guest HANDOVER`, which must call [`inside::init`](crate::inside::init); `handover` is the path of a
    /// [`Handover`](crate::Handover) on the host.
    ///
    /// The command dies with the thread that starts it. Its standard output and standard error are those of the guest's
    /// program; the guest's kernel prints its errors on the latter, too. SIGTERM asks the guest's program to stop.
    ///
    /// # Errors
    /// If the kernel's command line cannot hold a path, or the system refuses.
    pub fn command(
        &self,
        program: &Path,
        handover: &Path,
    ) -> Result<(Command, Clock), LaunchError> {
        let clock = Clock::new()
            .map_err(|cause| LaunchError::Os { doing: "making the guest's clock", cause })?;
        let mut command = Command::new(&self.kernel.program);
        // The kernel looks for the end of its stack at the end of its environment, so that cannot be empty.
        command.env_clear().env("LANG", "C");
        command.args([
            format!("mem={}", self.memory.get()),
            format!("seed={}", self.seed),
            format!("time-travel-start={}", self.wall_clock_ns.saturating_sub(UP.as_nanos())),
            format!("time-travel-show={}", clock.fd()),
        ]);
        command.args(FIXED);
        command.arg(quoted("init=", program)?);
        command.args(["--", "guest"]);
        command.arg(quoted("", handover)?);
        let child = Child {
            clock: clock.fd(),
            cpu: self.cpu.map(|cpu| {
                let mut set = CpuSet::new();
                set.set(cpu);
                set
            }),
            parent: std::process::id(),
        };
        // SAFETY: between fork and exec it makes system calls on prepared data and allocates nothing.
        unsafe { command.pre_exec(move || child.prepare()) };
        Ok((command, clock))
    }
}

/// The arguments of the kernel that are the same for every guest.
const FIXED: [&str; 15] = [
    // The host's files, read-only; the guest's init mounts what may be written.
    // Without a root here, the kernel adds one at the end, where it would be an argument of init.
    "root=98:0",
    "rootfstype=hostfs",
    "rootflags=/",
    "ro",
    // Time advances only when all processes are idle.
    "time-travel=inf-cpu",
    "seccomp=on",
    // A sampler of sockets looks at every slot of these tables, 100 times a second in each host.
    "thash_entries=256",
    "uhash_entries=256",
    // Programs are at the same addresses in every guest.
    "norandmaps",
    // Terminal 0 is standard output, terminal 1 standard error and the kernel's own. Neither has an input.
    "con=null",
    "con0=null,fd:1",
    "con1=null,fd:2",
    "console=tty1",
    "quiet",
    // A panic ends the guest.
    "panic=-1",
];

/// As the kernel's command line takes a path that may contain spaces.
fn quoted(before: &str, path: &Path) -> Result<OsString, LaunchError> {
    let text = path.to_str().filter(|text| !text.contains(['"', '\n']));
    let text = text.ok_or_else(|| LaunchError::Path(path.to_owned()))?;
    Ok(format!("{before}\"{text}\"").into())
}

/// What the new process does before it becomes the guest's kernel.
struct Child {
    clock: i32,
    cpu: Option<CpuSet>,
    parent: u32,
}

impl Child {
    fn prepare(&self) -> io::Result<()> {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        let parent =
            rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
        if parent != Some(self.parent) {
            // It ended before it was tied to us.
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // SAFETY: a plain number; the descriptor belongs to this process, which passes it on.
        if unsafe { libc::fcntl(self.clock, libc::F_SETFD, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // Without it the kernel starts itself once more, or, where it is forbidden, runs at other addresses of the host.
        // SAFETY: plain numbers.
        unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
        // The kernel has a file open for each file of the host that is open in the guest, and a socket for each address space.
        // Ten browsers come near the usual limit of 1024.
        let files = getrlimit(Resource::Nofile);
        // It matters only to a guest with many programs.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files });
        if let Some(cpu) = &self.cpu {
            // It only makes the guest faster.
            let _ = rustix::thread::sched_setaffinity(None, cpu);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch() -> Launch {
        Launch {
            kernel: Kernel {
                program: "/kernel/linux".into(),
                version: "7.2".into(),
                sha256: String::new(),
            },
            memory: Bytes::new(1 << 30),
            seed: Seed(7),
            wall_clock_ns: 1_767_225_600_000_000_000,
            cpu: None,
        }
    }

    #[test]
    fn the_kernel_is_told_what_to_run() {
        let made = launch().command(Path::new("/my bin/suiro"), Path::new("/out/guest.json"));
        let (command, clock) = made.unwrap();
        let arguments: Vec<_> = command.get_args().map(|arg| arg.to_str().unwrap()).collect();
        assert!(arguments.starts_with(&["mem=1073741824", "seed=7"]), "{arguments:?}");
        let end = ["init=\"/my bin/suiro\"", "--", "guest", "\"/out/guest.json\""];
        assert!(arguments.ends_with(&end), "{arguments:?}");
        assert_eq!(clock.now(), suiro_units::Time::ZERO);
    }

    #[test]
    fn a_guest_may_open_as_many_files_as_its_user_may() {
        let files = getrlimit(Resource::Nofile);
        let fewer = Rlimit { current: files.maximum.map(|most| most - 1), ..files };
        setrlimit(Resource::Nofile, fewer).unwrap();
        let clock = Clock::new().unwrap();
        let child = Child { clock: clock.fd(), cpu: None, parent: std::process::id() };
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -Sn; ulimit -Hn"]);
        // SAFETY: as above.
        unsafe { command.pre_exec(move || child.prepare()) };
        let printed = command.output().unwrap().stdout;
        let printed = String::from_utf8(printed).unwrap();
        let (soft, hard) = printed.trim().split_once('\n').unwrap();
        assert_eq!(soft, hard);
    }

    #[test]
    fn a_path_that_the_command_line_cannot_hold_is_refused() {
        let error = launch().command(Path::new("/a\"b"), Path::new("/c")).unwrap_err();
        assert!(error.to_string().contains("hint: use another folder"), "{error}");
    }
}
