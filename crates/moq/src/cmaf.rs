//! Broadcasts in CMAF, as `moq-pub` and others publish them: the catalog of draft-ietf-moq-catalogformat-01 in the track
//! `.catalog`, an initialisation segment in a track of its own, and objects that are fragments. Pure.

use serde::Deserialize;
use suiro_media::mp4::{self, Entry, Init};
use suiro_media::{ParameterSets, ParseError, byte_stream};

use crate::catalog::{BYTES_MAX, CatalogError};
use crate::container::Picture;

/// The name of the catalog's track.
pub const TRACK: &str = ".catalog";

/// What a broadcast has.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Catalog {
    #[serde(default)]
    common_track_fields: Common,
    tracks: Vec<Track>,
}

/// What holds for every track that does not say otherwise.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
struct Common {
    #[serde(default)]
    packaging: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Track {
    name: String,
    #[serde(default)]
    init_track: Option<String>,
    #[serde(default)]
    packaging: Option<String>,
    #[serde(default)]
    selection_params: Selection,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
struct Selection {
    #[serde(default)]
    codec: Option<String>,
    #[serde(default)]
    bitrate: Option<u64>,
}

impl Catalog {
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

    /// The track to play, and the track of its initialisation segment: of those in H.264 and CMAF, the one with the highest
    /// bit rate.
    ///
    /// # Errors
    /// [`CatalogError::NothingPlayable`].
    pub fn choose(&self) -> Result<(&str, &str), CatalogError> {
        let packaging = &self.common_track_fields.packaging;
        let playable = self.tracks.iter().filter_map(|track| {
            let codec = track.selection_params.codec.as_deref()?;
            let h264 = codec.starts_with("avc1.") || codec.starts_with("avc3.");
            let cmaf =
                track.packaging.as_ref().or(packaging.as_ref()).is_some_and(|it| it == "cmaf");
            let init = track.init_track.as_deref().filter(|_| h264 && cmaf)?;
            Some((track.selection_params.bitrate, (track.name.as_str(), init)))
        });
        let best = playable.max_by_key(|(bitrate, _)| *bitrate);
        best.map(|(_, names)| names).ok_or_else(|| {
            let codecs =
                self.tracks.iter().filter_map(|track| track.selection_params.codec.clone());
            let found: Vec<String> = codecs.collect();
            let found = if found.is_empty() { "no video".to_owned() } else { found.join(", ") };
            CatalogError::NoCmaf(found)
        })
    }
}

/// Reads the objects of one video track.
#[derive(Debug, Clone)]
pub struct Unpacker {
    init: Init,
    sets: ParameterSets,
}

impl Unpacker {
    /// Takes an initialisation segment.
    ///
    /// # Errors
    /// [`CatalogError::Init`]: it is cut, or has more than one track; [`CatalogError::NoCmaf`]: the track is not of H.264.
    pub fn new(segment: &[u8]) -> Result<Self, CatalogError> {
        let init = mp4::init(segment).map_err(|cause| CatalogError::Init { cause })?;
        let Entry::Video { sets, .. } = &init.entry else {
            return Err(CatalogError::NoCmaf("audio in its place".to_owned()));
        };
        Ok(Self { sets: sets.clone(), init })
    }

    /// The frames of an object, in decoding order.
    ///
    /// # Errors
    /// [`ParseError`]: the object is no fragment of the track.
    pub fn read(&self, object: &[u8]) -> Result<Vec<Picture>, ParseError> {
        let mut pictures = Vec::new();
        for fragment in mp4::fragments(object, &self.init)? {
            let mut ticks = fragment.decode_time;
            for sample in fragment.samples {
                let shown = ticks.saturating_add_signed(sample.composition);
                let time = u128::from(shown) * 1_000_000 / u128::from(self.init.timescale);
                let mut frame = object[sample.data].to_vec();
                if sample.sync {
                    self.sets.put_in_band(&mut frame)?;
                }
                pictures.push(Picture {
                    time_us: u64::try_from(time).unwrap_or(u64::MAX),
                    mark: None,
                    key: sample.sync,
                    data: byte_stream(&frame)?,
                });
                ticks = ticks.saturating_add(sample.duration.into());
            }
        }
        Ok(pictures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `moq-pub` 0.10.0 writes it.
    const JSON: &str = r#"{ "version": 1, "streamingFormat": 1, "streamingFormatVersion": "0.2",
        "supportsDeltaUpdates": true, "commonTrackFields": { "namespace": "yard", "packaging": "cmaf" },
        "tracks": [
            { "name": "1.m4s", "initTrack": "0.mp4", "selectionParams": { "codec": "avc1.42c01e", "width": 320 } },
            { "name": "2.m4s", "initTrack": "0.mp4", "selectionParams": { "codec": "mp4a.40.2", "bitrate": 9 } },
            { "name": "3.m4s", "packaging": "loc", "selectionParams": { "codec": "avc1.42c01e", "bitrate": 9 } }
        ] }"#;

    #[test]
    fn the_video_in_cmaf_is_chosen() {
        let catalog = Catalog::read(JSON.as_bytes()).unwrap();
        assert_eq!(catalog.choose().unwrap(), ("1.m4s", "0.mp4"));
        let none = Catalog::read(br#"{"tracks":[]}"#).unwrap();
        assert!(none.choose().unwrap_err().to_string().ends_with("found no video"));
        assert!(matches!(Catalog::read(b"{}"), Err(CatalogError::Json { .. })));
        assert!(matches!(Catalog::read(&[b' '; BYTES_MAX + 1]), Err(CatalogError::Large(_))));
    }

    #[test]
    fn what_is_no_initialisation_segment_is_refused() {
        let error = Unpacker::new(b"\0\0\0\x08free").unwrap_err().to_string();
        assert_eq!(error, "the initialisation segment: byte 0: no box `moov`");
    }

    #[test]
    fn fragments_become_pictures_that_begin_with_parameter_sets() {
        // Made by ffmpeg: 5 frames a second, every second one a key frame.
        let seed = include_bytes!("../../../fuzz/seeds/moq/fragment");
        let (size, rest) = seed[1..].split_first_chunk().unwrap();
        let (init, fragments) = rest.split_at(usize::from(u16::from_be_bytes(*size)));
        let pictures = Unpacker::new(init).unwrap().read(fragments).unwrap();
        let times: Vec<(u64, bool)> =
            pictures.iter().map(|picture| (picture.time_us, picture.key)).collect();
        assert_eq!(times, [(0, true), (200_000, false)]);
        // An access unit delimiter and an SPS; a delimiter and a slice.
        assert_eq!(pictures[0].data[..11], [0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x67]);
        assert_eq!(pictures[1].data[..11], [0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x41]);
        assert!(Unpacker::new(init).unwrap().read(&fragments[..200]).is_err());
    }
}
