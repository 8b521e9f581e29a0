//! False causes that a reader of the rules of `why` found, of players of segments.

use suiro_analysis::why::Why;
use suiro_analysis::{Records, explain};
use suiro_record::tables::{AccessRow, FlowRow, LinkRow, PlayerRow, RequestRow, TcpRow};
use suiro_record::words::{
    CacheOutcome, Carries, Cause, Direction, Effect, FlowRole, LinkCause, PlayerState, RequestKind,
    TcpState, Track, Transport, Verdict,
};
use suiro_record::{EndpointOutcome, LinkRate, Trial};
use suiro_units::Time;

use crate::common::{endpoint, trial};
use crate::why::{MS, Sent, VIDEO, carried, request, sample, waits_for_a_manifest, watched};
use crate::why_lies::{sentences, share};
use crate::why_review::away;

const STALL: &[Effect] = &[Effect::Stall];
/// The player's end of its connection, and that of another one.
const PEER: &str = "10.0.0.2:4000";
const OTHER: &str = "10.0.0.2:4001";

/// A player that stalls from 4.2 s to 8.0 s because a segment comes from 3.1 s to 7.99 s. Its connection is idle meanwhile.
fn waits() -> Records {
    let mut records = waits_for_a_manifest();
    records.requests.retain(|row| row.t_ns < 3100 * MS);
    records.access.retain(|row| row.t_ns < 3100 * MS);
    records.requests.push(request(RequestKind::Segment, 3100, 7990, Some(4000)));
    let row = |n: i64| TcpRow { acked_bytes: (n * 10).min(3100) * 100, ..sample(n * 10, 0) };
    records.tcp = (0..900).map(row).collect();
    records
}

fn answer(at_ms: i64, peer: &str) -> AccessRow {
    AccessRow {
        t_ns: at_ms * MS,
        endpoint: "origin".into(),
        peer: peer.into(),
        method: "GET".into(),
        path: "/4.m4s".into(),
        status: 200,
        body_bytes: 90_000,
        answered_ns: 7980 * MS,
        ..AccessRow::default()
    }
}

fn flow(endpoint: &str, local: &str, remote: &str, peer: &str) -> FlowRow {
    FlowRow {
        t_ns: Time::ZERO,
        endpoint: endpoint.into(),
        role: FlowRole::Client,
        protocol: Transport::Tcp,
        local: local.into(),
        remote: remote.into(),
        carries: Carries::HttpMedia,
        flows: 1,
        closed_ns: None,
        peer: Some(peer.into()),
    }
}

#[test]
fn an_answer_to_another_viewer_is_not_the_players() {
    let mut records = waits();
    records.flows = vec![flow("player", PEER, "10.0.0.1:80", "origin")];
    records.access.extend([answer(3110, "10.0.0.3:4000"), answer(3120, PEER)]);
    let why = explain(&trial(9.0), &records);
    assert!(share(&why, STALL, Cause::Application) >= 0.8, "{}", sentences(&why));
}

#[test]
fn a_neighbour_on_the_servers_host_that_does_not_run_is_not_the_server() {
    let mut records = waits();
    records.access.push(answer(3120, PEER));
    records.flows = vec![flow("player", PEER, "10.0.0.1:80", "origin")];
    let on_server = |name: &str| EndpointOutcome {
        host: "server".into(),
        kind: "origin".into(),
        ..endpoint(name)
    };
    let endpoints = vec![on_server("origin"), on_server("neighbour")];
    let trial = Trial { endpoints, ..trial(9.0) };
    for (endpoint, cause) in [("neighbour", Cause::Application), ("origin", Cause::ServerProcessor)]
    {
        records.lateness = vec![away(endpoint, 3200, 4700)];
        let why = explain(&trial, &records);
        assert!(share(&why, STALL, cause) >= 0.8, "{endpoint}: {}", sentences(&why));
    }
}

/// Packets of a connection that come to a link, one each 10 ms in a stretch of time.
fn packets(toml: &str, flow: &str, (from_ms, to_ms): (i64, i64)) -> Vec<LinkRow> {
    let sent: Vec<Sent> =
        (from_ms / 10..to_ms / 10).map(|n| (n * 10 * MS, VIDEO, 1500, None)).collect();
    carried(toml, sent).into_iter().map(|(row, _)| LinkRow { flow: flow.into(), ..row }).collect()
}

