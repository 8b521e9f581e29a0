//! Metrics and series of a video flow and a TCP flow that share a link.

use crate::common;
use suiro_analysis::{Panel, Records, summarise, timeline};
use suiro_record::tables::{FlowRow, LinkRow, RateRow};
use suiro_record::words::{Carries, Direction, FlowRole, LinkCause, Transport};
use suiro_record::{LinkTotals, Trial};
use suiro_units::Time;

pub const MS: i64 = 1_000_000;
pub const GOP: i64 = 1001 * MS;

pub fn packet(t_ns: i64, flow: &str, size_bytes: i64, verdict: &str) -> LinkRow {
    let arrives = (verdict == "delivered").then_some(t_ns + MS);
    LinkRow {
        t_ns,
        link: "ethernet".into(),
        direction: Direction::Down,
        packet: 0,
        flow: flow.into(),
        size_bytes,
        payload_bytes: Some(size_bytes - 40),
        queue_bytes: 0,
        queue_packets: 0,
        verdict: verdict.parse().unwrap(),
        cause: (verdict == "dropped").then_some(LinkCause::Queue),
        ecn_marked: false,
        dequeued_ns: arrives,
        scheduled_ns: arrives,
        departed_ns: arrives,
        attempts: None,
    }
}

pub fn report(t_ns: i64, target_bps: i64, loss_ratio: Option<f64>) -> RateRow {
    RateRow {
        t_ns,
        endpoint: "film".into(),
        period_ns: GOP,
        target_bps,
        send_bps: 0,
        media_bps: 0,
        loss_ratio,
        rtt_ns: Some(20 * MS),
        recv_bps: None,
        quantiser: Some(4),
        encoder_bps: Some(3_000_000),
        queue_bytes: 0,
        broken: None,
        jitter_ns: None,
    }
}

pub const RTP: &str = "udp 10.0.0.1:5004>10.0.0.3:5004";
const RTCP: &str = "udp 10.0.0.1:5005>10.0.0.3:5005";
pub const TCP: &str = "tcp 10.0.0.2:40000>10.0.0.4:5201";

/// 31 GoP times; TCP begins a second before the video. The video takes 1001 B and then 3003 B per GoP
/// time, its RTCP 100 B more; TCP 2102 B; neither a connection of 10 B nor one of a few seconds is a rival.
pub fn records() -> Records {
    let mut link = vec![packet(0, TCP, 9999, "delivered")];
    link.push(packet(500 * MS, "tcp 10.0.0.2:40002>10.0.0.4:5201", 10, "delivered"));
    for second in 5..9 {
        let t_ns = 1000 * MS * second;
        link.push(packet(t_ns, "tcp 10.0.0.2:80>10.0.0.4:40000", 1500, "delivered"));
    }
    for gop in 0..30 {
        let t_ns = GOP * (gop + 1);
        link.push(packet(t_ns, RTP, if gop % 2 == 0 { 1001 } else { 3003 }, "delivered"));
        link.push(packet(t_ns + 10 * MS, RTCP, 100, "delivered"));
        link.push(packet(t_ns + 20 * MS, TCP, 2102, "delivered"));
    }
    for lost in 0..20 {
        link.push(packet(GOP * 2 + lost * MS, RTP, 1500, "dropped"));
    }
    let rate = vec![report(GOP, 2_000_000, None), report(3 * GOP, 4_000_000, Some(0.25))];
    Records { link, rate, ..Records::default() }
}

