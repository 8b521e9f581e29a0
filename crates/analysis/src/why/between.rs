//! Two trials compared: what differs, and from when on.

use std::collections::BTreeMap;

use suiro_record::words::{Cause, Effect};

use super::account::{self, covered_ns};
use super::wording::{clause, label, seconds, span};
use super::{Subject, Why};

/// A cause whose shares differ by less is not worth a word.
const DIFFERS: f64 = 0.05;
/// Stretches of a comparison: each is judged by itself.
const STEP_NS: i64 = 1_000_000_000;
/// The kinds of effects that are compared, each with its words.
const KINDS: [(Effect, &str); 7] = [
    (Effect::Startup, "slow to start"),
    (Effect::Stall, "stalled"),
    (Effect::Freeze, "frozen"),
    (Effect::Late, "with late frames"),
    (Effect::Missing, "with missing frames"),
    (Effect::Quality, "at a lower quality"),
    (Effect::FrameRate, "at a lower frame rate"),
];

/// What differs between two trials, as a paragraph. `names` are what the two are called.
pub fn between(names: (&str, &str), one: &Why, other: &Why) -> String {
    let mut sentences = Vec::new();
    for (effect, words) in KINDS {
        let (a, b) = (total(one, effect), total(other, effect));
        if a != b {
            sentences.push(format!(
                "{} was {words} for {}, {} for {}.",
                names.0,
                span(a),
                names.1,
                span(b)
            ));
        }
    }
    let pairs =
        one.subjects.iter().filter_map(|subject| Some((subject, same(subject, one, other)?)));
    for (a, b) in pairs {
        sentences.extend(limited(names, a, b));
    }
    if sentences.is_empty() {
        return format!(
            "{} and {} do not differ in what limited them, nor in what viewers saw.",
            names.0, names.1
        );
    }
    sentences.join(" ")
}

/// For how long viewers had an effect of a kind. Of one viewer, a second counts once: a quality that falls in two steps is
/// lower than before the first until it is regained.
fn total(why: &Why, effect: Effect) -> i64 {
    let mut viewers: BTreeMap<&str, Vec<(i64, i64)>> = BTreeMap::new();
    for it in why.effects.iter().filter(|it| it.effect == effect) {
        viewers.entry(&it.subject).or_default().push((it.from_ns, it.to_ns));
    }
    super::total(viewers.into_values().map(|spans| covered_ns(spans.into_iter())))
}

/// The subject of the other trial that stands for the same: of that name, or, as names of flows contain ports, at the
/// same place among the flows.
fn same<'o>(subject: &Subject, one: &Why, other: &'o Why) -> Option<&'o Subject> {
    let named = other.subjects.iter().find(|it| it.name == subject.name);
    let place = || {
        let at = one.subjects.iter().filter(|it| !it.is_viewer).position(|it| it == subject)?;
        other.subjects.iter().filter(|it| !it.is_viewer).nth(at)
    };
    named.or_else(|| (!subject.is_viewer).then(place).flatten())
}

fn limited(names: (&str, &str), a: &Subject, b: &Subject) -> Vec<String> {
    let mut sentences = Vec::new();
    let (in_a, in_b) = (a.shares(), b.shares());
    let share = |shares: &[(Cause, f64)], cause| {
        shares.iter().find(|(it, _)| *it == cause).map_or(0.0, |(_, share)| *share)
    };
    let mut causes: Vec<Cause> = in_a.iter().chain(&in_b).map(|(cause, _)| *cause).collect();
    causes.sort_unstable();
    causes.dedup();
    let apart = |cause: Cause| (share(&in_a, cause) - share(&in_b, cause)).abs();
    causes.retain(|cause| apart(*cause) >= DIFFERS);
    causes.sort_by(|x, y| apart(*y).total_cmp(&apart(*x)));
    let figures = causes.iter().take(3).map(|cause| {
        let [x, y] = [&in_a, &in_b].map(|shares| share(shares, *cause) * 100.0);
        format!("{} {x:.0} % against {y:.0} %", label(*cause))
    });
    let figures: Vec<String> = figures.collect();
    if figures.is_empty() {
        return sentences;
    }
    sentences.push(format!("Of {}'s time, {}.", a.name, figures.join(", ")));
    if let Some((at, x, y)) = parted(a, b) {
        sentences.push(format!(
            "They differ from {} on: then in {} {}, and in {} {}.",
            seconds(at),
            names.0,
            clause(x),
            names.1,
            clause(y)
        ));
    }
    sentences
}

/// The first two seconds in a row in which other causes had the greatest share.
fn parted(a: &Subject, b: &Subject) -> Option<(i64, Cause, Cause)> {
    let end = |subject: &Subject| subject.limits.last().map_or(0, |limit| limit.to_ns);
    let (mut from, end) = (0, end(a).min(end(b)));
    let mut since = None;
    while from < end {
        let main = |subject: &Subject| mainly(subject, from, from.saturating_add(STEP_NS));
        match (main(a), main(b)) {
            (Some(x), Some(y)) if x != y => match since {
                Some(found) => return Some(found),
                None => since = Some((from, x, y)),
            },
            _ => since = None,
        }
        from = from.saturating_add(STEP_NS);
    }
    None
}

fn mainly(subject: &Subject, from: i64, to: i64) -> Option<Cause> {
    let within = subject.limits.iter().filter(|limit| limit.from_ns < to && limit.to_ns > from);
    let parts = within.map(|limit| {
        (limit.cause, super::since(limit.to_ns.min(to), limit.from_ns.max(from)) as f64)
    });
    account::shares(parts).first().map(|(cause, _)| *cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::Explained;

    fn of(effects: &[(&str, Effect, i64, i64)]) -> Why {
        let effects = effects.iter().map(|(viewer, effect, from, to)| Explained {
            subject: (*viewer).into(),
            effect: *effect,
            from_ns: from * STEP_NS,
            to_ns: to * STEP_NS,
            shares: Vec::new(),
            chain: Vec::new(),
            sentence: String::new(),
            because: None,
            change: None,
        });
        Why { effects: effects.collect(), ..Why::default() }
    }

    #[test]
    fn a_second_at_a_lower_quality_counts_once() {
        // Rungs 3, 2, 1, 2 and 3 from 0, 4, 8, 12 and 16 s on: below 3 from 4 to 16 s.
        let steps = [("player", Effect::Quality, 4, 16), ("player", Effect::Quality, 8, 12)];
        let text = between(("a", "b"), &of(&steps), &of(&[]));
        assert_eq!(text, "a was at a lower quality for 12.0 s, b for 0 ms.");
        // Of two viewers both count.
        let two = [("one", Effect::Quality, 4, 16), ("two", Effect::Quality, 8, 12)];
        let text = between(("a", "b"), &of(&two), &of(&steps));
        assert_eq!(text, "a was at a lower quality for 16.0 s, b for 12.0 s.");
    }

    #[test]
    fn a_slow_start_is_a_difference() {
        let (slow, slower) = (("player", Effect::Startup, 0, 3), ("player", Effect::Startup, 0, 5));
        let text = between(("a", "b"), &of(&[slow]), &of(&[slower]));
        assert_eq!(text, "a was slow to start for 3.0 s, b for 5.0 s.");
    }
}
