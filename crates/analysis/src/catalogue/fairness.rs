//! Video under a rate control, and the TCP next to it.

use suiro_record::tables::RateRow;

use crate::bins::Bins;
use crate::family::{Curve, Family, Measure, Subject};
use crate::flow::{Kind, Over};
use crate::instance::Instance;
use crate::rivals::Rivals;
use crate::view::View;

/// All flows that share a path.
pub(super) struct Sharing;

impl Subject for Sharing {
    type One<'v> = Rivals<'v>;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Rivals<'v>)> {
        Rivals::of(view).map(|rivals| (Instance::only(), rivals)).into_iter().collect()
    }
}

pub(super) static FAMILY: Family<Sharing> = Family { metrics: METRICS, series: SERIES };

static METRICS: &[Measure<Sharing>] = metrics! {
    #[main] fairness.video_mean_bps ["bit/s", Higher, 3] "Video flow",
        "Rate of IP packets delivered for a video flow (RTP and its RTCP; a connection of WebRTC or of Media over QUIC) while it \
         is present, mean over the video flows. It counts over whole GoP times of 1.001 s from the first video packet on, or from the end of the warm-up. A flow's packets \
         count at the link that delivered the fewest of its bytes. It is present from its first packet until its sender stops \
         sending, also while others starve it. RTP is absent while its sender has nothing to send for more than five GoP times.",
        |r| r.mean_bps(Kind::Video);
    #[main] fairness.tcp_mean_bps ["bit/s", Higher, 3] "TCP flow",
        "The same for TCP flows. A flow counts if it carries no pages of the web, by table `flows`, and lasted for at least \
        half of the time from the first video packet on. Its sender must have sent at least 1 % of what that of the busiest flow did, or have had more to send \
        for half of the time.",
        |r| r.mean_bps(Kind::Tcp);
    #[main] fairness.friendliness ["ratio", Neither, 3] "Friendliness",
        "Mean rate of a video flow over that of a TCP flow, while all flows are present: 1 is an equal share, more means that \
        video takes more than TCP. A connection of WebRTC or of Media over QUIC is compared with others, here and below, only if \
        another flow is on one of its links.",
        |r| r.friendliness();
    #[main] fairness.jain_ratio ["ratio", Higher, 3] "Jain's index",
        "(Σx)² ∕ (n·Σx²) of the mean rates x of all n flows, video and TCP, while all are present (Jain, Chiu and Hawe, \
         1984). Null where fewer than two compete.",
        |r| r.jain();
    fairness.share_min_ratio ["ratio", Higher, 3] "Least share",
        "The least mean rate of a flow, video or TCP, over that of an equal share, while all are present; null of a single \
         flow.",
        |r| Some(r.extremes()?.0);
    fairness.share_max_ratio ["ratio", Lower, 3] "Greatest share",
        "The greatest mean rate of a flow, video or TCP, over that of an equal share, while all are present; null of a single \
         flow.",
        |r| Some(r.extremes()?.1);
    fairness.webrtc_share_ratio ["ratio", Neither, 3] "Share of WebRTC",
        "Rate of all connections of WebRTC, as a share of that of all flows, while all are present; null of a single flow, and \
         without WebRTC.",
        |r| r.share_ratio(Over::Webrtc);
    fairness.moq_share_ratio ["ratio", Neither, 3] "Share of MoQ",
        "Rate of all connections of Media over QUIC, as a share of that of all flows, while all are present; null of a single \
         flow, and without it.",
        |r| r.share_ratio(Over::Moq);
    fairness.tcp_share_ratio ["ratio", Neither, 3] "Share of TCP",
        "Rate of all TCP flows, as a share of that of all flows, while all are present; null of a single flow, and without TCP.",
        |r| r.share_ratio(Over::Tcp);
    fairness.jain_short_ratio ["ratio", Higher, 3] "Jain's index, short term",
        "Jain's index of rates averaged over five GoP times, mean over the times at which all flows are present. Null where \
         fewer than two compete.",
        |r| r.jain_short();
    fairness.convergence_s ["s", Lower, 3] "Convergence",
        "From when the last of the flows arrived, or from the end of the warm-up, to the first of ten GoP times in a row at which Jain's index of the next five is \
         at least 0.9. Null if that never happened, and where fewer than two compete.",
        |r| r.convergence_s();
    fairness.self_ratio ["ratio", Higher, 3] "Self-fairness",
        "Jain's index of the mean rates of the video flows alone, while all of them are present (RFC 8868 §3). Null where fewer \
         than two compete.",
        |r| r.self_fairness();
    fairness.rate_ratio ["ratio", Lower, 3] "Greatest over least rate",
        "The greatest mean rate of a video flow over the least, while all of them are present. At similar round-trip times, \
         more than 3 is unfair (RFC 8868 §3). Null where fewer than two compete.",
        |r| r.rate_ratio();
    fairness.settling_s ["s", Lower, 3] "Settling",
        "Convergence after a change (RFC 8868 §3): the rate of the link that has the least changes, or a flow begins, ends, pauses or \
         resumes. A video flow has settled with the first of five GoP times in a row in which its rate is near its later one: \
         within 15 % of the mean over the second half of the time until the next change. Mean over the video flows and over the \
         changes that are at least 15 GoP times apart; a flow that never settles counts for all of the time. The end of the \
         warm-up is no change. Null without a change.",
        |r| r.settling_s();
    #[main] fairness.video_variation ["ratio", Lower, 3] "Video rate variation",
        "Coefficient of variation (standard deviation over mean) of a video flow's rate per GoP time in which it is present, \
         mean over the video flows.",
        |r| r.variation(Kind::Video);
    fairness.tcp_variation ["ratio", Lower, 3] "TCP rate variation",
        "Coefficient of variation of a TCP flow's rate per GoP time in which it is present, mean over the TCP flows.",
        |r| r.variation(Kind::Tcp);
    fairness.video_loss_ratio ["ratio", Lower, 3] "Video loss",
        "Packets of the video flows that links dropped, as a share of those dropped and delivered.",
        |r| r.video_loss();
    fairness.feedback_ratio ["ratio", Lower, 3] "Overhead of reports",
        "IP packets of RTCP, in both directions, over those of the media that they are about, by their bytes, lost ones \
         included. Null where both are in the same flow, as over WebRTC.",
        |r| r.feedback_ratio;
    fairness.rtt_mean_ms ["ms", Lower, 3] "RTT, video",
        "Smoothed round-trip time as the senders of video measure it by RTCP, mean over their control \
         periods.",
        |r| r.rtt_ms().mean();
    fairness.interval_mean_s ["s", Neither, 3] "Control interval",
        "For how long the rate control's target stood, from one change to the next, mean over the changes. `tfrcp` \
         decides once in so many round-trip times, rounded to whole GoP times; `tfrc` with each report.",
        |r| r.interval_s();
    fairness.target_variation ["ratio", Lower, 3] "Target rate variation",
        "Coefficient of variation over time of the rate that the rate control allows, mean over the senders of video. The \
         last rate of a sender counts for as long as the control period before it.",
        |r| r.target_variation();
    fairness.video_flows ["flows", Neither, 3] "Video flows",
        "Video flows, also those of a warm-up and those that are compared with no other.",
        |r| Some(r.count(Kind::Video));
    fairness.tcp_flows ["flows", Neither, 3] "TCP flows",
        "TCP flows that competed, by their time and bytes in the whole trial.",
        |r| Some(r.count(Kind::Tcp));
};

