//! From what ffmpeg encoded to segments and their index.
//!
//! # Loops of equal length
//!
//! A loop is a whole number of segments of video. Sound comes in frames of 1024 samples, which
//! seldom divide it: 30 s at 48 kHz are 1406.25 frames. A loop therefore has the whole frames that
//! fit, and the last of them is said to last up to 1023 samples (21 ms) longer. The times of the
//! next loop's sound are then exactly those of its frames, for ever. What is heard at that place,
//! once in a loop, is a gap of that length.

use std::fs;
use std::path::Path;

use suiro_units::{BitRate, Duration};

use crate::aac::{self, AudioConfig};
use crate::encode::{self, AUDIO_FILE, AUDIO_RATE, video_file};
use crate::mp4::{self, Entry, Frame, Stream};
use crate::package::{Content, File, Rendition, Segment, Track};
use crate::spec::{Format, MediaSpec, Rung};
use crate::ts::{Muxer, Timed};
use crate::{MediaError, h264, ts};

/// The segments of all tracks, cut from the files that ffmpeg left in `from` and written below
/// `to`.
pub(crate) struct Cut<'a> {
    pub spec: &'a MediaSpec,
    pub from: &'a Path,
    pub to: &'a Path,
    /// Segments of a loop.
    pub count: u64,
}

/// The sound of a loop.
pub(crate) struct Sound {
    config: AudioConfig,
    header: Vec<u8>,
    frames: Vec<Frame>,
}

/// Whole segments of frames that every rung has, at most those asked for.
pub(crate) fn whole_segments(spec: &MediaSpec, from: &Path) -> Result<u64, MediaError> {
    let mut least = spec.segments();
    for (index, rung) in encode::rungs(spec).into_iter().enumerate() {
        let mut stream = Stream::open(&from.join(video_file(index)))?;
        let mut frames = 0;
        while let Some((fragment, _)) = stream.next()? {
            frames += fragment.samples.len() as u64;
        }
        least = least.min(frames / encode::frames(spec.segment, spec.fps_of(rung)));
    }
    Ok(least)
}

impl Cut<'_> {
    /// Length of a loop.
    pub fn loop_duration(&self) -> Duration {
        self.spec.segment * self.count
    }

    /// Reads the sound and lays it out for a loop.
    pub fn sound(&self) -> Result<Sound, MediaError> {
        let path = self.from.join(AUDIO_FILE);
        let damaged = |message: &str| MediaError::damaged(&path, message);
        let mut stream = Stream::open(&path)?;
        let Entry::Audio(config) = stream.init.entry else { return Err(damaged("no sound")) };
        if config.sample_rate() != AUDIO_RATE || stream.init.timescale != AUDIO_RATE {
            return Err(damaged("sound at another rate than requested"));
        }
        let length = encode::frames(self.loop_duration(), AUDIO_RATE);
        let count = length / aac::FRAME;
        let mut frames = Vec::new();
        // The encoder's first frame only primes the decoder: what it holds comes before the start.
        let mut primes = 1;
        while let Some((fragment, bytes)) = stream.next()? {
            for sample in fragment.samples {
                if primes > 0 {
                    primes -= 1;
                } else if (frames.len() as u64) < count {
                    let at = frames.len() as u64 * aac::FRAME;
                    let (decode, shown, duration) = (at, at, aac::FRAME as u32);
                    let data = bytes[sample.data].to_vec();
                    frames.push(Frame { data, decode, shown, duration, sync: true });
                }
            }
        }
        if (frames.len() as u64) < count {
            return Err(damaged("less sound than frames"));
        }
        if let Some(last) = frames.last_mut() {
            last.duration = (length - last.decode) as u32;
        }
        Ok(Sound { config, header: stream.header, frames })
    }

    /// Writes the sound as fMP4, if that is asked for (in a transport stream it is with the
    /// frames), and indexes it.
    pub fn audio(&self, sound: &Sound, bitrate: BitRate) -> Result<Track, MediaError> {
        let folder = Folder::make(self.to, "a")?;
        let mut fmp4 = None;
        if self.spec.format != Format::Ts {
            let mut rendition = Writer::new(folder, "m4s");
            rendition.init(&sound.header)?;
            for number in 0..self.count {
                let frames = self.sound_of(sound, number);
                let place = Place::of(frames);
                rendition.add(&mp4::segment(&[frames], number as u32 + 1), place)?;
            }
            fmp4 = Some(rendition.finish(AUDIO_RATE, Vec::new()));
        }
        Ok(Track {
            id: "a".into(),
            label: "sound".into(),
            content: Content::Audio { sample_rate: AUDIO_RATE, channels: sound.config.channels() },
            codec: sound.config.codec(),
            bitrate,
            timescale: AUDIO_RATE,
            fmp4,
            ts: None,
        })
    }

    /// The frames of sound that begin within segment `number`.
    fn sound_of<'s>(&self, sound: &'s Sound, number: u64) -> &'s [Frame] {
        let first = |number: u64| {
            let at = encode::frames(self.spec.segment * number, AUDIO_RATE);
            (at.div_ceil(aac::FRAME) as usize).min(sound.frames.len())
        };
        let end = if number + 1 == self.count { sound.frames.len() } else { first(number + 1) };
        &sound.frames[first(number)..end]
    }

    /// Writes a rung in every container asked for, and indexes it.
    pub fn rung(
        &self,
        index: usize,
        rung: &Rung,
        sound: Option<&Sound>,
    ) -> Result<Track, MediaError> {
        let id = format!("v{index}");
        let mut pictures = Pictures::open(&self.from.join(video_file(index)), self.spec, rung)?;
        let timescale = pictures.timescale;
        let mut fmp4 = match self.spec.format {
            Format::Ts => None,
            _ => Some(Writer::new(Folder::make(self.to, &id)?, "m4s")),
        };
        let mut ts = match self.spec.format {
            Format::Fmp4 => None,
            _ => Some(Writer::new(Folder::make(self.to, &id)?, "ts")),
        };
        if let Some(fmp4) = &mut fmp4 {
            fmp4.init(&pictures.stream.header)?;
        }
        let mut muxer = Muxer::new(sound.map(|sound| sound.config), pictures.reorder()?);
        for number in 0..self.count {
            let frames = pictures.segment(number)?;
            let place = Place {
                start: number * pictures.ticks(),
                duration: pictures.ticks(),
                frames: frames.len() as u32,
            };
            if let Some(fmp4) = &mut fmp4 {
                let groups: Vec<&[Frame]> = frames.chunks(pictures.group).collect();
                let sequence = number as u32 * groups.len() as u32 + 1;
                fmp4.add(&mp4::segment(&groups, sequence), place)?;
            }
            if let Some(ts) = &mut ts {
                let heard = sound.map_or(&[][..], |sound| self.sound_of(sound, number));
                let video = Timed { frames: &frames, timescale };
                let audio = Timed { frames: heard, timescale: AUDIO_RATE };
                let damaged = |error| MediaError::damaged(&pictures.path, error);
                ts.add(&muxer.segment(&video, &audio).map_err(damaged)?, place)?;
            }
        }
        let Entry::Video { width, height, sets } = &pictures.stream.init.entry else {
            return Err(MediaError::damaged(&pictures.path, "no frames"));
        };
        let fps = self.spec.fps_of(rung);
        Ok(Track {
            id,
            label: rung.label(),
            content: Content::Video { width: *width, height: *height, fps },
            codec: sets.codec(),
            bitrate: rung.bitrate,
            timescale,
            fmp4: fmp4.map(|fmp4| fmp4.finish(timescale, Vec::new())),
            ts: ts.map(|ts| ts.finish(timescale, muxer.packets())),
        })
    }
}

