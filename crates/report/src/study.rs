//! A study's figures, to be drawn from this run.

use std::collections::BTreeSet;

use suiro_analysis::findings::trials_of;
use suiro_record::{Findings, Summary, TrialSummary};
use suiro_study::{Figure, Study, unit};

use crate::cell::short;
use crate::page::{PageBand, PageFigure, PageFigureLine, PageSeries, PageStudy};

/// What the page shows of a study.
pub(crate) fn published(
    study: &Study,
    findings: &Findings,
    summary: &Summary,
    series: &[PageSeries],
) -> PageStudy {
    let figures = study.figures.iter().map(|one| figure(study, one, summary, series)).collect();
    PageStudy {
        id: study.id.clone(),
        title: study.title.clone(),
        source: study.source.clone(),
        notes: study.notes.clone(),
        tables: findings.tables.clone(),
        figures,
    }
}

fn figure(study: &Study, figure: &Figure, summary: &Summary, series: &[PageSeries]) -> PageFigure {
    let Figure { id, title, seconds, unit, .. } = figure;
    let cells = figure.lines.iter().map(|line| trials_of(study, &summary.trials, &line.cell));
    let cells: Vec<Result<Vec<usize>, String>> = cells.collect();
    let common = common(&cells, &summary.trials);
    let lines = figure.lines.iter().zip(&cells).map(|(line, found)| {
        let (trial, because) = match found {
            Ok(found) => choose(found, common, &summary.trials),
            Err(why) => (None, Some(why.clone())),
        };
        let position = series.iter().position(|one| one.name == line.series);
        PageFigureLine {
            label: line.label.clone(),
            series: position.map(short),
            scale: unit::of_metric(&line.series).factor / unit.factor,
            trial: trial.map(short),
            because,
        }
    });
    let band = |band: &suiro_study::Band| PageBand {
        from: band.from,
        to: band.to,
        text: band.text.clone(),
    };
    PageFigure {
        id: id.clone(),
        title: title.clone(),
        unit: unit.name.to_owned(),
        mean_over_s: figure.mean_over_s,
        seconds: *seconds,
        axis: figure.axis.map(|axis| study.axes[axis].name.clone()),
        lines: lines.collect(),
        bands: figure.bands.iter().map(band).collect(),
        drawn: match common {
            Some(repetition) => format!("repetition {repetition}"),
            None => "the first valid repetition of each".to_owned(),
        },
    }
}

/// The first repetition that is valid in all cells that were run: lines of one repetition had the
/// same random numbers.
fn common(cells: &[Result<Vec<usize>, String>], trials: &[TrialSummary]) -> Option<u32> {
    let valid = |found: &Vec<usize>| -> BTreeSet<u32> {
        let trials = found.iter().map(|index| &trials[*index]).filter(|trial| trial.valid);
        trials.map(|trial| trial.repetition).collect()
    };
    let sets = cells.iter().flatten().map(valid).filter(|set| !set.is_empty());
    sets.reduce(|a, b| &a & &b)?.first().copied()
}

/// The trial to draw, or why there is none.
fn choose(
    found: &[usize],
    repetition: Option<u32>,
    trials: &[TrialSummary],
) -> (Option<usize>, Option<String>) {
    let valid = || found.iter().copied().filter(|index| trials[*index].valid);
    let chosen = valid().find(|index| Some(trials[*index].repetition) == repetition);
    let why = || found.iter().find_map(|index| trials[*index].invalid_because.clone());
    match chosen.or_else(|| valid().next()) {
        Some(index) => (Some(index), None),
        None => (None, Some(why().unwrap_or_else(|| "no trial is valid".to_owned()))),
    }
}
