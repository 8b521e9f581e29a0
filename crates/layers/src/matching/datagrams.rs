//! Datagrams: a passage is one packet, identified by its key.

use std::collections::BTreeMap;

use super::passage::{Matched, NONE, POINTS, Passage, Points, Sighting};
use crate::event::{Key, Point};

/// Half of the numbers of a 16-bit key. A key seen again after more packets than that belongs to another packet.
const HALF: u32 = 1 << 15;
/// Most packets with one key that are distinguished at a time; more are taken for the newest.
const CHAIN: usize = 16;
/// The same for IPv4 identifications. Each of a super-packet's datagrams, 128 at most (UDP_MAX_SEGMENTS of
/// linux/udp.h), has the number of one datagram of each earlier super-packet.
const CHAIN_OF_IDS: usize = 256;

/// IPv4 identifications below this may come from a super-packet without one: when it is segmented in software or by the
/// network card, its datagrams are numbered from 0 (inet_gso_segment in net/ipv4/af_inet.c). This happens with
/// super-packets of a socket that is not connected and has IP_PMTUDISC_DO or PROBE.
const RENUMBERED: u16 = 128;
/// Most packets with one check that are kept for this, and after how many packets they are too old.
const KEPT: usize = 4;
const KEPT_FOR: u32 = 8192;

/// Joins sightings of datagrams into passages. Sightings are given in the order of their times, as far as clocks allow;
/// those of two hosts may be out of order by less than half a cycle of the key.
pub struct Datagrams {
    origin: Option<Point>,
    newest: BTreeMap<Key, u32>,
    /// The newest packets without an identification, or with one of [`RENUMBERED`], by their check.
    unnumbered: BTreeMap<u16, [u32; KEPT]>,
    counts: BTreeMap<Option<u32>, u32>,
    furthest: [u32; POINTS],
    /// The latest packet, with the key of its call, whose send call failed.
    failed: Option<(u32, Key)>,
    matched: Matched,
}

impl Datagrams {
    /// For a flow that is watched at these points.
    pub fn new(points: Points) -> Self {
        Self {
            origin: points.first(),
            newest: BTreeMap::new(),
            unnumbered: BTreeMap::new(),
            counts: BTreeMap::new(),
            furthest: [0; POINTS],
            failed: None,
            matched: Matched::default(),
        }
    }

    /// Adds the next sighting. At most 2³²−1 packets are distinguished; later sightings are ignored.
    pub fn push(&mut self, sighting: &Sighting) {
        let point = sighting.point;
        if point == Point::SendCall && self.is_retry(sighting) {
            return;
        }
        let found = match self.find(sighting) {
            Some(index) if !self.matched.passages[index as usize].has(point) => Some(index),
            other => self.find_renumbered(sighting).or(other),
        };
        let Some(index) = found else { return self.begin(sighting) };
        if !self.matched.passages[index as usize].has(point) {
            return self.join(index, sighting);
        }
        if Some(point) == self.origin {
            self.matched.repeated += 1;
            self.begin(sighting);
        } else if let Some(tally) = self.matched.tallies.get_mut(point as usize) {
            tally.duplicates += 1;
        }
    }

    /// All passages.
    pub fn finish(self) -> Matched {
        self.matched
    }

    /// Among the recent packets with this key, the one that has not passed this point, has come furthest and was sent
    /// first; otherwise the newest.
    fn find(&self, sighting: &Sighting) -> Option<u32> {
        let newest = *self.newest.get(&sighting.key.split().0)?;
        let now = self.counts.get(&space(sighting.key)).copied().unwrap_or(0);
        let mut best: Option<(u8, u32)> = None;
        let mut index = newest;
        let longest = if matches!(sighting.key, Key::IpId { .. }) { CHAIN_OF_IDS } else { CHAIN };
        for _ in 0..longest {
            let Some(passage) = self.matched.passages.get(index as usize) else { break };
            if !young(sighting.key, passage, now) {
                break;
            }
            let progress = passage.progress(sighting.point);
            if !passage.has(sighting.point)
                && passage.same_ip_id(sighting)
                && passage.same_check(sighting)
                && best.is_none_or(|(most, _)| progress >= most)
            {
                best = Some((progress, index));
            }
            index = passage.previous;
        }
        let latest = &self.matched.passages[newest as usize];
        let is_it = young(sighting.key, latest, now) && latest.same_check(sighting);
        best.map(|(_, index)| index).or(is_it.then_some(newest))
    }

