//! The catalog, which lists the tracks of a broadcast: JSON in the track `catalog.json`, in the format of `hang`
//! (draft-lcurley-moq-hang). Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use suiro_units::BitRate;

use crate::data;

/// The name of its track.
pub const TRACK: &str = "catalog.json";
/// The name of our video track.
pub const VIDEO: &str = "video";
/// Largest catalog that is read, in bytes.
pub const BYTES_MAX: usize = 1 << 20;

/// The tracks of a broadcast. Unknown keys are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    /// Its video tracks; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<Video>,
    /// Its sound; `None` if it has none, or none in a form that we know.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "if_known")]
    pub audio: Option<Sound>,
    /// Its data tracks; `None` if it has none. `hang` has no such key, so other players ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
}

/// The name of our track of sound.
pub const SOUND: &str = "audio";

/// Sound in several renditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sound {
    /// The renditions, by the name of their track.
    pub renditions: BTreeMap<String, SoundRendition>,
}

/// One track of sound, as WebCodecs describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SoundRendition {
    /// The codec.
    pub codec: String,
    /// The format of its objects.
    #[serde(default)]
    pub container: Container,
    /// Samples in a second.
    pub sample_rate: u32,
    /// Its channels.
    pub number_of_channels: u32,
    /// Bit rate in bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bitrate: Option<u64>,
}

/// A part of a catalog that is left out if it has another form: its video can be played all the same.
fn if_known<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Sound>, D::Error> {
    let found = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(found).ok())
}

/// Tracks of small objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// The tracks, by their names.
    pub tracks: BTreeMap<String, DataTrack>,
}

/// A track of small objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataTrack {
    /// The media type of an object (RFC 6838).
    pub mime: String,
}

/// A quality of our video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quality {
    /// The name of its track.
    pub name: String,
    /// Width and height of its frames.
    pub size: (u32, u32),
    /// Frames per second.
    pub fps: u32,
    /// The most that its encoder is set to.
    pub rate: BitRate,
}

/// The name of the video track of a quality, of which 0 is the highest.
pub fn video(quality: usize) -> String {
    match quality {
        0 => VIDEO.to_owned(),
        lower => format!("{VIDEO}{}", lower + 1),
    }
}

/// Video in several renditions of the same content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Video {
    /// The renditions, by the name of their track.
    pub renditions: BTreeMap<String, Rendition>,
}

/// One track of video, as WebCodecs describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rendition {
    /// The codec (RFC 6381).
    pub codec: String,
    /// The format of its objects.
    #[serde(default)]
    pub container: Container,
    /// The decoder's configuration record in hexadecimal digits; without it, parameter sets are in the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Width of the frames in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coded_width: Option<u32>,
    /// Height of the frames in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coded_height: Option<u32>,
    /// Frames per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framerate: Option<f64>,
    /// Largest bit rate in bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bitrate: Option<u64>,
}

/// The format of objects.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Container {
    /// A time and a coded frame.
    #[default]
    Legacy,
    /// Something else.
    Other,
}

impl<'de> Deserialize<'de> for Container {
    /// `hang` wrote its name alone before it wrote an object with a `kind`.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Name(String),
            Object { kind: String },
        }
        let (Written::Name(kind) | Written::Object { kind }) = Written::deserialize(deserializer)?;
        Ok(if kind == "legacy" { Self::Legacy } else { Self::Other })
    }
}

/// Why a broadcast cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// It is too large.
    #[error("the catalog: expected at most {BYTES_MAX} bytes, found {0}")]
    Large(usize),
    /// It is no catalog.
    #[error("the catalog: {cause}")]
    Json {
        /// Where, and what was expected.
        cause: serde_json::Error,
    },
    /// No track can be played.
    #[error(
        "the catalog: expected video in H.264 with parameter sets in the stream, in the container `legacy`, found {0}"
    )]
    NothingPlayable(String),
    /// It has nothing in CMAF that can be played.
    #[error(
        "the catalog: expected video in H.264, in the packaging `cmaf` with an `initTrack`, found {0}"
    )]
    NoCmaf(String),
    /// The initialisation segment cannot be read.
    #[error("the initialisation segment: {cause}")]
    Init {
        /// Where, and what was expected.
        cause: suiro_media::ParseError,
    },
}

impl Catalog {
    /// The catalog of one video track in H.264, whose frames have that size.
    pub fn of_camera(size: (u32, u32), fps: u32, rate_bps: u64) -> Self {
        let rate = BitRate::from_bps(rate_bps);
        Self::of(&[Quality { name: video(0), size, fps, rate }], None, None)
    }

