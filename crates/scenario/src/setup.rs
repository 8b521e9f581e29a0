//! What one cell of a scenario says, typed and resolved: all that is needed to run it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_link::LinkConfig;
use suiro_media::MediaSpec;
use suiro_units::Duration;

use crate::Endpoint;

/// The content of one cell. Everything it names exists: hosts, links, media, origins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// How long a trial measures.
    pub duration: Duration,
    /// Hosts and the links between them.
    pub topology: Topology,
    /// The media that endpoints refer to, by name.
    pub media: BTreeMap<String, MediaSpec>,
    /// The endpoints in the order of their start.
    pub endpoints: Vec<Endpoint>,
    /// What is recorded.
    pub record: RecordOptions,
}

/// Hosts and the links between them. Connected: every host reaches every other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// Names of the hosts; the order gives the addresses.
    pub hosts: Vec<String>,
    /// The links.
    pub links: Vec<Link>,
}

/// A cable between two hosts. Down is from `from` to `to`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Its name: the key below `[links]`; of a plain cable, `FROM-TO`.
    pub name: String,
    /// The host at its upper end, the server's side.
    pub from: String,
    /// The host at its lower end, the client's side.
    pub to: String,
    /// What the link does to packets; `None` for a plain cable, which does nothing to them.
    pub config: Option<LinkConfig>,
    /// True if the ends of this plain cable do what network cards do.
    #[serde(default)]
    pub cards: bool,
    /// Largest IP packet in bytes, 1280 (the least of IPv6, RFC 8200 §5) to 9000.
    pub mtu: u16,
}

/// What is recorded beside what endpoints record themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecordOptions {
    /// The `link` table: a row per packet of every emulated link. Default: true.
    pub link: bool,
    /// The `tcp` table: the state of every TCP socket of every host. Default: true.
    pub tcp: bool,
    /// How often sockets are sampled, 1 ms to 1 s. Default: 10 ms.
    pub tcp_interval: Duration,
    /// What the `tcp` table has beside these samples. Default: `auto`.
    pub tcp_trace: TcpTrace,
    /// The `layers` table: each packet at each layer of every host, and `layers.HOST.json`, which says
    /// what the kernel let see. Needs root. Default: false.
    pub layers: bool,
    /// After all trials have ended, the screen of each viewer is made again as a video, and its
    /// quality is measured. All media is stamped for it (`stamp = true`). It takes about as long as
    /// the trials themselves, on two cores. Default: false.
    pub quality: bool,
}

/// What the `tcp` table has beside samples in time. A flow of 1 Gbit/s was measured: the kernel's part
/// took 45 ns a segment, 0.6 % of a core, and the rows 0.4 % more; so tracing is the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TcpTrace {
    /// A row for each ACK that a sender gets. Needs root.
    Ack,
    /// Nothing.
    Sample,
    /// As `ack` where that is possible, else as `sample`; the trial says which.
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
            quality: false,
        }
    }
}