#[test]
fn metrics_by_hand() {
    let metrics = summarise(&common::trial(31.5 * 1.001), &records());
    let is = |name: &str, want: f64| {
        let value = metrics[&format!("fairness.{name}")].unwrap();
        assert!((value - want).abs() < want.abs() * 1e-9, "{name}: {value}, not {want}");
    };
    // 2002 B and 100 B in 1.001 s.
    is("video_mean_bps", 2102.0 * 8.0 / 1.001);
    is("tcp_mean_bps", 2102.0 * 8.0 / 1.001);
    is("friendliness", 1.0);
    is("jain_ratio", 1.0);
    // ±1001 B about 2102 B in thirty GoP times.
    is("video_variation", (30.0_f64 / 29.0).sqrt() * 1001.0 / 2102.0);
    is("video_loss_ratio", 0.25);
    is("rtt_mean_ms", 20.0);
    // 2 Mbit/s from 1 to 3 GoP times, then 4 Mbit/s for the last control period.
    let mean = (2.0 * 2.0 + 4.0) / 3.0;
    let squares = (2.0 * 4.0 + 16.0) / 3.0;
    is("target_variation", f64::sqrt(squares - mean * mean) / mean);
    is("video_flows", 1.0);
    is("tcp_flows", 1.0);
    // Five GoP times hold at most one more of one kind than of the other.
    is("jain_short_ratio", {
        let x = 2102.0 + 1001.0 / 5.0;
        let y = 2102.0 - 1001.0 / 5.0;
        let jain = |a: f64| (a + 2102.0).powi(2) / (2.0 * (a * a + 2102.0 * 2102.0));
        f64::midpoint(jain(x), jain(y))
    });
    assert_eq!(metrics["fairness.convergence_s"], Some(0.0));
    assert_eq!(metrics["fairness.tcp_variation"], Some(0.0));
    assert_eq!(metrics["fairness.self_ratio"], None, "one video flow alone");
}

#[test]
fn copies_that_a_link_makes_are_no_packets_of_a_flow() {
    // A copy of which a bit was flipped is not marked as a copy.
    for cause in [LinkCause::Duplicate, LinkCause::Corrupt] {
        let mut records = records();
        (0..).zip(&mut records.link).for_each(|(number, row)| row.packet = number);
        let arrived = records.link.iter().filter(|row| row.departed_ns.is_some());
        let copies: Vec<LinkRow> =
            arrived.map(|row| LinkRow { cause: Some(cause), ..row.clone() }).collect();
        records.link.extend(copies);
        records.link.sort_by_key(|row| row.t_ns);
        let want = [
            ("fairness.video_mean_bps", Some(2102.0 * 8.0 / 1.001)),
            ("fairness.video_loss_ratio", Some(0.25)),
        ];
        common::assert_metrics(&common::trial(31.5 * 1.001), &records, &want);
    }
}

pub const OTHER_RTP: &str = "udp 10.0.0.2:5004>10.0.0.3:5014";

/// 100 GoP times with a packet of each of two films, of these sizes; a size of 0 is no packet.
pub fn two_films(sizes: impl Fn(i64) -> [i64; 2]) -> Records {
    let mut link = Vec::new();
    for gop in 0..100 {
        let [first, other] = sizes(gop);
        for (n, flow, size) in [(0, RTP, first), (1, OTHER_RTP, other)] {
            if size > 0 {
                link.push(packet(GOP * (gop + 1) + n * MS, flow, size, "delivered"));
            }
        }
    }
    Records { link, rate: vec![report(GOP, 2_000_000, None)], ..Records::default() }
}

/// Jain's index of two flows.
pub fn jain(a: f64, b: f64) -> f64 {
    (a + b).powi(2) / (2.0 * (a * a + b * b))
}

#[test]
fn what_was_before_a_flow_began_is_not_unfair_to_it() {
    let records = two_films(|gop| match gop {
        0..40 => [2000, 0],
        40..45 => [1000, 100],
        _ => [1000, 1000],
    });
    // In 60 GoP times together 1000 B and (5 · 100 + 55 · 1000) ∕ 60 B each.
    let (all, late) = (1000.0, 55_500.0 / 60.0);
    let want = [
        ("fairness.jain_ratio", Some(jain(all, late))),
        ("fairness.self_ratio", Some(jain(all, late))),
        ("fairness.share_min_ratio", Some(late / f64::midpoint(all, late))),
        ("fairness.share_max_ratio", Some(all / f64::midpoint(all, late))),
        ("fairness.rate_ratio", Some(all / late)),
        // Of five GoP times, the third after the arrival begins the first with at least 500 B on average.
        ("fairness.convergence_s", Some(3.0 * 1.001)),
        // The first flow settles at once, alone and together; the other one after five GoP times.
        ("fairness.settling_s", Some(5.0 * 1.001 / 3.0)),
    ];
    common::assert_metrics(&common::trial(101.5 * 1.001), &records, &want);
}

