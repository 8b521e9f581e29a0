//! A package: the folder of segments that a specification was made into, and its index.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use suiro_units::{BitRate, Bytes, Duration};

use crate::checksum::sha256;
use crate::spec::MediaSpec;
use crate::{MediaError, cache, mp4, ts};

/// Version of the index; a package of another one is prepared anew.
pub const INDEX_VERSION: u32 = 2;

/// The index's file in the package's folder. It is written last.
pub const INDEX_FILE: &str = "package.json";

/// Sequence numbers that a segment in chunks has for itself: one for each frame of a minute at 120 frames per second.
const CHUNKS_NUMBERED: u64 = 8192;

/// Largest index that is read.
const INDEX_BYTES_MAX: u64 = 64 << 20;

/// What was prepared: `package.json`.
///
/// One pass over all segments of a track is a *loop*. The loops of all tracks are of exactly the
/// same length, so that a source of 30 s plays without end: segment `number` is segment
/// `number mod n` of loop `number / n`, moved on by whole loops (see [`Package::read`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// [`INDEX_VERSION`].
    pub version: u32,
    /// Where the video comes from.
    pub source: Origin,
    /// What was asked for.
    pub spec: MediaSpec,
    /// Version of the ffmpeg that encoded it.
    pub ffmpeg: String,
    /// Length of one loop: a whole number of segments, and of milliseconds.
    pub loop_duration: Duration,
    /// The rungs, by rising bit rate.
    pub video: Vec<Track>,
    /// The sound; `None` if none was asked for or the source has none.
    pub audio: Option<Track>,
    /// SHA-256 of every file, in hexadecimal, by its path below the folder.
    pub sha256: BTreeMap<String, String>,
    /// The folder it was loaded from; all files are below it.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// Where a package's frame comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// What it is.
    pub name: String,
    /// Under which licence it may be used, with the credit that this asks for; `None` if unknown.
    pub licence: Option<String>,
    /// SHA-256 of the file, in hexadecimal; `None` for what ffmpeg made up.
    pub sha256: Option<String>,
}

/// One rung, or the sound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Track {
    /// Its name in paths: `v0`, `v1`, … by rising bit rate, and `a`.
    pub id: String,
    /// What reports call it.
    pub label: String,
    /// What it holds.
    pub content: Content,
    /// Codec as RFC 6381 writes it, of the fMP4: `avc3.64001f`, `mp4a.40.2`. In a transport
    /// stream, and in a playlist that speaks of one, `avc3` is written `avc1`.
    pub codec: String,
    /// Bit rate that was asked for, container not counted.
    pub bitrate: BitRate,
    /// Ticks per second of [`Segment::start`] and [`Segment::duration`].
    pub timescale: u32,
    /// As fragmented MP4; `None` if that was not asked for.
    pub fmp4: Option<Rendition>,
    /// As transport stream, the sound in it; `None` if that was not asked for, and for the sound.
    pub ts: Option<Rendition>,
}

/// What a track holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Content {
    /// Frames.
    Video {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
        /// Frames per second.
        fps: u32,
    },
    /// Sound.
    Audio {
        /// Samples per second.
        sample_rate: u32,
        /// Channels.
        channels: u32,
    },
}

/// A track in one container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rendition {
    /// The initialisation segment (fMP4 only).
    pub init: Option<File>,
    /// Mean bit rate over a loop, all bytes counted.
    pub bitrate_mean: BitRate,
    /// Bit rate of the segment that has the highest, all bytes counted: `BANDWIDTH` of RFC 8216
    /// §4.3.4.2.
    pub bitrate_max: BitRate,
    /// One loop of segments, in order.
    pub segments: Vec<Segment>,
    /// Packets per loop of each PID (transport stream only): what continuity counters advance by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packets: Vec<ts::Packets>,
}

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its path below the package's folder.
    pub file: String,
    /// Its size.
    pub bytes: u64,
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Its path below the package's folder.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// When its first frame is shown, from the loop's start, in ticks of the track.
    pub start: u64,
    /// How long it lasts, in ticks of the track.
    pub duration: u64,
    /// Its frames: of video, or of AAC.
    pub frames: u32,
}

/// A container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Container {
    /// Fragmented MP4.
    Fmp4,
    /// MPEG-2 transport stream.
    Ts,
}

/// Where a segment of the endless stream lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed<'p> {
    /// The segment of the loop.
    pub segment: &'p Segment,
    /// How many loops come before it.
    pub loops: u64,
    /// When its first frame is shown, from the stream's start, in ticks of the track.
    pub start: u64,
}