    /// The packet that was seen before it was numbered, or is seen again as it was before: among the recent ones, the
    /// one that has not passed this point, has come furthest and was sent first.
    fn find_renumbered(&self, sighting: &Sighting) -> Option<u32> {
        let kept = self.unnumbered.get(&renumbered(sighting.key)?)?;
        let now = self.counts.get(&space(sighting.key)).copied().unwrap_or(0);
        let mut best: Option<(u8, u32)> = None;
        for &index in kept {
            let Some(passage) = self.matched.passages.get(index as usize) else { break };
            let progress = passage.progress(sighting.point);
            if passage.unnumbered != matches!(sighting.key, Key::Hash(_))
                && now.wrapping_sub(passage.number) < KEPT_FOR
                && passage.bytes == sighting.bytes
                && !passage.has(sighting.point)
                && passage.same_ip_id(sighting)
                && best.is_none_or(|(most, _)| progress >= most)
            {
                best = Some((progress, index));
            }
        }
        best.map(|(_, index)| index)
    }

    /// Whether the call before this one was for the same datagram and failed. If so, this is another call of that packet. A
    /// super-packet fails as a whole, and its first datagram stands for it.
    fn is_retry(&mut self, sighting: &Sighting) -> bool {
        let Some((index, key)) = self.failed.take() else { return false };
        let passage = &mut self.matched.passages[index as usize];
        let same =
            key == sighting.key || check(key).is_some_and(|c| check(sighting.key) == Some(c));
        if !same || sighting.bytes > passage.bytes {
            return false;
        }
        passage.drop = None;
        passage.bytes = sighting.bytes;
        if key != sighting.key {
            let newest = self.newest.insert(sighting.key.split().0, index);
            passage.previous = newest.unwrap_or(NONE);
            passage.unnumbered = matches!(sighting.key, Key::Hash(_));
        }
        self.matched.retried += 1;
        true
    }

    fn begin(&mut self, sighting: &Sighting) {
        let Ok(index) = u32::try_from(self.matched.passages.len()) else { return };
        if index == NONE {
            return;
        }
        let count = self.counts.entry(space(sighting.key)).or_default();
        *count = count.wrapping_add(1);
        let number = *count;
        let previous = self.newest.insert(sighting.key.split().0, index).unwrap_or(NONE);
        let unnumbered = matches!(sighting.key, Key::Hash(_));
        let passage = Passage { number, previous, unnumbered, ..Passage::new(sighting.bytes) };
        self.matched.passages.push(passage);
        if let Some(check) = renumbered(sighting.key) {
            let kept = self.unnumbered.entry(check).or_insert([NONE; KEPT]);
            kept.rotate_right(1);
            kept[0] = index;
        }
        self.join(index, sighting);
    }

    fn join(&mut self, index: u32, sighting: &Sighting) {
        let passage = &mut self.matched.passages[index as usize];
        passage.note(sighting);
        passage.bytes = passage.bytes.max(sighting.bytes);
        let point = sighting.point as usize;
        let Some(tally) = self.matched.tallies.get_mut(point) else {
            let failed = passage.last() == Some(Point::SendCall);
            self.failed = failed.then_some((index, sighting.key)).or(self.failed);
            return;
        };
        tally.seen += 1;
        if index < self.furthest[point] {
            tally.reordered += 1;
        } else {
            self.furthest[point] = index;
        }
    }
}

/// The check of a packet that may be or may have been renumbered on its way.
const fn renumbered(key: Key) -> Option<u16> {
    match key {
        Key::Hash(hash) if hash as u16 != 0 => Some(hash as u16),
        Key::IpId { id: ..RENUMBERED, check } if check != 0 => Some(check),
        _ => None,
    }
}

/// What two keys of one datagram have in common, if its call failed before the datagram was numbered.
const fn check(key: Key) -> Option<u16> {
    match key {
        Key::Hash(hash) if hash as u16 != 0 => Some(hash as u16),
        Key::IpId { check, .. } if check != 0 => Some(check),
        _ => None,
    }
}

/// Keys with the same numbering: those of an RTP source, or the rest.
fn space(key: Key) -> Option<u32> {
    match key {
        Key::Rtp { ssrc, .. } => Some(ssrc),
        _ => None,
    }
}

/// Whether fewer packets than half a cycle of the key began after it. A hash never cycles.
fn young(key: Key, passage: &Passage, now: u32) -> bool {
    matches!(key, Key::Hash(_)) || now.wrapping_sub(passage.number) < HALF
}
