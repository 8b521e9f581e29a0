//! The tables. A column's name ends in its unit; `t_ns` counts nanoseconds from the trial's start on
//! the host's monotonic clock, which every host of a lab shares. What could not be measured is null.

use suiro_units::{BitRate, Duration, Time};

use crate::records::tables;
use crate::table;
use crate::table::Text;
use crate::words::{
    Carries, Cause, Container, Direction, Effect, FlowRole, Heading, KeyKind, LatenessSource,
    Layer, LinkCause, PlayerState, Point, RequestKind, Segmentation, SessionEnd, Shown, Signalling,
    TcpSource, TcpState, Track, Transport, Verdict,
};

table! {
    /// One packet that met a link, in one direction. Written by the link itself: this is the truth
    /// about what was dropped, marked and delayed, and why.
    LinkRow = "link" {
        /// Arrival at the link.
        t_ns: i64,
        /// The link's name in the scenario.
        link: Text,
        /// Which way it went.
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
        /// When it was handed to the receiving host; null if it was not. Packets that left with one system call have
        /// their times spread evenly over it: `departure_error` in `trial.json` says how long calls took, and no time is
        /// further off than that.
        departed_ns: Option<i64>,
        /// How often it was sent on the medium that the stations of the link share (a half-duplex Ethernet or Wi-Fi),
        /// attempts that failed included; 0 if it never was. Null for other links, and in records of earlier versions.
        attempts: Option<u64>,
    }
}

table! {
    /// One flow: a TCP connection, the connections of a TCP port, or what one UDP end sends to another. Each flow has
    /// one row, which the endpoint that opens it writes: the one that connects or sends. If that is no program of
    /// suiro, the endpoint that accepts the connection or receives writes it; for two commands, the lab writes what
    /// the scenario says of the port. An end is `ADDRESS:PORT`, where `*` stands for any address or any port.
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
    /// Whether an endpoint ran while it should have, in about one second. An endpoint of suiro looks at its clock every
    /// 10 ms, on the thread that does its work; a row ends early with a gap of 50 ms or more between two looks. Of a
    /// program of others, and of the programs that a player starts, the lab reads every 100 ms what the kernel's
    /// scheduler says about their threads.
    LatenessRow = "lateness" {
        /// When the period ended.
        t_ns: Time,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// How it was found out.
        source: LatenessSource,
        /// How long the period was.
        period_ns: Duration,
        /// How often it was looked.
        looks: u64,
        /// `heartbeat`: how late a look was, mean (its timer ends up to 1 ms late). `scheduler`: how long a thread waited for a
        /// processor, mean over the times that one got it. Null if there was none.
        mean_ns: Option<Duration>,
        /// The longest time in which it did not run. `heartbeat`: between two looks, 10 ms or more. `scheduler`: for which
        /// a thread that had work waited for a processor, or the program was stopped.
        worst_ns: Duration,
        /// When that began.
        worst_from_ns: Time,
        /// True if the program was stopped by a signal at that time, as far as the kernel tells.
        stopped: bool,
    }
}

table! {
    /// A time in which a processor of the machine stood still, in a trial with uncompressed video: not even a timer's
    /// interrupt came. A watcher bound to the processor sleeps to times 4 ms apart, so standstills that are
    /// shorter than that may be missed; those from 1.668 ms on, a tenth of a frame time, are recorded.
    StandstillRow = "standstills" {
        /// When the watcher was due: the standstill began up to 4 ms before.
        t_ns: Time,
        /// How long it lasted from then on.
        length_ns: Duration,
        /// The processor's number, from 0.
        processor: u64,
        /// How long the watcher then waited for its turn, because other threads had the processor; not part of the
        /// standstill.
        queued_ns: Duration,
    }
}

