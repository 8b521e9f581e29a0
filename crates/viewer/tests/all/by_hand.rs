//! Cases worked out by hand: every time and every fate.

use suiro_units::Time;
use suiro_viewer::{Fate, Frame, Parts, Playout, Policy, Refused};

use Fate::{Displayed, Missing, Skipped, Undecodable};

/// A frame every 40 ms from 0, each referring to the one before; the first is a key frame.
fn frame(number: u64) -> Frame {
    let captured = Time::from_millis(40 * number);
    Frame { number, captured, references: number.checked_sub(1), parts: Parts::All }
}

fn key(number: u64) -> Frame {
    Frame { references: None, ..frame(number) }
}

fn broken(number: u64) -> Frame {
    Frame { parts: Parts::Some, ..frame(number) }
}

/// Lets frames arrive at these milliseconds, and ends the viewing at the last number. Gives the
/// fates, with the milliseconds at which they were decided.
fn play(policy: &str, arrivals: &[(u64, Frame)], end: u64) -> Vec<(u64, Fate, u64)> {
    let policy: Policy = toml::from_str(policy).unwrap();
    let mut playout = Playout::new(policy);
    for &(at, frame) in arrivals {
        playout.on_frame(Time::from_millis(at), frame).unwrap();
    }
    let end = Time::from_millis(end);
    playout.finish(end);
    let outcomes = std::iter::from_fn(|| playout.poll(end));
    outcomes.map(|o| (o.frame, o.fate, o.at.as_nanos() / 1_000_000)).collect()
}

#[test]
fn frames_are_shown_at_their_time() {
    let arrivals = [(20, frame(0)), (60, frame(1)), (130, frame(2))];
    let expected = [(0, Displayed, 70), (1, Displayed, 110), (2, Displayed, 150)];
    assert_eq!(play("buffer = '50 ms'", &arrivals, 999), expected);
}

#[test]
fn frames_that_overtake_one_another_are_shown_in_order() {
    let arrivals = [(20, frame(0)), (101, frame(2)), (105, frame(1))];
    let expected = [(0, Displayed, 70), (1, Displayed, 110), (2, Displayed, 150)];
    assert_eq!(play("buffer = '50 ms'", &arrivals, 999), expected);
}

#[test]
fn a_late_frame_is_shown_at_once() {
    let arrivals = [(20, frame(0)), (125, frame(1)), (126, frame(2))];
    let expected = [(0, Displayed, 70), (1, Displayed, 125), (2, Displayed, 150)];
    assert_eq!(play("buffer = '50 ms'", &arrivals, 999), expected);
}

/// Whether each frame was damaged.
fn damaged(policy: &str, arrivals: &[(u64, Frame)], end: u64) -> Vec<bool> {
    let mut playout = Playout::new(toml::from_str(policy).unwrap());
    for &(at, frame) in arrivals {
        playout.on_frame(Time::from_millis(at), frame).unwrap();
    }
    let end = Time::from_millis(end);
    playout.finish(end);
    std::iter::from_fn(|| playout.poll(end)).map(|outcome| outcome.damaged).collect()
}

const SHOW: &str = "buffer = '50 ms'\nloss = 'show'\nwait = '0 s'";

#[test]
fn damage_is_shown_until_a_key_frame_ends_it() {
    let arrivals = [(20, frame(0)), (60, broken(1)), (100, frame(2)), (140, key(3))];
    let expected =
        [(0, Displayed, 70), (1, Displayed, 110), (2, Displayed, 150), (3, Displayed, 190)];
    assert_eq!(play(SHOW, &arrivals, 999), expected);
    assert_eq!(damaged(SHOW, &arrivals, 999), [false, true, true, false]);
}

#[test]
fn what_refers_to_a_frame_that_never_came_is_shown_at_its_time() {
    let arrivals = [(20, frame(0)), (100, frame(2)), (140, frame(3))];
    let expected =
        [(0, Displayed, 70), (1, Missing, 150), (2, Displayed, 150), (3, Displayed, 190)];
    assert_eq!(play(SHOW, &arrivals, 999), expected);
    assert_eq!(damaged(SHOW, &arrivals, 999), [false, false, true, true]);
}

#[test]
fn what_may_yet_come_is_waited_for_before_damage_is_shown() {
    let policy = SHOW.replace("0 s", "60 ms");
    let late = [(20, frame(0)), (100, frame(2)), (190, frame(1))];
    let expected = [(0, Displayed, 70), (1, Skipped, 190), (2, Displayed, 190)];
    let fates = play(&policy, &late, 999);
    assert_eq!(fates.len(), 3);
    assert_eq!((fates[0], fates[2].1), (expected[0], Displayed));
    assert_eq!(damaged(&policy, &late, 999), [false, false, false]);
    // At 150 + 60 ms it is shown without.
    let never = [(20, frame(0)), (100, frame(2))];
    let expected = [(0, Displayed, 70), (1, Missing, 210), (2, Displayed, 210)];
    assert_eq!(play(&policy, &never, 999), expected);
}

