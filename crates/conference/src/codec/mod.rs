//! The codec: each frame by itself, in blocks, as motion JPEG and CellB have it, at a constant size.
//!
//! A frame is cut into macroblocks of 16×16 pixels (four blocks of luma, one of each chroma). Runs of them are *slices*;
//! each fits a packet and is decoded without the others, as RFC 2029 and RFC 2435 want it of packets of video. A block is
//! transformed, quantised and written as runs of zeros and levels in Exp-Golomb codes. The quantiser is the finest with
//! which the frame stays within its size.

mod bits;
mod transform;

use bits::{Reader, Writer};
use transform::{Block, Levels, dequantise, forward, inverse, quantise};

/// The quantiser's scales, from the finest to the coarsest.
pub const SCALES: std::ops::RangeInclusive<u8> = 1..=63;

/// Least size of a slice: a macroblock of the greatest levels fits.
pub const SLICE_MIN: usize = 1100;

/// Pixels of a macroblock, either way.
const MACROBLOCK: usize = 16;
/// Blocks of a macroblock: four of luma, two of chroma.
const BLOCKS: usize = 6;

/// Width and height of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    columns: u8,
    rows: u8,
}

impl Size {
    /// Of so many pixels; `None` unless both are multiples of 16 from 16 to 1920.
    pub fn new(width: u32, height: u32) -> Option<Self> {
        let blocks = |pixels: u32| {
            let fits = pixels.is_multiple_of(16) && (16..=1920).contains(&pixels);
            u8::try_from(pixels / 16).ok().filter(|_| fits)
        };
        Some(Self { columns: blocks(width)?, rows: blocks(height)? })
    }

    /// Pixels of a row.
    pub const fn width(self) -> usize {
        self.columns as usize * MACROBLOCK
    }

    /// Rows.
    pub const fn height(self) -> usize {
        self.rows as usize * MACROBLOCK
    }

    /// Macroblocks of a frame.
    pub const fn macroblocks(self) -> usize {
        self.columns as usize * self.rows as usize
    }
}

/// A frame: luma, and chroma of half the width and height.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Its size.
    pub size: Size,
    /// Luma by rows.
    pub luma: Vec<u8>,
    /// Blue difference by rows.
    pub blue: Vec<u8>,
    /// Red difference by rows.
    pub red: Vec<u8>,
}

impl Picture {
    /// All grey.
    pub fn grey(size: Size) -> Self {
        let pixels = size.width() * size.height();
        Self {
            size,
            luma: vec![128; pixels],
            blue: vec![128; pixels / 4],
            red: vec![128; pixels / 4],
        }
    }

    /// The plane of block `block` of a macroblock, its width, and where the block begins in it.
    fn place(size: Size, macroblock: usize, block: usize) -> (usize, usize, usize) {
        let (row, column) =
            (macroblock / size.columns as usize, macroblock % size.columns as usize);
        let width = size.width();
        match block {
            0..4 => {
                let y = row * 16 + block / 2 * 8;
                (0, width, y * width + column * 16 + block % 2 * 8)
            }
            _ => (block - 3, width / 2, row * 8 * (width / 2) + column * 8),
        }
    }

    fn block(&self, macroblock: usize, block: usize) -> Block {
        let (plane, width, from) = Self::place(self.size, macroblock, block);
        let samples = [&self.luma, &self.blue, &self.red][plane];
        std::array::from_fn(|n| f32::from(samples[from + n / 8 * width + n % 8]) - 128.0)
    }

    fn set_block(&mut self, macroblock: usize, block: usize, values: &Block) {
        let (plane, width, from) = Self::place(self.size, macroblock, block);
        let samples = match plane {
            0 => &mut self.luma,
            1 => &mut self.blue,
            _ => &mut self.red,
        };
        for (n, value) in values.iter().enumerate() {
            samples[from + n / 8 * width + n % 8] = (value + 128.0).round().clamp(0.0, 255.0) as u8;
        }
    }
}

/// A run of macroblocks that is decoded without the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The frame's size.
    pub size: Size,
    /// The scale of its quantiser, in [`SCALES`].
    pub scale: u8,
    /// Its first macroblock.
    pub first: u16,
    /// Its number of macroblocks, 1 or more.
    pub count: u16,
    /// Their bits.
    pub bits: Vec<u8>,
}

