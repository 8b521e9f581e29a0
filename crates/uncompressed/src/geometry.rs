//! The format of an image: its size, its samples, its rate, and its layout in bytes.
//!
//! A frame is stored and sent as rows of *pgroups*, the smallest groups of samples that fill whole
//! bytes (RFC 4175 §4.3; ST 2110-20 §6.2), most significant bit first.

use std::fmt;
use std::str::FromStr;

use suiro_units::Duration;

/// Largest width and height of an image in pixels: the range of RFC 4175's 15-bit row number and
/// offset.
pub const SIDE_MAX: u32 = 32_767;
/// Largest frame in bytes: 8K in 4:4:4 with 12 bits. It bounds the memory that is reserved.
pub const FRAME_BYTES_MAX: u64 = 7680 * 4320 * 9 / 2;
/// The RTP clock of video in ticks per second (RFC 4175 §4.1).
pub const RTP_CLOCK_HZ: u32 = 90_000;

/// Why a geometry is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A side is 0 or above [`SIDE_MAX`].
    #[error("width and height: expected 1 to {SIDE_MAX} pixels each, found {0}×{1}")]
    Side(u32, u32),
    /// The width is not a whole number of pgroups.
    #[error("width: expected a multiple of {pixels} pixels ({sampling}, {depth}), found {width}")]
    Width {
        /// The width in pixels.
        width: u32,
        /// The sampling.
        sampling: Sampling,
        /// The depth.
        depth: Depth,
        /// Pixels of a pgroup.
        pixels: u32,
    },
    /// The frame is larger than [`FRAME_BYTES_MAX`].
    #[error("frame: expected at most {FRAME_BYTES_MAX} bytes, found {0}")]
    Large(u64),
    /// The frame rate is not from 1 to 1000 per second, or its terms are not from 1 to 1 000 000.
    #[error("frame rate: expected 1 to 1000 per second, found {0}/{1}")]
    Rate(u32, u32),
    /// Text that is not a geometry, sampling, depth or rate.
    #[error("{0:?} is not a {1}\nhint: write {2}")]
    Text(String, &'static str, &'static str),
}

/// Which samples a pixel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sampling {
    /// Y′CbCr, chroma for every other pixel of a row; in the order Cb Y Cr Y.
    YCbCr422,
    /// Y′CbCr, in the order Cb Y Cr.
    YCbCr444,
    /// R′G′B′, in this order.
    Rgb,
}

impl Sampling {
    /// All samplings.
    pub const ALL: [Self; 3] = [Self::YCbCr422, Self::YCbCr444, Self::Rgb];

    /// Its name in an SDP (ST 2110-20 §7.4.1).
    pub const fn name(self) -> &'static str {
        match self {
            Self::YCbCr422 => "YCbCr-4:2:2",
            Self::YCbCr444 => "YCbCr-4:4:4",
            Self::Rgb => "RGB",
        }
    }

    /// Samples in two pixels.
    pub const fn samples_per_pair(self) -> u32 {
        match self {
            Self::YCbCr422 => 4,
            Self::YCbCr444 | Self::Rgb => 6,
        }
    }
}

impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Sampling {
    type Err = Error;

    /// The name in an SDP, or the end of it: `4:2:2`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let is = |s: &Self| s.name() == text || s.name().strip_prefix("YCbCr-") == Some(text);
        Self::ALL.into_iter().find(is).ok_or_else(|| {
            let hint = "YCbCr-4:2:2, YCbCr-4:4:4 or RGB";
            Error::Text(text.to_owned(), "sampling that suiro supports", hint)
        })
    }
}

/// Bits of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// 8 bits.
    Eight,
    /// 10 bits.
    Ten,
    /// 12 bits.
    Twelve,
}

impl Depth {
    /// All depths.
    pub const ALL: [Self; 3] = [Self::Eight, Self::Ten, Self::Twelve];

    /// Bits of a sample.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Eight => 8,
            Self::Ten => 10,
            Self::Twelve => 12,
        }
    }

    /// The depth with this many bits, if suiro supports it.
    pub fn of_bits(bits: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|depth| depth.bits() == bits)
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit", self.bits())
    }
}