#[test]
fn a_cache_that_asks_its_origin_waits_for_the_path_from_there() {
    for outcome in [CacheOutcome::Miss, CacheOutcome::Revalidated] {
        let mut records = waits();
        let cache = Some(outcome);
        let asked = AccessRow { endpoint: "edge".into(), cache, ..answer(3120, PEER) };
        records.access.push(asked);
        records.flows = vec![
            flow("player", PEER, "10.0.0.1:80", "edge"),
            flow("edge", "10.0.0.1:7000", "10.0.0.9:80", "origin"),
        ];
        let why = explain(&trial(9.0), &records);
        assert!(share(&why, STALL, Cause::Unknown) >= 0.8, "{}", sentences(&why));
        let lossy = "rate = '8 Mbit/s'\ndelay = '20 ms'\nloss = '90 %'";
        records.link = packets(lossy, "tcp 10.0.0.9:80>10.0.0.1:7000", (3100, 7900));
        let why = explain(&trial(9.0), &records);
        assert!(share(&why, STALL, Cause::Loss) >= 0.8, "{}", sentences(&why));
    }
}

/// A sender whose window is full and that makes progress, or none, after an acknowledgement was lost.
fn loses_an_acknowledgement(progress: i64) -> Why {
    let mut records = waits();
    records.access.push(answer(3120, PEER));
    let row = |n: i64| {
        let at = n * 10;
        let since = (at - 3100).max(0);
        TcpRow {
            in_flight_bytes: if since > 0 { 14_480 } else { 0 },
            unsent_bytes: Some(if since > 0 { 60_000 } else { 0 }),
            acked_bytes: 270_000 + since * progress,
            ..sample(at, since.min(4800) * 1000)
        }
    };
    records.tcp = (0..900).map(row).collect();
    let fast = "rate = '8 Mbit/s'\ndelay = '20 ms'";
    let lost = |n: usize, row: LinkRow| match n % 10 {
        5 => LinkRow { verdict: Verdict::Dropped, cause: Some(LinkCause::Loss), ..row },
        _ => row,
    };
    let acks = packets(fast, "tcp 10.0.0.2:4000>10.0.0.1:80", (3100, 7900)).into_iter();
    let acks = acks.enumerate().map(|(n, row)| lost(n, row));
    let acks = acks.map(|row| LinkRow { direction: Direction::Up, ..row });
    let data = packets(fast, "tcp 10.0.0.1:80>10.0.0.2:4000", (3100, 7900));
    records.link = data.into_iter().chain(acks).collect();
    explain(&trial(9.0), &records)
}

#[test]
fn a_lost_acknowledgement_is_no_cause_where_others_come() {
    let why = loses_an_acknowledgement(100);
    assert_eq!(share(&why, STALL, Cause::AckPath), 0.0, "{}", sentences(&why));
    assert!(share(&why, STALL, Cause::CongestionWindow) >= 0.8, "{}", sentences(&why));
    let why = loses_an_acknowledgement(0);
    assert!(share(&why, STALL, Cause::AckPath) >= 0.8, "{}", sentences(&why));
}

#[test]
fn another_connection_of_the_player_does_not_explain_a_stall() {
    let mut records = waits();
    records.flows = vec![
        flow("player", PEER, "10.0.0.1:80", "origin"),
        flow("player", OTHER, "10.0.0.1:80", "origin"),
    ];
    records.access.push(answer(3120, PEER));
    // Meanwhile the sound comes over another connection, which its receive window holds back.
    let row = |n: i64| TcpRow {
        socket: "10.0.0.1:80>10.0.0.2:4001".into(),
        acked_bytes: n * 10_000,
        in_flight_bytes: 10_000,
        unsent_bytes: Some(60_000),
        rwnd_limited_us: Some(n * 10_000),
        ..sample(n * 10, n * 10_000)
    };
    records.tcp.extend((0..900).map(row));
    let why = explain(&trial(9.0), &records);
    assert!(share(&why, STALL, Cause::Application) >= 0.8, "{}", sentences(&why));
}

