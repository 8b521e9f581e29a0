//! Whether a node's clock is the controller's: all nodes change at a time in TAI, so their clocks must agree.

use suiro_uncompressed::FrameRate;
use suiro_units::{Duration, Time};

use super::Control;
use crate::net;
use crate::nmos::Tai;
use crate::node::Status;

/// How far clocks may be apart if the rings are shorter than this.
const LEAST: Duration = Duration::from_millis(500);

/// How far a node's clock is from ours, in words, if that is more than its ring holds. `asked` is our clock when the node was
/// asked, and `answered` how long the answer took: the node read its clock in between.
pub(super) fn apart(asked: Tai, answered: Duration, status: &Status) -> Option<String> {
    let slots = status.lanes.iter().map(|lane| lane.ring_slots).max().unwrap_or(0);
    let allowed = FrameRate::P59_94.start_of(slots).max(LEAST);
    let its = Tai::from_nanos(status.tai_ns);
    let (behind, ahead) = (asked.since(its), its.since(asked.after(answered)));
    let (apart, word) = if behind > ahead { (behind, "behind") } else { (ahead, "ahead of") };
    (apart > allowed).then(|| {
        format!(
            "its clock is {apart} {word} this controller's; expected {allowed} at most, what its ring holds; \
             synchronise the clocks by PTP or NTP"
        )
    })
}

impl Control {
    /// Compares a node's clock with this controller's. A node whose clock is too far off is not used until it agrees again; both
    /// are reported when they happen, not at every answer.
    pub(super) fn compare_clocks(&mut self, node: &str, asked: Time, status: &Status) {
        let (now, tai) = (net::monotonic(), net::tai());
        let then =
            Tai::from_nanos(tai.as_nanos().saturating_sub(now.saturating_since(asked).as_nanos()));
        match apart(then, now.saturating_since(asked), status) {
            Some(reason) => {
                if !self.apart.contains_key(node) {
                    self.note("refused", None, Some(node), &reason);
                }
                self.apart.insert(node.to_owned(), reason);
            }
            None => {
                self.note_clock_set(node, status);
                if self.apart.remove(node).is_some() {
                    self.note("well", None, Some(node), "its clock is this controller's again");
                }
            }
        }
    }
}

impl Control {
    /// Reports that a node's clock was set while it ran.
    fn note_clock_set(&mut self, node: &str, status: &Status) {
        let before = self.seen.get(node).map_or(0, |(_, seen)| seen.clock_set_ns);
        if status.clock_set_ns == 0 || before != 0 {
            return;
        }
        let by = Duration::from_nanos(status.clock_set_ns.unsigned_abs());
        let word = if status.clock_set_ns > 0 { "forward" } else { "back" };
        let detail = format!(
            "its TAI was set {word} by {by} after it began; its streams keep the time before, and their timestamps differ from \
             those of nodes that begin later; start it again when it sends nothing"
        );
        self.note("clock", None, Some(node), &detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn node(tai_ns: u64) -> Status {
        let text = format!(r#"{{"name": "n1", "tai_ns": {tai_ns}, "idle_ns": 0, "lanes": []}}"#);
        Status::parse("n1", &text).unwrap()
    }

    #[test]
    fn a_clock_that_is_off_by_more_than_the_ring_is_refused() {
        let (asked, took) = (Tai::from_nanos(100 * SECOND), Duration::from_millis(100));
        let of = |tai_ns| apart(asked, took, &node(tai_ns));
        // Half a second, as there is no ring yet: before the question, or after the answer.
        assert_eq!(of(99 * SECOND + SECOND / 2), None);
        assert_eq!(of(100 * SECOND + SECOND * 6 / 10), None);
        let behind = of(98 * SECOND).unwrap();
        assert!(behind.starts_with("its clock is 2 s behind this controller's"), "{behind}");
        let ahead = of(103 * SECOND).unwrap();
        assert!(ahead.starts_with("its clock is 2.9 s ahead of"), "{ahead}");
    }
}
