//! The receiver's side: packets of video to a viewer, and requests for key frames. Pure.

use suiro_payload::Codec;
use suiro_realtime::{Incoming, Seen};
use suiro_units::{Duration, Time};
use suiro_viewer::Policy;

use crate::peer::Video;

/// How long what is only reordered may take.
const REORDER: Duration = Duration::from_millis(20);
/// A key frame is not asked for more often than this.
const KEY_FRAMES: Duration = Duration::from_millis(500);

/// The viewer of one stream.
#[derive(Debug)]
pub struct Receiving {
    incoming: Incoming,
    policy: Policy,
    /// The sender's wall clock at a timestamp, in nanoseconds since 1970, as it was last received.
    clock: Option<(u32, u64)>,
    asked: Option<Time>,
}

impl Receiving {
    /// Nothing has come yet.
    pub fn new(policy: Policy) -> Self {
        Self { incoming: Incoming::new(Codec::H264, policy), policy, clock: None, asked: None }
    }

    /// A packet has come.
    pub fn on_video(&mut self, now: Time, video: Video) {
        self.clock = video.clock.or(self.clock);
        // What is missing is asked for again: it is of use until the frame is due, and for as long as the viewer waits
        // for it then.
        let buffer = self.incoming.buffer().unwrap_or(Duration::ZERO);
        let grace = (buffer + self.policy.wait).max(REORDER);
        self.incoming.on_packet(now, video.sequence, video.piece, grace);
        self.advance(now);
    }

    /// The process did not run between these times, as [`suiro_realtime::Viewer::on_absence`] takes it.
    pub fn on_absence(&mut self, from: Time, to: Time) {
        self.incoming.on_absence(from, to);
    }

    /// Decides what is due by `now`.
    pub fn advance(&mut self, now: Time) {
        let clock = self.clock;
        self.incoming.advance(now, |timestamp| {
            let (reported, unix_ns) = clock?;
            let ticks = i64::from((timestamp as u32).wrapping_sub(reported).cast_signed());
            unix_ns.checked_add_signed(ticks * 100_000 / 9)
        });
    }

    /// When to call [`Self::advance`] next.
    pub fn next_event(&self) -> Option<Time> {
        let events = [self.incoming.next_event(), self.key_frame_at()];
        events.into_iter().flatten().min()
    }

    fn key_frame_at(&self) -> Option<Time> {
        let since = self.incoming.broken_since()?;
        Some(self.asked.map_or(since, |asked| (asked + KEY_FRAMES).max(since)))
    }

    /// Whether a key frame is to be asked for now.
    pub fn take_key_frame_request(&mut self, now: Time) -> bool {
        let due = self.key_frame_at().is_some_and(|at| at <= now);
        if due {
            self.asked = Some(now);
        }
        due
    }

    /// What became of the next frame.
    pub fn take_seen(&mut self) -> Option<Seen> {
        self.incoming.take_seen()
    }

    /// Frames that changed nothing: they came twice, or after they had been given up.
    pub fn refused(&self) -> u64 {
        self.incoming.refused()
    }

    /// Ends the viewing: everything still held has its fate.
    pub fn finish(&mut self, now: Time) {
        self.advance(now);
        self.incoming.finish(now);
    }
}
