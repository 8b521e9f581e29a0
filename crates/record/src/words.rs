//! The closed lists of words in tables and documents. A file with a word that is not in its list is refused, like one
//! with an unknown column: this version cannot count a word of a later version.

pub use suiro_units::Direction;
use suiro_units::words;

words! {
    /// What became of a packet on a link.
    pub enum Verdict {
        /// It was delivered to the receiving host.
        Delivered = "delivered",
        /// The link dropped it.
        Dropped = "dropped",
        /// It was still in the link at the end.
        Queued = "queued",
    }
}

words! {
    /// What became of a frame of sound.
    pub enum AudioFate {
        /// It was played.
        Played = "played",
        /// It never came.
        Lost = "lost",
        /// It came after its place was passed.
        Late = "late",
        /// It was there and left out, because the jitter buffer was too long.
        Skipped = "skipped",
    }
}

words! {
    /// Why a link dropped a packet, or how it altered it.
    pub enum LinkCause {
        /// Dropped by the loss model.
        Loss = "loss",
        /// Dropped because the queue was full.
        Queue = "queue",
        /// Dropped by active queue management.
        Aqm = "aqm",
        /// Dropped because it is too large ever to pass.
        Size = "size",
        /// Dropped because Wi-Fi sent it as often as its retry limit allows.
        Retry = "retry",
        /// Dropped because it was in a Wi-Fi station for longer than a packet's lifetime there.
        Lifetime = "lifetime",
        /// Dropped because it collided in each of 16 attempts on a half-duplex Ethernet.
        Collisions = "collisions",
        /// Dropped because a bound of the emulator itself was reached: the trial is not valid.
        Limit = "limit",
        /// Delivered; it is a copy that the link made.
        Duplicate = "duplicate",
        /// Delivered with a bit flipped; a corrupted copy is `corrupt` too, and has the number of another row.
        Corrupt = "corrupt",
    }
}

words! {
    /// A quantity of a link that its self-check compares with the scenario.
    pub enum CheckedQuantity {
        /// The bit rate.
        Rate = "rate",
        /// The one-way delay.
        Delay = "delay",
        /// The share of packets lost.
        Loss = "loss",
        /// The room of the queue.
        Queue = "queue",
        /// Packets that are unaccounted for.
        Accounting = "accounting",
    }
}

words! {
    /// The unit of what a link's self-check compares.
    pub enum CheckedUnit {
        /// Bits per second.
        BitsPerSecond = "bit/s",
        /// Milliseconds.
        Milliseconds = "ms",
        /// A share of all, 0 to 1.
        Ratio = "ratio",
        /// Bytes.
        Bytes = "bytes",
        /// Packets.
        Packets = "packets",
    }
}

words! {
    /// As whom a run was made.
    pub enum Privilege {
        /// As root.
        Root = "root",
        /// Rootless, in a user namespace.
        User = "user",
    }
}

words! {
    /// How a TCP socket was sampled.
    pub enum TcpSource {
        /// At regular intervals, over netlink.
        SockDiag = "sock_diag",
        /// Just before an ACK is processed, by a BPF program.
        TcpProbe = "tcp_probe",
    }
}

words! {
    /// The congestion state of a TCP socket.
    pub enum TcpState {
        /// Nothing is wrong.
        Open = "open",
        /// ACKs are duplicate or selective: something was lost or reordered.
        Disorder = "disorder",
        /// The window was reduced after ECN or a full local queue.
        Cwr = "cwr",
        /// Fast retransmit and recovery.
        Recovery = "recovery",
        /// Recovery after a timeout.
        Loss = "loss",
        /// A number that Linux had not used when this was written.
        Unknown = "unknown",
    }
}

