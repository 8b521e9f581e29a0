//! Video flows and the TCP next to them, flow by flow.

use crate::drawn::{Chart, Drawn, extreme};
use crate::family::{Curve, Family, Subject};
use crate::flow::Kind;
use crate::instance::Instance;
use crate::view::View;

/// A flow with a line of its own.
pub(super) struct Each;

impl Subject for Each {
    type One<'v> = Drawn<'v>;

    const PLACE: &'static str = ".FLOW";

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Drawn<'v>)> {
        let named = |one: Drawn<'v>| (Instance::named(&one.name), one);
        Chart::of(view).each.into_iter().map(named).collect()
    }
}

/// All flows without one.
pub(super) struct Others;

impl Subject for Others {
    type One<'v> = Vec<Drawn<'v>>;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Vec<Drawn<'v>>)> {
        let others = Chart::of(view).others;
        if others.is_empty() { Vec::new() } else { vec![(Instance::only(), others)] }
    }
}

pub(super) static EACH: Family<Each> = Family { metrics: &[], series: SERIES };

pub(super) static OTHERS: Family<Others> = Family { metrics: &[], series: RANGE };

static SERIES: &[Curve<Each>] = series! {
    fairness.video_flow_bps [Flows, "bit/s", Line] "video flow",
        "rate of IP packets delivered for one video flow, while it is there. `FLOW` is the endpoint that reported the flow, with a \
         number from its second flow on; if none did, `video 1`, `tcp 2` and so on. Only of a trial with several video or several TCP flows, and of at most eight",
        |one, bins| one.rate_bins(Kind::Video, bins);
    fairness.tcp_flow_bps [Flows, "bit/s", Context] "TCP flow",
        "the same of one TCP flow, and of at most four",
        |one, bins| one.rate_bins(Kind::Tcp, bins);
};

static RANGE: &[Curve<Others>] = series! {
    fairness.others_least_bps [Flows, "bit/s", Context] "least of the other flows",
        "the least rate of the video and TCP flows that have no series of their own",
        |others, bins| extreme(others, bins, f64::min);
    fairness.others_most_bps [Flows, "bit/s", Context] "greatest of the other flows",
        "the greatest rate of these flows",
        |others, bins| extreme(others, bins, f64::max);
};
