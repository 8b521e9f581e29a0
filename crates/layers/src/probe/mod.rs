//! The kernel's side: BPF programs at the service access points, one folder for each kind, the C
//! beside what reads it. `probes.bpf.c` makes one object of them.
//!
//! Only hooks that stay from kernel to kernel are used: tracepoints with BTF, netfilter links,
//! `cgroup_skb`. What a kernel lacks is left out and told. The programs wake nobody: who reads must
//! come often enough, and what found no room is counted.

use std::collections::BTreeMap;

use libbpf_rs::{
    ErrorKind, Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, ProgramMut,
};

use crate::event::Point;

mod kernel;
pub mod packet;
pub mod raw;
pub mod schedule;
pub mod settings;
pub mod timing;

pub use kernel::Kernel;
use raw::RAW_BYTES;
use records::Plain;
use settings::Settings;

/// An ELF file is read in place, where its headers must be aligned.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/probes.bpf.o")));

/// What the programs write and read, made by build.rs of their C types.
#[allow(dead_code, reason = "not all that is made is needed")]
mod records {
    include!(concat!(env!("OUT_DIR"), "/probes.rs"));
}

/// Why nothing can be probed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The capabilities lack.
    #[error(
        "probing the kernel: no permission: {0} is missing\n\
         hint: run it as root, or once: sudo setcap cap_bpf,cap_perfmon,cap_net_admin+ep {1}"
    )]
    Privilege(&'static str, String),
    /// The kernel refused.
    #[error(
        "probing the kernel: {0}\nhint: it needs BPF with BTF (Linux 6.4 or later); see suiro doctor"
    )]
    Bpf(#[from] libbpf_rs::Error),
}

/// What a kernel does not let us see, and why.
pub type Missing = BTreeMap<&'static str, String>;

/// The programs, by the names of their functions; each is at the tracepoint of its name but the first.
const PROGRAMS: [&str; 12] = [
    packet::NETFILTER,
    packet::CGROUP,
    "net_dev_queue",
    "net_dev_start_xmit",
    "netif_receive_skb",
    "kfree_skb",
    SYSTEM_CALLS,
    "sock_send_length",
    "sock_recv_length",
    "sched_wakeup",
    "sched_switch",
    "softirq_raise",
];
const SOFTIRQ_BEGINS: &str = "softirq_entry";
/// The program at every system call.
pub const SYSTEM_CALLS: &str = "sys_enter";

/// Programs at work, as long as it lives. It stays on the thread that made it.
pub struct Probes {
    object: Object,
    /// Where the programs count. It is looked at a hundred times a second, and finding a map takes longer than that.
    counters: MapHandle,
    links: Vec<Link>,
    missing: Missing,
}

impl Probes {
    /// Loads and attaches, in the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// No right to, or a kernel that cannot at all.
    pub fn attach(
        kernel: &Kernel,
        settings: &Settings<'_>,
        system_calls: bool,
    ) -> Result<Self, ProbeError> {
        check_privilege()?;
        let mut missing = Missing::new();
        for name in programs() {
            let is_tracepoint = name != packet::NETFILTER && name != packet::CGROUP;
            if is_tracepoint && !kernel.has_tracepoint(name) {
                missing.insert(name, format!("this kernel has no tracepoint {name}"));
            }
        }
        if !system_calls {
            missing.insert(SYSTEM_CALLS, "system calls are not traced (--no-syscalls)".into());
        }
        // Before Linux 6.12, tracing programs may not read pages.
        let no_pages = Settings { reads_pages: false, ..*settings };
        let wanted = |name: &str| !missing.contains_key(name);
        let loaded = load(settings, &wanted).or_else(|_| load(&no_pages, &wanted));
        let object = match loaded {
            Ok(object) => object,
            Err(_) => {
                let settings = &no_pages;
                missing.extend(refused(settings, &missing)?);
                load(settings, &|name| !missing.contains_key(name))?
            }
        };
        let counters = map_of(&object, ".bss")?;
        let mut probes = Self { object, counters, links: Vec::new(), missing };
        probes.attach_all();
        Ok(probes)
    }