    /// The catalog of several qualities of a video in H.264, of sound in Opus at that bit rate, and of a data track in that
    /// format.
    pub fn of(qualities: &[Quality], sound: Option<BitRate>, data: Option<data::Format>) -> Self {
        let renditions = qualities.iter().map(|quality| {
            let rendition = Rendition {
                codec: codec(quality.size, quality.fps),
                container: Container::Legacy,
                description: None,
                coded_width: Some(quality.size.0),
                coded_height: Some(quality.size.1),
                framerate: Some(quality.fps.into()),
                bitrate: Some(quality.rate.as_bps()),
            };
            (quality.name.clone(), rendition)
        });
        let data = data.map(|format| {
            let mime = match format {
                data::Format::Json => "application/json",
                data::Format::Binary => "application/octet-stream",
            };
            let track = DataTrack { mime: mime.to_owned() };
            Data { tracks: [(data::TRACK.to_owned(), track)].into() }
        });
        let audio = sound.map(|rate| {
            let rendition = SoundRendition {
                codec: "opus".to_owned(),
                container: Container::Legacy,
                sample_rate: suiro_media::sound::RATE,
                number_of_channels: 1,
                bitrate: Some(rate.as_bps()),
            };
            Sound { renditions: [(SOUND.to_owned(), rendition)].into() }
        });
        Self { video: Some(Video { renditions: renditions.collect() }), audio, data }
    }

    /// As JSON.
    pub fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("maps have text for keys, and numbers are finite")
    }

    /// Reads what a publisher wrote.
    ///
    /// # Errors
    /// [`CatalogError`]: it is too large, or no catalog.
    pub fn read(json: &[u8]) -> Result<Self, CatalogError> {
        if json.len() > BYTES_MAX {
            return Err(CatalogError::Large(json.len()));
        }
        serde_json::from_slice(json).map_err(|cause| CatalogError::Json { cause })
    }

    /// The tracks that can be played: those in H.264 that we read, with their bit rates, from the lowest to the highest.
    ///
    /// # Errors
    /// [`CatalogError::NothingPlayable`].
    pub fn playable(&self) -> Result<Vec<(&str, BitRate)>, CatalogError> {
        let all = self.video.iter().flat_map(|video| &video.renditions);
        let playable = all.clone().filter(|(_, rendition)| {
            let h264 = ["avc1.", "avc3."].iter().any(|name| rendition.codec.starts_with(name));
            h264 && rendition.container == Container::Legacy && rendition.description.is_none()
        });
        let rate = |rendition: &Rendition| BitRate::from_bps(rendition.bitrate.unwrap_or(0));
        let mut playable: Vec<(&str, BitRate)> =
            playable.map(|(name, rendition)| (name.as_str(), rate(rendition))).collect();
        if playable.is_empty() {
            let found: Vec<&str> = all.map(|(_, rendition)| rendition.codec.as_str()).collect();
            let found = if found.is_empty() { "no video".to_owned() } else { found.join(", ") };
            return Err(CatalogError::NothingPlayable(found));
        }
        playable.sort_by_key(|(_, rate)| *rate);
        Ok(playable)
    }

    /// The first track of sound that can be played: in Opus, in objects that we read; `None` if there is none.
    pub fn sound(&self) -> Option<&str> {
        let mut all = self.audio.iter().flat_map(|audio| &audio.renditions);
        let is_playable = |rendition: &SoundRendition| {
            rendition.codec == "opus" && rendition.container == Container::Legacy
        };
        all.find(|(_, rendition)| is_playable(rendition)).map(|(name, _)| name.as_str())
    }

    /// The first data track; `None` if there is none.
    pub fn data(&self) -> Option<&str> {
        self.data.as_ref()?.tracks.keys().next().map(String::as_str)
    }
}

