//! What was on a viewer's screen, made again: as frames for whoever measures them, and as a video
//! for whoever looks.
//!
//! A *tick* is the time of one source frame: ticks come at the frame rate of the package's fastest
//! rung, from the start of what is shown. For each, a list has the source frame that was on screen,
//! and its rung; the same frame again is a repeat. The images themselves are decoded from what was
//! received.

mod packaged;
mod playback;
mod quantised;
mod stream;

use std::ffi::OsString;
use std::fs;
use std::path::Path;

pub(crate) use playback::Playback;
pub use stream::{Codec, Sent, Stream};

use crate::package::Package;
use crate::quantised::{RATE, SIZE, Set};
use crate::raw::{Encoder, Header};
use crate::stamp::{self, Layout, Stamp};
use crate::{Ffmpeg, MediaError, encode};

/// Most ticks of a screen: a day at 120 frames per second.
pub const TICKS_MAX: usize = 24 * 3600 * 120;

/// Quality of the screen's video (x264's constant rate factor): what it adds to the coding that is
/// looked at can hardly be seen.
const CRF: &str = "19";

/// One frame on screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Its number among the source's frames, from 0; looped footage counts on.
    pub frame: u64,
    /// The rung it was decoded from: its place in [`Package::video`] or [`Set::versions`]; 0
    /// of a stream.
    pub rung: usize,
}

/// Where the frames are decoded from.
#[derive(Debug, Clone, Copy)]
pub enum Received<'a> {
    /// The package itself: what comes over a reliable transport is what was sent.
    Package(&'a Package),
    /// What a sender chose from: what a viewer shows who shows only frames that came whole, as all
    /// did that they refer to.
    Set(&'a Set),
    /// What a viewer of real-time video kept.
    Stream(&'a Stream),
}

impl Received<'_> {
    /// Size of the frames, that of the tallest rung, and their rate, that of the source.
    fn header(&self) -> Result<Header, MediaError> {
        match self {
            Self::Package(package) => {
                let (width, height) = package.picture_size().ok_or(MediaError::NothingShown)?;
                Ok(Header { width, height, rate: (encode::source_fps(&package.spec), 1) })
            }
            Self::Set(_) => {
                let (width, height) = SIZE;
                Ok(Header { width, height, rate: RATE })
            }
            Self::Stream(stream) => Ok(stream.header()),
        }
    }

    /// Frames per second of the source, as a fraction.
    pub fn rate(&self) -> (u32, u32) {
        match self {
            Self::Package(package) => (encode::source_fps(&package.spec), 1),
            Self::Set(_) => RATE,
            Self::Stream(stream) => stream.header().rate,
        }
    }

    /// Rungs or versions; `None` of a stream, which has but itself.
    fn rungs(&self) -> Option<usize> {
        match self {
            Self::Package(package) => Some(package.video.len()),
            Self::Set(set) => Some(set.versions.len()),
            Self::Stream(_) => None,
        }
    }

    /// Whether the frames bear stamps.
    pub(crate) fn stamped(&self) -> bool {
        match self {
            Self::Package(package) => package.spec.stamp,
            Self::Set(set) => set.spec.stamp,
            Self::Stream(stream) => stream.source.stamped(),
        }
    }
}

/// A viewer's screen.
#[derive(Debug, Clone, Copy)]
pub struct Screen<'a> {
    /// What decodes and encodes.
    pub ffmpeg: &'a Ffmpeg,
    /// What was received.
    pub received: Received<'a>,
    /// What was shown at each tick; `None` before the first frame, when the screen is black.
    pub ticks: &'a [Option<Shown>],
}

