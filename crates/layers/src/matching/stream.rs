//! TCP: a passage is one transmission of a range of bytes. System calls, super-packets and packets divide the stream at
//! different places, so passages are split wherever any of them does.

use std::collections::BTreeMap;

use super::passage::{Matched, NONE, POINTS, Passage, Points, Sighting};
use crate::event::{Key, Point};

/// Most ranges that are distinguished at a time; beyond that the oldest bytes are discarded.
const RANGES: usize = 1 << 18;
/// How many bytes behind the newest can still appear: the largest TCP window (RFC 7323 §2.3).
const REACH: i64 = 1 << 30;
/// Most transmissions of one range that are distinguished; more are taken for the newest.
const CHAIN: usize = 16;

/// Bytes from the key of the map to `end`, and the newest transmission of them.
#[derive(Debug, Clone, Copy)]
struct Range {
    end: i64,
    newest: u32,
}

/// Joins sightings of ranges in one direction of a connection into passages. Sightings are given in the order of their
/// times, as far as clocks allow.
pub struct Stream {
    /// The first point where a transmission is seen, as opposed to the application's write.
    transmission: Option<Point>,
    /// The first point of all.
    origin: Option<Point>,
    reference: Option<i64>,
    ranges: BTreeMap<i64, Range>,
    furthest: [i64; POINTS],
    matched: Matched,
}

impl Stream {
    /// For a flow that is watched at these points.
    pub fn new(points: Points) -> Self {
        Self {
            transmission: points.at_or_after(Point::SendIp),
            origin: points.first(),
            reference: None,
            ranges: BTreeMap::new(),
            furthest: [i64::MIN; POINTS],
            matched: Matched::default(),
        }
    }

    /// Adds the next sighting. Other protocols, and acknowledgements without bytes, are ignored.
    pub fn push(&mut self, sighting: &Sighting) {
        let Key::Bytes { start } = sighting.key else { return };
        let start = self.unwrapped(start);
        let end = start + i64::from(sighting.bytes);
        self.count_order(sighting.point, start, end);
        self.split(start);
        self.split(end);
        let mut from = start;
        while from < end {
            let known = self.ranges.range(from..end).next().map(|(&start, range)| (start, *range));
            match known {
                Some((start, range)) if start == from => {
                    self.pass(start, range, sighting);
                    from = range.end;
                }
                _ => {
                    let until = known.map_or(end, |(start, _)| start);
                    self.begin(from, until, NONE, sighting);
                    from = until;
                }
            }
        }
        self.forget();
    }

    /// All passages. The application writes and reads bytes once, however often they are sent: the write belongs to the
    /// transmission that was read.
    pub fn finish(mut self) -> Matched {
        let newest: Vec<u32> = self.ranges.values().map(|range| range.newest).collect();
        for index in newest {
            self.settle(index);
        }
        self.matched
    }

    /// The sequence number without wrap-around: the one closest to the newest.
    fn unwrapped(&mut self, start: u32) -> i64 {
        let Some(reference) = self.reference else {
            self.reference = Some(start.into());
            return start.into();
        };
        let ahead = start.wrapping_sub(reference as u32) as i32;
        let unwrapped = reference + i64::from(ahead);
        self.reference = Some(reference.max(unwrapped));
        unwrapped
    }

    /// Splits the range that contains this position.
    fn split(&mut self, place: i64) {
        let Some((&start, &range)) = self.ranges.range(..place).next_back() else { return };
        if range.end <= place {
            return;
        }
        let newest = self.split_chain(range.newest, (range.end - place) as u32);
        self.ranges.insert(start, Range { end: place, newest: range.newest });
        self.ranges.insert(place, Range { end: range.end, newest });
    }

    /// Splits off the last `bytes` of the newest transmissions of a range as separate passages.
    fn split_chain(&mut self, newest: u32, bytes: u32) -> u32 {
        let mut chain = Vec::new();
        let mut index = newest;
        while let Some(passage) = self.matched.passages.get(index as usize)
            && chain.len() < CHAIN
        {
            chain.push(index);
            index = passage.previous;
        }
        let mut previous = NONE;
        for index in chain.into_iter().rev() {
            let passage = &mut self.matched.passages[index as usize];
            passage.bytes -= bytes;
            let tail = Passage { bytes, previous, ..*passage };
            previous = self.add(tail).unwrap_or(previous);
        }
        previous
    }

