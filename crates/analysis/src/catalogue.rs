//! Every metric: its name, unit, meaning and how it is computed, in one table.

use schemars::JsonSchema;
use serde::Serialize;

use crate::layers;
use crate::link::{Direction, ecn_ratio, goodput};
use crate::player::Player;
use crate::rivals::{Kind, Rivals};
use crate::stats::Distribution;
use crate::tcp::{Senders, srtt_ms};
use crate::uncompressed::{Rings, Streams};
use crate::web::Web;

/// Which way a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The more the better.
    Higher,
    /// The less the better.
    Lower,
    /// Neither: it describes.
    Neither,
}

/// One metric of the catalogue.
#[derive(Clone, Copy)]
pub struct Metric {
    /// What it belongs to: `flow`, `tcp`, `player`, `video`, `media`, `requests`, `fairness`, `web`, `stream`, `ring`,
    /// `link` or `layers`.
    pub family: &'static str,
    /// Its name within the family; ends in its unit.
    pub field: &'static str,
    /// A few words for tables and figures.
    pub label: &'static str,
    /// `bit/s`, `B`, `s`, `1/s`, `ms`, `µs`, `dB`, `ratio`, `cores`, or empty for counts and scores.
    pub unit: &'static str,
    /// Which way it is good.
    pub better: Better,
    /// Significant digits worth showing.
    pub digits: u8,
    /// True for what a short table shows.
    pub main: bool,
    /// What it means, precisely.
    pub doc: &'static str,
    pub(crate) of: Of,
}

/// What a metric is computed from.
#[derive(Clone, Copy)]
pub(crate) enum Of {
    /// All directions of all links.
    Links(fn(&[Direction]) -> Option<f64>),
    Direction(fn(&Direction) -> Option<f64>),
    Layers(fn(&layers::Direction) -> Option<f64>),
    Senders(fn(&Senders) -> Option<f64>),
    Player(fn(&Player) -> Option<f64>),
    /// Video under a rate control, and the TCP beside it.
    Rivals(fn(&Rivals) -> Option<f64>),
    /// Pages of the web.
    Web(fn(&Web) -> Option<f64>),
    /// All rings of all senders of uncompressed video.
    Rings(fn(&Rings) -> Option<f64>),
    /// All streams of all receivers of uncompressed video.
    Streams(fn(&Streams) -> Option<f64>),
}

impl std::fmt::Debug for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{} [{}]", self.family, self.field, self.unit)
    }
}

