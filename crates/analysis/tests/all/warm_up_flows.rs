//! Flows that share a path, and multicast, in trials with a warm-up, by hand.

use suiro_analysis::{Records, summarise};
use suiro_record::Trial;
use suiro_record::tables::{LinkRow, MembershipRow, MulticastLinkRow, MulticastRow, RateRow};
use suiro_record::words::Direction;

use crate::common::assert_metrics;
use crate::rivals::{GOP, MS, OTHER_RTP, RTP, TCP, jain, packet, report, told, two_films};
use crate::warm_up::warmed;

/// A warm-up of the first 50 of the 100 GoP times of [`two_films`]. Packets are delivered 1 ms after a GoP time has begun.
const HALF_S: f64 = 51.0 * 1.001 + 0.001;

fn trial(warm_up_s: f64) -> Trial {
    warmed(101.5 * 1.001, warm_up_s)
}

const fn bps(bytes: f64) -> Option<f64> {
    Some(bytes * 8.0 / 1.001)
}

/// A film has 3000 B in each of 50 GoP times and then 1000 B, another flow 1000 B all the time.
fn calms_down() -> Records {
    two_films(|gop| if gop < 50 { [3000, 1000] } else { [1000, 1000] })
}

#[test]
fn films_are_compared_from_the_end_of_the_warm_up_on() {
    let whole = [
        ("fairness.video_mean_bps", bps(1500.0)),
        ("fairness.self_ratio", Some(jain(2000.0, 1000.0))),
        ("fairness.rate_ratio", Some(2.0)),
    ];
    assert_metrics(&trial(0.0), &calms_down(), &whole);
    let measured = [
        ("fairness.video_mean_bps", bps(1000.0)),
        ("fairness.self_ratio", Some(1.0)),
        ("fairness.rate_ratio", Some(1.0)),
    ];
    assert_metrics(&trial(HALF_S), &calms_down(), &measured);
    // One that ended in the warm-up counts as a flow, and has no rate.
    let alone = two_films(|gop| if gop < 40 { [3000, 500] } else { [1000, 0] });
    let measured = [
        ("fairness.video_flows", Some(2.0)),
        ("fairness.video_mean_bps", bps(1000.0)),
        ("fairness.rate_ratio", None),
    ];
    assert_metrics(&trial(HALF_S), &alone, &measured);
}

/// A film that calms down next to a TCP. 20 of its packets are lost in the 2nd GoP time, and 10 in the 60th.
fn film_and_tcp() -> Records {
    let mut records = Records { flows: told(), ..calms_down() };
    for row in records.link.iter_mut().filter(|row| &*row.flow == OTHER_RTP) {
        row.flow = TCP.into();
    }
    for (gop, count) in [(2, 20), (60, 10)] {
        let lost = |n: i64| packet(gop * GOP + n * MS, RTP, 1500, "dropped");
        records.link.extend((0..count).map(lost));
    }
    for gop in 0..100 {
        let size = if gop < 50 { 100 } else { 50 };
        let reports = "udp 10.0.0.3:5005>10.0.0.1:5005";
        let row = packet((gop + 1) * GOP + 10 * MS, reports, size, "delivered");
        records.link.push(LinkRow { direction: Direction::Up, ..row });
    }
    // When, the target in Mbit/s, and the round-trip time in ms.
    let rate = [(1, 2, 20), (11, 4, 20), (41, 2, 20), (61, 6, 40), (71, 2, 40), (90, 2, 40)];
    let row = |(gop, mbps, rtt_ms): (i64, i64, i64)| RateRow {
        rtt_ns: Some(rtt_ms * MS),
        ..report(gop * GOP + MS, mbps * 1_000_000, None)
    };
    records.rate = rate.map(row).to_vec();
    records
}

