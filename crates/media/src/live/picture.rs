//! A frame that is not encoded.

use openh264::formats::YUVSource;

use suiro_strict::Refusal;

use super::LiveError;
use crate::stamp::{self, Layout, Stamp, Unfit};

/// Longest and shorter side of a frame that the codec takes (ITU-T H.264 level 5.2).
pub(super) const SIDES_MAX: (u32, u32) = (3840, 2160);

/// Shortest side.
pub(super) const SIDE_MIN: u32 = 16;

/// A frame in 8 bit 4:2:0: a luma plane, then two of chroma with half its sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    width: u32,
    height: u32,
    data: Vec<u8>,
}

impl Picture {
    /// A black frame.
    ///
    /// # Errors
    /// Unless both sides are even and within what the codec takes.
    pub fn new(width: u32, height: u32) -> Result<Self, Refusal> {
        let (long, short) = (width.max(height), width.min(height));
        let odd = width % 2 == 1 || height % 2 == 1;
        if odd || short < SIDE_MIN || long > SIDES_MAX.0 || short > SIDES_MAX.1 {
            let expected = format!(
                "even sides of at least {SIDE_MIN}, at most {}×{} or {1}×{0}",
                SIDES_MAX.0, SIDES_MAX.1
            );
            let found = format!("frames of {width}×{height} cannot be encoded");
            return Err(Refusal::key("", found).expected(expected));
        }
        let luma = width as usize * height as usize;
        let mut data = vec![stamp::BLACK; luma + luma / 2];
        data[luma..].fill(128);
        Ok(Self { width, height, data })
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// The three planes one after the other, without gaps between their lines.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// As [`Self::data`], to write to.
    pub fn data_mut(&mut self) -> &mut [u8] {
        &mut self.data
    }

    /// The luma plane.
    pub fn luma(&self) -> &[u8] {
        &self.data[..self.pixels()]
    }

    /// Stamps the frame.
    ///
    /// # Errors
    /// [`Unfit`]: the frame is too small, or the time does not fit.
    pub fn stamp(&mut self, stamp: Stamp) -> Result<(), Unfit> {
        let layout = Layout::packed(self.width, self.height);
        let pixels = self.pixels();
        stamp::write(&mut self.data[..pixels], &layout, stamp)
    }

    /// The stamp that the frame bears, if it can be read.
    pub fn read_stamp(&self) -> Option<Stamp> {
        stamp::read(self.luma(), &Layout::packed(self.width, self.height))
    }

    /// Makes this a copy of what the codec decoded.
    pub(super) fn copy(&mut self, from: &impl YUVSource) -> Result<(), LiveError> {
        let (width, height) = from.dimensions();
        let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
        let size = (side(width), side(height));
        if self.size() != size {
            *self = Self::new(size.0, size.1)?;
        }
        let (of_y, of_u, of_v) = from.strides();
        let (luma, chroma) = self.data.split_at_mut(width * height);
        let (blue, red) = chroma.split_at_mut(width * height / 4);
        copy_lines(luma, width, from.y(), of_y);
        copy_lines(blue, width / 2, from.u(), of_u);
        copy_lines(red, width / 2, from.v(), of_v);
        Ok(())
    }

    fn pixels(&self) -> usize {
        self.width as usize * self.height as usize
    }
}

fn copy_lines(to: &mut [u8], width: usize, from: &[u8], stride: usize) {
    for (to, from) in to.chunks_exact_mut(width).zip(from.chunks(stride)) {
        to.copy_from_slice(&from[..width]);
    }
}

impl YUVSource for Picture {
    fn dimensions(&self) -> (usize, usize) {
        (self.width as usize, self.height as usize)
    }
    fn strides(&self) -> (usize, usize, usize) {
        let width = self.width as usize;
        (width, width / 2, width / 2)
    }
    fn y(&self) -> &[u8] {
        self.luma()
    }
    fn u(&self) -> &[u8] {
        let pixels = self.pixels();
        &self.data[pixels..pixels + pixels / 4]
    }
    fn v(&self) -> &[u8] {
        let pixels = self.pixels();
        &self.data[pixels + pixels / 4..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_no_codec_takes_are_refused() {
        for (width, height) in [(1280, 719), (1279, 720), (14, 720), (3842, 2160), (2162, 2162)] {
            let error = Picture::new(width, height).unwrap_err().to_string();
            assert!(error.contains("expected: even sides"), "{error}");
        }
        for (width, height) in [(16, 16), (1280, 720), (3840, 2160), (2160, 3840)] {
            let picture = Picture::new(width, height).unwrap();
            assert_eq!(picture.data().len(), (width * height * 3 / 2) as usize);
        }
    }

    #[test]
    fn a_stamp_is_read_back() {
        let mut picture = Picture::new(320, 180).unwrap();
        assert_eq!(picture.read_stamp(), None);
        let stamp = Stamp { frame: 7, captured_ms: 1_800_000_000_000 };
        picture.stamp(stamp).unwrap();
        assert_eq!(picture.read_stamp(), Some(stamp));
    }
}
