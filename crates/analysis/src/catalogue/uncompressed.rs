//! Streams of uncompressed video, and the rings that their senders read ahead into.

use suiro_record::tables::UncompressedRingRow;

use crate::bins::Bins;
use crate::family::{Curve, Family, Measure, Subject};
use crate::instance::Instance;
use crate::still::Still;
use crate::uncompressed::{Ring, Rings, Streams};
use crate::view::View;

/// Rings that are drawn each by itself; of more only what is over all.
const DRAWN_MAX: usize = 16;

/// All streams of all receivers.
pub(super) struct AllStreams;

impl Subject for AllStreams {
    type One<'v> = Streams<'v>;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Streams<'v>)> {
        let rows = view.within(&view.records.uncompressed, |row| row.t_ns);
        let still = Still::of(view.trial, &view.records.standstills);
        Streams::of(rows, still).map(|streams| (Instance::only(), streams)).into_iter().collect()
    }
}

/// All rings of all senders.
pub(super) struct AllRings;

impl Subject for AllRings {
    type One<'v> = Rings<'v>;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Rings<'v>)> {
        Rings::of(view.rings(), view.period)
            .map(|rings| (Instance::only(), rings))
            .into_iter()
            .collect()
    }
}

/// Each ring, if there are several: drawn next to what is over all.
pub(super) struct EachRing;

impl Subject for EachRing {
    type One<'v> = Ring<'v>;

    const PLACE: &'static str = ".ENDPOINT.STREAM";

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Ring<'v>)> {
        let rings = view.rings();
        let drawn = rings.iter().filter(|_| (2..=DRAWN_MAX).contains(&rings.len()));
        let one = drawn.map(|((endpoint, stream), rows)| {
            let path = format!("{endpoint}.{stream}");
            (Instance { path, ..Instance::only() }, Ring { rows })
        });
        one.collect()
    }
}

pub(super) static STREAMS: Family<AllStreams> =
    Family { metrics: OF_STREAMS, series: STREAMS_OVER_TIME };

pub(super) static RINGS: Family<AllRings> = Family { metrics: OF_RINGS, series: RINGS_OVER_TIME };

pub(super) static RING: Family<EachRing> = Family { metrics: &[], series: RING_OVER_TIME };

static OF_STREAMS: &[Measure<AllStreams>] = metrics! {
    #[main] stream.rate_mean_bps ["bit/s", Higher, 4] "Uncompressed video",
        "Frame bytes of uncompressed video received, over the time from the first frame to the \
        end of the last, all streams together; headers do not count.",
        |s| s.rate_bps();
    stream.streams ["streams", Higher, 3] "Streams",
        "Streams of uncompressed video with at least one packet received.",
        |s| Some(s.count() as f64);
    #[main] stream.lost_packets ["packets", Lower, 6] "Packets lost",
        "Packets of uncompressed video that never arrived, up to the last packet of each stream. If a stream ends early, \
        `control.gap_max_frames` and `control.others_lost_frames` have the frames that would have followed.",
        |s| Some(s.sum(|row| row.lost_packets));
    stream.lost_frames ["frames", Lower, 6] "Incomplete frames",
        "Frames of uncompressed video that are missing at least one packet, up to the last packet of each stream, as in \
        `stream.lost_packets`.",
        |s| Some(s.sum(|row| i64::from(row.lost_packets > 0)));
    stream.damaged_frames ["frames", Lower, 6] "Frames damaged",
        "Complete frames of uncompressed video with a wrong checksum; null if none was verified.",
        |s| s.damaged();
    #[main] stream.late_frames ["frames", Lower, 6] "Frames late",
        "Frames of uncompressed video that started more than a frame time after they were due by \
        the epoch, or never arrived, up to the last packet of each stream, as in `stream.lost_packets`; null without a common \
        clock.",
        |s| s.late();
    stream.lateness_p99_ms ["ms", Lower, 3] "Frame start, 99 %",
        "From the time a frame was due to its first packet, 99th percentile.",
        |s| s.lateness_ms().percentile(0.99);
    stream.lateness_max_ms ["ms", Lower, 3] "Frame start, maximum",
        "From the time a frame was due to its first packet, maximum.",
        |s| s.lateness_ms().max();
    #[main] stream.skew_p99_ms ["ms", Lower, 3] "Skew of streams, 99 %",
        "In each frame time, from the first stream's first packet to the last stream's first \
        packet, 99th percentile; null for a single stream, or without a common clock.",
        |s| s.skew_ms().percentile(0.99);
    stream.skew_max_ms ["ms", Lower, 3] "Skew of streams, maximum",
        "In each frame time, from the first stream's first packet to the last stream's first \
        packet, maximum.",
        |s| s.skew_ms().max();
    stream.late_still_frames ["frames", Lower, 6] "Frames late, machine stalled",
        "Late frames during which a CPU of the machine stalled, between when they were \
        due and their first packet; null if the trial was not watched.",
        |s| s.late_still();
    stream.lateness_p99_running_ms ["ms", Lower, 3] "Frame start without standstills, 99 %",
        "As stream.lateness_p99_ms, without frames during which a CPU stalled; null if \
        the trial was not watched.",
        |s| s.running()?.lateness_ms().percentile(0.99);
    stream.lateness_max_running_ms ["ms", Lower, 3] "Frame start without standstills, maximum",
        "As stream.lateness_max_ms, without frames during which a CPU stalled.",
        |s| s.running()?.lateness_ms().max();
    stream.skew_p99_running_ms ["ms", Lower, 3] "Skew without standstills, 99 %",
        "As stream.skew_p99_ms, without frames during which a CPU stalled; null if the \
        trial was not watched.",
        |s| s.running()?.skew_ms().percentile(0.99);
    stream.skew_max_running_ms ["ms", Lower, 3] "Skew without standstills, maximum",
        "As stream.skew_max_ms, without frames during which a CPU stalled.",
        |s| s.running()?.skew_ms().max();
    stream.burst_max_packets ["packets", Lower, 3] "Largest burst",
        "Largest number of packets in a bucket that drains at a constant rate, in the style of ST \
        2110-21.",
        |s| s.burst_max();
    stream.buffer_max_packets ["packets", Lower, 3] "Receiver's buffer",
        "Largest buffer, in packets, that reading frames at a constant rate would have needed, in \
        the style of ST 2110-21.",
        |s| s.buffer_max();
    stream.over_ratio ["ratio", Lower, 3] "Packets in bursts",
        "Share of packets that found that bucket above the limit for wide senders.",
        |s| s.over_ratio();
};

