//! A viewer of video in RTP packets: packets put together to frames, and frames to a [`Viewer`]. Pure.

use suiro_media::live::{Decoder, Picture};
use suiro_payload::{Assembler, Base, Codec, FrameMark, Numbering, Piece, Received};
use suiro_units::{BitRate, Duration, Time};
use suiro_viewer::{Parts, Policy};

use crate::{Delivered, Seen, Viewer};

/// The size of a frame that nothing was decoded into yet.
const SMALLEST: (u32, u32) = (16, 16);

/// Packets of one stream, on their way to a viewer.
///
/// Call [`Self::advance`] at [`Self::next_event`] and after packets, then fetch what was decided with
/// [`Self::take_seen`].
#[derive(Debug)]
pub struct Incoming {
    assembler: Assembler,
    codec: Codec,
    numbering: Numbering,
    /// The highest number of a frame that came.
    newest: Option<u64>,
    viewer: Viewer,
    refused: u64,
}

impl Incoming {
    /// Nothing has come yet. The policy must be valid ([`Policy::validate`]).
    pub fn new(codec: Codec, policy: Policy) -> Self {
        Self {
            assembler: Assembler::new(codec),
            codec,
            numbering: Numbering::default(),
            newest: None,
            viewer: Viewer::new(policy),
            refused: 0,
        }
    }

    /// A packet has come; its number is extended. What is missing of its frame is waited for until the frame is due, and at
    /// least as long as `grace` after a later frame has begun. False: its frame was handed over before.
    pub fn on_packet(&mut self, now: Time, sequence: u64, piece: Piece, grace: Duration) -> bool {
        let viewer = &self.viewer;
        let until = |timestamp| {
            let due = viewer.due(now, captured_at(timestamp));
            due.map_or(now + grace, |due| due.max(now + grace))
        };
        self.assembler.on_packet(now, sequence, piece, until)
    }

    /// The process did not run between these times, as [`Viewer::on_absence`] takes it.
    pub fn on_absence(&mut self, from: Time, to: Time) {
        self.viewer.on_absence(from, to);
    }

    /// Hands frames that are whole or given up to the viewer, which decides what becomes of them.
    /// `captured` is the sender's wall clock at a timestamp, in nanoseconds since 1970, if it is known.
    pub fn advance(&mut self, now: Time, captured: impl Fn(u64) -> Option<u64>) {
        while let Some(received) = self.assembler.poll(now) {
            let captured = captured(received.timestamp);
            let delivered = self.delivered(received, captured);
            let is_taken = delivered.is_some_and(|it| self.viewer.on_frame(now, it).is_ok());
            self.refused += u64::from(!is_taken);
        }
        self.viewer.advance(now);
    }

    /// The frame in the form that the viewer takes; `None` if its mark is in error.
    fn delivered(
        &mut self,
        received: Received,
        captured_unix_ns: Option<u64>,
    ) -> Option<Delivered> {
        let base = received.mark.map(FrameMark::base);
        if base == Some(None) {
            return None;
        }
        let stamp = if base.is_none() { self.stamp_of(&received) } else { None };
        let number = match stamp {
            Some(number) => self.numbering.stamped(received.timestamp, number),
            None => self.numbering.number(received.timestamp, received.mark),
        };
        let references = match base.flatten() {
            Some(Base::Nothing) => None,
            Some(Base::Frame(other)) => Some(other),
            Some(Base::Before) => self.sent_before(&received, number).or(number.checked_sub(1)),
            None if received.content.key => None,
            // Senders of others leave frames out as well: it refers to the one that was sent before.
            None => match received.before {
                Some(before) => Some(self.numbering.number(before, None)).filter(|n| *n < number),
                None => number.checked_sub(1),
            },
        };
        self.newest = self.newest.max(Some(number));
        let parts = match &received.content {
            content if content.whole => Parts::All,
            content if content.usable => Parts::Some,
            _ => Parts::TooFew,
        };
        let waited = received.mark.and_then(FrameMark::waited);
        Some(Delivered {
            number,
            captured: captured_at(received.timestamp),
            received: received.at,
            references,
            parts,
            captured_unix_ns,
            sent_unix_ns: captured_unix_ns
                .zip(waited)
                .and_then(|(at, waited)| at.checked_add(waited.as_nanos())),
            rate: received.mark.map(|mark| BitRate::from_bps(mark.rate_bps.into())),
            data: received.content.bytes,
        })
    }

    /// The frame that was sent before another; `None` if nothing is known of it.
    fn sent_before(&mut self, received: &Received, number: u64) -> Option<u64> {
        let before = received.before.map(|before| self.numbering.number(before, None));
        before.or(self.newest).filter(|before| *before < number)
    }

