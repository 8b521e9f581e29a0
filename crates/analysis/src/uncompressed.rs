//! Streams of uncompressed video, and the rings of frames before their senders.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::Trial;
use suiro_record::tables::{UncompressedFrameRow, UncompressedRingRow};

use crate::bins::Bins;
use crate::held::Stretch;
use crate::stats::Distribution;
use crate::timeline::{Panel, Series, Style};
use crate::{Records, duration_ns};

/// Rings that are drawn each by itself; of more only what is over all.
const DRAWN_MAX: usize = 16;

/// All streams of all receivers, within the trial.
pub(crate) struct Streams<'a> {
    rows: Vec<&'a UncompressedFrameRow>,
}

impl<'a> Streams<'a> {
    /// `None` if nobody received any.
    pub fn of(trial: &Trial, records: &'a Records) -> Option<Self> {
        let duration_ns = duration_ns(trial);
        let within = |row: &&UncompressedFrameRow| (0..duration_ns).contains(&row.t_ns);
        let rows: Vec<_> = records.uncompressed.iter().filter(within).collect();
        (!rows.is_empty()).then_some(Self { rows })
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

    /// From when a ring's second frame was taken: before, it is filled, and its sender, which has the first
    /// one, waits to begin.
    fn means(&self, of: fn(&UncompressedRingRow) -> Option<f64>) -> Option<Vec<f64>> {
        let mut rings: BTreeMap<(&str, i64), Vec<f64>> = BTreeMap::new();
        let mut begun: BTreeSet<(&str, i64)> = BTreeSet::new();
        for row in &self.rows {
            let ring = (&*row.endpoint, row.stream);
            if let Some(value) = of(row).filter(|_| begun.contains(&ring)) {
                rings.entry(ring).or_default().push(value);
            }
            if row.sent_frames > 1 {
                begun.insert(ring);
            }
        }
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        (!rings.is_empty()).then(|| rings.into_values().map(mean).collect())
    }
}

/// A ring's seconds in order, by endpoint and stream.
type ByRing<'a> = BTreeMap<(&'a str, i64), Vec<&'a UncompressedRingRow>>;

/// What is taken of the row at a second's beginning and of that at its end.
type OfSecond = fn(&UncompressedRingRow, &UncompressedRingRow) -> Option<f64>;

/// The streams and rings of a trial over time.
pub(crate) fn series(records: &Records, bins: &Bins) -> Vec<Series> {
    of_streams(records, bins).into_iter().chain(of_rings(records, bins)).collect()
}

fn of_streams(records: &Records, bins: &Bins) -> Vec<Series> {
    let rows = &records.uncompressed;
    let late = rows.iter().filter(|row| row.packets > 0).filter_map(|row| {
        let late_ns = row.t_ns.saturating_sub(row.due_ns?);
        Some((row.t_ns, late_ns as f64 / 1e6))
    });
    let lost = bins.sum(rows.iter().map(|row| (row.t_ns, row.lost_packets as f64)));
    let any_lost = lost.iter().any(|lost| *lost > 0.0);
    let new = |panel, name: &str, label: &str, unit, style, doc, values| {
        let (name, label) = (name.to_owned(), label.to_owned());
        Series { name, panel, label, unit, style, doc, values }
    };
    vec![
        new(
            Panel::Lateness,
            "stream.lateness_ms",
            "latest",
            "ms",
            Style::Line,
            "from when a frame was due to its first packet, greatest of all streams",
            bins.max(late),
        ),
        new(
            Panel::Losses,
            "stream.lost_packets",
            "lost",
            "packets",
            Style::Bar,
            "packets that did not come, all streams",
            lost.into_iter().map(|lost| any_lost.then_some(lost)).collect(),
        ),
    ]
}

fn of_rings(records: &Records, bins: &Bins) -> Vec<Series> {
    let mut rings = ByRing::new();
    for row in &records.rings {
        rings.entry((&row.endpoint, row.stream)).or_default().push(row);
    }
    for rows in rings.values_mut() {
        rows.sort_by_key(|row| row.t_ns);
    }
    let waiting: OfSecond = |from, _| Some(from.waiting as f64);
    let read: OfSecond = |_, to| to.read_bps;
    let send: OfSecond = |_, to| to.send_bps;
    let mut all = vec![
        new(
            Panel::Ring,
            "waiting",
            "least waiting",
            "fewest frames that waited in any ring",
            over(&rings, bins, waiting, f64::min),
        ),
        new(
            Panel::Storage,
            "read_bps",
            "read",
            "rate of reading from storage, all rings",
            over(&rings, bins, read, |a, b| a + b),
        ),
        new(
            Panel::Storage,
            "send_bps",
            "sent",
            "frames handed to senders, all rings",
            over(&rings, bins, send, |a, b| a + b),
        ),
    ];
    if (2..=DRAWN_MAX).contains(&rings.len()) {
        for ((endpoint, stream), rows) in &rings {
            let each = [
                (Panel::Ring, "waiting", "frames that waited in this ring", waiting),
                (Panel::Storage, "read_bps", "rate of reading into this ring", read),
            ];
            for (panel, field, doc, of) in each {
                let field = format!("{endpoint}.{stream}.{field}");
                let drawn = new(panel, &field, "each ring", doc, binned(rows, bins, of));
                all.push(Series { style: Style::Context, ..drawn });
            }
        }
    }
    all
}

fn new(
    panel: Panel,
    field: &str,
    label: &str,
    doc: &'static str,
    values: Vec<Option<f64>>,
) -> Series {
    let unit = if panel == Panel::Ring { "frames" } else { "bit/s" };
    let (name, label) = (format!("ring.{field}"), label.to_owned());
    Series { name, panel, label, unit, style: Style::Line, doc, values }
}

/// One ring, from each of its rows to the next.
fn binned(rows: &[&UncompressedRingRow], bins: &Bins, of: OfSecond) -> Vec<Option<f64>> {
    bins.held_mean(rows.windows(2).filter_map(|pair| {
        let (from_ns, to_ns) = (pair[0].t_ns.max(0), pair[1].t_ns);
        let value = of(pair[0], pair[1])?;
        (from_ns < to_ns).then_some(Stretch { from_ns, to_ns, value })
    }))
}

/// All rings together.
fn over(rings: &ByRing, bins: &Bins, of: OfSecond, join: fn(f64, f64) -> f64) -> Vec<Option<f64>> {
    let each = rings.values().map(|rows| binned(rows, bins, of));
    let join = |all: Vec<Option<f64>>, ring: Vec<Option<f64>>| {
        let pairs = all.into_iter().zip(ring);
        pairs.map(|(a, b)| a.zip(b).map(|(a, b)| join(a, b)).or(a).or(b)).collect()
    };
    each.reduce(join).unwrap_or_default()
}
