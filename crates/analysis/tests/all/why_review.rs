//! False causes that a reader of the rules of `why` found. Of real-time video; the others are in `why_requests`.

use suiro_analysis::why::Why;
use suiro_analysis::{Records, explain};
use suiro_record::tables::{FlowRow, LatenessRow, LinkRow, QuicRow, WebrtcRow, WebrtcSessionRow};
use suiro_record::words::{Cause, Direction, Effect, LatenessSource};
use suiro_record::{LinkRate, LinkTotals, Trial};
use suiro_units::{BitRate, Duration, Time};

use crate::common::{trial, webrtc_session, with_pauses};
use crate::why::{
    MS, SECONDS, Sent, VIDEO, carried, explained_of, frames_of, load, main_cause, receives,
    records_of, video,
};
use crate::why_lies::{SEEN, sentences, set_to, share};

/// The rates that a link was to have, a tenth of a second each.
fn rates(link: &str, bps: impl Fn(i64) -> f64) -> LinkRate {
    LinkRate {
        link: link.into(),
        direction: Direction::Down,
        span_s: 0.1,
        rate_bps: (0..SECONDS * 10).map(bps).collect(),
    }
}

/// Video of 1.7 Mbit/s, which an encoder was set to, on a link of 1.2 Mbit/s from 3 s on.
fn one_of_three_qualities() -> Records {
    let toml = "rate = '4 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '5 s' }\n\
                down.changes = [{ at = '3 s', rate = '1200 kbit/s' }]";
    let passed = carried(toml, video(|_| 1_700_000));
    let frames = frames_of(&passed, |_| true);
    let link = passed.into_iter().map(|(row, _)| row).collect();
    let flow = FlowRow { peer: Some("camera".into()), ..receives() };
    let flows = vec![FlowRow { remote: "10.0.0.1:5004".into(), ..flow }];
    let sent = |session: u64, kbps: u64| {
        let target_bps = Some(BitRate::from_kbps(kbps));
        let row = move |row| WebrtcRow { session, target_bps, ..row };
        set_to(30).into_iter().map(row)
    };
    let webrtc = sent(1, 1700).chain(sent(2, 850)).chain(sent(3, 270)).collect();
    Records { link, frames, flows, webrtc, ..Records::default() }
}

fn session(session: u64, pair: &str) -> WebrtcSessionRow {
    WebrtcSessionRow { session, pair: Some(pair.into()), ..webrtc_session("camera") }
}

#[test]
fn an_encoder_is_set_to_what_the_viewers_own_session_is() {
    let mut records = one_of_three_qualities();
    records.webrtc_sessions = vec![
        session(1, "10.0.0.1:5004>10.0.0.2:5006"),
        session(2, "10.0.0.1:5004>10.0.0.3:5006"),
        session(3, "10.0.0.1:5004>10.0.0.4:5006"),
    ];
    let why = explain(&trial(SECONDS as f64), &records);
    assert_eq!(share(&why, SEEN, Cause::Encoder), 0.0, "{}", sentences(&why));
    assert!(share(&why, SEEN, Cause::LinkRate) >= 0.9, "{}", sentences(&why));
}

/// What waits in a relay for the congestion window of its connection to each of two viewers.
fn waits_in_a_relay(for_viewer: bool) -> Why {
    let passed = carried("rate = '8 Mbit/s'\ndelay = '20 ms'", video(|_| 700_000));
    let frames = frames_of(&passed, |_| true);
    let link = passed.into_iter().map(|(row, _)| row).collect();
    let quic = |session: u64, waiting_bytes: u64| {
        (0..SECONDS * 100).map(move |n| QuicRow {
            t_ns: Time::from_millis(n.cast_unsigned() * 10),
            endpoint: "relay".into(),
            session,
            congestion: "cubic".into(),
            waiting_bytes: Some(waiting_bytes),
            ..crate::why_lies::quic_row()
        })
    };
    let ends = |session: u64, addresses: &str| suiro_record::tables::MoqSessionRow {
        session,
        addresses: addresses.into(),
        ..crate::why::moq_session()
    };
    let (first, second) = if for_viewer { (30_000, 0) } else { (0, 30_000) };
    let flows = vec![FlowRow { peer: Some("relay".into()), ..receives() }];
    let records = Records {
        link,
        frames,
        flows,
        quic: quic(1, first).chain(quic(2, second)).collect(),
        moq_sessions: vec![
            ends(1, "10.0.0.1:5004>10.0.0.2:5006"),
            ends(2, "10.0.0.1:5004>10.0.0.3:5006"),
        ],
        ..Records::default()
    };
    explain(&trial(SECONDS as f64), &records)
}

