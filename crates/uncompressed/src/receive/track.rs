//! One stream as it is received: packets counted, frames told whole or not. Pure: times and datagrams
//! are arguments.

use std::net::SocketAddrV4;

use suiro_units::{Duration, Time};

use super::sequence::{Arrival, Sequence};
use crate::checksum;
use crate::epoch::Epoch;
use crate::measure::{Evenness, Seen};
use crate::packet::{IP_UDP_BYTES, Layout, Received};

/// After this time without a packet of its sender, a stream takes another one.
const SILENCE: Duration = Duration::from_millis(200);
/// Frames under way at a time: packets of one before may still come.
const OPEN_MAX: usize = 2;

/// What was counted, of packets and frames. Bytes are of IP packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of the stream, duplicates excluded.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that are missing; one that comes late is taken off again, so a second's may be negative.
    pub lost: i64,
    /// Packets that came after a later one.
    pub reordered: u64,
    /// Packets that came again.
    pub duplicate: u64,
    /// Packets so old that they are a replay.
    pub replayed: u64,
    /// Packets of other senders.
    pub foreign: u64,
    /// Datagrams that are none of this format.
    pub malformed: u64,
    /// Times that the sender was another one, or began anew: with another sequence, or timestamps that
    /// went back.
    pub restarts: u64,
    /// Frames that came whole.
    pub frames: u64,
    /// Frames of which something was missing.
    pub incomplete: u64,
    /// Whole frames with another checksum than their sender told.
    pub corrupt: u64,
    /// Frames whose last packet came more than a frame time after it was due.
    pub late: u64,
}

impl Counts {
    /// What was counted after `before`.
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            packets: self.packets - before.packets,
            bytes: self.bytes - before.bytes,
            lost: self.lost - before.lost,
            reordered: self.reordered - before.reordered,
            duplicate: self.duplicate - before.duplicate,
            replayed: self.replayed - before.replayed,
            foreign: self.foreign - before.foreign,
            malformed: self.malformed - before.malformed,
            restarts: self.restarts - before.restarts,
            frames: self.frames - before.frames,
            incomplete: self.incomplete - before.incomplete,
            corrupt: self.corrupt - before.corrupt,
            late: self.late - before.late,
        }
    }
}

/// A frame that is over, or of which nothing came.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// Its number since the epoch, as its RTP timestamp says.
    pub number: u64,
    /// Number of its content in its store, if the packets told.
    pub content: Option<u32>,
    /// When its first packet came; when it was due, if none did.
    pub first: Time,
    /// When its last packet came; `None` if none did.
    pub last: Option<Time>,
    /// When its first packet was due.
    pub due: Time,
    /// Bytes that came.
    pub bytes: usize,
    /// True if all came.
    pub whole: bool,
    /// Packets that came, each counted once.
    pub packets: u32,
    /// Packets that did not come, as large as this stream's are.
    pub lost: u32,
    /// Packets that came again.
    pub duplicate: u32,
    /// Packets that came after a later one.
    pub reordered: u32,
    /// How evenly its packets came.
    pub seen: Seen,
    /// True if it has the checksum that its sender told; `None` if it told none, or not all came, or
    /// nobody summed up.
    pub sound: Option<bool>,
    /// True if its last packet came more than a frame time after it was due.
    pub late: bool,
}

/// A frame under way.
#[derive(Debug)]
struct Open {
    timestamp: u32,
    frame: Frame,
    sum: u64,
    told: Option<u64>,
    picture: Vec<u8>,
}

/// What to do with frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Sum up the bytes and compare with the sender's checksum.
    pub verify: bool,
    /// Put the pictures together.
    pub pictures: bool,
}

/// Frames of which nothing came that are told of at a time.
const MISSING_MAX: u64 = 600;

/// Who hears of frames that are over: the frame, and its bytes if pictures are wanted.
pub type OnFrame<'a> = &'a mut dyn FnMut(&Frame, &[u8]);

/// One stream.
#[derive(Debug)]
pub struct Track {
    layout: Layout,
    payload_type: u8,
    epoch: Epoch,
    wanted: Wanted,
    sender: Option<(SocketAddrV4, u32)>,
    heard: Time,
    sequence: Sequence,
    evenness: Evenness,
    open: Vec<Open>,
    /// Memory of pictures, to be used again.
    spare: Vec<Vec<u8>>,
    /// The timestamp of the newest frame.
    newest: Option<u32>,
    /// The number of the newest frame.
    newest_number: Option<u64>,
    counts: Counts,
    seen: Seen,
}

