//! QUIC connections that carry media, and what setting a session of Media over QUIC up took.

use suiro_record::tables::QuicRow;
use suiro_units::Duration;

use crate::bins::Bins;
use crate::family::{Curve, Family, Measure, Subject};
use crate::instance::Instance;
use crate::quic::{Connection, Session, connections, sessions, srtt_ms};
use crate::view::View;

/// Each connection, at the end that sends more than it receives.
pub(super) struct Sending;

/// Each session of a viewer.
pub(super) struct Viewing;

impl Subject for Sending {
    type One<'v> = Connection<'v>;

    const PLACE: &'static str = ".ENDPOINT";

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Connection<'v>)> {
        let named = |connection: Connection<'v>| (Instance::named(&connection.name), connection);
        connections(view).into_iter().map(named).collect()
    }
}

impl Subject for Viewing {
    type One<'v> = Session<'v>;

    const HAS_MEAN: bool = true;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Session<'v>)> {
        let all = sessions(view);
        let several = all.len() > 1;
        let named = |session: Session<'v>| (Instance::among(several, session.name), session);
        all.into_iter().map(named).collect()
    }
}

pub(super) static SENDING: Family<Sending> = Family { metrics: METRICS, series: SERIES };

pub(super) static VIEWING: Family<Viewing> = Family { metrics: VIEWED, series: &[] };

static METRICS: &[Measure<Sending>] = metrics! {
    #[main] quic.cwnd_mean_bytes ["B", Neither, 3] "Congestion window, QUIC",
        "Congestion window of the connection over which the endpoint sends media, mean over time. An endpoint that \
         sends media over several has a metric for each: `quic.ENDPOINT.NUMBER.…`, with the numbers of table \
         `moq_sessions`.",
        |c| c.over_time(|row| row.cwnd_bytes.map(|it| it as f64)).mean();
    quic.cwnd_min_bytes ["B", Neither, 3] "Congestion window, QUIC, minimum",
        "Smallest congestion window of the connection.",
        |c| c.over_time(|row| row.cwnd_bytes.map(|it| it as f64)).min();
    #[main] quic.srtt_mean_ms ["ms", Lower, 3] "RTT, QUIC",
        "Smoothed round-trip time (RFC 9002), mean over time.",
        |c| c.over_time(srtt_ms).mean();
    quic.srtt_p95_ms ["ms", Lower, 3] "RTT, QUIC, 95 %",
        "95th percentile over time of the smoothed round-trip time.",
        |c| c.over_time(srtt_ms).percentile(0.95);
    quic.rtt_min_ms ["ms", Lower, 3] "Unsmoothed RTT, QUIC, minimum",
        "Smallest round-trip time of the connection since it began, also in a warm-up, unsmoothed.",
        |c| c.over_time(|row| row.min_rtt_ns.map(Duration::as_millis_f64)).min();
    quic.in_flight_mean_bytes ["B", Neither, 3] "In flight, QUIC",
        "Bytes sent and neither acknowledged nor known lost, mean over time.",
        |c| c.over_time(|row| row.in_flight_bytes.map(|it| it as f64)).mean();
    #[main] quic.waiting_mean_bytes ["B", Lower, 3] "Waiting for QUIC",
        "Bytes that streams had taken and were not sent yet, mean over time.",
        |c| c.over_time(|row| row.waiting_bytes.map(|it| it as f64)).mean();
    quic.waiting_max_bytes ["B", Lower, 3] "Waiting for QUIC, maximum",
        "Most bytes that streams had taken and were not sent yet.",
        |c| c.over_time(|row| row.waiting_bytes.map(|it| it as f64)).max();
    quic.waiting_ratio ["ratio", Lower, 3] "Time with something waiting",
        "Share of the time in which something waited to be sent: congestion control held the sender back.",
        |c| c.over_time(|row| row.waiting_bytes.map(|it| f64::from(it > 0))).mean();
    quic.sent_mean_bps ["bit/s", Higher, 3] "Sent, QUIC",
        "UDP payload that the connection sent, mean over the time from its first sample to its last.",
        |c| c.sent_bps();
    quic.target_mean_bps ["bit/s", Higher, 3] "Encoder, MoQ",
        "Bit rate that the encoder of a publisher was set to, mean over time.",
        |c| c.over_time(|row| Some(row.target_bps?.as_bps() as f64)).mean();
    quic.lost_packets ["packets", Lower, 3] "Packets lost, QUIC",
        "Packets that the sender declared lost; some of them may have come late.",
        |c| c.known(|row| row.lost_packets);
    quic.loss_ratio ["ratio", Lower, 3] "Loss, QUIC",
        "Packets that the sender declared lost, as a share of those sent.",
        |c| c.loss_ratio();
    quic.congestion_events ["times", Lower, 3] "Congestion events",
        "Congestion events that the congestion control received.",
        |c| c.known(|row| row.congestion_events);
};

