//! Sound without a transport: a microphone with its encoder, and a listener with its jitter buffer, decoder and record.

use std::collections::BTreeMap;
use std::path::Path;

use suiro_media::sound::{self, CODEC_DELAY, Decoder, Ear, Encoder, FRAME, SoundError, tones};
use suiro_record::tables::{AudioRow, AudioSentRow};
use suiro_record::words::AudioFate;
use suiro_record::{Text, Writer};
use suiro_units::{BitRate, Time};
use suiro_viewer::{Heard, Hearing, Piece, Policy, Sounded};

use crate::{LipSync, LogError, Seen};

/// Packets that wait to be played at most, as in the jitter buffer.
const PACKETS_MAX: usize = 1000;

/// A frame of sound on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoundFrame {
    /// Its number: it was captured so many times 20 ms after 1970.
    pub number: u64,
    /// When its first sample was captured, by the sender's clock.
    pub captured: Time,
    /// The packet of Opus.
    pub data: Vec<u8>,
}

/// A microphone and its encoder. Frames begin at multiples of 20 ms of the wall clock, so a frame's time is its number.
pub struct Microphone {
    endpoint: Text,
    encoder: Encoder,
    rate: BitRate,
    epoch_unix_ns: u64,
    /// The frame that is captured next; `None` before it is started.
    next: Option<u64>,
    rows: Writer<AudioSentRow>,
}

impl Microphone {
    /// A microphone of that bit rate, which does not run yet, and its table in the trial's folder. The clock's zero is
    /// `epoch_unix_ns` after 1970.
    ///
    /// # Errors
    /// The table, or the encoder, cannot be made.
    pub fn create(
        dir: &Path,
        name: &str,
        rate: BitRate,
        epoch_unix_ns: u64,
    ) -> Result<Self, LogError> {
        let encoder = Encoder::new(rate)?;
        let rows = Writer::create_of(dir, name)?;
        Ok(Self { endpoint: name.into(), encoder, rate, epoch_unix_ns, next: None, rows })
    }

    /// The bit rate of its encoder.
    pub fn rate(&self) -> BitRate {
        self.rate
    }

    /// Begins with the first frame after `now`, if it did not before.
    pub fn start(&mut self, now: Time) {
        let unix = self.epoch_unix_ns.saturating_add(now.as_nanos());
        self.next.get_or_insert(unix.div_ceil(FRAME.as_nanos()));
    }

    /// When the next frame is complete; `None` before the start.
    pub fn next_event(&self) -> Option<Time> {
        self.next.map(|number| self.captured(number) + FRAME)
    }

    fn captured(&self, number: u64) -> Time {
        let unix = number.saturating_mul(FRAME.as_nanos());
        Time::from_nanos(unix.saturating_sub(self.epoch_unix_ns))
    }

    /// The next frame, if it is complete by `now`. Frames that a busy process did not take in time come together.
    ///
    /// # Errors
    /// The encoder refuses, or the row cannot be written.
    pub fn take(&mut self, now: Time) -> Result<Option<SoundFrame>, LogError> {
        let Some(number) = self.next.filter(|_| self.next_event() <= Some(now)) else {
            return Ok(None);
        };
        self.next = Some(number + 1);
        let (captured, data) = (self.captured(number), self.encoder.encode(&tones::frame(number))?);
        let row = AudioSentRow {
            t_ns: now,
            endpoint: self.endpoint.clone(),
            frame: number_in_trial(number, self.epoch_unix_ns),
            captured_ns: captured.as_nanos() as i64,
            encoded_bytes: data.len() as u64,
            target_bps: self.rate,
        };
        self.rows.push(row)?;
        Ok(Some(SoundFrame { number, captured, data }))
    }

    /// Completes the table.
    ///
    /// # Errors
    /// A row could not be written.
    pub fn close(self) -> Result<(), LogError> {
        Ok(self.rows.close().map(drop)?)
    }
}