/// The frames of a rung, as ffmpeg left them, taken segment by segment.
struct Pictures {
    path: std::path::PathBuf,
    stream: Stream,
    timescale: u32,
    /// Frames of a segment, and of a group of pictures.
    segment: usize,
    group: usize,
    /// How long after its decoding the first frame is shown, in ticks: what the encoder looks
    /// ahead.
    ahead: Option<i64>,
    taken: u64,
    waiting: Vec<Frame>,
}

impl Pictures {
    /// Ticks of a frame, by [`encode::timescale`].
    const FRAME: u32 = 1000;

    fn open(path: &Path, spec: &MediaSpec, rung: &Rung) -> Result<Self, MediaError> {
        let stream = Stream::open(path)?;
        let fps = spec.fps_of(rung);
        let timescale = encode::timescale(fps);
        if stream.init.timescale != timescale {
            return Err(MediaError::damaged(path, "another timescale than requested"));
        }
        Ok(Self {
            path: path.to_owned(),
            stream,
            timescale,
            segment: encode::frames(spec.segment, fps) as usize,
            group: encode::frames(spec.gop(), fps) as usize,
            ahead: None,
            taken: 0,
            waiting: Vec::new(),
        })
    }

    /// Ticks of a segment.
    fn ticks(&self) -> u64 {
        self.segment as u64 * u64::from(Self::FRAME)
    }

    /// By how much decoding must precede showing, in ticks of a transport stream.
    fn reorder(&mut self) -> Result<u64, MediaError> {
        self.fill(1)?;
        let ahead = self.ahead.unwrap_or(0).unsigned_abs();
        Ok(ahead * u64::from(ts::TIMESCALE) / u64::from(self.timescale))
    }

    /// The frames of the next segment, whose number is `number`.
    fn segment(&mut self, number: u64) -> Result<Vec<Frame>, MediaError> {
        self.fill(self.segment)?;
        if self.waiting.len() < self.segment {
            return Err(MediaError::damaged(&self.path, "fewer frames than were counted"));
        }
        let rest = self.waiting.split_off(self.segment);
        let frames = std::mem::replace(&mut self.waiting, rest);
        self.check(&frames, number)?;
        Ok(frames)
    }

    fn fill(&mut self, count: usize) -> Result<(), MediaError> {
        while self.waiting.len() < count {
            let Some((fragment, bytes)) = self.stream.next()? else { break };
            for sample in &fragment.samples {
                let frame = self.frame(sample, &bytes)?;
                self.waiting.push(frame);
            }
        }
        Ok(())
    }

