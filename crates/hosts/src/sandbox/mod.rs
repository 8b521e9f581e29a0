//! A process of our own program in its own namespaces, which cannot outlive its parent.
//!
//! [`Sandbox::spawn`] starts `/proc/self/exe` with `clone3` as the init (PID 1) of new PID, mount,
//! network and IPC namespaces; for an ordinary user also of a new user namespace, in which that
//! user is root. Two guarantees of the kernel then ensure that nothing is left behind:
//!
//! - PR_SET_PDEATHSIG: when the parent dies, even of SIGKILL, the kernel kills the new process;
//! - when the init of a PID namespace dies, the kernel kills every process in the namespace, and
//!   removes namespaces and mounts that are no longer held.
//!
//! PR_SET_PDEATHSIG fires when the *thread* that forked ends, so one thread that lives as long as
//! the program makes all sandboxes. As PID 1, the new process gets only the signals that it handles
//! (and SIGKILL): a worker that should stop on SIGTERM must install a handler.

use std::ffi::{CString, OsString};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use child::{Image, Maps, Plan, Step};

mod child;
mod refusal;

/// The privilege that a sandbox is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// As root with CAP_SYS_ADMIN: no user namespace.
    Root,
    /// As an ordinary user, who becomes root in a user namespace of the sandbox.
    User,
}

impl Privilege {
    /// The privilege that this process has.
    pub fn of_this_process() -> Self {
        let admin = rustix::thread::capabilities(None)
            .is_ok_and(|sets| sets.effective.contains(rustix::thread::CapabilitySet::SYS_ADMIN));
        let root = rustix::process::geteuid().is_root() && admin;
        if root { Self::Root } else { Self::User }
    }
}

impl std::fmt::Display for Privilege {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Root => "root",
            Self::User => "user",
        })
    }
}

/// Why a sandbox could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// This system does not allow this user to make the namespaces.
    #[error("{doing}: {reason}\nhint: {hint}")]
    Forbidden {
        /// What was being done.
        doing: String,
        /// The setting that forbids it.
        reason: String,
        /// How to fix it.
        hint: String,
    },
    /// The system refused for another reason.
    #[error("{doing}: {cause}")]
    Os {
        /// What was being done.
        doing: String,
        /// The kernel's error.
        cause: io::Error,
    },
}

/// A process about to be started; see the [module](self).
#[derive(Debug)]
pub struct Sandbox {
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    streams: [Option<OwnedFd>; 3],
    privilege: Privilege,
}

impl Sandbox {
    /// Our own program with these arguments (without the program's name). It inherits environment,
    /// working folder and standard streams.
    pub fn new<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self {
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: std::env::vars_os().collect(),
            streams: [None, None, None],
            privilege: Privilege::of_this_process(),
        }
    }

    /// Uses this privilege; the default is that of this process. Root may ask for
    /// [`Privilege::User`], to see what an ordinary user would.
    pub fn privilege(mut self, privilege: Privilege) -> Self {
        self.privilege = privilege;
        self
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.environment.retain(|(have, _)| *have != name);
        self.environment.push((name, value.into()));
        self
    }

    /// Uses this as standard input.
    pub fn stdin(mut self, stream: impl Into<OwnedFd>) -> Self {
        self.streams[0] = Some(stream.into());
        self
    }

    /// Uses this as standard output.
    pub fn stdout(mut self, stream: impl Into<OwnedFd>) -> Self {
        self.streams[1] = Some(stream.into());
        self
    }

    /// Uses this as standard error.
    pub fn stderr(mut self, stream: impl Into<OwnedFd>) -> Self {
        self.streams[2] = Some(stream.into());
        self
    }

    /// Starts the process. When this returns, the namespaces exist, /proc is the sandbox's own, and
    /// the program is running.
    pub fn spawn(self) -> Result<Worker, SandboxError> {
        let os = |doing: &str| {
            let doing = doing.to_owned();
            move |cause| SandboxError::Os { doing, cause }
        };
        let image = Image::new(self.argument_texts()?, self.environment_texts()?);
        // Above the standard streams, so that placing one does not overwrite another.
        let mut streams = [None, None, None];
        for (above, stream) in streams.iter_mut().zip(&self.streams) {
            if let Some(fd) = stream {
                let copy = rustix::io::fcntl_dupfd_cloexec(fd, 3)
                    .map_err(|e| os("copying a standard stream")(e.into()))?;
                *above = Some(copy);
            }
        }
        make(self.privilege, Some(image), streams)
    }

    fn argument_texts(&self) -> Result<Vec<CString>, SandboxError> {
        let name = std::env::args_os().next().unwrap_or_else(|| "suiro".into());
        std::iter::once(&name).chain(&self.arguments).map(|text| c_string(text.clone())).collect()
    }

    fn environment_texts(&self) -> Result<Vec<CString>, SandboxError> {
        self.environment
            .iter()
            .map(|(name, value)| {
                let mut text = name.clone();
                text.push("=");
                text.push(value);
                c_string(text)
            })
            .collect()
    }
}

