//! H.264 in RTP: RFC 6184, packetisation mode 1. Sent: single NAL unit packets (§5.6) and FU-A
//! (§5.8). Received: those and STAP-A (§5.7.1), which mode 1 has too.

use crate::{Assembled, FRAME_MAX, PayloadError, start_codes};

const START_CODE: [u8; 4] = [0, 0, 0, 1];
const STAP_A: u8 = 24;
const FU_A: u8 = 28;
/// Types of NAL units that packets carry as they are.
const SINGLE: std::ops::RangeInclusive<u8> = 1..=23;
const IDR: u8 = 5;
/// A slice that is not of an IDR frame, whole or its first partition.
const SLICES: [u8; 2] = [1, 2];
/// SEI, parameter sets, access unit delimiter: they precede a frame's first slice
/// (ITU-T H.264 §7.4.1.2.3).
const BEFORE_PICTURE: std::ops::RangeInclusive<u8> = 6..=9;

/// Bits of a NAL unit's or FU's header.
const NRI: u8 = 0x60;
const TYPE: u8 = 0x1f;
const FORBIDDEN: u8 = 0x80;
const FU_START: u8 = 0x80;
const FU_END: u8 = 0x40;

/// NAL units of a byte stream (ITU-T H.264 annex B), without start codes and trailing zeros.
fn units(stream: &[u8]) -> Vec<&[u8]> {
    let starts: Vec<usize> = start_codes(stream).map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([stream.len()]);
    let units = starts.iter().zip(ends).map(|(&start, end)| {
        let unit = &stream[start + 3..end];
        // §B.1: zeros after a unit belong to the stream, and no unit ends in one (§7.4.1).
        let length = unit.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        &unit[..length]
    });
    units.filter(|unit| !unit.is_empty()).collect()
}

pub(crate) fn packetise(
    frame: &[u8],
    first: usize,
    most: usize,
) -> Result<Vec<Vec<u8>>, PayloadError> {
    let units = units(frame);
    if units.is_empty() {
        return Err(PayloadError::Empty("NAL unit"));
    }
    let mut payloads = Vec::new();
    for unit in units {
        if !SINGLE.contains(&(unit[0] & TYPE)) || unit[0] & FORBIDDEN != 0 {
            let at = unit.as_ptr() as usize - frame.as_ptr() as usize;
            return Err(PayloadError::Malformed {
                at,
                problem: "a NAL unit of no type of H.264's",
            });
        }
        let room = if payloads.is_empty() { first } else { most };
        if unit.len() <= room {
            payloads.push(unit.to_vec());
        } else {
            fragment(unit, (room, most), &mut payloads);
        }
    }
    Ok(payloads)
}

/// §5.8: a unit larger than a packet, without its header byte, whose fields each fragment carries.
fn fragment(unit: &[u8], (mut room, most): (usize, usize), payloads: &mut Vec<Vec<u8>>) {
    let (head, mut rest) = (unit[0], &unit[1..]);
    let mut flags = FU_START;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.len().min(room - 2));
        if after.is_empty() {
            flags |= FU_END;
        }
        let mut payload = vec![head & NRI | FU_A, flags | head & TYPE];
        payload.extend_from_slice(part);
        payloads.push(payload);
        (flags, rest, room) = (0, after, most);
    }
}

/// Puts NAL units together again.
#[derive(Default)]
struct Assembly {
    bytes: Vec<u8>,
    /// Where the fragmented unit at hand begins in `bytes`; `None` between units.
    fragment: Option<usize>,
    key: bool,
    damaged: bool,
    /// The slices that came whole.
    slices: usize,
}

pub(crate) fn assemble<'p>(payloads: impl Iterator<Item = (bool, &'p [u8])>) -> Assembled {
    let mut assembly = Assembly::default();
    for (follows, payload) in payloads {
        if !follows {
            assembly.damaged = true;
            assembly.drop_fragment();
        }
        if assembly.take(payload).is_none() {
            assembly.damaged = true;
            assembly.drop_fragment();
        }
    }
    if assembly.fragment.is_some() {
        assembly.damaged = true;
        assembly.drop_fragment();
    }
    let whole = !assembly.damaged && assembly.slices > 0;
    // Without its first slice a frame's others may be taken for parts of the frame before.
    let usable = start_codes(&assembly.bytes).any(|(at, head)| {
        let kind = head & TYPE;
        let slice = kind == IDR || SLICES.contains(&kind);
        slice && assembly.bytes.get(at + 4).is_some_and(|&byte| byte & 0x80 != 0)
    });
    Assembled { bytes: assembly.bytes, key: assembly.key, whole, usable }
}

impl Assembly {
    /// One payload; `None` if it is malformed.
    fn take(&mut self, payload: &[u8]) -> Option<()> {
        let head = *payload.first()?;
        match head & TYPE {
            FU_A => self.take_fragment(payload),
            _ if self.fragment.is_some() => None, // a unit was cut
            STAP_A => self.take_aggregate(&payload[1..]),
            kind if SINGLE.contains(&kind) => self.unit(payload),
            _ => None,
        }
    }