/// The rungs of two segments, and how long the first took; the latency of a live stream.
fn falls(took_ms: i64, latency_ms: Option<f64>) -> Why {
    let watch = |n: i64| PlayerRow {
        latency_ms,
        ..watched(n * 100, PlayerState::Playing, 900.0, (n * 100) as f64)
    };
    let segment = |n: i64, took_ms: i64, bps: i64| RequestRow {
        rung_bps: Some(bps),
        ..request(RequestKind::Segment, n * 1000, n * 1000 + took_ms, Some(n * 1000))
    };
    let requests =
        vec![segment(0, 100, 800_000), segment(1, took_ms, 800_000), segment(2, 100, 400_000)];
    let tcp = (0..400).map(|n| TcpRow { acked_bytes: n * 100, ..sample(n * 10, 0) }).collect();
    let player = (0..40).map(watch).collect();
    let access = requests.iter().map(|row| AccessRow {
        path: row.url.clone(),
        answered_ns: row.done_ns.unwrap_or(0),
        ..answer(row.t_ns / MS + 10, PEER)
    });
    let access = access.collect();
    explain(&trial(4.0), &Records { requests, tcp, player, access, ..Records::default() })
}

#[test]
fn a_segment_that_came_fast_is_no_reason_to_leave_its_rung() {
    let (cause, sentence) = fell(100, None);
    assert_eq!(cause, Cause::Unknown, "{sentence}");
    let told = "the segment before came at 7.2 Mbit/s; not known: its rung needs 800 kbit/s";
    assert!(sentence.ends_with(told), "{sentence}");
    let (cause, sentence) = fell(950, None);
    assert_eq!(cause, Cause::Application, "{sentence}");
}

/// The cause and the sentence of the fall of the quality.
fn fell(took_ms: i64, latency_ms: Option<f64>) -> (Cause, String) {
    let effects = falls(took_ms, latency_ms).effects;
    let fall = effects.into_iter().find(|it| it.effect == Effect::Quality).unwrap();
    (fall.cause(), fall.sentence)
}

/// It is requested at 1 s and complete at 1.95 s. With a latency of 100 ms its last frame was captured at 1.9 s, with 500 ms at 1.5.
#[test]
fn a_segment_that_came_as_it_was_captured_is_no_reason_to_leave_its_rung() {
    let (cause, sentence) = fell(950, Some(100.0));
    assert_eq!(cause, Cause::Unknown, "{sentence}");
    assert!(sentence.ends_with("not known: it came as it was captured"), "{sentence}");
    let (cause, sentence) = fell(950, Some(500.0));
    assert_eq!(cause, Cause::Application, "{sentence}");
}

/// A segment that comes over a link of 1 Mbit/s, which its connection fills; the player knows a rung of 400 kbit/s.
fn filling(body_bytes: i64, rung_bps: i64, duration_ms: i64) -> Records {
    let mut records = waits();
    records.access.push(answer(3120, PEER));
    if let Some(row) = records.requests.iter_mut().find(|row| row.media_ms == Some(0)) {
        row.rung_bps = Some(400_000);
    }
    for row in records.requests.iter_mut().filter(|row| row.media_ms == Some(4000)) {
        row.body_bytes = body_bytes;
        row.rung_bps = Some(rung_bps);
        row.duration_ms = Some(duration_ms);
    }
    let row = |n: i64| {
        let since = (n * 10 - 3100).clamp(0, 4800);
        TcpRow {
            in_flight_bytes: if since > 0 { 14_480 } else { 0 },
            acked_bytes: since * 120,
            ..sample(n * 10, since * 1000)
        }
    };
    records.tcp = (0..900).map(row).collect();
    let toml = "rate = '1 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '9 s' }";
    records.link = packets(toml, "tcp 10.0.0.1:80>10.0.0.2:4000", (3100, 7900));
    records
}

/// A trial of 9 s whose link has 1 Mbit/s.
fn trial_at_1_mbps() -> Trial {
    let link_rates = vec![LinkRate {
        link: "access".into(),
        direction: Direction::Down,
        span_s: 0.1,
        rate_bps: vec![1e6; 90],
    }];
    Trial { link_rates, ..trial(9.0) }
}

#[test]
fn a_rung_below_what_the_link_carries_is_not_too_high() {
    let cause = |body_bytes, rung_bps, duration_ms, cause| {
        let why = explain(&trial_at_1_mbps(), &filling(body_bytes, rung_bps, duration_ms));
        assert!(share(&why, STALL, cause) >= 0.8, "{rung_bps}: {}", sentences(&why));
    };
    // 600 kB in 4.89 s are 982 kbit/s, and 400 kB are 654 kbit/s.
    cause(600_000, 800_000, 1000, Cause::LinkRate);
    cause(400_000, 800_000, 1000, Cause::LinkRate);
    cause(600_000, 1_200_000, 1000, Cause::OversizedRung);
    // It came faster than it plays.
    cause(600_000, 1_200_000, 6000, Cause::LinkRate);
}

