//! WebRTC statistics of a browser.

use suiro_foreign::{Account, Effect, Source, explain};
use suiro_record::words::Cause;

use crate::made::ZERO_NS;

/// A report each second for 20 s: 30 frames and 100 packets more each time, unless `change` says otherwise.
fn report(second: u64, change: &dyn Fn(u64) -> (u64, u64, u64)) -> String {
    let (mut frames, mut packets, mut lost) = (0, 0, 0);
    for n in 1..=second {
        let (f, p, l) = change(n);
        (frames, packets, lost) = (frames + f, packets + p, lost + l);
    }
    let froze = (1..=second).filter(|n| change(*n).0 == 0).count();
    let t_ms = ZERO_NS as u64 / 1_000_000 + second * 1000;
    format!(
        "[{{\"id\":\"IT1\",\"type\":\"inbound-rtp\",\"timestamp\":{t_ms},\"kind\":\"video\",\"ssrc\":4660,\
         \"framesDecoded\":{frames},\"packetsReceived\":{packets},\"packetsLost\":{lost},\"nackCount\":{},\
         \"freezeCount\":{froze},\"totalFreezesDuration\":{froze}.0,\"bytesReceived\":{}}},\
         {{\"id\":\"CP1\",\"type\":\"candidate-pair\",\"timestamp\":{t_ms},\"currentRoundTripTime\":0.05}}]",
        lost / 10,
        packets * 1000
    )
}

/// Reports in lines.
pub fn reports_with(change: &dyn Fn(u64) -> (u64, u64, u64)) -> String {
    (0..20).map(|second| report(second, change) + "\n").collect()
}

pub fn reports() -> String {
    reports_with(&|n| if n == 10 { (0, 60, 40) } else { (30, 100, 0) })
}

/// A dump of webrtc-internals with a fall of the size, for which the browser names the CPU.
pub fn dump() -> String {
    let series = |name: &str, values: &str| {
        format!(
            "\"OT-1-{name}\": {{\"startTime\": \"2026-11-26T00:00:00.000Z\", \"endTime\": \"2026-11-26T00:00:04.000Z\", \
             \"statsType\": \"outbound-rtp\", \"values\": \"{values}\"}}"
        )
    };
    format!(
        "{{\"getUserMedia\": [], \"PeerConnections\": {{\"7-1\": {{\"updateLog\": [\
         {{\"time\": \"2026-11-26T00:00:03.000Z\", \"type\": \"iceconnectionstatechange\", \"value\": \"\\\"failed\\\"\"}}], \
         \"stats\": {{{}, {}, {}, {}}}}}}}, \"UserAgent\": \"test\"}}",
        series("frameHeight", "[720, 720, 360, 360, 720]"),
        series(
            "qualityLimitationReason",
            "[\\\"none\\\", \\\"none\\\", \\\"cpu\\\", \\\"cpu\\\", \\\"none\\\"]"
        ),
        series(
            "kind",
            "[\\\"video\\\", \\\"video\\\", \\\"video\\\", \\\"video\\\", \\\"video\\\"]"
        ),
        series("[framesSent/s]", "[30, 30, 30, 30, 30]"),
    )
}

/// A dump with a freeze at the earliest time that fits into 64 bits.
pub fn early_dump() -> String {
    let series = |name: &str, values: &str| {
        format!(
            "\"IT-1-{name}\": {{\"startTime\": \"1677-09-21T00:12:44Z\", \"endTime\": \"1677-09-21T00:12:45Z\", \
             \"statsType\": \"inbound-rtp\", \"values\": \"{values}\"}}"
        )
    };
    format!(
        "{{\"PeerConnections\": {{\"7-1\": {{\"stats\": {{{}, {}, {}}}}}}}}}",
        series("kind", "[\\\"video\\\", \\\"video\\\"]"),
        series("freezeCount", "[0, 1]"),
        series("totalFreezesDuration", "[0, 2]"),
    )
}

fn account(text: &str) -> Account {
    explain(&[Source { name: "x.json", content: text.as_bytes() }]).unwrap()
}