impl Track {
    /// A stream of `layout`, whose frames' due times `epoch` tells.
    pub fn new(layout: Layout, payload_type: u8, epoch: Epoch, wanted: Wanted) -> Self {
        let period = layout.geometry().rate().period();
        Self {
            layout,
            payload_type,
            epoch,
            wanted,
            sender: None,
            heard: Time::ZERO,
            sequence: Sequence::default(),
            evenness: Evenness::new(layout.packets_per_frame(), period),
            open: Vec::new(),
            spare: Vec::new(),
            newest: None,
            newest_number: None,
            counts: Counts::default(),
            seen: Seen::default(),
        }
    }

    /// What was counted so far.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How evenly packets came since the last time that this was asked.
    pub fn evenness(&mut self) -> Seen {
        std::mem::take(&mut self.seen)
    }

    /// Takes a datagram that came at `now` from `from`.
    pub fn datagram(&mut self, now: Time, from: SocketAddrV4, bytes: &[u8], on_frame: OnFrame<'_>) {
        let Ok(packet) = self.layout.parse(bytes, self.payload_type) else {
            self.counts.malformed += 1;
            return;
        };
        if !self.is_own(now, from, packet.ssrc) {
            self.counts.foreign += 1;
            return;
        }
        let arrival = self.sequence.arrive(packet.sequence);
        if !self.count(arrival, packet.timestamp) {
            return;
        }
        if self.goes_back(arrival, packet.timestamp) || arrival == Arrival::Restart {
            self.restart(now, packet.timestamp, on_frame);
        }
        self.heard = now;
        self.counts.packets += 1;
        self.counts.bytes += bytes.len() as u64 + u64::from(IP_UDP_BYTES);
        let begins = self.newest != Some(packet.timestamp) && self.is_newer(packet.timestamp);
        let Some(at) = self.frame_of(now, packet.timestamp, begins, on_frame) else { return };
        self.evenness.packets(now, 1, begins);
        self.add_to_frame(now, at, &packet, arrival == Arrival::Reordered, on_frame);
    }

    /// Counts a packet; true if it is one that has not come before.
    fn count(&mut self, arrival: Arrival, timestamp: u32) -> bool {
        let counts = &mut self.counts;
        match arrival {
            Arrival::Ahead(lost) => counts.lost += i64::from(lost),
            Arrival::Reordered => {
                counts.reordered += 1;
                counts.lost -= 1;
            }
            Arrival::Restart => {}
            Arrival::Duplicate => {
                counts.duplicate += 1;
                let own = self.open.iter_mut().find(|open| open.timestamp == timestamp);
                if let Some(open) = own {
                    open.frame.duplicate += 1;
                }
                return false;
            }
            Arrival::Old => {
                counts.replayed += 1;
                return false;
            }
        }
        true
    }

    /// The stream is over: so are the frames under way.
    pub fn finish(&mut self, on_frame: OnFrame<'_>) {
        while !self.open.is_empty() {
            self.close(0, on_frame);
        }
    }

    /// The sender is the first one that is heard, and another one when that fell silent.
    fn is_own(&mut self, now: Time, from: SocketAddrV4, ssrc: u32) -> bool {
        if self.sender == Some((from, ssrc)) {
            return true;
        }
        if self.sender.is_some() && now.saturating_since(self.heard) < SILENCE {
            return false;
        }
        if self.sender.replace((from, ssrc)).is_some() {
            self.counts.restarts += 1;
            self.sequence = Sequence::default();
            (self.newest, self.newest_number) = (None, None);
        }
        true
    }

    /// True if timestamps go back though sequence numbers go on: the sender's clock was set.
    fn goes_back(&self, arrival: Arrival, timestamp: u32) -> bool {
        let other = self.newest.is_some_and(|newest| newest != timestamp);
        matches!(arrival, Arrival::Ahead(_)) && other && !self.is_newer(timestamp)
    }

    /// The same sender began anew: its open frames are over. Unless its timestamps go on soon after
    /// those before, as after an outage, they are others.
    fn restart(&mut self, now: Time, timestamp: u32, on_frame: OnFrame<'_>) {
        self.counts.restarts += 1;
        self.finish(on_frame);
        let number = self.number_of(now, timestamp);
        let ahead = self.newest_number.and_then(|newest| number.checked_sub(newest));
        if !self.is_newer(timestamp) || ahead.is_none_or(|frames| frames > MISSING_MAX) {
            (self.newest, self.newest_number) = (None, None);
        }
    }

    /// The number of the frame of a timestamp that came at `now`.
    fn number_of(&self, now: Time, timestamp: u32) -> u64 {
        let rate = self.layout.geometry().rate();
        rate.frame_of(timestamp, self.epoch.frame_at(rate, now))
    }

