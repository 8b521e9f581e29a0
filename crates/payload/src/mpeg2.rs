//! MPEG-1 and MPEG-2 video elementary streams in RTP: RFC 2250 §3.
//!
//! Each payload begins with the video-specific header (§3.4). Headers of the stream begin a packet
//! and are never split; a slice is split only if it is larger than a packet, and then nothing else is
//! in the packet with its end. So a lost packet costs its own slices and no others.

use crate::{Assembled, FRAME_MAX, PayloadError, start_codes};

/// The static payload type of MPEG video (RFC 3551 §6).
pub const PAYLOAD_TYPE: u8 = 32;

/// Bytes of the video-specific header.
const HEADER: usize = 4;

/// Start codes (ISO/IEC 13818-2 table 6-1).
const PICTURE: u8 = 0x00;
const SLICES: std::ops::RangeInclusive<u8> = 0x01..=0xaf;
const SEQUENCE: u8 = 0xb3;
const SEQUENCE_END: u8 = 0xb7;
const GROUP: u8 = 0xb8;

/// Bits of the second half of the header.
const T: u8 = 0x04;
const S: u8 = 0x20;
const B: u8 = 0x10;
const E: u8 = 0x08;
const P: u8 = 0x07;

/// The type of an I picture (ISO/IEC 13818-2 table 6-12).
const INTRA: u8 = 1;
const PREDICTED: u8 = 2;

/// What each packet repeats of its frame's header.
#[derive(Debug, Clone, Copy, Default)]
struct Picture {
    temporal_reference: u16,
    kind: u8,
    /// Full-pel flags and f codes of the vectors, as the header's last byte has them.
    vectors: u8,
}

impl Picture {
    /// From what follows the frame's start code (ISO/IEC 13818-2 §6.2.3): 10 bits of temporal
    /// reference, 3 of type, 16 of delay, then a flag and 3 bits for types P and B, twice for B.
    fn parse(header: &[u8]) -> Option<Self> {
        let &[a, b, _, d] = header.first_chunk::<4>()?;
        let temporal_reference = u16::from_be_bytes([a, b]) >> 6;
        let kind = b >> 3 & P;
        let e = || header.get(4).copied();
        // Forward: the last three bits of `d` and the first of `e`; backward: the next four.
        let forward = |e: u8| (d << 1 | e >> 7) & 0x0f;
        let vectors = match kind {
            INTRA => 0,
            PREDICTED => forward(e()?),
            _ => forward(e()?) | (e()? >> 3 & 0x0f) << 4,
        };
        Some(Self { temporal_reference, kind, vectors })
    }

    fn header(self, flags: u8) -> [u8; HEADER] {
        let [a, b] = self.temporal_reference.to_be_bytes();
        [a, b, flags | self.kind, self.vectors]
    }
}

/// A piece of a frame that is best not split: the headers before slices, or one slice.
#[derive(Debug, Clone, Copy)]
struct Piece<'f> {
    bytes: &'f [u8],
    slice: bool,
    sequence: bool,
    /// Of headers, the frame that they announce.
    picture: Option<Picture>,
}

fn pieces(frame: &[u8]) -> Result<Vec<Piece<'_>>, PayloadError> {
    let malformed = |at, problem| PayloadError::Malformed { at, problem };
    let codes: Vec<(usize, u8)> =
        start_codes(frame).filter(|(_, code)| *code != SEQUENCE_END).collect();
    match codes.first() {
        None => return Err(PayloadError::Empty("start code")),
        // Zeros before a start code are stuffing (ISO/IEC 13818-2 §5.2.3), and are left out.
        Some((at, SEQUENCE | GROUP | PICTURE)) if frame[..*at].iter().all(|&byte| byte == 0) => {}
        Some(_) => return Err(malformed(0, "no header of a sequence, group or picture")),
    }
    let ends = codes.iter().skip(1).map(|(at, _)| *at).chain([frame.len()]);
    let mut pieces: Vec<Piece> = Vec::new();
    for (&(at, code), end) in codes.iter().zip(ends) {
        let slice = SLICES.contains(&code);
        let picture = match code {
            PICTURE => Some(
                Picture::parse(&frame[at + 4..end])
                    .ok_or(malformed(at, "a picture header that is cut short"))?,
            ),
            _ => None,
        };
        let sequence = code == SEQUENCE;
        match pieces.last_mut() {
            // Headers follow headers: they are one piece.
            Some(last) if !last.slice && !slice => {
                let start = at - last.bytes.len();
                last.bytes = &frame[start..end];
                last.sequence |= sequence;
                last.picture = picture.or(last.picture);
            }
            _ => pieces.push(Piece { bytes: &frame[at..end], slice, sequence, picture }),
        }
    }
    Ok(pieces)
}

