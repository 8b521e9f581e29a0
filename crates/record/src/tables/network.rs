//! The packets on links and interfaces, and the flows and sockets that they belong to.

use suiro_units::Time;

use crate::table;
use crate::table::Text;
use crate::words::{
    Carries, Direction, FlowRole, LinkCause, TcpSource, TcpState, Transport, Verdict,
};

table! {
    /// One packet that met a link, in one direction. Written by the link itself: this is the truth
    /// about what was dropped, marked and delayed, and why.
    LinkRow = "link" {
        /// Arrival at the link.
        t_ns: i64,
        /// The link's name in the scenario.
        link: Text,
        /// Its direction.
        direction: Direction,
        /// Number of the packet in this direction, from 0; a duplicate has its original's number.
        packet: i64,
        /// `PROTOCOL SOURCE:PORT>DESTINATION:PORT`, for example `tcp 10.0.0.1:80>10.0.0.2:40000`.
        flow: Text,
        /// Size of the IP packet, headers included, without the Ethernet header.
        size_bytes: i64,
        /// Bytes of TCP or UDP payload; null where it is neither.
        payload_bytes: Option<i64>,
        /// Bytes in the queue when it arrived, itself and the packet in service excluded.
        queue_bytes: i64,
        /// Packets in the queue when it arrived, itself and the packet in service excluded.
        queue_packets: i64,
        /// What became of it.
        verdict: Verdict,
        /// Why it was dropped, or how it was altered; null for a plain delivery.
        cause: Option<LinkCause>,
        /// True if the queue discipline set ECN Congestion Experienced.
        ecn_marked: bool,
        /// When it left the queue and went into service; null if it never did.
        dequeued_ns: Option<i64>,
        /// When the emulated link delivers it, computed, not measured; null if it does not.
        scheduled_ns: Option<i64>,
        /// When it was delivered to the receiving host; null if it was not. Packets that left in one system call have
        /// their times spread evenly over it: no time is off by more than the duration of that call, which is in
        /// `departure_error` in `trial.json`.
        departed_ns: Option<i64>,
        /// How often it was sent on the medium that the stations of the link share (a half-duplex Ethernet, Wi-Fi, a cell),
        /// attempts that failed included; 0 if it never was. Null for other links, and in records of earlier versions.
        attempts: Option<u64>,
    }
}

table! {
    /// One flow: a TCP connection, the connections of a TCP port, or the packets from one UDP end to another. Each flow
    /// has one row, which the endpoint that opens it writes: the one that connects or sends. If that is not a program
    /// of suiro, the endpoint that accepts the connection or receives writes it; for two commands, the lab writes the
    /// entry from the scenario's port. An end is `ADDRESS:PORT`, where `*` stands for any address or any port.
    FlowRow = "flows" {
        /// When it was opened.
        t_ns: Time,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// What the endpoint does in it.
        role: FlowRole,
        /// Its transport protocol.
        protocol: Transport,
        /// The endpoint's own end.
        local: Text,
        /// The other end.
        remote: Text,
        /// What it carries.
        carries: Carries,
        /// How many flows the row stands for: 1; in the last row of an endpoint with more than 1000, those
        /// that have no row of their own.
        flows: u64,
        /// When it was closed; null if it was open when its endpoint was asked to stop, if that is not known, or if
        /// the row stands for several.
        closed_ns: Option<Time>,
        /// The endpoint at the other end; null if it is not known, or there is none.
        peer: Option<Text>,
    }
}

table! {
    /// One sample of one TCP socket. A sample that is equal to the one before is left out, for at most a second: a row
    /// holds until the socket's next one. A row with source `tcp_probe` is the state in which an ACK found the socket;
    /// the changes by that ACK are in the socket's next row, at the latest one sampling interval later.
    TcpRow = "tcp" {
        /// When it was sampled.
        t_ns: i64,
        /// The host whose socket it is.
        host: Text,
        /// `LOCAL:PORT>REMOTE:PORT`.
        socket: Text,
        /// How the socket was sampled.
        source: TcpSource,
        /// The congestion control's name as the kernel spells it.
        congestion: Text,
        /// The congestion state.
        state: TcpState,
        /// Congestion window in bytes: segments × MSS.
        cwnd_bytes: i64,
        /// Slow-start threshold in bytes; null while it is still infinite.
        ssthresh_bytes: Option<i64>,
        /// Sender maximum segment size.
        mss_bytes: i64,
        /// Smoothed round-trip time (RFC 6298).
        srtt_us: i64,
        /// Round-trip time variation (RFC 6298).
        rttvar_us: i64,
        /// Least round-trip time in the kernel's window; null before the first sample.
        min_rtt_us: Option<i64>,
        /// Sent and not yet acknowledged or known lost, in bytes.
        in_flight_bytes: i64,
        /// Pacing rate; null where the kernel reports none.
        pacing_rate_bps: Option<i64>,
        /// Delivery rate as the kernel estimates it; null where it reports none.
        delivery_rate_bps: Option<i64>,
        /// Segments retransmitted since the socket opened.
        retransmits: i64,
        /// Bytes acknowledged by the peer since the socket opened. These are sequence numbers: one more than the payload if
        /// this side called connect(), for its SYN, and one more if it has closed, for its FIN.
        acked_bytes: i64,
        /// Payload received since the socket opened.
        received_bytes: i64,
        /// True if the last delivery rate was measured while the application had nothing to send; null, like all columns
        /// below, in a row of source `tcp_probe`, in older records, and on a kernel that does not report it.
        app_limited: Option<bool>,
        /// Payload that the application has written and the kernel has not sent yet.
        unsent_bytes: Option<i64>,
        /// Receive window that the peer advertised last.
        peer_window_bytes: Option<i64>,
        /// Time since the socket opened in which it had data to send or in flight.
        busy_us: Option<i64>,
        /// Part of `busy_us` in which the peer's receive window held it back.
        rwnd_limited_us: Option<i64>,
        /// Part of `busy_us` in which the send buffer held it back: it was full, and all of it was in flight.
        sndbuf_limited_us: Option<i64>,
        /// Retransmission timeout in force (RFC 6298).
        rto_us: Option<i64>,
        /// Retransmission timeouts since the socket opened.
        timeouts: Option<i64>,
    }
}

