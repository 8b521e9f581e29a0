//! Causes that `why` once named although they did not act, and causes that it never named. The packets pass through the link
//! core itself.

use suiro_analysis::why::{Step, Why};
use suiro_analysis::{Records, explain};
use suiro_record::tables::{
    EncoderRow, FlowRow, FrameRow, LatenessRow, LinkRow, QuicRow, RateRow, TcpRow, WebrtcRow,
};
use suiro_record::words::{
    Cause, Direction, Effect, LatenessSource, LinkCause, PlayerState, RequestKind, Verdict,
};
use suiro_record::{LinkRate, Text};
use suiro_units::{BitRate, Duration, Time};

use crate::common::{self, trial};
use crate::why::{
    FRAME_NS, MS, SECONDS, Sent, VIDEO, carried, explained, explained_of, frames_of, main_cause,
    receives, records_of, request, sample, video, waits_for_a_manifest, watched,
};

pub const SEEN: &[Effect] = &[Effect::Late, Effect::Freeze, Effect::Missing];

/// The share of a cause of all time of these effects.
pub fn share(why: &Why, effects: &[Effect], cause: Cause) -> f64 {
    let (mut own, mut all) = (0.0, 0.0);
    for effect in why.effects.iter().filter(|it| effects.contains(&it.effect)) {
        let length = (effect.to_ns - effect.from_ns) as f64;
        all += length;
        let of = effect.shares.iter().filter(|(it, _)| *it == cause);
        own += length * of.map(|(_, share)| share).sum::<f64>();
    }
    if all > 0.0 { own / all } else { 0.0 }
}

pub fn sentences(why: &Why) -> String {
    why.effects.iter().map(|it| format!("{}\n", it.sentence)).collect()
}

/// An encoder leaves out one of three frames, and other packets of its flow are sent.
fn one_of_three_left_out(more: &[Sent]) -> (Vec<LinkRow>, Vec<FrameRow>) {
    let video = video(|_| 600_000).into_iter().filter(|it| it.3.is_none_or(|n| n % 3 != 1));
    let sent = video.chain(more.iter().copied()).collect();
    let passed = carried("rate = '8 Mbit/s'\ndelay = '20 ms'", sent);
    let mut frames = frames_of(&passed, |_| true);
    let row = frames[0].clone();
    for number in (1..SECONDS * 30).step_by(3) {
        frames.push(FrameRow {
            t_ns: number * FRAME_NS + 500 * MS,
            frame: number,
            captured_ns: None,
            encoded_bytes: None,
            sent_ns: None,
            received_ns: None,
            decodable: false,
            displayed_ns: None,
            ..row.clone()
        });
    }
    (passed.into_iter().map(|(row, _)| row).collect(), frames)
}

/// What a sender over WebRTC says that its encoder is set to, every 100 ms.
pub fn set_to(fps: i64) -> Vec<WebrtcRow> {
    let row = |tenth: i64| WebrtcRow {
        t_ns: Time::from_millis((tenth * 100).cast_unsigned()),
        padding_bytes: Some(7200),
        fps: Some(fps),
        quality: Some(0),
        ..common::webrtc_row()
    };
    (1..SECONDS * 10).map(row).collect()
}

#[test]
fn frames_that_the_encoder_was_set_to_leave_out_are_not_missing() {
    // While a frame is left out, more bytes probe for capacity than a frame has: only the encoder's setting shows it.
    let probe = |n: i64| (0..6).map(move |at| (n * FRAME_NS + (5 + at) * MS, VIDEO, 1200, None));
    let probes: Vec<Sent> = (1..SECONDS * 30).step_by(3).flat_map(probe).collect();
    let (link, frames) = one_of_three_left_out(&probes);
    let why = |webrtc| {
        let records = records_of(link.clone(), frames.clone(), 700_000);
        explain(&trial(SECONDS as f64), &Records { webrtc, ..records })
    };
    let set = why(set_to(20));
    assert!(set.effects.iter().all(|it| it.effect == Effect::FrameRate), "{}", sentences(&set));
    assert_eq!(main_cause(&set, &[Effect::FrameRate]), (Cause::EncoderChoice, 0.0));
    for webrtc in [set_to(30), Vec::new()] {
        let missing = why(webrtc);
        assert_eq!(main_cause(&missing, &[Effect::Missing]), (Cause::Unknown, 0.0));
    }
}

