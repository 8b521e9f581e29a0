//! The sender's side: frames into packets for every session, and what the encoder is to make. Pure.

use std::collections::BTreeMap;

use suiro_payload::{Codec, PayloadError, Piece};
use suiro_realtime::{Frame, Share, SoundFrame};
use suiro_units::{BitRate, Bytes, Duration, Random, Time};

use crate::fill::Fill;
use crate::ladder::{Hysteresis, Ladder, Rung};
use crate::peer::{Outgoing, PAYLOAD_MAX, SoundOut, mark};
use crate::sessions::Sessions;

/// How the encoder's bit rate follows from the estimate: headers of RTP, SRTP, UDP and IP are about a tenth of packets
/// of this size, and what waits should leave within half a second.
const SHARE: Share = Share { encoder: 0.9, drain: Duration::from_millis(500), least: 0.3 };

/// What a packet of sound has around it: headers of IP, UDP and RTP with extensions, and the tag of SRTP. 50 are sent in a
/// second.
const SOUND_HEADERS: BitRate = BitRate::from_bps(50 * 72 * 8);
/// So many packets of sound tell when they were captured, and then one of so many: a receiver counts on from there.
const TELLING: u64 = 50;
const TELLS_EVERY: u64 = 10;
/// Samples of a frame of sound, which timestamps count (RFC 7587 §4.1).
const SOUND_SAMPLES: u64 = suiro_media::sound::SAMPLES as u64;

/// What the encoder is to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Its bit rate.
    pub rate: BitRate,
    /// Size and frame rate.
    pub rung: Rung,
}

/// The sender of all sessions.
#[derive(Debug)]
pub struct Sending {
    ladder: Ladder,
    target: Target,
    fill: Fill,
    /// The most that is sent.
    max: BitRate,
    /// The next packet's number in each session.
    sequences: BTreeMap<u64, u64>,
    /// The bit rate of the sound, if there is any, and in each session the number of its first packet and of the next.
    sound: Option<BitRate>,
    sounds: BTreeMap<u64, (u64, u64)>,
    random: Random,
    /// The wall clock at [`Time::ZERO`], in nanoseconds since 1970.
    epoch_unix_ns: u64,
    key_frame: bool,
    /// From one key frame to the next, at most, and when the newest was captured.
    key_every: Option<Duration>,
    keyed: Option<Time>,
    /// From one frame of the camera to the next.
    period: Duration,
}

impl Sending {
    /// Of a camera with frames of that size and so many of them per second. `start` is sent at first, and never more
    /// than `max`, whatever the estimate.
    pub fn new(
        (size, fps): ((u32, u32), u32),
        (start, max): (BitRate, BitRate),
        random: Random,
        epoch_unix_ns: u64,
    ) -> Self {
        let rate = SHARE.encoder_rate(start.min(max), Bytes::ZERO);
        let ladder = Ladder::new(size, fps, rate, Hysteresis::default());
        let target = Target { rate, rung: ladder.rung() };
        let sequences = BTreeMap::new();
        let fill = Fill::default();
        Self {
            ladder,
            target,
            fill,
            max,
            sequences,
            sound: None,
            sounds: BTreeMap::new(),
            random,
            epoch_unix_ns,
            key_frame: false,
            key_every: None,
            keyed: None,
            period: Duration::from_secs(1) / u64::from(fps.max(1)),
        }
    }

    /// The same with key frames that are at most so far apart, besides those that somebody asks for.
    #[must_use]
    pub fn with_key_every(self, key_every: Option<Duration>) -> Self {
        Self { key_every, ..self }
    }

    /// The same with sound of that bit rate, which takes its part of every estimate first.
    #[must_use]
    pub fn with_sound(self, sound: Option<BitRate>) -> Self {
        Self { sound, ..self }
    }

    /// Sends a frame of sound to everybody who is connected and takes it. It waits for no video.
    pub fn on_sound(&mut self, now: Time, frame: &SoundFrame, sessions: &mut Sessions) {
        let timestamp = frame.number.wrapping_mul(SOUND_SAMPLES) as u32;
        for number in sessions.connected() {
            let first = || {
                let first = self.random.next_u64() % 32_768;
                (first, first)
            };
            let (first, next) = self.sounds.entry(number).or_insert_with(first);
            let (sent, sequence) = (*next - *first, *next);
            *next += 1;
            let tells = sent < TELLING || sent.is_multiple_of(TELLS_EVERY);
            let captured_unix_ns = self.epoch_unix_ns.saturating_add(frame.captured.as_nanos());
            let sound = SoundOut {
                timestamp,
                begins: sent == 0,
                captured: frame.captured,
                captured_unix_ns: tells.then_some(captured_unix_ns),
                payload: frame.data.clone(),
            };
            sessions.with(now, number, |session| session.peer.send_sound(now, sequence, sound));
        }
    }

    /// Asks for a key frame if the frame after the one captured then would come too late for one.
    fn keep_keys(&mut self, captured: Time, key: bool) {
        let keyed = if key { captured } else { self.keyed.unwrap_or(captured) };
        self.keyed = Some(keyed);
        let since = captured.saturating_since(keyed);
        let due = |every: Duration| since + self.period + self.period / 2 > every;
        self.key_frame |= self.key_every.is_some_and(due);
    }

    /// What the encoder is to make now.
    pub fn target(&self) -> Target {
        self.target
    }

    /// A session is connected: it begins with a key frame.
    pub fn on_connected(&mut self) {
        self.key_frame = true;
    }

    /// Somebody needs a key frame.
    pub fn on_key_frame_request(&mut self) {
        self.key_frame = true;
    }

