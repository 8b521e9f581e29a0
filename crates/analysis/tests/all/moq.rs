//! Media over QUIC: which frames are missing.

use crate::common::{assert_metrics, moq_session, trial};
use suiro_analysis::Records;
use suiro_record::tables::{EncoderRow, FrameRow};
use suiro_units::{BitRate, Time};

const MS: i64 = 1_000_000;
/// Frames a second.
const FPS: i64 = 25;

/// A frame as the publisher's encoder made it.
fn encoded(endpoint: &str, frame: i64) -> EncoderRow {
    EncoderRow {
        t_ns: Time::from_millis(frame as u64 * 40 + 5),
        endpoint: endpoint.into(),
        quality: 0,
        frame,
        captured_ns: Time::from_millis(frame as u64 * 40),
        encoded_bytes: Some(1000 + frame as u64),
        key: frame % 25 == 0,
        target_bps: BitRate::from_kbps(450),
        width: 640,
        height: 360,
        fps: FPS as u64,
        missed: 0,
        lost: false,
    }
}

/// The same frame as a viewer of it recorded it.
fn frame(frame: i64, came: bool) -> FrameRow {
    let ms = frame * 40;
    FrameRow {
        t_ns: (ms + 100) * MS,
        endpoint: "viewer".into(),
        frame,
        captured_ns: came.then_some(ms * MS),
        rung_bps: came.then_some(450_000),
        encoded_bytes: came.then_some(1000 + frame),
        sent_ns: came.then_some((ms + 5) * MS),
        received_ns: came.then_some((ms + 50) * MS),
        decodable: came,
        damaged: false,
        displayed_ns: came.then_some((ms + 100) * MS),
    }
}

#[test]
fn frames_that_the_encoder_made_and_that_never_came_are_missing() {
    // Frame 24 was lost just before a key frame; frame 30 was left out by the encoder; frame 230, of the last second, may be
    // under way; and what is behind frame 240 is still in a queue.
    let frames = (0..250).map(|n| frame(n, ![24, 30, 230].contains(&n) && n <= 240)).collect();
    let mut encoder: Vec<EncoderRow> = (0..250).map(|n| encoded("camera", n)).collect();
    encoder[30].encoded_bytes = None;
    // Another publisher has frames of other sizes.
    encoder.extend((0..250).map(|n| EncoderRow { encoded_bytes: Some(7), ..encoded("other", n) }));
    let moq_sessions = ["camera", "other", "viewer"].map(moq_session).to_vec();
    let records = Records { frames, encoder, moq_sessions, ..Records::default() };
    let want = [("moq.frames_missing", Some(1.0)), ("moq.frames_undecodable", Some(0.0))];
    assert_metrics(&trial(10.0), &records, &want);
    let records = Records { encoder: Vec::new(), ..records };
    assert_metrics(&trial(10.0), &records, &[("moq.frames_missing", None)]);
}
