//! Whole trials whose metrics and series are computed by hand, and odd ones that must not panic.

use crate::common::{assert_metrics, trial};
use proptest::prelude::*;
use suiro_analysis::{Panel, Records, describe, summarise, timeline};
use suiro_record::tables::{FlowRow, LinkRow, PlayerRow, RequestRow, TcpRow};
use suiro_record::words::{
    Carries, Direction, FlowRole, LinkCause, RequestKind, TcpSource, TcpState, Track, Transport,
    Verdict,
};
use suiro_record::{LinkRate, LinkTotals, Trial};
use suiro_units::Time;

const MS: i64 = 1_000_000;

/// A packet of 1000 bytes (960 of payload) that arrives, is served and delivered at the given times.
fn packet(t_ms: i64, dequeued_ms: i64, departed_ms: i64) -> LinkRow {
    LinkRow {
        t_ns: t_ms * MS,
        link: "access".into(),
        direction: Direction::Down,
        packet: 0,
        flow: "tcp 10.0.0.1:80>10.0.0.2:40000".into(),
        size_bytes: 1000,
        payload_bytes: Some(960),
        queue_bytes: 0,
        queue_packets: 0,
        verdict: Verdict::Delivered,
        cause: None,
        ecn_marked: false,
        dequeued_ns: Some(dequeued_ms * MS),
        scheduled_ns: Some(departed_ms * MS),
        departed_ns: Some(departed_ms * MS),
        attempts: None,
    }
}

fn dropped(t_ms: i64, cause: &str) -> LinkRow {
    LinkRow {
        verdict: Verdict::Dropped,
        cause: Some(cause.parse().unwrap()),
        dequeued_ns: None,
        scheduled_ns: None,
        departed_ns: None,
        queue_bytes: 3000,
        ..packet(t_ms, 0, 0)
    }
}

pub fn sample(t_ms: i64, socket: &str, cwnd_bytes: i64, acked_bytes: i64) -> TcpRow {
    TcpRow {
        t_ns: t_ms * MS,
        host: "server".into(),
        socket: socket.into(),
        source: TcpSource::SockDiag,
        congestion: "reno".into(),
        state: TcpState::Open,
        cwnd_bytes,
        ssthresh_bytes: None,
        mss_bytes: 1448,
        srtt_us: cwnd_bytes,
        rttvar_us: 10,
        min_rtt_us: Some(900),
        in_flight_bytes: 0,
        pacing_rate_bps: None,
        delivery_rate_bps: None,
        retransmits: acked_bytes / 1000,
        acked_bytes,
        received_bytes: 100,
        app_limited: None,
        unsent_bytes: None,
        peer_window_bytes: None,
        busy_us: None,
        rwnd_limited_us: None,
        sndbuf_limited_us: None,
        rto_us: None,
        timeouts: None,
    }
}

fn state(t_ms: i64, state: &str, buffer_ms: f64, rung_bps: Option<i64>, stalls: i64) -> PlayerRow {
    PlayerRow {
        t_ns: t_ms * MS,
        endpoint: "viewer".into(),
        state: state.parse().unwrap(),
        buffer_ms: Some(buffer_ms),
        position_ms: Some(0.0),
        rung_bps,
        latency_ms: rung_bps.map(|_| 2000.0 + buffer_ms),
        target_latency_ms: None,
        speed: 1.0,
        stalls,
        estimate_bps: None,
        dropped_pictures: None,
    }
}

fn segment(t_ms: i64, first_ms: i64, done_ms: Option<i64>, status: i64) -> RequestRow {
    RequestRow {
        t_ns: t_ms * MS,
        endpoint: "viewer".into(),
        url: "/video/1.m4s".into(),
        kind: RequestKind::Segment,
        track: Some(Track::Video),
        rung_bps: Some(1_000_000),
        segment: Some(1),
        media_ms: Some(0),
        duration_ms: Some(2000),
        body_bytes: 1,
        first_byte_ns: Some(first_ms * MS),
        done_ns: done_ms.map(|ms| ms * MS),
        status: Some(status),
        error: None,
        abandoned: None,
        attempt: 1,
        handshake_ns: None,
        ..RequestRow::default()
    }
}

