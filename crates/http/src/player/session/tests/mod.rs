//! A session against our own origin's manifests, over a model of a link, in virtual time.

mod blocked;
mod clock;
mod gaps;
mod lies;
mod low_latency;
mod priority;
mod told;
mod world;

use proptest::prelude::*;
use suiro_abr::Algorithm;
use suiro_scenario::HlsRungs;
use suiro_units::Ratio;

use super::*;
use crate::origin::catalogue::{Catalogue, Container, TrackEntry};
use crate::origin::timeline::Schedule;
use crate::origin::{MPD_PATH, MULTIVARIANT_PATH};
use crate::presentation::TrackKind;
use world::{Run, World, catalogue, config, live, run, rung, world};

/// The demo's link: 8 Mbit/s, 1.5 from 13 s on, 4 from 27 s on.
const STEPS: &[(u64, u64)] = &[(0, 8000), (13, 1500), (27, 4000)];

#[test]
fn follows_a_link_that_falls_and_rises() {
    for protocol in [Protocol::Dash, Protocol::Hls] {
        for algorithm in Algorithm::ALL {
            let what = format!("{protocol:?} {algorithm}");
            let mut world = world(live(), STEPS);
            let run = run(&mut world, config(protocol, algorithm), Time::from_secs(40));
            assert_eq!(run.session.failure(), None, "{what}");
            let means = [run.mean_kbps(4, 13), run.mean_kbps(17, 27), run.mean_kbps(31, 40)];
            assert!(means[0] > 2000.0, "{what}: {means:?}");
            assert!(means[1] < 1200.0, "{what}: {means:?}");
            assert!(means[2] > means[1], "{what}: {means:?}");
            let totals = run.session.totals().expect("it plays");
            assert!(totals.stalled < Duration::from_secs(3), "{what}: {totals:?}");
            assert!(run.fetches.iter().all(|(_, _, status)| *status == 200), "{what}");
            let numbers: Vec<_> = run.video().iter().map(|v| v.1).collect();
            assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{what}: {numbers:?}");
            // Three segments behind, give or take the tolerance.
            let latency_s = run.last().latency_ns.expect("live") as f64 / 1e9;
            assert!((5.9..7.2).contains(&latency_s), "{what}: {latency_s} s");
        }
    }
}

/// The ladder of the published study, in both containers: DASH takes fragmented MP4 with its sound
/// apart, HLS transport streams with the sound within.
fn study(hls_rungs: HlsRungs) -> Catalogue {
    let mut catalogue = catalogue(live());
    let pictures = catalogue.tracks[0].rungs[0].timeline.clone();
    let kbps = [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1200, 1500];
    let rungs = |sound_kbps: u64| {
        let rungs = kbps.iter().enumerate();
        rungs.map(|(n, kbps)| rung(&format!("v{n}"), kbps + sound_kbps, pictures.clone())).collect()
    };
    catalogue.tracks[0].rungs = rungs(0);
    let container = Container::MpegTs;
    let whole = TrackEntry { kind: TrackKind::Video, container, rungs: rungs(96) };
    catalogue.tracks.push(whole);
    catalogue.hls_rungs = hls_rungs;
    catalogue
}

#[test]
fn twelve_rungs_are_climbed_over_hls_as_over_dash() {
    for algorithm in Algorithm::ALL {
        let [dash, hls] = [Protocol::Dash, Protocol::Hls].map(|protocol| {
            let mut world = world(live(), &[(0, 3000), (20, 900), (40, 3000)]);
            world.catalogue = study(HlsRungs::All);
            let run = run(&mut world, config(protocol, algorithm), Time::from_secs(70));
            assert_eq!(run.session.failure(), None, "{protocol:?} {algorithm}");
            let ts = run.fetches.iter().any(|(_, f, _)| f.resource.url.target().ends_with(".ts"));
            assert_eq!(ts, protocol == Protocol::Hls);
            // What is heard comes with what is seen over HLS, apart over DASH.
            let sound_kbps = if ts { 96.0 } else { 0.0 };
            let means = [(8, 20), (26, 40), (54, 70)].map(|(from, to)| run.mean_kbps(from, to));
            let stalled = run.session.totals().expect("it plays").stalled;
            assert!(stalled < Duration::from_secs(1), "{protocol:?} {algorithm}: {stalled}");
            means.map(|mean| mean - sound_kbps)
        });
        for (dash, hls) in dash.iter().zip(&hls) {
            // Sound that comes apart takes its turns on the link, which costs a rung or two.
            assert!((0.6..1.2).contains(&(dash / hls)), "{algorithm}: {dash} {hls} kbit/s");
        }
        // Up, down to what 900 kbit/s carry, and up again.
        assert!(hls[0] > 1200.0 && hls[1] < 850.0 && hls[2] > 1100.0, "{algorithm}: {hls:?}");
    }
}

