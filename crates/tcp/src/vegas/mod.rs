//! Our own TCP Vegas, for kernels without one: a BPF program (`bpf/vegas.bpf.c`) that the kernel
//! accepts as a congestion control through `struct_ops`. Everything that suiro loads into the
//! kernel for TCP is loaded here.
//!
//! Needs root (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON) and a kernel with BTF and `struct_ops` links
//! (Linux 6.4; tried on 6.18).

use std::ffi::OsStr;
use std::fs;
use std::io;

use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, MapHandle, MapType};

use crate::Controls;
use crate::bpf::{self, Aligned};

pub mod model;

/// The name by which a socket selects it.
pub use crate::congestion::VEGAS as NAME;

/// The BPF map's name, which distinguishes our Vegas from any other.
const MAP: &str = "suiro_vegas";
/// The only key of a `struct_ops` map.
const KEY: [u8; 4] = [0; 4];
/// The offset of the state (`bpf_struct_ops_common_value`) in a `struct_ops` map's value, after a
/// counter.
const STATE_AT: usize = 4;
/// The state of a registered congestion control. One that was unregistered stays, in another state,
/// while a connection uses it.
const STATE_IN_USE: u32 = 1;
/// Registered by a link, and unregistered with it (linux/bpf.h).
const BPF_F_LINK: u32 = 1 << 13;
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/vegas.bpf.o")));

/// Why Vegas was not loaded or unloaded.
#[derive(Debug, thiserror::Error)]
pub enum VegasError {
    /// Not root, or root without the capabilities.
    #[error("{doing} TCP Vegas needs root\nhint: sudo suiro tcp {command} vegas")]
    Permission {
        /// The command that does it with privileges.
        command: &'static str,
        /// What was being done.
        doing: &'static str,
    },
    /// The kernel already has one of that name.
    #[error("this kernel already has a congestion control `{NAME}`\nhint: suiro tcp list")]
    Exists,
    /// No Vegas that suiro loaded permanently.
    #[error("no congestion control `{NAME}` was loaded by `suiro tcp load`\nhint: suiro tcp list")]
    NotOurs,
    /// The kernel refused.
    #[error(
        "{doing} TCP Vegas: {cause:#}\n\
         hint: run suiro doctor to see whether this kernel accepts algorithms in BPF (`struct_ops`)"
    )]
    Bpf {
        /// What was being done.
        doing: &'static str,
        /// The error of the kernel or libbpf.
        cause: libbpf_rs::Error,
    },
    /// The setting that allows it for all users could not be changed.
    #[error("{ALLOWED}: {0}")]
    Allowed(io::Error),
}

impl VegasError {
    fn bpf(doing: &'static str) -> impl Fn(libbpf_rs::Error) -> Self {
        move |cause| match cause.kind() {
            ErrorKind::PermissionDenied => {
                let command = if doing == "unloading" { "unload" } else { "load" };
                Self::Permission { command, doing }
            }
            ErrorKind::AlreadyExists => Self::Exists,
            _ => Self::Bpf { doing, cause },
        }
    }
}

/// How long a registration lasts.
#[derive(Clone, Copy, PartialEq)]
enum Lasting {
    /// As long as the link exists, which the kernel removes when the process dies.
    Link,
    /// Until it is unregistered.
    Good,
}

/// Vegas, registered in the kernel as long as this value lives, and at most as long as this
/// process, however it ends. Connections that use it keep it.
#[derive(Debug)]
pub struct Loaded {
    _link: Link,
}

impl Loaded {
    /// Registers Vegas under `name`: usually [`NAME`]; a test may choose another name.
    ///
    /// # Errors
    /// Missing privileges, a name that the kernel already has, or a kernel without support.
    pub fn new(name: &str) -> Result<Self, VegasError> {
        Ok(Self { _link: register(name, Lasting::Link)? })
    }
}