    fn is_newer(&self, timestamp: u32) -> bool {
        self.newest.is_none_or(|newest| timestamp.wrapping_sub(newest).cast_signed() > 0)
    }

    /// The place of the open frame with that timestamp; a new one if the packet begins it; `None` if it
    /// is over already: what had come of it then, counts.
    fn frame_of(
        &mut self,
        now: Time,
        timestamp: u32,
        begins: bool,
        on_frame: OnFrame<'_>,
    ) -> Option<usize> {
        let at = self.open.iter().position(|open| open.timestamp == timestamp);
        if at.is_some() || !begins {
            return at;
        }
        if self.open.len() == OPEN_MAX {
            self.close(0, on_frame);
        }
        let open = self.begin(now, timestamp);
        self.tell_missing(open.frame.number, on_frame);
        (self.newest, self.newest_number) = (Some(timestamp), Some(open.frame.number));
        self.open.push(open);
        Some(self.open.len() - 1)
    }

    /// Tells of the frames before `number` of which nothing came.
    fn tell_missing(&mut self, number: u64, on_frame: OnFrame<'_>) {
        let Some(before) = self.newest_number else { return };
        let missing = before + 1..number.min(before.saturating_add(MISSING_MAX));
        for number in missing {
            let mut frame = self.blank(number);
            frame.lost = self.layout.packets_per_frame();
            (self.counts.incomplete, self.counts.late) =
                (self.counts.incomplete + 1, self.counts.late + 1);
            on_frame(&frame, &[]);
        }
    }

    fn add_to_frame(
        &mut self,
        now: Time,
        at: usize,
        packet: &Received<'_>,
        reordered: bool,
        on_frame: OnFrame<'_>,
    ) {
        let (Wanted { verify, pictures }, open) = (self.wanted, &mut self.open[at]);
        for (offset, piece) in packet.pieces() {
            open.frame.bytes += piece.len();
            if verify && offset.is_multiple_of(checksum::WORD_BYTES) {
                open.sum = open.sum.wrapping_add(checksum::of_piece(offset, piece));
            }
            if pictures {
                open.picture[offset..offset + piece.len()].copy_from_slice(piece);
            }
        }
        open.frame.packets += 1;
        open.frame.reordered += u32::from(reordered);
        open.frame.last = Some(now);
        open.frame.content = packet.number.or(open.frame.content);
        open.told = packet.checksum.or(open.told);
        if open.frame.bytes >= self.layout.frame_bytes() {
            self.close(at, on_frame);
        }
    }

    /// Frame `number`, of which nothing has come.
    fn blank(&self, number: u64) -> Frame {
        let due = self.epoch.start(self.layout.geometry().rate(), number);
        Frame {
            number,
            content: None,
            first: due,
            last: None,
            due,
            bytes: 0,
            whole: false,
            packets: 0,
            lost: 0,
            duplicate: 0,
            reordered: 0,
            seen: Seen::default(),
            sound: None,
            late: true,
        }
    }

    fn begin(&mut self, now: Time, timestamp: u32) -> Open {
        let number = self.number_of(now, timestamp);
        let mut picture = self.spare.pop().unwrap_or_default();
        picture.resize(if self.wanted.pictures { self.layout.frame_bytes() } else { 0 }, 0);
        let frame = Frame { first: now, last: Some(now), late: false, ..self.blank(number) };
        Open { timestamp, frame, sum: 0, told: None, picture }
    }

    fn close(&mut self, at: usize, on_frame: OnFrame<'_>) {
        let Open { mut frame, sum, told, picture, .. } = self.open.remove(at);
        let period = self.layout.geometry().rate().period();
        frame.whole = frame.bytes == self.layout.frame_bytes();
        let summed = self.wanted.verify && frame.whole;
        frame.sound = told.filter(|_| summed).map(|told| told == sum);
        frame.late = frame.last.is_none_or(|last| last > frame.due + period * 2);
        let missing = self.layout.frame_bytes().saturating_sub(frame.bytes);
        frame.lost = missing.div_ceil(self.layout.piece_bytes()) as u32;
        frame.seen = self.evenness.take();
        self.seen = self.seen.and(&frame.seen);
        let counts = &mut self.counts;
        counts.frames += u64::from(frame.whole);
        counts.incomplete += u64::from(!frame.whole);
        counts.corrupt += u64::from(frame.sound == Some(false));
        counts.late += u64::from(frame.late);
        on_frame(&frame, &picture);
        self.spare.push(picture);
    }
}

#[cfg(test)]
#[path = "track_tests.rs"]
mod tests;
