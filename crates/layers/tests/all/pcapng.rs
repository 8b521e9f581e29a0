//! Captures read as they were written, and two of them joined.

use proptest::prelude::*;
use suiro_layers::clock::How;
use suiro_layers::pcapng::{Capture, CaptureError, Ends, recordings};
use suiro_layers::report::joined;
use suiro_layers::{Key, Point, Protocol};

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];
const EPOCH: u64 = 1_700_000_000_000_000_000;

/// An IPv4 packet with UDP and these bytes of payload, all zero unless they are RTP.
fn rtp(from: [u8; 4], to: [u8; 4], sequence: u16, payload: usize) -> Vec<u8> {
    let mut data = vec![0x80, 96];
    data.extend(sequence.to_be_bytes());
    data.extend([0, 0, 0, 1, 0, 0, 0, 9]);
    data.resize(payload, 0);
    let mut udp = Vec::new();
    udp.extend(5_000u16.to_be_bytes());
    udp.extend(5_004u16.to_be_bytes());
    udp.extend((payload as u16 + 8).to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(data);
    ipv4(from, to, 17, sequence, &udp)
}

/// A TCP segment, ports 80 and 40000.
fn tcp(
    from: [u8; 4],
    to: [u8; 4],
    (sequence, flags): (u32, u8),
    payload: usize,
    id: u16,
) -> Vec<u8> {
    let ports: [u16; 2] = if from == A { [80, 40_000] } else { [40_000, 80] };
    let mut segment: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
    segment.extend(sequence.to_be_bytes());
    segment.extend([0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.resize(20 + payload, 7);
    ipv4(from, to, 6, id, &segment)
}

fn ipv4(from: [u8; 4], to: [u8; 4], protocol: u8, id: u16, data: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((data.len() as u16 + 20).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend([0, 0, 64, protocol, 0, 0]);
    packet.extend(from);
    packet.extend(to);
    packet.extend(data);
    packet
}

fn ethernet(packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([0x81, 0x00, 0x00, 0x05, 0x08, 0x00]); // VLAN 5, then IPv4
    frame.extend(packet);
    frame
}

/// Writes captures in either byte order.
struct Writer {
    big: bool,
    file: Vec<u8>,
}

impl Writer {
    fn number(&self, value: u64, bytes: usize) -> Vec<u8> {
        let mut number = value.to_le_bytes()[..bytes].to_vec();
        if self.big {
            number.reverse();
        }
        number
    }
    fn numbers(&self, values: &[(u64, usize)]) -> Vec<u8> {
        values.iter().flat_map(|&(value, bytes)| self.number(value, bytes)).collect()
    }
    fn block(&mut self, kind: u64, body: &[u8]) {
        let padded = body.len().next_multiple_of(4);
        let size = padded as u64 + 12;
        let head = self.numbers(&[(kind, 4), (size, 4)]);
        self.file.extend(head);
        self.file.extend(body);
        self.file.resize(self.file.len() + padded - body.len(), 0);
        let tail = self.number(size, 4);
        self.file.extend(tail);
    }
    /// A section with one Ethernet interface whose clock counts nanoseconds.
    fn pcapng(big: bool) -> Self {
        let mut writer = Self { big, file: Vec::new() };
        let section = writer.numbers(&[(0x1a2b_3c4d, 4), (1, 2), (0, 2), (u64::MAX, 8)]);
        writer.block(0x0a0d_0d0a, &section);
        let mut interface = writer.numbers(&[(1, 2), (0, 2), (0, 4), (9, 2), (1, 2)]);
        interface.extend([9, 0, 0, 0, 0, 0, 0, 0]);
        writer.block(1, &interface);
        writer
    }
    fn packet(&mut self, t_ns: u64, packet: &[u8], direction: Option<u64>) {
        let frame = ethernet(packet);
        let size = frame.len() as u64;
        let mut body =
            self.numbers(&[(0, 4), (t_ns >> 32, 4), (t_ns & 0xffff_ffff, 4), (size, 4), (size, 4)]);
        body.extend(&frame);
        body.resize(body.len().next_multiple_of(4), 0);
        if let Some(direction) = direction {
            body.extend(self.numbers(&[(2, 2), (4, 2), (direction, 4), (0, 4)]));
        }
        self.block(6, &body);
    }
    /// pcap with microseconds.
    fn pcap(big: bool) -> Self {
        let mut writer = Self { big, file: Vec::new() };
        writer.file =
            writer.numbers(&[(0xa1b2_c3d4, 4), (2, 2), (4, 2), (0, 8), (262_144, 4), (1, 4)]);
        writer
    }
    fn old_packet(&mut self, t_ns: u64, packet: &[u8]) {
        let frame = ethernet(packet);
        let (s, us, size) = (t_ns / 1_000_000_000, t_ns / 1_000 % 1_000_000, frame.len() as u64);
        let head = self.numbers(&[(s, 4), (us, 4), (size, 4), (size, 4)]);
        self.file.extend(head);
        self.file.extend(frame);
    }
}

#[test]
fn all_four_formats_say_the_same() {
    let packet = rtp(A, B, 513, 101);
    let captures = [false, true].into_iter().flat_map(|big| {
        let (mut new, mut old) = (Writer::pcapng(big), Writer::pcap(big));
        new.packet(EPOCH + 5_000, &packet, None);
        old.old_packet(EPOCH + 5_000, &packet);
        [new.file, old.file]
    });
    for file in captures {
        let capture = Capture::read(&file).unwrap();
        let [seen] = capture.packets[..] else { panic!("{capture:?}") };
        assert_eq!(seen.t_ns, EPOCH + 5_000);
        assert_eq!(seen.key, Key::Rtp { ssrc: 9, sequence: 513 });
        assert_eq!((seen.payload_bytes, seen.ip_id, seen.sent), (101, 513, None));
        assert_eq!(seen.transport.protocol, Protocol::Udp);
        assert_eq!(seen.transport.from, "10.0.0.1:5000".parse().unwrap());
        assert!(!capture.cut);
    }
}

#[test]
fn a_truncated_file_keeps_the_packets_before() {
    let mut writer = Writer::pcapng(false);
    writer.packet(EPOCH, &rtp(A, B, 1, 100), None);
    let whole = writer.file.len();
    writer.packet(EPOCH, &rtp(A, B, 2, 100), None);
    for end in whole + 1..writer.file.len() {
        let capture = Capture::read(&writer.file[..end]).unwrap();
        assert_eq!((capture.packets.len(), capture.cut), (1, true), "cut at {end}");
    }
}

#[test]
fn other_files_are_refused_with_the_place() {
    let refused = |file: &[u8]| Capture::read(file).unwrap_err().to_string();
    assert!(
        refused(b"GIF89a")
            .starts_with("not a capture: expected pcapng or pcap, found [47, 49, 46, 38]")
    );
    assert!(refused(b"").contains("hint: decompress"));
    let mut broken = Writer::pcapng(false).file;
    broken[28 + 4] = 3;
    assert_eq!(refused(&broken), "at byte 32: a block with an invalid length");
    let mut lengths = Writer::pcapng(false).file;
    let last = lengths.len() - 4;
    lengths[last] += 4;
    assert!(refused(&lengths).ends_with("a block whose two lengths differ"));
}

#[test]
fn fragments_and_others_are_counted() {
    let mut writer = Writer::pcapng(true);
    let mut fragment = rtp(A, B, 1, 100);
    fragment[7] = 16; // fragment offset
    writer.packet(EPOCH, &fragment, None);
    writer.packet(EPOCH, &ipv4(A, B, 1, 1, &[8, 0, 0, 0]), None); // ICMP
    writer.packet(EPOCH, &rtp(A, B, 1, 100)[..24], None);
    let capture = Capture::read(&writer.file).unwrap();
    assert_eq!((capture.fragments, capture.others, capture.short), (1, 1, 1));
}

/// A call with 1,000 packets in each direction, 10 ms apart, 30 ms one way and 50 ms back; every
/// tenth is lost on the way there. The second host's clock is an hour ahead.
fn call(direction: Option<u64>) -> [Capture; 2] {
    const MS: u64 = 1_000_000;
    let ahead = 3_600_000 * MS;
    let (mut at_a, mut at_b) = (Vec::new(), Vec::new());
    for number in 0..1_000u16 {
        let t_ns = EPOCH + u64::from(number) * 10 * MS;
        let (there, back) = (rtp(A, B, number, 500), rtp(B, A, number, 700));
        at_a.push((t_ns, there.clone(), direction));
        if number % 10 != 3 {
            at_b.push((t_ns + 30 * MS + ahead, there, None));
        }
        at_b.push((t_ns + ahead, back.clone(), None));
        at_a.push((t_ns + 50 * MS, back, None));
    }
    [at_a, at_b].map(|mut packets| {
        packets.sort_by_key(|(t_ns, ..)| *t_ns);
        let mut writer = Writer::pcapng(false);
        packets
            .iter()
            .for_each(|(t_ns, packet, direction)| writer.packet(*t_ns, packet, *direction));
        Capture::read(&writer.file).unwrap()
    })
}

#[test]
fn two_captures_show_what_the_link_lost_whatever_the_clocks() {
    let [a, b] = call(None);
    let [first, second] = recordings([&a, &b], ["a", "b"], Ends::default()).unwrap();
    let report = joined(&first, &second);
    assert_eq!((report.clock.how, report.clock.error_ns), (How::Exchange, Some(40_000_000)));
    let there = report.accounts.iter().find(|account| account.flow.starts_with("udp 10.0.0.1"));
    let there = there.unwrap();
    assert_eq!((there.sender.as_deref(), there.receiver.as_deref()), (Some("a"), Some("b")));
    assert_eq!((there.sent, there.delivered), (1_000, 900));
    let [hop] = &there.hops[..] else { panic!("{:?}", there.hops) };
    assert_eq!((hop.from, hop.to, hop.lost), (Point::SendDriver, Point::ReceiveDevice, 100));
    let back = report.accounts.iter().find(|account| account.flow.starts_with("udp 10.0.0.2"));
    assert_eq!((back.unwrap().sent, back.unwrap().delivered), (1_000, 1_000));
    // Only the loss: an error of 40 ms hides both delays.
    assert_eq!(report.verdicts.len(), 1, "{:?}", report.verdicts);
}

#[test]
fn directions_come_from_the_capture_or_the_user() {
    // Flags that contradict the clocks: the flags are right.
    let [a, b] = call(Some(1));
    let [first, _] = recordings([&a, &b], ["a", "b"], Ends::default()).unwrap();
    let there = first.flows.iter().find(|flow| flow.to_string().starts_with("udp 10.0.0.1"));
    assert!(!there.unwrap().sent);
    // The user's address is right in any case.
    let ends = Ends { first_address: Some("10.0.0.1".parse().unwrap()), same_clock: true };
    let [first, second] = recordings([&a, &b], ["a", "b"], ends).unwrap();
    assert!(
        first.flows.iter().any(|flow| flow.sent && flow.to_string().starts_with("udp 10.0.0.1"))
    );
    assert_eq!(first.boot_id, second.boot_id);
}

#[test]
fn captures_of_different_things_are_refused() {
    let [a, _] = call(None);
    let nothing = Capture::default();
    let refused = recordings([&a, &nothing], ["a", "b"], Ends::default());
    assert_eq!(refused.unwrap_err(), CaptureError::NothingInCommon);
}

#[test]
fn tcp_is_matched_by_its_bytes() {
    const MS: u64 = 1_000_000;
    let (mut a, mut b) = (Writer::pcapng(false), Writer::pcapng(false));
    let both = |a: &mut Writer, b: &mut Writer, t: u64, packet: &[u8], from_a: bool| {
        let (t_a, t_b) = if from_a { (t, t + 5 * MS) } else { (t + 5 * MS, t) };
        a.packet(EPOCH + t_a, packet, None);
        b.packet(EPOCH + t_b, packet, None);
    };
    both(&mut a, &mut b, 0, &tcp(A, B, (u32::MAX - 3_000, 2), 0, 1), true);
    both(&mut a, &mut b, 6 * MS, &tcp(B, A, (77, 0x12), 0, 1), false);
    // Four segments across the sequence number wrap, the third lost and resent.
    for number in 0..4u32 {
        let start = (u32::MAX - 2_999).wrapping_add(number * 1_400);
        let packet = tcp(A, B, (start, 0x10), 1_400, 10 + number as u16);
        let t = 20 * MS + u64::from(number) * MS;
        match number {
            2 => a.packet(EPOCH + t, &packet, None),
            _ => both(&mut a, &mut b, t, &packet, true),
        }
    }
    let again = tcp(A, B, ((u32::MAX - 2_999).wrapping_add(2_800), 0x10), 1_400, 20);
    both(&mut a, &mut b, 80 * MS, &again, true);
    both(&mut a, &mut b, 300 * MS, &tcp(B, A, (78, 0x10), 0, 2), false);

    let captures = [a.file, b.file].map(|file| Capture::read(&file).unwrap());
    let [first, second] =
        recordings([&captures[0], &captures[1]], ["a", "b"], Ends::default()).unwrap();
    let report = joined(&first, &second);
    assert_eq!(report.clock.how, How::Exchange);
    let account = report.accounts.iter().find(|account| account.flow.starts_with("tcp 10.0.0.1"));
    let account = account.unwrap();
    assert_eq!((account.sent, account.delivered, account.hops[0].lost), (7_000, 5_600, 1_400));
    assert!(account.is_conserved());
}

proptest! {
    #[test]
    fn nothing_panics(file: Vec<u8>, at in 0usize..600, byte: u8) {
        let _ = Capture::read(&file);
        for mut writer in [Writer::pcapng(false), Writer::pcap(true)] {
            if writer.big {
                writer.old_packet(EPOCH, &rtp(A, B, 1, 100));
            } else {
                writer.packet(EPOCH, &tcp(A, B, (1, 2), 100, 1), Some(2));
            }
            let place = at % writer.file.len();
            writer.file[place] = byte;
            let _ = Capture::read(&writer.file);
        }
    }
}