    fn unit(&mut self, unit: &[u8]) -> Option<()> {
        self.begin(unit)?;
        self.bytes.extend_from_slice(unit);
        self.count(unit[0]);
        Some(())
    }

    /// Begins a unit, if it and its start code have room.
    fn begin(&mut self, unit: &[u8]) -> Option<()> {
        self.room(START_CODE.len() + unit.len())?;
        self.bytes.extend_from_slice(&START_CODE);
        Some(())
    }

    fn room(&self, more: usize) -> Option<()> {
        (self.bytes.len() + more <= FRAME_MAX).then_some(())
    }

    fn count(&mut self, head: u8) {
        let kind = head & TYPE;
        self.key |= kind == IDR;
        self.slices += usize::from(kind == IDR || SLICES.contains(&kind));
    }

    /// §5.7.1: units, each after its size in two bytes.
    fn take_aggregate(&mut self, mut rest: &[u8]) -> Option<()> {
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            let (size, after) = rest.split_first_chunk::<2>()?;
            let (unit, after) = after.split_at_checked(u16::from_be_bytes(*size).into())?;
            if !SINGLE.contains(&(unit.first()? & TYPE)) {
                return None;
            }
            self.unit(unit)?;
            rest = after;
        }
        Some(())
    }

    fn take_fragment(&mut self, payload: &[u8]) -> Option<()> {
        let (&[indicator, header], part) = payload.split_first_chunk::<2>()?;
        let head = indicator & NRI | header & TYPE;
        let (start, end) = (header & FU_START != 0, header & FU_END != 0);
        // §5.8: never both in one, and no empty part.
        if start == self.fragment.is_some() || start && end || part.is_empty() {
            return None;
        }
        if start {
            if !SINGLE.contains(&(header & TYPE)) {
                return None;
            }
            let begins = self.bytes.len();
            self.begin(&[head])?;
            self.bytes.push(head);
            self.fragment = Some(begins);
        }
        let begins = self.fragment?;
        if self.bytes.get(begins + START_CODE.len()) != Some(&head) {
            return None; // of another unit
        }
        self.room(part.len())?;
        self.bytes.extend_from_slice(part);
        if end {
            self.fragment = None;
            self.count(head);
        }
        Some(())
    }

    /// A unit with a missing part is useless: a decoder would take it for the whole.
    fn drop_fragment(&mut self) {
        if let Some(begins) = self.fragment.take() {
            self.bytes.truncate(begins);
        }
    }
}

/// A parameter set, or the slice with the frame's first macroblock. RTP does not mark where a frame begins; a slice's
/// header begins with the number of its first macroblock as an Exp-Golomb code (ITU-T H.264 §7.3.3), whose zero is a
/// single 1 bit.
pub(crate) fn begins_frame(payload: &[u8]) -> bool {
    let slice = |kind: u8, data: Option<&u8>| match kind {
        IDR => data.is_some_and(|&byte| byte & 0x80 != 0),
        kind if SLICES.contains(&kind) => data.is_some_and(|&byte| byte & 0x80 != 0),
        kind => BEFORE_PICTURE.contains(&kind),
    };
    match payload.first().map(|head| head & TYPE) {
        Some(FU_A) => payload
            .get(1)
            .is_some_and(|header| header & FU_START != 0 && slice(header & TYPE, payload.get(2))),
        Some(STAP_A) => payload.get(3).is_some_and(|head| slice(head & TYPE, payload.get(4))),
        Some(kind) => slice(kind, payload.get(1)),
        None => false,
    }
}

/// A slice, or its last fragment; of an aggregate, any.
pub(crate) fn ends_slice(payload: &[u8]) -> bool {
    let slice = |head: u8| (1..=IDR).contains(&(head & TYPE));
    match payload {
        [head, header, ..] if head & TYPE == FU_A => header & FU_END != 0 && slice(*header),
        [head, rest @ ..] if head & TYPE == STAP_A => aggregated(rest).any(|unit| slice(unit[0])),
        [head, ..] => slice(*head),
        [] => false,
    }
}

