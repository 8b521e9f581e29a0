//! The synthetic source: moving images, each containing its number, its part and a checksum, so that a received frame
//! can be verified without the original, whatever carried it.
//!
//! The first 64 samples of a frame are the stamp: each holds four bits v of it, as the value (v + 1) · 2^(depth − 5),
//! which is a legal video level. Its 32 bytes are: `suiro`, a zero, the part (2 bytes), the frame's number (8), and two
//! checksums ([`crate::checksum`], 8 each). The first is that of all bytes of the frame after the stamp, the second
//! that of the preceding bytes of the stamp. Numbers are little-endian.

use crate::checksum;
use crate::geometry::{Depth, Geometry};
use crate::picture::{pack, unpack};

/// Samples of a row that the stamp needs.
pub const STAMP_SAMPLES: usize = 64;
const STAMP_BYTES: usize = STAMP_SAMPLES / 2;
const MAGIC: &[u8; 6] = b"suiro\0";
/// Samples after which the pattern repeats, in a row and from row to row.
const PATTERN: usize = 512;

/// The contents of a frame's stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Number of the frame.
    pub number: u64,
    /// Which part of the whole image it is.
    pub part: u16,
    /// True if the rest of the frame is unchanged.
    pub sound: bool,
}

/// True if frames of this geometry have room for a stamp.
pub fn fits(geometry: &Geometry) -> bool {
    geometry.row_samples() as usize >= STAMP_SAMPLES
}

/// Draws a frame: a diagonal ramp that moves by eight samples with each frame and differs between parts, and the stamp.
///
/// # Panics
/// If `frame` does not have the geometry's size, or the stamp does not fit ([`fits`]).
pub fn draw(geometry: &Geometry, number: u64, part: u16, frame: &mut [u8]) {
    assert_eq!(frame.len(), geometry.frame_bytes(), "a frame is drawn completely");
    assert!(fits(geometry), "a row has room for the stamp");
    let depth = geometry.depth();
    let samples = geometry.row_samples() as usize;
    let phase = (number % PATTERN as u64) as usize * 8 + usize::from(part) * 37;
    // Each row is the one above, shifted by a sample: one long row contains them all.
    let ramp: Vec<_> =
        (0..samples + PATTERN).map(|at| level(depth, (at + phase) % PATTERN)).collect();
    for (number, row) in frame.chunks_exact_mut(geometry.row_bytes() as usize).enumerate() {
        pack(depth, &ramp[number % PATTERN..][..samples], row);
    }
    stamp(depth, number, part, frame);
}

/// A level of the ramp, from black to white and back.
fn level(depth: Depth, at: usize) -> u16 {
    let half = PATTERN / 2;
    let height = if at < half { at } else { PATTERN - 1 - at };
    // 16 to 235 in 8 bits.
    ((16 + height * 219 / half) << (depth.bits() - 8)) as u16
}

fn stamped_bytes(depth: Depth) -> usize {
    STAMP_SAMPLES * depth.bits() as usize / 8
}

fn stamp(depth: Depth, number: u64, part: u16, frame: &mut [u8]) {
    let (head, rest) = frame.split_at_mut(stamped_bytes(depth));
    let mut bytes = [0; STAMP_BYTES];
    bytes[..6].copy_from_slice(MAGIC);
    bytes[6..8].copy_from_slice(&part.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes[16..24].copy_from_slice(&checksum::of_frame(rest).to_le_bytes());
    let own = checksum::of_frame(&bytes[..24]);
    bytes[24..].copy_from_slice(&own.to_le_bytes());
    pack(depth, &levels(depth, bytes), head);
}

/// The samples that encode the stamp's bytes.
fn levels(depth: Depth, bytes: [u8; STAMP_BYTES]) -> [u16; STAMP_SAMPLES] {
    let mut samples = [0; STAMP_SAMPLES];
    for (pair, byte) in samples.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [byte >> 4, byte & 0xf].map(|v| (u16::from(v) + 1) << (depth.bits() - 5));
    }
    samples
}

/// Reads and verifies the stamp of a frame; `None` if it is missing or damaged.
pub fn verify(geometry: &Geometry, frame: &[u8]) -> Option<Stamp> {
    let depth = geometry.depth();
    let (head, rest) = frame.split_at_checked(stamped_bytes(depth))?;
    let mut samples = [0; STAMP_SAMPLES];
    unpack(depth, head, &mut samples);
    let mut bytes = [0; STAMP_BYTES];
    for (byte, pair) in bytes.iter_mut().zip(samples.as_chunks::<2>().0) {
        let [high, low] = pair.map(|s| (s >> (depth.bits() - 5)).wrapping_sub(1) as u8);
        *byte = (high << 4) | (low & 0xf);
    }
    let wide = |at: usize| bytes[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let exact = levels(depth, bytes) == samples;
    if !exact || &bytes[..6] != MAGIC || wide(24)? != checksum::of_frame(&bytes[..24]) {
        return None;
    }
    let part = u16::from_le_bytes([bytes[6], bytes[7]]);
    let sound = frame.len() == geometry.frame_bytes() && wide(16)? == checksum::of_frame(rest);
    Some(Stamp { number: wide(8)?, part, sound })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{FrameRate, Sampling};

    fn small(depth: Depth) -> Geometry {
        Geometry::new((64, 9), Sampling::YCbCr422, depth, FrameRate::P59_94).unwrap()
    }

    #[test]
    fn a_frame_carries_its_number_and_can_be_verified() {
        for geometry in Depth::ALL.map(small).into_iter().chain([Geometry::HD]) {
            let mut frame = vec![0; geometry.frame_bytes()];
            draw(&geometry, u64::MAX - 3, 7, &mut frame);
            let stamp = Stamp { number: u64::MAX - 3, part: 7, sound: true };
            assert_eq!(verify(&geometry, &frame), Some(stamp));
            let last = frame.len() - 1;
            frame[last] ^= 1;
            assert_eq!(verify(&geometry, &frame), Some(Stamp { sound: false, ..stamp }));
            frame[0] ^= 1;
            assert_eq!(verify(&geometry, &frame), None);
        }
    }

    #[test]
    fn frames_move_and_parts_differ_within_legal_levels() {
        let geometry = small(Depth::Ten);
        let drawn = |number, part| {
            let mut frame = vec![0; geometry.frame_bytes()];
            draw(&geometry, number, part, &mut frame);
            let mut samples = vec![0; frame.len() * 8 / 10];
            unpack(Depth::Ten, &frame, &mut samples);
            samples
        };
        let first = drawn(0, 0);
        assert!(first.iter().all(|sample| (4..1020).contains(sample)), "protected codes");
        // After the stamp, eight samples per frame.
        assert_eq!(first[136..256], drawn(1, 0)[128..248]);
        assert_ne!(first[128..], drawn(0, 1)[128..]);
    }
}
