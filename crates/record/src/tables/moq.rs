//! Media over QUIC.

use suiro_units::{BitRate, Duration, Time};

use crate::table;
use crate::table::Text;
use crate::words::FlowRole;

table! {
    /// One QUIC connection of one endpoint at one moment, at most every 10 ms; counters count from the connection's
    /// beginning.
    QuicRow = "quic" {
        /// When it was sampled.
        t_ns: Time,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Number of the connection at this endpoint, from 1, as in `moq_sessions`.
        session: u64,
        /// The other end, `ADDRESS:PORT`; null where it is not known.
        remote: Option<Text>,
        /// Its congestion control.
        congestion: Text,
        /// Congestion window; null where a browser does not report it.
        cwnd_bytes: Option<u64>,
        /// Slow-start threshold; null while it is infinite, and where the congestion control has none.
        ssthresh_bytes: Option<u64>,
        /// Sent and neither acknowledged nor known lost; null where a browser does not report it.
        in_flight_bytes: Option<u64>,
        /// Passed to the connection and still to be sent, as an estimate from outside: the bytes that streams and datagrams
        /// took since there was last nothing to send, minus those sent since. What was lost of streams is added until it is
        /// sent again. The rest of streams that were reset, such as those given up, is left out. Null for a browser.
        waiting_bytes: Option<u64>,
        /// Smoothed round-trip time (RFC 9002 §5.3).
        srtt_ns: Duration,
        /// Least round-trip time of the connection; null before the first acknowledgement.
        min_rtt_ns: Option<Duration>,
        /// The pacing rate of the congestion control, or a browser's estimate of its sending rate; null where only the
        /// window limits the rate.
        pacing_bps: Option<BitRate>,
        /// UDP datagrams sent; like the counters that follow, null where a browser does not report it.
        sent_packets: Option<u64>,
        /// Bytes of their payloads.
        sent_bytes: Option<u64>,
        /// Bytes of UDP payloads received.
        received_bytes: Option<u64>,
        /// Packets that were declared lost.
        lost_packets: Option<u64>,
        /// Congestion events that the congestion control received; null where a browser does not report it.
        congestion_events: Option<u64>,
        /// The bit rate that the encoder is set to; null where the endpoint has none, and while it does not run.
        target_bps: Option<BitRate>,
    }
}

table! {
    /// One session of Media over QUIC Transport at one endpoint, from the connection's beginning to its end.
    MoqSessionRow = "moq_sessions" {
        /// When the connection was begun, or came.
        t_ns: Time,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Number of the session at this endpoint, from 1.
        session: u64,
        /// Whether the endpoint connected (`client`) or accepted (`server`).
        role: FlowRole,
        /// `LOCAL>REMOTE`, addresses and ports; `*` in place of a local end that is not known.
        addresses: Text,
        /// The congestion control of this end. A browser reports only the requested one, as `default (Chromium)`, or
        /// nothing: `not known`.
        congestion: Text,
        /// The version that was negotiated, such as `moq-transport-18`; null without an agreement.
        version: Option<Text>,
        /// When QUIC's handshake was done; null if it never was.
        connected_ns: Option<Time>,
        /// When the session of MoQT was set up; null if it never was.
        set_up_ns: Option<Time>,
        /// When the connection ended; null if the trial ended before.
        ended_ns: Option<Time>,
        /// Why; null if it did not end.
        ended: Option<Text>,
        /// Streams that this end opened.
        streams: u64,
        /// Datagrams that this end passed to QUIC; null for a browser.
        datagrams: Option<u64>,
        /// How often this viewer changed to another quality; null for other endpoints.
        switches: Option<u64>,
    }
}

table! {
    /// One object of a data track that a viewer of Media over QUIC Transport received.
    MoqDataRow = "moq_data" {
        /// When it was received.
        t_ns: Time,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Its number, from 0.
        number: u64,
        /// When its publisher made it, by the trial's clock.
        published_ns: i64,
        /// Its size.
        bytes: u64,
    }
}