#[test]
fn too_little_for_a_picture_stands_still_for_that_frame_only() {
    let lost = Frame { parts: Parts::TooFew, ..frame(1) };
    let arrivals = [(20, frame(0)), (60, lost), (100, frame(2))];
    let expected = [(0, Displayed, 70), (1, Undecodable, 60), (2, Displayed, 150)];
    let fates = play(SHOW, &arrivals, 999);
    assert_eq!((fates[0], fates[1].1, fates[2]), (expected[0], Undecodable, expected[2]));
    assert_eq!(damaged(SHOW, &arrivals, 999), [false, false, true]);
}

#[test]
fn before_any_picture_there_is_nothing_to_conceal_with() {
    let arrivals =
        [(20, Frame { references: Some(4), ..frame(5) }), (60, broken(6)), (100, key(7))];
    let fates: Vec<Fate> = play(SHOW, &arrivals, 999).iter().map(|(_, fate, _)| *fate).collect();
    assert_eq!(fates, [Undecodable, Undecodable, Displayed]);
}

#[test]
fn a_late_frame_is_skipped_if_so_wished() {
    let arrivals = [(20, frame(0)), (125, frame(1)), (126, frame(2))];
    let expected = [(0, Displayed, 70), (1, Skipped, 125), (2, Displayed, 150)];
    assert_eq!(play("buffer = '50 ms'\nlate = 'skip'", &arrivals, 999), expected);
}

#[test]
fn a_frame_is_as_late_as_what_it_needs() {
    let arrivals = [(20, frame(0)), (100, frame(2)), (160, frame(1)), (170, frame(3))];
    let expected = [(0, Displayed, 70), (1, Skipped, 160), (2, Skipped, 160), (3, Displayed, 190)];
    assert_eq!(play("buffer = '50 ms'\nlate = 'skip'", &arrivals, 999), expected);
}

#[test]
fn of_several_late_frames_the_screen_shows_the_newest() {
    // All at 300 ms: due at 110, 150, 190, 230, 270. The first is shown at once, the newest with
    // the next refresh of the screen, 10 ms later.
    let late = [1, 2, 3, 4, 5].map(|number| (300, frame(number)));
    let arrivals = [&[(20, frame(0))], &late[..]].concat();
    let expected = [
        (0, Displayed, 70),
        (1, Displayed, 300),
        (2, Skipped, 310),
        (3, Skipped, 310),
        (4, Skipped, 310),
        (5, Displayed, 310),
    ];
    assert_eq!(play("buffer = '50 ms'\nscreen = 100", &arrivals, 999), expected);
}

#[test]
fn a_lost_frame_breaks_the_picture_until_the_next_key_frame() {
    let arrivals = [(20, frame(0)), (100, frame(2)), (140, frame(3)), (180, key(4))];
    let expected = [
        (0, Displayed, 70),
        (1, Missing, 150),
        (2, Undecodable, 150),
        (3, Undecodable, 150),
        (4, Displayed, 230),
    ];
    assert_eq!(play("buffer = '50 ms'\nwait = '0 s'", &arrivals, 999), expected);
}

#[test]
fn a_frame_sent_again_in_time_mends_everything() {
    let arrivals = [(20, frame(0)), (100, frame(2)), (140, frame(3)), (145, frame(1))];
    let expected =
        [(0, Displayed, 70), (1, Displayed, 145), (2, Displayed, 155), (3, Displayed, 190)];
    assert_eq!(play("buffer = '50 ms'\nwait = '1 s'\nscreen = 100", &arrivals, 999), expected);
}

#[test]
fn what_waits_longer_than_the_policy_says_is_given_up() {
    let arrivals = [(20, frame(0)), (100, frame(2)), (140, frame(3))];
    let expected =
        [(0, Displayed, 70), (1, Missing, 250), (2, Undecodable, 250), (3, Undecodable, 250)];
    assert_eq!(play("buffer = '50 ms'\nwait = '100 ms'", &arrivals, 999), expected);
}

#[test]
fn a_key_frame_ends_the_waiting() {
    let arrivals = [(20, frame(0)), (100, frame(2)), (140, key(3))];
    let expected =
        [(0, Displayed, 70), (1, Missing, 190), (2, Undecodable, 190), (3, Displayed, 190)];
    assert_eq!(play("buffer = '50 ms'\nwait = '9 s'", &arrivals, 999), expected);
}