impl Screen<'_> {
    /// Frames and ticks per second, as a fraction.
    pub fn rate(&self) -> (u32, u32) {
        self.received.rate()
    }

    /// Writes the video (H.264, 4:2:0, in an MP4 whose index comes first, in the size of the tallest rung or of the
    /// camera). Returns what the frame of each tick says of itself: `None` before the first frame, where no stamp can
    /// be read and where the package has none. The number is that within the loop of a package, of a camera it counts
    /// on. `output` appears when it is whole.
    ///
    /// # Errors
    /// [`MediaError`]: nothing was shown, what was received is damaged, ffmpeg failed, or `output` cannot
    /// be written.
    pub fn write(&self, output: &Path) -> Result<Vec<Option<Stamp>>, MediaError> {
        let part = output.with_extension("mp4.part");
        let written = self.write_part(&part);
        let renamed = written.and_then(|stamps| {
            fs::rename(&part, output).map_err(MediaError::io("renaming", &part))?;
            Ok(stamps)
        });
        if renamed.is_err() {
            // Why it failed matters more than what may be left.
            let _ = fs::remove_file(&part);
        }
        renamed.map_err(|error| error.of_full_disk(output))
    }

    fn write_part(&self, part: &Path) -> Result<Vec<Option<Stamp>>, MediaError> {
        self.check()?;
        let mut playback = self.playback()?;
        let header = playback.header().clone();
        let mut encoder = self.encoder(&header, part)?;
        let layout = Layout::packed(header.width, header.height);
        let mut stamps = Vec::with_capacity(self.ticks.len());
        let mut last = None;
        for shown in self.ticks {
            let picture = playback.picture(*shown)?;
            encoder.picture(&[picture])?;
            let stamp = match (shown, last) {
                (Some(shown), Some((frame, stamp))) if *shown == frame => stamp,
                (Some(_), _) => stamp::read(picture, &layout),
                (None, _) => None,
            };
            stamps.push(stamp);
            last = shown.map(|shown| (shown, stamp));
        }
        encoder.finish()?;
        Ok(stamps)
    }

    fn encoder(&self, header: &Header, part: &Path) -> Result<Encoder, MediaError> {
        // A key frame each second, so that who looks can jump.
        let (pictures, seconds) = self.rate();
        let group = pictures.div_ceil(seconds.max(1)).to_string();
        let mut arguments: Vec<OsString> =
            ["-map", "0:v:0", "-c:v", "libx264"].map(Into::into).into();
        arguments.extend(["-preset", "veryfast", "-crf", CRF, "-g", &group].map(Into::into));
        arguments.extend(["-pix_fmt", "yuv420p", "-movflags", "+faststart"].map(Into::into));
        arguments.extend(["-f", "mp4"].map(Into::into));
        let absolute = std::path::absolute(part).map_err(MediaError::io("finding", part))?;
        let mut file = OsString::from("file:");
        file.push(absolute);
        arguments.push(file);
        Encoder::start(self.ffmpeg, header, &arguments, Path::new("/"))
    }

    pub(crate) fn playback(&self) -> Result<Playback, MediaError> {
        Ok(Playback::new(self.ffmpeg, self.received, self.received.header()?))
    }

    /// The frames of a package in another size than that of the tallest rung, each scaled once.
    pub(crate) fn playback_in(&self, size: &Header) -> Playback {
        Playback::new(self.ffmpeg, self.received, size.clone())
    }

    /// There is something to show, and nothing that was not received.
    pub(crate) fn check(&self) -> Result<(), MediaError> {
        if self.ticks.len() > TICKS_MAX {
            return Err(MediaError::TooLong { ticks: self.ticks.len(), most: TICKS_MAX });
        }
        let mut shown = self.ticks.iter().flatten().peekable();
        if shown.peek().is_none() {
            return Err(MediaError::NothingShown);
        }
        if let Received::Stream(stream) = self.received {
            return stream.check(shown.map(|shown| shown.frame));
        }
        let rungs = self.received.rungs().unwrap_or(1);
        let lacking = shown.find(|shown| shown.rung >= rungs);
        lacking.map_or(Ok(()), |Shown { frame, rung }| {
            Err(MediaError::NoRung { frame: *frame, rung: *rung, rungs })
        })
    }
}
