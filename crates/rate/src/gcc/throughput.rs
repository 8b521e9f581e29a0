//! What passes: the rate of what was acknowledged, as libwebrtc estimates it in 2024 (`RobustThroughputEstimator`, its default, in
//! `modules/congestion_controller/goog_cc`), and the least time until a capacity is known again (`LinkCapacityEstimator`).

use std::collections::VecDeque;

use suiro_units::{Duration, Time};

/// The window is of the latest packets: so many and of so long, whichever is more, but never beyond the bounds of either.
const PACKETS: usize = 20;
const PACKETS_MAX: usize = 500;
const WINDOW: Duration = Duration::from_secs(1);
const WINDOW_MAX: Duration = Duration::from_secs(5);
/// A packet that arrived longer than this before the latest one was not overtaken: the receiver's clock was set back.
const OVERTAKEN_MAX: Duration = Duration::from_secs(1);
/// A rate of arrivals, or of departures, is of at least so many packets.
const ENOUGH: usize = 10;
/// A shorter time counts as this.
const SPAN_MIN: Duration = Duration::from_millis(1);

/// A packet that has arrived.
#[derive(Debug, Clone, Copy)]
struct Packet {
    /// On the receiver's clock.
    arrived: Time,
    sent: Time,
    bytes: f64,
}

/// The rate at which packets arrive, but no more than that at which they were sent.
#[derive(Debug, Clone, Default)]
pub struct Throughput {
    /// In the order of arrival.
    window: VecDeque<Packet>,
    /// When the latest one left of those that are no longer in the window.
    discarded: Time,
}

impl Throughput {
    /// A packet has arrived, on the receiver's clock.
    pub fn on_packet(&mut self, arrived: Time, sent: Time, bytes: f64) {
        let latest = self.window.back().map_or(arrived, |packet| packet.arrived);
        if latest.saturating_since(arrived) > OVERTAKEN_MAX {
            *self = Self::default();
        }
        let place = self.window.partition_point(|packet| packet.arrived <= arrived);
        self.window.insert(place, Packet { arrived, sent, bytes });
        while self.is_too_long()
            && let Some(old) = self.window.pop_front()
        {
            self.discarded = self.discarded.max(old.sent);
        }
    }

    fn is_too_long(&self) -> bool {
        let (Some(first), Some(last)) = (self.window.front(), self.window.back()) else {
            return false;
        };
        let (packets, span) = (self.window.len(), last.arrived.saturating_since(first.arrived));
        packets > PACKETS_MAX || span > WINDOW_MAX || packets > PACKETS && span > WINDOW
    }

    /// The rate in bit/s; `None` before enough packets have arrived, and after a pause as long as the longest window.
    pub fn bps(&self) -> Option<f64> {
        let received = self.received()?;
        Some(self.sent().map_or(received, |sent| sent.min(received)))
    }

    /// The rate of arrivals. The size of the first packet is no part of it: how long that took is not known. The
    /// longest gap counts as the second longest, so that a path that delivers nothing for a moment has not become slower.
    fn received(&self) -> Option<f64> {
        let (first, last) = (self.window.front()?, self.window.back()?);
        if self.window.len() < ENOUGH {
            return None;
        }
        let (mut longest, mut second) = (Duration::ZERO, Duration::ZERO);
        for (one, next) in self.window.iter().zip(self.window.iter().skip(1)) {
            let gap = next.arrived.saturating_since(one.arrived);
            if gap > longest {
                (longest, second) = (gap, longest);
            } else {
                second = second.max(gap);
            }
        }
        let bytes: f64 = self.window.iter().skip(1).map(|packet| packet.bytes).sum();
        let span = last.arrived.saturating_since(first.arrived).saturating_sub(longest) + second;
        Some(rate(bytes, span))
    }

    /// The rate of departures, without the packet that left last. Packets that left before one that is no longer in the window were
    /// overtaken, perhaps long ago, and do not count. `None` if too few are left.
    fn sent(&self) -> Option<f64> {
        let in_order = |packet: &Packet| packet.sent >= self.discarded;
        let packets: Vec<Packet> = self.window.iter().copied().filter(in_order).collect();
        if packets.len() < ENOUGH {
            return None;
        }
        let first = packets.iter().map(|packet| packet.sent).min()?;
        // Of several that left at that time, the one that arrived first.
        let last = packets.iter().rev().max_by_key(|packet| packet.sent)?;
        let bytes = packets.iter().map(|packet| packet.bytes).sum::<f64>() - last.bytes;
        Some(rate(bytes, last.sent.saturating_since(first)))
    }
}

