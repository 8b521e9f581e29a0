//! What is in flight, and what reports say of it (§4.1, §4.2.1.1).

use std::collections::VecDeque;

use suiro_units::{Bytes, Duration, Time};

use crate::PacketReport;
use crate::base::BaseDelay;

/// Packets in flight that are remembered at most.
const FLIGHT_MAX: usize = 1 << 16;
/// Missing packets that are remembered at most; of more, the oldest is lost.
const MISSING_MAX: usize = 1024;
/// Times and sizes beyond count as this, so that no sum overflows.
const TIME_MAX: Time = Time::from_nanos(u64::MAX / 4);
const SIZE_MAX: Bytes = Bytes::new(65_575);

/// What a report adds to what was known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Acked {
    /// Bytes of the packets up to the highest that arrived, lost ones included: `bytes_newly_acked`. Packets that only a
    /// report that was lost named are not among them.
    pub bytes: u64,
    /// Those of them that arrived with Congestion Experienced.
    pub bytes_marked: u64,
    /// Packets that arrived, and those of them that were marked.
    pub packets: u64,
    pub marked: u64,
    /// Packets that are lost.
    pub lost: u64,
    /// The queueing delay of the latest packet; `None`: none arrived, or not known when.
    pub queueing: Option<Duration>,
}

/// The packets between sender and receiver.
#[derive(Debug, Clone, Default)]
pub struct Flight {
    /// When each packet left, and its size, the oldest first.
    sent: VecDeque<(Time, u64)>,
    bytes: u64,
    /// The highest packet that arrived.
    highest: Option<u64>,
    /// Packets below it that did not, and when that was reported.
    missing: VecDeque<(u64, Time)>,
    /// Those of them that count as lost, and may come all the same.
    lost: VecDeque<(u64, Time)>,
    /// How late a packet arrived that had been reported as missing.
    reordering: Duration,
    base: BaseDelay,
    /// The most bytes in flight in this round trip and the one before, and when this one began.
    most: [u64; 2],
    round: Time,
}

impl Flight {
    /// A packet leaves.
    pub fn on_sent(&mut self, now: Time, size: Bytes, rtt: Duration) {
        if self.sent.len() == FLIGHT_MAX {
            self.forget_oldest();
        }
        let size = size.min(SIZE_MAX).get();
        self.sent.push_back((now, size));
        self.bytes += size;
        if now.saturating_since(self.round) >= rtt {
            self.most = [self.bytes, self.most[0]];
            self.round = now;
        }
        self.most[0] = self.most[0].max(self.bytes);
    }

    fn forget_oldest(&mut self) {
        if let Some((_, size)) = self.sent.pop_front() {
            self.bytes -= size;
        }
    }

    /// Bytes in flight.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The most bytes in flight of the last two round trips.
    pub fn most(&self) -> u64 {
        self.most[0].max(self.most[1])
    }

    /// The most bytes in flight of the round trip before this one.
    pub const fn most_before(&self) -> u64 {
        self.most[1]
    }

    /// Nothing was heard for so long that what was in flight is there no longer.
    pub fn forget(&mut self) {
        self.sent.clear();
        self.bytes = 0;
    }

    /// A report has arrived.
    pub fn on_report(&mut self, now: Time, packets: &[PacketReport], rtt: Duration) -> Acked {
        let mut acked = Acked::default();
        for packet in packets {
            if self.highest.is_some_and(|highest| packet.sequence <= highest) {
                self.on_late(now, packet, rtt, &mut acked);
            } else {
                self.on_new(now, packet, &mut acked);
            }
        }
        // §4.2.1.1: lost if it is still missing after the reordering window.
        while let Some((_, since)) = self.missing.front().copied() {
            if now.saturating_since(since) < self.reordering && self.missing.len() <= MISSING_MAX {
                break;
            }
            self.lost.extend(self.missing.pop_front());
            acked.lost += 1;
            if self.lost.len() > MISSING_MAX {
                self.lost.pop_front();
            }
        }
        acked
    }

    fn on_new(&mut self, now: Time, packet: &PacketReport, acked: &mut Acked) {
        let size = packet.size.min(SIZE_MAX).get();
        acked.bytes += size;
        self.highest = Some(packet.sequence);
        if packet.arrived.is_missing() {
            self.missing.push_back((packet.sequence, now));
            return;
        }
        let sent = packet.sent.min(TIME_MAX);
        while self.sent.front().is_some_and(|(left, _)| *left <= sent) {
            self.forget_oldest();
        }
        if let Some(at) = packet.arrived.time() {
            acked.queueing = Some(self.base.queueing(at.min(TIME_MAX), sent));
        }
        acked.packets += 1;
        if packet.ecn_ce {
            (acked.marked, acked.bytes_marked) = (acked.marked + 1, acked.bytes_marked + size);
        }
    }

