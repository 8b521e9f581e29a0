//! Media over QUIC: which frames are missing.

use crate::common::{assert_metrics, moq_session, trial};
use suiro_analysis::Records;
use suiro_record::Trial;
use suiro_record::tables::{EncoderRow, FrameRow, MoqDataRow};
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

#[test]
fn frames_before_a_viewers_first_key_frame_are_not_undecodable() {
    // It joins at frame 40. One that frames 100 to 124 refer to is missing.
    let is_decodable = |n: i64| n >= 50 && !(100..125).contains(&n);
    let row = |n| FrameRow { decodable: is_decodable(n), ..frame(n, true) };
    let moq_sessions = ["camera", "viewer"].map(moq_session).to_vec();
    let records =
        Records { frames: (40..250).map(row).collect(), moq_sessions, ..Records::default() };
    assert_metrics(&trial(10.0), &records, &[("moq.frames_undecodable", Some(25.0))]);
    // Of a viewer that can decode nothing, all count, but for those of the last second.
    let none = |n| FrameRow { decodable: false, ..frame(n, true) };
    let frames = (40..250).map(none).collect();
    let want = [("moq.frames_undecodable", Some(184.0))];
    assert_metrics(&trial(10.0), &Records { frames, ..records }, &want);
}

#[test]
fn frames_that_a_browser_never_saw_are_missing() {
    // A browser has no rows of frames that did not come. Frame 245 may be under way.
    let came = |n: &i64| ![24, 245].contains(n) && *n <= 248;
    let frames = (0..250).filter(came).map(|n| frame(n, true)).collect();
    let encoder = (0..250).map(|n| encoded("camera", n)).collect();
    let moq_sessions = ["camera", "viewer"].map(moq_session).to_vec();
    let records = Records { frames, encoder, moq_sessions, ..Records::default() };
    assert_metrics(&trial(10.0), &records, &[("moq.frames_missing", Some(1.0))]);
}

fn object(t_ms: u64, number: u64) -> MoqDataRow {
    MoqDataRow {
        t_ns: Time::from_millis(t_ms),
        endpoint: "viewer".into(),
        number,
        published_ns: 0,
        bytes: 200,
    }
}

#[test]
fn what_came_just_before_the_warm_up_ended_is_not_missing() {
    // Frame 123 is the first that is shown after 5 s. Frame 124 had come before and could not be decoded.
    let mut frames: Vec<FrameRow> = (0..250).map(|n| frame(n, true)).collect();
    let came = 4990 * MS;
    frames[124] = FrameRow {
        t_ns: came,
        received_ns: Some(came),
        decodable: false,
        displayed_ns: None,
        ..frame(124, true)
    };
    // Object 12 came before object 11.
    let moq_data = vec![object(4900, 10), object(4990, 12), object(5010, 11), object(5100, 13)];
    let encoder = (0..250).map(|n| encoded("camera", n)).collect();
    let moq_sessions = ["camera", "viewer"].map(moq_session).to_vec();
    let mut records = Records { frames, encoder, moq_data, moq_sessions, ..Records::default() };
    let warmed = Trial { warm_up_s: 5.0, ..trial(10.0) };
    let want = |frames, objects| {
        [("moq.frames_missing", Some(frames)), ("moq.data_missing", Some(objects))]
    };
    for trial in [&trial(10.0), &warmed] {
        assert_metrics(trial, &records, &want(0.0, 0.0));
    }
    // One that never came is missing.
    records.frames.retain(|row| row.frame != 130);
    records.moq_data.push(object(5200, 15));
    assert_metrics(&warmed, &records, &want(1.0, 1.0));
}

#[test]
fn numbers_of_data_may_be_any() {
    let moq_data = vec![object(1000, 0), object(1000, u64::MAX)];
    let frames = (0..25).map(|n| frame(n, true)).collect();
    let moq_sessions = vec![moq_session("viewer")];
    let records = Records { frames, moq_data, moq_sessions, ..Records::default() };
    let all = u64::MAX as f64 - 1.0;
    assert_metrics(&trial(10.0), &records, &[("moq.data_missing", Some(all))]);
}
