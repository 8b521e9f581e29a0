//! Packets into frames. A frame is handed over as soon as it is whole, whatever is missing before it;
//! one that is not, when what is missing will not come any more.

use std::collections::BTreeMap;

use suiro_units::Time;

use crate::sequence::Timestamps;
use crate::{Assembled, Codec, FrameMark};

/// Most frames that are in the making; of more, the first is given up.
const FRAMES_MAX: usize = 256;
/// Most packets of one frame: of more, the rest is not kept, and the frame is not whole.
const PACKETS_MAX: usize = 8192;
/// Limit on the packets whose frame is remembered.
const OWNERS_MAX: usize = 4096;
/// Frames that are remembered after they were handed over, to know what comes late.
const DONE_MAX: usize = 1024;

/// What a packet has of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The frame's RTP timestamp, at 90 kHz; it wraps.
    pub timestamp: u32,
    /// True of a frame's last packet.
    pub marker: bool,
    /// What it says of the frame that it begins; `None` within a frame, and from senders not ours.
    pub mark: Option<FrameMark>,
    /// The payload, without padding.
    pub payload: Vec<u8>,
}

/// A frame that was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Its RTP timestamp, extended.
    pub timestamp: u64,
    /// The number of its first packet that came, extended.
    pub first: u64,
    /// The number of its last packet that came, extended.
    pub last: u64,
    /// The timestamp of the frame that the packet before its first belongs to: the one that was sent before; `None` if
    /// that packet has not come.
    pub before: Option<u64>,
    /// What its sender says of it, if it is of our kind and the packet with it came.
    pub mark: Option<FrameMark>,
    /// Its bytes, as far as they came.
    pub content: Assembled,
    /// When the last packet came that it has.
    pub at: Time,
}

/// Frames in the making.
#[derive(Debug)]
pub struct Assembler {
    codec: Codec,
    timestamps: Timestamps,
    frames: BTreeMap<u64, Partial>,
    /// Timestamps of frames that were handed over.
    done: BTreeMap<u64, ()>,
    /// Whether the sender marks frames. Then a mark shows where one begins, and the marker where it
    /// ends. Of others the marker is a hint (RFC 6184 §5.1): what shows is that the timestamp changes
    /// from one packet to the next, and what is in them.
    marks: bool,
    /// The timestamps of recent packets, by number.
    owners: BTreeMap<u64, u64>,
}

#[derive(Debug, Default)]
struct Partial {
    packets: BTreeMap<u64, Vec<u8>>,
    mark: Option<FrameMark>,
    /// The packet that it begins with.
    first: Option<u64>,
    /// The packet with the marker.
    last: Option<u64>,
    at: Time,
    /// When it is given up; `None` while nothing later has come.
    until: Option<Time>,
    overflow: bool,
}

impl Partial {
    fn is_whole(&self) -> bool {
        let (Some(first), Some(last)) = (self.first, self.last) else { return false };
        // A sender in error, or another one, may end a frame before it begins.
        let Some(more) = last.checked_sub(first) else { return false };
        !self.overflow && self.packets.range(first..=last).count() as u64 == more + 1
    }

    fn finish(self, codec: Codec, timestamp: u64) -> Option<Received> {
        let (&first, &last) = (self.packets.keys().next()?, self.packets.keys().next_back()?);
        let whole = self.is_whole();
        // The first follows on nothing; it does if the frame begins with it.
        let mut next = self.first;
        let payloads = self.packets.iter().map(|(&sequence, payload)| {
            let follows = next == Some(sequence);
            next = Some(sequence + 1);
            (follows, payload.as_slice())
        });
        let mut content = codec.assemble(payloads);
        content.whole &= whole;
        let (mark, at) = (self.mark, self.at);
        Some(Received { timestamp, first, last, before: None, mark, content, at })
    }
}

impl Assembler {
    /// Of a stream of that codec.
    pub fn new(codec: Codec) -> Self {
        Self {
            codec,
            timestamps: Timestamps::default(),
            frames: BTreeMap::new(),
            done: BTreeMap::new(),
            marks: false,
            owners: BTreeMap::new(),
        }
    }

