//! Sockets that carry media.

use super::MS_PER_S;
use crate::family::{Curve, Family, Measure, Subject};
use crate::instance::Instance;
use crate::tcp::{Senders, senders, srtt_ms};
use crate::view::View;

/// All sockets that carry media, then, if several hosts send, each host's.
pub(super) struct Sending;

impl Subject for Sending {
    type One<'v> = Senders<'v>;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Senders<'v>)> {
        let named =
            |group: Senders<'v>| (group.host.map(Instance::named).unwrap_or_default(), group);
        senders(view.sockets(), view.period).into_iter().map(named).collect()
    }
}

pub(super) static FAMILY: Family<Sending> = Family { metrics: METRICS, series: SERIES };

static METRICS: &[Measure<Sending>] = metrics! {
    #[main] tcp.cwnd_mean_bytes ["B", Neither, 3] "Congestion window",
        "Congestion window of the sockets that carry media, mean over time. Table `flows` says which those are; \
         of a port that carries load, the sockets with more acknowledged than received, and at least 1 % of \
         what the busiest one had acknowledged. Without that table, all sockets of which that is true. A socket that \
         had less than 1 % of the busiest one to the same peer acknowledged is left out: that of a manifest. A warm-up counts for which \
         sockets those are.",
        |s| s.over_time(|row| Some(row.cwnd_bytes as f64)).mean();
    tcp.cwnd_ack_mean_bytes ["B", Neither, 3] "Congestion window, mean per ACK",
        "Congestion window of the sockets that carry media, mean over the ACKs that the sender received, as tools log \
         it that print a line for each ACK: a time in which nothing is sent does not count. Absent where \
         ACKs are not traced, which needs root.",
        |s| s.per_ack(|row| Some(row.cwnd_bytes as f64)).mean();
    tcp.cwnd_max_bytes ["B", Neither, 3] "Congestion window, maximum",
        "Greatest congestion window of the sockets that carry media.",
        |s| s.over_time(|row| Some(row.cwnd_bytes as f64)).max();
    #[main] tcp.srtt_mean_ms ["ms", Lower, 3] "RTT",
        "Smoothed round-trip time (RFC 6298) at the sockets that carry media, mean over time.",
        |s| s.over_time(srtt_ms).mean();
    tcp.srtt_ack_mean_ms ["ms", Lower, 3] "RTT, mean per ACK",
        "Smoothed round-trip time at the sockets that carry media, mean over the ACKs that the sender received. Absent \
         where ACKs are not traced, which needs root.",
        |s| s.per_ack(srtt_ms).mean();
    tcp.srtt_p95_ms ["ms", Lower, 3] "RTT, 95 %",
        "95th percentile over time of the smoothed round-trip time.",
        |s| s.over_time(srtt_ms).percentile(0.95);
    tcp.srtt_min_ms ["ms", Lower, 3] "RTT, minimum",
        "Smallest smoothed round-trip time.",
        |s| s.over_time(srtt_ms).min();
    tcp.rtt_min_ms ["ms", Lower, 3] "Unsmoothed RTT, minimum",
        "Smallest round-trip time that the kernel measured, unsmoothed. It remembers that of a warm-up.",
        |s| s.over_time(|row| row.min_rtt_us.map(|us| us as f64 / MS_PER_S)).min();
    #[main] tcp.retransmits ["segments", Lower, 3] "Retransmits",
        "Segments retransmitted by the sockets that carry media.",
        |s| Some(s.sockets.iter().map(|socket| socket.retransmits as f64).sum());
    tcp.in_flight_mean_bytes ["B", Neither, 3] "In flight",
        "Payload sent and neither acknowledged nor known lost, mean over time.",
        |s| s.over_time(|row| Some(row.in_flight_bytes as f64)).mean();
    tcp.acked_mean_bps ["bit/s", Higher, 3] "Acknowledged",
        "Payload that the receivers acknowledged, over the trial's duration: goodput as TCP sees it.",
        |s| acked_bps(s);
    tcp.sockets ["sockets", Neither, 3] "Media sockets",
        "Sockets that carry media, also in a warm-up.",
        |s| Some(s.sockets.len() as f64);
};

static SERIES: &[Curve<Sending>] = series! {
    tcp.cwnd_bytes [Window, "B", Line] "congestion window",
        "mean over time of the sockets that carry media",
        |s, bins| bins.held_mean(s.stretches(|row| Some(row.cwnd_bytes as f64)));
    tcp.ssthresh_bytes [Window, "B", Context] "slow-start threshold",
        "mean over time of the sockets that carry media; a gap while it is infinite",
        |s, bins| bins.held_mean(s.stretches(|row| row.ssthresh_bytes.map(|bytes| bytes as f64)));
    tcp.srtt_ms [Rtt, "ms", Line] "smoothed RTT",
        "RFC 6298, mean over time of the sockets that carry media",
        |s, bins| bins.held_mean(s.stretches(srtt_ms));
};

fn acked_bps(senders: &Senders) -> Option<f64> {
    let bytes: f64 = senders.sockets.iter().map(|socket| socket.acked_within_bytes as f64).sum();
    let bps = bytes * 8e9 / senders.period.length_ns();
    bps.is_finite().then_some(bps)
}