/// What an encoder made: of three frames it took the first and the third.
fn encoder_rows() -> Vec<EncoderRow> {
    let row = |frame: i64| EncoderRow {
        t_ns: Time::from_nanos((frame * FRAME_NS + 4 * MS).cast_unsigned()),
        endpoint: "camera".into(),
        quality: 0,
        frame,
        captured_ns: Time::from_nanos((frame * FRAME_NS).cast_unsigned()),
        encoded_bytes: Some(2500),
        key: frame == 0,
        target_bps: BitRate::from_kbps(700),
        width: 640,
        height: 360,
        fps: 20,
        missed: 0,
        lost: false,
    };
    (0..SECONDS * 30).filter(|frame| frame % 3 != 1).map(row).collect()
}

#[test]
fn the_encoders_own_record_says_which_frames_it_left_out() {
    // Packets that probe hide from the link that a frame was left out.
    let probe = |n: i64| (0..6).map(move |at| (n * FRAME_NS + (5 + at) * MS, VIDEO, 1200, None));
    let probes: Vec<Sent> = (1..SECONDS * 30).step_by(3).flat_map(probe).collect();
    let (link, frames) = one_of_three_left_out(&probes);
    let records = records_of(link, frames, 700_000);
    let why = explain(&trial(SECONDS as f64), &Records { encoder: encoder_rows(), ..records });
    assert!(why.effects.iter().all(|it| it.effect == Effect::FrameRate), "{}", sentences(&why));
    assert_eq!(main_cause(&why, &[Effect::FrameRate]), (Cause::EncoderChoice, 0.0));
    let sentence = &why.effects[0].sentence;
    assert!(sentence.ends_with(" because it was set to 20 frames per second"), "{sentence}");
    let step = why.effects[0].chain.last().unwrap();
    let numbers = ["the encoder left out ", " of "];
    let left_out = number(&step.what, numbers[0], numbers[1]).unwrap();
    let all = number(&step.what, numbers[1], " frames").unwrap();
    let rows = &encoder_rows()[step.evidence.first..=step.evidence.last];
    let made = rows.iter().filter(|row| row.encoded_bytes.is_some()).count() as i64;
    assert_eq!(all - left_out, made, "{}", step.evidence);
}

#[test]
fn frames_that_another_encoder_made_are_left_out_by_the_one_that_is_sent() {
    let (link, frames) = one_of_three_left_out(&[]);
    let sent = |row: FrameRow| FrameRow { rung_bps: row.sent_ns.map(|_| 700_000), ..row };
    let records = records_of(link, frames.into_iter().map(sent).collect(), 700_000);
    let other = |frame: i64| EncoderRow {
        frame,
        captured_ns: Time::from_nanos((frame * FRAME_NS).cast_unsigned()),
        target_bps: BitRate::from_kbps(2000),
        fps: 15,
        ..encoder_rows()[0].clone()
    };
    let own = encoder_rows().into_iter().map(|row| EncoderRow { quality: 1, ..row });
    let encoder = (0..SECONDS * 30).map(other).chain(own).collect();
    let why = explain(&trial(SECONDS as f64), &Records { encoder, ..records });
    assert!(why.effects.iter().all(|it| it.effect == Effect::FrameRate), "{}", sentences(&why));
    assert_eq!(main_cause(&why, &[Effect::FrameRate]), (Cause::EncoderChoice, 0.0));
    let set = " because it was set to 20 frames per second";
    assert!(why.effects[0].sentence.ends_with(set), "{}", sentences(&why));
}

#[test]
fn frames_that_a_busy_encoder_missed_are_not_its_choice() {
    let (link, frames) = one_of_three_left_out(&[]);
    let records = records_of(link, frames, 700_000);
    let missed = |row: EncoderRow| EncoderRow { missed: (row.frame % 3 == 2).into(), ..row };
    let encoder = encoder_rows().into_iter().map(missed).collect();
    let why = explain(&trial(SECONDS as f64), &Records { encoder, ..records });
    assert_eq!(main_cause(&why, &[Effect::FrameRate]), (Cause::ServerProcessor, 0.0));
    assert!(sentences(&why).contains("the encoder was busy and missed "), "{}", sentences(&why));
}

/// A sender of prepared versions, of which the lowest has 1.04 Mbit/s, that may send less.
fn allowed(target_bps: i64) -> Vec<RateRow> {
    let row = |tenth: i64| RateRow {
        t_ns: tenth * 100 * MS,
        endpoint: "camera".into(),
        period_ns: 100 * MS,
        target_bps,
        send_bps: 0,
        media_bps: 1_040_000,
        loss_ratio: None,
        rtt_ns: None,
        recv_bps: None,
        quantiser: Some(14),
        encoder_bps: Some(1_040_000),
        queue_bytes: 0,
        broken: None,
        jitter_ns: None,
    };
    (1..SECONDS * 10).map(row).collect()
}

