//! Packets: how a frame's bytes are cut, and which header goes before each piece.
//!
//! A [`Layout`] is made once for a stream. The sender asks it, packet by packet, for the [`Piece`] of
//! the frame and for the header to put before it, so that both are gathered from where they are and
//! no byte of a frame is copied. All packets of a frame but the last one have the same size where
//! that is possible, which segmentation by the kernel or the network card needs. The receiver gives it
//! datagrams and gets back where in a frame their bytes belong.

mod layout;
mod raster;
mod rows;
mod rtp;

pub use layout::{Format, Layout, LayoutError};

/// Longest header that any layout writes, in bytes.
pub const HEADER_BYTES_MAX: usize = 36;
/// Most pieces of a frame that one packet carries (ST 2110-20 §6.2.1: three sample row data headers).
pub const PIECES_MAX: usize = 3;
/// Bytes of IPv4 and UDP headers before every payload.
pub const IP_UDP_BYTES: u32 = 28;
/// The study's packets: their size as IP packets, in bytes.
pub const STUDY_PACKET_BYTES: u32 = 8800;
/// Largest IP packet that fits an Ethernet frame of standard size.
pub const STANDARD_PACKET_BYTES: u32 = 1500;
/// The dynamic RTP payload type that is used unless told otherwise.
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
    /// Sequence number of the frame's first packet, of 32 bits; the next ones count on and wrap.
    pub sequence: u32,
    /// Number of the frame's content in the store, modulo 2^32. A repeated frame bears its
    /// original's. Only the raster layout sends it.
    pub number: u32,
    /// [`crate::checksum`] of the frame. Only the raster layout sends it, in the last packet.
    pub checksum: u64,
}

/// What one packet carries of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins in the frame, in bytes.
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

/// One datagram, understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received<'a> {
    /// RTP synchronisation source.
    pub ssrc: u32,
    /// Sequence number of 32 bits.
    pub sequence: u32,
    /// RTP timestamp; the same in all packets of a frame, another in the next.
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
    /// The pieces of the frame: where each begins, and its bytes. They lie within the frame.
    pub fn pieces(&self) -> impl Iterator<Item = (usize, &'a [u8])> + use<'a> {
        self.pieces.into_iter().take(self.count)
    }
}

/// Why a datagram is not of this stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    /// It ends within a header, or before the bytes that its header announces.
    #[error("cut short")]
    Short,
    /// It is no RTP of version 2.
    #[error("not RTP")]
    NotRtp,
    /// Its payload type is another one.
    #[error("payload type {0}")]
    PayloadType(u8),
    /// Its padding or header extension is impossible.
    #[error("malformed RTP header")]
    RtpHeader,
    /// It has more than [`PIECES_MAX`] sample row data headers, or none with data.
    #[error("malformed sample row data headers")]
    RowHeaders,
    /// It is of an interlaced or segmented picture.
    #[error("interlaced")]
    Interlaced,
    /// A piece is no whole number of pgroups.
    #[error("a broken pixel group")]
    Pgroup,
    /// A piece lies outside of the frame.
    #[error("outside of the frame")]
    Outside,
    /// A raster header of another version.
    #[error("raster header of version {0}")]
    Version(u8),
    /// The frame that it belongs to has another size.
    #[error("a frame of {0} bytes")]
    FrameBytes(u32),
}
