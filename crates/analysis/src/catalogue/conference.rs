//! Video calls.

use crate::conference::{End, ends};
use crate::family::{Family, Measure, Subject};
use crate::instance::Instance;
use crate::view::View;

/// Every end of every call, and their mean.
pub(super) struct Calls;

impl Subject for Calls {
    type One<'v> = End<'v>;

    const HAS_MEAN: bool = true;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, End<'v>)> {
        let ends = ends(view.records, view.period);
        let several = ends.len() > 1;
        ends.into_iter().map(|end| (Instance::among(several, end.name), end)).collect()
    }
}

pub(super) static FAMILY: Family<Calls> = Family { metrics: METRICS, series: &[] };

static METRICS: &[Measure<Calls>] = metrics! {
    conference.pictures_sent ["frames", Higher, 3] "Frames sent",
        "Frames that this end captured, encoded and passed to the socket.",
        |e| Some(e.sum(|row| row.captured_pictures));
    conference.pictures_skipped ["frames", Lower, 3] "Frames skipped",
        "Frames that the camera had and the thread captured too late, so that they were left out.",
        |e| Some(e.sum(|row| row.skipped_pictures));
    conference.pictures_shown ["frames", Higher, 3] "Frames shown",
        "Frames of the other end of which something was shown within the trial.",
        |e| Some(e.pictures_shown());
    conference.pictures_damaged ["frames", Lower, 3] "Frames damaged",
        "Of the frames shown, those of which a part was missing.",
        |e| Some(e.pictures_damaged());
    conference.pictures_lost ["frames", Lower, 3] "Frames lost",
        "Frames of the other end of which nothing came within the trial.",
        |e| Some(e.pictures_lost());
    conference.packets_sent ["packets", Neither, 3] "Packets sent",
        "Packets that the kernel took from this end.",
        |e| Some(e.sum(|row| row.sent_packets));
    conference.packets_received ["packets", Neither, 3] "Packets received",
        "Packets of the other end that came.",
        |e| Some(e.sum(|row| row.received_packets));
    conference.packets_late ["packets", Lower, 3] "Packets late",
        "Of the packets received, those of a frame that was over.",
        |e| Some(e.sum(|row| row.late_packets));
    #[main] conference.loss_ratio ["ratio", Lower, 3] "Call: loss",
        "Of the packets that the kernel took from the other end, the share that did not come.",
        |e| e.loss();
    #[main] conference.send_loss_ratio ["ratio", Lower, 3] "Call: send loss",
        "Of the packets that this end was to send, the share that a failed send call dropped.",
        |e| e.send_loss();
    #[main] conference.delay_mean_ms ["ms", Lower, 3] "Call: delay",
        "From the capture of a frame at the other end to its display, mean over the frames shown.",
        |e| e.delay_ms().mean();
    conference.delay_p95_ms ["ms", Lower, 3] "Call: delay, 95 %",
        "The same, 95th percentile.",
        |e| e.delay_ms().percentile(0.95);
};
