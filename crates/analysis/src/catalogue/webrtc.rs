//! WebRTC: the sender's estimate over what the path could carry, and what setting up a session took.

use suiro_record::tables::WebrtcRow;
use suiro_record::words::FlowRole;
use suiro_units::Duration;

use crate::bins::Bins;
use crate::family::{Curve, Family, Measure, Subject};
use crate::instance::Instance;
use crate::view::View;
use crate::webrtc::{Connection, connections};

/// Each connection of an endpoint that sends video.
pub(super) struct Senders;

/// Each connection of an endpoint that receives video.
pub(super) struct Receivers;

fn named(all: Vec<Connection<'_>>) -> Vec<(Instance, Connection<'_>)> {
    let several = all.len() > 1;
    all.into_iter().map(|one| (Instance::among(several, &one.name), one)).collect()
}

impl Subject for Senders {
    type One<'v> = Connection<'v>;

    const HAS_MEAN: bool = true;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Connection<'v>)> {
        named(connections(view, FlowRole::Sender))
    }
}

impl Subject for Receivers {
    type One<'v> = Connection<'v>;

    const HAS_MEAN: bool = true;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Connection<'v>)> {
        named(connections(view, FlowRole::Receiver))
    }
}

pub(super) static SENDERS: Family<Senders> = Family { metrics: METRICS, series: SERIES };

pub(super) static RECEIVERS: Family<Receivers> = Family { metrics: RECEIVED, series: &[] };

static METRICS: &[Measure<Senders>] = metrics! {
    #[main] webrtc.sent_mean_bps ["bit/s", Higher, 3] "Sent",
        "Rate of a WebRTC sender while it was connected: IP packets of media, retransmissions, padding and \
         everything else of the connection, mean over time.",
        |c| c.over_time(|row| Some(row.sent_bps.as_bps() as f64)).mean();
    #[main] webrtc.estimate_mean_bps ["bit/s", Higher, 3] "Estimate",
        "The sender's congestion control's estimate of the path's capacity, mean over time.",
        |c| c.over_time(|row| Some(row.estimate_bps?.as_bps() as f64)).mean();
    #[main] webrtc.utilisation ["ratio", Higher, 3] "Utilisation by WebRTC",
        "Bytes sent, as a share of the capacity of the narrowest link that carried the packets, from 20 s \
         after the connection on. Null without a limit.",
        |c| c.utilisation();
    #[main] webrtc.convergence_s ["s", Lower, 3] "Convergence of the estimate",
        "From the connection, and from each change of the capacity, to the moment from which the estimate stays \
         between 70 % and 115 % of it for 2 s; mean of those after which it did. Events of a warm-up do not count.",
        |c| c.convergence_s();
    webrtc.convergence_max_s ["s", Lower, 3] "Convergence of the estimate, longest",
        "The longest of these.",
        |c| c.convergence_max_s();
    webrtc.unconverged ["times", Lower, 3] "Estimate did not converge",
        "After how many of these events (the connection, each change of the capacity that lasts 2 s) the estimate did not \
         come that near before the next.",
        |c| c.unconverged();
    webrtc.overshoot_ratio ["ratio", Lower, 3] "Overshoot of the estimate",
        "By how much the estimate exceeded the capacity at most, as a share of it; the first second after a change \
         of the capacity does not count.",
        |c| c.overshoot_ratio();
    webrtc.undershoot_ratio ["ratio", Lower, 3] "Undershoot of the estimate",
        "By how much the estimate was below the capacity at most once it had converged, as a share of the capacity.",
        |c| c.undershoot_ratio();
    webrtc.rtt_mean_ms ["ms", Lower, 3] "RTT, WebRTC",
        "Round-trip time as the sender measures it, mean over time.",
        |c| c.over_time(|row| row.rtt_ns.map(Duration::as_millis_f64)).mean();
    webrtc.rtt_p95_ms ["ms", Lower, 3] "RTT, WebRTC, 95 %",
        "Round-trip time as the sender measures it, 95th percentile over time.",
        |c| c.over_time(|row| row.rtt_ns.map(Duration::as_millis_f64)).percentile(0.95);
    webrtc.loss_mean_ratio ["ratio", Lower, 3] "Loss, WebRTC",
        "Share of packets lost by transport-wide feedback, mean over time.",
        |c| c.over_time(|row| row.loss_ratio).mean();
    webrtc.pacer_p95_ms ["ms", Lower, 3] "Pacer queue, 95 %",
        "For how long the first packet in the pacer had waited, 95th percentile over time.",
        |c| c.over_time(|row| row.queue_ns.map(Duration::as_millis_f64)).percentile(0.95);
    webrtc.nacks ["packets", Lower, 3] "Packets asked for again",
        "Packets that the receiver asked the sender for again.",
        |c| Some(c.total(|row| row.nacks));
    webrtc.retransmissions ["packets", Lower, 3] "Retransmissions",
        "Packets that the sender sent again because they were asked for.",
        |c| Some(c.total(|row| row.retransmissions));
    webrtc.key_frame_requests ["times", Lower, 3] "Key frame requests",
        "Requests for a key frame, PLI and FIR, that the sender received.",
        |c| Some(c.total(|row| row.plis + row.firs));
    webrtc.padding_ratio ["ratio", Lower, 3] "Padding",
        "Bytes sent only to probe for capacity, as a share of all that was sent.",
        |c| c.padding_ratio();
    #[main] webrtc.height_mean ["lines", Higher, 4] "Frame height",
        "Height in pixels of the frames that the encoder was set to, mean over time.",
        |c| c.over_time(|row| row.height.map(|height| height as f64)).mean();
    webrtc.fps_mean ["1/s", Higher, 3] "Frame rate encoded",
        "Frames per second that the encoder was set to, mean over time.",
        |c| c.over_time(|row| row.fps.map(|fps| fps as f64)).mean();
    webrtc.steps ["times", Lower, 3] "Changes of size or frame rate",
        "How often the encoder was set to another size or frame rate.",
        |c| Some(c.steps());
    webrtc.switches ["times", Neither, 3] "Changes of quality, WebRTC",
        "How often the viewer of the connection was sent the frames of another encoder; null if Chromium sends.",
        |c| c.switches();
};

