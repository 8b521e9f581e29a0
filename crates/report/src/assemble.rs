//! From what was read to the summary and the page.

use std::collections::{BTreeMap, BTreeSet};

use suiro_analysis::why::One;
use suiro_analysis::{
    Better, CellSummary, INTERVAL, Instance, Look, Metric, Panel, Spread, catalogue, compare_some,
    describe_among, means,
};
use suiro_record::{
    Axis, Cell, Findings, Machine, Manifest, Meaning, Metrics, Summary, TrialSummary, label_text,
};
use suiro_study::Study;

use crate::Size;
use crate::cell::{label, short};
use crate::page::{
    Page, PageCause, PageCell, PageMachine, PageMetric, PagePanel, PageSeries, PageSpread,
    PageState, PageTrial, Points,
};
use crate::read::{NO_REASON, Read};
use crate::strip;
use crate::study::published;

/// `summary.json`. It takes the trials' metrics, because two copies of those of 100,000 trials fill a gigabyte.
pub(crate) fn summary(manifest: &Manifest, trials: &mut [Read]) -> Summary {
    let trials = trials.iter_mut().map(|read| TrialSummary {
        cell: read.planned.cell.clone(),
        repetition: read.planned.repetition,
        seed: read.planned.seed,
        valid: is_valid(read),
        invalid_because: invalid_because(read),
        skipped: read.outcome.as_ref().is_some_and(|outcome| outcome.skipped),
        metrics: std::mem::take(&mut read.metrics),
    });
    let trials: Vec<TrialSummary> = trials.collect();
    let cells = if trials.len() > Summary::ROWS_MAX { Vec::new() } else { means(&trials) };
    let interval = INTERVAL.to_owned();
    let scenario = manifest.scenario.clone();
    let mut summary = Summary { scenario, trials, cells, interval, ..Summary::default() };
    summary.metrics = metrics(&summary).into_iter().map(meaning).collect();
    summary
}

fn meaning(metric: PageMetric) -> (String, Meaning) {
    let better = match metric.better {
        Better::Higher => "higher",
        Better::Lower => "lower",
        Better::Neither => "neither",
    };
    let PageMetric { name, label, unit, doc: meaning, .. } = metric;
    (name, Meaning { label, unit, better: better.into(), meaning })
}

fn is_valid(read: &Read) -> bool {
    read.state == PageState::Complete && read.outcome.as_ref().is_some_and(|o| o.valid)
}

fn invalid_because(read: &Read) -> Option<String> {
    if is_valid(read) {
        return None;
    }
    let outcome = read.outcome.as_ref().and_then(|o| o.invalid_because.clone());
    let reasons: Vec<String> = outcome.into_iter().chain(read.problem.clone()).collect();
    Some(if reasons.is_empty() { NO_REASON.into() } else { reasons.join("; ") })
}

/// Everything that the page shows.
pub(crate) fn page(
    manifest: Manifest,
    summary: &Summary,
    findings: &Findings,
    study: Option<&Study>,
    trials: Vec<Read>,
    size: Size,
) -> Page {
    let mut metrics = metrics(summary);
    if size == Size::Many {
        metrics.retain(|metric| metric.main);
    }
    let series = series(&trials);
    let published = study.map(|study| published(study, findings, summary, &series));
    let shown: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
    let cells = compare_some(&summary.trials, &shown);
    let comparable = comparable(&cells, &trials);
    let causes = strip::causes(trials.iter().map(|read| &read.why));
    let mut cell_of = vec![0; trials.len()];
    for (index, cell) in cells.iter().enumerate() {
        for trial in &cell.trials {
            cell_of[*trial] = short(index);
        }
    }
    let brief = |cell: &CellSummary| {
        // What effects there were is on the trials' own pages.
        if size == Size::Many {
            return None;
        }
        let valid = cell.trials.iter().filter(|at| is_valid(&trials[**at]));
        let valid: Vec<One> =
            valid.filter_map(|at| one(&trials[*at], &summary.trials[*at])).collect();
        if valid.is_empty() { None } else { suiro_analysis::why::brief(&valid) }
    };
    let cells = cells.iter().map(|cell| PageCell {
        label: label(&cell.cell),
        brief: brief(cell),
        values: values(&cell.cell, &manifest.axes),
        trials: cell.trials.iter().map(|index| short(*index)).collect(),
        metrics: metrics
            .iter()
            .map(|m| cell.metrics.get(&m.name).copied().flatten().map(spread))
            .collect(),
    });
    let cells: Vec<PageCell> = cells.collect();
    let axes = with_cells(manifest.axes, &cells);
    let (machines, machine_of) = machines(trials.iter().map(Read::machine));
    let trials = trials.into_iter().zip(&summary.trials).zip(cell_of).zip(machine_of);
    let trials = trials.map(|(((read, row), cell), machine)| PageTrial {
        machine,
        ..trial(read, &row.metrics, cell, (&metrics, &series, &causes))
    });
    let trials = trials.collect();
    Page {
        title: manifest.title,
        scenario: manifest.scenario,
        study: manifest.study,
        started: manifest.started,
        seed: manifest.seed.to_string(),
        suiro: manifest.suiro,
        command: manifest.command,
        text: manifest.text,
        machine: manifest.machine,
        virtual_time: manifest.virtual_time,
        machines,
        versions: manifest.versions,
        axes,
        metrics,
        panels: panels(&series),
        causes,
        series,
        cells,
        comparable,
        trials,
        many: None,
        comparison: None,
        findings: findings.findings.clone(),
        published,
    }
}

