//! What a scenario asks of its media: `[media.NAME]`.

mod check;
mod values;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::bounds_of;
use suiro_units::{BitRate, Duration};

use crate::quantised::SCALES;

pub use check::{LENGTH_MAX, RUNGS_MAX};
pub use values::{Audio, Codec, Format, Preset, Source};

/// A source, the ladder that it is encoded into, and its packaging.
///
/// Everything but the source has a default, so `source = "bbb"` is a complete specification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<MediaSpec>)]
pub struct MediaSpec {
    /// The source: `bbb` (Big Buck Bunny, 30 s, CC BY 3.0), `synthetic` (made by ffmpeg) or a path
    /// to any file that ffmpeg reads.
    pub source: Source,
    /// The rungs, in any order. Default: 3 Mbit/s at 720 lines, 1.5 Mbit/s at 540, 700 kbit/s at
    /// 360 and 300 kbit/s at 234.
    #[serde(default = "ladder")]
    pub ladder: Vec<Rung>,
    /// Length of a segment: whole milliseconds and whole frames. Default: 2 s.
    #[serde(default = "segment")]
    pub segment: Duration,
    /// Time between key frames; the segment must be a whole multiple of it. Default: one segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gop: Option<Duration>,
    /// Frames per second, a whole number. Default: 24 for `bbb`, which is its own
    /// rate; else 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fps: Option<u32>,
    /// How much of the source is used, from its start; it then repeats. It is limited to the length of the source,
    /// rounded down to whole segments. Default: 30 s.
    #[serde(default = "length")]
    pub length: Duration,
    /// `mpeg2`: where in the source the video begins, when played at 29.97 frames per second.
    /// Default: at its start.
    #[serde(default, skip_serializing_if = "is_start")]
    pub from: Duration,
    /// How the video is encoded. Default: `h264`. With `mpeg2` there is no ladder: 720×480 pixels,
    /// 29.97 per second, in closed groups of 30, once for each of `quantisers`; `source`, `from`,
    /// `length` and `stamp` are the only other keys.
    #[serde(default)]
    pub codec: Codec,
    /// `mpeg2`: the quantiser scales, each a version; 1 is the finest. Default: 1 to 11.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantisers: Option<Vec<u8>>,
    /// How much effort the encoder spends on quality. Default: `veryfast`.
    #[serde(default)]
    pub preset: Preset,
    /// Maximum number of consecutive B-frames. Default: 0, so that frames are decoded in display order, a frame can be
    /// sent as soon as it was captured, and the encoder adds no delay of its own to the measurement. 2 B-frames save
    /// about a tenth of the bits.
    #[serde(default)]
    pub b_frames: u8,
    /// Sound: `true` (96 kbit/s AAC, stereo), `false`, or a bit rate. A source without sound makes
    /// a package without sound. Default: `true`.
    #[serde(default)]
    pub audio: Audio,
    /// Containers: `fmp4` (DASH, HLS), `ts` (HLS) or `both`. Default: `fmp4`.
    #[serde(default)]
    pub format: Format,
    /// Whether each frame carries its number: a strip of black and white blocks along its top
    /// edge encodes the source frame's number within the loop and its time. The shown
    /// frame can then be identified from its content alone; quality metrics ignore the strip. Rungs must have at least 90 lines. Default: `false`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stamp: bool,
}

/// One rung of the ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Rung>)]
pub struct Rung {
    /// Its name in reports. Default: its height, such as `720p`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Bit rate of the video, container not counted. The encoder may not
    /// exceed it over more than one second.
    pub bitrate: BitRate,
    /// Width in pixels, even. Default: the width that keeps the source's aspect ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Height in pixels, even.
    pub height: u32,
    /// Frames per second, if not those of the ladder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fps: Option<u32>,
}

impl MediaSpec {
    /// `source`, and the default of everything else.
    pub fn new(source: Source) -> Self {
        Self {
            source,
            ladder: ladder(),
            segment: segment(),
            gop: None,
            fps: None,
            length: length(),
            from: Duration::ZERO,
            codec: Codec::default(),
            quantisers: None,
            preset: Preset::default(),
            b_frames: 0,
            audio: Audio::default(),
            format: Format::default(),
            stamp: false,
        }
    }

    /// Frames per second of a rung.
    pub fn fps_of(&self, rung: &Rung) -> u32 {
        rung.fps.or(self.fps).unwrap_or(match self.source {
            Source::Bbb => 24,
            Source::Synthetic | Source::File(_) => 30,
        })
    }

    /// The quantiser scales of `mpeg2`.
    pub fn scales(&self) -> &[u8] {
        self.quantisers.as_deref().unwrap_or(&SCALES)
    }

    /// Time between key frames.
    pub fn gop(&self) -> Duration {
        self.gop.unwrap_or(self.segment)
    }

    /// Whole segments in [`Self::length`].
    pub fn segments(&self) -> u64 {
        self.length.as_nanos() / self.segment.as_nanos().max(1)
    }
}

impl Rung {
    /// What reports call it.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{}p", self.height))
    }
}

fn is_start(from: &Duration) -> bool {
    from.is_zero()
}

fn is_false(value: &bool) -> bool {
    !value
}

fn ladder() -> Vec<Rung> {
    [(3_000, 720), (1_500, 540), (700, 360), (300, 234)]
        .map(|(kbps, height)| Rung {
            name: None,
            bitrate: BitRate::from_kbps(kbps),
            width: None,
            height,
            fps: None,
        })
        .into()
}

const fn segment() -> Duration {
    Duration::from_secs(2)
}

const fn length() -> Duration {
    Duration::from_secs(30)
}