static SERIES: &[Curve<Senders>] = series! {
    webrtc.estimate_bps [Estimate, "bit/s", Line] "estimate",
        "what congestion control estimates that the path carries",
        |c, bins| held(c, bins, |row| Some(row.estimate_bps?.as_bps() as f64));
    webrtc.capacity_bps [Estimate, "bit/s", Bound] "capacity",
        "the rate of the narrowest link that carries the packets",
        |c, bins| bins.held_mean(c.capacity());
    webrtc.target_bps [Estimate, "bit/s", Step] "encoder",
        "the bit rate that the encoder is set to",
        |c, bins| held(c, bins, |row| Some(row.target_bps?.as_bps() as f64));
    webrtc.sent_bps [Estimate, "bit/s", Context] "sent",
        "IP packets of the connection, padding included",
        |c, bins| held(c, bins, |row| Some(row.sent_bps.as_bps() as f64));
    webrtc.height [PictureSize, "lines", Step] "lines",
        "the height in pixels that the encoder is set to",
        |c, bins| bins.held_last(c.stretches(|row| row.height.map(|height| height as f64)));
    webrtc.fps [FrameRate, "1/s", Step] "frames per second",
        "the frame rate that the encoder is set to",
        |c, bins| bins.held_last(c.stretches(|row| row.fps.map(|fps| fps as f64)));
    webrtc.rtt_ms [Rtt, "ms", Line] "round-trip time",
        "as the sender of the video measures it",
        |c, bins| held(c, bins, |row| row.rtt_ns.map(Duration::as_millis_f64));
};

static RECEIVED: &[Measure<Receivers>] = metrics! {
    webrtc.connect_ms ["ms", Lower, 3] "Connecting",
        "From a receiver's offer, or its arrival, to the end of ICE and DTLS, also in a warm-up.",
        |c| c.connect_ms();
    #[main] webrtc.first_frame_ms ["ms", Lower, 3] "First frame",
        "From a receiver's offer, or its arrival, to the first frame shown, also in a warm-up.",
        |c| c.first_frame_ms();
    webrtc.recovery_s ["s", Lower, 3] "Latency back after a fall",
        "From a fall of the capacity by a quarter or more, for 5 s or longer, until, of each later second before the next change, 95 % of the \
         frames shown were at most 300 ms old; the longest. Null without such a fall, or if that never happened.",
        |c| c.recovery_s();
    webrtc.freeze_after_fall_s ["s", Lower, 3] "Longest freeze after a fall",
        "The longest freeze within 10 s after a fall of the capacity by a quarter or more; 0 if there was none, null \
         without such a fall.",
        |c| c.freeze_after_fall_s();
};

fn held(
    connection: &Connection<'_>,
    bins: &Bins,
    of: fn(&WebrtcRow) -> Option<f64>,
) -> Vec<Option<f64>> {
    bins.held_mean(connection.stretches(of))
}
