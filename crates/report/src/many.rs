//! The page of a run of very many trials: the main metrics of each, column by column, and links to the trials' own pages.

use std::collections::BTreeMap;
use std::path::Path;

use suiro_outside::beneath;
use suiro_record::{Axis, Folder};

use crate::OWN_PAGE;
use crate::cell::short;
use crate::page::{
    Page, PageCell, PageColumn, PageException, PageMany, PageState, PageTotals, PageTrial,
    PageValues,
};

/// Trials that are not valid of which the page says why, and as many that were skipped; `summary.parquet` has all.
const REASONS_MAX: usize = 1000;

/// Trials of which the page has the warnings.
const WARNED_MAX: usize = 1000;

/// Turns the cells and trials of a page into columns: 100,000 trials with ten metrics take some 15 MB.
pub(crate) fn reduce(page: &mut Page, totals: PageTotals, folder: &Folder) {
    let cells = std::mem::take(&mut page.cells);
    let trials = std::mem::take(&mut page.trials);
    let repeated = cells.iter().any(|cell| cell.trials.len() > 1);
    let column = |index: usize| {
        let spreads = || cells.iter().map(move |cell| cell.metrics[index].as_ref());
        let mut column = PageColumn {
            mean: PageValues(spreads().map(|spread| Some(spread?.mean)).collect()),
            ..PageColumn::default()
        };
        if repeated {
            column.n = spreads().map(|spread| spread.map_or(0, |it| it.n)).collect();
            column.sd = PageValues(spreads().map(|spread| spread?.sd).collect());
            column.ci95 = PageValues(spreads().map(|spread| spread?.ci95).collect());
            column.trials = PageValues(trials.iter().map(|trial| trial.metrics[index]).collect());
        }
        column
    };
    let metrics = (0..page.metrics.len()).map(column).collect();
    let values = page.axes.iter().enumerate();
    let values = values.map(|(place, axis)| labels(axis, place, &cells)).collect();
    page.many = Some(PageMany {
        totals,
        values,
        metrics,
        exceptions: exceptions(&trials),
        warnings: trials.iter().map(|trial| trial.warnings.len() as u64).sum(),
        cells: trials.iter().map(|trial| trial.cell).collect(),
        repetitions: trials.iter().map(|trial| trial.repetition).collect(),
        durations: PageValues(trials.iter().map(|trial| trial.duration_s).collect()),
        machines: trials.iter().map(|trial| trial.machine).collect(),
        own_pages: own_pages(folder, &trials),
        folders: trials.into_iter().map(|trial| trial.folder).collect(),
    });
    page.series.clear();
    page.panels.clear();
    if let Some(study) = &mut page.published {
        study.figures.clear();
    }
}

/// What is particular about trials that are not complete and valid, or have warnings. Many of one kind leave the others theirs.
fn exceptions(trials: &[PageTrial]) -> Vec<PageException> {
    let (mut invalid, mut skipped, mut warned) = (0, 0, 0);
    let mut exceptions = Vec::new();
    for (index, trial) in trials.iter().enumerate() {
        let is_plain = trial.valid && trial.state == PageState::Complete;
        if is_plain && trial.warnings.is_empty() {
            continue;
        }
        let reasons = if trial.state == PageState::Skipped { &mut skipped } else { &mut invalid };
        *reasons += usize::from(trial.invalid_because.is_some());
        warned += usize::from(!trial.warnings.is_empty());
        let reason = trial.invalid_because.clone().filter(|_| *reasons <= REASONS_MAX);
        let warnings = if warned <= WARNED_MAX { trial.warnings.clone() } else { Vec::new() };
        exceptions.push(PageException {
            trial: short(index),
            state: trial.state,
            valid: trial.valid,
            invalid_because: reason,
            warnings,
        });
    }
    exceptions
}

/// The place of each cell's label on an axis.
fn labels(axis: &Axis, place: usize, cells: &[PageCell]) -> Vec<Option<u32>> {
    let known = axis.labels.iter().zip(0..);
    let known: BTreeMap<&str, u32> = known.map(|(label, at)| (label.as_str(), at)).collect();
    cells.iter().map(|cell| known.get(cell.values[place].as_str()).copied()).collect()
}

/// The trials that have a page of their own.
fn own_pages(folder: &Folder, trials: &[PageTrial]) -> Vec<u32> {
    let has = |trial: &PageTrial| {
        beneath::open(folder.root(), &Path::new(&trial.folder).join(OWN_PAGE)).is_ok()
    };
    let found = trials.iter().enumerate().filter(|(_, trial)| has(trial));
    found.map(|(index, _)| short(index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trial in this state, with a reason if it is not valid.
    fn trial(state: PageState, valid: bool, warnings: &[&str]) -> PageTrial {
        PageTrial {
            cell: 0,
            repetition: 1,
            seed: String::new(),
            folder: String::new(),
            own_page: false,
            state,
            valid,
            invalid_because: (!valid).then(|| "late".to_owned()),
            machine: None,
            started: None,
            duration_s: None,
            warm_up_s: 0.0,
            metrics: Vec::new(),
            self_checks: Vec::new(),
            links: Vec::new(),
            cables: Vec::new(),
            endpoints: Vec::new(),
            flows: Vec::new(),
            screens: Vec::new(),
            warnings: warnings.iter().map(|&text| text.to_owned()).collect(),
            bin_s: 1.0,
            series: Vec::new(),
            stalls: Vec::new(),
            limits: Vec::new(),
            effects: Vec::new(),
            effects_left_out: 0,
        }
    }

    #[test]
    fn warnings_and_skipped_trials_leave_invalid_ones_their_reasons() {
        let several = 0..WARNED_MAX + 100;
        let warned = several.clone().map(|_| trial(PageState::Complete, true, &["slow"]));
        let skipped = several.map(|_| trial(PageState::Skipped, false, &[]));
        let last = [trial(PageState::Complete, false, &[]), trial(PageState::Complete, true, &[])];
        let trials: Vec<PageTrial> = warned.chain(skipped).chain(last).collect();
        let found = exceptions(&trials);
        assert_eq!(found.len(), trials.len() - 1, "the last is complete and valid");
        let invalid = found.last().unwrap();
        assert_eq!(invalid.invalid_because.as_deref(), Some("late"));
        let with = |has: &dyn Fn(&PageException) -> bool| found.iter().filter(|it| has(it)).count();
        assert_eq!(with(&|it| !it.warnings.is_empty()), WARNED_MAX);
        assert_eq!(with(&|it| it.invalid_because.is_some()), REASONS_MAX + 1);
    }
}