#[test]
fn a_flow_that_resumes_settles_again() {
    let records = two_films(|gop| match gop {
        0..30 | 55.. => [1000, 1000],
        30..50 => [1000, 0],
        _ => [1000, 100],
    });
    let paused = 75_500.0 / 80.0;
    let want = [
        ("fairness.jain_ratio", Some(jain(1000.0, paused))),
        ("fairness.rate_ratio", Some(1000.0 / paused)),
        ("fairness.convergence_s", Some(0.0)),
        // Five spans of a flow; only after the pause it takes five GoP times.
        ("fairness.settling_s", Some(1.001)),
    ];
    common::assert_metrics(&common::trial(101.5 * 1.001), &records, &want);
    // So do they if reports go on in the pause.
    let mut reporting = Records { flows: told(), ..records };
    for gop in 30..50 {
        let report = packet(GOP * (gop + 1), "udp 10.0.0.2:5005>10.0.0.3:5015", 1, "delivered");
        reporting.link.push(report);
    }
    for (carries, ends) in [
        (Carries::Video, ["*:5004", "10.0.0.3:5014"]),
        (Carries::Feedback, ["*:5005", "10.0.0.3:5015"]),
    ] {
        let [local, remote] = ends.map(Into::into);
        let row = FlowRow { endpoint: "other".into(), carries, local, remote, ..told()[0].clone() };
        reporting.flows.push(row);
    }
    common::assert_metrics(&common::trial(101.5 * 1.001), &reporting, &want);
    // A gap of four GoP times is no pause.
    let records = two_films(|gop| if (30..34).contains(&gop) { [1000, 0] } else { [1000, 1000] });
    let want = [("fairness.rate_ratio", Some(100.0 / 96.0)), ("fairness.settling_s", Some(0.0))];
    common::assert_metrics(&common::trial(101.5 * 1.001), &records, &want);
}

const STATIONS: [&str; 6] =
    ["lan1-server1", "lan1-server2", "lan1-router", "lan2-router", "lan2-client1", "lan2-client2"];

/// A trial with two hubs: the links of their stations have what they sent, as direction up.
fn hubs() -> Trial {
    let links = STATIONS.map(|link| LinkTotals::new(link, Direction::Up)).to_vec();
    Trial { links, ..common::trial(31.5 * 1.001) }
}

/// 30 GoP times with 2002 B of video and 100 B of sender reports, 2102 B of TCP, 200 B of receiver reports and 100 B of
/// acknowledgements, each across both hubs. 20 receiver reports and 10 video packets are lost.
fn across_hubs() -> Records {
    let sent =
        |link: &str, row: LinkRow| LinkRow { link: link.into(), direction: Direction::Up, ..row };
    let mut link = Vec::new();
    for gop in 1..31 {
        let mut cross = |after_ms: i64, flow: &str, size: i64, stations: [&str; 2]| {
            let row = packet(GOP * gop + after_ms * MS, flow, size, "delivered");
            link.extend(stations.map(|station| sent(station, row.clone())));
        };
        cross(0, RTP, 2002, ["lan1-server1", "lan2-router"]);
        cross(10, RTCP, 100, ["lan1-server1", "lan2-router"]);
        cross(20, TCP, 2102, ["lan1-server2", "lan2-router"]);
        cross(30, "udp 10.0.0.3:5005>10.0.0.1:5005", 200, ["lan2-client1", "lan1-router"]);
        cross(40, "tcp 10.0.0.4:5201>10.0.0.2:40000", 100, ["lan2-client2", "lan1-router"]);
    }
    for lost in 0..20 {
        let t_ns = GOP * 2 + lost * MS;
        let report = packet(t_ns, "udp 10.0.0.3:5005>10.0.0.1:5005", 200, "dropped");
        link.push(sent("lan2-client1", report));
        if lost % 2 == 0 {
            link.push(sent("lan2-router", packet(t_ns, RTP, 1500, "dropped")));
        }
    }
    for row in link.iter_mut().filter(|row| row.flow.starts_with("tcp 10.0.0.4")) {
        row.payload_bytes = Some(0);
    }
    Records { link, rate: vec![report(GOP, 2_000_000, None)], ..Records::default() }
}

