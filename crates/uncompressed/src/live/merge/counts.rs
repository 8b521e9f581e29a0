//! What is counted of a lane and its paths.

use suiro_units::Duration;

/// Counts of one path. Packets of frames outside the path's time are `unwanted` only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Packets that arrived in time, copies included.
    pub packets: u64,
    /// Packets of frames that are over which did not arrive on this path, or arrived late.
    pub lost: u64,
    /// Packets that arrived after their frame's time.
    pub late: u64,
    /// Packets that another path, or this one, had delivered before.
    pub duplicate: u64,
    /// Datagrams that are not in this format.
    pub malformed: u64,
    /// Packets of a sender that is not used, or whose clock is another.
    pub foreign: u64,
    /// Packets of frames before the path was joined or after it was left.
    pub unwanted: u64,
    /// By how much the path was behind the fastest one, at most, over the frames' first packets.
    pub behind_max: Duration,
}

/// Counts of a lane, after merging.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaneCounts {
    /// Packets, each once.
    pub packets: u64,
    /// Frames that were complete in time.
    pub frames: u64,
    /// Frames of which something was missing when their time was over.
    pub incomplete: u64,
    /// Frames of which nothing arrived.
    pub lost: u64,
    /// Packets that are missing in incomplete frames, and would have been in lost ones.
    pub lost_packets: u64,
    /// Frames with the content of the frame before: their sender starves. Known only in the raster format.
    pub repeated: u64,
    /// Complete frames whose checksum differs from the one that their sender gave.
    pub corrupt: u64,
    /// How often another sender continued the stream.
    pub seams: u64,
    /// How often the stream began anew after a gap of more than 600 frames.
    pub restarts: u64,
}
