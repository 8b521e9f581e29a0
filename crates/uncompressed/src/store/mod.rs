//! Frame stores: the images of one node in one file, laid out for reading without the page cache.
//!
//! A store is a header page ([`Header`]) and slots of equal size, a multiple of [`PAGE_BYTES`]. A slot holds a frame,
//! zeros as padding, and at its end a trailer ([`Trailer`]) with the frame's number and checksum. Slot i begins at
//! `PAGE_BYTES + i · slot bytes`. All numbers are little-endian. Bytes after the last slot that the header counts are
//! ignored. A recording also has a slot for each missing frame ([`Trailer::gap`]).

mod file;
mod header;
mod record;

pub use file::Store;
pub use header::{Content, Header, HeaderError, Trailer};
pub use record::{GAP_MAX, Recorded, Recorder};

use std::path::PathBuf;

use crate::geometry::Geometry;

/// Page size of the file, and the alignment that O_DIRECT requires of reads.
pub const PAGE_BYTES: usize = 4096;
/// Most frames in a store: about 51 hours at 59.94 per second. A bound of suiro, not a limit of the format.
pub const FRAMES_MAX: u64 = 11_000_000;

/// Why a store cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{}: {doing}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// The system's error.
        cause: std::io::Error,
    },
    /// Its first page is not a header.
    #[error("{}: {cause}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: HeaderError,
    },
    /// The file ends before the frames that its header counts.
    #[error(
        "{}: truncated: {whole} of {frames} frames are complete\n\
         hint: copy it again, or shorten it with `suiro uncompressed info --repair`", path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Frames that the header counts.
        frames: u64,
        /// Frames that are complete.
        whole: u64,
    },
    /// It has no frames.
    #[error("{}: it has no frames", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Its images differ from those wanted.
    #[error("{}: expected images of {wanted}, found {found}", path.display())]
    Geometry {
        /// The file.
        path: PathBuf,
        /// The format of its images.
        found: Geometry,
        /// The format that was expected.
        wanted: Geometry,
    },
    /// A frame's trailer or checksum is wrong.
    #[error("{}: frame {index} is damaged: {because}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The frame's index in the store, from 0.
        index: u64,
        /// What is wrong.
        because: &'static str,
    },
    /// A frame was not recorded.
    #[error("{}: frame {number} is missing: it arrived incomplete, or the disk was too slow", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The frame's number in its sequence.
        number: u64,
    },
    /// A frame does not continue the sequence.
    #[error("{}: ended after {frames} frames, which are kept: {because}", path.display())]
    Jump {
        /// The file.
        path: PathBuf,
        /// Frames in it.
        frames: u64,
        /// Which frames do not follow one another.
        because: String,
    },
    /// There is no more room, on the disk or up to [`FRAMES_MAX`].
    #[error("{}: full after {frames} frames, which are kept: {because}", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// Complete frames in it.
        frames: u64,
        /// What is exhausted.
        because: String,
    },
}

impl Error {
    fn io(path: &std::path::Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |cause| Self::Io { path: path.to_owned(), doing, cause }
    }
}

#[cfg(test)]
mod tests;
