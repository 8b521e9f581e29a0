//! Causes of a results folder: as documents, and in words.

use std::cmp::Reverse;
use std::path::Path;

use suiro_analysis::why::{Explained, Limit, Subject};
use suiro_analysis::{Why, explain};
use suiro_outside::printable;
use suiro_record::words::{Cause, Effect, Proof};
use suiro_record::{Cell, Folder, FolderError, PlannedTrial, RecordError};

use crate::causes::{CauseShare, ChainStep, EffectCauses, LimitCause, SubjectCauses, TrialCauses};
use crate::cell::label;
use crate::read::{self, NO_REASON};

/// Sentences that a terminal shows after a run.
const LONGEST: usize = 3;

/// Shares below this are not printed.
const LEAST: f64 = 0.005;

/// Writes table `causes` of a trial, with what was proved. What was proved before of other causes stays.
///
/// # Errors
/// The table cannot be written.
pub fn keep_proofs(
    folder: &Folder,
    planned: &PlannedTrial,
    trial: &TrialCauses,
) -> Result<(), RecordError> {
    read::write_causes_again(&folder.trial(planned), &trial.why, |row| {
        trial.proof(usize::try_from(row.number).ok()?, row.cause)
    })
}

/// How many causes were proved, refuted and not tried, in words.
pub fn proofs_text(trials: &[TrialCauses]) -> String {
    let causes = trials.iter().flat_map(|trial| &trial.effects).flat_map(|effect| &effect.causes);
    let verdicts: Vec<Proof> =
        causes.filter_map(|share| Some(share.proof.as_ref()?.verdict)).collect();
    let count = |verdict| verdicts.iter().filter(|it| **it == verdict).count();
    let [proved, refuted, not] = [Proof::Proved, Proof::Refuted, Proof::NotTried].map(count);
    format!("causes: {proved} proved, {refuted} refuted, {not} not tried\n")
}

/// What the records say about the causes of the trials that `chosen` holds for. Nothing is written.
///
/// # Errors
/// The manifest cannot be read. What is wrong with a trial is its `problem`.
pub fn causes(
    folder: &Folder,
    chosen: impl Fn(&PlannedTrial) -> bool,
) -> Result<Vec<TrialCauses>, FolderError> {
    let manifest = folder.manifest()?;
    Ok(manifest.plan.iter().filter(|planned| chosen(planned)).map(|it| of(folder, it)).collect())
}

