//! Media over RTP and WebRTC, and video calls.

use suiro_units::{BitRate, Duration, Time};

use crate::table;
use crate::table::Text;
use crate::words::{FlowRole, SessionEnd, Signalling};

table! {
    /// One control period of a sender of real-time media: from one update of its rate control (a
    /// report or a timer) to the next; and one each time that its source begins a group of
    /// frames. Rates count IP packets.
    RateRow = "rate" {
        /// When the period ended.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// How long it was.
        period_ns: i64,
        /// The rate that the rate control allows from now on.
        target_bps: i64,
        /// The rate sent in the period, retransmissions included.
        send_bps: i64,
        /// The rate that the source produced in the period, before anything was held back or dropped.
        media_bps: i64,
        /// Share lost of the packets that a report of this period covers; null if there was no
        /// report, or it covers no packets.
        loss_ratio: Option<f64>,
        /// The round-trip time, smoothed; null before the first sample.
        rtt_ns: Option<i64>,
        /// The rate at the receiver, from the reports of the period; null if they do not contain it.
        recv_bps: Option<i64>,
        /// The quantiser scale of the version that is being sent; null for an encoder in the loop.
        quantiser: Option<i64>,
        /// Bit rate that the encoder is set to; for a prepared version, its mean rate.
        encoder_bps: Option<i64>,
        /// Bytes waiting in the sender.
        queue_bytes: i64,
        /// The reason why the circuit breaker (RFC 8083) stopped the sender in this period; almost always null.
        broken: Option<Text>,
        /// Interarrival jitter (RFC 3550 §6.4.1) in the last report of the period: the smoothed change of packets'
        /// transit times; null if there was no report.
        jitter_ns: Option<Duration>,
    }
}

table! {
    /// One frame of a camera that its encoder took, at the sender. A frame whose number is missing between two rows was not
    /// taken: because of the frame rate that the encoder was set to, or because it was busy (`missed`).
    EncoderRow = "encoder" {
        /// When it was encoded, or left out.
        t_ns: Time,
        /// The sender's endpoint.
        endpoint: Text,
        /// Which of the sender's encoders, from 0, that of the highest quality. A viewer's frame with this number came from
        /// the one whose `target_bps` is its `rung_bps`.
        quality: u64,
        /// Its number in the source, from 0, as in `frames`.
        frame: i64,
        /// When it was captured.
        captured_ns: Time,
        /// Its size as encoded; null if the encoder left it out to keep its bit rate.
        encoded_bytes: Option<u64>,
        /// True of a key frame.
        key: bool,
        /// The bit rate that the encoder was set to.
        target_bps: BitRate,
        /// Width that it was set to.
        width: u64,
        /// Height that it was set to.
        height: u64,
        /// Frames per second that it was set to.
        fps: u64,
        /// Frames just before it that were due and missed, because the encoder was busy.
        missed: u64,
        /// True if it was thrown away, because the sender had not taken 64 before it.
        lost: bool,
    }
}