/// Packets in the making.
struct Packets {
    done: Vec<Vec<u8>>,
    /// The packet at hand, with room for the header.
    open: Vec<u8>,
    flags: u8,
    slices: usize,
    picture: Picture,
    first: usize,
    most: usize,
}

impl Packets {
    fn room(&self) -> usize {
        if self.done.is_empty() { self.first } else { self.most }
    }

    fn is_empty(&self) -> bool {
        self.open.len() == HEADER
    }

    /// Ends the packet at hand, if there is anything in it.
    fn close(&mut self) {
        if self.is_empty() {
            return;
        }
        self.open[..HEADER].copy_from_slice(&self.picture.header(self.flags));
        self.done.push(std::mem::replace(&mut self.open, vec![0; HEADER]));
        (self.flags, self.slices) = (0, 0);
    }

    fn headers(&mut self, piece: &Piece) -> Result<(), PayloadError> {
        self.close();
        if HEADER + piece.bytes.len() > self.room() {
            let problem = "headers larger than a packet";
            return Err(PayloadError::Malformed { at: 0, problem });
        }
        self.picture = piece.picture.unwrap_or(self.picture);
        self.open.extend_from_slice(piece.bytes);
        self.flags = if piece.sequence { S } else { 0 };
        Ok(())
    }

    fn slice(&mut self, slice: &[u8]) {
        if self.open.len() + slice.len() > self.room() && !self.is_empty() {
            self.close();
        }
        let mut rest = slice;
        loop {
            if self.slices == 0 && rest.len() == slice.len() {
                self.flags |= B;
            }
            let (part, after) = rest.split_at(rest.len().min(self.room() - self.open.len()));
            self.open.extend_from_slice(part);
            self.slices += 1;
            if after.is_empty() {
                break;
            }
            self.close();
            rest = after;
        }
        self.flags |= E;
        if rest.len() < slice.len() {
            // §3.1: a slice follows headers or whole slices, never the end of one that was split.
            self.close();
        }
    }
}

pub(crate) fn packetise(
    frame: &[u8],
    first: usize,
    most: usize,
) -> Result<Vec<Vec<u8>>, PayloadError> {
    let mut packets = Packets {
        done: Vec::new(),
        open: vec![0; HEADER],
        flags: 0,
        slices: 0,
        picture: Picture::default(),
        first,
        most,
    };
    for piece in pieces(frame)? {
        if piece.slice { packets.slice(piece.bytes) } else { packets.headers(&piece)? }
    }
    packets.close();
    Ok(packets.done)
}

/// A payload's header and what follows it; `None` if it is cut short.
fn split(payload: &[u8]) -> Option<(u8, &[u8])> {
    let (head, mut rest) = payload.split_first_chunk::<HEADER>()?;
    if head[0] & T != 0 {
        // §3.4.1: four bytes; four more if their last bit is set; then, if the second bit is set,
        // extensions after their own length in words.
        let (more, after) = rest.split_first_chunk::<4>()?;
        rest = after.get(if more[3] & 1 != 0 { 4 } else { 0 }..)?;
        if more[0] & 0x40 != 0 {
            rest = rest.get(usize::from(*rest.first()?) * 4..)?;
        }
    }
    Some((head[2], rest))
}

