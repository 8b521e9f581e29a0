//! Players that stay at a rung below what the network carries.

use suiro_analysis::why::Explained;
use suiro_analysis::{Records, explain};
use suiro_record::tables::{LinkRow, PlayerRow, RequestRow, TcpRow};
use suiro_record::words::{CacheOutcome, Cause, Direction, Effect, PlayerState, RequestKind};
use suiro_record::{LinkRate, Trial};

use crate::common::trial;
use crate::why::{MS, VIDEO, answers, carried, request, sample, watched};

/// A player that begins with the rung of 800 kbit/s and then keeps to that of 300, a segment per second for 30 s, each of which
/// comes in 40 ms.
fn keeps_low(estimate_bps: i64) -> Records {
    let segment = |n: i64| RequestRow {
        rung_bps: Some(if n == 0 { 800_000 } else { 300_000 }),
        body_bytes: 37_500,
        ..request(RequestKind::Segment, n * 1000 + 50, n * 1000 + 90, Some(n * 1000))
    };
    let requests: Vec<RequestRow> = (0..30).map(segment).collect();
    let watch = |n: i64| PlayerRow {
        estimate_bps: Some(estimate_bps),
        ..watched(n * 100, PlayerState::Playing, 900.0, (n * 100) as f64)
    };
    let access = answers(&requests, |row| row.done_ns.unwrap_or(0) - MS);
    let acked = |n: i64| TcpRow { acked_bytes: (n / 100 + 1) * 37_500, ..sample(n * 10, 0) };
    let tcp = (0..3000).map(acked).collect();
    let sent = (0..30).map(|n| ((n * 1000 + 60) * MS, VIDEO, 1500, None)).collect();
    let toml = "rate = '2 Mbit/s'\ndelay = '20 ms'";
    let flow = "tcp 10.0.0.1:80>10.0.0.2:4000";
    let link = carried(toml, sent).into_iter().map(|(row, _)| LinkRow { flow: flow.into(), ..row });
    let (player, link) = ((0..300).map(watch).collect(), link.collect());
    Records { requests, access, player, tcp, link, ..Records::default() }
}

fn at(rate_bps: f64) -> Trial {
    let (link, direction) = ("access".into(), Direction::Down);
    let rates = LinkRate { link, direction, span_s: 0.1, rate_bps: vec![rate_bps; 300] };
    Trial { link_rates: vec![rates], ..trial(30.0) }
}

fn lower(trial: &Trial, records: &Records) -> Vec<Explained> {
    let effects = explain(trial, records).effects.into_iter();
    effects.filter(|it| it.effect == Effect::Quality && it.change.is_none()).collect()
}

#[test]
fn a_player_that_takes_the_network_for_slower_than_it_is_stays_low() {
    let found = lower(&at(2e6), &keeps_low(250_000));
    let [low] = &found[..] else { panic!("{found:?}") };
    assert_eq!(low.shares, [(Cause::Underestimate, 1.0)]);
    assert_eq!(
        low.sentence,
        "quality lower for 28.9 s at 1.1 s: the player's estimate was 250 kbit/s, below the next rung of 800 kbit/s; the link \
         carried 2 Mbit/s"
    );
    assert_eq!(low.chain[0].evidence.to_string(), "requests[1..29]{endpoint=player}");
}

#[test]
fn a_link_with_too_little_room_or_an_estimate_that_is_right_is_no_underestimate() {
    assert!(lower(&at(1.5e6), &keeps_low(250_000)).is_empty());
    assert!(lower(&at(2e6), &keeps_low(900_000)).is_empty());
}

/// Of a connection that its window holds back, the estimate is right.
#[test]
fn a_connection_that_carries_no_more_is_no_underestimate() {
    let mut records = keeps_low(250_000);
    let full = |n: i64| TcpRow {
        in_flight_bytes: 14_480,
        unsent_bytes: Some(60_000),
        acked_bytes: n * 375,
        ..sample(n * 10, n * 10_000)
    };
    records.tcp = (0..3000).map(full).collect();
    assert!(lower(&at(2e6), &records).is_empty());
}

/// Then the path from there may be what limits, and its records are not the player's.
#[test]
fn what_a_cache_waits_for_is_no_underestimate() {
    let mut records = keeps_low(250_000);
    for row in &mut records.access {
        row.cache = Some(CacheOutcome::Miss);
    }
    assert!(lower(&at(2e6), &records).is_empty());
}

/// A player on demand has fetched all of it after 12 s, and there is nothing more to choose.
#[test]
fn it_ends_with_the_last_segment() {
    let mut records = keeps_low(250_000);
    records.requests.retain(|row| row.t_ns < 12_000 * MS);
    let found = lower(&at(2e6), &records);
    assert_eq!((found[0].from_ns, found[0].to_ns), (1050 * MS, 12_050 * MS));
}

#[test]
fn a_short_time_is_not_told() {
    let mut records = keeps_low(250_000);
    for row in records.requests.iter_mut().filter(|row| row.t_ns > 9000 * MS) {
        row.rung_bps = Some(800_000);
    }
    assert!(lower(&at(2e6), &records).is_empty());
}
