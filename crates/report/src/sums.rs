//! What a page of very many trials shows of one trial's links: sums instead of each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use suiro_record::Trial;
use suiro_record::words::CheckedQuantity;

use crate::page::PageTotals;

/// Of one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sums {
    pub totals: PageTotals,
    /// As [`asked`].
    pub asked: BTreeMap<String, f64>,
}

impl Sums {
    pub(crate) fn of(trial: &Trial) -> Self {
        let mut totals = PageTotals::default();
        for part in trial.self_checks.iter().flat_map(|check| &check.checks) {
            let count = match part.ok {
                Some(true) => &mut totals.checks_passed,
                Some(false) => &mut totals.checks_failed,
                None => &mut totals.checks_skipped,
            };
            *count += 1;
        }
        for link in &trial.links {
            totals.offered = totals.offered.saturating_add(link.offered);
            totals.unaccounted = totals.unaccounted.saturating_add(link.unaccounted);
            totals.late_p99_us = larger(totals.late_p99_us, link.lateness.p99_us);
        }
        Self { totals, asked: asked(trial) }
    }
}

/// The sums over all trials. Counts of a file may be anything: at most the greatest number.
pub(crate) fn total<'a>(all: impl Iterator<Item = &'a Sums>) -> PageTotals {
    all.fold(PageTotals::default(), |sum, Sums { totals: one, .. }| PageTotals {
        checks_passed: sum.checks_passed.saturating_add(one.checks_passed),
        checks_failed: sum.checks_failed.saturating_add(one.checks_failed),
        checks_skipped: sum.checks_skipped.saturating_add(one.checks_skipped),
        offered: sum.offered.saturating_add(one.offered),
        unaccounted: sum.unaccounted.saturating_add(one.unaccounted),
        late_p99_us: larger(sum.late_p99_us, one.late_p99_us),
    })
}

fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::max)
}

/// What a trial asked of its links, by name: of each direction rate, delay and loss, and the mean of a rate that varies.
pub(crate) fn asked(trial: &Trial) -> BTreeMap<String, f64> {
    let mut asked = BTreeMap::new();
    for link in &trial.self_checks {
        for check in &link.checks {
            let counts = matches!(
                check.what,
                CheckedQuantity::Rate | CheckedQuantity::Delay | CheckedQuantity::Loss
            );
            if let Some(value) = check.asked.filter(|_| counts) {
                asked.insert(format!("{} {} {:?}", link.link, link.direction, check.what), value);
            }
        }
    }
    for rate in trial.link_rates.iter().filter(|rate| !rate.rate_bps.is_empty()) {
        let mean = rate.rate_bps.iter().sum::<f64>() / rate.rate_bps.len() as f64;
        asked.insert(format!("{} {} mean", rate.link, rate.direction), mean);
    }
    asked
}
