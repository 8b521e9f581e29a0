//! What a viewer received and could decode, as a file that can be played and filmed.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use suiro_media::screen::Codec;

use crate::{LogError, Seen};

/// Where the viewer called `name` saves what it received: `received.NAME.h264` or `.m2v` in the trial's
/// folder.
pub fn received(dir: &Path, name: &str, codec: Codec) -> PathBuf {
    let extension = match codec {
        Codec::H264 => "h264",
        Codec::Mpeg2 => "m2v",
    };
    dir.join(format!("received.{name}.{extension}"))
}

/// Writes the coded frames that a viewer could decode, one after the other: an elementary stream, of
/// which a decoder shows what the viewer's showed. Which source frames they are, the rows `decodable` of
/// the table `frames` say, in the same order.
#[derive(Debug)]
pub struct Saver {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Saver {
    /// Creates the file [`received`].
    ///
    /// # Errors
    /// [`LogError::Save`].
    pub fn create(dir: &Path, name: &str, codec: Codec) -> Result<Self, LogError> {
        let path = received(dir, name, codec);
        let file = File::create(&path).map_err(LogError::save(&path))?;
        Ok(Self { path, file: BufWriter::new(file) })
    }

    /// Keeps the frame, if it was decoded.
    ///
    /// # Errors
    /// [`LogError::Save`].
    pub fn push(&mut self, seen: &Seen) -> Result<(), LogError> {
        match &seen.data {
            Some(data) if seen.outcome.decodable() => {
                self.file.write_all(data).map_err(LogError::save(&self.path))
            }
            _ => Ok(()),
        }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// [`LogError::Save`].
    pub fn close(mut self) -> Result<(), LogError> {
        self.file.flush().map_err(LogError::save(&self.path))
    }
}
