//! Players of stored, live and real-time video, their screens and their requests.

use suiro_record::tables::QualityRow;

use super::MS_PER_S;
use crate::bins::Bins;
use crate::family::{Curve, Family, Measure, Subject};
use crate::instance::Instance;
use crate::player::Player;
use crate::view::View;

/// Each player.
pub(super) struct Players;

impl Subject for Players {
    type One<'v> = &'v Player<'v>;

    const HAS_MEAN: bool = true;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, &'v Player<'v>)> {
        let players = view.players();
        let several = players.len() > 1;
        let named = |player: &'v Player<'v>| (Instance::among(several, player.name), player);
        players.iter().map(named).collect()
    }
}

pub(super) static FAMILY: Family<Players> = Family { metrics: METRICS, series: SERIES };

static METRICS: &[Measure<Players>] = metrics! {
    #[main] video.bitrate_mean_bps ["bit/s", Higher, 3] "Video bit rate",
        "Bit rate of the segment under the playhead, its bytes over its duration, mean over the time in which the \
         video played. Sound counts where it is in the same segments. Null if the player does not report its \
         playhead or the \
         size of segments.",
        |p| p.bitrate_mean_bps();
    video.rung_mean_bps ["bit/s", Higher, 3] "Rung shown",
        "Bit rate that the manifest gives for the rung under the playhead (its peak), mean over the time in which \
         the video played.",
        |p| p.playing(|row| row.rung_bps.map(|bps| bps as f64)).mean();
    #[main] player.startup_s ["s", Lower, 3] "Start-up",
        "From the player's first record to the first frame of playing video, a warm-up included; null if there was none.",
        |p| p.startup_s();
    #[main] player.stalls ["times", Lower, 3] "Stalls",
        "Interruptions after playback began, with one that began in the warm-up and lasts longer.",
        |p| p.stalls();
    #[main] player.stall_s ["s", Lower, 3] "Time stalled",
        "Time spent waiting after playback began.",
        |p| p.stall_s();
    player.stall_ratio ["ratio", Lower, 3] "Stalled share",
        "Time spent waiting after playback began, as a share of that and the time played.",
        |p| p.stall_ratio();
    player.played_s ["s", Higher, 3] "Played",
        "Time in which the video played.",
        |p| p.played_s();
    #[main] player.switches ["times", Lower, 3] "Rung switches",
        "Changes of the rung under the playhead.",
        |p| p.switches();
    #[main] player.buffer_mean_s ["s", Neither, 3] "Buffer",
        "Media buffered ahead of the playhead, mean over the time played or stalled.",
        |p| p.watched(|row| Some(row.buffer_ms? / MS_PER_S)).mean();
    #[main] media.latency_p50_ms ["ms", Lower, 4] "Latency, median",
        "Live only: from the capture of a frame to its display, median over the frames shown. For a player that \
         does not report its frames: age of the frame under the playhead, over the time played or stalled.",
        |p| p.latency().percentile(0.5);
    media.latency_p95_ms ["ms", Lower, 4] "Latency, 95 %",
        "Live only: from capture to display, 95th percentile.",
        |p| p.latency().percentile(0.95);
    media.latency_p99_ms ["ms", Lower, 4] "Latency, 99 %",
        "Live only: from capture to display, 99th percentile.",
        |p| p.latency().percentile(0.99);
    media.latency_max_ms ["ms", Lower, 4] "Latency, maximum",
        "Live only: from capture to display, greatest.",
        |p| p.latency().max();
    media.sending_p50_ms ["ms", Lower, 4] "Capture to sending, median",
        "Real-time video only: from the capture of a frame to the departure of its first packet (encoder, pacer), median \
         over the frames shown.",
        |p| p.screen.between(|row| row.captured_ns, |row| row.sent_ns).percentile(0.5);
    media.transit_p50_ms ["ms", Lower, 4] "Sending to arrival, median",
        "Real-time video only: from the departure of a frame's first packet to the arrival of its last, median over the \
         frames shown.",
        |p| p.screen.between(|row| row.sent_ns, |row| row.received_ns).percentile(0.5);
    media.buffered_p50_ms ["ms", Lower, 4] "Arrival to display, median",
        "Real-time video only: from the arrival of a frame's last packet to its display (jitter buffer), median over the \
         frames shown.",
        |p| p.screen.between(|row| row.received_ns, |row| row.displayed_ns).percentile(0.5);
    video.freezes ["times", Lower, 3] "Freezes",
        "Intervals between two displayed frames that are at least three times the average of the 30 before them and \
         150 ms more than it (W3C, Identifiers for WebRTC's Statistics API, `freezeCount`). The interval in which \
         the viewing ended counts, start-up does not. The viewing ends with the trial, or earlier: when the player has played all, \
         when the viewer leaves (`end` in the scenario), or when all that send to it have left. The first five intervals are compared \
         with the source's own; null if that is not known and there are fewer. One that began in the warm-up and ended after it counts. \
         The time in which the sender pauses (`pauses` in the scenario) does not, here nor in the other metrics of freezes.",
        |p| p.screen.freeze_count();
    #[main] video.freeze_s ["s", Lower, 3] "Time frozen",
        "Length of all freezes: whole intervals, as W3C's `totalFreezesDuration`; of one that began in the warm-up, the part after \
         it. Null where `video.freezes` is.",
        |p| p.screen.freeze_s();
    video.freeze_max_s ["s", Lower, 3] "Longest freeze",
        "Length of the longest freeze; of one that began in the warm-up, the part after it. 0 if there was none, null where \
         `video.freezes` is.",
        |p| p.screen.freeze_max_s();
    video.fps_shown ["1/s", Higher, 3] "Frame rate shown",
        "Frames shown per second, from the first one, or from the end of the warm-up, to the end of the viewing, without \
         pauses of the sender.",
        |p| p.screen.fps_shown();
    video.frames_skipped ["frames", Lower, 3] "Frames skipped",
        "Source frames left out between one frame shown and the next, by their numbers, whether or not they arrived. Where numbers fall, \
         the player went back, and nothing counts. Frames of a pause of the sender do not count.",
        |p| p.screen.frames_skipped();
    video.frames_damaged ["frames", Lower, 3] "Frames damaged",
        "Frames shown although parts of them, or of frames that they refer to, were lost and \
        the decoder had to conceal the damage. 0 if the viewer does not show such frames.",
        |p| p.screen.frames_damaged();
    #[main] video.vmaf_mean ["of 100", Higher, 3] "VMAF",
        "*Frame quality*: VMAF of each frame shown compared with its own source frame, mean, on a television of \
         1080 lines: both are scaled to that size, which the model assumes. In folders recorded before \
         `video.vmaf_native_mean` existed it is that metric. Freezes and delay do not count.",
        |p| p.screen.scores(|row| row.picture_vmaf).mean();
    video.vmaf_native_mean ["of 100", Higher, 3] "VMAF, native",
        "Frame quality: VMAF of the frames in the size of the tallest rung, or of the camera, mean. Below 1080 \
         lines it is higher than the model intends, and only comparable with frames of the same size.",
        |p| p.screen.scores(|row| row.picture_vmaf_native).mean();
    video.vmaf_p5 ["of 100", Higher, 3] "VMAF, 5 %",
        "Frame quality: 5th percentile of VMAF over the frames shown.",
        |p| p.screen.scores(|row| row.picture_vmaf).percentile(0.05);
    video.ssim_mean ["of 1", Higher, 4] "SSIM",
        "Frame quality: structural similarity of luma, mean over the frames shown.",
        |p| p.screen.scores(|row| row.picture_ssim).mean();
    video.psnr_mean_db ["dB", Higher, 3] "PSNR",
        "Frame quality: peak signal-to-noise ratio of luma, mean over the frames shown.",
        |p| p.screen.scores(|row| row.picture_psnr_db).mean();
    video.experience_vmaf_mean ["of 100", Higher, 3] "VMAF, experience",
        "*Experience*: VMAF, at 1080 lines, of the screen at each tick of the source's frame rate compared with the \
         frame that should have been there at a constant delay (that of most frames), mean. Pauses of the \
         sender do not count. Freezes do, and so does \
         a live player that plays faster or slower to keep its latency, because it shows other frames in that time. \
         Not to be compared with frame quality.",
        |p| p.screen.scores(|row| row.experience_vmaf).mean();
    video.experience_vmaf_native_mean ["of 100", Higher, 3] "VMAF, experience, native",
        "Experience: VMAF in the size of the tallest rung, or of the camera, mean.",
        |p| p.screen.scores(|row| row.experience_vmaf_native).mean();
    video.experience_vmaf_p5 ["of 100", Higher, 3] "VMAF, experience, 5 %",
        "Experience: 5th percentile of VMAF over time.",
        |p| p.screen.scores(|row| row.experience_vmaf).percentile(0.05);
    video.experience_ssim_mean ["of 1", Higher, 4] "SSIM, experience",
        "Experience: structural similarity of luma, mean over time.",
        |p| p.screen.scores(|row| row.experience_ssim).mean();
    video.experience_psnr_mean_db ["dB", Higher, 3] "PSNR, experience",
        "Experience: peak signal-to-noise ratio of luma, mean over time.",
        |p| p.screen.scores(|row| row.experience_psnr_db).mean();
    video.mos_estimate ["of 5", Higher, 3] "MOS, estimated",
        "Estimated mean opinion of the frames, 1 (bad) to 5 (excellent): `video.vmaf_mean` ∕ 20, at \
         least 1. The scale of the VMAF model v0.6.1 is linear in the votes that it was trained on, \
         with bad at about 20 and excellent at 100 (Netflix, VMAF repository, resource/doc/models.md). \
         Limits: clips of 10 s on a television of 1080 lines at three times its height; freezes, delay and sound do \
             not count.",
        |p| p.screen.mos();
    video.p1203_mos ["of 5", Higher, 3] "MOS, P.1203",
        "Overall quality of video, sound, start-up and stalls as estimated by ITU-T P.1203 in mode 0 (`O.46`), 1 \
         (bad) to 5 (excellent), on a computer's screen of 1920×1080. Null unless `[record] quality` is on and the \
         machine has the program `p1203-standalone`, which is not part of suiro. The \
         Recommendation is valid for 1 to 5 minutes of H.264 of at most 1920×1080 over a reliable \
         transport; for shorter or longer trials the number is outside the Recommendation's \
         validity. It is of the whole trial, a warm-up included.",
        |p| p.p1203_mos;
    player.nqoe ["", Higher, 4] "NQoE, score of the ACM MMSys 2020 challenge",
        "Live only: the score of Twitch's challenge for low latency (ACM MMSys 2020, `NQoE.pdf`, equation 1), over the \
         trial without its warm-up. It begins with the kbit of the rungs shown. A second stalled costs 1000, and each change of the rung 0.02 per \
         kbit/s. For each frame shown, 30 for a second of media, the distance of the speed from 1 costs 200, and the latency \
         0.005 per second, above 1.1 s 0.01. Its factors are for a ladder from 200 to 1000 kbit/s; compare trials of one length only.",
        |p| crate::nqoe::score(&p.states);
    requests.failed ["requests", Lower, 3] "Failed requests",
        "HTTP requests that failed or were answered with a status of 400 or more. One that was under way when the trial ended did not fail.",
        |p| p.failed_requests();
    requests.abandoned ["segments", Lower, 3] "Segments abandoned",
        "Segment requests that the player abandoned in progress: to switch to a lower rung, because it jumped past what they \
         hold, or because what comes before one did not come.",
        |p| p.abandoned_requests();
    requests.first_byte_p50_ms ["ms", Lower, 3] "First byte, median",
        "From sending the request for a segment to the first byte of its body, median. The time in which a connection \
         was opened for it does not count, as far as the player reports it. Over HTTP/2, suiro's player has that byte when the \
         whole frame has come, of up to 16 kB. Over HTTP/2 and 3, it requests parts of HLS and segments in chunks \
         ahead: the wait behind the one before counts.",
        |p| p.first_byte_times().percentile(0.5);
    requests.first_byte_with_handshake_p50_ms ["ms", Lower, 3] "First byte with handshake, median",
        "The same, with the time in which a connection was opened.",
        |p| p.segment_times(|row| row.first_byte_ns).percentile(0.5);
    requests.segment_p95_ms ["ms", Lower, 4] "Segment download, 95 %",
        "From the beginning of the request for a segment, a handshake included, to its last byte, 95th percentile.",
        |p| p.segment_times(|row| row.done_ns).percentile(0.95);
};

