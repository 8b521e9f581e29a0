//! A frame's checksum: a sum of its words, each scattered by its place, so that pieces may be added in
//! any order and a receiver need not put the frame together to verify it.
//!
//! Word i is the 8 bytes at offset 8·i, little-endian, the last one filled up with zeros. The checksum
//! is Σ s(i, wᵢ) modulo 2^64, with s(i, w) = m ⊕ ⌊m / 2^32⌋ and m = (w ⊕ i·P) · Q modulo 2^64, where
//! P = 0x9e3779b97f4a7c15 and Q = 0xd6e8feb86659fd93.
//!
//! For a given place s is a bijection, so one wrong word is always found, and several cancel out with
//! a probability of about 2^-64. It is no protection against intent. A CRC-32C would need the pieces
//! in order, or tables to combine them.

const P: u64 = 0x9e37_79b9_7f4a_7c15;
const Q: u64 = 0xd6e8_feb8_6659_fd93;

/// Bytes of a word: pieces other than the last begin and end at multiples of it.
pub const WORD_BYTES: usize = 8;

/// The checksum of a whole frame.
pub fn of_frame(frame: &[u8]) -> u64 {
    of_piece(0, frame)
}

/// What a piece of a frame adds to its checksum: the pieces' sum, wrapping, is the frame's.
///
/// # Panics
/// If `offset`, the piece's place in the frame in bytes, is no multiple of [`WORD_BYTES`].
pub fn of_piece(offset: usize, piece: &[u8]) -> u64 {
    assert!(offset.is_multiple_of(WORD_BYTES), "a piece begins with a word");
    let mut place = (offset / WORD_BYTES) as u64;
    let (words, rest) = piece.as_chunks::<WORD_BYTES>();
    let mut sum = 0u64;
    for word in words {
        sum = sum.wrapping_add(scattered(place, u64::from_le_bytes(*word)));
        place += 1;
    }
    if !rest.is_empty() {
        let mut word = [0; WORD_BYTES];
        word[..rest.len()].copy_from_slice(rest);
        sum = sum.wrapping_add(scattered(place, u64::from_le_bytes(word)));
    }
    sum
}

fn scattered(place: u64, word: u64) -> u64 {
    let mixed = (word ^ place.wrapping_mul(P)).wrapping_mul(Q);
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Vec<u8> {
        (0..100_003u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    #[test]
    fn it_is_what_is_documented() {
        assert_eq!(of_frame(&[]), 0);
        assert_eq!(of_frame(&[1]), Q ^ (Q >> 32));
        let second = (2 ^ P).wrapping_mul(Q);
        let two = [1, 0, 0, 0, 0, 0, 0, 0, 2];
        assert_eq!(of_frame(&two), (Q ^ (Q >> 32)).wrapping_add(second ^ (second >> 32)));
    }

    #[test]
    fn pieces_add_up_in_any_order() {
        let frame = frame();
        let pieces: Vec<_> = frame.chunks(8736).enumerate().collect();
        let backwards = pieces.iter().rev().map(|(i, piece)| of_piece(i * 8736, piece));
        assert_eq!(backwards.fold(0u64, u64::wrapping_add), of_frame(&frame));
    }

    #[test]
    fn it_finds_a_flipped_bit_and_exchanged_pieces() {
        let mut frame = frame();
        let sum = of_frame(&frame);
        for bit in (0..frame.len() * 8).step_by(997) {
            frame[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(of_frame(&frame), sum, "bit {bit}");
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        let (left, right) = frame.split_at_mut(4096);
        left[..800].swap_with_slice(&mut right[..800]);
        assert_ne!(of_frame(&frame), sum);
    }
}
