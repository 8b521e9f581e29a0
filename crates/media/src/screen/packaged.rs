//! Frames of a package: what comes over a reliable transport is what was sent.

use std::ffi::OsString;
use std::sync::Arc;

use crate::package::{Content, Package, Track};
use crate::raw::{Decoder, Header, Pieces};
use crate::screen::Shown;
use crate::{Container, Ffmpeg, MediaError, encode};

/// The images of a package, all in one size. One decoder runs on while frames of one rung follow
/// each other; a switch, a jump or a step back starts another at the segment that holds the frame.
pub(super) struct Playback {
    ffmpeg: Ffmpeg,
    package: Arc<Package>,
    header: Header,
    decoding: Option<Decoding>,
    picture: Vec<u8>,
}

struct Decoding {
    decoder: Decoder,
    rung: usize,
    /// The rung's frame that comes next; the one before it is at hand, unless it is the first.
    next: u64,
    first: u64,
}

impl Playback {
    pub fn new(ffmpeg: &Ffmpeg, package: &Package, header: Header) -> Self {
        let (ffmpeg, package) = (ffmpeg.clone(), Arc::new(package.clone()));
        Self { ffmpeg, package, header, decoding: None, picture: Vec::new() }
    }

    /// The image of a frame, in the size of the tallest rung.
    pub fn picture(&mut self, Shown { frame, rung }: Shown) -> Result<&[u8], MediaError> {
        let fps = self.fps(rung);
        // A rung may have fewer frames than the source: the last one is still there.
        let (source, wanted) =
            (u128::from(self.header.rate.0), u128::from(frame) * u128::from(fps));
        let wanted = (wanted / source) as u64;
        let group = encode::frames(self.package.spec.segment, fps).max(1);
        let is_open = self.decoding.as_ref().is_some_and(|decoding| {
            let at_hand = decoding.next.saturating_sub(1).max(decoding.first);
            decoding.rung == rung && (at_hand..=decoding.next + group).contains(&wanted)
        });
        if !is_open {
            // One at a time: the other stops first.
            self.decoding = None;
            self.decoding = Some(self.open(rung, wanted / group, group)?);
        }
        let decoding = self.decoding.as_mut().expect("opened above");
        while decoding.next <= wanted {
            if !decoding.decoder.next(&mut self.picture)? {
                let message = format!("frame {} of rung {rung} cannot be decoded", decoding.next);
                return Err(MediaError::damaged(&self.package.folder, message));
            }
            decoding.next += 1;
        }
        Ok(&self.picture)
    }

    fn fps(&self, rung: usize) -> u32 {
        match self.package.video.get(rung).map(|track| &track.content) {
            Some(Content::Video { fps, .. }) => *fps,
            _ => self.header.rate.0,
        }
    }

    /// Starts to decode a rung from segment `number` of `group` frames on.
    fn open(&self, rung: usize, number: u64, group: u64) -> Result<Decoding, MediaError> {
        let nothing = || {
            let message = format!("segment {number} of rung {rung} has no frame");
            MediaError::damaged(&self.package.folder, message)
        };
        let track = &self.package.video[rung];
        track.segment(container(track), number).ok_or_else(nothing)?;
        let Header { width, height, .. } = self.header;
        let scale = format!("scale={width}:{height}:flags=bicubic,setsar=1,format=yuv420p");
        let words = ["-i", "pipe:0", "-map", "0:v:0", "-fps_mode", "passthrough", "-vf", &scale];
        let arguments = words.map(OsString::from);
        let pieces = pieces(Arc::clone(&self.package), rung, number);
        let decoder = Decoder::start(&self.ffmpeg, &arguments, Some(pieces))?;
        let decoder = decoder.ok_or_else(nothing)?;
        let first = number * group;
        Ok(Decoding { decoder, rung, next: first, first })
    }
}

/// The container that is decoded; the frames in both are the same.
fn container(track: &Track) -> Container {
    if track.fmp4.is_some() { Container::Fmp4 } else { Container::Ts }
}

/// A rung from segment `first` on, without end.
fn pieces(package: Arc<Package>, rung: usize, first: u64) -> Pieces {
    let track = package.video[rung].clone();
    let container = container(&track);
    let init = package.read_init(&track).transpose();
    let segments =
        (first..).map_while(move |number| package.read(&track, container, number).transpose());
    Box::new(init.into_iter().chain(segments))
}