/// Whether all cells asked the same of their links, by their first trials: of each direction rate, delay and loss, and the
/// rate over the trial. Queues may differ: which of them is the best is a fair question.
fn comparable(cells: &[CellSummary], trials: &[Read]) -> bool {
    let first = |cell: &CellSummary| {
        let run = |read: &&Read| read.outcome.as_ref().is_some_and(|outcome| !outcome.skipped);
        cell.trials.iter().map(|at| &trials[*at]).find(run).map(|read| &read.sums.asked)
    };
    let mut asked = cells.iter().filter_map(first);
    let Some(one) = asked.next() else { return true };
    asked.all(|other| alike(one, other))
}

/// Whether two trials asked the same of their links.
fn alike(one: &BTreeMap<String, f64>, other: &BTreeMap<String, f64>) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= RATES_ALIKE * a.abs().max(b.abs());
    let same = |(name, value): (&String, &f64)| other.get(name).is_some_and(|it| near(*value, *it));
    one.len() == other.len() && one.iter().all(same)
}

/// Rates that differ by less are alike: a link whose rate is random has another mean in every trial.
const RATES_ALIKE: f64 = 0.02;

/// A trial as a sentence about its cell takes it.
fn one<'a>(read: &'a Read, row: &'a TrialSummary) -> Option<One<'a>> {
    Some(One { trial: read.outcome.as_ref()?, metrics: &row.metrics, why: &read.why })
}

/// The machines that trials ran on, and for each trial which; none for a trial that did not record it.
fn machines<'a>(
    of_trials: impl Iterator<Item = Option<&'a Machine>>,
) -> (Vec<PageMachine>, Vec<Option<u32>>) {
    let mut found: Vec<PageMachine> = Vec::new();
    let mut place = |machine: &Machine| {
        let mut machine = machine.clone();
        // The priority of a trial's processes, which one that was skipped on the same machine did not have.
        machine.settings.remove("nice");
        let known = found.iter().position(|it| it.machine == machine);
        let place = known.unwrap_or(found.len());
        if known.is_none() {
            found.push(PageMachine { machine, trials: 0 });
        }
        found[place].trials += 1;
        short(place)
    };
    let places = of_trials.map(|machine| machine.map(&mut place)).collect();
    (found, places)
}

fn trial(
    read: Read,
    measured: &Metrics,
    cell: u32,
    (metrics, series, causes): (&[PageMetric], &[PageSeries], &[PageCause]),
) -> PageTrial {
    let (valid, invalid_because) = (is_valid(&read), invalid_because(&read));
    let Read { planned, state, outcome, timeline, why, flows, screens, warnings, .. } = read;
    let mut points: BTreeMap<String, Points> =
        timeline.series.into_iter().map(|s| (s.name, Points(s.values))).collect();
    let (started, duration_s) = outcome.as_ref().map(|o| (o.started.clone(), o.duration_s)).unzip();
    let warm_up_s = outcome.as_ref().map_or(0.0, |outcome| outcome.warm_up_s);
    let (self_checks, links, cables, endpoints) =
        outcome.map(|o| (o.self_checks, o.links, o.cables, o.endpoints)).unwrap_or_default();
    PageTrial {
        cell,
        repetition: planned.repetition,
        seed: planned.seed.to_string(),
        folder: planned.folder,
        own_page: false,
        state,
        valid,
        invalid_because,
        machine: None,
        started,
        duration_s,
        warm_up_s,
        metrics: metrics.iter().map(|m| measured.get(&m.name).copied().flatten()).collect(),
        self_checks,
        links,
        cables,
        endpoints,
        flows,
        screens,
        warnings,
        bin_s: timeline.bin_s,
        series: series.iter().map(|s| points.remove(&s.name)).collect(),
        stalls: timeline.stalls,
        limits: strip::limits(&why, causes, timeline.bin_s),
        effects: strip::effects(&why),
        effects_left_out: short(why.effects.len().saturating_sub(strip::EFFECTS_MAX)),
    }
}

