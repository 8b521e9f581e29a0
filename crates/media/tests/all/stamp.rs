//! Stamps in frames of all sizes, scaled, noisy, and in frames that have none.

use proptest::prelude::*;
use suiro_media::stamp::{self, Layout, Stamp, Unfit};

/// A frame: luma only.
struct Picture {
    layout: Layout,
    luma: Vec<u8>,
}

impl Picture {
    /// Detail of all levels, with a line of garbage after each line if `gap`.
    fn new(width: u32, height: u32, gap: usize, seed: u64) -> Self {
        let layout = Layout { width, height, stride: width as usize + gap };
        let mut state = seed | 1;
        let luma = (0..layout.stride * height as usize).map(|_| random(&mut state) as u8).collect();
        Self { layout, luma }
    }

    fn stamped(width: u32, height: u32, gap: usize, stamp: Stamp) -> Self {
        let mut picture = Self::new(width, height, gap, 9);
        stamp::write(&mut picture.luma, &picture.layout, stamp).unwrap();
        picture
    }

    fn read(&self) -> Option<Stamp> {
        stamp::read(&self.luma, &self.layout)
    }

    /// As a browser scales with `imageSmoothingQuality = "low"`: the four nearest pixels, weighted
    /// by how near their centres are, whatever the ratio.
    fn bilinear(&self, width: u32, height: u32) -> Self {
        let from = &self.layout;
        let place = |index: u32, to: u32, from: u32| {
            let at = (f64::from(index) + 0.5) * f64::from(from) / f64::from(to) - 0.5;
            let at = at.clamp(0.0, f64::from(from - 1));
            (at as usize, (at as usize + 1).min(from as usize - 1), at.fract())
        };
        let mut luma = Vec::new();
        for line in 0..height {
            let (top, bottom, down) = place(line, height, from.height);
            for column in 0..width {
                let (left, right, across) = place(column, width, from.width);
                let mix = |line: usize| {
                    let at = |column: usize| f64::from(self.luma[line * from.stride + column]);
                    at(left) * (1.0 - across) + at(right) * across
                };
                luma.push((mix(top) * (1.0 - down) + mix(bottom) * down).round() as u8);
            }
        }
        Self { layout: Layout::packed(width, height), luma }
    }

    /// Adds noise of up to `most` levels up or down.
    fn noisy(mut self, most: i32, seed: u64) -> Self {
        let mut state = seed | 1;
        for value in &mut self.luma {
            let by = (random(&mut state) % (2 * most as u64 + 1)) as i32 - most;
            *value = (i32::from(*value) + by).clamp(0, 255) as u8;
        }
        self
    }
}

/// Marsaglia's xorshift64.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

const STAMP: Stamp = Stamp { frame: 0xDEAD_BEEF, captured_ms: 1_790_000_123_456 };

#[test]
fn every_width_and_height_and_any_stride() {
    for width in 320..=1920 {
        assert_eq!(Picture::stamped(width, 180, (width % 7) as usize, STAMP).read(), Some(STAMP));
    }
    for height in 180..=1080 {
        assert_eq!(Picture::stamped(320, height, 3, STAMP).read(), Some(STAMP), "{height}");
    }
}

#[test]
fn only_the_strip_is_written() {
    for (width, height) in [(320, 180), (1280, 720), (426, 240), (1919, 1079)] {
        let before = Picture::new(width, height, 5, 9);
        let after = Picture::stamped(width, height, 5, STAMP);
        let rows = stamp::strip(height) as usize;
        let start = rows * before.layout.stride;
        assert_eq!(before.luma[start..], after.luma[start..]);
        let line = &after.luma[..before.layout.stride];
        assert_eq!(line[width as usize..], before.luma[width as usize..before.layout.stride]);
        assert!(rows as f64 / f64::from(height) < 0.08, "{rows} of {height}");
    }
}

#[test]
fn scaled_as_a_browser_does() {
    for (width, height) in [(1920, 1080), (1280, 720), (960, 540), (640, 360)] {
        let picture = Picture::stamped(width, height, 0, STAMP);
        for (to, high) in
            [(320, 180), (426, 240), (416, 234), (854, 480), (1280, 720), (1921, 1079)]
        {
            let scaled = picture.bilinear(to, high);
            assert_eq!(scaled.read(), Some(STAMP), "{width}×{height} to {to}×{high}");
        }
    }
}

