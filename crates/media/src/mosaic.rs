//! Several videos in one, side by side, on a background that somebody draws.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use suiro_outside::Unfinished;
use suiro_outside::unfinished::gone;

use crate::raw::{Encoder, Header};
use crate::{Ffmpeg, MediaError};

/// Quality of the video (x264's constant rate factor).
const CRF: &str = "21";

/// A video and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    /// The video.
    pub video: PathBuf,
    /// Its place from the left, in pixels; even, as all of these.
    pub x: u32,
    /// Its place from above.
    pub y: u32,
    /// The width it is scaled to.
    pub width: u32,
    /// The height it is scaled to.
    pub height: u32,
    /// How much later than the background it begins, in milliseconds.
    pub later_ms: u32,
    /// Lines at the top of the video that are left out.
    pub left_out: u32,
}

/// What is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mosaic {
    /// Pixels across; even.
    pub width: u32,
    /// Pixels down; even.
    pub height: u32,
    /// Frames per second.
    pub fps: u32,
    /// How many frames.
    pub pictures: u64,
    /// The videos. One that ends early is frozen then.
    pub tiles: Vec<Tile>,
}

impl Mosaic {
    /// Writes the video (H.264, 4:2:0, in an MP4 whose index comes first) to `output`, which appears
    /// when it is whole. `paint` draws the background of each frame: its planes in 4:2:0, one
    /// after the other.
    ///
    /// # Errors
    /// [`MediaError`]: a video cannot be read, ffmpeg failed, or `output` cannot be written.
    pub fn write(
        &self,
        ffmpeg: &Ffmpeg,
        output: &Path,
        paint: impl FnMut(u64, &mut Vec<u8>),
    ) -> Result<(), MediaError> {
        let part = output.with_extension("mp4.part");
        let removed = Unfinished::begin(part.clone(), make_room);
        let (part, ()) = removed.map_err(MediaError::io("removing", &part))?;
        let written = self
            .write_part(ffmpeg, part.path(), paint)
            .and_then(|()| part.keep(output).map_err(MediaError::io("writing", output)));
        if written.is_err() {
            // Why it failed matters more than what may be left.
            let _ = fs::remove_file(part.path());
        }
        written
    }

    fn write_part(
        &self,
        ffmpeg: &Ffmpeg,
        part: &Path,
        mut paint: impl FnMut(u64, &mut Vec<u8>),
    ) -> Result<(), MediaError> {
        let mut encoder = self.encoder(ffmpeg, part)?;
        let mut planes = Vec::new();
        for picture in 0..self.pictures {
            planes.clear();
            paint(picture, &mut planes);
            encoder.picture(&[&planes])?;
        }
        encoder.finish()
    }

    fn encoder(&self, ffmpeg: &Ffmpeg, part: &Path) -> Result<Encoder, MediaError> {
        let header = Header { width: self.width, height: self.height, rate: (self.fps, 1) };
        let mut arguments: Vec<OsString> = Vec::new();
        for tile in &self.tiles {
            arguments.extend(["-i".into(), file(&tile.video)?]);
        }
        let (graph, group) = (self.graph(), self.fps.to_string());
        let words = ["-filter_complex", &graph, "-map", "[v]", "-an", "-c:v", "libx264"];
        arguments.extend(words.map(OsString::from));
        let words = ["-preset", "veryfast", "-crf", CRF, "-g", &group, "-pix_fmt", "yuv420p"];
        arguments.extend(words.map(OsString::from));
        let colours = ["-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"];
        arguments.extend(colours.map(OsString::from));
        arguments.extend(["-movflags", "+faststart", "-f", "mp4"].map(OsString::from));
        arguments.push(file(part)?);
        Encoder::start(ffmpeg, &header, &arguments, Path::new("/"))
    }

    /// Each video is scaled into its place, keeping its shape, and laid on what is there.
    fn graph(&self) -> String {
        let mut graph = format!("[0:v]fps={}[b0]", self.fps);
        for (index, tile) in self.tiles.iter().enumerate() {
            let Tile { x, y, width, height, later_ms, left_out, .. } = tile;
            let (input, next) = (index + 1, index + 1);
            graph += &format!(
                ";[{input}:v]setpts=PTS-STARTPTS+{later_ms}/1000/TB,\
                 crop=iw:ih-{left_out}:0:{left_out},scale={width}:{height}:flags=bilinear:\
                 force_original_aspect_ratio=decrease:force_divisible_by=2,setsar=1,pad={width}:{height}:-1:-1[t{input}];\
                 [b{index}][t{input}]overlay={x}:{y}:eof_action=repeat:format=yuv420[b{next}]"
            );
        }
        graph + &format!(";[b{}]format=yuv420p[v]", self.tiles.len())
    }
}

/// Removes what is at a place that ffmpeg is to write: it would follow a link there.
fn make_room(path: &Path) -> io::Result<()> {
    gone(fs::remove_file(path))
}

/// A path as ffmpeg takes it: never a protocol or an option.
fn file(path: &Path) -> Result<OsString, MediaError> {
    let mut argument = OsString::from("file:");
    argument.push(std::path::absolute(path).map_err(MediaError::io("finding", path))?);
    Ok(argument)
}

/// Writes frame number `picture` of a video as a PNG.
///
/// # Errors
/// [`MediaError`]: the video cannot be read, ffmpeg failed, or `output` cannot be written.
pub fn still(ffmpeg: &Ffmpeg, video: &Path, picture: u64, output: &Path) -> Result<(), MediaError> {
    make_room(output).map_err(MediaError::io("removing", output))?;
    let select = format!("select=eq(n\\,{picture})");
    let mut arguments: Vec<OsString> = vec!["-i".into(), file(video)?];
    let words = ["-vf", &select, "-frames:v", "1", "-f", "image2", "-update", "1"];
    arguments.extend(words.map(OsString::from));
    arguments.push(file(output)?);
    ffmpeg.start(&arguments, Path::new("/"), Stdio::null(), Stdio::null())?.wait()
}