table! {
    /// One look at one TCP socket. A look that shows nothing new is left out, for at most a second:
    /// a row holds until the socket's next one. A row with source `tcp_probe` is the state in which an ACK found the
    /// socket; what that ACK changed is in the socket's next row, at the latest one sampling interval later.
    TcpRow = "tcp" {
        /// When it was sampled.
        t_ns: i64,
        /// The host whose socket it is.
        host: Text,
        /// `LOCAL:PORT>REMOTE:PORT`.
        socket: Text,
        /// How the socket was looked at.
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
        /// Payload acknowledged by the peer since the socket opened.
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
    /// One packet of a chosen flow at one service access point of one host, as BPF programs saw it.
    /// `layers.json` beside it records what each point saw and lost, and what recording cost the
    /// host (`cost`): the `packets` that passed it, the processor time of the recorder while it
    /// recorded (`recorder_ns`) and afterwards (`writing_ns`), and in `kernel` how long its BPF
    /// programs ran (`run_ns` in `runs`) for the `packets` of a sample: the first `lasted_ns` with
    /// packets, at most a second. The timing itself adds about 45 ns to each run, part of which is
    /// in `run_ns`. If the kernel does not time BPF programs, `kernel` is null and `kernel_missing`
    /// gives the reason.
    LayerRow = "layers" {
        /// When; for `send_call` the start of the system call, for `receive_call` its end.
        t_ns: i64,
        /// The host.
        host: Text,
        /// Where.
        point: Point,
        /// Which way it goes, as this host sees it.
        direction: Heading,
        /// `PROTOCOL SOURCE:PORT>DESTINATION:PORT`, the same on both hosts.
        flow: Text,
        /// What makes it the same packet elsewhere.
        key_kind: KeyKind,
        /// The key's value: 64 bits, as a signed number.
        key: i64,
        /// IPv4 identification; null where there is none.
        ip_id: Option<i64>,
        /// Bytes of TCP or UDP payload; for a fragmented datagram, those of the whole datagram.
        payload_bytes: i64,
        /// Packets that it represents: more than 1 for a TCP super-packet of segmentation or
        /// receive offload, 0 at the system calls of TCP.
        segments: i64,
        /// The kernel's name for the reason of the drop; null at other points.
        cause: Option<Text>,
    }
}

table! {
    /// What one protocol layer did to one direction of one flow, in one second or over the whole
    /// recording: the tables `layers` of two hosts joined. Loss and delay *between* are from the
    /// layer's service access point in the sender to that in the receiver; its *own* are those
    /// minus the same of the layer below.
    LayerAccountRow = "layer_accounts" {
        /// When the second begins; null for the whole recording.
        t_ns: Option<i64>,
        /// `PROTOCOL SOURCE:PORT>DESTINATION:PORT`.
        flow: Text,
        /// The host that sends.
        sender: Text,
        /// The host that receives.
        receiver: Text,
        /// The layer.
        layer: Layer,
        /// What the flow sent: packets for UDP, bytes for TCP.
        sent: i64,
        /// Share lost between; null if it was not recorded on both sides, or nothing was sent.
        between_loss_ratio: Option<f64>,
        /// Share that the layer itself lost; negative for TCP, which retransmits what lower layers
        /// lost.
        own_loss_ratio: Option<f64>,
        /// Delay between, mean; null if no packet arrived.
        between_delay_mean_ms: Option<f64>,
        /// Delay between, maximum; null for a second.
        between_delay_max_ms: Option<f64>,
        /// Delay of the layer itself, mean; null if no packet arrived.
        own_delay_mean_ms: Option<f64>,
        /// Delay of the layer itself, maximum; null for a second.
        own_delay_max_ms: Option<f64>,
        /// Mean amount by which the layer's own delays of successive packets differ; null for a second.
        own_jitter_ms: Option<f64>,
    }
}

table! {
    /// What passed one direction of a link, in 100 ms or over the whole trial, as captures at its two ends saw it
    /// (`[record] capture`). The packets of both captures are matched by their contents; times are the kernel's. What is
    /// sent and lost counts when it was sent, what is received when it was received. Only spans in which a packet passed
    /// have rows.
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
        /// Packets sent and received with other contents; null like `lost`.
        altered: Option<i64>,
        /// Packets received once more; null like `lost`.
        copies: Option<i64>,
        /// Packets received that nobody sent; null like `lost`.
        unknown: Option<i64>,
        /// From sending to receiving, mean of the packets sent; null if none was received. Of several equal packets, not
        /// all of which were received, none counts.
        delay_mean_ms: Option<f64>,
        /// From sending to receiving, maximum.
        delay_max_ms: Option<f64>,
    }
}

