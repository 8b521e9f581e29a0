//! The sender's side: frames into packets for every session, and what the encoders are to make. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use suiro_payload::{Codec, FrameMark, PayloadError, Piece};
use suiro_realtime::{Frame, SoundFrame};
use suiro_scenario::WebrtcQuality;
use suiro_units::{BitRate, Duration, Random, Time};

use crate::encoding::{Allowed, Encoding, Pictures, Target};
use crate::peer::{Outgoing, PAYLOAD_MAX, PeerError, SoundOut, mark, timestamp};
use crate::sessions::{Session, Sessions};
use crate::stream::Stream;

/// So many packets of sound tell when they were captured, and then one of so many: a receiver counts on from there.
const TELLING: u64 = 50;
const TELLS_EVERY: u64 = 10;
/// Samples of a frame of sound, which timestamps count (RFC 7587 §4.1).
const SOUND_SAMPLES: u64 = suiro_media::sound::SAMPLES as u64;

/// The sender of all sessions.
#[derive(Debug)]
pub struct Sending {
    /// From the highest to the lowest; one at least.
    encodings: Vec<Encoding>,
    /// What each session is sent.
    streams: BTreeMap<u64, Stream<Arc<Packets>>>,
    /// The bit rate of the sound, if there is any, and in each session the number of its first packet and of the next.
    sound: Option<BitRate>,
    sounds: BTreeMap<u64, (u64, u64)>,
    random: Random,
    /// The wall clock at [`Time::ZERO`], in nanoseconds since 1970.
    epoch_unix_ns: u64,
}

/// A frame in packets.
#[derive(Debug)]
struct Packets {
    timestamp: u32,
    captured: Time,
    captured_unix_ns: u64,
    mark: FrameMark,
    payloads: Vec<Vec<u8>>,
}

impl Packets {
    fn of(frame: &Frame, epoch_unix_ns: u64) -> Result<Self, PayloadError> {
        Ok(Self {
            timestamp: timestamp(frame.captured),
            captured: frame.captured,
            captured_unix_ns: epoch_unix_ns.saturating_add(frame.captured.as_nanos()),
            mark: mark(frame.number, frame.references, frame.rate),
            payloads: Codec::H264.packetise(&frame.data, PAYLOAD_MAX, PAYLOAD_MAX)?,
        })
    }

    /// Sends them in a session, with numbers from this one on, which is moved behind them.
    fn send(&self, now: Time, session: &mut Session, sequence: &mut u64) -> Result<(), PeerError> {
        session.on_video(now);
        let last = self.payloads.len() - 1;
        for (index, payload) in self.payloads.iter().enumerate() {
            let piece = Piece {
                timestamp: self.timestamp,
                marker: index == last,
                mark: (index == 0).then_some(self.mark),
                payload: payload.clone(),
            };
            let (captured, captured_unix_ns) = (self.captured, self.captured_unix_ns);
            session.peer.send(now, *sequence, Outgoing { piece, captured, captured_unix_ns })?;
            *sequence += 1;
        }
        Ok(())
    }
}

impl Sending {
    /// Of a camera with frames of that size and so many of them per second, with an encoding for each of `most`: the most that is
    /// sent of it, whatever the estimate, falling; one at least. `start` is sent at first. Key frames are at most `key_every` apart,
    /// besides those that somebody asks for.
    pub fn new(
        pictures: Pictures,
        (start, most): (BitRate, &[BitRate]),
        key_every: Option<Duration>,
        (random, epoch_unix_ns): (Random, u64),
    ) -> Self {
        let nothing = BitRate::from_bps(0);
        let least = most.iter().skip(1).copied().chain([nothing]);
        let encodings = most.iter().copied().zip(least);
        let encoding = |rates| Encoding::new(pictures, start, rates, key_every);
        Self {
            encodings: encodings.map(encoding).collect(),
            streams: BTreeMap::new(),
            sound: None,
            sounds: BTreeMap::new(),
            random,
            epoch_unix_ns,
        }
    }

    /// The same with sound of that bit rate, which takes its part of every estimate first.
    #[must_use]
    pub fn with_sound(self, sound: Option<BitRate>) -> Self {
        Self { sound, ..self }
    }

