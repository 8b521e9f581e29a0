//! Chunks: a segment as fragments of a few frames each, which can be sent while the rest is still being captured (CMAF,
//! ISO/IEC 23000-19 §7.3.2.3).

use suiro_units::BitRate;

use super::boxes::{Fields, boxes};
use super::fragment::fragments;
use super::init::Init;
use super::write::{Frame, segment};
use crate::ParseError;

/// A media segment in chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunked {
    /// The segment.
    pub bytes: Vec<u8>,
    /// Its chunks, in order; the bytes of the first begin at 0.
    pub chunks: Vec<Chunk>,
}

/// One chunk: a `moof` and its `mdat`, and what stands before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Where its bytes end in the segment.
    pub end: usize,
    /// How long its frames last, in ticks of the track.
    pub duration: u64,
    /// True if decoding can begin with it.
    pub independent: bool,
}

/// The bit rates of a track whose segments are in chunks: the headers of chunks count.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChunkedRates {
    bits: u128,
    ticks: u128,
    timescale: u128,
    peak: u128,
}

impl ChunkedRates {
    /// Counts a segment of a track with so many ticks per second.
    pub fn add(&mut self, segment: &Chunked, timescale: u32) {
        self.timescale = timescale.into();
        let ticks: u128 = segment.chunks.iter().map(|chunk| u128::from(chunk.duration)).sum();
        let bits = segment.bytes.len() as u128 * 8;
        self.peak = self.peak.max((bits * self.timescale).div_ceil(ticks.max(1)));
        (self.bits, self.ticks) = (self.bits + bits, self.ticks + ticks);
    }

    /// That of the largest segment.
    pub fn peak(&self) -> BitRate {
        rate(self.peak)
    }

    /// Their mean.
    pub fn mean(&self) -> BitRate {
        rate(self.bits * self.timescale / self.ticks.max(1))
    }
}

fn rate(bps: u128) -> BitRate {
    BitRate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
}

/// Writes a media segment again in chunks of at most `longest` ticks and at least one frame, numbered from `sequence`. No
/// chunk holds frames of two fragments of the original, so that a key frame still begins a chunk.
///
/// # Errors
/// As [`fragments`].
pub fn chunked(
    bytes: &[u8],
    init: &Init,
    longest: u64,
    sequence: u32,
) -> Result<Chunked, ParseError> {
    let mut groups: Vec<Vec<Frame>> = Vec::new();
    for fragment in fragments(bytes, init)? {
        let mut decode = fragment.decode_time;
        let mut frames = Vec::with_capacity(fragment.samples.len());
        for sample in fragment.samples {
            let (data, duration) = (bytes[sample.data].to_vec(), sample.duration);
            let shown = decode.wrapping_add_signed(sample.composition);
            frames.push(Frame { data, decode, shown, duration, sync: sample.sync });
            decode = decode.wrapping_add(duration.into());
        }
        let frame = frames.first().map_or(1, |first| u64::from(first.duration).max(1));
        let each = usize::try_from(longest / frame).unwrap_or(usize::MAX).max(1);
        groups.extend(frames.chunks(each).map(<[Frame]>::to_vec));
    }
    let frames: Vec<&[Frame]> = groups.iter().map(Vec::as_slice).collect();
    let bytes = segment(&frames, sequence);
    let chunks = ends(&bytes)?.into_iter().zip(&groups).map(|(end, group)| Chunk {
        end,
        duration: group.iter().map(|frame| u64::from(frame.duration)).sum(),
        independent: group.first().is_some_and(|first| first.sync),
    });
    let chunks = chunks.collect();
    Ok(Chunked { bytes, chunks })
}

/// Where the chunks of a media segment end: after each `mdat`.
///
/// # Errors
/// If the bytes are not whole boxes.
pub fn ends(bytes: &[u8]) -> Result<Vec<usize>, ParseError> {
    let found = boxes(bytes, 0, bytes.len())?;
    Ok(found.iter().filter(|found| &found.kind == b"mdat").map(|found| found.end).collect())
}

/// Where the first chunk of these bytes ends, of which there may be more to come; `None` while it is not whole.
///
/// # Errors
/// If a box is smaller than its header, or ends beyond `most` bytes.
pub fn first_end(bytes: &[u8], most: usize) -> Result<Option<usize>, ParseError> {
    let mut at = 0;
    while let Some((kind, end)) = extent(bytes, at)? {
        if end > most {
            let message = format!("box `{}` ends beyond {most} bytes", kind.escape_ascii());
            return Err(ParseError::new(at, message));
        }
        if end > bytes.len() {
            return Ok(None);
        }
        if &kind == b"mdat" {
            return Ok(Some(end));
        }
        at = end;
    }
    Ok(None)
}

/// Kind and end of the box at `at`, of which only the header must be there; `None` while that is not whole.
fn extent(bytes: &[u8], at: usize) -> Result<Option<([u8; 4], usize)>, ParseError> {
    let mut field = Fields::new(bytes, at, bytes.len())?;
    let (Ok(short), Ok(kind)) = (field.u32(), field.array::<4>()) else { return Ok(None) };
    let size = match (short, field.u64()) {
        (0, _) => return Err(ParseError::new(at, "a box without a size")),
        (1, Err(_)) => return Ok(None),
        (1, Ok(size)) => size,
        (size, _) => u64::from(size),
    };
    let least = if short == 1 { 16 } else { 8 };
    let end = usize::try_from(size).ok().and_then(|size| at.checked_add(size));
    match end.filter(|_| size >= least) {
        Some(end) => Ok(Some((kind, end))),
        None => Err(ParseError::new(at, format!("box `{}` of {size} bytes", kind.escape_ascii()))),
    }
}