#[test]
fn frames_that_a_rate_control_does_not_allow_are_left_out_by_the_sender() {
    // Packets that probe hide from the link that a frame was left out.
    let probe = |n: i64| (0..6).map(move |at| (n * FRAME_NS + (5 + at) * MS, VIDEO, 1200, None));
    let probes: Vec<Sent> = (1..SECONDS * 30).step_by(3).flat_map(probe).collect();
    let (link, frames) = one_of_three_left_out(&probes);
    let why = |rate| {
        let records = records_of(link.clone(), frames.clone(), 700_000);
        explain(&trial(SECONDS as f64), &Records { rate, ..records })
    };
    let below = why(allowed(180_000));
    let sentence = sentences(&below);
    assert!(below.effects.iter().all(|it| it.effect == Effect::FrameRate), "{sentence}");
    let numbers = "its rate control allowed 180 kbit/s, and its lowest version has 1 Mbit/s";
    assert!(sentence.contains(numbers), "{sentence}");
    let above = why(allowed(2_000_000));
    assert_eq!(main_cause(&above, &[Effect::Missing]), (Cause::Unknown, 0.0));
}

/// The rate control of a sender of prepared versions allows no more in the middle of frame 60. The end of it and the next 29
/// frames are not sent, and the viewer shows what it has of it when frame 90 comes. By then the rate control allows more.
#[test]
fn a_frame_that_a_rate_control_cuts_is_its_choice() {
    let is_sent = |(.., frame): &Sent| !frame.is_some_and(|number| (61..90).contains(&number));
    let sent: Vec<Sent> = video(|_| 700_000).into_iter().filter(is_sent).collect();
    let passed = carried("rate = '8 Mbit/s'\ndelay = '20 ms'", sent);
    let mut frames = frames_of(&passed, |_| true);
    let came = frames.iter().find(|row| row.frame == 90).and_then(|row| row.received_ns);
    for row in frames.iter_mut().filter(|row| row.frame == 60) {
        (row.received_ns, row.displayed_ns) = (came, came);
    }
    let gone = |frame| FrameRow {
        frame,
        captured_ns: None,
        encoded_bytes: None,
        sent_ns: None,
        received_ns: None,
        displayed_ns: None,
        decodable: false,
        ..frames[0].clone()
    };
    let frames = frames.iter().cloned().chain((61..90).map(gone)).collect();
    let link = passed.into_iter().map(|(row, _)| row).collect();
    let records = records_of(link, frames, 700_000);
    let rate = allowed(2_000_000);
    let why = explain(&trial(SECONDS as f64), &Records { rate, ..records });
    assert_eq!(main_cause(&why, &[Effect::Freeze]), (Cause::EncoderChoice, 0.0));
    let sentence = sentences(&why);
    assert!(sentence.contains("the sender left out 28 of 29 frames"), "{sentence}");
}

#[test]
fn frames_that_were_never_encoded_are_not_missing() {
    let (link, frames) = one_of_three_left_out(&[]);
    let why = explained_of(&trial(SECONDS as f64), link, frames, 700_000);
    assert!(why.effects.iter().all(|it| it.effect == Effect::FrameRate), "{}", sentences(&why));
    assert_eq!(main_cause(&why, &[Effect::FrameRate]), (Cause::EncoderChoice, 0.0));
    assert!(why.effects[0].sentence.contains("the encoder left out"), "{}", sentences(&why));
}

#[test]
fn a_frame_without_an_explanation_has_no_cause() {
    // Packet 120 is lost; from 5 s on frames are late, and nothing says why.
    let toml =
        "rate = '8 Mbit/s'\ndelay = '20 ms'\ndown.loss = { model = 'list', packets = [120] }";
    let passed = carried(toml, video(|_| 700_000));
    let mut frames = frames_of(&passed, |number| number == 62);
    for frame in frames.iter_mut().filter(|frame| frame.frame > 150) {
        frame.received_ns = frame.received_ns.map(|at| at + 400 * MS);
        frame.displayed_ns = frame.displayed_ns.map(|at| at + 400 * MS);
    }
    let link = passed.into_iter().map(|(row, _)| row).collect();
    let why = explained_of(&trial(SECONDS as f64), link, frames, 800_000);
    assert_eq!(main_cause(&why, &[Effect::Late]), (Cause::Unknown, 0.0), "{}", sentences(&why));
    let late = why.effects.iter().find(|it| it.effect == Effect::Late).unwrap();
    let missing = "not known: table `layers` of both hosts may show it";
    assert!(late.sentence.contains(missing), "{}", late.sentence);
}

