//! Properties that hold whatever happens.

use proptest::prelude::*;
use suiro_abr::{
    Algorithm, Arrival, CatchUp, ChunkEstimator, Controller, Ladder, Limits, Live, Playout,
    PlayoutConfig, Sample, State,
};
use suiro_units::{BitRate, Bytes, Duration, Time};

fn ladders() -> impl Strategy<Value = Ladder> {
    prop::collection::vec(1u64..20_000_000, 1..14).prop_map(|mut rungs| {
        rungs.sort_unstable();
        Ladder::new(rungs.into_iter().map(BitRate::from_bps).collect()).expect("sorted, not empty")
    })
}

fn algorithms() -> impl Strategy<Value = Algorithm> {
    prop::sample::select(&Algorithm::ALL[..])
}

/// What may befall a controller.
#[derive(Debug, Clone)]
enum Event {
    Choose { buffer_ms: u64 },
    Download { bytes: u64, took_us: u64 },
    Segment { rung: usize, bytes: u64, took_us: u64, buffer_ms: u64 },
    Chunk { bytes: u64, took_us: u64 },
    ChunksEnd { rung: usize, bytes: u64, took_us: u64, buffer_ms: u64, given_up: bool },
    Seek,
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0u64..60_000).prop_map(|buffer_ms| Event::Choose { buffer_ms }),
        4 => (0u64..5_000_000, 0u64..10_000_000)
            .prop_map(|(bytes, took_us)| Event::Download { bytes, took_us }),
        4 => (0usize..14, 0u64..5_000_000, 0u64..10_000_000, 0u64..60_000).prop_map(
            |(rung, bytes, took_us, buffer_ms)| Event::Segment { rung, bytes, took_us, buffer_ms }
        ),
        4 => (0u64..500_000, 0u64..1_000_000)
            .prop_map(|(bytes, took_us)| Event::Chunk { bytes, took_us }),
        1 => (0usize..14, 0u64..5_000_000, 0u64..10_000_000, 0u64..60_000, any::<bool>()).prop_map(
            |(rung, bytes, took_us, buffer_ms, given_up)| {
                Event::ChunksEnd { rung, bytes, took_us, buffer_ms, given_up }
            }
        ),
        1 => Just(Event::Seek),
    ]
}

proptest! {
    #[test]
    fn every_choice_is_a_rung_and_every_wait_is_bounded(
        ladder in ladders(),
        algorithm in algorithms(),
        chunks in prop::sample::select(&ChunkEstimator::ALL[..]),
        segment_ms in 1u64..12_000,
        capacity_ms in 1u64..120_000,
        events in prop::collection::vec(events(), 1..60),
    ) {
        let limits = Limits {
            segment: Duration::from_millis(segment_ms),
            buffer: Duration::from_millis(capacity_ms),
        };
        let mut controller =
            Controller::new(algorithm, ladder.clone(), limits).with_estimator(chunks);
        let (mut now, mut came) = (Time::ZERO, Vec::new());
        for event in events {
            match event {
                Event::Choose { buffer_ms } => {
                    let choice = controller.choose(now, Duration::from_millis(buffer_ms));
                    prop_assert!(choice.rung < ladder.len());
                    // No level deserves a longer pause than to play all of it.
                    prop_assert!(choice.wait <= Duration::from_millis(buffer_ms));
                    now += choice.wait;
                }
                Event::Download { bytes, took_us } => {
                    let requested = now;
                    now += Duration::from_micros(took_us);
                    let bytes = Bytes::new(bytes);
                    controller.on_download(&Sample { bytes, requested, done: now });
                }
                Event::Segment { rung, bytes, took_us, buffer_ms } => {
                    let requested = now;
                    now += Duration::from_micros(took_us);
                    let sample = Sample { bytes: Bytes::new(bytes), requested, done: now };
                    let buffer = Duration::from_millis(buffer_ms);
                    controller.on_segment(&sample, rung % ladder.len(), buffer);
                }
                Event::Chunk { bytes, took_us } => {
                    let requested = now;
                    now += Duration::from_micros(took_us);
                    let whole = Sample { bytes: Bytes::new(bytes), requested, done: now };
                    let burst = (bytes % 3 > 0).then_some(whole);
                    controller.on_chunk(&Arrival { burst, whole });
                    came.push(whole);
                }
                Event::ChunksEnd { rung, bytes, took_us, buffer_ms, given_up } => {
                    let done = now + Duration::from_micros(took_us);
                    let sample = Sample { bytes: Bytes::new(bytes), requested: now, done };
                    let (rung, buffer) = (rung % ladder.len(), Duration::from_millis(buffer_ms));
                    match given_up {
                        true => controller.on_abandon(&sample, rung, buffer),
                        false => controller.on_segment_in_chunks(&sample, &came, rung, buffer),
                    }
                    came.clear();
                }
                Event::Seek => controller.on_seek(),
            }
        }
    }

    #[test]
    fn a_constant_network_is_estimated_exactly(
        bps in 1_000u64..1_000_000_000,
        sizes in prop::collection::vec(16_000u64..5_000_000, 1..30),
    ) {
        let ladder = Ladder::new(vec![BitRate::from_mbps(1)]).expect("one rung");
        let limits = Limits { segment: Duration::from_secs(2), buffer: Duration::from_secs(30) };
        let mut controller = Controller::new(Algorithm::Throughput, ladder, limits);
        let mut now = Time::ZERO;
        for bytes in sizes.into_iter().map(Bytes::new) {
            let requested = now;
            now += bytes / BitRate::from_bps(bps);
            controller.on_download(&Sample { bytes, requested, done: now });
        }
        let estimate = controller.estimate().expect("there were downloads").as_bps() as f64;
        prop_assert!((estimate / bps as f64 - 1.0).abs() < 0.001, "{estimate} for {bps}");
    }
}

