//! The network of a trial: its hosts, the cables between them, and what is peculiar about some of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_link::{LinkConfig, Schedule};
use suiro_strict::{Bounds, bounds, bounds_of};
use suiro_units::{BitRate, Ratio};

/// Hosts and the links between them. Connected: every host reaches every other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// Names of the hosts; the order gives the addresses.
    pub hosts: Vec<String>,
    /// The links.
    pub links: Vec<Link>,
    /// Where packets do not take the shortest path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detours: Vec<Detour>,
    /// Names of the hosts that are Ethernet switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<String>,
    /// Names of the hosts that are hubs; the links from them to their stations are one segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hubs: Vec<String>,
    /// The Wi-Fi and cellular cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<Cell>,
    /// The routers of multicast; `None` if cables carry none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multicast: Option<Multicast>,
}

/// Wi-Fi or cellular links whose stations share one air. All are from the same host, the access point or base station.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its name: the key below `[segments]`.
    pub name: String,
    /// The names of its stations' links.
    pub links: Vec<String>,
    /// Of a Wi-Fi cell: the share of the air that others take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<Schedule<Ratio>>,
}

/// A host that passes on by one link whatever comes to it by another, also what is meant for its neighbours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detour {
    /// The host's name.
    pub host: String,
    /// The link's name.
    pub link: String,
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
    /// The rate of a plain cable in each direction; `None` if as much as the machine can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<BitRate>,
    /// Largest IP packet in bytes, 1280 (the least of IPv6, RFC 8200 §5) to 9000.
    pub mtu: u16,
}

bounds! { Multicast { routers: Bounds::new(1, 32), igmp: Multicast::IGMP } }

/// Cables carry IPv4 multicast, and hosts route it: with PIM sparse mode (RFC 7761) between them, and with IGMP towards
/// hosts that join. The routers are FRR's `zebra` and `pimd`, which must be installed, a pair of processes in each such
/// host. A tree of a group leads from the rendezvous point to its receivers, and stays there: routers do not switch to
/// the shortest path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Multicast>)]
pub struct Multicast {
    /// The hosts that route multicast.
    pub routers: Vec<String>,
    /// The router that is the rendezvous point of all groups.
    pub rendezvous: String,
    /// The version of IGMP: 2, or 3, in which receivers can name the sources that they want. When the last known
    /// receiver leaves, a router asks once whether there are others, and waits 0.1 s. Default: 3.
    #[serde(default = "igmp")]
    pub igmp: u8,
}

const fn igmp() -> u8 {
    3
}

impl Multicast {
    /// The versions of IGMP that there are, but for the first, which has no leaving.
    const IGMP: Bounds<u8> = Bounds::new(2, 3);
}