impl FromStr for Depth {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let known = text.parse().ok().and_then(Self::of_bits);
        known
            .ok_or_else(|| Error::Text(text.to_owned(), "depth that suiro supports", "8, 10 or 12"))
    }
}

/// Frames per second, an exact fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameRate {
    frames: u32,
    seconds: u32,
}

impl FrameRate {
    /// 60000/1001, known as 59.94.
    pub const P59_94: Self = Self { frames: 60_000, seconds: 1001 };

    /// `frames` in `seconds`: 60000 in 1001, 50 in 1.
    pub fn new(frames: u32, seconds: u32) -> Result<Self, Error> {
        let terms = 1..=1_000_000;
        let sound = terms.contains(&frames)
            && terms.contains(&seconds)
            && frames >= seconds
            && frames / seconds <= 1000;
        if sound { Ok(Self { frames, seconds }) } else { Err(Error::Rate(frames, seconds)) }
    }

    /// The fraction's numerator.
    pub const fn frames(self) -> u32 {
        self.frames
    }

    /// The fraction's denominator.
    pub const fn seconds(self) -> u32 {
        self.seconds
    }

    /// Frames per second, rounded.
    pub fn per_second(self) -> f64 {
        f64::from(self.frames) / f64::from(self.seconds)
    }

    /// When frame `number` begins, after the beginning of frame 0. Exact to the nanosecond, so that
    /// errors do not grow with the number. Saturates after 584 years.
    pub fn start_of(self, number: u64) -> Duration {
        let ns = self.scaled(number, 1_000_000_000);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// The first frame that begins at least `time` after frame 0.
    pub fn first_from(self, time: Duration) -> u64 {
        let per = u128::from(self.seconds) * 1_000_000_000;
        let frames = (u128::from(time.as_nanos()) * u128::from(self.frames)).div_ceil(per);
        u64::try_from(frames).expect("1000 frames a second for 584 years are below 2^64")
    }

    /// Time from one frame to the next, rounded down.
    pub fn period(self) -> Duration {
        self.start_of(1)
    }

    /// The RTP timestamp of frame `number`, counted from the SMPTE epoch (1970-01-01 00:00:00 TAI,
    /// ST 2059-1): the media clock's ticks until its beginning, rounded down, modulo 2^32 (ST
    /// 2110-10 §7.4).
    pub fn rtp_timestamp(self, number: u64) -> u32 {
        self.scaled(number, RTP_CLOCK_HZ) as u32
    }

    /// The frame with RTP timestamp `timestamp`, give or take one tick because senders round
    /// differently: the one nearest to frame `near`. Timestamps repeat after 13 hours.
    pub fn frame_of(self, timestamp: u32, near: u64) -> u64 {
        let ahead = timestamp.wrapping_sub(self.rtp_timestamp(near)).cast_signed();
        let ticks_per_frame = f64::from(RTP_CLOCK_HZ) / self.per_second();
        near.saturating_add_signed((f64::from(ahead) / ticks_per_frame).round() as i64)
    }

    /// `number` frames, in units of 1/`parts_per_second` seconds, rounded down.
    fn scaled(self, number: u64, parts_per_second: u32) -> u128 {
        let seconds = u128::from(number) * u128::from(self.seconds);
        seconds * u128::from(parts_per_second) / u128::from(self.frames)
    }
}

impl fmt::Display for FrameRate {
    /// As in an SDP's `exactframerate`: `60000/1001`, `50`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.frames)?;
        if self.seconds == 1 { Ok(()) } else { write!(f, "/{}", self.seconds) }
    }
}

impl FromStr for FrameRate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (frames, seconds) = text.split_once('/').unwrap_or((text, "1"));
        let (Ok(frames), Ok(seconds)) = (frames.parse(), seconds.parse()) else {
            return Err(Error::Text(text.to_owned(), "frame rate", "60000/1001 or 50"));
        };
        Self::new(frames, seconds)
    }
}