impl Package {
    /// Reads the index in `folder` and checks that every file is there with its size and its hash.
    ///
    /// # Errors
    /// [`MediaError::Damaged`], naming the file that is missing, changed or of another version.
    pub fn load(folder: &Path) -> Result<Self, MediaError> {
        let index = folder.join(INDEX_FILE);
        let damaged = |message: String| MediaError::damaged(&index, message);
        let mut package: Self = cache::read_index(&index, INDEX_BYTES_MAX)?;
        if package.version != INDEX_VERSION {
            return Err(damaged(format!("version {}, not {INDEX_VERSION}", package.version)));
        }
        folder.clone_into(&mut package.folder);
        package.check_loops().map_err(damaged)?;
        package.check_files()?;
        package.check_hashes()?;
        Ok(package)
    }

    /// The rungs, then the sound.
    pub fn tracks(&self) -> impl Iterator<Item = &Track> {
        self.video.iter().chain(&self.audio)
    }

    /// The track of that `id`.
    pub fn track(&self, id: &str) -> Option<&Track> {
        self.tracks().find(|track| track.id == id)
    }

    /// Width and height of the tallest rung, in pixels; `None` without video.
    pub fn picture_size(&self) -> Option<(u32, u32)> {
        let sizes = self.video.iter().filter_map(|track| match track.content {
            Content::Video { width, height, .. } => Some((width, height)),
            Content::Audio { .. } => None,
        });
        sizes.max_by_key(|(width, height)| (*height, *width))
    }

