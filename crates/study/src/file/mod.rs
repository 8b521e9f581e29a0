//! A study's TOML: read strictly, every name looked up.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::Deserialize;
use suiro_strict::Error;
use suiro_strict::document::{self, Node, entries, entry, take, words};
use suiro_strict::refusal::{Refusal, Span, listed};
use suiro_strict::source::Source;
use toml::Spanned;

use crate::formula::Truth;
use crate::unit::{self, Unit};
use crate::{Axis, Band, Entry, Figure, Finding, Line, Metric, Place, Row, Study, Table};

/// Most cells that the axes may span: what a formula may look at.
const CELLS_MAX: usize = 4096;

/// Most tables, figures or findings; most rows, columns, bands.
const ITEMS_MAX: usize = 256;

/// Reads a study; `name` is what errors call the file. Never panics, whatever the text.
///
/// # Errors
/// Everything that is wrong with it, up to a bound.
pub fn parse(text: &str, name: &str) -> Result<Study, Error> {
    let source = Source::new(name, text);
    let mut root = document::parse(text).map_err(|refusals| source.error(refusals))?;
    let mut reader = Reader { text, refusals: Vec::new(), axes: Vec::new(), metrics: Vec::new() };
    if let Some(node) = take(&mut root, "axes") {
        reader.axes = reader.axes(&node);
    }
    if let Some(node) = take(&mut root, "metrics") {
        reader.metrics = reader.metrics(&node);
    }
    let tables = reader.list(&mut root, "table", Reader::table);
    let figures = reader.list(&mut root, "figure", Reader::figure);
    let findings = reader.list(&mut root, "finding", Reader::finding);
    let sections = ["axes", "metrics", "table", "figure", "finding"];
    let header: Option<Header> = reader.keep(document::read(root, "the study", &sections));
    match header {
        Some(Header { id, title, source: published, notes }) if reader.refusals.is_empty() => {
            let Reader { axes, metrics, .. } = reader;
            let source = published;
            Ok(Study { id, title, source, notes, axes, metrics, tables, figures, findings })
        }
        _ => Err(source.error(reader.refusals)),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    id: String,
    title: String,
    source: String,
    notes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMetric {
    metric: String,
    unit: Option<Spanned<String>>,
    title: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    id: Spanned<String>,
    title: String,
    note: Option<String>,
    metric: Option<Spanned<String>>,
    tolerance: Spanned<f64>,
    columns: Vec<RawColumn>,
    rows: Vec<RawRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawColumn {
    title: String,
    #[serde(default)]
    at: Vec<Spanned<String>>,
    metric: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    title: Spanned<String>,
    #[serde(default)]
    at: Vec<Spanned<String>>,
    metric: Option<Spanned<String>>,
    published: Spanned<Vec<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFigure {
    id: Spanned<String>,
    title: String,
    series: Option<String>,
    unit: Option<Spanned<String>>,
    #[serde(default)]
    at: Vec<Spanned<String>>,
    lines: Option<Spanned<String>>,
    #[serde(default)]
    curves: Vec<RawCurve>,
    seconds: Spanned<f64>,
    mean_over: Option<Spanned<f64>>,
    #[serde(default)]
    bands: Vec<Spanned<RawBand>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCurve {
    label: String,
    series: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBand {
    from: f64,
    to: f64,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFinding {
    id: Spanned<String>,
    claim: String,
    published: Option<String>,
    note: Option<String>,
    caveat: Option<String>,
    given: Option<Spanned<String>>,
    holds: Spanned<String>,
}

struct Reader<'t> {
    text: &'t str,
    refusals: Vec<Refusal<Span>>,
    axes: Vec<Axis>,
    metrics: Vec<Metric>,
}

/// What has an id of its own within its section.
trait Identified {
    fn id(&self) -> &str;
}

macro_rules! identified {
    ($($kind:ty),+) => { $(impl Identified for $kind {
        fn id(&self) -> &str {
            &self.id
        }
    })+ };
}
identified!(Table, Figure, Finding);

impl Reader<'_> {
    fn keep<T>(&mut self, result: Result<T, Refusal<Span>>) -> Option<T> {
        result.map_err(|refusal| self.refusals.push(refusal)).ok()
    }

    fn refuse(&mut self, span: Range<usize>, message: impl Into<String>, expected: &str) {
        self.refusals.push(Refusal::new(span, message).expected(expected));
    }

    fn axes(&mut self, node: &Node<'_>) -> Vec<Axis> {
        let mut axes = Vec::new();
        for (name, span, node) in entries(node) {
            let array = node.get_ref().as_array().into_iter().flatten();
            let labels: Vec<String> = array.map(|label| words(label.get_ref())).collect();
            let distinct: BTreeSet<&String> = labels.iter().collect();
            if labels.is_empty() || distinct.len() < labels.len() {
                let message = format!("the axis `{name}` has no list of labels, or a label twice");
                self.refuse(span, message, "a list such as [\"dash\", \"hls\"]");
            }
            axes.push(Axis { name: name.to_owned(), labels });
        }
        let cells = axes.iter().try_fold(1, |cells: usize, axis| {
            cells.checked_mul(axis.labels.len()).filter(|cells| *cells <= CELLS_MAX)
        });
        if cells.is_none() {
            let message = format!("the axes span more than {CELLS_MAX} cells");
            self.refuse(node.span(), message, "fewer axes or labels");
            axes.clear();
        }
        axes
    }

    fn metrics(&mut self, node: &Node<'_>) -> Vec<Metric> {
        let mut metrics = Vec::new();
        for (name, span, node) in entries(node) {
            let what = format!("[metrics].{name}");
            if self.axes.iter().any(|axis| axis.name == name) {
                self.refuse(span, format!("`{name}` is an axis too"), "a name of its own");
            }
            let raw = document::read::<RawMetric>(node.clone(), &what, &[]);
            let Some(RawMetric { metric, unit, title }) = self.keep(raw) else { continue };
            let measured_in = unit::of_metric(&metric);
            let unit = self.unit(unit, measured_in);
            metrics.push(Metric { name: name.to_owned(), metric, title, measured_in, unit });
        }
        metrics
    }

    /// The unit asked for, which must be of the kind of what is measured.
    fn unit(&mut self, asked: Option<Spanned<String>>, measured_in: Unit) -> Unit {
        let Some(asked) = asked else { return measured_in };
        let fits = |unit: &&Unit| unit.dimension == measured_in.dimension;
        let name = asked.get_ref();
        if let Some(unit) = unit::UNITS.iter().filter(fits).find(|unit| unit.name == name) {
            return *unit;
        }
        let kind = measured_in.dimension.name();
        let known = unit::UNITS.iter().filter(fits).map(|unit| unit.name);
        let refusal = Refusal::new(asked.span(), format!("`{name}` is no unit of {kind}"));
        self.refusals.push(refusal.instead(name, known));
        measured_in
    }

    /// The entries of `[[key]]`, each with an id of its own.
    fn list<T: Identified>(
        &mut self,
        root: &mut Node<'_>,
        key: &str,
        read: fn(&mut Self, Node<'_>) -> Option<T>,
    ) -> Vec<T> {
        let Some(node) = take(root, key) else { return Vec::new() };
        let Some(array) = node.get_ref().as_array().filter(|array| array.len() <= ITEMS_MAX) else {
            let message = format!("`{key}` is not a list of at most {ITEMS_MAX}");
            self.refuse(node.span(), message, &format!("[[{key}]] before each"));
            return Vec::new();
        };
        let mut items: Vec<T> = Vec::new();
        for node in array.iter() {
            let place = entry(node, "id").map_or(node.span(), |id| id.span());
            let Some(item) = read(self, node.clone()) else { continue };
            if items.iter().any(|other| other.id() == item.id()) {
                let message = format!("a second {key} `{}`", item.id());
                self.refuse(place, message, "a different id for each finding");
            }
            items.push(item);
        }
        items
    }

    fn table(&mut self, node: Node<'_>) -> Option<Table> {
        let raw: RawTable = self.keep(document::read(node, "[[table]]", &[]))?;
        if !(raw.tolerance.get_ref().is_finite() && *raw.tolerance.get_ref() >= 1.0) {
            let message = format!("a tolerance of {}", raw.tolerance.get_ref());
            self.refuse(raw.tolerance.span(), message, "a factor of at least 1, such as 1.5");
        }
        let rows = raw.rows.iter().filter_map(|row| self.row(row, &raw)).collect();
        Some(Table {
            id: raw.id.get_ref().clone(),
            title: raw.title,
            note: raw.note,
            tolerance: *raw.tolerance.get_ref(),
            columns: raw.columns.into_iter().map(|column| column.title).collect(),
            rows,
        })
    }

    fn row(&mut self, row: &RawRow, table: &RawTable) -> Option<Row> {
        let published = row.published.get_ref();
        if published.len() != table.columns.len() {
            let message = format!("{} numbers", published.len());
            let expected = format!("{}, one per column", table.columns.len());
            self.refuse(row.published.span(), message, &expected);
            return None;
        }
        let entries = table.columns.iter().zip(published).map(|(column, published)| {
            let metric = column.metric.as_ref().or(row.metric.as_ref()).or(table.metric.as_ref());
            let metric = match metric {
                Some(name) => self.metric(name)?,
                None => {
                    self.refuse(table.id.span(), "no metric", "`metric` of table, row or column");
                    return None;
                }
            };
            let at: Vec<&Spanned<String>> = row.at.iter().chain(&column.at).collect();
            let place = self.place(&at)?;
            let cell: Option<Vec<usize>> = place.iter().copied().collect();
            if cell.is_none() {
                let open = self.axes.iter().zip(&place).find(|(_, label)| label.is_none());
                let axis = open.map(|(axis, _)| axis.name.clone()).unwrap_or_default();
                let message = format!("no label of the axis `{axis}`");
                self.refuse(
                    row.title.span(),
                    message,
                    "one label of every axis, from row and column together",
                );
            }
            Some(Entry { metric, cell: cell?, published: *published })
        });
        let entries: Option<Vec<Entry>> = entries.collect();
        Some(Row { title: row.title.get_ref().clone(), entries: entries? })
    }

    fn metric(&mut self, name: &Spanned<String>) -> Option<usize> {
        let found = self.metrics.iter().position(|metric| metric.name == *name.get_ref());
        if found.is_none() {
            let known: Vec<&str> = self.metrics.iter().map(|metric| metric.name.as_str()).collect();
            let message = format!("[metrics] has no `{}`", name.get_ref());
            let refusal = Refusal::new(name.span(), message).instead(name.get_ref(), known);
            self.refusals.push(refusal);
        }
        found
    }

    fn place(&mut self, at: &[&Spanned<String>]) -> Option<Vec<Option<usize>>> {
        let labels: Vec<(&str, Range<usize>)> =
            at.iter().map(|label| (label.get_ref().as_str(), label.span())).collect();
        let place = crate::parse::select(&labels, &self.axes);
        self.keep(place)
    }

    fn figure(&mut self, node: Node<'_>) -> Option<Figure> {
        let raw: RawFigure = self.keep(document::read(node, "[[figure]]", &[]))?;
        let at: Vec<&Spanned<String>> = raw.at.iter().collect();
        let place = self.place(&at)?;
        let (axis, lines) = self.lines(&raw, &place)?;
        let seconds = *raw.seconds.get_ref();
        if !(seconds.is_finite() && seconds > 0.0) {
            self.refuse(raw.seconds.span(), format!("{seconds} seconds"), "more than 0");
        }
        let mean_over = raw.mean_over.as_ref();
        if let Some(over) = mean_over.filter(|over| !(0.1..=seconds).contains(over.get_ref())) {
            let message = format!("means over {} seconds", over.get_ref());
            self.refuse(over.span(), message, &format!("0.1 to {seconds}"));
        }
        let mean_over_s = mean_over.map(|over| *over.get_ref());
        let unit = self.unit(raw.unit, unit::of_metric(&lines.first()?.series));
        let bands = self.bands(raw.bands, seconds);
        let RawFigure { id, title, .. } = raw;
        let id = id.into_inner();
        Some(Figure { id, title, unit, axis, lines, mean_over_s, seconds, bands })
    }

    fn bands(&mut self, raw: Vec<Spanned<RawBand>>, seconds: f64) -> Vec<Band> {
        let mut bands = Vec::new();
        for band in raw {
            let span = band.span();
            let RawBand { from, to, text } = band.into_inner();
            if !(0.0 <= from && from < to && to <= seconds) {
                let expected = format!("0 ≤ from < to ≤ {seconds}");
                self.refuse(span, format!("from {from} to {to} s"), &expected);
            }
            bands.push(Band { from, to, text });
        }
        bands
    }

    /// A figure's lines: one series of the labels of an axis, or several of one cell.
    fn lines(&mut self, raw: &RawFigure, place: &Place) -> Option<(Option<usize>, Vec<Line>)> {
        match (&raw.series, &raw.lines, raw.curves.as_slice()) {
            (Some(series), Some(axis), []) => {
                let (axis, lines) = self.by_label(series, axis, place)?;
                Some((Some(axis), lines))
            }
            (None, None, curves @ [first, ..]) => {
                let cell = self.whole(place, None, raw.id.span())?;
                let kind = unit::of_metric(first.series.get_ref()).dimension;
                let mut lines = Vec::new();
                for RawCurve { label, series } in curves {
                    let measures = unit::of_metric(series.get_ref()).dimension;
                    if measures != kind {
                        let message = format!("`{}` is {}", series.get_ref(), measures.name());
                        self.refuse(
                            series.span(),
                            message,
                            &format!("{}, as the first", kind.name()),
                        );
                    }
                    let (label, series) = (label.clone(), series.get_ref().clone());
                    lines.push(Line { label, series, cell: cell.clone() });
                }
                Some((None, lines))
            }
            _ => {
                let expected = "`series` and `lines` (one quantity of several cells), or `curves` (several of one)";
                self.refuse(raw.id.span(), "no lines, or two kinds of them", expected);
                None
            }
        }
    }

    fn by_label(
        &mut self,
        series: &str,
        lines: &Spanned<String>,
        place: &Place,
    ) -> Option<(usize, Vec<Line>)> {
        let open = |(axis, label): &(&Axis, &Option<usize>)| {
            label.is_none() && axis.name == *lines.get_ref()
        };
        let Some(axis) = self.axes.iter().zip(place).position(|pair| open(&pair)) else {
            let open = self.axes.iter().zip(place).filter(|(_, label)| label.is_none());
            let expected = listed(open.map(|(axis, _)| axis.name.as_str())).unwrap_or_default();
            let message = format!("`{}` is not an axis that varies", lines.get_ref());
            self.refuse(lines.span(), message, &expected);
            return None;
        };
        let labels = self.axes[axis].labels.clone();
        let of = |(label, name): (usize, String)| {
            let cell = self.whole(place, Some((axis, label)), lines.span())?;
            Some(Line { label: name, series: series.to_owned(), cell })
        };
        let lines: Option<Vec<Line>> = labels.into_iter().enumerate().map(of).collect();
        Some((axis, lines?))
    }

    /// A label on every axis: those chosen, and one more.
    fn whole(
        &mut self,
        place: &Place,
        more: Option<(usize, usize)>,
        span: Range<usize>,
    ) -> Option<Vec<usize>> {
        let label = |(axis, chosen): (usize, &Option<usize>)| {
            chosen.or(more.filter(|more| more.0 == axis).map(|more| more.1))
        };
        let cell: Option<Vec<usize>> = place.iter().enumerate().map(label).collect();
        if cell.is_none() {
            let open =
                place.iter().enumerate().find(|(axis, chosen)| label((*axis, *chosen)).is_none());
            let axis = open.map(|(axis, _)| self.axes[axis].name.clone()).unwrap_or_default();
            self.refuse(span, format!("no label of the axis `{axis}`"), "one label of it in `at`");
        }
        cell
    }

    fn finding(&mut self, node: Node<'_>) -> Option<Finding> {
        let raw: RawFinding = self.keep(document::read(node, "[[finding]]", &[]))?;
        let RawFinding { id, claim, published, note, caveat, given, holds } = raw;
        let given = match given {
            Some(given) => Some(self.formula(&given)?),
            None => None,
        };
        let truth = self.formula(&holds)?;
        let formula = holds.into_inner().split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Finding { id: id.into_inner(), claim, published, note, caveat, given, formula, truth })
    }

    /// What a formula means.
    fn formula(&mut self, text: &Spanned<String>) -> Option<Truth> {
        let truth = crate::parse::parse(text.get_ref(), &self.axes, &self.metrics);
        let truth =
            truth.map_err(|refusal| refusal.at(|span| Span::from(self.inside(text, span.bytes))));
        self.keep(truth)
    }

    /// Where in the file bytes of a quoted text stand; the whole text if escapes stand in between.
    fn inside(&self, quoted: &Spanned<String>, span: Option<Range<usize>>) -> Range<usize> {
        let whole = quoted.span();
        let raw = self.text.get(whole.clone()).unwrap_or_default();
        match (raw.find(quoted.get_ref().as_str()), span) {
            (Some(at), Some(span)) => {
                let start = whole.start + at;
                start + span.start..start + span.end
            }
            _ => whole,
        }
    }
}

#[cfg(test)]
mod tests;