/// What the endpoints of [`across_hubs`] reported.
pub fn told() -> Vec<FlowRow> {
    let row = |endpoint: &str, protocol, carries, (local, remote): (&str, &str)| FlowRow {
        t_ns: suiro_units::Time::ZERO,
        endpoint: endpoint.into(),
        role: if endpoint == "viewer" { FlowRole::Receiver } else { FlowRole::Sender },
        protocol,
        local: local.into(),
        remote: remote.into(),
        carries,
        flows: 1,
        closed_ns: None,
        peer: None,
    };
    let (udp, tcp) = (Transport::Udp, Transport::Tcp);
    vec![
        row("film", udp, Carries::Video, ("*:5004", "10.0.0.3:5004")),
        row("film", udp, Carries::Feedback, ("*:5005", "10.0.0.3:5005")),
        row("viewer", udp, Carries::Video, ("*:5004", "*:*")),
        row("viewer", udp, Carries::Feedback, ("*:5005", "*:*")),
        row("sink", tcp, Carries::Load, ("*:5201", "*:*")),
    ]
}

#[test]
fn at_hubs_the_way_with_more_bytes_is_the_flow() {
    for flows in [Vec::new(), told()] {
        let records = Records { flows, ..across_hubs() };
        let rate = Some(2102.0 * 8.0 / 1.001);
        common::assert_metrics(
            &hubs(),
            &records,
            &[
                ("fairness.video_mean_bps", rate),
                ("fairness.tcp_mean_bps", rate),
                ("fairness.video_flows", Some(1.0)),
                ("fairness.tcp_flows", Some(1.0)),
                ("fairness.jain_ratio", Some(1.0)),
                // 60 packets of the video and its sender reports, and 10 that were dropped.
                ("fairness.video_loss_ratio", Some(10.0 / 70.0)),
            ],
        );
    }
}

/// One film down a link and one up, each with the receiver reports that come back; a TCP down and one up.
#[test]
fn what_goes_up_does_not_compete_by_what_comes_back() {
    let mut link = Vec::new();
    for gop in 1..31 {
        let mut sent = |after_ms: i64, direction, flow: &str, size: i64| {
            let row = packet(GOP * gop + after_ms * MS, flow, size, "delivered");
            link.push(LinkRow { direction, ..row });
        };
        sent(0, Direction::Down, RTP, 2002);
        sent(1, Direction::Up, "udp 10.0.0.3:5005>10.0.0.1:5005", 200);
        sent(2, Direction::Up, "udp 10.0.0.3:6004>10.0.0.1:6004", 2002);
        sent(3, Direction::Down, "udp 10.0.0.1:6005>10.0.0.3:6005", 200);
        sent(4, Direction::Down, TCP, 2002);
        sent(5, Direction::Up, "tcp 10.0.0.4:5201>10.0.0.2:40000", 100);
        sent(6, Direction::Up, "tcp 10.0.0.4:40001>10.0.0.2:5201", 2002);
        sent(7, Direction::Down, "tcp 10.0.0.2:5201>10.0.0.4:40001", 100);
    }
    let back = FlowRow { endpoint: "back".into(), ..told()[0].clone() };
    let back = |carries, local: &str, remote: &str| FlowRow {
        carries,
        local: local.into(),
        remote: remote.into(),
        ..back.clone()
    };
    let mut flows = told();
    flows.push(back(Carries::Video, "*:6004", "10.0.0.1:6004"));
    flows.push(back(Carries::Feedback, "*:6005", "10.0.0.1:6005"));
    for flows in [Vec::new(), flows] {
        let records = Records { flows, link: link.clone(), ..records() };
        let rate = Some(2002.0 * 8.0 / 1.001);
        let want = [
            ("fairness.video_flows", Some(1.0)),
            ("fairness.video_mean_bps", rate),
            ("fairness.tcp_flows", Some(1.0)),
            ("fairness.tcp_mean_bps", rate),
            ("fairness.jain_ratio", Some(1.0)),
            ("fairness.convergence_s", Some(0.0)),
        ];
        common::assert_metrics(&common::trial(31.5 * 1.001), &records, &want);
    }
}