#[test]
fn hls_of_one_rung_keeps_to_it_whatever_comes() {
    let mut world = world(live(), &[(0, 3000), (20, 900)]);
    world.catalogue = study(HlsRungs::Top);
    let run = run(&mut world, config(Protocol::Hls, Algorithm::Dynamic), Time::from_secs(60));
    assert!(run.video().iter().all(|segment| segment.2 == 1596) && run.video().len() > 10);
    assert!(run.abandoned.is_empty(), "there is no lower rung");
    assert!(run.session.totals().expect("it plays").stalls > 0);
}

#[test]
fn giving_up_segments_saves_the_stall_when_the_link_falls() {
    let mut stalled = [Duration::ZERO; 2];
    for protocol in [Protocol::Dash, Protocol::Hls] {
        for algorithm in Algorithm::ALL {
            for abandon in [false, true] {
                let mut world = world(live(), STEPS);
                let config = Config { abandon, ..config(protocol, algorithm) };
                let run = run(&mut world, config, Time::from_secs(40));
                stalled[usize::from(abandon)] += run.session.totals().expect("it plays").stalled;
                assert_eq!(run.abandoned.is_empty(), !abandon, "{protocol:?} {algorithm}");
                // The same segment of a lower rung comes next.
                let videos = run.video();
                for (at, gone) in &run.abandoned {
                    let What::Segment { rate, segment, .. } = &gone.request.fetch.what else {
                        panic!("only segments are given up: {:?}", gone.request.fetch.what)
                    };
                    let next = videos.iter().find(|(then, ..)| then >= at).expect("more comes");
                    assert!(next.1 == segment.number && next.2 < rate.as_bps() / 1000, "{next:?}");
                }
            }
        }
    }
    // 7.3 s without, none with it.
    assert!(stalled[0] > Duration::from_secs(5), "{stalled:?}");
    assert!(stalled[1] < stalled[0] / 10, "{stalled:?}");
}

#[test]
fn fills_its_buffer_and_no_more() {
    for protocol in [Protocol::Dash, Protocol::Hls] {
        let schedule = Schedule::Vod { length: Duration::from_secs(60) };
        let mut world = world(schedule, &[(0, 8000)]);
        let run = run(&mut world, config(protocol, Algorithm::Dynamic), Time::from_secs(70));
        let fullest = run.views.iter().map(|(_, v)| v.buffer).max().expect("views");
        assert!(
            fullest <= Duration::from_secs(12) && fullest > Duration::from_secs(11),
            "{fullest}"
        );
        assert_eq!((run.last().state, run.last().stalls), (State::Ended, 0));
        let totals = run.session.totals().expect("it played");
        assert_eq!(totals.playing, Duration::from_secs(60));
        // One manifest (HLS: and one playlist per rung), inits, 30 segments of each track.
        assert!(run.fetches.len() <= 60 + 5 + 6, "{} requests", run.fetches.len());
    }
}

#[test]
fn a_link_too_narrow_for_the_lowest_rung_stalls_and_catches_up_by_jumps() {
    let mut world = world(live(), &[(0, 200)]);
    let config = config(Protocol::Dash, Algorithm::Dynamic);
    let run = run(&mut world, config, Time::from_secs(120));
    let totals = run.session.totals().expect("it plays");
    assert!(totals.stalls > 5 && totals.skipped > Duration::from_secs(10), "{totals:?}");
    let latest = run.views.iter().filter_map(|(_, v)| v.latency_ns).max().expect("live");
    // The target of 6 s, 12 s of drift, and what a row's interval adds.
    assert!(latest <= 18_200_000_000, "{latest}");
    assert!(run.video().iter().skip(3).all(|v| v.2 == 300));
}

