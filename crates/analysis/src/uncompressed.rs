//! Streams of uncompressed video, and the rings of frames before their senders.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::tables::{UncompressedFrameRow, UncompressedRingRow};

use crate::Records;
use crate::bins::Bins;
use crate::group::grouped;
use crate::held::Stretch;
use crate::period::Period;
use crate::stats::Distribution;
use crate::still::Still;

/// All streams of all receivers, within the period.
pub(crate) struct Streams<'a> {
    rows: Vec<&'a UncompressedFrameRow>,
    /// When CPUs stalled, if the trial was watched.
    still: Option<Still>,
}

impl<'a> Streams<'a> {
    /// Those of these rows; `None` if there are none.
    pub fn of(rows: Vec<&'a UncompressedFrameRow>, still: Option<Still>) -> Option<Self> {
        (!rows.is_empty()).then_some(Self { rows, still })
    }

    pub fn count(&self) -> usize {
        let came = self.rows.iter().filter(|row| row.packets > 0);
        came.map(|row| row.stream).collect::<BTreeSet<_>>().len()
    }

    pub fn sum(&self, of: fn(&UncompressedFrameRow) -> i64) -> f64 {
        self.rows.iter().map(|row| of(row) as f64).sum()
    }

    /// From when the first frame of any stream was due to the end of the last one: before, senders make
    /// ready, and after, they are stopped one by one.
    pub fn rate_bps(&self) -> Option<f64> {
        let due = |row: &&UncompressedFrameRow| row.due_ns.unwrap_or(row.t_ns);
        let first = self.rows.iter().map(due).min()?;
        let last = self.rows.iter().map(|row| due(row).saturating_add(row.period_ns)).max()?;
        let span_ns = last.saturating_sub(first);
        (span_ns > 0).then(|| self.sum(|row| row.bytes) * 8e9 / span_ns as f64)
    }

    pub fn damaged(&self) -> Option<f64> {
        let sound: Vec<bool> = self.rows.iter().filter_map(|row| row.sound).collect();
        let damaged = sound.iter().filter(|sound| !**sound).count();
        (!sound.is_empty()).then_some(damaged as f64)
    }

    pub fn late(&self) -> Option<f64> {
        self.count_late(|_| true)
    }

    /// Those late frames during which a CPU stalled; `None` if that was not watched.
    pub fn late_still(&self) -> Option<f64> {
        let still = self.still.as_ref()?;
        self.count_late(|row| fell_into(row, still))
    }

    fn count_late(&self, which: impl Fn(&UncompressedFrameRow) -> bool) -> Option<f64> {
        let due: Vec<_> = self.rows.iter().filter_map(|row| Some((row, row.due_ns?))).collect();
        let late = |(row, due_ns): &&(&&UncompressedFrameRow, i64)| {
            let late = row.packets == 0 || row.t_ns.saturating_sub(*due_ns) > row.period_ns;
            late && which(row)
        };
        (!due.is_empty()).then(|| due.iter().filter(late).count() as f64)
    }

    /// The streams without those frames during which a CPU stalled; `None` if that was not watched.
    pub fn running(&self) -> Option<Streams<'a>> {
        let still = self.still.as_ref()?;
        let rows = self.rows.iter().copied().filter(|row| !fell_into(row, still)).collect();
        Some(Self { rows, still: None })
    }

    /// How long after it was due each frame began, in milliseconds, with when that was.
    pub fn late_starts(&self) -> impl Iterator<Item = (i64, f64)> {
        let came = self.rows.iter().filter(|row| row.packets > 0);
        came.filter_map(|row| {
            let late_ns = row.t_ns.saturating_sub(row.due_ns?);
            Some((row.t_ns, late_ns as f64 / 1e6))
        })
    }

    pub fn lateness_ms(&self) -> Distribution {
        Distribution::equal(self.late_starts().map(|(_, ms)| ms))
    }

    /// Packets that did not come, and when.
    pub fn losses(&self) -> impl Iterator<Item = (i64, f64)> {
        self.rows.iter().map(|row| (row.t_ns, row.lost_packets as f64))
    }

    /// Of each frame time of which several streams came; without a common clock, frames of one number need
    /// not be of one time.
    pub fn skew_ms(&self) -> Distribution {
        let mut spans: BTreeMap<i64, (i64, i64, u32)> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.packets > 0 && row.due_ns.is_some()) {
            let span = spans.entry(row.frame).or_insert((row.t_ns, row.t_ns, 0));
            *span = (span.0.min(row.t_ns), span.1.max(row.t_ns), span.2 + 1);
        }
        let several = spans.into_values().filter(|(_, _, streams)| *streams > 1);
        Distribution::equal(several.map(|(first, last, _)| last.saturating_sub(first) as f64 / 1e6))
    }

    pub fn burst_max(&self) -> Option<f64> {
        self.rows.iter().filter_map(|row| row.burst_packets).reduce(f64::max)
    }

    pub fn buffer_max(&self) -> Option<f64> {
        self.rows.iter().filter_map(|row| row.buffer_packets).reduce(f64::max)
    }

    pub fn over_ratio(&self) -> Option<f64> {
        let stamped = self.rows.iter().filter_map(|row| Some((row.over_packets?, row.packets)));
        let (over, all) =
            stamped.fold((0.0, 0.0), |(over, all), row| (over + row.0 as f64, all + row.1 as f64));
        (all > 0.0).then(|| over / all)
    }
}

