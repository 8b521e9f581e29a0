//! What packets of video cost: a frame into packets and back, and a report read.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use suiro_payload::Codec;
use suiro_rtp::packet::Packet;
use suiro_rtp::rtcp::{self, Block, Outgoing};

/// Bytes of a payload in packets of 1500.
const ROOM: usize = 1458;

/// An I picture of MPEG-2 with 30 rows of slices, or an IDR slice of H.264, of about 90 kB.
fn picture(codec: Codec) -> Vec<u8> {
    let noise = |n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8 | 2;
    match codec {
        Codec::H264 => [0, 0, 1, 0x65, 0x88].into_iter().chain((0..90_000).map(noise)).collect(),
        Codec::Mpeg2 => {
            let mut bytes = vec![0, 0, 1, 0xb3, 45, 1, 224, 36, 0, 0, 1, 0xb8, 0, 8, 0, 0x40];
            bytes.extend([0, 0, 1, 0, 0, 1 << 3, 0, 0]);
            for row in 1..=30 {
                bytes.extend([0, 0, 1, row]);
                bytes.extend((0..3000).map(noise));
            }
            bytes
        }
    }
}

fn packets(codec: Codec) -> Vec<Vec<u8>> {
    let payloads = codec.packetise(&picture(codec), ROOM, ROOM).expect("it is a frame");
    let packet = |(number, payload)| {
        let (ssrc, payload_type, timestamp) = (7, 96, 9000);
        let (sequence, marker, mark, wide) = (number as u16, false, None, None);
        Packet { ssrc, payload_type, sequence, timestamp, marker, mark, wide, payload }
    };
    payloads.into_iter().enumerate().map(packet).map(|packet| packet.write()).collect()
}

fn pictures(c: &mut Criterion) {
    for (name, codec) in [("mpeg2", Codec::Mpeg2), ("h264", Codec::H264)] {
        let (frame, wire) = (picture(codec), packets(codec));
        let mut group = c.benchmark_group(format!("{name}, per packet"));
        group.throughput(Throughput::Elements(wire.len() as u64));
        group.bench_function("packetise", |b| b.iter(|| codec.packetise(&frame, ROOM, ROOM)));
        group.bench_function("write", |b| b.iter(|| packets(codec)));
        group.bench_function("read and put together", |b| {
            b.iter(|| {
                let read = |bytes: &Vec<u8>| Packet::parse(bytes).expect("it was written").payload;
                let payloads: Vec<_> = wire.iter().map(read).collect();
                let whole =
                    codec.assemble(payloads.iter().map(|payload| (true, payload.as_slice())));
                assert!(whole.whole && whole.key);
                whole
            });
        });
        group.finish();
    }
}

fn reports(c: &mut Criterion) {
    let block = Block {
        from: 7,
        media: 9,
        fraction_lost: 3,
        cumulative_lost: 12,
        highest: 4711,
        jitter: 20,
        last_report: 1,
        since_report: 2,
    };
    let (ssrc, cname) = (7, "suiro@bench".to_owned());
    let bytes = Outgoing { ssrc, cname, received: Some(block), ..Outgoing::default() }.write();
    c.bench_function("receiver report, read", |b| b.iter(|| rtcp::parse(&bytes)));
}

criterion_group!(benches, pictures, reports);
criterion_main!(benches);
