//! `uncompressed-node`, `uncompressed-registry` and `uncompressed-controller`: a stream server whose nodes are commanded by
//! NMOS, and an operator's actions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounds, bounds, bounds_of};
use suiro_units::{BitRate, Bytes, Duration};

use super::{
    Exit, Flow, Kind, PORT, Reference, UncompressedFormat, UncompressedPicture,
    UncompressedReceiver, UncompressedSender, listens_tcp,
};
use crate::check::Check;

/// Longest desired state, in bytes.
const STATE_MAX: usize = 64 << 10;

bounds! {
    UncompressedNode {
        port: PORT,
        streams: Bounds::new(1, 64),
        capacity: Bounds::new(1, 64),
        packet: Bounds::new(Bytes::new(576), Bytes::new(9000)),
        frames: Bounds::new(3, 600),
        burst: UncompressedSender::BURST;
        tables: storage;
        each: streams: Bounds::new(0, UncompressedReceiver::STREAMS_MAX - 1)
    }
}

bounds! {
    NodeStorage {
        rate: UncompressedSender::STORAGE,
        slow_rate: UncompressedSender::STORAGE
    }
}

bounds! {
    UncompressedRegistry { port: PORT }
}

bounds! {
    UncompressedController {
        port: PORT,
        lead: Bounds::new(Duration::from_millis(20), Duration::from_secs(10)),
        lead_fault: Bounds::new(Duration::from_millis(20), Duration::from_secs(10)),
        ask_every: Bounds::new(Duration::from_millis(5), Duration::from_secs(10)),
        silence: Bounds::new(Duration::from_millis(20), Duration::from_secs(60)),
        faulty_frames: Bounds::new(1, 1000)
    }
}

/// A node of a stream server: it can send each of its streams, keeps all of them ready, and sends those that are
/// activated through AMWA NMOS IS-05. Its name is what a controller's desired state calls it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<UncompressedNode>)]
pub struct UncompressedNode {
    /// The registry where it registers, an `uncompressed-registry`.
    pub registry: String,
    /// Numbers of the streams that it can send.
    pub streams: Vec<u8>,
    /// How many of them it can send at a time. Default: 1.
    #[serde(default = "one")]
    pub capacity: u32,
    /// TCP port of its APIs. Default: 8080.
    #[serde(default = "port")]
    pub port: u16,
    /// The frames of its streams. Default: `1920x1080`.
    #[serde(default)]
    pub picture: UncompressedPicture,
    /// The format of packets. Default: `st2110`.
    #[serde(default = "st2110")]
    pub format: UncompressedFormat,
    /// Largest IP packet; the path must carry it unfragmented. Default: 8800 B.
    #[serde(default = "packet")]
    pub packet: Bytes,
    /// Number of different frames of each stream, all held in memory. Default: 10.
    #[serde(default = "frames")]
    pub frames: u32,
    /// A storage that the frames are read from, one for each stream. Default: none, they are in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<NodeStorage>,
    /// Limit on the packets of one burst. Default: 7.
    #[serde(default = "burst")]
    pub burst: u32,
    /// The CPU that its thread is pinned to, counted from 0, modulo the number of CPUs. Default: any.
    #[serde(default)]
    pub cpu: Option<u8>,
    /// When it is killed (SIGKILL), counted from the trial's start. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dies: Option<Duration>,
}

/// A storage that becomes slower.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<NodeStorage>)]
pub struct NodeStorage {
    /// The rate at which it delivers a stream.
    pub rate: BitRate,
    /// When it becomes slower, counted from the trial's start.
    pub slow_at: Duration,
    /// The rate from then on.
    pub slow_rate: BitRate,
}

/// A registry of nodes: AMWA NMOS IS-04 Registration and Query API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<UncompressedRegistry>)]
pub struct UncompressedRegistry {
    /// TCP port. Default: 8235.
    #[serde(default = "registry_port")]
    pub port: u16,
    /// When it is killed (SIGKILL), counted from the trial's start. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dies: Option<Duration>,
}

