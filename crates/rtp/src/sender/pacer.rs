//! When packets leave: one after the other at the rate that is allowed, in bursts that are bounded.

use std::collections::VecDeque;

use suiro_units::{BitRate, Bytes, Duration, Time};

/// How far a burst may run ahead: a timer that is late by so much is made up for.
const BURST: Duration = Duration::from_millis(5);

/// Slowest pace: a packet of 1500 bytes in 1.2 s.
const SLOWEST: BitRate = BitRate::from_kbps(10);

/// The pace of what does not wait: a packet takes less than a nanosecond.
const AT_ONCE: BitRate = BitRate::from_bps(u64::MAX);

/// Longest that may wait, in time at the current pace, before frames are refused.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Largest queue at any pace.
const QUEUE_MAX: Bytes = Bytes::new(32 << 20);

/// A queue that is drained at a pace.
#[derive(Debug)]
pub struct Pacer<T> {
    /// What goes before the others.
    first: VecDeque<(Bytes, T)>,
    queue: VecDeque<(Bytes, T)>,
    queued: Bytes,
    rate: BitRate,
    /// What waits leaves within this time, at a faster pace if it must.
    within: Option<Duration>,
    /// When the next may leave.
    next: Time,
}

impl<T> Pacer<T> {
    /// An empty queue.
    pub fn new(rate: BitRate) -> Self {
        let mut pacer = Self {
            first: VecDeque::new(),
            queue: VecDeque::new(),
            queued: Bytes::ZERO,
            rate: SLOWEST,
            within: None,
            next: Time::ZERO,
        };
        pacer.set_rate(rate);
        pacer
    }

    /// The same, but what waits leaves within that time, at a faster pace if it must; within none, it leaves at once.
    #[must_use]
    pub const fn within(mut self, time: Option<Duration>) -> Self {
        self.within = time;
        self
    }

    /// The pace at which the next one leaves.
    fn pace(&self) -> BitRate {
        match self.within {
            None => self.rate,
            Some(Duration::ZERO) => AT_ONCE,
            Some(time) => self.rate.max(self.queued / time),
        }
    }

    /// The pace from the next packet on.
    pub fn set_rate(&mut self, rate: BitRate) {
        self.rate = rate.max(SLOWEST);
    }

    /// What waits.
    pub fn queued(&self) -> Bytes {
        self.queued
    }

    /// Whether so much waits that no more should be added.
    pub fn is_full(&self) -> bool {
        self.queued / self.pace() > WAIT_MAX || self.queued > QUEUE_MAX
    }

    /// Adds one at the end. The size is that of the IP packet.
    pub fn push(&mut self, size: Bytes, item: T) {
        self.queued += size;
        self.queue.push_back((size, item));
    }

    /// Adds one that goes before all others, but behind those that were added so before.
    pub fn push_first(&mut self, size: Bytes, item: T) {
        self.queued += size;
        self.first.push_back((size, item));
    }

    fn is_empty(&self) -> bool {
        self.first.is_empty() && self.queue.is_empty()
    }

    /// When the next one leaves; `None` if there is none.
    pub fn next(&self) -> Option<Time> {
        (!self.is_empty()).then_some(self.next)
    }

    /// When something that does not wait here may leave: if nothing does, now or when the pace allows it.
    pub fn idle_at(&self) -> Option<Time> {
        self.is_empty().then_some(self.next)
    }

    /// Something that did not wait here leaves.
    pub fn spend(&mut self, now: Time, size: Bytes) {
        self.next = self.next.max(now.saturating_sub(BURST)) + size / self.pace();
    }

    /// The next one, if its time has come.
    pub fn poll(&mut self, now: Time) -> Option<T> {
        if self.next > now {
            return None;
        }
        let pace = self.pace();
        let (size, item) = self.first.pop_front().or_else(|| self.queue.pop_front())?;
        self.queued -= size;
        self.next = self.next.max(now.saturating_sub(BURST)) + size / pace;
        Some(item)
    }

