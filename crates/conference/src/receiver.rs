//! Packets into frames, and what became of each. Pure: it is handed the times.
//!
//! Slices are decoded as they come, into the frame that is on the screen, as CellB's viewers did: where one is lost, the
//! old frame stays. A frame is shown when it is whole, or, damaged, when a packet of a later one comes.

use std::collections::VecDeque;

use rtp_types::RtpPacket;
use suiro_units::Time;

use crate::codec::{self, Picture, Size};
use crate::payload::{self, Mark, PAYLOAD_TYPE};

/// Most frames of a gap that are recorded one by one.
pub const GAP_MAX: u32 = 10_000;

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Its number.
    pub picture: u32,
    /// When that was certain.
    pub at: Time,
    /// The frame, if anything of it came.
    pub shown: Option<Shown>,
}

/// A frame that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// What its sender says of it.
    pub mark: Mark,
    /// Bytes of its slices that came.
    pub bytes: u64,
    /// When the last packet that came of it had come.
    pub received: Time,
    /// Whether slices of it are missing.
    pub damaged: bool,
}

/// What became of packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets of the stream.
    pub packets: u64,
    /// Of those, packets of a frame that was over.
    pub late: u64,
    /// Packets of no call, or of another.
    pub refused: u64,
}

/// The receiving half of a call.
#[derive(Debug)]
pub struct Receiver {
    /// What is on the screen.
    screen: Picture,
    ssrc: Option<u32>,
    /// The frame that is being received.
    open: Option<Open>,
    /// The first frame of which nothing is certain.
    next: u32,
    seen: VecDeque<Seen>,
    counters: Counters,
}

#[derive(Debug)]
struct Open {
    mark: Mark,
    bytes: u64,
    received: Time,
    /// Which macroblocks came.
    have: Vec<bool>,
}

