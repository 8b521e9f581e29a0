//! What a packet's payload is: a header of our own, then a slice's bits.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | scale of the quantiser |
//! | 1, 2 | width and height in macroblocks |
//! | 3, 4 | first macroblock |
//! | 5, 6 | number of macroblocks |
//! | 7–10 | number of the frame |
//! | 11–18 | when it was captured, in nanoseconds since 1970 |
//! | 19–26 | when its first packet was handed to the socket, in nanoseconds since 1970 |

use crate::codec::{Size, Slice};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 27;
/// Bytes of an RTP header without extensions (RFC 3550 §5.1).
pub const RTP_BYTES: usize = 12;
/// Bytes of IPv4 and UDP headers.
pub const IP_UDP_BYTES: usize = 20 + 8;
/// The payload type: a dynamic one (RFC 3551 §3).
pub const PAYLOAD_TYPE: u8 = 98;

/// Which frame a slice is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Its number, from 0.
    pub picture: u32,
    /// When it was captured, in nanoseconds since 1970.
    pub captured_unix_ns: u64,
    /// When its first packet was handed to the socket, in nanoseconds since 1970.
    pub sent_unix_ns: u64,
}

/// A payload of these.
pub fn write(mark: Mark, slice: &Slice) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + slice.bits.len());
    let blocks = |pixels: usize| (pixels / 16) as u8;
    bytes.extend([slice.scale, blocks(slice.size.width()), blocks(slice.size.height())]);
    bytes.extend(slice.first.to_be_bytes());
    bytes.extend(slice.count.to_be_bytes());
    bytes.extend(mark.picture.to_be_bytes());
    bytes.extend(mark.captured_unix_ns.to_be_bytes());
    bytes.extend(mark.sent_unix_ns.to_be_bytes());
    bytes.extend(&slice.bits);
    bytes
}

/// What a payload says; `None` if it is none of ours.
pub fn parse(bytes: &[u8]) -> Option<(Mark, Slice)> {
    let (head, bits) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let [scale, columns, rows, rest @ ..] = head;
    let size = Size::new(u32::from(*columns) * 16, u32::from(*rows) * 16)?;
    let (first, rest) = rest.split_first_chunk()?;
    let (count, rest) = rest.split_first_chunk()?;
    let (picture, rest) = rest.split_first_chunk()?;
    let (captured, rest) = rest.split_first_chunk()?;
    let (sent, _) = rest.split_first_chunk()?;
    let mark = Mark {
        picture: u32::from_be_bytes(*picture),
        captured_unix_ns: u64::from_be_bytes(*captured),
        sent_unix_ns: u64::from_be_bytes(*sent),
    };
    let (first, count) = (u16::from_be_bytes(*first), u16::from_be_bytes(*count));
    Some((mark, Slice { size, scale: *scale, first, count, bits: bits.to_vec() }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mark = Mark { picture: 70_000, captured_unix_ns: 1 << 60, sent_unix_ns: 3 };
        let size = Size::new(320, 240).unwrap();
        let slice = Slice { size, scale: 9, first: 256, count: 44, bits: vec![1, 2, 3] };
        let bytes = write(mark, &slice);
        assert_eq!(bytes.len(), HEADER_BYTES + 3);
        assert_eq!(parse(&bytes), Some((mark, slice)));
        assert_eq!(parse(&bytes[..HEADER_BYTES - 1]), None, "cut short");
    }

    proptest! {
        /// What is read is written as it was.
        #[test]
        fn any_bytes_are_a_payload_or_none(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some((mark, slice)) = parse(&bytes) {
                prop_assert_eq!(write(mark, &slice), bytes);
            }
        }
    }
}