/// Why a slice is not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// It is not of this frame.
    #[error("a slice of macroblocks {first} to {last} does not fit a frame of {have}")]
    Place {
        /// Its first macroblock.
        first: usize,
        /// Its last.
        last: usize,
        /// The frame's macroblocks.
        have: usize,
    },
    /// Its quantiser does not exist.
    #[error("a quantiser scale of {0}; expected 1 to 63")]
    Scale(u8),
    /// Its bits end early, or are no code.
    #[error("the bits of macroblock {0} are no code")]
    Bits(usize),
}

/// Encodes a frame in at most `size` bytes where the coarsest quantiser allows it, in slices of at most `slice` bytes,
/// at least [`SLICE_MIN`].
pub fn encode(picture: &Picture, size: usize, slice: usize) -> Vec<Slice> {
    let macroblocks = picture.size.macroblocks();
    let coefficients: Vec<Block> = (0..macroblocks * BLOCKS)
        .map(|n| forward(&picture.block(n / BLOCKS, n % BLOCKS)))
        .collect();
    let slices = |scale| slices(picture.size, &coefficients, scale, slice.max(SLICE_MIN));
    let fits =
        |slices: &[Slice]| slices.iter().map(|slice| slice.bits.len()).sum::<usize>() <= size;
    // Coarser is never larger by more than rounding, so halving finds the finest that fits.
    let (mut fine, mut coarse) = (*SCALES.start(), *SCALES.end());
    let mut best = slices(coarse);
    while fine < coarse {
        let middle = fine.midpoint(coarse);
        let tried = slices(middle);
        if fits(&tried) {
            (coarse, best) = (middle, tried);
        } else {
            fine = middle + 1;
        }
    }
    best
}

fn slices(size: Size, coefficients: &[Block], scale: u8, bytes_max: usize) -> Vec<Slice> {
    let mut done = Vec::new();
    let mut writer = Writer::default();
    let (mut first, mut means) = (0, [0; 3]);
    for (number, blocks) in coefficients.chunks_exact(BLOCKS).enumerate() {
        let levels: Vec<Levels> = blocks.iter().map(|block| quantise(block, scale)).collect();
        let before = writer.len();
        let mut after = means;
        write_macroblock(&mut writer, &levels, &mut after);
        if writer.len().div_ceil(8) > bytes_max && number > first {
            writer.truncate(before);
            done.push(slice(size, scale, first, number, std::mem::take(&mut writer)));
            (first, after) = (number, [0; 3]);
            write_macroblock(&mut writer, &levels, &mut after);
        }
        means = after;
    }
    done.push(slice(size, scale, first, size.macroblocks(), writer));
    done
}

fn slice(size: Size, scale: u8, first: usize, end: usize, writer: Writer) -> Slice {
    let (first, count) = (first as u16, (end - first) as u16);
    Slice { size, scale, first, count, bits: writer.into_bytes() }
}

/// The plane of a block: its mean is coded as the difference from the block before in the same plane.
const fn plane(block: usize) -> usize {
    block.saturating_sub(3)
}

/// Each block: the difference of its mean from the one before, then runs of zeros (plus 1) and levels, then 0.
fn write_macroblock(writer: &mut Writer, blocks: &[Levels], means: &mut [i16; 3]) {
    for (block, levels) in blocks.iter().enumerate() {
        let mean = &mut means[plane(block)];
        writer.signed(i32::from(levels[0]) - i32::from(*mean));
        *mean = levels[0];
        let mut run = 0;
        for level in &levels[1..] {
            if *level == 0 {
                run += 1;
                continue;
            }
            writer.unsigned(run + 1);
            writer.signed(i32::from(*level));
            run = 0;
        }
        writer.unsigned(0);
    }
}

