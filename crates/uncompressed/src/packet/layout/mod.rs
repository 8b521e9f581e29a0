//! A stream's layout: one interface for both formats.

use super::{
    EXTENDED_UDP_BYTES, Frame, HEADER_BYTES_MAX, IP_UDP_BYTES, PIECES_MAX, Piece, Received,
    Refusal, STANDARD_PACKET_BYTES, STANDARD_UDP_BYTES, Stream, UDP_BYTES, raster, rows, rtp,
};
use crate::geometry::Geometry;

/// How packets are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// ST 2110-20, general packing mode, with one piece of one row in each packet.
    St2110,
    /// suiro's own format (see the source of `packet/raster.rs`): any bytes, in large packets.
    Raster,
}

/// Why a layout is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The packet has no room for its headers and the smallest possible piece.
    #[error(
        "packet size: expected at least {least} bytes, for headers and a pixel group, found {packet}"
    )]
    Small {
        /// The requested IP packet size.
        packet: u32,
        /// The smallest possible size.
        least: u32,
    },
    /// The packet is larger than an IP packet can be.
    #[error("packet size: expected at most 65535 bytes, the largest IP packet, found {0}")]
    Large(u32),
}

/// How the frames of a stream are split into packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    format: Format,
    geometry: Geometry,
    frame_bytes: usize,
    /// The unit that is split: a row, or the whole frame.
    run_bytes: usize,
    /// Bytes in a packet's piece, except at the end of a run.
    piece_bytes: usize,
}

impl Layout {
    /// Splits frames of `geometry` into IP packets of at most `packet_bytes`, headers included.
    ///
    /// For ST 2110-20, each row is split into equal pieces so that all packets have one size,
    /// unless that needs twice as many as it otherwise would. Packets that fit standard Ethernet
    /// keep the standard limit of ST 2110-10, larger ones the extended one.
    pub fn new(
        format: Format,
        geometry: &Geometry,
        packet_bytes: u32,
    ) -> Result<Self, LayoutError> {
        if packet_bytes > 65_535 {
            return Err(LayoutError::Large(packet_bytes));
        }
        let (header, unit) = match format {
            Format::St2110 => (rows::HEADER_BYTES, geometry.pgroup().bytes as usize),
            Format::Raster => (raster::HEADER_BYTES, 8),
        };
        let least = IP_UDP_BYTES + (header + unit) as u32;
        if packet_bytes < least {
            return Err(LayoutError::Small { packet: packet_bytes, least });
        }
        let most = match format {
            Format::St2110 => st2110_packet_max(packet_bytes),
            Format::Raster => packet_bytes,
        };
        let room = (most - IP_UDP_BYTES) as usize - header;
        let frame_bytes = geometry.frame_bytes();
        let (run_bytes, piece_bytes) = match format {
            Format::St2110 => {
                let row = geometry.row_bytes() as usize;
                (row, equal_pieces(row / unit, room / unit) * unit)
            }
            Format::Raster => (frame_bytes, room / unit * unit),
        };
        Ok(Self { format, geometry: *geometry, frame_bytes, run_bytes, piece_bytes })
    }

    /// How packets are formatted.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The images.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Bytes of a frame.
    pub const fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// Bytes of header before each piece.
    pub const fn header_bytes(&self) -> usize {
        match self.format {
            Format::St2110 => rows::HEADER_BYTES,
            Format::Raster => raster::HEADER_BYTES,
        }
    }

    /// Bytes in the piece of every packet, except those that end a run ([`Self::packets_per_run`]).
    pub const fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    /// UDP payload of every packet, except those that end a run: the segment size.
    pub const fn datagram_bytes(&self) -> usize {
        self.header_bytes() + self.piece_bytes
    }

    /// The length of a run, in packets. Only the last packet of a run may be shorter. A run is a
    /// row in ST 2110-20, and a frame in the raster layout.
    pub const fn packets_per_run(&self) -> u32 {
        self.run_bytes.div_ceil(self.piece_bytes) as u32
    }

    /// True if every packet has [`Self::datagram_bytes`], so that a batch may cross run boundaries.
    pub const fn is_even(&self) -> bool {
        self.run_bytes.is_multiple_of(self.piece_bytes)
    }