    /// How many encodings there are.
    pub fn encodings(&self) -> usize {
        self.encodings.len()
    }

    /// What an encoder is to make now; the highest encoding is number 0.
    pub fn target(&self, encoding: usize) -> Target {
        self.encodings[encoding].target()
    }

    /// Which encoding a session is sent, and what its encoder is to make; `None` for a session that is not connected.
    pub fn sent_to(&self, session: u64) -> Option<(usize, Target)> {
        let encoding = self.streams.get(&session)?.current();
        Some((encoding, self.target(encoding)))
    }

    /// Whether a session is sent an encoding, or is to be.
    pub fn is_wanted(&self, encoding: usize) -> bool {
        self.streams.values().any(|stream| stream.has(encoding))
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

    /// A session is connected, whose viewer asks for this quality: it begins with a key frame.
    pub fn on_connected(&mut self, now: Time, session: u64, quality: WebrtcQuality, rate: BitRate) {
        let most: Vec<BitRate> = self.encodings.iter().map(Encoding::most).collect();
        let stream = Stream::new(now, quality, &most, rate);
        self.encodings[stream.wanted()].ask_for_key_frame();
        self.streams.insert(session, stream);
    }

    /// A viewer requests a key frame.
    pub fn on_key_frame_request(&mut self, now: Time, session: u64) {
        if let Some(stream) = self.streams.get(&session) {
            self.encodings[stream.current()].on_key_frame_request(now);
        }
    }

    /// Whether a key frame of an encoding was asked for since the last call.
    pub fn take_key_frame_request(&mut self, encoding: usize) -> bool {
        self.encodings[encoding].take_key_frame_request()
    }

    /// Sends a frame of an encoding to everybody who is sent it.
    ///
    /// # Errors
    /// [`PayloadError`]: the encoder made something else than H.264.
    pub fn on_frame(
        &mut self,
        now: Time,
        (encoding, frame): (usize, &Frame),
        sessions: &mut Sessions,
    ) -> Result<(), PayloadError> {
        self.encodings[encoding].on_frame(frame);
        let packets = Arc::new(Packets::of(frame, self.epoch_unix_ns)?);
        let place = (frame.number, frame.key);
        for number in sessions.connected() {
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            let newest = self.encodings[stream.wanted()].newest();
            for packets in stream.on_frame(encoding, place, packets.clone(), newest) {
                // RFC 3550 §5.1: from anywhere, and far enough from the first wrap for SRTP (RFC 3711 §3.3.1).
                let first = || self.random.next_u64() % 32_768;
                let sequence = stream.sequence.get_or_insert_with(first);
                sessions.with(now, number, |session| packets.send(now, session, sequence));
            }
        }
        Ok(())
    }

    /// Follows the estimates. Each viewer is sent the encoding that its own estimate carries, if it has not asked for one; an
    /// encoder follows the least estimate of those who stay with it.
    pub fn follow(&mut self, now: Time, sessions: &mut Sessions) {
        self.streams.retain(|number, _| sessions.get(*number).is_some());
        self.sounds.retain(|number, _| sessions.get(*number).is_some());
        let mut stay = vec![Vec::new(); self.encodings.len()];
        let mut leave = stay.clone();
        for (number, stream) in &mut self.streams {
            let Some(session) = sessions.get(*number) else { continue };
            let (estimate, has_sound) = (session.peer.estimate(), session.peer.has_sound());
            let (queued, _) = session.peer.queue(now);
            let waits = queued + session.peer.standing();
            if stream.on_estimate(now, estimate) {
                self.encodings[stream.wanted()].ask_for_key_frame();
            }
            let allowed = |encoding: usize| {
                let rate = estimate.min(self.encodings[encoding].most());
                Allowed::by(rate, self.sound.filter(|_| has_sound), waits)
            };
            let (wanted, current) = (stream.wanted(), stream.current());
            stay[wanted].push(allowed(wanted));
            if wanted != current {
                leave[current].push(allowed(current));
            }
        }
        for (encoding, (stay, leave)) in self.encodings.iter_mut().zip(stay.iter().zip(&leave)) {
            // Those who leave have a say if nobody else is sent it.
            encoding.follow(now, if stay.is_empty() { leave } else { stay });
        }
    }
}
