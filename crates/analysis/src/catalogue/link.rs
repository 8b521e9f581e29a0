//! What links carried, in all and each direction by itself.

use suiro_record::words::LinkCause;

use crate::bins::Bins;
use crate::family::{Curve, Family, Measure, Subject};
use crate::held::Stretch;
use crate::instance::Instance;
use crate::link::{Direction, ecn_ratio, goodput, since};
use crate::stats::Distribution;
use crate::view::View;

/// All directions of all links together.
pub(super) struct Links;

impl Subject for Links {
    type One<'v> = &'v [Direction<'v>];

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, &'v [Direction<'v>])> {
        vec![(Instance::only(), view.links())]
    }
}

/// Each direction of each link.
pub(super) struct Directions;

impl Subject for Directions {
    type One<'v> = &'v Direction<'v>;

    const PLACE: &'static str = ".DIRECTION";

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, &'v Direction<'v>)> {
        let links = view.links();
        let several = links.iter().any(|other| other.link != links[0].link);
        let named = |one: &'v Direction<'v>| {
            let instance = Instance::direction(several.then_some(one.link), one.direction.name());
            (instance.at_hub(one.at_hub), one)
        };
        links.iter().map(named).collect()
    }

    fn instance(path: &str) -> Instance {
        match path.rsplit_once('.') {
            Some((link, direction)) => Instance::direction(Some(link), direction),
            None => Instance::direction(None, path),
        }
    }

    fn is_drawn(one: &Self::One<'_>) -> bool {
        !one.rows.is_empty()
    }
}

pub(super) static ALL: Family<Links> = Family { metrics: FLOW, series: &[] };

pub(super) static EACH: Family<Directions> = Family { metrics: METRICS, series: SERIES };

static FLOW: &[Measure<Links>] = metrics! {
    #[main] flow.goodput_mean_bps ["bit/s", Higher, 3] "Goodput",
        "TCP and UDP payload that the links delivered in the down direction, and the stations of hubs to one another, within \
         the trial, over the trial's duration, both without the warm-up. A flow that crosses several links or hubs counts once, where the least of it was \
         delivered. TCP's acknowledgements have no payload; reports over UDP have, and count at hubs. Copies that a link made do \
         not count; a byte that TCP needlessly sent twice does.",
        |links| goodput(links);
};

