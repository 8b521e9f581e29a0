//! One stream as it is received: counts packets, and reports frames as complete or incomplete. Pure: times and
//! datagrams are arguments.

use suiro_units::{Duration, Time};

use super::sequence::{Arrival, Sequence};
use crate::checksum;
use crate::epoch::Epoch;
use crate::measure::{Evenness, Seen};
use crate::packet::{IP_UDP_BYTES, Layout, Received};

/// After this time without a packet from its sender, a stream accepts another sender.
const SILENCE: Duration = Duration::from_millis(200);
/// Frames in progress at a time: packets of an earlier frame may still arrive.
const OPEN_MAX: usize = 2;
/// A frame that arrives further than this from its due time by TAI was not sent by a sender with the same clock: the
/// leap seconds alone are 37 s. No network and no sender of ours delays as much.
const APART_MAX: Duration = Duration::from_secs(5);

/// Counts of packets and frames. Bytes are those of IP packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of the stream, duplicates excluded.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Missing packets, by sequence numbers: none between two sequences ([`Self::restarts`]). One that arrives late is
    /// subtracted again, so the count of a second may be negative.
    pub lost: i64,
    /// Packets that arrived after a later one.
    pub reordered: u64,
    /// Packets that arrived again.
    pub duplicate: u64,
    /// Packets so old that they count as a replay.
    pub replayed: u64,
    /// Packets from other senders: with another synchronisation source.
    pub foreign: u64,
    /// Datagrams that are not in this format.
    pub malformed: u64,
    /// How often the sender changed or restarted: with another sequence, or timestamps that went back.
    pub restarts: u64,
    /// Frames that arrived completely.
    pub frames: u64,
    /// Frames of which something was missing. All of an outage count if its sender before and the one after have the
    /// receiver's clock.
    pub incomplete: u64,
    /// Complete frames whose checksum differs from the one their sender gave.
    pub corrupt: u64,
    /// Frames whose due time is known, because their sender has the receiver's clock.
    pub timed: u64,
    /// Of these, frames whose last packet arrived more than a frame time after it was due.
    pub late: u64,
}

impl Counts {
    /// The counts since `before`.
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
            timed: self.timed - before.timed,
            late: self.late - before.late,
        }
    }

    /// Frames that were late; `None` if no frame's due time is known.
    pub fn late_if_known(&self) -> Option<u64> {
        (self.timed > 0).then_some(self.late)
    }
}

/// A frame that is finished, or of which nothing arrived.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// Its number since the epoch, from its RTP timestamp.
    pub number: u64,
    /// Number of its content in its store, if the packets carry it.
    pub content: Option<u32>,
    /// When its first packet arrived; when it should have arrived, if none did.
    pub first: Time,
    /// When its last packet arrived; `None` if none did.
    pub last: Option<Time>,
    /// When its first packet was due; `None` if the sender has another clock: it arrived more than 5 s from then.
    pub due: Option<Time>,
    /// Bytes that arrived.
    pub bytes: usize,
    /// True if all arrived.
    pub whole: bool,
    /// Packets that arrived, each counted once.
    pub packets: u32,
    /// Packets that did not arrive; until a first frame is complete, as many as the missing bytes would fill. Of the frame
    /// with which the stream began, and of one that was in progress when receiving ended, only the packets between two
    /// that arrived: what was sent before or after was not lost.
    pub lost: u32,
    /// Packets that arrived again.
    pub duplicate: u32,
    /// Packets that arrived after a later one.
    pub reordered: u32,
    /// How evenly its packets arrived; `None` until a first frame is complete, which shows how many packets its sender
    /// makes of one.
    pub seen: Option<Seen>,
    /// True if it has the checksum that its sender gave; `None` if the sender gave none, the frame is incomplete, or
    /// checksums were not computed.
    pub sound: Option<bool>,
    /// True if its last packet arrived more than a frame time after it was due, or no packet arrived; `None` if the due
    /// time is unknown.
    pub late: Option<bool>,
}

/// A frame in progress.
#[derive(Debug)]
struct Open {
    timestamp: u32,
    frame: Frame,
    sum: u64,
    told: Option<u64>,
    picture: Vec<u8>,
    /// True if it is the first frame of the stream: what was sent of it before its first packet arrived was not lost.
    is_first: bool,
    /// The lowest and the highest sequence number that arrived of it.
    sequences: (u32, u32),
}

