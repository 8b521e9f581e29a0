//! The playout against hand-computed cases.

use suiro_abr::playout::NoRoom;
use suiro_abr::{CatchUp, Live, Playout, PlayoutConfig, State};
use suiro_units::{Duration, Time};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

const ON_DEMAND: PlayoutConfig = PlayoutConfig {
    startup: Duration::from_secs(2),
    resume: Duration::from_secs(2),
    capacity: Duration::from_secs(10),
    live: None,
};

/// Media time zero is captured at the epoch.
const LIVE: PlayoutConfig = PlayoutConfig {
    live: Some(Live {
        zero_ns: 0,
        target: Duration::from_secs(6),
        tolerance: Duration::from_millis(200),
        speed_change: 0.05,
        latest: Duration::from_secs(12),
        join_at_target: false,
        catch_up: CatchUp::Steps,
    }),
    ..ON_DEMAND
};

fn on_demand() -> Playout {
    Playout::new(ON_DEMAND, 1, Duration::ZERO, Time::ZERO)
}

#[test]
fn starts_when_enough_is_there() {
    let mut playout = on_demand();
    playout.extend(at(300), 0, ms(1999)).unwrap();
    assert_eq!((playout.state(), playout.next_event()), (State::Starting, None));
    playout.extend(at(500), 0, ms(2000)).unwrap();
    assert_eq!(playout.state(), State::Playing);
    playout.advance(at(900));
    assert_eq!((playout.position(), playout.buffer()), (ms(400), ms(1600)));
    assert_eq!(playout.totals().starting, ms(500));
}

#[test]
fn stalls_to_the_nanosecond_and_resumes() {
    let mut playout = on_demand();
    playout.extend(at(500), 0, ms(2000)).unwrap();
    assert_eq!(playout.next_event(), Some(at(2500)));
    playout.advance(Time::from_nanos(2_499_999_999));
    assert_eq!(playout.state(), State::Playing);
    // Looked at only a second later: the stall began when the buffer ran dry all the same.
    playout.advance(at(3500));
    assert_eq!(
        (playout.state(), playout.position(), playout.speed()),
        (State::Stalled, ms(2000), 0.0)
    );
    assert_eq!((playout.totals().stalls, playout.totals().stalled), (1, ms(1000)));
    // One millisecond short of the resume threshold, then enough.
    playout.extend(at(3600), 0, ms(3999)).unwrap();
    assert_eq!(playout.state(), State::Stalled);
    playout.extend(at(3700), 0, ms(4000)).unwrap();
    assert_eq!((playout.state(), playout.position()), (State::Playing, ms(2000)));
    assert_eq!((playout.totals().stalls, playout.totals().stalled), (1, ms(1200)));
}

#[test]
fn the_track_that_has_least_decides() {
    let mut playout = Playout::new(ON_DEMAND, 2, Duration::ZERO, Time::ZERO);
    playout.extend(at(0), 0, ms(8000)).unwrap();
    assert_eq!(playout.state(), State::Starting);
    playout.extend(at(100), 1, ms(2000)).unwrap();
    assert_eq!(
        (playout.state(), playout.buffer(), playout.buffer_of(0)),
        (State::Playing, ms(2000), ms(8000))
    );
    playout.advance(at(2100));
    assert_eq!((playout.state(), playout.buffer_of(0)), (State::Stalled, ms(6000)));
}

#[test]
fn ends_after_the_last_picture_and_plays_a_short_rest() {
    let mut playout = on_demand();
    playout.extend(at(0), 0, ms(500)).unwrap();
    assert_eq!(playout.state(), State::Starting);
    playout.complete(at(100));
    assert_eq!(playout.state(), State::Playing);
    playout.advance(at(1000));
    assert_eq!((playout.state(), playout.position()), (State::Ended, ms(500)));
    let totals = playout.totals();
    assert_eq!((totals.playing, totals.ended, totals.stalls), (ms(500), ms(400), 0));
}

