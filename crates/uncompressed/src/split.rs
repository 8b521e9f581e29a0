//! An image of 8K split into eight streams, and joined again, bit for bit.
//!
//! **8K-DG** ([`Split::Dg`]). Dual green, as in 8K cameras with four sensors: each 2×2 pixels have two greens on a
//! diagonal, one red, one blue. A frame is four planes of half the width and height: G1 (even row, even column), G2
//! (odd, odd), R (even row, odd column), B (odd row, even column). Plane p, in this order, goes to the streams 2p (its
//! even rows) and 2p + 1 (its odd rows). A row of the plane becomes a row of the stream, with its samples in order in
//! the places of Cb Y Cr Y. For 7680×4320 the planes have 3840×2160 samples, and a stream has the 1920×1080 pixels of
//! 3G-SDI in 4:2:2. The assignment of planes to streams is suiro's own; ARIB and ST 2036 map them to SDI differently.
//!
//! **Tiles** ([`Split::Tiles`]). The image is cut into four columns and two rows; stream 4·row + column.
//!
//! A raw frame is planes one after the other. Samples of 8 bits are bytes, larger ones 16-bit words, little-endian. For
//! 8K-DG they are the four planes; for tiles they are in the order of ffmpeg's `yuv422p10le` and similar formats: Y Cb
//! Cr, or G B R.

use crate::geometry::{self, Depth, Geometry, Sampling};
use crate::picture::{pack, unpack};

/// Streams of a whole image.
pub const PARTS: usize = 8;
const TILE_COLUMNS: u32 = 4;
const TILE_ROWS: u32 = 2;

/// How an image is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// 8K-DG.
    Dg,
    /// Four columns of two tiles.
    Tiles,
}

/// Why an image cannot be split.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The whole image cannot be divided.
    #[error("image size: expected a multiple of {2}×{3} pixels, found {0}×{1}")]
    Indivisible(u32, u32, u32, u32),
    /// A part would not be a valid image.
    #[error("a part of the image: {0}")]
    Part(geometry::Error),
}

impl From<geometry::Error> for Error {
    fn from(cause: geometry::Error) -> Self {
        Self::Part(cause)
    }
}

/// A whole image and its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Splitter {
    split: Split,
    whole: Geometry,
    part: Geometry,
}

impl Splitter {
    /// Splits images of `whole`; for 8K-DG only its size, depth and rate matter.
    pub fn new(split: Split, whole: &Geometry) -> Result<Self, Error> {
        let (width, height) = (whole.width(), whole.height());
        let (across, down) = match split {
            Split::Dg => (4, 4),
            Split::Tiles => (TILE_COLUMNS, TILE_ROWS),
        };
        if !width.is_multiple_of(across) || !height.is_multiple_of(down) {
            return Err(Error::Indivisible(width, height, across, down));
        }
        let sampling = match split {
            // A row of width/2 samples becomes one of width/4 pixels with two samples each.
            Split::Dg => Sampling::YCbCr422,
            Split::Tiles => whole.sampling(),
        };
        let size = (width / across, height / down);
        let part = Geometry::new(size, sampling, whole.depth(), whole.rate())?;
        Ok(Self { split, whole: *whole, part })
    }

    /// The whole image whose parts are `part`.
    pub fn of_parts(split: Split, part: &Geometry) -> Result<Self, Error> {
        let (across, down) = match split {
            Split::Dg => (4, 4),
            Split::Tiles => (TILE_COLUMNS, TILE_ROWS),
        };
        let sampling = match split {
            Split::Dg => Sampling::Rgb,
            Split::Tiles => part.sampling(),
        };
        let size = (part.width() * across, part.height() * down);
        let whole = Geometry::new(size, sampling, part.depth(), part.rate())?;
        Self::new(split, &whole)
    }

    /// How it is split.
    pub const fn split(&self) -> Split {
        self.split
    }

    /// The whole image.
    pub const fn whole(&self) -> &Geometry {
        &self.whole
    }

    /// A part.
    pub const fn part(&self) -> &Geometry {
        &self.part
    }

    /// Bytes of a raw frame.
    pub fn raw_bytes(&self) -> usize {
        let samples = self.part.row_samples() as usize * self.part.height() as usize * PARTS;
        samples * sample_bytes(self.part.depth())
    }

    /// Extracts part `part` from a raw frame.
    ///
    /// # Panics
    /// If a buffer has the wrong size, or there is no such part.
    pub fn take(&self, raw: &[u8], part: usize, frame: &mut [u8]) {
        self.check(raw.len(), part, frame.len());
        let depth = self.part.depth();
        let mut row = vec![0; self.part.row_samples() as usize];
        for (y, bytes) in frame.chunks_exact_mut(self.part.row_bytes() as usize).enumerate() {
            for run in self.runs(part, y) {
                let from = run.raw * sample_bytes(depth);
                let step = row[run.first..].iter_mut().step_by(run.step).take(run.count);
                step.zip(raw[from..].chunks_exact(sample_bytes(depth)))
                    .for_each(|(sample, bytes)| *sample = read_sample(bytes));
            }
            pack(depth, &row, bytes);
        }
    }

