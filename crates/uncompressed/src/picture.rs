//! Samples and how they are packed into bytes: rows of pgroups, most significant bit first (ST
//! 2110-20 §6.2). Also the position of an image in an SDI raster.

use crate::geometry::{Depth, Geometry};

/// Packs samples of `depth`; the higher bits of a sample are cut off.
///
/// # Panics
/// If the length of `bytes` does not match that of `samples`.
pub fn pack(depth: Depth, samples: &[u16], bytes: &mut [u8]) {
    assert_eq!(
        samples.len() * depth.bits() as usize,
        bytes.len() * 8,
        "the samples fill the bytes"
    );
    match depth {
        Depth::Eight => bytes.iter_mut().zip(samples).for_each(|(b, s)| *b = *s as u8),
        Depth::Ten => {
            for (bytes, s) in
                bytes.as_chunks_mut::<5>().0.iter_mut().zip(samples.as_chunks::<4>().0)
            {
                *bytes = pack_ten(*s);
            }
        }
        Depth::Twelve => {
            for (bytes, s) in
                bytes.as_chunks_mut::<3>().0.iter_mut().zip(samples.as_chunks::<2>().0)
            {
                let (a, b) = (s[0] & 0xfff, s[1] & 0xfff);
                *bytes = [(a >> 4) as u8, ((a << 4) | (b >> 8)) as u8, b as u8];
            }
        }
    }
}

/// Unpacks samples of `depth`.
///
/// # Panics
/// If the length of `samples` does not match that of `bytes`.
pub fn unpack(depth: Depth, bytes: &[u8], samples: &mut [u16]) {
    assert_eq!(
        samples.len() * depth.bits() as usize,
        bytes.len() * 8,
        "the samples fill the bytes"
    );
    match depth {
        Depth::Eight => samples.iter_mut().zip(bytes).for_each(|(s, b)| *s = u16::from(*b)),
        Depth::Ten => {
            for (s, bytes) in
                samples.as_chunks_mut::<4>().0.iter_mut().zip(bytes.as_chunks::<5>().0)
            {
                *s = unpack_ten(*bytes);
            }
        }
        Depth::Twelve => {
            for (s, bytes) in
                samples.as_chunks_mut::<2>().0.iter_mut().zip(bytes.as_chunks::<3>().0)
            {
                let [a, b, c] = bytes.map(u16::from);
                *s = [(a << 4) | (b >> 4), ((b & 0xf) << 8) | c];
            }
        }
    }
}

fn pack_ten(samples: [u16; 4]) -> [u8; 5] {
    let bits = samples.iter().fold(0u64, |bits, s| (bits << 10) | u64::from(s & 0x3ff));
    *bits.to_be_bytes().last_chunk().expect("eight bytes end in five")
}

fn unpack_ten(bytes: [u8; 5]) -> [u16; 4] {
    let bits = bytes.iter().fold(0u64, |bits, b| (bits << 8) | u64::from(*b));
    [30, 20, 10, 0].map(|shift| ((bits >> shift) & 0x3ff) as u16)
}

/// A raster around an image.
///
/// For 1080-line images it is that of ST 274 and ST 425-1 level A: 2200 samples per line, of
/// which the last 1920 are active, and 1125 lines, of which 42 to 1121 are active. The blanking is
/// black, without timing reference codes, ancillary data or line CRCs: the rate is that of SDI, the
/// signal is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raster {
    /// The image.
    pub active: Geometry,
    /// The whole raster.
    pub total: Geometry,
    row_first: usize,
    left_bytes: usize,
}

impl Raster {
    /// The raster of [`Geometry::HD`], the only one that suiro knows.
    pub const HD: Self = Self {
        active: Geometry::HD,
        total: Geometry::HD_RASTER,
        row_first: 41,
        left_bytes: (2200 - 1920) * 5 / 2,
    };

    /// The raster around images of `active`, if suiro knows it.
    pub fn around(active: &Geometry) -> Option<Self> {
        (*active == Geometry::HD).then_some(Self::HD)
    }

    /// The raster whose whole is `all`, if suiro knows it.
    pub fn of_total(total: &Geometry) -> Option<Self> {
        (*total == Geometry::HD_RASTER).then_some(Self::HD)
    }

    /// Writes the image into a raster, with black around it.
    ///
    /// # Panics
    /// If either does not have the size of its geometry.
    pub fn embed(&self, picture: &[u8], raster: &mut [u8]) {
        self.check(picture.len(), raster.len());
        // Cb Y Cr Y of black in 10 bits: 512 64 512 64.
        let black = pack_ten([512, 64, 512, 64]);
        raster.as_chunks_mut::<5>().0.fill(black);
        let rows = picture.chunks_exact(self.active.row_bytes() as usize);
        for (row, number) in rows.zip(0..) {
            raster[self.row(number)].copy_from_slice(row);
        }
    }

    /// Extracts the image from a raster.
    ///
    /// # Panics
    /// If either does not have the size of its geometry.
    pub fn extract(&self, raster: &[u8], picture: &mut [u8]) {
        self.check(picture.len(), raster.len());
        let rows = picture.chunks_exact_mut(self.active.row_bytes() as usize);
        for (row, number) in rows.zip(0..) {
            row.copy_from_slice(&raster[self.row(number)]);
        }
    }

    fn row(&self, number: usize) -> std::ops::Range<usize> {
        let begin = (self.row_first + number) * self.total.row_bytes() as usize + self.left_bytes;
        begin..begin + self.active.row_bytes() as usize
    }

    fn check(&self, picture: usize, raster: usize) {
        let expected = (self.active.frame_bytes(), self.total.frame_bytes());
        assert_eq!((picture, raster), expected, "the image and its raster");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn samples_are_packed_as_in_the_standard() {
        let mut ten = [0; 5];
        pack(Depth::Ten, &[0x3ff, 0, 0x201, 0x3fe], &mut ten);
        assert_eq!(ten, [0xff, 0xc0, 0x08, 0x07, 0xfe]);
        let mut twelve = [0; 3];
        pack(Depth::Twelve, &[0xabc, 0xdef], &mut twelve);
        assert_eq!(twelve, [0xab, 0xcd, 0xef]);
    }

    #[test]
    fn a_picture_comes_back_from_its_raster() {
        let Raster { active, total, .. } = Raster::HD;
        let picture: Vec<u8> = (0..active.frame_bytes()).map(|i| (i % 253) as u8).collect();
        let (mut raster, mut back) = (vec![0; total.frame_bytes()], vec![0; picture.len()]);
        Raster::HD.embed(&picture, &mut raster);
        // Line 42, behind 280 samples of blanking.
        assert_eq!(raster[(41 * 2200 + 280) * 5 / 2..][..5], picture[..5]);
        assert_eq!(raster[..5], [0x80, 0x04, 0x08, 0x00, 0x40]);
        Raster::HD.extract(&raster, &mut back);
        assert_eq!(back, picture);
    }

    proptest! {
        #[test]
        fn packed_samples_come_back(
            samples in proptest::collection::vec(any::<u16>(), 0..20),
            depth in proptest::sample::select(Depth::ALL.as_slice()),
        ) {
            let count = samples.len() / 4 * 4;
            let masked: Vec<_> =
                samples[..count].iter().map(|s| s & ((1 << depth.bits()) - 1)).collect();
            let mut bytes = vec![0; count * depth.bits() as usize / 8];
            pack(depth, &samples[..count], &mut bytes);
            let mut back = vec![0; count];
            unpack(depth, &bytes, &mut back);
            prop_assert_eq!(back, masked);
        }
    }
}