static SERIES: &[Curve<Sending>] = series! {
    quic.cwnd_bytes [Window, "B", Line] "congestion window",
        "of the QUIC connection over which the endpoint sends media",
        |c, bins| held(c, bins, |row| row.cwnd_bytes.map(|it| it as f64));
    quic.in_flight_bytes [Window, "B", Context] "in flight",
        "bytes sent and neither acknowledged nor known lost",
        |c, bins| held(c, bins, |row| row.in_flight_bytes.map(|it| it as f64));
    quic.waiting_bytes [Waiting, "B", Line] "waiting",
        "bytes that streams have taken and are not sent yet",
        |c, bins| held(c, bins, |row| row.waiting_bytes.map(|it| it as f64));
    quic.pacing_bps [Pacing, "bit/s", Line] "pacing rate",
        "as the congestion control sets it; none where it leaves that to the window",
        |c, bins| held(c, bins, |row| Some(row.pacing_bps?.as_bps() as f64));
    quic.target_bps [Estimate, "bit/s", Step] "encoder",
        "the bit rate that the encoder of a publisher of Media over QUIC is set to",
        |c, bins| held(c, bins, |row| Some(row.target_bps?.as_bps() as f64));
    quic.srtt_ms [Rtt, "ms", Line] "smoothed RTT",
        "RFC 9002, of the QUIC connection",
        |c, bins| held(c, bins, srtt_ms);
    quic.min_rtt_ms [Rtt, "ms", Context] "least RTT",
        "of the QUIC connection since it began",
        |c, bins| held(c, bins, |row| row.min_rtt_ns.map(Duration::as_millis_f64));
};

static VIEWED: &[Measure<Viewing>] = metrics! {
    moq.set_up_ms ["ms", Lower, 3] "Setting up a session",
        "From the beginning of a viewer's connection until its session of Media over QUIC was set up, also in a warm-up.",
        |s| s.set_up_ms();
    #[main] moq.first_frame_ms ["ms", Lower, 3] "First frame, MoQ",
        "From the beginning of a viewer's connection to the first frame shown, also in a warm-up.",
        |s| s.first_frame_ms();
    #[main] moq.transfer_p50_ms ["ms", Lower, 4] "Transfer, MoQ, median",
        "From the hand-over of a frame to the publisher's QUIC until the viewer had all of it, through the relay, median \
         over the frames that came before they were given up.",
        |s| s.transfer_ms().percentile(0.5);
    moq.transfer_p95_ms ["ms", Lower, 4] "Transfer, MoQ, 95 %",
        "The same, 95th percentile. Frames that came after they were given up do not count: they are among `moq.frames_missing`.",
        |s| s.transfer_ms().percentile(0.95);
    moq.frame_mean_bytes ["B", Neither, 4] "Size of a frame, MoQ",
        "Bytes of the coded frames that came, mean.",
        |s| s.frame_bytes();
    moq.frames_undecodable ["frames", Lower, 3] "Frames undecodable, MoQ",
        "Frames that came and could not be decoded, because one that they refer to had not come in time. In the trial's last second it may be under way: frames of that second do not count. \
         Neither do those that came before the key frame with which the viewer joined.",
        |s| Some(s.frames_undecodable());
    moq.frames_missing ["frames", Lower, 3] "Frames missing, MoQ",
        "Frames that the publisher's encoder made and that had not come when the viewer gave them up, although a later one came. \
         Frames given up in the trial's last second do not count; null if it is not known what the encoder made. A browser gives \
         up none: of its frames, those count that never came although a later one had come a second before the end.",
        |s| s.frames_missing();
    moq.quality_mean_bps ["bit/s", Higher, 3] "Quality, MoQ",
        "Bit rate that the encoder of each frame that came was set to, mean over the frames.",
        |s| s.quality_bps();
    moq.switches ["times", Neither, 3] "Changes of quality, MoQ",
        "How often the viewer changed to another quality of the broadcast, also in a warm-up; null of a viewer that does not.",
        |s| s.switches();
    moq.data_latency_p50_ms ["ms", Lower, 4] "Latency of data, MoQ, median",
        "From the publication of an object of a data track until the viewer had received it, median.",
        |s| s.data_ms().percentile(0.5);
    moq.data_latency_p95_ms ["ms", Lower, 4] "Latency of data, MoQ, 95 %",
        "From the publication of an object of a data track until the viewer had received it, 95th percentile.",
        |s| s.data_ms().percentile(0.95);
    moq.data_missing ["objects", Lower, 3] "Missing data, MoQ",
        "Objects of a data track that did not arrive, of the numbers from the first to the last that did.",
        |s| s.data_missing();
};

fn held(
    connection: &Connection<'_>,
    bins: &Bins,
    of: impl Fn(&QuicRow) -> Option<f64>,
) -> Vec<Option<f64>> {
    bins.held_mean(connection.stretches(of))
}