/// What to do with frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Compute the checksum and compare it with the sender's.
    pub verify: bool,
    /// Assemble the images.
    pub pictures: bool,
}

/// Most frames of which nothing arrived that are reported at a time; without a common clock, also most that count.
const MISSING_MAX: u64 = 600;

/// A callback for finished frames: the frame, and its bytes if images are wanted.
pub type OnFrame<'a> = &'a mut dyn FnMut(&Frame, &[u8]);

/// One stream.
#[derive(Debug)]
pub struct Track {
    layout: Layout,
    payload_type: u8,
    epoch: Epoch,
    wanted: Wanted,
    /// The synchronisation source. A stream that moves to another node keeps it, and addresses do not matter (RFC 3550
    /// §8): all nodes that can send a stream give a packet the same number.
    sender: Option<u32>,
    heard: Time,
    sequence: Sequence,
    /// Packets that the sender makes of a frame, and how evenly they arrive: known once a frame is complete.
    learnt: Option<(u32, Evenness)>,
    /// The largest IP packet of the sender.
    largest: u32,
    open: Vec<Open>,
    /// Memory of images, for reuse.
    spare: Vec<Vec<u8>>,
    /// The timestamp of the newest frame.
    newest: Option<u32>,
    /// The number of the newest frame.
    newest_number: Option<u64>,
    /// True if the due time of the newest frame is known.
    is_timed: bool,
    counts: Counts,
    seen: Option<Seen>,
}

impl Track {
    /// A stream of `layout`; `epoch` determines when its frames are due.
    pub fn new(layout: Layout, payload_type: u8, epoch: Epoch, wanted: Wanted) -> Self {
        Self {
            layout,
            payload_type,
            epoch,
            wanted,
            sender: None,
            heard: Time::ZERO,
            sequence: Sequence::default(),
            learnt: None,
            largest: 0,
            open: Vec::new(),
            spare: Vec::new(),
            newest: None,
            newest_number: None,
            is_timed: false,
            counts: Counts::default(),
            seen: None,
        }
    }

    /// The counts so far.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How evenly packets arrived since the last call; `None` if it is unknown for every frame.
    pub const fn evenness(&mut self) -> Option<Seen> {
        self.seen.take()
    }

    /// Takes a datagram that arrived at `now`.
    pub fn datagram(&mut self, now: Time, bytes: &[u8], on_frame: OnFrame<'_>) {
        let Ok(packet) = self.layout.parse(bytes, self.payload_type) else {
            self.counts.malformed += 1;
            return;
        };
        if !self.is_own(now, packet.ssrc) {
            self.counts.foreign += 1;
            return;
        }
        if self.sender.replace(packet.ssrc).is_some_and(|before| before != packet.ssrc) {
            self.sequence = Sequence::default();
            self.restart(now, packet.timestamp, true, on_frame);
        }
        let arrival = self.sequence.arrive(packet.sequence);
        if !self.count(arrival, packet.timestamp) {
            return;
        }
        if self.goes_back(arrival, packet.timestamp) || arrival == Arrival::Restart {
            self.restart(now, packet.timestamp, false, on_frame);
        }
        self.heard = now;
        self.counts.packets += 1;
        let ip_bytes = bytes.len() as u32 + IP_UDP_BYTES;
        self.counts.bytes += u64::from(ip_bytes);
        self.largest = self.largest.max(ip_bytes);
        let begins = self.newest != Some(packet.timestamp) && self.is_newer(packet.timestamp);
        let packet_of = (packet.timestamp, packet.sequence);
        let Some(at) = self.frame_of(now, packet_of, begins, on_frame) else { return };
        if let Some((_, evenness)) = &mut self.learnt {
            evenness.packets(now, 1, begins);
        }
        self.add_to_frame(now, at, &packet, arrival == Arrival::Reordered, on_frame);
    }

    /// Counts a packet; true if it has not arrived before.
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

    /// Receiving ends at `now`, and so do the frames in progress.
    pub fn finish(&mut self, now: Time, on_frame: OnFrame<'_>) {
        let period = self.layout.geometry().rate().period();
        while let Some(open) = self.open.first() {
            let in_progress = now < open.frame.first + period;
            self.close(0, in_progress, on_frame);
        }
    }