pub(crate) fn assemble<'p>(payloads: impl Iterator<Item = (bool, &'p [u8])>) -> Assembled {
    let mut bytes: Vec<u8> = Vec::new();
    // Where a slice began whose end has not come.
    let mut open: Option<usize> = None;
    let (mut damaged, mut ended, mut kind) = (false, false, 0);
    for (follows, payload) in payloads {
        let parts = split(payload).filter(|(_, rest)| bytes.len() + rest.len() <= FRAME_MAX);
        let Some((flags, rest)) = parts else {
            damaged = true;
            continue;
        };
        if flags & P == 0 {
            // No frame type: the header says nothing, as GStreamer writes it. What is whole is
            // known from the caller alone.
            damaged |= !follows;
            ended = true;
            bytes.extend_from_slice(rest);
            continue;
        }
        let begins = flags & B != 0 || starts_with_header(rest);
        if !follows || begins == open.is_some() {
            damaged = true;
            if let Some(start) = open.take() {
                bytes.truncate(start);
            }
        }
        kind = flags & P;
        ended = flags & E != 0;
        if begins {
            let last = start_codes(rest).filter(|(_, code)| SLICES.contains(code)).last();
            let base = bytes.len();
            open = last.filter(|_| !ended).map(|(at, _)| base + at);
        } else if damaged && open.is_none() {
            continue; // the rest of a slice whose beginning is missing
        } else if ended {
            open = None;
        }
        bytes.extend_from_slice(rest);
    }
    if let Some(start) = open {
        bytes.truncate(start);
    }
    let key = kind == INTRA || kind == 0 && kind_of(&bytes) == Some(INTRA);
    // Slices without the header of their frame would be taken for parts of the frame before.
    let codes = || start_codes(&bytes).map(|(_, code)| code);
    let headed = codes().find(|code| *code == PICTURE || SLICES.contains(code)) == Some(PICTURE);
    let usable = headed && codes().any(|code| SLICES.contains(&code));
    Assembled { whole: !damaged && ended && !bytes.is_empty(), usable, key, bytes }
}

/// The type of the first frame in a stream.
fn kind_of(stream: &[u8]) -> Option<u8> {
    let (at, _) = start_codes(stream).find(|(_, code)| *code == PICTURE)?;
    Picture::parse(&stream[at + 4..]).map(|picture| picture.kind)
}

fn starts_with_header(stream: &[u8]) -> bool {
    matches!(stream, [0, 0, 1, SEQUENCE | GROUP | PICTURE, ..])
}

/// Whether it begins with a sequence, group or picture header. (The second field of a frame in
/// two frames has one too.)
pub(crate) fn begins_frame(payload: &[u8]) -> bool {
    split(payload).is_some_and(|(_, rest)| starts_with_header(rest))
}

