//! What was measured next to what a study published.
//!
//! A finding is judged over the means of the valid repetitions, and in each repetition by itself: the verdict is that of
//! the means if the repetitions support it, and else "not shown". So is a finding whose condition (`given`) is not shown: the
//! run cannot decide it. What cannot be
//! judged, because a cell was not run, was skipped or is not valid, is `None` with the reason.

mod cells;
mod evaluate;
mod tables;
mod words;

use std::collections::BTreeSet;

use suiro_record::words::FindingVerdict;
use suiro_record::{Finding, Findings, TrialSummary};
use suiro_study::Study;

use cells::{Cells, Which};
use evaluate::{Judged, evaluate};

/// Judges every finding of a study and compares its tables.
pub fn judge(study: &Study, trials: &[TrialSummary]) -> Findings {
    let findings = study.findings.iter().map(|finding| one(study, finding, trials)).collect();
    let tables = study.tables.iter().map(|table| tables::compare(study, table, trials)).collect();
    Findings { study: Some(study.id.clone()), findings, tables }
}

/// The trials of a study's cell, a label on each of its axes: indices into `trials`.
///
/// # Errors
/// Why it has none: it was not run, or several cells of the run are this one.
pub fn trials_of(
    study: &Study,
    trials: &[TrialSummary],
    cell: &[usize],
) -> Result<Vec<usize>, String> {
    let found = Cells::new(study, trials, Which::Means).trials_of(cell)?;
    let index = |one: &TrialSummary| trials.iter().position(|trial| std::ptr::eq(trial, one));
    Ok(found.into_iter().filter_map(index).collect())
}

/// The names of a study's metrics that no summary can have.
pub fn unknown_names(study: &Study) -> Vec<&str> {
    let metrics = study.metrics.iter().map(|metric| metric.metric.as_str());
    metrics.filter(|name| crate::describe(name).is_none()).collect()
}

fn one(study: &Study, finding: &suiro_study::Finding, trials: &[TrialSummary]) -> Finding {
    let cells = |which| Cells::new(study, trials, which);
    let repetitions: BTreeSet<u32> = trials.iter().map(|trial| trial.repetition).collect();
    let each: Vec<Cells<'_>> =
        repetitions.iter().map(|repetition| cells(Which::Repetition(*repetition))).collect();
    let means = evaluate(&finding.truth, &cells(Which::Means), &each);
    let given = finding.given.as_ref().map(|given| evaluate(given, &cells(Which::Means), &each));
    let doubt = given.as_ref().and_then(|given| doubt(&means, given));
    let verdict = means.verdict().map(|verdict| match doubt {
        Some(_) => FindingVerdict::Inconclusive,
        None => verdict,
    });
    let in_one =
        |cells| evaluate(&finding.truth, cells, &[]).verdict().and_then(FindingVerdict::truth);
    let alone: Vec<(u32, Option<bool>)> =
        repetitions.into_iter().zip(each.iter().map(in_one)).collect();
    let count = |wanted: fn(&Option<bool>) -> bool| {
        let found = alone.iter().filter(|(_, holds)| wanted(holds)).count();
        u32::try_from(found).expect("fewer repetitions than 2³²: each has a number")
    };
    Finding {
        id: finding.id.clone(),
        claim: finding.claim.clone(),
        published: finding.published.clone(),
        measured: words::measured(given.iter().chain([&means])),
        holds: verdict.and_then(FindingVerdict::truth),
        verdict,
        because: doubt.unwrap_or_else(|| because(&means, &alone, finding.caveat.as_deref())),
        formula: finding.formula.clone(),
        note: finding.note.clone(),
        judged_in: count(Option::is_some),
        held_in: count(|holds| *holds == Some(true)),
    }
}

/// Why a finding that could be judged is not: its condition is not shown. `None` if it is.
fn doubt(means: &Judged, given: &Judged) -> Option<String> {
    means.verdict()?;
    let why = match given.verdict() {
        Some(FindingVerdict::Holds) => return None,
        Some(FindingVerdict::Inconclusive) => words::unsure(given),
        Some(FindingVerdict::DoesNotHold) => words::failures(given),
        None => Some(words::missing(&given.missing)),
    };
    Some(
        ["not judged: its condition is inconclusive".to_owned()]
            .into_iter()
            .chain(why)
            .collect::<Vec<_>>()
            .join("; "),
    )
}

/// The verdict's reason: what does not have, or how often it held and where it did not.
fn because(means: &Judged, alone: &[(u32, Option<bool>)], caveat: Option<&str>) -> String {
    let Some(verdict) = means.verdict() else { return words::missing(&means.missing) };
    let judged = alone.iter().filter(|(_, holds)| holds.is_some()).count();
    let held = alone.iter().filter(|(_, holds)| *holds == Some(true)).count();
    let against: Vec<String> = alone
        .iter()
        .filter(|(_, holds)| *holds == Some(false))
        .map(|(repetition, _)| repetition.to_string())
        .collect();
    let mut text = match (judged, alone.len()) {
        (0, _) => "no repetition can be judged by itself".to_owned(),
        (1, 1) => "one repetition".to_owned(),
        _ => format!("held in {held} of {judged} repetitions"),
    };
    if judged > 1 && held > 0 && held < judged {
        text.push_str(&format!(", not in {}", against.join(", ")));
    }
    let unjudged = alone.len() - judged;
    if unjudged > 0 && judged > 0 {
        text.push_str(&format!("; {unjudged} more cannot be judged"));
    }
    let why = match verdict {
        FindingVerdict::Holds => None,
        FindingVerdict::Inconclusive => words::unsure(means),
        FindingVerdict::DoesNotHold => words::failures(means),
    };
    let caveat = caveat.filter(|_| verdict != FindingVerdict::Holds).map(str::to_owned);
    [why, Some(text), caveat].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod s1_tests;

#[cfg(test)]
mod s3_tests;
