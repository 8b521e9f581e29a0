//! A finding of study S1 over results made by hand.

use suiro_record::TrialSummary;

use super::judge;
use super::tests::measured;

const LIMITS: [&str; 4] = ["2 Mbit/s", "1 Mbit/s", "500 kbit/s", "300 kbit/s"];

/// What became of S1.7 when WebRTC and MoQ were frozen for so many seconds at each limit, and frames of MoQ were missing or
/// could not be decoded.
fn stutters(frozen: [f64; 2], [missing, undecodable]: [f64; 2]) -> Option<bool> {
    let trial = |protocol: &str, limit: &str, metrics: &[(&str, f64)]| {
        let labels = [("protocol", protocol), ("limit", limit)];
        let cell = labels.map(|(axis, label)| (axis.to_owned(), label.into()));
        measured(cell.into_iter().collect(), metrics)
    };
    let [webrtc, moq] = frozen.map(|seconds| ("video.freeze_s", seconds));
    let frames = [("moq.frames_missing", missing), ("moq.frames_undecodable", undecodable)];
    let trials: Vec<TrialSummary> = LIMITS
        .iter()
        .flat_map(|limit| {
            let moq = [&[moq][..], &frames].concat();
            [trial("webrtc", limit, &[webrtc]), trial("moq", limit, &moq)]
        })
        .collect();
    let study = suiro_study::find("S1").unwrap();
    let place = study.findings.iter().position(|finding| finding.id == "S1.7").unwrap();
    judge(&study, &trials).findings[place].holds
}

#[test]
fn webrtc_rarely_stutters_and_no_frame_of_moq_is_missing() {
    assert_eq!(stutters([0.3, 15.2], [0.0, 0.0]), Some(true));
    assert_eq!(stutters([30.0, 31.0], [0.0, 0.0]), Some(false));
    assert_eq!(stutters([0.3, 0.2], [0.0, 0.0]), Some(false));
    assert_eq!(stutters([0.3, 15.2], [1.0, 0.0]), Some(false));
    assert_eq!(stutters([0.3, 15.2], [0.0, 1.0]), Some(false));
}