/// The units of an aggregate that are there and not empty.
fn aggregated(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (size, after) = rest.split_first_chunk::<2>()?;
        let (unit, after) = after.split_at_checked(u16::from_be_bytes(*size).into())?;
        rest = after;
        (!unit.is_empty()).then_some(unit)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(payloads: &[Vec<u8>]) -> Assembled {
        assemble(payloads.iter().map(|payload| (true, payload.as_slice())))
    }

    /// A frame: parameter sets and an IDR slice of so many bytes.
    fn key_frame(size: usize) -> Vec<u8> {
        let mut frame = vec![0, 0, 0, 1, 0x67, 1, 2, 3, 0, 0, 0, 1, 0x68, 4, 0, 0, 1, 0x65, 0x88];
        frame.extend((0..size).map(|n| (n % 250 + 1) as u8));
        frame
    }

    /// The same with every start code of four bytes, as it comes out.
    fn long_codes(frame: &[u8]) -> Vec<u8> {
        units(frame).into_iter().flat_map(|unit| [&START_CODE, unit].concat()).collect()
    }

    #[test]
    fn small_units_travel_alone_and_large_ones_in_fragments() {
        let payloads = packetise(&key_frame(250), 100, 100).unwrap();
        let kinds: Vec<u8> = payloads.iter().map(|payload| payload[0] & TYPE).collect();
        assert_eq!(kinds, [7, 8, FU_A, FU_A, FU_A]);
        assert_eq!(payloads[2][1], FU_START | IDR);
        assert_eq!(payloads[4][1], FU_END | IDR);
        assert!(payloads.iter().all(|payload| payload.len() <= 100));
        let back = all(&payloads);
        assert!(back.whole && back.key);
        assert_eq!(back.bytes, long_codes(&key_frame(250)));
    }

    #[test]
    fn the_first_packet_may_have_less_room() {
        let payloads = packetise(&[0, 0, 1, 0x41, 0x9a, 1, 2, 3, 4, 5, 6, 7], 5, 8).unwrap();
        assert_eq!(payloads.iter().map(Vec::len).collect::<Vec<_>>(), [5, 7]);
        let back = all(&payloads);
        assert!(back.whole && !back.key);
    }

    #[test]
    fn a_lost_fragment_costs_its_unit_and_no_other() {
        let payloads = packetise(&key_frame(250), 100, 100).unwrap();
        for lost in 2..5 {
            let left = payloads.iter().enumerate().filter(|(n, _)| *n != lost);
            let back = assemble(left.map(|(n, payload)| (n != lost + 1, payload.as_slice())));
            assert!(!back.whole, "fragment {lost}");
            assert_eq!(back.bytes, [0, 0, 0, 1, 0x67, 1, 2, 3, 0, 0, 0, 1, 0x68, 4]);
        }
    }

    #[test]
    fn aggregates_are_taken_apart() {
        // RFC 6184 figure 7: two single-time units, the first of three bytes.
        let payload = vec![0x78, 0, 3, 0x67, 1, 2, 0, 2, 0x65, 0x88];
        assert!(begins_frame(&payload));
        let back = all(&[payload]);
        assert!(back.whole && back.key);
        assert_eq!(back.bytes, [0, 0, 0, 1, 0x67, 1, 2, 0, 0, 0, 1, 0x65, 0x88]);
        for bad in [&[0x78][..], &[0x78, 0], &[0x78, 0, 9, 0x67], &[0x78, 0, 0], &[0x78, 0, 1, 28]]
        {
            assert!(!all(&[bad.to_vec()]).whole, "{bad:?}");
        }
    }

    #[test]
    fn a_frame_begins_with_parameter_sets_or_its_first_macroblock() {
        let begins =
            [&[0x67, 1][..], &[9, 0x10], &[0x65, 0x88], &[0x41, 0x9a], &[0x7c, 0x85, 0x88]];
        assert!(begins.iter().all(|payload| begins_frame(payload)));
        let not =
            [&[][..], &[0x65], &[0x41, 0x40], &[0x7c, 0x05, 0x88], &[0x7c, 0x85, 0x08], &[31, 1]];
        assert!(!not.iter().any(|payload| begins_frame(payload)));
    }

    #[test]
    fn what_is_no_h264_is_refused() {
        assert_eq!(packetise(&[1, 2, 3], 100, 100), Err(PayloadError::Empty("NAL unit")));
        let error = packetise(&[0, 0, 1, 0x1c, 1], 100, 100).unwrap_err();
        assert_eq!(error.to_string(), "byte 3 of the frame: a NAL unit of no type of H.264's");
    }

    proptest! {
        /// Whatever is packetised comes back, in packets that fit.
        #[test]
        fn nothing_is_lost(size in 1..5000usize, first in 64..1400usize, more in 0..100usize) {
            let frame = key_frame(size);
            let most = first + more;
            let payloads = packetise(&frame, first, most).unwrap();
            prop_assert!(payloads[0].len() <= first);
            prop_assert!(payloads.iter().all(|payload| payload.len() <= most));
            let back = all(&payloads);
            prop_assert!(back.whole);
            prop_assert_eq!(back.bytes, long_codes(&frame));
        }

        /// Any payloads, with or without gaps, are put together to something or nothing.
        #[test]
        fn no_payload_does_harm(
            payloads in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..40)), 0..10)
        ) {
            let size: usize = payloads.iter().map(|(_, payload)| payload.len()).sum();
            let back = assemble(payloads.iter().map(|(follows, payload)| (*follows, &payload[..])));
            prop_assert!(back.bytes.len() <= size * 5);
        }
    }
}
