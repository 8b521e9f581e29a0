//! The values of a specification that are words.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use suiro_units::BitRate;

/// What is encoded. As text: `bbb`, `synthetic`, else a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The first 30 s of Big Buck Bunny in 1080p, © 2008 Blender Foundation, CC BY 3.0.
    Bbb,
    /// A frame of moving detail with a clock and noise, and a beep each second.
    Synthetic,
    /// Any file that ffmpeg reads; a relative path starts at the working directory.
    File(PathBuf),
}

impl From<&str> for Source {
    fn from(text: &str) -> Self {
        match text {
            "bbb" => Self::Bbb,
            "synthetic" => Self::Synthetic,
            path => Self::File(path.into()),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bbb => f.write_str("bbb"),
            Self::Synthetic => f.write_str("synthetic"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        // A path that is no Unicode cannot come from a scenario; it is not what JSON can hold, either.
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(d).map(|text| Self::from(&*text))
    }
}

impl JsonSchema for Source {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Source".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "examples": ["bbb", "synthetic", "film.mp4"] })
    }
}

/// How the video is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// H.264 (ITU-T H.264, ISO/IEC 14496-10), High profile, by libx264.
    #[default]
    H264,
    /// MPEG-2 video (ITU-T H.262, ISO/IEC 13818-2), Main profile, by ffmpeg, in versions of one
    /// quantiser scale each: for a sender of real-time video that chooses among them.
    Mpeg2,
}

/// libx264's presets: each is about half as fast as the one before and saves some bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The fastest; blocky.
    Ultrafast,
    /// For a quick try.
    Superfast,
    /// Faster than real time on two cores with the default ladder.
    #[default]
    Veryfast,
    /// A little better.
    Faster,
    /// Better.
    Fast,
    /// x264's own default.
    Medium,
    /// For offline use.
    Slow,
}

impl Preset {
    /// As libx264 names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ultrafast => "ultrafast",
            Self::Superfast => "superfast",
            Self::Veryfast => "veryfast",
            Self::Faster => "faster",
            Self::Fast => "fast",
            Self::Medium => "medium",
            Self::Slow => "slow",
        }
    }
}

/// Containers of the segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Fragmented MP4 (ISO/IEC 14496-12, CMAF): for DASH, and for HLS.
    #[default]
    Fmp4,
    /// MPEG-2 transport stream (ISO/IEC 13818-1): for HLS; sound and video in one file.
    Ts,
    /// Both, from one encoding.
    Both,
}

/// Sound of a package. As a value: `true`, `false` or a bit rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audio {
    /// None.
    Off,
    /// AAC-LC, stereo, 48 kHz, at this rate.
    On(BitRate),
}

impl Audio {
    /// The rate that `true` stands for.
    pub const DEFAULT_RATE: BitRate = BitRate::from_kbps(96);
}

impl Default for Audio {
    fn default() -> Self {
        Self::On(Self::DEFAULT_RATE)
    }
}

impl Serialize for Audio {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => s.serialize_bool(false),
            Self::On(rate) => rate.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for Audio {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Audio;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or a bit rate such as \"96 kbit/s\"")
            }
            fn visit_bool<E: de::Error>(self, on: bool) -> Result<Audio, E> {
                Ok(if on { Audio::default() } else { Audio::Off })
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Audio, E> {
                text.parse().map(Audio::On).map_err(E::custom)
            }
        }
        d.deserialize_any(Visitor)
    }
}

impl JsonSchema for Audio {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Audio".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "boolean" }, generator.subschema_for::<BitRate>()] })
    }
}
