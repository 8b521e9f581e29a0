//! A real-time source: footage, captured on the clock, stamped and encoded. Time is an argument.

use suiro_units::{BitRate, Bytes, Duration, Time};

use super::encoder::{Encoded, Encoder, EncoderConfig};
use super::scale::Scaler;
use super::soft::soften;
use super::{Footage, LiveError, Pace, Picture};
use crate::stamp::Stamp;
use suiro_strict::Refusal;

/// What share of the bits is left of a key frame that is softened with that reach, at most. Measured with Big Buck Bunny at 360
/// to 1080 lines: 0.52 to 0.62 with 2, 0.30 to 0.44 with 4, 0.22 to 0.29 with 8, 0.16 to 0.21 with 16.
const SOFTENED: [(f64, usize); 4] = [(0.62, 2), (0.44, 4), (0.29, 8), (0.0, 16)];
/// How often a key frame is made again at most.
const AGAIN_MAX: usize = 2;

/// A camera and its encoder. The time is an argument.
pub struct LiveSource {
    footage: Footage,
    pace: Pace,
    encoder: Encoder,
    picture: Picture,
    /// Makes the smaller frame that is encoded; `None`: the whole one is.
    smaller: Option<(Scaler, Picture)>,
    start: Time,
    epoch_utc_ms: u64,
    /// The last frame that was encoded.
    last: Option<u64>,
    /// How long a key frame may take at the bit rate; `None`: any time.
    keys_within: Option<Duration>,
    /// How soft the next frame is.
    reach: usize,
    /// From and until when it captures nothing.
    pauses: Vec<(Time, Time)>,
    /// When the last frame was captured that falls into no pause.
    captured: Option<Time>,
    /// Frames that were missed since then.
    missed: u64,
}

/// Checks that a camera whose frames have the size `camera` can give frames of that size.
///
/// # Errors
/// [`LiveError`]: the codec takes no such size, a side is longer than the camera's, or the frame is too
/// small for a stamp.
pub fn check_size(size: (u32, u32), camera: (u32, u32)) -> Result<(), LiveError> {
    if size.0 > camera.0 || size.1 > camera.1 {
        let found = format!("frames of {}×{}", size.0, size.1);
        let expected = format!("no side longer than the camera's, {}×{}", camera.0, camera.1);
        return Err(Refusal::key("", found).expected(expected).into());
    }
    Picture::new(size.0, size.1)?.stamp(Stamp { frame: 0, captured_ms: 0 })?;
    Ok(())
}

/// What makes frames of another size than the whole ones.
fn smaller(size: (u32, u32), whole: (u32, u32)) -> Result<Option<(Scaler, Picture)>, LiveError> {
    let make = || Ok((Scaler::new(whole, size), Picture::new(size.0, size.1)?));
    (size != whole).then(make).transpose()
}

/// What became of a captured frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The source frame's number, from 0, also where the footage repeats.
    pub number: u64,
    /// When it was captured.
    pub captured: Time,
    /// Frames before it, outside of pauses, that were missed because the encoder was busy.
    pub missed: u64,
    /// The frame that it refers to; `None` for a key frame.
    pub references: Option<u64>,
    /// What it was encoded to; `None` if it was left out to keep the bit rate.
    pub encoded: Option<Encoded>,
    /// What the encoder was set to.
    pub config: EncoderConfig,
}

impl LiveSource {
    /// A source whose first frame is captured at `start`. Stamps count time in UTC; `epoch_utc_ms`
    /// is that of [`Time::ZERO`], in milliseconds since 1970. The encoder's size and frame rate, which
    /// are those of the stream, are at most the footage's.
    ///
    /// # Errors
    /// [`LiveError`]: the configuration is out of range. Those of [`check_size`].
    pub fn new(
        footage: Footage,
        config: EncoderConfig,
        start: Time,
        epoch_utc_ms: u64,
    ) -> Result<Self, LiveError> {
        let (size, whole) = ((config.width, config.height), footage.size());
        check_size(size, whole)?;
        let mut pace = Pace::new(start, footage.fps())?;
        pace.set_fps(config.fps)?;
        let (encoder, picture) = (Encoder::new(config)?, Picture::new(whole.0, whole.1)?);
        let smaller = smaller(size, whole)?;
        Ok(Self {
            footage,
            pace,
            encoder,
            picture,
            smaller,
            start,
            epoch_utc_ms,
            last: None,
            keys_within: None,
            reach: 0,
            pauses: Vec::new(),
            captured: None,
            missed: 0,
        })
    }

    /// Makes key frames softer that would take longer than this at the encoder's bit rate. The frames after one are each half
    /// as soft, so that the details come back within a few frames.
    pub fn keep_keys_within(&mut self, within: Duration) {
        self.keys_within = Some(within);
    }

    /// Begins with the first frame that is captured at `from` or later. Those before are not missed: the source was not to
    /// run.
    pub fn begin(&mut self, from: Time) {
        self.pace.begin(from);
    }

