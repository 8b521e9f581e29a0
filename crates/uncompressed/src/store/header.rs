//! The header page of a store and the trailer of a slot.
//!
//! | bytes | header field |
//! |---|---|
//! | 0–7 | `suiro8k` and a zero |
//! | 8–11 | version, 1 |
//! | 12–15 | what a frame is: 0 an image, 1 an SDI raster with the image in it |
//! | 16–19, 20–23 | width and height of the frame in pixels |
//! | 24–27 | sampling: 0 YCbCr 4:2:2, 1 YCbCr 4:4:4, 2 RGB |
//! | 28–31 | bits of a sample |
//! | 32–35, 36–39 | frames, and in how many seconds |
//! | 40–47 | bytes of a frame |
//! | 48–55 | bytes of a slot |
//! | 56–63 | number of the first frame |
//! | 64–71 | frames |
//! | 72–75, 76–79 | which part of the whole image this is, from 0, and how many parts there are |
//! | 80–87 | how it was split: 0 not at all, 1 8K-DG, 2 tiles |
//! | 4088–4095 | checksum of the bytes before it ([`crate::checksum`]) |
//!
//! The other bytes are 0. A slot ends in a trailer of 32 bytes: `suiroslt`, the frame's number, its
//! checksum, and 0. If a frame is missing from a recording, its slot contains only a trailer:
//! `suirogap`, the frame's number, and 0. So each frame's position follows from its number.

use super::{FRAMES_MAX, PAGE_BYTES};
use crate::checksum;
use crate::geometry::{self, Depth, FrameRate, Geometry, Sampling};
use crate::split::Split;

const MAGIC: &[u8; 8] = b"suiro8k\0";
const TRAILER_MAGIC: &[u8; 8] = b"suiroslt";
const GAP_MAGIC: &[u8; 8] = b"suirogap";
const VERSION: u32 = 1;
const CHECKED_BYTES: usize = PAGE_BYTES - 8;
/// Bytes of a trailer.
pub(super) const TRAILER_BYTES: usize = 32;

/// What a frame in a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// An image.
    Picture,
    /// An SDI raster with the image in it, and blanking around it.
    Raster,
}

/// Why a page is not a header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// It is shorter than a page.
    #[error("not a frame store: expected at least a page of {PAGE_BYTES} bytes, found {0}")]
    Short(usize),
    /// It does not begin like one.
    #[error("not a frame store")]
    Magic,
    /// It has another version.
    #[error("frame store version: expected {VERSION}, found {0}")]
    Version(u32),
    /// Its checksum is wrong.
    #[error("the header is damaged: its checksum is wrong")]
    Checksum,
    /// A field has an invalid value.
    #[error("the header's {0} is invalid: {1}")]
    Field(&'static str, u64),
    /// The images are out of bounds.
    #[error(transparent)]
    Geometry(#[from] geometry::Error),
}

/// The contents of a store's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The format of the frames; for a raster, including its blanking.
    pub geometry: Geometry,
    /// What a frame is.
    pub content: Content,
    /// Number of the first frame in its sequence; in a recording, frame times since the SMPTE epoch
    /// according to its sender's timestamps.
    pub first: u64,
    /// Frames in the store, including those that are missing from a recording.
    pub frames: u64,
    /// How the whole image was split; `None` if it was not.
    pub split: Option<Split>,
    /// Which part this is, from 0.
    pub part: u32,
    /// How many parts there are; 1 if it was not split.
    pub parts: u32,
}

impl Header {
    /// A store without frames, of whole images.
    pub const fn new(geometry: Geometry, content: Content) -> Self {
        Self { geometry, content, first: 0, frames: 0, split: None, part: 0, parts: 1 }
    }

    /// Distance in bytes from one frame to the next.
    pub const fn slot_bytes(&self) -> usize {
        (self.geometry.frame_bytes() + TRAILER_BYTES).next_multiple_of(PAGE_BYTES)
    }

    /// The offset of slot `index` in the file.
    pub const fn slot_offset(&self, index: u64) -> u64 {
        PAGE_BYTES as u64 + index * self.slot_bytes() as u64
    }