    fn on_late(&mut self, now: Time, packet: &PacketReport, rtt: Duration, acked: &mut Acked) {
        if packet.arrived.is_missing() {
            return;
        }
        let mut lists = [&mut self.missing, &mut self.lost].into_iter();
        let found = lists.find_map(|list| {
            let place = list.iter().position(|(sequence, _)| *sequence == packet.sequence)?;
            list.remove(place)
        });
        let Some((_, since)) = found else { return };
        self.reordering = self.reordering.max(now.saturating_since(since)).min(rtt);
        acked.packets += 1;
        acked.marked += u64::from(packet.ecn_ce);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arrived;

    const RTT: Duration = Duration::from_millis(100);

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn report(sequence: u64, arrived: bool) -> PacketReport {
        let sent = ms(10 * sequence);
        let at = Arrived::At(sent + Duration::from_millis(50));
        let arrived = if arrived { at } else { Arrived::No };
        let (size, ecn_ce) = (Bytes::new(1000), sequence == 3);
        PacketReport { sequence, size, sent, arrived, ecn_ce }
    }

    fn flight() -> Flight {
        let mut flight = Flight::default();
        (0..10).for_each(|n| flight.on_sent(ms(10 * n), Bytes::new(1000), RTT));
        flight
    }

    #[test]
    fn what_is_above_the_highest_that_arrived_is_in_flight() {
        let mut flight = flight();
        assert_eq!((flight.bytes(), flight.most()), (10_000, 10_000));
        // The example of §4.1.1: of a lost packet below the highest nothing is in flight.
        let told = [report(0, true), report(1, true), report(2, false), report(3, true)];
        let acked = flight.on_report(ms(100), &told, RTT);
        assert_eq!(flight.bytes(), 6000);
        let expected = Acked {
            bytes: 4000,
            bytes_marked: 1000,
            packets: 3,
            marked: 1,
            lost: 1,
            queueing: Some(Duration::ZERO),
        };
        assert_eq!(acked, expected);
        assert_eq!(flight.on_report(ms(110), &told, RTT), Acked::default(), "again");
    }

    #[test]
    fn a_packet_that_came_at_an_unknown_time_is_acknowledged_without_a_delay() {
        let untimed = |n| PacketReport { arrived: Arrived::Untimed, ..report(n, true) };
        let mut flight = flight();
        let acked = flight.on_report(ms(100), &[report(0, true), untimed(1), untimed(3)], RTT);
        let expected = Acked {
            bytes: 3000,
            bytes_marked: 1000,
            packets: 3,
            marked: 1,
            lost: 0,
            queueing: Some(Duration::ZERO),
        };
        assert_eq!((acked, flight.bytes()), (expected, 6000), "the delay is that of the first");
        let acked = flight.on_report(ms(110), &[untimed(4)], RTT);
        assert_eq!((acked.packets, acked.queueing), (1, None));
        // One that was reported as missing.
        flight.on_report(ms(120), &[report(5, false), report(6, true)], RTT);
        assert_eq!(flight.on_report(ms(130), &[untimed(5)], RTT).packets, 1);
    }

    #[test]
    fn a_packet_that_comes_late_widens_the_reordering_window() {
        let mut flight = flight();
        let told = [report(0, false), report(1, true)];
        assert_eq!(flight.on_report(ms(100), &told, RTT).lost, 1, "nothing came late before");
        let acked = flight.on_report(ms(130), &[report(0, true), report(2, true)], RTT);
        assert_eq!((acked.packets, acked.lost, acked.bytes), (2, 0, 1000));
        assert_eq!(flight.reordering, Duration::from_millis(30));
        flight.on_report(ms(140), &[report(3, false), report(4, true)], RTT);
        assert_eq!(flight.on_report(ms(169), &[], RTT).lost, 0);
        assert_eq!(flight.on_report(ms(170), &[], RTT).lost, 1);
    }

    #[test]
    fn the_most_of_two_round_trips_is_known() {
        let mut flight = flight();
        flight.on_report(ms(95), &[report(8, true)], RTT);
        flight.on_sent(ms(100), Bytes::new(1000), RTT);
        assert_eq!((flight.bytes(), flight.most(), flight.most_before()), (2000, 10_000, 10_000));
        flight.on_sent(ms(210), Bytes::new(1000), RTT);
        assert_eq!((flight.most(), flight.most_before()), (3000, 2000));
        flight.forget();
        assert_eq!(flight.bytes(), 0);
    }

    #[test]
    fn memory_is_bounded() {
        let mut flight = Flight::default();
        (0..100_000).for_each(|n| flight.on_sent(ms(n), Bytes::new(1000), RTT));
        assert_eq!(flight.bytes(), 1000 * FLIGHT_MAX as u64);
        flight.reordering = RTT;
        let told: Vec<_> = (0..5000).map(|n| report(n, n == 4999)).collect();
        assert_eq!(flight.on_report(ms(100_000), &told, RTT).lost, 4999 - MISSING_MAX as u64);
    }
}