static OF_RINGS: &[Measure<AllRings>] = metrics! {
    #[main] ring.repeats ["frames", Lower, 6] "Frames repeated",
        "Frames that senders of uncompressed video repeated because the next one had not been \
        read yet, all streams together.",
        |r| Some(r.sum(|row| row.repeats));
    ring.starved_ratio ["ratio", Lower, 3] "Most starved ring",
        "Share of the frames sent by the most starved sender that were repeated because the next one \
        had not been read yet.",
        |r| r.starved();
    ring.fill_min_ratio ["ratio", Higher, 3] "Lowest ring fill",
        "Smallest share of a ring's slots that held a frame (the one being sent included), over \
        all rings and seconds.",
        |r| r.fill_min();
    ring.read_mean_bps ["bit/s", Higher, 4] "Read rate",
        "Rate of reading from storage, mean over the seconds, all rings together; null if the \
        frames are in memory.",
        |r| r.read_bps().map(|each| each.iter().sum());
    ring.read_slowest_bps ["bit/s", Higher, 4] "Slowest reader",
        "Rate of reading from storage, mean over the seconds, for the slowest ring.",
        |r| r.read_bps().and_then(|each| each.into_iter().reduce(f64::min));
    ring.send_mean_bps ["bit/s", Higher, 4] "Send rate",
        "Bytes of frames handed to senders, repeats included, mean over the seconds, all rings \
         together.",
        |r| r.send_bps().map(|each| each.iter().sum());
};

static STREAMS_OVER_TIME: &[Curve<AllStreams>] = series! {
    stream.lateness_ms [Lateness, "ms", Line] "latest",
        "from the time a frame was due to its first packet, maximum over all streams",
        |s, bins| bins.max(s.late_starts());
    stream.lost_packets [Losses, "packets", Bar] "lost",
        "packets that never arrived, all streams",
        |s, bins| lost(s, bins);
};

static RINGS_OVER_TIME: &[Curve<AllRings>] = series! {
    ring.waiting [Ring, "frames", Line] "least waiting",
        "fewest frames waiting in any ring",
        |r, bins| r.joined(bins, WAITING, f64::min);
    ring.read_bps [Storage, "bit/s", Line] "read",
        "rate of reading from storage, all rings",
        |r, bins| r.joined(bins, READ, |a, b| a + b);
    ring.send_bps [Storage, "bit/s", Line] "sent",
        "frames handed to senders, all rings",
        |r, bins| r.joined(bins, |_, to| to.send_bps, |a, b| a + b);
};

static RING_OVER_TIME: &[Curve<EachRing>] = series! {
    ring.waiting [Ring, "frames", Context] "each ring",
        "frames waiting in this ring",
        |r, bins| r.binned(bins, WAITING);
    ring.read_bps [Storage, "bit/s", Context] "each ring",
        "rate of reading into this ring",
        |r, bins| r.binned(bins, READ);
};

const WAITING: fn(&UncompressedRingRow, &UncompressedRingRow) -> Option<f64> =
    |from, _| Some(from.waiting as f64);

const READ: fn(&UncompressedRingRow, &UncompressedRingRow) -> Option<f64> = |_, to| to.read_bps;

/// Nothing where nothing was lost in the whole trial.
fn lost(streams: &Streams, bins: &Bins) -> Vec<Option<f64>> {
    let lost = bins.sum(streams.losses());
    let any = lost.iter().any(|lost| *lost > 0.0);
    lost.into_iter().map(|lost| any.then_some(lost)).collect()
}