    /// Of a sender that does not mark frames, the number in the stamp of a key frame, if it is a camera of ours that it
    /// shows: frames between are counted from there.
    fn stamp_of(&self, received: &Received) -> Option<u64> {
        let content = &received.content;
        if self.codec != Codec::H264 || !content.key || !content.whole {
            return None;
        }
        let mut picture = Picture::new(SMALLEST.0, SMALLEST.1).ok()?;
        let decoded =
            Decoder::new().and_then(|mut decoder| decoder.decode(&content.bytes, &mut picture));
        let stamp = decoded.ok().filter(|decoded| *decoded).and_then(|_| picture.read_stamp())?;
        Some(stamp.frame.into())
    }

    /// What became of the next frame.
    pub fn take_seen(&mut self) -> Option<Seen> {
        self.viewer.take_seen()
    }

    /// When to call [`Self::advance`] next; `None`: nothing happens without another packet.
    pub fn next_event(&self) -> Option<Time> {
        let times = [self.viewer.next_event(), self.assembler.next_event()];
        times.into_iter().flatten().min()
    }

    /// Since when frames could not be decoded: [`Viewer::broken_since`].
    pub fn broken_since(&self) -> Option<Time> {
        self.viewer.broken_since()
    }

    /// For how long frames are held: [`Viewer::buffer`].
    pub fn buffer(&self) -> Option<Duration> {
        self.viewer.buffer()
    }

    /// Frames that the viewer refused: they came twice, or long after their time.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Ends the viewing: everything still held has its fate.
    pub fn finish(&mut self, now: Time) {
        self.viewer.finish(now);
    }
}

/// When a frame was captured, by its timestamp: that is of 90 kHz, and starts anywhere.
fn captured_at(timestamp: u64) -> Time {
    Time::from_nanos(timestamp.saturating_mul(100_000) / 9)
}

#[cfg(test)]
mod tests {
    use suiro_viewer::{Buffer, Fate, Loss};

    use super::*;

    fn piece(timestamp: u32, marker: bool, payload: &[u8]) -> Piece {
        let mark =
            FrameMark { number: timestamp / 3000, references: 0, rate_bps: 9, waited: Some(50) };
        let begins = payload[1] & 0x80 != 0;
        Piece { timestamp, marker, mark: begins.then_some(mark), payload: payload.to_vec() }
    }

    #[test]
    fn packets_become_frames_with_their_times_and_a_lost_one_costs_its_frame() {
        let policy = Policy {
            buffer: Buffer::Fixed(Duration::from_millis(50)),
            wait: Duration::ZERO,
            ..Policy::default()
        };
        let mut incoming = Incoming::new(Codec::H264, policy);
        let grace = Duration::from_millis(20);
        let packets = [
            (10, piece(90_000, false, &[0x65, 0x88])),
            (11, piece(90_000, true, &[0x65, 0x08])),
            (12, piece(93_000, false, &[0x65, 0x88])),
            (14, piece(96_000, true, &[0x65, 0x88])),
        ];
        for (sequence, piece) in packets {
            assert!(incoming.on_packet(Time::from_secs(5), sequence, piece, grace));
        }
        let captured = |timestamp: u64| (timestamp as u32 == 90_000).then_some(7_000_000);
        incoming.advance(Time::from_secs(5), captured);
        incoming.advance(Time::from_secs(5) + grace, captured);
        incoming.finish(Time::from_secs(6));
        let seen: Vec<Seen> = std::iter::from_fn(|| incoming.take_seen()).collect();
        let fates: Vec<_> =
            seen.iter().map(|seen| (seen.outcome.frame, seen.outcome.fate)).collect();
        assert_eq!(fates, [(30, Fate::Displayed), (31, Fate::Undecodable), (32, Fate::Displayed)]);
        assert_eq!(seen[0].captured_unix_ns, Some(7_000_000));
        assert_eq!(seen[0].sent_unix_ns, Some(8_000_000), "50 units of 20 µs later");
        assert_eq!((seen[1].captured_unix_ns, seen[2].sent_unix_ns), (None, None));
        assert_eq!(incoming.refused(), 0);
    }

    /// An unmarked frame of one packet: a slice, of a key frame or not, with first_mb_in_slice = 0.
    fn unmarked(timestamp: u32, key: bool) -> Piece {
        let header = if key { 0x65 } else { 0x41 };
        Piece { timestamp, marker: true, mark: None, payload: vec![header, 0x88, 1, 2] }
    }

