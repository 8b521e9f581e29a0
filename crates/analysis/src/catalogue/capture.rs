//! What captures at both ends of links show, each direction by itself.

use suiro_record::tables::HopRow;

use crate::bins::Bins;
use crate::family::{Curve, Family, Measure, Subject};
use crate::hops::{Hop, hops};
use crate::instance::Instance;
use crate::view::View;

/// Each direction of each link with a capture at one of its ends.
pub(super) struct Hops;

impl Subject for Hops {
    type One<'v> = Hop<'v>;

    const PLACE: &'static str = ".DIRECTION";

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Hop<'v>)> {
        let hops = hops(view);
        let several = hops.iter().any(|other| other.link != hops[0].link);
        let named = |hop: Hop<'v>| {
            let link = several.then_some(hop.link);
            (Instance::direction(link, hop.direction.name()), hop)
        };
        hops.into_iter().map(named).collect()
    }

    fn instance(path: &str) -> Instance {
        match path.rsplit_once('.') {
            Some((link, direction)) => Instance::direction(Some(link), direction),
            None => Instance::direction(None, path),
        }
    }
}

pub(super) static FAMILY: Family<Hops> = Family { metrics: METRICS, series: SERIES };

static METRICS: &[Measure<Hops>] = metrics! {
    capture.sent ["packets", Neither, 0] "Captured where sent",
        "IP packets in the capture at the sending end of the link, over the whole trial, a warm-up included.",
        |hop| hop.count(|row| row.sent);
    capture.received ["packets", Neither, 0] "Captured where received",
        "IP packets in the capture at the receiving end of the link, over the whole trial, a warm-up included.",
        |hop| hop.count(|row| row.received);
    #[main] capture.lost ["packets", Lower, 0] "Lost between captures",
        "IP packets in the capture at the sending end of the link and not in that at the receiving end, over the whole trial, \
         a warm-up included, without those that were still on their way at the end. Null if one of the two is missing or incomplete.",
        |hop| hop.lost();
    #[main] capture.loss_ratio ["ratio", Lower, 3] "Loss between captures",
        "The same as a share of the packets sent.",
        |hop| hop.loss_ratio();
    capture.altered ["packets", Lower, 0] "Altered between captures",
        "IP packets that were captured at both ends with different contents. A warm-up counts.",
        |hop| hop.count(|row| row.altered);
    capture.copies ["packets", Lower, 0] "Copies between captures",
        "IP packets that were captured more often at the receiving end than at the sending end. A warm-up counts.",
        |hop| hop.count(|row| row.copies);
    #[main] capture.sent_mean_bps ["bit/s", Neither, 3] "Throughput where sent",
        "IP packets captured at the sending end within the trial, headers included, over its duration.",
        |hop| hop.mean_bps(|row| row.sent_bytes);
    #[main] capture.received_mean_bps ["bit/s", Higher, 3] "Throughput where received",
        "IP packets captured at the receiving end within the trial, headers included, over its duration.",
        |hop| hop.mean_bps(|row| row.received_bytes);
    capture.delay_mean_ms ["ms", Lower, 3] "Delay between captures",
        "From the sending to the receiving interface, mean over packets received, by the kernel's timestamps. A warm-up counts.",
        |hop| hop.whole.and_then(|row| row.delay_mean_ms);
    capture.delay_max_ms ["ms", Lower, 3] "Delay between captures, greatest",
        "From the sending to the receiving interface, greatest. A warm-up counts.",
        |hop| hop.whole.and_then(|row| row.delay_max_ms);
    #[main] capture.link_difference ["packets", Lower, 0] "Captures and link differ",
        "How far the captures differ from the link's own counts: the differences of packets sent and offered, received and \
         delivered, and lost (less copies) and dropped or still in the link at the end (less duplicates), added up. 0 means that \
         they agree. Null without both captures, if one is incomplete, or for a plain cable, which counts nothing. A warm-up counts.",
        |hop| hop.link_difference();
};

static SERIES: &[Curve<Hops>] = series! {
    capture.sent_bps [CaptureRate, "bit/s", Line] "sent",
        "IP packets captured at the sending end",
        |hop, bins| rate(hop, bins, |row| row.sent_bytes);
    capture.received_bps [CaptureRate, "bit/s", Line] "received",
        "IP packets captured at the receiving end",
        |hop, bins| rate(hop, bins, |row| row.received_bytes);
    capture.lost_packets [CaptureLoss, "packets", Bar] "lost",
        "packets captured at the sending end and not at the receiving end, without those still on their way at the end",
        |hop, bins| lost(hop, bins);
};

fn rate(hop: &Hop, bins: &Bins, bytes: fn(&HopRow) -> Option<i64>) -> Vec<Option<f64>> {
    let Some(_) = hop.whole.and_then(bytes) else { return Vec::new() };
    let bits = hop.spans.iter().filter_map(|row| Some((row.t_ns?, bytes(row)? as f64 * 8.0)));
    bins.sum(bits).into_iter().map(|bits| Some(bits / bins.width_s())).collect()
}

fn lost(hop: &Hop, bins: &Bins) -> Vec<Option<f64>> {
    let Some(losses) = hop.losses() else { return Vec::new() };
    // A packet may have been captured in one bin and have come to the link in the next.
    bins.sum(losses).into_iter().map(|lost| Some(lost.max(0.0))).collect()
}