/// A segment of video of two seconds, with so many bytes.
fn media(number: i64, rung_bps: i64, body_bytes: i64) -> RequestRow {
    let rung_bps = Some(rung_bps);
    let (segment_number, media_ms) = (Some(number), Some(2000 * number));
    let row = segment(0, 20, Some(500), 200);
    RequestRow { rung_bps, segment: segment_number, media_ms, body_bytes, ..row }
}

#[test]
fn the_bit_rate_is_that_of_the_segments_shown_and_not_of_their_rung() {
    let at = |t_ms, position_ms, rung_bps| {
        let row = state(t_ms, "playing", 1000.0, Some(rung_bps), 0);
        PlayerRow { position_ms: Some(position_ms), ..row }
    };
    // The peak of the rung is 1.7 Mbit/s; its two segments have 1.2 and 1.6. The third second of the stream was
    // fetched twice, and shown from the higher rung; what was given up does not count.
    let player = vec![
        at(0, 0.0, 1_700_000),
        at(2000, 2000.4, 1_700_000),
        at(4000, 4000.0, 3_400_000),
        state(6000, "ended", 0.0, None, 0),
    ];
    let abandoned = RequestRow { abandoned: Some("late".into()), ..media(2, 3_400_000, 9) };
    let requests = vec![
        media(0, 1_700_000, 300_000),
        media(1, 1_700_000, 400_000),
        media(2, 1_700_000, 100_000),
        abandoned,
        media(2, 3_400_000, 800_000),
    ];
    let want = [
        ("video.bitrate_mean_bps", Some((1.2e6 + 1.6e6 + 3.2e6) / 3.0)),
        ("video.rung_mean_bps", Some((1.7e6 + 1.7e6 + 3.4e6) / 3.0)),
    ];
    assert_metrics(&trial(10.0), &Records { player, requests, ..Records::default() }, &want);
}

#[test]
fn first_byte_times_are_without_the_handshake_and_both_are_there() {
    let opens = RequestRow { handshake_ns: Some(40 * MS), ..segment(0, 65, Some(500), 200) };
    let open = RequestRow { handshake_ns: Some(0), ..segment(500, 525, Some(900), 200) };
    let requests = vec![
        opens.clone(),
        open,
        RequestRow { t_ns: 1000 * MS, first_byte_ns: Some(1065 * MS), ..opens },
    ];
    let want = [
        ("requests.first_byte_p50_ms", Some(25.0)),
        ("requests.first_byte_with_handshake_p50_ms", Some(65.0)),
    ];
    assert_metrics(&trial(5.0), &Records { requests, ..Records::default() }, &want);
}

/// Four packets at 8 Mbit/s (1 ms each) and 10 ms of propagation; the first three at once, the last
/// alone; one dropped by a full queue, one at random, one still there at the end.
fn link() -> Records {
    let mut copy = packet(0, 0, 12);
    copy.cause = Some(LinkCause::Duplicate);
    let mut queued = packet(999, 999, 0);
    (queued.verdict, queued.departed_ns, queued.scheduled_ns) = (Verdict::Queued, None, None);
    let link = vec![
        packet(0, 0, 11),
        packet(0, 1, 12),
        packet(0, 2, 13),
        dropped(1, "queue"),
        copy,
        packet(500, 500, 511),
        dropped(600, "loss"),
        queued,
        packet(990, 990, 1001),
    ];
    Records { link, ..Records::default() }
}

