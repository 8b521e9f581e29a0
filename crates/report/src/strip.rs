//! What limited flows, and what effects came from, as the page shows it: in few words and few stretches.

use suiro_analysis::Why;
use suiro_analysis::why::{Explained, Limit};
use suiro_record::words::Cause;
use suiro_units::Word;

use crate::causes::EffectCauses;
use crate::cell::short;
use crate::page::{PageCause, PageLimits};
use crate::why::{cause_label, effect};

/// Viewers and flows of one trial that have a strip.
const STRIPS_MAX: usize = 4;
/// Effects of one trial that have a sentence on the page; `suiro why` prints all.
pub(crate) const EFFECTS_MAX: usize = 20;

/// The causes that occur, in the order of their list.
pub(crate) fn causes<'a>(trials: impl Iterator<Item = &'a Why>) -> Vec<PageCause> {
    let mut found: Vec<Cause> = Vec::new();
    for why in trials {
        let limits = why.subjects.iter().take(STRIPS_MAX).flat_map(|subject| &subject.limits);
        let effects = why.effects.iter().map(Explained::cause);
        found.extend(limits.map(|limit| limit.cause).chain(effects));
        found.sort_unstable();
        found.dedup();
    }
    let doc = |cause: Cause| Cause::WORDS.iter().find(|(word, _)| *word == cause.name());
    let cause = |cause: Cause| PageCause {
        cause,
        label: cause_label(cause).to_owned(),
        doc: doc(cause).map_or("", |(_, doc)| doc.trim()).to_owned(),
    };
    found.into_iter().map(cause).collect()
}

/// A strip for each of the first viewers, or flows if there is no viewer, in bins of the page.
pub(crate) fn limits(why: &Why, causes: &[PageCause], bin_s: f64) -> Vec<PageLimits> {
    let place = |cause: Cause| causes.iter().position(|it| it.cause == cause).map_or(0, short);
    let strip = |limits: &[Limit]| {
        let mut spans: Vec<(f64, f64, u32)> = Vec::new();
        for (from, to, cause) in binned(limits, bin_s) {
            let cause = place(cause);
            match spans.last_mut() {
                Some(last) if last.2 == cause && (last.1 - from).abs() < bin_s * 1e-3 => {
                    last.1 = to;
                }
                _ => spans.push((from, to, cause)),
            }
        }
        spans.iter().map(|(from, to, cause)| (rounded(*from), rounded(*to), *cause)).collect()
    };
    let viewers = why.subjects.iter().any(|subject| subject.is_viewer);
    let subjects = why.subjects.iter().filter(|subject| subject.is_viewer || !viewers);
    let strips = subjects.take(STRIPS_MAX);
    strips.map(|it| PageLimits { name: it.name.clone(), spans: strip(&it.limits) }).collect()
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

/// What limited most of each bin.
fn binned(limits: &[Limit], bin_s: f64) -> Vec<(f64, f64, Cause)> {
    let seconds = |ns: i64| ns as f64 / 1e9;
    let end = limits.last().map_or(0.0, |limit| seconds(limit.to_ns));
    let (mut bins, mut first) = (Vec::new(), 0);
    // A trial without bins has no time either.
    let count = if bin_s > 0.0 { (end / bin_s).ceil() as usize } else { 0 };
    for bin in 0..count {
        let (from, to) = (bin as f64 * bin_s, (bin + 1) as f64 * bin_s);
        first += limits[first..].iter().take_while(|limit| seconds(limit.to_ns) <= from).count();
        let within = limits[first..].iter().take_while(|limit| seconds(limit.from_ns) < to);
        let parts = within.map(|limit| {
            (seconds(limit.to_ns).min(to) - seconds(limit.from_ns).max(from), limit.cause)
        });
        let most = parts.max_by(|a, b| a.0.total_cmp(&b.0));
        bins.extend(most.map(|(_, cause)| (from, to.min(end), cause)));
    }
    bins
}

/// The longest effects, the longest first.
pub(crate) fn effects(why: &Why) -> Vec<EffectCauses> {
    let mut all: Vec<&Explained> = why.effects.iter().collect();
    all.sort_by_key(|it| it.from_ns.saturating_sub(it.to_ns));
    all.into_iter().take(EFFECTS_MAX).map(effect).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_has_the_cause_of_most_of_it() {
        let limit = |from: i64, to: i64, cause| Limit {
            from_ns: from * 1_000_000,
            to_ns: to * 1_000_000,
            cause,
            evidence: Vec::new(),
        };
        let limits = [
            limit(0, 60, Cause::Application),
            limit(60, 300, Cause::LinkRate),
            limit(300, 340, Cause::Loss),
            limit(340, 400, Cause::LinkRate),
        ];
        let causes: Vec<Cause> = binned(&limits, 0.1).iter().map(|(.., cause)| *cause).collect();
        assert_eq!(causes[0], Cause::Application);
        assert_eq!(causes[1..], [Cause::LinkRate; 3]);
        assert!(binned(&limits, 0.0).is_empty());
    }
}
