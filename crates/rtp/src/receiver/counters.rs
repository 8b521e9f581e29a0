//! What a receiver counts.

/// Counts since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets of the stream, each once.
    pub packets: u64,
    /// Of these, packets without payload: padding.
    pub padding: u64,
    /// Packets that were missing when a later one came.
    pub missing: u64,
    /// Packets that were sent again and came in time.
    pub recovered: u64,
    /// How often packets were asked for again.
    pub asked: u64,
    /// Packets that came sent again without having been asked for, or after their like.
    pub not_asked: u64,
    /// Packets that came again.
    pub repeated: u64,
    /// Packets that came after their frame was given up.
    pub late: u64,
    /// Packets far from where the stream was.
    pub jumps: u64,
    /// Packets and reports of other streams.
    pub foreign: u64,
    /// Packets from addresses that are not the sender's.
    pub strangers: u64,
    /// Packets, RTP or RTCP, that could not be read.
    pub malformed: u64,
    /// Frames that the playout did not take: too late, or far from the others.
    pub refused: u64,
    /// Key frames that were asked for.
    pub picture_losses: u64,
    /// RTCP packets sent.
    pub reports: u64,
}