#[test]
fn a_link_by_hand() {
    let want = [
        // Delivered within the second: three at the start, one at 511 ms; the copy is no goodput.
        ("flow.goodput_mean_bps", Some(4.0 * 960.0 * 8.0)),
        ("link.down.payload_mean_bps", Some(4.0 * 960.0 * 8.0)),
        ("link.down.throughput_mean_bps", Some(5.0 * 8000.0)),
        // Settled: 5 originals delivered (one after the end) and 2 dropped.
        ("link.down.loss_ratio", Some(2.0 / 7.0)),
        ("link.down.loss_queue_ratio", Some(1.0 / 7.0)),
        ("link.down.loss_random_ratio", Some(1.0 / 7.0)),
        ("link.down.served_bps", Some(8e6)),
        // 0–1, 1–2 ms seen; 2–3, 500–501, 990–991, 999–1000 ms inferred.
        ("link.down.utilisation", Some(0.006)),
        // Waits: 0 1 2 0 0 0, and 0 of the copy.
        ("link.down.queue_delay_mean_ms", Some(3.0 / 7.0)),
        ("link.down.queue_delay_p5_ms", Some(0.0)),
        ("link.down.queue_delay_p95_ms", Some(2.0)),
        ("link.down.queue_delay_max_ms", Some(2.0)),
        // Delivered within the second: 11 12 13 12 (copy) 11 ms.
        ("link.down.delay_mean_ms", Some(59.0 / 5.0)),
        ("link.down.queue_max_bytes", Some(3000.0)),
        ("link.down.unaccounted", None),
    ];
    assert_metrics(&trial(1.0), &link(), &want);
}

/// A radio that gives each user the band from time to time: packets go together, and one waits for its turn although
/// nothing is served.
#[test]
fn a_radio_that_serves_in_turns_has_the_rate_of_its_turns() {
    let values = |rows: Vec<LinkRow>| {
        let records = Records { link: rows, ..Records::default() };
        let all = summarise(&trial(4.0), &records);
        [all["link.down.served_bps"], all["link.down.utilisation"]]
    };
    // Three packets of 1000 B in each of ten milliseconds, all there from the beginning.
    let turn =
        |ms: i64| (0..3).map(move |_| LinkRow { attempts: Some(1), ..packet(0, ms, ms + 1) });
    assert_eq!(values((0..10).flat_map(turn).collect()), [Some(24e6), Some(0.0025)]);
    // One in a second, each 11 ms after it came.
    let seldom = |s: i64| packet(1000 * s, 1000 * s + 11, 1000 * s + 12);
    assert_eq!(values((0..4).map(seldom).collect()), [None, None]);
}

#[test]
fn what_lies_outside_the_trial_does_not_count() {
    let (trial, mut records) = (trial(1.0), link());
    let within = summarise(&trial, &records);
    for t_ms in [-5, 1000, 1500] {
        records.link.push(LinkRow { queue_bytes: 99_000, ..packet(t_ms, t_ms + 700, t_ms + 701) });
        records.link.push(dropped(t_ms, "queue"));
    }
    assert_eq!(summarise(&trial, &records), within);
    // Arrived in time, served too late: no wait and no work of this trial.
    records.link.push(LinkRow { packet: 1, ..packet(999, 1400, 1500) });
    let all = summarise(&trial, &records);
    for name in ["link.down.queue_delay_p95_ms", "link.down.served_bps", "link.down.utilisation"] {
        assert_eq!(all[name], within[name], "{name}");
    }
    // A sample after the end says what stood until then, and counts nothing more.
    records.tcp = vec![sample(0, "a", 10_000, 0), sample(900, "a", 20_000, 5_000)];
    records.tcp.push(sample(1001, "a", 90_000, 80_000));
    let want = [
        ("tcp.cwnd_mean_bytes", Some(11_000.0)),
        ("tcp.retransmits", Some(5.0)),
        ("tcp.acked_mean_bps", Some(40_000.0)),
    ];
    assert_metrics(&trial, &records, &want);
}

#[test]
fn attempts_on_a_shared_medium_are_counted() {
    let on_air = |attempts, row| LinkRow { attempts: Some(attempts), ..row };
    let copy = LinkRow { cause: Some(LinkCause::Duplicate), ..packet(0, 1, 2) };
    let still_inside = LinkRow { verdict: Verdict::Queued, ..packet(0, 1, 2) };
    let rows = vec![
        on_air(1, packet(0, 1, 2)),
        on_air(3, packet(0, 1, 2)),
        on_air(3, copy),
        on_air(16, dropped(600, "collisions")),
        on_air(0, dropped(600, "queue")),
        on_air(9, still_inside),
    ];
    let records = Records { link: rows, ..Records::default() };
    let want = [("link.down.attempts_failed_ratio", Some(18.0 / 20.0))];
    assert_metrics(&trial(1.0), &records, &want);
    let never = [("link.down.attempts_failed_ratio", None)];
    assert_metrics(&trial(1.0), &link(), &never);
}

