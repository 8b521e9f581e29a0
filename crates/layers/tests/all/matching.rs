//! Matching recovers exactly what a made-up path through two hosts lost, duplicated and reordered.

use proptest::prelude::*;
use suiro_layers::matching::{
    Datagrams, Drop, Matched, Passage, Points, Side, Sighting, Stream, way,
};
use suiro_layers::{DropCause, Key, Point};
use suiro_units::{Random, Seed};

/// What was deliberately done to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fate {
    /// The last point that it passed.
    last: Point,
    /// From this point on a copy followed it.
    copied_from: Option<Point>,
}

/// How keys are numbered.
#[derive(Debug, Clone, Copy)]
enum Numbering {
    Rtp,
    IpId,
    Hash,
}

fn key(numbering: Numbering, number: u64) -> Key {
    match numbering {
        Numbering::Rtp => Key::Rtp { ssrc: 7, sequence: number as u16 },
        Numbering::IpId => Key::IpId { id: number as u16, check: 0 },
        Numbering::Hash => Key::Hash(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
    }
}

/// Packets 1 ms apart between the hosts, 10 µs between points, and jitter of up to 5 ms at the receiver's device, which
/// reorders.
fn passages(numbering: Numbering, packets: u64, random: &mut Random) -> (Vec<Sighting>, Vec<Fate>) {
    let (mut sightings, mut fates) = (Vec::new(), Vec::new());
    for number in 0..packets {
        let lost = random.chance(0.1);
        let fate = Fate {
            last: if lost { Point::ALL[random.below(9) as usize] } else { Point::ReceiveCall },
            copied_from: random.chance(0.05).then(|| Point::ALL[1 + random.below(9) as usize]),
        };
        let jitter = random.below(5_000_000) as i64;
        for point in way().filter(|&point| point <= fate.last) {
            let late = if point >= Point::ReceiveDevice { jitter } else { 0 };
            let t_ns = number as i64 * 1_000_000 + point as i64 * 10_000 + late;
            let sighting = Sighting {
                t_ns,
                point,
                key: key(numbering, number),
                ip_id: 0,
                bytes: 1200,
                drop: None,
            };
            sightings.push(sighting);
            if fate.copied_from.is_some_and(|from| point >= from) {
                sightings.push(Sighting { t_ns: t_ns + 3_000, ..sighting });
            }
        }
        fates.push(fate);
    }
    sightings.sort_by_key(|sighting| (sighting.t_ns, sighting.point));
    (sightings, fates)
}

fn matched(sightings: &[Sighting]) -> Matched {
    let mut matcher = Datagrams::new(Points::all());
    sightings.iter().for_each(|sighting| matcher.push(sighting));
    matcher.finish()
}

/// How many packets were overtaken at a point: RFC 4737 §3.3, by its definition.
fn overtaken(sightings: &[Sighting], point: Point, matched: &[Passage]) -> u64 {
    let mut order: Vec<(i64, usize)> =
        (0..).zip(matched).filter_map(|(index, p)| Some((p.at(point)?, index))).collect();
    order.sort_unstable();
    assert!(order.len() <= sightings.len());
    let mut next = 0;
    let late = order.iter().filter(|&&(_, index)| {
        let late = index < next;
        next = next.max(index + 1);
        late
    });
    late.count() as u64
}

fn found_back(numbering: Numbering, packets: u64, seed: u64) {
    let mut random = Seed(seed).random();
    let (sightings, fates) = passages(numbering, packets, &mut random);
    let matched = matched(&sightings);
    assert_eq!(matched.passages.len(), fates.len(), "seed {seed}");
    assert_eq!(matched.repeated, 0, "seed {seed}");
    for (number, (passage, fate)) in matched.passages.iter().zip(&fates).enumerate() {
        assert_eq!(passage.last(), Some(fate.last), "seed {seed}, packet {number}");
        assert_eq!(passage.at(Point::SendCall), Some(number as i64 * 1_000_000), "seed {seed}");
    }
    for point in way() {
        let passed = fates.iter().filter(|fate| fate.last >= point);
        let copies =
            passed.clone().filter(|fate| fate.copied_from.is_some_and(|from| from <= point));
        let tally = matched.tally(point);
        assert_eq!(tally.seen, passed.count() as u64, "seed {seed}, {point}");
        assert_eq!(tally.duplicates, copies.count() as u64, "seed {seed}, {point}");
        let overtaken = overtaken(&sightings, point, &matched.passages);
        assert_eq!(tally.reordered, overtaken, "seed {seed}, {point}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn losses_copies_and_reordering_are_found_back(
        seed: u64,
        packets in 1u64..2_000,
        numbering in prop_oneof![Just(Numbering::Rtp), Just(Numbering::IpId), Just(Numbering::Hash)],
    ) {
        found_back(numbering, packets, seed);
    }
}

#[test]
fn sixteen_bits_wrap_around_twice() {
    found_back(Numbering::Rtp, 150_000, 1);
    found_back(Numbering::IpId, 150_000, 2);
}

#[test]
fn a_packet_that_the_application_sends_twice_is_two() {
    let sighting = |t_ns, point, ip_id| Sighting {
        t_ns,
        point,
        key: Key::Rtp { ssrc: 1, sequence: 5 },
        ip_id,
        bytes: 100,
        drop: None,
    };
    let (call, ip, device) = (Point::SendCall, Point::SendIp, Point::ReceiveDevice);
    // The first is lost after IP, which only the IP identification can show.
    let seen = [
        sighting(0, call, 8),
        sighting(1, ip, 8),
        sighting(2, call, 9),
        sighting(3, ip, 9),
        sighting(10, device, 9),
    ];
    let matched = matched(&seen);
    assert_eq!(matched.repeated, 1);
    let ends: Vec<_> = matched.passages.iter().map(|p| (p.at(call), p.last())).collect();
    assert_eq!(ends, [(Some(0), Some(ip)), (Some(2), Some(device))]);
}

/// Super-packets of 60 datagrams, numbered as the kernel does: 50 of them are in transit at a time, so that each number
/// is in transit 50 times. Some of them are lost there.
fn super_packets(lost: &dyn Fn(u64) -> bool, check: &dyn Fn(u64) -> u16) -> Matched {
    let mut sightings = Vec::new();
    for number in 0..200 * 60u64 {
        let (super_packet, segment) = (number / 60, number % 60);
        let key = Key::IpId { id: (super_packet + segment) as u16, check: check(number) };
        let sent_ns = super_packet as i64 * 1_000_000 + segment as i64 * 1_000;
        for point in way().filter(|&point| point <= Point::SendDriver || !lost(number)) {
            let late = if point > Point::SendDriver { 50_000_000 } else { 0 };
            let t_ns = sent_ns + point as i64 + late;
            sightings.push(Sighting { t_ns, point, key, ip_id: 0, bytes: 500, drop: None });
        }
    }
    sightings.sort_by_key(|sighting| (sighting.t_ns, sighting.point));
    matched(&sightings)
}

#[test]
fn datagrams_of_super_packets_with_one_number_are_told_apart() {
    let check = |number: u64| (number % 65_521 + 1) as u16;
    let lost = |number: u64| number % 7 == 3;
    for (lost, check) in
        [(&lost as &dyn Fn(u64) -> bool, &check as &dyn Fn(u64) -> u16), (&|_| false, &|_| 0)]
    {
        let matched = super_packets(lost, check);
        assert_eq!(matched.passages.len(), 200 * 60);
        let mut in_order: Vec<&Passage> = matched.passages.iter().collect();
        in_order.sort_by_key(|passage| passage.at(Point::SendCall));
        for (number, passage) in (0..).zip(in_order) {
            let (sent, received) = (passage.at(Point::SendCall), passage.at(Point::ReceiveCall));
            let took = received.map(|received| received - sent.unwrap());
            assert_eq!(took, (!lost(number)).then_some(50_000_010), "{number}");
        }
    }
}

/// Super-packets without an identification, of 10 datagrams each, that are segmented at the driver and numbered from 0,
/// five in transit at a time; where the receiver merges them, they have none again. And the other way round.
#[test]
fn a_packet_that_is_numbered_on_its_way_is_one() {
    for numbered_first in [false, true] {
        let lost = |number: u64| number % 7 == 3;
        let mut sightings = Vec::new();
        for number in 0..3_000u64 {
            let check = (number.wrapping_mul(40_503) % 65_521 + 1) as u16;
            let (sent_ns, segment) = (number as i64 / 10 * 1_000_000, (number % 10) as u16);
            for point in way().filter(|&point| point <= Point::SendDriver || !lost(number)) {
                let cut = (Point::SendDriver..=Point::ReceiveDevice).contains(&point);
                let is_numbered = segment != 0 && cut != numbered_first;
                let (key, ip_id) = if is_numbered {
                    (Key::IpId { id: segment, check }, segment)
                } else {
                    (Key::Hash((number + 1) << 16 | u64::from(check)), 0)
                };
                let late = if point > Point::SendDriver { 5_000_000 } else { 0 };
                let t_ns = sent_ns + i64::from(segment) * 1_000 + point as i64 + late;
                sightings.push(Sighting { t_ns, point, key, ip_id, bytes: 500, drop: None });
            }
        }
        sightings.sort_by_key(|sighting| (sighting.t_ns, sighting.point));
        let matched = matched(&sightings);
        assert_eq!((matched.passages.len(), matched.repeated), (3_000, 0));
        for point in way() {
            let (expected, tally) = (3_000 - 429, matched.tally(point));
            let expected = if point <= Point::SendDriver { 3_000 } else { expected };
            assert_eq!((tally.seen, tally.duplicates), (expected, 0), "{point}");
        }
    }
}

/// A super-packet of ten datagrams found no room, as one call of 12,000 bytes, and was sent again.
#[test]
fn a_super_packet_whose_call_failed_and_was_made_again_is_no_loss() {
    let sighting =
        |t_ns, point, key, bytes| Sighting { t_ns, point, key, ip_id: 0, bytes, drop: None };
    let whole = Key::Hash(77 << 16 | 5);
    let cause = Some(Drop { side: Side::Sender, cause: DropCause(0) });
    let failed = sighting(1, Point::Dropped, whole, 12_000);
    let mut seen =
        vec![sighting(0, Point::SendCall, whole, 12_000), Sighting { drop: cause, ..failed }];
    for point in way() {
        let segment = |id: u16| {
            let t_ns = 100 * (1 + point as i64) + i64::from(id);
            sighting(t_ns, point, Key::IpId { id, check: 5 }, 1_200)
        };
        seen.extend((1..=10).map(segment));
    }
    let matched = matched(&seen);
    assert_eq!((matched.retried, matched.passages.len()), (1, 10));
    for passage in &matched.passages {
        assert_eq!((passage.bytes, passage.last()), (1_200, Some(Point::ReceiveCall)));
    }
    // It counts from its first call.
    assert_eq!(matched.passages[0].at(Point::SendCall), Some(0));
}

#[test]
fn a_packet_that_was_not_seen_at_the_first_point_begins_where_it_was() {
    let key = Key::IpId { id: 3, check: 0 };
    let seen = [Point::SendLink, Point::ReceiveCall].map(|point| Sighting {
        t_ns: point as i64,
        point,
        key,
        ip_id: 3,
        bytes: 9,
        drop: None,
    });
    let matched = matched(&seen);
    assert_eq!(matched.passages.len(), 1);
    assert_eq!(matched.passages[0].first(), Some(Point::SendLink));
    assert_eq!(matched.passages[0].last(), Some(Point::ReceiveCall));
}

/// A TCP stream written in one size, sent in another, merged and read in a third.
struct Connection {
    sightings: Vec<Sighting>,
    t_ns: i64,
    /// Sequence number of the first byte.
    first: u32,
}

impl Connection {
    fn see(&mut self, point: Point, from: u64, to: u64) {
        self.t_ns += 1_000;
        let key = Key::Bytes { start: self.first.wrapping_add(from as u32) };
        let (t_ns, bytes) = (self.t_ns, (to - from) as u32);
        self.sightings.push(Sighting { t_ns, point, key, ip_id: 0, bytes, drop: None });
    }
    fn see_in(&mut self, points: &[Point], from: u64, to: u64) {
        points.iter().for_each(|&point| self.see(point, from, to));
    }
    /// The whole stream at a point, divided at random.
    fn cut(&mut self, point: Point, total: u64, most: u64, random: &mut Random) {
        let mut from = 0;
        while from < total {
            let to = (from + 1 + random.below(most)).min(total);
            self.see(point, from, to);
            from = to;
        }
    }
}

const DOWN: [Point; 3] = [Point::SendIp, Point::SendLink, Point::SendQdisc];
const UP: [Point; 4] =
    [Point::ReceiveDevice, Point::ReceiveIp, Point::ReceiveLocal, Point::ReceiveSocket];

/// Bytes of all transmissions that passed a point.
fn bytes_at(matched: &Matched, point: Point) -> u64 {
    let there = matched.passages.iter().filter(|passage| passage.at(point).is_some());
    there.map(|passage| u64::from(passage.bytes)).sum()
}

fn stream_adds_up(seed: u64, total: u64, first: u32) {
    let mut random = Seed(seed).random();
    let mut tcp = Connection { sightings: Vec::new(), t_ns: 0, first };
    tcp.cut(Point::SendCall, total, 9_000, &mut random);
    let (mut sent, mut lost, mut from) = (0, 0, 0);
    while from < total {
        let to = (from + 1 + random.below(64_000)).min(total);
        tcp.see_in(&DOWN, from, to);
        sent += to - from;
        // The driver gets packets; some are lost after it, and resent.
        let mut packet = from;
        while packet < to {
            let end = (packet + 1448).min(to);
            tcp.see(Point::SendDriver, packet, end);
            if random.chance(0.1) {
                (sent, lost) = (sent + end - packet, lost + end - packet);
                tcp.see_in(&DOWN, packet, end);
                tcp.see(Point::SendDriver, packet, end);
            }
            packet = end;
        }
        tcp.see_in(&UP, from, to);
        from = to;
    }
    tcp.cut(Point::ReceiveCall, total, 3_000, &mut random);

    let mut matcher = Stream::new(Points::all());
    tcp.sightings.iter().for_each(|sighting| matcher.push(sighting));
    let matched = matcher.finish();
    for point in way() {
        let expected = match point {
            // TCP is not watched there.
            Point::SendTransport => 0,
            Point::SendIp | Point::SendLink | Point::SendQdisc | Point::SendDriver => sent,
            _ => total,
        };
        assert_eq!(bytes_at(&matched, point), expected, "seed {seed}, {point}");
        assert_eq!(matched.tally(point).duplicates, 0, "seed {seed}, {point}");
    }
    let ended = |point| matched.passages.iter().filter(move |p| p.last() == Some(point));
    let lost_found: u64 = ended(Point::SendDriver).map(|p| u64::from(p.bytes)).sum();
    assert_eq!(lost_found, lost, "seed {seed}");
    for passage in ended(Point::ReceiveCall) {
        assert!(passage.at(Point::SendCall).is_some(), "seed {seed}: read, but never written");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn bytes_add_up_over_writes_super_packets_and_reads(seed: u64, total in 1u64..400_000, first: u32) {
        stream_adds_up(seed, total, first);
    }
}

/// Bytes that TCP sent again although they had been read. IPv6 has no identification to distinguish the two.
#[test]
fn bytes_that_were_read_were_not_dropped() {
    let mut tcp = Connection { sightings: Vec::new(), t_ns: 0, first: 1 };
    let path = [&DOWN[..], &[Point::SendDriver], &UP[..]].concat();
    tcp.see(Point::SendCall, 0, 1_000);
    tcp.see_in(&path, 0, 1_000);
    tcp.see(Point::ReceiveCall, 0, 1_000);
    tcp.see_in(&path, 0, 1_000);
    let cause = Some(Drop { side: Side::Receiver, cause: DropCause(0) });
    // A copy that the network made, which is dropped as well, is none of the two.
    for _ in 0..2 {
        tcp.see(Point::Dropped, 0, 1_000);
        tcp.sightings.last_mut().expect("it was just added").drop = cause;
    }
    let mut matcher = Stream::new(Points::all());
    tcp.sightings.iter().for_each(|sighting| matcher.push(sighting));
    let matched = matcher.finish();
    let ends: Vec<_> = matched.passages.iter().map(|p| (p.last(), p.drop)).collect();
    assert_eq!(ends, [(Some(Point::ReceiveCall), None), (Some(Point::ReceiveSocket), cause)]);
}

#[test]
fn sequence_numbers_of_a_stream_wrap_around() {
    stream_adds_up(3, 3_000_000, u32::MAX - 1_000_000);
}
