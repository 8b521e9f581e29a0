//! The figures of a page that share one time axis, and how series are drawn in them.

use schemars::JsonSchema;
use serde::Serialize;

use suiro_units::Direction;

use crate::instance::Instance;

/// How a panel is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The heading.
    pub title: &'static str,
    /// The one direction of its series, if all have the same one (the title names it); `None`
    /// otherwise.
    pub direction: Option<Direction>,
    /// Its height in pixels.
    pub height_px: u32,
    /// True if the times at which the viewer's video froze are shaded.
    pub stalls: bool,
    /// True if its vertical axis need not begin at zero.
    pub floating: bool,
    /// True if the figure of an up direction is left out where nothing happened in it.
    pub quiet_up: bool,
    /// True if it is drawn of one cell at a time, and not in the stack.
    pub of_a_cell: bool,
}

const LOW: Look = Look {
    title: "",
    direction: None,
    height_px: 132,
    stalls: false,
    floating: false,
    quiet_up: false,
    of_a_cell: false,
};
const TALL: Look = Look { height_px: 168, ..LOW };

/// Declares the panels, in the order of a page: each with its look.
macro_rules! panels {
    ($($(#[doc = $doc:literal])+ $panel:ident = $look:expr;)+) => {
        /// A figure of the stack that shares one time axis, in the order of a page.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Panel {
            $($(#[doc = $doc])+ $panel,)+
        }

        impl Panel {
            /// Every panel, in the order of a page.
            pub const ALL: &[Self] = &[$(Self::$panel),+];

            /// How it is drawn.
            pub fn look(self) -> Look {
                match self {
                    $(Self::$panel => $look,)+
                }
            }
        }
    };
}

// In the order of the page: what the link carried, what the viewer saw, then the transport's state.
panels! {
    /// Throughput down and the link's rate.
    ThroughputDown = Look {
        title: "Throughput down", direction: Some(Direction::Down), stalls: true, ..TALL
    };
    /// What stations of hubs sent, and the medium's rate.
    ThroughputStations = Look {
        title: "Throughput of stations", direction: Some(Direction::Up), stalls: true, ..TALL
    };
    /// Rates of video and of TCP next to each other.
    Rivals = Look { title: "Rate of a video flow and of a TCP flow", ..TALL };
    /// Rates of several flows of one kind, each by itself.
    Flows = Look { title: "Rate of each flow", of_a_cell: true, ..TALL };
    /// What congestion control estimates, over what the path can carry.
    Estimate = Look { title: "Estimate, capacity and encoder", stalls: true, ..TALL };
    /// How large the encoder's frames are.
    PictureSize = Look { title: "Height of the encoded frames", ..LOW };
    /// How many frames the encoder makes.
    FrameRate = Look { title: "Frames encoded per second", ..LOW };
    /// How coarsely a browser quantises.
    Quantiser = Look { title: "Quantiser parameter, as the browser counts it", ..LOW };
    /// How long a browser takes to encode or decode a frame.
    Coding = Look { title: "Coding time of a frame, as the browser counts it", ..LOW };
    /// For how long frames are in a browser's jitter buffer.
    JitterBuffer = Look { title: "Jitter buffer, as the browser counts it", ..LOW };
    /// What a rate control allows, and the video that is sent.
    Target = Look { title: "Rate control target and video sent", ..TALL };
    /// Loss as senders of video see it.
    Loss = Look { title: "Loss reported to the video sender", ..LOW };
    /// Rung shown, and the throughput that the player expects.
    Rung = Look { title: "Rung shown", stalls: true, ..LOW };
    /// Media buffered by the player.
    Buffer = Look { title: "Playback buffer", stalls: true, ..TALL };
    /// Age of the frame.
    Latency = Look { title: "Latency, capture to display", stalls: true, floating: true, ..TALL };
    /// Age of the sound.
    MouthToEar = Look { title: "Sound: mouth to ear, and in the jitter buffer", floating: true, ..LOW };
    /// How much the sound is ahead of the video.
    LipSync = Look { title: "Lip sync: sound ahead of the video", stalls: true, floating: true, ..LOW };
    /// Sound that was made up.
    Concealed = Look { title: "Sound concealed", ..LOW };
    /// How good the frame looks.
    Quality = Look { title: "Frame quality", stalls: true, floating: true, ..TALL };
    /// Lost between service access points.
    LayerLoss = Look {
        title: "Loss between layer access points, share of packets sent", ..LOW
    };
    /// Delayed between service access points.
    LayerDelay = Look { title: "Delay between layer access points", ..LOW };
    /// Congestion window and slow-start threshold.
    Window = Look { title: "Congestion window", ..TALL };
    /// What waits for a QUIC connection.
    Waiting = Look { title: "Waiting to be sent by QUIC", ..LOW };
    /// How fast congestion control lets packets leave.
    Pacing = Look { title: "Pacing rate", ..LOW };
    /// Round-trip time.
    Rtt = Look { title: "Round-trip time", ..TALL };
    /// Bytes waiting in the queue.
    Queue = Look { title: "Queue", quiet_up: true, ..LOW };
    /// Delay in the queue.
    QueueDelay = Look { title: "Queueing delay", quiet_up: true, ..LOW };
    /// Packets dropped.
    Losses = Look { title: "Packets dropped", quiet_up: true, ..LOW };
    /// Attempts to send on a shared medium that failed.
    Collisions = Look { title: "Failed attempts on the shared medium", quiet_up: true, ..LOW };
    /// Throughput at capture points.
    CaptureRate = Look { title: "Throughput at capture points", quiet_up: true, ..LOW };
    /// Packets lost between capture points.
    CaptureLoss = Look { title: "Packets lost between capture points", quiet_up: true, ..LOW };
    /// How late frames of uncompressed video begin.
    Lateness = Look { title: "Lateness of frame start, worst stream", ..LOW };
    /// How much earlier than their ticks frames of uncompressed video were complete at converters.
    Margin = Look { title: "Frames complete before their output tick, least margin", ..LOW };
    /// Ticks at which converters had no new frame.
    Outputs = Look { title: "Converter outputs without a new frame", ..LOW };
    /// Frames of uncompressed video between storage and sender.
    Ring = Look { title: "Frames queued between storage and sender", ..LOW };
    /// Rates of reading and sending uncompressed video.
    Storage = Look { title: "Storage read and send rates", ..LOW };
    /// What multicast routers forward.
    Multicast = Look { title: "Multicast through routers", ..LOW };
    /// Throughput up and the link's rate.
    ThroughputUp = Look { title: "Throughput up", direction: Some(Direction::Up), ..LOW };
}

impl Panel {
    /// Where a series of that instance goes: throughput up has a panel of its own, and that of hubs' stations.
    pub(crate) fn of_instance(self, instance: &Instance) -> Self {
        match (self, instance.direction) {
            (Self::ThroughputDown, Some(Direction::Up)) if instance.at_hub => {
                Self::ThroughputStations
            }
            (Self::ThroughputDown, Some(Direction::Up)) => Self::ThroughputUp,
            (panel, _) => panel,
        }
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// A line.
    Line,
    /// A line in steps.
    Step,
    /// A faint line next to the main one.
    Context,
    /// A faint line in steps next to the main one: a bound.
    Bound,
    /// A bar per bin.
    Bar,
}
