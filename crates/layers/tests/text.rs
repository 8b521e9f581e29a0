//! The report as people read it.

mod common;

use common::{MS, Way, call};
use suiro_layers::Point;
use suiro_layers::report::{joined, text};

#[test]
fn a_call_that_loses() {
    let lost = Way::lost_after(Point::ReceiveSocket, Some(1));
    let ways: Vec<Way> =
        (0..1_000).map(|number| if number % 5 == 4 { lost } else { Way::through() }).collect();
    let (a, mut b) = call(5 * MS, &ways);
    for second in &mut b.scheduling {
        (second.waiting_ns, second.running_ns) = (Some(840 * MS), Some(160 * MS));
    }
    b.points[8].lost = 3;
    insta::assert_snapshot!(text(&joined(&a, &b)));
}

#[test]
fn nothing_was_recorded() {
    let (mut a, mut b) = call(MS, &[]);
    (a.flows, b.flows) = (Vec::new(), Vec::new());
    b.boot_id = "another".into();
    insta::assert_snapshot!(text(&joined(&a, &b)));
}
