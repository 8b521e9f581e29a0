//! The sound of a broadcast: from times of objects to numbers of frames. The listener and its table are made when the first
//! packet comes.

use std::path::PathBuf;

use suiro_media::sound::FRAME;
use suiro_realtime::{Listener, LogError, Numbering, Seen};
use suiro_units::Time;
use suiro_viewer::Policy;

use crate::client::Common;

/// Microseconds of a frame.
const FRAME_US: u64 = FRAME.as_nanos() / 1000;
/// Times of others may count from anywhere; one of this century counts from 1970.
const CENTURY_US: u64 = 946_684_800_000_000;

/// The sound of one broadcast.
pub(crate) struct Hearing {
    dir: PathBuf,
    name: String,
    epoch_unix_ns: u64,
    /// And whether the sound waits for the video.
    policy: (Policy, bool),
    /// The time of one frame, and how frames are numbered.
    base: Option<(u64, Numbering)>,
    listener: Option<Listener>,
}

impl Hearing {
    pub fn new(common: &Common, epoch_unix_ns: u64, policy: (Policy, bool)) -> Self {
        let (dir, name) = (common.dir.clone(), common.name.clone());
        Self { dir, name, epoch_unix_ns, policy, base: None, listener: None }
    }

    /// A packet of Opus has come whose object has that time. One that cannot be played changes nothing.
    pub fn on_packet(&mut self, at: Time, time_us: u64, packet: Vec<u8>) -> Result<(), LogError> {
        let (number, numbering) = number(&mut self.base, time_us);
        let listener = match &mut self.listener {
            Some(listener) => listener,
            None => {
                let made =
                    Listener::create(&self.dir, &self.name, self.epoch_unix_ns, self.policy)?;
                self.listener.insert(made)
            }
        };
        listener.on_packet(at, number, numbering, packet);
        Ok(())
    }

    pub fn next_event(&self) -> Option<Time> {
        self.listener.as_ref()?.next_event()
    }

    pub fn on_seen(&mut self, seen: &Seen) {
        if let Some(listener) = &mut self.listener {
            listener.on_seen(seen);
        }
    }

    pub fn advance(&mut self, now: Time) -> Result<(), LogError> {
        self.listener.as_mut().map_or(Ok(()), |listener| listener.advance(now))
    }

    pub fn close(self, now: Time) -> Result<(), LogError> {
        self.listener.map_or(Ok(()), |listener| listener.close(now))
    }
}

/// The number of the frame with that time. The microphone of suiro begins frames at multiples of 20 ms since 1970.
fn number(base: &mut Option<(u64, Numbering)>, time_us: u64) -> (u64, Numbering) {
    let wall = time_us >= CENTURY_US && time_us.is_multiple_of(FRAME_US);
    let numbering = if wall { Numbering::Wall } else { Numbering::Counted(None) };
    let (first, numbering) = *base.get_or_insert((time_us, numbering));
    match numbering {
        Numbering::Wall => (time_us.saturating_add(FRAME_US / 2) / FRAME_US, numbering),
        Numbering::Counted(_) => {
            let since = i128::from(time_us) - i128::from(first) + i128::from(FRAME_US / 2);
            let frames = since.div_euclid(i128::from(FRAME_US));
            // From a number that leaves room for what was reordered before the first.
            (u64::try_from(frames + (1 << 16)).unwrap_or(0), numbering)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_microphone_are_numbers_and_those_of_others_are_counted() {
        let (mut ours, mut others) = (None, None);
        let time = 1_795_000_000_000_000;
        assert_eq!(number(&mut ours, time), (time / 20_000, Numbering::Wall));
        assert_eq!(number(&mut ours, time + 60_000).0, time / 20_000 + 3);
        let first = number(&mut others, 40_000);
        assert_eq!(first, (1 << 16, Numbering::Counted(None)), "1970 is not when it was captured");
        // WebCodecs rounds times to microseconds, and others to those of their own clocks.
        assert_eq!(number(&mut others, 60_001).0, (1 << 16) + 1);
        assert_eq!(number(&mut others, 19_999).0, (1 << 16) - 1);
    }
}