/// Constrained Baseline with parameter sets in the stream, and the least level for the frames (ITU-T H.264 table A-1).
fn codec((width, height): (u32, u32), fps: u32) -> String {
    // Level, and the macroblocks that it has in a frame and in a second at most.
    const LEVELS: [(u8, u32, u32); 7] = [
        (30, 1620, 40_500),
        (31, 3600, 108_000),
        (32, 5120, 216_000),
        (40, 8192, 245_760),
        (42, 8704, 522_240),
        (51, 36_864, 983_040),
        (52, 36_864, 2_073_600),
    ];
    let blocks = width.div_ceil(16) * height.div_ceil(16);
    let fits = |level: &&(u8, u32, u32)| blocks <= level.1 && blocks * fps <= level.2;
    let (level, ..) = LEVELS.iter().find(fits).unwrap_or(&LEVELS[LEVELS.len() - 1]);
    format!("avc3.42e0{level:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let catalog = Catalog::of_camera((1920, 1080), 30, 1_500_000);
        let text = String::from_utf8(catalog.write()).unwrap();
        let expected = r#"{"video":{"renditions":{"video":{"codec":"avc3.42e028","container":{"kind":"legacy"},"codedWidth":1920,"codedHeight":1080,"framerate":30.0,"bitrate":1500000}}}}"#;
        assert_eq!(text, expected);
        let read = Catalog::read(text.as_bytes()).unwrap();
        assert_eq!(read, catalog);
        assert_eq!(read.playable().unwrap(), [("video", BitRate::from_kbps(1500))]);
    }

    #[test]
    fn qualities_are_tracks_and_a_data_track_is_beside_them() {
        let quality = |index, size, kbps| Quality {
            name: video(index),
            size,
            fps: 30,
            rate: BitRate::from_kbps(kbps),
        };
        let all = [quality(0, (1920, 1080), 450), quality(1, (1280, 720), 270)];
        let catalog = Catalog::of(&all, Some(BitRate::from_kbps(32)), Some(data::Format::Binary));
        let read = Catalog::read(&catalog.write()).unwrap();
        assert_eq!(read, catalog);
        let rates = [("video2", BitRate::from_kbps(270)), ("video", BitRate::from_kbps(450))];
        assert_eq!(read.playable().unwrap(), rates);
        assert_eq!((read.data(), read.sound()), (Some("data"), Some("audio")));
    }

    #[test]
    fn sound_that_is_not_known_leaves_the_video() {
        let of = |audio: &str| {
            let video = r#""video":{"renditions":{"a":{"codec":"avc3.64001f"}}}"#;
            let read = Catalog::read(format!("{{{video},\"audio\":{audio}}}").as_bytes()).unwrap();
            assert_eq!(read.playable().unwrap().len(), 1);
            read.sound().map(str::to_owned)
        };
        let opus = r#""codec":"opus","sampleRate":48000,"numberOfChannels":2"#;
        assert_eq!(of(&format!(r#"{{"renditions":{{"s":{{{opus}}}}}}}"#)), Some("s".to_owned()));
        let cmaf = format!(r#"{{"renditions":{{"s":{{{opus},"container":"cmaf"}}}}}}"#);
        assert_eq!(of(&cmaf), None);
        let aac = opus.replace("opus", "mp4a.40.2");
        assert_eq!(of(&format!(r#"{{"renditions":{{"s":{{{aac}}}}}}}"#)), None);
        for other in ["null", "7", "[1]", r#"{"renditions":{"s":{"codec":"opus"}}}"#] {
            assert_eq!(of(other), None);
        }
    }

    #[test]
    fn what_can_be_played_is_sorted_by_bit_rate() {
        let json = br#"{"video":{"renditions":{
            "a":{"codec":"avc1.64001f","container":"legacy","bitrate":5},
            "b":{"codec":"avc3.64001f","container":"legacy","bitrate":9,"jitter":3},
            "c":{"codec":"avc1.64001f","container":"cmaf","bitrate":99},
            "d":{"codec":"avc1.64001f","container":"legacy","bitrate":99,"description":"01"},
            "e":{"codec":"av01.0.08M.08","container":{"kind":"legacy"}}}},
            "audio":{"renditions":{}}}"#;
        let read = Catalog::read(json).unwrap();
        let rates = [("a", BitRate::from_bps(5)), ("b", BitRate::from_bps(9))];
        assert_eq!(read.playable().unwrap(), rates);
        let none = Catalog::read(b"{}").unwrap();
        assert!(none.playable().unwrap_err().to_string().ends_with("found no video"));
        let other = br#"{"video":{"renditions":{"e":{"codec":"vp8","container":"legacy"}}}}"#;
        assert!(
            Catalog::read(other)
                .unwrap()
                .playable()
                .unwrap_err()
                .to_string()
                .ends_with("found vp8")
        );
        assert!(matches!(Catalog::read(&[b' '; BYTES_MAX + 1]), Err(CatalogError::Large(_))));
        assert!(matches!(Catalog::read(b"7"), Err(CatalogError::Json { .. })));
    }
}