    /// Bytes of all files but the index.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.files().map(|(_, bytes)| bytes).sum())
    }

    /// Reads the initialisation segment of a track; `None` if it has none.
    ///
    /// # Errors
    /// [`MediaError::Damaged`] if the file is not what the index says.
    pub fn read_init(&self, track: &Track) -> Result<Option<Vec<u8>>, MediaError> {
        let init = track.fmp4.as_ref().and_then(|fmp4| fmp4.init.as_ref());
        init.map(|init| self.read_file(&init.file, init.bytes)).transpose()
    }

    /// Reads segment `number` of the endless stream: the file, with its times (and sequence number
    /// or continuity counters) moved on to its loop. `None` if the track has no such container.
    ///
    /// # Errors
    /// [`MediaError::Damaged`] if the file is not what the index says.
    pub fn read(
        &self,
        track: &Track,
        container: Container,
        number: u64,
    ) -> Result<Option<Vec<u8>>, MediaError> {
        let Some((rendition, placed)) =
            track.rendition(container).zip(track.segment(container, number))
        else {
            return Ok(None);
        };
        let mut bytes = self.read_file(&placed.segment.file, placed.segment.bytes)?;
        let file = self.folder.join(&placed.segment.file);
        let damaged = |error| MediaError::damaged(&file, error);
        match container {
            Container::Fmp4 => {
                let offset = placed.start - placed.segment.start;
                let sequence = number.wrapping_mul(self.fragments(track)).wrapping_add(1);
                // It has 32 bits, and only has to rise (ISO/IEC 14496-12 §8.8.5).
                mp4::restamp(&mut bytes, offset, sequence as u32).map_err(damaged)?;
            }
            Container::Ts => {
                let shift = ts::Shift::new(self.loop_duration, placed.loops, &rendition.packets);
                ts::restamp(&mut bytes, &shift).map_err(damaged)?;
            }
        }
        Ok(Some(bytes))
    }

    /// Reads segment `number` of the endless stream as fragmented MP4 in chunks of at most `longest` and at least one
    /// frame. `None` if the track is not in that container.
    ///
    /// # Errors
    /// [`MediaError::Damaged`] if the file is not what the index says.
    pub fn read_chunked(
        &self,
        track: &Track,
        number: u64,
        longest: Duration,
    ) -> Result<Option<mp4::Chunked>, MediaError> {
        let whole = self.read(track, Container::Fmp4, number)?.zip(self.read_init(track)?);
        let Some((whole, init)) = whole else { return Ok(None) };
        let damaged = |error| MediaError::damaged(&self.folder.join(&track.id), error);
        let init = mp4::init(&init).map_err(damaged)?;
        let ticks = u128::from(longest.as_nanos()) * u128::from(track.timescale) / 1_000_000_000;
        let ticks = u64::try_from(ticks).unwrap_or(u64::MAX);
        // Room for every chunk of a segment: the numbers only have to rise (ISO/IEC 14496-12 §8.8.5).
        let sequence = number.wrapping_mul(CHUNKS_NUMBERED).wrapping_add(1) as u32;
        mp4::chunked(&whole, &init, ticks, sequence).map(Some).map_err(damaged)
    }

    /// Fragments of a segment: one for each group of pictures.
    fn fragments(&self, track: &Track) -> u64 {
        let (segment, gop) = (self.spec.segment.as_nanos(), self.spec.gop().as_nanos());
        match track.content {
            Content::Video { .. } => segment.checked_div(gop).unwrap_or(1),
            Content::Audio { .. } => 1,
        }
    }

    fn read_file(&self, name: &str, bytes: u64) -> Result<Vec<u8>, MediaError> {
        let file = self.folder.join(name);
        let read = suiro_outside::file::read(&file, bytes)
            .map_err(|error| MediaError::damaged(&file, error))?;
        if read.len() as u64 != bytes {
            let message = format!("{} bytes; expected {bytes} from the index", read.len());
            return Err(MediaError::damaged(&file, message));
        }
        Ok(read)
    }

    fn files(&self) -> impl Iterator<Item = (&str, u64)> {
        let renditions = self.tracks().flat_map(|track| track.fmp4.iter().chain(&track.ts));
        renditions.flat_map(|rendition| {
            let init = rendition.init.iter().map(|init| (init.file.as_str(), init.bytes));
            init.chain(rendition.segments.iter().map(|s| (s.file.as_str(), s.bytes)))
        })
    }

    /// The hashes of the files as they are.
    ///
    /// # Errors
    /// [`MediaError::Damaged`], naming the file that cannot be read.
    pub(crate) fn hashes(&self) -> Result<BTreeMap<String, String>, MediaError> {
        let hash = |(name, _): (&str, u64)| {
            let file = self.folder.join(name);
            let sum = sha256(&file).map_err(|error| MediaError::damaged(&file, error))?;
            Ok((name.to_owned(), sum))
        };
        self.files().map(hash).collect()
    }

    fn check_hashes(&self) -> Result<(), MediaError> {
        for (name, found) in self.hashes()? {
            if self.sha256.get(&name) != Some(&found) {
                let told = self.sha256.get(&name).map_or("none", String::as_str);
                let message =
                    format!("its content has the SHA-256 {found}; expected {told} from the index");
                return Err(MediaError::damaged(&self.folder.join(name), message));
            }
        }
        Ok(())
    }

    fn check_files(&self) -> Result<(), MediaError> {
        for (name, bytes) in self.files() {
            let file = self.folder.join(name);
            let plain =
                Path::new(name).components().all(|c| matches!(c, std::path::Component::Normal(_)));
            if !plain {
                return Err(MediaError::damaged(&file, "not below the package's folder"));
            }
            let found =
                std::fs::metadata(&file).map_err(|error| MediaError::damaged(&file, error))?;
            if found.len() != bytes {
                let message = format!("{} bytes; expected {bytes} from the index", found.len());
                return Err(MediaError::damaged(&file, message));
            }
        }
        Ok(())
    }

    /// Every rendition is one loop: no segments missing, none empty, all of the length that the
    /// specification gives. Who counts on from there need not fear for what fits.
    fn check_loops(&self) -> Result<(), String> {
        self.spec.validate().map_err(|error| error.to_string())?;
        if self.video.is_empty() {
            return Err("no video".into());
        }
        let count = self.video[0].renditions().next().map_or(0, |first| first.segments.len());
        if self.loop_duration != self.spec.segment * count as u64 {
            return Err(format!("{} are no {count} segments", self.loop_duration));
        }
        for track in self.tracks() {
            let ticks = track.ticks(self.loop_duration);
            let ticks = ticks
                .ok_or_else(|| format!("{}: a loop is not a whole number of ticks", track.id))?;
            for rendition in track.renditions() {
                let mut next = 0;
                for segment in &rendition.segments {
                    if segment.start != next || segment.duration == 0 {
                        return Err(format!("{}: {} is out of place", track.id, segment.file));
                    }
                    next = segment.start.saturating_add(segment.duration);
                }
                if next != ticks || count == 0 || rendition.segments.len() != count {
                    return Err(format!("{}: not a whole number of loops", track.id));
                }
            }
        }
        Ok(())
    }
}

impl Track {
    /// The track in that container; `None` if it was not asked for.
    pub fn rendition(&self, container: Container) -> Option<&Rendition> {
        match container {
            Container::Fmp4 => self.fmp4.as_ref(),
            Container::Ts => self.ts.as_ref(),
        }
    }

