//! Whether a table is that of the link's own counts.

use crate::common::{self, packet};
use suiro_analysis::disagreements;
use suiro_record::words::{Direction, LinkCause};
use suiro_record::{LinkTotals, Trial};

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
    let rows = |count| vec![packet(Direction::Down); count];
    assert_eq!(disagreements(&trial(), &rows(10)), Vec::<String>::new());
    assert_eq!(disagreements(&trial(), &[]), Vec::<String>::new(), "it is not always recorded");
    for count in [9, 11] {
        let want = format!("link access down counted 10 packets, but its table has {count}");
        assert_eq!(disagreements(&trial(), &rows(count)), [want]);
    }
    let mut rows = rows(10);
    rows.push(packet(Direction::Up));
    let found = disagreements(&trial(), &rows);
    assert_eq!(found, ["link access up counted 0 packets, but its table has 1"]);
}

#[test]
fn counts_from_a_file_may_be_anything() {
    let mut odd = trial();
    odd.links[0].delivered = u64::MAX;
    odd.links.push(odd.links[0].clone());
    let found = disagreements(&odd, &[packet(Direction::Down)]);
    assert_eq!(found.len(), 1, "{found:?}");
}
