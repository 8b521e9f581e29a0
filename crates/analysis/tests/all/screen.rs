//! What viewers saw, computed by hand.

use crate::common::{assert_metrics, endpoint, trial, with_pauses};
use proptest::prelude::*;
use suiro_analysis::{Records, summarise, ticks, timeline, viewing};
use suiro_record::tables::{FlowRow, FrameRow, PlayerRow, QualityRow};
use suiro_record::words::{Carries, FlowRole, PlayerState, Transport};
use suiro_record::{EndpointOutcome, P1203, ScreenOutcome, Trial};
use suiro_units::Time;

const MS: i64 = 1_000_000;

/// A frame of 25 a second, captured live, shown then or never.
fn frame(frame: i64, displayed_ms: Option<i64>) -> FrameRow {
    FrameRow {
        t_ns: displayed_ms.unwrap_or(0) * MS,
        endpoint: "viewer".into(),
        frame,
        captured_ns: Some(frame * 40 * MS),
        rung_bps: Some(1_000_000),
        encoded_bytes: None,
        sent_ns: None,
        received_ns: Some(0),
        decodable: true,
        damaged: false,
        displayed_ns: displayed_ms.map(|ms| ms * MS),
    }
}

fn tick(t_ms: i64, picture: Option<f64>, experience: f64) -> QualityRow {
    QualityRow {
        t_ns: t_ms * MS,
        endpoint: "viewer".into(),
        frame: Some(0),
        repeated: picture.is_none(),
        picture_vmaf: picture,
        picture_ssim: picture.map(|vmaf| vmaf / 100.0),
        picture_psnr_db: picture.map(|vmaf| vmaf / 2.0),
        experience_vmaf: Some(experience),
        experience_ssim: Some(experience / 100.0),
        experience_psnr_db: Some(experience / 2.0),
        picture_vmaf_native: picture.map(|vmaf| vmaf + 1.0),
        experience_vmaf_native: Some(experience + 1.0),
    }
}

/// Frames 10 to 59 from 1 s on, 600 ms old; frames 20 to 22 are not shown; then the screen freezes
/// for 2 s, and goes on 2600 ms late.
fn frozen() -> Records {
    let shown = |n: i64| frame(n, Some(1000 + (n - 10) * 40 + if n < 40 { 0 } else { 2000 }));
    let skipped = |n| frame(n, None);
    // The last was received and is still to be shown.
    let frames = (10..20).chain(23..60).map(shown).chain((20..23).chain([60]).map(skipped));
    Records { frames: frames.collect(), ..Records::default() }
}

#[test]
fn freezes_latency_and_frame_rate_by_hand() {
    let want = [
        // Frame 39 stands for 2040 ms; three missing frames are no freeze. The viewing ends with
        // frame 59 shown for 40 ms.
        ("video.freezes", Some(1.0)),
        ("video.freeze_s", Some(2.04)),
        ("video.freeze_max_s", Some(2.04)),
        ("video.frames_skipped", Some(3.0)),
        ("video.fps_shown", Some(47.0 / 4.0)),
        // 27 frames before and 20 after.
        ("media.latency_p50_ms", Some(600.0)),
        ("media.latency_p95_ms", Some(2600.0)),
        ("media.latency_max_ms", Some(2600.0)),
        ("video.vmaf_mean", None),
        ("video.mos_estimate", None),
        ("player.startup_s", None),
    ];
    assert_metrics(&trial(5.0), &frozen(), &want);
    let timeline = timeline(&trial(5.0), &frozen(), 600);
    assert_eq!(timeline.stalls, [(2.16, 4.2)]);
    let latency = timeline.series.iter().find(|s| s.name == "player.latency_ms").expect("latency");
    let near = |bin: usize, want: f64| (latency.values[bin].expect("a value") - want).abs() < 1e-6;
    assert!(near(10, 600.0) && near(49, 2600.0), "{:?}", latency.values);
    assert_eq!(latency.values[30], None, "nothing was shown then");
}

#[test]
fn a_freeze_may_last_to_the_end_unless_all_was_played() {
    let mut records = frozen();
    // The last frame, shown at 4960 ms, stands for two more seconds.
    assert_metrics(&trial(6.96), &records, &[("video.freeze_s", Some(4.04))]);
    let ended = PlayerRow {
        t_ns: 5000 * MS,
        endpoint: "viewer".into(),
        state: PlayerState::Ended,
        buffer_ms: Some(0.0),
        position_ms: Some(0.0),
        rung_bps: None,
        latency_ms: Some(1.0),
        target_latency_ms: None,
        speed: 0.0,
        stalls: 0,
        estimate_bps: None,
        dropped_pictures: None,
    };
    records.player.push(ended);
    assert_metrics(&trial(6.96), &records, &[("video.freeze_s", Some(2.04))]);
}