fn register(name: &str, lasting: Lasting) -> Result<Link, VegasError> {
    let failed = VegasError::bpf("loading");
    let mut object = bpf::open(OBJECT).map_err(&failed)?;
    let mut map = object
        .maps_mut()
        .find(|map| map.name() == OsStr::new(MAP))
        .expect("the object that was built with this has the map");
    // `char name[16]` is the first member.
    let value = map.initial_value_mut().expect("a struct_ops map has a value");
    value[..16].fill(0);
    let length = name.len().min(crate::congestion::NAME_BYTES_MAX);
    value[..length].copy_from_slice(&name.as_bytes()[..length]);
    let flags = if lasting == Lasting::Link { BPF_F_LINK } else { 0 };
    map.set_map_flags(flags).map_err(&failed)?;
    let mut object = object.load().map_err(&failed)?;
    let mut map = object
        .maps_mut()
        .find(|map| map.name() == OsStr::new(MAP))
        .expect("it was there before it was loaded");
    map.attach_struct_ops().map_err(&failed)
}

/// Registers Vegas until [`unload`] or a restart, and allows it for all users. Returns the new
/// value of `net.ipv4.tcp_allowed_congestion_control`.
///
/// # Errors
/// Missing privileges, or a kernel that already has one or has no support. Nothing is left behind
/// then.
pub fn load() -> Result<String, VegasError> {
    let mut link = register(NAME, Lasting::Good)?;
    let mut allowed = Controls::read().allowed.unwrap_or_default();
    allowed.push(NAME.to_owned());
    let allowed = allowed.join(" ");
    fs::write(ALLOWED, &allowed).map_err(VegasError::Allowed)?;
    link.disconnect();
    Ok(allowed)
}

/// Removes what [`load`] registered; the kernel itself removes it from
/// `net.ipv4.tcp_allowed_congestion_control`. Connections that use it keep it.
///
/// # Errors
/// Missing privileges, or nothing that [`load`] registered.
pub fn unload() -> Result<(), VegasError> {
    let failed = VegasError::bpf("unloading");
    let map = ours().map_err(&failed)?.ok_or(VegasError::NotOurs)?;
    map.delete(&KEY).map_err(failed)
}

/// Whether [`load`] registered the present Vegas; `None` if this process may not know, which needs
/// root.
pub fn is_loaded() -> Option<bool> {
    rustix::process::geteuid().is_root().then(|| ours().is_ok_and(|map| map.is_some()))
}

/// The map by which our Vegas is permanently registered.
fn ours() -> libbpf_rs::Result<Option<MapHandle>> {
    // The kernel's list ends without an error where it may not be read.
    if !rustix::process::geteuid().is_root() {
        return Err(libbpf_rs::Error::from_raw_os_error(libc::EPERM));
    }
    let is_ours = |map: &libbpf_rs::query::MapInfo| {
        map.ty == MapType::StructOps && map.name == MAP && map.map_flags & BPF_F_LINK == 0
    };
    for map in MapInfoIter::default().filter(is_ours) {
        let map = MapHandle::from_map_id(map.id)?;
        if is_in_use(&map)? {
            return Ok(Some(map));
        }
    }
    Ok(None)
}

fn is_in_use(map: &MapHandle) -> libbpf_rs::Result<bool> {
    let value = map.lookup(&KEY, MapFlags::ANY)?.unwrap_or_default();
    let state = value.get(STATE_AT..).and_then(|rest| rest.first_chunk());
    Ok(state.copied().map(u32::from_ne_bytes) == Some(STATE_IN_USE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(name: &str) -> bool {
        Controls::read().available.is_some_and(|names| names.iter().any(|known| known == name))
    }

    #[test]
    fn it_is_registered_as_long_as_it_is_held() {
        let name = "suiro_test";
        match Loaded::new(name) {
            Ok(loaded) => {
                assert!(has(name));
                let again = Loaded::new(name).unwrap_err();
                assert!(matches!(again, VegasError::Exists), "{again}");
                drop(loaded);
                assert!(!has(name));
            }
            Err(error) if !rustix::process::geteuid().is_root() => {
                assert!(matches!(error, VegasError::Permission { .. }), "{error}");
                suiro_units::skipped(&error);
            }
            Err(error) => panic!("{error}"),
        }
    }
}
