//! The catalog, which lists the tracks of a broadcast: JSON in the track `catalog.json`, in the format of `hang`
//! (draft-lcurley-moq-hang). Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
    /// Width of the pictures in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coded_width: Option<u32>,
    /// Height of the pictures in pixels.
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
    /// A time and a coded picture.
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
    /// The catalog of one video track in H.264, whose pictures have that size.
    pub fn of_camera(size: (u32, u32), fps: u32, rate_bps: u64) -> Self {
        let rendition = Rendition {
            codec: codec(size, fps),
            container: Container::Legacy,
            description: None,
            coded_width: Some(size.0),
            coded_height: Some(size.1),
            framerate: Some(fps.into()),
            bitrate: Some(rate_bps),
        };
        Self { video: Some(Video { renditions: [(VIDEO.to_owned(), rendition)].into() }) }
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

    /// The track to play: of those in H.264 that we read, the one with the highest bit rate.
    ///
    /// # Errors
    /// [`CatalogError::NothingPlayable`].
    pub fn choose(&self) -> Result<&str, CatalogError> {
        let all = self.video.iter().flat_map(|video| &video.renditions);
        let playable = all.clone().filter(|(_, rendition)| {
            let h264 = ["avc1.", "avc3."].iter().any(|name| rendition.codec.starts_with(name));
            h264 && rendition.container == Container::Legacy && rendition.description.is_none()
        });
        let best = playable.max_by_key(|(_, rendition)| rendition.bitrate);
        best.map(|(name, _)| name.as_str()).ok_or_else(|| {
            let found: Vec<&str> = all.map(|(_, rendition)| rendition.codec.as_str()).collect();
            let found = if found.is_empty() { "no video".to_owned() } else { found.join(", ") };
            CatalogError::NothingPlayable(found)
        })
    }
}

/// Constrained Baseline with parameter sets in the stream, and the least level for the pictures (ITU-T H.264 table A-1).
fn codec((width, height): (u32, u32), fps: u32) -> String {
    // Level, and the macroblocks that it has in a picture and in a second at most.
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
        assert_eq!((read.choose().unwrap(), &read), ("video", &catalog));
    }

    #[test]
    fn the_best_that_can_be_played_is_chosen() {
        let json = br#"{"video":{"renditions":{
            "a":{"codec":"avc1.64001f","container":"legacy","bitrate":5},
            "b":{"codec":"avc3.64001f","container":"legacy","bitrate":9,"jitter":3},
            "c":{"codec":"avc1.64001f","container":"cmaf","bitrate":99},
            "d":{"codec":"avc1.64001f","container":"legacy","bitrate":99,"description":"01"},
            "e":{"codec":"av01.0.08M.08","container":{"kind":"legacy"}}}},
            "audio":{"renditions":{}}}"#;
        assert_eq!(Catalog::read(json).unwrap().choose().unwrap(), "b");
        let none = Catalog::read(b"{}").unwrap();
        assert!(none.choose().unwrap_err().to_string().ends_with("found no video"));
        let other = br#"{"video":{"renditions":{"e":{"codec":"vp8","container":"legacy"}}}}"#;
        assert!(
            Catalog::read(other).unwrap().choose().unwrap_err().to_string().ends_with("found vp8")
        );
        assert!(matches!(Catalog::read(&[b' '; BYTES_MAX + 1]), Err(CatalogError::Large(_))));
        assert!(matches!(Catalog::read(b"7"), Err(CatalogError::Json { .. })));
    }
}
