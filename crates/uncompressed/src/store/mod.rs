//! Frame stores: the pictures of one node, in one file, laid out to be read without the page cache.
//!
//! A store is a header page ([`Header`]) and slots of one size, a multiple of [`PAGE_BYTES`]. A slot
//! holds a frame, as many zeros as are needed, and at its end a trailer ([`Trailer`]) with the frame's
//! number and checksum. Slot i begins at `PAGE_BYTES + i · slot bytes`. All numbers are little-endian.
//! Bytes behind the last slot that the header counts mean nothing. A recording has a slot also for each frame
//! that it lacks ([`Trailer::gap`]).

mod file;
mod header;
mod record;

pub use file::Store;
pub use header::{Content, Header, HeaderError, Trailer};
pub use record::{GAP_MAX, Recorded, Recorder};

use std::path::PathBuf;

use crate::geometry::Geometry;

/// Pages of the file, and what O_DIRECT wants reads to be aligned to.
pub const PAGE_BYTES: usize = 4096;
/// Most frames of a store: about 51 hours at 59.94 per second. A bound, not a limit of the format.
pub const FRAMES_MAX: u64 = 11_000_000;

/// Why a store cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refuses.
    #[error("{}: {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// Its first page is no header.
    #[error("{}: {source}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// Why.
        source: HeaderError,
    },
    /// The file ends before the frames that its header counts.
    #[error(
        "{}: truncated: {whole} of {frames} frames are whole\n\
         hint: copy it again, or cut it by `suiro uncompressed info --repair`", path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Frames that the header counts.
        frames: u64,
        /// Frames that are there.
        whole: u64,
    },
    /// It has no frame.
    #[error("{}: it has no frame", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// It has other pictures than are wanted.
    #[error("{}: its pictures are {found}, not {wanted}", path.display())]
    Geometry {
        /// The file.
        path: PathBuf,
        /// What it has.
        found: Geometry,
        /// What is wanted.
        wanted: Geometry,
    },
    /// A frame's trailer or checksum is wrong.
    #[error("{}: frame {index} is damaged: {because}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The frame's place in the store, from 0.
        index: u64,
        /// What is wrong.
        because: &'static str,
    },
    /// A frame was not recorded.
    #[error("{}: frame {number} is missing: it did not come whole, or the disk was too slow", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The frame's number in its sequence.
        number: u64,
    },
    /// A frame cannot follow those before it.
    #[error("{}: ended after {frames} frames, which are kept: {because}", path.display())]
    Jump {
        /// The file.
        path: PathBuf,
        /// Frames in it.
        frames: u64,
        /// Which frames do not follow one another.
        because: String,
    },
    /// There is no more room, on the disk or by [`FRAMES_MAX`].
    #[error("{}: full after {frames} frames, which are kept: {because}", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// Whole frames in it.
        frames: u64,
        /// What is exhausted.
        because: String,
    },
}

impl Error {
    fn io(path: &std::path::Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), doing, source }
    }
}

#[cfg(test)]
mod tests;
