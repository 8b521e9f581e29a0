//! `spray`: small packets that keep a host's CPU at work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounds, bounds, bounds_of};
use suiro_units::{Bytes, Duration};

use super::{Kind, PORT};
use crate::check::Check;

const TURN: Bounds<Duration> = Bounds::new(Duration::from_millis(1), Duration::from_secs(10));

bounds! {
    Spray {
        port: PORT,
        packet: Bounds::new(Bytes::new(28), Bytes::new(1500)),
        flood: TURN,
        ease: TURN,
    }
}

/// Sends small UDP packets to a host without pause, as the program `spray` of SunOS did, so that receiving them keeps a
/// CPU busy. A cable's packets are received by the CPU that sends them, in its softirq: pinned to the CPU of the other
/// host's application (`cpu`), this takes that CPU away from it, as interrupts of a network card do. In turns of the
/// length `flood` it runs at real-time priority, so the packets come before every process. In between, for the length
/// `ease`, it has the priority of an ordinary process, like the kernel's own thread for softirqs, and shares the CPU.
/// The lengths of turns vary at random between half of these and one and a half. No socket needs to listen: the packets
/// are received and dropped. Needs the capability to use real-time priority, which endpoints have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Spray>)]
pub struct Spray {
    /// The host that it floods.
    pub to: String,
    /// UDP port that it sends to. Default: 9, at which packets are discarded.
    #[serde(default = "port")]
    pub port: u16,
    /// Size of its IP packets. Default: 72 B, with which `spray` fills an Ethernet frame of 86 B.
    #[serde(default = "packet")]
    pub packet: Bytes,
    /// How long its turns at real-time priority last on average.
    pub flood: Duration,
    /// How long its turns at ordinary priority last on average.
    pub ease: Duration,
    /// The CPU that its thread stays on, counted from 0, modulo the number of CPUs. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u8>,
}

impl Kind for Spray {
    fn check(&self, check: &mut Check<'_>) {
        check.host("to", &self.to);
    }
}

const fn port() -> u16 {
    9
}

const fn packet() -> Bytes {
    Bytes::new(72)
}