#[test]
fn a_sender_that_holds_nothing_back_does_not_pace() {
    let passed = carried("rate = '8 Mbit/s'\ndelay = '20 ms'", video(|_| 700_000));
    let mut frames = frames_of(&passed, |_| true);
    for frame in frames.iter_mut().filter(|frame| frame.frame > 150) {
        let later = |at: Option<i64>| at.map(|at| at + 400 * MS);
        frame.sent_ns = later(frame.sent_ns);
        frame.received_ns = later(frame.received_ns);
        frame.displayed_ns = later(frame.displayed_ns);
    }
    let link = passed.into_iter().map(|(row, _)| row).collect();
    let why = explained_of(&trial(SECONDS as f64), link, frames, 800_000);
    assert_eq!(main_cause(&why, &[Effect::Late]), (Cause::Unknown, 0.0), "{}", sentences(&why));
}

#[test]
fn what_else_a_link_does_is_named() {
    let link = "rate = '8 Mbit/s'\ndelay = '20 ms'\n";
    let cases = [
        ("jitter = { distribution = 'normal', sd = '120 ms' }", Cause::Jitter),
        ("reorder = { chance = '3 %', by = '400 ms' }", Cause::Reordering),
        ("down.changes = [{ at = '3 s', delay = '500 ms' }]", Cause::Delay),
        ("corrupt = '4 %'", Cause::Corruption),
    ];
    for (toml, cause) in cases {
        let passed = carried(&format!("{link}{toml}"), video(|_| 700_000));
        // Whoever receives a corrupted packet drops it.
        let whole = passed.iter().cloned().map(|(row, frame)| {
            let dropped = row.cause == Some(LinkCause::Corrupt);
            let verdict = if dropped { Verdict::Dropped } else { row.verdict };
            (LinkRow { verdict, ..row }, frame)
        });
        let frames = frames_of(&whole.collect::<Vec<_>>(), |_| true);
        let rows = passed.into_iter().map(|(row, _)| row).collect();
        let why = explained_of(&trial(SECONDS as f64), rows, frames, 800_000);
        assert!(share(&why, SEEN, cause) >= 0.8, "{cause}: {}", sentences(&why));
    }
}

#[test]
fn a_limit_without_a_queue_is_a_policer() {
    let toml = "rate = '700 kbit/s'\nburst = '3 kB'\ndelay = '20 ms'\nqueue = { limit = '1p' }";
    let bps = |at: i64| if at > 4000 * MS { 1_400_000 } else { 300_000 };
    let why = explained(toml, video(bps), |_| true, 1_500_000);
    assert!(share(&why, SEEN, Cause::Policer) >= 0.8, "{}", sentences(&why));
}

/// The rates of link `access`, a tenth of a second each.
fn rates(bps: impl Fn(i64) -> f64) -> LinkRate {
    LinkRate {
        link: "access".into(),
        direction: Direction::Down,
        span_s: 0.1,
        rate_bps: (0..SECONDS * 10).map(bps).collect(),
    }
}

#[test]
fn a_link_that_carries_nothing_is_an_outage() {
    let toml = "rate = '4 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '3000p' }\n\
                down.changes = [{ at = '3 s', rate = '0 bit/s' }, { at = '5 s', rate = '4 Mbit/s' }]";
    let passed = carried(toml, video(|_| 700_000));
    let frames = frames_of(&passed, |_| true);
    let mut trial = trial(SECONDS as f64);
    trial.link_rates.push(rates(|tenth| if (30..50).contains(&tenth) { 0.0 } else { 4e6 }));
    let link = passed.into_iter().map(|(row, _)| row).collect();
    let why =
        explain(&trial, &Records { link, frames, flows: vec![receives()], ..Records::default() });
    assert!(share(&why, SEEN, Cause::Outage) >= 0.9, "{}", sentences(&why));
    assert!(
        sentences(&why).contains("the link carried nothing for 2.0 s at 3.0 s"),
        "{}",
        sentences(&why)
    );
}

#[test]
fn the_way_to_a_relay_counts_as_well() {
    const UPSTREAM: &str = "udp 10.0.0.9:5004>10.0.0.1:5002";
    let narrow = "rate = '700 kbit/s'\ndelay = '20 ms'\nqueue = { limit = '5 s' }";
    let bps = |at: i64| if (2000 * MS..6000 * MS).contains(&at) { 1_200_000 } else { 300_000 };
    let first = carried(narrow, video(bps));
    let on = |(row, frame): &(LinkRow, Option<i64>)| {
        Some((row.departed_ns?, VIDEO, row.size_bytes.cast_unsigned(), *frame))
    };
    let second = carried("rate = '50 Mbit/s'", first.iter().filter_map(on).collect());
    let frames = frames_of(&second, |_| true);
    let upstream = first.into_iter().map(|(row, _)| LinkRow {
        link: "up".into(),
        flow: UPSTREAM.into(),
        ..row
    });
    let link = upstream.chain(second.into_iter().map(|(row, _)| row)).collect();
    let to_relay = suiro_record::tables::FlowRow {
        endpoint: "camera".into(),
        role: suiro_record::words::FlowRole::Sender,
        local: "*:5004".into(),
        remote: "10.0.0.1:5002".into(),
        peer: Some("relay".into()),
        ..receives()
    };
    let mut from_relay = receives();
    from_relay.peer = Some("relay".into());
    let flows = vec![from_relay, to_relay];
    let why =
        explain(&trial(SECONDS as f64), &Records { link, frames, flows, ..Records::default() });
    assert!(share(&why, SEEN, Cause::LinkRate) >= 0.9, "{}", sentences(&why));
}