/// The metrics that some trial has, in the catalogue's order, the general before the particular.
pub(crate) fn metrics(summary: &Summary) -> Vec<PageMetric> {
    let names = Summary::names(&summary.trials);
    let mut found: Vec<(usize, String, PageMetric)> = Vec::new();
    let bottlenecks = Bottlenecks::of(summary);
    for name in &names {
        if let Some((metric, instance)) = describe_among(name, &names) {
            let place = catalogue().position(|m| std::ptr::eq(m, metric));
            let words = instance.words();
            let mut one = page_metric(name, metric, &instance, &bottlenecks);
            if let Some(size) = size_of_vmaf(summary, name) {
                one.label.push_str(size);
            }
            found.push((place.unwrap_or(usize::MAX), words, one));
        }
    }
    found.sort_by(|a, b| (a.0, &a.1, &a.2.name).cmp(&(b.0, &b.1, &b.2.name)));
    found.into_iter().map(|(_, _, one)| one).collect()
}

/// At which size VMAF was computed, where it is not in the name: older folders have only the native one. `None` where no
/// trial has a value: nothing shows which it would be.
fn size_of_vmaf(summary: &Summary, name: &str) -> Option<&'static str> {
    let field = name.rsplit('.').next()?;
    let measured = |trial: &TrialSummary| trial.metrics.get(name).is_some_and(Option::is_some);
    if !field.contains("vmaf") || field.contains("native") || !summary.trials.iter().any(measured) {
        return None;
    }
    let native = |(name, value): (&String, &Option<f64>)| {
        value.is_some() && name.ends_with(".vmaf_native_mean")
    };
    let both = summary.trials.iter().any(|trial| trial.metrics.iter().any(native));
    Some(if both { ", 1080 lines" } else { ", native size" })
}

/// Which direction of each link is the bottleneck.
struct Bottlenecks<'a> {
    /// The links that it is known of, as names of metrics begin: `link.access`.
    links: BTreeSet<&'a str>,
    /// The directions that are used most in some trial: `link.access.up`.
    ways: BTreeSet<&'a str>,
}

impl<'a> Bottlenecks<'a> {
    fn of(summary: &'a Summary) -> Self {
        let mut found = Self { links: BTreeSet::new(), ways: BTreeSet::new() };
        for trial in summary.trials.iter().filter(|trial| trial.valid) {
            let mut most: BTreeMap<&str, (f64, &str)> = BTreeMap::new();
            for (name, value) in trial.metrics.iter() {
                let Some(way) = name.strip_suffix(".utilisation") else { continue };
                let Some((link, value)) = link_of(way).zip(*value) else { continue };
                let before = most.entry(link).or_insert((value, way));
                if value > before.0 {
                    *before = (value, way);
                }
            }
            found.links.extend(most.keys());
            found.ways.extend(most.values().map(|(_, way)| way));
        }
        found
    }

    /// Whether a metric is of a bottleneck: where that is not known, of what goes towards viewers.
    fn has(&self, name: &str, instance: &Instance) -> bool {
        let way = name.rsplit_once('.').map_or(name, |(way, _)| way);
        match link_of(way).is_some_and(|link| self.links.contains(link)) {
            true => self.ways.contains(way),
            false => instance.is_towards_viewers(),
        }
    }
}

/// `link.access` of `link.access.up`.
fn link_of(way: &str) -> Option<&str> {
    way.rsplit_once('.').map(|(link, _)| link)
}

fn page_metric(
    name: &str,
    metric: &Metric,
    instance: &Instance,
    bottlenecks: &Bottlenecks,
) -> PageMetric {
    // What all had, and what the bottleneck of each link carried.
    let general = match instance.direction {
        Some(_) => bottlenecks.has(name, instance),
        None => instance.name.is_none(),
    };
    PageMetric {
        name: name.to_owned(),
        label: match instance.words().as_str() {
            "" => metric.label.to_owned(),
            words => format!("{}, {words}", metric.label),
        },
        unit: metric.unit.to_owned(),
        better: metric.better,
        digits: metric.digits,
        main: metric.main && general,
        doc: metric.doc.to_owned(),
    }
}

