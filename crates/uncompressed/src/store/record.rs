//! A store for writing.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{Error, FRAMES_MAX, Header, Store, Trailer};
use crate::checksum;

/// The header is updated after this many frames, so that at most as many are lost if the process dies.
const HEADER_EVERY: u64 = 60;

/// Most consecutive frames that may be missing from a recording: 10 s at 59.94 per second. After a longer gap it is
/// another recording.
pub const GAP_MAX: u64 = 600;
/// Frames that may be finished before one that began earlier.
const OVERTAKING_MAX: u64 = 2;

/// Writes a store, frame by frame. If it is dropped, complete frames stay, but only [`Recorder::finish`] reports
/// errors.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: File,
    header: Header,
    /// Frames counted by the header in the file.
    told: u64,
    /// Frames that the store marks as missing, as far as this recorder knows.
    missing: u64,
    /// What follows a frame in its slot.
    tail: Vec<u8>,
    finished: bool,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The file.
    pub path: PathBuf,
    /// Frames in it, including missing ones.
    pub frames: u64,
    /// Frames that are missing between others ([`Trailer::gap`]).
    pub missing: u64,
}

impl Recorder {
    /// Creates a store; an existing file is replaced. `header.frames` is ignored.
    pub fn create(path: &Path, header: Header) -> Result<Self, Error> {
        Self::create_by(OpenOptions::new().create(true).truncate(true), path, header)
    }

    /// Creates a store where no file exists.
    ///
    /// # Errors
    /// [`Error::Io`] with [`io::ErrorKind::AlreadyExists`] if the file exists.
    pub fn create_new(path: &Path, header: Header) -> Result<Self, Error> {
        Self::create_by(OpenOptions::new().create_new(true), path, header)
    }

    fn create_by(how: &mut OpenOptions, path: &Path, header: Header) -> Result<Self, Error> {
        let header = Header { frames: 0, ..header };
        let file = how.read(true).write(true).open(path);
        let file = file.map_err(Error::io(path, "cannot create"))?;
        let mut recorder = Self::new(path, file, header);
        recorder.tell()?;
        Ok(recorder)
    }

    /// Continues after the last frame of a store. Anything after it is overwritten.
    pub fn append(path: &Path) -> Result<Self, Error> {
        let header = *Store::open_damaged(path)?.header();
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(Error::io(path, "cannot open for writing"))?;
        let mut recorder = Self::new(path, file, header);
        recorder.tell()?;
        Ok(recorder)
    }

    fn new(path: &Path, file: File, header: Header) -> Self {
        let tail = vec![0; header.slot_bytes() - header.geometry.frame_bytes()];
        Self { path: path.to_owned(), file, header, told: 0, missing: 0, tail, finished: false }
    }

    /// The store's header.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Number that the next frame will have.
    pub const fn next(&self) -> u64 {
        self.header.first + self.header.frames
    }

    /// Writes the next frame. On [`Error::Full`] the store keeps its complete frames, and no more can be written.
    ///
    /// # Panics
    /// If the frame does not have the geometry's size.
    pub fn write(&mut self, frame: &[u8]) -> Result<(), Error> {
        self.write_summed(frame, checksum::of_frame(frame))
    }

    /// Writes the next frame, whose checksum is already known.
    ///
    /// # Panics
    /// If the frame does not have the geometry's size.
    pub fn write_summed(&mut self, frame: &[u8], checksum: u64) -> Result<(), Error> {
        self.writable()?;
        Trailer { number: self.next(), checksum }.write(&mut self.tail);
        self.write_slot(self.header.frames, Some(frame))?;
        self.count()
    }