static METRICS: &[Measure<Directions>] = metrics! {
    #[main] link.loss_ratio ["ratio", Lower, 3] "Loss",
        "Packets that the link dropped, for any cause, as a share of those dropped and delivered. \
         Packets still in the link at the end count as neither. With a warm-up, packets count that came to the link after it: null \
         without table `link`.",
        |d| d.loss_ratio(&[]);
    link.loss_random_ratio ["ratio", Lower, 3] "Loss, random",
        "Packets that the loss model dropped, as a share of those dropped and delivered. With a warm-up as `loss_ratio`.",
        |d| d.loss_ratio(&[LinkCause::Loss]);
    link.loss_queue_ratio ["ratio", Lower, 3] "Loss, queue",
        "Packets dropped because the queue was full, by active queue management, or because their lifetime on Wi-Fi was over, in \
         the queue or between attempts, as a share of those dropped and delivered. With a warm-up as `loss_ratio`.",
        |d| d.loss_ratio(&[LinkCause::Queue, LinkCause::Aqm, LinkCause::Lifetime]);
    link.attempts_failed_ratio ["ratio", Lower, 3] "Failed attempts",
        "Attempts to send on a medium that the stations of the link share that failed, as a share of all: on a half-duplex \
         Ethernet the collisions, on Wi-Fi also the frames for which the signal was too weak. In a cellular cell a \
         packet counts by the one of its transport blocks that was sent most often: the more blocks it was cut into, the more \
         likely one was sent again. Packets still in the link at the end do not count. Null on other links.",
        |d| d.attempts_failed_ratio();
    link.ecn_ratio ["ratio", Neither, 3] "ECN marks",
        "Packets that the queue discipline marked Congestion Experienced, as a share of those \
         delivered.",
        |d| ecn_ratio(d);
    link.throughput_mean_bps ["bit/s", Higher, 3] "Throughput",
        "IP packets delivered, headers included, over the trial's duration.",
        |d| d.per_second(d.delivered().map(|(_, r)| r.size_bytes as f64 * 8.0).sum());
    link.payload_mean_bps ["bit/s", Higher, 3] "Payload",
        "TCP and UDP payload delivered, over the trial's duration. Copies that the link made do not count.",
        |d| d.per_second(d.payload().map(|(_, bytes)| bytes * 8.0).sum());
    link.served_bps ["bit/s", Neither, 3] "Rate when busy",
        "The rate at which the link served packets while one was always waiting: the link's rate \
        while it was the bottleneck. Null if no packet ever waited.",
        |d| d.served_bps();
    #[main] link.utilisation ["ratio", Higher, 3] "Utilisation",
        "What the link carried, as a share of what it could have carried at the configured rate; on a half-duplex Ethernet, \
        where all stations share it, at the rate of the medium. \
        Without a configured rate: the share of the trial in which it was serving a packet, null \
        if none ever waited.",
        |d| d.utilisation();
    link.queue_delay_mean_ms ["ms", Lower, 3] "Queueing delay",
        "From a packet's arrival at the link to the start of its service, mean over packets.",
        |d| d.queue_delays().mean();
    link.queue_delay_p5_ms ["ms", Lower, 3] "Queueing delay, 5 %",
        "From a packet's arrival at the link to the start of its service, 5th percentile.",
        |d| d.queue_delays().percentile(0.05);
    link.queue_delay_p50_ms ["ms", Lower, 3] "Queueing delay, median",
        "From a packet's arrival at the link to the start of its service, median over packets.",
        |d| d.queue_delays().percentile(0.5);
    #[main] link.queue_delay_p95_ms ["ms", Lower, 3] "Queueing delay, 95 %",
        "From a packet's arrival at the link to the start of its service, 95th percentile.",
        |d| d.queue_delays().percentile(0.95);
    link.queue_delay_p99_ms ["ms", Lower, 3] "Queueing delay, 99 %",
        "From a packet's arrival at the link to the start of its service, 99th percentile.",
        |d| d.queue_delays().percentile(0.99);
    link.queue_delay_max_ms ["ms", Lower, 3] "Queueing delay, greatest",
        "From a packet's arrival at the link to the start of its service, longest.",
        |d| d.queue_delays().max();
    link.delay_mean_ms ["ms", Lower, 3] "One-way delay",
        "From a packet's arrival at the link to its delivery, mean over packets delivered.",
        |d| d.one_way_delays().mean();
    link.delay_p50_ms ["ms", Lower, 3] "One-way delay, median",
        "From a packet's arrival at the link to its delivery, median over packets delivered.",
        |d| d.one_way_delays().percentile(0.5);
    link.delay_p95_ms ["ms", Lower, 3] "One-way delay, 95 %",
        "From a packet's arrival at the link to its delivery, 95th percentile.",
        |d| d.one_way_delays().percentile(0.95);
    link.delay_p99_ms ["ms", Lower, 3] "One-way delay, 99 %",
        "From a packet's arrival at the link to its delivery, 99th percentile.",
        |d| d.one_way_delays().percentile(0.99);
    link.queue_max_bytes ["B", Lower, 3] "Queue, greatest",
        "Largest number of bytes that an arriving packet found waiting.",
        |d| Distribution::equal(d.came().iter().map(|r| r.queue_bytes as f64)).max();
    link.unaccounted ["packets", Lower, 3] "Lost by the emulator",
        "Packets that the emulator itself lost. Must be 0. A warm-up counts.",
        |d| d.totals.map(|totals| totals.unaccounted as f64);
    link.lateness_p50_us ["µs", Lower, 3] "Emulator lateness, median",
        "Actual minus scheduled delivery time, median over packets. A warm-up counts.",
        |d| d.totals?.lateness.p50_us;
    link.lateness_p99_us ["µs", Lower, 3] "Emulator lateness, 99 %",
        "Actual minus scheduled delivery time, 99th percentile. A warm-up counts.",
        |d| d.totals?.lateness.p99_us;
    link.lateness_max_us ["µs", Lower, 3] "Emulator lateness, worst",
        "Actual minus scheduled delivery time, worst packet. A warm-up counts.",
        |d| d.totals?.lateness.max_us;
    link.emulator_cores ["cores", Lower, 3] "Emulator's CPU",
        "Share of one core that the emulator took for the whole link, both directions. A warm-up counts.",
        |d| d.totals?.cpu_cores;
};