    fn add(&mut self, passage: Passage) -> Option<u32> {
        let index =
            u32::try_from(self.matched.passages.len()).ok().filter(|&index| index != NONE)?;
        self.matched.passages.push(passage);
        Some(index)
    }

    /// A known range: joins the transmission that it belongs to, or begins another.
    fn pass(&mut self, start: i64, range: Range, sighting: &Sighting) {
        let point = sighting.point;
        let bytes = u64::from((range.end - start) as u32);
        if let Some(index) = self.find(range.newest, sighting) {
            self.matched.passages[index as usize].note(sighting);
            self.tally(point, |tally| tally.seen += bytes);
        } else if Some(point) == self.transmission {
            self.matched.repeated += 1;
            self.begin(start, range.end, range.newest, sighting);
        } else if point != Point::Dropped && Some(point) != self.origin {
            self.tally(point, |tally| tally.duplicates += bytes);
        }
    }

    /// Among the transmissions that have not passed this point, the one with the same IP identification; otherwise the
    /// one that has come furthest; otherwise the newest, because what is resent was usually lost before. One that was read was
    /// not dropped.
    fn find(&self, newest: u32, sighting: &Sighting) -> Option<u32> {
        let mut best: Option<(bool, u8, u32)> = None;
        let mut index = newest;
        for _ in 0..CHAIN {
            let Some(passage) = self.matched.passages.get(index as usize) else { break };
            let same = sighting.ip_id != 0 && passage.ip_id == sighting.ip_id;
            let progress = passage.progress(sighting.point);
            let better = best.is_none_or(|(was, most, _)| (same, progress) > (was, most));
            let was_read = passage.at(Point::ReceiveCall).is_some();
            if better
                && !passage.has(sighting.point)
                && !(was_read && sighting.point == Point::Dropped)
            {
                best = Some((same, progress, index));
            }
            index = passage.previous;
        }
        best.map(|(_, _, index)| index)
    }

    /// A transmission of bytes, whether new or seen before.
    fn begin(&mut self, start: i64, end: i64, previous: u32, sighting: &Sighting) {
        let bytes = (end - start) as u32;
        let mut passage = Passage { previous, ..Passage::new(bytes) };
        passage.note(sighting);
        let Some(newest) = self.add(passage) else { return };
        self.tally(sighting.point, |tally| tally.seen += u64::from(bytes));
        self.ranges.insert(start, Range { end, newest });
    }

    /// A range is out of order if a later byte arrived before it. Retransmissions are not counted at the sender, where
    /// they are intended.
    fn count_order(&mut self, point: Point, start: i64, end: i64) {
        let Some(furthest) = self.furthest.get_mut(point as usize) else { return };
        if start < *furthest && point >= Point::ReceiveDevice {
            self.tally(point, |tally| tally.reordered += 1);
        } else {
            *furthest = (*furthest).max(end);
        }
    }

    fn tally(&mut self, point: Point, count: impl FnOnce(&mut super::Tally)) {
        if let Some(tally) = self.matched.tallies.get_mut(point as usize) {
            count(tally);
        }
    }

    /// Discards the oldest bytes: those out of reach, and those beyond the bound.
    fn forget(&mut self) {
        let reach = self.reference.unwrap_or(0) - REACH;
        while let Some(oldest) = self.ranges.first_entry() {
            if *oldest.key() >= reach && self.ranges.len() <= RANGES {
                return;
            }
            let Some((_, range)) = self.ranges.pop_first() else { return };
            self.settle(range.newest);
        }
    }

    /// Assigns the time of the write to the transmission that was read; otherwise to the last that arrived anywhere;
    /// otherwise to the newest.
    fn settle(&mut self, newest: u32) {
        let (mut writer, mut reader, mut best) = (None, newest, 0);
        let mut index = newest;
        while let Some(passage) = self.matched.passages.get(index as usize) {
            if passage.at(Point::SendCall).is_some() {
                writer = Some(index);
            }
            let progress = passage.progress(Point::Dropped);
            if progress > best && progress > Point::ReceiveDevice as u8 {
                (reader, best) = (index, progress);
            }
            index = passage.previous;
        }
        let Some(writer) = writer.filter(|&writer| writer != reader) else { return };
        let t_ns = self.matched.passages[writer as usize].take(Point::SendCall);
        self.matched.passages[reader as usize].put(Point::SendCall, t_ns);
    }
}