    fn frame(&mut self, sample: &mp4::Sample, bytes: &[u8]) -> Result<Frame, MediaError> {
        let damaged = |message: String| MediaError::damaged(&self.path, message);
        if sample.duration != Self::FRAME {
            let message = format!("frame {} lasts {} ticks", self.taken, sample.duration);
            return Err(damaged(message));
        }
        let mut data = bytes[sample.data.clone()].to_vec();
        if let Entry::Video { sets, .. } = &self.stream.init.entry
            && sample.sync
        {
            sets.put_in_band(&mut data).map_err(|error| damaged(error.to_string()))?;
        }
        let ahead = *self.ahead.get_or_insert(sample.composition);
        let decode = self.taken * u64::from(Self::FRAME);
        let shown = decode.checked_add_signed(sample.composition - ahead);
        let shown =
            shown.ok_or_else(|| damaged(format!("frame {} comes before the first", self.taken)))?;
        self.taken += 1;
        Ok(Frame { data, decode, shown, duration: Self::FRAME, sync: sample.sync })
    }

    /// Each group of pictures begins with an IDR picture and is shown within its own time.
    fn check(&self, frames: &[Frame], number: u64) -> Result<(), MediaError> {
        let damaged =
            |message: &str| MediaError::damaged(&self.path, format!("segment {number}: {message}"));
        for group in frames.chunks(self.group) {
            let first = &group[0];
            let idr = h264::is_idr(&first.data).map_err(|error| damaged(&error.to_string()))?;
            if !idr || group.iter().filter(|frame| frame.sync).count() != 1 || !first.sync {
                return Err(damaged("key frames are not where they should be"));
            }
            let end = first.decode + group.len() as u64 * u64::from(Self::FRAME);
            if group.iter().any(|frame| !(first.decode..end).contains(&frame.shown)) {
                return Err(damaged("frames are shown outside of their group"));
            }
        }
        Ok(())
    }
}

/// Where a segment lies in its loop.
#[derive(Clone, Copy)]
struct Place {
    start: u64,
    duration: u64,
    frames: u32,
}

impl Place {
    fn of(frames: &[Frame]) -> Self {
        Self {
            start: frames.first().map_or(0, |first| first.shown),
            duration: frames.iter().map(|frame| u64::from(frame.duration)).sum(),
            frames: frames.len() as u32,
        }
    }
}

/// A track's folder in a package.
struct Folder<'a> {
    package: &'a Path,
    id: String,
}

impl<'a> Folder<'a> {
    fn make(package: &'a Path, id: &str) -> Result<Self, MediaError> {
        let folder = package.join(id);
        fs::create_dir_all(&folder).map_err(MediaError::io("making", &folder))?;
        Ok(Self { package, id: id.to_owned() })
    }
}

/// Writes the files of a track in one container.
struct Writer<'a> {
    folder: Folder<'a>,
    extension: &'static str,
    init: Option<File>,
    segments: Vec<Segment>,
}

impl<'a> Writer<'a> {
    fn new(folder: Folder<'a>, extension: &'static str) -> Self {
        Self { folder, extension, init: None, segments: Vec::new() }
    }

    fn init(&mut self, bytes: &[u8]) -> Result<(), MediaError> {
        self.init = Some(self.write("init.mp4", bytes)?);
        Ok(())
    }

    fn add(&mut self, bytes: &[u8], place: Place) -> Result<(), MediaError> {
        let name = format!("{}.{}", self.segments.len(), self.extension);
        let File { file, bytes } = self.write(&name, bytes)?;
        let Place { start, duration, frames } = place;
        self.segments.push(Segment { file, bytes, start, duration, frames });
        Ok(())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<File, MediaError> {
        let file = format!("{}/{name}", self.folder.id);
        let path = self.folder.package.join(&file);
        fs::write(&path, bytes).map_err(MediaError::io("writing", &path))?;
        Ok(File { file, bytes: bytes.len() as u64 })
    }

    fn finish(self, timescale: u32, packets: Vec<ts::Packets>) -> Rendition {
        // The peak is what a player counts on (RFC 8216 §4.3.4.2: an upper bound), so it is rounded up.
        let bits = |bytes: u64| u128::from(bytes) * 8 * u128::from(timescale);
        let peak = |bytes: u64, ticks: u64| bits(bytes).div_ceil(u128::from(ticks.max(1)));
        let mean = |bytes: u64, ticks: u64| bits(bytes) / u128::from(ticks.max(1));
        let rate = |bps: u128| BitRate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX));
        let bytes = self.segments.iter().map(|segment| segment.bytes).sum();
        let ticks = self.segments.iter().map(|segment| segment.duration).sum();
        let each = self.segments.iter().map(|segment| peak(segment.bytes, segment.duration));
        Rendition {
            bitrate_max: rate(each.max().unwrap_or_default()),
            bitrate_mean: rate(mean(bytes, ticks)),
            init: self.init,
            segments: self.segments,
            packets,
        }
    }
}
