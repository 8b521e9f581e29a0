//! What passes between a session and those that fetch for it, as plain values: requests, how far they have come, what
//! came of them; and what a viewer sees.

use std::sync::Arc;

use suiro_abr::State;
use suiro_media::mp4::Init;
use suiro_units::{BitRate, Duration, Time};

use crate::cmcd::Told;
use crate::cmsd::Cmsd;
use crate::presentation::{Resource, Segment, TrackKind};
use crate::priority::Priority;
use crate::url::Url;

/// Number of lanes: requests that may run at the same time. One for the manifest, one for the media of each track, one for each
/// track's playlist where the server holds the request for it, and another one for the media of each track.
pub const LANES: usize = 7;
/// The lane of the first track's playlist.
pub(crate) const RELOADS: usize = 3;
/// The other lane of the first track's media.
pub(crate) const AHEAD: usize = 5;

/// The track whose media a lane is for.
pub(crate) const fn track_of(lane: usize) -> Option<usize> {
    match lane {
        1..RELOADS => Some(lane - 1),
        AHEAD.. => Some(lane - AHEAD),
        _ => None,
    }
}

/// One request.
#[derive(Debug, Clone)]
pub struct Fetch {
    /// Which request of the session, from 1.
    pub number: u64,
    /// The lane that it belongs to, below [`LANES`].
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
    /// What it may be read by; `None`: at once.
    pub(crate) room: Option<Room>,
    /// The initialisation segment by which the body is read chunk by chunk; `None`: as a whole.
    pub(crate) chunks: Option<Arc<Init>>,
    /// What it says about the player; `None`: nothing.
    pub(crate) told: Option<Told>,
    /// How urgent it is among those that share its connection; `None`: it has a connection of its own.
    pub(crate) priority: Option<Priority>,
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// When it was made; `None` before.
    pub requested: Option<Time>,
    /// When the body began to come.
    pub first_byte: Option<Time>,
    /// Bytes of the body that are there.
    pub bytes: u64,
    /// The body's length, once the response has given it.
    pub length: Option<u64>,
    /// The response's status.
    pub status: Option<u16>,
    /// Time in which more could have been read, had the buffer had room.
    pub held: Duration,
    /// Time in which connections were opened.
    pub handshake: Duration,
    /// What the server says with its response.
    pub(crate) server: Cmsd,
    /// How long it asks to wait before another try.
    pub(crate) retry_after: Option<Duration>,
    /// Whether the server took the request before its handshake; `None` if it was not sent then.
    pub early: Option<bool>,
}

/// A request that is under way.
#[derive(Debug, Clone)]
pub(crate) struct Underway {
    pub fetch: Fetch,
    /// As the session last received it.
    pub progress: Progress,
}

impl Underway {
    pub fn new(fetch: Fetch) -> Self {
        Self { fetch, progress: Progress::default() }
    }
}

/// What came of a request.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub requested: Time,
    pub first_byte: Option<Time>,
    pub finished: Time,
    /// Time in which more could have been read, had the buffer had room.
    pub held: Duration,
    /// Time in which connections were opened.
    pub handshake: Duration,
    /// What the server said with its response.
    pub server: Cmsd,
    /// How long it asked to wait before another try.
    pub retry_after: Option<Duration>,
    pub status: Option<u16>,
    /// Whether the server took the request before its handshake; `None` if it was not sent then.
    pub early: Option<bool>,
    pub bytes: u64,
    /// Where the body came from, redirects followed.
    pub url: Url,
    /// The body, if the session wants it, or why there is none.
    pub body: Result<bytes::Bytes, String>,
}

/// The media that a body holds, and how much of it there is room for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Where its media begins.
    pub start: Duration,
    /// How much it is.
    pub duration: Duration,
}

/// The playhead, and how far ahead of it media may be held.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Head {
    /// When it was there.
    pub at: Time,
    pub position: Duration,
    pub speed: f64,
    /// The most media ahead of it.
    pub capacity: Duration,
}

impl Room {
    /// How long to wait at `now` until what has been read, `read` bytes of `total`, fits in the
    /// buffer; `None` if it does. A stalled playhead is looked at again after a while.
    pub fn wait(&self, head: &Head, now: Time, read: u64, total: u64) -> Option<Duration> {
        let share = (read as f64 / total.max(1) as f64).min(1.0);
        let end = self.start + self.duration.mul_f64(share);
        let position = head.position + now.saturating_since(head.at).mul_f64(head.speed);
        let excess = end.saturating_sub(position + head.capacity);
        if excess.is_zero() {
            return None;
        }
        let wait = if head.speed > 0.0 { excess.mul_f64(1.0 / head.speed) } else { STANDING };
        Some(wait.clamp(Duration::from_millis(1), STANDING))
    }
}

/// How often a stalled playhead is looked at.
const STANDING: Duration = Duration::from_millis(100);

/// What a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// An MPD or a multivariant playlist.
    Manifest,
    /// The clock of a live stream's author.
    Clock,
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

impl What {
    /// True of text that servers may send in gzip.
    pub(crate) const fn is_manifest(&self) -> bool {
        matches!(self, Self::Manifest | Self::Playlist { .. })
    }
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
    /// Bit rate of the video under the playhead; `None` before the first frame.
    pub rung: Option<BitRate>,
    /// Live: age of the frame under the playhead, in nanoseconds.
    pub latency_ns: Option<i64>,
    /// Live: the latency that it aims at.
    pub target_latency: Option<Duration>,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The second of two seconds that 1000 bytes hold, with room for one second and a half.
    fn wait(position_ms: u64, speed: f64, after_ms: u64, read: u64) -> Option<u64> {
        let head = Head {
            at: Time::from_millis(100),
            position: Duration::from_millis(position_ms),
            speed,
            capacity: Duration::from_millis(1500),
        };
        let (start, duration) = (Duration::from_secs(1), Duration::from_secs(1));
        let room = Room { start, duration };
        let wait = room.wait(&head, Time::from_millis(100 + after_ms), read, 1000);
        wait.map(|wait| wait.as_nanos() / 1_000_000)
    }

    #[test]
    fn what_was_read_waits_for_the_playhead() {
        assert_eq!(wait(0, 1.0, 0, 500), None);
        assert_eq!(wait(0, 1.0, 0, 540), Some(40));
        assert_eq!(wait(0, 1.0, 30, 540), Some(10));
        assert_eq!(wait(0, 2.0, 0, 540), Some(20));
        assert_eq!(wait(500, 1.0, 0, 1000), None);
    }

    #[test]
    fn a_playhead_that_stands_still_is_looked_at_again() {
        assert_eq!(wait(0, 0.0, 60_000, 1000), Some(100));
        assert_eq!(wait(0, 1.0, 0, 1000), Some(100), "and one that may stop, too");
        // A length that was not kept to.
        assert_eq!(wait(500, 1.0, 0, 5000), None);
    }
}