#[test]
fn what_waits_for_another_viewer_limits_only_that_one() {
    let limits = |why: &Why| {
        let viewer = why.subjects.iter().find(|it| it.name == "viewer").unwrap();
        viewer.shares().first().map(|(cause, _)| *cause)
    };
    assert_eq!(limits(&waits_in_a_relay(true)), Some(Cause::CongestionWindow));
    assert_eq!(limits(&waits_in_a_relay(false)), Some(Cause::Application));
}

#[test]
fn a_delay_that_falls_had_not_risen_before() {
    let toml =
        "rate = '8 Mbit/s'\ndelay = '300 ms'\ndown.changes = [{ at = '3 s', delay = '20 ms' }]";
    let passed = carried(toml, video(|_| 700_000));
    let frames = frames_of(&passed, |_| true);
    let link = passed.into_iter().map(|(row, _)| row).collect();
    let why = explained_of(&trial(SECONDS as f64), link, frames, 800_000);
    assert_eq!(share(&why, SEEN, Cause::Delay), 0.0, "{}", sentences(&why));
}

/// A viewer of a link that carries nothing for a time, while others fill its queue.
fn outage(others: Vec<Sent>, ms: i64) -> Why {
    let from = 4000;
    let toml = format!(
        "rate = '4 Mbit/s'\ndelay = '20 ms'\nqueue = {{ limit = '9000p' }}\n\
         down.changes = [{{ at = '{from} ms', rate = '0 bit/s' }}, {{ at = '{} ms', rate = '4 Mbit/s' }}]",
        from + ms
    );
    let passed = carried(&toml, [video(|_| 500_000), others].concat());
    let frames = frames_of(&passed, |_| true);
    let link = passed.into_iter().map(|(row, _)| row).collect();
    let mut trial = trial(SECONDS as f64);
    let out = (from / 100)..(from + ms) / 100;
    trial.link_rates.push(rates("access", |at| if out.contains(&at) { 0.0 } else { 4e6 }));
    explain(&trial, &Records { link, frames, flows: vec![receives()], ..Records::default() })
}

#[test]
fn an_outage_is_the_cause_of_a_wait_that_it_is_half_of() {
    let why = outage(load(7_000_000, 1500, 6000), 200);
    assert!(share(&why, SEEN, Cause::Outage) < 0.1, "{}", sentences(&why));
    assert!(share(&why, SEEN, Cause::Bufferbloat) >= 0.8, "{}", sentences(&why));
}

#[test]
fn without_the_queue_nothing_comes_during_an_outage() {
    let why = outage(Vec::new(), 2000);
    assert!(share(&why, SEEN, Cause::Outage) >= 0.9, "{}", sentences(&why));
    assert!(!sentences(&why).contains("without the queue"), "{}", sentences(&why));
}

#[test]
fn a_steady_trace_neither_falls_nor_stops() {
    let toml = "rate = '300 kbit/s'\ndelay = '20 ms'\nqueue = { limit = '9 s' }";
    let passed = carried(toml, video(|_| 400_000));
    let frames = frames_of(&passed, |_| true);
    let link: Vec<LinkRow> = passed.into_iter().map(|(row, _)| row).collect();
    for packets in [[2.0, 3.0, 2.0], [0.0, 1.0, 1.0]] {
        let mut trial = trial(SECONDS as f64);
        trial.link_rates.push(rates("access", |at| packets[at as usize % 3] * 120_000.0));
        let (link, frames) = (link.clone(), frames.clone());
        let flows = vec![receives()];
        let why = explain(&trial, &Records { link, frames, flows, ..Records::default() });
        assert!(share(&why, SEEN, Cause::LinkRate) >= 0.9, "{}", sentences(&why));
    }
}