table! {
    /// One end of a WebRTC peer connection in about 100 ms. Rates are those of all IP packets (media, feedback, DTLS,
    /// STUN); rows are written while the connection exists.
    WebrtcRow = "webrtc" {
        /// When the interval ended.
        t_ns: Time,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Number of the connection at this endpoint, from 1, as in `webrtc_sessions`.
        session: u64,
        /// Whether the endpoint sends or receives the video.
        role: FlowRole,
        /// How long the interval was.
        period_ns: Duration,
        /// The congestion control's estimate of the path's capacity; null at a receiver.
        estimate_bps: Option<BitRate>,
        /// Bit rate that the encoder is set to; null at a receiver.
        target_bps: Option<BitRate>,
        /// The rate sent.
        sent_bps: BitRate,
        /// The rate received.
        received_bps: BitRate,
        /// Round-trip time from RTCP, or else from ICE's checks; null before the first.
        rtt_ns: Option<Duration>,
        /// Share of packets lost in the last second, from transport-wide feedback; for Chromium, since the last
        /// receiver report but one. Null at a receiver, and without feedback.
        loss_ratio: Option<f64>,
        /// Packets that the receiver asked for again (NACK).
        nacks: u64,
        /// Packets that were sent again because the receiver requested them; for Chromium, also those sent again to
        /// probe for capacity; 0 at a receiver.
        retransmissions: u64,
        /// Bytes that were sent only to probe for capacity; 0 at a receiver; null if Chromium sends, which does not
        /// count them.
        padding_bytes: Option<u64>,
        /// Requests for a key frame with a PLI (picture loss indication).
        plis: u64,
        /// Requests for a key frame with a FIR (full intra request).
        firs: u64,
        /// Bytes that wait for the pacer; null at a receiver, and for Chromium.
        queue_bytes: Option<u64>,
        /// For how long the first of them has waited; null at a receiver, and for Chromium.
        queue_ns: Option<Duration>,
        /// Width of the frames that the encoder is set to, or last made; null at a receiver.
        width: Option<i64>,
        /// Height of the frames that the encoder is set to, or last made; null at a receiver.
        height: Option<i64>,
        /// Frames per second that the encoder is set to; null at a receiver, and for Chromium, whose encoder takes the
        /// frames as they come.
        fps: Option<i64>,
        /// The encoder whose frames are sent, by its number in table `encoder`, 0 of the highest quality; before the first of
        /// them, the one that is to be. Null at a receiver, and for Chromium.
        quality: Option<u64>,
    }
}

table! {
    /// One WebRTC peer connection of one endpoint, from the offer to its end.
    WebrtcSessionRow = "webrtc_sessions" {
        /// When the offer was made, or arrived.
        t_ns: Time,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Number of the connection at this endpoint, from 1.
        session: u64,
        /// Whether the endpoint sends or receives the video.
        role: FlowRole,
        /// The protocol of the offer.
        signalling: Signalling,
        /// When the answer was there; null if it never was.
        answered_ns: Option<Time>,
        /// When ICE and DTLS were done; null if they never were.
        connected_ns: Option<Time>,
        /// When the first packet of video was sent or came; null if none was.
        first_packet_ns: Option<Time>,
        /// When the connection ended; null if the trial ended before.
        ended_ns: Option<Time>,
        /// How it ended.
        ended: Option<SessionEnd>,
        /// The endpoint's own addresses, its host candidates, separated by spaces.
        candidates: Text,
        /// The pair of candidates that was used, `LOCAL>REMOTE`; null without any.
        pair: Option<Text>,
        /// The codec that was agreed on, with its parameters; null without an agreement.
        codec: Option<Text>,
        /// Payload types: of the video, and of retransmissions.
        payload_types: Option<Text>,
        /// The feedback that was agreed on.
        feedback: Option<Text>,
        /// The header extensions that were agreed on.
        extensions: Option<Text>,
    }
}

table! {
    /// One end of a video call in about one second. A send call that fails drops its packet, and is counted. The times
    /// of encoding and decoding are elapsed times: they include the time in which other programs had the CPU.
    ConferenceRow = "conference" {
        /// When the period ended.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// How long it was: more than a second where the thread did not get the CPU.
        period_ns: i64,
        /// Frames that were captured, encoded and passed to the socket.
        captured_pictures: i64,
        /// Frames that the camera had and the thread captured too late, so that they are left out.
        skipped_pictures: i64,
        /// Elapsed time of capturing and encoding.
        encode_ns: i64,
        /// Packets that the kernel took.
        sent_packets: i64,
        /// Bytes of these packets, without IP and UDP headers.
        sent_bytes: i64,
        /// Packets dropped because the socket's send buffer was full (EAGAIN).
        dropped_again_packets: i64,
        /// Packets dropped because the device had no room (ENOBUFS).
        dropped_buffers_packets: i64,
        /// Packets dropped because the send call failed with another error.
        dropped_other_packets: i64,
        /// Packets received of the other end's stream.
        received_packets: i64,
        /// Packets received of frames that had already ended.
        late_packets: i64,
        /// Packets received that do not belong to the call.
        refused_packets: i64,
        /// Elapsed time of decoding.
        decode_ns: i64,
    }
}
