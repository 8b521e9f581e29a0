//! A media package as an origin's catalogue and source of bodies.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use bytes::Bytes;
use suiro_media::mp4::ChunkedRates;
use suiro_media::package::{Content, Rendition, Track};
use suiro_media::{Container as Wrapping, Package};
use suiro_scenario::HlsRungs;
use suiro_units::{Duration, fnv1a};

use super::ChunkSpec;
use super::catalogue::{Catalogue, Container, RungEntry, TrackEntry};
use super::chunks::{Chunk, Chunks};
use super::timeline::{Loop, Schedule};
use super::{Media, OriginError};
use crate::presentation::TrackKind;

/// A package on the disk.
pub(super) struct Shelf {
    package: Package,
    /// For each track and rung of the catalogue: which track of the package.
    rungs: Vec<(Wrapping, Vec<usize>)>,
    /// The longest chunk, if segments are cut into chunks.
    chunk: Option<Duration>,
}

/// Opens a package, and says what it offers; the schedule, and which rungs HLS
/// lists, are still to be set. In chunks, it offers fragmented MP4 alone.
pub(super) fn open(
    folder: &Path,
    chunk: Option<ChunkSpec>,
) -> Result<(Catalogue, Shelf), OriginError> {
    let package = Package::load(folder)?;
    let refused =
        |problem: &str| OriginError::Package { path: folder.into(), problem: problem.into() };
    if chunk.is_some() && package.spec.b_frames > 0 {
        return Err(refused("with B-frames, a chunk is not captured before later ones"));
    }
    let sound = package.audio.as_ref().map(|audio| audio.codec.clone());
    let mut tracks = Vec::new();
    let mut rungs = Vec::new();
    for (wrapping, kind) in [
        (Wrapping::Fmp4, TrackKind::Video),
        (Wrapping::Fmp4, TrackKind::Audio),
        (Wrapping::Ts, TrackKind::Video),
    ] {
        let found: Vec<(usize, &Track, &Rendition)> = package
            .tracks()
            .enumerate()
            .filter(|(_, track)| kind_of(track) == kind)
            .filter(|_| wrapping == Wrapping::Fmp4 || chunk.is_none())
            .filter_map(|(at, track)| Some((at, track, track.rendition(wrapping)?)))
            .collect();
        if found.is_empty() {
            continue;
        }
        let entries = found
            .iter()
            .map(|(_, track, rendition)| entry(track, rendition, wrapping, sound.as_deref()))
            .collect::<Option<Vec<_>>>();
        let mut entries = entries.ok_or_else(|| refused("a track without segments"))?;
        if let Some(spec) = chunk {
            for (entry, (_, track, _)) in entries.iter_mut().zip(&found) {
                cut(entry, &package, track, spec)?;
            }
        }
        tracks.push(TrackEntry { kind, container: container(wrapping), rungs: entries });
        rungs.push((wrapping, found.iter().map(|(at, ..)| *at).collect()));
    }
    let version = version(&package.sha256, chunk);
    let schedule = Schedule::Vod { length: package.loop_duration };
    let hls_rungs = HlsRungs::default();
    if tracks.is_empty() {
        return Err(refused("only MPEG-TS, which is not cut into chunks"));
    }
    let chunk = chunk.map(|spec| spec.chunk);
    Ok((Catalogue { tracks, schedule, hls_rungs, version }, Shelf { package, rungs, chunk }))
}

/// What distinguishes bodies of the same name: the hashes of all files, and how segments are cut.
fn version(sha256: &BTreeMap<String, String>, chunk: Option<ChunkSpec>) -> String {
    let files = sha256.iter().flat_map(|(path, hash)| path.bytes().chain(hash.bytes()));
    let cut = chunk.map(|spec| [spec.chunk, spec.part].map(|span| span.as_nanos().to_be_bytes()));
    format!("{:016x}", fnv1a(files.chain(cut.into_iter().flatten().flatten())))
}

/// Cuts the segments of a rung into chunks, whose headers add to its bit rate.
fn cut(
    entry: &mut RungEntry,
    package: &Package,
    track: &Track,
    spec: ChunkSpec,
) -> Result<(), OriginError> {
    let count = track.fmp4.as_ref().map_or(0, |fmp4| fmp4.segments.len() as u64);
    let (mut segments, mut rates) = (Vec::new(), ChunkedRates::default());
    for number in 0..count {
        let Some(segment) = package.read_chunked(track, number, spec.chunk)? else { continue };
        rates.add(&segment, track.timescale);
        let chunk = |chunk: &suiro_media::mp4::Chunk| Chunk {
            duration: chunk.duration,
            independent: chunk.independent,
        };
        segments.push(segment.chunks.iter().map(chunk).collect::<Vec<_>>());
    }
    (entry.rate, entry.mean_rate) = (rates.peak(), rates.mean());
    entry.declared = entry.rate;
    entry.chunks = Chunks::new(u64::from(track.timescale), &segments, spec.part);
    match entry.chunks {
        Some(_) => Ok(()),
        None => Err(OriginError::Package {
            path: package.folder.clone(),
            problem: format!("{}: a segment without frames", track.id),
        }),
    }
}