/// The controller of a stream server: it moves the streams to the nodes of its desired state, and replaces nodes that
/// die, starve or lag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<UncompressedController>)]
pub struct UncompressedController {
    /// The registry that knows the nodes, an `uncompressed-registry`.
    pub registry: String,
    /// The desired state at the start: TOML, as `suiro uncompressed control` reads it. The host number n of the trial has
    /// the address 10.0.0.n.
    pub state: String,
    /// Twins (SMPTE ST 2022-7) that are added to that state: the stream's number, and a second node that sends the same
    /// packets to the same address. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub twins: BTreeMap<String, String>,
    /// The file that holds it, in the trial's folder. Controllers with the same file share it: one leads. Default:
    /// `desired.toml`.
    #[serde(default = "file")]
    pub file: PathBuf,
    /// The operator's actions, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<OperatorAction>,
    /// TCP port of its API and page. Default: 8090.
    #[serde(default = "controller_port")]
    pub port: u16,
    /// How long before a change takes effect the nodes receive it. Default: 250 ms.
    #[serde(default = "lead")]
    pub lead: Duration,
    /// The same when a stream has no sender. Default: 20 ms. With the wait for the next
    /// frame and the commands, its next sender is on air within three frame times.
    #[serde(default = "lead_fault")]
    pub lead_fault: Duration,
    /// How often it asks each node for its state. Default: 20 ms.
    #[serde(default = "ask_every")]
    pub ask_every: Duration,
    /// How long a node may be silent before it is replaced. Default: 50 ms, three frame times.
    #[serde(default = "silence")]
    pub silence: Duration,
    /// How many frames a node may repeat, or send late or not at all, within a second before it is replaced. Default: 3.
    #[serde(default = "faulty_frames")]
    pub faulty_frames: u32,
    /// When it is killed (SIGKILL), counted from the trial's start. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dies: Option<Duration>,
}

/// An operator edits the desired state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperatorAction {
    /// When, counted from the trial's start.
    pub at: Duration,
    /// Streams to move to another node: the stream's number, and the node. All change at the same frame.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub moves: BTreeMap<String, String>,
    /// Whether the streams are to be on air. Default: as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<bool>,
}

/// What it means that an endpoint exits that dies on purpose.
const fn exit(dies: Option<Duration>) -> Exit {
    match dies {
        Some(_) => Exit::Ignored,
        None => Exit::Fails,
    }
}

fn registry(name: &mut String) -> Vec<Reference<&mut String>> {
    let (key, kinds, media) = ("registry", &[UncompressedRegistry::NAME], Flow::None);
    vec![Reference { key, name, kinds, media }]
}

impl Kind for UncompressedNode {
    listens_tcp!();

    fn references(&mut self) -> Vec<Reference<&mut String>> {
        registry(&mut self.registry)
    }

    fn exit(&self) -> Exit {
        exit(self.dies)
    }

    fn check(&self, check: &mut Check<'_>) {
        for (at, stream) in self.streams.iter().enumerate() {
            if self.streams[..at].contains(stream) {
                let refusal = check.refusal("streams", format!("stream {stream} twice"));
                check.push(refusal.expected("each number once"));
            }
        }
        if self.format == UncompressedFormat::Raster && self.picture != UncompressedPicture::Full {
            let refusal = check.refusal("picture", "a raster has one size only");
            check.push(refusal.hint("leave `picture` out, or take the format `st2110`"));
        }
    }
}

impl Kind for UncompressedRegistry {
    listens_tcp!();

    fn exit(&self) -> Exit {
        exit(self.dies)
    }
}

impl Kind for UncompressedController {
    listens_tcp!();

    fn references(&mut self) -> Vec<Reference<&mut String>> {
        registry(&mut self.registry)
    }

    fn exit(&self) -> Exit {
        exit(self.dies)
    }

    fn check(&self, check: &mut Check<'_>) {
        if self.state.len() > STATE_MAX {
            let refusal = check.refusal("state", format!("{} bytes", self.state.len()));
            check.push(refusal.expected(format!("{STATE_MAX} at most")));
        }
        let name = self.file.to_str().unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            let refusal = check.refusal("file", format!("{name:?}"));
            check.push(refusal.expected(
                "the name of a file in the trial's folder, of letters, digits and - _ .",
            ));
        }
        if !self.actions.is_sorted_by_key(|action| action.at) {
            let refusal = check.refusal("actions", "they are not in the order of time");
            check.push(refusal.hint("sort them by `at`"));
        }
        for (at, action) in self.actions.iter().enumerate() {
            if let Some(end) = check.end().filter(|end| action.at >= *end) {
                let path = ["actions", &at.to_string(), "at"];
                let refusal = check.refusal_at(&path, format!("an action at {}", action.at));
                check.push(refusal.expected(format!("before the trial ends, at {end}")));
            }
        }
    }
}

const fn one() -> u32 {
    1
}

const fn port() -> u16 {
    8080
}

const fn registry_port() -> u16 {
    8235
}

const fn controller_port() -> u16 {
    8090
}

const fn st2110() -> UncompressedFormat {
    UncompressedFormat::St2110
}

const fn packet() -> Bytes {
    Bytes::new(8800)
}

const fn frames() -> u32 {
    10
}

const fn burst() -> u32 {
    7
}

fn file() -> PathBuf {
    PathBuf::from("desired.toml")
}

const fn lead() -> Duration {
    Duration::from_millis(250)
}

const fn lead_fault() -> Duration {
    Duration::from_millis(20)
}

const fn ask_every() -> Duration {
    Duration::from_millis(20)
}

const fn silence() -> Duration {
    Duration::from_millis(50)
}

const fn faulty_frames() -> u32 {
    3
}