#[test]
fn a_rung_that_is_too_high_is_told_with_the_rate_and_the_estimate() {
    let mut records = filling(600_000, 1_200_000, 1000);
    let told = |records: &Records| sentences(&explain(&trial_at_1_mbps(), records));
    let carried = "; the link carried 1 Mbit/s when it was requested";
    let found = told(&records);
    assert!(found.contains(carried) && !found.contains("estimate"), "{found}");
    records.player.iter_mut().for_each(|row| row.estimate_bps = Some(1_500_000));
    let found = told(&records);
    let estimated = format!("{carried}, and the player's estimate was 1.5 Mbit/s");
    assert!(found.contains(&estimated), "{found}");
    records.player.iter_mut().for_each(|row| row.estimate_bps = Some(900_000));
    let found = told(&records);
    assert!(found.contains(carried) && !found.contains("estimate"), "{found}");
}

#[test]
fn a_slow_start_names_the_rung_that_it_began_with() {
    let mut records = filling(600_000, 1_200_000, 1000);
    records.requests.retain(|row| row.t_ns >= 3100 * MS);
    let later = request(RequestKind::Segment, 8100, 8200, Some(5000));
    records.requests.push(RequestRow { rung_bps: Some(400_000), ..later });
    records.player = vec![watched(0, PlayerState::Starting, 0.0, 0.0)];
    let plays = |n: i64| watched(n * 100, PlayerState::Playing, 900.0, n as f64);
    records.player.extend((80..90).map(plays));
    let why = explain(&trial_at_1_mbps(), &records);
    let start = why.effects.iter().find(|it| it.effect == Effect::Startup).expect("a slow start");
    let first =
        "; the first segment was of the 1.2 Mbit/s rung and took 4.9 s; the link carried 1 Mbit/s";
    assert!(start.sentence.contains(first), "{}", start.sentence);
    // It took 4.9 of 8 s.
    assert!(share(&why, &[Effect::Startup], Cause::OversizedRung) >= 0.5, "{}", start.sentence);
}

#[test]
fn a_link_that_is_idle_while_a_request_is_on_its_way_is_not_to_blame() {
    let mut records = waits();
    records.access.push(answer(3120, PEER));
    // Ten packets of 40 ms each, 10 ms apart, each 600 ms: the link is busy for 400 ms of them. Each packet waits 30 ms longer than
    // the one before, so for 80 ms those that are served have waited for less than 50 ms: that is no queue.
    let toml = "rate = '300 kbit/s'\ndelay = '20 ms'\nqueue = { limit = '9 s' }";
    let bursts = (0..8).flat_map(|n| {
        let from_ms = 3100 + n * 600;
        packets(toml, "tcp 10.0.0.1:80>10.0.0.2:4000", (from_ms, from_ms + 100))
    });
    records.link = bursts.collect();
    let row = |n: i64| {
        let since = (n * 10 - 3100).clamp(0, 4890);
        let acked = since / 600 * 10 + (since % 600 / 40).min(10);
        TcpRow {
            in_flight_bytes: if since > 0 { 1448 } else { 0 },
            acked_bytes: acked * 1448,
            ..sample(n * 10, since * 1000)
        }
    };
    records.tcp = (0..900).map(row).collect();
    let why = explain(&trial(9.0), &records);
    for (cause, want) in [(Cause::LinkRate, 320.0 / 600.0), (Cause::RoundTrip, 280.0 / 600.0)] {
        let share = share(&why, STALL, cause);
        assert!((share - want).abs() < 0.06, "{cause}: {share}, {}", sentences(&why));
    }
    // The request was sent 10 ms after the answer before it was complete, which came in 40 ms.
    let turns =
        "; the player sent each request when the answer to the one before was complete: requests";
    assert!(sentences(&why).contains(turns), "{}", sentences(&why));
    // One that was under way as well may have filled the link.
    for row in records.requests.iter_mut().filter(|row| row.media_ms == Some(3000)) {
        row.done_ns = Some(3400 * MS);
    }
    let why = explain(&trial(9.0), &records);
    assert!(!sentences(&why).contains(turns), "{}", sentences(&why));
}