/// A trial of 60 s with endpoints, of which some left.
fn with_departures(left_s: &[(&str, Option<f64>)]) -> Trial {
    let endpoint = |(name, left_s): &(&str, Option<f64>)| EndpointOutcome {
        left_s: *left_s,
        ..endpoint(name)
    };
    Trial { endpoints: left_s.iter().map(endpoint).collect(), ..trial(60.0) }
}

#[test]
fn a_viewer_without_a_call_is_not_frozen() {
    let shown = |n: i64, after_ms: i64| {
        let captured_ns = n * 1_000_000_000 / 30;
        let displayed_ns = Some(captured_ns + after_ms * MS);
        FrameRow { captured_ns: Some(captured_ns), displayed_ns, ..frame(n, None) }
    };
    let call = |after_ms| (0..900).map(|n| shown(n, after_ms)).collect::<Vec<_>>();
    let mut records = Records { frames: call(0), ..Records::default() };
    let free = [
        ("video.freezes", Some(0.0)),
        ("video.freeze_s", Some(0.0)),
        ("video.fps_shown", Some(30.0)),
    ];
    let frozen = [("video.freezes", Some(1.0)), ("video.fps_shown", Some(15.0))];
    assert_metrics(&with_departures(&[("viewer", Some(30.0))]), &records, &free);
    assert_metrics(&with_departures(&[("viewer", None)]), &records, &frozen);
    // The viewer stays, and its only camera leaves.
    let sends = |camera: &str| FlowRow {
        t_ns: Time::ZERO,
        endpoint: camera.into(),
        role: FlowRole::Sender,
        protocol: Transport::Udp,
        local: "*:5004".into(),
        remote: "10.0.0.3:5004".into(),
        carries: Carries::Video,
        flows: 1,
        closed_ns: None,
        peer: Some("viewer".into()),
    };
    records.flows = vec![sends("camera")];
    let camera = with_departures(&[("viewer", None), ("camera", Some(30.0))]);
    assert_metrics(&camera, &records, &free);
    records.flows.push(sends("other"));
    assert_metrics(&camera, &records, &frozen);
    records.flows.pop();
    // What it sent last is shown after it has left.
    records.frames = call(500);
    let want = [("video.freeze_s", Some(0.0)), ("media.latency_max_ms", Some(500.0))];
    assert_metrics(&camera, &records, &want);
    // One that froze before is frozen until then.
    records.frames = call(0);
    records.frames.truncate(601);
    assert_metrics(
        &camera,
        &records,
        &[("video.freezes", Some(1.0)), ("video.freeze_s", Some(10.0))],
    );
}

/// A camera that pauses from 2 to 4 s. Its frames are shown 100 ms after their capture.
#[test]
fn a_pause_of_the_camera_is_no_freeze() {
    let shown = |n: i64| frame(n, Some(40 * n + 100));
    let never =
        |n| FrameRow { captured_ns: None, received_ns: None, decodable: false, ..frame(n, None) };
    let frames = (0..50).chain(100..150).map(shown).chain((50..100).map(never));
    // The screen has nothing new from 2100 to 4100 ms.
    let quality = vec![tick(1000, Some(80.0), 80.0), tick(3000, None, 10.0)];
    let mut records = Records { frames: frames.collect(), quality, ..Records::default() };
    let unknown = [
        ("video.freezes", Some(1.0)),
        ("video.freeze_s", Some(2.04)),
        ("video.frames_skipped", Some(50.0)),
        ("video.fps_shown", Some(100.0 / 6.0)),
        ("video.experience_vmaf_mean", Some(45.0)),
    ];
    assert_metrics(&trial(6.1), &records, &unknown);
    let paused = with_pauses(trial(6.1), &["viewer"], (2.0, 4.0));
    let want = [
        ("video.freezes", Some(0.0)),
        ("video.freeze_s", Some(0.0)),
        ("video.frames_skipped", Some(0.0)),
        ("video.fps_shown", Some(25.0)),
        ("video.experience_vmaf_mean", Some(80.0)),
    ];
    assert_metrics(&paused, &records, &want);
    // That of another viewer's camera changes nothing.
    assert_metrics(&with_pauses(trial(6.1), &["other"], (2.0, 4.0)), &records, &unknown);
    // The pause goes on until the end.
    let end = with_pauses(trial(6.1), &["viewer"], (2.0, 60.0));
    let mut few = records.frames.clone();
    few.retain(|row| row.frame < 50);
    let few = Records { frames: few, ..Records::default() };
    assert_metrics(&end, &few, &[("video.freezes", Some(0.0)), ("video.fps_shown", Some(25.0))]);
    // The first that is shown after it was captured at 4480 ms: twelve are lost, and the screen freezes from 4100 to 4580 ms.
    records.frames.retain(|row| !(50..112).contains(&row.frame));
    let want = [
        ("video.freezes", Some(1.0)),
        ("video.freeze_s", Some(0.48)),
        ("video.frames_skipped", Some(12.0)),
    ];
    assert_metrics(&paused, &records, &want);
}

