//! Smaller pictures, for an encoder whose bits do not suffice for the whole. Pure.

use super::Picture;

/// Makes pictures of one size smaller.
///
/// Each pixel is the mean of the area that it covers, weighted by how much of a pixel lies in it: a box
/// filter, exact in integers. It neither rings nor aliases, and is soft at sizes just below the whole.
#[derive(Debug)]
pub(super) struct Scaler {
    /// Those of luma, then of chroma.
    planes: [Plane; 2],
    /// The values of one line, scaled across; then the sums of the lines that one covers.
    line: Vec<u32>,
    sums: Vec<u32>,
}

#[derive(Debug)]
struct Plane {
    across: Axis,
    down: Axis,
}

/// Which pixels along one side make one, and with what weight; the weights of each sum up to `from`.
#[derive(Debug)]
struct Axis {
    from: usize,
    /// For each pixel that is made: the first that it covers, and their weights.
    covers: Vec<(usize, Vec<u32>)>,
}

impl Axis {
    /// `to` pixels out of `from`, which are at least as many.
    fn new(from: u32, to: u32) -> Self {
        let (from, to) = (from as usize, to as usize);
        // In units in which a pixel that is there is `to` wide and one that is made is `from`.
        let cover = |n: usize| {
            let (begin, end) = (n * from, (n + 1) * from);
            let (first, last) = (begin / to, end.div_ceil(to));
            let weight = |at: usize| (end.min((at + 1) * to) - begin.max(at * to)) as u32;
            (first, (first..last).map(weight).collect())
        };
        Self { from, covers: (0..to).map(cover).collect() }
    }
}

impl Scaler {
    /// Of pictures of size `from` makes those of size `to`, whose sides are no longer.
    pub fn new(from: (u32, u32), to: (u32, u32)) -> Self {
        let plane = |part: u32| Plane {
            across: Axis::new(from.0 / part, to.0 / part),
            down: Axis::new(from.1 / part, to.1 / part),
        };
        let width = to.0 as usize;
        Self { planes: [plane(1), plane(2)], line: vec![0; width], sums: vec![0; width] }
    }

    /// Scales a picture. Both have the sizes that the scaler was made for.
    pub fn scale(&mut self, from: &Picture, to: &mut Picture) {
        let [luma, chroma] = &self.planes;
        let (mut source, mut target) = (from.data(), to.data_mut());
        for plane in [luma, chroma, chroma] {
            let (here, after) = source.split_at(plane.across.from * plane.down.from);
            let made = plane.across.covers.len() * plane.down.covers.len();
            let (out, left) = target.split_at_mut(made);
            plane.scale(here, out, &mut self.line, &mut self.sums);
            (source, target) = (after, left);
        }
    }
}

impl Plane {
    fn scale(&self, from: &[u8], to: &mut [u8], line: &mut [u32], sums: &mut [u32]) {
        let (width, made) = (self.across.from, self.across.covers.len());
        let (line, sums) = (&mut line[..made], &mut sums[..made]);
        // The weights of a pixel sum up to this; with 255 and the largest sides it fits.
        let whole = (self.across.from * self.down.from) as u32;
        for ((first, weights), out) in self.down.covers.iter().zip(to.chunks_exact_mut(made)) {
            sums.fill(whole / 2);
            for (n, weight) in weights.iter().enumerate() {
                self.across.scale(&from[(first + n) * width..][..width], line);
                for (sum, value) in sums.iter_mut().zip(&*line) {
                    *sum += weight * value;
                }
            }
            for (out, sum) in out.iter_mut().zip(&*sums) {
                *out = (sum / whole) as u8;
            }
        }
    }
}

impl Axis {
    /// Scales one line, to values that are `from` times too large.
    fn scale(&self, from: &[u8], to: &mut [u32]) {
        for ((first, weights), to) in self.covers.iter().zip(to) {
            let pixels = from[*first..].iter().zip(weights);
            *to = pixels.map(|(&pixel, weight)| u32::from(pixel) * weight).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32, pixel: impl Fn(usize) -> u8) -> Picture {
        let mut picture = Picture::new(width, height).unwrap();
        picture.data_mut().iter_mut().enumerate().for_each(|(n, out)| *out = pixel(n));
        picture
    }

    fn scaled(from: &Picture, to: (u32, u32)) -> Picture {
        let mut small = Picture::new(to.0, to.1).unwrap();
        Scaler::new(from.size(), to).scale(from, &mut small);
        small
    }

    #[test]
    fn a_pixel_is_the_mean_of_what_it_covers() {
        // Columns of 0, 100, 200, 0, 100, 200, …: two of three make 33 (0 and half of 100), 167.
        let columns = picture(48, 48, |n| [0, 100, 200][n % 48 % 3]);
        let small = scaled(&columns, (32, 48));
        assert_eq!(small.luma()[..4], [33, 167, 33, 167]);
        // By half: (0 + 100) / 2, (200 + 0) / 2, (100 + 200) / 2.
        assert_eq!(scaled(&columns, (24, 24)).luma()[..3], [50, 100, 150]);
        // Lines instead of columns.
        let lines = picture(48, 48, |n| [0, 100, 200][n / 48 % 3]);
        let small = scaled(&lines, (48, 32));
        assert_eq!([0, 1, 2, 3].map(|line| small.luma()[line * 48 + 5]), [33, 167, 33, 167]);
    }

    #[test]
    fn the_same_size_and_one_colour_stay_as_they_are() {
        let any = picture(64, 32, |n| (n * 7 % 251) as u8);
        assert_eq!(scaled(&any, (64, 32)), any);
        let white = picture(3840, 2160, |_| 255);
        let small = scaled(&white, (1276, 718));
        assert!(small.data().iter().all(|&value| value == 255), "the largest sums fit");
    }

    #[test]
    fn planes_are_not_mixed() {
        let pixels = 64 * 64;
        let plane = |n: usize| match n {
            n if n < pixels => 40,
            n if n < pixels + pixels / 4 => 90,
            _ => 160,
        };
        let small = scaled(&picture(64, 64, plane), (48, 36));
        let (luma, chroma) = small.data().split_at(48 * 36);
        let (blue, red) = chroma.split_at(24 * 18);
        for (plane, value) in [(luma, 40), (blue, 90), (red, 160)] {
            assert!(plane.iter().all(|&pixel| pixel == value), "{value}");
        }
    }
}
