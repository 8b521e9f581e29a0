//! A frame's checksum: a sum of its words, each scattered according to its position, so that pieces can be added in any
//! order and a receiver can verify a frame without assembling it.
//!
//! Word i is the 8 bytes at offset 8·i, little-endian, with the last one padded with zeros. The checksum is Σ s(i, wᵢ)
//! modulo 2^64, with s(i, w) = ⌊m / 2^32⌋ · (m mod 2^32) + r(w), where m = w ⊕ (i + 1)·P modulo 2^64, P =
//! 0x9e3779b97f4a7c15, and r swaps the halves of a word.
//!
//! The products scatter words according to their positions, and vector units compute them fast. The words themselves
//! are added because a product hides a change in one half if the other half is 0. Accidental damage goes unnoticed
//! about once in 2^64; the checksum does not protect against deliberate changes. A CRC-32C would need the pieces in
//! order, or tables to combine them.

const P: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bytes in a word: pieces other than the last begin and end at multiples of it.
pub const WORD_BYTES: usize = 8;

/// The checksum of a whole frame.
pub fn of_frame(frame: &[u8]) -> u64 {
    of_piece(0, frame)
}

/// What a piece of a frame adds to its checksum: the wrapping sum over all pieces is the frame's checksum.
///
/// # Panics
/// If `offset`, the piece's position in the frame in bytes, is not a multiple of [`WORD_BYTES`].
pub fn of_piece(offset: usize, piece: &[u8]) -> u64 {
    assert!(offset.is_multiple_of(WORD_BYTES), "a piece begins at a word");
    let first = (offset / WORD_BYTES) as u64;
    let (words, rest) = piece.as_chunks::<WORD_BYTES>();
    let sum = of_words(first, words);
    if rest.is_empty() {
        return sum;
    }
    let mut word = [0; WORD_BYTES];
    word[..rest.len()].copy_from_slice(rest);
    sum.wrapping_add(of_words(first + words.len() as u64, &[word]))
}

/// What the words from number `first` on add, with the widest vectors of this CPU: with AVX2 it is twice as fast
/// as without.
fn of_words(first: u64, words: &[[u8; WORD_BYTES]]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn wide(first: u64, words: &[[u8; WORD_BYTES]]) -> u64 {
            sum(first, words)
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has the features that the function needs.
            return unsafe { wide(first, words) };
        }
    }
    sum(first, words)
}

#[inline(always)]
fn sum(first: u64, words: &[[u8; WORD_BYTES]]) -> u64 {
    let mut key = first.wrapping_add(1).wrapping_mul(P);
    let mut sum = 0u64;
    for word in words {
        sum = sum.wrapping_add(scattered(key, u64::from_le_bytes(*word)));
        key = key.wrapping_add(P);
    }
    sum
}

#[inline(always)]
fn scattered(key: u64, word: u64) -> u64 {
    let mixed = word ^ key;
    (mixed >> 32).wrapping_mul(mixed & 0xffff_ffff).wrapping_add(word.rotate_left(32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Vec<u8> {
        (0..100_003u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    #[test]
    fn it_matches_the_documentation() {
        assert_eq!(of_frame(&[]), 0);
        let mixed = P ^ 1;
        let first = (mixed >> 32) * (mixed & 0xffff_ffff) + (1 << 32);
        assert_eq!(of_frame(&[1]), first);
        let mixed = P.wrapping_mul(2) ^ 2;
        let second = (mixed >> 32) * (mixed & 0xffff_ffff) + (2 << 32);
        assert_eq!(of_frame(&[1, 0, 0, 0, 0, 0, 0, 0, 2]), first.wrapping_add(second));
    }

    #[test]
    fn it_is_the_same_with_and_without_wide_vectors() {
        let frame = frame();
        let (words, _) = frame.as_chunks::<WORD_BYTES>();
        for length in [0, 1, 3, 4, 5, 8, 1095, words.len()] {
            assert_eq!(of_words(7, &words[..length]), sum(7, &words[..length]), "{length}");
        }
    }

    #[test]
    fn it_finds_a_change_that_a_product_hides() {
        // The upper half of this word makes the upper half of the product 0.
        let hidden = |low: u64| (P & (0xffff_ffff << 32) | low).to_le_bytes();
        assert_ne!(of_frame(&hidden(1)), of_frame(&hidden(2)));
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
