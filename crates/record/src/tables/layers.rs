//! Packets, losses and delays in the protocol layers of hosts.

use crate::table;
use crate::table::Text;
use crate::words::{Heading, KeyKind, Layer, Point};

table! {
    /// One packet of a chosen flow at one service access point of one host, as BPF programs saw it. `layers.json` in
    /// the same folder has the packets seen and lost at each point. Its `cost` is that of recording: the `packets` that
    /// passed the host, and the CPU time of the recorder during the recording (`recorder_ns`) and after it
    /// (`writing_ns`). Its `kernel` has the run time of the BPF programs (`run_ns` in `runs`) for the `packets` of a
    /// sample: the first `lasted_ns` with packets, at most a second. The timing itself adds about 45 ns to each run,
    /// part of which is in `run_ns`. If the kernel does not time BPF programs, `kernel` is null and `kernel_missing`
    /// gives the reason.
    LayerRow = "layers" {
        /// When; for `send_call` the start of the system call, for `receive_call` its end.
        t_ns: i64,
        /// The host.
        host: Text,
        /// Where.
        point: Point,
        /// Its direction, as this host sees it.
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
    /// Loss and delay of one direction of one flow in one protocol layer, in one second or over the whole recording:
    /// the tables `layers` of two hosts joined. Loss and delay *between* are from the layer's service access point in
    /// the sender to that in the receiver; its *own* are those minus the same of the layer below.
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
        /// Share lost between; null if it was not recorded on both sides, or nothing was sent, or the recorder's own gaps leave more
        /// than 0.1 % of what was sent open.
        between_loss_ratio: Option<f64>,
        /// Share that the layer itself lost, null as above; negative for TCP, which retransmits what lower layers
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
