//! Softer frames, of which an encoder makes fewer bits. Pure.

use super::Picture;

/// Replaces each pixel by the mean of those that are at most `reach` away, across and down; in planes of chroma, half of
/// that. Beyond an edge, the pixels of the edge are repeated.
pub(super) fn soften(picture: &mut Picture, reach: usize) {
    let (width, height) = picture.size();
    let (width, height) = (width as usize, height as usize);
    let (luma, chroma) = picture.data_mut().split_at_mut(width * height);
    soften_plane(luma, width, reach);
    for plane in chroma.chunks_exact_mut(width * height / 4) {
        soften_plane(plane, width / 2, reach / 2);
    }
}

fn soften_plane(plane: &mut [u8], width: usize, reach: usize) {
    if reach == 0 {
        return;
    }
    let mut line = vec![0; width];
    for pixels in plane.chunks_exact_mut(width) {
        means(|n| u32::from(pixels[n.min(width - 1)]), reach, &mut line);
        pixels.copy_from_slice(&line);
    }
    soften_down(plane, width, reach);
}

/// The mean around each value of a line.
fn means(value: impl Fn(usize) -> u32, reach: usize, to: &mut [u8]) {
    let span = 2 * reach as u32 + 1;
    let before = |n: usize| value(n.saturating_sub(reach + 1));
    let mut sum = value(0) * reach as u32 + (0..=reach).map(&value).sum::<u32>();
    for (n, to) in to.iter_mut().enumerate() {
        if n > 0 {
            sum = sum + value(n + reach) - before(n);
        }
        *to = ((sum + span / 2) / span) as u8;
    }
}

/// The same down all columns, with the sum of each.
fn soften_down(plane: &mut [u8], width: usize, reach: usize) {
    let height = plane.len() / width;
    let from = plane.to_vec();
    let line = |n: usize| &from[n.min(height - 1) * width..][..width];
    let span = 2 * reach as u32 + 1;
    let mut sums: Vec<u32> = line(0).iter().map(|pixel| u32::from(*pixel) * reach as u32).collect();
    for n in 0..=reach {
        sums.iter_mut().zip(line(n)).for_each(|(sum, pixel)| *sum += u32::from(*pixel));
    }
    for (n, to) in plane.chunks_exact_mut(width).enumerate() {
        if n > 0 {
            let (enters, leaves) = (line(n + reach), line(n.saturating_sub(reach + 1)));
            for ((sum, enters), leaves) in sums.iter_mut().zip(enters).zip(leaves) {
                *sum = *sum + u32::from(*enters) - u32::from(*leaves);
            }
        }
        for (to, sum) in to.iter_mut().zip(&sums) {
            *to = ((sum + span / 2) / span) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame whose luma is made of its coordinates.
    fn picture(of: impl Fn(usize, usize) -> u8) -> Picture {
        let mut picture = Picture::new(32, 16).expect("a size that can be encoded");
        for (n, pixel) in picture.data_mut()[..32 * 16].iter_mut().enumerate() {
            *pixel = of(n % 32, n / 32);
        }
        picture
    }

    #[test]
    fn each_pixel_is_the_mean_around_it() {
        let reach = 2;
        let of = |x: usize, y: usize| ((x * 37 + y * 91) % 256) as u8;
        let mut soft = picture(of);
        soften(&mut soft, reach);
        let around = |n: usize, most: usize| {
            (0..=2 * reach).map(move |k| (n + k).saturating_sub(reach).min(most))
        };
        for y in 0..16 {
            for x in 0..32 {
                // Each direction rounds.
                let across = |y| (around(x, 31).map(|x| u32::from(of(x, y))).sum::<u32>() + 2) / 5;
                let mean = (around(y, 15).map(across).sum::<u32>() + 2) / 5;
                assert_eq!(u32::from(soft.luma()[y * 32 + x]), mean, "{x}, {y}");
            }
        }
    }

    #[test]
    fn what_is_even_stays_as_it_is() {
        let even = picture(|_, _| 77);
        for reach in [0, 1, 5, 100] {
            let mut soft = even.clone();
            soften(&mut soft, reach);
            assert_eq!(soft, even, "{reach}");
        }
    }
}
