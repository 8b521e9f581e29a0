//! The discrete cosine transform of blocks of 8×8, and how finely its coefficients are kept.

use std::f32::consts::PI;
use std::sync::LazyLock;

/// Samples or coefficients of a block, by rows.
pub(super) type Block = [f32; 64];
/// Quantised coefficients in zigzag order, the lowest frequency first.
pub(super) type Levels = [i16; 64];

/// Greatest magnitude of a level but the first: with 64 of them, a macroblock stays below a packet.
const LEVEL_MAX: f32 = 255.0;
/// That of the first, the block's mean.
const MEAN_MAX: f32 = 2047.0;

/// `BASIS[u][x]`: the orthonormal basis of the transform (ITU-T T.81 §A.3.3).
static BASIS: LazyLock<[[f32; 8]; 8]> = LazyLock::new(|| {
    std::array::from_fn(|u| {
        let scale = if u == 0 { (1.0f32 / 8.0).sqrt() } else { 0.5 };
        std::array::from_fn(|x| scale * ((2 * x + 1) as f32 * u as f32 * PI / 16.0).cos())
    })
});

/// The places of a block along its diagonals, from the lowest frequency to the highest.
static ZIGZAG: LazyLock<[usize; 64]> = LazyLock::new(|| {
    let mut places: [usize; 64] = std::array::from_fn(|place| place);
    places.sort_by_key(|place| {
        let (row, column) = (place / 8, place % 8);
        let diagonal = row + column;
        // Even diagonals go up, odd ones down.
        (diagonal, if diagonal % 2 == 0 { column } else { row })
    });
    places
});

/// Samples to coefficients.
pub(super) fn forward(block: &Block) -> Block {
    let basis = &*BASIS;
    let mut rows = [0.0; 64];
    for y in 0..8 {
        for u in 0..8 {
            rows[y * 8 + u] = (0..8).map(|x| block[y * 8 + x] * basis[u][x]).sum();
        }
    }
    let mut out = [0.0; 64];
    for v in 0..8 {
        for u in 0..8 {
            out[v * 8 + u] = (0..8).map(|y| rows[y * 8 + u] * basis[v][y]).sum();
        }
    }
    out
}

/// Coefficients to samples.
pub(super) fn inverse(block: &Block) -> Block {
    let basis = &*BASIS;
    let mut columns = [0.0; 64];
    for y in 0..8 {
        for u in 0..8 {
            columns[y * 8 + u] = (0..8).map(|v| block[v * 8 + u] * basis[v][y]).sum();
        }
    }
    let mut out = [0.0; 64];
    for y in 0..8 {
        for x in 0..8 {
            out[y * 8 + x] = (0..8).map(|u| columns[y * 8 + u] * basis[u][x]).sum();
        }
    }
    out
}

/// The step of a coefficient: higher frequencies are kept less finely, in the manner of ITU-T T.81 annex K.
fn step(place: usize, scale: u8) -> f32 {
    if place == 0 {
        return 8.0;
    }
    let frequency = (place / 8 + place % 8) as f32;
    f32::from(scale) * (1.0 + frequency / 2.0)
}

/// Coefficients to levels.
pub(super) fn quantise(block: &Block, scale: u8) -> Levels {
    let zigzag = &*ZIGZAG;
    std::array::from_fn(|n| {
        let place = zigzag[n];
        let max = if n == 0 { MEAN_MAX } else { LEVEL_MAX };
        (block[place] / step(place, scale)).round().clamp(-max, max) as i16
    })
}

/// Levels to coefficients.
pub(super) fn dequantise(levels: &Levels, scale: u8) -> Block {
    let mut block = [0.0; 64];
    for (place, level) in ZIGZAG.iter().zip(levels) {
        block[*place] = f32::from(*level) * step(*place, scale);
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_gives_the_samples_back() {
        let block: Block = std::array::from_fn(|n| ((n * 37 + n * n) % 256) as f32 - 128.0);
        let again = inverse(&forward(&block));
        for (a, b) in block.iter().zip(&again) {
            assert!((a - b).abs() < 0.01, "{a} {b}");
        }
        // A constant block is its mean alone, times 8.
        let flat = forward(&[10.0; 64]);
        assert!((flat[0] - 80.0).abs() < 0.01 && flat[1..].iter().all(|c| c.abs() < 0.01));
    }

    #[test]
    fn zigzag_begins_as_the_standard_has_it() {
        // ITU-T T.81 figure A.6.
        assert_eq!(ZIGZAG[..10], [0, 1, 8, 16, 9, 2, 3, 10, 17, 24]);
        assert_eq!(ZIGZAG[63], 63);
    }
}