static SERIES: &[Curve<Players>] = series! {
    player.buffer_s [Buffer, "s", Line] "buffer",
        "media buffered ahead of the playhead",
        |p, bins| bins.held_mean(p.stretches(|row| Some(row.buffer_ms? / MS_PER_S)));
    player.rung_bps [Rung, "bit/s", Step] "rung",
        "bit rate by which the manifest names the video under the playhead",
        |p, bins| bins.held_last(p.stretches(|row| row.rung_bps.map(|bps| bps as f64)));
    player.estimate_bps [Rung, "bit/s", Context] "estimate",
        "throughput as the player estimates it",
        |p, bins| bins.held_mean(p.stretches(|row| row.estimate_bps.map(|bps| bps as f64)));
    player.latency_ms [Latency, "ms", Line] "latency",
        "from the capture of a frame to its display",
        |p, bins| latency(p, bins);
    player.target_latency_ms [Latency, "ms", Context] "target",
        "the latency that the player aims at",
        |p, bins| bins.held_last(p.stretches(|row| row.target_latency_ms));
    player.picture_vmaf [Quality, "of 100", Line] "VMAF of the frames",
        "each frame shown compared with its own source frame, at 1080 lines",
        |p, bins| score(p, bins, |row| row.picture_vmaf);
    player.experience_vmaf [Quality, "of 100", Context] "VMAF of the experience",
        "the screen compared with the source at a constant delay, at 1080 lines",
        |p, bins| score(p, bins, |row| row.experience_vmaf);
};

fn latency(player: &Player, bins: &Bins) -> Vec<Option<f64>> {
    match player.screen.is_known() {
        true => bins.mean(player.screen.latencies()),
        false => bins.held_mean(player.stretches(|row| row.latency_ms)),
    }
}

fn score(player: &Player, bins: &Bins, of: fn(&QualityRow) -> Option<f64>) -> Vec<Option<f64>> {
    bins.mean(player.screen.quality.iter().filter_map(|row| Some((row.t_ns, of(row)?))))
}
