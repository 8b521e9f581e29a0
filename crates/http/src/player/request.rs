//! What a session asks for, and what a viewer sees of it.

use std::sync::Arc;

use suiro_abr::State;
use suiro_units::{BitRate, Duration};

use super::fetch::Progress;
use crate::presentation::{Resource, Segment, TrackKind};

/// One request.
#[derive(Debug, Clone)]
pub struct Fetch {
    /// The lane that it belongs to, below [`LANES`](super::session::LANES).
    pub lane: usize,
    /// What is asked for.
    pub what: What,
    /// Where it is.
    pub resource: Resource,
    /// Which try at it, from 1.
    pub attempt: u32,
    /// A larger body is refused.
    pub bytes_max: u64,
    /// True if the body is to be handed back.
    pub keep_body: bool,
    pub(crate) progress: Arc<Progress>,
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// An MPD or a multivariant playlist.
    Manifest,
    /// The media playlist of a rung.
    Playlist {
        /// Index of the rung.
        rung: usize,
    },
    /// What a decoder needs before a segment.
    Init {
        /// Of which track.
        kind: TrackKind,
        /// Of which rung.
        rate: BitRate,
    },
    /// A segment.
    Segment {
        /// Of which track.
        kind: TrackKind,
        /// Of which rung.
        rate: BitRate,
        /// Which one.
        segment: Segment,
        /// Counts the track's seeks: what was asked for before the last one is not played.
        generation: u64,
    },
}

/// Something to save, in the order in which it is played.
#[derive(Debug)]
pub(crate) enum Piece {
    Init(TrackKind, bytes::Bytes),
    Segment(TrackKind, BitRate, bytes::Bytes),
}

/// What a viewer would see now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// The playout's state; `Starting` before it is prepared.
    pub state: State,
    /// True if playback was given up and the buffer has been played.
    pub failed: bool,
    /// Media ahead of the playhead.
    pub buffer: Duration,
    /// The playhead in media time.
    pub position: Duration,
    /// Bit rate of the video under the playhead; `None` before the first picture.
    pub rung: Option<BitRate>,
    /// Live: age of the picture under the playhead, in nanoseconds.
    pub latency_ns: Option<i64>,
    /// Playback speed.
    pub speed: f64,
    /// Stalls so far.
    pub stalls: u64,
    /// Throughput as estimated.
    pub estimate: Option<BitRate>,
}

impl View {
    /// True if nothing more will happen.
    pub fn is_over(&self) -> bool {
        self.failed || self.state == State::Ended
    }
}
