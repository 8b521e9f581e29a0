//! Loss events and their rate (RFC 5348 §5).

use std::collections::VecDeque;

use suiro_units::{Duration, Ratio, Time};

/// Closed loss intervals that are remembered (RFC 5348 §5.4: n = 8).
const INTERVALS: usize = 8;
/// Weights of the intervals, the latest first (RFC 5348 §5.4).
const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// One discount of older intervals is no stronger than this (RFC 5348 §5.5: THRESHOLD); the value
/// is ns-2's.
const LEAST_DISCOUNT: f64 = 0.5;
/// A packet is lost when so many with higher numbers have arrived (RFC 5348 §5.1: NDUPACK).
const LATER: u32 = 3;
/// At most so many loss events come of one hole, more than are remembered: a bound for holes of
/// absurd length, over which the events are then spread.
const EVENTS_OF_A_HOLE: u64 = 16;
/// No interval counts as more packets: the loss event rate is at least its inverse, never 0 again.
const INTERVAL_MAX: f64 = 1e8;

/// Which packets arrived, made into loss events: losses within one round-trip time count as one,
/// as TCP answers them once. From them comes the loss event rate *p*, the inverse of the weighted
/// mean of the intervals between loss events.
#[derive(Debug, Clone, Default)]
pub struct LossHistory {
    highest: Option<Arrival>,
    /// Packets that are missing and not yet lost, lowest first; at most [`LATER`] holes, each of
    /// which an arrival opened.
    holes: VecDeque<Hole>,
    /// The latest loss event.
    event: Option<Event>,
    /// Packets from the beginning of one loss event to that of the next; the latest first.
    closed: VecDeque<Closed>,
}

/// A closed interval.
#[derive(Debug, Clone, Copy)]
struct Closed {
    packets: f64,
    /// What it counts for, of its weight.
    discount: f64,
}

/// A packet that arrived.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    sequence: u64,
    at: Time,
}

/// Packets missing between two that arrived.
#[derive(Debug, Clone, Copy)]
struct Hole {
    before: Arrival,
    after: Arrival,
    /// Packets above that arrived.
    later: u32,
}

/// The beginning of a loss event.
#[derive(Debug, Clone, Copy)]
struct Event {
    sequence: u64,
    at: Time,
}

impl LossHistory {
    /// A packet has arrived. Sequence numbers are extended: they do not wrap. What arrives twice or
    /// after it counted as lost is ignored. True if a new loss event began.
    pub fn on_packet(&mut self, now: Time, sequence: u64, rtt: Duration) -> bool {
        let arrival = Arrival { sequence, at: now };
        let Some(highest) = self.highest else {
            self.highest = Some(arrival);
            return false;
        };
        if sequence <= highest.sequence {
            self.fill(arrival);
            return false;
        }
        self.holes.iter_mut().for_each(|hole| hole.later += 1);
        if sequence - highest.sequence > 1 {
            self.holes.push_back(Hole { before: highest, after: arrival, later: 1 });
        }
        self.highest = Some(arrival);
        let mut began = false;
        while let Some(hole) = self.holes.pop_front_if(|hole| hole.later >= LATER) {
            began |= self.lose(hole, rtt);
        }
        began
    }

    /// A report of counts alone: of so many packets since the one before, so many were lost, evenly
    /// spread from `since` to `now`. True if a new loss event began.
    pub fn on_counts(
        &mut self,
        since: Time,
        now: Time,
        expected: u64,
        lost: u64,
        rtt: Duration,
    ) -> bool {
        let lost = lost.min(expected);
        let before = self.highest.unwrap_or(Arrival { sequence: 0, at: since });
        let last = before.sequence.saturating_add(expected);
        let mut began = false;
        let span = now.saturating_since(since);
        let times = lost.min(EVENTS_OF_A_HOLE);
        for n in 0..times {
            // Each loss stands in the middle of its part.
            let share = (n as f64 + 0.5) / times as f64;
            let ahead = (expected as f64 * share) as u64;
            let sequence = before.sequence.saturating_add(ahead).min(last);
            let at = since + span.mul_f64(share);
            began |= self.lost_at(Event { sequence, at }, rtt);
        }
        self.highest = Some(Arrival { sequence: last, at: now.max(before.at) });
        began
    }

