//! Head-of-line blocking: a response that waits behind a lost packet of another one on the same TCP connection.

use suiro_analysis::why::Why;
use suiro_analysis::{Records, explain};
use suiro_record::tables::{LinkRow, QuicRow, RequestRow, TcpRow};
use suiro_record::words::{Cause, Direction, Effect, LinkCause, RequestKind, Track, Verdict};

use crate::common::{packet, trial};
use crate::why::{MS, answers, request, sample, waits_for_a_manifest};
use crate::why_http3;
use crate::why_lies::{sentences, share};

const STALL: &[Effect] = &[Effect::Stall];
const DATA: &str = "tcp 10.0.0.1:80>10.0.0.2:4000";
const ACKS: &str = "tcp 10.0.0.2:4000>10.0.0.1:80";
const SOUND: &str = "/sound.m4s";
/// The sound's response, and that of the segment which the stall waits for: their places in both tables.
const OTHER: usize = 5;
const AWAITED: usize = 6;
/// From the request to its end, which is the time that is explained.
const EXPLAINED_MS: f64 = 3890.0;
const SHARED: &str = "at least 10 packets behind a lost one had arrived and waited for its repair, \
                      the first for 3.6 s, because TCP delivers in order; 1 other response of the \
                      connection was under way, too";

/// A packet with 1448 bytes that comes 20 ms after it was sent.
fn sent(at_ms: i64) -> LinkRow {
    let came = Some((at_ms + 20) * MS);
    LinkRow {
        t_ns: at_ms * MS,
        flow: DATA.into(),
        size_bytes: 1500,
        payload_bytes: Some(1448),
        dequeued_ns: Some(at_ms * MS),
        scheduled_ns: came,
        departed_ns: came,
        ..packet(Direction::Down)
    }
}

fn lost(at_ms: i64) -> LinkRow {
    LinkRow {
        verdict: Verdict::Dropped,
        cause: Some(LinkCause::Loss),
        scheduled_ns: None,
        departed_ns: None,
        ..sent(at_ms)
    }
}

fn acknowledgement(at_ms: i64) -> LinkRow {
    LinkRow {
        flow: ACKS.into(),
        size_bytes: 52,
        payload_bytes: Some(0),
        direction: Direction::Up,
        ..sent(at_ms)
    }
}

/// The sender's samples: it sends something again after one time, and knows at another that all has come.
fn samples(again_ms: i64, known_ms: i64) -> Vec<TcpRow> {
    let row = |at: i64| TcpRow {
        in_flight_bytes: if (4260..known_ms).contains(&at) { 15_928 } else { 0 },
        acked_bytes: if at < known_ms { at.min(4250) * 100 } else { 500_000 },
        retransmits: i64::from(at > again_ms),
        timeouts: Some(i64::from(at > again_ms)),
        ..sample(at, (at.clamp(4250, known_ms) - 4250) * 1000)
    };
    (0..900).map(|n| row(n * 10)).collect()
}

/// A player stalls from 4.2 s to 8.0 s, as it waits for a segment of 14,000 bytes that it asked for at 4.1 s. At 4.255 s a packet
/// of the sound for later is lost, at 4.3 s the segment is ready. It comes from 4.33 s on, and the repair of the lost packet at
/// 7.925 s.
fn waits() -> Records {
    let mut records = waits_for_a_manifest();
    let mut requests = records.requests;
    requests.retain(|row| row.t_ns < 3100 * MS);
    requests.push(RequestRow {
        url: SOUND.into(),
        track: Some(Track::Audio),
        ..request(RequestKind::Segment, 3100, 7960, Some(5000))
    });
    let awaited = request(RequestKind::Segment, 4100, 7990, Some(4000));
    requests.push(RequestRow { body_bytes: 14_000, ..awaited });
    let ready = |row: &RequestRow| match row.t_ns / MS {
        3100 => 3130 * MS,
        4100 => 4300 * MS,
        _ => row.done_ns.unwrap_or(0) - MS,
    };
    records.access = answers(&requests, ready);
    records.requests = requests;
    records.link = vec![lost(4255)];
    records.link.extend((0..10).map(|n| sent(4310 + n)));
    records.link.push(sent(7905));
    records.tcp = samples(7905, 7930);
    records
}

fn why(records: &Records) -> Why {
    explain(&trial(9.0), records)
}

/// Fails unless the segment waited for so long behind what it has nothing of.
fn assert_waited(records: &Records, ms: f64) {
    let why = why(records);
    let own = share(&why, STALL, Cause::HeadOfLine);
    assert!((own - ms / EXPLAINED_MS).abs() < 1e-9, "{own}: {}", sentences(&why));
}

/// After the repair come its own 1448 bytes at most, so 12,552 of the segment came before it. Of its ten packets nine have more
/// than that: the second one came at 4.331 s.
#[test]
fn what_had_come_behind_a_packet_of_another_response_waited() {
    let records = waits();
    assert_waited(&records, 7925.0 - 4331.0);
    let why = why(&records);
    let stall = why.effects.iter().find(|it| it.effect == Effect::Stall).unwrap();
    assert_eq!(stall.cause(), Cause::HeadOfLine, "{}", stall.sentence);
    let clause = "the link lost 1 packet of another response on the connection, and at least 13 kB \
                  of the segment had come and waited for its repair, the first of it for 3.6 s";
    assert_eq!(stall.because.as_deref(), Some(clause), "{}", stall.sentence);
    let evidence: Vec<String> = stall.chain.iter().map(|step| step.evidence.to_string()).collect();
    for rows in ["link[0]", "access[6]"] {
        assert!(evidence.iter().any(|it| it == rows), "{evidence:?}");
    }
}

