//! Uncompressed video, and the control of its streams.

use crate::table;
use crate::table::Text;
use crate::words::{Segmentation, Shown};

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
        /// A word for it. For a node: `started`, `stopped`, `starved`, `lagging`, `late`, `recovered`, `failed`,
        /// `refused`. For a controller: `leads`, `follows`, `accepted`, `refused`, `heard`, `fault`, `well`,
        /// `replaced`, `ordered`, `done`, `stuck`, `hook`, `registry`, `action`.
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
    /// One stream at one tick of a converter's output: a tick is each frame time since the SMPTE epoch, the same at all
    /// converters. There is a row for every tick from the one that belongs to the stream's first complete frame, but
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
        /// The frame that belongs to this tick: the tick's number minus the converter's delay in frame times.
        wanted_frame: i64,
        /// The frame that was shown, an older one if the wanted one had not arrived completely; null before the first.
        frame: Option<i64>,
        /// Number of the content shown; null if packets do not carry it, or nothing was shown.
        content: Option<i64>,
        /// The outcome of the tick.
        outcome: Shown,
        /// How long before the tick the last packet of the wanted frame arrived; null if none did by then.
        margin_ns: Option<i64>,
        /// Frames between the one shown before and this one, which were never shown.
        skipped_frames: i64,
        /// How late the converter itself was: from the tick until it looked, or took the wanted frame from the socket.
        /// The outcome depends only on the arrival of packets, not on this.
        late_ns: i64,
    }
}

table! {
    /// One stream of a sender of uncompressed video in one second.
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
        /// Where a burst is cut into packets.
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
        /// CPU.
        late_steal: i64,
        /// Those that were late because another thread had the CPU.
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
        /// CPU time of the thread, for all its streams.
        thread_ns: i64,
        /// Largest delay with which the thread woke up.
        woke_late_max_ns: i64,
        /// CPU time that the host of this virtual machine took, of all CPUs; null if
        /// unknown.
        steal_ns: Option<i64>,
    }
}

table! {
    /// One stream of a receiver of uncompressed video in one second.
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
        /// Packets from other senders.
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
        /// Largest number of packets in a bucket that drains at 1.1 times the mean rate, in the style of ST 2110-21's
        /// network compatibility model (Cinst). Null, like the next three columns, until a first complete frame has
        /// shown how many packets its sender makes of one.
        burst_max_packets: Option<f64>,
        /// Packets that found that bucket above a wide sender's limit (Cmax).
        over_wide_packets: Option<i64>,
        /// Packets that found it above a narrow sender's limit.
        over_narrow_packets: Option<i64>,
        /// Buffer in packets that reading at a constant rate would have needed, maximum over the
        /// frames, in the style of ST 2110-21's virtual receiver buffer (VRX).
        buffer_max_packets: Option<f64>,
        /// CPU time of the thread, for all its streams.
        thread_ns: i64,
    }
}
