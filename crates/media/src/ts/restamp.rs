//! Moving a segment in time.

use super::{PACKET, Shift};
use crate::ParseError;

/// Time stamps have 33 bits.
const STAMP_MASK: u64 = (1 << 33) - 1;

/// Moves a segment of whole packets in place: PTS, DTS, PCR and continuity counters.
///
/// # Errors
/// If a packet is cut, has no sync byte, or a header in it is malformed. The bytes may then be
/// moved in part.
pub fn restamp(bytes: &mut [u8], shift: &Shift) -> Result<(), ParseError> {
    if !bytes.len().is_multiple_of(PACKET) {
        return Err(ParseError::new(
            bytes.len(),
            format!("not a whole number of packets of {PACKET} bytes"),
        ));
    }
    for (index, packet) in bytes.chunks_exact_mut(PACKET).enumerate() {
        move_packet(packet, shift).map_err(|error| error.within(index * PACKET))?;
    }
    Ok(())
}

/// §2.4.3.2, the transport packet.
fn move_packet(packet: &mut [u8], shift: &Shift) -> Result<(), ParseError> {
    if packet[0] != 0x47 {
        return Err(ParseError::new(0, "no sync byte"));
    }
    let starts_unit = packet[1] & 0x40 != 0;
    let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
    let has_adaptation = packet[3] & 0x20 != 0;
    let has_payload = packet[3] & 0x10 != 0;
    let by = shift.counters.iter().find(|of| of.pid == pid).map_or(0, |of| of.count);
    let counter = (u64::from(packet[3] & 0x0f) + (by & 0x0f)) & 0x0f;
    packet[3] = (packet[3] & 0xf0) | counter as u8;
    let mut payload = 4;
    if has_adaptation {
        payload = 5 + usize::from(packet[4]);
        if payload > PACKET {
            return Err(ParseError::new(4, "an adaptation field beyond its packet"));
        }
        adaptation(&mut packet[5..payload], shift.ticks)?;
    }
    let starts_pes = packet[payload..].starts_with(&[0, 0, 1]);
    if has_payload && starts_unit && starts_pes {
        pes(&mut packet[payload..], shift.ticks).map_err(|error| error.within(payload))?;
    }
    Ok(())
}

/// §2.4.3.4: the PCR's base has 33 bits of 90 kHz; its extension stays.
fn adaptation(field: &mut [u8], ticks: u64) -> Result<(), ParseError> {
    let has_pcr = field.first().is_some_and(|flags| flags & 0x10 != 0);
    if !has_pcr {
        return Ok(());
    }
    let Some(pcr) = field.get_mut(1..7) else {
        return Err(ParseError::new(5, "a PCR beyond its field"));
    };
    let base = pcr[..4].iter().fold(0, |base, byte| base << 8 | u64::from(*byte)) << 1
        | u64::from(pcr[4] >> 7);
    let base = base.wrapping_add(ticks) & STAMP_MASK;
    pcr[..4].copy_from_slice(&((base >> 1) as u32).to_be_bytes());
    pcr[4] = (pcr[4] & 0x7f) | ((base & 1) as u8) << 7;
    Ok(())
}

/// §2.4.3.7: PTS and DTS of a PES header, which must lie in the packet that begins it.
fn pes(payload: &mut [u8], ticks: u64) -> Result<(), ParseError> {
    // Streams without time stamps have no flags: padding, private 2, ECM, EMM, …
    let stream = *payload.get(3).ok_or_else(|| ParseError::new(0, "a PES header cut short"))?;
    if !(0xc0..=0xef).contains(&stream) && stream != 0xbd && stream != 0xfd {
        return Ok(());
    }
    let cut = || ParseError::new(0, "a PES header beyond its packet");
    let stamps = payload.get(7).ok_or_else(cut)? >> 6;
    for index in 0..usize::from(stamps >> 1) + usize::from(stamps == 3) {
        let at = 9 + 5 * index;
        stamp(payload.get_mut(at..at + 5).ok_or_else(cut)?, ticks)
            .map_err(|error| error.within(at))?;
    }
    Ok(())
}

/// Three pieces of 3, 15 and 15 bits, each closed by a marker bit.
fn stamp(field: &mut [u8], ticks: u64) -> Result<(), ParseError> {
    if field[0] & field[2] & field[4] & 1 == 0 {
        return Err(ParseError::new(0, "a time stamp without its marker bits"));
    }
    let value = read_stamp(field).wrapping_add(ticks) & STAMP_MASK;
    write_stamp(field, field[0] >> 4, value);
    Ok(())
}

/// The 33 bits of a time stamp field of five bytes.
pub(crate) fn read_stamp(field: &[u8]) -> u64 {
    let byte = |index: usize| u64::from(field[index]);
    (byte(0) >> 1 & 0x07) << 30 | byte(1) << 22 | (byte(2) >> 1) << 15 | byte(3) << 7 | byte(4) >> 1
}

