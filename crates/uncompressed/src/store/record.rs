//! A store that is written.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{Error, FRAMES_MAX, Header, Store, Trailer};
use crate::checksum;

/// The header is brought up to date after as many frames, so that no more are lost if the process
/// dies.
const HEADER_EVERY: u64 = 60;

/// Writes a store, frame by frame. What is whole stays if it is dropped, but [`Recorder::finish`] tells
/// errors.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: File,
    header: Header,
    /// Frames that the header in the file counts.
    told: u64,
    /// What follows a frame in its slot.
    tail: Vec<u8>,
    finished: bool,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The file.
    pub path: PathBuf,
    /// Frames in it.
    pub frames: u64,
}

impl Recorder {
    /// Makes a store; a file of that name is replaced. `header.frames` is of no meaning.
    pub fn create(path: &Path, header: Header) -> Result<Self, Error> {
        let header = Header { frames: 0, ..header };
        let file = File::create(path).map_err(Error::io(path, "cannot create"))?;
        let mut recorder = Self::new(path, file, header);
        recorder.tell()?;
        Ok(recorder)
    }

    /// Goes on behind the last frame of a store. What lies behind it is overwritten.
    pub fn append(path: &Path) -> Result<Self, Error> {
        let header = *Store::open_damaged(path)?.header();
        let file = OpenOptions::new().write(true).open(path);
        let file = file.map_err(Error::io(path, "cannot open for writing"))?;
        let mut recorder = Self::new(path, file, header);
        recorder.tell()?;
        Ok(recorder)
    }

    fn new(path: &Path, file: File, header: Header) -> Self {
        let tail = vec![0; header.slot_bytes() - header.geometry.frame_bytes()];
        Self { path: path.to_owned(), file, header, told: 0, tail, finished: false }
    }

    /// What the store will say about itself.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Number that the next frame will have.
    pub const fn next(&self) -> u64 {
        self.header.first + self.header.frames
    }

    /// Writes the next frame. On [`Error::Full`] the store keeps its whole frames, and nothing more
    /// can be written.
    ///
    /// # Panics
    /// If the frame has not the geometry's size.
    pub fn write(&mut self, frame: &[u8]) -> Result<(), Error> {
        self.write_summed(frame, checksum::of_frame(frame))
    }

    /// Writes the next frame, whose checksum is already known.
    ///
    /// # Panics
    /// If the frame has not the geometry's size.
    pub fn write_summed(&mut self, frame: &[u8], checksum: u64) -> Result<(), Error> {
        assert_eq!(frame.len(), self.header.geometry.frame_bytes(), "a frame is written whole");
        if self.finished {
            return Err(self.full("it was closed before".to_owned()));
        }
        if self.header.frames >= FRAMES_MAX {
            return Err(self.full(format!("a store has at most {FRAMES_MAX} frames")));
        }
        Trailer { number: self.next(), checksum }.write(&mut self.tail);
        let at = self.header.slot_offset(self.header.frames);
        let written = self
            .file
            .write_all_at(frame, at)
            .and_then(|()| self.file.write_all_at(&self.tail, at + frame.len() as u64));
        if let Err(error) = written {
            return Err(self.failed(error));
        }
        self.header.frames += 1;
        if self.header.frames - self.told >= HEADER_EVERY { self.tell() } else { Ok(()) }
    }

    /// Ends the store and says what is in it.
    pub fn finish(mut self) -> Result<Recorded, Error> {
        self.close()?;
        Ok(Recorded { path: self.path.clone(), frames: self.header.frames })
    }

    fn tell(&mut self) -> Result<(), Error> {
        let page = self.header.encode();
        self.file.write_all_at(&page, 0).map_err(Error::io(&self.path, "cannot write"))?;
        self.told = self.header.frames;
        Ok(())
    }

    /// Takes away what was begun, and brings the header up to date.
    fn close(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.finished, true) {
            return Ok(());
        }
        let length = self.header.slot_offset(self.header.frames);
        self.file.set_len(length).map_err(Error::io(&self.path, "cannot cut"))?;
        self.tell()
    }

    fn failed(&mut self, error: io::Error) -> Error {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => self.full(error.to_string()),
            _ => Error::io(&self.path, "cannot write")(error),
        }
    }

    fn full(&mut self, because: String) -> Error {
        let frames = self.header.frames;
        match self.close() {
            Ok(()) => Error::Full { path: self.path.clone(), frames, because },
            Err(error) => error,
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Nobody asked; the header of up to HEADER_EVERY frames ago is still valid.
        let _ = self.close();
    }
}