/// The smallest group of samples that fills whole bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pgroup {
    /// Its bytes.
    pub bytes: u32,
    /// Its pixels, all of one row.
    pub pixels: u32,
}

impl Pgroup {
    /// ST 2110-20 §6.2, tables for 4:2:2 and 4:4:4.
    pub const fn of(sampling: Sampling, depth: Depth) -> Self {
        let (bytes, pixels) = match (sampling, depth) {
            (Sampling::YCbCr422, Depth::Eight) => (4, 2),
            (Sampling::YCbCr422, Depth::Ten) => (5, 2),
            (Sampling::YCbCr422, Depth::Twelve) => (6, 2),
            (_, Depth::Eight) => (3, 1),
            (_, Depth::Ten) => (15, 4),
            (_, Depth::Twelve) => (9, 2),
        };
        Self { bytes, pixels }
    }
}

/// A progressive image sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    width: u32,
    height: u32,
    sampling: Sampling,
    depth: Depth,
    rate: FrameRate,
}

impl Geometry {
    /// 1920×1080, 59.94 per second, 4:2:2 with 10 bits: the active image of 3G-SDI, 2.486 Gbit/s.
    pub const HD: Self = Self {
        width: 1920,
        height: 1080,
        sampling: Sampling::YCbCr422,
        depth: Depth::Ten,
        rate: FrameRate::P59_94,
    };

    /// 2200×1125, the whole raster of [`Self::HD`] with its blanking (ST 274, ST 425-1 level A):
    /// 2.967 Gbit/s.
    pub const HD_RASTER: Self = Self { width: 2200, height: 1125, ..Self::HD };

    /// A geometry, if it is valid and within the bounds of this crate.
    pub fn new(
        (width, height): (u32, u32),
        sampling: Sampling,
        depth: Depth,
        rate: FrameRate,
    ) -> Result<Self, Error> {
        let sides = 1..=SIDE_MAX;
        if !sides.contains(&width) || !sides.contains(&height) {
            return Err(Error::Side(width, height));
        }
        let pixels = Pgroup::of(sampling, depth).pixels;
        if !width.is_multiple_of(pixels) {
            return Err(Error::Width { width, sampling, depth, pixels });
        }
        let geometry = Self { width, height, sampling, depth, rate };
        let bytes = u64::from(geometry.row_bytes()) * u64::from(height);
        if bytes > FRAME_BYTES_MAX { Err(Error::Large(bytes)) } else { Ok(geometry) }
    }

    /// Pixels of a row.
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub const fn height(&self) -> u32 {
        self.height
    }

    /// Which samples a pixel has.
    pub const fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// Bits of a sample.
    pub const fn depth(&self) -> Depth {
        self.depth
    }

    /// Frames per second.
    pub const fn rate(&self) -> FrameRate {
        self.rate
    }

    /// The group of samples from which its bytes are built.
    pub const fn pgroup(&self) -> Pgroup {
        Pgroup::of(self.sampling, self.depth)
    }

    /// Samples of a row.
    pub const fn row_samples(&self) -> u32 {
        // The width can be odd only where each pixel has three samples of its own.
        self.width * self.sampling.samples_per_pair() / 2
    }

    /// Bytes of a row.
    pub const fn row_bytes(&self) -> u32 {
        let pgroup = self.pgroup();
        self.width / pgroup.pixels * pgroup.bytes
    }

    /// Bytes of a frame.
    pub const fn frame_bytes(&self) -> usize {
        self.row_bytes() as usize * self.height as usize
    }

    /// Bits per second of its frames, without headers.
    pub fn bits_per_second(&self) -> f64 {
        self.frame_bytes() as f64 * 8.0 * self.rate.per_second()
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, height, sampling, depth, rate } = self;
        write!(f, "{width}x{height} {sampling} {depth} {rate}")
    }
}

impl FromStr for Geometry {
    type Err = Error;