impl Receiver {
    /// A receiver of frames of that size.
    pub fn new(size: Size) -> Self {
        Self {
            screen: Picture::grey(size),
            ssrc: None,
            open: None,
            next: 0,
            seen: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Takes a packet, and decodes what is in it. The first that is one of ours decides whose stream it is.
    pub fn on_packet(&mut self, now: Time, bytes: &[u8]) {
        let Some((ssrc, mark, slice)) = parse(bytes) else {
            self.counters.refused += 1;
            return;
        };
        if *self.ssrc.get_or_insert(ssrc) != ssrc || slice.size != self.screen.size {
            self.counters.refused += 1;
            return;
        }
        if mark.picture < self.next {
            self.counters.packets += 1;
            self.counters.late += 1;
            return;
        }
        // A number far ahead is not that of a later frame: no call pauses for a day.
        if mark.picture - self.next > GAP_MAX {
            self.counters.refused += 1;
            return;
        }
        if self.open.as_ref().is_some_and(|open| open.mark.picture != mark.picture) {
            if self.open.as_ref().is_some_and(|open| mark.picture < open.mark.picture) {
                self.counters.packets += 1;
                self.counters.late += 1;
                return;
            }
            self.close(now);
        }
        if codec::decode(&slice, &mut self.screen).is_err() {
            self.counters.refused += 1;
            return;
        }
        self.counters.packets += 1;
        let open = self.open.get_or_insert_with(|| Open {
            mark,
            bytes: 0,
            received: now,
            have: vec![false; slice.size.macroblocks()],
        });
        open.bytes += slice.bits.len() as u64;
        open.received = now;
        let first = usize::from(slice.first);
        open.have[first..first + usize::from(slice.count)].fill(true);
        if open.have.iter().all(|have| *have) {
            self.close(now);
        }
    }

    /// The frame that is being received is shown, and those before it never will be.
    fn close(&mut self, now: Time) {
        let Some(open) = self.open.take() else { return };
        for picture in self.next..open.mark.picture {
            self.seen.push_back(Seen { picture, at: now, shown: None });
        }
        let damaged = !open.have.iter().all(|have| *have);
        let Open { mark, bytes, received, .. } = open;
        let shown = Some(Shown { mark, bytes, received, damaged });
        self.seen.push_back(Seen { picture: mark.picture, at: now, shown });
        self.next = mark.picture + 1;
    }

    /// What became of the next frame, in their order. A frame that is being received when the call ends is cut by
    /// that, and nothing is said of it.
    pub fn take_seen(&mut self) -> Option<Seen> {
        self.seen.pop_front()
    }

    /// What became of packets.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What is on the screen.
    pub fn screen(&self) -> &Picture {
        &self.screen
    }
}

fn parse(bytes: &[u8]) -> Option<(u32, Mark, codec::Slice)> {
    let packet = RtpPacket::parse(bytes).ok()?;
    if packet.payload_type() != PAYLOAD_TYPE {
        return None;
    }
    let (mark, slice) = payload::parse(packet.payload())?;
    Some((packet.ssrc(), mark, slice))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use suiro_units::{Duration, Seed};

    use super::*;
    use crate::camera;
    use crate::sender::{Config, Sender};

    const CAPTURED: Duration = Duration::from_millis(100);

    fn size() -> Size {
        Size::new(64, 48).unwrap()
    }

    fn at(number: u32) -> Time {
        Time::ZERO + CAPTURED * u64::from(number)
    }

    /// The packets of frames 0 to `count` - 1.
    fn packets(count: u32) -> Vec<Vec<Vec<u8>>> {
        let config = Config { picture_bytes: 8000, packet_bytes: 1200 };
        let mut sender = Sender::new(config, &mut Seed(1).random());
        let picture = |number: u32| {
            let slices = sender.encode(&camera::see(size(), number));
            let mark = Mark { picture: number, captured_unix_ns: 5, sent_unix_ns: 6 };
            sender.packets(at(number), mark, &slices)
        };
        (0..count).map(picture).collect()
    }

    fn seen(receiver: &mut Receiver) -> Vec<(u32, Option<bool>)> {
        std::iter::from_fn(|| receiver.take_seen())
            .map(|seen| (seen.picture, seen.shown.map(|shown| shown.damaged)))
            .collect()
    }

    #[test]
    fn whole_pictures_are_shown_at_once_and_look_like_the_camera() {
        let mut receiver = Receiver::new(size());
        for (number, packets) in packets(3).iter().enumerate() {
            let last = packets.len() - 1;
            assert!(last >= 1, "{last} packets");
            for (n, packet) in packets.iter().enumerate() {
                receiver.on_packet(at(number as u32), packet);
                assert_eq!(receiver.take_seen().is_some(), n == last);
            }
        }
        let camera = camera::see(size(), 2);
        let off = |(a, b): (&u8, &u8)| u64::from(a.abs_diff(*b));
        let error: u64 = camera.luma.iter().zip(&receiver.screen().luma).map(off).sum();
        assert!(error < 8 * camera.luma.len() as u64, "{error}");
    }

    #[test]
    fn losses_damage_one_picture_and_gaps_are_told() {
        let packets = packets(6);
        let mut receiver = Receiver::new(size());
        let mut send = |number: usize, skip: usize| {
            for packet in packets[number].iter().skip(skip) {
                receiver.on_packet(at(number as u32), packet);
            }
        };
        send(0, 0);
        send(1, 1); // its first packet is lost
        send(4, 0); // two frames are lost
        send(2, 0); // they come after all
        send(5, 1);
        let want = [(0, Some(false)), (1, Some(true)), (2, None), (3, None), (4, Some(false))];
        assert_eq!(seen(&mut receiver), want);
        let counters = receiver.counters();
        assert_eq!((counters.late, counters.refused), (packets[2].len() as u64, 0));
    }

    #[test]
    fn another_stream_is_refused() {
        let mut receiver = Receiver::new(size());
        let packets = packets(2);
        receiver.on_packet(at(0), &packets[0][0]);
        let mut other = packets[0][1].clone();
        other[8] ^= 1; // the SSRC
        receiver.on_packet(at(0), &other);
        receiver.on_packet(at(0), b"no RTP");
        assert_eq!((receiver.counters().packets, receiver.counters().refused), (1, 2));
    }

    proptest! {
        /// Any bytes are counted, and nothing else.
        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 12usize..39, byte: u8) {
            let mut receiver = Receiver::new(size());
            receiver.on_packet(Time::ZERO, &bytes);
            let mut packet = packets(1)[0][0].clone();
            packet[at] = byte;
            receiver.on_packet(Time::ZERO, &packet);
            let Counters { packets, refused, .. } = receiver.counters();
            prop_assert_eq!(packets + refused, 2);
        }
    }
}