#[test]
fn a_film_and_a_tcp_are_compared_from_the_end_of_the_warm_up_on() {
    let whole = [
        ("fairness.video_mean_bps", bps(2000.0)),
        ("fairness.friendliness", Some(2.0)),
        ("fairness.jain_ratio", Some(jain(2000.0, 1000.0))),
        ("fairness.share_min_ratio", Some(2.0 / 3.0)),
        ("fairness.tcp_share_ratio", Some(1.0 / 3.0)),
        // Of five GoP times two may have 3000 B: Jain's index of 1800 and 1000 B is 0.92, of 2200 and 1000 B 0.88.
        ("fairness.convergence_s", Some(48.0 * 1.001)),
        ("fairness.video_variation", Some((100.0_f64 / 99.0).sqrt() / 2.0)),
        ("fairness.video_loss_ratio", Some(30.0 / 130.0)),
        ("fairness.feedback_ratio", Some(7500.0 / 245_000.0)),
        ("fairness.rtt_mean_ms", Some(30.0)),
        // From 11 to 41, 61 and 71 GoP times.
        ("fairness.interval_mean_s", Some(20.0 * 1.001)),
    ];
    assert_metrics(&trial(0.0), &film_and_tcp(), &whole);
    let measured = [
        ("fairness.video_mean_bps", bps(1000.0)),
        ("fairness.tcp_mean_bps", bps(1000.0)),
        ("fairness.friendliness", Some(1.0)),
        ("fairness.jain_ratio", Some(1.0)),
        ("fairness.jain_short_ratio", Some(1.0)),
        ("fairness.share_min_ratio", Some(1.0)),
        ("fairness.tcp_share_ratio", Some(0.5)),
        ("fairness.convergence_s", Some(0.0)),
        ("fairness.video_variation", Some(0.0)),
        // 50 packets were delivered.
        ("fairness.video_loss_ratio", Some(10.0 / 60.0)),
        // The first of the 50 came to the link before the warm-up ended: 49 of 1000 B and 10 of 1500 B, and 50 reports of 50 B.
        ("fairness.feedback_ratio", Some(2500.0 / 64_000.0)),
        ("fairness.rtt_mean_ms", Some(40.0)),
        ("fairness.interval_mean_s", Some(10.0 * 1.001)),
        // 2 Mbit/s for 10 and 20 GoP times, 6 Mbit/s for 10: a mean of 3, and of the squares of 12.
        ("fairness.target_variation", Some(3.0_f64.sqrt() / 3.0)),
        ("fairness.video_flows", Some(1.0)),
        ("fairness.tcp_flows", Some(1.0)),
    ];
    assert_metrics(&trial(HALF_S), &film_and_tcp(), &measured);
}

/// A film has 2 Mbit/s in 5 ms until 25 s, then 1 Mbit/s in 1 ms, and from 40 s on 250 kbit/s in 4 ms next to a TCP of 750.
fn harmed() -> Records {
    let mut link = Vec::new();
    for n in 0..1000 {
        let t_ns = 100 * MS * n;
        let (size, took_ms) = match n {
            ..250 => (25_000, 5),
            250..400 => (12_500, 1),
            _ => (3125, 4),
        };
        let row = packet(t_ns, RTP, size, "delivered");
        link.push(LinkRow { departed_ns: Some(t_ns + took_ms * MS), ..row });
        if n >= 400 {
            link.push(packet(t_ns, TCP, 9375, "delivered"));
        }
    }
    Records { link, ..Records::default() }
}

#[test]
fn a_flow_is_alone_from_the_end_of_the_warm_up_on() {
    // The first packets are delivered after 1 ms: halves are of 40 s alone, from 20.001 s on, and of 60 s together.
    let whole = [
        ("harm.share_ratio", Some(0.25)),
        // 5 s of 2 Mbit/s and 15 s of 1 Mbit/s.
        ("harm.rate_ratio", Some(0.8)),
        // 50 packets in 5 ms, 150 in 1 ms.
        ("harm.delay_alone_ms", Some(2.0)),
        ("harm.delay_together_ms", Some(4.0)),
        ("harm.delay_ratio", Some(0.5)),
    ];
    assert_metrics(&warmed(100.001, 0.0), &harmed(), &whole);
    // The half of 30 s alone begins at 25.001 s.
    let measured = [
        ("harm.share_ratio", Some(0.25)),
        ("harm.rate_ratio", Some(0.75)),
        ("harm.delay_alone_ms", Some(1.0)),
        ("harm.delay_together_ms", Some(4.0)),
        ("harm.delay_ratio", Some(0.75)),
    ];
    assert_metrics(&warmed(100.001, 10.001), &harmed(), &measured);
    // It is alone for 5 s, or not at all.
    for warm_up_s in [35.0, 45.0] {
        let metrics = summarise(&warmed(100.001, warm_up_s), &harmed());
        assert!(!metrics.keys().any(|name| name.starts_with("harm.")), "{warm_up_s}");
    }
}