#[test]
fn queues_drop_what_is_too_old_as_well() {
    let rows = vec![
        packet(0, 1, 2),
        dropped(600, "lifetime"),
        dropped(600, "queue"),
        dropped(600, "aqm"),
        dropped(600, "retry"),
    ];
    let records = Records { link: rows, ..Records::default() };
    let want = [
        ("link.down.loss_ratio", Some(4.0 / 5.0)),
        ("link.down.loss_queue_ratio", Some(3.0 / 5.0)),
    ];
    assert_metrics(&trial(1.0), &records, &want);
}

#[test]
fn what_the_emulator_counted_goes_before_what_was_recorded() {
    let mut trial = trial(1.0);
    trial.links.push(LinkTotals {
        offered: 9,
        delivered: 8,
        dropped: [(LinkCause::Queue, 1), (LinkCause::Loss, 1)].into(),
        duplicated: 1,
        ..LinkTotals::new("access", Direction::Down)
    });
    let want = [
        ("link.down.loss_ratio", Some(2.0 / 9.0)),
        ("link.down.loss_queue_ratio", Some(1.0 / 9.0)),
        ("link.down.unaccounted", Some(0.0)),
        ("link.down.lateness_p99_us", None),
    ];
    assert_metrics(&trial, &link(), &want);
}

#[test]
fn several_links_bear_their_names() {
    let mut records = link();
    records.link.push(LinkRow { link: "core".into(), ..packet(0, 0, 100) });
    let metrics = summarise(&trial(1.0), &records);
    assert_eq!(metrics["link.core.down.throughput_mean_bps"], Some(8000.0));
    assert!(metrics.contains_key("link.access.down.loss_ratio"));
    assert!(!metrics.contains_key("link.down.loss_ratio"));
    assert!(metrics.keys().all(|name| describe(name).is_some()));
}

#[test]
fn sockets_by_hand() {
    let mut client = sample(0, "10.0.0.2:4>10.0.0.1:80", 5_000_000, 99);
    client.received_bytes = 70_000;
    let tcp = vec![
        client,
        // 10 kB for 300 ms, 20 kB for 100 ms; the last sample stands for no time.
        sample(0, "a", 10_000, 0),
        sample(300, "a", 20_000, 4_000),
        sample(400, "a", 90_000, 70_000),
        // 40 kB for 400 ms.
        sample(100, "b", 40_000, 1_000),
        sample(500, "b", 1, 2_000),
        // A control connection, with less than a hundredth.
        sample(0, "c", 7_000_000, 0),
        sample(900, "c", 7_000_000, 500),
    ];
    let records = Records { tcp, ..Records::default() };
    let want = [
        ("tcp.cwnd_mean_bytes", Some((10.0 * 300.0 + 20.0 * 100.0 + 40.0 * 400.0) / 0.8)),
        ("tcp.cwnd_max_bytes", Some(40_000.0)),
        ("tcp.srtt_p95_ms", Some(40.0)),
        ("tcp.srtt_min_ms", Some(10.0)),
        ("tcp.rtt_min_ms", Some(0.9)),
        ("tcp.retransmits", Some(72.0)),
        ("tcp.sockets", Some(2.0)),
        ("tcp.acked_mean_bps", Some(72_000.0 * 8.0 / 2.0)),
    ];
    assert_metrics(&trial(2.0), &records, &want);
    let series = timeline(&trial(2.0), &records, 600).series;
    let cwnd = series.iter().find(|s| s.name == "tcp.cwnd_bytes").unwrap();
    assert_eq!(
        cwnd.values[..6].to_vec(),
        [Some(10_000.0), Some(25_000.0), Some(25_000.0), Some(30_000.0), Some(40_000.0), None]
    );
    assert!(series.iter().all(|s| s.name != "tcp.ssthresh_bytes"), "never known: left out");
}

