//! Events that wait to be fetched.

use std::collections::VecDeque;

use crate::Event;

/// Events in the order of recording, numbered from 0. The most recent ones are kept until they have
/// been fetched. Pure.
#[derive(Debug)]
pub struct Spool {
    kept: VecDeque<Event>,
    /// Number of the first event that is kept.
    first: u64,
    most: usize,
}

/// The result of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Number of the first event.
    pub first: u64,
    /// The events, in order.
    pub events: Vec<Event>,
    /// Whether more events were available at the time.
    pub more: bool,
}

impl Spool {
    /// Keeps up to `most` events.
    pub fn new(most: usize) -> Self {
        Self { kept: VecDeque::new(), first: 0, most: most.max(1) }
    }

    /// Adds events; the oldest are discarded to make room.
    pub fn extend(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            if self.kept.len() >= self.most {
                self.kept.pop_front();
                self.first += 1;
            }
            self.kept.push_back(event);
        }
    }

    /// Up to `most` events from number `from` on, or from the first that is kept. Those before it
    /// are discarded, because a watcher that asks for it has them. What was fetched stays until the
    /// next call, so that a lost answer loses nothing.
    pub fn fetch(&mut self, from: u64, most: usize) -> Fetched {
        while self.first < from && self.kept.pop_front().is_some() {
            self.first += 1;
        }
        let events: Vec<Event> = self.kept.iter().take(most).copied().collect();
        Fetched { first: self.first, more: events.len() < self.kept.len(), events }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, Point};

    fn event(t_ns: u64) -> Event {
        Event {
            t_ns,
            point: Point::SendIp,
            direction_flow: 0,
            key: Key::IpId { id: 1, check: 0 },
            ip_id: 1,
            payload_bytes: 100,
            segments: 1,
            cause: None,
        }
    }

    fn times(fetched: &Fetched) -> Vec<u64> {
        fetched.events.iter().map(|event| event.t_ns).collect()
    }

    #[test]
    fn what_was_fetched_is_kept_until_the_next_fetch() {
        let mut spool = Spool::new(10);
        spool.extend((0..5).map(event));
        let first = spool.fetch(0, 3);
        assert_eq!((first.first, times(&first), first.more), (0, vec![0, 1, 2], true));
        assert_eq!(spool.fetch(0, 3), first, "after a lost answer, the same events again");
        let rest = spool.fetch(3, 9);
        assert_eq!((rest.first, times(&rest), rest.more), (3, vec![3, 4], false));
        assert_eq!(spool.fetch(5, 9), Fetched { first: 5, events: vec![], more: false });
    }

    #[test]
    fn a_watcher_that_fetches_too_late_loses_the_oldest() {
        let mut spool = Spool::new(4);
        spool.extend((0..10).map(event));
        let fetched = spool.fetch(2, 9);
        assert_eq!((fetched.first, times(&fetched)), (6, vec![6, 7, 8, 9]));
    }

    #[test]
    fn a_future_number_discards_no_more_than_there_is() {
        let mut spool = Spool::new(4);
        spool.extend((0..2).map(event));
        assert_eq!(spool.fetch(u64::MAX, 9).first, 2);
        spool.extend([event(7)]);
        assert_eq!(times(&spool.fetch(2, 9)), [7]);
    }
}