    /// Inserts part `part` into a raw frame.
    ///
    /// # Panics
    /// If a buffer has the wrong size, or there is no such part.
    pub fn put(&self, frame: &[u8], part: usize, raw: &mut [u8]) {
        self.check(raw.len(), part, frame.len());
        let depth = self.part.depth();
        let mut row = vec![0; self.part.row_samples() as usize];
        for (y, bytes) in frame.chunks_exact(self.part.row_bytes() as usize).enumerate() {
            unpack(depth, bytes, &mut row);
            for run in self.runs(part, y) {
                let to = run.raw * sample_bytes(depth);
                let step = row[run.first..].iter().step_by(run.step).take(run.count);
                step.zip(raw[to..].chunks_exact_mut(sample_bytes(depth)))
                    .for_each(|(sample, bytes)| write_sample(*sample, bytes));
            }
        }
    }

    fn check(&self, raw: usize, part: usize, frame: usize) {
        let found = (raw, frame, part < PARTS);
        assert_eq!(found, (self.raw_bytes(), self.part.frame_bytes(), true), "an image's parts");
    }

    /// The position of the samples of row `y` of a part in the raw frame.
    fn runs(&self, part: usize, y: usize) -> Vec<Run> {
        let samples = self.part.row_samples() as usize;
        match self.split {
            Split::Dg => {
                let plane_samples = samples * self.part.height() as usize * 2;
                let raw = part / 2 * plane_samples + (y * 2 + part % 2) * samples;
                vec![Run { raw, first: 0, step: 1, count: samples }]
            }
            Split::Tiles => self.tile_runs(part, y),
        }
    }

    fn tile_runs(&self, part: usize, y: usize) -> Vec<Run> {
        let (width, height) = (self.whole.width() as usize, self.whole.height() as usize);
        let columns = TILE_COLUMNS as usize;
        let y = part / columns * self.part.height() as usize + y;
        // For each plane: pixels per sample, and its position among the samples of a pixel group.
        let planes: [(usize, usize, usize); 3] = match self.part.sampling() {
            Sampling::YCbCr422 => [(1, 1, 2), (2, 0, 4), (2, 2, 4)],
            Sampling::YCbCr444 => [(1, 1, 3), (1, 0, 3), (1, 2, 3)],
            Sampling::Rgb => [(1, 1, 3), (1, 2, 3), (1, 0, 3)],
        };
        let mut plane_begin = 0;
        let run = |(pixels, first, step): (usize, usize, usize)| {
            let (plane_width, count) = (width / pixels, self.part.width() as usize / pixels);
            let raw = plane_begin + y * plane_width + part % columns * count;
            plane_begin += plane_width * height;
            Run { raw, first, step, count }
        };
        planes.map(run).into()
    }
}

/// Samples that are contiguous in a raw frame.
struct Run {
    /// Their offset in the raw frame, in samples.
    raw: usize,
    /// The position of the first one in the part's row.
    first: usize,
    /// The distance between them in the part's row.
    step: usize,
    count: usize,
}

/// Bytes per sample in a raw frame.
pub const fn sample_bytes(depth: Depth) -> usize {
    match depth {
        Depth::Eight => 1,
        Depth::Ten | Depth::Twelve => 2,
    }
}

fn read_sample(bytes: &[u8]) -> u16 {
    match *bytes {
        [low, high] => u16::from_le_bytes([low, high]),
        [byte] => u16::from(byte),
        _ => unreachable!("a sample has one byte or two"),
    }
}

fn write_sample(sample: u16, bytes: &mut [u8]) {
    let all = sample.to_le_bytes();
    bytes.copy_from_slice(&all[..bytes.len()]);
}

