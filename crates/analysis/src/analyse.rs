//! Everything that is made of the records of one trial.

use std::collections::BTreeMap;

use suiro_record::{Metrics, Trial};

use crate::Records;
use crate::bins::Bins;
use crate::catalogue::FAMILIES;
use crate::timeline::{Timeline, finish};
use crate::view::View;
use crate::why::{self, Rules, Why};

/// What the records of one trial say.
#[derive(Debug, Clone, Default)]
pub struct Analysis {
    /// As [`summarise`] gives them.
    pub metrics: Metrics,
    /// As [`timeline`] gives it.
    pub timeline: Timeline,
    /// What limited flows, and what stalls, freezes and the like came from.
    pub why: Why,
}

/// Metrics and series of one trial: what [`summarise`] and [`timeline`] give. Without a warm-up, records are grouped once.
pub fn analyse(trial: &Trial, records: &Records, bins_max: usize) -> Analysis {
    let view = View::new(trial, records);
    let bins = Bins::new(view.duration_ns, bins_max);
    let (mut metrics, mut series) = (BTreeMap::new(), Vec::new());
    let measured = without_warm_up(&view);
    for family in FAMILIES {
        let group = family.group(&view);
        match &measured {
            Some(measured) => family.group(measured).summarise(&mut metrics),
            None => group.summarise(&mut metrics),
        }
        group.draw(&bins, &mut series);
    }
    let timeline = finish(&view, &bins, series);
    Analysis { metrics: metrics.into(), timeline, why: why::of(&view).clone() }
}

/// The same trial without its warm-up; `None` if it had none. Causes are those of the whole trial: a stall after the warm-up may
/// come from what was in it.
fn without_warm_up<'a>(view: &View<'a>) -> Option<View<'a>> {
    let measured = View::measured(view.trial, view.records);
    if measured.period.is_whole() {
        return None;
    }
    // It was made just now, and has no causes yet.
    let _ = measured.why.set(why::of(view).clone());
    Some(measured)
}

/// What limited flows, and what stalls, freezes and the like came from; nothing else.
pub fn explain(trial: &Trial, records: &Records) -> Why {
    why::of(&View::new(trial, records)).clone()
}

/// The same, by rules of which some numbers are changed.
pub fn explain_by(rules: Rules, trial: &Trial, records: &Records) -> Why {
    why::of(&View::new(trial, records).with_rules(rules)).clone()
}

/// Every metric of the [`catalogue()`](crate::catalogue()) that applies to what took part, by name;
/// `None` where it could not be measured. What did not take part at all (no player, no TCP) has no
/// entries. They are about the time after the warm-up.
pub fn summarise(trial: &Trial, records: &Records) -> Metrics {
    let whole = View::new(trial, records);
    let measured = without_warm_up(&whole);
    let view = measured.as_ref().unwrap_or(&whole);
    let mut metrics = BTreeMap::new();
    for family in FAMILIES {
        family.group(view).summarise(&mut metrics);
    }
    metrics.into()
}

/// The series of a trial in bins of 100 ms, or wider where that would be more than `bins_max`.
/// A series without any value is left out.
pub fn timeline(trial: &Trial, records: &Records, bins_max: usize) -> Timeline {
    let view = View::new(trial, records);
    let bins = Bins::new(view.duration_ns, bins_max);
    let mut series = Vec::new();
    for family in FAMILIES {
        family.group(&view).draw(&bins, &mut series);
    }
    finish(&view, &bins, series)
}
