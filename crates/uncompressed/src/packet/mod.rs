//! Packets: how a frame's bytes are split, and which header precedes each piece.
//!
//! A [`Layout`] is made once for a stream. For each packet, the sender asks it for the [`Piece`] of the frame and for
//! the header that precedes it, so that both are gathered in place and no byte of a frame is copied. All packets of a
//! frame except the last have the same size where possible, because segmentation by the kernel or the network card
//! requires it. The receiver passes it datagrams and gets back the position of their bytes in the frame.

mod layout;
mod raster;
mod rows;
mod rtp;

pub use layout::{Format, Layout, LayoutError};

/// Longest header that any layout writes, in bytes.
pub const HEADER_BYTES_MAX: usize = 36;
/// Most pieces of a frame that one packet carries (ST 2110-20 §6.2.1: three sample row data headers).
pub const PIECES_MAX: usize = 3;
/// Bytes of the IPv4 and UDP headers of every packet.
pub const IP_UDP_BYTES: u32 = 28;
/// Bytes of the UDP header, which ST 2110-10 counts in the size of a datagram (§6.3).
pub const UDP_BYTES: u32 = 8;
/// Largest UDP datagram of ST 2110-10's standard limit, header included; a larger one must be announced.
pub const STANDARD_UDP_BYTES: u32 = 1460;
/// Largest UDP datagram of ST 2110-10's extended limit, the only other value that may be announced.
pub const EXTENDED_UDP_BYTES: u32 = 8960;
/// The size of the study's packets, as IP packets, in bytes.
pub const STUDY_PACKET_BYTES: u32 = 8800;
/// Largest IP packet that fits a standard Ethernet frame.
pub const STANDARD_PACKET_BYTES: u32 = 1500;
/// The dynamic RTP payload type used by default.
pub const PAYLOAD_TYPE: u8 = 96;

/// What all packets of a stream have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// RTP payload type, 0 to 127.
    pub payload_type: u8,
    /// RTP synchronisation source.
    pub ssrc: u32,
}

/// What all packets of a frame have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// RTP timestamp.
    pub timestamp: u32,
    /// Sequence number of the frame's first packet, 32 bits; the next packets count up and wrap around.
    pub sequence: u32,
    /// Number of the frame's content in the store, modulo 2^32. A repeated frame carries the number of its original.
    /// Sent only in the raster layout.
    pub number: u32,
    /// [`crate::checksum`] of the frame. Sent only in the raster layout, in the last packet.
    pub checksum: u64,
}

/// The part of a frame that one packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Its offset in the frame, in bytes.
    pub offset: usize,
    /// Its bytes.
    pub bytes: usize,
}

impl Piece {
    /// Its range in the frame.
    pub const fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.bytes
    }
}

/// A parsed datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received<'a> {
    /// RTP synchronisation source.
    pub ssrc: u32,
    /// Sequence number of 32 bits.
    pub sequence: u32,
    /// RTP timestamp; the same in all packets of a frame, different in the next.
    pub timestamp: u32,
    /// True in the last packet of a frame.
    pub last: bool,
    /// Number of the frame's content; only in the raster layout.
    pub number: Option<u32>,
    /// Checksum of the frame; only in the last packet, and in the raster layout.
    pub checksum: Option<u64>,
    pieces: [(usize, &'a [u8]); PIECES_MAX],
    count: usize,
}

impl<'a> Received<'a> {
    /// The pieces of the frame: the offset and the bytes of each. They lie within the frame.
    pub fn pieces(&self) -> impl Iterator<Item = (usize, &'a [u8])> + use<'a> {
        self.pieces.into_iter().take(self.count)
    }
}

/// Why a datagram does not belong to this stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    /// It ends within a header, or before the end of the bytes that its header announces.
    #[error("truncated")]
    Short,
    /// It is not RTP version 2.
    #[error("not RTP")]
    NotRtp,
    /// It has another payload type.
    #[error("unexpected payload type {0}")]
    PayloadType(u8),
    /// Its padding or header extension is impossible.
    #[error("malformed RTP header")]
    RtpHeader,
    /// It has more than [`PIECES_MAX`] sample row data headers, or none with data.
    #[error("malformed sample row data headers")]
    RowHeaders,
    /// It belongs to an interlaced or segmented image.
    #[error("interlaced")]
    Interlaced,
    /// A piece is not a whole number of pgroups.
    #[error("an incomplete pixel group")]
    Pgroup,
    /// A piece lies outside the frame.
    #[error("outside the frame")]
    Outside,
    /// The raster header has another version.
    #[error("unexpected raster header version {0}")]
    Version(u8),
    /// Its frame has another size.
    #[error("unexpected frame size of {0} bytes")]
    FrameBytes(u32),
}