/// The number of a frame that counts from the trial's epoch.
fn number_in_trial(number: u64, epoch_unix_ns: u64) -> i64 {
    let first = epoch_unix_ns / FRAME.as_nanos();
    (i128::from(number) - i128::from(first)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// When frames were captured, by the wall clock of their sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbering {
    /// A frame's number says it, as those of [`Microphone`] do.
    Wall,
    /// The frame with this number was captured so many nanoseconds after 1970; `None` as long as that is not known.
    Counted(Option<(u64, u64)>),
}

impl Numbering {
    /// When a frame was captured, in nanoseconds since 1970.
    fn captured_unix_ns(self, number: u64) -> Option<u64> {
        match self {
            Self::Wall => number.checked_mul(FRAME.as_nanos()),
            Self::Counted(known) => {
                let (one, unix_ns) = known?;
                let apart = i64::try_from(i128::from(number) - i128::from(one)).ok()?;
                unix_ns.checked_add_signed(apart.checked_mul(FRAME.as_nanos() as i64)?)
            }
        }
    }
}

/// What is known of a frame until its row is written.
struct Known {
    data: Vec<u8>,
    heard: Option<u64>,
}

/// A listener: the jitter buffer, the decoder, and the table `audio` of one endpoint.
pub struct Listener {
    endpoint: Text,
    epoch_unix_ns: u64,
    numbering: Numbering,
    policy: Policy,
    hearing: Hearing,
    decoder: Decoder,
    ear: Ear,
    /// The frame that was played last, whose sound is complete with the next piece, and what is known of it.
    playing: Option<u64>,
    last: Option<Sounded>,
    known: BTreeMap<u64, Known>,
    /// `None`: the sound does not wait for the video.
    sync: Option<LipSync>,
    rows: Writer<AudioRow>,
}

impl Listener {
    /// A listener that has heard nothing. The table is made in the trial's folder. With `waits`, the sound waits for the
    /// video ([`LipSync`]).
    ///
    /// # Errors
    /// The table, or the decoder, cannot be made.
    pub fn create(
        dir: &Path,
        name: &str,
        epoch_unix_ns: u64,
        (policy, waits): (Policy, bool),
    ) -> Result<Self, LogError> {
        Ok(Self {
            endpoint: name.into(),
            epoch_unix_ns,
            numbering: Numbering::Counted(None),
            policy,
            hearing: Hearing::new(policy),
            decoder: Decoder::new()?,
            ear: Ear::default(),
            playing: None,
            last: None,
            known: BTreeMap::new(),
            sync: waits.then(LipSync::default),
            rows: Writer::create_of(dir, name)?,
        })
    }

    /// A packet of Opus has come. What comes twice, from far away, or is no packet of Opus changes nothing: false.
    pub fn on_packet(
        &mut self,
        now: Time,
        number: u64,
        numbering: Numbering,
        data: Vec<u8>,
    ) -> bool {
        if data.is_empty() || data.len() > sound::PACKET_MAX {
            return false;
        }
        // Only differences count, so that a number is a time. One that no time can be added to is none.
        let captured = number.checked_mul(FRAME.as_nanos()).filter(|ns| *ns <= i64::MAX as u64);
        let Some(captured) = captured.map(Time::from_nanos) else { return false };
        if self.hearing.on_frame(now, number, captured).is_err() {
            return false;
        }
        self.numbering = numbering;
        self.known.insert(number, Known { data, heard: None });
        if self.known.len() > PACKETS_MAX {
            self.known.pop_first();
        }
        true
    }

    /// When to call [`Self::advance`] next; `None` before the first packet.
    pub fn next_event(&self) -> Option<Time> {
        self.hearing.next_event()
    }

    /// What became of a frame of video.
    pub fn on_seen(&mut self, seen: &Seen) {
        let Some(sync) = &mut self.sync else { return };
        let shown = seen.outcome.displayed().zip(seen.captured_unix_ns);
        if let Some(age) = shown.and_then(|(at, unix)| age_ns(at, unix, self.epoch_unix_ns)) {
            sync.on_video(age);
        }
    }

    /// Plays what is due by `now`.
    ///
    /// # Errors
    /// A row cannot be written, or the decoder conceals nothing.
    pub fn advance(&mut self, now: Time) -> Result<(), LogError> {
        if let Some(extra) = self.sync.as_mut().and_then(|sync| sync.look(now)) {
            self.hearing.hold(extra);
        }
        while let Some((at, piece)) = self.hearing.play(now) {
            self.play(at, piece)?;
        }
        while let Some(sounded) = self.last.take().or_else(|| self.hearing.take_sounded(now)) {
            if self.playing == Some(sounded.number) {
                self.last = Some(sounded);
                break;
            }
            self.push(sounded)?;
        }
        Ok(())
    }

    fn play(&mut self, at: Time, piece: Piece) -> Result<(), SoundError> {
        let number = match piece {
            Piece::Frame(number) => Some(number),
            Piece::Concealment => None,
        };
        // Now, and not when the row is written: rows behind a missing frame are written up to 2 s later.
        let age = number.and_then(|number| self.age_ns(number, at + CODEC_DELAY));
        if let (Some(sync), Some(age)) = (&mut self.sync, age) {
            sync.on_sound(age);
        }
        let data = number.and_then(|number| self.known.get(&number));
        let said = data.and_then(|known| self.decoder.decode(&known.data).ok());
        let heard = match said {
            Some(said) => self.ear.hear(said),
            // A packet that cannot be decoded is as good as lost.
            None => self.ear.hear(self.decoder.conceal()?),
        };
        if let Some(known) = self.playing.and_then(|before| self.known.get_mut(&before)) {
            known.heard = heard;
        }
        self.playing = number;
        Ok(())
    }

    /// How old a frame is that is played at `at`, in nanoseconds, if that is known.
    fn age_ns(&self, number: u64, at: Time) -> Option<i64> {
        age_ns(at, self.numbering.captured_unix_ns(number)?, self.epoch_unix_ns)
    }

    fn push(&mut self, sounded: Sounded) -> Result<(), LogError> {
        let captured = self.numbering.captured_unix_ns(sounded.number);
        let in_trial =
            |unix: u64| i64::try_from(i128::from(unix) - i128::from(self.epoch_unix_ns)).ok();
        let frame = match self.numbering {
            Numbering::Wall => number_in_trial(sounded.number, self.epoch_unix_ns),
            Numbering::Counted(_) => i64::try_from(sounded.number).unwrap_or(i64::MAX),
        };
        let known = self.known.remove(&sounded.number);
        let (fate, at) = (fate(sounded.heard), sounded.at + CODEC_DELAY);
        self.rows.push(AudioRow {
            t_ns: at,
            endpoint: self.endpoint.clone(),
            frame,
            captured_ns: captured.and_then(in_trial),
            encoded_bytes: known.as_ref().map(|known| known.data.len() as u64),
            received_ns: sounded.received,
            fate,
            played_ns: (fate == AudioFate::Played).then_some(at),
            concealed: sounded.concealed,
            buffer_target_ns: sounded.target,
            heard: known.and_then(|known| known.heard),
        })?;
        Ok(())
    }

    /// The sender has ended: what waits is played, and nothing is missing afterwards.
    pub fn end(&mut self) {
        self.hearing.end();
    }

    /// Another sender begins, whose numbers may be any. What the one before has sent has its fate.
    ///
    /// # Errors
    /// A row cannot be written, or the decoder cannot be made.
    pub fn restart(&mut self, now: Time) -> Result<(), LogError> {
        self.settle(now)?;
        self.numbering = Numbering::Counted(None);
        self.hearing = Hearing::new(self.policy);
        (self.decoder, self.ear) = (Decoder::new()?, Ear::default());
        self.playing = None;
        self.known.clear();
        if let Some(sync) = &mut self.sync {
            *sync = LipSync::default();
        }
        Ok(())
    }

    /// Ends it: what is missing is lost, and what waits to be played has no row.
    ///
    /// # Errors
    /// A row could not be written.
    pub fn close(mut self, now: Time) -> Result<(), LogError> {
        self.settle(now)?;
        Ok(self.rows.close().map(drop)?)
    }

    /// Writes the rows of all frames whose places were passed.
    fn settle(&mut self, now: Time) -> Result<(), LogError> {
        self.advance(now)?;
        let rest: Vec<Sounded> =
            self.last.take().into_iter().chain(self.hearing.finish()).collect();
        rest.into_iter().try_for_each(|sounded| self.push(sounded))
    }
}

/// How long before `at` that was, in nanoseconds; negative if the sender's clock is ahead.
fn age_ns(at: Time, unix_ns: u64, epoch_unix_ns: u64) -> Option<i64> {
    let at = i128::from(epoch_unix_ns) + i128::from(at.as_nanos());
    i64::try_from(at - i128::from(unix_ns)).ok()
}

fn fate(heard: Heard) -> AudioFate {
    match heard {
        Heard::Played => AudioFate::Played,
        Heard::Lost => AudioFate::Lost,
        Heard::Late => AudioFate::Late,
        Heard::Skipped => AudioFate::Skipped,
    }
}

#[cfg(test)]
mod tests {
    use suiro_record::Reader;
    use suiro_units::Duration;
    use suiro_viewer::{Fate, Outcome};

    use super::*;

    /// 2026, and not at a multiple of 20 ms.
    const EPOCH: u64 = 1_795_000_000_123_000_000;
    const PATH: Duration = Duration::from_millis(30);

    /// What a listener wrote down of 5 s of sound that took 30 ms, of which those frames were lost, counted from the first.
    fn heard(lost: impl Fn(u64) -> bool) -> Vec<AudioRow> {
        heard_with_video(lost, (250, None))
    }

    /// The same of so many frames of sound, while frames of video are shown at that age.
    fn heard_with_video(
        lost: impl Fn(u64) -> bool,
        (count, age): (u64, Option<Duration>),
    ) -> Vec<AudioRow> {
        let dir = tempfile::tempdir().unwrap();
        let mut microphone =
            Microphone::create(dir.path(), "camera", BitRate::from_kbps(64), EPOCH).unwrap();
        let policy = (Policy::default(), true);
        let mut listener = Listener::create(dir.path(), "viewer", EPOCH, policy).unwrap();
        microphone.start(Time::from_secs(1));
        let mut now = Time::from_secs(1);
        for number in 0..count {
            let at = microphone.next_event().unwrap();
            let frame = microphone.take(at).unwrap().unwrap();
            assert_eq!(frame.captured + FRAME, at);
            now = at + PATH;
            if let Some(age) = age {
                listener.on_seen(&shown(now, age));
            }
            listener.advance(now).unwrap();
            if !lost(number) {
                assert!(listener.on_packet(now, frame.number, Numbering::Wall, frame.data));
            }
        }
        microphone.close().unwrap();
        listener.close(now + FRAME).unwrap();
        let sent: Vec<AudioSentRow> = Reader::read_all(dir.path()).unwrap();
        assert!(sent.len() as u64 == count && sent.iter().all(|row| row.encoded_bytes == 160));
        let rows: Vec<AudioRow> = Reader::read_all(dir.path()).unwrap();
        let sent: Vec<_> = sent.iter().map(|row| (row.frame, Some(row.captured_ns))).collect();
        assert!(rows.iter().all(|row| sent.contains(&(row.frame, row.captured_ns))));
        rows
    }

    /// A frame of video of that age.
    fn shown(at: Time, age: Duration) -> Seen {
        let outcome = Outcome {
            frame: 0,
            captured: None,
            received: None,
            fate: Fate::Displayed,
            at,
            damaged: false,
        };
        Seen {
            outcome,
            captured_unix_ns: Some(EPOCH + at.saturating_sub(age).as_nanos()),
            sent_unix_ns: None,
            rate: None,
            data: None,
        }
    }

    #[test]
    fn sound_that_waits_for_the_video_does_not_wait_longer() {
        let video = Duration::from_millis(360);
        let rows = heard_with_video(|number| number % 20 == 10, (1000, Some(video)));
        let ages_ms = rows.iter().filter_map(|row| {
            Some((row.played_ns?.as_nanos_i64() - row.captured_ns?) as f64 / 1e6)
        });
        let ages_ms: Vec<f64> = ages_ms.collect();
        assert!(ages_ms.iter().all(|age| *age <= 400.0), "{ages_ms:?}");
        assert!(ages_ms.last().is_some_and(|age| *age >= 320.0), "{ages_ms:?}");
    }

    #[test]
    fn another_sender_may_count_from_anywhere() {
        let dir = tempfile::tempdir().unwrap();
        let policy = (Policy::default(), true);
        let mut listener = Listener::create(dir.path(), "viewer", EPOCH, policy).unwrap();
        for (second, first) in [(1, 5), (2, 1 << 30)] {
            let now = Time::from_secs(second);
            listener.restart(now).unwrap();
            for number in first..first + 3 {
                let counted = Numbering::Counted(None);
                assert!(listener.on_packet(now, number, counted, vec![0xff; 40]));
            }
            listener.advance(now + FRAME * 4).unwrap();
        }
        listener.close(Time::from_secs(3)).unwrap();
        let rows: Vec<AudioRow> = Reader::read_all(dir.path()).unwrap();
        let frames: Vec<i64> = rows.iter().map(|row| row.frame).collect();
        assert_eq!(frames, [5, 6, 7, 1 << 30, (1 << 30) + 1, (1 << 30) + 2]);
    }

    #[test]
    fn a_frame_is_played_once_and_says_its_number() {
        let rows = heard(|_| false);
        assert!(rows.len() >= 249, "{} rows", rows.len());
        let number = |row: &AudioRow| (EPOCH as i64 + row.captured_ns.unwrap()) / 20_000_000;
        for (row, next) in rows.iter().zip(&rows[1..]) {
            assert_eq!(
                (row.fate, row.concealed, row.frame + 1),
                (AudioFate::Played, 0, next.frame)
            );
            let took = row.played_ns.unwrap().as_nanos_i64() - row.captured_ns.unwrap();
            // 20 ms of the frame, 30 of the path, 10 of the buffer and 6.5 of the codec.
            assert_eq!(took, 66_500_000);
        }
        let right = rows.iter().filter(|row| row.heard == Some(number(row) as u64 % 256)).count();
        assert!(right + 3 >= rows.len(), "{right} of {} say their number", rows.len());
    }

    #[test]
    fn what_is_lost_is_concealed_as_often_and_has_a_row() {
        let rows = heard(|count| count % 20 == 10 || count == 131);
        let of = |fate| rows.iter().filter(|row| row.fate == fate).count() as u64;
        assert_eq!((of(AudioFate::Lost), of(AudioFate::Late), of(AudioFate::Skipped)), (13, 0, 0));
        assert_eq!(rows.iter().map(|row| row.concealed).sum::<u64>(), 13);
        let lost = rows.iter().filter(|row| row.fate == AudioFate::Lost);
        for row in lost {
            assert_eq!(
                (row.received_ns, row.played_ns, row.heard, row.concealed),
                (None, None, None, 1)
            );
        }
    }

    #[test]
    fn what_is_no_packet_or_comes_twice_is_not_played() {
        let dir = tempfile::tempdir().unwrap();
        let policy = (Policy::default(), true);
        let mut listener = Listener::create(dir.path(), "viewer", EPOCH, policy).unwrap();
        let now = Time::from_secs(1);
        let mut give = |number, data: &[u8]| {
            listener.on_packet(now, number, Numbering::Counted(None), data.to_vec())
        };
        assert!(
            !give(u64::MAX, &[0xff; 40]) && !give(5, &[]) && !give(5, &[0; sound::PACKET_MAX + 1])
        );
        assert!(give(5, &[0xff; 40]) && !give(5, &[0xff; 40]) && !give(1 << 50, &[0xff; 40]));
        listener.close(now + FRAME * 3).unwrap();
        let rows: Vec<AudioRow> = Reader::read_all(dir.path()).unwrap();
        assert_eq!((rows.len(), rows[0].captured_ns, rows[0].heard), (1, None, None));
    }
}