/// A player that opens a connection for the segment that it waits for.
fn waits_for_a_handshake() -> Records {
    let mut records = waits_for_a_manifest();
    records.requests.retain(|row| row.t_ns < 3100 * MS);
    let mut last = request(RequestKind::Segment, 3100, 7990, Some(4000));
    last.handshake_ns = Some(4700 * MS);
    records.requests.push(last);
    let again =
        |row: &TcpRow| TcpRow { socket: Text::from("10.0.0.1:80>10.0.0.2:4001"), ..row.clone() };
    let later: Vec<TcpRow> =
        records.tcp.iter().filter(|row| row.t_ns > 7800 * MS).map(again).collect();
    records.tcp.extend(later);
    records.access.retain(|row| row.t_ns < 3100 * MS);
    records
}

#[test]
fn a_request_that_waits_for_a_handshake_was_asked() {
    let why = explain(&trial(9.0), &waits_for_a_handshake());
    assert!(share(&why, &[Effect::Stall], Cause::Handshake) >= 0.8, "{}", sentences(&why));
    assert!(share(&why, &[Effect::Stall], Cause::NoRequest) < 0.1, "{}", sentences(&why));
}

/// A segment that comes at last after a timeout of two seconds, and what the link did to its first packets.
fn waits_for_a_timeout(lost: bool) -> Why {
    let mut records = waits_for_a_manifest();
    records.requests.retain(|row| row.t_ns < 3100 * MS);
    records.access.retain(|row| row.t_ns < 3100 * MS);
    records.requests.push(request(RequestKind::Segment, 3100, 7990, Some(4000)));
    records.tcp = (0..900)
        .map(|n| {
            let at = n * 10;
            let waits = (3100..7900).contains(&at);
            TcpRow {
                in_flight_bytes: if waits { 14_480 } else { 0 },
                timeouts: Some(i64::from(at >= 4500)),
                acked_bytes: if waits { 270_000 } else { 270_000 + i64::from(at >= 7900) * 90_000 },
                unsent_bytes: Some(if waits { 60_000 } else { 0 }),
                ..sample(at, if at < 3100 { 0 } else { (at.min(7900) - 3100) * 1000 })
            }
        })
        .collect();
    let packet = |n: i64| LinkRow {
        flow: "tcp 10.0.0.1:80>10.0.0.2:4000".into(),
        verdict: if lost { Verdict::Dropped } else { Verdict::Delivered },
        cause: lost.then_some(LinkCause::Loss),
        departed_ns: None,
        ..carried("rate = '8 Mbit/s'", vec![(3100 * MS + n * MS, VIDEO, 1500, None)]).remove(0).0
    };
    records.link = (0..10).map(packet).collect();
    explain(&trial(9.0), &records)
}

#[test]
fn a_timeout_has_the_cause_that_the_link_shows() {
    let why = waits_for_a_timeout(true);
    assert!(share(&why, &[Effect::Stall], Cause::Loss) >= 0.8, "{}", sentences(&why));
    assert!(sentences(&why).contains("the link lost 10 packets"), "{}", sentences(&why));
    let why = waits_for_a_timeout(false);
    assert!(share(&why, &[Effect::Stall], Cause::Timeout) >= 0.8, "{}", sentences(&why));
}

#[test]
fn a_slow_start_has_a_cause() {
    let mut records = waits_for_a_handshake();
    records.player.clear();
    records.player.push(watched(0, PlayerState::Starting, 0.0, 0.0));
    records
        .player
        .extend((80..90).map(|n| watched(n * 100, PlayerState::Playing, 900.0, n as f64)));
    let why = explain(&trial(9.0), &records);
    let start = why.effects.iter().find(|it| it.effect == Effect::Startup).expect("a slow start");
    assert_eq!((start.from_ns, start.to_ns), (0, 8000 * MS));
    assert!(start.sentence.starts_with("waited to begin for 8.0 s at 0.0 s"), "{}", start.sentence);
}

