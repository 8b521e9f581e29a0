//! Two streams with the same packets over two paths: ST 2022-7.

use std::collections::BTreeMap;

use serde::Serialize;

use super::packets::Stream;
use super::spread::{Gather, Spread};

/// Fewer packets in common are a coincidence.
const COMMON_MIN: u64 = 10;

/// What two legs have in common, from the first packet that both could have to the last.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// The streams, as positions in the analysis's list of all.
    pub legs: [usize; 2],
    /// Packets that were sent, by their sequence numbers.
    pub packets: u64,
    /// Of these, packets that came over both.
    pub common: u64,
    /// Of the common ones, those whose RTP header or payload differ, as far as they were captured.
    pub different: u64,
    /// Packets that are missing from each.
    pub lost: [u64; 2],
    /// Packets that only one of them lost: a receiver of both has them.
    pub recovered: u64,
    /// Packets that both lost.
    pub lost_on_both: u64,
    /// How much later packets came over the second leg than over the first, in µs.
    pub skew_us: Spread,
}

/// Compares two streams of the same source; `None` if they do not have the same packets.
pub fn compare(streams: &[Stream<'_>], legs: [usize; 2]) -> Option<Pair> {
    let [a, b] = legs.map(|at| &streams[at]);
    if (a.key.ssrc, a.key.payload_type) != (b.key.ssrc, b.key.payload_type) {
        return None;
    }
    // The first copy of each, by sequence number.
    let index = |stream: &Stream<'_>, shift: i64| -> BTreeMap<i64, usize> {
        let mut places = BTreeMap::new();
        for (at, packet) in stream.packets.iter().enumerate() {
            places.entry(packet.sequence + shift).or_insert(at);
        }
        places
    };
    let (a_by, b_by) = (index(a, 0), index(b, shift(a, b)?));
    let first = *a_by.first_key_value()?.0.max(b_by.first_key_value()?.0);
    let last = *a_by.last_key_value()?.0.min(b_by.last_key_value()?.0);
    if first > last {
        return None;
    }
    let (mut common, mut different, mut skew) = (0, 0, Gather::default());
    for (sequence, at) in a_by.range(first..=last) {
        let Some(other) = b_by.get(sequence) else { continue };
        let (one, other) = (&a.packets[*at], &b.packets[*other]);
        common += 1;
        let size = one.payload.len().min(other.payload.len());
        let differs =
            one.ip_bytes != other.ip_bytes || one.payload[..size] != other.payload[..size];
        different += u64::from(differs);
        skew.add((other.t_ns - one.t_ns) as f64 / 1e3);
    }
    let packets = (last - first).unsigned_abs() + 1;
    let [in_a, in_b] = [&a_by, &b_by].map(|by| by.range(first..=last).count() as u64);
    let either = in_a + in_b - common;
    let pair = Pair {
        legs,
        packets,
        common,
        different,
        lost: [packets - in_a, packets - in_b],
        recovered: either - common,
        lost_on_both: packets - either,
        skew_us: skew.spread()?,
    };
    // Streams of one device may have equal numbers and timestamps all the same.
    (common >= COMMON_MIN && different * 2 < common).then_some(pair)
}

/// What to add to the second stream's sequence numbers, which began to count at another packet: equal packets have equal
/// timestamps, too.
fn shift(a: &Stream<'_>, b: &Stream<'_>) -> Option<i64> {
    let name = |sequence: i64, timestamp: u32| (timestamp, sequence as u16);
    let of_a: BTreeMap<(u32, u16), i64> = a
        .packets
        .iter()
        .map(|packet| (name(packet.sequence, packet.timestamp), packet.sequence))
        .collect();
    let shifts = b.packets.iter().filter_map(|packet| {
        let sequence = of_a.get(&name(packet.sequence, packet.timestamp))?;
        Some(sequence - packet.sequence)
    });
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    shifts.for_each(|shift| *counts.entry(shift).or_default() += 1);
    counts.into_iter().max_by_key(|it| it.1).map(|(shift, _)| shift)
}
