//! The receiver's side of sound: from timestamps of RTP to numbers of frames. The listener and its table are made when the
//! first packet comes.

use std::path::PathBuf;

use suiro_media::sound::{FRAME, SAMPLES};
use suiro_realtime::{Listener, LogError, Numbering, Seen};
use suiro_units::Time;
use suiro_viewer::Policy;

use crate::peer::Sound;

/// A capture time that is so near to a multiple of 20 ms is one: the clock of RTP extensions rounds.
const GRID: u64 = 2_000;
/// Numbers of other senders begin here, so that a packet which is reordered before the first has one.
const FIRST: u64 = 1 << 16;

/// Where numbers count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Base {
    /// An extended timestamp, and the number of the frame that begins there.
    timestamp: u64,
    number: u64,
    /// Whether numbers are those of the wall clock.
    wall: bool,
}

/// The sound of one stream.
pub struct Hearing {
    dir: PathBuf,
    name: String,
    epoch_unix_ns: u64,
    policy: (Policy, bool),
    base: Option<Base>,
    /// The newest timestamp, extended.
    newest: u64,
    /// The sender's wall clock at a timestamp, as it was told last.
    clock: Option<(u32, u64)>,
    listener: Option<Listener>,
}

impl Hearing {
    /// Nothing has come yet. The policy, and whether the sound waits for the video.
    pub fn new(dir: PathBuf, name: String, epoch_unix_ns: u64, policy: (Policy, bool)) -> Self {
        let (base, newest, clock, listener) = (None, 1 << 32, None, None);
        Self { dir, name, epoch_unix_ns, policy, base, newest, clock, listener }
    }

    /// A packet has come.
    ///
    /// # Errors
    /// The table cannot be made.
    pub fn on_sound(&mut self, now: Time, sound: Sound) -> Result<(), LogError> {
        self.clock = sound.clock.or(self.clock);
        let (number, numbering) = self.number(sound.timestamp);
        let listener = match &mut self.listener {
            Some(listener) => listener,
            None => self.listener.insert(Listener::create(
                &self.dir,
                &self.name,
                self.epoch_unix_ns,
                self.policy,
            )?),
        };
        listener.on_packet(now, number, numbering, sound.payload);
        Ok(())
    }

    /// The number of the frame that begins at a timestamp.
    fn number(&mut self, timestamp: u32) -> (u64, Numbering) {
        // RFC 3550 §5.1: timestamps wrap around, and what is less than half a turn behind is earlier.
        let ahead = timestamp.wrapping_sub(self.newest as u32).cast_signed();
        let extended = self.newest.saturating_add_signed(ahead.into());
        let captured = self.captured_unix_ns(timestamp);
        let base = *self.base.get_or_insert_with(|| {
            let grid = FRAME.as_nanos();
            let nearest = captured.map(|unix| unix.saturating_add(grid / 2) / grid);
            let wall = nearest.filter(|nearest| {
                captured.is_some_and(|unix| unix.abs_diff(nearest * grid) <= GRID)
            });
            Base { timestamp: extended, number: wall.unwrap_or(FIRST), wall: wall.is_some() }
        });
        self.newest = self.newest.max(extended);
        // Half of a frame more: whole frames, rounded.
        let samples = i128::from(extended) - i128::from(base.timestamp) + SAMPLES as i128 / 2;
        let frames = samples.div_euclid(SAMPLES as i128);
        let number = u64::try_from(i128::from(base.number) + frames).unwrap_or(0);
        let numbering = match base.wall {
            true => Numbering::Wall,
            false => Numbering::Counted(captured.map(|unix| (number, unix))),
        };
        (number, numbering)
    }

    /// When a timestamp was captured, by the sender's clock.
    fn captured_unix_ns(&self, timestamp: u32) -> Option<u64> {
        let (told, unix_ns) = self.clock?;
        let samples = i64::from(timestamp.wrapping_sub(told).cast_signed());
        // 48 kHz: a sample takes 62,500 / 3 ns.
        unix_ns.checked_add_signed(samples * 62_500 / 3)
    }

    /// When to call [`Self::advance`] next; `None` before the first packet.
    pub fn next_event(&self) -> Option<Time> {
        self.listener.as_ref()?.next_event()
    }

    /// What became of a frame of video.
    pub fn on_seen(&mut self, seen: &Seen) {
        if let Some(listener) = &mut self.listener {
            listener.on_seen(seen);
        }
    }

    /// Plays what is due by `now`.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn advance(&mut self, now: Time) -> Result<(), LogError> {
        self.listener.as_mut().map_or(Ok(()), |listener| listener.advance(now))
    }

    /// Ends it, and completes the table.
    ///
    /// # Errors
    /// A row could not be written.
    pub fn close(self, now: Time) -> Result<(), LogError> {
        self.listener.map_or(Ok(()), |listener| listener.close(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hearing() -> Hearing {
        Hearing::new(PathBuf::new(), "viewer".to_owned(), 0, (Policy::default(), true))
    }

    #[test]
    fn a_microphone_of_suiro_numbers_frames_by_the_wall_clock() {
        let mut hearing = hearing();
        // 2026; the clock of NTP has rounded.
        let number: u64 = 1_795_000_000 * 50 + 7;
        let timestamp = number.wrapping_mul(960) as u32;
        hearing.clock = Some((timestamp, number * 20_000_000 - 1));
        for (ahead, expected) in [(0, number), (3, number + 3), (1, number + 1)] {
            let told = hearing.number(timestamp.wrapping_add(960 * ahead));
            assert_eq!(told, (expected, Numbering::Wall));
        }
    }

    #[test]
    fn others_are_counted_and_timestamps_wrap_around() {
        let mut hearing = hearing();
        let first = u32::MAX - 960;
        assert_eq!(hearing.number(first), (FIRST, Numbering::Counted(None)));
        hearing.clock = Some((first, 1_000_000_777));
        let told = hearing.number(first.wrapping_add(1920));
        assert_eq!(told, (FIRST + 2, Numbering::Counted(Some((FIRST + 2, 1_040_000_777)))));
        assert_eq!(hearing.number(first.wrapping_sub(960)).0, FIRST - 1, "it was reordered");
    }

    proptest::proptest! {
        #[test]
        fn any_timestamps_have_numbers(all in proptest::collection::vec(proptest::prelude::any::<(u32, Option<(u32, u64)>)>(), 0..50)) {
            let mut hearing = hearing();
            for (timestamp, clock) in all {
                hearing.clock = clock.or(hearing.clock);
                hearing.number(timestamp);
            }
        }
    }
}
