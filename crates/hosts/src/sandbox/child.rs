//! What happens between `clone3` and `execve`, in the new process.
//!
//! The process is a copy of one thread of a multithreaded program: other threads may have held any
//! lock when it was copied. So nothing here allocates, locks or panics; it makes system calls only,
//! on data prepared in advance ([`Plan`]).

use std::ffi::{CStr, CString};
use std::os::fd::RawFd;

/// How far the new process got; reported to its parent when a step fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Step {
    Guard = 1,
    DenyGroups,
    MapUsers,
    MapGroups,
    PrivateMounts,
    MountProc,
    Streams,
    Exec,
}

impl Step {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        use Step::{
            DenyGroups, Exec, Guard, MapGroups, MapUsers, MountProc, PrivateMounts, Streams,
        };
        [Guard, DenyGroups, MapUsers, MapGroups, PrivateMounts, MountProc, Streams, Exec]
            .into_iter()
            .find(|step| *step as u8 == byte)
    }

    pub(super) fn doing(self) -> &'static str {
        match self {
            Self::Guard => "tying the new process to this one",
            Self::DenyGroups => "writing /proc/self/setgroups",
            Self::MapUsers => "writing /proc/self/uid_map",
            Self::MapGroups => "writing /proc/self/gid_map",
            Self::PrivateMounts => PRIVATE_MOUNTS,
            Self::MountProc => "mounting a fresh /proc",
            Self::Streams => "placing standard input and output",
            Self::Exec => "executing /proc/self/exe",
        }
    }
}

/// What [`Step::PrivateMounts`] does, in messages.
pub(super) const PRIVATE_MOUNTS: &str = "making mounts private";

/// Sent by the new process once it is tied to its parent's death.
pub(super) const GUARDED: u8 = 0;

/// Everything that the new process needs, made before it exists.
pub(super) struct Plan {
    /// Identity maps to write; `None` if no user namespace was requested.
    pub maps: Option<Maps>,
    /// Standard input, output and error; each ≥ 3. `None` keeps the parent's.
    pub streams: [Option<RawFd>; 3],
    /// Arguments and environment, null-terminated; `None` ends the process once it is set up.
    pub image: Option<Image>,
}

pub(super) struct Maps {
    pub users: CString,
    pub groups: CString,
}

/// Arguments and environment as `execve` expects them.
pub(super) struct Image {
    _texts: Vec<CString>,
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
}

// SAFETY: the pointers point into `_texts`, whose heap memory moves with the struct.
unsafe impl Send for Image {}

impl Image {
    pub(super) fn new(arguments: Vec<CString>, environment: Vec<CString>) -> Self {
        let pointers = |texts: &[CString]| {
            texts.iter().map(|t| t.as_ptr()).chain([std::ptr::null()]).collect::<Vec<_>>()
        };
        let (a, e) = (pointers(&arguments), pointers(&environment));
        let texts = arguments.into_iter().chain(environment).collect();
        Self { _texts: texts, arguments: a, environment: e }
    }
}

/// Sets up the new process and runs its program. `control` is its end of the socket to its parent.
pub(super) fn run(plan: &Plan, control: RawFd, makers_end: RawFd) -> ! {
    let step = match set_up(plan, control, makers_end) {
        Ok(()) => match &plan.image {
            None => exit(0),
            Some(image) => {
                // SAFETY: both vectors are null-terminated and point to live C strings.
                unsafe {
                    libc::execve(
                        c"/proc/self/exe".as_ptr(),
                        image.arguments.as_ptr(),
                        image.environment.as_ptr(),
                    );
                }
                Step::Exec
            }
        },
        Err(step) => step,
    };
    // SAFETY: errno of this thread.
    let errno = unsafe { *libc::__errno_location() };
    let [a, b, c, d] = errno.to_le_bytes();
    let record = [step as u8, a, b, c, d];
    // SAFETY: writes five bytes of a live array.
    unsafe { libc::write(control, record.as_ptr().cast(), record.len()) };
    exit(127)
}

fn exit(code: i32) -> ! {
    // SAFETY: ends this process without running the copied program's exit handlers.
    unsafe { libc::_exit(code) }
}

fn set_up(plan: &Plan, control: RawFd, makers_end: RawFd) -> Result<(), Step> {
    guard(control, makers_end)?;
    if let Some(maps) = &plan.maps {
        // user_namespaces(7): setgroups must be denied before an unprivileged user may map a group.
        write_file(c"/proc/self/setgroups", c"deny").ok_or(Step::DenyGroups)?;
        write_file(c"/proc/self/uid_map", &maps.users).ok_or(Step::MapUsers)?;
        write_file(c"/proc/self/gid_map", &maps.groups).ok_or(Step::MapGroups)?;
    }
    let private = libc::MS_REC | libc::MS_PRIVATE;
    mount(c"none", c"/", None, private).ok_or(Step::PrivateMounts)?;
    let plain = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    mount(c"proc", c"/proc", Some(c"proc"), plain).ok_or(Step::MountProc)?;
    for (target, stream) in plan.streams.iter().enumerate() {
        if let Some(fd) = stream {
            // SAFETY: both are plain numbers; dup2 clears close-on-exec on the target.
            check(unsafe { libc::dup2(*fd, target as RawFd) }).ok_or(Step::Streams)?;
        }
    }
    reset_signals();
    Ok(())
}

/// Asks the kernel to kill this process when its parent's thread ends, and then makes sure that the
/// parent is still there: a parent that is gone does not answer.
fn guard(control: RawFd, makers_end: RawFd) -> Result<(), Step> {
    // SAFETY: closes this process's copy, so that reading returns end of file when the parent is
    // gone.
    unsafe { libc::close(makers_end) };
    // SAFETY: takes plain numbers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).ok_or(Step::Guard)?;
    let mut byte = [GUARDED];
    // SAFETY: one byte of a live array, twice.
    unsafe {
        if libc::write(control, byte.as_ptr().cast(), 1) != 1
            || libc::read(control, byte.as_mut_ptr().cast(), 1) != 1
        {
            exit(127);
        }
    }
    Ok(())
}

fn reset_signals() {
    // SAFETY: an empty set on the stack; Rust ignores SIGPIPE, a new program expects the default.
    unsafe {
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&mut none);
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

fn write_file(path: &CStr, text: &CStr) -> Option<()> {
    let bytes = text.to_bytes();
    // SAFETY: live C strings; the descriptor is closed below.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        check(fd)?;
        let written = libc::write(fd, bytes.as_ptr().cast(), bytes.len());
        let errno = *libc::__errno_location();
        libc::close(fd);
        *libc::__errno_location() = errno;
        (written == bytes.len() as isize).then_some(())
    }
}

fn mount(source: &CStr, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> Option<()> {
    let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: live C strings; no data.
    check(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, std::ptr::null()) })
}

fn check(result: libc::c_int) -> Option<()> {
    (result >= 0).then_some(())
}
