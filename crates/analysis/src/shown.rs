//! What the outputs of converters showed, tick by tick.

use std::collections::BTreeMap;

use suiro_record::tables::UncompressedShownRow;
use suiro_record::words::Shown;

use crate::stats::Distribution;

/// All outputs of all converters, within the trial.
pub(crate) struct Converters<'a> {
    rows: Vec<&'a UncompressedShownRow>,
}

/// What the streams of one tick have of something.
#[derive(Clone, Copy)]
struct OfTick {
    streams: usize,
    value: Option<i64>,
    same: bool,
}

impl<'a> Converters<'a> {
    /// Those of these rows; `None` if there are none.
    pub fn of(rows: Vec<&'a UncompressedShownRow>) -> Option<Self> {
        (!rows.is_empty()).then_some(Self { rows })
    }

    pub fn streams(&self) -> usize {
        self.of_streams().len()
    }

    pub fn count(&self, outcome: Shown) -> f64 {
        self.rows.iter().filter(|row| row.outcome == outcome).count() as f64
    }

    pub fn skipped(&self) -> f64 {
        self.rows.iter().map(|row| row.skipped_frames as f64).sum()
    }

    /// Ticks at which all streams had begun, and none had ended for good.
    pub fn ticks(&self) -> f64 {
        let (first, last) = self.common();
        last.saturating_sub(first).saturating_add(1).max(0) as f64
    }

    /// Ticks at which not all streams showed a frame of the same number.
    pub fn apart(&self) -> Option<f64> {
        self.differing(|row| row.frame)
    }

    /// Ticks at which the parts were not of one frame; `None` if packets do not say.
    pub fn mixed(&self) -> Option<f64> {
        let known = self.rows.iter().all(|row| row.frame.is_none() || row.content.is_some());
        self.differing(|row| row.content).filter(|_| known)
    }

    /// How long before its tick each frame that was shown was complete, in milliseconds, with when that was.
    pub fn margins(&self) -> impl Iterator<Item = (i64, f64)> {
        self.rows.iter().filter_map(|row| Some((row.t_ns, row.margin_ns? as f64 / 1e6)))
    }

    pub fn margin_ms(&self) -> Distribution {
        Distribution::equal(self.margins().map(|(_, ms)| ms))
    }

    /// How late converters looked, in milliseconds.
    pub fn late_ms(&self) -> Distribution {
        Distribution::equal(self.rows.iter().map(|row| row.late_ns as f64 / 1e6))
    }

    /// Ticks without a new frame: when, and one each.
    pub fn underruns(&self) -> impl Iterator<Item = (i64, f64)> {
        let without = self.rows.iter().filter(|row| row.outcome == Shown::Underrun);
        without.map(|row| (row.t_ns, 1.0))
    }

    /// The first and the last tick of each stream.
    fn of_streams(&self) -> BTreeMap<i64, (i64, i64)> {
        let mut streams = BTreeMap::new();
        for row in &self.rows {
            let (first, last) = streams.entry(row.stream).or_insert((row.tick, row.tick));
            (*first, *last) = (row.tick.min(*first), row.tick.max(*last));
        }
        streams
    }

    /// The ticks that all streams have.
    fn common(&self) -> (i64, i64) {
        let streams = self.of_streams();
        let first = streams.values().map(|(first, _)| *first).max();
        let last = streams.values().map(|(_, last)| *last).min();
        (first.unwrap_or(0), last.unwrap_or(-1))
    }

    /// Common ticks at which streams differ in something, or one is missing; `None` of a single stream.
    fn differing(&self, of: fn(&UncompressedShownRow) -> Option<i64>) -> Option<f64> {
        let (all, (first, last)) = (self.streams(), self.common());
        let mut ticks: BTreeMap<i64, OfTick> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| (first..=last).contains(&row.tick)) {
            let value = of(row);
            let tick = ticks.entry(row.tick).or_insert(OfTick { streams: 0, value, same: true });
            tick.streams += 1;
            tick.same &= tick.value == value;
        }
        let in_step = ticks.values().filter(|tick| tick.same && tick.streams == all).count();
        (all > 1).then(|| self.ticks() - in_step as f64)
    }
}
