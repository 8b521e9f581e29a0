//! What a viewer makes of the packets of its session: frames and sound, and the tables `frames` and `audio`. Without
//! sockets. Publishers may follow one another; numbers and timestamps of each begin anywhere.

use suiro_realtime::{Listening, Log};
use suiro_units::Time;
use suiro_viewer::Policy;

use crate::EndpointError;
use crate::numbers::Numbers;
use crate::peer::{Sound, Video};
use crate::receiving::Receiving;

/// The viewer of one session after the other.
pub(crate) struct Watching {
    policy: Policy,
    /// The session that packets come from; `None` before the first.
    session: Option<u64>,
    receiving: Receiving,
    /// Those of the sound.
    numbers: Numbers,
    listening: Listening,
    log: Log,
    /// Frames of earlier sessions that [`Receiving::refused`] counted.
    refused: u64,
}

impl Watching {
    /// Nothing has come yet.
    pub fn new(policy: Policy, listening: Listening, log: Log) -> Self {
        let (receiving, numbers) = (Receiving::new(policy), Numbers::default());
        Self { policy, session: None, receiving, numbers, listening, log, refused: 0 }
    }

    /// The session that packets come from; `None` before the first.
    pub fn session(&self) -> Option<u64> {
        self.session
    }

    /// Packets come from this session now. If it is another one than before, what that one sent has its fate.
    fn turn_to(&mut self, now: Time, session: u64) -> Result<(), EndpointError> {
        if self.session.replace(session).is_none_or(|before| before == session) {
            return Ok(());
        }
        self.receiving.finish(now);
        self.write()?;
        self.refused += self.receiving.refused();
        self.receiving = Receiving::new(self.policy);
        self.numbers = Numbers::default();
        Ok(self.listening.restart(now)?)
    }

    /// A packet of video has come in a session.
    pub fn on_video(&mut self, now: Time, session: u64, video: Video) -> Result<(), EndpointError> {
        self.turn_to(now, session)?;
        self.receiving.on_video(now, video);
        Ok(())
    }

    /// A packet of sound has come in a session.
    pub fn on_sound(&mut self, now: Time, session: u64, sound: Sound) -> Result<(), EndpointError> {
        self.turn_to(now, session)?;
        let number = self.numbers.of(&sound);
        Ok(self.listening.on_packet(now, number, sound.payload)?)
    }

    /// The session has ended: no sound is missing from now on.
    pub fn on_end(&mut self) {
        self.listening.end();
    }

    /// The process did not run between these times, as [`Receiving::on_absence`] takes it.
    pub fn on_absence(&mut self, from: Time, to: Time) {
        self.receiving.on_absence(from, to);
    }

    /// When to call [`Self::advance`] next.
    pub fn next_event(&self) -> Option<Time> {
        let events = [self.receiving.next_event(), self.listening.next_event()];
        events.into_iter().flatten().min()
    }

    /// Plays and shows what is due by `now`: whether a key frame is to be asked for.
    pub fn advance(&mut self, now: Time) -> Result<bool, EndpointError> {
        self.listening.advance(now)?;
        self.receiving.advance(now);
        let asks = self.receiving.take_key_frame_request(now);
        self.write()?;
        Ok(asks)
    }

    fn write(&mut self) -> Result<(), EndpointError> {
        while let Some(seen) = self.receiving.take_seen() {
            self.listening.on_seen(&seen);
            self.log.push(&seen)?;
        }
        Ok(())
    }

    /// Completes the tables. Returns how many frames changed nothing: they came twice, or after they had been given up.
    pub fn close(mut self, now: Time) -> Result<u64, EndpointError> {
        self.receiving.finish(now);
        self.write()?;
        self.log.close()?;
        self.listening.close(now)?;
        Ok(self.refused + self.receiving.refused())
    }
}

#[cfg(test)]
mod tests {
    use suiro_payload::Piece;
    use suiro_record::Reader;
    use suiro_record::tables::{AudioRow, FrameRow};

    use super::*;

    /// The second publisher's numbers and timestamps are far behind those of the first.
    #[test]
    fn a_publisher_after_another_is_shown_and_heard() {
        let dir = tempfile::tempdir().unwrap();
        let policy = Policy::default();
        let name = "viewer".to_owned();
        let listening = Listening::new(dir.path().to_owned(), name.clone(), 0, (policy, true));
        let log = Log::create(dir.path(), &name, 0, None).unwrap();
        let mut watching = Watching::new(policy, listening, log);
        let publishers = [(3, 1000, (3_000_000_000, 20_000)), (5, 4000, (90_000, 100))];
        for (session, begins, (first, counts)) in publishers {
            for frame in 0..30_u32 {
                let now = Time::from_millis(begins + 40 * u64::from(frame));
                // A slice that begins a key frame.
                let payload = vec![0x65, 0x88, 1, 2];
                let timestamp = first + 3600 * frame;
                let piece = Piece { timestamp, marker: true, mark: None, payload };
                let sequence = u64::from(counts + frame);
                let video = Video { sequence, piece, clock: None };
                watching.on_video(now, session, video).unwrap();
                for half in 0..2 {
                    let timestamp = first + 960 * (2 * frame + half);
                    let sound = Sound { timestamp, clock: None, payload: vec![0xff; 40] };
                    watching.on_sound(now, session, sound).unwrap();
                }
                watching.advance(now).unwrap();
            }
        }
        assert_eq!(watching.close(Time::from_secs(6)).unwrap(), 0);
        let frames: Vec<FrameRow> = Reader::read_all(dir.path()).unwrap();
        let shown = |from: i64| {
            let within = from..from + 3_000_000_000;
            frames
                .iter()
                .filter(|row| row.displayed_ns.is_some_and(|at| within.contains(&at)))
                .count()
        };
        assert!(shown(1_000_000_000) >= 28, "{} of the first", shown(1_000_000_000));
        assert!(shown(4_000_000_000) >= 28, "{} of the second", shown(4_000_000_000));
        let sounds: Vec<AudioRow> = Reader::read_all(dir.path()).unwrap();
        let played = sounds.iter().filter(|row| row.played_ns >= Some(Time::from_secs(4))).count();
        assert!(played >= 40, "{played} of {} of the second", sounds.len());
    }
}