words! {
    /// A service access point, in the order in which a packet passes them.
    pub enum Point {
        /// The application passes data to the kernel: the system call begins.
        SendCall = "send_call",
        /// From the socket to UDP: the datagram has room in the socket's buffer. TCP is not watched here.
        SendTransport = "send_transport",
        /// From TCP or UDP to IP: netfilter LOCAL_OUT, before all rules.
        SendIp = "send_ip",
        /// From IP to the link: netfilter POST_ROUTING, after all rules.
        SendLink = "send_link",
        /// Into the queue discipline: tracepoint `net_dev_queue`.
        SendQdisc = "send_qdisc",
        /// To the driver: tracepoint `net_dev_start_xmit`.
        SendDriver = "send_driver",
        /// From the driver: tracepoint `netif_receive_skb`.
        ReceiveDevice = "receive_device",
        /// From the link to IP: netfilter PRE_ROUTING, before all rules.
        ReceiveIp = "receive_ip",
        /// From IP to TCP or UDP: netfilter LOCAL_IN, after all rules.
        ReceiveLocal = "receive_local",
        /// The socket is found and its queue comes next: `cgroup_skb/ingress`.
        ReceiveSocket = "receive_socket",
        /// The application has the data: the receiving system call's work is done.
        ReceiveCall = "receive_call",
        /// The kernel dropped it: tracepoint `kfree_skb`. A datagram whose send call fails is dropped with the error's
        /// name.
        Dropped = "dropped",
    }
}

words! {
    /// The direction of a packet of a flow, as one host sees it.
    pub enum Heading {
        /// Out of the host.
        Sent = "sent",
        /// Into the host.
        Received = "received",
    }
}

words! {
    /// What makes a packet the same at every service access point.
    pub enum KeyKind {
        /// SSRC × 65536 + sequence number.
        Rtp = "rtp",
        /// IPv4 identification + 65536 × a checksum of the payload's first 12 bytes.
        IpId = "ip_id",
        /// A hash of the payload.
        Hash = "hash",
        /// TCP sequence number of the first byte.
        Bytes = "bytes",
    }
}

words! {
    /// A protocol layer of a host, as the service access points bound it. From the top.
    pub enum Layer {
        /// System calls, sockets and their queues.
        SystemCall = "system_call",
        /// UDP or TCP. The sender's system call layer ends where IP begins: no hook is between.
        Transport = "transport",
        /// IP: routing, firewall, fragments.
        Network = "network",
        /// Everything below IP: queue discipline, driver, network, device.
        Link = "link",
    }
}

words! {
    /// What a player requests from an origin.
    pub enum RequestKind {
        /// An MPD or a playlist.
        Manifest = "manifest",
        /// An initialisation segment.
        Init = "init",
        /// A media segment.
        Segment = "segment",
        /// The clock that a live manifest names (`UTCTiming`).
        Clock = "clock",
    }
}

words! {
    /// A track of segmented media.
    pub enum Track {
        /// The video.
        Video = "video",
        /// Sound.
        Audio = "audio",
    }
}

words! {
    /// The state of a player.
    pub enum PlayerState {
        /// Nothing was shown yet.
        Starting = "starting",
        /// The video plays.
        Playing = "playing",
        /// The video has stopped because media is missing.
        Stalled = "stalled",
        /// All media was played.
        Ended = "ended",
        /// It gave up.
        Failed = "failed",
    }
}

impl PlayerState {
    /// A player writes its state at least this often.
    pub const WRITTEN_EVERY: suiro_units::Duration = suiro_units::Duration::from_millis(100);
}

words! {
    /// Where a burst of uncompressed video is cut into packets.
    pub enum Segmentation {
        /// UDP_SEGMENT: in the kernel or the card, depending on the interface's offloads.
        Kernel = "kernel",
        /// In the sender: one call for each packet.
        None = "none",
    }
}

words! {
    /// The outcome of a tick at the output of a converter.
    pub enum Shown {
        /// The next frame, with other content than the one before.
        New = "new",
        /// The next frame, but its sender repeated the content of the one before.
        Repeat = "repeat",
        /// No new frame was complete in time: the old one stayed.
        Underrun = "underrun",
    }
}

words! {
    /// The transport protocol of a flow.
    pub enum Transport {
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
    }
}

words! {
    /// What an endpoint does in a flow.
    pub enum FlowRole {
        /// It sends what the flow carries.
        Sender = "sender",
        /// It receives what the flow carries.
        Receiver = "receiver",
        /// It waits to be connected to, and answers.
        Server = "server",
        /// It connects, and asks.
        Client = "client",
    }
}

words! {
    /// The signalling protocol of a WebRTC session.
    pub enum Signalling {
        /// The sender of the video makes the offer: WHIP (RFC 9725).
        Whip = "whip",
        /// The receiver of the video makes the offer: WHEP (draft-ietf-wish-whep).
        Whep = "whep",
    }
}