/// What may befall a playout.
#[derive(Debug, Clone)]
enum Step {
    Advance,
    Extend { track: usize, by_ms: u64 },
    Skip { by_ms: u64 },
    Seek { by_ms: u64 },
    SeekToLive,
    NextEvent,
    Complete,
}

fn steps() -> impl Strategy<Value = (u64, Step)> {
    let step = prop_oneof![
        4 => Just(Step::Advance),
        8 => (0usize..2, 0u64..4000).prop_map(|(track, by_ms)| Step::Extend { track, by_ms }),
        1 => (0u64..3000).prop_map(|by_ms| Step::Skip { by_ms }),
        1 => (0u64..9000).prop_map(|by_ms| Step::Seek { by_ms }),
        2 => Just(Step::SeekToLive),
        6 => Just(Step::NextEvent),
        1 => Just(Step::Complete),
    ];
    (0u64..3_000_000_000, step)
}

fn configs() -> impl Strategy<Value = PlayoutConfig> {
    let live = (-20_000_000_000i64..1_000_000_000, 500u64..9000, 0.0f64..0.5).prop_map(
        |(zero_ns, target_ms, speed_change)| Live {
            zero_ns,
            target: Duration::from_millis(target_ms),
            tolerance: Duration::from_millis(100),
            speed_change,
            catch_up: [CatchUp::Lolp, CatchUp::Sigmoid, CatchUp::Steps][target_ms as usize % 3],
            latest: Duration::from_millis(target_ms * 2),
            join_at_target: target_ms % 2 == 0,
        },
    );
    (0u64..4000, 1u64..4000, 4000u64..20_000, prop::option::of(live)).prop_map(
        |(startup_ms, resume_ms, capacity_ms, live)| PlayoutConfig {
            startup: Duration::from_millis(startup_ms),
            resume: Duration::from_millis(resume_ms),
            capacity: Duration::from_millis(capacity_ms),
            live,
        },
    )
}

fn apply(playout: &mut Playout, now: &mut Time, wait_ns: u64, step: &Step) {
    if let Step::NextEvent = step {
        if let Some(at) = playout.next_event() {
            *now = at.max(*now);
        }
        return playout.advance(*now);
    }
    *now += Duration::from_nanos(wait_ns);
    let later = |from: Duration, ms: u64| from + Duration::from_millis(ms);
    match *step {
        Step::Advance | Step::NextEvent => playout.advance(*now),
        Step::Extend { track, by_ms } => {
            let until = later(playout.end_of(track), by_ms);
            let fits_now = {
                playout.advance(*now);
                playout.fits(track, until)
            };
            assert_eq!(playout.extend(*now, track, until).is_ok(), fits_now);
        }
        Step::Skip { by_ms } => playout.skip(*now, later(playout.position(), by_ms)),
        Step::Seek { by_ms } => playout.seek(*now, later(playout.position(), by_ms)),
        Step::SeekToLive => {
            playout.advance(*now);
            if let Some(position) = playout.wants_seek() {
                playout.seek(*now, position);
            }
        }
        Step::Complete => playout.complete(*now),
    }
}

proptest! {
    #[test]
    fn the_playout_keeps_its_books(
        config in configs(),
        start_ms in 0u64..5000,
        steps in prop::collection::vec(steps(), 1..120),
    ) {
        let start = Time::from_secs(1);
        let mut now = start;
        let mut playout = Playout::new(config, 2, Duration::from_millis(start_ms), now);
        let mut position = playout.position();
        for (wait_ns, step) in steps {
            apply(&mut playout, &mut now, wait_ns, &step);
            prop_assert!(playout.position() >= position, "the playhead went back");
            position = playout.position();
            for track in 0..2 {
                prop_assert!(playout.buffer_of(track) <= config.capacity);
                prop_assert!(playout.end_of(track) >= position || playout.state() != State::Playing);
            }
            let t = playout.totals();
            prop_assert_eq!(t.starting + t.playing + t.stalled + t.ended, now - start);
            // No media is played that did not arrive: at most half as fast again, plus jumps.
            let most = t.playing.mul_f64(1.5) + t.skipped + Duration::from_micros(1);
            prop_assert!(position - Duration::from_millis(start_ms) <= most);
            prop_assert!(playout.next_event().is_none_or(|at| at >= now));
            if playout.state() == State::Playing {
                prop_assert!(!playout.buffer().is_zero());
                prop_assert!(playout.next_event().is_some(), "a buffer runs dry some time");
            }
        }
    }

    /// Looking often or seldom makes no difference to what is seen.
    #[test]
    fn looking_changes_nothing(
        config in configs(),
        until_ms in 1u64..4000,
        looks in prop::collection::vec(1u64..500_000_000, 0..40),
    ) {
        let mut rare = Playout::new(config, 1, Duration::ZERO, Time::ZERO);
        rare.extend(Time::ZERO, 0, Duration::from_millis(until_ms)).expect("it fits");
        let mut often = rare.clone();
        let mut now = Time::ZERO;
        for wait_ns in looks {
            now += Duration::from_nanos(wait_ns);
            often.advance(now);
        }
        rare.advance(now);
        prop_assert_eq!(rare.state(), often.state());
        prop_assert_eq!(rare.totals(), often.totals());
        prop_assert_eq!(rare.position(), often.position());
    }
}