    /// Writes frame `number` of a recording. The first one sets the number with which the store begins; frames that are
    /// left out before this one are marked as missing; a frame that was marked as missing is written in its place.
    /// Returns false if the first frame overtook it, in which case it is left out.
    ///
    /// # Errors
    /// [`Error::Jump`] if it cannot follow: more than [`GAP_MAX`] frames are left out, or it was written before. No
    /// more can be written then.
    ///
    /// # Panics
    /// If the frame does not have the geometry's size.
    pub fn put(&mut self, number: u64, frame: &[u8]) -> Result<bool, Error> {
        if self.header.frames == 0 {
            self.writable()?;
            self.header.first = number;
        }
        let (first, next) = (self.header.first, self.next());
        if number < first && first - number <= OVERTAKING_MAX {
            return Ok(false);
        }
        if number < next {
            return self.fill(number, frame).map(|()| true);
        }
        if number - next > GAP_MAX {
            return Err(self.jump(number));
        }
        for missing in next..number {
            self.writable()?;
            Trailer::write_gap(missing, &mut self.tail);
            self.write_slot(self.header.frames, None)?;
            self.missing += 1;
            self.count()?;
        }
        self.write(frame).map(|()| true)
    }

    /// Writes a frame that was marked as missing.
    fn fill(&mut self, number: u64, frame: &[u8]) -> Result<(), Error> {
        self.writable()?;
        let Some(index) = number.checked_sub(self.header.first) else {
            return Err(self.jump(number));
        };
        let at = self.header.slot_offset(index) + frame.len() as u64;
        let read = self.file.read_exact_at(&mut self.tail, at);
        read.map_err(Error::io(&self.path, "cannot read"))?;
        if Trailer::gap(&self.tail) != Some(number) {
            return Err(self.jump(number));
        }
        Trailer { number, checksum: checksum::of_frame(frame) }.write(&mut self.tail);
        self.write_slot(index, Some(frame))?;
        self.missing -= 1;
        Ok(())
    }

    fn writable(&mut self) -> Result<(), Error> {
        if self.finished {
            return Err(self.full("it is already closed".to_owned()));
        }
        if self.header.frames >= FRAMES_MAX {
            return Err(self.full(format!("a store has at most {FRAMES_MAX} frames")));
        }
        Ok(())
    }

    /// Writes a slot: its frame, if there is one, and its tail.
    fn write_slot(&mut self, index: u64, frame: Option<&[u8]>) -> Result<(), Error> {
        let (at, bytes) = (self.header.slot_offset(index), self.header.geometry.frame_bytes());
        assert!(frame.is_none_or(|frame| frame.len() == bytes), "a frame is written completely");
        let frame = frame.unwrap_or_default();
        let written = self.file.write_all_at(frame, at);
        let written = written.and_then(|()| self.file.write_all_at(&self.tail, at + bytes as u64));
        written.map_err(|error| self.failed(error))
    }

    /// Counts one more slot.
    fn count(&mut self) -> Result<(), Error> {
        self.header.frames += 1;
        if self.header.frames - self.told >= HEADER_EVERY { self.tell() } else { Ok(()) }
    }

    /// Closes the store and returns its contents.
    pub fn finish(mut self) -> Result<Recorded, Error> {
        self.close()?;
        let (path, frames) = (self.path.clone(), self.header.frames);
        Ok(Recorded { path, frames, missing: self.missing })
    }

    fn tell(&mut self) -> Result<(), Error> {
        let page = self.header.encode();
        self.file.write_all_at(&page, 0).map_err(Error::io(&self.path, "cannot write"))?;
        self.told = self.header.frames;
        Ok(())
    }

    /// Removes an incomplete slot, and updates the header.
    fn close(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.finished, true) {
            return Ok(());
        }
        let length = self.header.slot_offset(self.header.frames);
        self.file.set_len(length).map_err(Error::io(&self.path, "cannot truncate"))?;
        self.tell()
    }

    fn failed(&mut self, error: io::Error) -> Error {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => self.full(error.to_string()),
            _ => Error::io(&self.path, "cannot write")(error),
        }
    }

    fn jump(&mut self, number: u64) -> Error {
        let (frames, before) = (self.header.frames, self.next() - 1);
        let because = format!("frame {number} cannot follow frame {before}: the stream restarted");
        match self.close() {
            Ok(()) => Error::Jump { path: self.path.clone(), frames, because },
            Err(error) => error,
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
        // There is no caller to report to; the header of up to HEADER_EVERY frames ago is still valid.
        let _ = self.close();
    }
}
