//! What an origin offers: tracks in rungs, with what manifests say about them.

use suiro_units::BitRate;

use super::timeline::{Loop, Schedule};
use crate::presentation::TrackKind;

/// Everything that manifests are made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalogue {
    /// The tracks, video first.
    pub tracks: Vec<TrackEntry>,
    /// When segments are there.
    pub schedule: Schedule,
    /// Tells this content from other content at the same URLs; part of entity tags. Letters and
    /// digits.
    pub version: String,
}

/// One track.
#[derive(Debug, Clone, PartialEq)]
pub struct TrackEntry {
    /// What it carries.
    pub kind: TrackKind,
    /// How its segments are wrapped.
    pub container: Container,
    /// Its segments in time; all rungs are cut alike.
    pub timeline: Loop,
    /// Its rungs, lowest bit rate first.
    pub rungs: Vec<RungEntry>,
}

/// How segments are wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// Fragmented MP4 with an initialisation segment.
    Fmp4,
    /// MPEG transport stream, sound and pictures together; HLS only.
    MpegTs,
}

impl Container {
    /// Ending of a segment's name.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Fmp4 => "m4s",
            Self::MpegTs => "ts",
        }
    }
}

/// One rung.
#[derive(Debug, Clone, PartialEq)]
pub struct RungEntry {
    /// Its name in URLs: `v0`, `v1`, `a0`.
    pub id: String,
    /// Nominal bit rate.
    pub rate: BitRate,
    /// Codecs as RFC 6381 names them.
    pub codecs: String,
    /// Width and height in pixels; `None` for sound.
    pub size: Option<(u32, u32)>,
    /// Frames per second as numerator and denominator; `None` for sound.
    pub frame_rate: Option<(u32, u32)>,
}

impl Catalogue {
    /// The track and the rung of that name, as indices.
    pub fn find(&self, id: &str) -> Option<(usize, usize)> {
        self.tracks.iter().enumerate().find_map(|(track, entry)| {
            Some((track, entry.rungs.iter().position(|rung| rung.id == id)?))
        })
    }

    /// The longest segment of any track.
    pub fn longest_segment(&self) -> suiro_units::Duration {
        self.tracks.iter().map(|t| t.timeline.longest()).max().unwrap_or_default()
    }
}
