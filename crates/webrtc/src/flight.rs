//! What is on its way: packets that were sent and that no feedback has covered yet. Pure.
//!
//! After a fall of the capacity, congestion control soon sends no more than the link carries. The packets in the link's
//! queue by then still wait: GCC sees that the delay does not grow, not that it is long. The encoder's rate is
//! therefore lowered while more is on its way than the estimate explains. This is also what libwebrtc does (its
//! congestion window pushback).

use std::collections::VecDeque;

use suiro_rate::Least;
use suiro_units::{BitRate, Bytes, Duration, Time};

/// For how long a packet may be on its way beyond the least round trip: feedback comes every 100 ms, and some queue is
/// how congestion control finds the capacity.
const ALLOWED: Duration = Duration::from_millis(150);
/// The least round-trip time is that of so long a time: after that, a longer one is taken for the route's.
const LEAST_OVER: Duration = Duration::from_secs(10);
/// Packets that are remembered; of more, the oldest are forgotten.
const PACKETS_MAX: usize = 8192;

/// Packets on their way, by the number of transport-wide feedback.
#[derive(Debug, Clone, Default)]
pub struct Flight {
    packets: VecDeque<(u16, usize)>,
    bytes: usize,
    least_rtt: Least,
}

impl Flight {
    /// A packet with that number has left.
    pub fn on_sent(&mut self, number: u16, bytes: usize) {
        if self.packets.len() == PACKETS_MAX
            && let Some((_, bytes)) = self.packets.pop_front()
        {
            self.bytes -= bytes;
        }
        self.packets.push_back((number, bytes));
        self.bytes += bytes;
    }

    /// Feedback covers so many packets from that number on, received or lost.
    pub fn on_feedback(&mut self, base: u16, count: u16) {
        let end = base.wrapping_add(count);
        // Numbers wrap around: earlier is what is less than half a turn behind.
        let is_told = |number: u16| end.wrapping_sub(number).wrapping_sub(1) < 1 << 15;
        while let Some((_, bytes)) = self.packets.pop_front_if(|(number, _)| is_told(*number)) {
            self.bytes -= bytes;
        }
    }

    /// A round-trip time.
    pub fn on_rtt(&mut self, now: Time, rtt: Duration) {
        self.least_rtt.add(now, rtt, LEAST_OVER);
    }

    /// What is on its way beyond what a path of that rate has without a queue.
    pub fn standing(&self, estimate: BitRate) -> Bytes {
        let Some(least) = self.least_rtt.get() else { return Bytes::ZERO };
        let explained = estimate.as_bps() as f64 / 8.0 * (least + ALLOWED).as_secs_f64();
        Bytes::new((self.bytes as f64 - explained).max(0.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_feedback_told_of_is_on_its_way() {
        let mut flight = Flight::default();
        for number in 65_530..65_540u32 {
            flight.on_sent(number as u16, 1000);
        }
        flight.on_rtt(Time::ZERO, Duration::from_millis(50));
        flight.on_rtt(Time::from_secs(1), Duration::from_millis(900));
        // 200 ms at 200 kbit/s are 5 kB.
        let estimate = BitRate::from_kbps(200);
        assert_eq!(flight.standing(estimate), Bytes::new(5000));
        flight.on_feedback(65_530, 8);
        assert_eq!((flight.bytes, flight.standing(estimate)), (2000, Bytes::ZERO));
        // It may come again, or late.
        flight.on_feedback(65_530, 2);
        assert_eq!(flight.bytes, 2000);
        flight.on_feedback(2, 2);
        assert_eq!((flight.bytes, flight.packets.len()), (0, 0));
    }

    #[test]
    fn a_longer_route_explains_what_is_on_its_way() {
        let mut flight = Flight::default();
        for number in 0..100 {
            flight.on_sent(number, 1000);
        }
        // 800 kbit/s for 1 s are 100 kB; 20 ms and what is allowed explain 17 kB of them.
        let estimate = BitRate::from_kbps(800);
        flight.on_rtt(Time::ZERO, Duration::from_millis(20));
        flight.on_rtt(Time::from_secs(10), Duration::from_secs(1));
        assert_eq!(flight.standing(estimate), Bytes::new(83_000));
        flight.on_rtt(Time::from_secs(11), Duration::from_secs(1));
        assert_eq!(flight.standing(estimate), Bytes::ZERO);
    }

    #[test]
    fn memory_is_bounded() {
        let mut flight = Flight::default();
        for number in 0..20_000u32 {
            flight.on_sent(number as u16, 1);
        }
        assert_eq!((flight.packets.len(), flight.bytes), (PACKETS_MAX, PACKETS_MAX));
    }
}
