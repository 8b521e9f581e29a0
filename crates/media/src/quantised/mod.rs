//! Video in several versions of one quantiser scale each, for a sender that chooses among them: the
//! video of MPEG-TFRCP.
//!
//! MPEG-2 video (ISO/IEC 13818-2) of 720×480 pixels at 30000/1001 frames per second, in closed
//! groups of [`GROUP`] frames, every group with its own sequence header: a decoder can change the
//! version at any group. There are no B-frames, so frames are sent in the order in which they
//! are shown, each as soon as it was captured. All versions have the same frames; they differ in
//! their quantiser scale, which is the same for every macroblock of a version.

mod encode;
mod form;
mod index;
mod parse;
mod prepare;

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use suiro_units::{BitRate, Duration};

use crate::package::Origin;
use crate::{MediaError, MediaSpec};

pub(crate) use encode::pictures;
pub use form::{GROUP, GROUP_DURATION, RATE, SCALES, SIZE};
pub use parse::pictures as parse;
pub use prepare::{prepare, prepare_with};

/// The index's file in the folder of a set. It is written last.
pub const INDEX_FILE: &str = "quantised.json";

/// Video in versions, all of the same frames: `quantised.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// Version of the index.
    pub version: u32,
    /// Where the video comes from.
    pub source: Origin,
    /// What was asked for.
    pub spec: MediaSpec,
    /// Version of the ffmpeg that encoded it.
    pub ffmpeg: String,
    /// The versions, by rising bit rate: falling quantiser scale.
    pub versions: Vec<Version>,
    /// The folder it was loaded from.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// The video at one quantiser scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Quantiser scale as ffmpeg counts it, 1 (finest) to 31.
    pub scale: u8,
    /// Mean bit rate over the loop, all bytes of the elementary stream counted, rounded down.
    pub rate: BitRate,
    /// The elementary stream, below the set's folder.
    pub file: String,
    /// SHA-256 of that file, in hexadecimal.
    pub sha256: String,
    /// One loop of frames, in the order of coding and of display.
    pub pictures: Vec<Picture>,
}

/// One coded frame, with the headers of sequence and group before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u32,
    /// How it is coded.
    pub kind: Kind,
    /// Its number in the loop, in the order of display, from 0.
    pub number: u32,
    /// The group that it is of, from 0.
    pub group: u32,
}

/// How a frame is coded (ISO/IEC 13818-2 table 6-12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// By itself.
    I,
    /// Predicted from the one before.
    P,
    /// Predicted from both sides. Sets have none; [`parse`] reports them.
    B,
}

/// The coded frames of one group of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    bytes: Vec<u8>,
    pictures: Vec<(Kind, std::ops::Range<usize>)>,
}

impl Group {
    /// Its frames in order: how each is coded, and its bytes.
    pub fn pictures(&self) -> impl ExactSizeIterator<Item = (Kind, &[u8])> {
        self.pictures.iter().map(|(kind, range)| (*kind, &self.bytes[range.clone()]))
    }

    /// All of it: a stream that can be decoded by itself.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Set {
    /// Frames of a loop.
    pub fn frames(&self) -> u64 {
        self.versions.first().map_or(0, |version| version.pictures.len() as u64)
    }

    /// Groups of a loop.
    pub fn groups(&self) -> u64 {
        self.frames() / u64::from(GROUP)
    }

    /// The best version, by its place in [`Self::versions`], whose mean rate does not exceed `rate`;
    /// `None` if even the lowest does.
    pub fn best_under(&self, rate: BitRate) -> Option<usize> {
        self.versions.iter().rposition(|version| version.rate <= rate)
    }

    /// The version of that mean rate, by its place.
    pub fn of_rate(&self, rate: BitRate) -> Option<usize> {
        self.versions.iter().position(|version| version.rate == rate)
    }

    /// When a frame of the endless stream is shown, from the stream's start.
    pub fn time(frame: u64) -> Duration {
        let ns = u128::from(frame) * 1_000_000_000 * u128::from(RATE.1) / u128::from(RATE.0);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Reads group `number` of the endless stream of a version: the loop, over and over.
    ///
    /// # Errors
    /// [`MediaError::Damaged`] if there is no such version, or its file is not what the index says.
    pub fn group(&self, version: usize, number: u64) -> Result<Group, MediaError> {
        let index = || self.folder.join(INDEX_FILE);
        let Some(version) = self.versions.get(version) else {
            return Err(MediaError::damaged(&index(), format!("it has no version {version}")));
        };
        let in_loop = number.checked_rem(self.groups());
        let first = in_loop.map_or(usize::MAX, |group| group as usize * GROUP as usize);
        let last = first.saturating_add(GROUP as usize);
        let Some(pictures) = version.pictures.get(first..last) else {
            return Err(MediaError::damaged(&index(), "it has no complete group"));
        };
        let file = self.folder.join(&version.file);
        let bytes = read(&file, pictures).map_err(|error| MediaError::damaged(&file, error))?;
        let begin = pictures[0].offset;
        let place = |picture: &Picture| {
            let from = (picture.offset - begin) as usize;
            (picture.kind, from..from + picture.bytes as usize)
        };
        Ok(Group { bytes, pictures: pictures.iter().map(place).collect() })
    }
}

/// The bytes of frames that follow each other.
fn read(file: &Path, pictures: &[Picture]) -> std::io::Result<Vec<u8>> {
    let size: u64 = pictures.iter().map(|picture| u64::from(picture.bytes)).sum();
    let mut from = suiro_outside::file::open(file)?;
    from.seek(SeekFrom::Start(pictures[0].offset))?;
    let mut bytes = vec![0; size as usize];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}