/// True if a CPU stalled between when a frame was due and when it began.
fn fell_into(row: &UncompressedFrameRow, still: &Still) -> bool {
    let came_ns = if row.packets > 0 { row.t_ns } else { row.t_ns.saturating_add(row.period_ns) };
    row.due_ns.is_some_and(|due_ns| still.within(due_ns, came_ns))
}

/// The seconds of each ring, sorted, by endpoint and stream.
pub(crate) type ByRing<'a> = BTreeMap<(&'a str, i64), Vec<&'a UncompressedRingRow>>;

pub(crate) fn by_ring(records: &Records) -> ByRing<'_> {
    grouped(&records.rings, |row| (&*row.endpoint, row.stream), |row| row.t_ns)
}

/// What is taken of the row at a second's beginning and of that at its end.
type OfSecond = fn(&UncompressedRingRow, &UncompressedRingRow) -> Option<f64>;

/// One ring.
pub(crate) struct Ring<'a> {
    /// Its seconds, sorted.
    pub rows: &'a [&'a UncompressedRingRow],
}

impl Ring<'_> {
    /// From each of its rows to the next.
    pub fn binned(&self, bins: &Bins, of: OfSecond) -> Vec<Option<f64>> {
        bins.held_mean(self.rows.windows(2).filter_map(|pair| {
            let (from_ns, to_ns) = (pair[0].t_ns.max(0), pair[1].t_ns);
            let value = of(pair[0], pair[1])?;
            (from_ns < to_ns).then_some(Stretch { from_ns, to_ns, value })
        }))
    }
}

/// All rings of all senders.
pub(crate) struct Rings<'a> {
    rings: &'a ByRing<'a>,
    period: Period,
}

impl<'a> Rings<'a> {
    /// `None` if there was none.
    pub fn of(rings: &'a ByRing<'a>, period: Period) -> Option<Self> {
        let rings = Self { rings, period };
        let any = rings.rows().next().is_some();
        any.then_some(rings)
    }

    /// Those rows of a ring that lie within the period, its end included: a row is about the second before it.
    fn within(
        &self,
        rows: &'a [&'a UncompressedRingRow],
    ) -> impl Iterator<Item = &'a UncompressedRingRow> {
        let period = self.period;
        let within = rows.iter().copied().filter(move |row| (0..=period.to_ns).contains(&row.t_ns));
        within.filter(move |row| !period.is_counted_before(row.t_ns))
    }

    fn rows(&self) -> impl Iterator<Item = &'a UncompressedRingRow> {
        self.rings.values().flat_map(|rows| self.within(rows))
    }

    pub fn sum(&self, of: fn(&UncompressedRingRow) -> i64) -> f64 {
        self.rows().map(|row| of(row) as f64).sum()
    }

    /// Of the ring with most: repeats over frames sent.
    pub fn starved(&self) -> Option<f64> {
        let ratio = |rows: &'a Vec<&'a UncompressedRingRow>| {
            let last = self.within(rows).last()?;
            let before = self.period.last_before(rows, |row| row.t_ns);
            let (sent, repeated) =
                before.map_or((0, 0), |row| (row.sent_frames, row.repeated_frames));
            let sent = last.sent_frames.saturating_sub(sent);
            let repeated = last.repeated_frames.saturating_sub(repeated);
            (sent > 0).then(|| repeated as f64 / sent as f64)
        };
        self.rings.values().filter_map(ratio).reduce(f64::max)
    }

    pub fn fill_min(&self) -> Option<f64> {
        let filled = self
            .rows()
            .filter(|row| row.slots > 0)
            .map(|row| 1.0 - (row.free as f64 + row.reading as f64) / row.slots as f64);
        filled.reduce(f64::min)
    }

    /// Each ring's mean.
    pub fn read_bps(&self) -> Option<Vec<f64>> {
        self.means(|row| row.read_bps)
    }

    /// Each ring's mean.
    pub fn send_bps(&self) -> Option<Vec<f64>> {
        self.means(|row| row.send_bps)
    }

    /// From when a ring's second frame was taken: before, it is filled, and its sender, which has the first
    /// one, waits to begin.
    fn means(&self, of: fn(&UncompressedRingRow) -> Option<f64>) -> Option<Vec<f64>> {
        let mean = |rows: &'a Vec<&'a UncompressedRingRow>| {
            let mut values = Vec::new();
            let before = self.period.last_before(rows, |row| row.t_ns);
            let mut begun = before.is_some_and(|row| row.sent_frames > 1);
            for row in self.within(rows) {
                values.extend(of(row).filter(|_| begun));
                begun |= row.sent_frames > 1;
            }
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let means: Vec<f64> = self.rings.values().filter_map(mean).collect();
        (!means.is_empty()).then_some(means)
    }

    /// Every ring's values, joined bin by bin.
    pub fn joined(&self, bins: &Bins, of: OfSecond, join: fn(f64, f64) -> f64) -> Vec<Option<f64>> {
        let each = self.rings.values().map(|rows| Ring { rows }.binned(bins, of));
        let join = |all: Vec<Option<f64>>, ring: Vec<Option<f64>>| {
            let pairs = all.into_iter().zip(ring);
            pairs.map(|(a, b)| a.zip(b).map(|(a, b)| join(a, b)).or(a).or(b)).collect()
        };
        each.reduce(join).unwrap_or_default()
    }
}
