//! Captures made with other tools, as recordings of the link layer.

mod packet;
mod recording;

use suiro_capture::Unknown;
use suiro_capture::file::{self, FileError, Frame};

pub use packet::{Seen, Transport};
pub use recording::{Ends, recordings};

/// Most packets that are read from one file.
const PACKETS: usize = 100_000_000;

/// Why two captures cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// The two captures have no packet in common.
    #[error(
        "the captures have no UDP or TCP packet in common\n\
         hint: capture on both hosts at the same time, at least the headers and 12 bytes of payload"
    )]
    NothingInCommon,
    /// They have packets in common, but which host sent them is unclear.
    #[error(
        "cannot determine which host is which\nhint: give an address of the first file's host: --first-address {0}"
    )]
    WhichHost(std::net::IpAddr),
}

/// Everything that was read from one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capture {
    /// UDP and TCP packets, in the order of the file.
    pub packets: Vec<Seen>,
    /// Fragments of datagrams, other than the first.
    pub fragments: u64,
    /// Packets that are neither UDP nor TCP over IP, or that have no timestamp.
    pub others: u64,
    /// Packets that were captured too short to identify, or are malformed.
    pub short: u64,
    /// Packets that the capturing tool reports as lost.
    pub lost: u64,
    /// Whether the file ends in the middle of a packet, as after a crash; the packets before it are
    /// included.
    pub cut: bool,
}

impl Capture {
    /// Reads the contents of a file.
    ///
    /// # Errors
    /// If it is not a capture, or is malformed before its end.
    pub fn read(file: &[u8]) -> Result<Self, FileError> {
        let mut capture = Self::default();
        let contents = file::read(file, |frame| capture.take(frame))?;
        capture.others += contents.untimed;
        Ok(Self { lost: contents.lost, cut: contents.cut, ..capture })
    }

    fn take(&mut self, frame: &Frame) {
        match packet::seen(frame) {
            Ok(seen) if self.packets.len() < PACKETS => self.packets.push(seen),
            Ok(_) | Err(Unknown::Other) => self.others += 1,
            Err(Unknown::Fragment) => self.fragments += 1,
            Err(Unknown::Short) => self.short += 1,
        }
    }
}