    /// As it is printed, or shorter: `1920x1080 4:2:2 10 60000/1001`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong =
            || Error::Text(text.to_owned(), "geometry", "\"1920x1080 4:2:2 10 bit 60000/1001\"");
        let words: Vec<_> = text.split_whitespace().filter(|word| *word != "bit").collect();
        let [size, sampling, depth, rate] = words[..] else { return Err(wrong()) };
        let (width, height) = size.split_once('x').ok_or_else(wrong)?;
        let side = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        let size = (side(width)?, side(height)?);
        Self::new(size, sampling.parse()?, depth.parse()?, rate.parse()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_of_8k_has_the_rates_of_3g_sdi() {
        assert_eq!(Geometry::HD.frame_bytes(), 5_184_000);
        assert_eq!(Geometry::HD_RASTER.frame_bytes(), 6_187_500);
        assert_eq!((Geometry::HD.bits_per_second() / 1e6).round(), 2486.0);
        assert_eq!(Geometry::HD_RASTER.bits_per_second().round(), (2.97e9f64 / 1.001).round());
    }

    #[test]
    fn a_pgroup_holds_its_samples_exactly() {
        for sampling in Sampling::ALL {
            for depth in Depth::ALL {
                let Pgroup { bytes, pixels } = Pgroup::of(sampling, depth);
                let bits = pixels * sampling.samples_per_pair() * depth.bits();
                assert_eq!(bits, bytes * 8 * 2, "{sampling} {depth}");
            }
        }
    }

    #[test]
    fn a_geometry_is_read_as_it_is_printed() {
        for text in ["1920x1080 YCbCr-4:2:2 10 bit 60000/1001", "7680x4320 RGB 12 bit 60"] {
            assert_eq!(text.parse::<Geometry>().unwrap().to_string(), text);
        }
        assert_eq!("1920x1080 4:2:2 10 60000/1001".parse(), Ok(Geometry::HD));
    }

    #[test]
    fn an_invalid_geometry_is_refused_with_the_reason() {
        let refused = |text: &str| text.parse::<Geometry>().unwrap_err();
        assert_eq!(refused("0x1080 RGB 8 50"), Error::Side(0, 1080));
        assert!(matches!(refused("1921x1080 4:2:2 10 50"), Error::Width { pixels: 2, .. }));
        assert!(matches!(refused("32767x32767 RGB 8 50"), Error::Large(_)));
        assert_eq!(refused("1920x1080 RGB 8 5000"), Error::Rate(5000, 1));
        assert_eq!(refused("1920x1080 RGB 8 50/0"), Error::Rate(50, 0));
        assert!(matches!(
            refused("1920x1080 4:2:0 8 50"),
            Error::Text(_, _, "YCbCr-4:2:2, YCbCr-4:4:4 or RGB")
        ));
        assert!(matches!(refused("wide"), Error::Text(..)));
    }

    #[test]
    fn frames_begin_at_exact_fractions() {
        let rate = FrameRate::P59_94;
        assert_eq!(rate.start_of(60_000), Duration::from_secs(1001));
        assert_eq!(rate.start_of(1).as_nanos(), 16_683_333);
        for number in [0, 1, 59, 60_000, 106_000_000_000] {
            assert_eq!(rate.first_from(rate.start_of(number)), number);
            let later = rate.start_of(number) + Duration::from_nanos(2);
            assert_eq!(rate.first_from(later), number + 1);
        }
    }

    #[test]
    fn a_frame_is_identified_by_its_rtp_timestamp() {
        let rate = FrameRate::P59_94;
        // 90000 · 1001 / 60000 = 1501.5 ticks from frame to frame.
        assert_eq!([1, 2, 3].map(|n| rate.rtp_timestamp(n)), [1501, 3003, 4504]);
        let now = 106_000_000_007;
        for number in now - 300_000..now {
            let timestamp = rate.rtp_timestamp(number);
            assert_eq!(rate.frame_of(timestamp, now), number);
            assert_eq!(rate.frame_of(timestamp.wrapping_add(1), now), number);
        }
        assert_eq!(rate.frame_of(rate.rtp_timestamp(3), 0), 3);
        assert_eq!(rate.frame_of(u32::MAX, 0), 0, "there is no frame before the first");
    }
}