    fn attach_all(&mut self) {
        for program in self.object.progs_mut() {
            let Some(name) = programs().find(|&name| *name == *program.name()) else { continue };
            if self.missing.contains_key(name) {
                continue;
            }
            match attach_one(name, &program) {
                Ok(links) => self.links.extend(links),
                Err(problem) => drop(self.missing.insert(name, problem)),
            }
        }
    }

    /// Programs that are not at work, and why.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// The map of this name.
    pub fn map(&self, name: &str) -> libbpf_rs::Result<MapHandle> {
        map_of(&self.object, name)
    }

    /// Lets sockets with these local ports be of the chosen process: protocol × 65536 + port.
    ///
    /// # Errors
    /// If there are more than the programs can hold.
    pub fn allow_ports(&self, ports: impl Iterator<Item = u32>) -> libbpf_rs::Result<()> {
        let map = self.map("ports")?;
        ports.into_iter().try_for_each(|key| map.update(&key.to_ne_bytes(), &[1], MapFlags::ANY))
    }

    /// Takes the programs off the kernel's hooks; what they wrote and counted stays.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// Events of packets whose next point was still to come, as the programs left them.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn unfinished(&self) -> libbpf_rs::Result<Vec<u8>> {
        let trails = self.map("trails")?;
        let mut events = Vec::new();
        for place in 0..records::TRAILS {
            let of_processors = trails.lookup_percpu(&place.to_ne_bytes(), MapFlags::ANY)?;
            for trail in of_processors.unwrap_or_default() {
                let trail = records::Trail::read(&trail);
                // 0 if it is nobody's.
                if trail.skb != 0 {
                    let at = events.len();
                    events.resize(at + RAW_BYTES, 0);
                    trail.event.write(&mut events[at..]);
                }
            }
        }
        Ok(events)
    }

    /// What the programs count.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn counters(&self) -> libbpf_rs::Result<Counters> {
        let bytes = self.counters.lookup(&[0; 4], MapFlags::ANY)?;
        let bytes = bytes.unwrap_or_else(|| vec![0; records::Counters::BYTES]);
        // `counters` is the only variable of its section.
        Ok(Counters(records::Counters::read(&bytes)))
    }
}

/// What the programs have counted since they were attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters(records::Counters);

impl Counters {
    /// Events of a point for which the buffer had no room.
    pub fn lost(&self, point: Point) -> u64 {
        self.0.lost[point as usize]
    }

    /// Fragments other than the first, of any flow of this host.
    pub fn fragments(&self) -> u64 {
        self.0.fragments
    }
}

fn map_of(object: &Object, name: &str) -> libbpf_rs::Result<MapHandle> {
    let ends = |map: &libbpf_rs::Map<'_>| map.name().to_str().is_some_and(|n| n.ends_with(name));
    MapHandle::try_from(&object.maps().find(ends).expect("the programs have this map"))
}

fn programs() -> impl Iterator<Item = &'static str> {
    PROGRAMS.into_iter().chain([SOFTIRQ_BEGINS])
}

/// Checks that this process may probe the kernel.
///
/// # Errors
/// [`ProbeError::Privilege`] names the capability that is missing.
pub fn check_privilege() -> Result<(), ProbeError> {
    use rustix::thread::CapabilitySet as Set;
    let have = rustix::thread::capabilities(None).map_or(Set::empty(), |sets| sets.effective);
    let needed =
        [(Set::BPF, "CAP_BPF"), (Set::PERFMON, "CAP_PERFMON"), (Set::NET_ADMIN, "CAP_NET_ADMIN")];
    // CAP_SYS_ADMIN stands for the first two (capabilities(7)).
    let admin = have.contains(Set::SYS_ADMIN);
    let lacks =
        |&&(set, _): &&(Set, &str)| !have.contains(set) && (set == Set::NET_ADMIN || !admin);
    match needed.iter().find(lacks) {
        None => Ok(()),
        Some((_, name)) => {
            let program = std::env::current_exe().map(|path| path.display().to_string());
            Err(ProbeError::Privilege(name, program.unwrap_or_else(|_| "suiro".into())))
        }
    }
}

