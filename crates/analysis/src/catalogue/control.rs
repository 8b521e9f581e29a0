//! Control of the stream server: nodes that were replaced, and what their streams and the others lost.

use crate::control::Replacements;
use crate::family::{Family, Measure, Subject};
use crate::instance::Instance;
use crate::view::View;

/// All controllers of a trial.
pub(super) struct All;

impl Subject for All {
    type One<'v> = Replacements<'v>;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Replacements<'v>)> {
        Replacements::of(view).map(|all| (Instance::only(), all)).into_iter().collect()
    }
}

pub(super) static FAMILY: Family<All> = Family { metrics: OF_CONTROL, series: &[] };

static OF_CONTROL: &[Measure<All>] = metrics! {
    #[main] control.replaced ["streams", Neither, 4] "Streams replaced",
        "Streams of uncompressed video that a controller gave to a standby because their node was faulty.",
        |c| Some(c.count() as f64);
    control.handed_over ["times", Neither, 4] "Streams handed over",
        "Times that a node began to send a stream which another node ended at most 1 s before or after, by the entries of both. \
        Nodes that died have no entry.",
        |c| Some(c.handed_over() as f64);
    #[main] control.detected_max_frames ["frames", Lower, 3] "Fault detected",
        "From the beginning of a fault to the controller's entry that the node is faulty, in frame times of the stream, \
        maximum. If it starves or lags, the fault begins when the node records that for the first time after it has last \
        recovered; else it begins with the end of the last packet that receivers had of the stream. Null if nothing was \
        replaced.",
        |c| c.detected().max();
    #[main] control.on_air_max_frames ["frames", Lower, 3] "Standby on air",
        "From the controller's entry that a node is faulty to the first packet of its stream that came after it, in frame \
        times, maximum. If no packet came, to the end of the trial, or to when all streams were stopped by command. Null if \
        nothing was replaced.",
        |c| c.on_air().max();
    #[main] control.gap_max_frames ["frames", Lower, 6] "Frames lost by a replaced stream",
        "Incomplete frames of a stream that was replaced, maximum of these streams. If its packets end, the frame times \
        from then to a second before the end of the trial count too, or to a second before all streams were stopped by \
        command. Of a stream that was replaced in the warm-up, what is due after it counts. Null if nothing was replaced.",
        |c| c.gap_max();
    #[main] control.others_lost_frames ["frames", Lower, 6] "Frames lost by other streams",
        "Incomplete frames of all streams that were not replaced. If the packets of one end, the frame times that follow \
        count too, as in `control.gap_max_frames`.",
        |c| Some(c.others_lost());
};