#[test]
fn one_slow_packet_of_three_is_no_jitter() {
    let mut records = waits();
    records.access.push(answer(3120, PEER));
    let row = |n: i64| {
        let since = (n * 10 - 3100).clamp(0, 4800);
        TcpRow { in_flight_bytes: if since > 0 { 4344 } else { 0 }, ..sample(n * 10, since * 1000) }
    };
    records.tcp = (0..900).map(row).collect();
    let toml = "rate = '8 Mbit/s'\ndelay = '20 ms'";
    records.link = packets(toml, "tcp 10.0.0.1:80>10.0.0.2:4000", (3100, 3130));
    let last = records.link.last_mut().unwrap();
    (last.scheduled_ns, last.departed_ns) = (Some(3550 * MS), Some(3550 * MS));
    let why = explain(&trial(9.0), &records);
    assert_eq!(share(&why, STALL, Cause::Jitter), 0.0, "{}", sentences(&why));
}

/// What had come of a segment of 800 kbit/s when the player stalled, over its own connection and another one. A segment of
/// 400 kbit/s has 50 kB.
fn had_come(own: usize, other: usize, lost: Option<usize>) -> bool {
    let mut records = waits();
    records.flows = vec![
        flow("player", PEER, "10.0.0.1:80", "origin"),
        flow("player", OTHER, "10.0.0.1:80", "origin"),
    ];
    records.access.push(answer(3120, PEER));
    if let Some(row) = records.requests.iter_mut().find(|row| row.media_ms == Some(0)) {
        row.rung_bps = Some(400_000);
    }
    let again = |row: &TcpRow| TcpRow { socket: "10.0.0.1:80>10.0.0.2:4001".into(), ..row.clone() };
    let others: Vec<TcpRow> = records.tcp.iter().map(again).collect();
    records.tcp.extend(others);
    let of = |flow: &str, count: usize| {
        let all = packets("rate = '8 Mbit/s'\ndelay = '20 ms'", flow, (3200, 4100));
        all.into_iter().take(count).collect::<Vec<_>>()
    };
    let mut rows = of("tcp 10.0.0.1:80>10.0.0.2:4000", own);
    if let Some(row) = lost.and_then(|lost| rows.get_mut(lost)) {
        (row.verdict, row.cause) = (Verdict::Dropped, Some(LinkCause::Loss));
    }
    rows.extend(of("tcp 10.0.0.1:80>10.0.0.2:4001", other));
    records.link = rows;
    sentences(&explain(&trial(9.0), &records)).contains("would have arrived in time")
}

#[test]
fn only_what_came_in_order_for_the_segment_would_have_been_a_lower_rung() {
    assert!(had_come(50, 0, None));
    assert!(!had_come(20, 50, None), "another connection");
    assert!(!had_come(50, 0, Some(10)), "a loss that had to be repaired");
}

#[test]
fn a_segment_of_sound_has_no_rung_to_fall_to() {
    let told = |track| {
        let mut records = waits();
        records.requests.last_mut().unwrap().track = Some(track);
        sentences(&explain(&trial(9.0), &records))
    };
    let video = told(Track::Video);
    assert!(video.contains("was of the 800 kbit/s rung") && video.contains("abandoned"), "{video}");
    let sound = told(Track::Audio);
    assert!(sound.contains("was of the sound, took 4.9 s"), "{sound}");
    assert!(!sound.contains("rung") && !sound.contains("abandoned"), "{sound}");
}

/// What TCP says of a connection that has 90 kB to send from 3.13 s to 7.98 s, and sends 150 kbit/s of them. `pace` has its pacing
/// rate at each millisecond.
fn paced(pace: impl Fn(i64) -> i64) -> String {
    let mut records = waits();
    records.access.push(answer(3120, PEER));
    records.flows = vec![flow("player", PEER, "10.0.0.1:80", "origin")];
    let row = |n: i64| {
        let at_ms = n * 10;
        let is_paced = (3130..7980).contains(&at_ms);
        TcpRow {
            state: if at_ms == 3130 { TcpState::Recovery } else { TcpState::Open },
            cwnd_bytes: 100 * 1448,
            in_flight_bytes: if is_paced { 1448 } else { 0 },
            unsent_bytes: Some(if is_paced { (7980 - at_ms) * 18 } else { 0 }),
            pacing_rate_bps: Some(pace(at_ms)),
            delivery_rate_bps: Some(if at_ms < 3130 { pace(0) } else { 150_000 }),
            acked_bytes: at_ms.min(3130) * 10 + (at_ms.min(7980) - 3130).max(0) * 18,
            busy_us: Some(at_ms * 1000),
            ..sample(at_ms, 0)
        }
    };
    records.tcp = (0..900).map(row).collect();
    let why = explain(&trial(9.0), &records);
    assert!(share(&why, STALL, Cause::Pacing) >= 0.8, "{}", sentences(&why));
    sentences(&why)
}

