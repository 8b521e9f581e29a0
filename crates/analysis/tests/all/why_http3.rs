//! Stalls of a player over HTTP/3: what table `quic` of the origin and the link show.

use suiro_analysis::why::Why;
use suiro_analysis::{Records, explain};
use suiro_record::LinkRate;
use suiro_record::tables::{FlowRow, LinkRow, QuicRow};
use suiro_record::words::{
    Carries, Cause, Direction, Effect, FlowRole, PlayerState, RequestKind, Transport, Verdict,
};
use suiro_units::{Duration, Time};

use crate::common::trial;
use crate::why::{MS, Sent, answers, carried, main_cause, request, waits_for_a_manifest, watched};

pub const DATA: &str = "udp 10.0.0.1:443>10.0.0.2:4000";
/// Another connection of the player, too small to be examined.
const SMALL: &str = "udp 10.0.0.1:443>10.0.0.2:4001";
const PACKET: i64 = 1228;

pub fn asks() -> FlowRow {
    FlowRow {
        t_ns: Time::ZERO,
        endpoint: "player".into(),
        role: FlowRole::Client,
        protocol: Transport::Udp,
        local: "*:4000".into(),
        remote: "10.0.0.1:443".into(),
        carries: Carries::HttpMedia,
        flows: 1,
        closed_ns: None,
        peer: Some("origin".into()),
    }
}

/// The origin's connection at a time, in ms: what it sent until then, and what of that is in flight.
pub fn sample(at_ms: i64, sent: i64, in_flight: i64) -> QuicRow {
    QuicRow {
        t_ns: Time::from_millis(at_ms.cast_unsigned()),
        endpoint: "origin".into(),
        session: 1,
        remote: Some("10.0.0.2:4000".into()),
        congestion: "cubic".into(),
        cwnd_bytes: Some(150_000),
        ssthresh_bytes: None,
        in_flight_bytes: Some(in_flight.cast_unsigned()),
        waiting_bytes: Some(0),
        srtt_ns: Duration::from_millis(40),
        min_rtt_ns: Some(Duration::from_millis(40)),
        pacing_bps: None,
        sent_packets: None,
        sent_bytes: Some(sent.cast_unsigned()),
        received_bytes: None,
        lost_packets: Some(0),
        congestion_events: Some(0),
        target_bps: None,
    }
}

#[test]
fn a_player_that_waits_for_manifests_is_named_over_http3_as_well() {
    let mut records = waits_for_a_manifest();
    records.tcp.clear();
    records.quic = (0..900).map(|n| sample(n * 10, 0, 0)).collect();
    records.flows.push(asks());
    let why = explain(&trial(9.0), &records);
    let (found, other) = main_cause(&why, &[Effect::Stall]);
    assert!(found == Cause::Manifest && other <= 0.1, "{found} {other}");
}

