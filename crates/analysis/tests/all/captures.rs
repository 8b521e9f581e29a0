//! What captures at both ends of a link show, next to what the link counted.

use crate::common;
use suiro_analysis::{Panel, Records, summarise, timeline};
use suiro_record::LinkTotals;
use suiro_record::tables::{HopRow, LinkRow};
use suiro_record::words::{Direction, LinkCause, Verdict};

const SPAN_NS: i64 = 100_000_000;

/// 100 packets of 1000 bytes sent, of which 7 were lost and 2 arrived twice.
fn row(t_ns: Option<i64>) -> HopRow {
    HopRow {
        t_ns,
        link: "access".into(),
        direction: Direction::Down,
        from: Some("server:access".into()),
        to: Some("client:access".into()),
        sent: Some(100),
        sent_bytes: Some(100_000),
        received: Some(95),
        received_bytes: Some(95_000),
        lost: Some(7),
        in_flight: Some(1),
        altered: Some(0),
        copies: Some(2),
        unknown: Some(0),
        delay_mean_ms: Some(20.0),
        delay_max_ms: Some(30.0),
    }
}

/// The same by the link itself.
fn totals() -> LinkTotals {
    LinkTotals {
        offered: 100,
        delivered: 95,
        dropped: [(LinkCause::Loss, 4), (LinkCause::Queue, 2)].into(),
        queued: 1,
        duplicated: 2,
        ..LinkTotals::new("access", Direction::Down)
    }
}

/// The metrics of a trial with these rows and this link.
fn metric(hops: Vec<HopRow>, link: LinkTotals, field: &str) -> Option<f64> {
    let trial = suiro_record::Trial { links: vec![link], ..common::trial(1.0) };
    let records = Records { hops, ..Records::default() };
    summarise(&trial, &records)[&format!("capture.down.{field}")]
}

#[test]
fn captures_that_agree_with_the_link() {
    let of = |field| metric(vec![row(None), row(Some(0))], totals(), field);
    assert_eq!(of("link_difference"), Some(0.0));
    assert_eq!(of("loss_ratio"), Some(0.06), "one of the 7 is still in the link");
    assert_eq!(of("lost"), Some(6.0));
    // 100 kB in a trial of one second.
    assert_eq!((of("sent_mean_bps"), of("received_mean_bps")), (Some(800e3), Some(760e3)));
    // A copy that the link dropped is in neither capture.
    let link = LinkTotals { duplicated: 3, ..totals() };
    let link = LinkTotals { dropped: [(LinkCause::Loss, 7)].into(), ..link };
    assert_eq!(metric(vec![row(None)], link, "link_difference"), Some(0.0));
}

#[test]
fn captures_that_differ_from_the_link() {
    for (link, difference) in [
        (LinkTotals { offered: 101, ..totals() }, 1.0),
        (LinkTotals { delivered: 90, ..totals() }, 5.0),
        (LinkTotals { queued: 3, ..totals() }, 2.0),
    ] {
        assert_eq!(metric(vec![row(None)], link, "link_difference"), Some(difference));
    }
    let unknown = HopRow { unknown: Some(4), ..row(None) };
    assert_eq!(metric(vec![unknown], totals(), "link_difference"), Some(4.0));
}

#[test]
fn what_an_incomplete_capture_cannot_show_is_null() {
    let incomplete = HopRow {
        lost: None,
        in_flight: None,
        altered: None,
        copies: None,
        unknown: None,
        ..row(None)
    };
    for field in ["lost", "loss_ratio", "link_difference"] {
        assert_eq!(metric(vec![incomplete.clone()], totals(), field), None, "{field}");
    }
    assert_eq!(metric(vec![incomplete], totals(), "sent"), Some(100.0));
    // A plain cable counts nothing.
    let plain = LinkTotals::new("other", Direction::Down);
    assert_eq!(metric(vec![row(None)], plain, "link_difference"), None);
}

#[test]
fn a_packet_in_the_link_at_the_end_is_not_lost() {
    // The captures ended before three packets came to the link, which dropped none.
    let none = LinkTotals { dropped: [].into(), queued: 10, ..totals() };
    assert_eq!(metric(vec![row(None)], none, "loss_ratio"), Some(0.0));
    let dropped = LinkTotals { dropped: [(LinkCause::Queue, 5)].into(), queued: 10, ..totals() };
    assert_eq!(metric(vec![row(None)], dropped, "lost"), Some(5.0));
}

#[test]
fn the_100_ms_in_which_a_warm_up_ends_count_as_a_whole() {
    let hops = (0..20).map(|span| row(Some(span * SPAN_NS))).chain([row(None)]).collect();
    let records = Records { hops, ..Records::default() };
    // 100 kB sent in each of them, and 95 kB received.
    let want = [
        ("capture.down.sent_mean_bps", Some(8e6)),
        ("capture.down.received_mean_bps", Some(7.6e6)),
    ];
    for warm_up_s in [0.0, 0.05, 1.0, 1.05, 1.999] {
        let trial = suiro_record::Trial { warm_up_s, ..common::trial(2.0) };
        common::assert_metrics(&trial, &records, &want);
    }
    let ended = suiro_record::Trial { warm_up_s: 5.0, ..common::trial(1.95) };
    common::assert_metrics(&ended, &records, &[("capture.down.sent_mean_bps", None)]);
}

/// Between hosts with several links between them, the links' own counts are of other packets too.
#[test]
fn a_packet_on_its_way_through_several_links_is_not_lost() {
    let path = |in_flight| HopRow {
        link: "server-client".into(),
        sent: Some(100),
        lost: Some(40),
        in_flight,
        ..row(None)
    };
    let lost = |in_flight, queued| {
        let link = LinkTotals { queued, ..totals() };
        let trial = suiro_record::Trial { links: vec![link], ..common::trial(1.0) };
        let records = Records { hops: vec![path(in_flight)], ..Records::default() };
        summarise(&trial, &records)["capture.down.lost"]
    };
    assert_eq!(lost(Some(38), 50), Some(2.0), "two were dropped");
    assert_eq!(lost(Some(38), 30), Some(10.0), "no more were in all links");
    assert_eq!(lost(Some(38), 0), Some(40.0), "nothing waited");
    assert_eq!(lost(None, 50), Some(40.0), "a record of an earlier version");
}

#[test]
fn counts_from_a_file_may_be_anything() {
    let most = u64::MAX;
    let link = LinkTotals { queued: most, unaccounted: most, offered: most, ..totals() };
    for lost in [i64::MIN, i64::MAX] {
        let row = HopRow { lost: Some(lost), ..row(None) };
        let lost = metric(vec![row.clone()], link.clone(), "lost");
        assert!(lost.is_some_and(f64::is_finite), "{lost:?}");
        metric(vec![row], link.clone(), "link_difference");
    }
}

#[test]
fn spans_are_drawn() {
    let in_flight = LinkRow {
        t_ns: 3 * SPAN_NS + 1,
        verdict: Verdict::Queued,
        ..common::packet(Direction::Down)
    };
    let hops = vec![row(None), row(Some(3 * SPAN_NS))];
    let records = Records { hops, link: vec![in_flight], ..Records::default() };
    let timeline = timeline(&common::trial(1.0), &records, 10);
    let series = |name: &str| timeline.series.iter().find(|it| it.name == name).unwrap();
    let lost = series("capture.down.lost_packets");
    assert_eq!((lost.panel, lost.values.len()), (Panel::CaptureLoss, 10));
    assert_eq!(lost.values[2..4], [Some(0.0), Some(6.0)]);
    assert_eq!(series("capture.down.sent_bps").values[3], Some(8e6));
}