    #[test]
    fn what_another_sender_leaves_out_is_no_loss() {
        let policy = Policy {
            buffer: Buffer::Fixed(Duration::from_millis(50)),
            wait: Duration::ZERO,
            ..Policy::default()
        };
        let mut incoming = Incoming::new(Codec::H264, policy);
        let grace = Duration::from_millis(20);
        // Its encoder left out the frames at 6000 and 12_000; the packet with number 4 is lost.
        let frames = [(0, 0), (1, 3000), (2, 9000), (3, 15_000), (5, 21_000)];
        for (sequence, timestamp) in frames {
            let now = Time::from_millis(u64::from(timestamp) / 90 + 10);
            let piece = unmarked(90_000 + timestamp, sequence == 0);
            assert!(incoming.on_packet(now, 100 + sequence, piece, grace));
            incoming.advance(now, |_| None);
        }
        incoming.advance(Time::from_secs(1), |_| None);
        incoming.finish(Time::from_secs(2));
        let seen: Vec<Seen> = std::iter::from_fn(|| incoming.take_seen()).collect();
        let fates: Vec<_> = seen.iter().map(|it| (it.outcome.frame, it.outcome.fate)).collect();
        let (shown, missing) = (Fate::Displayed, Fate::Missing);
        let before = [(0, shown), (1, shown), (2, missing), (3, shown), (4, missing), (5, shown)];
        assert_eq!(fates[..6], before);
        assert_eq!(fates[6..], [(6, missing), (7, Fate::Undecodable)]);
    }

    /// A viewer that holds frames for so long, and how it plays after a loss.
    fn incoming(buffer: Duration, loss: Loss) -> Incoming {
        let (buffer, wait) = (Buffer::Fixed(buffer), Duration::ZERO);
        Incoming::new(Codec::H264, Policy { buffer, wait, loss, ..Policy::default() })
    }

    fn seen(mut incoming: Incoming, end: Time) -> Vec<Seen> {
        incoming.finish(end);
        std::iter::from_fn(|| incoming.take_seen()).collect()
    }

    #[test]
    fn a_damaged_frame_was_received_when_its_last_packet_came() {
        let mut incoming = incoming(Duration::from_secs(1), Loss::Show);
        let grace = Duration::from_millis(500);
        // The second packet of frame 31 is lost.
        let packets = [
            (5000, 10, piece(90_000, false, &[0x65, 0x88])),
            (5000, 11, piece(90_000, true, &[0x65, 0x08])),
            (5033, 12, piece(93_000, false, &[0x65, 0x88])),
            (5066, 14, piece(96_000, true, &[0x65, 0x88])),
        ];
        for (at, sequence, piece) in packets {
            incoming.on_packet(Time::from_millis(at), sequence, piece, grace);
            incoming.advance(Time::from_millis(at), |_| None);
        }
        while let Some(at) = incoming.next_event() {
            incoming.advance(at, |_| None);
        }
        let seen = seen(incoming, Time::from_secs(9));
        let outcome = seen[1].outcome;
        assert_eq!((outcome.frame, outcome.fate, outcome.damaged), (31, Fate::Displayed, true));
        assert_eq!(outcome.received, Some(Time::from_millis(5033)));
    }

    #[test]
    fn a_frame_after_a_long_pause_refers_to_the_one_that_was_sent_before() {
        let mut incoming = incoming(Duration::from_millis(50), Loss::Freeze);
        for (sequence, number, references) in [(10, 0, 0), (11, 300, 255)] {
            let mark = FrameMark { number, references, rate_bps: 9, waited: None };
            let timestamp = 3000 * number;
            let payload = vec![if references == 0 { 0x65 } else { 0x41 }, 0x88, 1, 2];
            let piece = Piece { timestamp, marker: true, mark: Some(mark), payload };
            let now = Time::from_secs(1) + Duration::from_secs(u64::from(number) / 30);
            assert!(incoming.on_packet(now, sequence, piece, Duration::ZERO));
            incoming.advance(now, |_| None);
        }
        let seen = seen(incoming, Time::from_secs(20));
        let shown = |fate| seen.iter().filter(|it| it.outcome.fate == fate).count();
        assert_eq!((shown(Fate::Displayed), shown(Fate::Missing)), (2, 299));
        assert_eq!(seen[300].outcome.displayed(), Some(Time::from_millis(11_050)));
    }

    #[test]
    fn a_mark_that_refers_to_before_the_first_frame_is_refused() {
        let mut incoming = incoming(Duration::ZERO, Loss::Freeze);
        let mark = FrameMark { number: 3, references: 9, rate_bps: 9, waited: None };
        let payload = vec![0x41, 0x88, 1, 2];
        let piece = Piece { timestamp: 9000, marker: true, mark: Some(mark), payload };
        assert!(incoming.on_packet(Time::from_secs(1), 10, piece, Duration::ZERO));
        incoming.advance(Time::from_secs(1), |_| None);
        assert_eq!(incoming.refused(), 1);
        assert_eq!(seen(incoming, Time::from_secs(2)), []);
    }
}