/// Decodes a slice into a frame. What does not come is left as it was.
///
/// # Errors
/// [`CodecError`]; the macroblocks before the error are decoded.
pub fn decode(slice: &Slice, picture: &mut Picture) -> Result<(), CodecError> {
    let (first, count) = (usize::from(slice.first), usize::from(slice.count));
    let have = picture.size.macroblocks();
    if slice.size != picture.size || count == 0 || first + count > have {
        return Err(CodecError::Place { first, last: (first + count).saturating_sub(1), have });
    }
    if !SCALES.contains(&slice.scale) {
        return Err(CodecError::Scale(slice.scale));
    }
    let mut reader = Reader::new(&slice.bits);
    let mut means = [0; 3];
    for macroblock in first..first + count {
        for block in 0..BLOCKS {
            let levels = read_block(&mut reader, &mut means[plane(block)]);
            let levels = levels.ok_or(CodecError::Bits(macroblock))?;
            let samples = inverse(&dequantise(&levels, slice.scale));
            picture.set_block(macroblock, block, &samples);
        }
    }
    Ok(())
}

fn read_block(reader: &mut Reader<'_>, mean: &mut i16) -> Option<Levels> {
    let mut levels = [0; 64];
    *mean = i16::try_from(i32::from(*mean) + reader.signed()?).ok()?;
    levels[0] = *mean;
    let mut at = 0;
    loop {
        let run = reader.unsigned()? as usize;
        if run == 0 {
            return Some(levels);
        }
        at += run;
        *levels.get_mut(at)? = i16::try_from(reader.signed()?).ok()?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::camera;

    fn size() -> Size {
        Size::new(320, 240).unwrap()
    }

    /// Peak signal-to-noise ratio of luma, in dB.
    fn psnr(a: &Picture, b: &Picture) -> f64 {
        let square = |(a, b): (&u8, &u8)| (f64::from(*a) - f64::from(*b)).powi(2);
        let error = a.luma.iter().zip(&b.luma).map(square).sum::<f64>() / a.luma.len() as f64;
        10.0 * (255.0f64.powi(2) / error).log10()
    }

    #[test]
    fn a_picture_fits_its_size_and_looks_like_itself() {
        let picture = camera::see(size(), 7);
        for (bytes, at_least) in [(10_000, 26.0), (20_000, 32.0)] {
            let slices = encode(&picture, bytes, 1400);
            let total: usize = slices.iter().map(|slice| slice.bits.len()).sum();
            assert!(total <= bytes && total > bytes / 2, "{total} of {bytes}");
            assert!(slices.iter().all(|slice| slice.bits.len() <= 1400));
            let mut decoded = Picture::grey(size());
            for slice in &slices {
                decode(slice, &mut decoded).unwrap();
            }
            let psnr = psnr(&picture, &decoded);
            assert!(psnr > at_least, "{psnr} dB with {bytes} bytes");
        }
    }

    #[test]
    fn a_slice_that_is_lost_spoils_no_other() {
        let picture = camera::see(size(), 3);
        let slices = encode(&picture, 10_000, 1400);
        let (mut whole, mut partly) = (Picture::grey(size()), Picture::grey(size()));
        for (n, slice) in slices.iter().enumerate() {
            decode(slice, &mut whole).unwrap();
            if n != 1 {
                decode(slice, &mut partly).unwrap();
            }
        }
        let lost = &slices[1];
        for macroblock in 0..size().macroblocks() {
            let same =
                (0..BLOCKS).all(|b| whole.block(macroblock, b) == partly.block(macroblock, b));
            let kept = !(lost.first..lost.first + lost.count).contains(&(macroblock as u16));
            assert_eq!(same, kept, "macroblock {macroblock}");
        }
    }

    #[test]
    fn noise_at_the_finest_scale_fits_slices() {
        let mut state = 1u32;
        let mut picture = Picture::grey(Size::new(64, 64).unwrap());
        for sample in &mut picture.luma {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *sample = if state >> 31 == 0 { 0 } else { 255 };
        }
        let slices = encode(&picture, usize::MAX, SLICE_MIN);
        assert_eq!(slices[0].scale, 1);
        assert!(slices.iter().all(|slice| slice.bits.len() <= SLICE_MIN));
    }

    proptest! {
        /// Any bits are a slice or an error.
        #[test]
        fn no_bits_do_harm(scale: u8, first: u16, count: u16, bits in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut picture = Picture::grey(Size::new(64, 48).unwrap());
            let size = picture.size;
            let _ = decode(&Slice { size, scale, first: first % 12, count: count % 13, bits }, &mut picture);
        }
    }
}
