//! Smaller frames, for an encoder whose bits do not suffice for the whole. Pure.

use super::Picture;

/// Makes frames of one size smaller.
///
/// Each pixel is the mean of the area that it covers, weighted by how much of a pixel lies in it: a box
/// filter, exact in integers. It neither rings nor aliases, and is soft at sizes just below the whole.
#[derive(Debug)]
pub(super) struct Scaler {
    /// Those of luma, then of chroma.
    planes: [Plane; 2],
    /// The sums of the lines that one line covers.
    sums: Vec<u32>,
}

#[derive(Debug)]
struct Plane {
    across: Axis,
    down: Axis,
}

/// Which pixels along one side make one, and with what weight.
#[derive(Debug)]
struct Axis {
    from: usize,
    /// For each pixel that is made, the first that it covers.
    firsts: Vec<usize>,
    /// For each pixel that is made, the weights of the [`Self::covered`] ones from the first on.
    weights: Vec<u16>,
    /// Most pixels that one covers.
    covered: usize,
    /// The sum of the weights of each.
    whole: u32,
}

impl Axis {
    /// `to` pixels out of `from`, which are at least as many.
    fn new(from: u32, to: u32) -> Self {
        let divisor = greatest_common_divisor(from, to);
        // In units in which a pixel that is there is `wide` wide and one that is made is `whole`.
        let (whole, wide) = ((from / divisor) as usize, (to / divisor) as usize);
        let made = || (0..to as usize).map(|n| (n * whole, (n + 1) * whole));
        let of = |(begin, end): (usize, usize)| end.div_ceil(wide) - begin / wide;
        let covered = made().map(of).max().unwrap_or(0);
        let weights = |(begin, end): (usize, usize)| {
            let weight = move |at: usize| {
                let common = end.min((at + 1) * wide).saturating_sub(begin.max(at * wide));
                u16::try_from(common).expect("a side has less than 65,536 pixels")
            };
            (begin / wide..begin / wide + covered).map(weight)
        };
        Self {
            from: from as usize,
            firsts: made().map(|(begin, _)| begin / wide).collect(),
            weights: made().flat_map(weights).collect(),
            covered,
            whole: whole as u32,
        }
    }
}

const fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl Scaler {
    /// Of frames of size `from` makes those of size `to`, whose sides are no longer.
    pub fn new(from: (u32, u32), to: (u32, u32)) -> Self {
        let plane = |part: u32| Plane {
            across: Axis::new(from.0 / part, to.0 / part),
            down: Axis::new(from.1 / part, to.1 / part),
        };
        let planes = [plane(1), plane(2)];
        let longest = planes.iter().map(|plane| plane.across.from + plane.across.covered).max();
        Self { planes, sums: vec![0; longest.unwrap_or(0)] }
    }

    /// Scales a frame. Both have the sizes that the scaler was made for.
    pub fn scale(&mut self, from: &Picture, to: &mut Picture) {
        let [luma, chroma] = &self.planes;
        let (mut source, mut target) = (from.data(), to.data_mut());
        for plane in [luma, chroma, chroma] {
            let (here, after) = source.split_at(plane.across.from * plane.down.from);
            let made = plane.across.firsts.len() * plane.down.firsts.len();
            let (out, left) = target.split_at_mut(made);
            plane.scale(here, out, &mut self.sums);
            (source, target) = (after, left);
        }
    }
}

impl Plane {
    /// Line by line: what a line covers is summed up down first, which is the same for all pixels of a line, and fast.
    fn scale(&self, from: &[u8], to: &mut [u8], sums: &mut [u32]) {
        let Self { across, down } = self;
        // The weights of a pixel sum up to this; with 255 and the largest sides it fits.
        let mean = Mean::of(across.whole * down.whole);
        let covers = down.firsts.iter().zip(down.weights.chunks_exact(down.covered));
        for ((first, weights), out) in covers.zip(to.chunks_exact_mut(across.firsts.len())) {
            // Behind the line are pixels that some cover with no weight.
            sums.fill(0);
            let lines = from[first * across.from..].chunks_exact(across.from);
            for (line, &weight) in lines.zip(weights).filter(|(_, weight)| **weight > 0) {
                for (sum, &pixel) in sums.iter_mut().zip(line) {
                    *sum += u32::from(weight) * u32::from(pixel);
                }
            }
            match across.covered {
                1 => across.scale::<1>(sums, mean, out),
                2 => across.scale::<2>(sums, mean, out),
                3 => across.scale::<3>(sums, mean, out),
                4 => across.scale::<4>(sums, mean, out),
                _ => across.scale_many(sums, mean, out),
            }
        }
    }
}

