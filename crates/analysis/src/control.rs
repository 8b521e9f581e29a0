//! Control of the stream server: when a controller noticed that a node was faulty, and when its standby was on air.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::tables::{ControlRow, UncompressedFrameRow};

use crate::stats::Distribution;
use crate::view::View;

/// A node that was faulty is said to have begun to be so this long before it was noticed, at most.
const BEFORE_NS: i64 = 5_000_000_000;

/// The end of a stream at one node and its beginning at another are this far apart at most.
const HANDOVER_NS: u64 = 1_000_000_000;

/// A stream that ends this long before the trial does, or later, was only stopped with the rest.
const STOPPING_NS: i64 = 1_000_000_000;

/// A stream that was given to a standby.
struct Replacement<'a> {
    stream: i64,
    /// When the controller noticed that its node was faulty.
    noticed_ns: i64,
    /// The node that was faulty.
    node: &'a str,
    /// Whether the node itself noticed it: it starved or lagged.
    told: bool,
}

/// The streams that controllers gave to standbys, and all frames that receivers had.
pub(crate) struct Replacements<'a> {
    /// What was replaced after the warm-up.
    replaced: Vec<Replacement<'a>>,
    /// The streams that were replaced, also in the warm-up.
    streams: BTreeSet<i64>,
    frames: BTreeMap<i64, Vec<&'a UncompressedFrameRow>>,
    control: Vec<&'a ControlRow>,
    /// When the warm-up ended.
    from_ns: i64,
    /// Until when the streams were wanted: the end of the trial, or when all of them were stopped by command.
    until_ns: i64,
}

impl<'a> Replacements<'a> {
    /// `None` if no controller took part.
    pub fn of(view: &View<'a>) -> Option<Self> {
        let mut control = view.within_trial(&view.records.control, |row| row.t_ns);
        control.sort_by_key(|row| row.t_ns);
        if !control.iter().any(|row| matches!(&*row.what, "leads" | "follows" | "ordered")) {
            return None;
        }
        let mut frames: BTreeMap<i64, Vec<&UncompressedFrameRow>> = BTreeMap::new();
        for row in view.within_trial(&view.records.uncompressed, |row| row.t_ns) {
            frames.entry(row.stream).or_default().push(row);
        }
        frames.values_mut().for_each(|rows| rows.sort_by_key(|row| row.frame));
        let from_ns = view.period.from_ns;
        let replaced = control.iter().filter(|row| &*row.what == "replaced");
        let replaced = replaced.filter_map(|row| Some((row.t_ns, replacement(&control, row)?)));
        let replaced: Vec<(i64, Replacement)> = replaced.collect();
        let streams = replaced.iter().map(|(_, own)| own.stream).collect();
        let later = replaced.into_iter().filter(|(t_ns, _)| *t_ns >= from_ns);
        let replaced = later.map(|(_, own)| own).collect();
        let until_ns = stopped_ns(&control).unwrap_or(view.duration_ns);
        Some(Self { replaced, streams, frames, control, from_ns, until_ns })
    }

    pub fn count(&self) -> usize {
        self.replaced.len()
    }

    /// Times that a node began to send a stream that another node ended.
    pub fn handed_over(&self) -> usize {
        let of = |what: &'static str| self.control.iter().filter(move |row| &*row.what == what);
        let ends = |began: &ControlRow, ended: &ControlRow| {
            ended.endpoint != began.endpoint
                && ended.stream == began.stream
                && began.t_ns.abs_diff(ended.t_ns) <= HANDOVER_NS
        };
        let began = of("started").filter(|row| row.stream.is_some() && row.t_ns >= self.from_ns);
        began.filter(|began| of("stopped").any(|ended| ends(began, ended))).count()
    }

    /// From the beginning of each fault to when it was noticed, in frame times.
    pub fn detected(&self) -> Distribution {
        Distribution::equal(self.replaced.iter().filter_map(|own| {
            let heard = self.rows(own.stream).filter_map(|row| Some((row.last_ns?, row.period_ns)));
            let (last_ns, period_ns) = heard.filter(|(at, _)| *at <= own.noticed_ns).last()?;
            let began_ns = self.told(own).unwrap_or(last_ns);
            Some((own.noticed_ns - began_ns) as f64 / period_ns as f64)
        }))
    }