words! {
    /// How a WebRTC session ended.
    pub enum SessionEnd {
        /// It was ended by DELETE.
        Deleted = "deleted",
        /// The other end closed the connection.
        Closed = "closed",
        /// The other end did not renew its consent to receive (RFC 7675): it vanished.
        Consent = "consent",
        /// It was never connected in time.
        Unanswered = "unanswered",
        /// It was the oldest of too many that were not connected.
        Displaced = "displaced",
        /// It broke.
        Broken = "broken",
    }
}

words! {
    /// What limits a browser's encoder.
    pub enum Limitation {
        /// Nothing.
        None = "none",
        /// The CPU.
        Cpu = "cpu",
        /// The bit rate that congestion control allows.
        Bandwidth = "bandwidth",
        /// Something else.
        Other = "other",
    }
}

words! {
    /// What a flow carries.
    pub enum Carries {
        /// Video, in packets of its own.
        Video = "video",
        /// Sound, in packets of its own.
        Audio = "audio",
        /// Segmented media over HTTP: video, sound and manifests.
        HttpMedia = "http_media",
        /// Reports about video or sound, such as RTCP.
        Feedback = "feedback",
        /// Pages of the web.
        Web = "web",
        /// Traffic that is there to load the path.
        Load = "load",
        /// Messages that control something else.
        Control = "control",
        /// A flow of another program, for which the scenario does not state it.
        Unknown = "unknown",
    }
}

words! {
    /// How suiro measured whether an endpoint ran.
    pub enum LatenessSource {
        /// With a heartbeat of the endpoint itself, every 10 ms.
        Heartbeat = "heartbeat",
        /// From the kernel's scheduler statistics of its processes, read from outside.
        Scheduler = "scheduler",
    }
}

words! {
    /// The verdict of a run on a study's finding. In this order, "and" takes the least and "or" the greatest.
    pub enum FindingVerdict {
        /// It does not hold.
        DoesNotHold = "does not hold",
        /// It holds or fails by less than the repetitions vary.
        Inconclusive = "inconclusive",
        /// It holds.
        Holds = "holds",
    }
}

impl FindingVerdict {
    /// Whether it holds; `None` if that is inconclusive.
    pub const fn truth(self) -> Option<bool> {
        match self {
            Self::Holds => Some(true),
            Self::Inconclusive => None,
            Self::DoesNotHold => Some(false),
        }
    }
}

words! {
    /// How segments are wrapped.
    pub enum Container {
        /// Fragmented MP4.
        Fmp4 = "fmp4",
        /// MPEG transport stream, with sound and video together.
        MpegTs = "mpeg_ts",
    }
}

words! {
    /// What a row of table `causes` explains.
    pub enum Effect {
        /// A period of a flow: what limited it.
        Limit = "limit",
        /// The trial as a whole: the share of a flow's time that each cause limited.
        Trial = "trial",
        /// Playback stalled because media was missing.
        Stall = "stall",
        /// The screen of real-time video froze.
        Freeze = "freeze",
        /// Frames of real-time video were shown late, or a player of a live stream stayed behind its target.
        Late = "late",
        /// Frames of real-time video were sent, and not shown.
        Missing = "missing",
        /// A lower rung was chosen, or a smaller frame.
        Quality = "quality",
        /// Playback began late.
        Startup = "startup",
        /// Real-time video came at a lower frame rate than its camera's.
        FrameRate = "frame_rate",
    }
}

