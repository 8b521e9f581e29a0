//! What the outputs of converters showed of uncompressed video.

use suiro_record::words::Shown;

use crate::bins::Bins;
use crate::family::{Curve, Family, Measure, Subject};
use crate::instance::Instance;
use crate::shown::Converters;
use crate::view::View;

/// All outputs of all converters.
pub(super) struct AllConverters;

impl Subject for AllConverters {
    type One<'v> = Converters<'v>;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Converters<'v>)> {
        let rows = view.within(&view.records.shown, |row| row.t_ns);
        Converters::of(rows).map(|all| (Instance::only(), all)).into_iter().collect()
    }
}

pub(super) static FAMILY: Family<AllConverters> = Family { metrics: METRICS, series: OVER_TIME };

static METRICS: &[Measure<AllConverters>] = metrics! {
    converter.streams ["streams", Higher, 3] "Streams shown",
        "Streams of uncompressed video of which a converter had at least one complete frame.",
        |c| Some(c.streams() as f64);
    converter.ticks ["ticks", Higher, 6] "Ticks of converters",
        "Output ticks, one each frame time, from the first to the last that all streams have.",
        |c| Some(c.ticks());
    #[main] converter.underruns ["times", Lower, 6] "Underruns at converters",
        "Output ticks at which the stream's next frame was not complete, so that the converter \
        showed the one before once more, all streams together.",
        |c| Some(c.count(Shown::Underrun));
    converter.repeats ["frames", Lower, 6] "Frames repeated by senders",
        "Output ticks at which a new frame had the content of the one before, because its sender \
        had repeated it, all streams together.",
        |c| Some(c.count(Shown::Repeat));
    converter.skipped_frames ["frames", Lower, 6] "Frames never shown",
        "Frames that no output tick showed although a later one was shown, all streams together.",
        |c| Some(c.skipped());
    #[main] converter.apart_ticks ["ticks", Lower, 6] "Ticks out of step",
        "Output ticks at which the streams did not all show a frame of the same number; null for a \
        single stream.",
        |c| c.apart();
    converter.mixed_ticks ["ticks", Lower, 6] "Ticks of mixed images",
        "Output ticks at which the parts shown were not all of one image, because a sender had repeated or left out \
         a frame, or a stream was not synchronised. Null for a single stream, or if packets do not carry the number \
         of the image.",
        |c| c.mixed();
    converter.margin_min_ms ["ms", Higher, 3] "Margin at converters, least",
        "From the last packet of a frame to the output tick that showed it, minimum: how much less \
        the converters' delay could have been.",
        |c| c.margin_ms().min();
    converter.tick_late_p99_ms ["ms", Lower, 3] "Lateness of converters, 99 %",
        "How long after a tick a converter looked, or took a frame from the socket that had arrived \
        before it, 99th percentile. What it shows does not depend on it.",
        |c| c.late_ms().percentile(0.99);
    converter.tick_late_max_ms ["ms", Lower, 3] "Lateness of converters, maximum",
        "How long after a tick a converter looked, or took a frame from the socket that had arrived \
        before it, maximum.",
        |c| c.late_ms().max();
};

static OVER_TIME: &[Curve<AllConverters>] = series! {
    converter.margin_ms [Margin, "ms", Line] "least margin",
        "from when a frame was complete to the output tick that showed it, minimum over all \
        streams",
        |c, bins| least(c, bins);
    converter.underruns [Outputs, "frames", Bar] "underruns",
        "output ticks without a new frame, all streams",
        |c, bins| underruns(c, bins);
};

fn least(converters: &Converters, bins: &Bins) -> Vec<Option<f64>> {
    let most_negative = bins.max(converters.margins().map(|(t_ns, ms)| (t_ns, -ms)));
    most_negative.into_iter().map(|ms| ms.map(|ms| -ms)).collect()
}

/// Nothing where there was none in the whole trial.
fn underruns(converters: &Converters, bins: &Bins) -> Vec<Option<f64>> {
    let underruns = bins.sum(converters.underruns());
    let any = underruns.iter().any(|count| *count > 0.0);
    underruns.into_iter().map(|count| any.then_some(count)).collect()
}