static SERIES: &[Curve<Directions>] = series! {
    link.throughput_bps [ThroughputDown, "bit/s", Line] "throughput",
        "IP packets delivered, headers included",
        |d, bins| throughput(d, bins);
    link.rate_bps [ThroughputDown, "bit/s", Bound] "link rate",
        "rate configured in the scenario; of a half-duplex Ethernet that of the medium, which its stations share",
        |d, bins| d.asked_stretches().map(|asked| bins.held_mean(asked)).unwrap_or_default();
    link.rate_bps [ThroughputDown, "bit/s", Bound] "link rate",
        "rate at which the link served while packets waited; a gap where none waited",
        |d, bins| if d.asked.is_some() { Vec::new() } else { served(d, bins) };
    link.queue_bytes [Queue, "B", Line] "queue",
        "largest number of bytes that an arriving packet found waiting",
        |d, bins| bins.max(d.rows.iter().map(|row| (row.t_ns, row.queue_bytes as f64)));
    link.queue_delay_ms [QueueDelay, "ms", Line] "queueing delay",
        "from arrival to the start of service, mean over packets",
        |d, bins| queue_delay(d, bins);
    link.drops [Losses, "packets", Bar] "drops",
        "packets dropped by the link",
        |d, bins| drops(d, bins);
    link.attempts_failed [Collisions, "attempts", Bar] "failed attempts",
        "attempts to send that collided, on Wi-Fi and in a cellular cell those that did not arrive, by the packet's arrival at the link",
        |d, bins| attempts_failed(d, bins);
};

fn throughput(direction: &Direction, bins: &Bins) -> Vec<Option<f64>> {
    let sizes = direction.delivered().map(|(t_ns, row)| (t_ns, row.size_bytes as f64 * 8.0));
    let per_s = |bits: f64| Some(bits / bins.width_s());
    bins.sum(sizes).into_iter().map(per_s).collect()
}

fn served(direction: &Direction, bins: &Bins) -> Vec<Option<f64>> {
    bins.held_mean(direction.service.iter().map(|served| {
        let value = served.value * 8e9 / served.length_ns();
        Stretch { value, ..*served }
    }))
}

fn queue_delay(direction: &Direction, bins: &Bins) -> Vec<Option<f64>> {
    let waited = direction.rows.iter().filter_map(|row| {
        let served_ns = row.dequeued_ns?;
        Some((row.t_ns, since(served_ns, row.t_ns)))
    });
    bins.mean(waited)
}

/// Empty where stations share no medium.
fn attempts_failed(direction: &Direction, bins: &Bins) -> Vec<Option<f64>> {
    if direction.attempts().next().is_none() {
        return Vec::new();
    }
    let failed = direction.attempts().map(|(row, made)| (row.t_ns, made.failed as f64));
    bins.sum(failed).into_iter().map(Some).collect()
}

fn drops(direction: &Direction, bins: &Bins) -> Vec<Option<f64>> {
    let drops = bins.sum(direction.dropped().map(|row| (row.t_ns, 1.0)));
    drops.into_iter().map(Some).collect()
}