#[test]
fn noise_and_little_contrast() {
    for most in [16, 64] {
        let picture = Picture::stamped(320, 180, 0, STAMP).noisy(most, 3);
        assert_eq!(picture.read(), Some(STAMP), "{most}");
    }
    let mut faint = Picture::stamped(640, 360, 0, STAMP);
    faint.luma.iter_mut().for_each(|value| *value = 90 + *value / 4);
    assert_eq!(faint.read(), Some(STAMP));
    faint.luma.iter_mut().for_each(|value| *value = *value / 4 + 90);
    assert_eq!(faint.read(), None, "13 levels of contrast are none");
}

/// Two frames laid over each other say nothing, unless they are the same.
#[test]
fn a_blend_of_two_frames_is_refused() {
    let other = Stamp { frame: STAMP.frame + 1, ..STAMP };
    let mut picture = Picture::stamped(640, 360, 0, STAMP);
    let next = Picture::stamped(640, 360, 0, other);
    for (one, two) in picture.luma.iter_mut().zip(&next.luma) {
        *one = ((u32::from(*one) + u32::from(*two)) / 2) as u8;
    }
    assert_eq!(picture.read(), None);
}

/// Two blocks that the encoder left half-way are made good; three are too many.
#[test]
fn doubtful_blocks() {
    for doubtful in 0..=3 {
        for first in [1, 22, 70, 90] {
            let mut picture = Picture::stamped(400, 90, 0, STAMP);
            for block in (first..).step_by(5).take(doubtful) {
                let (row, column) = (block / 40, block % 40);
                for line in row * 2..row * 2 + 2 {
                    picture.luma[line * 400 + column * 10..][..10].fill(126);
                }
            }
            assert_eq!(picture.read(), (doubtful < 3).then_some(STAMP), "{doubtful} from {first}");
        }
    }
}

#[test]
fn what_cannot_be_stamped_says_so() {
    let write = |layout: &Layout, bytes, captured_ms| {
        stamp::write(&mut vec![0; bytes], layout, Stamp { frame: 1, captured_ms })
    };
    let small = Layout::packed(100, 100);
    let error = write(&small, 10_000, 0).unwrap_err();
    assert!(error.to_string().starts_with("a frame of 100×100 cannot be stamped\nhint: "));
    let layout = Layout::packed(320, 180);
    assert_eq!(write(&layout, 57_599, 0), Err(Unfit::Plane { bytes: 57_599, wanted: 57_600 }));
    assert_eq!(write(&layout, 57_600, 1 << 44), Err(Unfit::Time(1 << 44)));
    assert_eq!(write(&layout, 57_600, (1 << 44) - 1), Ok(()));
    let narrow = Layout { stride: 319, ..layout };
    assert!(matches!(write(&narrow, 57_600, 0), Err(Unfit::Plane { .. })));
    let huge = Layout { stride: usize::MAX, ..layout };
    assert!(matches!(write(&huge, 57_600, 0), Err(Unfit::Plane { .. })));
    assert_eq!(stamp::read(&[], &layout), None);
    assert_eq!(stamp::read(&[], &Layout::packed(u32::MAX, u32::MAX)), None);
}

#[test]
fn pictures_without_a_stamp() {
    for seed in 1..2000 {
        assert_eq!(Picture::new(320, 180, 0, seed * 77).read(), None);
    }
    for level in 0..=255 {
        let luma = vec![level; 320 * 180];
        assert_eq!(stamp::read(&luma, &Layout::packed(320, 180)), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_stamp_in_any_picture(
        frame: u32, captured_ms in 0..=stamp::CAPTURED_MS_MAX,
        width in stamp::WIDTH_MIN..2000, height in stamp::HEIGHT_MIN..1100, gap in 0..9_usize,
    ) {
        let stamp = Stamp { frame, captured_ms };
        prop_assert_eq!(Picture::stamped(width, height, gap, stamp).read(), Some(stamp));
    }

    /// The corners right, all else random: a frame cut off, or another strip.
    #[test]
    fn any_blocks(flips in prop::collection::vec((0..120_u32, any::<u8>()), 1..60)) {
        let mut picture = Picture::stamped(400, 90, 0, STAMP);
        for (block, level) in &flips {
            let (row, column) = (block / 40, block % 40);
            for line in row * 2..row * 2 + 2 {
                let start = (line * 400 + column * 10) as usize;
                picture.luma[start..start + 10].fill(*level);
            }
        }
        let read = picture.read();
        prop_assert!(read.is_none() || read == Some(STAMP));
    }
}
