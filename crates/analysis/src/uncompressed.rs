//! Streams of uncompressed video, and the rings of frames before their senders.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::Trial;
use suiro_record::tables::{UncompressedFrameRow, UncompressedRingRow};

use crate::stats::Distribution;
use crate::{Records, duration_ns};

/// All streams of all receivers, within the trial.
pub(crate) struct Streams<'a> {
    rows: Vec<&'a UncompressedFrameRow>,
    duration_ns: i64,
}

impl<'a> Streams<'a> {
    /// `None` if nobody received any.
    pub fn of(trial: &Trial, records: &'a Records) -> Option<Self> {
        let duration_ns = duration_ns(trial);
        let within = |row: &&UncompressedFrameRow| (0..duration_ns).contains(&row.t_ns);
        let rows: Vec<_> = records.uncompressed.iter().filter(within).collect();
        (!rows.is_empty()).then_some(Self { rows, duration_ns })
    }

    pub fn count(&self) -> usize {
        let came = self.rows.iter().filter(|row| row.packets > 0);
        came.map(|row| row.stream).collect::<BTreeSet<_>>().len()
    }

    pub fn sum(&self, of: fn(&UncompressedFrameRow) -> i64) -> f64 {
        self.rows.iter().map(|row| of(row) as f64).sum()
    }

    pub fn rate_bps(&self) -> Option<f64> {
        (self.duration_ns > 0).then(|| self.sum(|row| row.bytes) * 8e9 / self.duration_ns as f64)
    }

    pub fn damaged(&self) -> Option<f64> {
        let sound: Vec<bool> = self.rows.iter().filter_map(|row| row.sound).collect();
        let damaged = sound.iter().filter(|sound| !**sound).count();
        (!sound.is_empty()).then_some(damaged as f64)
    }

    pub fn late(&self) -> Option<f64> {
        let due: Vec<_> = self.rows.iter().filter_map(|row| Some((row, row.due_ns?))).collect();
        let late = |(row, due_ns): &&(&&UncompressedFrameRow, i64)| {
            row.packets == 0 || row.t_ns.saturating_sub(*due_ns) > row.period_ns
        };
        (!due.is_empty()).then(|| due.iter().filter(late).count() as f64)
    }

    pub fn lateness_ms(&self) -> Distribution {
        let came = self.rows.iter().filter(|row| row.packets > 0);
        Distribution::equal(
            came.filter_map(|row| Some(row.t_ns.saturating_sub(row.due_ns?) as f64 / 1e6)),
        )
    }

    /// Of each frame time of which several streams came.
    pub fn skew_ms(&self) -> Distribution {
        let mut spans: BTreeMap<i64, (i64, i64, u32)> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.packets > 0) {
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

/// All rings of all senders, within the trial.
pub(crate) struct Rings<'a> {
    rows: Vec<&'a UncompressedRingRow>,
}

impl<'a> Rings<'a> {
    /// `None` if there was none.
    pub fn of(trial: &Trial, records: &'a Records) -> Option<Self> {
        let duration_ns = duration_ns(trial);
        let within = |row: &&UncompressedRingRow| (0..=duration_ns).contains(&row.t_ns);
        let rows: Vec<_> = records.rings.iter().filter(within).collect();
        (!rows.is_empty()).then_some(Self { rows })
    }

    pub fn sum(&self, of: fn(&UncompressedRingRow) -> i64) -> f64 {
        self.rows.iter().map(|row| of(row) as f64).sum()
    }

    pub fn fill_min(&self) -> Option<f64> {
        let filled = self
            .rows
            .iter()
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

    fn means(&self, of: fn(&UncompressedRingRow) -> Option<f64>) -> Option<Vec<f64>> {
        let mut rings: BTreeMap<(&str, i64), Vec<f64>> = BTreeMap::new();
        for row in &self.rows {
            if let Some(value) = of(row) {
                rings.entry((&row.endpoint, row.stream)).or_default().push(value);
            }
        }
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        (!rings.is_empty()).then(|| rings.into_values().map(mean).collect())
    }
}
