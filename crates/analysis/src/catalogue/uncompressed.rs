//! Streams of uncompressed video, and the rings that their senders read ahead into.

use super::Metric;

pub(super) static METRICS: &[Metric] = catalogue! {
    #[main] stream.rate_mean_bps ["bit/s", Higher, 4] "Uncompressed video",
        "Bytes of frames of uncompressed video that came, over the time from the first frame to the \
         end of the last, all streams together; headers do not count.",
        Streams(|s| s.rate_bps());
    stream.streams ["", Higher, 3] "Streams",
        "Streams of uncompressed video of which a packet came.",
        Streams(|s| Some(s.count() as f64));
    #[main] stream.lost_packets ["", Lower, 6] "Packets lost",
        "Packets of uncompressed video that did not come.",
        Streams(|s| Some(s.sum(|row| row.lost_packets)));
    stream.lost_frames ["", Lower, 6] "Frames not whole",
        "Frames of uncompressed video of which a packet did not come.",
        Streams(|s| Some(s.sum(|row| i64::from(row.lost_packets > 0))));
    stream.damaged_frames ["", Lower, 6] "Frames damaged",
        "Whole frames of uncompressed video whose checksum was wrong; null if none was verified.",
        Streams(|s| s.damaged());
    #[main] stream.late_frames ["", Lower, 6] "Frames late",
        "Frames of uncompressed video that began more than a frame time after the epoch said, or \
         never came; null without a common clock.",
        Streams(|s| s.late());
    stream.lateness_p99_ms ["ms", Lower, 3] "Frame start, 99 %",
        "From when a frame was due to its first packet, 99th percentile.",
        Streams(|s| s.lateness_ms().percentile(0.99));
    stream.lateness_max_ms ["ms", Lower, 3] "Frame start, greatest",
        "From when a frame was due to its first packet, greatest.",
        Streams(|s| s.lateness_ms().max());
    #[main] stream.skew_p99_ms ["ms", Lower, 3] "Skew of streams, 99 %",
        "Of each frame time, from the first stream's first packet to the last stream's, 99th \
         percentile; null of a single stream, or without a common clock.",
        Streams(|s| s.skew_ms().percentile(0.99));
    stream.skew_max_ms ["ms", Lower, 3] "Skew of streams, greatest",
        "Of each frame time, from the first stream's first packet to the last stream's, greatest.",
        Streams(|s| s.skew_ms().max());
    stream.burst_max_packets ["", Lower, 3] "Longest burst",
        "Greatest number of packets in a bucket that drains at a constant rate, in the style of ST \
         2110-21.",
        Streams(|s| s.burst_max());
    stream.buffer_max_packets ["", Lower, 3] "Receiver's buffer",
        "Greatest buffer in packets that reading a frame at a constant rate would have needed, in the \
         style of ST 2110-21.",
        Streams(|s| s.buffer_max());
    stream.over_ratio ["ratio", Lower, 3] "Packets in bursts",
        "Share of packets that met that bucket above the limit of wide senders.",
        Streams(|s| s.over_ratio());
    #[main] ring.repeats ["", Lower, 6] "Frames repeated",
        "Frames that senders of uncompressed video sent again because the next one had not been \
         read, all streams together.",
        Rings(|r| Some(r.sum(|row| row.repeats)));
    ring.fill_min_ratio ["ratio", Higher, 3] "Least filled ring",
        "Least share of a ring's slots with a frame that was read, the one being sent included, of \
         all rings and seconds.",
        Rings(|r| r.fill_min());
    ring.read_mean_bps ["bit/s", Higher, 4] "Read rate",
        "Rate of reading from storage, mean over the seconds, all rings together; null if they are \
         memory.",
        Rings(|r| r.read_bps().map(|each| each.iter().sum()));
    ring.read_slowest_bps ["bit/s", Higher, 4] "Slowest reader",
        "Rate of reading from storage, mean over the seconds, of the ring with the least.",
        Rings(|r| r.read_bps().and_then(|each| each.into_iter().reduce(f64::min)));
    ring.send_mean_bps ["bit/s", Higher, 4] "Send rate",
        "Bytes of frames handed to senders, repeats included, mean over the seconds, all rings \
         together.",
        Rings(|r| r.send_bps().map(|each| each.iter().sum()));
};