fn kind_of(track: &Track) -> TrackKind {
    match track.content {
        Content::Video { .. } => TrackKind::Video,
        Content::Audio { .. } => TrackKind::Audio,
    }
}

fn container(wrapping: Wrapping) -> Container {
    match wrapping {
        Wrapping::Fmp4 => Container::Fmp4,
        Wrapping::Ts => Container::MpegTs,
    }
}

/// `None` if the rendition is no loop.
fn entry(
    track: &Track,
    rendition: &Rendition,
    wrapping: Wrapping,
    sound: Option<&str>,
) -> Option<RungEntry> {
    let durations: Vec<u64> = rendition.segments.iter().map(|s| s.duration).collect();
    let codecs = match (wrapping, sound) {
        // In a transport stream the sound is in the segments of the frame.
        (Wrapping::Ts, Some(sound)) => format!("{},{sound}", avc1(&track.codec)),
        (Wrapping::Ts, None) => avc1(&track.codec),
        (Wrapping::Fmp4, _) => track.codec.clone(),
    };
    let (size, frame_rate, channels) = match track.content {
        Content::Video { width, height, fps } => (Some((width, height)), Some((fps, 1)), None),
        Content::Audio { channels, .. } => (None, None, Some(channels)),
    };
    Some(RungEntry {
        id: track.id.clone(),
        rate: rendition.bitrate_max,
        declared: rendition.bitrate_max,
        mean_rate: rendition.bitrate_mean,
        nominal: track.bitrate,
        codecs,
        size,
        frame_rate,
        channels,
        timeline: Loop::new(u64::from(track.timescale), &durations)?,
        chunks: None,
    })
}

/// How a codec is named outside MP4, where there is no sample entry to be of another kind.
fn avc1(codec: &str) -> String {
    codec.replace("avc3", "avc1")
}

impl Shelf {
    fn track(&self, track: usize, rung: usize) -> io::Result<(Wrapping, &Track)> {
        let found = self.rungs.get(track).and_then(|(wrapping, rungs)| {
            Some((*wrapping, self.package.tracks().nth(*rungs.get(rung)?)?))
        });
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Media for Shelf {
    fn init(&self, track: usize, rung: usize) -> io::Result<Bytes> {
        let (_, track) = self.track(track, rung)?;
        body(self.package.read_init(track))
    }

    fn segment(&self, track: usize, rung: usize, number: u64) -> io::Result<Bytes> {
        let (wrapping, track) = self.track(track, rung)?;
        body(match self.chunk {
            None => self.package.read(track, wrapping, number),
            Some(longest) => {
                let chunked = self.package.read_chunked(track, number, longest);
                chunked.map(|chunked| chunked.map(|chunked| chunked.bytes))
            }
        })
    }
}

fn body(read: Result<Option<Vec<u8>>, suiro_media::MediaError>) -> io::Result<Bytes> {
    match read {
        Ok(Some(bytes)) => Ok(bytes.into()),
        Ok(None) => Err(io::ErrorKind::NotFound.into()),
        Err(error) => Err(io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use suiro_media::package::Segment;
    use suiro_units::BitRate;

    use super::*;

    #[test]
    fn sound_has_as_many_channels_as_its_track() {
        let file = "a/0.m4s".into();
        let segment = Segment { file, bytes: 24_000, start: 0, duration: 96_256, frames: 94 };
        let rendition = Rendition {
            init: None,
            bitrate_mean: BitRate::from_kbps(96),
            bitrate_max: BitRate::from_kbps(96),
            segments: vec![segment],
            packets: Vec::new(),
        };
        let track = Track {
            id: "a".into(),
            label: "sound".into(),
            content: Content::Audio { sample_rate: 48_000, channels: 2 },
            codec: "mp4a.40.2".into(),
            bitrate: BitRate::from_kbps(96),
            timescale: 48_000,
            fmp4: None,
            ts: None,
        };
        let entry = entry(&track, &rendition, Wrapping::Fmp4, None).expect("a loop");
        assert_eq!((entry.channels, entry.size), (Some(2), None));
    }

    #[test]
    fn a_version_is_that_of_the_files_and_of_how_they_are_cut() {
        let files = |hash: &str| BTreeMap::from([("v0/0.m4s".to_owned(), hash.to_owned())]);
        let chunk = |ms| Some(ChunkSpec::new(Duration::from_millis(ms), None));
        let versions = [
            version(&files("aa"), None),
            version(&files("ab"), None),
            version(&files("aa"), chunk(100)),
            version(&files("aa"), chunk(200)),
        ];
        for (at, one) in versions.iter().enumerate() {
            assert!(versions[..at].iter().all(|other| other != one), "{versions:?}");
        }
        assert_eq!(version(&files("aa"), chunk(100)), versions[2]);
    }
}