#[test]
fn speed_and_drift_are_as_the_scenario_wants_them() {
    for (speed_change, max_drift, latest_s, fast) in
        [(None, None, 18, 1.05), (Some(0.17), Some(Duration::from_secs(5)), 11, 1.17)]
    {
        let mut world = world(live(), &[(0, 200)]);
        let speed_change = speed_change.map(Ratio::constant);
        let config = config(Protocol::Dash, Algorithm::Dynamic);
        let config = Config { speed_change, max_drift, ..config };
        let run = run(&mut world, config, Time::from_secs(60));
        let latest = run.views.iter().filter_map(|(_, v)| v.latency_ns).max().expect("live");
        let most = latest_s * 1_000_000_000;
        assert!((most - 1_000_000_000..=most + 200_000_000).contains(&latest), "{latest}");
        let fastest = run.views.iter().map(|(_, v)| v.speed).fold(0.0, f64::max);
        assert!((fastest - fast).abs() < 1e-9, "{fastest}");
    }
}

#[test]
fn lost_segments_are_skipped_within_bounds() {
    let schedule = Schedule::Vod { length: Duration::from_secs(60) };
    let mut world = world(schedule, &[(0, 8000)]);
    world.lost = 5..7;
    let run1 = run(&mut world, config(Protocol::Dash, Algorithm::Throughput), Time::from_secs(90));
    let totals = run1.session.totals().expect("it played");
    assert_eq!((run1.session.failure(), run1.last().state), (None, State::Ended));
    assert_eq!(totals.skipped, Duration::from_secs(4));
    let lost = run1.fetches.iter().filter(|(_, _, status)| *status == 404);
    let tries: Vec<_> = lost.map(|(at, fetch, _)| (*at, fetch.attempt)).collect();
    assert_eq!(tries.iter().map(|t| t.1).collect::<Vec<_>>(), [1, 2, 3, 4, 1, 2, 3, 4]);
    // After a second, two, four, and the answer's own time.
    let waits: Vec<_> =
        tries[..4].windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs_f64()).collect();
    for (wait, want) in waits.iter().zip([1.0, 2.0, 4.0]) {
        assert!((want..want + 0.2).contains(wait), "{waits:?}");
    }
    // More than that in a row, and it gives up, having played what it had.
    world.lost = 5..1000;
    world.free = Time::ZERO;
    let run2 = run(&mut world, config(Protocol::Dash, Algorithm::Throughput), Time::from_secs(120));
    assert_eq!(run2.session.failure(), Some("5 video segments in a row: status 404"));
    assert!(run2.last().failed);
    assert_eq!(run2.session.totals().expect("it played").playing, Duration::from_secs(10));
}

#[test]
fn an_origin_that_dies_and_comes_back_is_found_again() {
    for protocol in [Protocol::Dash, Protocol::Hls] {
        let mut world = world(live(), &[(0, 8000)]);
        // In the middle of a segment of 3 Mbit/s, for longer than the buffer lasts.
        world.dead = Time::from_millis(10_300)..Time::from_secs(20);
        let run = run(&mut world, config(protocol, Algorithm::Dynamic), Time::from_secs(45));
        assert_eq!(run.session.failure(), None, "{protocol:?}");
        let dead = |at: &Time| world.dead.contains(at);
        let refused = run.fetches.iter().filter(|(at, ..)| dead(at)).count();
        // The manifest after 1, 2, 4 s; each track so too, and then again with the next segment.
        assert!((4..=18).contains(&refused), "{protocol:?}: {refused} requests");
        let totals = run.session.totals().expect("it plays");
        assert!(totals.stalls >= 1 && totals.stalled < Duration::from_secs(18), "{totals:?}");
        assert_eq!(run.last().state, State::Playing, "{protocol:?}");
        assert!(run.mean_kbps(38, 45) > 2000.0, "{protocol:?}");
    }
}

#[test]
fn an_origin_that_stays_dead_is_given_up() {
    for (protocol, schedule) in [
        (Protocol::Dash, live()),
        (Protocol::Hls, live()),
        (Protocol::Dash, Schedule::Vod { length: Duration::from_secs(90) }),
    ] {
        let mut world = world(schedule, &[(0, 8000)]);
        world.dead = Time::from_millis(10_300)..Time::from_secs(1000);
        let run = run(&mut world, config(protocol, Algorithm::Mpc), Time::from_secs(120));
        assert!(run.session.failure().is_some() && run.last().failed, "{protocol:?}");
        let after = run.fetches.iter().filter(|(at, ..)| *at >= world.dead.start).count();
        assert!(after <= 50, "{protocol:?}: {after} requests");
        let (last, ..) = run.fetches.last().expect("there were requests");
        assert!(*last < Time::from_secs(90), "{protocol:?}: {last}");
    }
}

