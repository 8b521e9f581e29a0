//! When packets leave: one after the other at the rate that is allowed.
//!
//! After an idle time, too: one packet leaves at once, and the others follow at the pace. SCReAM's draft wants each gap to be `t_pace`
//! at least (§4.3.2), RFC 9331 §4.3 wants the queues of bursts to be short, and RFC 8698 has no bursts. RFC 5348 §4.6 would allow
//! those of a round-trip time. Only the draft of GCC sends groups of packets (§4), so a rate control has the length of a burst.
//!
//! A timer that is late makes bursts all the same: what was due meanwhile leaves together, up to a bound.

use std::collections::VecDeque;

use suiro_units::{BitRate, Bytes, Duration, Time};

/// A timer that is late by so much is made up for. Those of the endpoints fire up to a millisecond late, and then the process must get
/// a CPU; with less than a millisecond, fast senders would never reach their pace.
const LATE: Duration = Duration::from_millis(2);

/// Slowest pace: a packet of 1500 bytes in 1.2 s.
const SLOWEST: BitRate = BitRate::from_kbps(10);

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
    /// What may leave at once after an idle time, besides one packet, in time at the pace.
    burst: Duration,
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
            burst: Duration::ZERO,
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

    /// The same, but after an idle time as much leaves at once as the pace allows in that time, besides one packet.
    #[must_use]
    pub const fn with_burst(mut self, burst: Duration) -> Self {
        self.burst = burst;
        self
    }

    /// The time that so much takes at the current pace.
    fn takes(&self, size: Bytes) -> Duration {
        match self.within {
            None => size / self.rate,
            Some(Duration::ZERO) => Duration::ZERO,
            Some(time) => size / self.rate.max(self.queued / time),
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
        self.takes(self.queued) > WAIT_MAX || self.queued > QUEUE_MAX
    }

    /// Adds one at the end. The size is that of the IP packet.
    pub fn push(&mut self, now: Time, size: Bytes, item: T) {
        self.add(now, size);
        self.queue.push_back((size, item));
    }

    /// Adds one that goes before all others, but behind those that were added so before.
    pub fn push_first(&mut self, now: Time, size: Bytes, item: T) {
        self.add(now, size);
        self.first.push_back((size, item));
    }

    fn add(&mut self, now: Time, size: Bytes) {
        if self.is_empty() {
            self.rest(now);
        }
        self.queued += size;
    }

    /// Nothing could leave until now, so nothing is late.
    pub fn rest(&mut self, now: Time) {
        self.next = self.next.max(now.saturating_sub(self.burst));
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
        let late = LATE.max(self.burst);
        self.next = self.next.max(now.saturating_sub(late)) + self.takes(size);
    }

    /// The next one, if its time has come.
    pub fn poll(&mut self, now: Time) -> Option<T> {
        if self.next > now {
            return None;
        }
        let (size, item) = self.first.pop_front().or_else(|| self.queue.pop_front())?;
        self.spend(now, size);
        self.queued -= size;
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
        (0..10).for_each(|n| pacer.push(from, Bytes::new(1250), n));
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
        assert_eq!(times, [100, 105, 110, 115, 120, 125, 130, 135, 140, 145].map(ms));
        // The last one's time is not over; then it has been, for long.
        assert_eq!(departures(&mut pacer, ms(147))[..2], [150, 155].map(ms));
        assert_eq!(departures(&mut pacer, ms(300))[..2], [300, 305].map(ms));
    }

    #[test]
    fn where_bursts_are_allowed_one_follows_an_idle_time() {
        let mut pacer = Pacer::new(BitRate::from_mbps(2)).with_burst(Duration::from_millis(5));
        let times = departures(&mut pacer, ms(100));
        assert_eq!(times, [100, 100, 105, 110, 115, 120, 125, 130, 135, 140].map(ms));
    }

    #[test]
    fn a_late_look_is_made_up_for_within_bounds() {
        for (burst, expected) in [(0, [3, 3, 3]), (5, [6, 3, 6])] {
            // 1 ms each.
            let burst = Duration::from_millis(burst);
            let mut pacer = Pacer::new(BitRate::from_mbps(10)).with_burst(burst);
            (0..100).for_each(|n| pacer.push(ms(0), Bytes::new(1250), n));
            let mut leave = |at| std::iter::from_fn(|| pacer.poll(ms(at))).count();
            assert_eq!([leave(100), leave(103), leave(200)], expected);
        }
    }

    #[test]
    fn what_could_not_leave_is_not_late() {
        let mut pacer = Pacer::new(BitRate::from_mbps(10));
        (0..100).for_each(|n| pacer.push(ms(0), Bytes::new(1250), n));
        pacer.rest(ms(100));
        let mut leave = |at| std::iter::from_fn(|| pacer.poll(ms(at))).count();
        assert_eq!([leave(100), leave(100), leave(101)], [1, 0, 1]);
    }

    #[test]
    fn what_waits_is_bounded_in_time() {
        let mut pacer = Pacer::new(BitRate::from_mbps(1));
        (0..100).for_each(|n| pacer.push(ms(0), Bytes::new(1250), n));
        assert!(!pacer.is_full(), "one second");
        pacer.push(ms(0), Bytes::new(1), 0);
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
        (0..1000).for_each(|n| pacer.push(ms(100), Bytes::new(1250), n));
        assert!(!pacer.is_full(), "it leaves in time");
    }

    #[test]
    fn without_time_to_wait_all_leave_at_once() {
        let mut pacer = Pacer::new(BitRate::from_kbps(100)).within(Some(Duration::ZERO));
        assert_eq!(departures(&mut pacer, ms(100)), [ms(100); 10]);
        (0..1000).for_each(|n| pacer.push(ms(100), Bytes::new(1250), n));
        assert!(!pacer.is_full(), "nothing waits long");
    }

    #[test]
    fn what_goes_first_keeps_its_order() {
        let mut pacer = Pacer::new(BitRate::from_mbps(2)).within(Some(Duration::ZERO));
        [1, 2].iter().for_each(|n| pacer.push(ms(100), Bytes::new(1250), *n));
        [8, 9].iter().for_each(|n| pacer.push_first(ms(100), Bytes::new(1250), *n));
        assert_eq!((pacer.queued(), pacer.idle_at()), (Bytes::new(5000), None));
        let left: Vec<u32> = std::iter::from_fn(|| pacer.poll(ms(100))).collect();
        assert_eq!((left, pacer.next()), (vec![8, 9, 1, 2], None));
    }

    #[test]
    fn no_rate_is_the_slowest() {
        let mut pacer = Pacer::new(BitRate::from_bps(0));
        pacer.push(ms(0), Bytes::new(1250), 1);
        pacer.push(ms(0), Bytes::new(1250), 2);
        assert_eq!(pacer.poll(ms(0)), Some(1));
        assert_eq!(pacer.next(), Some(ms(1000)));
    }
}
