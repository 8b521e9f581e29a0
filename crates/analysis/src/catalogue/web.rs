//! Pages of the web.

use crate::family::{Family, Measure, Subject};
use crate::instance::Instance;
use crate::view::View;
use crate::web::Web;

/// All pages of a trial.
pub(super) struct Pages;

impl Subject for Pages {
    type One<'v> = Web<'v>;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Web<'v>)> {
        Web::of(view).map(|web| (Instance::only(), web)).into_iter().collect()
    }
}

pub(super) static FAMILY: Family<Pages> = Family { metrics: METRICS, series: &[] };

static METRICS: &[Measure<Pages>] = metrics! {
    #[main] web.load_p50_s ["s", Lower, 3] "Page load, median",
        "From a page's first connection to the last byte of its last object, median over the pages loaded.",
        |w| w.load_s().percentile(0.5);
    #[main] web.load_p95_s ["s", Lower, 3] "Page load, 95 %",
        "The same, 95th percentile.",
        |w| w.load_s().percentile(0.95);
    web.goodput_mean_bps ["bit/s", Neither, 3] "Web goodput",
        "Response bodies received for all pages, over the trial's duration.",
        |w| Some(w.rate_bps());
    web.pages ["pages", Higher, 3] "Pages loaded",
        "Pages loaded completely within the trial.",
        |w| Some(w.count());
    web.flows ["flows", Neither, 3] "Web flows",
        "TCP connections of the pages that were loaded; all of them have ended.",
        |w| Some(w.connections());
    web.unfinished ["pages", Lower, 3] "Pages not loaded",
        "Pages that were started but abandoned after 60 s, refused, or cut off by the end of the \
        trial. They have no load time.",
        |w| Some(w.unfinished());
};
