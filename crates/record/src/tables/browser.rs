//! What a browser counts of its own video.

use suiro_units::{Duration, Time};

use crate::table;
use crate::table::Text;
use crate::words::{FlowRole, Limitation};

table! {
    /// One connection of a browser between two looks at its own counters, about 100 ms apart: getStats of WebRTC (W3C,
    /// Identifiers for WebRTC's Statistics API), or, over Media over QUIC, what our page counts of WebCodecs. Each
    /// count and each sum is of the period. A count that the browser does not keep is null.
    BrowserRow = "browser" {
        /// When the period ended.
        t_ns: Time,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Number of the connection at this endpoint, from 1, as in `webrtc_sessions` or `moq_sessions`.
        session: u64,
        /// Whether the endpoint sends or receives the video.
        role: FlowRole,
        /// How long the period was.
        period_ns: Duration,
        /// Frames that were encoded (`framesEncoded`) or decoded (`framesDecoded`).
        frames: u64,
        /// Time that it took, summed over these frames (`totalEncodeTime`, `totalDecodeTime`). With several threads, and
        /// for frames that wait for the codec, it is more than the time in which the codec ran.
        coding_ns: Duration,
        /// Those of the frames that are key frames (`keyFramesEncoded`, `keyFramesDecoded`).
        key_frames: Option<u64>,
        /// Quantiser parameters, summed over the frames (`qpSum`): of H.264, 0 to 51 each, of VP8 0 to 127, of VP9 and AV1
        /// 0 to 255.
        qp_sum: Option<u64>,
        /// Frames that came and were not shown (`framesDropped`), or that the decoder of the MoQ page gave up; null at a
        /// sender.
        dropped: Option<u64>,
        /// Freezes that ended (`freezeCount`); null at a sender.
        freezes: Option<u64>,
        /// How long these lasted (`totalFreezesDuration`); null at a sender.
        freezes_ns: Option<Duration>,
        /// Frames that left the jitter buffer (`jitterBufferEmittedCount`); null at a sender.
        jitter_buffer_frames: Option<u64>,
        /// Time that these were in it, from the first packet of each, summed (`jitterBufferDelay`).
        jitter_buffer_ns: Option<Duration>,
        /// The delay that the jitter buffer was to have, summed over these frames (`jitterBufferTargetDelay`).
        jitter_buffer_target_ns: Option<Duration>,
        /// What limits the encoder at the end of the period (`qualityLimitationReason`); null at a receiver.
        limitation: Option<Limitation>,
    }
}