/// The last packet of an answer was lost, and BBR took its repair for what the path carries.
#[test]
fn a_fall_of_the_pacing_rate_is_told_with_when_and_how_far() {
    let sentence = paced(|at_ms| if at_ms < 3130 { 9_400_000 } else { 150_000 });
    let said = "the sender's pacing held it back; its rate had fallen from 9.4 Mbit/s to 150 kbit/s \
        at 3.1 s, while TCP repaired a loss";
    assert!(sentence.contains(said), "{sentence}");
    let before = paced(|at_ms| if at_ms < 2500 { 9_400_000 } else { 150_000 });
    let said = "its rate had fallen from 9.4 Mbit/s to 150 kbit/s at 2.5 s;";
    assert!(before.contains(said), "{before}");
}

#[test]
fn what_is_no_fall_of_the_pacing_rate_or_is_over_is_not_told() {
    let probes = |at_ms: i64| if at_ms % 80 < 20 { 112_500 } else { 187_500 };
    let recovered = |at_ms: i64| if (2300..2600).contains(&at_ms) { 40_000 } else { 150_000 };
    let started = |at_ms: i64| match at_ms {
        ..1 => 150_000,
        1..3200 => 433_500,
        3200..3300 => 52_500,
        _ => 150_000,
    };
    for sentence in [paced(probes), paced(recovered), paced(started)] {
        assert!(!sentence.contains("had fallen"), "{sentence}");
    }
}

/// The player asked for segment 2 while segment 1 was on its way.
fn overlaps(rows: Vec<RequestRow>) -> String {
    let watch =
        |n: i64| -> PlayerRow { watched(n * 100, PlayerState::Playing, 900.0, (n * 100) as f64) };
    let tcp = (0..500).map(|n| TcpRow { acked_bytes: n * 100, ..sample(n * 10, 0) }).collect();
    let player = (0..50).map(watch).collect();
    sentences(&explain(&trial(5.0), &Records { requests: rows, tcp, player, ..Records::default() }))
}

fn of_rung(bps: i64, row: RequestRow) -> RequestRow {
    RequestRow { rung_bps: Some(bps), ..row }
}

#[test]
fn a_segment_is_compared_with_the_one_before_it_and_not_with_what_was_asked_for_ahead() {
    let given_up = |row: RequestRow, body_bytes: i64| RequestRow {
        done_ns: None,
        abandoned: Some("given up".into()),
        body_bytes,
        ..of_rung(800_000, row)
    };
    let sentence = overlaps(vec![
        of_rung(800_000, request(RequestKind::Segment, 1000, 1900, Some(1000))),
        given_up(request(RequestKind::Segment, 2000, 2900, Some(2000)), 55_000),
        given_up(request(RequestKind::Segment, 2900, 3000, Some(3000)), 0),
        of_rung(400_000, request(RequestKind::Segment, 3000, 3200, Some(2000))),
    ]);
    assert!(sentence.contains("a segment was abandoned, of which 55 kB had come"), "{sentence}");
    assert!(!sentence.contains("of which 0 B"), "{sentence}");
}

#[test]
fn how_fast_a_segment_came_counts_from_the_end_of_the_one_before_it() {
    let sized = |bps, row| RequestRow { body_bytes: 60_000, ..of_rung(bps, row) };
    let sentence = overlaps(vec![
        sized(800_000, request(RequestKind::Segment, 1000, 2400, Some(1000))),
        sized(800_000, request(RequestKind::Segment, 2080, 3400, Some(2000))),
        sized(400_000, request(RequestKind::Segment, 3400, 3500, Some(3000))),
    ]);
    assert!(sentence.contains("the segment before came at 480 kbit/s"), "{sentence}");
}