table! {
    /// One HTTP request of a player.
    RequestRow = "requests" {
        /// When the request began; for one that opens a connection, before that (`handshake_ns`).
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Path and query of the URL.
        url: Text,
        /// What was asked for.
        kind: RequestKind,
        /// The track that it belongs to; null for a manifest.
        track: Option<Track>,
        /// Bit rate by which the manifest names the rung asked for, its peak (table `rungs` has the others); null for a
        /// manifest.
        rung_bps: Option<i64>,
        /// Number of the segment; null for others.
        segment: Option<i64>,
        /// Media time at which the segment begins; null for others.
        media_ms: Option<i64>,
        /// Media duration of the segment; null for others.
        duration_ms: Option<i64>,
        /// Bytes of body received; for VLC, as announced; 0 for GStreamer, which does not report
        /// it.
        body_bytes: i64,
        /// First byte of the response's body; null if none arrived, or the player does not report
        /// it.
        first_byte_ns: Option<i64>,
        /// Last byte of the body; null if it never arrived, or the player does not report it.
        done_ns: Option<i64>,
        /// HTTP status; null if there was no response.
        status: Option<i64>,
        /// What went wrong; null if nothing did.
        error: Option<Text>,
        /// Why the player abandoned it for a segment of a lower rung; null if it did not.
        abandoned: Option<Text>,
        /// Which attempt at this object it was, from 1.
        attempt: i64,
        /// How much of the time from `t_ns` it took to open a connection, name and all; 0 if one was open; null if the
        /// player does not report it.
        handshake_ns: Option<i64>,
    }
}

table! {
    /// One rung of a track that an origin offers, in one container. The other tables name a rung by the bit rate that
    /// the manifest gives it (`rung_bps`).
    RungRow = "rungs" {
        /// The origin's name in the scenario.
        endpoint: Text,
        /// The track.
        track: Track,
        /// Its name in URLs.
        rung: Text,
        /// How its segments are wrapped.
        container: Container,
        /// `@bandwidth` in the MPD; null if DASH does not offer it.
        dash_bps: Option<BitRate>,
        /// `BANDWIDTH` in the multivariant playlist, the sound that is played with it included; null if HLS does not
        /// list it as a variant.
        hls_bps: Option<BitRate>,
        /// Nominal: what the scenario's ladder asks of the encoder, container not counted.
        nominal_bps: BitRate,
        /// Average over all segments, all bytes counted.
        average_bps: BitRate,
        /// Peak: that of the segment that has the highest, all bytes counted.
        peak_bps: BitRate,
    }
}

table! {
    /// A player's state: a row at every change and at least every 100 ms.
    PlayerRow = "player" {
        /// When.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// What it does.
        state: PlayerState,
        /// Media buffered ahead of the playhead; null if the player does not report it.
        buffer_ms: Option<f64>,
        /// The playhead in media time; null if the player does not report it.
        position_ms: Option<f64>,
        /// Bit rate by which the manifest names the video rung under the playhead, its peak (table `rungs` has the
        /// others); null before the first frame, or if the player does not report it.
        rung_bps: Option<i64>,
        /// Live only: age of the picture under the playhead, from the moment it was captured.
        latency_ms: Option<f64>,
        /// Playback speed: 1 is normal, 0 is paused.
        speed: f64,
        /// Stalls so far, start-up not counted.
        stalls: i64,
        /// Throughput as the player estimates it; null before the first estimate, or if the player
        /// does not report it.
        estimate_bps: Option<i64>,
        /// Pictures that were not shown because they were too late, so far; null if the player does
        /// not report it, or does not decode.
        dropped_pictures: Option<i64>,
    }
}

table! {
    /// One page that one of the users of `web-clients` loaded, or tried to load.
    PageRow = "pages" {
        /// When the first connection was started.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Which of its users, from 1.
        user: i64,
        /// Which of the user's pages, from 1.
        page: i64,
        /// Objects of the page.
        objects: i64,
        /// Bytes of all of them.
        page_bytes: i64,
        /// TCP connections started for it.
        connections: i64,
        /// Bytes of bodies received.
        body_bytes: i64,
        /// When the last byte of the last object arrived; null if it never did.
        done_ns: Option<i64>,
        /// Why it was not loaded; null if it was.
        error: Option<Text>,
    }
}

table! {
    /// One HTTP request that an origin answered.
    AccessRow = "access" {
        /// When its head had been read.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Address and port of the client.
        peer: Text,
        /// Method, such as `GET`.
        method: Text,
        /// Path and query of the URL.
        path: Text,
        /// HTTP status of the answer.
        status: i64,
        /// Bytes of its body; 0 for `HEAD`.
        body_bytes: i64,
        /// When the answer was ready to be sent.
        answered_ns: i64,
    }
}