macro_rules! catalogue {
    ($($(#[main $($main:tt)?])? $family:ident . $field:ident [$unit:literal, $better:ident, $digits:literal]
        $label:literal, $doc:literal, $of:ident($value:expr);)+) => {
        &[$(Metric {
            family: stringify!($family),
            field: stringify!($field),
            label: $label,
            unit: $unit,
            better: Better::$better,
            digits: $digits,
            main: catalogue!(@main $($($main)? yes)?),
            doc: $doc,
            of: Of::$of($value),
        }),+]
    };
    (@main yes) => { true };
    (@main) => { false };
}

const MS_PER_S: f64 = 1e3;

/// Every metric, in the order of a report.
///
/// In a summary the name is `FAMILY.FIELD`; of a link `link.DIRECTION.FIELD`, or
/// `link.NAME.DIRECTION.FIELD` if the trial has several links. Where several players took part,
/// `player.FIELD` is their mean and `player.NAME.FIELD` each one's (so for `video`, `media`,
/// `requests`); where several hosts send, `tcp.FIELD` is over all their sockets and
/// `tcp.HOST.FIELD` over each one's.
pub static CATALOGUE: &[Metric] = catalogue! {
    #[main] flow.goodput_mean_bps ["bit/s", Higher, 3] "Goodput",
        "TCP and UDP payload that the links delivered in the down direction within the trial, over \
         the trial's duration. A byte that crosses several links counts on each; copies that a link \
         made do not count; a byte that TCP needlessly sent twice does.",
        Links(goodput);

    #[main] video.bitrate_mean_bps ["bit/s", Higher, 3] "Video bit rate",
        "Nominal bit rate of the rung under the playhead, over the time in which the picture moved.",
        Player(|p| p.playing(|row| row.rung_bps.map(|bps| bps as f64)).mean());
    #[main] player.startup_s ["s", Lower, 3] "Start-up",
        "From the player's first record to the first moving picture; null if there was none.",
        Player(|p| p.startup_s());
    #[main] player.stalls ["", Lower, 3] "Stalls",
        "Interruptions after playback began.",
        Player(|p| p.stalls());
    #[main] player.stall_s ["s", Lower, 3] "Stalled",
        "Time spent waiting after playback began.",
        Player(|p| p.stall_s());
    player.stall_ratio ["ratio", Lower, 3] "Stalled share",
        "Time spent waiting after playback began, as a share of that and the time played.",
        Player(|p| p.stall_ratio());
    player.played_s ["s", Higher, 3] "Played",
        "Time in which the picture moved.",
        Player(|p| p.played_s());
    #[main] player.switches ["", Lower, 3] "Rung switches",
        "Changes of the rung under the playhead.",
        Player(|p| p.switches());
    #[main] player.buffer_mean_s ["s", Neither, 3] "Buffer",
        "Media buffered ahead of the playhead, mean over the time played or stalled.",
        Player(|p| p.watched(|row| Some(row.buffer_ms? / MS_PER_S)).mean());
    #[main] media.latency_p50_ms ["ms", Lower, 4] "Latency, median",
        "Live only: from the capture of a picture to its display, median over the pictures shown. Of \
         a player that does not tell its frames: age of the picture under the playhead, over the \
         time played or stalled.",
        Player(|p| p.latency().percentile(0.5));
    media.latency_p95_ms ["ms", Lower, 4] "Latency, 95 %",
        "Live only: from capture to display, 95th percentile.",
        Player(|p| p.latency().percentile(0.95));
    media.latency_p99_ms ["ms", Lower, 4] "Latency, 99 %",
        "Live only: from capture to display, 99th percentile.",
        Player(|p| p.latency().percentile(0.99));
    media.latency_max_ms ["ms", Lower, 4] "Latency, greatest",
        "Live only: from capture to display, greatest.",
        Player(|p| p.latency().max());
    video.freezes ["", Lower, 3] "Freezes",
        "Intervals between two pictures shown of at least three times the average of the 30 before \
         them and 150 ms more than it (W3C, Identifiers for WebRTC's Statistics API, `freezeCount`); \
         the one in which the viewing ended counts, start-up does not.",
        Player(|p| p.screen.freeze_count());
    #[main] video.freeze_s ["s", Lower, 3] "Frozen",
        "Length of all freezes: whole intervals, as W3C's `totalFreezesDuration`.",
        Player(|p| p.screen.freeze_s());
    video.freeze_max_s ["s", Lower, 3] "Longest freeze",
        "Length of the longest freeze; 0 if there was none.",
        Player(|p| p.screen.freeze_max_s());
    video.fps_shown ["1/s", Higher, 3] "Frame rate shown",
        "Pictures shown per second, from the first one to the end of the viewing.",
        Player(|p| p.screen.fps_shown());
    video.frames_skipped ["", Lower, 3] "Frames skipped",
        "Source frames between the first and the last that were shown that were not shown \
         themselves.",
        Player(|p| p.screen.frames_skipped());
    video.frames_damaged ["", Lower, 3] "Frames damaged",
        "Pictures shown although parts were lost, of them or of what they refer to: a decoder made \
         those up. None where the viewer shows no such pictures.",
        Player(|p| p.screen.frames_damaged());
    #[main] video.vmaf_mean ["", Higher, 3] "VMAF",
        "*Picture* quality: VMAF of each picture shown against its own source frame, mean. Freezes \
         and delay do not count.",
        Player(|p| p.screen.scores(|row| row.picture_vmaf).mean());
    video.vmaf_p5 ["", Higher, 3] "VMAF, 5 %",
        "Picture quality: 5th percentile of VMAF over the pictures shown.",
        Player(|p| p.screen.scores(|row| row.picture_vmaf).percentile(0.05));
    video.ssim_mean ["", Higher, 4] "SSIM",
        "Picture quality: structural similarity of luma, mean over the pictures shown.",
        Player(|p| p.screen.scores(|row| row.picture_ssim).mean());
    video.psnr_mean_db ["dB", Higher, 3] "PSNR",
        "Picture quality: peak signal-to-noise ratio of luma, mean over the pictures shown.",
        Player(|p| p.screen.scores(|row| row.picture_psnr_db).mean());
    video.experience_vmaf_mean ["", Higher, 3] "VMAF, experience",
        "*Experience*: VMAF of the screen at each tick of the source's frame rate against the frame \
         that should have been there at a constant delay (that of most frames), mean. Freezes \
         count, and so does a live player's playing faster or slower to keep its latency: \
         meanwhile it shows other frames. Not to be compared with picture quality.",
        Player(|p| p.screen.scores(|row| row.experience_vmaf).mean());
    video.experience_vmaf_p5 ["", Higher, 3] "VMAF, experience, 5 %",
        "Experience: 5th percentile of VMAF over time.",
        Player(|p| p.screen.scores(|row| row.experience_vmaf).percentile(0.05));
    video.experience_ssim_mean ["", Higher, 4] "SSIM, experience",
        "Experience: structural similarity of luma, mean over time.",
        Player(|p| p.screen.scores(|row| row.experience_ssim).mean());
    video.experience_psnr_mean_db ["dB", Higher, 3] "PSNR, experience",
        "Experience: peak signal-to-noise ratio of luma, mean over time.",
        Player(|p| p.screen.scores(|row| row.experience_psnr_db).mean());
    video.mos_estimate ["", Higher, 3] "MOS, estimated",
        "Estimated mean opinion of the pictures, 1 (bad) to 5 (excellent): `video.vmaf_mean` ∕ 20, at \
         least 1. The scale of the VMAF model v0.6.1 is linear in the votes that it was trained on, \
         with bad at about 20 and excellent at 100 (Netflix, VMAF repository, resource/doc/models.md). \
         Limits: clips of 10 s on a television of 1080 lines at three times its height; it knows \
         neither freezes nor delay nor sound.",
        Player(|p| p.screen.mos());
    video.p1203_mos ["", Higher, 3] "MOS, P.1203",
        "Overall opinion of picture, sound, start-up and stalls by ITU-T P.1203 in mode 0 (`O.46`), 1 \
         (bad) to 5 (excellent), on a computer's screen of 1920×1080; null unless `[record] quality` \
         is on and the machine has the program `p1203-standalone`, which is not part of suiro. The \
         Recommendation is valid for 1 to 5 minutes of H.264 of at most 1920×1080 over a reliable \
         transport; a shorter or longer trial gets a number that it does not vouch for.",
        Player(|p| p.p1203_mos);
    requests.failed ["", Lower, 3] "Failed requests",
        "HTTP requests that failed or were answered with a status of 400 or more.",
        Player(|p| p.failed_requests());
    requests.abandoned ["", Lower, 3] "Segments given up",
        "Requests for segments that were given up under way, for a lower rung.",
        Player(|p| p.abandoned_requests());
    requests.first_byte_p50_ms ["ms", Lower, 3] "First byte, median",
        "From sending the request for a segment to the first byte of its body, median.",
        Player(|p| p.segment_times(|row| row.first_byte_ns).percentile(0.5));
    requests.segment_p95_ms ["ms", Lower, 4] "Segment download, 95 %",
        "From sending the request for a segment to its last byte, 95th percentile.",
        Player(|p| p.segment_times(|row| row.done_ns).percentile(0.95));

    #[main] tcp.cwnd_mean_bytes ["B", Neither, 3] "Congestion window",
        "Congestion window of the sockets that carry media (more acknowledged than received, and at \
         least 1 % of what the busiest such socket had acknowledged), mean over time.",
        Senders(|s| s.over_time(|row| Some(row.cwnd_bytes as f64)).mean());
    tcp.cwnd_max_bytes ["B", Neither, 3] "Congestion window, greatest",
        "Greatest congestion window of the sockets that carry media.",
        Senders(|s| s.over_time(|row| Some(row.cwnd_bytes as f64)).max());
    #[main] tcp.srtt_mean_ms ["ms", Lower, 3] "RTT",
        "Smoothed round-trip time (RFC 6298) at the sockets that carry media, mean over time.",
        Senders(|s| s.over_time(srtt_ms).mean());
    tcp.srtt_p95_ms ["ms", Lower, 3] "RTT, 95 %",
        "95th percentile over time of the smoothed round-trip time.",
        Senders(|s| s.over_time(srtt_ms).percentile(0.95));
    tcp.srtt_min_ms ["ms", Lower, 3] "RTT, least",
        "Least smoothed round-trip time.",
        Senders(|s| s.over_time(srtt_ms).min());
    tcp.rtt_min_ms ["ms", Lower, 3] "Unsmoothed RTT, least",
        "Least round-trip time that the kernel measured, not smoothed.",
        Senders(|s| s.over_time(|row| row.min_rtt_us.map(|us| us as f64 / MS_PER_S)).min());
    #[main] tcp.retransmits ["", Lower, 3] "Retransmits",
        "Segments that the sockets that carry media sent again.",
        Senders(|s| Some(s.sockets.iter().map(|socket| socket.retransmits as f64).sum()));
    tcp.in_flight_mean_bytes ["B", Neither, 3] "In flight",
        "Payload sent and neither acknowledged nor known lost, mean over time.",
        Senders(|s| s.over_time(|row| Some(row.in_flight_bytes as f64)).mean());
    tcp.acked_mean_bps ["bit/s", Higher, 3] "Acknowledged",
        "Payload that the receivers acknowledged, over the trial's duration: goodput as TCP sees it.",
        Senders(acked_bps);
    tcp.sockets ["", Neither, 3] "Media sockets",
        "Sockets that carry media.",
        Senders(|s| Some(s.sockets.len() as f64));

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
         percentile; null of a single stream.",
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
    #[main] fairness.video_mean_bps ["bit/s", Higher, 3] "Video flow",
        "IP packets delivered of a video flow (RTP and its RTCP) per second, in whole GoP times of \
         1.001 s from the first video packet on, mean over the video flows. A flow's packets count \
         at the link that delivered the fewest of its bytes.",
        Rivals(|r| r.mean_bps(Kind::Video));
    #[main] fairness.tcp_mean_bps ["bit/s", Higher, 3] "TCP flow",
        "The same of TCP flows: those of at least 1 % of the bytes of the busiest that lasted for at least \
         half of the time.",
        Rivals(|r| r.mean_bps(Kind::Tcp));
    #[main] fairness.friendliness ["ratio", Neither, 3] "Friendliness",
        "Mean rate of a video flow over that of a TCP flow: 1 is an equal share, more is greed.",
        Rivals(|r| r.friendliness());
    #[main] fairness.jain_ratio ["ratio", Higher, 3] "Jain's index",
        "(Σx)² ∕ (n·Σx²) of the mean rates x of all n flows, video and TCP (Jain, Chiu and Hawe, 1984).",
        Rivals(|r| r.jain());
    fairness.jain_short_ratio ["ratio", Higher, 3] "Jain's index, short term",
        "Jain's index of rates averaged over five GoP times, mean over the trial.",
        Rivals(|r| r.jain_short());
    fairness.convergence_s ["s", Lower, 3] "Convergence",
        "From the first video packet to the first of ten GoP times in a row at which Jain's index of \
         the next five is at least 0.9; null if that never came.",
        Rivals(|r| r.convergence_s());
    #[main] fairness.video_variation ["ratio", Lower, 3] "Video varies",
        "Coefficient of variation (standard deviation over mean) of a video flow's rate per GoP time, \
         mean over the video flows.",
        Rivals(|r| r.variation(Kind::Video));
    fairness.tcp_variation ["ratio", Lower, 3] "TCP varies",
        "Coefficient of variation of a TCP flow's rate per GoP time, mean over the TCP flows.",
        Rivals(|r| r.variation(Kind::Tcp));
    fairness.video_loss_ratio ["ratio", Lower, 3] "Video lost",
        "Packets of the video flows that links dropped, as a share of those dropped and delivered.",
        Rivals(|r| r.video_loss());
    fairness.rtt_mean_ms ["ms", Lower, 3] "RTT, video",
        "Smoothed round-trip time as the senders of video measure it by RTCP, mean over their control \
         periods.",
        Rivals(|r| r.rtt_ms().mean());
    fairness.video_flows ["", Neither, 3] "Video flows",
        "Video flows that competed.",
        Rivals(|r| Some(r.count(Kind::Video)));
    fairness.tcp_flows ["", Neither, 3] "TCP flows",
        "TCP flows that competed.",
        Rivals(|r| Some(r.count(Kind::Tcp)));
    #[main] web.load_p50_s ["s", Lower, 3] "Page load, median",
        "From a page's first connection to the last byte of its last object, median over the pages loaded.",
        Web(|w| w.load_s().percentile(0.5));
    #[main] web.load_p95_s ["s", Lower, 3] "Page load, 95 %",
        "The same, 95th percentile.",
        Web(|w| w.load_s().percentile(0.95));
    web.goodput_mean_bps ["bit/s", Neither, 3] "Web goodput",
        "Bodies received of all pages, over the trial's duration.",
        Web(|w| Some(w.rate_bps()));
    web.pages ["", Higher, 3] "Pages loaded",
        "Pages loaded whole within the trial.",
        Web(|w| Some(w.count()));
    web.flows ["", Neither, 3] "Web flows",
        "TCP connections of the pages loaded, all of them ended.",
        Web(|w| Some(w.connections()));
    web.unfinished ["", Lower, 3] "Pages not loaded",
        "Pages begun but given up after 60 s, refused, or cut off by the trial's end. They have no load time.",
        Web(|w| Some(w.unfinished()));

    #[main] link.loss_ratio ["ratio", Lower, 3] "Loss",
        "Packets that the link dropped, for any cause, as a share of those dropped and delivered. \
         Packets still in the link at the end count as neither.",
        Direction(|d| d.loss_ratio(&[]));
    link.loss_random_ratio ["ratio", Lower, 3] "Loss, random",
        "Packets that the loss model dropped, as a share of those dropped and delivered.",
        Direction(|d| d.loss_ratio(&["loss"]));
    link.loss_queue_ratio ["ratio", Lower, 3] "Loss, queue",
        "Packets dropped because the queue was full or by active queue management, as a share of \
         those dropped and delivered.",
        Direction(|d| d.loss_ratio(&["queue", "aqm"]));
    link.ecn_ratio ["ratio", Neither, 3] "ECN marks",
        "Packets that the queue discipline marked Congestion Experienced, as a share of those \
         delivered.",
        Direction(ecn_ratio);
    link.throughput_mean_bps ["bit/s", Higher, 3] "Throughput",
        "IP packets delivered, headers included, over the trial's duration.",
        Direction(|d| d.per_second(d.delivered().map(|(_, r)| r.size_bytes as f64 * 8.0).sum()));
    link.payload_mean_bps ["bit/s", Higher, 3] "Payload",
        "TCP and UDP payload delivered, over the trial's duration.",
        Direction(|d| d.per_second(d.payload().map(|(_, bytes)| bytes * 8.0).sum()));
    link.served_bps ["bit/s", Neither, 3] "Rate when busy",
        "The rate at which the link served packets while one was always waiting: what the link's \
         rate was when it mattered. Null if no packet ever waited.",
        Direction(|d| d.served_bps());
    #[main] link.utilisation ["ratio", Higher, 3] "Utilisation",
        "Share of what the link could carry at the rate asked for that it carried. Where no rate was \
         asked for: the share of the trial in which it was serving a packet, null if none ever waited.",
        Direction(|d| d.utilisation());
    link.queue_delay_mean_ms ["ms", Lower, 3] "Queueing delay",
        "From a packet's arrival at the link to the start of its service, mean over packets.",
        Direction(|d| d.queue_delays().mean());
    #[main] link.queue_delay_p95_ms ["ms", Lower, 3] "Queueing delay, 95 %",
        "From a packet's arrival at the link to the start of its service, 95th percentile.",
        Direction(|d| d.queue_delays().percentile(0.95));
    link.delay_mean_ms ["ms", Lower, 3] "One-way delay",
        "From a packet's arrival at the link to its delivery, mean over packets delivered.",
        Direction(|d| d.one_way_delays().mean());
    link.delay_p95_ms ["ms", Lower, 3] "One-way delay, 95 %",
        "From a packet's arrival at the link to its delivery, 95th percentile.",
        Direction(|d| d.one_way_delays().percentile(0.95));
    link.queue_max_bytes ["B", Lower, 3] "Queue, greatest",
        "Most bytes that a packet found waiting before it.",
        Direction(|d| Distribution::equal(d.rows.iter().map(|r| r.queue_bytes as f64)).max());
    link.unaccounted ["", Lower, 3] "Lost by the emulator",
        "Packets that the emulator itself lost. Must be 0.",
        Direction(|d| d.totals.map(|totals| totals.unaccounted as f64));
    link.lateness_p50_us ["µs", Lower, 3] "Emulator lateness, median",
        "Actual less scheduled delivery, median over packets.",
        Direction(|d| d.totals?.lateness.p50_us);
    link.lateness_p99_us ["µs", Lower, 3] "Emulator lateness, 99 %",
        "Actual less scheduled delivery, 99th percentile.",
        Direction(|d| d.totals?.lateness.p99_us);
    link.lateness_max_us ["µs", Lower, 3] "Emulator lateness, worst",
        "Actual less scheduled delivery, worst packet.",
        Direction(|d| d.totals?.lateness.max_us);
    link.emulator_cores ["cores", Lower, 3] "Emulator's CPU",
        "Share of one core that the emulator took for the whole link, both directions.",
        Direction(|d| d.totals?.cpu_cores);

    #[main] layers.system_call_loss_ratio ["ratio", Lower, 3] "System call: loss",
        "Lost by system calls, sockets and their queues, as a share of what was sent: between the layer's access points in both hosts, \
         less the same of the layer below. Of the main flow: the one of UDP, or else of TCP, that sent \
         most.",
        Layers(|d| d.whole("system_call", |row| row.own_loss_ratio));
    #[main] layers.system_call_delay_mean_ms ["ms", Lower, 3] "System call: delay",
        "Delay of system calls, sockets and their queues, mean over packets that came through: as with loss, less the layer below.",
        Layers(|d| d.whole("system_call", |row| row.own_delay_mean_ms));
    layers.system_call_delay_max_ms ["ms", Lower, 3] "System call: delay, greatest",
        "Delay of system calls, sockets and their queues, greatest.",
        Layers(|d| d.whole("system_call", |row| row.own_delay_max_ms));
    layers.system_call_jitter_ms ["ms", Lower, 3] "System call: jitter",
        "Mean amount by which the delays of successive packets in system calls, sockets and their queues differ.",
        Layers(|d| d.whole("system_call", |row| row.own_jitter_ms));
    layers.transport_loss_ratio ["ratio", Lower, 3] "UDP or TCP: loss",
        "Lost by UDP or TCP, as a share of what was sent: between the layer's access points in both hosts, \
         less the same of the layer below. Of the main flow: the one of UDP, or else of TCP, that sent \
         most.",
        Layers(|d| d.whole("transport", |row| row.own_loss_ratio));
    layers.transport_delay_mean_ms ["ms", Lower, 3] "UDP or TCP: delay",
        "Delay of UDP or TCP, mean over packets that came through: as with loss, less the layer below.",
        Layers(|d| d.whole("transport", |row| row.own_delay_mean_ms));
    layers.transport_delay_max_ms ["ms", Lower, 3] "UDP or TCP: delay, greatest",
        "Delay of UDP or TCP, greatest.",
        Layers(|d| d.whole("transport", |row| row.own_delay_max_ms));
    layers.transport_jitter_ms ["ms", Lower, 3] "UDP or TCP: jitter",
        "Mean amount by which the delays of successive packets in UDP or TCP differ.",
        Layers(|d| d.whole("transport", |row| row.own_jitter_ms));
    layers.network_loss_ratio ["ratio", Lower, 3] "IP: loss",
        "Lost by IP, as a share of what was sent: between the layer's access points in both hosts, \
         less the same of the layer below. Of the main flow: the one of UDP, or else of TCP, that sent \
         most.",
        Layers(|d| d.whole("network", |row| row.own_loss_ratio));
    layers.network_delay_mean_ms ["ms", Lower, 3] "IP: delay",
        "Delay of IP, mean over packets that came through: as with loss, less the layer below.",
        Layers(|d| d.whole("network", |row| row.own_delay_mean_ms));
    layers.network_delay_max_ms ["ms", Lower, 3] "IP: delay, greatest",
        "Delay of IP, greatest.",
        Layers(|d| d.whole("network", |row| row.own_delay_max_ms));
    layers.network_jitter_ms ["ms", Lower, 3] "IP: jitter",
        "Mean amount by which the delays of successive packets in IP differ.",
        Layers(|d| d.whole("network", |row| row.own_jitter_ms));
    #[main] layers.link_loss_ratio ["ratio", Lower, 3] "Data link: loss",
        "Lost by all that is below IP, as a share of what was sent: between the layer's access points in both hosts, \
         less the same of the layer below. Of the main flow: the one of UDP, or else of TCP, that sent \
         most.",
        Layers(|d| d.whole("link", |row| row.own_loss_ratio));
    #[main] layers.link_delay_mean_ms ["ms", Lower, 3] "Data link: delay",
        "Delay of all that is below IP, mean over packets that came through: as with loss, less the layer below.",
        Layers(|d| d.whole("link", |row| row.own_delay_mean_ms));
    layers.link_delay_max_ms ["ms", Lower, 3] "Data link: delay, greatest",
        "Delay of all that is below IP, greatest.",
        Layers(|d| d.whole("link", |row| row.own_delay_max_ms));
    layers.link_jitter_ms ["ms", Lower, 3] "Data link: jitter",
        "Mean amount by which the delays of successive packets in all that is below IP differ.",
        Layers(|d| d.whole("link", |row| row.own_jitter_ms));
};

fn acked_bps(senders: &Senders) -> Option<f64> {
    let bytes: f64 = senders.sockets.iter().map(|socket| socket.acked_bytes as f64).sum();
    let bps = bytes * 8e9 / senders.duration_ns as f64;
    bps.is_finite().then_some(bps)
}

/// The catalogue's entry of a summary's metric, and the words that set this one apart from others of
/// the same kind: `link.down.loss_ratio` is `loss_ratio`, `down`. `None` if it is not ours.
pub fn describe(name: &str) -> Option<(&'static Metric, String)> {
    let (family, rest) = name.split_once('.')?;
    let (instance, field) = rest.rsplit_once('.').unwrap_or(("", rest));
    let metric = CATALOGUE.iter().find(|m| m.family == family && m.field == field)?;
    let instance = match instance.rsplit_once('.') {
        Some((link, direction)) if family == "link" => format!("{link} {direction}"),
        _ => instance.to_owned(),
    };
    Some((metric, instance))
}

/// The catalogue as Markdown: `docs/metrics.md`.
pub fn documentation() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         Generated from `crates/analysis/src/catalogue.rs` (`SUIRO_REGENERATE=1 cargo test -p suiro-analysis`): do not edit.\n\n\
         These are the `metrics` of `summary.json`. A mean of something sampled is weighted by time;\n\
         a percentile is the least value that is not exceeded in at least that share of the time or\n\
         packets; null means that it could not be measured. With several links a name is\n\
         `link.NAME.DIRECTION.…`; with several players `player.…`, `video.…`, `media.…` and\n\
         `requests.…` are means over them and `player.NAME.…` each one's; with several sending\n\
         hosts `tcp.…` is over all and `tcp.HOST.…` over each one's sockets. A direction of\n\
         `layers` is `SENDER_to_RECEIVER`, of hosts.\n\n\
         | metric | unit | better | meaning |\n|---|---|---|---|\n",
    );
    for metric in CATALOGUE {
        let place = if ["link", "layers"].contains(&metric.family) { ".DIRECTION" } else { "" };
        let Metric { family, field, unit, doc, .. } = metric;
        let better = match metric.better {
            Better::Higher => "higher",
            Better::Lower => "lower",
            Better::Neither => "",
        };
        text.push_str(&format!("| `{family}{place}.{field}` | {unit} | {better} | {doc} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_end_in_their_unit() {
        let mut names: Vec<_> = CATALOGUE.iter().map(|m| (m.family, m.field)).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        for metric in CATALOGUE {
            let suffix = match metric.unit {
                "bit/s" => "_bps",
                "B" => "_bytes",
                "s" => "_s",
                "ms" => "_ms",
                "µs" => "_us",
                "cores" => "_cores",
                _ => continue,
            };
            assert!(metric.field.ends_with(suffix), "{metric:?}");
        }
    }

    #[test]
    fn the_documentation_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        if std::env::var_os("SUIRO_REGENERATE").is_some() {
            std::fs::write(path, documentation()).unwrap();
        }
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            found == documentation(),
            "docs/metrics.md is stale: SUIRO_REGENERATE=1 cargo test -p suiro-analysis"
        );
    }

    #[test]
    fn instances_are_described() {
        let instance = |name| describe(name).map(|(m, instance)| (m.field, instance));
        assert_eq!(instance("link.down.loss_ratio"), Some(("loss_ratio", "down".into())));
        assert_eq!(instance("link.a.b.up.loss_ratio"), Some(("loss_ratio", "a.b up".into())));
        assert_eq!(instance("player.stall_s"), Some(("stall_s", String::new())));
        assert_eq!(instance("player.viewer1.stall_s"), Some(("stall_s", "viewer1".into())));
        assert_eq!(instance("player.nonsense"), None);
    }
}