fn rate(bytes: f64, span: Duration) -> f64 {
    bytes * 8.0 / span.max(SPAN_MIN).as_secs_f64()
}

/// Weight of the latest sample of the capacity.
const CAPACITY_GAIN: f64 = 0.05;
/// The least and the greatest normalised variance, at first the least.
const DEVIATION: (f64, f64) = (0.4, 2.5);

/// What passed when the path was last overused, in kbit/s, with its variance divided by the mean.
#[derive(Debug, Clone, Default)]
pub struct Capacity(Option<(f64, f64)>);

impl Capacity {
    /// The path is overused while so much passes.
    pub fn on_overuse(&mut self, bps: f64) {
        let kbps = bps / 1e3;
        let (mean, deviation) = self.0.unwrap_or((kbps, DEVIATION.0));
        let mean = mean + CAPACITY_GAIN * (kbps - mean);
        let error = mean - kbps;
        let deviation =
            (1.0 - CAPACITY_GAIN) * deviation + CAPACITY_GAIN * error * error / mean.max(1.0);
        self.0 = Some((mean, deviation.clamp(DEVIATION.0, DEVIATION.1)));
    }

    /// Whether it is known.
    pub const fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// The mean in bit/s.
    pub fn bps(&self) -> Option<f64> {
        self.0.map(|(mean, _)| mean * 1e3)
    }

