//! `uncompressed-sender` and `uncompressed-receiver`: uncompressed video, a stream for each part of the
//! frame.

use std::net::Ipv4Addr;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use suiro_strict::{Bounded, Bounds, Keys, Refusal, bounds, bounds_of};
use suiro_units::{BitRate, Bytes, Duration};

use super::{Flow, Kind, Listens, Reference};
use crate::check::Check;

bounds! {
    UncompressedSender {
        packet: Bounds::new(Bytes::new(576), Bytes::new(9000)),
        frames: Bounds::new(3, 600),
        ring: Bounds::new(3, 600),
        burst: UncompressedSender::BURST;
        tables: source
    }
}

bounds! {
    UncompressedReceiver {
        streams: Bounds::new(1, UncompressedReceiver::STREAMS_MAX as usize),
        buffer: Bounds::new(Bytes::new(1_000_000), Bytes::new(256_000_000)),
        delay: UncompressedReceiver::DELAY;
        each: streams: UncompressedReceiver::STREAMS
    }
}

/// What storage may deliver.
impl Bounded for UncompressedSource {
    fn refuse(&self, at: &Keys, refusals: &mut Vec<Refusal>) {
        if let Self::Storage { rate, .. } = self {
            refusals.extend(UncompressedSender::STORAGE.check(at.below("rate"), *rate).err());
        }
    }

    fn describe(schema: &mut Schema) {
        let kinds = schema.get_mut("oneOf").and_then(Value::as_array_mut);
        for kind in kinds.into_iter().flatten() {
            if let Some(rate) = kind.pointer_mut("/properties/rate").and_then(Value::as_object_mut)
            {
                UncompressedSender::STORAGE.describe_value(rate);
            }
        }
    }
}

/// Sends one stream of uncompressed video, 1920×1080 at 59.94 frames per second in 4:2:2 of 10 bits:
/// synthetic frames, each with its number and a checksum. Frame k begins k frame times after the
/// SMPTE epoch, whichever host sends it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<UncompressedSender>)]
pub struct UncompressedSender {
    /// The endpoint that it sends to, an `uncompressed-receiver`. Default: none, then it needs a `group`.
    #[serde(default)]
    pub to: Option<String>,
    /// The multicast group that it sends to, with or without receivers, such as `"239.1.1.1"`. Default: none, it sends `to` one
    /// receiver.
    #[serde(default)]
    pub group: Option<Ipv4Addr>,
    /// Number of the stream, one of its receiver's `streams`.
    pub stream: u8,
    /// The format of packets. Default: `raster`.
    #[serde(default)]
    pub format: UncompressedFormat,
    /// Its frames, the same as its receiver's. In `raster`, the full ones are whole SDI rasters. Default: `1920x1080`.
    #[serde(default)]
    pub picture: UncompressedPicture,
    /// Largest IP packet; the path must carry it unfragmented. Default: 8800 B, as
    /// in the study.
    #[serde(default = "packet")]
    pub packet: Bytes,
    /// Where its frames come from. Default: `{ kind = "memory" }`.
    #[serde(default)]
    pub source: UncompressedSource,
    /// Number of different frames, which are sent repeatedly and all held in memory. A
    /// frame of `raster` has 6.2 MB. Default: 30.
    #[serde(default = "frames")]
    pub frames: u32,
    /// Frames that it reads ahead from a `storage`. Unless reading `copies`, a ring takes no memory in addition to that of the
    /// different frames. Default: as many as `frames`.
    #[serde(default)]
    pub ring: Option<u32>,
    /// Limit on the packets of one burst. Default: 7.
    #[serde(default = "burst")]
    pub burst: u32,
    /// When its first frame begins, counted from the trial's start, so that several senders can
    /// begin with the same frame; later if it is not ready by then. Default: 0 s.
    #[serde(default)]
    pub begin: Duration,
    /// The CPU that its thread is pinned to, counted from 0, modulo the number of CPUs.
    /// A sender and its receiver on the same CPU share its cache. Default: any.
    #[serde(default)]
    pub cpu: Option<u8>,
}