table! {
    /// One source frame that a viewer received, or should have shown. Written when it is shown, or
    /// when it is certain that it will not be. A gap has at most 100 000 rows.
    FrameRow = "frames" {
        /// When it was shown; for one that never was, when it was received; for one that was not
        /// received either, when it was skipped.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Its number in the source, from 0 at media time zero; looped footage counts on.
        frame: i64,
        /// When it was captured; null unless live.
        captured_ns: Option<i64>,
        /// Bit rate by which the manifest names the rung it came from, its peak; of real-time video, what its encoder is
        /// set to, or the mean rate of its version; null if it was not received.
        rung_bps: Option<i64>,
        /// Its size as encoded; null where a transport does not show it (a segment holds many).
        encoded_bytes: Option<i64>,
        /// When its sender began to send it; null if unknown.
        sent_ns: Option<i64>,
        /// When its last byte had arrived, for segmented media the segment's last byte; null if it
        /// never did.
        received_ns: Option<i64>,
        /// True if a decoder could decode it.
        decodable: bool,
        /// True if it was decoded although parts of it, or of pictures that it refers to, were
        /// missing, so that a decoder had to conceal them.
        damaged: bool,
        /// When it was shown; null if it never was.
        displayed_ns: Option<i64>,
    }
}

table! {
    /// One control period of a sender of real-time media: from one update of its rate control (a
    /// report or a timer) to the next; and one each time that its source begins a group of
    /// pictures. Rates count IP packets.
    RateRow = "rate" {
        /// When the period ended.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// How long it was.
        period_ns: i64,
        /// What the rate control allows from now on.
        target_bps: i64,
        /// What was sent in the period, retransmissions included.
        send_bps: i64,
        /// What the source produced in the period, before anything was held back or dropped.
        media_bps: i64,
        /// Share lost of the packets that a report of this period covers; null if there was no
        /// report, or it covers no packets.
        loss_ratio: Option<f64>,
        /// The round-trip time, smoothed; null before the first sample.
        rtt_ns: Option<i64>,
        /// What the receiver received, by the reports of the period; null if they do not contain
        /// it.
        recv_bps: Option<i64>,
        /// The quantiser scale of the version that is being sent; null for an encoder in the loop.
        quantiser: Option<i64>,
        /// Bit rate that the encoder is set to; for a prepared version, its mean rate.
        encoder_bps: Option<i64>,
        /// Bytes waiting in the sender.
        queue_bytes: i64,
        /// What triggered the circuit breaker (RFC 8083) in this period; null almost always.
        broken: Option<Text>,
        /// Interarrival jitter (RFC 3550 §6.4.1) as the last report of the period gives it: the smoothed change of packets'
        /// transit times; null if there was no report.
        jitter_ns: Option<Duration>,
    }
}

table! {
    /// What one end of a WebRTC peer connection did in about 100 ms. Rates are of IP packets, whatever they carry
    /// (media, feedback, DTLS, STUN); a row is written while the connection lives.
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
        /// What congestion control estimates that the path carries; null at a receiver.
        estimate_bps: Option<BitRate>,
        /// Bit rate that the encoder is set to; null at a receiver.
        target_bps: Option<BitRate>,
        /// What was sent.
        sent_bps: BitRate,
        /// What was received.
        received_bps: BitRate,
        /// Round-trip time by RTCP, or else by ICE's checks; null before the first.
        rtt_ns: Option<Duration>,
        /// Share of packets lost in the last second by transport-wide feedback, of Chromium since the receiver report
        /// before the last; null at a receiver, and without feedback.
        loss_ratio: Option<f64>,
        /// Packets that the receiver asked for again (NACK).
        nacks: u64,
        /// Packets that were sent again because they were asked for; of Chromium, also those sent again to probe for
        /// capacity; 0 at a receiver.
        retransmissions: u64,
        /// Bytes that were sent only to probe for capacity; 0 at a receiver; null if Chromium sends, which does not
        /// count them.
        padding_bytes: Option<u64>,
        /// Requests for a key frame by picture loss indication.
        plis: u64,
        /// Requests for a key frame by full intra request.
        firs: u64,
        /// Bytes that wait for the pacer; null at a receiver, and of Chromium.
        queue_bytes: Option<u64>,
        /// For how long the first of them has waited; null at a receiver, and of Chromium.
        queue_ns: Option<Duration>,
        /// Width of the pictures that the encoder is set to, or last made; null at a receiver.
        width: Option<i64>,
        /// Height of the pictures that the encoder is set to, or last made; null at a receiver.
        height: Option<i64>,
        /// Frames per second that the encoder is set to; null at a receiver, and of Chromium, whose encoder takes the
        /// frames as they come.
        fps: Option<i64>,
    }
}

