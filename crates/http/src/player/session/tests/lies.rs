//! Servers that promise what they do not have.

use super::*;

/// A stream that began 4 s before the epoch, whose segments are there when they have been captured; OFFSET seconds before that,
/// if the manifest is to be believed.
macro_rules! mpd {
    ($offset:literal) => {
        concat!(
            "<MPD type=\"dynamic\" availabilityStartTime=\"2026-11-21T01:56:56Z\" minimumUpdatePeriod=\"PT2S\" ",
            "timeShiftBufferDepth=\"PT30S\" suggestedPresentationDelay=\"PT4S\"><Period start=\"PT0S\">",
            "<AdaptationSet contentType=\"video\"><SegmentTemplate timescale=\"1\" duration=\"2\" startNumber=\"0\" ",
            "availabilityTimeOffset=\"", $offset, "\" media=\"/v0/$Number$.m4s\"/>",
            "<Representation id=\"v0\" bandwidth=\"300000\"/></AdaptationSet></Period></MPD>",
        )
    };
}

fn play(instead: fn(&str, Time) -> Option<&'static str>, seconds: u64) -> Run {
    let mut world = world(live(), &[(0, 8000)]);
    world.instead = Some(instead);
    let config = config(Protocol::Dash, Algorithm::Throughput);
    run(&mut world, config, Time::from_secs(seconds))
}

/// The player asks for nothing that has not been captured, whatever the manifest says.
#[test]
fn an_offset_that_lies_is_not_believed() {
    for lie in [
        (|target: &str, _: Time| (target == MPD_PATH).then_some(mpd!("0"))) as fn(&str, Time) -> _,
        |target, _| (target == MPD_PATH).then_some(mpd!("5")),
        |target, _| (target == MPD_PATH).then_some(mpd!("500")),
    ] {
        let run = play(lie, 60);
        let totals = run.session.totals().expect("it plays");
        assert!(totals.playing > Duration::from_secs(55), "{totals:?}");
        assert!(run.fetches.iter().all(|(_, _, status)| *status == 200));
        assert!(run.fetches.len() < 100, "{} requests", run.fetches.len());
    }
}

/// Segments follow from a rule, so that only their absence shows the lie.
#[test]
fn a_clock_that_lies_about_segments_by_rule_ends_playback_with_a_reason() {
    let manifest = |target: &str, _: Time| match target {
        MPD_PATH => Some(concat!(
            "<MPD type=\"dynamic\" availabilityStartTime=\"2026-11-21T01:56:56Z\" ",
            "timeShiftBufferDepth=\"PT30S\" suggestedPresentationDelay=\"PT4S\"><Period start=\"PT0S\">",
            "<AdaptationSet contentType=\"video\"><SegmentTemplate timescale=\"1\" duration=\"2\" startNumber=\"0\" ",
            "media=\"/v0/$Number$.m4s\"/><Representation id=\"v0\" bandwidth=\"300000\"/></AdaptationSet></Period>",
            "<UTCTiming schemeIdUri=\"urn:mpeg:dash:utc:direct:2014\" value=\"2026-11-21T02:57:00Z\"/></MPD>",
        )),
        _ => None,
    };
    let run = play(manifest, 120);
    let failure = run.session.failure().expect("an end");
    assert!(failure.contains("404"), "{failure}");
    assert!(run.fetches.len() < 60, "{} requests", run.fetches.len());
}

/// Where the dates of an HLS stream are those of another day, it is played as if it had none: at its target from the end of the
/// playlist, and with a latency that is not known.
#[test]
fn dates_of_another_day_are_not_believed() {
    for lie in [
        (|text: &str| text.replace("TIME:2026-11-21T", "TIME:2026-11-20T")) as fn(&str) -> String,
        |text: &str| text.replace("TIME:2026-11-21T", "TIME:2026-11-22T"),
    ] {
        let mut world = world(live(), &[(0, 8000)]);
        world.lie = Some(lie);
        let config = config(Protocol::Hls, Algorithm::Throughput);
        let run = run(&mut world, config, Time::from_secs(60));
        assert_eq!(run.session.failure(), None);
        let totals = run.session.totals().expect("it plays");
        assert!(totals.playing > Duration::from_secs(50) && totals.stalls == 0, "{totals:?}");
        assert_eq!(run.last().latency_ns, None);
        // Segments 12 to 14 are the last three of a window of 30 s.
        assert_eq!(run.video()[0].1, 12);
        assert!(run.fetches.len() < 250, "{} requests", run.fetches.len());
    }
}
