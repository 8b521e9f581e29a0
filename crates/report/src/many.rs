//! The page of a run of very many trials: the main metrics of each, and a link to its own page.

use std::path::Path;

use suiro_outside::beneath;
use suiro_record::Folder;

use crate::OWN_PAGE;
use crate::number::significant;
use crate::page::{Page, PageTotals, PageTrial};

/// Significant digits of the values of such a page: a map cannot show more.
const DIGITS: u8 = 5;

/// Reduces a page to what a map, a scatter plot and a table of the main metrics show.
pub(crate) fn reduce(page: &mut Page, folder: &Folder) {
    page.many = Some(totals(&page.trials));
    let main: Vec<bool> = page.metrics.iter().map(|metric| metric.main).collect();
    for trial in &mut page.trials {
        keep(&mut trial.metrics, &main);
        trial.metrics.iter_mut().flatten().for_each(|value| *value = significant(*value, DIGITS));
        trial.own_page = has_own_page(folder, &trial.folder);
        trial.self_checks.clear();
        trial.links.clear();
        trial.cables.clear();
        trial.endpoints.clear();
        trial.series.clear();
        trial.stalls.clear();
    }
    for cell in &mut page.cells {
        // What effects there were is on the trials' own pages.
        cell.brief = None;
        keep(&mut cell.metrics, &main);
        for spread in cell.metrics.iter_mut().flatten() {
            spread.mean = significant(spread.mean, DIGITS);
            spread.sd = spread.sd.map(|value| significant(value, DIGITS));
            spread.ci95 = spread.ci95.map(|value| significant(value, DIGITS));
        }
    }
    keep(&mut page.metrics, &main);
    page.series.clear();
    page.panels.clear();
    if let Some(study) = &mut page.published {
        study.figures.clear();
    }
}

fn keep<T>(values: &mut Vec<T>, wanted: &[bool]) {
    let mut wanted = wanted.iter();
    values.retain(|_| wanted.next().copied().unwrap_or(false));
}

fn has_own_page(folder: &Folder, trial: &str) -> bool {
    beneath::open(folder.root(), &Path::new(trial).join(OWN_PAGE)).is_ok()
}

fn totals(trials: &[PageTrial]) -> PageTotals {
    let mut totals = PageTotals::default();
    for part in trials.iter().flat_map(|trial| &trial.self_checks).flat_map(|check| &check.checks) {
        let count = match part.ok {
            Some(true) => &mut totals.checks_passed,
            Some(false) => &mut totals.checks_failed,
            None => &mut totals.checks_skipped,
        };
        *count += 1;
    }
    for link in trials.iter().flat_map(|trial| &trial.links) {
        totals.offered += link.offered;
        totals.unaccounted += link.unaccounted;
        let late = link.lateness.p99_us.into_iter().chain(totals.late_p99_us);
        totals.late_p99_us = late.reduce(f64::max);
    }
    totals
}
