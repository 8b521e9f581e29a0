//! Fragments: the samples of a media segment.

use std::ops::Range;

use super::boxes::{Boxed, Fields, boxes, only};
use super::init::{Defaults, Init};
use crate::ParseError;

/// Most samples of a fragment: eight minutes at 120 frames per second.
const SAMPLES_MAX: usize = 1 << 16;

/// `sample_is_non_sync_sample` (§8.8.3.1).
pub(super) const NON_SYNC: u32 = 0x0001_0000;

/// A movie fragment: `moof` and the `mdat` after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// Its number (`mfhd`).
    pub sequence: u32,
    /// When its first sample is decoded, in ticks of the track (`tfdt`).
    pub decode_time: u64,
    /// Its samples, in decoding order.
    pub samples: Vec<Sample>,
}

/// A coded frame of video, or an AAC frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Where its data lies in the bytes handed over.
    pub data: Range<usize>,
    /// How long it lasts, in ticks of the track.
    pub duration: u32,
    /// How long after its decoding it is shown, in ticks of the track.
    pub composition: i64,
    /// True if decoding can begin here.
    pub sync: bool,
}

impl Fragment {
    /// Ticks from its first sample to the end of its last.
    pub fn duration(&self) -> u64 {
        self.samples.iter().map(|sample| u64::from(sample.duration)).sum()
    }
}

/// Reads a media segment: every fragment of the track of `init`, in order.
///
/// # Errors
/// If boxes are cut, a fragment is of another track, or samples lie outside the bytes.
pub fn fragments(bytes: &[u8], init: &Init) -> Result<Vec<Fragment>, ParseError> {
    let outer = boxes(bytes, 0, bytes.len())?;
    let moofs = outer.iter().filter(|found| &found.kind == b"moof");
    moofs.map(|moof| fragment(bytes, moof, init)).collect()
}

fn fragment(bytes: &[u8], moof: &Boxed, init: &Init) -> Result<Fragment, ParseError> {
    let inside = boxes(bytes, moof.content, moof.end)?;
    let mut mfhd = Fields::of(bytes, &only(&inside, b"mfhd", moof.start)?)?;
    mfhd.version()?;
    let traf = only(&inside, b"traf", moof.start)?;
    let inside = boxes(bytes, traf.content, traf.end)?;
    let defaults = header(bytes, &only(&inside, b"tfhd", traf.start)?, &init.defaults)?;
    let mut tfdt = Fields::of(bytes, &only(&inside, b"tfdt", traf.start)?)?;
    let (version, _) = tfdt.version()?;
    let decode_time = if version == 0 { tfdt.u32()?.into() } else { tfdt.u64()? };
    let mut samples = Vec::new();
    let mut next = moof.start;
    for trun in inside.iter().filter(|found| &found.kind == b"trun") {
        run(bytes, trun, moof, &defaults, &mut next, &mut samples)?;
    }
    Ok(Fragment { sequence: mfhd.u32()?, decode_time, samples })
}

/// §8.8.7.
fn header(bytes: &[u8], tfhd: &Boxed, trex: &Defaults) -> Result<Defaults, ParseError> {
    let mut field = Fields::of(bytes, tfhd)?;
    let (_, flags) = field.version()?;
    let track = field.u32()?;
    if track != trex.track {
        return Err(ParseError::new(tfhd.start, format!("track {track}, not {}", trex.track)));
    }
    if flags & 0x01 != 0 {
        return Err(ParseError::new(tfhd.start, "samples placed from the file's start"));
    }
    if flags & 0x02 != 0 {
        field.u32()?;
    }
    let mut or = |flag: u32, default: u32| {
        if flags & flag != 0 { field.u32() } else { Ok(default) }
    };
    let duration = or(0x08, trex.duration)?;
    let size = or(0x10, trex.size)?;
    Ok(Defaults { track, duration, size, flags: or(0x20, trex.flags)? })
}

/// §8.8.8. `next` is where samples lie if the run does not say: after those of the run before.
fn run(
    bytes: &[u8],
    trun: &Boxed,
    moof: &Boxed,
    defaults: &Defaults,
    next: &mut usize,
    samples: &mut Vec<Sample>,
) -> Result<(), ParseError> {
    let mut field = Fields::of(bytes, trun)?;
    let (version, flags) = field.version()?;
    let count = field.u32()? as usize;
    if count.saturating_add(samples.len()) > SAMPLES_MAX {
        return Err(ParseError::new(trun.start, format!("more than {SAMPLES_MAX} samples")));
    }
    if flags & 0x01 != 0 {
        let offset = field.u32()? as i32;
        let at = i64::try_from(moof.start).ok().and_then(|at| at.checked_add(offset.into()));
        let at = at.and_then(|at| usize::try_from(at).ok());
        *next = at.ok_or_else(|| ParseError::new(trun.start, "samples before the file"))?;
    }
    let first_flags = if flags & 0x04 != 0 { Some(field.u32()?) } else { None };
    for index in 0..count {
        let mut or = |flag: u32, default: u32| {
            if flags & flag != 0 { field.u32() } else { Ok(default) }
        };
        let duration = or(0x100, defaults.duration)?;
        let size = or(0x200, defaults.size)? as usize;
        let own_flags = or(0x400, defaults.flags)?;
        let composition = or(0x800, 0)?;
        let sample_flags = first_flags.filter(|_| index == 0).unwrap_or(own_flags);
        let end = next.checked_add(size).filter(|end| *end <= bytes.len());
        let end = end.ok_or_else(|| ParseError::new(trun.start, "samples beyond the bytes"))?;
        samples.push(Sample {
            data: *next..end,
            duration,
            composition: match version {
                0 => composition.into(),
                _ => (composition as i32).into(),
            },
            sync: sample_flags & NON_SYNC == 0,
        });
        *next = end;
    }
    Ok(())
}