impl Axis {
    /// Scales one line of sums, each pixel of which covers `N`.
    fn scale<const N: usize>(&self, sums: &[u32], mean: Mean, to: &mut [u8]) {
        let (weights, _) = self.weights.as_chunks::<N>();
        for ((&first, weights), to) in self.firsts.iter().zip(weights).zip(to) {
            let covered = &sums[first..][..N];
            let weighted = |n: usize| covered[n] * u32::from(weights[n]);
            *to = mean.of_sum((0..N).map(weighted).sum());
        }
    }

    /// The same for any number.
    fn scale_many(&self, sums: &[u32], mean: Mean, to: &mut [u8]) {
        let weights = self.weights.chunks_exact(self.covered);
        for ((&first, weights), to) in self.firsts.iter().zip(weights).zip(to) {
            let weighted = sums[first..].iter().zip(weights).map(|(sum, &w)| sum * u32::from(w));
            *to = mean.of_sum(weighted.sum());
        }
    }
}

/// Divides weighted sums of pixels by the sum of their weights, and rounds to the nearest.
#[derive(Debug, Clone, Copy)]
struct Mean {
    whole: u32,
    /// Its reciprocal in units of 2⁻⁴⁰, rounded up, where that is exact. It is too large by at most one unit. The quotient
    /// of a sum below 256 × `whole` is then too large by less than one `whole`-th if `whole`² × 256 is at most 2⁴⁰.
    reciprocal: Option<u64>,
}

impl Mean {
    fn of(whole: u32) -> Self {
        let reciprocal = (whole < 1 << 16).then(|| (1 << 40) / u64::from(whole) + 1);
        Self { whole, reciprocal }
    }

    #[inline]
    fn of_sum(self, sum: u32) -> u8 {
        let sum = sum + self.whole / 2;
        match self.reciprocal {
            Some(reciprocal) => ((u64::from(sum) * reciprocal) >> 40) as u8,
            None => (sum / self.whole) as u8,
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
    fn division_by_the_reciprocal_is_exact() {
        for whole in (1..1 << 16).step_by(97).chain([1, 2, 3, 9, 65_535]) {
            let mean = Mean::of(whole);
            for value in 0..255u32 {
                let half = value * whole + whole.div_ceil(2);
                assert_eq!(u32::from(mean.of_sum(value * whole)), value, "{whole}");
                assert_eq!(u32::from(mean.of_sum(half)), value + 1, "{whole}");
                assert_eq!(u32::from(mean.of_sum(half - 1)), value, "{whole}");
            }
        }
    }

    #[test]
    fn each_size_is_the_mean_of_areas() {
        // By definition, in floating point: what each pixel has in common with the area.
        let from = picture(96, 64, |n| ((n * 2_654_435_761) >> 24) as u8);
        for (width, height) in [(96, 64), (94, 62), (64, 48), (48, 32), (32, 16), (18, 16)] {
            let small = scaled(&from, (width, height));
            let (x_of, y_of) = (96.0 / f64::from(width), 64.0 / f64::from(height));
            for n in 0..width * height {
                let (x, y) = (f64::from(n % width) * x_of, f64::from(n / width) * y_of);
                let common = |at: usize, begin: f64, of: f64| {
                    ((at + 1) as f64).min(begin + of) - (at as f64).max(begin)
                };
                let pixels = (0..64 * 96).map(|n| (n % 96, n / 96, f64::from(from.luma()[n])));
                let sum: f64 = pixels
                    .map(|(px, py, value)| {
                        common(px, x, x_of).max(0.0) * common(py, y, y_of).max(0.0) * value
                    })
                    .sum();
                let mean = sum / (x_of * y_of);
                assert!((mean - f64::from(small.luma()[n as usize])).abs() <= 0.500_001, "{n}");
            }
        }
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