/// Writes a time stamp field of five bytes that begins with the four bits of `prefix`.
pub(crate) fn write_stamp(field: &mut [u8], prefix: u8, value: u64) {
    field[0] = prefix << 4 | ((value >> 30 & 0x07) as u8) << 1 | 1;
    field[1] = (value >> 22) as u8;
    field[2] = ((value >> 15) as u8) << 1 | 1;
    field[3] = (value >> 7) as u8;
    field[4] = (value as u8) << 1 | 1;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use suiro_units::Duration;

    use super::*;
    use crate::AudioConfig;
    use crate::mp4::Frame;
    use crate::ts::{Muxer, Packets, Timed};

    /// Two segments of a loop of 2 s: ten frames and some sound each.
    fn segments() -> (Vec<Vec<u8>>, Vec<Packets>) {
        let mut muxer = Muxer::new(Some(AudioConfig::read(&[0x11, 0x90]).unwrap()), 0);
        let mut segment = |number: u64| {
            let frames = |count: u64, ticks: u64| -> Vec<Frame> {
                let frame = |index| {
                    let at = (number * count + index) * ticks;
                    let data = vec![0, 0, 0, 5, 0x65, 1, 2, 3, 4];
                    let (decode, shown, duration) = (at, at, ticks as u32);
                    Frame { data, decode, shown, duration, sync: index == 0 }
                };
                (0..count).map(frame).collect()
            };
            let video = Timed { frames: &frames(10, 1000), timescale: 10_000 };
            let audio = Timed { frames: &frames(46, 1024), timescale: 48_000 };
            muxer.segment(&video, &audio).unwrap()
        };
        let segments = vec![segment(0), segment(1)];
        (segments, muxer.packets())
    }

    fn shift(loops: u64) -> Shift {
        Shift::new(Duration::from_secs(2), loops, &segments().1)
    }

    /// The continuity counters of each PID, in order.
    fn counters(bytes: &[u8], pid: u16) -> Vec<u8> {
        let of_pid = |packet: &&[u8]| u16::from_be_bytes([packet[1] & 0x1f, packet[2]]) == pid;
        bytes.chunks_exact(PACKET).filter(of_pid).map(|packet| packet[3] & 0x0f).collect()
    }

    #[test]
    fn counters_run_on_over_segments_and_loops() {
        let (segments, packets) = segments();
        let mut stream = Vec::new();
        for loops in 0..40 {
            for segment in &segments {
                let mut segment = segment.clone();
                restamp(&mut segment, &shift(loops)).unwrap();
                stream.extend(segment);
            }
        }
        for of in packets {
            let found = counters(&stream, of.pid);
            assert_eq!(found.len() as u64, of.count * 40);
            assert!(found.iter().enumerate().all(|(n, &counter)| usize::from(counter) == n % 16));
        }
    }

    /// PCR, PTS and DTS, in the order in which they come.
    fn stamps(bytes: &[u8]) -> Vec<u64> {
        let mut found = Vec::new();
        for packet in bytes.chunks_exact(PACKET) {
            let field = if packet[3] & 0x20 == 0 { 0 } else { 1 + usize::from(packet[4]) };
            if field > 1 && packet[5] & 0x10 != 0 {
                let base = u64::from(u32::from_be_bytes(packet[6..10].try_into().unwrap()));
                found.push(base << 1 | u64::from(packet[10] >> 7));
            }
            let pes = &packet[4 + field..];
            if packet[1] & 0x40 != 0 && pes.starts_with(&[0, 0, 1]) {
                found.push(read_stamp(&pes[9..14]));
            }
        }
        found
    }

    #[test]
    fn every_stamp_moves_by_whole_loops_and_wraps() {
        let (segments, _) = segments();
        // The last is beyond 2³³ ticks, 26.5 hours.
        for loops in [1, 3, 50_000] {
            let mut moved = segments[1].clone();
            restamp(&mut moved, &shift(loops)).unwrap();
            let expected: Vec<u64> =
                stamps(&segments[1]).iter().map(|at| (at + loops * 180_000) % (1 << 33)).collect();
            assert!(expected.len() > 20);
            assert_eq!(stamps(&moved), expected);
        }
    }

    #[test]
    fn there_and_back_is_nothing() {
        let (segments, _) = segments();
        let mut moved = segments[0].clone();
        restamp(&mut moved, &shift(5)).unwrap();
        let mut back = shift(5);
        back.ticks = back.ticks.wrapping_neg();
        back.counters.iter_mut().for_each(|of| of.count = of.count.wrapping_neg());
        restamp(&mut moved, &back).unwrap();
        assert_eq!(moved, segments[0]);
    }

    #[test]
    fn what_is_cut_or_not_a_packet_is_refused() {
        let (segments, _) = segments();
        let mut cut = segments[0][..segments[0].len() - 1].to_vec();
        assert!(restamp(&mut cut, &shift(1)).is_err());
        let mut lost = segments[0].clone();
        lost[PACKET] = 0;
        let error = restamp(&mut lost, &shift(1)).unwrap_err();
        assert_eq!(error.to_string(), "byte 188: no sync byte");
    }

    proptest! {
        #[test]
        fn stamps_are_read_as_written(value in 0u64..1 << 33, prefix in 0u8..16) {
            let mut field = [0; 5];
            write_stamp(&mut field, prefix, value);
            prop_assert_eq!(read_stamp(&field), value);
            prop_assert_eq!(field[0] >> 4, prefix);
        }

        #[test]
        fn no_packets_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..PACKET * 3)) {
            let whole = bytes.len() / PACKET * PACKET;
            bytes.truncate(whole);
            bytes.iter_mut().step_by(PACKET).for_each(|sync| *sync = 0x47);
            let _ = restamp(&mut bytes, &shift(7));
        }

        #[test]
        fn no_damage_panics(at in 0usize..2000, with in any::<[u8; 3]>()) {
            let mut bytes = segments().0.remove(0);
            for (byte, with) in bytes.iter_mut().skip(at).zip(with) {
                *byte = with;
            }
            let _ = restamp(&mut bytes, &shift(7));
        }
    }
}