fn of(folder: &Folder, planned: &PlannedTrial) -> TrialCauses {
    let (why, invalid_because, problem) = match read::whole(folder, planned) {
        Ok((outcome, records)) => {
            let reason = || outcome.invalid_because.as_deref().unwrap_or(NO_REASON).to_owned();
            (explain(&outcome, &records), (!outcome.valid).then(reason), None)
        }
        Err(problem) => (Why::default(), None, Some(problem)),
    };
    TrialCauses {
        cell: planned.cell.clone(),
        repetition: planned.repetition,
        problem,
        invalid_because,
        subjects: why.subjects.iter().map(subject).collect(),
        effects: why.effects.iter().map(effect).collect(),
        left_out: why.left_out as u64,
        why,
    }
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

fn subject(subject: &Subject) -> SubjectCauses {
    let shares = subject.shares().into_iter().map(|(cause, share)| (cause.name(), share));
    let limit = |limit: &Limit| LimitCause {
        from_s: seconds(limit.from_ns),
        to_s: seconds(limit.to_ns),
        cause: limit.cause,
        evidence: limit.evidence.iter().map(ToString::to_string).collect(),
    };
    SubjectCauses {
        name: subject.name.clone(),
        is_viewer: subject.is_viewer,
        shares: shares.collect(),
        limits: subject.limits.iter().map(limit).collect(),
    }
}

/// An effect as a document.
pub(crate) fn effect(effect: &Explained) -> EffectCauses {
    let causes = effect.shares.iter().map(|(cause, share)| CauseShare {
        cause: *cause,
        share: *share,
        proof: None,
    });
    let chain = effect
        .chain
        .iter()
        .map(|step| ChainStep { what: step.what.clone(), evidence: step.evidence.to_string() });
    EffectCauses {
        subject: effect.subject.clone(),
        effect: effect.effect,
        from_s: seconds(effect.from_ns),
        to_s: seconds(effect.to_ns),
        causes: causes.collect(),
        chain: chain.collect(),
        sentence: effect.sentence.clone(),
    }
}

/// Causes for a terminal: for each trial what limited its viewers and flows, then its effects or the `only` one, each with where
/// that is recorded.
pub fn causes_text(trials: &[TrialCauses], only: Option<u64>) -> String {
    let mut out = String::new();
    for trial in trials {
        out.push_str(&format!("{}{}\n", label(&trial.cell), repetition(trial)));
        if let Some(problem) = &trial.problem {
            out.push_str(&format!("  not known: {problem}\n"));
        }
        if let Some(because) = &trial.invalid_because {
            // A remedy stands on a line of its own.
            out.push_str(&format!("  not valid: {}\n", because.replace('\n', "\n    ")));
        }
        for subject in &trial.why.subjects {
            let shares = subject.shares().into_iter().filter(|(_, share)| *share >= LEAST);
            let words: Vec<String> = shares
                .map(|(cause, share)| format!("{} {:.0} %", cause_label(cause), share * 100.0))
                .collect();
            out.push_str(&format!("  {} was limited by: {}\n", subject.name, words.join(", ")));
        }
        let wanted = |number: &u64| only.is_none_or(|only| only == *number);
        for (number, effect) in (0..).zip(&trial.effects).filter(|(number, _)| wanted(number)) {
            let subject = named(&effect.subject, effect.effect);
            out.push_str(&format!("  [{number}] {subject} {}\n", effect.sentence));
            for step in &effect.chain {
                out.push_str(&format!("      {} <- {}\n", step.what, step.evidence));
            }
            for proof in effect.causes.iter().filter_map(|share| share.proof.as_ref()) {
                out.push_str(&format!("      {}\n", proof.sentence));
            }
        }
        if trial.left_out > 0 {
            out.push_str(&format!(
                "  {} more flows and effects are not explained\n",
                trial.left_out
            ));
        }
        out.push('\n');
    }
    printable(&out).into_owned()
}

/// The viewer before a sentence about it. One about its frames or its quality is no sentence that its name could begin.
fn named(viewer: &str, effect: Effect) -> String {
    match effect {
        Effect::Quality | Effect::FrameRate | Effect::Late | Effect::Missing => {
            format!("{viewer}:")
        }
        Effect::Stall | Effect::Freeze | Effect::Startup | Effect::Limit | Effect::Trial => {
            viewer.to_owned()
        }
    }
}

fn repetition(trial: &TrialCauses) -> String {
    if trial.repetition == 1 { String::new() } else { format!(" #{}", trial.repetition) }
}

/// What a legend calls a cause.
pub fn cause_label(cause: Cause) -> &'static str {
    suiro_analysis::why::label(cause)
}

/// What differs between two trials of one run, as a paragraph.
pub fn between(one: &TrialCauses, other: &TrialCauses) -> String {
    let [a, b] = [one, other].map(|trial| label(&trial.cell) + &repetition(trial));
    between_named((&a, one), (&b, other))
}

/// What differs between two trials, each with what it is called.
pub fn between_named((a, one): (&str, &TrialCauses), (b, other): (&str, &TrialCauses)) -> String {
    let text = suiro_analysis::why::between((a, b), &one.why, &other.why);
    printable(&text).into_owned()
}

/// The sentences of the effects of a run that were longest after the warm-up, which lasted so many nanoseconds; each with its
/// cell. Those that had ended with it are left out.
pub(crate) fn longest<'a>(trials: impl Iterator<Item = (&'a Cell, &'a Why, i64)>) -> Vec<String> {
    let effects = trials.flat_map(|(cell, why, warm_up_ns)| {
        let seen = why.effects.iter().filter(|effect| effect.effect != Effect::Quality);
        seen.filter_map(move |effect| Some((effect.length_after(warm_up_ns)?, cell, effect)))
    });
    let mut all: Vec<_> = effects.collect();
    all.sort_by_key(|(length_ns, ..)| Reverse(*length_ns));
    let told = |(_, cell, effect): &(i64, &Cell, &Explained)| {
        let viewer = named(&effect.subject, effect.effect);
        format!("{}: {viewer} {}", label(cell), effect.sentence)
    };
    all.iter().take(LONGEST).map(told).collect()
}

