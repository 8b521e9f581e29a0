//! Watched points that see nothing of a flow although nothing was lost there, because the flow takes a path without
//! probes. They are left out of its account, where they would appear as false losses.

use serde::Serialize;

use crate::event::{Point, Recording};
use crate::matching::{Passage, Points, Side, side};

/// A point where nothing of a flow was seen, and from which nothing can be concluded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unseen {
    /// The point.
    pub point: Point,
    /// What is known about the reason.
    pub why: &'static str,
}

/// Those among the watched points. `host` is the recording of either side.
pub(super) fn unseen<'r>(
    passages: &[&Passage],
    points: Points,
    host: impl Fn(Side) -> Option<&'r Recording>,
) -> Vec<Unseen> {
    let mut unseen = Vec::new();
    if points.has(Point::SendCall) && never(passages, Point::SendCall) {
        let why =
            "it was sent without a system call of its own: by an io_uring thread, or by the kernel";
        let points = points.iter().filter(|&point| point < Point::SendIp);
        unseen.extend(points.map(|point| Unseen { point, why }));
    }
    let Some(last) = passages.iter().filter_map(|passage| passage.last()).max() else {
        return unseen;
    };
    let goes_on = points.after(last).filter(|&next| side(next) == side(last));
    // A queue discipline hands packets to the driver, drops them, or holds them back: they do not leave it otherwise.
    let (Some(next), true) = (goes_on, last != Point::SendQdisc) else { return unseen };
    let told = |passage: &&&Passage| passage.last() == Some(last) && passage.drop.is_some();
    if passages.iter().any(|passage| told(&passage)) || !host(side(last)).is_some_and(tells_drops) {
        return unseen;
    }
    let why = match next {
        Point::ReceiveCall => {
            "nothing of it was dropped, and no system call took it: it is still in the socket's queue, or \
             it is read in a way that the probes cannot see"
        }
        _ => {
            "nothing of it was dropped, yet it did not arrive there: a tunnel, a redirection or XDP took it"
        }
    };
    unseen.extend(points.iter().filter(|&p| p >= next).map(|point| Unseen { point, why }));
    unseen
}

fn never(passages: &[&Passage], point: Point) -> bool {
    !passages.is_empty() && passages.iter().all(|passage| passage.at(point).is_none())
}

/// Whether all drops on this host are known, without gaps.
fn tells_drops(recording: &Recording) -> bool {
    let is_whole = |status: &crate::event::PointStatus| {
        status.point == Point::Dropped
            && status.missing.is_none()
            && status.lost + status.skipped == 0
    };
    recording.points.iter().any(is_whole)
}