#[test]
fn a_manifest_cut_short_for_a_while_is_fetched_again() {
    let mut world = world(live(), &[(0, 8000)]);
    let broken = |at: Time| (Time::from_secs(8)..Time::from_secs(10)).contains(&at);
    world.instead = Some(|target, at| {
        let broken = (Time::from_secs(8)..Time::from_secs(10)).contains(&at);
        (target == MPD_PATH && broken).then_some("<MPD type=\"dynamic\"><Period><Adap")
    });
    let run = run(&mut world, config(Protocol::Dash, Algorithm::Dynamic), Time::from_secs(30));
    let manifests =
        run.fetches.iter().filter(|(at, fetch, _)| fetch.what == What::Manifest && broken(*at));
    // One when it was due, then after a second.
    assert!((1..=2).contains(&manifests.count()));
    assert_eq!((run.session.failure(), run.last().state), (None, State::Playing));
    // That is less than what is buffered.
    assert_eq!(run.last().stalls, 0);
}

#[test]
fn a_playlist_that_refers_to_itself_is_given_up() {
    const SELF: &str = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\nmaster.m3u8\n";
    let mut world = world(live(), &[(0, 8000)]);
    world.instead = Some(|_, _| Some(SELF));
    let run = run(&mut world, config(Protocol::Hls, Algorithm::Dynamic), Time::from_secs(60));
    let reason = "a video playlist: a multivariant playlist where a media playlist was expected";
    assert_eq!(run.session.failure(), Some(reason));
    // The multivariant playlist, and six tries at what it names.
    assert_eq!(run.fetches.len(), 7);
}

#[test]
fn a_live_manifest_that_stands_still_is_asked_for_at_its_pace() {
    // Its author wants it fetched all the time: four times a second it is.
    const STILL: &str = "<MPD type='dynamic' availabilityStartTime='2026-11-21T01:56:50Z'
        minimumUpdatePeriod='PT0S'><Location>http://server/manifest.mpd</Location><Period>
        <AdaptationSet contentType='video'><SegmentTemplate media='$Time$'><SegmentTimeline>
        <S t='0' d='2' r='3'/></SegmentTimeline></SegmentTemplate>
        <Representation id='v' bandwidth='1000'/></AdaptationSet></Period></MPD>";
    let mut world = world(live(), &[(0, 8000)]);
    world.instead = Some(|target, _| Some(if target == MPD_PATH { STILL } else { "segment" }));
    let run = run(&mut world, config(Protocol::Dash, Algorithm::Dynamic), Time::from_secs(20));
    let manifests = run.fetches.iter().filter(|(_, fetch, _)| fetch.what == What::Manifest);
    assert!((40..=80).contains(&manifests.count()), "{}", run.fetches.len());
    assert!(run.rounds < 20 * 40, "{} rounds", run.rounds);
    assert_eq!(run.last().state, State::Stalled);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever has become of its manifests on the way.
    #[test]
    fn keeps_within_bounds_on_any_manifest(
        damage in prop::collection::vec(any::<(u8, u16)>(), 1..12),
        hls in any::<bool>(),
        vod in any::<bool>(),
    ) {
        let protocol = if hls { Protocol::Hls } else { Protocol::Dash };
        let schedule = if vod { Schedule::Vod { length: Duration::from_secs(40) } } else { live() };
        let mut world = world(schedule, &[(0, 8000)]);
        world.damage = damage;
        let run = run(&mut world, config(protocol, Algorithm::Dynamic), Time::from_secs(60));
        prop_assert!(run.rounds < 60 * 60, "{} rounds in a minute", run.rounds);
        prop_assert!(run.fetches.len() < 600, "{} requests in a minute", run.fetches.len());
    }

    /// Whatever the link does: no spinning, no request before its time, no buffer beyond its bound.
    #[test]
    fn keeps_within_bounds_on_any_link(
        kbps in prop::collection::vec(20u64..20_000, 1..8),
        rtt_ms in 0u64..800,
        hls in any::<bool>(),
        algorithm in prop::sample::select(&Algorithm::ALL[..]),
        vod in any::<bool>(),
    ) {
        let protocol = if hls { Protocol::Hls } else { Protocol::Dash };
        let schedule = if vod { Schedule::Vod { length: Duration::from_secs(40) } } else { live() };
        let rates: Vec<_> = (0..).map(|n| n * 8).zip(kbps).collect();
        let mut world = world(schedule, &rates);
        world.rtt = Duration::from_millis(rtt_ms);
        let run = run(&mut world, config(protocol, algorithm), Time::from_secs(60));
        prop_assert!(run.rounds < 60 * 40, "{} rounds in a minute", run.rounds);
        prop_assert!(run.fetches.len() < 400, "{} requests in a minute", run.fetches.len());
        let mut given_up: Vec<_> = run.abandoned.iter().map(|(_, gone)| &gone.request.fetch.what).collect();
        given_up.dedup_by_key(|what| match what {
            What::Segment { segment, .. } => Some(segment.start),
            _ => None,
        });
        prop_assert_eq!(given_up.len(), run.abandoned.len(), "a segment was given up twice");
        for (_, view) in &run.views {
            prop_assert!(view.buffer <= Duration::from_secs(12));
        }
        for (at, fetch, status) in &run.fetches {
            prop_assert!(*status != 404, "{:?} asked for at {at}", fetch.what);
        }
        prop_assert_eq!(run.session.failure(), None);
    }
}

