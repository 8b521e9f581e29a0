//! What a session asks for, and what a viewer sees of it.

use std::sync::{Arc, Mutex};

use suiro_abr::State;
use suiro_units::{BitRate, Duration, Time};

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
    /// What it may be read by; `None`: at once.
    pub(crate) room: Option<Room>,
    pub(crate) progress: Arc<Progress>,
}

/// The media that a body holds, and how much of it there is room for.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    /// Where its media begins.
    pub start: Duration,
    /// How much it is.
    pub duration: Duration,
    /// Whose buffer it goes to.
    pub head: Arc<Mutex<Head>>,
}

/// The playhead, told by the session to requests under way.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Head {
    pub at: Time,
    pub position: Duration,
    pub speed: f64,
    /// The most media ahead of it.
    pub capacity: Duration,
}

impl Room {
    /// How long to wait at `now` until what has been read, `read` bytes of `total`, fits in the
    /// buffer; `None` if it does. A playhead that stands still is looked at again after a while.
    pub fn wait(&self, now: Time, read: u64, total: u64) -> Option<Duration> {
        let head = *self.head.lock().expect("nobody panics while holding the playhead");
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

/// How often a playhead that stands still is looked at.
const STANDING: Duration = Duration::from_millis(100);

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
        let room = Room { start, duration, head: Arc::new(Mutex::new(head)) };
        let wait = room.wait(Time::from_millis(100 + after_ms), read, 1000);
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
