//! Media segments.

use super::fragment::NON_SYNC;

/// A sample with its data, to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub data: Vec<u8>,
    /// When it is decoded, in ticks of the track.
    pub decode: u64,
    /// When it is shown, in ticks of the track.
    pub shown: u64,
    /// How long it lasts, in ticks of the track.
    pub duration: u32,
    /// True if decoding can begin here.
    pub sync: bool,
}

/// `sample_depends_on` (§8.8.3.1): on no other sample, and on others.
const INDEPENDENT: u32 = 0x0200_0000;
const DEPENDENT: u32 = 0x0100_0000 | NON_SYNC;

/// Writes a media segment of track 1: `styp`, then a fragment for each of `groups`, numbered from
/// `sequence`. Only the first frame of a group of pictures may be a sync sample.
pub(crate) fn segment(groups: &[&[Frame]], sequence: u32) -> Vec<u8> {
    let mut out = Vec::new();
    boxed(&mut out, b"styp", |out| out.extend(b"msdh\0\0\0\0msdhiso6"));
    for (number, group) in (sequence..).zip(groups) {
        fragment(&mut out, number, group);
    }
    out
}

fn fragment(out: &mut Vec<u8>, sequence: u32, frames: &[Frame]) {
    let moof = out.len();
    let mut offset_at = 0;
    boxed(out, b"moof", |out| {
        boxed(out, b"mfhd", |out| words(out, &[0, sequence]));
        boxed(out, b"traf", |out| {
            let common = Common::of(frames);
            boxed(out, b"tfhd", |out| {
                // Default base is the moof; default duration and flags.
                words(out, &[0x02_0028, 1, common.duration, common.flags]);
            });
            boxed(out, b"tfdt", |out| {
                words(out, &[0x0100_0000]);
                out.extend(frames.first().map_or(0, |first| first.decode).to_be_bytes());
            });
            boxed(out, b"trun", |out| offset_at = run(out, frames, &common));
        });
    });
    let offset = (out.len() - moof + 8) as u32;
    out[offset_at..offset_at + 4].copy_from_slice(&offset.to_be_bytes());
    boxed(out, b"mdat", |out| frames.iter().for_each(|frame| out.extend(&frame.data)));
}

/// What the frames of a fragment have in common.
struct Common {
    duration: u32,
    flags: u32,
    /// Flags of `trun`.
    run: u32,
}

impl Common {
    fn of(frames: &[Frame]) -> Self {
        let duration = frames.first().map_or(0, |first| first.duration);
        let all_sync = frames.iter().all(|frame| frame.sync);
        // Data offset and sizes always; the rest only where frames differ.
        let mut run = 0x201;
        if !all_sync && frames.first().is_some_and(|first| first.sync) {
            run |= 0x004;
        }
        if frames.iter().any(|frame| frame.duration != duration) {
            run |= 0x100;
        }
        if frames.iter().any(|frame| frame.shown != frame.decode) {
            run |= 0x800;
        }
        Self { duration, flags: if all_sync { INDEPENDENT } else { DEPENDENT }, run }
    }
}

/// Writes the content of `trun`, of version 1: a frame may be shown "before" it is decoded, so that
/// a track with B-frames still begins at 0. Returns where the data offset is to be written.
fn run(out: &mut Vec<u8>, frames: &[Frame], common: &Common) -> usize {
    words(out, &[0x0100_0000 | common.run, frames.len() as u32]);
    let offset_at = out.len();
    words(out, &[0]);
    if common.run & 0x004 != 0 {
        words(out, &[INDEPENDENT]);
    }
    for frame in frames {
        if common.run & 0x100 != 0 {
            words(out, &[frame.duration]);
        }
        words(out, &[frame.data.len() as u32]);
        if common.run & 0x800 != 0 {
            // Modulo 2³², which is how a negative number is written.
            words(out, &[frame.shown.wrapping_sub(frame.decode) as u32]);
        }
    }
    offset_at
}

fn words(out: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| out.extend(word.to_be_bytes()));
}

/// Writes a box around what `content` writes. Boxes of segments are far below 4 GiB.
fn boxed(out: &mut Vec<u8>, kind: &[u8; 4], content: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; 4]);
    out.extend(kind);
    content(out);
    let size = u32::try_from(out.len() - start).expect("a segment is smaller than 4 GiB");
    out[start..start + 4].copy_from_slice(&size.to_be_bytes());
}
