//! What is shown when, against hand-computed cases.

use super::*;
use crate::presentation::Source;
use crate::url::Url;

fn url() -> Url {
    Url::parse("http://origin/x").expect("a URL")
}

fn rung(kbps: u64, frame_rate: &str) -> Rung {
    Rung {
        rate: BitRate::from_kbps(kbps),
        frame_rate: FrameRate::from_fraction(frame_rate),
        source: Source::Playlist(url()),
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// Ten frames a second, and a rung with five.
fn frames() -> Frames {
    Frames::new(&[rung(100, "5"), rung(200, "10")]).expect("rates are told")
}

fn arrive(frames: &mut Frames, now_ms: u64, kbps: u64, start_ms: u64, end_ms: u64) {
    frames.on_arrival(at(now_ms), BitRate::from_kbps(kbps), ms(start_ms), ms(end_ms));
}

/// The playhead moves from `start` to `end`, between two times.
fn play(frames: &mut Frames, from: u64, to: u64, start: u64, end: u64) {
    frames.on_motion(&Motion { from: at(from), to: at(to), start: ms(start), end: ms(end) });
}

/// Number and milliseconds of display.
fn shown(frames: Vec<Frame>) -> Vec<(u64, Option<u64>)> {
    let ms = |time: Time| time.as_nanos() / 1_000_000;
    frames.into_iter().map(|frame| (frame.number, frame.displayed.map(ms))).collect()
}

#[test]
fn frames_are_shown_when_the_playhead_reaches_them() {
    let mut frames = frames();
    frames.zero_ns = Some(-5_000_000_000);
    arrive(&mut frames, 900, 200, 0, 400);
    assert_eq!(frames.take(), []);
    play(&mut frames, 1000, 1250, 0, 250);
    let first = frames.take();
    assert_eq!((first[1].captured_ns, first[1].received), (Some(-4_900_000_000), Some(at(900))));
    assert_eq!(shown(first), [(0, Some(1000)), (1, Some(1100)), (2, Some(1200))]);
    // Twice as fast from here; the frame under the playhead is not shown again.
    play(&mut frames, 1250, 1325, 250, 400);
    assert_eq!(shown(frames.take()), [(3, Some(1275))]);
}

#[test]
fn a_stall_shows_the_next_frame_when_it_ends() {
    let mut frames = frames();
    arrive(&mut frames, 0, 200, 0, 200);
    play(&mut frames, 0, 200, 0, 200);
    arrive(&mut frames, 1900, 200, 200, 400);
    play(&mut frames, 2200, 2300, 200, 300);
    assert_eq!(shown(frames.take()), [(0, Some(0)), (1, Some(100)), (2, Some(2200))]);
}

#[test]
fn who_joins_in_the_middle_of_a_frame_sees_it() {
    let mut frames = frames();
    arrive(&mut frames, 0, 200, 0, 500);
    play(&mut frames, 1000, 1100, 250, 350);
    assert_eq!(shown(frames.take()), [(0, None), (1, None), (2, Some(1000)), (3, Some(1050))]);
}

#[test]
fn a_gap_is_told_as_missing() {
    let mut frames = frames();
    arrive(&mut frames, 0, 200, 0, 200);
    play(&mut frames, 0, 200, 0, 200);
    arrive(&mut frames, 250, 200, 400, 500);
    play(&mut frames, 300, 400, 400, 500);
    let told = frames.take();
    assert_eq!((told[2].number, told[2].received, told[2].rate), (2, None, None));
    assert_eq!(shown(told)[2..], [(2, None), (3, None), (4, Some(300))]);
    // A gap of years is reported in part.
    arrive(&mut frames, 500, 200, 10_000_000_000, 10_000_000_100);
    play(&mut frames, 500, 600, 10_000_000_000, 10_000_000_100);
    assert_eq!(frames.take().len() as u64, MISSING_MAX + 1);
}

#[test]
fn what_a_seek_drops_is_told_once() {
    let mut frames = frames();
    arrive(&mut frames, 0, 200, 0, 600);
    play(&mut frames, 0, 100, 0, 100);
    frames.on_seek(at(100), ms(350));
    assert_eq!(shown(frames.take()), [(0, Some(0)), (1, None), (2, None)]);
    // It comes again, from the segment's start.
    arrive(&mut frames, 700, 200, 0, 600);
    play(&mut frames, 700, 800, 350, 450);
    assert_eq!(shown(frames.take()), [(3, Some(700)), (4, Some(750))]);
    assert_eq!(shown(frames.rest(at(900))), [(5, None)]);
    assert_eq!(frames.rest(at(901)), []);
}

#[test]
fn a_rung_of_half_the_rate_has_every_second_frame() {
    let mut frames = frames();
    arrive(&mut frames, 0, 100, 0, 400);
    arrive(&mut frames, 0, 200, 400, 600);
    play(&mut frames, 0, 150, 0, 150);
    // Speed changes in the middle of a frame: nothing is shown again.
    play(&mut frames, 150, 600, 150, 600);
    let want = [(0, Some(0)), (2, Some(200)), (4, Some(400)), (5, Some(500))];
    assert_eq!(shown(frames.take()), want);
}

#[test]
fn frames_without_a_known_rate_are_not_numbered() {
    let why = |rungs: &[Rung]| Frames::new(rungs).expect_err("no rate");
    assert!(why(&[rung(1, "24"), rung(2, "x")]).contains("does not give the frame rate"));
    assert!(why(&[rung(1, "24"), rung(2, "30")]).contains("no multiples"));
    assert!(why(&[]).contains("no rung"));
}

#[test]
fn a_player_that_was_not_there_shows_a_freeze() {
    let mut frames = frames();
    arrive(&mut frames, 0, 200, 0, 1000);
    play(&mut frames, 0, 150, 0, 150);
    frames.on_absence(Absence { from: at(150), to: at(650) });
    play(&mut frames, 150, 800, 150, 800);
    let told = frames.take();
    assert!(told.is_sorted_by_key(|frame| frame.at));
    let expected = [(0, Some(0)), (1, Some(100)), (2, None), (3, None), (4, None), (5, None)];
    let expected = [&expected[..], &[(6, Some(650)), (7, Some(700))]].concat();
    assert_eq!(shown(told), expected);
    // It is over.
    play(&mut frames, 800, 900, 800, 900);
    assert_eq!(shown(frames.take()), [(8, Some(800))]);
}
