//! A flow, and the one that joins it: shares and harm.

use crate::family::{Family, Measure, Subject};
use crate::instance::Instance;
use crate::newcomer::Newcomer;
use crate::view::View;

/// Two flows, of which one was first.
pub(super) struct Pair;

impl Subject for Pair {
    type One<'v> = Newcomer<'v>;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Newcomer<'v>)> {
        Newcomer::of(view).map(|pair| (Instance::only(), pair)).into_iter().collect()
    }
}

pub(super) static FAMILY: Family<Pair> = Family { metrics: METRICS, series: &[] };

static METRICS: &[Measure<Pair>] = metrics! {
    #[main] harm.share_ratio ["ratio", Neither, 3] "Share of the first",
        "Where exactly two flows compete (as for `fairness.jain_ratio`) and one begins at least 10 s after the other: the share \
         that the first has of the rate of both, in the second half of their time together. 50 % is an equal share. Null if the \
         sender of one has stopped before 80 % of the trial; one that gets nothing has not.",
        |pair| pair.share();
    #[main] harm.rate_ratio ["ratio", Lower, 3] "Harm, rate",
        "What the second flow takes from the first (Ware et al., 2019): how much lower the rate of the first is than alone, as \
         a share of its rate alone. Alone is the second half of the time, without a warm-up, before the second flow begins, together the second \
         half of the time from then on. 0 is no harm; 1 is a first flow that gets nothing.",
        |pair| pair.rate_harm();
    #[main] harm.delay_ratio ["ratio", Lower, 3] "Harm, delay",
        "How much longer packets of the first flow are in links next to the second flow than alone, as a share of how long they \
         are then; means over packets, added up over the links. 0 is no harm, 90 % a delay ten times as long. Null if no packet \
         arrives.",
        |pair| pair.delay_harm();
    harm.delay_alone_ms ["ms", Lower, 3] "Delay alone",
        "Mean time that packets of the first flow are in links while it is alone.",
        |pair| pair.delays_ms().0;
    harm.delay_together_ms ["ms", Lower, 3] "Delay together",
        "Mean time that packets of the first flow are in links next to the second.",
        |pair| pair.delays_ms().1;
};