/// The rows of table `link` that evidence selects, by its filter.
fn selected<'r>(evidence: &suiro_analysis::why::Evidence, link: &'r [LinkRow]) -> Vec<&'r LinkRow> {
    let holds = |row: &LinkRow, condition: &str| match condition.split_once('=') {
        Some(("link", name)) => *row.link == *name,
        Some(("direction", word)) => row.direction.name() == word,
        Some(("flow", name)) => *row.flow == *name,
        Some(("verdict", word)) => row.verdict.name() == word,
        Some(("cause", word)) => row.cause.is_some_and(|cause| cause.name() == word),
        Some(("attempts", count)) => row.attempts == Some(count.parse().unwrap()),
        Some(("t_ns", span)) => {
            let (from, to) = span.split_once("..").expect("FROM..TO");
            (from.parse().unwrap()..to.parse().unwrap()).contains(&row.t_ns)
        }
        _ if condition == "queue_packets<2" => row.queue_packets < 2,
        _ => {
            let (columns, least) = condition.split_once('>').expect("a known one");
            let took = match columns {
                "attempts" => row.attempts.map(u64::cast_signed),
                "dequeued_ns-t_ns" => row.dequeued_ns.map(|at| at - row.t_ns),
                "scheduled_ns-dequeued_ns" => {
                    row.scheduled_ns.zip(row.dequeued_ns).map(|(a, b)| a - b)
                }
                _ => panic!("{condition}"),
            };
            took > Some(least.parse::<i64>().unwrap())
        }
    };
    let all = &link[evidence.first..=evidence.last];
    let conditions = || evidence.filter.split(',').filter(|condition| !condition.is_empty());
    all.iter().filter(|row| conditions().all(|condition| holds(row, condition))).collect()
}

/// The number before a word, or after another.
fn number(text: &str, before: &str, after: &str) -> Option<i64> {
    let (_, rest) = text.split_once(before)?;
    let (number, _) = rest.split_once(after)?;
    number.trim().parse().ok()
}

#[test]
fn every_number_of_packets_is_that_of_the_rows_named() {
    let toml = [
        "rate = '8 Mbit/s'\ndelay = '20 ms'\nloss = '10 %'",
        "rate = '1 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '5 s' }",
        "rate = '1 Mbit/s'\nburst = '3 kB'\ndelay = '20 ms'\nqueue = { limit = '1p' }",
        "rate = '8 Mbit/s'\ndelay = '20 ms'\njitter = { distribution = 'normal', sd = '120 ms' }",
        "rate = '1 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '100 ms' }",
    ];
    let mut checked = [0; 4];
    for toml in toml {
        let bps = |at: i64| if at > 3000 * MS { 1_400_000 } else { 400_000 };
        let passed = carried(toml, video(bps));
        let frames = frames_of(&passed, |_| true);
        let link: Vec<LinkRow> = passed.into_iter().map(|(row, _)| row).collect();
        let why = explained_of(&trial(SECONDS as f64), link.clone(), frames, 1_500_000);
        for step in why.effects.iter().flat_map(|it| &it.chain) {
            if step.evidence.table != "link" {
                continue;
            }
            let rows = selected(&step.evidence, &link);
            let what = &step.what;
            let wait = |row: &&LinkRow| row.dequeued_ns.map(|at| (at - row.t_ns + MS / 2) / MS);
            let took = |row: &&LinkRow| Some((row.scheduled_ns? - row.dequeued_ns? + MS / 2) / MS);
            let count = Some(rows.len() as i64);
            let told = [
                (number(what, "the link lost ", " packet"), count),
                (number(what, "dropped ", " packet"), count),
                (number(what, "packets waited up to ", " ms"), rows.iter().filter_map(wait).max()),
                (number(what, "packets took up to ", " ms"), rows.iter().filter_map(took).max()),
            ];
            for (place, (told, found)) in told.into_iter().enumerate() {
                if told.is_some() {
                    assert_eq!(told, found, "{what} <- {}", step.evidence);
                    checked[place] += 1;
                }
            }
            let sentence = why.effects.iter().find(|it| it.chain.contains(step)).unwrap();
            assert!(told_in(&sentence.sentence, what), "{what}: {}", sentence.sentence);
        }
    }
    assert!(checked.iter().all(|count| *count > 0), "{checked:?}");
}

