//! From the store to the sender: a ring of frames that a thread keeps full.
//!
//! The thread reads with io_uring, past the page cache (O_DIRECT) or through it, or has the page cache show
//! the frames where they are, so that they are copied only into the socket; or there is no thread, and the
//! ring is the memory that holds all frames. The sender takes one frame per frame time and never
//! waits: when the ring is empty it gets the last frame again, marked and counted, so that an even send
//! rate cannot hide starvation.
//!
//! A shared or remote storage is emulated by a [`Shape`]: reads come back no sooner than a server with
//! that rate and latency would answer.

mod arena;
mod engine;
mod meter;
mod ring;
mod shape;

pub use meter::{Meter, Second};
pub use ring::{Advance, Bound, Frame, Ring};
pub use shape::{Shape, Shaper};

use suiro_units::Bytes;

use crate::geometry::Geometry;
use crate::store;
use crate::synth::STAMP_SAMPLES;

/// Frames of a ring unless told otherwise: the study's last setting, ten seconds.
pub const FRAMES: u32 = 600;
/// Reads under way at a time unless told otherwise.
pub const DEPTH: u32 = 16;
/// Largest number of reads under way.
pub const DEPTH_MAX: u32 = 256;
/// Bytes of a read: what the study's NFS mounts had as `rsize`.
pub const READ_BYTES: usize = 1 << 20;
/// Fewest frames of a ring: one being sent, one waiting, one being read.
pub const FRAMES_MIN: u32 = 3;

/// Where frames are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The disk, past the page cache.
    Direct,
    /// The page cache, which reads the disk when it must.
    Cached,
    /// The page cache, in place: it reads the disk when it must, and nothing is copied to the ring. Nobody may
    /// write to the store meanwhile. The page cache must have room for the rings: of what it gives up
    /// before it is sent, the sender waits for the disk.
    Mapped,
    /// Memory: the ring is filled once, and sent again and again.
    Memory,
}

/// How a ring is filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Where frames are read from.
    pub source: Source,
    /// Frames of the ring, [`FRAMES_MIN`] or more; fewer if `memory` is less.
    pub frames: u32,
    /// Memory that the ring may have.
    pub memory: Bytes,
    /// True to begin again after the last frame; else the ring ends.
    pub repeat: bool,
    /// Reads under way at a time, 1 to [`DEPTH_MAX`].
    pub depth: u32,
    /// The storage to emulate; `None` for what is there.
    pub shape: Option<Shape>,
}

/// Why there is no ring, or no more of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The ring would have too few frames.
    #[error(
        "a ring of {frames} frames: at least {FRAMES_MIN} are needed, of {slot} bytes each, in the \
         {memory} bytes of memory that are allowed"
    )]
    Small {
        /// Frames that fit.
        frames: u64,
        /// Bytes of each.
        slot: usize,
        /// Bytes allowed.
        memory: u64,
    },
    /// The synthetic frames have no room for their stamp.
    #[error(
        "synthetic frames of {0}: a row has no room for the stamp of number and checksum\n\
         hint: rows of {STAMP_SAMPLES} samples or more, which 32 pixels of 4:2:2 have"
    )]
    Stamp(Geometry),
    /// The emulated storage has no rate.
    #[error("a storage of 0 bit/s never answers")]
    Shape,
    /// The memory cannot be had.
    #[error("cannot reserve {bytes} bytes for the ring: {source}\nhint: a ring of fewer frames")]
    Memory {
        /// Bytes wanted.
        bytes: usize,
        /// What the system says.
        source: std::io::Error,
    },
    /// A frame in the page cache that was cut off its store, or that the disk does not give again.
    #[error("frame {number} is no longer in its store, which was cut, or whose disk fails")]
    Gone {
        /// Its number.
        number: u64,
    },
    /// The store cannot be shown in place.
    #[error("{path}: cannot map its {frames} frames: {source}\nhint: --from cached copies them")]
    Map {
        /// The store.
        path: String,
        /// Its frames.
        frames: u64,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file system has no unbuffered reads.
    #[error(
        "{path}: this file system does not read past the page cache (O_DIRECT): {source}\nhint: read it through the page cache"
    )]
    Direct {
        /// The store.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// There is no io_uring.
    #[error(
        "no io_uring: {0}\nhint: sysctl kernel.io_uring_disabled must be 0, or the frames must be in memory"
    )]
    Uring(std::io::Error),
    /// A read failed.
    #[error("{path}: reading frame {index}: {because}")]
    Read {
        /// The store.
        path: String,
        /// The frame's place in the store, from 0.
        index: u64,
        /// What went wrong.
        because: String,
    },
    /// The thread that reads cannot be started.
    #[error("cannot start the reader: {0}")]
    Thread(std::io::Error),
    /// It was told to stop before the frames that were waited for came.
    #[error("stopped before the frames came")]
    Stopped,
    /// The reader ended before.
    #[error("the reader has ended: {0}")]
    Ended(String),
}

#[cfg(test)]
mod tests;