/// A burst of ACKs shows many small windows in little time: how often a window is seen says nothing.
#[test]
fn a_row_for_each_ack_changes_no_mean() {
    // 20 kB for 100 ms, then 5 kB for 20 ms, then 40 kB for 180 ms.
    let steps = [(0, 20_000), (100, 5_000), (120, 40_000), (300, 40_000)];
    let at = |t_ms, cwnd_bytes| sample(t_ms, "a", cwnd_bytes, 1_000 + t_ms);
    let polled: Vec<_> = steps.iter().map(|&(t_ms, cwnd)| at(t_ms, cwnd)).collect();
    let mut traced = polled.clone();
    // A row each 100 us of the burst; out of order, as two sources may write them.
    for ack in 1..200 {
        let row = at(100, 5_000);
        traced.push(TcpRow { t_ns: row.t_ns + ack * MS / 10, source: TcpSource::TcpProbe, ..row });
    }
    let want = [
        ("tcp.cwnd_mean_bytes", Some((20.0 * 100.0 + 5.0 * 20.0 + 40.0 * 180.0) / 0.3)),
        ("tcp.srtt_p95_ms", Some(40.0)),
        ("tcp.srtt_mean_ms", Some((20.0 * 100.0 + 5.0 * 20.0 + 40.0 * 180.0) / 300.0)),
        ("tcp.srtt_min_ms", Some(5.0)),
        ("tcp.sockets", Some(1.0)),
    ];
    for tcp in [polled.clone(), traced.clone()] {
        assert_metrics(&trial(1.0), &Records { tcp, ..Records::default() }, &want);
    }
    // Per ACK, the burst is all there is.
    for (tcp, cwnd, srtt) in [(polled, None, None), (traced, Some(5_000.0), Some(5.0))] {
        let want = [("tcp.cwnd_ack_mean_bytes", cwnd), ("tcp.srtt_ack_mean_ms", srtt)];
        assert_metrics(&trial(1.0), &Records { tcp, ..Records::default() }, &want);
    }
}

/// A player fetches its manifest over a connection of its own, which then stays idle; another player's connection is
/// slow. The first says nothing of the media's round trip, the second does.
#[test]
fn a_connection_that_carried_a_manifest_changes_no_mean() {
    let flow = |peer: u8, port: u16| FlowRow {
        t_ns: Time::ZERO,
        endpoint: "origin".into(),
        role: FlowRole::Server,
        protocol: Transport::Tcp,
        local: "10.0.0.1:80".into(),
        remote: format!("10.0.0.{peer}:{port}").into(),
        carries: Carries::HttpMedia,
        flows: 1,
        closed_ns: None,
        peer: None,
    };
    let socket = |peer: u8, port: u16, cwnd, acked| {
        let name = format!("10.0.0.1:80>10.0.0.{peer}:{port}");
        [sample(0, &name, cwnd, 0), sample(1_000, &name, cwnd, acked)]
    };
    let records = Records {
        flows: vec![flow(2, 5), flow(2, 6), flow(3, 5)],
        tcp: [socket(2, 5, 1_000, 900), socket(2, 6, 30_000, 1_000_000), socket(3, 5, 20_000, 900)]
            .concat(),
        ..Records::default()
    };
    let want = [("tcp.sockets", Some(2.0)), ("tcp.cwnd_mean_bytes", Some(25_000.0))];
    assert_metrics(&trial(1.0), &records, &want);
}