/// Of the packets whose lifetime was over, the link lost those that had been sent, however weakly, and the queue dropped the others.
#[test]
fn what_grew_too_old_is_told_by_whether_it_had_been_sent() {
    let lossy = "rate = '8 Mbit/s'\ndelay = '20 ms'\nloss = '10 %'";
    let mut passed = carried(lossy, video(|_| 400_000));
    for (number, (row, _)) in passed.iter_mut().enumerate() {
        row.attempts = Some(if number % 4 == 0 { 0 } else { 3 });
        row.cause = row.cause.map(|_| LinkCause::Lifetime);
    }
    let frames = frames_of(&passed, |_| true);
    let link: Vec<LinkRow> = passed.into_iter().map(|(row, _)| row).collect();
    let why = explained_of(&trial(SECONDS as f64), link.clone(), frames, 1_500_000);
    let (mut lost, mut dropped) = (0, 0);
    for Step { what, evidence } in why.effects.iter().flat_map(|it| &it.chain) {
        let by_link = number(what, "the link lost ", " packet");
        let by_queue = number(what, "the queue dropped ", " packet");
        let Some(told) = by_link.or(by_queue) else { continue };
        let rows = selected(evidence, &link);
        assert_eq!(told, rows.len() as i64, "{what} <- {evidence}");
        assert!(rows.iter().all(|row| (row.attempts > Some(0)) == by_link.is_some()), "{what}");
        let sum = if by_link.is_some() { &mut lost } else { &mut dropped };
        *sum += told;
    }
    assert!(lost > 0, "{lost} lost and {dropped} dropped: {}", sentences(&why));
}

/// Whether a sentence has the words of a step.
fn told_in(sentence: &str, what: &str) -> bool {
    sentence.contains(what)
}

/// A segment whose last byte came at 7.9 s, of a sender that sent all of it in ten packets at 3.1 s: at each 10 ms what is not
/// acknowledged yet, and how many timeouts there were.
fn waits_for_its_last_packets(
    left: impl Fn(i64) -> i64,
    timeouts: impl Fn(i64) -> i64,
    link: Vec<LinkRow>,
) -> Why {
    let mut records = waits_for_a_manifest();
    records.requests.retain(|row| row.t_ns < 3100 * MS);
    records.access.retain(|row| row.t_ns < 3100 * MS);
    records.requests.push(request(RequestKind::Segment, 3100, 7990, Some(4000)));
    let row = |n: i64| {
        let at = n * 10;
        let left = if at < 3100 { 0 } else { left(at) };
        TcpRow {
            in_flight_bytes: left,
            timeouts: Some(timeouts(at)),
            acked_bytes: 270_000 + if at < 3100 { 0 } else { 14_720 - left },
            ..sample(at, if at < 3100 { 0 } else { (at.min(7900) - 3100) * 1000 })
        }
    };
    records.tcp = (0..900).map(row).collect();
    records.link = link;
    explain(&trial(9.0), &records)
}

/// Ten packets of the player's connection that come to a link at 3.1 s.
fn ten_packets(toml: &str) -> Vec<LinkRow> {
    let sent = (0..10).map(|n| (3100 * MS + n * MS / 10, VIDEO, 1500, None)).collect();
    let of_tcp =
        |(row, _): (LinkRow, _)| LinkRow { flow: "tcp 10.0.0.1:80>10.0.0.2:4000".into(), ..row };
    carried(toml, sent).into_iter().map(of_tcp).collect()
}

#[test]
fn what_is_in_flight_has_met_what_happened_when_it_was_sent() {
    // Of ten packets the queue drops five. The others are acknowledged until 3.6 s, half a second after the loss.
    let link = ten_packets("rate = '120 kbit/s'\ndelay = '20 ms'\nqueue = { limit = '4p' }");
    assert_eq!(link.iter().filter(|row| row.verdict == Verdict::Dropped).count(), 5);
    let left = |at: i64| match at {
        ..7900 => 14_720 - (at - 3100).clamp(0, 500) / 100 * 1472,
        _ => 0,
    };
    let why = waits_for_its_last_packets(left, |_| 0, link);
    assert!(share(&why, &[Effect::Stall], Cause::LinkRate) >= 0.8, "{}", sentences(&why));
    assert_eq!(share(&why, &[Effect::Stall], Cause::RoundTrip), 0.0, "{}", sentences(&why));
}

#[test]
fn a_timer_that_was_backed_off_is_to_blame_once_the_queue_is_empty() {
    // The queue drops five of ten packets and is empty after half a second; the sender sends again after 4.8 s.
    let link = ten_packets("rate = '120 kbit/s'\ndelay = '20 ms'\nqueue = { limit = '4p' }");
    let left = |at: i64| if at < 7900 { 7360 } else { 0 };
    let why = waits_for_its_last_packets(left, |at| i64::from(at >= 7800), link);
    let of = |cause| share(&why, &[Effect::Stall], cause);
    assert!(of(Cause::Timeout) >= 0.6, "{}", sentences(&why));
    assert!(of(Cause::LinkRate) >= 0.2, "{}", sentences(&why));
}