    /// A packet has come; its number is extended. It may make a frame whole. `until` says of the timestamp of one that is
    /// not whole, when a later one has begun, until when it is waited for. False: its frame was handed over before.
    pub fn on_packet(
        &mut self,
        now: Time,
        sequence: u64,
        packet: Piece,
        until: impl Fn(u64) -> Time,
    ) -> bool {
        let timestamp = self.timestamps.take(packet.timestamp);
        if self.done.contains_key(&timestamp) {
            return false;
        }
        self.marks |= packet.mark.is_some();
        self.own(sequence, timestamp);
        let (begins, ends) = self.bounds(sequence, timestamp, &packet);
        let partial = self.frames.entry(timestamp).or_default();
        if begins {
            partial.first = Some(partial.first.map_or(sequence, |first| first.min(sequence)));
        }
        if ends {
            partial.last = Some(partial.last.map_or(sequence, |last| last.max(sequence)));
        }
        partial.mark = packet.mark.or(partial.mark);
        partial.at = now;
        if partial.packets.len() < PACKETS_MAX {
            partial.packets.insert(sequence, packet.payload);
        } else {
            partial.overflow = true;
        }
        self.end_the_one_before(sequence, timestamp);
        self.mark_earlier(sequence, until);
        if self.frames.len() > FRAMES_MAX
            && let Some((_, first)) = self.frames.iter_mut().next()
        {
            first.until = Some(now);
        }
        true
    }

    fn own(&mut self, sequence: u64, timestamp: u64) {
        self.owners.insert(sequence, timestamp);
        if self.owners.len() > OWNERS_MAX {
            self.owners.pop_first();
        }
    }

    /// Whether a frame begins, and whether it ends with that packet.
    fn bounds(&self, sequence: u64, timestamp: u64, packet: &Piece) -> (bool, bool) {
        if self.marks {
            return (packet.mark.is_some(), packet.marker);
        }
        let other = |owner: Option<&u64>| owner.is_some_and(|owner| *owner != timestamp);
        let before = sequence.checked_sub(1).and_then(|before| self.owners.get(&before));
        let begins = other(before) || before.is_none() && self.codec.begins_frame(&packet.payload);
        let after = self.owners.get(&(sequence + 1));
        let ends = other(after) || packet.marker && self.codec.ends_slice(&packet.payload);
        (begins, ends)
    }

    /// Of an unmarked stream: where a frame begins, the one before has ended.
    fn end_the_one_before(&mut self, sequence: u64, timestamp: u64) {
        let Some(before) = sequence.checked_sub(1).filter(|_| !self.marks) else { return };
        let Some(owner) = self.owners.get(&before).filter(|owner| **owner != timestamp) else {
            return;
        };
        if let Some(partial) = self.frames.get_mut(owner) {
            partial.last = Some(before);
        }
    }

    /// What has only packets before this one has seen its last, but for what is late.
    fn mark_earlier(&mut self, sequence: u64, until: impl Fn(u64) -> Time) {
        for (&timestamp, partial) in &mut self.frames {
            let ended = partial.packets.keys().next_back().is_some_and(|last| *last < sequence);
            if ended && partial.until.is_none() {
                partial.until = Some(until(timestamp));
            }
        }
    }

    /// When something is given up; `None`: nothing is.
    pub fn next_event(&self) -> Option<Time> {
        self.frames.values().filter_map(|partial| partial.until).min()
    }

    /// The next frame that is whole or given up; call until `None`.
    pub fn poll(&mut self, now: Time) -> Option<Received> {
        let ready = |partial: &Partial| {
            partial.is_whole() || partial.until.is_some_and(|until| until <= now)
        };
        let timestamp = *self.frames.iter().find(|(_, partial)| ready(partial))?.0;
        let partial = self.frames.remove(&timestamp)?;
        self.done.insert(timestamp, ());
        if self.done.len() > DONE_MAX {
            self.done.pop_first();
        }
        let mut received = partial.finish(self.codec, timestamp)?;
        let before = received.first.checked_sub(1).and_then(|before| self.owners.get(&before));
        received.before = before.copied().filter(|before| *before != timestamp);
        Some(received)
    }
}

#[cfg(test)]
mod tests {
    use suiro_units::Duration;

    use super::*;

