//! Points that are watched and yet see nothing of a flow that was not lost there: it takes a way on which there
//! is no probe. They have no part in its account, for whatever stood there would be a loss that is none.

use serde::Serialize;

use crate::event::{Point, Recording};
use crate::matching::{Passage, Points, Side, side};

/// A point where nothing of a flow was seen, from which nobody may conclude anything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unseen {
    /// Which.
    pub point: Point,
    /// What is known of why.
    pub why: &'static str,
}

/// Those of the watched points. `host` is the recording of either side.
pub(super) fn unseen<'r>(
    passages: &[&Passage],
    points: Points,
    host: impl Fn(Side) -> Option<&'r Recording>,
) -> Vec<Unseen> {
    let mut unseen = Vec::new();
    if points.has(Point::SendCall) && never(passages, Point::SendCall) {
        unseen.push(Unseen {
            point: Point::SendCall,
            why: "it was sent, and not by a system call of its own: by a thread of io_uring's, or by the kernel",
        });
    }
    let Some(last) = passages.iter().filter_map(|passage| passage.last()).max() else {
        return unseen;
    };
    let goes_on = points.after(last).filter(|&next| side(next) == side(last));
    // A queue discipline hands to the driver, or drops, or holds back: nobody else takes it from there.
    let (Some(next), true) = (goes_on, last != Point::SendQdisc) else { return unseen };
    let told = |passage: &&&Passage| passage.last() == Some(last) && passage.drop.is_some();
    if passages.iter().any(|passage| told(&passage)) || !host(side(last)).is_some_and(tells_drops) {
        return unseen;
    }
    let why = match next {
        Point::ReceiveCall => {
            "nothing of it was dropped, and no system call took it: it lies in the socket's queue, or \
             is read in a way that no probe sees"
        }
        _ => {
            "nothing of it was dropped, yet it did not come there: a tunnel, a redirection or XDP took it on"
        }
    };
    unseen.extend(points.iter().filter(|&p| p >= next).map(|point| Unseen { point, why }));
    unseen
}

fn never(passages: &[&Passage], point: Point) -> bool {
    !passages.is_empty() && passages.iter().all(|passage| passage.at(point).is_none())
}

/// Whether what this host drops is known, without a gap.
fn tells_drops(recording: &Recording) -> bool {
    let is_whole = |status: &crate::event::PointStatus| {
        status.point == Point::Dropped && status.missing.is_none() && status.lost == 0
    };
    recording.points.iter().any(is_whole)
}
