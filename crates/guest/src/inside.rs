//! The first process of a guest: it mounts what the guest needs, runs one program, and switches the guest off.

use std::convert::Infallible;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use rustix::mount::{MountFlags, mount};
use rustix::process::Signal;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};
use suiro_hosts::Sandbox;

use crate::clock::UP;
use crate::handover::{Handover, ROOM};

/// Largest handover.
const HANDOVER_BYTES_MAX: u64 = 1 << 20;
/// The file system of a guest's root: statfs(2) of a User-Mode Linux.
const HOSTFS: rustix::fs::FsWord = 0x00c0_ffee;
/// Exit code of a guest whose init failed. Programs use lower ones, signals higher ones.
const FAILED: u8 = 125;

/// The terminals that the host has as the guest's standard output and standard error; the latter is the kernel's console.
const OUTPUT: &str = "/dev/tty0";
const ERRORS: &str = "/dev/tty1";

/// Why a guest's init failed.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {cause}")]
pub struct InitError {
    doing: String,
    cause: io::Error,
}

fn error<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> InitError {
    let doing = doing.into();
    move |cause| InitError { doing, cause: cause.into() }
}

/// What the init of a guest does, as process 1: `file` is the path of the handover on the host. It ends by switching the
/// guest off; the exit code of the guest is then that of its program, 128 + N if signal N ended it, or 125 if what was
/// measured could not be written.
///
/// # Errors
/// If this is not the first process of a guest, or the guest cannot be set up.
pub fn init(file: &Path) -> Result<Infallible, InitError> {
    let root = rustix::fs::statfs("/").map_err(error("looking at the root folder"))?;
    let again = file.starts_with(ROOM);
    if std::process::id() != 1 || root.f_type != HOSTFS {
        let here = io::Error::other("this half of suiro runs as the init of a guest only");
        return Err(error("starting a guest")(here));
    }
    let text = suiro_outside::file::read_text(file, HANDOVER_BYTES_MAX)
        .map_err(error(format!("reading {}", file.display())))?;
    let handover: Handover = serde_json::from_str(&text)
        .map_err(|cause| error(format!("reading {}", file.display()))(io::Error::from(cause)))?;
    if !again {
        return mount_all(&handover).and_then(|()| start_again(&handover, &text));
    }
    let code = match run(&handover) {
        Ok(status) => code_of(status),
        Err(error) => {
            tell(&error.to_string());
            FAILED
        }
    };
    switch_off(code)
}

/// The mounts of a guest. Its root is the host's, read-only.
fn mount_all(handover: &Handover) -> Result<(), InitError> {
    let plain = MountFlags::NOSUID | MountFlags::NODEV;
    let system = |kind: &str, target: &str, flags: MountFlags, data: &str| {
        let data = CString::new(data).expect("no null byte: written below");
        mount(kind, target, kind, flags, data.as_c_str())
            .map_err(error(format!("mounting {target} in the guest")))
    };
    system("proc", "/proc", plain, "")?;
    system("sysfs", "/sys", plain, "")?;
    system("devtmpfs", "/dev", MountFlags::NOSUID, "")?;
    for folder in ["/dev/pts", "/dev/shm"] {
        std::fs::create_dir_all(folder).map_err(error(format!("making {folder}")))?;
    }
    system("devpts", "/dev/pts", MountFlags::NOSUID, "mode=620,ptmxmode=666")?;
    for folder in ["/dev/shm", "/run", "/tmp"] {
        system("tmpfs", folder, plain, if folder == "/run" { "mode=755" } else { "mode=1777" })?;
    }
    for folder in &handover.mounts {
        let target = Path::new(ROOM).join(&folder.name);
        let doing = || format!("mounting {} in the guest", folder.host.display());
        std::fs::create_dir_all(&target).map_err(error(doing()))?;
        let host = CString::new(folder.host.as_os_str().as_encoded_bytes())
            .map_err(|cause| error(doing())(io::Error::from(cause)))?;
        let flags = if folder.writable { plain } else { plain | MountFlags::RDONLY };
        mount("host", &target, "hostfs", flags, host.as_c_str()).map_err(error(doing()))?;
    }
    rustix::system::sethostname(b"guest").map_err(error("naming the guest"))
}