    /// Since when a node that starves or lags had recorded that: what it recovered from before is another trouble.
    fn told(&self, own: &Replacement) -> Option<i64> {
        let recent = own.noticed_ns - BEFORE_NS..=own.noticed_ns;
        let rows = self.control.iter().filter(|row| {
            &*row.endpoint == own.node
                && recent.contains(&row.t_ns)
                && row.stream == Some(own.stream)
        });
        let (mut began, mut is_over) = (None, true);
        for row in rows.filter(|_| own.told) {
            match &*row.what {
                "starved" | "lagging" if is_over => (began, is_over) = (Some(row.t_ns), false),
                "recovered" => is_over = true,
                _ => {}
            }
        }
        began
    }

    /// From when each fault was noticed to the next packet of the stream, in frame times; if none came, to when the streams
    /// were no longer wanted.
    pub fn on_air(&self) -> Distribution {
        Distribution::equal(self.replaced.iter().filter_map(|own| {
            let period_ns = self.rows(own.stream).next()?.period_ns;
            let mut came = self.rows(own.stream).filter(|row| row.packets > 0);
            let first = came.find(|row| row.t_ns > own.noticed_ns);
            let until_ns = first.map_or(self.until_ns, |row| row.t_ns);
            Some((until_ns - own.noticed_ns) as f64 / period_ns as f64)
        }))
    }

    /// Frames lost by the replaced stream that lost most.
    pub fn gap_max(&self) -> Option<f64> {
        let streams = self.streams.iter().map(|stream| self.lost(*stream));
        streams.max().map(|lost| lost as f64)
    }

    /// Frames lost by the streams that were not replaced.
    pub fn others_lost(&self) -> f64 {
        let others = self.frames.keys().filter(|stream| !self.streams.contains(stream));
        others.map(|stream| self.lost(*stream)).sum::<usize>() as f64
    }

    /// Incomplete frames after the warm-up, and those that were wanted then after the stream had ended.
    fn lost(&self, stream: i64) -> usize {
        let later = self.rows(stream).filter(|row| row.t_ns >= self.from_ns);
        later.filter(|row| row.lost_packets > 0).count() + self.missing(stream)
    }

    /// Frame times that were wanted after a stream had ended at its receivers: there are no rows of them.
    fn missing(&self, stream: i64) -> usize {
        let mut last: BTreeMap<&str, &UncompressedFrameRow> = BTreeMap::new();
        for row in self.rows(stream) {
            let own = last.entry(&*row.endpoint).or_insert(row);
            if row.t_ns > own.t_ns {
                *own = row;
            }
        }
        let of = |row: &&UncompressedFrameRow| {
            let due_ns = row.due_ns.unwrap_or(row.t_ns);
            let frames = |ns: i64| ns.checked_div(row.period_ns).unwrap_or_default();
            // The last frame itself came.
            let left =
                frames((self.until_ns - STOPPING_NS).saturating_sub(due_ns)).saturating_sub(1);
            let in_warm_up = frames(self.from_ns.saturating_sub(due_ns).saturating_sub(1)).max(0);
            usize::try_from(left.saturating_sub(in_warm_up)).unwrap_or_default()
        };
        last.values().map(of).sum()
    }

    fn rows(&self, stream: i64) -> impl Iterator<Item = &'a UncompressedFrameRow> {
        self.frames.get(&stream).into_iter().flatten().copied()
    }
}

/// When all streams were stopped by an operator or a program; `None` if they were not, or were started again.
fn stopped_ns(control: &[&ControlRow]) -> Option<i64> {
    let is_command = |row: &&&ControlRow| {
        matches!(&*row.what, "action" | "accepted")
            && row.stream.is_none()
            && matches!(&*row.detail, "start" | "stop")
    };
    let last = control.iter().rfind(is_command)?;
    (&*last.detail == "stop").then_some(last.t_ns)
}

/// The controller notes a fault before it replaces what it concerns.
fn replacement<'a>(control: &[&'a ControlRow], row: &ControlRow) -> Option<Replacement<'a>> {
    let before = control.iter().filter(|own| own.t_ns <= row.t_ns && own.endpoint == row.endpoint);
    let mut faults = before.filter(|own| &*own.what == "fault");
    // "instead of NODE: …"
    let fault = faults.rfind(|own| {
        let named = own.node.as_deref().map(|node| format!("instead of {node}:"));
        named.is_some_and(|named| row.detail.starts_with(&named))
    })?;
    Some(Replacement {
        stream: row.stream?,
        noticed_ns: fault.t_ns,
        node: fault.node.as_deref()?,
        told: ["it starves", "it lags"].iter().any(|own| fault.detail.starts_with(own)),
    })
}