/// Makes a sandbox that ends at once, to find out whether this system permits them with that
/// privilege.
pub fn probe(privilege: Privilege) -> Result<(), SandboxError> {
    let wait = |mut worker: Worker| worker.wait();
    let os = |cause| SandboxError::Os { doing: "waiting for a sandbox".into(), cause };
    wait(make(privilege, None, [None, None, None])?).map(drop).map_err(os)
}

fn c_string(text: OsString) -> Result<CString, SandboxError> {
    CString::new(text.into_vec()).map_err(|e| SandboxError::Os {
        doing: "preparing the arguments of a sandbox".into(),
        cause: e.into(),
    })
}

fn make(
    privilege: Privilege,
    image: Option<Image>,
    streams: [Option<OwnedFd>; 3],
) -> Result<Worker, SandboxError> {
    let maps = (privilege == Privilege::User).then(|| Maps {
        users: map_to_root(rustix::process::geteuid().as_raw()),
        groups: map_to_root(rustix::process::getegid().as_raw()),
    });
    let (sender, result) = channel();
    let job = Box::new(move || {
        let plan = Plan {
            maps,
            streams: std::array::from_fn(|i| streams[i].as_ref().map(AsRawFd::as_raw_fd)),
            image,
        };
        // The receiver waits below.
        let _ = sender.send(start(&plan, privilege));
    });
    nursery()?.send(job).expect("the nursery never ends");
    result.recv().expect("the nursery answers every job")
}

/// A map of one identity: root inside is `id` outside.
fn map_to_root(id: u32) -> CString {
    CString::new(format!("0 {id} 1")).expect("digits hold no null byte")
}

type Job = Box<dyn FnOnce() + Send>;

/// The thread that forks. It blocks all signals, so that no handler runs in a copy, and it never
/// ends, so that PR_SET_PDEATHSIG fires only at the end of the program.
fn nursery() -> Result<Sender<Job>, SandboxError> {
    static NURSERY: OnceLock<Sender<Job>> = OnceLock::new();
    if let Some(jobs) = NURSERY.get() {
        return Ok(jobs.clone());
    }
    let (sender, jobs) = channel::<Job>();
    let keep = sender.clone();
    std::thread::Builder::new()
        .name("nursery".into())
        .spawn(move || {
            let _own_sender = keep;
            block_signals();
            for job in jobs {
                job();
            }
        })
        .map_err(|cause| SandboxError::Os { doing: "starting a thread".into(), cause })?;
    // If two callers race, both threads live on and one of them is used.
    Ok(NURSERY.get_or_init(|| sender).clone())
}

fn block_signals() {
    // SAFETY: a full set on the stack; affects this thread only.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
}

