//! What links carried, in all and each direction by itself.

use super::Metric;
use crate::link::{ecn_ratio, goodput};
use crate::stats::Distribution;

pub(super) static FLOW: &[Metric] = catalogue! {
    #[main] flow.goodput_mean_bps ["bit/s", Higher, 3] "Goodput",
        "TCP and UDP payload that the links delivered in the down direction within the trial, over \
         the trial's duration. A byte that crosses several links counts on each; copies that a link \
         made do not count; a byte that TCP needlessly sent twice does.",
        Links(goodput);
};

pub(super) static METRICS: &[Metric] = catalogue! {
    #[main] link.loss_ratio ["ratio", Lower, 3] "Loss",
        "Packets that the link dropped, for any cause, as a share of those dropped and delivered. \
         Packets still in the link at the end count as neither.",
        Direction(|d| d.loss_ratio(&[]));
    link.loss_random_ratio ["ratio", Lower, 3] "Loss, random",
        "Packets that the loss model dropped, as a share of those dropped and delivered.",
        Direction(|d| d.loss_ratio(&["loss"]));
    link.loss_queue_ratio ["ratio", Lower, 3] "Loss, queue",
        "Packets dropped because the queue was full or by active queue management, as a share of \
         those dropped and delivered.",
        Direction(|d| d.loss_ratio(&["queue", "aqm"]));
    link.ecn_ratio ["ratio", Neither, 3] "ECN marks",
        "Packets that the queue discipline marked Congestion Experienced, as a share of those \
         delivered.",
        Direction(ecn_ratio);
    link.throughput_mean_bps ["bit/s", Higher, 3] "Throughput",
        "IP packets delivered, headers included, over the trial's duration.",
        Direction(|d| d.per_second(d.delivered().map(|(_, r)| r.size_bytes as f64 * 8.0).sum()));
    link.payload_mean_bps ["bit/s", Higher, 3] "Payload",
        "TCP and UDP payload delivered, over the trial's duration.",
        Direction(|d| d.per_second(d.payload().map(|(_, bytes)| bytes * 8.0).sum()));
    link.served_bps ["bit/s", Neither, 3] "Rate when busy",
        "The rate at which the link served packets while one was always waiting: what the link's \
         rate was when it mattered. Null if no packet ever waited.",
        Direction(|d| d.served_bps());
    #[main] link.utilisation ["ratio", Higher, 3] "Utilisation",
        "Share of what the link could carry at the rate asked for that it carried. Where no rate was \
         asked for: the share of the trial in which it was serving a packet, null if none ever waited.",
        Direction(|d| d.utilisation());
    link.queue_delay_mean_ms ["ms", Lower, 3] "Queueing delay",
        "From a packet's arrival at the link to the start of its service, mean over packets.",
        Direction(|d| d.queue_delays().mean());
    #[main] link.queue_delay_p95_ms ["ms", Lower, 3] "Queueing delay, 95 %",
        "From a packet's arrival at the link to the start of its service, 95th percentile.",
        Direction(|d| d.queue_delays().percentile(0.95));
    link.delay_mean_ms ["ms", Lower, 3] "One-way delay",
        "From a packet's arrival at the link to its delivery, mean over packets delivered.",
        Direction(|d| d.one_way_delays().mean());
    link.delay_p95_ms ["ms", Lower, 3] "One-way delay, 95 %",
        "From a packet's arrival at the link to its delivery, 95th percentile.",
        Direction(|d| d.one_way_delays().percentile(0.95));
    link.queue_max_bytes ["B", Lower, 3] "Queue, greatest",
        "Most bytes that a packet found waiting before it.",
        Direction(|d| Distribution::equal(d.rows.iter().map(|r| r.queue_bytes as f64)).max());
    link.unaccounted ["", Lower, 3] "Lost by the emulator",
        "Packets that the emulator itself lost. Must be 0.",
        Direction(|d| d.totals.map(|totals| totals.unaccounted as f64));
    link.lateness_p50_us ["µs", Lower, 3] "Emulator lateness, median",
        "Actual less scheduled delivery, median over packets.",
        Direction(|d| d.totals?.lateness.p50_us);
    link.lateness_p99_us ["µs", Lower, 3] "Emulator lateness, 99 %",
        "Actual less scheduled delivery, 99th percentile.",
        Direction(|d| d.totals?.lateness.p99_us);
    link.lateness_max_us ["µs", Lower, 3] "Emulator lateness, worst",
        "Actual less scheduled delivery, worst packet.",
        Direction(|d| d.totals?.lateness.max_us);
    link.emulator_cores ["cores", Lower, 3] "Emulator's CPU",
        "Share of one core that the emulator took for the whole link, both directions.",
        Direction(|d| d.totals?.cpu_cores);
};