table! {
    /// One WebRTC peer connection of one endpoint, from the offer to its end.
    WebrtcSessionRow = "webrtc_sessions" {
        /// When the offer was made, or came.
        t_ns: Time,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Number of the connection at this endpoint, from 1.
        session: u64,
        /// Whether the endpoint sends or receives the video.
        role: FlowRole,
        /// By which protocol the offer came.
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
    /// One QUIC connection of one endpoint at one moment, at most every 10 ms; counters count from the connection's
    /// beginning.
    QuicRow = "quic" {
        /// When it was looked at.
        t_ns: Time,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Number of the connection at this endpoint, from 1, as in `moq_sessions`.
        session: u64,
        /// Its congestion control.
        congestion: Text,
        /// Congestion window; null where a browser does not say.
        cwnd_bytes: Option<u64>,
        /// Slow-start threshold; null while it is infinite, and where the congestion control has none.
        ssthresh_bytes: Option<u64>,
        /// Sent and neither acknowledged nor known lost; null where a browser does not say.
        in_flight_bytes: Option<u64>,
        /// Handed to the connection and not sent yet, as near as can be known from outside: what streams took since there
        /// was last nothing to send, less what was sent since; null of a browser.
        waiting_bytes: Option<u64>,
        /// Smoothed round-trip time (RFC 9002 §5.3).
        srtt_ns: Duration,
        /// Least round-trip time of the connection; null before the first acknowledgement.
        min_rtt_ns: Option<Duration>,
        /// The rate at which packets leave, as the congestion control sets it, or at which a browser thinks that it can send;
        /// null where it leaves that to the window.
        pacing_bps: Option<BitRate>,
        /// UDP datagrams sent; null where a browser does not say, as the counters that follow.
        sent_packets: Option<u64>,
        /// Bytes of their payloads.
        sent_bytes: Option<u64>,
        /// Bytes of UDP payloads received.
        received_bytes: Option<u64>,
        /// Packets that were declared lost.
        lost_packets: Option<u64>,
        /// How often the congestion control was told of congestion; null where a browser does not say.
        congestion_events: Option<u64>,
        /// The bit rate that the encoder is set to; null where the endpoint has none.
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
        /// `LOCAL>REMOTE`, addresses and ports; the local address is null until it is known.
        addresses: Text,
        /// The congestion control of this end. A browser says what it was asked for, as `default (Chromium)`, or nothing: `not
        /// known`.
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
        /// Datagrams that this end handed to QUIC; null of a browser.
        datagrams: Option<u64>,
        /// How often this viewer changed to another quality; null of others.
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

table! {
    /// What one end of a video call did in about one second. A send call that fails drops its packet, and is counted. The
    /// times of encoding and decoding are those that passed: they include turns of other programs on the processor.
    ConferenceRow = "conference" {
        /// When the period ended.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// How long it was: more than a second where the thread did not get the processor.
        period_ns: i64,
        /// Pictures that were captured, encoded and handed to the socket.
        captured_pictures: i64,
        /// Pictures that the camera had and the thread captured too late, so that they are left out.
        skipped_pictures: i64,
        /// Time that passed capturing and encoding.
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
        /// Packets received of pictures that were over already.
        late_packets: i64,
        /// Packets received that do not belong to the call.
        refused_packets: i64,
        /// Time that passed decoding.
        decode_ns: i64,
    }
}

table! {
    /// What was on the screen at one tick of the source's frame rate, from the first picture on, and
    /// how good it looked. *Picture* scores compare what was shown with its own source frame;
    /// *experience* scores compare it with the frame that should have been there at a constant
    /// delay, so that freezes count. The two are never mixed. VMAF is at 1080 lines, the size of its model, against the
    /// source in its own size; the columns `…_native`, and all columns in tables without these, are at the size of the
    /// tallest rung, or of the camera. `screens.json` has both sizes.
    QualityRow = "quality" {
        /// The tick.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// The source frame on the screen; null before the first.
        frame: Option<i64>,
        /// True if it was there at the tick before.
        repeated: bool,
        /// VMAF of the picture at 1080 lines, 0 to 100; null if repeated.
        picture_vmaf: Option<f64>,
        /// Structural similarity of the picture's luma, up to 1; null if repeated.
        picture_ssim: Option<f64>,
        /// Peak signal-to-noise ratio of the picture's luma in dB, 60 at most for 8 bits; null if
        /// repeated.
        picture_psnr_db: Option<f64>,
        /// VMAF of the experience at 1080 lines, 0 to 100.
        experience_vmaf: Option<f64>,
        /// Structural similarity of the experience.
        experience_ssim: Option<f64>,
        /// Peak signal-to-noise ratio of the experience in dB.
        experience_psnr_db: Option<f64>,
        /// VMAF of the picture at the native size; null if repeated, or `picture_vmaf` is that.
        picture_vmaf_native: Option<f64>,
        /// VMAF of the experience at the native size; null if `experience_vmaf` is that.
        experience_vmaf_native: Option<f64>,
    }
}

table! {
    /// A ring of frames between a storage and a sender of uncompressed video, once a second.
    UncompressedRingRow = "uncompressed_ring" {
        /// When.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Number of the stream, from 0.
        stream: i64,
        /// Slots of the ring: free, reading, waiting, and one for the frame that is being sent.
        slots: i64,
        /// Empty slots.
        free: i64,
        /// Slots being filled.
        reading: i64,
        /// Frames that have been read and wait to be sent.
        waiting: i64,
        /// Rate of reading in the preceding second; null at first, and if the ring is memory that
        /// is sent repeatedly.
        read_bps: Option<f64>,
        /// Rate of sending in the preceding second, bytes of frames without headers, repeats
        /// included; null at first.
        send_bps: Option<f64>,
        /// Frames repeated in the preceding second because the next one had not been read yet.
        repeats: i64,
        /// Frames sent, repeats included, since the ring began.
        sent_frames: i64,
        /// Repeats since the ring began.
        repeated_frames: i64,
    }
}

table! {
    /// Something that happened at a node, or that the controller of a stream server decided or saw.
    ControlRow = "control" {
        /// When.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// A word for it. Of a node: `started`, `stopped`, `starved`, `lagging`, `late`, `recovered`, `failed`, `refused`. Of
        /// a controller: `leads`, `follows`, `accepted`, `refused`, `heard`, `fault`, `well`, `replaced`, `ordered`, `done`,
        /// `stuck`, `hook`, `registry`, `action`.
        what: Text,
        /// The stream that it is about; null if it is about none.
        stream: Option<i64>,
        /// The node that it is about; null if it is about none, or about the endpoint itself.
        node: Option<Text>,
        /// More, in words.
        detail: Text,
    }
}

table! {
    /// One frame time of one stream of uncompressed video, as its receiver saw it. A row for every
    /// frame time from the first to the last with a packet received.
    UncompressedFrameRow = "uncompressed_frames" {
        /// When its first packet arrived; for a frame without any packet, when it was due, or
        /// should have arrived.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Number of the stream, from 0, the same at all receivers: several streams of one frame
        /// are compared.
        stream: i64,
        /// Frame times since the SMPTE epoch, 1970-01-01 00:00:00 TAI.
        frame: i64,
        /// Length of a frame time.
        period_ns: i64,
        /// When its sender should have begun to send it, by the epoch; null if sender and receiver
        /// have no common clock, which is assumed if it arrived more than 5 s away from then.
        due_ns: Option<i64>,
        /// When its last packet arrived; null if none did.
        last_ns: Option<i64>,
        /// Number of the content; null if packets do not carry it.
        content: Option<i64>,
        /// Packets of it that arrived, each counted once.
        packets: i64,
        /// Packets of it that never arrived; of the first frame, and of one that was in progress when receiving ended, only
        /// those between two that arrived.
        lost_packets: i64,
        /// Packets that arrived again.
        duplicate_packets: i64,
        /// Packets that arrived after one with a later sequence number.
        reordered_packets: i64,
        /// Bytes of the frame that arrived.
        bytes: i64,
        /// True if its checksum is correct; null if it has none, or is incomplete.
        sound: Option<bool>,
        /// Largest number of packets in a bucket that drains at a constant rate, in the style of ST
        /// 2110-21's network compatibility model (Cinst); null until a first complete frame has
        /// shown how many packets its sender makes of one.
        burst_packets: Option<f64>,
        /// Packets that found that bucket above a wide sender's limit (Cmax).
        over_packets: Option<i64>,
        /// Buffer in packets that reading the frame at a constant rate would have needed at the best
        /// constant delay, in the style of ST 2110-21's virtual receiver buffer.
        buffer_packets: Option<f64>,
    }
}

table! {
    /// What a converter did with one stream at one tick of its output: a tick is each frame time since the SMPTE epoch, the
    /// same at all converters. A row for every tick from the one that belongs to the stream's first complete frame;
    /// none for a stream whose sender has another clock.
    UncompressedShownRow = "uncompressed_shown" {
        /// When the tick was due.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Number of the stream, from 0, the same at all receivers.
        stream: i64,
        /// Number of the tick: frame times since the SMPTE epoch.
        tick: i64,
        /// Length of a frame time.
        period_ns: i64,
        /// The frame that belongs to this tick: as many before it as the converter's delay has frame times.
        wanted_frame: i64,
        /// The frame that was shown, an older one if the wanted one had not arrived completely; null before the first.
        frame: Option<i64>,
        /// Number of the content shown; null if packets do not carry it, or nothing was shown.
        content: Option<i64>,
        /// What the tick brought.
        outcome: Shown,
        /// How long before the tick the last packet of the wanted frame arrived; null if none did by then.
        margin_ns: Option<i64>,
        /// Frames between the one shown before and this one, which were never shown.
        skipped_frames: i64,
        /// How late the converter itself was: it looked, or took the wanted frame from the socket, so long after the tick.
        /// The outcome does not depend on it: what counts is when packets arrived.
        late_ns: i64,
    }
}

table! {
    /// What a sender of uncompressed video did in one second, stream by stream.
    UncompressedSentRow = "uncompressed_sent" {
        /// When the second ended.
        t_ns: i64,
        /// How long it was.
        span_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Number of the stream, from 0.
        stream: i64,
        /// Where it goes: `ADDRESS:PORT`.
        destination: Text,
        /// Who cuts a burst into packets.
        segmentation: Segmentation,
        /// Packets sent.
        packets: i64,
        /// The size of their IP packets, in bytes.
        bytes: i64,
        /// Frames sent.
        frames: i64,
        /// Frames whose last packet left more than a frame time after it was due.
        late_frames: i64,
        /// Those of them that were late because the host of this virtual machine took the
        /// processor.
        late_steal: i64,
        /// Those that were late because another thread had the processor.
        late_preempted: i64,
        /// Those that were late because the thread woke up late.
        late_waking: i64,
        /// Those that were late because a socket or an interface's queue was full.
        late_no_room: i64,
        /// Those that were late because the thread had too much to do.
        late_load: i64,
        /// Largest delay of a frame's last packet after it was due.
        behind_max_ns: i64,
        /// Frames skipped because their time was over, or dropped at the end because there was no
        /// room.
        skipped_frames: i64,
        /// Packets without a route, and ICMP answers that a packet was not accepted by any
        /// receiver: hosts send fewer of these than there are such packets.
        unreachable_packets: i64,
        /// How often there was no room for a burst.
        no_room: i64,
        /// Processor time of the thread, for all its streams.
        thread_ns: i64,
        /// Largest delay with which the thread woke up.
        woke_late_max_ns: i64,
        /// Processor time that the host of this virtual machine took, of all processors; null if
        /// unknown.
        steal_ns: Option<i64>,
    }
}

table! {
    /// What a receiver of uncompressed video received in one second, stream by stream.
    UncompressedReceivedRow = "uncompressed_received" {
        /// When the second ended.
        t_ns: i64,
        /// How long it was.
        span_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Number of the stream, from 0.
        stream: i64,
        /// Packets that arrived, each counted once.
        packets: i64,
        /// The size of their IP packets, in bytes.
        bytes: i64,
        /// Packets that never arrived. Packets that arrive late are subtracted again, so it may be
        /// negative.
        lost_packets: i64,
        /// How often packets found the socket's buffer full. Packets that the kernel had combined
        /// count once, so fewer may be counted than were lost.
        dropped_packets: i64,
        /// Packets that arrived after one with a later sequence number.
        reordered_packets: i64,
        /// Packets that arrived again.
        duplicate_packets: i64,
        /// Packets so old that they must be a replay.
        replayed_packets: i64,
        /// Packets of other senders.
        foreign_packets: i64,
        /// Datagrams that do not have the stream's format.
        malformed_packets: i64,
        /// How often the sender changed or restarted.
        restarts: i64,
        /// Frames that arrived complete.
        frames: i64,
        /// Frames that are missing some packets, or all.
        incomplete_frames: i64,
        /// Complete frames with a wrong checksum.
        damaged_frames: i64,
        /// Frames whose last packet arrived more than a frame time after it was due; null if sender
        /// and receiver have no common clock.
        late_frames: Option<i64>,
        /// Largest number of packets in a bucket that drains at 1.1 times the mean rate, in the
        /// style of ST 2110-21's network compatibility model (Cinst); null, like the next three
        /// columns, until a first complete frame has shown how many packets its sender makes of
        /// one.
        burst_max_packets: Option<f64>,
        /// Packets that found that bucket above a wide sender's limit (Cmax).
        over_wide_packets: Option<i64>,
        /// Packets that found it above a narrow sender's limit.
        over_narrow_packets: Option<i64>,
        /// Buffer in packets that reading at a constant rate would have needed, maximum over the
        /// frames, in the style of ST 2110-21's virtual receiver buffer (VRX).
        buffer_max_packets: Option<f64>,
        /// Processor time of the thread, for all its streams.
        thread_ns: i64,
    }
}

table! {
    /// What a multicast router forwards: a row for each source of a group that it knows, every 50 ms, as its kernel counts
    /// (/proc/net/ip_mr_cache). The counters are since the router began.
    MulticastRow = "multicast" {
        /// When it was read.
        t_ns: i64,
        /// The router: its host.
        router: Text,
        /// The group's address.
        group: Text,
        /// The source's address.
        source: Text,
        /// The link that its packets come in by; null while the router does not know it.
        input: Option<Text>,
        /// The names of the links to which the router forwards these packets, separated by spaces; empty if no host behind
        /// the router has joined the group. `register` among them: the router sends copies to the rendezvous point, to
        /// announce the source.
        outputs: Text,
        /// Packets that came in, whether or not they went out.
        packets: i64,
        /// The bytes of their IP packets.
        bytes: i64,
        /// Packets that came in by another link, and were dropped.
        wrong_packets: i64,
    }
}

table! {
    /// The multicast that a router forwards by each of its links, every 50 ms, as its kernel counts
    /// (/proc/net/ip_mr_vif). The counters are since the router began; unicast does not count.
    MulticastLinkRow = "multicast_links" {
        /// When it was read.
        t_ns: i64,
        /// The router: its host.
        router: Text,
        /// The link; `register` for packets to or from other routers in PIM's register messages.
        link: Text,
        /// Packets that came in by it and were forwarded, or would have been if somebody had wanted them.
        packets_in: i64,
        /// The bytes of their IP packets.
        bytes_in: i64,
        /// Packets that went out by it.
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

table! {
    /// Why: what limited each flow, and what each stall, freeze, late stretch and fall of the quality came from. Derived
    /// from the other tables: `suiro report` writes it into the trial's folder, and replaces it. An effect has a row for
    /// each of its causes, the greatest share first.
    CauseRow = "causes" {
        /// When it began.
        t_ns: i64,
        /// When it ended.
        to_ns: i64,
        /// The viewer's endpoint, or the flow as table `tcp` or `link` names it.
        subject: Text,
        /// What is explained.
        effect: Effect,
        /// Number of the effect in its trial, from 0; rows of one effect share it.
        number: u64,
        /// What it came from.
        cause: Cause,
        /// Share of the effect's time that this cause explains, 0 to 1.
        share: f64,
        /// Where that is recorded: `TABLE[ROW]` or `TABLE[FIRST..LAST]`, separated by spaces. Rows count from 0 over all
        /// files of the table, in the order of their names.
        evidence: Text,
        /// All of it in words; null unless it is the first row of an effect that somebody saw.
        sentence: Option<Text>,
    }
}

tables! {
    LinkRow: link "Packets that met a link.";
    FlowRow: flows "Flows that endpoints reported; none in a folder of before there was this table.";
    LatenessRow: lateness "Whether endpoints ran while they should have.";
    StandstillRow: standstills "When processors stood still.";
    TcpRow: tcp "Looks at TCP sockets.";
    LayerRow;
    LayerAccountRow: layer_accounts "What each protocol layer lost and delayed.";
    HopRow: hops "What passed the links, as captures at both ends saw it.";
    RequestRow: requests "Requests of players.";
    RungRow: rungs "Rungs that origins offer.";
    PlayerRow: player "States of players.";
    FrameRow: frames "Frames that viewers were to see.";
    RateRow: rate "Control periods of senders of real-time video.";
    WebrtcRow: webrtc "Intervals of WebRTC peer connections.";
    WebrtcSessionRow: webrtc_sessions "WebRTC peer connections.";
    QuicRow: quic "Looks at QUIC connections.";
    MoqSessionRow: moq_sessions "Sessions of Media over QUIC Transport.";
    MoqDataRow: moq_data "Objects of data tracks of Media over QUIC Transport.";
    ConferenceRow: conference "Periods of the ends of video calls.";
    QualityRow: quality "Scores of what was on viewers' screens.";
    AccessRow: access "Requests that origins answered.";
    PageRow: pages "Pages that web clients loaded.";
    UncompressedRingRow: rings "Rings of frames before senders of uncompressed video.";
    UncompressedFrameRow: uncompressed "Frames that receivers of uncompressed video had.";
    UncompressedShownRow: shown "What converters of uncompressed video showed.";
    UncompressedSentRow;
    UncompressedReceivedRow;
    MulticastRow: groups "Sources of groups that multicast routers knew.";
    MulticastLinkRow: multicast "Multicast that routers forwarded.";
    MembershipRow: memberships "Memberships in multicast groups.";
    ControlRow: control "What nodes, registries and controllers of streams did.";
    CauseRow;
}
