//! Packets that did not come, and the seconds in which they were many.

use crate::packets::Packet;

const SECOND_NS: i64 = 1_000_000_000;
/// An outage has at least so many packets.
pub(crate) const OUTAGE_MIN: usize = 5;
/// Random loss at the rate of the time around an outage would lose that many in a row less often than this.
pub(crate) const BY_CHANCE: f64 = 1e-3;
/// How much time before and after an outage counts as around it.
pub(crate) const AROUND_NS: i64 = 3 * SECOND_NS;

/// Packets that did not come, between two that did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hole {
    /// When they should have come; in one capture, when the next came.
    pub t_ns: i64,
    /// Number of the next that came, in its file.
    pub number: u32,
    /// When it was sent, by the capture nearer to its sender; 0 in one capture.
    pub sent_ns: i64,
    pub missing: usize,
}

impl Hole {
    /// One packet, where this one is.
    pub fn at(packet: &Packet) -> Self {
        Self { t_ns: packet.t_ns, number: packet.number, sent_ns: 0, missing: 1 }
    }
}

/// Seconds in which so much was lost, those next to each other as one stretch.
pub(crate) fn seconds_with(
    lost: &[Hole],
    came: &[i64],
    (share, least): (f64, usize),
) -> Vec<(i64, i64)> {
    // Counted from what came first; if nothing did, from the first that is missing.
    let begin = came.first().copied().or_else(|| lost.iter().map(|hole| hole.t_ns).min());
    let Some(first) = begin else { return Vec::new() };
    let mut seconds = std::collections::BTreeMap::new();
    for hole in lost {
        *seconds.entry((hole.t_ns - first).div_euclid(SECOND_NS)).or_insert(0) += hole.missing;
    }
    let mut stretches: Vec<(i64, i64)> = Vec::new();
    for (second, missing) in seconds {
        let from = first + second * SECOND_NS;
        let to = from + SECOND_NS;
        let arrived = came.partition_point(|t| *t < to) - came.partition_point(|t| *t < from);
        if missing < least || (missing as f64) < share * (missing + arrived) as f64 {
            continue;
        }
        match stretches.last_mut() {
            Some((_, last)) if *last == from => *last = to,
            _ => stretches.push((from, to)),
        }
    }
    stretches
}
