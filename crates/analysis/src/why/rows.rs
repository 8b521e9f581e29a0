//! Table `causes`, and stretches of time.

use suiro_record::tables::CauseRow;
use suiro_record::words::{Cause, Effect};

use super::slices::Slices;
use super::{Evidence, Explained, Limit, Subject, Why};

/// Neighbouring slices of one cause as one stretch, without evidence.
pub(super) fn stretches(causes: &[Option<Cause>], slices: Slices) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::new();
    for (index, cause) in causes.iter().enumerate() {
        let (Some(cause), (from_ns, to_ns)) = (*cause, slices.span(index)) else { continue };
        match limits.last_mut() {
            Some(last) if last.cause == cause && last.to_ns == from_ns => last.to_ns = to_ns,
            _ => limits.push(Limit { from_ns, to_ns, cause, evidence: Vec::new() }),
        }
    }
    limits
}

/// The rows of table `causes`: effects in the order of time, then what limited each viewer and flow, over the trial
/// and stretch by stretch.
pub fn rows(why: &Why) -> Vec<CauseRow> {
    let mut rows = Vec::new();
    let mut number = 0;
    for effect in &why.effects {
        rows.extend(of_effect(effect, number));
        number += 1;
    }
    for subject in &why.subjects {
        let (Some(first), Some(last)) = (subject.limits.first(), subject.limits.last()) else {
            continue;
        };
        for (cause, share) in subject.shares() {
            let span = (first.from_ns, last.to_ns);
            rows.push(row(
                &subject.name,
                (Effect::Trial, number),
                span,
                (cause, share),
                String::new(),
            ));
        }
        number += 1;
        for limit in &subject.limits {
            rows.push(of_limit(subject, limit, number));
            number += 1;
        }
    }
    rows
}

fn of_effect(effect: &Explained, number: u64) -> impl Iterator<Item = CauseRow> {
    let evidence = joined(effect.chain.iter().map(|step| &step.evidence));
    effect.shares.iter().enumerate().map(move |(place, share)| CauseRow {
        sentence: (place == 0).then(|| effect.sentence.as_str().into()),
        ..row(
            &effect.subject,
            (effect.effect, number),
            (effect.from_ns, effect.to_ns),
            *share,
            evidence.clone(),
        )
    })
}

fn of_limit(subject: &Subject, limit: &Limit, number: u64) -> CauseRow {
    let span = (limit.from_ns, limit.to_ns);
    let evidence = joined(limit.evidence.iter());
    row(&subject.name, (Effect::Limit, number), span, (limit.cause, 1.0), evidence)
}

fn row(
    subject: &str,
    (effect, number): (Effect, u64),
    (t_ns, to_ns): (i64, i64),
    (cause, share): (Cause, f64),
    evidence: String,
) -> CauseRow {
    CauseRow {
        t_ns,
        to_ns,
        subject: subject.into(),
        effect,
        number,
        cause,
        share,
        evidence: evidence.into(),
        sentence: None,
        proof: None,
    }
}

fn joined<'a>(evidence: impl Iterator<Item = &'a Evidence>) -> String {
    let mut words: Vec<String> = evidence.map(Evidence::to_string).collect();
    words.dedup();
    words.join("; ")
}
