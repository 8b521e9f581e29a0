//! Culprits that no live run makes on demand, and the words about all of them. What links do to the packets is the link
//! core's own doing; the rest is written by hand. The others are in `crates/suiro/tests/why`.

use std::collections::BTreeMap;

use suiro_analysis::why::{Why, between, rows};
use suiro_analysis::{Records, explain};
use suiro_link::{Ecn, Event, Link, LinkSpec, Packet};
use suiro_record::tables::{
    AccessRow, FlowRow, FrameRow, LinkRow, MoqSessionRow, PlayerRow, RateRow, RequestRow, TcpRow,
};
use suiro_record::words::{
    CacheFault, CacheOutcome, Carries, Cause, Direction, Effect, FlowRole, LinkCause, PlayerState,
    RequestKind, TcpSource, TcpState, Track, Transport, Verdict,
};
use suiro_record::{LinkRate, LinkTotals, Text, Trial};
use suiro_units::{Bytes, Seed, Time};

use crate::common::trial;

pub const MS: i64 = 1_000_000;
pub const VIDEO: &str = "udp 10.0.0.1:5004>10.0.0.2:5006";
pub const OTHER: &str = "tcp 10.0.0.1:80>10.0.0.2:4000";
/// Between frames.
pub const FRAME_NS: i64 = 33_333_333;
pub const SECONDS: i64 = 9;
/// The noise of the noisy ones.
const NOISE: &str = "jitter = { distribution = 'normal', sd = '10 ms' }\nloss = '0.1 %'\n";