    /// Whether a key frame was asked for since the last call.
    pub fn take_key_frame_request(&mut self) -> bool {
        std::mem::take(&mut self.key_frame)
    }

    /// Sends a frame to everybody who is connected.
    ///
    /// # Errors
    /// [`PayloadError`]: the encoder made something else than H.264.
    pub fn on_frame(
        &mut self,
        now: Time,
        frame: &Frame,
        sessions: &mut Sessions,
    ) -> Result<(), PayloadError> {
        self.fill.on_frame(Bytes::new(frame.data.len() as u64));
        self.keep_keys(frame.captured, frame.key);
        let payloads = Codec::H264.packetise(&frame.data, PAYLOAD_MAX, PAYLOAD_MAX)?;
        let last = payloads.len() - 1;
        // 90 kHz (RFC 6184 §8.2.1).
        let timestamp = (u128::from(frame.captured.as_nanos()) * 9 / 100_000) as u32;
        let captured_unix_ns = self.epoch_unix_ns.saturating_add(frame.captured.as_nanos());
        for number in sessions.connected() {
            // RFC 3550 §5.1: from anywhere, and far enough from the first wrap for SRTP (RFC 3711 §3.3.1).
            let first = || self.random.next_u64() % 32_768;
            let sequence = self.sequences.entry(number).or_insert_with(first);
            sessions.with(now, number, |session| {
                session.on_video(now);
                for (index, payload) in payloads.iter().enumerate() {
                    let mark = mark(frame.number, frame.references, frame.rate);
                    let piece = Piece {
                        timestamp,
                        marker: index == last,
                        mark: (index == 0).then_some(mark),
                        payload: payload.clone(),
                    };
                    let captured = frame.captured;
                    session.peer.send(
                        now,
                        *sequence,
                        Outgoing { piece, captured, captured_unix_ns },
                    )?;
                    *sequence += 1;
                }
                Ok(())
            });
        }
        Ok(())
    }

    /// Follows the estimates: the least of those who are connected.
    pub fn follow(&mut self, now: Time, sessions: &mut Sessions) {
        self.sequences.retain(|number, _| sessions.get(*number).is_some());
        self.sounds.retain(|number, _| sessions.get(*number).is_some());
        // What is allowed now, and when nothing waits any more.
        let mut rates: Option<(BitRate, BitRate)> = None;
        for number in sessions.connected() {
            let Some(session) = sessions.get(number) else { continue };
            let (queued, _) = session.peer.queue(now);
            let waits = queued + session.peer.standing();
            let sound = self.sound.filter(|_| session.peer.has_sound());
            let own = encoder_rates(session.peer.estimate().min(self.max), sound, waits);
            let least = rates.map_or(own, |(rate, later)| [rate.min(own[0]), later.min(own[1])]);
            rates = Some((least[0], least[1]));
        }
        let Some((rate, later)) = rates else { return };
        self.target.rate = self.fill.ask(now, rate);
        // A smaller frame is for a lower estimate: a queue that drains is over before it would help.
        if let Some(rung) = self.ladder.on_rate(now, later) {
            self.target.rung = rung;
        }
    }
}

/// What the encoder of the video may make of a rate that the sound takes its part of first, while so much waits, and when
/// nothing waits any more.
fn encoder_rates(allowed: BitRate, sound: Option<BitRate>, waits: Bytes) -> [BitRate; 2] {
    let sound = sound.map_or(0, |rate| rate.as_bps() + SOUND_HEADERS.as_bps());
    let allowed = BitRate::from_bps(allowed.as_bps().saturating_sub(sound));
    [waits, Bytes::ZERO].map(|waits| SHARE.encoder_rate(allowed, waits))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the key frames among 120 of 30 a second.
    fn keys(key_every: Option<Duration>) -> Vec<u64> {
        let rates = (BitRate::from_kbps(300), BitRate::from_mbps(2));
        let random = suiro_units::Seed(1).random();
        let mut sending =
            Sending::new(((640, 360), 30), rates, random, 0).with_key_every(key_every);
        let mut next = true;
        let is_key = |n: &u64| {
            let key = std::mem::take(&mut next);
            sending.keep_keys(Time::from_nanos(n * 1_000_000_000 / 30), key);
            // What is asked for after a frame is the next one.
            next = sending.take_key_frame_request();
            key
        };
        (0..120).filter(is_key).collect()
    }

    #[test]
    fn a_key_frame_is_asked_for_when_the_next_frame_is_to_be_one() {
        assert_eq!(keys(Some(Duration::from_secs(1))), [0, 30, 60, 90]);
        assert_eq!(keys(Some(Duration::from_millis(100))).len(), 40);
        assert_eq!(keys(None), [0]);
    }

    #[test]
    fn an_estimate_beyond_the_most_changes_nothing() {
        let max = BitRate::from_kbps(2500);
        let rates =
            |estimate| encoder_rates(BitRate::from_kbps(estimate).min(max), None, Bytes::ZERO);
        assert_eq!(rates(20_000), [BitRate::from_kbps(2250); 2]);
        assert_eq!(rates(2500), rates(20_000));
        assert_eq!(rates(1000), [BitRate::from_kbps(900); 2]);
    }

    #[test]
    fn sound_takes_its_part_of_the_estimate_first() {
        let sound = Some(BitRate::from_kbps(32));
        let rates = |estimate| encoder_rates(BitRate::from_kbps(estimate), sound, Bytes::ZERO)[0];
        // 32 kbit/s, and 28.8 of headers; of the rest nine tenths.
        assert_eq!(rates(1000), BitRate::from_bps((1_000_000 - 60_800) * 9 / 10));
        assert_eq!(rates(50), *suiro_media::live::RATES.least());
    }
}
