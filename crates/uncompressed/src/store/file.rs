//! A store for reading.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::header::TRAILER_BYTES;
use super::{Error, Header, PAGE_BYTES, Trailer};
use crate::checksum;
use crate::geometry::Geometry;

/// A store, opened and validated.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    header: Header,
}

impl Store {
    /// Opens a store that has all the frames that its header counts.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let store = Self::open_any(path)?;
        let (whole, frames) = (store.whole_frames()?, store.header.frames);
        if whole < frames {
            return Err(Error::Truncated { path: path.to_owned(), frames, whole });
        }
        Ok(store)
    }

    /// Opens a store that may be truncated; its header then counts the frames that are complete.
    pub fn open_damaged(path: &Path) -> Result<Self, Error> {
        let mut store = Self::open_any(path)?;
        store.header.frames = store.header.frames.min(store.whole_frames()?);
        Ok(store)
    }

    fn open_any(path: &Path) -> Result<Self, Error> {
        let file = suiro_outside::file::open(path).map_err(Error::io(path, "cannot open"))?;
        let mut page = [0; PAGE_BYTES];
        let length = read_up_to(&file, &mut page).map_err(Error::io(path, "cannot read"))?;
        let header = Header::decode(&page[..length])
            .map_err(|cause| Error::Header { path: path.to_owned(), cause })?;
        Ok(Self { path: path.to_owned(), file, header })
    }

    /// Complete frames in the file.
    fn whole_frames(&self) -> Result<u64, Error> {
        let meta = self.file.metadata().map_err(Error::io(&self.path, "cannot examine"))?;
        let slots = meta.len().saturating_sub(PAGE_BYTES as u64);
        Ok(slots / self.header.slot_bytes() as u64)
    }

    /// The same store, if it has frames and its images are `wanted`.
    pub fn of(self, wanted: &Geometry) -> Result<Self, Error> {
        let found = self.header.geometry;
        if found == *wanted {
            return self.with_frames();
        }
        Err(Error::Geometry { path: self.path, found, wanted: *wanted })
    }

    /// The same store, if it has frames.
    pub fn with_frames(self) -> Result<Self, Error> {
        if self.header.frames == 0 { Err(Error::Empty { path: self.path }) } else { Ok(self) }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// Its header.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Wraps the system's error from `doing` something to the file.
    pub(crate) fn failed(&self, doing: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        Error::io(&self.path, doing)
    }

    /// Reads all of slot `index` into `slot`.
    ///
    /// # Panics
    /// If the size of `slot` is not [`Header::slot_bytes`].
    pub fn read(&self, index: u64, slot: &mut [u8]) -> Result<Trailer, Error> {
        assert_eq!(slot.len(), self.header.slot_bytes(), "a slot is read completely");
        let frames = self.header.frames;
        if index >= frames {
            return Err(Error::Truncated { path: self.path.clone(), frames, whole: frames });
        }
        self.read_end(index, slot)?;
        self.trailer(index, slot)
    }

    /// Reads only the trailer of slot `index`.
    pub(crate) fn read_trailer(&self, index: u64) -> Result<Trailer, Error> {
        let mut bytes = [0; TRAILER_BYTES];
        self.read_end(index, &mut bytes)?;
        self.trailer(index, &bytes)
    }

    /// Reads the last bytes of slot `index`, up to all of it.
    fn read_end(&self, index: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let at = self.header.slot_offset(index + 1) - bytes.len() as u64;
        let frames = self.header.frames;
        self.file.read_exact_at(bytes, at).map_err(|cause| match cause.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Error::Truncated { path: self.path.clone(), frames, whole: index }
            }
            _ => Error::io(&self.path, "cannot read")(cause),
        })
    }

    /// The trailer of slot `index`, whose number must match its position.
    ///
    /// # Errors
    /// [`Error::Missing`] if the frame was not recorded.
    pub fn trailer(&self, index: u64, slot: &[u8]) -> Result<Trailer, Error> {
        let damaged = |because| Error::Damaged { path: self.path.clone(), index, because };
        if let Some(number) = Trailer::gap(slot) {
            return Err(Error::Missing { path: self.path.clone(), number });
        }
        let trailer = Trailer::read(slot).ok_or_else(|| damaged("its trailer is missing"))?;
        if trailer.number != self.header.first + index {
            return Err(damaged("it has the number of another frame"));
        }
        Ok(trailer)
    }

    /// Reads slot `index` and verifies the frame's checksum.
    pub fn read_verified(&self, index: u64, slot: &mut [u8]) -> Result<Trailer, Error> {
        let trailer = self.read(index, slot)?;
        let frame = &slot[..self.header.geometry.frame_bytes()];
        if checksum::of_frame(frame) == trailer.checksum {
            return Ok(trailer);
        }
        let because = "its checksum is wrong";
        Err(Error::Damaged { path: self.path.clone(), index, because })
    }
}

fn read_up_to(file: &File, page: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < page.len() {
        match file.read_at(&mut page[length..], length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}