    /// The loss event rate; `None` before the first loss event.
    ///
    /// RFC 5348 §5.4: the open interval counts only if it makes the mean larger.
    pub fn loss_event_rate(&self) -> Option<Ratio> {
        let open = self.open()?;
        let mean = self.mean(open, self.discount(open));
        Ratio::new((1.0 / mean).clamp(1.0 / INTERVAL_MAX, 1.0))
    }

    /// Packets since the latest loss event began; `None` before the first.
    pub fn open(&self) -> Option<f64> {
        let (event, highest) = self.event.zip(self.highest)?;
        Some(highest.sequence.saturating_sub(event.sequence) as f64 + 1.0)
    }

    /// The weighted mean of the closed intervals in packets (RFC 5348 §5.4: I_tot1 / W_tot), without the open one; `None`
    /// before the first.
    pub fn mean_closed(&self) -> Option<f64> {
        let weights = self.closed.iter().zip(WEIGHTS);
        let (total, weight) = weights.fold((0.0, 0.0), |(total, sum), (closed, weight)| {
            let weight = weight * closed.discount;
            (total + closed.packets * weight, sum + weight)
        });
        (weight > 0.0).then(|| total / weight)
    }

    /// The weighted mean of the closed intervals, or with the open one in front if that is more;
    /// the closed ones next to the open one are discounted.
    fn mean(&self, open: f64, discount: f64) -> f64 {
        let Some(mean) = self.mean_closed() else { return open };
        // As many intervals as in the other mean: the oldest makes room.
        let shifted = self.closed.iter().take(self.closed.len() - 1).zip(&WEIGHTS[1..]);
        let (total_open, weight_open) =
            shifted.fold((open, 1.0), |(total, sum), (closed, weight)| {
                let weight = weight * closed.discount * discount;
                (total + closed.packets * weight, sum + weight)
            });
        mean.max(total_open / weight_open)
    }

    /// RFC 5348 §5.5: when the open interval is more than twice the mean, the path has become
    /// better, and the older intervals count for less.
    fn discount(&self, open: f64) -> f64 {
        let mean = self.mean(open, 1.0);
        if open > 2.0 * mean { (2.0 * mean / open).max(LEAST_DISCOUNT) } else { 1.0 }
    }

    /// What the interval before the first loss event counts as (RFC 5348 §6.3.1); to be called
    /// once, when [`Self::on_packet`] or [`Self::on_counts`] was true for the first time.
    pub fn set_first_interval(&mut self, packets: f64) {
        if self.closed.len() < INTERVALS {
            let packets = packets.clamp(1.0, INTERVAL_MAX);
            self.closed.push_back(Closed { packets, discount: 1.0 });
        }
    }

    /// The number of the highest packet, and when it arrived.
    pub fn highest(&self) -> Option<(u64, Time)> {
        self.highest.map(|highest| (highest.sequence, highest.at))
    }

    /// A packet arrives late: its hole becomes smaller, or two.
    fn fill(&mut self, arrival: Arrival) {
        let within = |hole: &Hole| {
            hole.before.sequence < arrival.sequence && arrival.sequence < hole.after.sequence
        };
        let Some(index) = self.holes.iter().position(within) else { return };
        let hole = self.holes[index];
        // It stands where it would have arrived in order: losses around it are interpolated.
        let arrival = Arrival { at: hole.time_of(arrival.sequence), ..arrival };
        let parts = [Hole { after: arrival, ..hole }, Hole { before: arrival, ..hole }];
        let parts = parts.into_iter().filter(|part| part.missing() > 0);
        let rest = self.holes.split_off(index + 1);
        self.holes.pop_back();
        self.holes.extend(parts.chain(rest));
    }