    /// The header page.
    pub fn encode(&self) -> [u8; PAGE_BYTES] {
        let mut page = [0; PAGE_BYTES];
        let geometry = &self.geometry;
        page[..8].copy_from_slice(MAGIC);
        let sampling = match geometry.sampling() {
            Sampling::YCbCr422 => 0,
            Sampling::YCbCr444 => 1,
            Sampling::Rgb => 2,
        };
        let content = u32::from(self.content == Content::Raster);
        let rate = geometry.rate();
        let (width, height) = (geometry.width(), geometry.height());
        let narrow = [
            (8, VERSION),
            (12, content),
            (16, width),
            (20, height),
            (24, sampling),
            (28, geometry.depth().bits()),
            (32, rate.frames()),
            (36, rate.seconds()),
            (72, self.part),
            (76, self.parts),
        ];
        for (at, value) in narrow {
            page[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        let split = match self.split {
            None => 0,
            Some(Split::Dg) => 1,
            Some(Split::Tiles) => 2,
        };
        let bytes = (geometry.frame_bytes() as u64, self.slot_bytes() as u64);
        let wide = [(40, bytes.0), (48, bytes.1), (56, self.first), (64, self.frames), (80, split)];
        for (at, value) in wide {
            page[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let sum = checksum::of_frame(&page[..CHECKED_BYTES]);
        page[CHECKED_BYTES..].copy_from_slice(&sum.to_le_bytes());
        page
    }

    /// Parses a header page.
    pub fn decode(page: &[u8]) -> Result<Self, HeaderError> {
        let Some(page) = page.first_chunk::<PAGE_BYTES>() else {
            return Err(HeaderError::Short(page.len()));
        };
        let fields = Fields(page);
        if &page[..8] != MAGIC {
            return Err(HeaderError::Magic);
        }
        if fields.narrow(8) != VERSION {
            return Err(HeaderError::Version(fields.narrow(8)));
        }
        if checksum::of_frame(&page[..CHECKED_BYTES]) != fields.wide(CHECKED_BYTES) {
            return Err(HeaderError::Checksum);
        }
        let header = fields.header()?;
        fields.agree_with(&header)?;
        Ok(header)
    }
}

struct Fields<'a>(&'a [u8; PAGE_BYTES]);

impl Fields<'_> {
    fn narrow(&self, at: usize) -> u32 {
        u32::from_le_bytes(*self.0[at..].first_chunk().expect("the field lies in the page"))
    }

    fn wide(&self, at: usize) -> u64 {
        u64::from_le_bytes(*self.0[at..].first_chunk().expect("the field lies in the page"))
    }

    fn header(&self) -> Result<Header, HeaderError> {
        let content = match self.narrow(12) {
            0 => Content::Picture,
            1 => Content::Raster,
            other => return Err(HeaderError::Field("content", other.into())),
        };
        let split = match self.wide(80) {
            0 => None,
            1 => Some(Split::Dg),
            2 => Some(Split::Tiles),
            other => return Err(HeaderError::Field("split", other)),
        };
        Ok(Header {
            geometry: self.geometry()?,
            content,
            first: self.wide(56),
            frames: self.wide(64),
            split,
            part: self.narrow(72),
            parts: self.narrow(76),
        })
    }

    fn geometry(&self) -> Result<Geometry, HeaderError> {
        let sampling = *Sampling::ALL
            .get(self.narrow(24) as usize)
            .ok_or(HeaderError::Field("sampling", self.narrow(24).into()))?;
        let depth = Depth::of_bits(self.narrow(28))
            .ok_or(HeaderError::Field("depth", self.narrow(28).into()))?;
        let rate = FrameRate::new(self.narrow(32), self.narrow(36))?;
        Ok(Geometry::new((self.narrow(16), self.narrow(20)), sampling, depth, rate)?)
    }

    /// Values that the header contains twice must agree.
    fn agree_with(&self, header: &Header) -> Result<(), HeaderError> {
        if self.wide(40) != header.geometry.frame_bytes() as u64 {
            return Err(HeaderError::Field("frame size", self.wide(40)));
        }
        if self.wide(48) != header.slot_bytes() as u64 {
            return Err(HeaderError::Field("slot size", self.wide(48)));
        }
        if header.frames > FRAMES_MAX {
            return Err(HeaderError::Field("number of frames", header.frames));
        }
        if header.first.checked_add(FRAMES_MAX).is_none() {
            return Err(HeaderError::Field("first frame", header.first));
        }
        if header.part >= header.parts || header.parts > 64 {
            return Err(HeaderError::Field("part", header.part.into()));
        }
        Ok(())
    }
}

/// The trailer at the end of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailer {
    /// The frame's number in its sequence.
    pub number: u64,
    /// Its [`crate::checksum`].
    pub checksum: u64,
}

impl Trailer {
    /// Writes it at the end of a slot.
    ///
    /// # Panics
    /// If the slot is shorter than a trailer.
    pub fn write(&self, slot: &mut [u8]) {
        let trailer = slot.last_chunk_mut::<TRAILER_BYTES>().expect("a slot has a trailer");
        trailer[..8].copy_from_slice(TRAILER_MAGIC);
        trailer[8..16].copy_from_slice(&self.number.to_le_bytes());
        trailer[16..24].copy_from_slice(&self.checksum.to_le_bytes());
        trailer[24..].fill(0);
    }

    /// Reads it from the end of a slot; `None` if there is none.
    pub fn read(slot: &[u8]) -> Option<Self> {
        let trailer = slot.last_chunk::<TRAILER_BYTES>()?;
        let wide = |at: usize| trailer[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let sound = &trailer[..8] == TRAILER_MAGIC;
        sound.then_some(Self { number: wide(8)?, checksum: wide(16)? })
    }

    /// Marks frame `number` as missing at the end of a slot.
    ///
    /// # Panics
    /// If the slot is shorter than a trailer.
    pub fn write_gap(number: u64, slot: &mut [u8]) {
        Self { number, checksum: 0 }.write(slot);
        let trailer = slot.last_chunk_mut::<TRAILER_BYTES>().expect("a slot has a trailer");
        trailer[..8].copy_from_slice(GAP_MAGIC);
    }

    /// The number of the missing frame, if the end of a slot marks one.
    pub fn gap(slot: &[u8]) -> Option<u64> {
        let trailer = slot.last_chunk::<TRAILER_BYTES>()?;
        let number = trailer[8..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        number.filter(|_| &trailer[..8] == GAP_MAGIC)
    }
}