fn open(settings: &Settings<'_>) -> libbpf_rs::Result<OpenObject> {
    // What libbpf says on standard error is in its errors too, but for the verifier's log.
    libbpf_rs::set_print(None);
    let mut open = ObjectBuilder::default().open_memory(&OBJECT.0)?;
    let ends = |map: &libbpf_rs::OpenMapMut<'_>| {
        map.name().to_str().is_some_and(|name| name.ends_with(".rodata"))
    };
    let mut constants = open.maps_mut().find(ends).expect("the programs have constants");
    let value = constants.initial_value_mut().expect("constants have values");
    let bytes = settings.to_bytes();
    value[..bytes.len()].copy_from_slice(&bytes);
    Ok(open)
}

fn load(settings: &Settings<'_>, wanted: &dyn Fn(&str) -> bool) -> libbpf_rs::Result<Object> {
    let mut open = open(settings)?;
    for mut program in open.progs_mut() {
        let load = program.name().to_str().is_some_and(wanted);
        program.set_autoload(load);
    }
    open.load()
}

/// The programs that the kernel refuses, each tried by itself.
///
/// # Errors
/// If it refuses all, the last one's.
fn refused(settings: &Settings<'_>, missing: &Missing) -> libbpf_rs::Result<Missing> {
    let mut refused = Missing::new();
    let (mut tried, mut last) = (0, None);
    for name in programs().filter(|name| !missing.contains_key(name)) {
        tried += 1;
        if let Err(error) = load(settings, &|other| other == name) {
            refused.insert(name, format!("the kernel refused the program {name}: {error}"));
            last = Some(error);
        }
    }
    match last {
        Some(error) if refused.len() == tried => Err(error),
        _ => Ok(refused),
    }
}

fn attach_one(name: &str, program: &ProgramMut<'_>) -> Result<Vec<Link>, String> {
    let told = |error: libbpf_rs::Error| match error.kind() {
        ErrorKind::PermissionDenied => format!("attaching {name}: no permission"),
        _ => format!("attaching {name}: {error}"),
    };
    match name {
        packet::NETFILTER => packet::attach_netfilter(program).map_err(told),
        packet::CGROUP => packet::attach_cgroup(program).map_err(|error| error.to_string()),
        _ => program.attach().map(|link| vec![link]).map_err(told),
    }
}

/// Why there is nothing of a point, if a program that it needs is missing.
pub fn why_missing(point: Point, missing: &Missing) -> Option<String> {
    let needs = match point {
        Point::SendIp | Point::SendLink | Point::ReceiveIp | Point::ReceiveLocal => {
            packet::NETFILTER
        }
        // Of UDP it is told with SendIp, of TCP by the call's end.
        Point::SendCall => {
            let of_udp = missing.get(packet::NETFILTER);
            let reason = missing.get(SYSTEM_CALLS).or(missing.get("sock_send_length")).or(of_udp);
            return reason.cloned();
        }
        Point::SendQdisc => "net_dev_queue",
        Point::SendDriver => "net_dev_start_xmit",
        Point::ReceiveDevice => "netif_receive_skb",
        Point::ReceiveSocket => packet::CGROUP,
        // A datagram is known by its place in the queue, which the other point tells.
        Point::ReceiveCall => {
            let reason = missing.get("sock_recv_length").or(missing.get(packet::CGROUP));
            return reason.cloned();
        }
        Point::Dropped => "kfree_skb",
    };
    missing.get(needs).cloned()
}
