//! Video under a rate control, and the TCP beside it.

use super::Metric;
use crate::rivals::Kind;

pub(super) static METRICS: &[Metric] = catalogue! {
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
};
