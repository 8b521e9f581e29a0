//! What the camera sees: a synthetic scene that moves smoothly and has detail everywhere, as a head before a curtain has.

use crate::codec::{Picture, Size};

/// Fixed-point angle: a full turn is 256.
const TURN: u32 = 256;

/// The scene at frame `number`.
pub fn see(size: Size, number: u32) -> Picture {
    let mut picture = Picture::grey(size);
    let (width, height) = (size.width(), size.height());
    // The head sways once in 64 frames; the curtain's folds drift slowly.
    let sway = wave(number * TURN / 64) * width as i32 / 1600;
    let (middle_x, middle_y) = (width as i32 / 2 + sway, height as i32 / 2);
    let radius = height as i32 / 3;
    for y in 0..height {
        for x in 0..width {
            let (dx, dy) = (x as i32 - middle_x, y as i32 - middle_y);
            let distance = dx * dx + dy * dy;
            let value = if distance < radius * radius {
                // The head: bright, with a texture that moves with it.
                150 + wave((dx * 9) as u32) * 20 / 100 + wave((dy * 13 + dx * 3) as u32) * 20 / 100
            } else {
                // The curtain: folds, and the grain of its cloth.
                90 + wave(x as u32 * 6 + number) * 40 / 100 + grain(x as u32, y as u32)
            };
            picture.luma[y * width + x] = value.clamp(0, 255) as u8;
        }
    }
    let half = width / 2;
    for y in 0..height / 2 {
        for x in 0..half {
            picture.blue[y * half + x] = (118 + wave(x as u32 * 3 + number) * 12 / 100) as u8;
            picture.red[y * half + x] = (136 + wave(y as u32 * 3 + number) * 12 / 100) as u8;
        }
    }
    picture
}

/// A parabola's imitation of a sine of that angle, from -100 to 100.
fn wave(angle: u32) -> i32 {
    let at = (angle % TURN) as i32;
    let half = at % 128;
    let height = half * (128 - half) * 100 / 4096;
    if at < 128 { height } else { -height }
}

/// Noise that belongs to a place: an integer hash, -8 to 7.
fn grain(x: u32, y: u32) -> i32 {
    let hash =
        (x.wrapping_mul(0x9e37_79b1) ^ y.wrapping_mul(0x85eb_ca6b)).wrapping_mul(0xc2b2_ae35);
    (hash >> 28) as i32 - 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scene_moves_and_is_the_same_again() {
        let size = Size::new(320, 240).unwrap();
        let (first, next) = (see(size, 0), see(size, 1));
        assert_eq!(see(size, 0), first);
        let moved = first.luma.iter().zip(&next.luma).filter(|(a, b)| a != b).count();
        assert!(moved > first.luma.len() / 10, "{moved} pixels");
    }
}