#[test]
fn media_without_room_is_refused_and_room_has_its_time() {
    let mut playout = on_demand();
    playout.extend(at(0), 0, ms(10_000)).unwrap();
    assert_eq!(playout.extend(at(0), 0, ms(12_000)), Err(NoRoom));
    assert_eq!(playout.extend(at(0), 1, ms(1)), Err(NoRoom));
    assert_eq!(playout.time_of_room(0, ms(12_000)), Some(at(2000)));
    playout.extend(at(2000), 0, ms(12_000)).unwrap();
    assert_eq!(playout.buffer(), ms(10_000));
    // Without playback nothing makes room.
    let mut starting =
        Playout::new(PlayoutConfig { startup: ms(20_000), ..ON_DEMAND }, 1, ms(0), at(0));
    starting.extend(at(0), 0, ms(10_000)).unwrap();
    assert_eq!(starting.time_of_room(0, ms(10_001)), None);
}

#[test]
fn catches_up_and_returns_to_normal_at_the_target() {
    let mut playout = Playout::new(LIVE, 1, Duration::ZERO, Time::ZERO);
    // At 7 s the frame of media time 0 is 7 s old, 1 s too much: 1 s at 5 % takes 20 s.
    playout.extend(at(7000), 0, ms(6000)).unwrap();
    assert_eq!((playout.state(), playout.speed()), (State::Playing, 1.05));
    assert_eq!(playout.latency_ns(), Some(7_000_000_000));
    // The buffer of 6 s is down to the half of the resume threshold after 5 s of media.
    let thin = Time::from_nanos(7_000_000_000 + 5_000_000_000_000 / 1050 + 1);
    assert_eq!(playout.next_event(), Some(thin));
    playout.extend(at(9000), 0, ms(12_000)).unwrap();
    playout.extend(at(16_000), 0, ms(19_000)).unwrap();
    playout.extend(at(24_000), 0, ms(27_500)).unwrap();
    assert_eq!(playout.next_event(), Some(at(27_000)));
    playout.advance(at(27_000));
    assert_eq!((playout.speed(), playout.latency_ns()), (1.0, Some(6_000_000_000)));
    assert_eq!(playout.position(), ms(21_000));
}

/// LoL+'s least buffer: 0.5 s, and at most half of the target.
#[test]
fn at_low_latency_it_hurries_only_with_half_of_the_target_in_the_buffer() {
    let live = Live { target: ms(800), tolerance: ms(80), ..LIVE.live.unwrap() };
    let config = PlayoutConfig { startup: ms(200), resume: ms(200), live: Some(live), ..LIVE };
    let mut playout = Playout::new(config, 1, Duration::ZERO, Time::ZERO);
    // 0.4 s too late: a part and a half of 0.25 s are no more than the least.
    playout.extend(at(1200), 0, ms(400)).unwrap();
    assert_eq!((playout.state(), playout.speed()), (State::Playing, 1.0));
    // 210 ms more are played in 200 ms.
    playout.extend(at(1200), 0, ms(610)).unwrap();
    assert_eq!((playout.speed(), playout.next_event()), (1.05, Some(at(1400))));
    playout.advance(at(1400));
    assert_eq!((playout.speed(), playout.buffer()), (1.0, ms(400)));
}

#[test]
fn slows_down_when_too_near_the_edge() {
    let mut playout = Playout::new(LIVE, 1, Duration::ZERO, Time::ZERO);
    // 0.5 s too near: at 5 % that takes 10 s.
    playout.extend(at(5500), 0, ms(10_000)).unwrap();
    assert_eq!((playout.speed(), playout.next_event()), (0.95, Some(at(5500) + ms(10_000))));
    playout.advance(at(15_500));
    assert_eq!((playout.speed(), playout.latency_ns()), (1.0, Some(6_000_000_000)));
}

#[test]
fn within_the_tolerance_the_speed_is_normal() {
    let mut playout = Playout::new(LIVE, 1, Duration::ZERO, Time::ZERO);
    playout.extend(at(6200), 0, ms(4000)).unwrap();
    assert_eq!(playout.speed(), 1.0);
}

