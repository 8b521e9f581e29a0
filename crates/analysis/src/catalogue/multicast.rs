//! What multicast routers forwarded, and how soon packets began and ended after joining and leaving.

use crate::family::{Curve, Family, Measure, Subject};
use crate::instance::Instance;
use crate::multicast::{Memberships, Router, routers};
use crate::view::View;

/// Each router.
pub(super) struct Routers;

impl Subject for Routers {
    type One<'v> = Router<'v>;

    const PLACE: &'static str = ".ROUTER";

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Router<'v>)> {
        let named = |router: Router<'v>| (Instance::named(router.name), router);
        routers(view).into_iter().map(named).collect()
    }
}

/// All memberships of all receivers.
pub(super) struct All;

impl Subject for All {
    type One<'v> = Memberships<'v>;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Memberships<'v>)> {
        Memberships::of(view).map(|all| (Instance::only(), all)).into_iter().collect()
    }
}

pub(super) static ROUTERS: Family<Routers> = Family { metrics: OF_ROUTERS, series: OVER_TIME };

pub(super) static MEMBERSHIPS: Family<All> = Family { metrics: OF_MEMBERSHIPS, series: &[] };

static OF_ROUTERS: &[Measure<Routers>] = metrics! {
    #[main] multicast.out_mean_bps ["bit/s", Neither, 4] "Multicast forwarded",
        "IP packets of groups that the router forwarded, headers included, over all of its links, from the first to the \
        last; 0 if it forwarded none.",
        |r| r.out_bps();
    multicast.in_mean_bps ["bit/s", Neither, 4] "Multicast arriving",
        "IP packets of groups that arrived at the router, headers included, from the first to the last.",
        |r| r.in_bps();
    #[main] multicast.out_packets ["packets", Neither, 6] "Multicast packets forwarded",
        "Packets of groups that the router forwarded, each once for each link on which it left.",
        |r| Some(r.packets_out());
    multicast.in_packets ["packets", Neither, 6] "Multicast packets arriving",
        "Packets of groups that arrived at the router.",
        |r| Some(r.packets_in());
    multicast.registered_packets ["packets", Neither, 6] "Packets in register messages",
        "Packets of groups that the router put into PIM's register messages, as the source's own router, or took from them, as \
        the rendezvous point.",
        |r| Some(r.registered());
    multicast.wrong_packets ["packets", Lower, 6] "Packets from the wrong side",
        "Packets of groups that arrived on another link than that towards their source, and were dropped.",
        |r| Some(r.wrong());
};

static OVER_TIME: &[Curve<Routers>] = series! {
    multicast.out_bps [Multicast, "bit/s", Line] "forwarded",
        "packets of groups that the router forwarded, headers included",
        |r, bins| r.out_over_time(bins);
    multicast.in_bps [Multicast, "bit/s", Context] "arriving",
        "packets of groups that arrived at the router, headers included",
        |r, bins| r.in_over_time(bins);
};

static OF_MEMBERSHIPS: &[Measure<All>] = metrics! {
    membership.joins ["times", Neither, 4] "Joins",
        "How often receivers joined a group.",
        |m| Some(m.count());
    membership.unanswered ["times", Lower, 4] "Joins without a packet",
        "How often no packet came after joining.",
        |m| Some(m.unanswered());
    #[main] membership.join_p50_ms ["ms", Lower, 3] "Join to first packet, median",
        "From joining a group to its first packet at the receiver's host, median.",
        |m| m.join_ms().percentile(0.5);
    membership.join_max_ms ["ms", Lower, 3] "Join to first packet, maximum",
        "From joining a group to its first packet at the receiver's host, maximum.",
        |m| m.join_ms().max();
    #[main] membership.leave_p50_ms ["ms", Lower, 3] "Leave to silence, median",
        "From leaving a group to its last packet at the receiver's host, median.",
        |m| m.leave_ms().percentile(0.5);
    membership.leave_max_ms ["ms", Lower, 3] "Leave to silence, maximum",
        "From leaving a group to its last packet at the receiver's host, maximum.",
        |m| m.leave_ms().max();
};