#[test]
fn a_freeze_with_lost_packets_is_a_loss_and_one_without_any_packets_is_not_known() {
    let lost = account(&reports());
    assert_eq!(lost.effects.len(), 1, "{lost:#?}");
    let freeze = &lost.effects[0];
    assert_eq!((freeze.effect, freeze.cause), (Effect::Freeze, Cause::Loss));
    assert_eq!(freeze.because, "40 of 300 packets were lost, and requested again in 4 NACKs");
    let with_repairs = |(n, line): (usize, &str)| {
        let repairs = if n < 10 { 0 } else { 36 };
        let repairs = format!("\"retransmittedPacketsReceived\":{repairs},\"nackCount\"");
        line.replace("\"nackCount\"", &repairs) + "\n"
    };
    let repaired = account(&reports().lines().enumerate().map(with_repairs).collect::<String>());
    assert!(repaired.effects[0].because.ends_with("in 4 NACKs; 36 came again"), "{repaired:?}");
    let silent = account(&reports_with(&|n| if n == 10 { (0, 5, 0) } else { (30, 100, 0) }));
    let freeze = &silent.effects[0];
    assert_eq!((freeze.effect, freeze.cause), (Effect::Freeze, Cause::Unknown));
    assert!(freeze.because.contains("5 packets came, where 95 are usual"), "{freeze:?}");
    assert_eq!(account(&reports_with(&|_| (30, 100, 0))).effects.len(), 0);
}

/// Reports with a freeze, in which no packet is lost, and two pairs of candidates.
fn of_two_pairs(selected: &str) -> Account {
    let more = |second: u64| {
        let t_ms = ZERO_NS as u64 / 1_000_000 + second * 1000;
        let other = if second == 10 { 0.9 } else { 0.05 };
        format!(
            ",{{\"id\":\"CP2\",\"type\":\"candidate-pair\",\"timestamp\":{t_ms},\"currentRoundTripTime\":{other}}},\
             {{\"id\":\"T1\",\"type\":\"transport\",\"timestamp\":{t_ms},\"selectedCandidatePairId\":\"{selected}\"}}]\n"
        )
    };
    let reports = reports_with(&|n| if n == 10 { (0, 60, 0) } else { (30, 100, 0) });
    let lines =
        reports.lines().zip(0..).map(|(line, n)| line.trim_end_matches(']').to_owned() + &more(n));
    account(&lines.collect::<String>())
}

#[test]
fn a_round_trip_is_that_of_the_selected_pair() {
    let cause = |selected| of_two_pairs(selected).effects[0].cause;
    assert_eq!((cause("CP1"), cause("CP2")), (Cause::Unknown, Cause::Delay));
}

#[test]
fn one_of_something_is_no_plural() {
    let reports = reports_with(&|n| if n == 10 { (0, 60, 0) } else { (30, 100, 0) });
    let keys = |(n, line): (usize, &str)| {
        let keys = format!("\"pliCount\":{},\"nackCount\"", u32::from(n >= 10));
        line.replace("\"nackCount\"", &keys) + "\n"
    };
    let account = account(&reports.lines().enumerate().map(keys).collect::<String>());
    assert_eq!(account.effects[0].because, "1 key frame had to be requested");
    let text = &account.streams[0].text;
    assert!(text.contains("1 freeze of 1.0 s in all"), "{text}");
}

#[test]
fn a_dump_has_the_encoders_limits_and_connections_that_failed() {
    let account = account(&dump());
    let told: Vec<_> = account.effects.iter().map(|it| (it.effect, it.cause, &*it.what)).collect();
    assert_eq!(
        told,
        [
            (Effect::Quality, Cause::ServerProcessor, "frames of 360p instead of 720p"),
            (Effect::NoConnection, Cause::Unknown, "connection 7-1 did not come about (failed)"),
        ]
    );
    assert_eq!(
        (account.effects[0].from_ns, account.effects[0].to_ns),
        (2_000_000_000, 4_000_000_000)
    );
}

#[test]
fn a_freeze_has_the_cause_that_two_captures_of_its_stream_show() {
    let mut stream = crate::made::stream();
    for it in stream.iter_mut().filter(|it| (9_000..10_200).contains(&(it.t_ns / crate::made::MS)))
    {
        it.came_ns = None;
    }
    // The receiver's capture is 300 ms behind; its statistics are by a clock of their own, near enough.
    let [near, far] = crate::made::both(&stream);
    let statistics = reports_with(&|n| if n == 10 { (0, 5, 0) } else { (30, 100, 0) });
    let source = |name, content| Source { name, content };
    let account = explain(&[
        source("near", &near[..]),
        source("far", &far[..]),
        source("stats", statistics.as_bytes()),
    ])
    .unwrap();
    let told: Vec<_> = account.effects.iter().map(|it| (it.effect, it.cause)).collect();
    assert_eq!(told, [(Effect::Freeze, Cause::Outage)], "{account:#?}");
    assert_eq!(account.effects[0].evidence.len(), 3);
}