#[test]
fn a_player_by_hand() {
    let (low, high) = (Some(1_000_000), Some(3_000_000));
    let player = vec![
        state(100, "starting", 0.0, None, 0),
        state(600, "playing", 4_000.0, low, 0),
        state(1_600, "playing", 2_000.0, high, 0),
        state(2_100, "stalled", 0.0, high, 1),
        state(2_200, "stalled", 0.0, high, 1),
        state(2_600, "playing", 1_000.0, low, 1),
        state(3_600, "playing", 1_000.0, low, 1),
    ];
    let stopped =
        RequestRow { error: Some(RequestRow::STOPPED.into()), ..segment(9_900, 9_950, None, 200) };
    let requests = vec![
        segment(0, 20, Some(500), 200),
        segment(500, 540, Some(1500), 200),
        segment(1500, 1530, None, 404),
        stopped,
    ];
    let records = Records { player, requests, ..Records::default() };
    let watched = 1.0 + 0.5 + 0.5 + 1.0 + 0.1;
    let want = [
        ("player.startup_s", Some(0.5)),
        ("player.stalls", Some(1.0)),
        ("player.stall_s", Some(0.5)),
        ("player.played_s", Some(2.6)),
        ("player.stall_ratio", Some(0.5 / watched)),
        ("player.switches", Some(2.0)),
        ("player.buffer_mean_s", Some((4.0 + 1.0 + 0.0 + 1.1) / watched)),
        ("video.bitrate_mean_bps", Some(4.0)),
        ("video.rung_mean_bps", Some((1e6 * 2.1 + 3e6 * 0.5) / 2.6)),
        ("media.latency_p50_ms", Some(3000.0)),
        ("media.latency_p99_ms", Some(6000.0)),
        ("requests.failed", Some(1.0)),
        ("requests.first_byte_p50_ms", Some(30.0)),
        ("requests.segment_p95_ms", Some(1000.0)),
        ("flow.goodput_mean_bps", None),
    ];
    assert_metrics(&trial(10.0), &records, &want);
    let timeline = timeline(&trial(10.0), &records, 600);
    assert_eq!((timeline.bin_s, &timeline.stalls[..]), (0.1, &[(2.1, 2.6)][..]));
    let rung = timeline.series.iter().find(|s| s.panel == Panel::Rung).unwrap();
    assert_eq!((rung.values[5], rung.values[6], rung.values[16]), (None, low.map(f), high.map(f)));
}

fn f(value: i64) -> f64 {
    value as f64
}

#[test]
fn two_players_have_a_mean_and_each_their_own() {
    let mut player = Vec::new();
    for (name, at) in [("near", 200), ("far", 1000)] {
        for mut row in [state(0, "starting", 0.0, None, 0), state(at, "playing", 1.0, None, 0)] {
            row.endpoint = name.into();
            player.push(row);
        }
    }
    let want = [
        ("player.startup_s", Some(0.6)),
        ("player.near.startup_s", Some(0.2)),
        ("player.far.startup_s", Some(1.0)),
        ("video.far.bitrate_mean_bps", None),
    ];
    assert_metrics(&trial(5.0), &Records { player, ..Records::default() }, &want);
}

#[test]
fn a_player_that_never_played_has_no_stall_time() {
    let player = vec![state(0, "starting", 0.0, None, 0), state(900, "failed", 0.0, None, 0)];
    let want = [("player.startup_s", None), ("player.stall_s", None), ("player.stalls", None)];
    assert_metrics(&trial(1.0), &Records { player, ..Records::default() }, &want);
}

fn odd_link() -> impl Strategy<Value = LinkRow> {
    let time = || prop_oneof![any::<i64>(), 0i64..3_000_000_000];
    let word = (
        prop::sample::select(&Verdict::ALL),
        prop::option::of(prop::sample::select(&LinkCause::ALL)),
    );
    let some = || prop::option::of(time());
    (time(), word, any::<i64>(), time(), (some(), some(), some(), some())).prop_map(
        |(
            t_ns,
            (verdict, cause),
            size_bytes,
            queue_bytes,
            (payload_bytes, dequeued, scheduled, departed),
        )| {
            LinkRow {
                t_ns,
                size_bytes,
                queue_bytes,
                payload_bytes,
                verdict,
                cause,
                dequeued_ns: dequeued,
                scheduled_ns: scheduled,
                departed_ns: departed,
                ..packet(0, 0, 0)
            }
        },
    )
}