#[test]
fn a_screen_that_stops_after_few_frames_is_not_free_of_freezes() {
    let of = |frames: Vec<FrameRow>| Records { frames, ..Records::default() };
    let metrics = |count: Option<f64>, sum| [("video.freezes", count), ("video.freeze_s", sum)];
    // One frame says nothing of the rate of its source.
    let want = metrics(None, None);
    assert_metrics(&trial(10.0), &of(vec![frame(0, Some(1000))]), &want);
    // It is known of frames that came and were not shown.
    let want = metrics(Some(1.0), Some(9.0));
    assert_metrics(&trial(10.0), &of(vec![frame(0, Some(1000)), frame(4, None)]), &want);
    let want = metrics(Some(2.0), Some(60.0));
    assert_metrics(&trial(60.0), &of(vec![frame(0, Some(0)), frame(750, Some(30_000))]), &want);
    let unknown = |n, shown_ms| FrameRow { captured_ns: None, ..frame(n, Some(shown_ms)) };
    let want = metrics(None, None);
    assert_metrics(&trial(60.0), &of(vec![unknown(0, 0), unknown(750, 30_000)]), &want);
    let want = metrics(Some(0.0), Some(0.0));
    let even = (0..6).map(|n| unknown(n, 40 * n)).collect();
    assert_metrics(&trial(0.24), &of(even), &want);
}

#[test]
fn frames_that_left_no_row_were_skipped_too() {
    let skipped = |frames: Vec<FrameRow>, count: f64| {
        let records = Records { frames, ..Records::default() };
        assert_metrics(&trial(5.0), &records, &[("video.frames_skipped", Some(count))]);
    };
    let shown = |(n, number): (i64, i64)| frame(number, Some(1000 + 40 * n));
    skipped((0..).zip([0, 1, 5]).map(shown).collect(), 3.0);
    // A player that goes back begins again, and one that repeats a frame skips none.
    skipped((0..).zip([7, 8, 2, 2, 4]).map(shown).collect(), 1.0);
}

/// What is on the screen at each tick of 25 a second.
fn on_screen(records: &Records, duration_s: f64) -> Vec<Option<u64>> {
    let ticks = ticks(&trial(duration_s), records, "viewer", (25, 1));
    let times = ticks.windows(2).map(|pair| pair[1].t_ns - pair[0].t_ns);
    assert!(times.into_iter().all(|ns| ns == 40 * MS), "ticks are even");
    ticks.iter().map(|tick| tick.shown.map(|(frame, _)| frame)).collect()
}

#[test]
fn ticks_repeat_what_is_frozen() {
    let screen = on_screen(&frozen(), 5.0);
    assert_eq!(screen.len(), 125);
    // The first frame comes at 1 s, between the ticks at 980 and 1020 ms.
    assert_eq!(screen[24..27], [None, Some(10), Some(11)]);
    let skipped: Vec<_> = (33..40).map(|tick| screen[tick].expect("shown")).collect();
    assert_eq!(skipped, [18, 19, 19, 19, 19, 23, 24], "missing frames leave the one before");
    assert_eq!(screen.iter().filter(|shown| **shown == Some(39)).count(), 51, "2 s and a frame");
    assert_eq!(screen[124], Some(59));
}

#[test]
fn ticks_do_not_mind_jitter_of_less_than_half_a_frame() {
    let jittered = |n: i64| FrameRow {
        displayed_ns: Some((1007 + n * 40 + (n * 17) % 37 - 18) * MS),
        ..frame(n, None)
    };
    let records = Records { frames: (0..100).map(jittered).collect(), ..Records::default() };
    let mut shown: Vec<u64> = on_screen(&records, 4.99).into_iter().flatten().collect();
    assert_eq!(shown.len() as u64, shown[shown.len() - 1] + 1);
    shown.dedup();
    assert_eq!(shown.len() as u64, shown[shown.len() - 1] + 1, "each once, none left out");
}

#[test]
fn a_screen_at_any_time() {
    let seen = viewing(&trial(5.0), &frozen(), "viewer");
    assert_eq!(
        (seen.at(999 * MS), seen.age_ns(999 * MS), seen.frozen_ns(999 * MS)),
        (None, None, None)
    );
    assert_eq!(seen.at(1000 * MS).map(|moment| moment.frame), Some(10));
    // In the freeze the frame grows older.
    assert_eq!(seen.age_ns(3160 * MS), Some(1600 * MS));
    assert_eq!(seen.frozen_ns(3160 * MS), Some(1000 * MS));
    assert_eq!((seen.frozen_ns(4199 * MS), seen.frozen_ns(4200 * MS)), (Some(2039 * MS), None));
    assert_eq!(viewing(&trial(5.0), &frozen(), "nobody").moments, []);
}

