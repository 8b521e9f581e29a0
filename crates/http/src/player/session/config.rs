//! What a session is to play, how, and how much it takes.

use suiro_abr::{Algorithm, CatchUp, ChunkEstimator};
use suiro_scenario::{Cmcd, Download, Protocol};
use suiro_units::{Duration, Ratio};

use super::super::request::Room;
use super::super::track::TrackState;
use super::{Fetch, What};
use crate::presentation::{MANIFEST_BYTES_MAX, Resource};
use crate::url::Url;

/// The largest segment, in bytes.
const SEGMENT_BYTES_MAX: u64 = 64 << 20;
/// The largest initialisation segment, in bytes.
const INIT_BYTES_MAX: u64 = 1 << 20;

/// What the session is to play, and how.
#[derive(Debug, Clone)]
pub struct Config {
    /// The manifest.
    pub url: Url,
    /// What the manifest is.
    pub protocol: Protocol,
    /// How rungs are chosen.
    pub algorithm: Algorithm,
    /// How the throughput of segments in chunks is estimated.
    pub chunks: ChunkEstimator,
    /// The most media to hold; at least two segments are held whatever this says.
    pub buffer: Duration,
    /// How segments are taken.
    pub download: Download,
    /// Latency to play a live stream at; `None`: as the manifest suggests, else three segments.
    pub target_latency: Option<Duration>,
    /// How the speed of a live stream is chosen.
    pub catch_up: CatchUp,
    /// By how much it may differ from 1; `None`: as the manifest says, else 5 %.
    pub speed_change: Option<Ratio>,
    /// How far a live stream may fall behind before the player jumps; `None`: 12 s, or 3 s at low latency.
    pub max_drift: Option<Duration>,
    /// The wall clock at the epoch, in nanoseconds since 1970.
    pub epoch_unix_ns: u64,
    /// True if a segment that comes too slowly is given up for one of a lower rung.
    pub abandon: bool,
    /// Whether and how playback is reported to servers.
    pub cmcd: Option<Cmcd>,
    /// What the session is called then.
    pub session: String,
    /// True if requests share a connection, so that they say how urgent they are.
    pub priorities: bool,
    /// True if the bodies of segments are wanted, to be saved.
    pub keep_bodies: bool,
}

impl Config {
    /// The fetch of a resource of a track.
    pub(super) fn fetch(
        &self,
        number: u64,
        track: &mut TrackState,
        what: What,
        resource: Resource,
    ) -> Fetch {
        let room = match &what {
            What::Segment { segment, .. } if self.download == Download::Stream => {
                Some(Room { start: segment.start, duration: segment.duration })
            }
            _ => None,
        };
        let (bytes_max, keep_body) = match &what {
            What::Manifest | What::Clock | What::Playlist { .. } => {
                (MANIFEST_BYTES_MAX as u64, true)
            }
            What::Init { .. } => (INIT_BYTES_MAX, self.keep_bodies || track.is_low_latency()),
            What::Segment { .. } => (SEGMENT_BYTES_MAX, self.keep_bodies),
        };
        let chunks = match &what {
            What::Segment { .. } => track.chunks(),
            _ => None,
        };
        Fetch {
            number,
            lane: track.index + 1,
            attempt: track.attempt(&what),
            what,
            resource,
            bytes_max,
            keep_body,
            room,
            chunks,
            told: None,
            priority: None,
        }
    }
}
