//! Each ACK that a host's senders receive, recorded by a BPF program on the kernel's tracepoint
//! `tcp_probe` (`bpf/probe.bpf.c`).
//!
//! The tracepoint fires before the kernel processes a segment: an event shows the socket as the
//! previous ACK left it. Segments for sockets with nothing in flight are skipped in the kernel, and
//! so are all other network namespaces. The program does not wake its reader, which must read often
//! enough.
//!
//! Needs root (CAP_BPF, CAP_PERFMON) and a kernel with BTF (tried on 6.18).

use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{Receiver, channel};

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, RingBuffer, RingBufferBuilder};

use crate::bpf::{self, Aligned};

mod event;

pub use event::Ack;

use event::EVENT_BYTES;

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/probe.bpf.o")));

/// Most events that one [`Probe::acks`] takes; the rest wait for the next call.
const TAKEN_MAX: usize = 1 << 16;
/// `lost` is the only variable in its section.
const LOST_AT: usize = 0;

/// Why ACKs cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The namespace of this thread could not be read.
    #[error("/proc/thread-self/ns/net: {0}")]
    Namespace(std::io::Error),
    /// The kernel refused.
    #[error(
        "tracing ACKs: {0:#}\nhint: tracing needs root and a kernel with BTF (run suiro doctor)"
    )]
    Bpf(libbpf_rs::Error),
}

impl From<libbpf_rs::Error> for ProbeError {
    fn from(cause: libbpf_rs::Error) -> Self {
        Self::Bpf(cause)
    }
}

/// A trace of the ACKs in one network namespace, for as long as this value lives.
#[derive(Debug)]
pub struct Probe {
    ring: RingBuffer<'static>,
    acks: Receiver<Ack>,
    variables: MapHandle,
    _link: Link,
    _object: Object,
}

impl Probe {
    /// Starts tracing the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// Missing privileges, or a kernel without support.
    pub fn start() -> Result<Self, ProbeError> {
        let namespace =
            std::fs::metadata("/proc/thread-self/ns/net").map_err(ProbeError::Namespace)?.ino();
        let mut open = bpf::open(OBJECT)?;
        let mut constants = open.maps_mut().find(|map| ends_with(map.name(), ".rodata"));
        let value = constants.as_mut().and_then(|map| map.initial_value_mut());
        // The kernel's own number has 32 bits.
        let inode = (namespace as u32).to_ne_bytes();
        value.expect("the program has one constant")[..4].copy_from_slice(&inode);
        let object = open.load()?;
        let link = object.progs_mut().next().expect("there is a program").attach()?;
        let map = |name| object.maps().find(|map| ends_with(map.name(), name));
        let events = map("events").expect("the program has this map");
        let variables = MapHandle::try_from(&map(".bss").expect("the program counts losses"))?;
        let (sender, acks) = channel();
        let mut builder = RingBufferBuilder::new();
        builder.add(&events, move |bytes| {
            let event: &[u8; EVENT_BYTES] = bytes.first_chunk().expect("events have one length");
            let unheard = Ack::parse(event).is_some_and(|ack| sender.send(ack).is_err());
            i32::from(unheard)
        })?;
        let ring = builder.build()?;
        Ok(Self { ring, acks, variables, _link: link, _object: object })
    }

    /// The ACKs since the last call, in order.
    ///
    /// # Errors
    /// If the kernel's buffer cannot be read.
    pub fn acks(&self) -> Result<impl Iterator<Item = Ack>, ProbeError> {
        let taken = self.ring.consume_raw_n(TAKEN_MAX);
        if taken < 0 {
            return Err(libbpf_rs::Error::from_raw_os_error(-taken).into());
        }
        Ok(self.acks.try_iter())
    }

    /// ACKs since the start that were lost because the buffer was full.
    ///
    /// # Errors
    /// If the kernel's counter cannot be read.
    pub fn lost(&self) -> Result<u64, ProbeError> {
        let value = self.variables.lookup(&[0; 4], MapFlags::ANY)?.unwrap_or_default();
        let lost = value.get(LOST_AT..).and_then(|rest| rest.first_chunk());
        Ok(lost.map_or(0, |bytes| u64::from_ne_bytes(*bytes)))
    }
}

fn ends_with(name: &std::ffi::OsStr, end: &str) -> bool {
    name.to_str().is_some_and(|name| name.ends_with(end))
}
