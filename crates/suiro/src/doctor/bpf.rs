//! BPF: the program types that the layer probes and TCP algorithms are made of. Each is tried by
//! loading the shortest program of its kind, which is let go at once and attached to nothing.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use super::btf::{Btf, Kind};
use super::{Check, State};

const GROUP: &str = "bpf";
const TYPES_FILE: &str = "/sys/kernel/btf/vmlinux";

/// A program type and what it attaches to; numbers from linux/bpf.h.
struct Program {
    name: &'static str,
    purpose: &'static str,
    kind: u32,
    attach: u32,
    /// The type of the kernel that the program is checked against, if its kind needs one.
    target: Option<(Kind, &'static str)>,
}

const PROGRAMS: [Program; 8] = [
    Program { name: "raw_tp", purpose: "per-ACK TCP records", kind: 17, attach: 0, target: None },
    Program {
        name: "tracepoint",
        purpose: "layer probes: scheduler, softirq, drops",
        kind: 5,
        attach: 0,
        target: None,
    },
    Program {
        name: "tp_btf",
        purpose: "layer probes: system call, link",
        kind: 26,
        attach: 23,
        target: Some((Kind::Typedef, "btf_trace_sched_switch")),
    },
    Program {
        name: "iter",
        purpose: "layer probes: the sockets that are there",
        kind: 26,
        attach: 28,
        target: Some((Kind::Function, "bpf_iter_task")),
    },
    Program {
        name: "cgroup_skb",
        purpose: "layer probes: before the socket queue",
        kind: 8,
        attach: 0,
        target: None,
    },
    Program { name: "netfilter", purpose: "layer probes: IP", kind: 32, attach: 45, target: None },
    Program {
        name: "struct_ops",
        purpose: "TCP algorithms of our own",
        kind: 27,
        attach: 0,
        target: Some((Kind::Struct, "tcp_congestion_ops")),
    },
    Program {
        name: "uprobe",
        purpose: "layer probes: inside an application",
        kind: 2,
        attach: 0,
        target: None,
    },
];

/// All checks of this module.
pub fn checks() -> Vec<Check> {
    let btf = Btf::of_kernel();
    let mut checks = vec![types(btf.is_some())];
    checks.extend(PROGRAMS.iter().map(|program| program.check(btf.as_ref())));
    checks
}

fn types(there: bool) -> Check {
    let purpose = "programs that fit the running kernel";
    if there {
        return Check::ok(GROUP, "kernel types", purpose, TYPES_FILE);
    }
    let found = format!("no readable {TYPES_FILE}");
    let mend = "use a kernel with CONFIG_DEBUG_INFO_BTF=y, as distributions do";
    Check::ok(GROUP, "kernel types", purpose, &found).but(State::Missing, mend)
}

impl Program {
    fn check(&self, btf: Option<&Btf>) -> Check {
        let check = |found: &str| Check::ok(GROUP, self.name, self.purpose, found);
        let target = match self.target {
            None => 0,
            Some((kind, name)) => match btf.and_then(|btf| btf.find(kind, name)) {
                Some(number) => number,
                None => {
                    let found = format!("`{name}` is not among the kernel's types");
                    return check(&found).but(State::Missing, "");
                }
            },
        };
        match self.load(target) {
            Ok(_) => check("loads"),
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                let root = rustix::process::geteuid().is_root();
                let found = if root { "not permitted to this root" } else { "needs root" };
                check(found).but(State::Limited, if root { "" } else { "sudo suiro doctor" })
            }
            Err(error) => check(&format!("refused: {error}")).but(State::Missing, ""),
        }
    }

    /// Loads `return 0`; dropping the descriptor unloads it.
    fn load(&self, target: u32) -> io::Result<OwnedFd> {
        // r0 = 0; exit
        const RETURN_ZERO: [u64; 2] = [0xb7, 0x95];
        const PROG_LOAD: libc::c_long = 5;
        let attributes = LoadAttributes {
            kind: self.kind,
            instructions_count: 2,
            instructions: RETURN_ZERO.as_ptr() as u64,
            license: c"GPL".as_ptr() as u64,
            expected_attach_type: self.attach,
            attach_btf_id: target,
            ..LoadAttributes::default()
        };
        let size = size_of::<LoadAttributes>();
        // SAFETY: the structure and what it points at outlive the call, which only reads them.
        let fd = unsafe { libc::syscall(libc::SYS_bpf, PROG_LOAD, &raw const attributes, size) };
        match i32::try_from(fd) {
            // SAFETY: the kernel made this descriptor for us.
            Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The beginning of `union bpf_attr` for BPF_PROG_LOAD; what follows is zero to the kernel.
#[repr(C)]
#[derive(Default)]
struct LoadAttributes {
    kind: u32,
    instructions_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buffer: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
    btf_fd: u32,
    function_info_size: u32,
    function_info: u64,
    function_info_count: u32,
    line_info_size: u32,
    line_info: u64,
    line_info_count: u32,
    attach_btf_id: u32,
}
