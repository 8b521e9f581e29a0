//! Why: what limited flows, and what time that viewers waited came from.

use suiro_record::words::{Cause, Effect};

use crate::family::{Family, Measure, Subject};
use crate::instance::Instance;
use crate::period::Period;
use crate::view::View;
use crate::why::{self, Why};

/// All flows and viewers of a trial.
pub(super) struct Causes;

impl Subject for Causes {
    type One<'v> = (&'v Why, Period);

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, (&'v Why, Period))> {
        let why = why::of(view);
        let any = !why.subjects.is_empty() || !why.effects.is_empty();
        any.then(|| (Instance::only(), (why, view.period))).into_iter().collect()
    }
}

pub(super) static FAMILY: Family<Causes> = Family { metrics: METRICS, series: &[] };

/// The share of the flows' time that a cause limited: viewers if there are any, or else all flows.
fn limited((why, period): &(&Why, Period), cause: Cause) -> Option<f64> {
    let viewers = why.subjects.iter().any(|subject| subject.is_viewer);
    let counted = why.subjects.iter().filter(|subject| subject.is_viewer || !viewers);
    let limits = counted.flat_map(|subject| &subject.limits);
    let (mut own, mut all) = (0.0, 0.0);
    for limit in limits {
        let length = limit.length_after(period.from_ns).unwrap_or(0) as f64;
        all += length;
        own += if limit.cause == cause { length } else { 0.0 };
    }
    (all > 0.0).then(|| own / all)
}

/// The share of the time stalled or frozen that came from a cause.
fn stalled((why, period): &(&Why, Period), cause: Cause) -> Option<f64> {
    let still = |effect: Effect| matches!(effect, Effect::Stall | Effect::Freeze);
    let (mut own, mut all) = (0.0, 0.0);
    for effect in why.effects.iter().filter(|it| still(it.effect)) {
        let length = effect.length_after(period.from_ns).unwrap_or(0) as f64;
        all += length;
        own += length
            * effect.shares.iter().filter(|(it, _)| *it == cause).map(|(_, s)| s).sum::<f64>();
    }
    (all > 0.0).then(|| own / all)
}