#[test]
fn reports_in_both_directions_are_the_overhead_of_media() {
    let sent = 30.0 * 2002.0 + 10.0 * 1500.0;
    let reports = 30.0 * (100.0 + 200.0) + 20.0 * 200.0;
    // The last hub got ten packets of video that it lost, the first one twenty reports.
    let mut records = Records { flows: told(), ..across_hubs() };
    let want = [("fairness.feedback_ratio", Some(reports / sent))];
    common::assert_metrics(&hubs(), &records, &want);
    records.flows.retain(|row| row.carries != Carries::Feedback);
    common::assert_metrics(&hubs(), &records, &[("fairness.feedback_ratio", None)]);
}

#[test]
fn goodput_across_hubs_counts_each_flow_once_and_no_acknowledgement() {
    // 40 B of each packet are headers.
    let bytes = 30.0 * ((2002.0 - 40.0) + (100.0 - 40.0) + (2102.0 - 40.0) + (200.0 - 40.0));
    let goodput = bytes * 8.0 / (31.5 * 1.001);
    common::assert_metrics(&hubs(), &across_hubs(), &[("flow.goodput_mean_bps", Some(goodput))]);
    let links = [Direction::Down, Direction::Up].map(|way| LinkTotals::new("lan2-client1", way));
    let linked = Trial { links: links.to_vec(), ..hubs() };
    let only = |row: &LinkRow| &*row.link == "lan2-client1";
    let up = across_hubs().link.into_iter().filter(only).collect();
    let records = Records { link: up, ..Records::default() };
    common::assert_metrics(&linked, &records, &[("flow.goodput_mean_bps", None)]);
}

#[test]
fn stations_of_hubs_have_a_figure_of_throughput_of_their_own() {
    let timeline = timeline(&hubs(), &across_hubs(), 10);
    let panel = |name: &str| timeline.series.iter().find(|it| it.name == name).map(|it| it.panel);
    for station in STATIONS {
        let name = format!("link.{station}.up.throughput_bps");
        assert_eq!(panel(&name), Some(Panel::ThroughputStations), "{name}");
    }
}

#[test]
fn a_control_interval_is_the_time_between_changes_of_the_target() {
    let mut records = records();
    // Rows in which the target stays do not end an interval; the first and the last are not whole.
    let targets = [(1, 2), (2, 2), (3, 4), (4, 4), (5, 8), (6, 8), (9, 3), (10, 3)];
    records.rate = targets.map(|(gop, mbps)| report(gop * GOP, mbps * 1_000_000, None)).to_vec();
    let interval = |records: &Records| summarise(&common::trial(31.5 * 1.001), records)["fairness.interval_mean_s"];
    // Changes at 3, 5 and 9 GoP times.
    assert!((interval(&records).unwrap() - 3.003).abs() < 1e-9);
    records.rate.truncate(4);
    assert_eq!(interval(&records), None, "one change");
}

#[test]
fn without_a_rate_control_nobody_competes() {
    let records = Records { rate: Vec::new(), ..records() };
    let metrics = summarise(&common::trial(10.0), &records);
    assert!(!metrics.keys().any(|name| name.starts_with("fairness.")));
}

/// Two viewers of one WebRTC camera and one of a relay, on one link; each packet of a flow has this size.
pub fn real_time(sizes: [(&str, i64); 3]) -> Records {
    let row = |endpoint: &str, role, local: &str, remote: &str| FlowRow {
        t_ns: Time::ZERO,
        endpoint: endpoint.into(),
        role,
        protocol: Transport::Udp,
        local: local.into(),
        remote: remote.into(),
        carries: Carries::Video,
        flows: 1,
        closed_ns: None,
        peer: None,
    };
    let mut link = Vec::new();
    for gop in 1..31 {
        for (n, (flow, size)) in (0..).zip(sizes) {
            link.push(packet(GOP * gop + n * MS, flow, size, "delivered"));
        }
    }
    let flows = vec![
        row("camera", FlowRole::Sender, "10.0.0.1:6000", "10.0.0.3:7000"),
        row("camera", FlowRole::Sender, "10.0.0.1:6000", "10.0.0.4:7000"),
        row("player", FlowRole::Receiver, "10.0.0.5:8000", "10.0.0.2:4443"),
    ];
    let webrtc_sessions = vec![common::webrtc_session("camera")];
    let moq_sessions = vec![common::moq_session("player")];
    Records { link, flows, webrtc_sessions, moq_sessions, ..Records::default() }
}