    const GRACE: Duration = Duration::from_millis(20);

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// A frame of three packets at 90 kHz time `timestamp`; the first number is `first`.
    fn frame(first: u16, timestamp: u32, mark: bool) -> Vec<(u16, Piece)> {
        let mut data = vec![0, 0, 1, 0x41, 0x9a];
        data.extend([7; 200]);
        let payloads = Codec::H264.packetise(&data, 80, 80).unwrap();
        let mark =
            mark.then_some(FrameMark { number: 5, references: 1, rate_bps: 9, waited: None });
        let packets = payloads.into_iter().enumerate().map(|(n, payload)| {
            let (marker, mark) = (n == 2, mark.filter(|_| n == 0));
            (first + n as u16, Piece { timestamp, marker, mark, payload })
        });
        packets.collect()
    }

    struct Case {
        assembler: Assembler,
    }

    impl Case {
        fn new() -> Self {
            Self { assembler: Assembler::new(Codec::H264) }
        }

        fn take(&mut self, at: u64, (sequence, piece): &(u16, Piece)) -> bool {
            self.assembler.on_packet(ms(at), (*sequence).into(), piece.clone(), |_| ms(at) + GRACE)
        }

        fn poll(&mut self, at: u64) -> Option<(u64, bool)> {
            self.assembler.poll(ms(at)).map(|frame| (frame.first, frame.content.whole))
        }
    }

    #[test]
    fn a_frame_is_handed_over_when_it_is_whole_in_any_order() {
        for mark in [false, true] {
            let mut case = Case::new();
            let packets = frame(10, 1000, mark);
            for n in [2, 0] {
                assert!(case.take(0, &packets[n]));
                assert_eq!(case.poll(0), None);
            }
            case.take(1, &packets[1]);
            assert_eq!(case.poll(1), Some((10, true)));
            assert!(!case.take(2, &packets[1]), "late");
        }
    }

    #[test]
    fn later_frames_do_not_wait_for_earlier_ones() {
        let mut case = Case::new();
        let (one, two) = (frame(10, 1000, true), frame(13, 4000, true));
        case.take(0, &one[0]);
        case.take(1, &one[2]);
        two.iter().for_each(|packet| assert!(case.take(5, packet)));
        assert_eq!(case.poll(5), Some((13, true)));
        assert_eq!(case.assembler.next_event(), Some(ms(25)));
        assert_eq!(case.poll(24), None);
        assert_eq!(case.poll(25), Some((10, false)));
    }

    #[test]
    fn what_is_sent_again_in_time_makes_it_whole() {
        let mut case = Case::new();
        let (one, two) = (frame(10, 1000, true), frame(13, 4000, true));
        case.take(0, &one[0]);
        case.take(0, &one[2]);
        two.iter().for_each(|packet| assert!(case.take(5, packet)));
        assert_eq!(case.poll(5), Some((13, true)));
        case.take(20, &one[1]);
        assert_eq!(case.poll(20), Some((10, true)));
    }

    #[test]
    fn without_its_first_or_last_packet_it_is_not_whole() {
        for (mark, lost) in [(true, 0), (false, 0), (true, 2)] {
            let mut case = Case::new();
            let one = frame(10, 1000, mark);
            // That the sender marks its frames is known from the one before.
            frame(7, 500, mark).iter().for_each(|packet| assert!(case.take(0, packet)));
            assert_eq!(case.poll(0), Some((7, true)));
            let left = one.iter().enumerate().filter(|(n, _)| *n != lost);
            left.for_each(|(_, packet)| assert!(case.take(0, packet)));
            assert_eq!(case.poll(100), None, "nothing later has come");
            case.take(100, &frame(13, 4000, mark)[0]);
            assert!(matches!(case.poll(120), Some((_, false))));
        }
    }

    #[test]
    fn a_frame_that_ends_before_it_begins_is_not_whole() {
        let mut case = Case::new();
        let packets = frame(10, 1000, true);
        let (first, last) = (packets[0].1.clone(), packets[2].1.clone());
        case.take(0, &(10, Piece { marker: true, mark: None, ..first }));
        case.take(0, &(12, Piece { marker: false, mark: packets[0].1.mark, ..last }));
        assert_eq!(case.poll(0), None);
        case.take(0, &frame(13, 4000, true)[0]);
        assert!(matches!(case.poll(20), Some((10, false))));
    }

    #[test]
    fn frames_in_the_making_are_bounded() {
        let mut case = Case::new();
        for n in 0..1000u16 {
            case.take(0, &frame(10 + 3 * n, 3000 * u32::from(n), true)[1]);
            while case.poll(0).is_some() {}
        }
        assert_eq!(case.assembler.frames.len(), FRAMES_MAX);
    }
}
