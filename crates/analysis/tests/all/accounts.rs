//! Whether a table is that of the link's own counts.

use crate::common;
use suiro_analysis::disagreements;
use suiro_record::tables::LinkRow;
use suiro_record::words::{Direction, LinkCause, Verdict};
use suiro_record::{LinkTotals, Trial};

fn row(direction: Direction) -> LinkRow {
    LinkRow {
        t_ns: 0,
        link: "access".into(),
        direction,
        packet: 0,
        flow: "udp".into(),
        size_bytes: 100,
        payload_bytes: None,
        queue_bytes: 0,
        queue_packets: 0,
        verdict: Verdict::Delivered,
        cause: None,
        ecn_marked: false,
        dequeued_ns: None,
        scheduled_ns: None,
        departed_ns: None,
        attempts: None,
    }
}

/// Of 9 packets and a copy, 6 were delivered, 3 dropped and 1 was still there.
fn trial() -> Trial {
    let link = LinkTotals {
        offered: 9,
        duplicated: 1,
        delivered: 6,
        dropped: [(LinkCause::Queue, 2), (LinkCause::Loss, 1)].into(),
        queued: 1,
        ..LinkTotals::new("access", Direction::Down)
    };
    Trial { links: vec![link], ..common::trial(1.0) }
}

#[test]
fn a_table_has_a_row_for_each_packet_that_the_link_counted() {
    let rows = |count| vec![row(Direction::Down); count];
    assert_eq!(disagreements(&trial(), &rows(10)), Vec::<String>::new());
    assert_eq!(disagreements(&trial(), &[]), Vec::<String>::new(), "it is not always recorded");
    for count in [9, 11] {
        let want = format!("link access down counted 10 packets, but its table has {count}");
        assert_eq!(disagreements(&trial(), &rows(count)), [want]);
    }
    let mut rows = rows(10);
    rows.push(row(Direction::Up));
    let found = disagreements(&trial(), &rows);
    assert_eq!(found, ["link access up counted 0 packets, but its table has 1"]);
}
