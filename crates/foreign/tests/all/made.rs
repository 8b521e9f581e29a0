//! Makes captures: packets of streams whose fate is chosen.

use std::sync::LazyLock;

use suiro_capture::file::{Counted, Described, ETHERNET, Writer};

/// Times count from here: 2026-11-26.
pub const ZERO_NS: i64 = 1_795_651_200_000_000_000;
pub const MS: i64 = 1_000_000;

/// A packet, as one capture has it.
#[derive(Debug, Clone)]
pub struct Made {
    pub t_ns: i64,
    pub data: Vec<u8>,
}

/// The file of a capture.
pub fn capture(packets: &[Made]) -> Vec<u8> {
    captured(packets, None)
}

/// The same, which may say whether its host sent the packets.
fn captured(packets: &[Made], sent: Option<bool>) -> Vec<u8> {
    let interface = Described { name: "eth0", description: "", link: ETHERNET, snap: 0 };
    let mut writer = Writer::new(Vec::new(), &interface).unwrap();
    let mut packets = packets.to_vec();
    packets.sort_by_key(|packet| packet.t_ns);
    for packet in &packets {
        let t_ns = u64::try_from(ZERO_NS + packet.t_ns).unwrap();
        writer.packet(t_ns, &packet.data, packet.data.len(), sent).unwrap();
    }
    writer.finish(&Counted::default()).unwrap()
}

/// Ethernet and IPv4 around a segment.
fn ip(from: [u8; 4], to: [u8; 4], protocol: u8, segment: &[u8]) -> Vec<u8> {
    let mut data = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    data.extend((20 + segment.len() as u16).to_be_bytes());
    data.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    data.extend(from);
    data.extend(to);
    data.extend(segment);
    data
}

pub fn udp(from: ([u8; 4], u16), to: ([u8; 4], u16), payload: &[u8]) -> Vec<u8> {
    let mut segment = Vec::new();
    segment.extend(from.1.to_be_bytes());
    segment.extend(to.1.to_be_bytes());
    segment.extend((8 + payload.len() as u16).to_be_bytes());
    segment.extend([0, 0]);
    segment.extend(payload);
    ip(from.0, to.0, 17, &segment)
}

pub const SENDER: ([u8; 4], u16) = ([10, 0, 0, 1], 5000);
pub const RECEIVER: ([u8; 4], u16) = ([10, 0, 0, 2], 6000);

/// A packet of RTP: the number of its frame, at 30 frames a second, and its sequence number.
pub fn rtp(frame: u32, sequence: u16) -> Vec<u8> {
    let mut payload = vec![0x80, 96];
    payload.extend(sequence.to_be_bytes());
    payload.extend((frame * 3000).to_be_bytes());
    payload.extend(0x1234u32.to_be_bytes());
    payload.resize(1000, sequence as u8);
    udp(SENDER, RECEIVER, &payload)
}

/// One packet of a stream: when it was sent and when it came, if it did.
#[derive(Debug, Clone)]
pub struct Sent {
    pub t_ns: i64,
    pub came_ns: Option<i64>,
    pub data: Vec<u8>,
}

/// Twenty seconds of 30 frames a second, each of three packets 1 ms apart, whose delay is 20 ms.
pub fn stream() -> Vec<Sent> {
    let one = |number: u32| {
        let (frame, part) = (number / 3, number % 3);
        let t_ns = i64::from(frame) * 1_000_000_000 / 30 + i64::from(part) * MS;
        Sent { t_ns, came_ns: Some(t_ns + 20 * MS), data: rtp(frame, number as u16) }
    };
    (0..1800).map(one).collect()
}

/// What the sender's host and the receiver's saw. The receiver's clock is 300 ms behind.
pub fn both(stream: &[Sent]) -> [Vec<u8>; 2] {
    reported(stream, (RECEIVER, SENDER))
}

/// The same of a stream that nothing answers. Each capture may say whether its host sent the packets.
pub fn one_way(stream: &[Sent], sent: [Option<bool>; 2]) -> [Vec<u8>; 2] {
    let [near, far] = seen(stream);
    [captured(&near, sent[0]), captured(&far, sent[1])]
}

fn seen(stream: &[Sent]) -> [Vec<Made>; 2] {
    let sent = stream.iter().map(|it| Made { t_ns: it.t_ns, data: it.data.clone() });
    let came = stream
        .iter()
        .filter_map(|it| Some(Made { t_ns: it.came_ns? - 300 * MS, data: it.data.clone() }));
    [sent.collect(), came.collect()]
}

/// The same of a stream whose receiver sends reports, in the opposite direction.
pub fn reported(stream: &[Sent], (from, to): (([u8; 4], u16), ([u8; 4], u16))) -> [Vec<u8>; 2] {
    let back = |delay: i64| {
        (0..40).map(move |n: i64| {
            let payload = [0x81, 201, 0, 1, 0, 0, 0, n as u8];
            Made { t_ns: n * 500 * MS + delay, data: udp(from, to, &payload) }
        })
    };
    let [mut near, mut far] = seen(stream);
    near.extend(back(20 * MS));
    far.extend(back(-300 * MS));
    [capture(&near), capture(&far)]
}

/// One of each kind of file.
pub fn samples() -> &'static [Vec<u8>] {
    static SAMPLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let some: Vec<Made> =
            stream().into_iter().take(20).map(|it| Made { t_ns: it.t_ns, data: it.data }).collect();
        vec![
            capture(&some),
            super::statistics::dump().into_bytes(),
            super::statistics::reports().into_bytes(),
            super::statistics::early_dump().into_bytes(),
            super::logs::QLOG.as_bytes().to_vec(),
            super::logs::FAR_QLOG.as_bytes().to_vec(),
            super::logs::FFMPEG.as_bytes().to_vec(),
        ]
    });
    &SAMPLES
}
