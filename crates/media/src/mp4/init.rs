//! The initialisation segment: what a track is.

use super::boxes::{Boxed, Fields, boxes, only};
use crate::ParseError;
use crate::aac::AudioConfig;
use crate::h264::ParameterSets;

/// What an initialisation segment says of its one track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Init {
    /// Ticks per second.
    pub timescale: u32,
    /// How its samples are coded.
    pub entry: Entry,
    /// What holds for a sample if its fragment does not say (`trex`, §8.8.3).
    pub(super) defaults: Defaults,
}

/// A sample entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// `avc1` or `avc3` (ISO/IEC 14496-15).
    Video {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
        /// SPS and PPS.
        sets: ParameterSets,
    },
    /// `mp4a` (ISO/IEC 14496-14) with AAC.
    Audio(AudioConfig),
}

/// Defaults of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Defaults {
    pub track: u32,
    pub duration: u32,
    pub size: u32,
    pub flags: u32,
}

/// Reads an initialisation segment with one track.
///
/// # Errors
/// If boxes are cut, missing or twice there, or the codec is neither H.264 nor AAC.
pub fn init(bytes: &[u8]) -> Result<Init, ParseError> {
    let moov = only(&boxes(bytes, 0, bytes.len())?, b"moov", 0)?;
    let inside = boxes(bytes, moov.content, moov.end)?;
    let trak = only(&inside, b"trak", moov.start)?;
    let mdia = inner(bytes, &trak, b"mdia")?;
    let mdhd = inner(bytes, &mdia, b"mdhd")?;
    let stbl = inner(bytes, &inner(bytes, &mdia, b"minf")?, b"stbl")?;
    let mvex = only(&inside, b"mvex", moov.start)?;
    Ok(Init {
        timescale: timescale(bytes, &mdhd)?,
        entry: entry(bytes, &inner(bytes, &stbl, b"stsd")?)?,
        defaults: defaults(bytes, &inner(bytes, &mvex, b"trex")?)?,
    })
}

fn inner(bytes: &[u8], outer: &Boxed, kind: &[u8; 4]) -> Result<Boxed, ParseError> {
    only(&boxes(bytes, outer.content, outer.end)?, kind, outer.start)
}

/// §8.4.2.
fn timescale(bytes: &[u8], mdhd: &Boxed) -> Result<u32, ParseError> {
    let mut field = Fields::of(bytes, mdhd)?;
    let (version, _) = field.version()?;
    // Creation and modification time.
    field.take(if version == 1 { 16 } else { 8 })?;
    match field.u32()? {
        0 => Err(ParseError::new(mdhd.start, "a timescale of 0")),
        timescale => Ok(timescale),
    }
}

/// §8.8.3.
fn defaults(bytes: &[u8], trex: &Boxed) -> Result<Defaults, ParseError> {
    let mut field = Fields::of(bytes, trex)?;
    field.version()?;
    let track = field.u32()?;
    field.u32()?;
    Ok(Defaults { track, duration: field.u32()?, size: field.u32()?, flags: field.u32()? })
}

/// §8.5.2 and §12.
fn entry(bytes: &[u8], stsd: &Boxed) -> Result<Entry, ParseError> {
    let mut field = Fields::of(bytes, stsd)?;
    field.version()?;
    if field.u32()? != 1 {
        return Err(ParseError::new(stsd.start, "not one sample entry"));
    }
    let entries = boxes(bytes, field.at, stsd.end)?;
    let [entry] = entries[..] else {
        return Err(ParseError::new(stsd.start, "not one sample entry"));
    };
    match &entry.kind {
        b"avc1" | b"avc3" => video(bytes, &entry),
        b"mp4a" => audio(bytes, &entry),
        other => {
            let message = format!("samples of the unknown kind `{}`", other.escape_ascii());
            Err(ParseError::new(entry.start, message))
        }
    }
}

fn video(bytes: &[u8], entry: &Boxed) -> Result<Entry, ParseError> {
    let mut field = Fields::of(bytes, entry)?;
    field.take(24)?;
    let (width, height) = (field.u16()?, field.u16()?);
    field.take(50)?;
    let avcc = only(&boxes(bytes, field.at, entry.end)?, b"avcC", entry.start)?;
    let sets = ParameterSets::read(&bytes[avcc.content..avcc.end])
        .map_err(|error| error.within(avcc.content))?;
    Ok(Entry::Video { width: width.into(), height: height.into(), sets })
}

fn audio(bytes: &[u8], entry: &Boxed) -> Result<Entry, ParseError> {
    let mut field = Fields::of(bytes, entry)?;
    field.take(28)?;
    let esds = only(&boxes(bytes, field.at, entry.end)?, b"esds", entry.start)?;
    let mut field = Fields::of(bytes, &esds)?;
    field.version()?;
    // ISO/IEC 14496-1 §7.2.6: ES descriptor, decoder configuration, decoder specific info.
    descriptor(&mut field, 3)?;
    field.take(2)?;
    if field.u8()? != 0 {
        return Err(ParseError::new(esds.start, "an ES descriptor with options"));
    }
    descriptor(&mut field, 4)?;
    field.take(13)?;
    let size = descriptor(&mut field, 5)?;
    let at = field.at;
    AudioConfig::read(field.take(size)?).map(Entry::Audio).map_err(|error| error.within(at))
}

/// The header of a descriptor: its tag, and its size in up to four bytes of seven bits (§8.3.3).
fn descriptor(field: &mut Fields<'_>, tag: u8) -> Result<usize, ParseError> {
    let at = field.at;
    let found = field.u8()?;
    if found != tag {
        return Err(ParseError::new(at, format!("descriptor {found}, not {tag}")));
    }
    let mut size = 0;
    for _ in 0..4 {
        let byte = field.u8()?;
        size = size << 7 | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok(size);
        }
    }
    Err(ParseError::new(at, "a descriptor's size of more than four bytes"))
}