/// Makes the four planes of 8K-DG from a full-size raw frame in G B R, as a camera with four sensors would: one sample
/// is kept of each pixel.
///
/// # Panics
/// If a buffer has the wrong size.
pub fn dg_from_rgb(whole: &Geometry, gbr: &[u8], dg: &mut [u8]) {
    let (width, height) = (whole.width() as usize, whole.height() as usize);
    let bytes = sample_bytes(whole.depth());
    let plane = width * height * bytes;
    assert_eq!((gbr.len(), dg.len()), (plane * 3, plane), "three planes make a third as much");
    const { assert!(PARTS == 8) };
    // G1, G2, R, B: the G B R plane that each is taken from, and its row and column in 2×2 pixels.
    let sources = [(0, 0, 0), (0, 1, 1), (2, 0, 1), (1, 1, 0)];
    for (out, (from, row, column)) in dg.chunks_exact_mut(plane / 4).zip(sources) {
        let input = &gbr[from * plane..][..plane];
        for (y, out) in out.chunks_exact_mut(width / 2 * bytes).enumerate() {
            let input = &input[(2 * y + row) * width * bytes..][..width * bytes];
            let pixels = input.chunks_exact(bytes).skip(column).step_by(2);
            out.chunks_exact_mut(bytes).zip(pixels).for_each(|(out, p)| out.copy_from_slice(p));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::FrameRate;

    fn whole(sampling: Sampling, depth: Depth, size: (u32, u32)) -> Geometry {
        Geometry::new(size, sampling, depth, FrameRate::P59_94).unwrap()
    }

    fn raw(splitter: &Splitter) -> Vec<u8> {
        let depth = splitter.part().depth();
        let samples = splitter.raw_bytes() / sample_bytes(depth);
        let value = |i: usize| (i.wrapping_mul(40_503) >> 3) as u16 & ((1 << depth.bits()) - 1);
        (0..samples).flat_map(|i| value(i).to_le_bytes()[..sample_bytes(depth)].to_vec()).collect()
    }

    #[test]
    fn an_8k_picture_in_dual_green_is_eight_of_3g_sdi() {
        let whole = whole(Sampling::Rgb, Depth::Ten, (7680, 4320));
        let splitter = Splitter::new(Split::Dg, &whole).unwrap();
        assert_eq!(*splitter.part(), Geometry::HD);
        assert_eq!(splitter.raw_bytes(), 4 * 3840 * 2160 * 2);
        assert_eq!(Splitter::of_parts(Split::Dg, &Geometry::HD), Ok(splitter));
    }

    #[test]
    fn parts_are_joined_bit_for_bit() {
        for (split, sampling) in [
            (Split::Dg, Sampling::Rgb),
            (Split::Tiles, Sampling::Rgb),
            (Split::Tiles, Sampling::YCbCr422),
            (Split::Tiles, Sampling::YCbCr444),
        ] {
            for depth in Depth::ALL {
                let splitter = Splitter::new(split, &whole(sampling, depth, (64, 16))).unwrap();
                let raw = raw(&splitter);
                let mut back = vec![0; raw.len()];
                let mut frame = vec![0; splitter.part().frame_bytes()];
                for part in 0..PARTS {
                    splitter.take(&raw, part, &mut frame);
                    splitter.put(&frame, part, &mut back);
                }
                assert!(raw == back, "{split:?} {sampling} {depth}");
            }
        }
    }

    #[test]
    fn a_tile_has_the_samples_of_its_place_in_the_order_of_the_standard() {
        let splitter =
            Splitter::new(Split::Tiles, &whole(Sampling::YCbCr422, Depth::Eight, (16, 4))).unwrap();
        let raw: Vec<u8> = (0..128).collect();
        let mut frame = vec![0; splitter.part().frame_bytes()];
        // The tile at the bottom right: columns 12 to 15 of rows 2 and 3.
        splitter.take(&raw, 7, &mut frame);
        assert_eq!(frame[..8], [64 + 22, 44, 96 + 22, 45, 64 + 23, 46, 96 + 23, 47]);
        assert_eq!(frame[8..12], [64 + 30, 60, 96 + 30, 61]);
    }

    #[test]
    fn dual_green_takes_one_sample_of_each_pixel() {
        let whole = whole(Sampling::Rgb, Depth::Eight, (4, 4));
        let gbr: Vec<u8> = (0..48).collect();
        let mut dg = vec![0; 16];
        dg_from_rgb(&whole, &gbr, &mut dg);
        let (g1, g2) = ([0, 2, 8, 10], [5, 7, 13, 15]);
        let (r, b) = ([32 + 1, 32 + 3, 32 + 9, 32 + 11], [16 + 4, 16 + 6, 16 + 12, 16 + 14]);
        assert_eq!(dg, [g1, g2, r, b].concat());
    }

    #[test]
    fn an_indivisible_picture_is_refused() {
        let odd = whole(Sampling::Rgb, Depth::Eight, (66, 16));
        assert_eq!(Splitter::new(Split::Tiles, &odd), Err(Error::Indivisible(66, 16, 4, 2)));
        let narrow = whole(Sampling::YCbCr422, Depth::Eight, (4, 4));
        assert!(matches!(Splitter::new(Split::Tiles, &narrow), Err(Error::Part(_))));
        let wide = whole(Sampling::YCbCr422, Depth::Ten, (32_766, 2)).to_owned();
        assert!(matches!(Splitter::of_parts(Split::Tiles, &wide), Err(Error::Part(_))));
    }
}
