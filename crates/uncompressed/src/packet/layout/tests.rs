use proptest::prelude::*;

use super::*;
use crate::geometry::{Depth, FrameRate, Sampling};
use crate::packet::{PAYLOAD_TYPE, STANDARD_PACKET_BYTES, STUDY_PACKET_BYTES};

const STREAM: Stream = Stream { payload_type: PAYLOAD_TYPE, ssrc: 0x1234_5678 };
const FRAME: Frame = Frame {
    timestamp: 0xdead_beef,
    sequence: 0xffff_fff0,
    number: 7,
    checksum: 0x0123_4567_89ab_cdef,
};

fn datagram(layout: &Layout, frame: &[u8], index: u32) -> Vec<u8> {
    let mut header = [0; HEADER_BYTES_MAX];
    layout.write_header(STREAM, &FRAME, index, &mut header);
    [&header[..layout.header_bytes()], &frame[layout.piece(index).range()]].concat()
}

fn hd(format: Format, packet_bytes: u32) -> Layout {
    let geometry = if format == Format::St2110 { Geometry::HD } else { Geometry::HD_RASTER };
    Layout::new(format, &geometry, packet_bytes).unwrap()
}

#[test]
fn the_studys_packets_have_8800_bytes_and_its_streams_3_gbps() {
    let layout = hd(Format::Raster, STUDY_PACKET_BYTES);
    assert_eq!(layout.datagram_bytes() as u32 + IP_UDP_BYTES, 8800);
    assert_eq!(layout.packets_per_frame(), 709);
    assert_eq!((layout.ip_bits_per_second() / 1e6).round(), 2989.0);
}

#[test]
fn rows_are_cut_evenly() {
    let standard = hd(Format::St2110, STANDARD_PACKET_BYTES);
    assert_eq!((standard.piece_bytes(), standard.packets_per_run()), (1200, 4));
    assert_eq!((standard.packets_per_frame(), standard.is_even()), (4320, true));
    let jumbo = hd(Format::St2110, 9000);
    assert_eq!((jumbo.piece_bytes(), jumbo.packets_per_frame()), (4800, 1080));
    // 2·487 pixels have a prime number of pgroups: the last packet of a row is shorter.
    let (sampling, depth) = (Sampling::YCbCr422, Depth::Ten);
    let odd = Geometry::new((974, 2), sampling, depth, FrameRate::P59_94).unwrap();
    let odd = Layout::new(Format::St2110, &odd, STANDARD_PACKET_BYTES).unwrap();
    assert_eq!((odd.packets_per_run(), odd.is_even()), (2, false));
    assert_eq!((odd.piece(0).bytes, odd.piece(1).bytes), (1430, 1005));
}

#[test]
fn a_standard_header_matches_rfc_4175() {
    let layout = hd(Format::St2110, STANDARD_PACKET_BYTES);
    let frame = vec![0xab; layout.frame_bytes()];
    let last = datagram(&layout, &frame, 4319);
    let expected = [
        0x80, 0xe0, 0x10, 0xcf, 0xde, 0xad, 0xbe, 0xef, 0x12, 0x34, 0x56, 0x78, // RTP, marker
        0x00, 0x00, // 0xfffffff0 + 4319 wraps to 0x10cf
        0x04, 0xb0, 0x04, 0x37, 0x05, 0xa0, // 1200 bytes, row 1079, pixel 1440
        0xab,
    ];
    assert_eq!(last[..21], expected);
}

#[test]
fn foreign_datagrams_are_refused() {
    let layout = hd(Format::St2110, STANDARD_PACKET_BYTES);
    let sound = datagram(&layout, &vec![0; layout.frame_bytes()], 5);
    let refusal = |at: usize, value: u8| {
        let mut damaged = sound.clone();
        damaged[at] = value;
        layout.parse(&damaged, PAYLOAD_TYPE).unwrap_err()
    };
    assert_eq!(layout.parse(&sound[..1219], PAYLOAD_TYPE), Err(Refusal::Short));
    assert_eq!(layout.parse(&sound[..17], PAYLOAD_TYPE), Err(Refusal::Short));
    assert_eq!(refusal(0, 0), Refusal::NotRtp);
    assert_eq!(refusal(1, 97), Refusal::PayloadType(97));
    assert_eq!(refusal(0, 0xa0), Refusal::RtpHeader);
    assert_eq!(refusal(16, 0x80), Refusal::Interlaced);
    assert_eq!(refusal(16, 0x7f), Refusal::Outside);
    assert_eq!(refusal(15, 0xaf), Refusal::Pgroup);
    // The continuation bits of the sample row data headers go on through the zeros of the image.
    assert_eq!(refusal(18, 0x80), Refusal::Short);
    let raster = hd(Format::Raster, STUDY_PACKET_BYTES);
    assert_eq!(raster.parse(&sound, PAYLOAD_TYPE), Err(Refusal::Version(4)));
}

