//! Rows from what threads tell.

use suiro_record::table::Text;
use suiro_record::tables::{UncompressedFrameRow, UncompressedReceivedRow, UncompressedSentRow};
use suiro_units::Duration;

use super::Records;
use crate::socket::Segmentation;
use crate::{receive, send};

/// What all rows of a sent stream have in common.
pub struct SentStream {
    pub endpoint: Text,
    pub destination: Text,
    pub segmentation: Text,
}

/// The word of table `uncompressed_sent`.
pub const fn segmentation(segmentation: Segmentation) -> &'static str {
    match segmentation {
        Segmentation::Kernel => "kernel",
        Segmentation::None => "none",
    }
}

pub fn sent(
    records: &Records,
    of: &SentStream,
    second: &send::Second,
    thread: &send::ThreadSecond,
) -> UncompressedSentRow {
    let counts = &second.counts;
    UncompressedSentRow {
        t_ns: records.t_ns(second.at),
        span_ns: ns(second.span),
        endpoint: of.endpoint.clone(),
        stream: second.stream.into(),
        destination: of.destination.clone(),
        segmentation: of.segmentation.clone(),
        packets: count(counts.packets),
        bytes: count(counts.bytes),
        frames: count(counts.frames),
        late_frames: count(counts.late),
        late_steal: count(counts.late_steal),
        late_preempted: count(counts.late_preempted),
        late_waking: count(counts.late_waking),
        late_no_room: count(counts.late_no_room),
        late_load: count(counts.late_load),
        behind_max_ns: ns(counts.behind_max),
        skipped_frames: count(counts.skipped),
        unreachable_packets: count(counts.unreachable),
        no_room: count(counts.no_room),
        thread_ns: ns(thread.running),
        woke_late_max_ns: ns(thread.woke_late_max),
        steal_ns: thread.steal.map(ns),
    }
}

pub fn received(
    records: &Records,
    endpoint: &Text,
    second: &receive::Second,
) -> UncompressedReceivedRow {
    let receive::Second { counts, evenness, .. } = second;
    UncompressedReceivedRow {
        t_ns: records.t_ns(second.at),
        span_ns: ns(second.span),
        endpoint: endpoint.clone(),
        stream: second.stream.into(),
        packets: count(counts.packets),
        bytes: count(counts.bytes),
        lost_packets: counts.lost,
        dropped_packets: second.dropped.into(),
        reordered_packets: count(counts.reordered),
        duplicate_packets: count(counts.duplicate),
        replayed_packets: count(counts.replayed),
        foreign_packets: count(counts.foreign),
        malformed_packets: count(counts.malformed),
        restarts: count(counts.restarts),
        frames: count(counts.frames),
        incomplete_frames: count(counts.incomplete),
        damaged_frames: count(counts.corrupt),
        late_frames: counts.late_if_known().map(count),
        burst_max_packets: evenness.map(|seen| seen.burst_max),
        over_wide_packets: evenness.map(|seen| count(seen.above_wide)),
        over_narrow_packets: evenness.map(|seen| count(seen.above_narrow)),
        buffer_max_packets: evenness.map(|seen| seen.buffer_max),
        thread_ns: ns(second.running),
    }
}

pub fn frame(
    records: &Records,
    endpoint: &Text,
    stream: u32,
    period: Duration,
    frame: &receive::Frame,
) -> UncompressedFrameRow {
    UncompressedFrameRow {
        t_ns: records.t_ns(frame.first),
        endpoint: endpoint.clone(),
        stream: stream.into(),
        frame: count(frame.number),
        period_ns: ns(period),
        due_ns: frame.due.map(|due| records.t_ns(due)),
        last_ns: frame.last.map(|last| records.t_ns(last)),
        content: frame.content.map(i64::from),
        packets: frame.packets.into(),
        lost_packets: frame.lost.into(),
        duplicate_packets: frame.duplicate.into(),
        reordered_packets: frame.reordered.into(),
        bytes: frame.bytes as i64,
        sound: frame.sound,
        burst_packets: frame.seen.map(|seen| seen.burst_max),
        over_packets: frame.seen.map(|seen| count(seen.above_wide)),
        buffer_packets: frame.seen.map(|seen| seen.buffer_max),
    }
}

fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn ns(span: Duration) -> i64 {
    count(span.as_nanos())
}