/// The segment that is asked for at 3 s comes over a link that falls to `kbps` meanwhile.
fn falls_to(kbps: u32, small: bool) -> Why {
    let begun = |n: i64| 50 + n * 1000;
    let mut sent: Vec<Sent> = (0..4)
        .flat_map(|n| (0..80).map(move |k| ((begun(n) + 20) * MS + k * MS / 2, DATA, 1228, None)))
        .collect();
    if small {
        sent.extend((0..80).map(|k| (3070 * MS + k * MS / 2, SMALL, 1228, None)));
    }
    let toml = format!(
        "rate = '8 Mbit/s'\nchanges = [{{ at = '3 s', rate = '{kbps} kbit/s' }}]\ndelay = '20 ms'\n\
         queue = {{ limit = '9 s' }}"
    );
    let link: Vec<LinkRow> = carried(&toml, sent).into_iter().map(|(row, _)| row).collect();
    let arrived = |at_ms: i64| {
        let there = |row: &&LinkRow| {
            &*row.flow == DATA
                && row.verdict == Verdict::Delivered
                && row.departed_ns.is_some_and(|ns| ns <= at_ms * MS)
        };
        link.iter().filter(there).count() as i64 * PACKET
    };
    let passed = |at_ms: i64| {
        let there = |row: &&LinkRow| &*row.flow == DATA && row.t_ns <= at_ms * MS;
        link.iter().filter(there).count() as i64 * PACKET
    };
    let last = link.iter().filter_map(|row| row.departed_ns).max().unwrap() / MS + 1;
    let quic = (0..900).map(|n| (n * 10, passed(n * 10)));
    let quic = quic.map(|(at, sent)| sample(at, sent, sent - arrived(at))).collect();
    let done = |n: i64| if n == 3 { last } else { begun(n) + 110 };
    let requests: Vec<_> =
        (0..4).map(|n| request(RequestKind::Segment, begun(n), done(n), Some(n * 1000))).collect();
    let access = answers(&requests, |row| row.t_ns + 60 * MS);
    let state = |at: i64| match at {
        ..3300 => watched(at, PlayerState::Playing, 900.0, (at - 100) as f64),
        at if at < last => watched(at, PlayerState::Stalled, 0.0, 3200.0),
        at => watched(at, PlayerState::Playing, 900.0, (at - last + 3200) as f64),
    };
    let player = (1..90).map(|n| state(n * 100)).collect();
    let mut trial = trial(9.0);
    let rate_bps = (0..90).map(|tenth| if tenth < 30 { 8e6 } else { f64::from(kbps) * 1e3 });
    trial.link_rates.push(LinkRate {
        link: "access".into(),
        direction: Direction::Down,
        span_s: 0.1,
        rate_bps: rate_bps.collect(),
    });
    let flows = vec![asks(), FlowRow { local: "*:4001".into(), ..asks() }];
    explain(&trial, &Records { link, quic, requests, access, player, flows, ..Records::default() })
}

#[test]
fn a_link_that_falls_is_named_over_http3_as_well() {
    let why = falls_to(200, false);
    let (found, other) = main_cause(&why, &[Effect::Stall]);
    assert!(found == Cause::RateStep && other <= 0.1, "{found} {other}");
    let effect = why.effects.iter().find(|effect| effect.effect == Effect::Stall).unwrap();
    assert!(
        effect.sentence.contains("the link fell from 8 Mbit/s to 200 kbit/s"),
        "{}",
        effect.sentence
    );
    let evidence: Vec<String> = effect.chain.iter().map(|step| step.evidence.to_string()).collect();
    assert!(evidence.iter().any(|rows| rows.starts_with("quic[")), "{evidence:?}");
}

#[test]
fn a_small_connection_of_the_player_is_no_other_flow() {
    let why = falls_to(200, true);
    let (found, other) = main_cause(&why, &[Effect::Stall]);
    assert!(found == Cause::RateStep && other <= 0.1, "{found} {other}");
}

/// What is in flight until 7.9 s meets nothing that is recorded, and no column of table `tcp` would show it.
#[test]
fn what_is_not_known_over_http3_is_not_in_table_tcp() {
    let mut records = waits_for_a_manifest();
    records.tcp.clear();
    records.requests.retain(|row| row.t_ns < 3100 * MS);
    records.access.retain(|row| row.t_ns < 3100 * MS);
    records.requests.push(request(RequestKind::Segment, 3100, 7990, Some(4000)));
    let row = |at: i64| match at {
        ..3100 => sample(at, 240_000, 0),
        3100..7900 => sample(at, 250_000, 10_000),
        _ => sample(at, 250_000, 0),
    };
    records.quic = (0..900).map(|n| row(n * 10)).collect();
    records.flows.push(asks());
    let why = explain(&trial(9.0), &records);
    assert_eq!(main_cause(&why, &[Effect::Stall]).0, Cause::Unknown);
    let stall = why.effects.iter().find(|effect| effect.effect == Effect::Stall).unwrap();
    let missing = "not known: the records of its connections do not show it";
    assert!(stall.sentence.contains(missing), "{}", stall.sentence);
}