    /// Forgets it if what passes is three standard deviations away from it: above, or below.
    pub fn check(&mut self, bps: f64, above: bool) {
        let Some((mean, deviation)) = self.0 else { return };
        let spread = 3.0 * (deviation * mean).sqrt();
        let kbps = bps / 1e3;
        if if above { kbps > mean + spread } else { kbps < mean - spread } {
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1000 bytes that leave at each of these times, in ms, and take 20 ms.
    fn send(throughput: &mut Throughput, at_ms: impl IntoIterator<Item = u64>) {
        for ms in at_ms {
            throughput.on_packet(Time::from_millis(ms + 20), Time::from_millis(ms), 1000.0);
        }
    }

    /// One each 10 ms, 800 kbit/s, up to 3 s.
    fn steady() -> Throughput {
        let mut throughput = Throughput::default();
        send(&mut throughput, (0..=3000).step_by(10));
        throughput
    }

    /// So many bytes in so many ms.
    fn assert_is(throughput: &Throughput, bytes: u32, ms: u32) {
        let expected = f64::from(bytes) * 8e3 / f64::from(ms);
        let bps = throughput.bps().unwrap_or(0.0);
        assert!((bps - expected).abs() < 1.0, "{bps}, not {expected}");
    }

    #[test]
    fn ten_packets_are_enough() {
        let mut throughput = Throughput::default();
        send(&mut throughput, (0..90).step_by(10));
        assert_eq!(throughput.bps(), None);
        send(&mut throughput, [90]);
        assert_is(&throughput, 9000, 90);
    }

    #[test]
    fn the_rate_is_that_of_the_last_second() {
        let mut throughput = steady();
        assert_is(&throughput, 1000, 10);
        send(&mut throughput, (3005..=3400).step_by(5));
        // From 2400 ms on: 61 packets, and 80, of which one is left out.
        assert_is(&throughput, 140_000, 1000);
        send(&mut throughput, (3405..=4000).step_by(5));
        assert_is(&throughput, 1000, 5);
    }

    #[test]
    fn at_a_low_rate_the_window_is_of_twenty_packets_and_of_no_more_than_5_s() {
        let mut throughput = Throughput::default();
        send(&mut throughput, (0..=10_000).step_by(200));
        assert_eq!(throughput.window.len(), 20);
        assert_is(&throughput, 19_000, 19 * 200);
        send(&mut throughput, (10_500..=20_000).step_by(500));
        assert_eq!(throughput.window.len(), 11);
        assert_is(&throughput, 1000, 500);
    }

    #[test]
    fn the_size_of_the_first_packet_counts_for_nothing() {
        let mut throughput = Throughput::default();
        throughput.on_packet(Time::from_millis(20), Time::ZERO, 60_000.0);
        send(&mut throughput, (10..=90).step_by(10));
        assert_is(&throughput, 9000, 90);
    }

    #[test]
    fn a_path_that_stalls_once_is_not_slower_nor_faster_than_what_is_sent() {
        let mut throughput = Throughput::default();
        send(&mut throughput, (0..500).step_by(10));
        // Nothing arrives for half a second; then what has waited, one each ms.
        for n in 0..5 {
            let (arrived, sent) = (Time::from_millis(1010 + n), Time::from_millis(500 + 10 * n));
            throughput.on_packet(arrived, sent, 1000.0);
        }
        // 54 in 994 ms, of which 500 count as 10.
        let received = throughput.received().unwrap_or(0.0);
        assert!((received - 54_000.0 * 8e3 / 504.0).abs() < 1.0, "{received}");
        assert_is(&throughput, 54_000, 540);
    }

    #[test]
    fn packets_that_overtake_others_count_in_the_order_of_their_arrival() {
        let mut throughput = Throughput::default();
        send(&mut throughput, (0..300).flat_map(|n| [20 * n + 10, 20 * n]));
        assert_is(&throughput, 1000, 10);
        // One that left long before, and one that left last but came before others.
        let mut throughput = steady();
        throughput.on_packet(Time::from_millis(3025), Time::from_millis(500), 1000.0);
        throughput.on_packet(Time::from_millis(2995), Time::from_millis(3010), 1000.0);
        // Departures from 2010 to 3010 ms: 101, of which one is left out.
        assert_is(&throughput, 100_000, 1000);
    }

    #[test]
    fn after_a_pause_of_5_s_it_begins_anew() {
        let mut throughput = steady();
        send(&mut throughput, (8010..8100).step_by(10));
        assert_eq!(throughput.bps(), None, "nine packets");
        send(&mut throughput, [8100]);
        assert_is(&throughput, 9000, 90);
    }

    #[test]
    fn where_the_clock_of_the_receiver_is_set_back_it_begins_anew() {
        let mut throughput = steady();
        // One that arrived a second before the latest one was only overtaken.
        throughput.on_packet(Time::from_millis(2020), Time::from_millis(2000), 1000.0);
        assert!(throughput.bps().is_some());
        let sent = (3010..).step_by(5).map(Time::from_millis);
        let mut back = sent.map(|sent| (sent - Duration::from_millis(1980), sent)).take(10);
        let mut arrive = |count| {
            let packets = back.by_ref().take(count);
            packets.for_each(|(arrived, sent)| throughput.on_packet(arrived, sent, 1000.0));
            throughput.bps()
        };
        assert_eq!(arrive(9), None);
        assert!(arrive(1).is_some());
        assert_is(&throughput, 9000, 45);
    }

    #[test]
    fn no_time_and_no_number_of_packets_is_too_much() {
        let far = Time::from_nanos(u64::MAX / 4);
        let mut throughput = steady();
        // Of one that arrives in the far future, only itself is left; then the clock is set back.
        throughput.on_packet(far, Time::ZERO, 65_575.0);
        assert_eq!(throughput.bps(), None);
        send(&mut throughput, (3000..=3090).step_by(10));
        assert_is(&throughput, 9000, 90);
        // Where one left in the far future, only arrivals count.
        throughput.on_packet(Time::from_millis(3120), far, 1000.0);
        send(&mut throughput, (3110..5000).step_by(10));
        assert_is(&throughput, 1000, 10);
        (0..2000).for_each(|_| throughput.on_packet(far, far, 1000.0));
        assert_eq!(throughput.window.len(), PACKETS_MAX);
        assert_is(&throughput, 499_000, 1);
    }

    #[test]
    fn a_capacity_is_forgotten_when_much_more_or_less_passes() {
        let mut capacity = Capacity::default();
        (0..10).for_each(|_| capacity.on_overuse(1000e3));
        // 3·√(0.4 · 1000) = 60 kbit/s.
        capacity.check(1055e3, true);
        capacity.check(945e3, false);
        assert!(capacity.is_known());
        let mut other = capacity.clone();
        capacity.check(1065e3, true);
        other.check(935e3, false);
        assert!(!capacity.is_known() && !other.is_known());
    }
}
