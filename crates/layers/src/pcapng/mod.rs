//! Captures made with other tools, as recordings of the link layer: pcapng (IETF
//! draft-ietf-opsawg-pcapng) and pcap (draft-ietf-opsawg-pcap), in either byte order.

mod next_generation;
mod old;
mod packet;
mod recording;

pub use packet::{Seen, Transport};
pub use recording::{Ends, recordings};

/// A longer block or packet is malformed (Wireshark's bound on a block).
const BLOCK_BYTES: usize = 16 << 20;
/// Most packets that are read from one file.
const PACKETS: usize = 100_000_000;

/// Why a capture cannot be read or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// It has neither of the two formats.
    #[error(
        "not a capture: expected pcapng or pcap, found {0:02x?} at the beginning\n\
         hint: decompress .gz files, and convert other formats with `editcap -F pcapng`"
    )]
    NotACapture(Vec<u8>),
    /// Malformed at this byte.
    #[error("at byte {at}: {what}")]
    Broken {
        /// Offset in the file.
        at: usize,
        /// What is wrong.
        what: &'static str,
    },
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

/// One captured packet, as far as it could be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame<'a> {
    /// Nanoseconds since 1970.
    t_ns: u64,
    /// The link type of the interface (the registry of draft-ietf-opsawg-pcaplinktype).
    link: u16,
    data: &'a [u8],
    /// True if the capture says that the host sent it, false if it says that the host received it.
    sent: Option<bool>,
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
    pub fn read(file: &[u8]) -> Result<Self, CaptureError> {
        let mut capture = Self::default();
        match file {
            [0x0a, 0x0d, 0x0d, 0x0a, ..] => next_generation::read(file, &mut capture)?,
            _ => old::read(file, &mut capture)?,
        }
        Ok(capture)
    }

    fn take(&mut self, frame: &Frame) {
        match packet::seen(frame) {
            Ok(seen) if self.packets.len() < PACKETS => self.packets.push(seen),
            Ok(_) | Err(packet::Unknown::Other) => self.others += 1,
            Err(packet::Unknown::Fragment) => self.fragments += 1,
            Err(packet::Unknown::Short) => self.short += 1,
        }
    }
}

/// Numbers in the byte order of the machine that wrote the file.
#[derive(Debug, Clone, Copy)]
struct Order {
    little: bool,
}

impl Order {
    fn u16(self, data: &[u8], at: usize) -> Option<u16> {
        let bytes = data.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if self.little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    }
    fn u32(self, data: &[u8], at: usize) -> Option<u32> {
        let bytes = data.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }
    fn u64(self, data: &[u8], at: usize) -> Option<u64> {
        let bytes = data.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(if self.little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) })
    }
    fn size(self, data: &[u8], at: usize) -> Option<usize> {
        self.u32(data, at)?.try_into().ok()
    }
}
