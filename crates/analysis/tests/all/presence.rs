//! When flows are present, and what one does to the other that was there before it.

use crate::common;
use crate::rivals::{
    CALLS, GOP, MS, OTHER_RTP, QUIC, RTP, TCP, jain, packet, real_time, records, report, told,
};
use suiro_analysis::{Records, summarise, timeline};
use suiro_record::tables::{
    FlowRow, LinkRow, QuicRow, RateRow, TcpRow, WebrtcRow, WebrtcSessionRow,
};
use suiro_record::words::{Direction, TcpSource, TcpState};
use suiro_units::Time;

/// A trial of 100 GoP times from the first video packet on.
fn trial() -> suiro_record::Trial {
    common::trial(101.5 * 1.001)
}

/// In each of 100 GoP times a packet of each flow with this size and verdict; a size of 0 is no packet.
fn flows<const N: usize>(
    names: [&str; N],
    of: impl Fn(i64) -> [(i64, &'static str); N],
) -> Vec<LinkRow> {
    let mut link = Vec::new();
    for gop in 0..100 {
        for (n, (flow, (size, verdict))) in (0..).zip(names.into_iter().zip(of(gop))) {
            if size > 0 {
                link.push(packet(GOP * (gop + 1) + n * MS, flow, size, verdict));
            }
        }
    }
    link
}

/// The same of a film and a TCP, all delivered.
fn film_and_tcp(sizes: impl Fn(i64) -> [i64; 2]) -> Records {
    let link = flows([RTP, TCP], |gop| sizes(gop).map(|size| (size, "delivered")));
    Records { link, rate: vec![report(GOP, 2_000_000, None)], ..Records::default() }
}

const fn bps(bytes: f64) -> Option<f64> {
    Some(bytes * 8.0 / 1.001)
}

#[test]
fn rates_are_compared_while_all_flows_are_present() {
    // The film is alone for 40 GoP times at first, or in the end.
    let alone = |gop| if gop < 40 { [2000, 0] } else { [1000, 1000] };
    for records in [film_and_tcp(alone), film_and_tcp(|gop| alone(99 - gop))] {
        let want = [
            ("fairness.friendliness", Some(1.0)),
            ("fairness.tcp_share_ratio", Some(0.5)),
            ("fairness.video_mean_bps", bps(1400.0)),
            ("fairness.tcp_mean_bps", bps(1000.0)),
            ("fairness.tcp_variation", Some(0.0)),
            // 2000 B in 40 and 1000 B in 60 of 100 GoP times.
            ("fairness.video_variation", Some((240_000.0_f64 * 100.0 / 99.0).sqrt() / 1400.0)),
        ];
        common::assert_metrics(&trial(), &records, &want);
    }
    // The mirrored case: TCP is alone in the end.
    let want = [
        ("fairness.friendliness", Some(1.0)),
        ("fairness.tcp_share_ratio", Some(0.5)),
        ("fairness.video_mean_bps", bps(1000.0)),
        ("fairness.tcp_mean_bps", bps(1400.0)),
        ("fairness.video_variation", Some(0.0)),
    ];
    let records = film_and_tcp(|gop| if gop < 60 { [1000, 1000] } else { [0, 2000] });
    common::assert_metrics(&trial(), &records, &want);
    // Neither is there when the other one is.
    let records = film_and_tcp(|gop| if gop < 45 { [1000, 0] } else { [0, 1000] });
    let want = [("fairness.friendliness", None), ("fairness.tcp_share_ratio", None)];
    common::assert_metrics(&trial(), &records, &want);
}

#[test]
fn a_series_is_the_mean_of_the_flows_that_are_there() {
    let sizes = |gop| match gop {
        0..40 => [(1000, "delivered"), (0, "")],
        _ => [(1000, "delivered"), (3000, "delivered")],
    };
    let link = flows([RTP, OTHER_RTP], sizes);
    let rate = vec![report(GOP, 2_000_000, None)];
    let records = Records { link, rate, ..Records::default() };
    // 100 bins of a GoP time; packets of one GoP time are in one bin.
    let timeline = timeline(&common::trial(100.0 * 1.001), &records, 100);
    let series = timeline.series.iter().find(|series| series.name == "fairness.video_bps").unwrap();
    let near = |bin: usize, want: Option<f64>| match (series.values[bin], want) {
        (Some(got), Some(want)) => assert!((got - want).abs() < 1e-6, "{bin}: {got}, not {want}"),
        (got, want) => assert_eq!(got, want, "{bin}"),
    };
    near(0, None);
    near(1, bps(1000.0));
    near(40, bps(1000.0));
    near(41, bps(2000.0));
    near(99, bps(2000.0));
    assert!(timeline.series.iter().all(|series| series.values.len() == 100));
}

#[test]
fn a_film_that_is_starved_is_present() {
    let starved = |gop| match gop {
        30..50 => [(1000, "delivered"), (1000, "dropped")],
        _ => [(1000, "delivered"), (1000, "delivered")],
    };
    let link = flows([RTP, OTHER_RTP], starved);
    let rate = vec![report(GOP, 2_000_000, None)];
    let records = Records { link, rate, ..Records::default() };
    let want = [
        ("fairness.rate_ratio", Some(100.0 / 80.0)),
        ("fairness.jain_ratio", Some(jain(1000.0, 800.0))),
        ("fairness.video_mean_bps", bps(900.0)),
    ];
    common::assert_metrics(&trial(), &records, &want);
    // So is one whose sender has video and may not send it, by its table `rate`.
    let paused = |gop| if (30..50).contains(&gop) { [1000, 0] } else { [1000, 1000] };
    let link = || flows([RTP, OTHER_RTP], |gop| paused(gop).map(|size| (size, "delivered")));
    let row = |gop: i64, media_bps, send_bps| RateRow {
        endpoint: "other".into(),
        media_bps,
        send_bps,
        ..report(GOP * (gop + 1) + GOP / 2, 2_000_000, None)
    };
    let rows = |in_pause: i64| {
        let row = move |gop| match gop {
            30..50 => row(gop, in_pause, 0),
            _ => row(gop, 8000, 8000),
        };
        (0..100).map(row).collect::<Vec<_>>()
    };
    let flows = || {
        let row = FlowRow {
            endpoint: "other".into(),
            local: "*:5004".into(),
            remote: "10.0.0.3:5014".into(),
            ..told()[0].clone()
        };
        told().into_iter().chain([row]).collect()
    };
    let blocked = Records { link: link(), rate: rows(8000), flows: flows(), ..Records::default() };
    common::assert_metrics(&trial(), &blocked, &want);
    // One without video has paused, as in RFC 8867 §5.8.
    let absent = [
        ("fairness.rate_ratio", Some(1.0)),
        ("fairness.jain_ratio", Some(1.0)),
        ("fairness.video_mean_bps", bps(1000.0)),
        ("fairness.video_variation", Some(0.0)),
    ];
    let pausing = Records { link: link(), rate: rows(0), flows: flows(), ..Records::default() };
    common::assert_metrics(&trial(), &pausing, &absent);
    // The circuit breaker stopped this one for good.
    let is_before = |row: &LinkRow| &*row.flow != OTHER_RTP || row.t_ns < 31 * GOP;
    let link: Vec<LinkRow> = link().into_iter().filter(is_before).collect();
    let mut rate = rows(0);
    rate.truncate(31);
    let ended =
        Records { link: link.clone(), rate: rate.clone(), flows: flows(), ..Records::default() };
    common::assert_metrics(&trial(), &ended, &absent);
    rate[30].broken = Some("RTCP timeout".into());
    let broken = Records { link, rate, flows: flows(), ..Records::default() };
    common::assert_metrics(&trial(), &broken, &[("fairness.rate_ratio", Some(100.0 / 30.0))]);
}

/// A sample of a socket every 100 ms, with so many bytes in flight and not sent.
fn socket(flow: &str, bytes: impl Fn(i64) -> [i64; 2]) -> Vec<TcpRow> {
    let row = |n: i64| {
        let t_ns = n * 100 * MS;
        let [in_flight_bytes, unsent] = bytes(t_ns / GOP - 1);
        TcpRow {
            t_ns,
            host: "server".into(),
            socket: flow.strip_prefix("tcp ").unwrap().into(),
            source: TcpSource::SockDiag,
            congestion: "reno".into(),
            state: TcpState::Open,
            cwnd_bytes: 14_480,
            ssthresh_bytes: None,
            mss_bytes: 1448,
            srtt_us: 20_000,
            rttvar_us: 1000,
            min_rtt_us: None,
            in_flight_bytes,
            pacing_rate_bps: None,
            delivery_rate_bps: None,
            retransmits: 0,
            acked_bytes: 0,
            received_bytes: 0,
            app_limited: None,
            unsent_bytes: Some(unsent),
            peer_window_bytes: None,
            busy_us: None,
            rwnd_limited_us: None,
            sndbuf_limited_us: None,
            rto_us: None,
            timeouts: None,
        }
    };
    (0..1016).map(row).collect()
}

#[test]
fn a_tcp_that_waits_for_its_timer_is_present() {
    // It is silent in the middle for 20 GoP times, and for the last 20.
    let records = film_and_tcp(|gop| match gop {
        30..50 | 80.. => [1000, 0],
        _ => [1000, 1000],
    });
    let ended = [
        ("fairness.friendliness", Some(80.0 / 60.0)),
        ("fairness.tcp_mean_bps", bps(1000.0 * 60.0 / 80.0)),
    ];
    common::assert_metrics(&trial(), &records, &ended);
    let idle = Records { tcp: socket(TCP, |gop| [i64::from(gop < 79), 0]), ..records };
    common::assert_metrics(&trial(), &idle, &ended);
    // In the end it has a packet in flight that nobody acknowledges.
    let waits = Records { tcp: socket(TCP, |_| [1000, 5000]), ..idle };
    let starved = [
        ("fairness.friendliness", Some(100.0 / 60.0)),
        ("fairness.tcp_mean_bps", bps(1000.0 * 60.0 / 100.0)),
    ];
    common::assert_metrics(&trial(), &waits, &starved);
}

/// Two flows of 1000 B in each GoP time, of which the second one is silent for 20 in the middle and for the last 20.
fn with_silences(names: [&str; 2]) -> Records {
    let sizes = |gop| match gop {
        30..50 | 80.. => [(1000, "delivered"), (0, "")],
        _ => [(1000, "delivered"), (1000, "delivered")],
    };
    let link = flows(names, sizes);
    Records { link, ..real_time([(CALLS[0], 0), (CALLS[1], 0), (QUIC, 0)]) }
}

#[test]
fn a_call_that_is_blocked_is_present() {
    let records = with_silences(CALLS);
    let ended = [("fairness.rate_ratio", Some(80.0 / 60.0))];
    let starved = [("fairness.rate_ratio", Some(100.0 / 60.0))];
    common::assert_metrics(&trial(), &records, &ended);
    let session = WebrtcSessionRow {
        session: 2,
        pair: Some("10.0.0.1:6000>10.0.0.4:7000".into()),
        ..common::webrtc_session("camera")
    };
    let row = |n: u64| WebrtcRow {
        t_ns: Time::from_millis(n * 100),
        session: 2,
        queue_bytes: Some(0),
        ..common::webrtc_row()
    };
    let of = |rows: u64| Records {
        webrtc_sessions: vec![common::webrtc_session("camera"), session.clone()],
        webrtc: (0..rows).map(row).collect(),
        ..with_silences(CALLS)
    };
    common::assert_metrics(&trial(), &of(1016), &starved);
    // The connection was closed before the trial's end.
    common::assert_metrics(&trial(), &of(810), &ended);
    let mut closed = of(1016);
    closed.flows[1].closed_ns = Some(Time::from_millis(80_900));
    common::assert_metrics(&trial(), &closed, &ended);
}

/// RFC 8867 §5.8: reports of the second call go on.
#[test]
fn a_connection_whose_video_pauses_is_absent() {
    let sizes = |gop| match gop {
        30..50 => [(1000, "delivered"), (50, "delivered")],
        _ => [(1000, "delivered"), (1000, "delivered")],
    };
    let link = flows(CALLS, sizes);
    let mut records = Records { link, ..real_time([(CALLS[0], 0), (CALLS[1], 0), (QUIC, 0)]) };
    // (80 · 1000 + 20 · 50) ∕ 100 B in a GoP time.
    let present = [("fairness.rate_ratio", Some(1000.0 / 810.0))];
    common::assert_metrics(&trial(), &records, &present);
    // The 31st packet of the second call comes at 31.032 s, and the 51st at 51.052 s: the pause ends just before that one.
    let pause = (31.0305, 51.0515);
    records.flows[1].peer = Some("viewer".into());
    let absent = [("fairness.rate_ratio", Some(1.0)), ("fairness.jain_ratio", Some(1.0))];
    let paused = common::with_pauses(trial(), &["viewer"], pause);
    common::assert_metrics(&paused, &records, &absent);
    let other = common::with_pauses(trial(), &["other"], pause);
    common::assert_metrics(&other, &records, &present);
}

#[test]
fn media_over_quic_that_is_blocked_is_present() {
    let records = || with_silences([CALLS[0], QUIC]);
    let ended = [("fairness.rate_ratio", Some(80.0 / 60.0))];
    common::assert_metrics(&trial(), &records(), &ended);
    let row = |endpoint: &str, remote: &str, waiting: u64| QuicRow {
        endpoint: endpoint.into(),
        remote: Some(remote.into()),
        in_flight_bytes: Some(0),
        waiting_bytes: Some(waiting),
        ..crate::why_lies::quic_row()
    };
    let of = |endpoint: &str, remote: &str, waiting| {
        let row = row(endpoint, remote, waiting);
        let at = |n: u64| QuicRow { t_ns: Time::from_millis(n * 100), ..row.clone() };
        Records { quic: (0..1016).map(at).collect(), ..records() }
    };
    let viewer = "10.0.0.5:8000";
    let starved = [("fairness.rate_ratio", Some(100.0 / 60.0))];
    common::assert_metrics(&trial(), &of("relay", viewer, 5000), &starved);
    common::assert_metrics(&trial(), &of("relay", viewer, 0), &ended);
    // Those of another connection, and of the viewer, which has little to send.
    common::assert_metrics(&trial(), &of("relay", "10.0.0.5:8001", 5000), &ended);
    common::assert_metrics(&trial(), &of("player", "10.0.0.2:4443", 5000), &ended);
}

/// The first flow, an RTP of `film`, has 1 Mbit/s in 1 ms alone, and from 40 s on 250 kbit/s in 4 ms next to a TCP of 750.
fn film_and_newcomer() -> Records {
    let mut link = Vec::new();
    for n in 0..1000 {
        let t_ns = 100 * MS * n;
        let together = n >= 400;
        let size = if together { 3125 } else { 12_500 };
        let mut row = packet(t_ns, RTP, size, "delivered");
        if together {
            row.departed_ns = Some(t_ns + 4 * MS);
            link.push(packet(t_ns, TCP, 9375, "delivered"));
        }
        link.push(row);
    }
    Records { link, ..Records::default() }
}

fn assert_harm(records: &Records, want: &[(&str, f64)]) {
    let metrics = summarise(&common::trial(100.0), records);
    for (name, want) in want {
        let value = metrics[&format!("harm.{name}")].unwrap();
        assert!((value - want).abs() <= want * 1e-3, "{name}: {value}, not {want}");
    }
}

fn has_no_harm(duration_s: f64, records: &Records) -> bool {
    let metrics = summarise(&common::trial(duration_s), records);
    metrics.get("harm.share_ratio").copied().flatten().is_none()
}

#[test]
fn a_newcomer_does_harm() {
    let records = film_and_newcomer();
    assert_harm(
        &records,
        &[
            ("share_ratio", 0.25),
            ("rate_ratio", 0.75),
            ("delay_ratio", 0.75),
            ("delay_alone_ms", 1.0),
            ("delay_together_ms", 4.0),
        ],
    );
    // A film that viewers send from then on is no newcomer by the reports that come down.
    let (tcp, mut link): (Vec<_>, Vec<_>) =
        records.link.into_iter().partition(|row| &*row.flow == TCP);
    link.extend(tcp.into_iter().flat_map(|row| {
        let report = LinkRow { flow: "udp 10.0.0.1:6005>10.0.0.3:6005".into(), ..row.clone() };
        let film = "udp 10.0.0.3:6004>10.0.0.1:6004".into();
        [
            LinkRow { size_bytes: 500, ..report },
            LinkRow { flow: film, direction: Direction::Up, ..row },
        ]
    }));
    assert!(has_no_harm(100.0, &Records { link, ..Records::default() }));
    // Together from the start, there is nothing to compare with.
    assert!(has_no_harm(31.5 * 1.001, &self::records()));
}

#[test]
fn the_same_flows_compete_for_harm_and_fairness() {
    const OTHER: &str = "tcp 10.0.0.5:40000>10.0.0.4:5202";
    let mut records = Records { rate: vec![report(GOP, 1_000_000, None)], ..film_and_newcomer() };
    // One of 20 s is no rival of either.
    let short = (600..800).map(|n| packet(100 * MS * n, OTHER, 1000, "delivered"));
    records.link.extend(short.collect::<Vec<_>>());
    assert_harm(&records, &[("share_ratio", 0.25), ("rate_ratio", 0.75), ("delay_ratio", 0.75)]);
    let metrics = summarise(&common::trial(100.0), &records);
    assert_eq!(metrics["fairness.tcp_flows"], Some(1.0));
    assert!((metrics["fairness.jain_ratio"].unwrap() - jain(1.0, 3.0)).abs() < 0.03);
    // Nor is one that joins when 60 % of the time have passed.
    records.link.retain(|row| &*row.flow == RTP || row.t_ns >= 60_000 * MS);
    records.link.retain(|row| &*row.flow != OTHER);
    assert!(has_no_harm(100.0, &records));
    let metrics = summarise(&common::trial(100.0), &records);
    assert_eq!((metrics["fairness.tcp_flows"], metrics["fairness.jain_ratio"]), (Some(0.0), None));
}

#[test]
fn a_target_stands_no_longer_than_its_sender_has_periods() {
    let rate = (1..31).map(|gop| report(gop * GOP, [3, 1][(gop % 2) as usize] * 1_000_000, None));
    let records = Records { rate: rate.collect(), ..records() };
    for gops in [31.0, 62.0] {
        let want = [("fairness.target_variation", Some(0.5))];
        common::assert_metrics(&common::trial(gops * 1.001), &records, &want);
    }
}

#[test]
fn a_flow_that_loses_all_is_harmed_most() {
    let mut records = film_and_newcomer();
    for row in &mut records.link {
        if &*row.flow == RTP && row.t_ns >= 50_000 * MS {
            *row = packet(row.t_ns, RTP, row.size_bytes, "dropped");
        }
    }
    assert_harm(&records, &[("rate_ratio", 1.0), ("share_ratio", 0.0), ("delay_alone_ms", 1.0)]);
    let metrics = summarise(&common::trial(100.0), &records);
    assert_eq!(metrics["harm.delay_ratio"], None, "no packet has a delay");
    // A film that ends then has not been harmed.
    records.link.retain(|row| &*row.flow == TCP || row.t_ns < 50_000 * MS);
    assert!(has_no_harm(100.0, &records));
}

#[test]
fn a_newcomer_that_gets_hardly_anything_is_one() {
    const NEW: &str = "tcp 10.0.0.5:40000>10.0.0.4:5202";
    let mut link = Vec::new();
    for n in 0..1000 {
        link.push(packet(100 * MS * n, TCP, 12_500, "delivered"));
        if n >= 400 && n % 10 == 0 {
            link.push(packet(100 * MS * n, NEW, 100, "delivered"));
        }
    }
    let idle = Records { link, ..Records::default() };
    assert!(has_no_harm(100.0, &idle), "a connection for control");
    let starved = Records { tcp: socket(NEW, |gop| [0, if gop < 39 { 0 } else { 5000 }]), ..idle };
    assert_harm(&starved, &[("rate_ratio", 0.0), ("share_ratio", 1250.0 / 1251.0)]);
}

#[test]
fn flows_on_paths_of_their_own_do_no_harm() {
    let moved = |flow: &str| {
        let mut records = real_time([(CALLS[0], 0), (CALLS[1], 0), (QUIC, 0)]);
        records.link = film_and_newcomer().link;
        for row in &mut records.link {
            row.flow = if &*row.flow == RTP { CALLS[0].into() } else { flow.into() };
        }
        records
    };
    let mut records = moved(QUIC);
    assert_harm(&records, &[("rate_ratio", 0.75)]);
    for row in records.link.iter_mut().filter(|row| &*row.flow == QUIC) {
        row.link = "other".into();
    }
    assert!(has_no_harm(100.0, &records));
}