#[test]
fn a_flow_does_not_compete_with_its_own_feedback() {
    const FEEDBACK: &str = "udp 10.0.0.2:5006>10.0.0.1:5004";
    let narrow = "rate = '2 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '5 s' }";
    let bps = |at: i64| if (2000 * MS..6000 * MS).contains(&at) { 3_000_000 } else { 900_000 };
    let passed = carried(narrow, video(bps));
    let frames = frames_of(&passed, |_| true);
    let back = (0..SECONDS * 200).map(|n| (n * 5 * MS, FEEDBACK, 1400, None)).collect();
    let back = carried("rate = '50 Mbit/s'", back).into_iter();
    let back = back.map(|(row, _)| LinkRow { direction: Direction::Up, ..row });
    let link = passed.into_iter().map(|(row, _)| row).chain(back).collect();
    let totals = |direction| LinkTotals {
        segment: Some("cell".into()),
        ..LinkTotals::new("access", direction)
    };
    let links = vec![totals(Direction::Down), totals(Direction::Up)];
    let trial = Trial { links, ..trial(SECONDS as f64) };
    let why = explained_of(&trial, link, frames, 3_000_000);
    assert!(share(&why, SEEN, Cause::LinkRate) >= 0.9, "{}", sentences(&why));
}

pub fn away(endpoint: &str, from_ms: i64, length_ms: u64) -> LatenessRow {
    LatenessRow {
        t_ns: Time::from_millis(from_ms.cast_unsigned() + length_ms),
        endpoint: endpoint.into(),
        source: LatenessSource::Heartbeat,
        period_ns: Duration::from_millis(1000),
        looks: 1,
        mean_ns: None,
        worst_from_ns: Time::from_millis(from_ms.cast_unsigned()),
        worst_ns: Duration::from_millis(length_ms),
        stopped: true,
    }
}

#[test]
fn a_receiver_that_pauses_does_not_hold_rtp_back() {
    let narrow = "rate = '2 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '5 s' }";
    let bps = |at: i64| if (2000 * MS..6000 * MS).contains(&at) { 3_000_000 } else { 900_000 };
    let passed = carried(narrow, video(bps));
    let frames = frames_of(&passed, |_| true);
    let link = passed.into_iter().map(|(row, _)| row).collect();
    let (flows, lateness) = (vec![receives()], vec![away("viewer", 3500, 250)]);
    let records = Records { link, frames, flows, lateness, ..Records::default() };
    let why = explain(&trial(SECONDS as f64), &records);
    assert!(share(&why, SEEN, Cause::LinkRate) >= 0.9, "{}", sentences(&why));
}

#[test]
fn the_fall_that_is_told_is_that_of_the_link_with_the_queue() {
    let toml = "rate = '4 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '3 s' }\n\
                down.changes = [{ at = '3 s', rate = '500 kbit/s' }]";
    let passed = carried(toml, video(|_| 900_000));
    let frames = frames_of(&passed, |_| true);
    let on = |(row, frame): &(LinkRow, Option<i64>)| {
        Some((row.departed_ns?, VIDEO, row.size_bytes.cast_unsigned(), *frame))
    };
    let wide = carried("rate = '50 Mbit/s'", passed.iter().filter_map(on).collect()).into_iter();
    let wide = wide.map(|(row, _)| LinkRow { link: "wide".into(), ..row });
    let link = passed.into_iter().map(|(row, _)| row).chain(wide).collect();
    let mut trial = trial(SECONDS as f64);
    trial.link_rates.push(rates("access", |at| if at < 30 { 4e6 } else { 5e5 }));
    trial.link_rates.push(rates("wide", |at| if at < 40 { 5e7 } else { 3e7 }));
    let flows = vec![receives()];
    let why = explain(&trial, &Records { link, frames, flows, ..Records::default() });
    assert!(share(&why, SEEN, Cause::RateStep) >= 0.9, "{}", sentences(&why));
    let late = why.effects.iter().find(|it| it.effect == Effect::Late).unwrap();
    let fall = "the link fell from 4 Mbit/s to 500 kbit/s at 3.0 s";
    assert!(late.sentence.contains(fall), "{}", late.sentence);
}

