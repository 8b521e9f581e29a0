//! The rate of each flow over time.

use crate::common;
use crate::rivals::{GOP, MS, RTP, TCP, packet, records, report, told, two_films};
use suiro_analysis::{Panel, Records, Timeline, timeline};
use suiro_record::tables::FlowRow;

/// In 100 bins of a GoP time each. What is sent in GoP time n, from 0 on, is in bin n + 1.
fn drawn(records: &Records) -> Timeline {
    timeline(&common::trial(100.0 * 1.001), records, 100)
}

/// The names of the flows' own series, in order.
fn names(timeline: &Timeline) -> Vec<&str> {
    let series = timeline.series.iter().filter(|series| series.panel == Panel::Flows);
    series.map(|series| &*series.name).collect()
}

/// Checks the rate in a bin of a series: that of so many bytes, or none.
fn assert_bytes(timeline: &Timeline, name: &str, bin: usize, bytes: Option<f64>) {
    let series = timeline.series.iter().find(|series| series.name == name);
    let found = series.unwrap_or_else(|| panic!("no {name}")).values[bin];
    match (found, bytes.map(|bytes| bytes * 8.0 / 1.001)) {
        (Some(found), Some(want)) => {
            assert!((found - want).abs() < 1e-6, "{name}, {bin}: {found}, not {want}");
        }
        (found, want) => assert_eq!(found, want, "{name}, {bin}"),
    }
}

/// A row of table `flows` of an endpoint that sends video to this address.
fn film_to(endpoint: &str, remote: &str) -> FlowRow {
    FlowRow { endpoint: endpoint.into(), remote: remote.into(), ..told()[0].clone() }
}

#[test]
fn each_of_several_flows_has_its_rate_while_it_is_there() {
    // The other film begins 40 GoP times later, and pauses for 20.
    let films = two_films(|gop| match gop {
        0..40 | 60..80 => [1000, 0],
        _ => [1000, 3000],
    });
    let flows = vec![film_to("film", "10.0.0.3:5004"), film_to("other", "10.0.0.3:5014")];
    let timeline = drawn(&Records { flows, ..films });
    let [film, other] = ["film", "other"].map(|name| format!("fairness.{name}.video_flow_bps"));
    assert_eq!(names(&timeline), [&*film, &*other]);
    for (bin, of_film, of_other, mean) in [
        (0, None, None, None),
        (1, Some(1000.0), None, Some(1000.0)),
        (40, Some(1000.0), None, Some(1000.0)),
        (41, Some(1000.0), Some(3000.0), Some(2000.0)),
        (60, Some(1000.0), Some(3000.0), Some(2000.0)),
        (61, Some(1000.0), None, Some(1000.0)),
        (80, Some(1000.0), None, Some(1000.0)),
        (81, Some(1000.0), Some(3000.0), Some(2000.0)),
        (99, Some(1000.0), Some(3000.0), Some(2000.0)),
    ] {
        assert_bytes(&timeline, &film, bin, of_film);
        assert_bytes(&timeline, &other, bin, of_other);
        assert_bytes(&timeline, "fairness.video_bps", bin, mean);
    }
}

/// In each of 100 GoP times a packet of each flow, of this size; a size of 0 is no packet.
fn sent(flows: &[(String, i64)], size: impl Fn(i64, i64) -> i64) -> Records {
    let mut link = Vec::new();
    for gop in 0..100 {
        for ((flow, bytes), n) in flows.iter().zip(0..) {
            let bytes = size(gop, *bytes);
            if bytes > 0 {
                link.push(packet(GOP * (gop + 1) + n * MS, flow, bytes, "delivered"));
            }
        }
    }
    Records { link, rate: vec![report(GOP, 2_000_000, None)], ..Records::default() }
}

#[test]
fn several_flows_of_an_endpoint_have_numbers() {
    let second = "tcp 10.0.0.2:40001>10.0.0.4:5201";
    let sizes = [(RTP, 2000), (TCP, 1000), (second, 500)];
    let records = sent(&sizes.map(|(flow, bytes)| (flow.to_owned(), bytes)), |_, bytes| bytes);
    let timeline = drawn(&Records { flows: told(), ..records });
    let of = ["film.video_flow_bps", "sink.tcp_flow_bps", "sink 2.tcp_flow_bps"];
    let of = of.map(|name| format!("fairness.{name}"));
    assert_eq!(names(&timeline), of);
    for (name, bytes) in of.iter().zip([2000.0, 1000.0, 500.0]) {
        assert_bytes(&timeline, name, 50, Some(bytes));
    }
}

/// Ports change from trial to trial, names must not.
#[test]
fn flows_that_no_endpoint_reported_have_numbers() {
    for port in [40_001, 40_002] {
        let second = format!("tcp 10.0.0.2:{port}>10.0.0.4:5201");
        let flows = [(RTP.to_owned(), 2000), (TCP.to_owned(), 1000), (second, 500)];
        let of = ["video 1.video_flow_bps", "tcp 1.tcp_flow_bps", "tcp 2.tcp_flow_bps"];
        let of = of.map(|name| format!("fairness.{name}"));
        assert_eq!(names(&drawn(&sent(&flows, |_, bytes| bytes))), of);
    }
}

#[test]
fn one_flow_of_a_kind_is_its_mean() {
    assert!(names(&drawn(&records())).is_empty());
    let timeline = drawn(&Records { rate: Vec::new(), ..two_films(|_| [1000, 1000]) });
    assert!(names(&timeline).is_empty(), "without a rate control nobody competes");
}

#[test]
fn of_twenty_flows_eight_have_a_series_and_the_others_a_range() {
    // Camera n sends n · 100 B, the last one only from GoP time 50 on.
    let flow = |n: i64| format!("udp 10.0.0.{n}:5004>10.0.0.99:{}", 5100 + 10 * n);
    let cameras: Vec<(String, i64)> = (1..21).map(|n| (flow(n), 100 * n)).collect();
    let records = sent(&cameras, |gop, bytes| if bytes == 2000 && gop < 50 { 0 } else { bytes });
    let row = |n: i64| film_to(&format!("camera{n}"), &format!("10.0.0.99:{}", 5100 + 10 * n));
    let timeline = drawn(&Records { flows: (1..21).map(row).collect(), ..records });
    let (least, most) = ("fairness.others_least_bps", "fairness.others_most_bps");
    let mut want: Vec<String> =
        (1..9).map(|n| format!("fairness.camera{n}.video_flow_bps")).collect();
    want.extend([least, most].map(str::to_owned));
    assert_eq!(names(&timeline), want);
    assert_bytes(&timeline, &want[7], 30, Some(800.0));
    for (bin, low, high) in
        [(0, None, None), (30, Some(900.0), Some(1900.0)), (51, Some(900.0), Some(2000.0))]
    {
        assert_bytes(&timeline, least, bin, low);
        assert_bytes(&timeline, most, bin, high);
    }
}