/// Whether it ends with the end of a slice, or that is unknown.
pub(crate) fn ends_slice(payload: &[u8]) -> bool {
    split(payload).is_some_and(|(flags, _)| flags & E != 0 || flags & P == 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(payloads: &[Vec<u8>]) -> Assembled {
        assemble(payloads.iter().map(|payload| (true, payload.as_slice())))
    }

    /// A frame with slices of these sizes, start codes included.
    fn picture(kind: u8, slices: &[usize]) -> Vec<u8> {
        let mut frame = Vec::new();
        if kind == INTRA {
            frame.extend([
                0, 0, 1, SEQUENCE, 45, 1, 224, 36, 0, 0, 1, 0xb5, 20, 0, 0, 1, GROUP, 0, 8,
            ]);
        }
        // Temporal reference 5, delay 0xffff, f codes 7 forward and 7 backward.
        frame.extend([0, 0, 1, PICTURE, 1, 0x40 | kind << 3 | 7, 0xff, 0xf8 | 3, 0x80 | 0x38]);
        frame.extend([0, 0, 1, 0xb5, 0x8f, 0xff]);
        for (row, size) in slices.iter().enumerate() {
            frame.extend([0, 0, 1, row as u8 + 1]);
            frame.extend((4..*size).map(|n| (n % 250 + 2) as u8));
        }
        frame
    }

    fn flags(payloads: &[Vec<u8>]) -> Vec<u8> {
        payloads.iter().map(|payload| payload[2] & (S | B | E)).collect()
    }

    #[test]
    fn slices_share_packets_and_stay_whole() {
        let payloads = packetise(&picture(INTRA, &[40, 40, 40, 40]), 100, 100).unwrap();
        // Headers and one slice, two slices, one slice.
        assert_eq!(flags(&payloads), [S | B | E, B | E, B | E]);
        assert_eq!(payloads.iter().map(Vec::len).collect::<Vec<_>>(), [78, 84, 44]);
        assert!(payloads.iter().all(|payload| payload[2] & P == INTRA));
        assert!(payloads.iter().all(|payload| payload[0] == 0 && payload[1] == 5));
    }

    #[test]
    fn a_slice_larger_than_a_packet_is_split_and_nothing_follows_its_end() {
        let payloads = packetise(&picture(PREDICTED, &[30, 200, 30]), 100, 100).unwrap();
        assert_eq!(flags(&payloads), [B | E, B, 0, E, B | E]);
        assert_eq!(payloads[4].len(), 34);
        assert!(all(&payloads).whole);
    }

    #[test]
    fn vectors_are_those_of_the_picture_header() {
        let vectors = |kind| packetise(&picture(kind, &[9]), 100, 100).unwrap()[0][3];
        // FBV, BFC, FFV, FFC; in MPEG-2 the codes are 7 and the flags 0.
        assert_eq!([vectors(1), vectors(2), vectors(3)], [0, 0x07, 0x77]);
    }

    #[test]
    fn a_lost_packet_costs_its_own_slices() {
        let frame = picture(PREDICTED, &[30, 200, 30]);
        let payloads = packetise(&frame, 100, 100).unwrap();
        let lengths = |lost: usize| {
            let left = payloads.iter().enumerate().filter(|(n, _)| *n != lost);
            let back = assemble(left.map(|(n, payload)| (n != lost + 1, payload.as_slice())));
            assert!(!back.whole || lost == 4, "{lost}");
            back.bytes.len()
        };
        let whole = frame.len();
        assert_eq!([1, 2, 3].map(lengths), [whole - 200; 3]);
        assert_eq!(lengths(4), whole - 30);
    }

    #[test]
    fn the_extension_of_mpeg2_is_passed_over() {
        let plain = packetise(&picture(INTRA, &[9]), 100, 100).unwrap().remove(0);
        let with = |extension: &[u8]| {
            let mut payload = plain.clone();
            payload[0] |= T;
            payload.splice(HEADER..HEADER, extension.iter().copied());
            payload
        };
        for extension in
            [&[0, 0, 0, 0][..], &[0, 0, 0, 1, 9, 9, 9, 9], &[0x40, 0, 0, 0, 1, 9, 9, 9]]
        {
            assert_eq!(all(&[with(extension)]).bytes, picture(INTRA, &[9]));
        }
        assert!(begins_frame(&with(&[0, 0, 0, 0])));
        assert!(
            !all(&[vec![T, 0, B | E | 1, 0, 0x40, 0, 0, 0, 99]]).whole,
            "an extension cut short"
        );
    }

    #[test]
    fn what_is_no_mpeg_is_refused() {
        let say = |frame: &[u8]| packetise(frame, 100, 100).unwrap_err().to_string();
        assert_eq!(say(&[1, 2, 3]), "no start code in the frame");
        assert_eq!(
            say(&[0, 0, 1, 1, 9]),
            "byte 0 of the frame: no header of a sequence, group or picture"
        );
        assert_eq!(
            say(&[0, 0, 1, 0, 9]),
            "byte 0 of the frame: a picture header that is cut short"
        );
        let large = [&picture(INTRA, &[])[..], &[0, 0, 1, 0xb2], &[7; 100]].concat();
        assert_eq!(say(&large), "byte 0 of the frame: headers larger than a packet");
    }

    proptest! {
        /// Whatever is packetised comes back, in packets that fit.
        #[test]
        fn nothing_is_lost(
            kind in 1..=3u8,
            slices in prop::collection::vec(5..4000usize, 1..40),
            first in 64..1400usize,
            more in 0..100usize,
        ) {
            let frame = picture(kind, &slices);
            let most = first + more;
            let payloads = packetise(&frame, first, most).unwrap();
            prop_assert!(payloads[0].len() <= first);
            prop_assert!(payloads.iter().all(|payload| payload.len() <= most));
            let back = all(&payloads);
            prop_assert_eq!((back.whole, back.key), (true, kind == INTRA));
            prop_assert_eq!(back.bytes, frame);
        }

        /// Any payloads, with or without gaps, are put together to something or nothing.
        #[test]
        fn no_payload_does_harm(
            payloads in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..40)), 0..10)
        ) {
            let size: usize = payloads.iter().map(|(_, payload)| payload.len()).sum();
            let back = assemble(payloads.iter().map(|(follows, payload)| (*follows, &payload[..])));
            prop_assert!(back.bytes.len() <= size);
        }
    }
}
