//! The resources of a node as IS-04 v1.3 describes them: one node, one device, and for each stream a source, a flow and a
//! sender, or a receiver. Pure.

use std::net::IpAddr;

use serde_json::{Value, json};
use suiro_uncompressed::Geometry;
use suiro_uncompressed::geometry::Sampling;

use super::connection::{Connection, Side};
use super::{Id, Tai};

/// The type of the service that only suiro's nodes have.
pub const SERVICE: &str = "urn:x-suiro:service:node/v1.0";

/// What a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The node itself.
    Node,
    /// A device of a node.
    Device,
    /// Where a flow comes from.
    Source,
    /// What is sent.
    Flow,
    /// What sends a flow.
    Sender,
    /// What takes a flow.
    Receiver,
}

impl Kind {
    /// All, in the order of registration: no resource comes before the one that it refers to.
    pub const ALL: [Self; 6] =
        [Self::Node, Self::Device, Self::Source, Self::Flow, Self::Sender, Self::Receiver];

    /// Its name, as `type` of a registration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Device => "device",
            Self::Source => "source",
            Self::Flow => "flow",
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }

    /// Its name in paths.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Node => "nodes",
            Self::Device => "devices",
            Self::Source => "sources",
            Self::Flow => "flows",
            Self::Sender => "senders",
            Self::Receiver => "receivers",
        }
    }

    /// The kind with this name in paths.
    pub fn of_plural(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.plural() == name)
    }
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Its hardware address.
    pub mac: [u8; 6],
}

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its name: identifiers are made of it.
    pub name: String,
    /// The address at which its APIs are served.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// Whether they are served over TLS.
    pub tls: bool,
    /// Whether they ask for a token.
    pub authorization: bool,
    /// Its interfaces, one for each leg.
    pub interfaces: Vec<Interface>,
    /// Tags, such as the site.
    pub tags: Vec<(String, String)>,
    /// When it started.
    pub since: Tai,
}

/// A stream that a node can send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Its number.
    pub stream: u32,
    /// Its frames.
    pub geometry: Geometry,
}

impl About {
    fn id(&self, of: &str) -> Id {
        id(&self.name, of)
    }

    /// The identifier of the node.
    pub fn node(&self) -> Id {
        node(&self.name)
    }

    /// The identifier of its device.
    pub fn device(&self) -> Id {
        self.id("device")
    }

    /// The identifier of what sends or receives a stream.
    pub fn connection(&self, side: Side, stream: u32) -> Id {
        connection(&self.name, side, stream)
    }