/// The frames that were shown, with when.
fn shown(run: &mut Run) -> Vec<(u64, Time, Option<i64>)> {
    let frames = run.session.take_frames();
    let numbers: Vec<u64> = frames.iter().map(|frame| frame.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "each frame is told once, in order");
    let shown = |frame: &Frame| Some((frame.number, frame.displayed?, frame.captured_ns));
    frames.iter().filter_map(shown).collect()
}

#[test]
fn frames_agree_with_the_playhead() {
    for protocol in [Protocol::Dash, Protocol::Hls] {
        let mut world = world(live(), STEPS);
        let mut run = run(&mut world, config(protocol, Algorithm::Dynamic), Time::from_secs(40));
        let shown = shown(&mut run);
        assert!(shown.len() > 24 * 25, "{protocol:?}: {} frames", shown.len());
        let mut seen = 0;
        for (at, view) in run.views.iter().filter(|(_, view)| view.state == State::Playing) {
            let index = shown.partition_point(|(_, displayed, _)| displayed <= at);
            let Some((number, displayed, captured_ns)) = index.checked_sub(1).map(|i| shown[i])
            else {
                continue;
            };
            let begins = number * 1_000_000_000 / 24;
            let behind = view.position.as_nanos() as i64 - begins as i64;
            assert!((0..=41_666_668).contains(&behind), "{protocol:?} at {at:?}: {behind} ns");
            // Who joins in the middle of a frame sees one that is older than the playhead.
            let age = displayed.as_nanos() as i64 - captured_ns.expect("live");
            let off = view.latency_ns.expect("live") - age;
            assert!(off.abs() <= 41_666_668, "{protocol:?} at {at:?}: {off} ns");
            seen += 1;
        }
        assert!(seen > 200, "{protocol:?}: {seen} looks");
    }
}

#[test]
fn a_stall_is_a_gap_between_frames() {
    let schedule = Schedule::Vod { length: Duration::from_secs(60) };
    let mut world = world(schedule, &[(0, 8000), (4, 1), (30, 8000)]);
    let mut run =
        run(&mut world, config(Protocol::Dash, Algorithm::Throughput), Time::from_secs(45));
    let shown = shown(&mut run);
    let stalled = run.session.totals().expect("it played").stalled;
    assert_eq!((run.last().stalls, run.last().state), (1, State::Playing));
    let gaps = shown.windows(2).map(|pair| pair[1].1.saturating_since(pair[0].1));
    let gap = gaps.max().expect("frames");
    let frame = Duration::from_nanos(41_666_667);
    assert!(gap.saturating_sub(stalled + frame).as_nanos() < 10, "{gap:?} {stalled:?}");
    assert!((stalled + frame).saturating_sub(gap).as_nanos() < 10, "{gap:?} {stalled:?}");
}
