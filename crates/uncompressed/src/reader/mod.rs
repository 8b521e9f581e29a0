//! From the store to the sender: a ring of frames that a thread keeps full.
//!
//! The thread reads with io_uring, past the page cache (O_DIRECT) or through it, or it maps the page cache's frames in
//! place, so that they are copied only into the socket. Alternatively there is no thread, and the ring is memory that
//! holds all frames. The sender takes one frame per frame time and never waits: when the ring is empty it gets the last
//! frame again, marked and counted, so that an even send rate cannot hide starvation.
//!
//! A [`Shape`] emulates shared or remote storage: reads complete no sooner than a server with that rate and latency
//! would answer.

mod arena;
mod engine;
mod meter;
mod ring;
mod shape;
mod shared;

pub use meter::{Meter, Second};
pub use ring::{Advance, Bound, Frame, Ring};
pub use shape::{Shape, Shaper};

use suiro_units::Bytes;

use crate::geometry::Geometry;
use crate::store;
use crate::synth::STAMP_SAMPLES;

/// Default number of frames in a ring: the study's last setting, ten seconds.
pub const FRAMES: u32 = 600;
/// Default number of reads in flight.
pub const DEPTH: u32 = 16;
/// Largest number of reads in flight.
pub const DEPTH_MAX: u32 = 256;
/// Bytes per read: the `rsize` of the study's NFS mounts.
pub const READ_BYTES: usize = 1 << 20;
/// Fewest frames in a ring: one being sent, one waiting, one being read.
pub const FRAMES_MIN: u32 = 3;

/// Where frames are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The disk, bypassing the page cache.
    Direct,
    /// The page cache, which reads the disk when necessary.
    Cached,
    /// The page cache, in place: it reads the disk when necessary, and nothing is copied to the ring. The store must
    /// not be written meanwhile. The page cache must have room for the rings: if it drops a frame before it is sent,
    /// the sender waits for the disk.
    Mapped,
    /// Memory: the ring is filled once, and sent repeatedly.
    Memory,
}

/// How a ring is filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Where frames are read from.
    pub source: Source,
    /// Frames in the ring, [`FRAMES_MIN`] or more; fewer if `memory` is smaller.
    pub frames: u32,
    /// Memory that the ring may use, in bytes.
    pub memory: Bytes,
    /// True to begin again after the last frame; otherwise the ring ends.
    pub repeat: bool,
    /// Reads in flight, 1 to [`DEPTH_MAX`].
    pub depth: u32,
    /// The storage to emulate; `None` for the real one.
    pub shape: Option<Shape>,
}

/// Why a ring cannot be filled, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The ring would have too few frames.
    #[error(
        "ring: expected at least {FRAMES_MIN} frames of {slot} bytes, found room for {frames} in the \
         {memory} bytes of memory allowed"
    )]
    Small {
        /// Frames that fit.
        frames: u64,
        /// Bytes per frame.
        slot: usize,
        /// Bytes allowed.
        memory: u64,
    },
    /// The synthetic frames have no room for their stamp.
    #[error(
        "synthetic frames of {0}: a row has no room for the stamp of number and checksum\n\
         hint: use rows of at least {STAMP_SAMPLES} samples, such as 32 pixels of 4:2:2"
    )]
    Stamp(Geometry),
    /// The store ends before the frame to begin with.
    #[error("the store has {frames} frames: it has ended before frame {first} of it is shown")]
    Over {
        /// Index of the frame to begin with, from 0.
        first: u64,
        /// Frames in the store.
        frames: u64,
    },
    /// The emulated storage has no rate.
    #[error("storage rate: expected more than 0 bit/s, found 0")]
    Shape,
    /// The memory cannot be reserved.
    #[error("cannot reserve {bytes} bytes for the ring: {cause}\nhint: use a ring of fewer frames")]
    Memory {
        /// Bytes requested.
        bytes: usize,
        /// The system's error.
        cause: std::io::Error,
    },
    /// A mapped frame was truncated from its store, or its disk no longer returns it.
    #[error("frame {number} is no longer in its store: the file was truncated or its disk failed")]
    Gone {
        /// Its number.
        number: u64,
    },
    /// The store cannot be mapped.
    #[error(
        "{path}: cannot map its {frames} frames: {cause}\nhint: use --from cached to copy them"
    )]
    Map {
        /// The store.
        path: String,
        /// Its number of frames.
        frames: u64,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The file system does not support unbuffered reads.
    #[error(
        "{path}: this file system does not read past the page cache (O_DIRECT): {cause}\nhint: use --from cached to read it through the page cache"
    )]
    Direct {
        /// The store.
        path: String,
        /// The system's error.
        cause: std::io::Error,
    },
    /// io_uring is not available.
    #[error(
        "io_uring is not available: {0}\nhint: run `sysctl -w kernel.io_uring_disabled=0`, or keep the frames in memory"
    )]
    Uring(std::io::Error),
    /// A read failed.
    #[error("{path}: reading frame {index}: {because}")]
    Read {
        /// The store.
        path: String,
        /// The frame's index in the store, from 0.
        index: u64,
        /// What went wrong.
        because: String,
    },
    /// The reading thread cannot be started.
    #[error("cannot start the reader: {0}")]
    Thread(std::io::Error),
    /// It was stopped before the awaited frames arrived.
    #[error("stopped before the frames arrived")]
    Stopped,
    /// The reader had already ended.
    #[error("the reader has ended: {0}")]
    Ended(String),
}

#[cfg(test)]
mod tests;
