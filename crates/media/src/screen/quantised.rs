//! Frames of a set of versions: a viewer that shows only what came whole shows what was sent.

use std::ffi::OsString;
use std::sync::Arc;

use crate::quantised::{GROUP, SIZE, Set};
use crate::raw::{Decoder, Pieces};
use crate::screen::Shown;
use crate::{Ffmpeg, MediaError};

/// The images of a set. One decoder runs on while frames of one version follow each other; a
/// switch, a jump or a step back starts another at the group that holds the frame.
pub(super) struct Playback {
    ffmpeg: Ffmpeg,
    set: Arc<Set>,
    decoding: Option<Decoding>,
    picture: Vec<u8>,
}

struct Decoding {
    decoder: Decoder,
    version: usize,
    /// The frame that comes next; the one before it is at hand, unless it is the first.
    next: u64,
    first: u64,
}

impl Playback {
    pub fn new(ffmpeg: &Ffmpeg, set: &Set) -> Self {
        let (ffmpeg, set) = (ffmpeg.clone(), Arc::new(set.clone()));
        Self { ffmpeg, set, decoding: None, picture: Vec::new() }
    }

    /// The image of a frame; its rung is the version.
    pub fn picture(&mut self, Shown { frame, rung }: Shown) -> Result<&[u8], MediaError> {
        let is_open = self.decoding.as_ref().is_some_and(|decoding| {
            let at_hand = decoding.next.saturating_sub(1).max(decoding.first);
            let ahead = decoding.next + u64::from(GROUP);
            decoding.version == rung && (at_hand..=ahead).contains(&frame)
        });
        if !is_open {
            // One at a time: the other stops first.
            self.decoding = None;
            self.decoding = Some(self.open(rung, frame / u64::from(GROUP))?);
        }
        let decoding = self.decoding.as_mut().expect("opened above");
        while decoding.next <= frame {
            if !decoding.decoder.next(&mut self.picture)? {
                let message =
                    format!("frame {} of version {rung} cannot be decoded", decoding.next);
                return Err(MediaError::damaged(&self.set.folder, message));
            }
            decoding.next += 1;
        }
        Ok(&self.picture)
    }

    /// Starts to decode a version from a group on.
    fn open(&self, version: usize, group: u64) -> Result<Decoding, MediaError> {
        let (width, height) = SIZE;
        let scale = format!("scale={width}:{height}:flags=bicubic,setsar=1,format=yuv420p");
        let words = ["-f", "mpegvideo", "-i", "pipe:0", "-map", "0:v:0", "-fps_mode"];
        let words = words.into_iter().chain(["passthrough", "-vf", &scale]);
        let arguments: Vec<_> = words.map(OsString::from).collect();
        let decoder = Decoder::start(&self.ffmpeg, &arguments, Some(self.pieces(version, group)))?;
        let decoder = decoder.ok_or_else(|| {
            let message = format!("group {group} of version {version} has no frame");
            MediaError::damaged(&self.set.folder, message)
        })?;
        let first = group * u64::from(GROUP);
        Ok(Decoding { decoder, version, next: first, first })
    }

    /// A version from a group on, without end.
    fn pieces(&self, version: usize, first: u64) -> Pieces {
        let set = Arc::clone(&self.set);
        Box::new((first..).map(move |number| Ok(set.group(version, number)?.bytes().to_vec())))
    }
}
