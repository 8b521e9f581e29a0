//! `multicast-sender` and `multicast-receiver`: packets to a group, and joining and leaving it.

use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounds, bounds, bounds_of};
use suiro_units::{BitRate, Bytes, Duration};

use super::{Flow, Kind, Reference, UncompressedSender};
use crate::check::Check;

bounds! {
    MulticastSender {
        port: super::PORT,
        rate: Bounds::new(BitRate::from_kbps(1), BitRate::from_mbps(1_000)),
        packet: Bounds::new(Bytes::new(64), Bytes::new(9000)),
        ttl: Bounds::new(1, u8::MAX),
    }
}

bounds! {
    MulticastReceiver {
        hold: Bounds::new(MulticastReceiver::STEP, Duration::from_secs(86_400)),
        pause: Bounds::new(MulticastReceiver::STEP, Duration::from_secs(86_400)),
    }
}

/// Sends packets of one size to a multicast group at a constant rate, with or without receivers: packets without content, with a
/// number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<MulticastSender>)]
pub struct MulticastSender {
    /// The group, such as `"239.1.1.1"`.
    pub group: Ipv4Addr,
    /// UDP port that it sends to. Default: 5004.
    #[serde(default = "port")]
    pub port: u16,
    /// Its rate, headers included. Default: 1 Mbit/s.
    #[serde(default = "rate")]
    pub rate: BitRate,
    /// Size of its IP packets. Default: 1400 B.
    #[serde(default = "packet")]
    pub packet: Bytes,
    /// How many routers a packet passes at most, plus one. Default: 16.
    #[serde(default = "ttl")]
    pub ttl: u8,
}

/// Joins a multicast group, leaves it and joins it again, and records when packets begin and end: table `memberships`.
/// Packets are seen at the host's interfaces, also after it has left. Needs the capability to open packet sockets, which
/// endpoints have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<MulticastReceiver>)]
pub struct MulticastReceiver {
    /// The group.
    pub group: Ipv4Addr,
    /// The sender whose packets are wanted, a `multicast-sender` or an `uncompressed-sender`. With IGMPv3, routers
    /// leave out packets of all other senders. FRR's routers support this for groups of 232.0.0.0/8 only (RFC 4607):
    /// for another group, a receiver that names a source gets nothing. Default: any.
    #[serde(default)]
    pub source: Option<String>,
    /// How long it stays. Default: to the end.
    #[serde(default)]
    pub hold: Option<Duration>,
    /// How long after leaving it joins again. Needs `hold`. Default: never.
    #[serde(default)]
    pub pause: Option<Duration>,
}

impl MulticastReceiver {
    /// Shortest stay and shortest pause.
    const STEP: Duration = Duration::from_millis(100);
}

impl Kind for MulticastSender {
    fn groups(&self) -> Vec<(&'static str, Ipv4Addr)> {
        vec![("group", self.group)]
    }
}

impl Kind for MulticastReceiver {
    fn references(&mut self) -> Vec<Reference<&mut String>> {
        let (key, media) = ("source", Flow::None);
        let kinds = &[MulticastSender::NAME, UncompressedSender::NAME];
        let source = self.source.as_mut();
        source.map(|name| Reference { key, name, kinds, media }).into_iter().collect()
    }

    fn groups(&self) -> Vec<(&'static str, Ipv4Addr)> {
        vec![("group", self.group)]
    }

    fn check(&self, check: &mut Check<'_>) {
        if self.pause.is_some() && self.hold.is_none() {
            let refusal = check.refusal("pause", "a pause, but it never leaves");
            check.push(refusal.hint("add `hold`, how long it stays, or remove `pause`"));
        }
    }
}

const fn port() -> u16 {
    5004
}

const fn rate() -> BitRate {
    BitRate::from_mbps(1)
}

const fn packet() -> Bytes {
    Bytes::new(1400)
}

const fn ttl() -> u8 {
    16
}