#[test]
fn hopelessly_late_it_asks_for_the_target() {
    let mut playout = Playout::new(LIVE, 1, Duration::ZERO, Time::ZERO);
    playout.extend(at(6000), 0, ms(2000)).unwrap();
    playout.advance(at(8000));
    assert_eq!((playout.state(), playout.wants_seek()), (State::Stalled, None));
    // The frame of 2 s is 12 s old at 14 s; one nanosecond later it is too old.
    let late = at(14_000) + Duration::from_nanos(1);
    assert_eq!(playout.next_event(), Some(late));
    playout.advance(late);
    let target = playout.wants_seek().unwrap();
    assert_eq!(target, ms(8000) + Duration::from_nanos(1));
    playout.seek(late, target);
    assert_eq!((playout.latency_ns(), playout.wants_seek()), (Some(6_000_000_000), None));
    assert_eq!(playout.totals().skipped, target - ms(2000));
    assert_eq!((playout.state(), playout.totals().stalls), (State::Stalled, 1));
}

#[test]
fn a_seek_while_playing_is_a_stall_and_never_goes_back() {
    let mut playout = on_demand();
    playout.extend(at(0), 0, ms(4000)).unwrap();
    playout.seek(at(1000), ms(20_000));
    assert_eq!((playout.state(), playout.totals().stalls), (State::Stalled, 1));
    assert_eq!((playout.buffer(), playout.totals().skipped), (ms(0), ms(19_000)));
    playout.seek(at(1000), ms(5000));
    assert_eq!(playout.position(), ms(20_000));
}

#[test]
fn a_hole_is_skipped_without_losing_what_lies_beyond() {
    let mut playout = Playout::new(ON_DEMAND, 2, Duration::ZERO, Time::ZERO);
    playout.extend(at(0), 0, ms(2000)).unwrap();
    playout.extend(at(0), 1, ms(6000)).unwrap();
    playout.advance(at(2000));
    assert_eq!(playout.state(), State::Stalled);
    playout.skip(at(2500), ms(4000));
    assert_eq!(
        (playout.state(), playout.buffer_of(0), playout.buffer_of(1)),
        (State::Stalled, ms(0), ms(2000))
    );
    playout.extend(at(2500), 0, ms(6000)).unwrap();
    assert_eq!((playout.state(), playout.totals().skipped), (State::Playing, ms(2000)));
}

#[test]
fn time_does_not_run_backwards() {
    let mut playout = on_demand();
    playout.extend(at(1000), 0, ms(4000)).unwrap();
    playout.advance(at(2000));
    let before = (playout.position(), playout.totals());
    playout.advance(at(500));
    assert_eq!((playout.position(), playout.totals()), before);
}

#[test]
fn a_stream_of_another_century_does_not_overflow() {
    let years = |n: u64| Duration::from_secs(n * 366 * 86_400);
    for zero_ns in [i64::MIN, i64::MAX] {
        let live = Live { zero_ns, target: years(10), latest: years(20), ..LIVE.live.unwrap() };
        let config = PlayoutConfig { live: Some(live), ..ON_DEMAND };
        let mut playout = Playout::new(config, 1, Duration::ZERO, at(0));
        let _ = (playout.next_event(), playout.wants_seek());
        playout.extend(at(1), 0, ms(5000)).unwrap();
        assert_eq!(playout.state(), State::Playing);
        let _ = (playout.next_event(), playout.wants_seek());
        playout.advance(at(20_000));
        assert_eq!(playout.state(), State::Stalled);
        let _ = (playout.next_event(), playout.wants_seek());
    }
}

