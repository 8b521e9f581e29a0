//! Frames of a stream that came in real time, as its viewer kept it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::live::FootageSpec;
use crate::quantised::{RATE, SIZE, Set};
use crate::raw::{Decoder, Header};
use crate::{Ffmpeg, MediaError};

/// How the frames of a stream are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// H.264, as NAL units in the byte stream format (ITU-T H.264 annex B).
    H264,
    /// MPEG-2 video, an elementary stream (ISO/IEC 13818-2).
    Mpeg2,
}

impl Codec {
    /// ffmpeg's name of the format.
    fn format(self) -> &'static str {
        match self {
            Self::H264 => "h264",
            Self::Mpeg2 => "mpegvideo",
        }
    }
}

/// What was sent to a viewer.
#[derive(Debug, Clone, PartialEq)]
pub enum Sent {
    /// What a camera saw.
    Camera(FootageSpec),
    /// Groups of frames from a set of versions.
    Set(Box<Set>),
}

impl Sent {
    /// Size and rate of the frames.
    pub(super) fn header(&self) -> Header {
        match self {
            &Self::Camera(FootageSpec { width, height, fps, .. }) => {
                Header { width, height, rate: (fps, 1) }
            }
            Self::Set(_) => Header { width: SIZE.0, height: SIZE.1, rate: RATE },
        }
    }

    /// Whether the frames bear stamps. A camera's always do.
    pub(super) fn stamped(&self) -> bool {
        match self {
            Self::Camera(_) => true,
            Self::Set(set) => set.spec.stamp,
        }
    }
}

/// What a viewer of real-time video received and could decode.
///
/// What its decoder could not use is not in it: a decoder that was never given it shows what the
/// viewer's showed. Frames stand in the order they are shown in, which is the order they came in:
/// real-time video has no frames that refer to later ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// The file with the coded frames, one after the other.
    pub file: PathBuf,
    /// How they are coded.
    pub codec: Codec,
    /// Which source frame each frame of the file is; rising.
    pub frames: Vec<u64>,
    /// What was sent.
    pub source: Sent,
    /// Whether frames that lack parts are in it, for the decoder to conceal what is missing. Else it
    /// refuses them.
    pub conceals: bool,
}

impl Stream {
    /// Width and height of the frames.
    pub fn size(&self) -> (u32, u32) {
        let Header { width, height, .. } = self.header();
        (width, height)
    }

    /// Size and rate of the frames.
    pub(super) fn header(&self) -> Header {
        self.source.header()
    }

    /// The frames rise, and all that is wanted is there.
    pub(super) fn check(&self, wanted: impl Iterator<Item = u64>) -> Result<(), MediaError> {
        if !self.frames.is_sorted_by(|a, b| a < b) {
            return Err(self.failed("its list of frames does not rise".into()));
        }
        for frame in wanted {
            self.place(frame)?;
        }
        Ok(())
    }

    /// How many frames of the file come before that one.
    fn place(&self, frame: u64) -> Result<usize, MediaError> {
        let missing = |_| self.failed(format!("frame {frame} was shown but is not in it"));
        self.frames.binary_search(&frame).map_err(missing)
    }

    fn failed(&self, message: String) -> MediaError {
        MediaError::Stream { file: self.file.clone(), message }
    }
}

/// Decodes the frames that were shown, one after the other; a step back starts anew.
pub(super) struct Playback {
    ffmpeg: Ffmpeg,
    stream: Stream,
    header: Header,
    decoder: Option<Decoder>,
    /// Frames decoded so far; the last one is at hand.
    decoded: usize,
    picture: Vec<u8>,
}

impl Playback {
    pub fn new(ffmpeg: &Ffmpeg, stream: &Stream) -> Self {
        let (ffmpeg, stream, header) = (ffmpeg.clone(), stream.clone(), stream.header());
        Self { ffmpeg, stream, header, decoder: None, decoded: 0, picture: Vec::new() }
    }

    /// The image of a frame.
    pub fn picture(&mut self, frame: u64) -> Result<&[u8], MediaError> {
        let wanted = self.stream.place(frame)? + 1;
        if self.decoder.is_none() || wanted < self.decoded {
            // One at a time: the other stops first.
            self.decoder = None;
            self.decoder = Some(self.open()?);
            self.decoded = 0;
        }
        let decoder = self.decoder.as_mut().expect("opened above");
        while self.decoded < wanted {
            if !decoder.next(&mut self.picture)? {
                let (has, told) = (self.decoded, self.stream.frames.len());
                let message = format!("{has} frames can be decoded, {told} were expected");
                return Err(self.stream.failed(message));
            }
            self.decoded += 1;
        }
        Ok(&self.picture)
    }

    fn open(&self) -> Result<Decoder, MediaError> {
        let file = &self.stream.file;
        // ffmpeg would say the same at more length.
        let absolute = std::fs::canonicalize(file).map_err(MediaError::io("opening", file))?;
        let decoder = Decoder::start(&self.ffmpeg, &self.arguments(&absolute), None)?;
        decoder.ok_or_else(|| self.stream.failed("no frame can be decoded".into()))
    }

    fn arguments(&self, file: &Path) -> Vec<OsString> {
        let Header { width, height, .. } = self.header;
        let mut url = OsString::from("file:");
        url.push(file);
        let scale = format!("scale={width}:{height}:flags=bicubic,setsar=1,format=yuv420p");
        // Frame threads would hold frames back until the end, which does no harm. They would also conceal a cut frame,
        // which is wrong where the viewer did not show it.
        let errors: &[&str] = match self.stream.conceals {
            true => &["-flags", "+output_corrupt"],
            false => &["-err_detect", "explode"],
        };
        let before = [errors, &["-f", self.stream.codec.format(), "-i"]].concat();
        let after = ["-map", "0:v:0", "-fps_mode", "passthrough", "-vf", &scale];
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        [words(&before), vec![url], words(&after)].concat()
    }
}