/// The repair is lost as well, and a later one comes at 7.925 s: only its acknowledgement shows that. The two packets that come
/// after the segment's own may have 2,896 of its bytes. Of the ten, eight then have more than the rest: the third came at 4.332 s.
#[test]
fn a_repair_that_is_lost_prolongs_the_wait() {
    let mut records = waits();
    records.link.extend([lost(4605), sent(4607)]);
    records.tcp = samples(4605, 7950);
    // At the earliest, the packet of 4.607 s was the repair.
    assert_waited(&records, 4627.0 - 4332.0);
    records.link.extend([acknowledgement(4628), acknowledgement(7925)]);
    // An acknowledgement may be a millisecond late.
    assert_waited(&records, 7924.0 - 4332.0);
    // One that left the link at 7.939 s may not have been processed at 7.94 s, the last time at which the sender knew of no more.
    records.link.push(acknowledgement(7919));
    assert_waited(&records, 7918.0 - 4332.0);
}

/// Three packets of the sound are lost, before and after a packet of it that comes.
#[test]
fn packets_that_were_lost_are_named_in_one_step() {
    let mut records = waits();
    let rest = records.link.split_off(1);
    records.link.extend([lost(4256), sent(4257), lost(4258)]);
    records.link.extend(rest);
    let why = why(&records);
    let stall = why.effects.iter().find(|it| it.effect == Effect::Stall).unwrap();
    let says = "the link lost 3 packets of other responses on the connection";
    assert!(stall.sentence.contains(says), "{}", stall.sentence);
    let lost = "3 packets were lost before the answer was ready";
    let steps: Vec<String> = stall.chain.iter().map(|step| step.what.clone()).collect();
    let step = stall.chain.iter().find(|step| step.what == lost);
    let evidence = step.unwrap_or_else(|| panic!("{steps:?}")).evidence.to_string();
    let rows = format!(
        "link[0..3]{{link=access,direction=down,flow={DATA},t_ns=4255000000..4258000001,\
         verdict=dropped,cause=loss,payload_bytes>0}}"
    );
    assert_eq!(evidence, rows);
}

/// Fails if head-of-line blocking is named, and the loss is not, once the records have been changed so. The sentences then.
fn not_blocked(what: &str, edit: impl Fn(&mut Records)) -> String {
    let mut records = waits();
    edit(&mut records);
    let why = why(&records);
    let told = sentences(&why);
    assert_eq!(share(&why, STALL, Cause::HeadOfLine), 0.0, "{what}: {told}");
    assert!(share(&why, STALL, Cause::Loss) >= 0.8, "{what}: {told}");
    told
}

#[test]
fn where_it_is_not_known_whose_bytes_were_lost_all_that_waited_is_counted() {
    let told = not_blocked("the packet may be the segment's own", |it| {
        it.access[AWAITED].answered_ns = 4240 * MS;
    });
    assert!(told.contains(SHARED), "{told}");
    let told = not_blocked("the other is needed at the same time", |it| {
        it.requests[OTHER].media_ms = Some(4000);
    });
    assert!(told.contains(SHARED), "{told}");
}

#[test]
fn what_was_repaired_before_the_origin_had_the_request_kept_nothing_of_it_back() {
    // The repair came at 7.925 s.
    let told = |asked_ms: i64| {
        let mut records = waits();
        records.access[AWAITED].t_ns = asked_ms * MS;
        records.access[AWAITED].answered_ns = asked_ms * MS;
        sentences(&why(&records))
    };
    assert!(told(4240).contains(SHARED), "{}", told(4240));
    assert!(!told(7930).contains("TCP delivers in order"), "{}", told(7930));
}

#[test]
fn a_response_does_not_wait_for_another_unless_the_records_show_it() {
    let assert_nothing = |what: &str, edit: fn(&mut Records)| {
        let told = not_blocked(what, edit);
        assert!(!told.contains("TCP delivers in order"), "{what}: {told}");
    };
    assert_nothing("no other response is under way, as over HTTP/1.1", |it| {
        it.requests.retain(|row| &*row.url != SOUND);
        it.access.retain(|row| &*row.path != SOUND);
    });
    assert_nothing("the other has a connection of its own", |it| {
        it.access[OTHER].peer = "10.0.0.2:4001".into();
    });
    assert_nothing("the connection of the other is not known", |it| {
        it.access.retain(|row| &*row.path != SOUND);
    });
    assert_nothing("the other was complete before the repair", |it| {
        it.requests[OTHER].done_ns = Some(5000 * MS);
    });
    assert_nothing("nothing was sent again", |it| {
        it.tcp.iter_mut().for_each(|row| row.retransmits = 0);
    });
    assert_nothing("the link makes copies", |it| {
        it.link.push(LinkRow { cause: Some(LinkCause::Duplicate), ..sent(1000) });
    });
    assert_nothing("two links carried the connection", |it| {
        it.link.push(LinkRow { link: "other".into(), ..sent(1000) });
    });
    assert_nothing("all of the segment came after the repair", |it| {
        let own = it.link[1..=10].iter_mut();
        own.zip(0..).for_each(|(row, n)| *row = sent(7910 + n));
    });
}

/// Streams of QUIC do not wait for one another.
#[test]
fn nothing_waits_for_another_response_over_http3() {
    let told = not_blocked("HTTP/3", |it| {
        it.tcp.clear();
        let row = |at: i64| QuicRow {
            lost_packets: Some(u64::from(at > 7905)),
            ..why_http3::sample(at, 500_000, if (4260..7930).contains(&at) { 15_928 } else { 0 })
        };
        it.quic = (0..900).map(|n| row(n * 10)).collect();
        it.flows.push(why_http3::asks());
        it.link.iter_mut().for_each(|row| row.flow = why_http3::DATA.into());
    });
    assert!(!told.contains("TCP"), "{told}");
}
