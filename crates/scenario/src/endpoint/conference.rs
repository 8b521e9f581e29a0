//! `conference`: one end of a video call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounds, bounds, bounds_of};
use suiro_units::Bytes;

use super::{Flow, Kind, Listens, PORT, Reference, shift};
use crate::check::Check;

const SIDE: Bounds<u32> = Bounds::new(16, 1920);
const BUFFER: Bounds<Bytes> = Bounds::new(Bytes::new(2000), Bytes::new(100_000_000));

bounds! {
    Conference {
        port: PORT,
        width: SIDE,
        height: SIDE,
        fps: Bounds::new(1, 60),
        picture: Bounds::new(Bytes::new(1000), Bytes::new(1_000_000)),
        packet: Bounds::new(Bytes::new(1200), Bytes::new(9000)),
        send_buffer: BUFFER,
        receive_buffer: BUFFER,
    }
}

/// One end of a video call: it sends the other end synthetic video and receives the other end's video, like a desktop
/// conference. One thread captures, encodes, sends by a non-blocking socket, receives and decodes, so a CPU with too
/// much to do holds up all of it. Each frame is coded by itself (a cosine transform in blocks, as motion JPEG), at a
/// constant size. A send call that fails drops its packet and is counted in the table `conference`. Its camera starts 1
/// s after its own start, when both ends have their sockets, and stops 0.5 s before the trial ends, so that the last
/// frames arrive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Conference>)]
pub struct Conference {
    /// The other end, a `conference` whose `with` is this endpoint.
    pub with: String,
    /// UDP port that it sends from and receives at. Default: 5004.
    #[serde(default = "port")]
    pub port: u16,
    /// Width of the frames in pixels, a multiple of 16, the same at both ends. Default: 320.
    #[serde(default = "width")]
    pub width: u32,
    /// Height of the frames in pixels, a multiple of 16, the same at both ends. Default: 240.
    #[serde(default = "height")]
    pub height: u32,
    /// Frames per second. Default: 10.
    #[serde(default = "fps")]
    pub fps: u32,
    /// Size of an encoded frame: the finest quantiser with which it is not exceeded is taken. Default:
    /// 10 kB, about 1 bit per pixel at 320×240, as CellB has it.
    #[serde(default = "picture")]
    pub picture: Bytes,
    /// Largest IP packet; the path must carry it whole. Default: 1500 B.
    #[serde(default = "packet")]
    pub packet: Bytes,
    /// Send buffer of the socket as SO_SNDBUF takes it; Linux doubles it. Default: the kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Bytes>,
    /// Receive buffer of the socket as SO_RCVBUF takes it; Linux doubles it. Default: the kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<Bytes>,
    /// The CPU that its thread stays on, counted from 0, modulo the number of CPUs. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u8>,
}

impl Kind for Conference {
    fn listens(&self) -> Vec<Listens> {
        vec![Listens::udp(self.port, "port")]
    }

    fn renumber(&mut self, n: u16) -> Option<()> {
        shift(&mut self.port, n, 1)
    }

    fn references(&mut self) -> Vec<Reference<&mut String>> {
        // The other end refers to this one, which is the other direction.
        let (key, kinds, media) = ("with", &[Self::NAME], Flow::Goes);
        vec![Reference { key, name: &mut self.with, kinds, media }]
    }

    fn check(&self, check: &mut Check<'_>) {
        for (key, pixels) in [("width", self.width), ("height", self.height)] {
            if !pixels.is_multiple_of(16) {
                let refusal = check.refusal(key, format!("{pixels} pixels"));
                check.push(refusal.expected("a multiple of 16"));
            }
        }
        let Some(other) = check.peer::<Self>(&self.with) else { return };
        if (other.width, other.height) != (self.width, self.height) {
            let message = format!(
                "frames of {}×{}, but `{}` has {}×{}",
                self.width, self.height, self.with, other.width, other.height
            );
            check.push(check.refusal("width", message).hint("give both ends the same size"));
        }
        if check.peer::<Self>(&other.with) != Some(self) {
            let message = format!("`{}` is in a call with `{}`", self.with, other.with);
            check.push(
                check.refusal("with", message).expected("two endpoints that name each other"),
            );
        }
    }
}

const fn port() -> u16 {
    5004
}

const fn width() -> u32 {
    320
}

const fn height() -> u32 {
    240
}

const fn fps() -> u32 {
    10
}

const fn picture() -> Bytes {
    Bytes::new(10_000)
}

const fn packet() -> Bytes {
    Bytes::new(1500)
}