    /// The packets of a hole are lost: finds the loss events that begin in it.
    fn lose(&mut self, hole: Hole, rtt: Duration) -> bool {
        let span = hole.after.at.saturating_since(hole.before.at);
        let step = rtt.max(span / EVENTS_OF_A_HOLE);
        let mut lost = hole.before.sequence + 1;
        let mut began = self.lost_at(Event { sequence: lost, at: hole.time_of(lost) }, rtt);
        for _ in 0..EVENTS_OF_A_HOLE {
            let Some(event) = self.event else { break };
            let Some(next) = hole.first_after(event.at + step) else { break };
            lost = next.max(lost + 1);
            if lost >= hole.after.sequence {
                break;
            }
            self.begin(Event { sequence: lost, at: hole.time_of(lost) });
            began = true;
        }
        began
    }

    /// A packet is lost. RFC 5348 §5.2: it begins a loss event unless the latest began within a
    /// round-trip time before. True if it did.
    fn lost_at(&mut self, event: Event, rtt: Duration) -> bool {
        let same = |latest: Event| event.at <= latest.at + rtt || event.sequence <= latest.sequence;
        if self.event.is_some_and(same) {
            return false;
        }
        self.begin(event);
        true
    }

    /// A loss event begins, and closes an interval (RFC 5348 §5.3: counted in packets).
    fn begin(&mut self, event: Event) {
        if let Some(latest) = self.event {
            let packets = event.sequence.saturating_sub(latest.sequence) as f64;
            let packets = packets.clamp(1.0, INTERVAL_MAX);
            // RFC 5348 §5.5: what was discounted remains so.
            let discount = self.discount(packets);
            self.closed.iter_mut().for_each(|closed| closed.discount *= discount);
            self.closed.push_front(Closed { packets, discount: 1.0 });
            self.closed.truncate(INTERVALS);
        }
        self.event = Some(event);
    }
}

impl Hole {
    const fn missing(&self) -> u64 {
        self.after.sequence - self.before.sequence - 1
    }

    /// When a missing packet would have arrived, in proportion between those around it
    /// (RFC 5348 §5.2).
    fn time_of(&self, sequence: u64) -> Time {
        let share = (sequence - self.before.sequence) as f64 / (self.missing() + 1) as f64;
        self.before.at + self.after.at.saturating_since(self.before.at).mul_f64(share)
    }