/// The longest effects for a terminal of that width, and how to see the others.
pub fn longest_text(sentences: &[String], folder: &Path, width: usize) -> String {
    let mut out = String::from("why, the longest:\n");
    for sentence in sentences {
        let mut line = String::from("  ");
        for word in sentence.split(' ') {
            if line.trim().is_empty() || line.chars().count() + word.chars().count() < width {
                line.push_str(if line.trim().is_empty() { "" } else { " " });
            } else {
                out.push_str(&line);
                line = String::from("\n    ");
            }
            line.push_str(word);
        }
        out.push_str(&line);
        out.push('\n');
    }
    out.push_str(&format!("all of them: suiro why {}\n", folder.display()));
    printable(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use suiro_record::Reader;
    use suiro_record::tables::CauseRow;
    use suiro_units::Seed;

    use super::*;
    use crate::Proved;

    fn freeze(from_ns: i64) -> Explained {
        Explained {
            subject: "viewer".into(),
            effect: Effect::Freeze,
            from_ns,
            to_ns: from_ns + 1_000_000_000,
            shares: vec![(Cause::Loss, 0.6), (Cause::Outage, 0.4)],
            chain: Vec::new(),
            sentence: String::new(),
            because: None,
            change: None,
        }
    }

    #[test]
    fn what_had_ended_with_the_warm_up_is_not_among_the_longest() {
        let cell = Cell::default();
        let named = |from_s: i64| Explained {
            sentence: format!("froze at {from_s} s"),
            ..freeze(from_s * 1_000_000_000)
        };
        let effects = vec![named(3), named(14), named(15)];
        let why = Why { effects, ..Why::default() };
        let left = |warm_up_ns: i64| longest([(&cell, &why, warm_up_ns)].into_iter());
        let second = 1_000_000_000;
        let count = |warm_up_ns| left(warm_up_ns).len();
        assert_eq!((count(0), count(15 * second), count(15 * second + second / 2)), (3, 1, 1));
        // Half of the freeze at 14 s is left: the other one is longer.
        let left = left(14 * second + second / 2);
        let ends = left.iter().zip(["froze at 15 s", "froze at 14 s"]);
        assert!(left.len() == 2 && ends.into_iter().all(|(a, b)| a.ends_with(b)), "{left:?}");
    }

    fn proved(verdict: Proof) -> Proved {
        Proved {
            verdict,
            change: None,
            was_s: 1.0,
            remains_s: None,
            seeds: 1,
            seeds_with_effect: 1,
            seeds_proved: 1,
            sentence: String::new(),
        }
    }

    #[test]
    fn what_was_proved_of_other_effects_stays() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path().to_owned());
        let planned = PlannedTrial {
            cell: Cell::default(),
            repetition: 1,
            seed: Seed(1),
            folder: "trials/all/1".into(),
            number: None,
        };
        std::fs::create_dir_all(folder.trial(&planned)).unwrap();
        let prove = |effect_number: usize, cause: Cause, verdict: Proof| {
            let effects = vec![freeze(0), freeze(5_000_000_000)];
            let mut trial = TrialCauses {
                cell: Cell::default(),
                repetition: 1,
                problem: None,
                invalid_because: None,
                subjects: Vec::new(),
                effects: effects.iter().map(effect).collect(),
                left_out: 0,
                why: Why { effects, ..Why::default() },
            };
            trial.prove(effect_number, cause, proved(verdict));
            keep_proofs(&folder, &planned, &trial).unwrap();
            let rows: Vec<CauseRow> = Reader::read_all(&folder.trial(&planned)).unwrap();
            rows.into_iter().map(|row| row.proof).collect::<Vec<_>>()
        };
        let (yes, no) = (Some(Proof::Proved), Some(Proof::Refuted));
        assert_eq!(prove(0, Cause::Loss, Proof::Proved), [yes, None, None, None]);
        assert_eq!(prove(1, Cause::Outage, Proof::Refuted), [yes, None, None, no]);
        assert_eq!(prove(0, Cause::Loss, Proof::Refuted), [no, None, None, no], "once more");
    }
}
