//! Whether a player requests its media by turns: each piece when the one before has come.

use suiro_record::tables::RequestRow;
use suiro_record::words::{Cause, RequestKind};

use super::segments::{Awaited, Story};
use super::since;

/// A smaller share of the time in transit is not worth a word.
const LEAST_SHARE: f64 = 0.05;

impl Story<'_, '_> {
    /// What requests by turns cost: each that led to a segment since a time was sent when the answer to the one before was
    /// complete, and requests and last bytes were in transit for a part of it.
    pub fn told_turns(
        &self,
        awaited: &Awaited,
        from: i64,
        shares: &[(Cause, f64)],
    ) -> Option<String> {
        let (_, share) = shares.iter().find(|(cause, _)| *cause == Cause::RoundTrip)?;
        let last = awaited.request;
        let own = |row: &&&RequestRow| {
            row.kind == RequestKind::Segment && row.track == last.track && row.t_ns <= last.t_ns
        };
        let own: Vec<&RequestRow> = self.player.requests.iter().filter(own).copied().collect();
        // The answer before the first of them counts.
        let first = own.partition_point(|row| row.t_ns < from).saturating_sub(1);
        let mut turns = own[first..].windows(2).peekable();
        let are_turns = turns.peek().is_some() && turns.all(|pair| self.is_turn(pair[0], pair[1]));
        (are_turns && *share >= LEAST_SHARE).then(|| {
            format!(
                "; the player sent each request when the answer to the one before was complete: \
                 requests and last bytes were in transit for {:.0} % of the time",
                share * 100.0
            )
        })
    }

    /// Whether one request was sent when the answer to the one before was complete, and soon after that.
    fn is_turn(&self, before: &RequestRow, after: &RequestRow) -> bool {
        before.done_ns.is_some_and(|done| {
            done <= after.t_ns && since(after.t_ns, done) <= self.rules.next_request_ns
        })
    }
}