/// Every kind of series that some trial has, by figure.
fn series(trials: &[Read]) -> Vec<PageSeries> {
    let mut kinds: Vec<PageSeries> = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for one in trials.iter().flat_map(|read| &read.timeline.series) {
        if seen.insert(&one.name) {
            kinds.push(PageSeries {
                name: one.name.clone(),
                panel: one.panel,
                label: one.quantity.label.to_owned(),
                instance: one.instance.name.clone(),
                direction: one.instance.direction,
                unit: one.quantity.unit.to_owned(),
                style: one.quantity.style,
                doc: one.quantity.doc.to_owned(),
            });
        }
    }
    kinds.sort_by_key(|kind| kind.panel);
    kinds
}

/// The panels of these series, in the order of the page.
fn panels(series: &[PageSeries]) -> Vec<PagePanel> {
    let used =
        |panel: &&Panel| !panel.look().of_a_cell && series.iter().any(|one| one.panel == **panel);
    let page_panel = |panel: &Panel| {
        let Look { title, direction, height_px, stalls, floating, quiet_up, .. } = panel.look();
        let (id, title) = (*panel, title.to_owned());
        PagePanel { id, title, direction, height_px, stalls, floating, quiet_up }
    };
    Panel::ALL.iter().filter(used).map(page_panel).collect()
}

fn spread(spread: Spread) -> PageSpread {
    let Spread { n, mean, sd, ci95 } = spread;
    PageSpread { n, mean, sd, ci95 }
}

fn values(cell: &Cell, axes: &[Axis]) -> Vec<String> {
    axes.iter().map(|axis| cell.get(&axis.name).map(label_text).unwrap_or_default()).collect()
}