table! {
    /// The packets in one direction of a link, in 100 ms or over the whole trial, as captures at its two ends saw them
    /// (`[record] capture`). The packets of both captures are matched by their contents; times are the kernel's. Sent
    /// and lost packets count at their time of sending, received packets at their time of arrival. Only spans in which
    /// a packet passed have rows.
    HopRow = "hops" {
        /// When the 100 ms begin; null for the whole trial.
        t_ns: Option<i64>,
        /// The link.
        link: Text,
        /// Its direction.
        direction: Direction,
        /// The capture point of the sender, `HOST:LINK`; null if nothing is captured there.
        from: Option<Text>,
        /// The capture point of the receiver, `HOST:LINK`; null if nothing is captured there.
        to: Option<Text>,
        /// IP packets that the sender's interface sent, as far as they are in the capture; null without a capture.
        sent: Option<i64>,
        /// Their size, IP headers included.
        sent_bytes: Option<i64>,
        /// IP packets that the receiver's interface received, as far as they are in the capture; null without a capture.
        received: Option<i64>,
        /// Their size, IP headers included.
        received_bytes: Option<i64>,
        /// Packets sent and not received; null if one of the captures is missing or incomplete.
        lost: Option<i64>,
        /// Those of `lost` that were sent after the last packet that was received. Where packets are not reordered, they may
        /// still be on their way. Null like `lost`, and in records of earlier versions.
        in_flight: Option<i64>,
        /// Packets sent and received with other contents; null like `lost`.
        altered: Option<i64>,
        /// Packets received once more; null like `lost`.
        copies: Option<i64>,
        /// Packets that were received but not sent, not even with other contents; null where `lost` is.
        unknown: Option<i64>,
        /// From sending to receiving, mean of the packets sent; null if none was received. Equal packets do not count
        /// if one of them was lost.
        delay_mean_ms: Option<f64>,
        /// From sending to receiving, maximum.
        delay_max_ms: Option<f64>,
    }
}

impl HopRow {
    /// The time that a row is about, in nanoseconds. Rows begin at whole multiples of it.
    pub const SPAN_NS: i64 = 100_000_000;
}

table! {
    /// The packets that a multicast router forwards: a row for each source of a group that it knows, every 50 ms, from
    /// its kernel's counters (/proc/net/ip_mr_cache). The counters are since the router began.
    MulticastRow = "multicast" {
        /// When it was read.
        t_ns: i64,
        /// The router: its host.
        router: Text,
        /// The group's address.
        group: Text,
        /// The source's address.
        source: Text,
        /// The link on which its packets arrive; null while the router does not know it.
        input: Option<Text>,
        /// The names of the links to which the router forwards these packets, separated by spaces; empty if no host
        /// behind the router has joined the group. If `register` is among them, the router sends copies to the
        /// rendezvous point, to announce the source.
        outputs: Text,
        /// Packets that came in, whether or not they went out.
        packets: i64,
        /// The bytes of their IP packets.
        bytes: i64,
        /// Packets that arrived on another link, and were dropped.
        wrong_packets: i64,
    }
}

table! {
    /// The multicast that a router forwards on each of its links, every 50 ms, from its kernel's counters
    /// (/proc/net/ip_mr_vif). The counters are since the router began; unicast does not count.
    MulticastLinkRow = "multicast_links" {
        /// When it was read.
        t_ns: i64,
        /// The router: its host.
        router: Text,
        /// The link; `register` for packets to or from other routers in PIM's register messages.
        link: Text,
        /// Packets that arrived on it and were forwarded, or would have been if a receiver had joined.
        packets_in: i64,
        /// The bytes of their IP packets.
        bytes_in: i64,
        /// Packets that left on it.
        packets_out: i64,
        /// The bytes of their IP packets.
        bytes_out: i64,
    }
}

table! {
    /// Each time that a `multicast-receiver` was in a group, and when packets of the group began and ended at its host's
    /// interfaces.
    MembershipRow = "memberships" {
        /// When it joined: immediately before the call.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// The group's address.
        group: Text,
        /// The address of the only source that it wanted; null if any.
        source: Option<Text>,
        /// The first packet after joining; null if none came.
        first_ns: Option<i64>,
        /// When it left: immediately before the call; null if it stayed to the end.
        left_ns: Option<i64>,
        /// The last packet after leaving, until it joined again or ended; null if none came after it had left.
        last_ns: Option<i64>,
        /// Packets seen from joining to leaving.
        packets: i64,
        /// Packets seen after leaving.
        packets_after: i64,
        /// Packets of either that the socket dropped because it was full: then neither count is complete.
        dropped_packets: i64,
    }
}