    /// Packets of a frame.
    pub const fn packets_per_frame(&self) -> u32 {
        self.packets_per_run() * (self.frame_bytes / self.run_bytes) as u32
    }

    /// Bits per second as IP packets.
    pub fn ip_bits_per_second(&self) -> f64 {
        let headers = self.packets_per_frame() * (IP_UDP_BYTES + self.header_bytes() as u32);
        let bytes = self.frame_bytes as f64 + f64::from(headers);
        bytes * 8.0 * self.geometry.rate().per_second()
    }

    /// What packet `index` of a frame carries.
    ///
    /// # Panics
    /// If `index` is not below [`Self::packets_per_frame`].
    pub fn piece(&self, index: u32) -> Piece {
        assert!(index < self.packets_per_frame(), "packet {index} is beyond the end of the frame");
        let run = (index / self.packets_per_run()) as usize;
        let within = (index % self.packets_per_run()) as usize * self.piece_bytes;
        let bytes = self.piece_bytes.min(self.run_bytes - within);
        Piece { offset: run * self.run_bytes + within, bytes }
    }

    /// Writes the header of packet `index` of a frame to the beginning of `out`; its length is
    /// [`Self::header_bytes`].
    ///
    /// # Panics
    /// If `index` is not below [`Self::packets_per_frame`].
    pub fn write_header(
        &self,
        stream: Stream,
        frame: &Frame,
        index: u32,
        out: &mut [u8; HEADER_BYTES_MAX],
    ) {
        let piece = self.piece(index);
        let last = index + 1 == self.packets_per_frame();
        let (common, own) = out.split_first_chunk_mut().expect("a header is longer than RTP's");
        rtp::write(stream, frame, index, last, common);
        match self.format {
            Format::St2110 => {
                let own = own.first_chunk_mut().expect("there is room for every layout");
                rows::write(&self.geometry, piece.offset, piece.bytes, own);
            }
            Format::Raster => {
                let own = own.first_chunk_mut().expect("there is room for every layout");
                raster::write(frame, piece.offset, self.frame_bytes as u32, last, own);
            }
        }
    }

    /// Parses a datagram of a stream with this format and geometry, however its sender split the
    /// frame. `ssrc` and the source address identify the sender.
    pub fn parse<'a>(&self, datagram: &'a [u8], payload_type: u8) -> Result<Received<'a>, Refusal> {
        let rtp::Header { marker, sequence, timestamp, ssrc, payload } =
            rtp::parse(datagram, payload_type)?;
        let (mut number, mut checksum) = (None, None);
        let (pieces, count) = match self.format {
            Format::St2110 => rows::parse(&self.geometry, payload)?,
            Format::Raster => {
                let raster = raster::parse(payload, self.frame_bytes as u32)?;
                number = Some(raster.number);
                checksum = marker.then_some(raster.checksum);
                let mut pieces = [(0, [].as_slice()); PIECES_MAX];
                pieces[0] = (raster.offset, raster.piece);
                (pieces, 1)
            }
        };
        Ok(Received { ssrc, sequence, timestamp, last: marker, number, checksum, pieces, count })
    }
}

/// The largest IP packet of at most `packet_bytes` whose datagram keeps a limit of ST 2110-10 §6.3.
fn st2110_packet_max(packet_bytes: u32) -> u32 {
    let is_standard = packet_bytes <= STANDARD_PACKET_BYTES;
    let limit = if is_standard { STANDARD_UDP_BYTES } else { EXTENDED_UDP_BYTES };
    packet_bytes.min(limit + IP_UDP_BYTES - UDP_BYTES)
}

/// The largest divisor of `whole` that is at most `room`, if it is more than half of what fits;
/// otherwise what fits.
fn equal_pieces(whole: usize, room: usize) -> usize {
    let fits = room.min(whole);
    let divides = |piece: &usize| whole.is_multiple_of(*piece);
    (fits / 2 + 1..=fits).rev().find(divides).unwrap_or(fits)
}

#[cfg(test)]
mod tests;