static METRICS: &[Measure<Causes>] = metrics! {
    why.no_request_ratio ["ratio", Neither, 3] "Limited by: no request",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the player requested nothing: its buffer was full, or the next segment did not exist yet.",
        |why| limited(why, Cause::NoRequest);
    why.application_ratio ["ratio", Neither, 3] "Limited by: nothing to send",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the application had nothing to send.",
        |why| limited(why, Cause::Application);
    why.round_trip_ratio ["ratio", Neither, 3] "Limited by: round trip",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: a request or the last bytes of an answer were on their way.",
        |why| limited(why, Cause::RoundTrip);
    why.handshake_ratio ["ratio", Neither, 3] "Limited by: opening a connection",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the player opened a connection, for a request that it had.",
        |why| limited(why, Cause::Handshake);
    why.manifest_ratio ["ratio", Neither, 3] "Limited by: manifest",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the player waited for a manifest before it could request media.",
        |why| limited(why, Cause::Manifest);
    why.send_buffer_ratio ["ratio", Neither, 3] "Limited by: send buffer",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the sender's socket buffer was full, and all of it was in flight.",
        |why| limited(why, Cause::SendBuffer);
    why.congestion_window_ratio ["ratio", Neither, 3] "Limited by: congestion window",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the congestion window, while no queue was on the way.",
        |why| limited(why, Cause::CongestionWindow);
    why.receive_window_ratio ["ratio", Neither, 3] "Limited by: receive window",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the receive window, because the receiver's buffer is small.",
        |why| limited(why, Cause::ReceiveWindow);
    why.slow_reader_ratio ["ratio", Neither, 3] "Limited by: slow reader",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the receive window, because the receiver read too slowly.",
        |why| limited(why, Cause::SlowReader);
    why.pacing_ratio ["ratio", Neither, 3] "Limited by: pacing",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the sender's pacing.",
        |why| limited(why, Cause::Pacing);
    why.link_rate_ratio ["ratio", Neither, 3] "Limited by: link rate",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the link's rate: it was never idle.",
        |why| limited(why, Cause::LinkRate);
    why.rate_step_ratio ["ratio", Neither, 3] "Limited by: link rate after a fall",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the link's rate, after it had fallen.",
        |why| limited(why, Cause::RateStep);
    why.competing_ratio ["ratio", Neither, 3] "Limited by: other flows",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the link's rate, which other flows had a share of.",
        |why| limited(why, Cause::Competing);
    why.bufferbloat_ratio ["ratio", Neither, 3] "Limited by: queue of others",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: a queue of more than 200 ms that other flows had filled.",
        |why| limited(why, Cause::Bufferbloat);
    why.outage_ratio ["ratio", Neither, 3] "Limited by: outage",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the link carried nothing at all.",
        |why| limited(why, Cause::Outage);
    why.policer_ratio ["ratio", Neither, 3] "Limited by: policer",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: a limit on the rate without room to wait: packets above it were dropped at once.",
        |why| limited(why, Cause::Policer);
    why.loss_ratio ["ratio", Neither, 3] "Limited by: loss",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: packets that the link lost, their repair, and the congestion window that they cost.",
        |why| limited(why, Cause::Loss);
    why.corruption_ratio ["ratio", Neither, 3] "Limited by: corruption",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: packets whose bits the link changed, so that their receiver dropped them.",
        |why| limited(why, Cause::Corruption);
    why.reordering_ratio ["ratio", Neither, 3] "Limited by: reordering",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: packets that others overtook on the link.",
        |why| limited(why, Cause::Reordering);
    why.delay_ratio ["ratio", Neither, 3] "Limited by: delay of the link",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the link's delay, apart from its queue, which had risen.",
        |why| limited(why, Cause::Delay);
    why.jitter_ratio ["ratio", Neither, 3] "Limited by: jitter of the link",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the link's delay, apart from its queue, which changed from packet to packet.",
        |why| limited(why, Cause::Jitter);
    why.ack_path_ratio ["ratio", Neither, 3] "Limited by: acknowledgements",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: acknowledgements and requests that the link lost or delayed on their way back to the sender.",
        |why| limited(why, Cause::AckPath);
    why.timeout_ratio ["ratio", Neither, 3] "Limited by: timeout",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: a retransmission timeout that no packet of the link explains.",
        |why| limited(why, Cause::Timeout);
    why.encoder_ratio ["ratio", Neither, 3] "Limited by: encoder overshoot",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the encoder exceeded its bit rate.",
        |why| limited(why, Cause::Encoder);
    why.cache_ratio ["ratio", Neither, 3] "Limited by: cache",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: a cache before the player was slow, served what had expired, failed, or cut an answer off.",
        |why| limited(why, Cause::Cache);
    why.server_processor_ratio ["ratio", Neither, 3] "Limited by: server's CPU",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the sending endpoint did not get a CPU, or was stopped.",
        |why| limited(why, Cause::ServerProcessor);
    why.client_processor_ratio ["ratio", Neither, 3] "Limited by: client's CPU",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the receiving endpoint did not get a CPU, or was stopped.",
        |why| limited(why, Cause::ClientProcessor);
    why.emulator_ratio ["ratio", Neither, 3] "Limited by: emulator",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the emulator handed packets over too late.",
        |why| limited(why, Cause::Emulator);
    why.unknown_ratio ["ratio", Neither, 3] "Limited by: not known",
        "Share of the time of the viewers' flows, or of all flows if there is no viewer, that this limited: the records do not show it.",
        |why| limited(why, Cause::Unknown);
    why.stalled_no_request_ratio ["ratio", Neither, 3] "Stalled by: no request",
        "Share of the time stalled or frozen that came from this: the player requested nothing: its buffer was full, or the next segment did not exist yet. Null if nothing stalled.",
        |why| stalled(why, Cause::NoRequest);
    why.stalled_application_ratio ["ratio", Neither, 3] "Stalled by: nothing to send",
        "Share of the time stalled or frozen that came from this: the application had nothing to send. Null if nothing stalled.",
        |why| stalled(why, Cause::Application);
    why.stalled_round_trip_ratio ["ratio", Neither, 3] "Stalled by: round trip",
        "Share of the time stalled or frozen that came from this: a request or the last bytes of an answer were on their way. Null if nothing stalled.",
        |why| stalled(why, Cause::RoundTrip);
    why.stalled_handshake_ratio ["ratio", Neither, 3] "Stalled by: opening a connection",
        "Share of the time stalled or frozen that came from this: the player opened a connection, for a request that it had. Null if nothing stalled.",
        |why| stalled(why, Cause::Handshake);
    why.stalled_manifest_ratio ["ratio", Neither, 3] "Stalled by: manifest",
        "Share of the time stalled or frozen that came from this: the player waited for a manifest before it could request media. Null if nothing stalled.",
        |why| stalled(why, Cause::Manifest);
    why.stalled_send_buffer_ratio ["ratio", Neither, 3] "Stalled by: send buffer",
        "Share of the time stalled or frozen that came from this: the sender's socket buffer was full, and all of it was in flight. Null if nothing stalled.",
        |why| stalled(why, Cause::SendBuffer);
    why.stalled_congestion_window_ratio ["ratio", Neither, 3] "Stalled by: congestion window",
        "Share of the time stalled or frozen that came from this: the congestion window, while no queue was on the way. Null if nothing stalled.",
        |why| stalled(why, Cause::CongestionWindow);
    why.stalled_receive_window_ratio ["ratio", Neither, 3] "Stalled by: receive window",
        "Share of the time stalled or frozen that came from this: the receive window, because the receiver's buffer is small. Null if nothing stalled.",
        |why| stalled(why, Cause::ReceiveWindow);
    why.stalled_slow_reader_ratio ["ratio", Neither, 3] "Stalled by: slow reader",
        "Share of the time stalled or frozen that came from this: the receive window, because the receiver read too slowly. Null if nothing stalled.",
        |why| stalled(why, Cause::SlowReader);
    why.stalled_pacing_ratio ["ratio", Neither, 3] "Stalled by: pacing",
        "Share of the time stalled or frozen that came from this: the sender's pacing. Null if nothing stalled.",
        |why| stalled(why, Cause::Pacing);
    why.stalled_link_rate_ratio ["ratio", Neither, 3] "Stalled by: link rate",
        "Share of the time stalled or frozen that came from this: the link's rate: it was never idle. Null if nothing stalled.",
        |why| stalled(why, Cause::LinkRate);
    why.stalled_rate_step_ratio ["ratio", Neither, 3] "Stalled by: link rate after a fall",
        "Share of the time stalled or frozen that came from this: the link's rate, after it had fallen. Null if nothing stalled.",
        |why| stalled(why, Cause::RateStep);
    why.stalled_competing_ratio ["ratio", Neither, 3] "Stalled by: other flows",
        "Share of the time stalled or frozen that came from this: the link's rate, which other flows had a share of. Null if nothing stalled.",
        |why| stalled(why, Cause::Competing);
    why.stalled_bufferbloat_ratio ["ratio", Neither, 3] "Stalled by: queue of others",
        "Share of the time stalled or frozen that came from this: a queue of more than 200 ms that other flows had filled. Null if nothing stalled.",
        |why| stalled(why, Cause::Bufferbloat);
    why.stalled_outage_ratio ["ratio", Neither, 3] "Stalled by: outage",
        "Share of the time stalled or frozen that came from this: the link carried nothing at all. Null if nothing stalled.",
        |why| stalled(why, Cause::Outage);
    why.stalled_policer_ratio ["ratio", Neither, 3] "Stalled by: policer",
        "Share of the time stalled or frozen that came from this: a limit on the rate without room to wait: packets above it were dropped at once. Null if nothing stalled.",
        |why| stalled(why, Cause::Policer);
    why.stalled_loss_ratio ["ratio", Neither, 3] "Stalled by: loss",
        "Share of the time stalled or frozen that came from this: packets that the link lost, their repair, and the congestion window that they cost. Null if nothing stalled.",
        |why| stalled(why, Cause::Loss);
    why.stalled_head_of_line_ratio ["ratio", Neither, 3] "Stalled by: loss of another response",
        "Share of the time stalled or frozen that came from this: bytes that had arrived waited for the repair of a packet of another response on the same TCP connection (head-of-line blocking). Null if nothing stalled.",
        |why| stalled(why, Cause::HeadOfLine);
    why.stalled_corruption_ratio ["ratio", Neither, 3] "Stalled by: corruption",
        "Share of the time stalled or frozen that came from this: packets whose bits the link changed, so that their receiver dropped them. Null if nothing stalled.",
        |why| stalled(why, Cause::Corruption);
    why.stalled_reordering_ratio ["ratio", Neither, 3] "Stalled by: reordering",
        "Share of the time stalled or frozen that came from this: packets that others overtook on the link. Null if nothing stalled.",
        |why| stalled(why, Cause::Reordering);
    why.stalled_delay_ratio ["ratio", Neither, 3] "Stalled by: delay of the link",
        "Share of the time stalled or frozen that came from this: the link's delay, apart from its queue, which had risen. Null if nothing stalled.",
        |why| stalled(why, Cause::Delay);
    why.stalled_jitter_ratio ["ratio", Neither, 3] "Stalled by: jitter of the link",
        "Share of the time stalled or frozen that came from this: the link's delay, apart from its queue, which changed from packet to packet. Null if nothing stalled.",
        |why| stalled(why, Cause::Jitter);
    why.stalled_ack_path_ratio ["ratio", Neither, 3] "Stalled by: acknowledgements",
        "Share of the time stalled or frozen that came from this: acknowledgements and requests that the link lost or delayed on their way back to the sender. Null if nothing stalled.",
        |why| stalled(why, Cause::AckPath);
    why.stalled_timeout_ratio ["ratio", Neither, 3] "Stalled by: timeout",
        "Share of the time stalled or frozen that came from this: a retransmission timeout that no packet of the link explains. Null if nothing stalled.",
        |why| stalled(why, Cause::Timeout);
    why.stalled_oversized_rung_ratio ["ratio", Neither, 3] "Stalled by: rung too high",
        "Share of the time stalled or frozen that came from this: the player had chosen a rung above what the link carries. Null if nothing stalled.",
        |why| stalled(why, Cause::OversizedRung);
    why.stalled_quality_change_ratio ["ratio", Neither, 3] "Stalled by: change of quality",
        "Share of the time stalled or frozen that came from this: the viewer changed to another quality, and left out the frames between the last of the old one and the first of the new one. Null if nothing stalled.",
        |why| stalled(why, Cause::QualityChange);
    why.stalled_encoder_ratio ["ratio", Neither, 3] "Stalled by: encoder overshoot",
        "Share of the time stalled or frozen that came from this: the encoder exceeded its bit rate. Null if nothing stalled.",
        |why| stalled(why, Cause::Encoder);
    why.stalled_encoder_choice_ratio ["ratio", Neither, 3] "Stalled by: encoder's choice",
        "Share of the time stalled or frozen that came from this: the encoder was set to fewer frames per second than the camera has, or to smaller ones. Null if nothing stalled.",
        |why| stalled(why, Cause::EncoderChoice);
    why.stalled_jitter_buffer_ratio ["ratio", Neither, 3] "Stalled by: jitter buffer",
        "Share of the time stalled or frozen that came from this: the viewer held frames that had arrived, for the smoothness that its jitter buffer is for. Null if nothing stalled.",
        |why| stalled(why, Cause::JitterBuffer);
    why.stalled_key_frame_ratio ["ratio", Neither, 3] "Stalled by: late key frame",
        "Share of the time stalled or frozen that came from this: a key frame came late: until then nothing could be decoded. Null if nothing stalled.",
        |why| stalled(why, Cause::KeyFrame);
    why.stalled_cache_ratio ["ratio", Neither, 3] "Stalled by: cache",
        "Share of the time stalled or frozen that came from this: a cache before the player was slow, served what had expired, failed, or cut an answer off. Null if nothing stalled.",
        |why| stalled(why, Cause::Cache);
    why.stalled_server_processor_ratio ["ratio", Neither, 3] "Stalled by: server's CPU",
        "Share of the time stalled or frozen that came from this: the sending endpoint did not get a CPU, or was stopped. Null if nothing stalled.",
        |why| stalled(why, Cause::ServerProcessor);
    why.stalled_client_processor_ratio ["ratio", Neither, 3] "Stalled by: client's CPU",
        "Share of the time stalled or frozen that came from this: the receiving endpoint did not get a CPU, or was stopped. Null if nothing stalled.",
        |why| stalled(why, Cause::ClientProcessor);
    why.stalled_emulator_ratio ["ratio", Neither, 3] "Stalled by: emulator",
        "Share of the time stalled or frozen that came from this: the emulator handed packets over too late. Null if nothing stalled.",
        |why| stalled(why, Cause::Emulator);
    why.stalled_unknown_ratio ["ratio", Neither, 3] "Stalled by: not known",
        "Share of the time stalled or frozen that came from this: the records do not show it. Null if nothing stalled.",
        |why| stalled(why, Cause::Unknown);
};
