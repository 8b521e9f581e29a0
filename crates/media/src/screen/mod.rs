//! What was on a viewer's screen, made again: as pictures for whoever measures them, and as a video
//! for whoever looks.
//!
//! A *tick* is the time of one source frame: ticks come at the frame rate of the package's fastest
//! rung, from the start of what is shown. For each, a list says which source frame was on screen,
//! and of which rung it was; the same frame again is a repeat. The pictures themselves are decoded
//! from what was received.

mod playback;

use std::ffi::OsString;
use std::fs;
use std::path::Path;

pub(crate) use playback::Playback;

use crate::package::{Content, Package};
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
    /// The rung it was decoded from: its place in [`Package::video`].
    pub rung: usize,
}

/// Where the pictures are decoded from.
#[derive(Debug, Clone, Copy)]
pub enum Received<'a> {
    /// The package itself: what comes over a reliable transport is what was sent.
    Package(&'a Package),
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
    /// Frames per second, and ticks per second.
    pub fn fps(&self) -> u32 {
        encode::source_fps(&self.package().spec)
    }

    /// Writes the video (H.264, 4:2:0, in an MP4 whose index comes first, in the size of the
    /// tallest rung) and returns what the picture of each tick says of itself: `None` before the
    /// first frame, where no stamp can be read and where the package has none. The number is that
    /// within the loop. `output` appears when it is whole.
    ///
    /// # Errors
    /// [`MediaError`]: nothing was shown, the package is damaged, ffmpeg failed, or `output` cannot
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
        let group = self.fps().to_string();
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
        let package = self.package();
        let sizes = package.video.iter().filter_map(|track| match track.content {
            Content::Video { width, height, .. } => Some((height, width)),
            Content::Audio { .. } => None,
        });
        let (height, width) = sizes.max().ok_or(MediaError::NothingShown)?;
        let header = Header { width, height, rate: (self.fps(), 1) };
        Ok(Playback::new(self.ffmpeg, package, header))
    }

    pub(crate) fn package(&self) -> &Package {
        let Received::Package(package) = self.received;
        package
    }

    /// There is something to show, and nothing that the package does not have.
    pub(crate) fn check(&self) -> Result<(), MediaError> {
        if self.ticks.len() > TICKS_MAX {
            return Err(MediaError::TooLong { ticks: self.ticks.len() });
        }
        let rungs = self.package().video.len();
        let mut shown = self.ticks.iter().flatten().peekable();
        if shown.peek().is_none() {
            return Err(MediaError::NothingShown);
        }
        match shown.find(|shown| shown.rung >= rungs) {
            Some(Shown { frame, rung }) => {
                Err(MediaError::NoRung { frame: *frame, rung: *rung, rungs })
            }
            None => Ok(()),
        }
    }
}