    /// The URL of a path of its server.
    pub fn href(&self, path: &str) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        let host = match self.address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        format!("{scheme}://{host}:{}{path}", self.port)
    }

    fn core(&self, id: &Id, version: Tai, label: &str, description: &str) -> Value {
        let tags = self.tags.iter().map(|(key, value)| (key.clone(), json!([value])));
        json!({
            "id": id.as_str(),
            "version": version.to_string(),
            "label": label,
            "description": description,
            "tags": tags.collect::<serde_json::Map<_, _>>(),
        })
    }

    /// The node, as `/self`.
    pub fn node_resource(&self) -> Value {
        let mac = |mac: [u8; 6]| mac.map(|byte| format!("{byte:02x}")).join("-");
        let interfaces: Vec<Value> = self
            .interfaces
            .iter()
            .map(|own| json!({ "chassis_id": null, "port_id": mac(own.mac), "name": own.name }))
            .collect();
        let name = &self.name;
        let core = self.core(&self.node(), self.since, name, "A node of suiro's 8K stream server");
        let protocol = if self.tls { "https" } else { "http" };
        merge(
            core,
            json!({
                "href": self.href("/"),
                "hostname": name,
                "api": {
                    "versions": ["v1.3"],
                    "endpoints": [{
                        "host": self.address.to_string(),
                        "port": self.port,
                        "protocol": protocol,
                        "authorization": self.authorization,
                    }],
                },
                "caps": {},
                "services": [{
                    "href": self.href("/x-suiro/node/v1.0/"),
                    "type": SERVICE,
                    "authorization": self.authorization,
                }],
                "clocks": [{ "name": "clk0", "ref_type": "internal" }],
                "interfaces": interfaces,
            }),
        )
    }

    /// Its device; the version is that of the last change of what it has.
    pub fn device_resource(&self, connections: &[&Connection]) -> Value {
        let of = |side| -> Vec<&str> {
            let own = connections.iter().filter(|connection| connection.side() == side);
            own.map(|connection| connection.id().as_str()).collect()
        };
        let core = self.core(&self.device(), self.since, &self.name, "Its streams");
        merge(
            core,
            json!({
                "type": "urn:x-nmos:device:generic",
                "node_id": self.node().as_str(),
                "senders": of(Side::Sender),
                "receivers": of(Side::Receiver),
                "controls": [{
                    "href": self.href("/x-nmos/connection/v1.1/"),
                    "type": "urn:x-nmos:control:sr-ctrl/v1.1",
                    "authorization": self.authorization,
                }],
            }),
        )
    }

    /// The source of a stream.
    pub fn source_resource(&self, outgoing: &Outgoing) -> Value {
        let (stream, rate) = (outgoing.stream, outgoing.geometry.rate());
        let id = self.id(&format!("source/{stream}"));
        let core = self.core(&id, self.since, &label(stream), "Part of an 8K frame");
        merge(
            core,
            json!({
                "format": "urn:x-nmos:format:video",
                "grain_rate": grain_rate(rate),
                "caps": {},
                "device_id": self.device().as_str(),
                "parents": [],
                "clock_name": "clk0",
            }),
        )
    }

    /// The flow of a stream.
    pub fn flow_resource(&self, outgoing: &Outgoing) -> Value {
        let Outgoing { stream, geometry } = outgoing;
        let id = self.id(&format!("flow/{stream}"));
        let core = self.core(&id, self.since, &label(*stream), &geometry.to_string());
        merge(
            core,
            json!({
                "format": "urn:x-nmos:format:video",
                "media_type": "video/raw",
                "source_id": self.id(&format!("source/{stream}")).as_str(),
                "device_id": self.device().as_str(),
                "parents": [],
                "grain_rate": grain_rate(geometry.rate()),
                "frame_width": geometry.width(),
                "frame_height": geometry.height(),
                "interlace_mode": "progressive",
                "colorspace": "BT709",
                "transfer_characteristic": "SDR",
                "components": components(geometry),
            }),
        )
    }

    /// A sender.
    pub fn sender_resource(&self, outgoing: &Outgoing, connection: &Connection) -> Value {
        let stream = outgoing.stream;
        let path =
            format!("/x-nmos/connection/v1.1/single/senders/{}/transportfile", connection.id());
        let core = self.core(connection.id(), connection.changed(), &label(stream), "Sends it");
        merge(
            core,
            json!({
                "flow_id": self.id(&format!("flow/{stream}")).as_str(),
                "transport": "urn:x-nmos:transport:rtp",
                "device_id": self.device().as_str(),
                "manifest_href": self.href(&path),
                "interface_bindings": self.bindings(connection),
                "subscription": {
                    "receiver_id": peer(connection),
                    "active": connection.is_active(),
                },
            }),
        )
    }

    /// A receiver.
    pub fn receiver_resource(&self, stream: u32, connection: &Connection) -> Value {
        let core = self.core(connection.id(), connection.changed(), &label(stream), "Receives it");
        merge(
            core,
            json!({
                "format": "urn:x-nmos:format:video",
                "transport": "urn:x-nmos:transport:rtp",
                "device_id": self.device().as_str(),
                "interface_bindings": self.bindings(connection),
                "caps": { "media_types": ["video/raw"] },
                "subscription": {
                    "sender_id": peer(connection),
                    "active": connection.is_active(),
                },
            }),
        )
    }

    /// The interface of each leg (IS-04 v1.3, Nodes: interface bindings); further legs share the last one.
    fn bindings(&self, connection: &Connection) -> Vec<&str> {
        let last = self.interfaces.last();
        let all = self.interfaces.iter().chain(std::iter::repeat_with(|| last).flatten());
        all.take(connection.legs()).map(|own| own.name.as_str()).collect()
    }
}

/// The other end: an inactive one has none (IS-04 v1.3, Behaviour: Nodes).
fn peer(connection: &Connection) -> Option<&str> {
    connection.peer().filter(|_| connection.is_active()).map(Id::as_str)
}

/// The identifier of something of a node.
fn id(node: &str, of: &str) -> Id {
    Id::named(&format!("suiro/{node}/{of}"))
}

/// The identifier of the node with this name.
pub fn node(name: &str) -> Id {
    id(name, "node")
}

/// The identifier of what sends or receives a stream on a node.
pub fn connection(node: &str, side: Side, stream: u32) -> Id {
    id(node, &format!("{}/{stream}", side.singular()))
}

/// The label of a stream.
pub fn label(stream: u32) -> String {
    format!("stream {stream}")
}

fn grain_rate(rate: suiro_uncompressed::geometry::FrameRate) -> Value {
    json!({ "numerator": rate.frames(), "denominator": rate.seconds() })
}

fn components(geometry: &Geometry) -> Vec<Value> {
    let (width, height) = (geometry.width(), geometry.height());
    let bit_depth = geometry.depth().bits();
    let component = |name: &str, width: u32| json!({ "name": name, "width": width, "height": height, "bit_depth": bit_depth });
    match geometry.sampling() {
        Sampling::YCbCr422 => {
            vec![component("Y", width), component("Cb", width / 2), component("Cr", width / 2)]
        }
        Sampling::YCbCr444 => ["Y", "Cb", "Cr"].map(|name| component(name, width)).to_vec(),
        Sampling::Rgb => ["R", "G", "B"].map(|name| component(name, width)).to_vec(),
    }
}

fn merge(mut core: Value, own: Value) -> Value {
    if let (Value::Object(core), Value::Object(own)) = (&mut core, own) {
        core.extend(own);
    }
    core
}