/// What a router has forwarded on one of its links, in packets of 1000 B.
fn forwarded(t_s: i64, link: &str, packets_in: i64, packets_out: i64) -> MulticastLinkRow {
    MulticastLinkRow {
        t_ns: t_s * 1000 * MS,
        router: "r".into(),
        link: link.into(),
        packets_in,
        bytes_in: packets_in * 1000,
        packets_out,
        bytes_out: packets_out * 1000,
    }
}

fn wrong(t_s: i64, source: &str, wrong_packets: i64) -> MulticastRow {
    MulticastRow {
        t_ns: t_s * 1000 * MS,
        router: "r".into(),
        group: "232.0.0.1".into(),
        source: source.into(),
        input: None,
        outputs: "east".into(),
        packets: 0,
        bytes: 0,
        wrong_packets,
    }
}

#[test]
fn counters_of_routers_grow_from_their_last_reading_in_the_warm_up() {
    let readings = [(0, 0, 0), (1, 100, 50), (2, 300, 60), (3, 350, 60), (4, 400, 65)];
    let links = |(t_s, packets, registered): (i64, i64, i64)| {
        let (east, west) = (forwarded(t_s, "east", 0, packets), forwarded(t_s, "west", packets, 0));
        [west, east, forwarded(t_s, "register", registered, 0)]
    };
    let multicast = readings.into_iter().flat_map(links).collect();
    let groups = vec![wrong(1, "10.0.0.1", 7), wrong(3, "10.0.0.1", 9), wrong(3, "10.0.0.2", 4)];
    let records = Records { multicast, groups, ..Records::default() };
    let whole = [
        ("multicast.r.in_packets", Some(400.0)),
        ("multicast.r.out_packets", Some(400.0)),
        ("multicast.r.registered_packets", Some(65.0)),
        ("multicast.r.wrong_packets", Some(13.0)),
        // 400 kB in 4 s.
        ("multicast.r.out_mean_bps", Some(800_000.0)),
    ];
    assert_metrics(&warmed(5.0, 0.0), &records, &whole);
    let measured = [
        ("multicast.r.in_packets", Some(100.0)),
        ("multicast.r.out_packets", Some(100.0)),
        ("multicast.r.registered_packets", Some(5.0)),
        ("multicast.r.wrong_packets", Some(6.0)),
        // 100 kB in 2 s.
        ("multicast.r.in_mean_bps", Some(400_000.0)),
        ("multicast.r.out_mean_bps", Some(400_000.0)),
    ];
    for warm_up_s in [2.0, 2.5] {
        assert_metrics(&warmed(5.0, warm_up_s), &records, &measured);
    }
}

/// A membership: when it began, its first packet, when it ended and its last packet.
fn member(t_ms: i64, first_ms: Option<i64>, ended_ms: Option<(i64, i64)>) -> MembershipRow {
    MembershipRow {
        t_ns: t_ms * MS,
        endpoint: "viewer".into(),
        group: "232.0.0.1".into(),
        source: None,
        first_ns: first_ms.map(|ms| ms * MS),
        left_ns: ended_ms.map(|(left, _)| left * MS),
        last_ns: ended_ms.map(|(_, last)| last * MS),
        packets: 0,
        packets_after: 0,
        dropped_packets: 0,
    }
}

#[test]
fn memberships_count_if_they_began_after_the_warm_up() {
    let memberships = vec![
        member(1000, Some(1100), Some((3000, 3500))),
        member(2500, Some(2520), Some((3000, 3050))),
        member(3500, None, None),
    ];
    let records = Records { memberships, ..Records::default() };
    let whole = [
        ("membership.joins", Some(3.0)),
        ("membership.unanswered", Some(1.0)),
        ("membership.join_max_ms", Some(100.0)),
        ("membership.leave_max_ms", Some(500.0)),
    ];
    assert_metrics(&warmed(5.0, 0.0), &records, &whole);
    let measured = [
        ("membership.joins", Some(2.0)),
        ("membership.unanswered", Some(1.0)),
        ("membership.join_max_ms", Some(20.0)),
        ("membership.leave_max_ms", Some(50.0)),
    ];
    assert_metrics(&warmed(5.0, 2.0), &records, &measured);
    assert_metrics(&warmed(5.0, 3.0), &records, &[("membership.unanswered", Some(1.0))]);
    let none = summarise(&warmed(5.0, 4.0), &records);
    assert!(!none.keys().any(|name| name.starts_with("membership.")));
}