pub const CALLS: [&str; 2] = ["udp 10.0.0.1:6000>10.0.0.3:7000", "udp 10.0.0.1:6000>10.0.0.4:7000"];
pub const QUIC: &str = "udp 10.0.0.2:4443>10.0.0.5:8000";

#[test]
fn connections_of_webrtc_and_of_quic_share_a_link() {
    let records = real_time([(CALLS[0], 300), (CALLS[1], 100), (QUIC, 800)]);
    // Rates are as 3 to 1 to 8; an equal share is 4.
    common::assert_metrics(
        &common::trial(31.5 * 1.001),
        &records,
        &[
            ("fairness.video_flows", Some(3.0)),
            ("fairness.tcp_flows", Some(0.0)),
            ("fairness.jain_ratio", Some(144.0 / (3.0 * 74.0))),
            ("fairness.share_min_ratio", Some(0.25)),
            ("fairness.share_max_ratio", Some(2.0)),
            ("fairness.webrtc_share_ratio", Some(1.0 / 3.0)),
            ("fairness.moq_share_ratio", Some(2.0 / 3.0)),
            ("fairness.tcp_share_ratio", None),
            ("fairness.target_variation", None),
        ],
    );
}

#[test]
fn a_connection_alone_on_its_link_is_compared_with_none() {
    let mut records = real_time([(CALLS[0], 300), (CALLS[1], 100), (QUIC, 800)]);
    for row in records.link.iter_mut().filter(|row| &*row.flow == QUIC) {
        row.link = "other".into();
    }
    let trial = common::trial(31.5 * 1.001);
    let mean = |bytes: f64| Some(bytes * 8.0 / 1.001);
    let of_two = [
        ("fairness.video_flows", Some(3.0)),
        ("fairness.video_mean_bps", mean(400.0)),
        ("fairness.share_max_ratio", Some(1.5)),
        ("fairness.rate_ratio", Some(3.0)),
        ("fairness.moq_share_ratio", None),
        ("fairness.settling_s", Some(0.0)),
    ];
    common::assert_metrics(&trial, &records, &of_two);
    // The other call's feedback does not compete: it uses the link in the direction in which little is sent.
    let back = |row: &LinkRow| LinkRow {
        flow: "udp 10.0.0.4:7000>10.0.0.1:6000".into(),
        size_bytes: 50,
        direction: Direction::Down,
        ..row.clone()
    };
    let up: Vec<LinkRow> =
        records.link.iter().filter(|row| &*row.flow == CALLS[1]).map(back).collect();
    for row in records.link.iter_mut().filter(|row| &*row.flow == CALLS[1]) {
        row.direction = Direction::Up;
    }
    records.link.extend(up);
    let each_alone = [
        ("fairness.video_flows", Some(3.0)),
        ("fairness.video_mean_bps", mean(400.0)),
        ("fairness.jain_ratio", None),
        ("fairness.self_ratio", None),
        ("fairness.convergence_s", None),
        ("fairness.share_max_ratio", None),
        ("fairness.webrtc_share_ratio", None),
        ("fairness.settling_s", Some(0.0)),
    ];
    common::assert_metrics(&trial, &records, &each_alone);
    // All stations of a segment share its medium.
    let totals = |link: &str| LinkTotals {
        segment: Some("cell".into()),
        ..LinkTotals::new(link, Direction::Down)
    };
    let cell = Trial { links: vec![totals("ethernet"), totals("other")], ..trial.clone() };
    let of_two = [("fairness.rate_ratio", Some(800.0 / 300.0))];
    common::assert_metrics(&cell, &records, &of_two);
}