    /// Captures nothing from and until these times, as if the camera were muted. The first frame after each pause is a key
    /// frame. Those of the pause are not missed.
    pub fn pause(&mut self, pauses: Vec<(Time, Time)>) {
        self.pauses = pauses;
    }

    /// When the next frame is captured.
    pub fn next(&self) -> Time {
        self.pace.next()
    }

    /// Captures and encodes the newest frame that is due by `now`; `None` if there is none, or it falls into a pause.
    ///
    /// # Errors
    /// [`LiveError`]: the footage cannot be read, or the encoder fails.
    pub fn capture(&mut self, now: Time) -> Result<Option<Captured>, LiveError> {
        let first = self.pace.next();
        let Some(due) = self.pace.take(now) else { return Ok(None) };
        let before =
            |&(from, to): &(Time, Time)| self.pace.count(from.max(first), to.min(due.captured));
        let of_pauses: u64 = self.pauses.iter().map(before).sum();
        self.missed += due.missed.saturating_sub(of_pauses);
        if self.pauses.iter().any(|(from, to)| *from <= due.captured && due.captured < *to) {
            return Ok(None);
        }
        let resumes =
            |last: Time| self.pauses.iter().any(|(_, to)| last < *to && *to <= due.captured);
        if self.captured.is_some_and(resumes) {
            self.request_key_frame();
        }
        self.captured = Some(due.captured);
        self.footage.read(due.number, &mut self.picture)?;
        let captured_ms = self.epoch_utc_ms.saturating_add(due.captured.as_nanos() / 1_000_000);
        // 2^32 frames are more than a year.
        let stamp = Stamp { frame: due.number as u32, captured_ms };
        let encoded = self.encode(stamp, due.captured.saturating_since(self.start))?;
        let references = match &encoded {
            Some(encoded) if !encoded.key => self.last,
            _ => None,
        };
        if encoded.is_some() {
            self.last = Some(due.number);
        }
        let (number, captured) = (due.number, due.captured);
        let missed = std::mem::take(&mut self.missed);
        let config = *self.encoder.config();
        Ok(Some(Captured { number, captured, missed, references, encoded, config }))
    }

    /// Encodes what was captured. Where a key frame takes too long, another encoder makes one of a softer image.
    fn encode(&mut self, stamp: Stamp, at: Duration) -> Result<Option<Encoded>, LiveError> {
        let picture = match &mut self.smaller {
            None => &mut self.picture,
            Some((scaler, smaller)) => {
                scaler.scale(&self.picture, smaller);
                smaller
            }
        };
        soften(picture, self.reach);
        self.reach /= 2;
        picture.stamp(stamp)?;
        let mut encoded = self.encoder.encode(picture, at)?;
        let Some(within) = self.keys_within else { return Ok(encoded) };
        let config = *self.encoder.config();
        for _ in 0..AGAIN_MAX {
            let key = encoded.as_ref().filter(|encoded| encoded.key);
            let takes = key.map(|key| Bytes::new(key.bytes.len() as u64) / config.bitrate);
            let Some(takes) = takes.filter(|takes| *takes > within) else { break };
            let left = within.as_secs_f64() / takes.as_secs_f64();
            let reach =
                SOFTENED.iter().find(|(share, _)| *share <= left).map_or(0, |(_, reach)| *reach);
            soften(picture, reach);
            self.reach = self.reach.max(reach / 2);
            picture.stamp(stamp)?;
            self.encoder = Encoder::new(config)?;
            encoded = self.encoder.encode(picture, at)?;
        }
        Ok(encoded)
    }

    /// The bit rate from the next frame on.
    ///
    /// # Errors
    /// Those of [`Encoder::set_bitrate`].
    pub fn set_bitrate(&mut self, bitrate: BitRate) -> Result<(), LiveError> {
        self.encoder.set_bitrate(bitrate)
    }

    /// The frame rate from the next frame on.
    ///
    /// # Errors
    /// Those of [`Pace::set_fps`] and [`Encoder::set_fps`].
    pub fn set_fps(&mut self, fps: u32) -> Result<(), LiveError> {
        self.pace.set_fps(fps)?;
        self.encoder.set_fps(fps)
    }

    /// The size from the next frame on, which is a key frame: another encoder makes it. What the
    /// camera sees is scaled, then stamped.
    ///
    /// # Errors
    /// Those of [`check_size`], or openh264 refuses.
    pub fn set_size(&mut self, width: u32, height: u32) -> Result<(), LiveError> {
        let (size, whole) = ((width, height), self.footage.size());
        check_size(size, whole)?;
        let config = *self.encoder.config();
        if size == (config.width, config.height) {
            return Ok(());
        }
        self.encoder = Encoder::new(EncoderConfig { width, height, ..config })?;
        self.smaller = smaller(size, whole)?;
        Ok(())
    }

    /// Makes the next frame that is captured a key frame.
    pub fn request_key_frame(&mut self) {
        self.encoder.request_key_frame();
    }
}