/// A packet on its way to the link: when, of which flow, its size, its frame.
pub type Sent = (i64, &'static str, u64, Option<i64>);

/// What became of packets on a link, each with its frame.
pub fn carried(toml: &str, mut sent: Vec<Sent>) -> Vec<(LinkRow, Option<i64>)> {
    sent.sort_by_key(|(at, ..)| *at);
    let spec: LinkSpec = toml::from_str(toml).unwrap();
    let config = spec.resolve(&mut |_| Err("no files here".to_owned())).unwrap();
    let mut link = Link::new(&config, Seed(3));
    let mut events: Vec<Event> = Vec::new();
    for (id, (at, flow, size, _)) in sent.iter().enumerate() {
        let now = Time::from_nanos(at.cast_unsigned());
        events.extend(std::iter::from_fn(|| link.poll(now)));
        let flow = u64::from(*flow == VIDEO);
        let packet = Packet { id: id as u64, size: Bytes::new(*size), flow, ecn: Ecn::NotEct };
        link.arrive(now, Direction::Down, packet);
    }
    link.drain(Time::from_secs(SECONDS.cast_unsigned() + 9));
    events.extend(std::iter::from_fn(|| link.poll(Time::from_secs(99))));
    events.iter().map(|event| (row(event, &sent), sent[event.packet.id as usize].3)).collect()
}

pub fn row(event: &Event, sent: &[Sent]) -> LinkRow {
    let ns = |time: Time| time.as_nanos_i64();
    let (verdict, cause) = match event.verdict {
        suiro_link::Verdict::Delivered { corruption, .. } => {
            (Verdict::Delivered, corruption.map(|_| LinkCause::Corrupt))
        }
        suiro_link::Verdict::Dropped(suiro_link::Cause::Queue) => {
            (Verdict::Dropped, Some(LinkCause::Queue))
        }
        suiro_link::Verdict::Dropped(_) => (Verdict::Dropped, Some(LinkCause::Loss)),
        suiro_link::Verdict::Queued => (Verdict::Queued, None),
    };
    let delivered = (verdict == Verdict::Delivered).then(|| ns(event.at));
    LinkRow {
        t_ns: ns(event.arrived),
        link: "access".into(),
        direction: Direction::Down,
        packet: event.number as i64,
        flow: sent[event.packet.id as usize].1.into(),
        size_bytes: event.packet.size.get() as i64,
        payload_bytes: Some(event.packet.size.get() as i64 - 28),
        queue_bytes: event.backlog.bytes.get() as i64,
        queue_packets: event.backlog.packets.into(),
        verdict,
        cause,
        ecn_marked: event.ecn_marked,
        dequeued_ns: event.dequeued.map(ns),
        scheduled_ns: delivered,
        departed_ns: delivered,
        attempts: None,
    }
}

/// Video of so many bit/s at a time, a frame every 33 ms, each in packets of 1200 bytes.
pub fn video(bps: impl Fn(i64) -> i64) -> Vec<Sent> {
    let mut packets = Vec::new();
    for frame in 0..SECONDS * 30 {
        let captured = frame * FRAME_NS;
        let bytes = bps(captured) / 240;
        let count = (bytes / 1200).max(1);
        for packet in 0..count {
            let at = captured + 3 * MS + packet * MS / 10;
            packets.push((at, VIDEO, (bytes / count).min(1400).cast_unsigned(), Some(frame)));
        }
    }
    packets
}

/// Other traffic of so many bit/s, from one time to another.
pub fn load(bps: i64, from_ms: i64, to_ms: i64) -> Vec<Sent> {
    let apart = 1500 * 8 * 1_000_000_000 / bps;
    (0..)
        .map(|n| from_ms * MS + n * apart)
        .take_while(|at| *at < to_ms * MS)
        .map(|at| (at, OTHER, 1500, None))
        .collect()
}

/// The frames as a viewer had them: each shown 60 ms after its capture, or when it had come. After a frame that is
/// not complete nothing can be decoded until one of `keys`.
pub fn frames_of(passed: &[(LinkRow, Option<i64>)], keys: impl Fn(i64) -> bool) -> Vec<FrameRow> {
    let mut frames: BTreeMap<i64, Vec<&LinkRow>> = BTreeMap::new();
    for (row, frame) in passed {
        frames.entry(frame.unwrap_or(-1)).or_default().push(row);
    }
    frames.remove(&-1);
    let mut sound = true;
    let mut shown = 0;
    let frame = |(number, rows): (i64, Vec<&LinkRow>)| {
        let captured = number * FRAME_NS;
        let whole = rows.iter().all(|row| row.verdict == Verdict::Delivered);
        let received = whole.then(|| rows.iter().filter_map(|row| row.departed_ns).max()).flatten();
        sound = received.is_some() && (sound || keys(number));
        let displayed = received.filter(|_| sound).map(|at| at.max(captured + 60 * MS).max(shown));
        shown = displayed.unwrap_or(shown);
        FrameRow {
            t_ns: displayed.or(received).unwrap_or(captured + 500 * MS),
            endpoint: "viewer".into(),
            frame: number,
            captured_ns: received.is_some().then_some(captured),
            rung_bps: None,
            encoded_bytes: received.map(|_| rows.iter().map(|row| row.size_bytes).sum()),
            sent_ns: received.map(|_| captured + 3 * MS),
            received_ns: received,
            decodable: received.is_some() && sound,
            damaged: false,
            displayed_ns: displayed,
        }
    };
    frames.into_iter().map(frame).collect()
}

pub fn explained(toml: &str, sent: Vec<Sent>, keys: impl Fn(i64) -> bool, encoder_bps: i64) -> Why {
    let passed = carried(toml, sent);
    let frames = frames_of(&passed, keys);
    let link = passed.into_iter().map(|(row, _)| row).collect();
    explained_of(&trial(SECONDS as f64), link, frames, encoder_bps)
}

pub fn explained_of(
    trial: &Trial,
    link: Vec<LinkRow>,
    frames: Vec<FrameRow>,
    encoder_bps: i64,
) -> Why {
    explain(trial, &records_of(link, frames, encoder_bps))
}

pub fn records_of(link: Vec<LinkRow>, frames: Vec<FrameRow>, encoder_bps: i64) -> Records {
    let rate = (0..SECONDS * 10).map(|tenth| RateRow {
        t_ns: tenth * 100 * MS,
        endpoint: "camera".into(),
        period_ns: 100 * MS,
        target_bps: encoder_bps,
        send_bps: encoder_bps,
        media_bps: encoder_bps,
        loss_ratio: None,
        rtt_ns: None,
        recv_bps: None,
        quantiser: None,
        encoder_bps: Some(encoder_bps),
        queue_bytes: 0,
        broken: None,
        jitter_ns: None,
    });
    let flow = FlowRow {
        t_ns: Time::ZERO,
        endpoint: "camera".into(),
        role: FlowRole::Sender,
        protocol: Transport::Udp,
        local: "*:5004".into(),
        remote: "10.0.0.2:5006".into(),
        carries: Carries::Video,
        flows: 1,
        closed_ns: None,
        peer: Some("viewer".into()),
    };
    let rate = rate.collect();
    Records { link, frames, rate, flows: vec![flow], ..Records::default() }
}

/// The main cause of the effects of these kinds, and the greatest share of another, by time.
pub fn main_cause(why: &Why, effects: &[Effect]) -> (Cause, f64) {
    let mut sums: BTreeMap<Cause, f64> = BTreeMap::new();
    for effect in why.effects.iter().filter(|it| effects.contains(&it.effect)) {
        for (cause, share) in &effect.shares {
            *sums.entry(*cause).or_default() += share * (effect.to_ns - effect.from_ns) as f64;
        }
    }
    let all: f64 = sums.values().sum();
    let mut found: Vec<(Cause, f64)> =
        sums.into_iter().map(|(cause, sum)| (cause, sum / all)).collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    (found[0].0, found.get(1).map_or(0.0, |(_, share)| *share))
}

/// Fails unless the cause is named and no other has more than a tenth, without noise and with it.
fn assert_named(cause: Cause, effects: &[Effect], of: impl Fn(&str) -> Why) {
    for noise in ["", NOISE] {
        let (found, other) = main_cause(&of(noise), effects);
        assert_eq!(found, cause, "{noise}");
        assert!(other <= 0.1, "{other} {noise}");
    }
}

#[test]
fn a_queue_that_others_fill_is_bufferbloat() {
    let sent = || [video(|_| 500_000), load(6_500_000, 2000, 7000)].concat();
    assert_named(Cause::Bufferbloat, &[Effect::Late], |noise| {
        explained(
            &format!("rate = '4 Mbit/s'\ndelay = '20 ms'\nqueue = {{ limit = '1 s' }}\n{noise}"),
            sent(),
            |_| true,
            500_000,
        )
    });
}

#[test]
fn at_a_hub_other_stations_have_the_link() {
    // What the medium leaves this station, while another one sends 8 Mbit/s.
    let left = "rate = '2 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '5 s' }";
    let bps = |at: i64| if (2000 * MS..6000 * MS).contains(&at) { 3_000_000 } else { 900_000 };
    let passed = carried(left, video(bps));
    let frames = frames_of(&passed, |_| true);
    let others = carried("rate = '8 Mbit/s'", load(8_000_000, 0, 9000));
    let sent = |station: &str, passed: Vec<(LinkRow, Option<i64>)>| {
        let link: Text = station.into();
        let row = |(row, _)| LinkRow { link: link.clone(), direction: Direction::Up, ..row };
        passed.into_iter().map(row).collect::<Vec<_>>()
    };
    let link = [sent("lan-camera", passed), sent("lan-other", others)].concat();
    for (segment, cause) in [(Some("lan"), Cause::Competing), (None, Cause::LinkRate)] {
        let segment = segment.map(str::to_owned);
        let totals = |link: &str| LinkTotals {
            segment: segment.clone(),
            ..LinkTotals::new(link, Direction::Up)
        };
        let links = vec![totals("lan-camera"), totals("lan-other")];
        let trial = Trial { links, ..trial(SECONDS as f64) };
        let why = explained_of(&trial, link.clone(), frames.clone(), 3_000_000);
        let (found, other) = main_cause(&why, &[Effect::Late]);
        assert_eq!(found, cause);
        assert!(other <= 0.1, "{other}");
    }
}

#[test]
fn others_behind_the_queue_are_not_to_blame() {
    let narrow = "rate = '2 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '5 s' }";
    let bps = |at: i64| if (2000 * MS..6000 * MS).contains(&at) { 3_000_000 } else { 900_000 };
    let passed = carried(narrow, video(bps));
    let on = |(row, frame): &(LinkRow, Option<i64>)| {
        Some((row.departed_ns?, VIDEO, row.size_bytes.cast_unsigned(), *frame))
    };
    let onwards = [passed.iter().filter_map(on).collect(), load(8_000_000, 0, 9000)].concat();
    let wide = carried("rate = '50 Mbit/s'", onwards).into_iter();
    let wide = wide.map(|(row, _)| LinkRow { link: "wide".into(), ..row });
    let frames = frames_of(&passed, |_| true);
    let link = passed.into_iter().map(|(row, _)| row).chain(wide).collect();
    let why = explained_of(&trial(SECONDS as f64), link, frames, 3_000_000);
    let (found, other) = main_cause(&why, &[Effect::Late]);
    assert!(found == Cause::LinkRate && other <= 0.1, "{found} {other}");
}

#[test]
fn an_encoder_that_makes_too_much_is_named() {
    let bps = |at: i64| if (2000 * MS..6000 * MS).contains(&at) { 3_000_000 } else { 900_000 };
    assert_named(Cause::Encoder, &[Effect::Late], |noise| {
        let toml =
            format!("rate = '2 Mbit/s'\ndelay = '20 ms'\nqueue = {{ limit = '5 s' }}\n{noise}");
        explained(&toml, video(bps), |_| true, 1_000_000)
    });
}

#[test]
fn a_key_frame_that_comes_late_is_named() {
    // Packet 120 is of frame 60; the next key frame is frame 165.
    for noise in ["", "jitter = { distribution = 'normal', sd = '10 ms' }\n"] {
        let loss = "down.loss = { model = 'list', packets = [120] }";
        let toml = format!("rate = '8 Mbit/s'\ndelay = '20 ms'\n{noise}{loss}");
        let why = explained(&toml, video(|_| 700_000), |frame| frame == 165, 800_000);
        let (found, other) = main_cause(&why, &[Effect::Freeze]);
        assert!(found == Cause::KeyFrame && other <= 0.1, "{noise}: {found} {other}");
        let sentence = &why.effects[0].sentence;
        assert!(
            sentence.starts_with("froze 3.") && sentence.contains("until a key frame came"),
            "{sentence}"
        );
    }
}

pub fn request(kind: RequestKind, from_ms: i64, to_ms: i64, media_ms: Option<i64>) -> RequestRow {
    let segment = media_ms.map(|ms| ms / 1000);
    RequestRow {
        t_ns: from_ms * MS,
        endpoint: "player".into(),
        url: segment
            .map_or_else(|| format!("/list?{from_ms}"), |n| format!("/{n}.m4s"))
            .as_str()
            .into(),
        kind,
        track: segment.map(|_| Track::Video),
        rung_bps: segment.map(|_| 800_000),
        segment,
        media_ms,
        duration_ms: segment.map(|_| 1000),
        body_bytes: if segment.is_some() { 90_000 } else { 400 },
        first_byte_ns: Some(to_ms * MS - MS),
        done_ns: Some(to_ms * MS),
        status: Some(200),
        error: None,
        abandoned: None,
        attempt: 1,
        handshake_ns: Some(0),
        ..RequestRow::default()
    }
}

/// The origin's answers to requests, which reach it after 20 ms, each answered when `answered_ns` says.
pub fn answers(
    requests: &[RequestRow],
    answered_ns: impl Fn(&RequestRow) -> i64,
) -> Vec<AccessRow> {
    let answer = |row: &RequestRow| AccessRow {
        t_ns: row.t_ns + 20 * MS,
        endpoint: "origin".into(),
        peer: "10.0.0.2:4000".into(),
        method: "GET".into(),
        path: row.url.clone(),
        status: 200,
        body_bytes: row.body_bytes,
        answered_ns: answered_ns(row),
        ..AccessRow::default()
    };
    requests.iter().map(answer).collect()
}

pub fn watched(at_ms: i64, state: PlayerState, buffer_ms: f64, position_ms: f64) -> PlayerRow {
    PlayerRow {
        t_ns: at_ms * MS,
        endpoint: "player".into(),
        state,
        buffer_ms: Some(buffer_ms),
        position_ms: Some(position_ms),
        rung_bps: Some(800_000),
        latency_ms: None,
        target_latency_ms: None,
        speed: 1.0,
        stalls: 0,
        estimate_bps: None,
        dropped_pictures: None,
    }
}

/// A player that asks for its playlist twice, and waits for each, before it may ask for the next segment.
pub fn waits_for_a_manifest() -> Records {
    let mut requests = vec![request(RequestKind::Manifest, 0, 50, None)];
    requests.extend(
        (0..4).map(|n| request(RequestKind::Segment, 50 + n * 1000, 90 + n * 1000, Some(n * 1000))),
    );
    requests.push(request(RequestKind::Manifest, 3100, 5500, None));
    requests.push(request(RequestKind::Manifest, 5500, 7900, None));
    requests.push(request(RequestKind::Segment, 7900, 7990, Some(4000)));
    let access = answers(&requests, |row| row.done_ns.unwrap_or(0) - MS);
    let mut player: Vec<PlayerRow> = (0..41)
        .map(|n| watched(100 + n * 100, PlayerState::Playing, 900.0, n as f64 * 100.0))
        .collect();
    player.extend((42..80).map(|n| watched(n * 100, PlayerState::Stalled, 0.0, 4000.0)));
    player.extend(
        (80..90).map(|n| {
            watched(n * 100, PlayerState::Playing, 900.0, (n - 80) as f64 * 100.0 + 4000.0)
        }),
    );
    let busy = |at_ms: i64| {
        requests.iter().filter(|row| row.segment.is_some() && row.t_ns <= at_ms * MS).count() as i64
    };
    let tcp = (0..900).map(|n| sample(n * 10, busy(n * 10) * 60_000)).collect();
    Records { requests, access, player, tcp, ..Records::default() }
}

pub fn sample(at_ms: i64, busy_us: i64) -> TcpRow {
    TcpRow {
        t_ns: at_ms * MS,
        host: "server".into(),
        socket: "10.0.0.1:80>10.0.0.2:4000".into(),
        source: TcpSource::SockDiag,
        congestion: "cubic".into(),
        state: TcpState::Open,
        cwnd_bytes: 14_480,
        ssthresh_bytes: None,
        mss_bytes: 1448,
        srtt_us: 40_000,
        rttvar_us: 1000,
        min_rtt_us: Some(40_000),
        in_flight_bytes: 0,
        pacing_rate_bps: None,
        delivery_rate_bps: None,
        retransmits: 0,
        acked_bytes: busy_us,
        received_bytes: 400,
        app_limited: Some(true),
        unsent_bytes: Some(0),
        peer_window_bytes: Some(64_000),
        busy_us: Some(busy_us),
        rwnd_limited_us: Some(0),
        sndbuf_limited_us: Some(0),
        rto_us: Some(240_000),
        timeouts: Some(0),
    }
}

/// The same over HTTP/3, where no socket is sampled.
#[test]
fn a_cache_that_makes_a_player_wait_is_named() {
    let mut records = waits_for_a_manifest();
    records.flows.push(FlowRow {
        t_ns: Time::ZERO,
        endpoint: "player".into(),
        role: FlowRole::Client,
        protocol: Transport::Tcp,
        local: "10.0.0.2:4000".into(),
        remote: "10.0.0.1:80".into(),
        carries: Carries::HttpMedia,
        flows: 1,
        closed_ns: None,
        peer: Some("edge".into()),
    });
    for row in &mut records.access {
        row.cache = Some(CacheOutcome::Miss);
        row.endpoint = "edge".into();
        let late = (3_100 * MS..7_900 * MS).contains(&row.t_ns);
        row.cache_fault = late.then_some(CacheFault::Slow);
    }
    for sampled in [true, false] {
        if !sampled {
            records.tcp.clear();
        }
        let why = explain(&trial(9.0), &records);
        let (found, other) = main_cause(&why, &[Effect::Stall]);
        assert!(found == Cause::Cache && other <= 0.1, "{sampled}: {found} {other}");
        let effect = &why.effects[0];
        let clause = "the cache edge was slow for 2 requests";
        assert_eq!(effect.because.as_deref(), Some(clause), "{}", effect.sentence);
        let shows = effect.chain.iter().find(|step| step.evidence.table == "access");
        assert_eq!(shows.map(|step| step.what.as_str()), Some(clause));
    }
}

#[test]
fn a_player_that_waits_for_manifests_is_named() {
    let why = explain(&trial(9.0), &waits_for_a_manifest());
    let (found, other) = main_cause(&why, &[Effect::Stall]);
    assert!(found == Cause::Manifest && other <= 0.1, "{found} {other}");
    let effect = &why.effects[0];
    assert!(
        effect.sentence.starts_with("stalled 3.8 s at 4.2 s: the player waited for a manifest"),
        "{}",
        effect.sentence
    );
    let evidence: Vec<String> = effect.chain.iter().map(|step| step.evidence.to_string()).collect();
    assert!(evidence.contains(&"requests[7]".to_owned()), "{evidence:?}");
}

#[test]
fn the_table_has_every_cause_of_an_effect_and_what_it_shows() {
    let why = explain(&trial(9.0), &waits_for_a_manifest());
    let rows = rows(&why);
    let stall: Vec<_> = rows.iter().filter(|row| row.effect == Effect::Stall).collect();
    assert_eq!(stall[0].cause, Cause::Manifest);
    assert!(stall[0].sentence.is_some() && stall[1..].iter().all(|row| row.sentence.is_none()));
    assert!((stall.iter().map(|row| row.share).sum::<f64>() - 1.0).abs() < 1e-9);
    let trial: f64 =
        rows.iter().filter(|row| row.effect == Effect::Trial).map(|row| row.share).sum();
    assert!((trial - 1.0).abs() < 1e-9);
}

#[test]
fn what_the_records_do_not_show_is_not_known() {
    let mut records = waits_for_a_manifest();
    records.tcp.clear();
    let why = explain(&trial(9.0), &records);
    assert_eq!(why.effects[0].cause(), Cause::Unknown);
    assert!(
        why.effects[0].sentence.contains("not known: neither table `tcp`"),
        "{}",
        why.effects[0].sentence
    );
}

#[test]
fn two_trials_are_compared_in_a_paragraph() {
    let bad = explain(&trial(9.0), &waits_for_a_manifest());
    let mut records = waits_for_a_manifest();
    records.requests.retain(|row| row.kind == RequestKind::Segment);
    records.player.retain(|row| row.state == PlayerState::Playing);
    let good = explain(&trial(9.0), &records);
    let text = between(("a=1", "a=2"), &bad, &good);
    assert!(text.starts_with("a=1 was stalled for 3.8 s, a=2 for 0 ms."), "{text}");
    assert!(
        text.contains("They differ from 3.0 s on") || text.contains("They differ from 4.0 s on"),
        "{text}"
    );
    assert!(between(("x", "y"), &good, &good).contains("do not differ"));
}

/// The viewer's end of the video.
pub fn receives() -> FlowRow {
    FlowRow {
        t_ns: Time::ZERO,
        endpoint: "viewer".into(),
        role: FlowRole::Receiver,
        protocol: Transport::Udp,
        local: "10.0.0.2:5006".into(),
        remote: "*:*".into(),
        carries: Carries::Video,
        flows: 1,
        closed_ns: None,
        peer: None,
    }
}

pub fn moq_session() -> MoqSessionRow {
    MoqSessionRow {
        t_ns: Time::ZERO,
        endpoint: "relay".into(),
        session: 1,
        role: FlowRole::Client,
        addresses: "*>10.0.0.1:5004".into(),
        congestion: "cubic".into(),
        version: None,
        connected_ns: None,
        set_up_ns: None,
        ended_ns: None,
        ended: None,
        streams: 0,
        datagrams: None,
        switches: None,
    }
}

/// A viewer of 900 kbit/s on 500 kbit/s.
fn plays_too_much(switches: Option<u64>) -> Why {
    let toml = "rate = '500 kbit/s'\ndelay = '20 ms'\nqueue = { limit = '9 s' }";
    let passed = carried(toml, video(|_| 900_000));
    let mut frames = frames_of(&passed, |_| true);
    frames.iter_mut().for_each(|frame| frame.rung_bps = Some(850_000));
    let session = MoqSessionRow { endpoint: "viewer".into(), switches, ..moq_session() };
    let mut trial = trial(SECONDS as f64);
    trial.link_rates.push(LinkRate {
        link: "access".into(),
        direction: Direction::Down,
        span_s: 0.1,
        rate_bps: vec![5e5; 90],
    });
    let (link, flow) = (passed.into_iter().map(|(row, _)| row).collect(), receives());
    let (flows, moq_sessions) = (vec![flow], vec![session]);
    explain(&trial, &Records { link, frames, flows, moq_sessions, ..Records::default() })
}

#[test]
fn a_quality_that_the_link_does_not_carry_is_the_viewers_choice() {
    let effects = [Effect::Late, Effect::Freeze];
    let why = plays_too_much(Some(3));
    let (found, other) = main_cause(&why, &effects);
    assert!(found == Cause::OversizedRung && other <= 0.1, "{found} {other}");
    let sentence = &why.effects.iter().find(|it| it.effect == Effect::Late).unwrap().sentence;
    let says = "the viewer played 850 kbit/s, and the link carries 500 kbit/s";
    assert!(sentence.contains(says), "{sentence}");
    // Where there is nothing to choose from, it is not.
    assert_eq!(main_cause(&plays_too_much(None), &effects).0, Cause::LinkRate);
}

#[test]
fn a_fall_of_the_rate_is_named_with_its_figures() {
    let toml = "rate = '4 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '3 s' }\ndown.changes = [{ at = '3 s', rate = '500 kbit/s' }]";
    let passed = carried(toml, video(|_| 900_000));
    let frames = frames_of(&passed, |_| true);
    let flow = receives();
    let mut trial = trial(SECONDS as f64);
    let rate_bps = (0..90).map(|tenth| if tenth < 30 { 4e6 } else { 5e5 }).collect();
    trial.link_rates.push(LinkRate {
        link: "access".into(),
        direction: Direction::Down,
        span_s: 0.1,
        rate_bps,
    });
    let link = passed.into_iter().map(|(row, _)| row).collect();
    let why = explain(&trial, &Records { link, frames, flows: vec![flow], ..Records::default() });
    let (found, other) = main_cause(&why, &[Effect::Late]);
    assert!(found == Cause::RateStep && other <= 0.1, "{found} {other}");
    let sentence = &why.effects.iter().find(|it| it.effect == Effect::Late).unwrap().sentence;
    assert!(sentence.contains("the link fell from 4 Mbit/s to 500 kbit/s at 3.0 s"), "{sentence}");
    assert!(sentence.contains("without the queue frame"), "{sentence}");
}