#[test]
fn nothing_shown_has_no_ticks() {
    assert_eq!(on_screen(&Records::default(), 5.0), []);
    let records = Records { frames: vec![frame(0, None)], ..Records::default() };
    assert_eq!(on_screen(&records, 5.0), []);
    assert_eq!(ticks(&trial(5.0), &frozen(), "viewer", (0, 1)), []);
    assert_eq!(ticks(&trial(5.0), &frozen(), "nobody", (25, 1)), []);
}

#[test]
fn scores_of_pictures_and_of_the_experience_are_kept_apart() {
    let mut quality: Vec<QualityRow> =
        (0..20).map(|n| tick(n * 40, Some(80.0 + n as f64), 50.0)).collect();
    quality.push(tick(800, None, 8.0));
    // After the trial.
    quality.push(tick(1040, Some(1.0), 1.0));
    let records = Records { quality, ..Records::default() };
    let want = [
        ("video.vmaf_mean", Some(89.5)),
        ("video.vmaf_p5", Some(80.0)),
        ("video.ssim_mean", Some(0.895)),
        ("video.psnr_mean_db", Some(44.75)),
        ("video.experience_vmaf_mean", Some(48.0)),
        ("video.experience_vmaf_p5", Some(50.0)),
        ("video.experience_ssim_mean", Some(0.48)),
        ("video.experience_psnr_mean_db", Some(24.0)),
        ("video.mos_estimate", Some(89.5 / 20.0)),
        ("video.freezes", None),
    ];
    assert_metrics(&trial(1.0), &records, &want);
    let timeline = timeline(&trial(1.0), &records, 600);
    let of = |name: &str| timeline.series.iter().find(|s| s.name == name).expect("a series");
    assert_eq!(of("player.experience_vmaf").values[8], Some(8.0));
    assert_eq!(of("player.picture_vmaf").values[8], None);
}

#[test]
fn the_opinion_of_p1203_is_that_of_the_viewer_it_was_given_for() {
    let said = |endpoint: &str, o46: Option<f64>| ScreenOutcome {
        endpoint: endpoint.into(),
        p1203: o46.map(|o46| P1203 { o46, ..P1203::default() }),
        ..ScreenOutcome::default()
    };
    let quality = vec![tick(0, Some(80.0), 0.0)];
    for (screens, want) in [
        (Vec::new(), None),
        (vec![said("viewer", None)], None),
        (vec![said("another", Some(2.0)), said("viewer", Some(3.5))], Some(3.5)),
    ] {
        let records = Records { quality: quality.clone(), screens, ..Records::default() };
        assert_metrics(&trial(1.0), &records, &[("video.p1203_mos", want)]);
    }
}

#[test]
fn the_estimated_opinion_keeps_to_its_scale() {
    for (vmaf, mos) in [(0.0, 1.0), (20.0, 1.0), (60.0, 3.0), (100.0, 5.0)] {
        let records = Records { quality: vec![tick(0, Some(vmaf), 0.0)], ..Records::default() };
        assert_metrics(&trial(1.0), &records, &[("video.mos_estimate", Some(mos))]);
    }
}

proptest! {
    #[test]
    fn odd_rows_never_panic(
        frames in prop::collection::vec((any::<i64>(), any::<Option<i64>>(), any::<Option<i64>>()), 0..40),
        scores in prop::collection::vec((any::<i64>(), any::<Option<f64>>()), 0..40),
        duration_s in 0.0..1e9,
    ) {
        let frames = frames.into_iter().map(|(number, captured_ns, displayed_ns)| FrameRow {
            captured_ns,
            displayed_ns,
            ..frame(number.clamp(i64::MIN / MS / 80, i64::MAX / MS / 80), None)
        });
        let quality = scores.into_iter().map(|(t_ns, vmaf)| QualityRow {
            t_ns,
            ..tick(0, vmaf, vmaf.unwrap_or(0.0))
        });
        let (frames, quality) = (frames.collect(), quality.collect());
        let records = Records { frames, quality, ..Records::default() };
        for value in summarise(&trial(duration_s), &records).iter().filter_map(|(_, value)| *value) {
            prop_assert!(value.is_finite());
        }
        timeline(&trial(duration_s), &records, 600);
        ticks(&trial(duration_s.min(100.0)), &records, "viewer", (25, 1));
    }
}