/// Receives streams of uncompressed video on one thread, and verifies every packet and frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<UncompressedReceiver>)]
pub struct UncompressedReceiver {
    /// Numbers of its streams; no other receiver may have them.
    pub streams: Vec<u8>,
    /// The multicast groups of its streams, one for each of `streams`, in their order, which it joins when it starts.
    /// Default: none, its senders send to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Ipv4Addr>,
    /// The senders of these groups, one for each, if packets of no other are wanted: with IGMPv3, routers leave out all
    /// others. Default: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The format of packets, the same as its senders'. Default: `raster`.
    #[serde(default)]
    pub format: UncompressedFormat,
    /// The frames of its streams, the same as its senders'. Default: `1920x1080`.
    #[serde(default)]
    pub picture: UncompressedPicture,
    /// Whether every frame's checksum is verified. Default: `true`.
    #[serde(default = "yes")]
    pub verify: bool,
    /// Receive buffer of each stream. Default: 64 MiB.
    #[serde(default = "buffer")]
    pub buffer: Bytes,
    /// Frame times from the beginning of a frame to the tick at which its output shows it, as a converter that is
    /// locked to others: frame k at tick k + delay, counted from the SMPTE epoch. A frame takes one frame time to be
    /// sent; the rest is for frames that arrive late. Default: 6, which leaves 83 ms: more than twice the worst
    /// lateness of a frame of eight streams on two CPUs (35 ms).
    #[serde(default = "delay")]
    pub delay: u8,
    /// The CPU that its thread is pinned to, counted from 0, modulo the number of CPUs.
    /// A sender and its receiver on the same CPU share its cache. Default: any.
    #[serde(default)]
    pub cpu: Option<u8>,
}

/// Where the frames of uncompressed video come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(transform = bounds_of::<UncompressedSource>)]
pub enum UncompressedSource {
    /// Memory, which holds all of them.
    #[default]
    Memory,
    /// A file in the trial's folder, sent from the page cache, each frame at the time at which
    /// storage with this rate and latency would have delivered it.
    Storage {
        /// Bits that it reads per second.
        rate: BitRate,
        /// Time from requesting data to its first byte.
        latency: Duration,
        /// Whether the frames are sent; if not, they are only read, as fast as the storage delivers
        /// them. Default: `true`.
        #[serde(default = "yes")]
        send: bool,
        /// Whether reading takes CPU time: each frame is copied from the page cache to the ring, as from a file
        /// system; if not, it appears in memory, as from a card that writes there by itself. Default: `false`.
        #[serde(default)]
        copies: bool,
    },
}

/// The packet format of uncompressed video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UncompressedFormat {
    /// As in the study: the whole SDI raster, 2.967 Gbit/s, in large packets of suiro's own format.
    #[default]
    Raster,
    /// ST 2110-20: the frame, 2.486 Gbit/s.
    St2110,
}

/// The frames of uncompressed video: all have 59.94 frames per second, 4:2:2 of 10 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum UncompressedPicture {
    /// 2.486 Gbit/s: an eighth of 8K.
    #[default]
    #[serde(rename = "1920x1080")]
    Full,
    /// 3.178 Gbit/s, and 3.2 as IP in packets of 8800 bytes: as a stream of the study with its own headers.
    #[serde(rename = "2200x1205")]
    Study,
    /// 1.105 Gbit/s.
    #[serde(rename = "1280x720")]
    P720,
    /// 0.621 Gbit/s.
    #[serde(rename = "960x540")]
    P540,
    /// 0.276 Gbit/s.
    #[serde(rename = "640x360")]
    P360,
}

impl UncompressedReceiver {
    /// Most streams of a trial: their numbers are below.
    pub const STREAMS_MAX: u8 = 64;

    /// Frame times from the beginning of a frame to its tick.
    pub const DELAY: Bounds<u8> = Bounds::new(4, 8);

    /// The number of a stream.
    const STREAMS: Bounds<u8> = Bounds::new(0, Self::STREAMS_MAX - 1);

    /// The UDP port of a stream.
    pub const fn port(stream: u8) -> u16 {
        5004 + 2 * stream as u16
    }
}

impl UncompressedFormat {
    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raster => "raster",
            Self::St2110 => "st2110",
        }
    }
}

impl UncompressedPicture {
    /// Width and height in samples.
    pub const fn size(self) -> (u32, u32) {
        match self {
            Self::Full => (1920, 1080),
            Self::Study => (2200, 1205),
            Self::P720 => (1280, 720),
            Self::P540 => (960, 540),
            Self::P360 => (640, 360),
        }
    }
}

impl Kind for UncompressedSender {
    fn references(&mut self) -> Vec<Reference<&mut String>> {
        let (key, kinds, media) = ("to", &[UncompressedReceiver::NAME], Flow::Goes);
        let to = self.to.as_mut();
        to.map(|name| Reference { key, name, kinds, media }).into_iter().collect()
    }

