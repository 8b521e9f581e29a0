//! What browsers counted of their own video.

use suiro_record::tables::BrowserRow;
use suiro_record::words::Limitation;
use suiro_units::Duration;

use crate::bins::Bins;
use crate::browser::{
    Connection, buffered, buffered_ms, coding_ms, connections, frames, mean, qp, target_ms,
};
use crate::family::{Curve, Family, Measure, Subject};
use crate::instance::Instance;
use crate::view::View;

/// Each connection of a browser.
pub(super) struct Browsers;

impl Subject for Browsers {
    type One<'v> = Connection<'v>;

    const PLACE: &'static str = ".ENDPOINT";

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Connection<'v>)> {
        let named = |connection: Connection<'v>| (Instance::named(&connection.name), connection);
        connections(view).into_iter().map(named).collect()
    }
}

pub(super) static FAMILY: Family<Browsers> = Family { metrics: METRICS, series: SERIES };

static METRICS: &[Measure<Browsers>] = metrics! {
    browser.frames ["frames", Higher, 3] "Frames coded by the browser",
        "Frames that the browser says it encoded or decoded. An endpoint with several connections has a metric for each: \
         `browser.ENDPOINT.NUMBER.…`.",
        |c| c.total(frames);
    browser.key_frames ["frames", Neither, 3] "Key frames of the browser",
        "Those of the frames that are key frames.",
        |c| c.total(|row| row.key_frames.map(|count| count as f64));
    browser.coding_mean_ms ["ms", Lower, 3] "Coding time of the browser",
        "Time that a frame takes to be encoded or decoded, mean over the frames, by the browser's own count.",
        |c| c.ratio(coding_ms, frames);
    browser.qp_mean ["", Lower, 3] "Quantiser of the browser",
        "Quantiser parameter of the frames that were encoded or decoded, mean over the frames: of H.264, 0 (best) to 51.",
        |c| c.ratio(qp, frames);
    browser.freezes ["times", Lower, 3] "Freezes counted by the browser",
        "Freezes of a viewer, by the browser's own count (`freezeCount`); `video.freezes` is the same by our rule from the \
         frames shown.",
        |c| c.total(|row| row.freezes.map(|count| count as f64));
    browser.freeze_s ["s", Lower, 3] "Time frozen, by the browser",
        "How long these freezes lasted together (`totalFreezesDuration`).",
        |c| c.total(|row| row.freezes_ns.map(Duration::as_secs_f64));
    browser.dropped ["frames", Lower, 3] "Frames dropped by the browser",
        "Frames that reached a viewer and were not shown, as the browser counts them (`framesDropped`).",
        |c| c.total(|row| row.dropped.map(|count| count as f64));
    browser.jitter_buffer_mean_ms ["ms", Lower, 3] "Jitter buffer of the browser",
        "From the first packet of a frame until the frame left the jitter buffer, mean over the frames (`jitterBufferDelay`).",
        |c| c.ratio(buffered_ms, buffered);
    browser.jitter_buffer_target_mean_ms ["ms", Lower, 3] "Target of the browser's jitter buffer",
        "The delay that the jitter buffer was to have, mean over the frames (`jitterBufferTargetDelay`).",
        |c| c.ratio(target_ms, buffered);
    browser.bandwidth_limited_ratio ["ratio", Lower, 3] "Encoder limited by bandwidth",
        "Share of the time in which the browser's encoder was limited by congestion control (`qualityLimitationReason`).",
        |c| c.limited_ratio(Limitation::Bandwidth);
    browser.cpu_limited_ratio ["ratio", Lower, 3] "Encoder limited by the CPU",
        "Share of the time in which the browser's encoder was limited by the CPU.",
        |c| c.limited_ratio(Limitation::Cpu);
};

static SERIES: &[Curve<Browsers>] = series! {
    browser.qp [Quantiser, "", Line] "quantiser",
        "quantiser parameter of the frames that the browser encoded or decoded, mean",
        |c, bins| held(c, bins, |row| mean(qp(row), frames(row)));
    browser.coding_ms [Coding, "ms", Line] "coding",
        "time that a frame took to be encoded or decoded, mean",
        |c, bins| held(c, bins, |row| mean(coding_ms(row), frames(row)));
    browser.jitter_buffer_ms [JitterBuffer, "ms", Line] "in the jitter buffer",
        "for how long frames were in the browser's jitter buffer, mean",
        |c, bins| held(c, bins, |row| mean(buffered_ms(row), buffered(row)));
    browser.jitter_buffer_target_ms [JitterBuffer, "ms", Bound] "its target",
        "for how long frames were to be in the browser's jitter buffer, mean",
        |c, bins| held(c, bins, |row| mean(target_ms(row), buffered(row)));
};

fn held(
    connection: &Connection<'_>,
    bins: &Bins,
    of: impl Fn(&BrowserRow) -> Option<f64>,
) -> Vec<Option<f64>> {
    bins.held_mean(connection.stretches(of))
}