fn start(plan: &Plan, privilege: Privilege) -> Result<Worker, SandboxError> {
    let (mut ours, theirs) = UnixStream::pair()
        .map_err(|cause| SandboxError::Os { doing: "making a socket pair".into(), cause })?;
    let worker =
        clone_process(privilege, || child::run(plan, theirs.as_raw_fd(), ours.as_raw_fd()))
            .map_err(|cause| refusal::explain("making namespaces", cause))?;
    drop(theirs);
    match converse(&mut ours) {
        Ok(None) => Ok(worker),
        Ok(Some((step, source))) => Err(refusal::explain(step.doing(), source)),
        Err(cause) => Err(SandboxError::Os { doing: "talking to the new process".into(), cause }),
    }
}

/// Waits until the process is tied to us, lets it go on, and waits for an error. No message means
/// success, because its end of the socket closes when its program starts.
fn converse(socket: &mut UnixStream) -> io::Result<Option<(Step, io::Error)>> {
    let mut first = [0; 1];
    socket.read_exact(&mut first)?;
    let mut record = Vec::new();
    if first[0] == child::GUARDED {
        socket.write_all(&[child::GUARDED])?;
    } else {
        record.push(first[0]);
    }
    socket.read_to_end(&mut record)?;
    match record[..] {
        [] => Ok(None),
        [step, a, b, c, d] => {
            let step = Step::from_byte(step).ok_or(io::ErrorKind::InvalidData)?;
            let errno = i32::from_le_bytes([a, b, c, d]);
            Ok(Some((step, io::Error::from_raw_os_error(errno))))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// `clone3` into new namespaces; `child` runs in the new process and does not return.
fn clone_process(privilege: Privilege, child: impl FnOnce()) -> io::Result<Worker> {
    let mut flags = libc::CLONE_PIDFD
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC;
    if privilege == Privilege::User {
        flags |= libc::CLONE_NEWUSER;
    }
    let mut pidfd: libc::c_int = -1;
    // SAFETY: all zeros is clone3's default: like fork.
    let mut arguments = unsafe { std::mem::zeroed::<libc::clone_args>() };
    arguments.flags = u64::from(flags.cast_unsigned());
    arguments.pidfd = (&raw mut pidfd) as u64;
    arguments.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: like fork; `child` only makes system calls (see its module) and never returns.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>())
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            child();
            // SAFETY: not reached; a child must not keep running in a copy of its parent.
            unsafe { libc::_exit(127) }
        }
        // SAFETY: the kernel made this descriptor for us.
        pid => Ok(Worker {
            pid: pid as i32,
            pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) },
            ended: None,
        }),
    }
}

/// A process in its sandbox. Dropping it kills the process and everything it started.
#[derive(Debug)]
pub struct Worker {
    pid: i32,
    pidfd: OwnedFd,
    ended: Option<ExitStatus>,
}

impl Worker {
    /// Its process id, as this process sees it.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Readable once the process has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Sends a signal; harmless if the process has ended. Being PID 1, it receives only signals
    /// that it handles, and SIGKILL.
    pub fn signal(&self, signal: Signal) {
        // ESRCH is the only error that a valid pidfd and signal can give: it has ended.
        let _ = pidfd_send_signal(&self.pidfd, signal);
    }

    /// Waits until the process and everything it started have ended.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        let status = loop {
            match waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED) {
                Err(rustix::io::Errno::INTR) => {}
                other => break other?,
            }
        };
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        // The wait status word of wait(2): the exit code in the second byte, or the signal.
        let word = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => (code & 0xff) << 8,
            (None, Some(signal)) => signal,
            (None, None) => return Err(io::ErrorKind::InvalidData.into()),
        };
        Ok(*self.ended.insert(ExitStatus::from_raw(word)))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.signal(Signal::KILL);
            // Reaps it; a failure here cannot be reported to a caller.
            let _ = self.wait();
        }
    }
}
