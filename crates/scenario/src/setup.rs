//! What one cell of a scenario says, typed and resolved: all that is needed to run it.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_media::MediaSpec;
use suiro_strict::{Bounds, bounds, bounds_of};
use suiro_units::{Bytes, Duration};

use crate::capture::CapturePoints;
use crate::endpoint::{Endpoint, EndpointSpec, Flow, Pause};
use crate::network::Topology;

/// The content of one cell. Everything it names exists: hosts, links, media, origins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// How long a trial measures.
    pub duration: Duration,
    /// How much of that, from its start, metrics leave out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warm_up: Duration,
    /// Hosts and the links between them.
    pub topology: Topology,
    /// The media that endpoints refer to, by name.
    pub media: BTreeMap<String, MediaSpec>,
    /// The endpoints in the order of their start.
    pub endpoints: Vec<Endpoint>,
    /// What is recorded.
    pub record: RecordOptions,
}

/// Serde passes a reference.
fn is_zero(time: &Duration) -> bool {
    time.is_zero()
}

impl Setup {
    /// Where the video of a viewer comes from: the endpoint that has it as prepared media or from a camera, found
    /// through any number of relays. Of those that publish to the same relay, it is the one whose broadcast it views. `None` if
    /// there is none, and for a `moq-relay`, which views no broadcast.
    pub fn source_of(&self, viewer: &str) -> Option<&Endpoint> {
        let endpoint = |name: &str| self.endpoints.iter().find(|it| it.name == name);
        let viewed = endpoint(viewer).and_then(broadcast);
        let has_media = |name: &str| {
            endpoint(name).is_some_and(|it| {
                let kind = it.spec.kind();
                broadcast(it) == viewed && (kind.medium().is_some() || kind.camera().is_some())
            })
        };
        let upstream = |name: &str| endpoint(name).map_or(Vec::new(), |it| self.upstream(it));
        endpoint(&trace(viewer, &has_media, &upstream)?)
    }

    /// When an endpoint has no video because a sender pauses: a sender itself, a viewer by the sender that it views.
    pub fn pauses_of(&self, endpoint: &str) -> &[Pause] {
        self.source_of(endpoint).map(|source| source.spec.kind().pauses()).unwrap_or_default()
    }

    /// The endpoints that send media to this one.
    pub fn upstream(&self, endpoint: &Endpoint) -> Vec<String> {
        let flows = |from: &Endpoint, flow: Flow| {
            let references = from.spec.references().into_iter();
            references.filter(move |it| it.media == flow).map(|it| it.name)
        };
        let fetched = flows(endpoint, Flow::Comes);
        let senders = self.endpoints.iter();
        let senders = senders.filter(|it| flows(it, Flow::Goes).any(|to| to == endpoint.name));
        fetched.chain(senders.map(|it| it.name.clone())).collect()
    }
}

/// The broadcast of Media over QUIC that an endpoint publishes or views.
fn broadcast(endpoint: &Endpoint) -> Option<&str> {
    match &endpoint.spec {
        EndpointSpec::MoqPublisher(publisher) => Some(&publisher.broadcast),
        EndpointSpec::MoqViewer(viewer) => Some(&viewer.broadcast),
        _ => None,
    }
}

/// The first name with `found`, upstream of `from` or `from` itself. Circles end the search.
fn trace(
    from: &str,
    found: &dyn Fn(&str) -> bool,
    upstream: &dyn Fn(&str) -> Vec<String>,
) -> Option<String> {
    let (mut seen, mut names) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(name) = names.pop() {
        if found(&name) {
            return Some(name);
        }
        if seen.insert(name.clone()) {
            names.extend(upstream(&name));
        }
    }
    None
}

bounds! {
    RecordOptions {
        tcp_interval: Bounds::new(Duration::from_millis(1), Duration::from_secs(1)),
        capture_length: Bounds::new(Bytes::new(64), Bytes::new(65_550)),
        layer_ports: Bounds::new(0, 4);
        each: layer_ports: Bounds::new(1, u16::MAX)
    }
}

/// Records in addition to the endpoints' own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = bounds_of::<RecordOptions>)]
pub struct RecordOptions {
    /// The `link` table: a row per packet of every emulated link. Default: true.
    pub link: bool,
    /// The `tcp` table: the state of every TCP socket of every host. Default: true.
    pub tcp: bool,
    /// How often sockets are sampled. Default: 10 ms.
    pub tcp_interval: Duration,
    /// What the `tcp` table contains in addition to these samples. Default: `auto`.
    pub tcp_trace: TcpTrace,
    /// The `layers` table: each packet at each layer of every host, and `layers.HOST.json`, which
    /// records which points the kernel made visible. Needs root. Default: false.
    pub layers: bool,
    /// The ports whose flows, of UDP and TCP, the `layers` table contains: flows with one of them at either end. At most
    /// 4. Default: all flows.
    pub layer_ports: Vec<u16>,
    /// Where packets are captured, without tcpdump: `true` for every interface of every host, or a list of hosts and of
    /// interfaces `HOST:LINK`. Each has a file `pcapng/HOST.LINK.pcapng` in the trial's folder, of at most 512 MiB. The
    /// packets of both ends of a link are matched: table `hops`. Default: false.
    pub capture: CapturePoints,
    /// How much of each packet is captured, from its Ethernet header on. Default: 128 B, the headers.
    pub capture_length: Bytes,
    /// RTP and RTCP of WebRTC endpoints without encryption, as they send and receive them: `ENDPOINT.rtp.pcapng` in the
    /// trial's folder, of at most 512 MiB, for Wireshark. Default: false.
    pub rtp: bool,
    /// After all trials have ended, each viewer's screen is reconstructed as a video, and its
    /// quality is measured. All media is stamped for it (`stamp = true`). It takes about as long as
    /// the trials themselves, on two cores. Default: false.
    pub quality: bool,
}

impl RecordOptions {
    /// Whether a row for each ACK is asked for, which needs a probe in the kernel.
    pub fn needs_probe(&self) -> bool {
        self.tcp && self.tcp_trace == TcpTrace::Ack
    }
}

/// What the `tcp` table contains in addition to periodic samples. A flow of 1 Gbit/s was measured:
/// the kernel's part took 45 ns a segment, 0.6 % of a core, and the rows 0.4 % more; so tracing is
/// the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TcpTrace {
    /// A row for each ACK that a sender gets. Needs root.
    Ack,
    /// Nothing.
    Sample,
    /// Like `ack` if that is possible, otherwise like `sample`; the trial records which.
    Auto,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            link: true,
            tcp: true,
            tcp_interval: Duration::from_millis(10),
            tcp_trace: TcpTrace::Auto,
            layers: false,
            layer_ports: Vec::new(),
            capture: CapturePoints::default(),
            capture_length: Bytes::new(128),
            rtp: false,
            quality: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_found_through_relays_and_circles_end() {
        let upstream = |name: &str| match name {
            "viewer" => vec!["edge".to_owned()],
            "edge" => vec!["core".to_owned(), "edge".to_owned()],
            "core" => vec!["publisher".to_owned(), "edge".to_owned()],
            _ => Vec::new(),
        };
        let publisher = |name: &str| name == "publisher";
        assert_eq!(trace("viewer", &publisher, &upstream).as_deref(), Some("publisher"));
        assert_eq!(trace("viewer", &|_| false, &upstream), None);
        assert_eq!(trace("other", &publisher, &upstream), None);
    }
}