static SERIES: &[Curve<Sharing>] = series! {
    fairness.video_bps [Rivals, "bit/s", Line] "video",
        "rate of IP packets delivered for a video flow, mean of the flows that are there",
        |r, bins| r.rate_bins(Kind::Video, bins);
    fairness.tcp_bps [Rivals, "bit/s", Context] "TCP",
        "rate of IP packets delivered for a TCP flow, mean of the flows that are there",
        |r, bins| r.rate_bins(Kind::Tcp, bins);
    fairness.target_bps [Target, "bit/s", Step] "target rate",
        "what the rate control allows a video sender, mean over the senders",
        |r, bins| control(r, bins, |row| Some(row.target_bps as f64));
    fairness.version_bps [Target, "bit/s", Context] "video rate",
        "mean rate of the version being sent, or the encoder's bit rate setting, mean over the \
        senders",
        |r, bins| control(r, bins, |row| Some(row.encoder_bps? as f64));
    fairness.loss_ratio [Loss, "ratio", Line] "loss",
        "share of packets lost, as receivers report it to the senders of video",
        |r, bins| bins.mean(r.losses());
};

fn control(rivals: &Rivals, bins: &Bins, of: fn(&RateRow) -> Option<f64>) -> Vec<Option<f64>> {
    bins.held_mean(rivals.stretches(of))
}