    /// The sender is the first one heard, and another one once that has fallen silent.
    fn is_own(&self, now: Time, ssrc: u32) -> bool {
        let is_silent = now.saturating_since(self.heard) >= SILENCE;
        self.sender.is_none_or(|sender| sender == ssrc || is_silent)
    }

    /// True if timestamps go back although sequence numbers go on: the sender's clock was set.
    fn goes_back(&self, arrival: Arrival, timestamp: u32) -> bool {
        let other = self.newest.is_some_and(|newest| newest != timestamp);
        matches!(arrival, Arrival::Ahead(_)) && other && !self.is_newer(timestamp)
    }

    /// The sender restarted, or is another one: open frames are finished. If the frame numbers follow the same clock as
    /// before, those between are missing; so are they if the same sender's timestamps continue shortly after the earlier
    /// ones, as after an outage. Else nothing is known of what was before.
    fn restart(&mut self, now: Time, timestamp: u32, is_other: bool, on_frame: OnFrame<'_>) {
        self.counts.restarts += 1;
        while !self.open.is_empty() {
            self.close(0, false, on_frame);
        }
        let number = self.number_of(now, timestamp);
        let due = self.due(now, number);
        let ahead = self.newest_number.map_or(0, |newest| number.saturating_sub(newest));
        let has_clock = self.is_timed && due.is_some();
        let continues = !is_other && self.is_newer(timestamp) && ahead <= MISSING_MAX;
        if ahead > 0 && (has_clock || continues) {
            self.tell_missing(&blank(number, now, due), on_frame);
            // The frame itself is next.
            (self.newest, self.newest_number) = (Some(timestamp.wrapping_sub(1)), Some(number - 1));
        } else {
            (self.newest, self.newest_number) = (None, None);
        }
        (self.learnt, self.largest) = (None, 0);
    }

    /// The number of the frame with a timestamp that arrived at `now`.
    fn number_of(&self, now: Time, timestamp: u32) -> u64 {
        let rate = self.layout.geometry().rate();
        rate.frame_of(timestamp, self.epoch.frame_at(rate, now))
    }

    fn is_newer(&self, timestamp: u32) -> bool {
        self.newest.is_none_or(|newest| timestamp.wrapping_sub(newest).cast_signed() > 0)
    }

    /// The index of the open frame with that timestamp, which is new if the packet begins it; `None` if it is already
    /// finished, in which case what had arrived by then counts.
    fn frame_of(
        &mut self,
        now: Time,
        (timestamp, sequence): (u32, u32),
        begins: bool,
        on_frame: OnFrame<'_>,
    ) -> Option<usize> {
        let at = self.open.iter().position(|open| open.timestamp == timestamp);
        if at.is_some() || !begins {
            return at;
        }
        if self.open.len() == OPEN_MAX {
            self.close(0, false, on_frame);
        }
        let open = self.begin(now, timestamp, sequence);
        self.tell_missing(&open.frame, on_frame);
        (self.newest, self.newest_number) = (Some(timestamp), Some(open.frame.number));
        self.is_timed = open.frame.due.is_some();
        self.open.push(open);
        Some(self.open.len() - 1)
    }

    /// Reports the frames before `frame` of which nothing arrived: the first ones of a long outage, of which the others only
    /// count.
    fn tell_missing(&mut self, frame: &Frame, on_frame: OnFrame<'_>) {
        let Some(before) = self.newest_number else { return };
        let (rate, period) =
            (self.layout.geometry().rate(), self.layout.geometry().rate().period());
        let told = frame.number.min(before.saturating_add(MISSING_MAX));
        for number in before + 1..told {
            let due = frame.due.map(|_| self.epoch.start(rate, number));
            let first = due.unwrap_or(frame.first.saturating_sub(period * (frame.number - number)));
            let missing = Frame { lost: self.packets_per_frame(), ..blank(number, first, due) };
            self.counts.incomplete += 1;
            self.count_late(missing.late);
            on_frame(&missing, &[]);
        }
        if self.is_timed && frame.due.is_some() {
            let rest = frame.number - told;
            self.counts.incomplete += rest;
            self.counts.timed += rest;
            self.counts.late += rest;
        }
    }

    /// What is known about how a sender splits a frame.
    fn packets_per_frame(&self) -> u32 {
        self.learnt
            .as_ref()
            .map_or_else(|| self.layout.packets_per_frame(), |(packets, _)| *packets)
    }