fn odd_tcp() -> impl Strategy<Value = TcpRow> {
    (any::<i64>(), any::<i64>(), any::<i64>(), any::<i64>()).prop_map(|(t_ns, a, b, c)| TcpRow {
        t_ns,
        srtt_us: b,
        retransmits: c,
        ..sample(0, if c % 2 == 0 { "a" } else { "b" }, a, b)
    })
}

fn odd_player() -> impl Strategy<Value = PlayerRow> {
    let word = prop::sample::select(vec!["starting", "playing", "stalled"]);
    let time = prop_oneof![any::<i64>(), 0i64..3_000_000_000];
    (time, word, any::<f64>(), any::<Option<i64>>(), any::<i64>()).prop_map(
        |(t_ns, word, buffer, rung, stalls)| PlayerRow {
            t_ns,
            ..state(0, word, buffer, rung, stalls)
        },
    )
}

proptest! {
    #[test]
    fn odd_rows_give_finite_metrics_and_never_panic(
        duration_s in prop_oneof![any::<f64>(), 0.0..3.0],
        warm_up_s in prop_oneof![Just(0.0), any::<f64>(), 0.0..3.0],
        link in prop::collection::vec(odd_link(), 0..40),
        tcp in prop::collection::vec(odd_tcp(), 0..20),
        player in prop::collection::vec(odd_player(), 0..20),
        requests in prop::collection::vec(
            (any::<i64>(), any::<i64>()).prop_map(|(a, b)| RequestRow {
                t_ns: a,
                first_byte_ns: Some(b),
                ..segment(0, 0, None, b)
            }), 0..10),
    ) {
        let records = Records { link, tcp, requests, player, ..Records::default() };
        let trial = Trial { warm_up_s, ..trial(duration_s) };
        for (name, value) in summarise(&trial, &records).iter() {
            prop_assert!(value.is_none_or(f64::is_finite), "{} {:?}", name, value);
            prop_assert!(describe(name).is_some(), "{}", name);
        }
        let timeline = timeline(&trial, &records, 50);
        prop_assert!(timeline.series.iter().all(|s| s.values.len() <= 50));
        let mut names: Vec<_> = timeline.series.iter().map(|s| &s.name).collect();
        names.sort_unstable();
        names.dedup();
        prop_assert_eq!(names.len(), timeline.series.len(), "two series of one name");
    }

    #[test]
    fn throughput_in_bins_is_the_throughput_in_the_summary(
        link in prop::collection::vec((0i64..2_000, 0i64..2_500), 1..60),
    ) {
        let link = link.into_iter().map(|(t, departed)| packet(t, t, departed)).collect();
        let records = Records { link, ..Records::default() };
        let trial = trial(2.0);
        let mean = summarise(&trial, &records)["link.down.throughput_mean_bps"].unwrap();
        let timeline = timeline(&trial, &records, 600);
        let bins: f64 = timeline.series[0].values.iter().flatten().sum();
        prop_assert!((bins * timeline.bin_s / 2.0 - mean).abs() < 1e-6 * mean.max(1.0));
    }
}

#[test]
fn the_asked_rate_is_the_measure_where_it_is_known() {
    // 16 kbit/s in the first half second, none in the second: 8 kbit could pass. One packet did.
    let mut asked = trial(1.0);
    asked.link_rates = vec![LinkRate {
        link: "access".into(),
        direction: Direction::Down,
        span_s: 0.5,
        rate_bps: vec![16e3, 0.0],
    }];
    let records = Records { link: vec![packet(0, 0, 10)], ..Records::default() };
    assert_eq!(summarise(&asked, &records)["link.down.utilisation"], Some(1.0));
    let timeline = timeline(&asked, &records, 10);
    let rate = timeline.series.iter().find(|s| s.name == "link.down.rate_bps").unwrap();
    let half = rate.values.len() / 2;
    assert!(rate.values[..half].iter().all(|v| *v == Some(16e3)), "{:?}", rate.values);
    assert!(rate.values[half..].iter().all(|v| *v == Some(0.0)), "{:?}", rate.values);
}