words! {
    /// What limited a transfer, or caused an interruption.
    pub enum Cause {
        /// The player requested nothing: its buffer was full, or the next segment did not exist yet.
        NoRequest = "no_request",
        /// The application had nothing to send.
        Application = "application",
        /// A request or the last bytes of an answer were in transit.
        RoundTrip = "round_trip",
        /// The player opened a connection for its next request.
        Handshake = "handshake",
        /// The player waited for a manifest before it could request media.
        Manifest = "manifest",
        /// The sender's socket buffer was full, and all of it was in flight.
        SendBuffer = "send_buffer",
        /// The congestion window, while there was no queue on the path.
        CongestionWindow = "congestion_window",
        /// The receive window, because the receiver's buffer is small.
        ReceiveWindow = "receive_window",
        /// The receive window, because the receiver read too slowly.
        SlowReader = "slow_reader",
        /// The sender's pacing.
        Pacing = "pacing",
        /// The link's rate: it was never idle.
        LinkRate = "link_rate",
        /// The link's rate, after it had fallen.
        RateStep = "rate_step",
        /// The link's rate, of which other flows used a share.
        Competing = "competing",
        /// A queue of more than 200 ms that other flows had filled.
        Bufferbloat = "bufferbloat",
        /// The link carried nothing at all.
        Outage = "outage",
        /// A limit on the rate without a queue: packets above it were dropped at once.
        Policer = "policer",
        /// Packets that the link lost, their repair, and the congestion window that they cost.
        Loss = "loss",
        /// Bytes that had arrived waited for the repair of a packet of another response on the same TCP connection.
        HeadOfLine = "head_of_line",
        /// Packets whose bits the link changed, so that their receiver dropped them.
        Corruption = "corruption",
        /// Packets that others overtook on the link.
        Reordering = "reordering",
        /// The link's delay, apart from its queue, which had risen.
        Delay = "delay",
        /// The link's delay, apart from its queue, which changed from packet to packet.
        Jitter = "jitter",
        /// Acknowledgements and requests that the link lost or delayed on the path back to the sender.
        AckPath = "ack_path",
        /// A retransmission timeout that no packet of the link explains.
        Timeout = "timeout",
        /// The player had chosen a rung above what the link carries.
        OversizedRung = "oversized_rung",
        /// The player was behind the latency that it aims at, held enough media to catch up, and played at normal speed.
        NoCatchUp = "no_catch_up",
        /// The player took the network for slower than it is, and stayed at a lower rung than it carries.
        Underestimate = "underestimate",
        /// The viewer changed to another quality, and left out the frames between the last of the old one and the first of the
        /// new one.
        QualityChange = "quality_change",
        /// The encoder exceeded its bit rate.
        Encoder = "encoder",
        /// The encoder left out frames, to keep its bit rate or the frame rate that it was set to, or made smaller frames.
        EncoderChoice = "encoder_choice",
        /// The viewer's jitter buffer held frames that had arrived, for smooth display.
        JitterBuffer = "jitter_buffer",
        /// A key frame came late: until then nothing could be decoded.
        KeyFrame = "key_frame",
        /// A cache before the player was slow, served what had expired, failed, or cut an answer off.
        Cache = "cache",
        /// The sending endpoint did not get a CPU, was stopped, or its encoder was busy.
        ServerProcessor = "server_processor",
        /// The receiving endpoint did not get a CPU, or was stopped.
        ClientProcessor = "client_processor",
        /// The emulator delivered packets too late.
        Emulator = "emulator",
        /// The records do not show it.
        Unknown = "unknown",
    }
}

words! {
    /// Where a cache had its answer from.
    pub enum CacheOutcome {
        /// It had the object, and that was fresh.
        Hit = "hit",
        /// It had the object, which had expired: a fault of the scenario.
        Stale = "stale",
        /// The object was on its way for another request, or being revalidated, and what had come of it was sent at once. It may
        /// have failed then.
        Joined = "joined",
        /// It had the object, which had expired, and the origin answered that it is still valid (status 304).
        Revalidated = "revalidated",
        /// It asked the origin for the object, or about one that had expired. The origin may not have answered.
        Miss = "miss",
        /// It answered by itself, without asking: a request that it does not take, or a fault of the scenario.
        Own = "own",
    }
}

words! {
    /// What a cache does wrong on purpose.
    pub enum CacheFault {
        /// It waits before it answers, or sends bodies slowly.
        Slow = "slow",
        /// It serves what has expired, and the last version of a playlist whatever version was asked for.
        Stale = "stale",
        /// It answers with status 503.
        Unavailable = "503",
        /// It cuts bodies off in the middle of a piece.
        Reset = "reset",
        /// It gives a wrong age.
        Age = "age",
    }
}

words! {
    /// What a trial without a cause showed: `suiro why --prove`.
    pub enum Proof {
        /// Without the cause, at least half of the time that it was blamed for is gone.
        Proved = "proved",
        /// The effect is there all the same: it was not the cause.
        Refuted = "refuted",
        /// The cause could not be removed, or the trial without it did not succeed.
        NotTried = "not_tried",
    }
}
