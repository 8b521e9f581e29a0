//! Players of live streams that stay behind their target.

use suiro_analysis::why::Explained;
use suiro_analysis::{Records, explain};
use suiro_record::tables::PlayerRow;
use suiro_record::words::{Cause, Effect, PlayerState, RequestKind};

use crate::common::trial;
use crate::why::{request, watched};

const TARGET_MS: f64 = 800.0;

/// A player that plays 0.9 s behind, stalls from 5.0 to 7.0 s and goes on 2.9 s behind, until 30 s, with 2.5 s of media.
fn stalls_and_goes_on() -> Vec<PlayerRow> {
    let row = |n: i64| {
        let at_ms = n * 100;
        let (state, behind_ms, buffer_ms) = match at_ms {
            ..5000 => (PlayerState::Playing, 900, 700.0),
            5000..7000 => (PlayerState::Stalled, at_ms - 4100, 0.0),
            _ => (PlayerState::Playing, 2900, 2500.0),
        };
        PlayerRow {
            latency_ms: Some(behind_ms as f64),
            target_latency_ms: Some(TARGET_MS),
            ..watched(at_ms, state, buffer_ms, (at_ms - behind_ms) as f64)
        }
    };
    (0..300).map(row).collect()
}

fn late(player: Vec<PlayerRow>) -> Vec<Explained> {
    let requests = vec![request(RequestKind::Segment, 50, 90, Some(0))];
    let why = explain(&trial(30.0), &Records { player, requests, ..Records::default() });
    why.effects.into_iter().filter(|it| it.effect == Effect::Late).collect()
}

/// As above, but every row that is played after the stall is changed.
fn changed(change: impl Fn(PlayerRow) -> PlayerRow) -> Vec<Explained> {
    let rows = stalls_and_goes_on().into_iter();
    let went_on = |row: &PlayerRow| row.t_ns >= 7_000_000_000;
    late(rows.map(|row| if went_on(&row) { change(row) } else { row }).collect())
}

#[test]
fn a_player_that_holds_media_and_does_not_play_faster_stays_behind_by_its_own_choice() {
    let found = late(stalls_and_goes_on());
    let [late] = &found[..] else { panic!("{found:?}") };
    assert_eq!(late.shares, [(Cause::NoCatchUp, 1.0)]);
    // It was 400 ms behind 0.3 s after the stall had begun.
    assert_eq!((late.from_ns / 100_000_000, late.to_ns / 100_000_000), (54, 299));
    assert_eq!(
        late.sentence,
        "frames were late during 24.5 s at 5.4 s: the player held 2.5 s of media and played at normal speed, 2.1 s behind its \
         target of 800 ms; it stalled for 2.0 s in all"
    );
    assert_eq!(late.chain[0].evidence.to_string(), "player[54..299]{endpoint=player}");
}

#[test]
fn a_player_that_could_catch_up_in_part_is_to_blame_for_that_part() {
    let found = changed(|row| PlayerRow {
        buffer_ms: Some(1680.0),
        speed: if row.t_ns < 10_000_000_000 { 1.05 } else { 1.0 },
        ..row
    });
    let shares = &found[0].shares;
    assert_eq!((shares[0].0, shares[1].0), (Cause::NoCatchUp, Cause::Unknown));
    assert!((shares[0].1 - 0.8).abs() < 0.01, "{shares:?}");
    let told = "held 1.7 s of media and played at normal speed for 87 % of that time, 2.1 s behind";
    assert!(found[0].sentence.contains(told), "{}", found[0].sentence);
}

#[test]
fn a_player_that_began_late_or_raised_its_target_is_told_so() {
    let began = stalls_and_goes_on().into_iter().filter(|row| row.t_ns >= 7_000_000_000);
    let found = late(began.collect());
    assert!(found[0].sentence.ends_with("; it began 2.1 s behind it"), "{}", found[0].sentence);
    let raised = changed(|row| PlayerRow { target_latency_ms: Some(1800.0), ..row });
    assert!(raised[0].sentence.ends_with("; it raised its target to 1.8 s"), "{raised:?}");
}

#[test]
fn who_tries_or_cannot_or_has_no_target_or_only_a_short_time_behind_it_is_not_to_blame() {
    let faster = changed(|row| PlayerRow { speed: 1.05, ..row });
    let starved = changed(|row| PlayerRow { buffer_ms: Some(1000.0), ..row });
    let aimless = stalls_and_goes_on().into_iter();
    let aimless = late(aimless.map(|row| PlayerRow { target_latency_ms: None, ..row }).collect());
    let short = late(stalls_and_goes_on().into_iter().take(150).collect());
    for (what, found) in
        [("faster", faster), ("starved", starved), ("aimless", aimless), ("short", short)]
    {
        assert!(found.is_empty(), "{what}: {found:?}");
    }
}
