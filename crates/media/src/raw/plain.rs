//! Frames of any file as plain rows of samples, of the size, rate and format that are asked for.

use std::ffi::OsString;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};

use crate::ffmpeg::Running;
use crate::{Ffmpeg, MediaError};

/// What the frames are to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainFormat {
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Frames per second, and how many seconds: 60000 and 1001.
    pub rate: (u32, u32),
    /// ffmpeg's name of the format, such as `gbrp10le`.
    pub pixel_format: &'static str,
    /// Bytes of a frame in it.
    pub bytes: usize,
}

/// The frames of a file, one after the other, decoded by ffmpeg.
pub struct PlainPictures {
    running: Running,
    from: BufReader<ChildStdout>,
    file: PathBuf,
    bytes: usize,
}

impl PlainPictures {
    /// Begins with the first. Frames are scaled, repeated and left out as `format` needs.
    ///
    /// # Errors
    /// If ffmpeg cannot be started.
    pub fn open(ffmpeg: &Ffmpeg, file: &Path, format: &PlainFormat) -> Result<Self, MediaError> {
        let PlainFormat { width, height, rate: (frames, seconds), .. } = format;
        let filter = format!("fps={frames}/{seconds},scale={width}:{height}:flags=bicubic");
        let mut arguments: Vec<OsString> = vec!["-i".into(), file.into()];
        let rest = ["-map", "0:v:0", "-vf", &filter, "-pix_fmt", format.pixel_format];
        arguments.extend(rest.map(OsString::from));
        arguments.extend(["-f", "rawvideo", "pipe:1"].map(OsString::from));
        let here = Path::new(".");
        let mut running = ffmpeg.start(&arguments, here, Stdio::null(), Stdio::piped())?;
        let stdout = running.stdout().expect("stdout is piped");
        let from = BufReader::with_capacity(1 << 20, stdout);
        Ok(Self { running, from, file: file.to_owned(), bytes: format.bytes })
    }

    /// Reads the next frame; `false` after the last.
    ///
    /// # Errors
    /// What ffmpeg says of the file, and a cut frame.
    ///
    /// # Panics
    /// If `picture` does not have the size of a frame.
    pub fn next(&mut self, picture: &mut [u8]) -> Result<bool, MediaError> {
        assert_eq!(picture.len(), self.bytes, "a frame is read whole");
        let mut done = 0;
        while done < picture.len() {
            match self.from.read(&mut picture[done..]) {
                Ok(0) => break,
                Ok(more) => done += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(MediaError::io("decoding", &self.file)(error)),
            }
        }
        if done == picture.len() {
            return Ok(true);
        }
        self.running.wait()?;
        if done == 0 {
            return Ok(false);
        }
        Err(MediaError::io("decoding", &self.file)(ErrorKind::UnexpectedEof.into()))
    }
}