#[test]
fn a_raster_packet_must_lie_within_the_frame() {
    let layout = hd(Format::Raster, STUDY_PACKET_BYTES);
    let sound = datagram(&layout, &vec![0; layout.frame_bytes()], 708);
    let received = layout.parse(&sound, PAYLOAD_TYPE).unwrap();
    assert_eq!((received.number, received.checksum), (Some(7), Some(FRAME.checksum)));
    assert_eq!(layout.parse(&[&sound[..], &[0]].concat(), PAYLOAD_TYPE), Err(Refusal::Outside));
    assert_eq!(layout.parse(&sound[..sound.len() - 1], PAYLOAD_TYPE), Err(Refusal::Outside));
    let mut other = sound.clone();
    other[27] ^= 1;
    let bytes = layout.frame_bytes() as u32 ^ 1;
    assert_eq!(layout.parse(&other, PAYLOAD_TYPE), Err(Refusal::FrameBytes(bytes)));
}

#[test]
fn packet_sizes_are_bounded() {
    let error = Layout::new(Format::St2110, &Geometry::HD, 52).unwrap_err();
    assert_eq!(error, LayoutError::Small { packet: 52, least: 53 });
    let error = Layout::new(Format::Raster, &Geometry::HD, 70_000).unwrap_err();
    assert_eq!(error, LayoutError::Large(70_000));
}

fn geometries() -> impl Strategy<Value = Geometry> {
    let sampling = proptest::sample::select(Sampling::ALL.as_slice());
    let depth = proptest::sample::select(Depth::ALL.as_slice());
    (1u32..60, 1u32..20, sampling, depth).prop_map(|(quads, height, sampling, depth)| {
        Geometry::new((quads * 4, height), sampling, depth, FrameRate::P59_94).unwrap()
    })
}

proptest! {
    #[test]
    fn a_frame_comes_back_from_its_packets(
        geometry in geometries(),
        packet_bytes in 80u32..2000,
        raster: bool,
    ) {
        let format = if raster { Format::Raster } else { Format::St2110 };
        let layout = Layout::new(format, &geometry, packet_bytes).unwrap();
        let frame: Vec<u8> = (0..layout.frame_bytes()).map(|i| (i * 7 % 251) as u8).collect();
        let mut back = vec![0; frame.len()];
        let mut carried = 0;
        for index in 0..layout.packets_per_frame() {
            let datagram = datagram(&layout, &frame, index);
            prop_assert!(datagram.len() as u32 + IP_UDP_BYTES <= packet_bytes);
            let ends_run = (index + 1).is_multiple_of(layout.packets_per_run());
            prop_assert!(ends_run || datagram.len() == layout.datagram_bytes());
            let received = layout.parse(&datagram, PAYLOAD_TYPE).unwrap();
            prop_assert_eq!(received.sequence, FRAME.sequence.wrapping_add(index));
            prop_assert_eq!(received.last, index + 1 == layout.packets_per_frame());
            prop_assert_eq!(received.checksum.is_some(), raster && received.last);
            for (offset, bytes) in received.pieces() {
                back[offset..offset + bytes.len()].copy_from_slice(bytes);
                carried += bytes.len();
            }
        }
        prop_assert_eq!(carried, frame.len());
        prop_assert_eq!(back, frame);
    }

    #[test]
    fn any_bytes_are_refused_or_lie_within_the_frame(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
        raster: bool,
    ) {
        let layout = hd(if raster { Format::Raster } else { Format::St2110 }, 1500);
        if let [first, second, ..] = &mut bytes[..] {
            (*first, *second) = (0x80, PAYLOAD_TYPE);
        }
        if let Ok(received) = layout.parse(&bytes, PAYLOAD_TYPE) {
            for (offset, piece) in received.pieces() {
                prop_assert!(offset + piece.len() <= layout.frame_bytes());
            }
        }
    }
}
