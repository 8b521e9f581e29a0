//! Copies that a link makes, and links that let packets pass at once, computed by hand.

use crate::common::{self, assert_metrics, trial};
use suiro_analysis::Records;
use suiro_record::tables::LinkRow;
use suiro_record::words::{Direction, LinkCause, Verdict};
use suiro_record::{LinkTotals, Trial};

const US: i64 = 1_000;

/// A packet of 1500 bytes that arrives at the start, goes into service, and leaves it at the given times.
fn packet(number: i64, dequeued_us: i64, out_us: i64) -> LinkRow {
    let departed_ns = Some((out_us + 10_000) * US);
    LinkRow {
        packet: number,
        size_bytes: 1500,
        payload_bytes: Some(1472),
        dequeued_ns: Some(dequeued_us * US),
        scheduled_ns: departed_ns,
        departed_ns,
        ..common::packet(Direction::Down)
    }
}

fn records(link: Vec<LinkRow>) -> Records {
    Records { link, ..Records::default() }
}

/// 70 packets at once, at 10 Mbit/s behind a bucket of 60 kB: 40 pass at once, and the next one waits for tokens.
#[test]
fn what_tokens_cover_does_not_count_for_the_rate_when_busy() {
    let row = |n: i64| packet(n, 1200 * (n - 40).max(0), 1200 * (n - 39).max(0));
    let want = [("link.down.served_bps", Some(10e6))];
    assert_metrics(&trial(1.0), &records((0..70).map(row).collect()), &want);
}

/// Each row has been sent once more than its packet's number says.
#[test]
fn a_copy_is_a_copy_whatever_else_became_of_it() {
    let row = |n: i64, cause| {
        let attempts = Some(n.cast_unsigned() + 1);
        LinkRow { cause, attempts, ..packet(n, 1200 * n, 1200 * (n + 1)) }
    };
    let (corrupt, duplicate) = (Some(LinkCause::Corrupt), Some(LinkCause::Duplicate));
    let still_inside =
        LinkRow { verdict: Verdict::Queued, scheduled_ns: None, departed_ns: None, ..row(4, None) };
    let dropped = LinkRow { verdict: Verdict::Dropped, ..row(5, Some(LinkCause::Loss)) };
    let dropped = LinkRow { dequeued_ns: None, scheduled_ns: None, departed_ns: None, ..dropped };
    let rows = vec![
        row(0, None),
        row(0, corrupt),
        // The copy came out first.
        row(1, corrupt),
        row(1, None),
        row(2, corrupt),
        row(3, corrupt),
        row(3, duplicate),
        row(4, None),
        still_inside,
        dropped,
        // Both are flipped.
        row(6, corrupt),
        row(6, corrupt),
    ];
    let want = [
        ("link.down.throughput_mean_bps", Some(10.0 * 12_000.0)),
        ("link.down.payload_mean_bps", Some(6.0 * 1472.0 * 8.0)),
        ("flow.goodput_mean_bps", Some(6.0 * 1472.0 * 8.0)),
        ("link.down.loss_ratio", Some(1.0 / 7.0)),
        // Attempts of the six that were delivered: 1, 2, 3, 4, 5 and 7, and the 6 of the one that was dropped.
        ("link.down.attempts_failed_ratio", Some(22.0 / 28.0)),
    ];
    assert_metrics(&trial(1.0), &records(rows), &want);
}

#[test]
fn copies_that_stay_in_the_link_were_not_delivered() {
    let totals = LinkTotals {
        offered: 5,
        delivered: 4,
        dropped: [(LinkCause::Loss, 1)].into(),
        queued: 4,
        duplicated: 4,
        ..LinkTotals::new("access", Direction::Down)
    };
    let loss = |duplicates_delivered, ratio| {
        let totals = LinkTotals { duplicates_delivered, ..totals.clone() };
        let trial = Trial { links: vec![totals], ..trial(1.0) };
        let want = [
            ("link.down.loss_ratio", Some(ratio)),
            ("link.down.loss_random_ratio", Some(ratio)),
            ("link.down.loss_queue_ratio", Some(0.0)),
        ];
        assert_metrics(&trial, &records(vec![packet(0, 0, 1200)]), &want);
    };
    loss(Some(2), 1.0 / 3.0);
    // An older record does not have it: all copies count as delivered.
    loss(None, 1.0);
}
