//! A frame as it is put together from the packets of several paths. Pure.

use suiro_units::Time;

use super::SLOTS;
use crate::checksum;
use crate::packet::{Layout, Received};
use crate::receive::Wanted;

/// Senders of one frame that are distinguished.
const CANDIDATES_MAX: usize = 2;
/// Smallest packets that a frame is expected in, in bytes: with smaller ones, some count as duplicates.
const PIECE_BYTES_MIN: usize = 256;

/// The packets of one sender.
#[derive(Debug)]
pub struct Candidate {
    pub ssrc: u32,
    pub bytes: usize,
    pub packets: u32,
    pub duplicate: u32,
    pub content: Option<u32>,
    pub last: Time,
    pub picture: Vec<u8>,
    told: Option<u64>,
    sum: u64,
    /// A bit for each sequence number, by its lowest bits: set if it arrived.
    came: Vec<u64>,
}

/// A frame of which something has arrived, until its time is over.
#[derive(Debug)]
pub struct Open {
    pub number: u64,
    pub first: Time,
    pub candidates: Vec<Candidate>,
    /// When each path's first packet arrived, and how many did.
    pub paths: [Option<(Time, u32)>; SLOTS],
    /// Packets of it, once it has been handed on whole; 0 if it was handed on incomplete.
    pub done: Option<u32>,
}

/// The meaning of a packet for its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    New,
    Duplicate,
    /// Of a third sender.
    Foreign,
}

impl Open {
    pub const fn new(number: u64, first: Time) -> Self {
        Self { number, first, candidates: Vec::new(), paths: [None; SLOTS], done: None }
    }

    pub fn of(&self, ssrc: u32) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.ssrc == ssrc)
    }

    /// Adds a packet of path `slot`.
    pub fn add(
        &mut self,
        (now, slot): (Time, usize),
        packet: &Received<'_>,
        layout: &Layout,
        wanted: Wanted,
        spare: &mut Vec<Vec<u8>>,
    ) -> Added {
        let known = self.candidates.iter().position(|own| own.ssrc == packet.ssrc);
        if known.is_none() && (self.candidates.len() == CANDIDATES_MAX || self.done.is_some()) {
            return Added::Foreign;
        }
        let (_, count) = self.paths[slot].get_or_insert((now, 0));
        *count += 1;
        let at = known.unwrap_or_else(|| {
            let picture =
                if wanted.pictures { spare.pop().unwrap_or_default() } else { Vec::new() };
            self.candidates.push(Candidate::new(packet.ssrc, layout, wanted, picture, now));
            self.candidates.len() - 1
        });
        let done = self.done.is_some();
        self.candidates[at].add(now, packet, wanted, done)
    }
}

impl Candidate {
    fn new(ssrc: u32, layout: &Layout, wanted: Wanted, picture: Vec<u8>, now: Time) -> Self {
        let packets = layout.packets_per_frame() as usize * 2;
        let bits = packets.max(layout.frame_bytes() / PIECE_BYTES_MIN).next_power_of_two().max(64);
        let mut picture = picture;
        picture.resize(if wanted.pictures { layout.frame_bytes() } else { 0 }, 0);
        Self {
            ssrc,
            bytes: 0,
            packets: 0,
            duplicate: 0,
            content: None,
            last: now,
            picture,
            told: None,
            sum: 0,
            came: vec![0; bits / 64],
        }
    }

    fn add(&mut self, now: Time, packet: &Received<'_>, wanted: Wanted, done: bool) -> Added {
        let at = packet.sequence as usize % (self.came.len() * 64);
        let (word, bit) = (at / 64, 1 << (at % 64));
        if self.came[word] & bit != 0 {
            self.duplicate += 1;
            return Added::Duplicate;
        }
        if done {
            // The frame has been handed on: this is a packet that it went without.
            return Added::New;
        }
        self.came[word] |= bit;
        for (offset, piece) in packet.pieces() {
            self.bytes += piece.len();
            if wanted.verify && offset.is_multiple_of(checksum::WORD_BYTES) {
                self.sum = self.sum.wrapping_add(checksum::of_piece(offset, piece));
            }
            if let Some(own) = self.picture.get_mut(offset..offset + piece.len()) {
                own.copy_from_slice(piece);
            }
        }
        self.packets += 1;
        self.last = now;
        self.content = packet.number.or(self.content);
        self.told = packet.checksum.or(self.told);
        Added::New
    }

    /// True if all its bytes have arrived.
    pub const fn is_whole(&self, layout: &Layout) -> bool {
        self.bytes >= layout.frame_bytes()
    }

    /// True if it has the checksum that its sender gave; `None` if that is unknown.
    pub fn is_sound(&self, layout: &Layout, wanted: Wanted) -> Option<bool> {
        let told = self.told.filter(|_| wanted.verify && self.is_whole(layout));
        told.map(|told| told == self.sum)
    }
}
