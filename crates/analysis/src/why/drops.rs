//! Packets that a link kept from their receivers, and how.

use suiro_record::tables::LinkRow;
use suiro_record::words::{Cause, LinkCause, Verdict};

use super::rules::Rules;

/// How a packet was kept from its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dropped {
    /// The link lost it, other than for want of room.
    Lost,
    /// The link changed its bits.
    Corrupted,
    /// By a queue that held packets.
    Overflowed,
    /// By a queue that held none.
    Policed,
}

/// Packets that were kept from their receivers, by how.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Drops([u32; Dropped::ALL.len()]);

impl Drops {
    pub fn count(&mut self, how: Dropped) {
        let count = &mut self.0[how as usize];
        *count = count.saturating_add(1);
    }

    pub fn add(&mut self, others: &Self) {
        for (count, other) in self.0.iter_mut().zip(others.0) {
            *count = count.saturating_add(other);
        }
    }

    pub fn count_all(&self) -> u32 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// How most of them were; `None` if there are none.
    pub fn most(&self) -> Option<Dropped> {
        let counts = Dropped::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0);
        counts.max_by_key(|(_, count)| *count).map(|(how, _)| how)
    }
}

impl Dropped {
    const ALL: [Self; 4] = [Self::Lost, Self::Corrupted, Self::Overflowed, Self::Policed];

    /// What is to blame; `None` of a full queue: that depends on who filled it.
    pub const fn cause(self) -> Option<Cause> {
        match self {
            Self::Lost => Some(Cause::Loss),
            Self::Corrupted => Some(Cause::Corruption),
            Self::Policed => Some(Cause::Policer),
            Self::Overflowed => None,
        }
    }

    pub fn of(row: &LinkRow, rules: Rules) -> Option<Self> {
        match (row.verdict, row.cause) {
            (Verdict::Dropped, Some(LinkCause::Queue)) => {
                let holds = row.queue_packets > rules.policed_packets;
                Some(if holds { Self::Overflowed } else { Self::Policed })
            }
            // The others are dropped by how long they waited, so the queue had held some.
            (Verdict::Dropped, _) if by_queue(row) => Some(Self::Overflowed),
            (Verdict::Dropped, _) => Some(Self::Lost),
            // Whoever receives it drops it, by its checksum.
            (Verdict::Delivered, Some(LinkCause::Corrupt)) => Some(Self::Corrupted),
            _ => None,
        }
    }
}

/// Whether a queue dropped the packet: it was full, active queue management did, or the packet's lifetime on Wi-Fi was over
/// before it was sent.
pub(super) fn by_queue(row: &LinkRow) -> bool {
    let of_queue = match row.cause {
        Some(LinkCause::Queue | LinkCause::Aqm) => true,
        Some(LinkCause::Lifetime) => !was_sent(row),
        _ => false,
    };
    row.verdict == Verdict::Dropped && of_queue
}

/// Whether the packet was sent on a shared medium, received or not.
pub(super) fn was_sent(row: &LinkRow) -> bool {
    row.attempts.is_some_and(|attempts| attempts > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cause: LinkCause, queue_packets: i64) -> LinkRow {
        LinkRow {
            t_ns: 0,
            link: "access".into(),
            direction: suiro_record::words::Direction::Down,
            packet: 0,
            flow: "".into(),
            size_bytes: 1500,
            payload_bytes: None,
            queue_bytes: 0,
            queue_packets,
            verdict: Verdict::Dropped,
            cause: Some(cause),
            ecn_marked: false,
            dequeued_ns: None,
            scheduled_ns: None,
            departed_ns: None,
            attempts: None,
        }
    }

    #[test]
    fn what_waited_too_long_was_not_policed() {
        let of = |cause, packets| Dropped::of(&row(cause, packets), Rules::default());
        assert_eq!(of(LinkCause::Queue, 0), Some(Dropped::Policed));
        assert_eq!(of(LinkCause::Queue, 9), Some(Dropped::Overflowed));
        assert_eq!(of(LinkCause::Aqm, 0), Some(Dropped::Overflowed));
        assert_eq!(of(LinkCause::Lifetime, 0), Some(Dropped::Overflowed));
        assert_eq!(of(LinkCause::Loss, 9), Some(Dropped::Lost));
    }

    /// A packet may be too old because it was sent again and again, however short the queue was.
    #[test]
    fn what_grew_too_old_on_the_air_was_not_dropped_by_the_queue() {
        let rules = Rules::default();
        for (attempts, how) in [(0, Dropped::Overflowed), (1, Dropped::Lost), (4, Dropped::Lost)] {
            let row = LinkRow { attempts: Some(attempts), ..row(LinkCause::Lifetime, 0) };
            assert_eq!(Dropped::of(&row, rules), Some(how), "{attempts} attempts");
            assert_eq!(by_queue(&row), how == Dropped::Overflowed, "{attempts} attempts");
        }
        let retried = LinkRow { attempts: Some(7), ..row(LinkCause::Retry, 9) };
        assert!(!by_queue(&retried));
        let delivered = LinkRow { verdict: Verdict::Delivered, ..row(LinkCause::Queue, 9) };
        assert!(!by_queue(&delivered));
    }
}
