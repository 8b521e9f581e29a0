//! Pages of the web.

use super::Metric;

pub(super) static METRICS: &[Metric] = catalogue! {
    #[main] web.load_p50_s ["s", Lower, 3] "Page load, median",
        "From a page's first connection to the last byte of its last object, median over the pages loaded.",
        Web(|w| w.load_s().percentile(0.5));
    #[main] web.load_p95_s ["s", Lower, 3] "Page load, 95 %",
        "The same, 95th percentile.",
        Web(|w| w.load_s().percentile(0.95));
    web.goodput_mean_bps ["bit/s", Neither, 3] "Web goodput",
        "Bodies received of all pages, over the trial's duration.",
        Web(|w| Some(w.rate_bps()));
    web.pages ["", Higher, 3] "Pages loaded",
        "Pages loaded whole within the trial.",
        Web(|w| Some(w.count()));
    web.flows ["", Neither, 3] "Web flows",
        "TCP connections of the pages loaded, all of them ended.",
        Web(|w| Some(w.connections()));
    web.unfinished ["", Lower, 3] "Pages not loaded",
        "Pages begun but given up after 60 s, refused, or cut off by the trial's end. They have no load time.",
        Web(|w| Some(w.unfinished()));
};