#[test]
fn an_incomplete_frame_is_undecodable_as_is_what_needs_it() {
    let arrivals = [(20, frame(0)), (60, broken(1)), (100, frame(2)), (140, key(3))];
    // The first is not yet decided: it is shown first.
    let expected =
        [(0, Displayed, 70), (1, Undecodable, 70), (2, Undecodable, 100), (3, Displayed, 190)];
    assert_eq!(play("buffer = '50 ms'", &arrivals, 999), expected);
}

#[test]
fn a_frame_that_nobody_needs_is_not_waited_for() {
    // 1 and 3 are a layer of their own (H.264 temporal scalability); 1 is lost.
    let on = |number, references| Frame { references: Some(references), ..frame(number) };
    let arrivals = [(20, frame(0)), (100, on(2, 0)), (140, on(3, 2)), (180, on(4, 2))];
    let expected = [
        (0, Displayed, 70),
        (1, Missing, 150),
        (2, Displayed, 150),
        (3, Displayed, 190),
        (4, Displayed, 230),
    ];
    assert_eq!(play("buffer = '50 ms'", &arrivals, 999), expected);
}

#[test]
fn what_comes_before_the_first_key_frame_cannot_be_decoded() {
    let arrivals = [(220, frame(5)), (260, frame(6)), (300, key(7))];
    let expected = [(5, Undecodable, 350), (6, Undecodable, 350), (7, Displayed, 350)];
    assert_eq!(play("buffer = '50 ms'", &arrivals, 999), expected);
}

#[test]
fn at_the_end_nothing_is_left_without_an_outcome() {
    let arrivals = [(20, frame(0)), (60, frame(1)), (140, frame(3))];
    let expected =
        [(0, Displayed, 70), (1, Skipped, 100), (2, Missing, 100), (3, Undecodable, 100)];
    let arrivals_until_100 = &arrivals[..2];
    assert_eq!(play("buffer = '50 ms'", arrivals_until_100, 100), expected[..2]);
    let expected =
        [(0, Displayed, 70), (1, Displayed, 110), (2, Missing, 150), (3, Undecodable, 150)];
    assert_eq!(play("buffer = '50 ms'", &arrivals, 150), expected);
}

#[test]
fn it_says_since_when_a_key_frame_is_wanted() {
    let mut playout = Playout::new(toml::from_str("buffer = '50 ms'\nwait = '0 s'").unwrap());
    let ms = Time::from_millis;
    playout.on_frame(ms(20), frame(0)).unwrap();
    playout.on_frame(ms(100), frame(2)).unwrap();
    assert_eq!(playout.next_event(), Some(ms(70)));
    while playout.poll(ms(149)).is_some() {}
    assert_eq!(playout.broken_since(), None);
    while playout.poll(ms(160)).is_some() {}
    assert_eq!(playout.broken_since(), Some(ms(150)));
    playout.on_frame(ms(180), key(4)).unwrap();
    while playout.poll(ms(230)).is_some() {}
    assert_eq!((playout.broken_since(), playout.next_event()), (None, None));
}

#[test]
fn an_absurd_capture_time_holds_nothing_up() {
    let absurd = Frame { captured: Time::from_nanos(u64::MAX), ..broken(2) };
    let arrivals = [(20, frame(0)), (100, absurd)];
    let expected = [(0, Displayed, 70), (1, Missing, 10_100), (2, Undecodable, 10_100)];
    assert_eq!(play("buffer = '50 ms'", &arrivals, 60_000), expected);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut playout = Playout::new(toml::from_str("buffer = '50 ms'").unwrap());
    let ms = Time::from_millis;
    playout.on_frame(ms(20), frame(0)).unwrap();
    assert_eq!(playout.on_frame(ms(21), frame(0)), Err(Refused::Duplicate(0)));
    assert_eq!(playout.poll(ms(70)).map(|outcome| outcome.fate), Some(Displayed));
    assert_eq!(playout.on_frame(ms(71), frame(0)), Err(Refused::TooLate(0)));
    let itself = Frame { references: Some(1), ..frame(1) };
    let error = playout.on_frame(ms(72), itself).unwrap_err();
    assert_eq!(error.to_string(), "frame 1 refers to frame 1, which is not before it");
    let far = Frame { number: 70_000, ..key(1) };
    let error = playout.on_frame(ms(73), far).unwrap_err().to_string();
    assert!(error.ends_with("is more than 65536 frames from frame 1"), "{error}");
    assert_eq!(playout.next_event(), None);
}
