//! Files of captured packets: pcapng (IETF draft-ietf-opsawg-pcapng) and pcap (draft-ietf-opsawg-pcap) are read in
//! either byte order, pcapng is written.

mod next_generation;
mod old;
mod order;
mod write;

pub use order::Order;
pub use write::{Counted, Described, Writer};

/// A longer block or packet is malformed (Wireshark's bound on a block).
const BLOCK_BYTES: usize = 16 << 20;
/// The link type Ethernet (the registry of draft-ietf-opsawg-pcaplinktype).
pub const ETHERNET: u16 = 1;

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
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
}

/// One captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Nanoseconds since 1970.
    pub t_ns: u64,
    /// The link type of the interface (the registry of draft-ietf-opsawg-pcaplinktype).
    pub link: u16,
    /// What was captured of it, from the link's header on.
    pub data: &'a [u8],
    /// Its length in bytes, regardless of how much was captured.
    pub length: usize,
    /// True if the capture says that the host sent it, false if it says that the host received it.
    pub sent: Option<bool>,
}

/// What a file says in addition to its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Contents {
    /// Packets without a timestamp, which are not handed over.
    pub untimed: u64,
    /// Packets that the capturing tool reports as lost.
    pub lost: u64,
    /// Whether the file ends in the middle of a packet, as after a crash; the packets before it are
    /// handed over.
    pub cut: bool,
}

/// Reads the contents of a file and hands each packet to `take`, in the order of the file.
///
/// # Errors
/// If it is not a capture, or is malformed before its end.
pub fn read<'a>(file: &'a [u8], mut take: impl FnMut(&Frame<'a>)) -> Result<Contents, FileError> {
    match file {
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => next_generation::read(file, &mut take),
        _ => old::read(file, &mut take),
    }
}