#[test]
fn a_call_and_a_tcp_on_paths_of_their_own_are_not_compared() {
    let mut records = real_time([(CALLS[0], 300), (TCP, 100), (QUIC, 0)]);
    records.link.retain(|row| row.size_bytes > 0);
    let row = FlowRow {
        endpoint: "sink".into(),
        protocol: Transport::Tcp,
        carries: Carries::Load,
        local: "*:5201".into(),
        remote: "*:*".into(),
        ..records.flows[0].clone()
    };
    records.flows.push(row);
    let trial = common::trial(31.5 * 1.001);
    common::assert_metrics(&trial, &records, &[("fairness.friendliness", Some(3.0))]);
    for row in records.link.iter_mut().filter(|row| &*row.flow == TCP) {
        row.link = "other".into();
    }
    let want = [
        ("fairness.friendliness", None),
        ("fairness.jain_ratio", None),
        ("fairness.tcp_share_ratio", None),
        ("fairness.tcp_mean_bps", Some(100.0 * 8.0 / 1.001)),
        ("fairness.video_mean_bps", Some(300.0 * 8.0 / 1.001)),
    ];
    common::assert_metrics(&trial, &records, &want);
}

#[test]
fn one_flow_of_real_time_video_counts_as_rtp_does() {
    let rtp = two_films(|gop| if gop < 50 { [1000, 0] } else { [2000, 0] });
    let trial = common::trial(101.5 * 1.001);
    let link = |flow: &str| {
        let renamed = |row: &LinkRow| LinkRow { flow: flow.into(), ..row.clone() };
        rtp.link.iter().map(renamed).collect::<Vec<_>>()
    };
    let call =
        Records { link: link(CALLS[0]), ..real_time([(CALLS[0], 0), (CALLS[1], 0), (QUIC, 0)]) };
    let moq = Records { link: link(QUIC), ..real_time([(CALLS[0], 0), (CALLS[1], 0), (QUIC, 0)]) };
    for records in [rtp, call, moq] {
        let want = [
            ("fairness.video_flows", Some(1.0)),
            ("fairness.video_mean_bps", Some(1500.0 * 8.0 / 1.001)),
            ("fairness.video_variation", Some((100.0_f64 / 99.0).sqrt() / 3.0)),
            ("fairness.video_loss_ratio", Some(0.0)),
            // The second half has the later rate, which begins after 50 GoP times.
            ("fairness.settling_s", Some(50.0 * 1.001)),
            ("fairness.jain_ratio", None),
            ("fairness.jain_short_ratio", None),
            ("fairness.convergence_s", None),
            ("fairness.share_max_ratio", None),
            ("fairness.self_ratio", None),
        ];
        common::assert_metrics(&trial, &records, &want);
    }
}

#[test]
fn without_tcp_there_is_no_friendliness() {
    let mut records = records();
    records.link.retain(|row| row.flow.starts_with("udp"));
    let metrics = summarise(&common::trial(31.0), &records);
    assert_eq!(metrics["fairness.friendliness"], None);
    assert_eq!(metrics["fairness.tcp_mean_bps"], None);
    assert!(metrics["fairness.video_mean_bps"].is_some());
}

#[test]
fn series_of_both_flows_and_of_the_control() {
    let timeline = timeline(&common::trial(10.01), &records(), 10);
    let values = |name: &str| {
        let series = timeline.series.iter().find(|series| series.name == name);
        series.unwrap_or_else(|| panic!("no {name}")).values.clone()
    };
    assert!((timeline.bin_s - 1.001).abs() < 1e-9);
    assert_eq!(values("fairness.video_bps")[0], None, "before it begins");
    let first = values("fairness.video_bps")[1].unwrap();
    assert!((first - 1101.0 * 8.0 / 1.001).abs() < 1e-6, "{first}");
    let target = values("fairness.target_bps");
    assert_eq!((target[0], target[1], target[3]), (None, Some(2e6), Some(4e6)));
    assert_eq!(target[5], None, "after the last control period");
    assert_eq!(values("fairness.version_bps")[2], Some(3e6));
    assert_eq!(values("fairness.loss_ratio")[3], Some(0.25));
}
