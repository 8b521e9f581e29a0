//! Rows from the reports of threads.

use suiro_record::table::Text;
use suiro_record::tables::{
    UncompressedFrameRow, UncompressedReceivedRow, UncompressedSentRow, UncompressedShownRow,
};
use suiro_record::words;
use suiro_units::{Duration, to_i64};

use super::Records;
use crate::output::Shown;
use crate::socket::Segmentation;
use crate::{receive, send};

/// What all rows of a sent stream have in common.
pub struct SentStream {
    pub endpoint: Text,
    pub destination: Text,
    pub segmentation: words::Segmentation,
}

/// The segmentation as table `uncompressed_sent` records it.
pub const fn segmentation(segmentation: Segmentation) -> words::Segmentation {
    match segmentation {
        Segmentation::Kernel => words::Segmentation::Kernel,
        Segmentation::None => words::Segmentation::None,
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
        span_ns: second.span.as_nanos_i64(),
        endpoint: of.endpoint.clone(),
        stream: second.stream.into(),
        destination: of.destination.clone(),
        segmentation: of.segmentation,
        packets: to_i64(counts.packets),
        bytes: to_i64(counts.bytes),
        frames: to_i64(counts.frames),
        late_frames: to_i64(counts.late),
        late_steal: to_i64(counts.late_steal),
        late_preempted: to_i64(counts.late_preempted),
        late_waking: to_i64(counts.late_waking),
        late_no_room: to_i64(counts.late_no_room),
        late_load: to_i64(counts.late_load),
        behind_max_ns: counts.behind_max.as_nanos_i64(),
        skipped_frames: to_i64(counts.skipped),
        unreachable_packets: to_i64(counts.unreachable),
        no_room: to_i64(counts.no_room),
        thread_ns: thread.running.as_nanos_i64(),
        woke_late_max_ns: thread.woke_late_max.as_nanos_i64(),
        steal_ns: thread.steal.map(Duration::as_nanos_i64),
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
        span_ns: second.span.as_nanos_i64(),
        endpoint: endpoint.clone(),
        stream: second.stream.into(),
        packets: to_i64(counts.packets),
        bytes: to_i64(counts.bytes),
        lost_packets: counts.lost,
        dropped_packets: second.dropped.into(),
        reordered_packets: to_i64(counts.reordered),
        duplicate_packets: to_i64(counts.duplicate),
        replayed_packets: to_i64(counts.replayed),
        foreign_packets: to_i64(counts.foreign),
        malformed_packets: to_i64(counts.malformed),
        restarts: to_i64(counts.restarts),
        frames: to_i64(counts.frames),
        incomplete_frames: to_i64(counts.incomplete),
        damaged_frames: to_i64(counts.corrupt),
        late_frames: counts.late_if_known().map(to_i64),
        burst_max_packets: evenness.map(|seen| seen.burst_max),
        over_wide_packets: evenness.map(|seen| to_i64(seen.above_wide)),
        over_narrow_packets: evenness.map(|seen| to_i64(seen.above_narrow)),
        buffer_max_packets: evenness.map(|seen| seen.buffer_max),
        thread_ns: second.running.as_nanos_i64(),
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
        frame: to_i64(frame.number),
        period_ns: period.as_nanos_i64(),
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
        over_packets: frame.seen.map(|seen| to_i64(seen.above_wide)),
        buffer_packets: frame.seen.map(|seen| seen.buffer_max),
    }
}

pub fn shown(
    records: &Records,
    endpoint: &Text,
    stream: u32,
    period: Duration,
    shown: &Shown,
) -> UncompressedShownRow {
    UncompressedShownRow {
        t_ns: records.t_ns(shown.due),
        endpoint: endpoint.clone(),
        stream: stream.into(),
        tick: to_i64(shown.tick),
        period_ns: period.as_nanos_i64(),
        wanted_frame: to_i64(shown.wanted),
        frame: shown.frame.map(|frame| to_i64(frame.number)),
        content: shown.frame.and_then(|frame| frame.content).map(i64::from),
        outcome: shown.outcome,
        margin_ns: shown.margin.map(Duration::as_nanos_i64),
        skipped_frames: to_i64(shown.skipped),
        late_ns: shown.late.as_nanos_i64(),
    }
}
