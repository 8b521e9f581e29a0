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

/// Trials that are not valid, or have warnings, of which the page says why; `summary.parquet` has all.
const REASONS_MAX: usize = 1000;

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
    let exceptions = trials.iter().enumerate().filter(|(_, trial)| {
        !(trial.valid && trial.state == PageState::Complete && trial.warnings.is_empty())
    });
    let exceptions = exceptions.enumerate().map(|(count, (index, trial))| PageException {
        trial: short(index),
        state: trial.state,
        valid: trial.valid,
        invalid_because: trial.invalid_because.clone().filter(|_| count < REASONS_MAX),
        warnings: if count < REASONS_MAX { trial.warnings.clone() } else { Vec::new() },
    });
    page.many = Some(PageMany {
        totals,
        values,
        metrics,
        exceptions: exceptions.collect(),
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