/// Executes this program again from the place that it has in every guest, with the environment of the program to run:
/// from there on, nothing in its memory depends on where things are on the host.
fn start_again(handover: &Handover, text: &str) -> Result<Infallible, InitError> {
    let file = Path::new(ROOM).join("guest.json");
    std::fs::write(&file, text).map_err(error(format!("writing {}", file.display())))?;
    let mut again = Command::new(&handover.program);
    again.arg("guest").arg(&file).env_clear().envs(&handover.environment);
    again.current_dir(&handover.working);
    let cause = again.exec();
    Err(error(format!("starting {} in the guest", handover.program.display()))(cause))
}

/// Runs the program in a sandbox, as on the host, and makes sure that what it wrote is on the host.
fn run(handover: &Handover) -> Result<ExitStatus, InitError> {
    // Before the kernel sends any: one that is blocked waits, one that is not would be ignored.
    let interrupts = Interrupts::block();
    // Without this, asking the guest to stop would restart it at once.
    // SAFETY: a plain number.
    unsafe { libc::reboot(libc::RB_DISABLE_CAD) };
    let written: Vec<File> = written(handover)?;
    // Nothing runs meanwhile, so it takes no time on the host. A request to stop ends it early, and the program at once.
    let up = Timespec { tv_sec: (UP.as_nanos() / 1_000_000_000).cast_signed(), tv_nsec: 0 };
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &up);
    let null = File::open("/dev/null").map_err(error("opening /dev/null"))?;
    let sandbox = Sandbox::new(&handover.arguments).stdin(null);
    let worker = sandbox.stdout(console(OUTPUT)?).stderr(console(ERRORS)?).spawn();
    let mut worker =
        worker.map_err(|cause| error("starting the guest's program")(io::Error::other(cause)))?;
    let pidfd = worker.pidfd().try_clone_to_owned().map_err(error("watching the program"))?;
    interrupts.forward(pidfd).map_err(error("watching for a request to stop"))?;
    let status = worker.wait().map_err(error("waiting for the guest's program"))?;
    for folder in &written {
        rustix::fs::syncfs(folder.as_fd()).map_err(error("writing the results"))?;
    }
    Ok(status)
}

/// A terminal without an input that passes on every byte as it is.
fn console(name: &str) -> Result<File, InitError> {
    let open = || -> io::Result<File> {
        let terminal = File::options().read(true).write(true).open(name)?;
        let mut modes = tcgetattr(&terminal)?;
        modes.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &modes)?;
        Ok(terminal)
    };
    open().map_err(error(format!("opening {name}")))
}

/// The folders that the guest writes to, opened before it does, so that syncing them reports every error since then.
fn written(handover: &Handover) -> Result<Vec<File>, InitError> {
    let writable = handover.mounts.iter().filter(|folder| folder.writable);
    let open = |folder: &crate::Mount| {
        let path: PathBuf = Path::new(ROOM).join(&folder.name);
        File::open(&path).map_err(error(format!("opening {}", path.display())))
    };
    writable.map(open).collect()
}

/// SIGINT, which the kernel sends to init when the guest is asked to stop.
struct Interrupts(libc::sigset_t);

impl Interrupts {
    fn block() -> Self {
        // SAFETY: a set on the stack, filled before it is used; it affects this thread and those that it starts.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            Self(set)
        }
    }

    /// Passes each on to the program, as SIGTERM.
    fn forward(self, program: impl AsFd + Send + 'static) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("interrupts".to_owned());
        let forward = move || {
            let Self(set) = self;
            let mut signal = 0;
            // SAFETY: both live on this stack.
            while unsafe { libc::sigwait(&raw const set, &raw mut signal) } == 0 {
                let _ = rustix::process::pidfd_send_signal(&program, Signal::TERM);
            }
        };
        thread.spawn(forward).map(drop)
    }
}

fn tell(text: &str) {
    use std::io::Write;
    if let Ok(mut console) = console(ERRORS) {
        let _ = writeln!(console, "{text}");
    }
}

fn code_of(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| signal.saturating_add(128));
    status.code().or(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED)
}

/// Switches the guest off. The host sees a process that ends with this exit code.
fn switch_off(code: u8) -> Result<Infallible, InitError> {
    std::fs::write("/proc/exitcode", code.to_string()).map_err(error("leaving an exit code"))?;
    // That the guest is off is not worth a line.
    std::fs::write("/proc/sys/kernel/printk", "0 4 0 7").map_err(error("silencing the kernel"))?;
    rustix::fs::sync();
    // SAFETY: a plain number; this process is the init of a guest.
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
    Err(error("switching the guest off")(io::Error::last_os_error()))
}