    /// Where segment `number` (from 0) of the endless stream lies; `None` if the track is not in
    /// that container, or the stream's time does not fit in 64 bits.
    pub fn segment(&self, container: Container, number: u64) -> Option<Placed<'_>> {
        let segments = &self.rendition(container)?.segments;
        let count = segments.len() as u64;
        let (loops, index) = (number.checked_div(count)?, number % count);
        let segment = &segments[index as usize];
        let last = segments.last()?;
        let start = (last.start + last.duration).checked_mul(loops)?.checked_add(segment.start)?;
        Some(Placed { segment, loops, start })
    }

    /// `ticks` of this track as time, rounded down to the nanosecond.
    pub fn time(&self, ticks: u64) -> Duration {
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.timescale.max(1));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    fn renditions(&self) -> impl Iterator<Item = &Rendition> {
        self.fmp4.iter().chain(&self.ts)
    }

    fn ticks(&self, span: Duration) -> Option<u64> {
        let product = u128::from(span.as_nanos()) * u128::from(self.timescale);
        if !product.is_multiple_of(1_000_000_000) {
            return None;
        }
        u64::try_from(product / 1_000_000_000).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::spec::Source;

    /// A package of one rung and two segments of 2 s, without frames in them.
    fn made(folder: &Path) -> Value {
        let segment = |index: u64| Segment {
            file: format!("v0-{index}.m4s"),
            bytes: 3,
            start: index * 2000,
            duration: 2000,
            frames: 60,
        };
        let fmp4 = Rendition {
            init: None,
            bitrate_mean: BitRate::from_kbps(1),
            bitrate_max: BitRate::from_kbps(1),
            segments: vec![segment(0), segment(1)],
            packets: Vec::new(),
        };
        let track = Track {
            id: "v0".into(),
            label: "360p".into(),
            content: Content::Video { width: 640, height: 360, fps: 30 },
            codec: "avc3.64001f".into(),
            bitrate: BitRate::from_kbps(1),
            timescale: 1000,
            fmp4: Some(fmp4),
            ts: None,
        };
        let package = Package {
            version: INDEX_VERSION,
            source: Origin { name: "none".into(), licence: None, sha256: None },
            spec: MediaSpec::new(Source::Synthetic),
            ffmpeg: "8".into(),
            loop_duration: Duration::from_secs(4),
            video: vec![track],
            audio: None,
            sha256: BTreeMap::new(),
            folder: folder.to_owned(),
        };
        for index in 0..2 {
            std::fs::write(folder.join(format!("v0-{index}.m4s")), "abc").unwrap();
        }
        let package = Package { sha256: package.hashes().unwrap(), ..package };
        serde_json::to_value(package).unwrap()
    }

    fn load(folder: &Path, index: &Value) -> Result<Package, String> {
        std::fs::write(folder.join(INDEX_FILE), index.to_string()).unwrap();
        Package::load(folder).map_err(|error| error.to_string())
    }

    #[test]
    fn an_index_changed_by_hand_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let whole = made(folder.path());
        load(folder.path(), &whole).unwrap();
        for (place, value, why) in [
            ("/version", json!(0), "version 0"),
            ("/video", json!([]), "no video"),
            ("/loop_duration", json!("5000000 h"), "are no 2 segments"),
            ("/spec/segment", json!("0 s"), "segment"),
            ("/video/0/timescale", json!(0), "not a whole number of loops"),
            ("/video/0/timescale", json!(999), "not a whole number of loops"),
            ("/video/0/fmp4/segments", json!([]), "are no 0 segments"),
            ("/video/0/fmp4/segments/1/start", json!(1), "out of place"),
            ("/video/0/fmp4/segments/1/duration", json!(u64::MAX), "not a whole number of loops"),
            ("/video/0/fmp4/segments/1/bytes", json!(4), "3 bytes; expected 4 from the index"),
            ("/video/0/fmp4/segments/1/file", json!("../a"), "not below"),
            ("/video/0/fmp4/segments/1/file", json!("/etc/passwd"), "not below"),
        ] {
            let mut index = whole.clone();
            *index.pointer_mut(place).unwrap() = value;
            let refusal = load(folder.path(), &index).unwrap_err();
            assert!(refusal.contains(why), "{place}: {refusal}");
        }
    }

    #[test]
    fn a_changed_file_of_the_same_size_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let index = made(folder.path());
        load(folder.path(), &index).unwrap();
        std::fs::write(folder.path().join("v0-1.m4s"), "abd").unwrap();
        let refusal = load(folder.path(), &index).unwrap_err();
        assert!(refusal.contains("v0-1.m4s") && refusal.contains("SHA-256"), "{refusal}");
    }

    #[test]
    fn the_stream_goes_on_as_far_as_time_does() {
        let folder = tempfile::tempdir().unwrap();
        let package = load(folder.path(), &made(folder.path())).unwrap();
        let at = |number| package.video[0].segment(Container::Fmp4, number);
        assert_eq!(at(5).map(|placed| (placed.loops, placed.start)), Some((2, 10_000)));
        assert_eq!(at(u64::MAX), None);
    }
}
