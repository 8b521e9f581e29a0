//! The `cache`: an HTTP cache between an origin and its viewers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_rate::QuicCongestion;
use suiro_record::words::CacheFault;
use suiro_strict::{Bounds, bounds, bounds_of};
use suiro_units::{BitRate, Bytes, Duration, Ratio};

use super::origin::{congestion, http, is_cubic, listens};
use super::{Flow, HttpVersion, Kind, Listens, Origin, PORT, Reference, shift};
use crate::check::Check;

const DAY: Duration = Duration::from_secs(24 * 3600);

bounds! {
    Edge {
        port: PORT,
        store: Bounds::new(Bytes::new(1_000_000), Bytes::new(16_000_000_000)),
        in_flight: Bounds::new(1, 10_000);
        tables: fault
    }
}

bounds! {
    EdgeFault {
        from: Bounds::new(Duration::ZERO, DAY),
        to: Bounds::above(Duration::ZERO, DAY),
        delay: Bounds::new(Duration::ZERO, Duration::from_secs(60)),
        rate: Bounds::new(BitRate::from_kbps(1), BitRate::from_mbps(100_000)),
        retry_after: Bounds::new(Duration::ZERO, Duration::from_secs(3600)),
        age: Bounds::new(Duration::ZERO, DAY * 365),
    }
}

/// An HTTP cache (RFC 9111), such as the edge of a content delivery network. Players name it as their `origin`. It keeps
/// what the origin allows for as long as that is fresh, and then asks whether it is still valid. While an object comes, it passes
/// on what it has of it: requests for the same object are sent to the origin once, and all of them get what is there at once,
/// then the rest. A manifest in gzip and the same without are two objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Edge>)]
pub struct Edge {
    /// The `origin` that it asks.
    pub origin: String,
    /// The version of HTTP that it serves and its players use; the origin's is its own. Default: `1.1`, without TLS.
    #[serde(default, skip_serializing_if = "HttpVersion::is_default")]
    pub http: HttpVersion,
    /// TCP congestion control of its connections to players, as the kernel names it; nothing with `http = "3"`. Default: the
    /// kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<String>,
    /// Congestion control of its connections to players with `http = "3"`. Default: `cubic`.
    #[serde(default, skip_serializing_if = "is_cubic")]
    pub quic: QuicCongestion,
    /// Port that it listens on: of UDP with `http = "3"`, of TCP otherwise. Default: 80.
    #[serde(default = "http")]
    pub port: u16,
    /// How much it keeps in memory, headers included. What was not asked for longest makes room. A larger object is passed on
    /// and not kept. Default: 256 MB.
    #[serde(default = "store")]
    pub store: Bytes,
    /// Objects that come from the origin at the same time. A request for a further one is answered with status 503. Default: 256.
    #[serde(default = "in_flight")]
    pub in_flight: u32,
    /// What it does wrong on purpose. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<EdgeFault>,
}

/// A fault of a cache, during a time or for a share of the requests. Which requests it meets follows from the seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<EdgeFault>)]
pub struct EdgeFault {
    /// What goes wrong. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<CacheFault>,
    /// It begins then, counted from the trial's start. Default: at the start.
    #[serde(default)]
    pub from: Duration,
    /// It ends then. Default: when the trial ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Duration>,
    /// The share of requests that it meets meanwhile. Default: `100 %`.
    #[serde(default = "all")]
    pub share: Ratio,
    /// With `slow`: how long an answer waits before it begins. Default: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// With `slow`: the rate at which each body is sent. Default: as fast as it comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// With `503`: what `Retry-After` asks for, in whole seconds. Default: no such header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
    /// With `age`: what the header `Age` says, in whole seconds. Default: 1 h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Duration>,
}

impl EdgeFault {
    /// The age that it pretends.
    pub fn pretended_age(&self) -> Duration {
        self.age.unwrap_or(Duration::from_secs(3600))
    }
}

impl Kind for Edge {
    fn listens(&self) -> Vec<Listens> {
        listens(self.http, self.port)
    }

    fn renumber(&mut self, n: u16) -> Option<()> {
        shift(&mut self.port, n, 1)
    }

    fn congestion(&self) -> Option<super::Congestion<'_>> {
        congestion(self.http, self.tcp.as_deref())
    }

    fn http(&self) -> Option<HttpVersion> {
        Some(self.http)
    }

    fn references(&mut self) -> Vec<Reference<&mut String>> {
        let (key, kinds, media) = ("origin", &[Origin::NAME], Flow::Comes);
        vec![Reference { key, name: &mut self.origin, kinds, media }]
    }

    fn check(&self, check: &mut Check<'_>) {
        if let Some(fault) = &self.fault {
            fault.check(check);
        }
    }
}

impl EdgeFault {
    fn check(&self, check: &mut Check<'_>) {
        let mut needs = |set: bool, key: &'static str, kind: CacheFault| {
            if set && self.kind != Some(kind) {
                let refusal =
                    check.refusal_at(&["fault", key], format!("{key} without such a fault"));
                check.push(refusal.hint(format!("remove {key}, or set kind = \"{kind}\"")));
            }
        };
        needs(self.delay.is_some(), "delay", CacheFault::Slow);
        needs(self.rate.is_some(), "rate", CacheFault::Slow);
        needs(self.retry_after.is_some(), "retry_after", CacheFault::Unavailable);
        needs(self.age.is_some(), "age", CacheFault::Age);
        if self.kind == Some(CacheFault::Slow) && self.delay.is_none() && self.rate.is_none() {
            let refusal = check.refusal_at(&["fault", "kind"], "it is not said how slow it is");
            check.push(refusal.hint("add delay = \"300 ms\", or rate = \"500 kbit/s\""));
        }
        if let Some(to) = self.to.filter(|to| *to <= self.from) {
            let refusal = check.refusal_at(&["fault", "to"], format!("an end at {to}"));
            check.push(refusal.expected(format!("after its beginning, at {}", self.from)));
        }
    }
}

const fn store() -> Bytes {
    Bytes::new(256_000_000)
}

const fn in_flight() -> u32 {
    256
}

const fn all() -> Ratio {
    Ratio::constant(1.0)
}