    fn count_late(&mut self, late: Option<bool>) {
        self.counts.timed += u64::from(late.is_some());
        self.counts.late += u64::from(late == Some(true));
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
        let (lowest, highest) = &mut open.sequences;
        if packet.sequence.wrapping_sub(*lowest).cast_signed() < 0 {
            *lowest = packet.sequence;
        }
        if packet.sequence.wrapping_sub(*highest).cast_signed() > 0 {
            *highest = packet.sequence;
        }
        open.frame.packets += 1;
        open.frame.reordered += u32::from(reordered);
        open.frame.last = Some(now);
        open.frame.content = packet.number.or(open.frame.content);
        open.told = packet.checksum.or(open.told);
        if open.frame.bytes >= self.layout.frame_bytes() {
            self.close(at, false, on_frame);
        }
    }

    /// When frame `number`, which arrived at `now`, was due; `None` if its sender has another clock. This is the only
    /// place where that is decided.
    fn due(&self, now: Time, number: u64) -> Option<Time> {
        let due = self.epoch.start(self.layout.geometry().rate(), number);
        (due.max(now).saturating_since(due.min(now)) <= APART_MAX).then_some(due)
    }

    fn begin(&mut self, now: Time, timestamp: u32, sequence: u32) -> Open {
        let number = self.number_of(now, timestamp);
        let mut picture = self.spare.pop().unwrap_or_default();
        picture.resize(if self.wanted.pictures { self.layout.frame_bytes() } else { 0 }, 0);
        let due = self.due(now, number);
        let frame = Frame { last: Some(now), ..blank(number, now, due) };
        let (is_first, sequences) = (self.newest.is_none(), (sequence, sequence));
        Open { timestamp, frame, sum: 0, told: None, picture, is_first, sequences }
    }

    /// Packets of a finished frame that did not arrive, at least one if it is incomplete.
    fn lost(&self, frame: &Frame) -> u32 {
        if frame.whole {
            return 0;
        }
        let missing = self.layout.frame_bytes().saturating_sub(frame.bytes);
        let packets = frame.packets as usize;
        let lost = match &self.learnt {
            Some((all, _)) => (*all as usize).saturating_sub(packets),
            // Assumed as large as those that arrived.
            None => (missing * packets).div_ceil(frame.bytes.max(1)),
        };
        u32::try_from(lost.max(1)).unwrap_or(u32::MAX)
    }

    /// Finishes an open frame; `in_progress` if receiving ends in the middle of it.
    fn close(&mut self, at: usize, in_progress: bool, on_frame: OnFrame<'_>) {
        let Open { mut frame, sum, told, picture, is_first, sequences, .. } = self.open.remove(at);
        let period = self.layout.geometry().rate().period();
        frame.whole = frame.bytes == self.layout.frame_bytes();
        let summed = self.wanted.verify && frame.whole;
        frame.sound = told.filter(|_| summed).map(|told| told == sum);
        frame.late = frame.due.map(|due| frame.last.is_none_or(|last| last > due + period * 2));
        frame.lost = if is_first || in_progress {
            let (lowest, highest) = sequences;
            highest.wrapping_sub(lowest).saturating_add(1).saturating_sub(frame.packets)
        } else {
            self.lost(&frame)
        };
        frame.seen = self.learnt.as_mut().map(|(_, evenness)| evenness.take());
        self.seen = Seen::both(self.seen, frame.seen);
        if frame.whole && self.learnt.is_none() {
            let evenness = Evenness::new(frame.packets, self.largest, period);
            self.learnt = Some((frame.packets, evenness));
        }
        let counts = &mut self.counts;
        counts.frames += u64::from(frame.whole);
        counts.incomplete += u64::from(!frame.whole);
        counts.corrupt += u64::from(frame.sound == Some(false));
        self.count_late(frame.late);
        on_frame(&frame, &picture);
        self.spare.push(picture);
    }
}

/// Frame `number`, of which nothing has arrived.
pub(crate) const fn blank(number: u64, first: Time, due: Option<Time>) -> Frame {
    Frame {
        number,
        content: None,
        first,
        last: None,
        due,
        bytes: 0,
        whole: false,
        packets: 0,
        lost: 0,
        duplicate: 0,
        reordered: 0,
        seen: None,
        sound: None,
        late: if due.is_some() { Some(true) } else { None },
    }
}

#[cfg(test)]
mod tests;