#[test]
fn a_start_at_the_target_passes_over_what_is_too_old() {
    let live = Live { target: ms(1000), join_at_target: true, ..LIVE.live.unwrap() };
    let config = PlayoutConfig { startup: ms(250), resume: ms(250), live: Some(live), ..ON_DEMAND };
    // Enough comes 400 ms late: with 1.4 s of latency, playback begins 400 ms further on.
    let mut playout = Playout::new(config, 1, ms(9000), at(10_000));
    playout.extend(at(10_400), 0, ms(10_300)).unwrap();
    assert_eq!((playout.state(), playout.position()), (State::Playing, ms(9400)));
    assert_eq!(playout.latency_ns(), Some(1_000_000_000));
    // With less in the buffer, only as far as the least that is needed is kept.
    let mut playout = Playout::new(config, 1, ms(9000), at(10_000));
    playout.extend(at(10_400), 0, ms(9500)).unwrap();
    assert_eq!(playout.position(), ms(9250));
    // Not after a stall: that is caught up by speed.
    playout.advance(at(11_000));
    assert_eq!(playout.state(), State::Stalled);
    playout.extend(at(11_500), 0, ms(10_500)).unwrap();
    assert_eq!((playout.state(), playout.position()), (State::Playing, ms(9500)));
}

/// From a latency of 2.5 s, with a target of 2 s and a full buffer: the speed every 0.1 s for 20 s, at most 10 % off, and how far
/// from the target the latency is then, in nanoseconds.
fn caught_up(catch_up: CatchUp) -> (Vec<f64>, i64) {
    let live = LIVE.live.unwrap();
    let live = Live { target: ms(2000), catch_up, speed_change: 0.1, ..live };
    let config = PlayoutConfig { live: Some(live), ..LIVE };
    let start = at(2500);
    let mut playout = Playout::new(config, 1, Duration::ZERO, start);
    let mut speeds = Vec::new();
    for step in 0..200u64 {
        let now = start + ms(100 * step);
        playout.extend(now, 0, ms(2400 + 100 * step)).expect("it fits");
        speeds.push(playout.speed());
    }
    (speeds, playout.latency_ns().expect("it is live") - 2_000_000_000)
}

/// LoL+: it hurries, ever less, until the target is met to within 2 %.
#[test]
fn a_curve_brings_the_latency_to_its_target() {
    let (speeds, off_ns) = caught_up(CatchUp::Lolp);
    assert!(speeds[0] > 1.08 && speeds.windows(2).all(|pair| pair[1] <= pair[0]), "{speeds:?}");
    assert_eq!(speeds.last(), Some(&1.0));
    assert!(off_ns.abs() <= 40_000_000, "{off_ns}");
}

/// dash.js: it begins with 0.9 + 0.2 / (1 + e^-2.5) = 1.0848. Near the target the curve rises by 25 % per second of distance, and
/// changes of less than 0.4 % are not made, so 16 ms may be left.
#[test]
fn the_curve_of_dash_js_leaves_less_of_a_distance() {
    let (speeds, off_ns) = caught_up(CatchUp::Sigmoid);
    assert!((speeds[0] - 1.0848).abs() < 1e-4, "{speeds:?}");
    assert!(off_ns.abs() <= 20_000_000, "{off_ns}");
}

/// With 0.3 s in the buffer, playback goes on at normal speed after a stall; with more, it hurries.
#[test]
fn after_a_stall_the_curve_of_dash_js_waits_for_more() {
    let live = Live { target: ms(2000), catch_up: CatchUp::Sigmoid, ..LIVE.live.unwrap() };
    let (startup, resume) = (ms(200), ms(200));
    let config = PlayoutConfig { live: Some(live), startup, resume, ..LIVE };
    let mut playout = Playout::new(config, 1, Duration::ZERO, at(2500));
    playout.extend(at(2500), 0, ms(200)).unwrap();
    playout.advance(at(3000));
    assert_eq!((playout.state(), playout.position()), (State::Stalled, ms(200)));
    playout.extend(at(3000), 0, ms(500)).unwrap();
    assert_eq!((playout.state(), playout.speed()), (State::Playing, 1.0));
    playout.extend(at(3100), 0, ms(900)).unwrap();
    playout.advance(at(3200));
    // 0.8 s behind, of 5 %: 0.95 + 0.1 / (1 + e^-4) = 1.048.
    assert!(playout.speed() > 1.04, "{}", playout.speed());
}
