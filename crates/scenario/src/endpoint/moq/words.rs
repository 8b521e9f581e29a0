//! Words of the endpoints of Media over QUIC.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How objects are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MoqStreams {
    /// Every frame is a group of its own: one that is lost or late holds up no other.
    #[default]
    Frame,
    /// A key frame and all that refer to it are one group, in order.
    Gop,
    /// A frame that fits in one QUIC datagram of any path (1,100 bytes) is a datagram, which is not sent again if it is lost.
    /// A larger one is a group of its own on a stream, because MoQT does not split objects into several datagrams.
    Datagram,
}

/// How the objects of a data track are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MoqData {
    /// There is no data track.
    #[default]
    None,
    /// JSON with the members `number`, `time_us` and `text`, which fills it up.
    Json,
    /// Number and time as 64-bit integers in network byte order, then zeros.
    Binary,
}

/// What adapts to the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MoqAdaptation {
    /// Nothing: the encoder's bit rate is constant.
    #[default]
    None,
    /// The encoder: its bit rate, frame rate and size follow the rate at which QUIC sends to the relay, and how much waits for
    /// that. It begins with at most 300 kbit/s.
    Encoder,
    /// The viewer: the publisher has several qualities, each a track, and the viewer changes between them.
    Qualities,
    /// Encoders and viewer.
    Both,
}

impl MoqAdaptation {
    /// Whether encoders follow what QUIC can send.
    pub const fn encoder_follows(self) -> bool {
        matches!(self, Self::Encoder | Self::Both)
    }

    /// Whether there are several qualities, between which viewers change.
    pub const fn has_qualities(self) -> bool {
        matches!(self, Self::Qualities | Self::Both)
    }
}

/// What the congestion control of WebTransport in a browser is asked to optimise for (W3C, WebTransport,
/// `WebTransportCongestionControl`). The browser decides what it does with that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BrowserCongestion {
    /// Nothing in particular.
    #[default]
    Default,
    /// Throughput.
    Throughput,
    /// A short queue.
    LowLatency,
}

impl BrowserCongestion {
    /// Its name, as scenarios and browsers write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Throughput => "throughput",
            Self::LowLatency => "low-latency",
        }
    }
}