    /// Lets everything go that waits.
    pub fn clear(&mut self) {
        self.first.clear();
        self.queue.clear();
        self.queued = Bytes::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// When each of ten packets of 1250 bytes leaves, if looked at whenever one may.
    fn departures(pacer: &mut Pacer<u32>, from: Time) -> Vec<Time> {
        (0..10).for_each(|n| pacer.push(Bytes::new(1250), n));
        let mut now = from;
        std::iter::from_fn(|| {
            now = now.max(pacer.next()?);
            pacer.poll(now).map(|_| now)
        })
        .collect()
    }

    #[test]
    fn packets_are_spread_at_the_rate() {
        // 10,000 bits each 5 ms.
        let mut pacer = Pacer::new(BitRate::from_mbps(2));
        let times = departures(&mut pacer, ms(100));
        // After a pause one more may go at once, and no more.
        let expected: Vec<Time> =
            [100, 100, 105, 110, 115, 120, 125, 130, 135, 140].map(ms).to_vec();
        assert_eq!(times, expected);
    }

    #[test]
    fn a_late_look_is_made_up_for_within_bounds() {
        let mut pacer = Pacer::new(BitRate::from_mbps(10)); // 1 ms each
        (0..100).for_each(|n| pacer.push(Bytes::new(1250), n));
        let mut burst = |at| std::iter::from_fn(|| pacer.poll(ms(at))).count();
        assert_eq!([burst(100), burst(103), burst(200)], [6, 3, 6]);
    }

    #[test]
    fn what_waits_is_bounded_in_time() {
        let mut pacer = Pacer::new(BitRate::from_mbps(1));
        (0..100).for_each(|n| pacer.push(Bytes::new(1250), n));
        assert!(!pacer.is_full(), "one second");
        pacer.push(Bytes::new(1), 0);
        assert!(pacer.is_full());
        pacer.set_rate(BitRate::from_mbps(2));
        assert!(!pacer.is_full());
    }

    #[test]
    fn what_must_leave_in_time_leaves_faster_than_the_rate() {
        let within = Duration::from_millis(100);
        let mut pacer = Pacer::new(BitRate::from_kbps(100)).within(Some(within));
        // 100 kbit: ten packets that would take 1 s.
        let times = departures(&mut pacer, ms(100));
        let took = times[9] - times[0];
        assert!(took > within && took < within * 4, "{took}");
        (0..1000).for_each(|n| pacer.push(Bytes::new(1250), n));
        assert!(!pacer.is_full(), "it leaves in time");
    }

    #[test]
    fn without_time_to_wait_all_leave_at_once() {
        let mut pacer = Pacer::new(BitRate::from_kbps(100)).within(Some(Duration::ZERO));
        assert_eq!(departures(&mut pacer, ms(100)), [ms(100); 10]);
        (0..1000).for_each(|n| pacer.push(Bytes::new(1250), n));
        assert!(!pacer.is_full(), "nothing waits long");
    }

    #[test]
    fn what_goes_first_keeps_its_order() {
        let mut pacer = Pacer::new(BitRate::from_mbps(2)).within(Some(Duration::ZERO));
        [1, 2].iter().for_each(|n| pacer.push(Bytes::new(1250), *n));
        [8, 9].iter().for_each(|n| pacer.push_first(Bytes::new(1250), *n));
        assert_eq!((pacer.queued(), pacer.idle_at()), (Bytes::new(5000), None));
        let left: Vec<u32> = std::iter::from_fn(|| pacer.poll(ms(100))).collect();
        assert_eq!((left, pacer.next()), (vec![8, 9, 1, 2], None));
    }

    #[test]
    fn no_rate_is_the_slowest() {
        let mut pacer = Pacer::new(BitRate::from_bps(0));
        pacer.push(Bytes::new(1250), 1);
        pacer.push(Bytes::new(1250), 2);
        assert_eq!(pacer.poll(ms(0)), Some(1));
        assert_eq!(pacer.next(), Some(ms(1000)));
    }
}