#[test]
fn a_timeout_is_premature_while_the_link_has_the_packets() {
    // Ten packets take 4.8 s at this rate; the sender's timer expires after 0.3 s.
    let link = ten_packets("rate = '25 kbit/s'\ndelay = '20 ms'\nqueue = { limit = '10 s' }");
    assert!(link.iter().all(|row| row.verdict == Verdict::Delivered));
    let left = |at: i64| if at < 7900 { 14_720 } else { 0 };
    let why = waits_for_its_last_packets(left, |at| i64::from(at >= 3400), link);
    assert!(share(&why, &[Effect::Stall], Cause::LinkRate) >= 0.9, "{}", sentences(&why));
}

#[test]
fn a_stall_that_outlasts_its_segment_is_explained_to_its_end() {
    let records = || {
        let mut records = waits_for_a_manifest();
        records.requests.retain(|row| row.t_ns < 3100 * MS);
        records.access.retain(|row| row.t_ns < 3100 * MS);
        // The segment was there after 1.1 s, and the player's process did not run until 7.9 s.
        records.requests.push(request(RequestKind::Segment, 3100, 4200, Some(4000)));
        records
    };
    let away = LatenessRow {
        t_ns: Time::from_millis(7900),
        endpoint: "player".into(),
        source: LatenessSource::Heartbeat,
        period_ns: Duration::from_millis(1000),
        looks: 1,
        mean_ns: None,
        worst_from_ns: Time::from_millis(4200),
        worst_ns: Duration::from_millis(3700),
        stopped: true,
    };
    let why = explain(&trial(9.0), &Records { lateness: vec![away], ..records() });
    assert!(share(&why, &[Effect::Stall], Cause::ClientProcessor) >= 0.7, "{}", sentences(&why));
}

pub fn quic_row() -> QuicRow {
    QuicRow {
        t_ns: Time::ZERO,
        endpoint: "camera".into(),
        session: 1,
        remote: None,
        congestion: "cubic".into(),
        cwnd_bytes: Some(20_000),
        ssthresh_bytes: None,
        in_flight_bytes: Some(20_000),
        waiting_bytes: None,
        srtt_ns: Duration::from_millis(40),
        min_rtt_ns: None,
        pacing_bps: None,
        sent_packets: None,
        sent_bytes: None,
        received_bytes: None,
        lost_packets: None,
        congestion_events: None,
        target_bps: None,
    }
}

/// Media over QUIC whose acknowledgements of 4.0 to 4.6 s are lost: what is captured meanwhile waits in QUIC and is sent at
/// once. If they are not `lost`, it waits for something else.
fn held_for_acknowledgements(lost: bool) -> Why {
    const ACKS: &str = "udp 10.0.0.2:5006>10.0.0.1:5004";
    let held = |at: i64| (4000 * MS..4600 * MS).contains(&at);
    let at_once =
        |(at, flow, size, frame): Sent| (if held(at) { 4600 * MS } else { at }, flow, size, frame);
    let passed = carried(
        "rate = '3 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '1 s' }",
        video(|_| 700_000).into_iter().map(at_once).collect(),
    );
    let frames = frames_of(&passed, |_| true);
    let acks = carried(
        "rate = '3 Mbit/s'\ndelay = '20 ms'",
        (0..SECONDS * 50).map(|n| (n * 20 * MS, ACKS, 60, None)).collect(),
    );
    let dropped = |row: &LinkRow| lost && held(row.t_ns);
    let acks = acks.into_iter().map(|(row, _)| LinkRow {
        direction: Direction::Up,
        verdict: if dropped(&row) { Verdict::Dropped } else { row.verdict },
        cause: dropped(&row).then_some(LinkCause::Loss),
        ..row
    });
    let quic = (0..SECONDS * 100).map(|n| QuicRow {
        t_ns: Time::from_millis(n.cast_unsigned() * 10),
        waiting_bytes: Some(if held(n * 10 * MS) { 30_000 } else { 0 }),
        ..quic_row()
    });
    let flows = vec![FlowRow { peer: Some("camera".into()), ..receives() }];
    let link = passed.into_iter().map(|(row, _)| row).chain(acks).collect();
    let quic = quic.collect();
    explain(&trial(SECONDS as f64), &Records { link, frames, flows, quic, ..Records::default() })
}

#[test]
fn what_waited_for_acknowledgements_and_comes_at_once_is_not_the_links_rate() {
    let why = held_for_acknowledgements(true);
    assert!(share(&why, SEEN, Cause::AckPath) >= 0.9, "{}", sentences(&why));
    let why = held_for_acknowledgements(false);
    assert_eq!(share(&why, SEEN, Cause::AckPath), 0.0, "{}", sentences(&why));
}
