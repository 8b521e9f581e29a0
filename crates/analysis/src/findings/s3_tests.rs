//! Study S3 over results made by hand.

use suiro_record::TrialSummary;

use super::judge;
use super::tests::measured;

/// A cell of `work`, and the metrics of its run.
type Cell = (&'static str, &'static [(&'static str, f64)]);

/// Eight streams from memory, reading alone, storage just fast enough and too slow.
const STREAMS: &[Cell] = &[
    (
        "send",
        &[
            ("stream.streams", 8.0),
            ("stream.rate_mean_bps", 23.73e9),
            ("stream.lost_packets", 0.0),
            ("stream.late_frames", 0.0),
            ("stream.skew_p99_ms", 0.2),
            ("converter.underruns", 0.0),
            ("converter.apart_ticks", 0.0),
            ("converter.mixed_ticks", 0.0),
            ("ring.repeats", 0.0),
            ("ring.send_mean_bps", 23.73e9),
        ],
    ),
    (
        "both",
        &[
            ("stream.streams", 8.0),
            ("stream.rate_mean_bps", 23.73e9),
            ("stream.lost_packets", 0.0),
            ("stream.late_frames", 0.0),
            ("converter.underruns", 0.0),
            ("converter.apart_ticks", 0.0),
            ("converter.mixed_ticks", 0.0),
            ("ring.repeats", 0.0),
        ],
    ),
    ("read", &[("ring.read_mean_bps", 24.79e9)]),
    (
        "slow",
        &[("ring.starved_ratio", 0.07), ("ring.repeats", 90.0), ("ring.send_mean_bps", 23.72e9)],
    ),
];

/// A site without a router, with one, and with a receiver; a node that is replaced, and what fails in `8k-faults`.
const SITES: &[Cell] = &[
    ("bypass", &[("tcp.acked_mean_bps", 0.5e9)]),
    ("spared", &[("tcp.acked_mean_bps", 2.4e9)]),
    ("idle", &[("multicast.site.in_mean_bps", 8.97e9), ("multicast.site.out_packets", 0.0)]),
    (
        "routed",
        &[
            ("multicast.site.in_mean_bps", 8.97e9),
            ("multicast.site.out_mean_bps", 8.97e9),
            ("multicast.core.out_mean_bps", 8.97e9),
        ],
    ),
    (
        "switched",
        &[
            ("stream.streams", 8.0),
            ("control.handed_over", 4.0),
            ("control.replaced", 0.0),
            ("control.others_lost_frames", 4.0),
        ],
    ),
    (
        "killed",
        &[
            ("control.replaced", 1.0),
            ("control.detected_max_frames", 2.1),
            ("control.on_air_max_frames", 2.6),
            ("control.others_lost_frames", 0.0),
        ],
    ),
    (
        "cut",
        &[
            ("control.replaced", 2.0),
            ("control.gap_max_frames", 9.0),
            ("control.others_lost_frames", 0.0),
        ],
    ),
    ("flapping", &[("control.replaced", 0.0), ("control.others_lost_frames", 30.0)]),
    (
        "starved",
        &[
            ("control.replaced", 1.0),
            ("control.gap_max_frames", 0.0),
            ("control.others_lost_frames", 0.0),
        ],
    ),
    (
        "leaderless",
        &[
            ("control.replaced", 1.0),
            ("control.gap_max_frames", 7.0),
            ("control.others_lost_frames", 0.0),
        ],
    ),
    (
        "unregistered",
        &[
            ("control.replaced", 0.0),
            ("control.handed_over", 1.0),
            ("control.others_lost_frames", 0.0),
        ],
    ),
    ("beyond", &[("multicast.site.out_mean_bps", 14.9e9), ("multicast.core.out_mean_bps", 14.9e9)]),
    (
        "twinned",
        &[
            ("control.replaced", 1.0),
            ("control.gap_max_frames", 0.0),
            ("control.others_lost_frames", 0.0),
        ],
    ),
    (
        "full",
        &[
            ("stream.streams", 8.0),
            ("stream.rate_mean_bps", 25.42e9),
            ("stream.lost_packets", 0.0),
            ("converter.underruns", 0.0),
            ("ring.repeats", 0.0),
        ],
    ),
    ("copied", &[("converter.underruns", 300.0), ("ring.repeats", 0.0)]),
];

/// Runs as they should be.
fn as_it_should_be() -> Vec<TrialSummary> {
    let trial = |(work, metrics): &Cell| {
        measured([("work".to_owned(), (*work).into())].into_iter().collect(), metrics)
    };
    STREAMS.iter().chain(SITES).map(trial).collect()
}

fn verdicts(trials: &[TrialSummary]) -> Vec<Option<bool>> {
    let study = suiro_study::find("S3").unwrap();
    judge(&study, trials).findings.into_iter().map(|finding| finding.holds).collect()
}

#[test]
fn all_findings_hold() {
    assert_eq!(verdicts(&as_it_should_be()), [Some(true); 15]);
}

/// Those runs with one value changed.
fn with(cell: &str, metric: &str, value: f64) -> Vec<TrialSummary> {
    let mut trials = as_it_should_be();
    let own = trials.iter_mut().find(|trial| trial.cell["work"] == cell).unwrap();
    let old = own.metrics.insert(metric.to_owned(), Some(value));
    assert!(old.is_some(), "{metric} is not of cell {cell}");
    trials
}

#[test]
fn each_finding_of_control_fails_by_what_it_is_about() {
    let changed = |cell, metric, value| verdicts(&with(cell, metric, value))[9..].to_vec();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(
        changed("switched", "control.others_lost_frames", 61.0),
        [no, yes, yes, yes, yes, yes]
    );
    assert_eq!(changed("switched", "control.handed_over", 0.0), [no, yes, yes, yes, yes, yes]);
    assert_eq!(
        changed("killed", "control.detected_max_frames", 3.1),
        [yes, no, yes, yes, yes, yes]
    );
    assert_eq!(changed("killed", "control.others_lost_frames", 1.0), [yes, no, yes, yes, yes, yes]);
    assert_eq!(changed("cut", "control.replaced", 1.0), [yes, yes, no, yes, yes, yes]);
    assert_eq!(changed("flapping", "control.replaced", 2.0), [yes, yes, no, yes, yes, yes]);
    assert_eq!(
        changed("flapping", "control.others_lost_frames", 33.0),
        [yes, yes, no, yes, yes, yes]
    );
    assert_eq!(changed("starved", "control.gap_max_frames", 1.0), [yes, yes, yes, no, yes, yes]);
    assert_eq!(changed("leaderless", "control.replaced", 0.0), [yes, yes, yes, yes, yes, no]);
    assert_eq!(
        changed("unregistered", "control.others_lost_frames", 1.0),
        [yes, yes, yes, yes, yes, no]
    );
    assert_eq!(changed("unregistered", "control.handed_over", 0.0), [yes, yes, yes, yes, yes, no]);
    assert_eq!(changed("twinned", "control.replaced", 0.0), [yes, yes, yes, yes, no, yes]);
    for lost in ["control.gap_max_frames", "control.others_lost_frames"] {
        assert_eq!(changed("twinned", lost, 1.0), [yes, yes, yes, yes, no, yes]);
    }
    // No standby came.
    assert_eq!(changed("cut", "control.gap_max_frames", 480.0), [yes, yes, no, yes, yes, yes]);
    assert_eq!(
        changed("leaderless", "control.gap_max_frames", 240.0),
        [yes, yes, yes, yes, yes, no]
    );
}

#[test]
fn twice_the_rate_is_a_finding_of_its_own() {
    for router in ["site", "core"] {
        let slow = with("beyond", &format!("multicast.{router}.out_mean_bps"), 12.7e9);
        assert_eq!(verdicts(&slow)[8], Some(false), "{router}");
    }
}

#[test]
fn each_finding_of_streams_fails_by_what_it_is_about() {
    // S3.1, S3.1b, S3.1c, S3.2, S3.3, S3.3b.
    let changed = |cell, metric, value| verdicts(&with(cell, metric, value))[..6].to_vec();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(changed("send", "stream.lost_packets", 1.0), [no, yes, yes, no, yes, yes]);
    assert_eq!(changed("send", "stream.late_frames", 1.0), [yes, no, yes, yes, yes, yes]);
    assert_eq!(changed("send", "stream.rate_mean_bps", 23.6e9), [no, yes, yes, yes, yes, yes]);
    assert_eq!(changed("send", "stream.skew_p99_ms", 1.7), [yes, yes, yes, yes, yes, no]);
    assert_eq!(changed("send", "stream.streams", 7.0), [no, no, yes, yes, no, no]);
    assert_eq!(changed("send", "converter.underruns", 1.0), [no, yes, yes, no, yes, yes]);
    assert_eq!(changed("both", "converter.underruns", 1.0), [no, yes, yes, yes, yes, yes]);
    for cell in ["send", "both"] {
        assert_eq!(changed(cell, "converter.apart_ticks", 1.0), [yes, yes, yes, yes, no, yes]);
        assert_eq!(changed(cell, "converter.mixed_ticks", 1.0), [yes, yes, yes, yes, no, yes]);
    }
    assert_eq!(changed("both", "stream.lost_packets", 1.0), [no, yes, yes, yes, yes, yes]);
    assert_eq!(changed("both", "ring.repeats", 1.0), [no, yes, yes, yes, yes, yes]);
    assert_eq!(changed("both", "stream.late_frames", 1.0), [yes, no, yes, yes, yes, yes]);
    assert_eq!(changed("full", "stream.rate_mean_bps", 25.3e9), [yes, yes, no, yes, yes, yes]);
    assert_eq!(changed("full", "converter.underruns", 1.0), [yes, yes, no, yes, yes, yes]);
    assert_eq!(changed("read", "ring.read_mean_bps", 23.6e9), [yes, yes, yes, no, yes, yes]);
    assert_eq!(changed("slow", "ring.repeats", 0.0), [yes, yes, yes, no, yes, yes]);
    assert_eq!(changed("slow", "ring.starved_ratio", 0.009), [yes, yes, yes, no, yes, yes]);
    assert_eq!(changed("slow", "ring.send_mean_bps", 21e9), [yes, yes, yes, no, yes, yes]);
    assert_eq!(changed("copied", "converter.underruns", 0.0), [yes, yes, yes, no, yes, yes]);
}

#[test]
fn each_finding_of_multicast_fails_by_what_it_is_about() {
    // S3.4 and S3.4b.
    let changed = |cell, metric, value| verdicts(&with(cell, metric, value))[6..8].to_vec();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(changed("idle", "multicast.site.out_packets", 1.0), [no, yes]);
    assert_eq!(changed("idle", "multicast.site.in_mean_bps", 5.98e9), [no, yes]);
    assert_eq!(changed("routed", "multicast.site.out_mean_bps", 6.3e9), [no, yes]);
    assert_eq!(changed("routed", "multicast.core.out_mean_bps", 6.3e9), [no, yes]);
    assert_eq!(changed("bypass", "tcp.acked_mean_bps", 1.3e9), [yes, no]);
}