    fn groups(&self) -> Vec<(&'static str, Ipv4Addr)> {
        self.group.map(|group| ("group", group)).into_iter().collect()
    }

    fn check(&self, check: &mut Check<'_>) {
        if let Some(end) = check.end().filter(|end| self.begin >= *end) {
            let refusal = check.refusal("begin", format!("a first frame at {}", self.begin));
            check.push(refusal.expected(format!("before the trial ends, at {end}")));
        }
        if check.before::<Self>().any(|other| other.stream == self.stream) {
            let refusal =
                check.refusal("stream", format!("stream {} already has a sender", self.stream));
            check.push(refusal.hint("give each sender its own stream"));
        }
        match (&self.to, self.group) {
            (Some(to), None) => self.check_receiver(to, check),
            (None, Some(_)) => {}
            (to, _) => {
                let found = if to.is_some() { "both `to` and `group`" } else { "no destination" };
                let refusal = check.refusal(if to.is_some() { "group" } else { "kind" }, found);
                check.push(refusal.expected("`to`, a receiver, or `group`, a multicast address"));
            }
        }
    }
}

impl UncompressedSender {
    /// The packets of one burst, at most.
    pub const BURST: Bounds<u32> = Bounds::new(1, 64);
    /// What an emulated storage delivers.
    pub(crate) const STORAGE: Bounds<BitRate> =
        Bounds::new(BitRate::from_mbps(1), BitRate::from_mbps(1_000_000));

    fn check_receiver(&self, to: &str, check: &mut Check<'_>) {
        let Some(receiver) = check.peer::<UncompressedReceiver>(to) else { return };
        if !receiver.streams.contains(&self.stream) {
            let message = format!("`{to}` has no stream {}", self.stream);
            let known: Vec<_> = receiver.streams.iter().map(ToString::to_string).collect();
            let expected = format!("one of its streams: {}", known.join(", "));
            check.push(check.refusal("stream", message).expected(expected));
        }
        if receiver.picture != self.picture {
            let (ours, theirs) = (self.picture.size(), receiver.picture.size());
            let (ours, theirs) =
                (format!("{}x{}", ours.0, ours.1), format!("{}x{}", theirs.0, theirs.1));
            let message = format!("it sends `{ours}`, but `{to}` takes `{theirs}`");
            check.push(check.refusal("picture", message).hint("give both the same `picture`"));
        }
        if receiver.format != self.format {
            let (ours, theirs) = (self.format.name(), receiver.format.name());
            let message = format!("it sends `{ours}`, but `{to}` takes `{theirs}`");
            check.push(check.refusal("format", message).hint("give both the same format"));
        }
    }
}

impl Kind for UncompressedReceiver {
    fn references(&mut self) -> Vec<Reference<&mut String>> {
        let (key, kinds, media) = ("sources", &[UncompressedSender::NAME], Flow::Comes);
        self.sources.iter_mut().map(|name| Reference { key, name, kinds, media }).collect()
    }

    fn groups(&self) -> Vec<(&'static str, Ipv4Addr)> {
        self.groups.iter().map(|group| ("groups", *group)).collect()
    }

    fn listens(&self) -> Vec<Listens> {
        let known = self.streams.iter().filter(|stream| Self::STREAMS.contains(stream));
        known.map(|stream| Listens::udp(Self::port(*stream), "streams")).collect()
    }

    fn check(&self, check: &mut Check<'_>) {
        let wanted = [("groups", self.groups.len(), self.streams.len())];
        let named = [("sources", self.sources.len(), self.groups.len())];
        for (key, found, expected) in wanted.into_iter().chain(named) {
            if found != 0 && found != expected {
                let refusal = check.refusal(key, format!("{found} {key}"));
                let each = if key == "groups" { "stream" } else { "group" };
                check.push(refusal.expected(format!("one for each {each}: {expected}")));
            }
        }
        for (at, stream) in self.streams.iter().enumerate() {
            let others = check.before::<Self>().flat_map(|other| &other.streams);
            let mut taken = others.chain(&self.streams[..at]);
            if taken.any(|other| other == stream) {
                let refusal = check.refusal("streams", format!("stream {stream} twice"));
                check.push(refusal.expected("each number once in the scenario"));
            }
        }
    }
}

const fn packet() -> Bytes {
    Bytes::new(8800)
}

const fn frames() -> u32 {
    30
}

const fn burst() -> u32 {
    7
}

const fn yes() -> bool {
    true
}

const fn delay() -> u8 {
    6
}

const fn buffer() -> Bytes {
    Bytes::new(64 << 20)
}