/// A sender that sends nothing from 3 to 5 s and from 8 s on, while so many bytes wait in it.
fn pauses(held: i64) -> Why {
    pauses_in(&trial(SECONDS as f64), held)
}

fn pauses_in(trial: &Trial, held: i64) -> Why {
    let is_pause = |at: i64| (3000 * MS..5000 * MS).contains(&at) || at >= 8000 * MS;
    let sent = video(|_| 700_000).into_iter().filter(|(at, ..)| !is_pause(*at)).collect();
    let passed = carried("rate = '8 Mbit/s'\ndelay = '20 ms'", sent);
    let frames = frames_of(&passed, |_| true);
    let link = passed.into_iter().map(|(row, _)| row).collect();
    let mut records = records_of(link, frames, 800_000);
    for row in records.rate.iter_mut().filter(|row| is_pause(row.t_ns)) {
        row.queue_bytes = held;
    }
    explain(trial, &records)
}

#[test]
fn a_pause_of_the_scenario_needs_no_cause() {
    let trial = with_pauses(trial(SECONDS as f64), &["camera", "viewer"], (3.0, 5.0));
    let why = pauses_in(&trial, 0);
    let told = sentences(&why);
    // Only the second one is a freeze.
    let freezes = why.effects.iter().filter(|it| it.effect == Effect::Freeze);
    let from: Vec<i64> = freezes.map(|it| it.from_ns).collect();
    assert!(matches!(from[..], [at] if at > 7500 * MS), "{from:?}\n{told}");
    let in_pause = why.effects.iter().find(|it| it.from_ns < 5000 * MS && it.to_ns > 3100 * MS);
    assert!(in_pause.is_none(), "{told}");
}

#[test]
fn a_sender_that_pauses_or_has_ended_had_nothing_to_send() {
    let why = pauses(0);
    let told = sentences(&why);
    assert_eq!(main_cause(&why, &[Effect::Freeze]), (Cause::Application, 0.0), "{told}");
    assert_eq!(told.matches("the sender had nothing to send from").count(), 2, "{told}");
    let held = pauses(30_000);
    assert_eq!(share(&held, SEEN, Cause::Application), 0.0, "{}", sentences(&held));
}

/// Chromium does not say what waits in it.
#[test]
fn a_sender_that_writes_no_more_rows_has_ended() {
    let sent = video(|_| 700_000).into_iter().filter(|(at, ..)| *at < 8000 * MS).collect();
    let passed = carried("rate = '8 Mbit/s'\ndelay = '20 ms'", sent);
    let frames = frames_of(&passed, |_| true);
    let link: Vec<LinkRow> = passed.into_iter().map(|(row, _)| row).collect();
    let mut records = records_of(link, frames, 800_000);
    records.rate = Vec::new();
    for (until_ms, cause) in [(8000, Cause::Application), (8500, Cause::Unknown)] {
        let rows = set_to(30).into_iter();
        records.webrtc = rows.filter(|row| row.t_ns <= Time::from_millis(until_ms)).collect();
        let why = explain(&trial(SECONDS as f64), &records);
        assert_eq!(main_cause(&why, &[Effect::Freeze]), (cause, 0.0), "{}", sentences(&why));
    }
}

/// Chromium does not say what waits in it, so a path with room is no sign that nothing did.
#[test]
fn a_sender_that_does_not_record_its_queue_may_have_had_something_to_send() {
    let passed = carried("rate = '8 Mbit/s'\ndelay = '20 ms'", video(|_| 700_000));
    let frames = frames_of(&passed, |_| true);
    let link = passed.into_iter().map(|(row, _)| row).collect();
    let mut records = records_of(link, frames, 800_000);
    for cause in [Cause::Application, Cause::Unknown] {
        let why = explain(&trial(SECONDS as f64), &records);
        let viewer = why.subjects.iter().find(|it| it.name == "viewer").unwrap();
        assert_eq!(viewer.shares().first().map(|(cause, _)| *cause), Some(cause));
        records.rate.clear();
    }
}