/// The axes with those of their labels that a cell has: `--only` leaves out others.
fn with_cells(axes: Vec<Axis>, cells: &[PageCell]) -> Vec<Axis> {
    let found = axes.into_iter().enumerate().map(|(place, mut axis)| {
        let found: BTreeSet<&str> = cells.iter().map(|cell| cell.values[place].as_str()).collect();
        axis.labels.retain(|label| found.contains(label.as_str()));
        axis
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use suiro_record::Trial;

    use super::*;
    use crate::sums::asked;

    #[test]
    fn an_axis_has_the_labels_of_its_cells() {
        let axis = |name: &str, labels: &[&str]| Axis {
            name: name.into(),
            labels: labels.iter().map(|label| (*label).into()).collect(),
        };
        let cell = |values: [&str; 2]| PageCell {
            label: String::new(),
            brief: None,
            values: values.map(String::from).into(),
            trials: Vec::new(),
            metrics: Vec::new(),
        };
        let all = vec![axis("tcp", &["reno", "cubic", "bbr"]), axis("link", &["fast", "slow"])];
        let cells = [cell(["reno", "slow"]), cell(["bbr", "slow"])];
        let found = with_cells(all, &cells);
        assert_eq!(
            found.iter().map(Axis::named).collect::<Vec<_>>(),
            [("tcp", vec!["reno", "bbr"]), ("link", vec!["slow"])]
        );
    }

    #[test]
    fn the_size_of_vmaf_stands_wherever_the_number_does() {
        let label = |metrics: &[(&str, f64)]| {
            let known = |value: &f64| Some(*value).filter(|value| !value.is_nan());
            let metrics = metrics.iter().map(|(name, value)| ((*name).to_owned(), known(value)));
            let trial = TrialSummary {
                cell: Cell::new(),
                repetition: 1,
                seed: suiro_units::Seed(1),
                valid: true,
                invalid_because: None,
                skipped: false,
                metrics: metrics.collect(),
            };
            let summary = Summary { trials: vec![trial], ..Summary::default() };
            super::metrics(&summary).into_iter().map(|metric| metric.label).collect::<Vec<_>>()
        };
        let both = [("video.vmaf_mean", 68.7), ("video.vmaf_native_mean", 81.2)];
        assert_eq!(label(&both), ["VMAF, 1080 lines", "VMAF, native"]);
        assert_eq!(label(&both[..1]), ["VMAF, native size"], "a folder of before");
        let neither = both.map(|(name, _)| (name, f64::NAN));
        assert_eq!(label(&neither), ["VMAF", "VMAF, native"], "no screen was reconstructed");
    }

    #[test]
    fn trials_of_differing_priority_ran_on_one_machine() {
        let machine = |name: &str, nice: Option<&str>| {
            let nice = nice.map(|nice| ("nice".to_owned(), nice.to_owned()));
            let settings = nice.into_iter().collect();
            Machine {
                name: name.to_owned(),
                kernel: "6.1".to_owned(),
                system: "Debian".to_owned(),
                cpu: "any".to_owned(),
                cores: 2,
                memory_bytes: 1 << 30,
                clock_source: "tsc".to_owned(),
                privilege: suiro_record::words::Privilege::Root,
                settings,
            }
        };
        let of_trials = [
            Some(machine("a", Some("-10"))),
            Some(machine("a", None)),
            None,
            Some(machine("b", None)),
        ];
        let (found, places) = machines(of_trials.iter().map(Option::as_ref));
        assert_eq!(places, [Some(0), Some(0), None, Some(1)]);
        assert_eq!(found.iter().map(|it| it.trials).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn the_short_table_has_what_stations_of_hubs_sent() {
        let names =
            ["link.lan-ws1.up.loss_ratio", "link.wan.down.loss_ratio", "link.wan.up.loss_ratio"];
        assert_eq!(short_table(&names.map(|name| (name, 0.5))), names[..2]);
    }

    #[test]
    fn the_short_table_has_the_direction_that_is_the_bottleneck() {
        let names = |down: f64, up: f64| {
            short_table(&[
                ("link.down.utilisation", down),
                ("link.up.utilisation", up),
                ("link.down.loss_ratio", 0.0),
                ("link.up.loss_ratio", 0.1),
            ])
        };
        assert_eq!(names(0.9, 0.1), ["link.down.loss_ratio", "link.down.utilisation"]);
        assert_eq!(names(0.1, 0.9), ["link.up.loss_ratio", "link.up.utilisation"]);
    }

    /// What the short table has of a trial with these metrics.
    fn short_table(of: &[(&str, f64)]) -> Vec<String> {
        let trial = TrialSummary {
            cell: Cell::default(),
            repetition: 1,
            seed: suiro_units::Seed(1),
            valid: true,
            invalid_because: None,
            skipped: false,
            metrics: of.iter().map(|(name, value)| ((*name).to_owned(), Some(*value))).collect(),
        };
        let found = metrics(&Summary { trials: vec![trial], ..Summary::default() });
        found.into_iter().filter(|it| it.main).map(|it| it.name).collect()
    }

    #[test]
    fn what_is_drawn_of_one_cell_is_not_in_the_stack() {
        let of = |panel| PageSeries {
            name: String::new(),
            panel,
            label: String::new(),
            instance: None,
            direction: None,
            unit: "bit/s".into(),
            style: suiro_analysis::Style::Line,
            doc: String::new(),
        };
        let found = panels(&[of(Panel::Rivals), of(Panel::Flows), of(Panel::Rtt)]);
        assert_eq!(found.iter().map(|it| it.id).collect::<Vec<_>>(), [Panel::Rivals, Panel::Rtt]);
    }

    #[test]
    fn links_of_other_rates_are_not_compared() {
        let trial = |rates: &[f64], loss: Option<f64>| -> Trial {
            let check = serde_json::json!({
                "what": "loss", "unit": "ratio", "asked": loss, "measured": null, "at_least": null,
                "at_most": null, "ok": null, "note": null,
            });
            let link = serde_json::json!({
                "link": "access", "direction": "down", "attempt": 1, "checks": [check], "ok": true,
            });
            let rate = serde_json::json!({
                "link": "access", "direction": "down", "span_s": 1.0, "rate_bps": rates,
            });
            let trial = serde_json::json!({
                "cell": {}, "repetition": 1, "seed": 1, "valid": true, "invalid_because": null,
                "started": "2026-01-01T00:00:00Z", "duration_s": 2.0, "epoch_monotonic_ns": 0,
                "self_checks": [link], "links": [], "link_rates": [rate], "endpoints": [],
                "versions": {},
            });
            serde_json::from_value(trial).unwrap()
        };
        let one = asked(&trial(&[8e6, 1.5e6], None));
        assert!(alike(&one, &asked(&trial(&[8.01e6, 1.5e6], None))));
        assert!(!alike(&one, &asked(&trial(&[8e6, 4e6], None))), "it falls less");
        assert!(!alike(&one, &asked(&trial(&[8e6, 1.5e6], Some(0.01)))), "it loses packets");
    }
}