    /// The first packet of the hole whose time lies after `at`; `None` if that is none.
    fn first_after(&self, at: Time) -> Option<u64> {
        let span = self.after.at.saturating_since(self.before.at);
        let ahead = at.saturating_since(self.before.at);
        if span <= ahead {
            return None;
        }
        let packets = (ahead / span * (self.missing() + 1) as f64).floor() as u64 + 1;
        (packets <= self.missing()).then(|| self.before.sequence + packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// A packet each 10 ms, but for those lost.
    fn history(packets: u64, lost: &[u64]) -> LossHistory {
        let mut history = LossHistory::default();
        for n in (0..packets).filter(|n| !lost.contains(n)) {
            history.on_packet(Time::from_millis(10 * n), n, RTT);
        }
        history
    }

    fn intervals(history: &LossHistory) -> Vec<f64> {
        history.closed.iter().map(|closed| closed.packets).collect()
    }

    fn rate(history: &LossHistory) -> f64 {
        history.loss_event_rate().expect("there was a loss event").get()
    }

    #[test]
    fn a_packet_is_lost_when_three_later_ones_arrived() {
        assert_eq!(history(13, &[10]).loss_event_rate(), None);
        assert_eq!(history(14, &[10]).event.map(|event| event.sequence), Some(10));
        assert_eq!(history(14, &[10]).event.map(|event| event.at), Some(Time::from_millis(100)));
    }

    #[test]
    fn losses_of_a_round_trip_time_are_one_event() {
        // 20 and 30 lie 100 ms apart, which is still the same.
        let history = history(100, &[20, 23, 24, 30, 31, 60]);
        assert_eq!(intervals(&history), [29.0, 11.0]);
    }

    #[test]
    fn reordered_packets_fill_their_hole() {
        let mut history = LossHistory::default();
        for n in [0, 1, 2, 5, 4, 6, 3, 7, 8, 9, 10] {
            history.on_packet(Time::from_millis(10 * n), n, RTT);
        }
        assert_eq!(history.loss_event_rate(), None);
        for n in [12, 11, 15, 13, 16, 17, 18, 19, 20] {
            history.on_packet(Time::from_millis(10 * n), n, RTT);
        }
        assert_eq!(history.event.map(|event| event.sequence), Some(14));
    }

    #[test]
    fn a_long_hole_is_an_event_per_round_trip_time() {
        // 10 to 400 ms are missing: events at 10, 120, 230 and 340 ms.
        let lost: Vec<u64> = (1..=40).collect();
        assert_eq!(intervals(&history(50, &lost)), [11.0, 11.0, 11.0]);
        // 100 s are missing: sixteen events, evenly, and not all of them at the beginning.
        let lost: Vec<u64> = (3..10_003).collect();
        let even = intervals(&history(10_010, &lost));
        assert!(even.len() == 8 && even.iter().all(|n| (624.0..=627.0).contains(n)), "{even:?}");
        // Hours are missing: as many events as are remembered, and no more work.
        let mut history = LossHistory::default();
        for n in [0, 1, 2, 1 << 60, (1 << 60) + 1, (1 << 60) + 2] {
            history.on_packet(Time::from_secs(n / (1 << 40)), n, RTT);
        }
        assert_eq!(intervals(&history), [INTERVAL_MAX; 8]);
        assert!(rate(&history) >= 1.0 / INTERVAL_MAX);
    }

    #[test]
    fn the_mean_is_weighted_and_the_open_interval_can_only_raise_it() {
        // Intervals 10, 20, …, 80, the latest first, and then an open one.
        let mut lost = vec![10];
        (1..=8).rev().for_each(|n| lost.push(lost.last().unwrap() + 20 * n));
        let last = *lost.last().unwrap();
        let history = |open: u64| history(last + open, &lost);
        let closed: Vec<f64> = (1..=8).map(|n| 20.0 * f64::from(n)).collect();
        assert_eq!(intervals(&history(4)), closed);
        let mean =
            closed.iter().zip(WEIGHTS).map(|(closed, weight)| closed * weight).sum::<f64>() / 6.0;
        assert!((rate(&history(4)) - 1.0 / mean).abs() < 1e-12);
        assert!(
            (rate(&history(60)) - 1.0 / mean).abs() < 1e-12,
            "60 is less than the mean of {mean}"
        );
        // With 140 in front and 160 gone: RFC 5348 §5.4.
        let shifted = closed.iter().zip(&WEIGHTS[1..]).map(|(closed, weight)| closed * weight);
        let mean_open = (140.0 + shifted.sum::<f64>()) / 6.0;
        assert!((rate(&history(140)) - 1.0 / mean_open).abs() < 1e-12);
    }

    #[test]
    fn a_long_open_interval_discounts_the_older_ones() {
        // Eight intervals of 20 and an open one of 200: mean 50, factor 2·50/200 = 0.5.
        let lost: Vec<u64> = (0..9).map(|n| 10 + 20 * n).collect();
        let history = history(170 + 200, &lost);
        let expected = (200.0 + 0.5 * 20.0 * 5.0) / (1.0 + 0.5 * 5.0);
        assert!((rate(&history) - 1.0 / expected).abs() < 1e-12, "{}", 1.0 / rate(&history));
        // It closes, and they remain discounted; the oldest is gone.
        let lost: Vec<u64> = lost.into_iter().chain([170 + 200]).collect();
        let history = self::history(170 + 204, &lost);
        let expected = (200.0 + 0.5 * 20.0 * 5.0) / (1.0 + 0.5 * 5.0);
        assert!((rate(&history) - 1.0 / expected).abs() < 1e-12, "{}", 1.0 / rate(&history));
    }

    #[test]
    fn counts_spread_their_losses_evenly() {
        let mut history = LossHistory::default();
        let second = |n| Time::from_secs(n);
        assert!(history.on_counts(second(0), second(1), 100, 2, RTT));
        assert_eq!(intervals(&history), [50.0]);
        assert!(history.on_counts(second(1), second(2), 100, 1, RTT));
        assert_eq!(intervals(&history), [75.0, 50.0]);
        assert!(!history.on_counts(second(2), second(3), 100, 0, RTT));
        // 50 losses within a round-trip time are one event.
        assert!(history.on_counts(second(3), second(3) + RTT, 100, 50, RTT));
        assert_eq!(intervals(&history).len(), 3);
    }
}
