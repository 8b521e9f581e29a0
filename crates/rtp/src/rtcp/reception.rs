//! How a stream is received: RFC 3550 §6.4.1, appendices A.1, A.3 and A.8.

use std::collections::BTreeSet;

use suiro_units::Time;

use super::{Block, Sent, middle, short, ticks};

/// A jump ahead of more packets than this is doubted (A.1: MAX_DROPOUT).
pub(super) const JUMP_MAX: u16 = 3000;
/// So many packets behind the highest are late, not of another stream (A.1: MAX_MISORDER).
const LATE_MAX: u16 = 100;
/// Limit on the missing packets that are remembered, to distinguish late ones from repeated ones.
const MISSING_MAX: usize = 4096;

/// The account of one received stream.
#[derive(Debug, Clone)]
pub struct Reception {
    ssrc: u32,
    /// The first number, extended.
    base: u64,
    /// The highest, extended: whole turns are counted from the first.
    highest: u64,
    received: u64,
    missing: BTreeSet<u64>,
    /// After a jump: the number that would show that it is meant.
    resume: Option<u16>,
    transit: Option<i64>,
    jitter: f64,
    expected_before: u64,
    received_before: u64,
    last_report: Option<(u32, Time)>,
}

/// What a packet's number says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    /// It is new; its number, extended.
    New(u64),
    /// It has arrived before, or is too late to know; its number, extended, unless it is from before the first turn.
    Repeated(Option<u64>),
    /// It is far from where the stream is; not taken, unless the next one follows on it.
    Jump,
    /// The sender has restarted from here; the extended number continues upwards.
    Restarted(u64),
}

impl Reception {
    /// The account of a stream that begins with this packet.
    pub fn new(ssrc: u32, sequence: u16) -> Self {
        let first = u64::from(sequence);
        Self {
            ssrc,
            base: first,
            highest: first,
            received: 0,
            missing: BTreeSet::from([first]),
            resume: None,
            transit: None,
            jitter: 0.0,
            expected_before: 0,
            received_before: 0,
            last_report: None,
        }
    }

    /// The stream.
    pub fn ssrc(&self) -> u32 {
        self.ssrc
    }

    /// The highest number so far, extended.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Packets that should have come, from the first to the highest.
    pub fn expected(&self) -> u64 {
        self.highest - self.base + 1
    }

    /// Packets that came, each counted once.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Variation of the transit time (A.8), in units of the RTP timestamp.
    pub fn jitter(&self) -> f64 {
        self.jitter
    }

    /// A packet has come.
    pub fn on_packet(&mut self, now: Time, sequence: u16, timestamp: u32) -> Arrived {
        let arrived = self.place(sequence);
        if let Arrived::New(_) | Arrived::Restarted(_) = arrived {
            self.received += 1;
            self.time(now, timestamp);
        }
        arrived
    }

    /// A.1, but that repeated packets are known as such and not counted.
    fn place(&mut self, sequence: u16) -> Arrived {
        let ahead = sequence.wrapping_sub(self.highest as u16);
        if ahead < JUMP_MAX {
            let extended = self.highest + u64::from(ahead);
            for missing in self.highest + 1..=extended {
                self.miss(missing);
            }
            self.highest = extended;
            self.resume = None;
            return self.found(extended);
        }
        let behind = ahead.wrapping_neg();
        if behind <= LATE_MAX {
            return match self.highest.checked_sub(behind.into()) {
                Some(extended) => self.found(extended),
                None => Arrived::Repeated(None),
            };
        }
        if self.resume == Some(sequence) {
            return Arrived::Restarted(self.restart(sequence));
        }
        self.resume = Some(sequence.wrapping_add(1));
        Arrived::Jump
    }

    fn miss(&mut self, sequence: u64) {
        self.missing.insert(sequence);
        if self.missing.len() > MISSING_MAX {
            self.missing.pop_first();
        }
    }

    fn found(&mut self, extended: u64) -> Arrived {
        let new = self.missing.remove(&extended);
        if new { Arrived::New(extended) } else { Arrived::Repeated(Some(extended)) }
    }

    /// Two consecutive packets with other numbers: the sender has restarted (A.1).
    fn restart(&mut self, sequence: u16) -> u64 {
        let extended = (self.highest | 0xffff) + 1 + u64::from(sequence);
        (self.base, self.highest, self.received) = (extended, extended, 0);
        (self.expected_before, self.received_before) = (0, 0);
        self.missing.clear();
        (self.resume, self.transit) = (None, None);
        extended
    }

    /// A.8.
    fn time(&mut self, now: Time, timestamp: u32) {
        let transit = i64::from((ticks(now) as u32).wrapping_sub(timestamp));
        if let Some(before) = self.transit {
            // The difference of two numbers that wrap.
            let change = (transit.wrapping_sub(before) as i32).unsigned_abs();
            self.jitter += (f64::from(change) - self.jitter) / 16.0;
        }
        self.transit = Some(transit);
    }

    /// A sender's report has come.
    pub fn on_report(&mut self, now: Time, sent: &Sent) {
        self.last_report = Some((middle(sent.ntp), now));
    }

    /// A report of what has arrived; `from` is the reporter.
    pub fn report(&mut self, now: Time, from: u32) -> Block {
        let (expected, received) = (self.expected(), self.received);
        // A.3: what was lost in the interval, over what was expected in it.
        let expected_now = expected - self.expected_before;
        let received_now = received - self.received_before;
        (self.expected_before, self.received_before) = (expected, received);
        let lost_now = expected_now.saturating_sub(received_now);
        let fraction = (lost_now << 8).checked_div(expected_now).unwrap_or(0).min(255);
        let lost = i64::try_from(expected - received).unwrap_or(i64::MAX).min(0x7f_ffff);
        let (last_report, since) = match self.last_report {
            Some((middle, at)) => (middle, short(now.saturating_since(at))),
            None => (0, 0),
        };
        Block {
            from,
            media: self.ssrc,
            fraction_lost: fraction as u8,
            cumulative_lost: lost as i32,
            highest: self.highest as u32,
            jitter: self.jitter as u32,
            last_report,
            since_report: since,
        }
    }
}

#[cfg(test)]
mod tests {
    use suiro_units::Duration;

    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn take(reception: &mut Reception, sequences: &[u16]) -> Vec<Arrived> {
        sequences.iter().map(|&n| reception.on_packet(ms(0), n, 0)).collect()
    }

    #[test]
    fn losses_are_counted_over_the_wrap() {
        let mut reception = Reception::new(9, 65_534);
        take(&mut reception, &[65_534, 65_535, 2, 1]);
        assert_eq!((reception.expected(), reception.received()), (5, 4));
        let block = reception.report(ms(0), 7);
        assert_eq!((block.highest, block.cumulative_lost, block.fraction_lost), (0x1_0002, 1, 51));
        take(&mut reception, &[3]);
        let block = reception.report(ms(0), 7);
        assert_eq!((block.cumulative_lost, block.fraction_lost), (1, 0));
        // The missing one comes late: more came than were expected, which is no loss.
        take(&mut reception, &[0]);
        let block = reception.report(ms(0), 7);
        assert_eq!((block.cumulative_lost, block.fraction_lost), (0, 0));
    }

    #[test]
    fn repeated_packets_count_once() {
        let mut reception = Reception::new(9, 10);
        let arrived = take(&mut reception, &[10, 11, 10, 11, 9]);
        assert_eq!(arrived[..2], [Arrived::New(10), Arrived::New(11)]);
        assert_eq!(arrived[2..], [10, 11, 9].map(|n| Arrived::Repeated(Some(n))));
        assert_eq!(take(&mut reception, &[65_530]), [Arrived::Repeated(None)]);
        assert_eq!(reception.received(), 2);
    }

    #[test]
    fn one_packet_from_elsewhere_changes_nothing_and_two_in_a_row_begin_anew() {
        let mut reception = Reception::new(9, 10);
        let arrived = take(&mut reception, &[10, 30_000, 11, 40_000, 40_001, 40_002]);
        assert_eq!(arrived[1..4], [Arrived::Jump, Arrived::New(11), Arrived::Jump]);
        assert_eq!(arrived[4..], [Arrived::Restarted(105_537), Arrived::New(105_538)]);
        assert_eq!((reception.expected(), reception.received()), (2, 2));
    }

    #[test]
    fn jitter_is_the_smoothed_change_of_the_transit_time() {
        let mut reception = Reception::new(9, 0);
        reception.on_packet(ms(100), 0, u32::MAX - 89);
        // 10 ms later in time, 9 ms late: 810 units of 90 kHz, of which a sixteenth.
        reception.on_packet(ms(119), 1, 810);
        assert!((reception.jitter() - 810.0 / 16.0).abs() < 1e-9, "{}", reception.jitter());
        reception.on_packet(ms(129), 2, 1710);
        assert!((reception.jitter() - 810.0 / 16.0 * 15.0 / 16.0).abs() < 1e-9);
    }

    #[test]
    fn a_senders_report_is_echoed_with_its_age() {
        let mut reception = Reception::new(9, 0);
        assert_eq!(reception.report(ms(5), 7).last_report, 0);
        let ntp = 0x1111_2222_3333_4444;
        reception.on_report(ms(10), &Sent { ssrc: 9, ntp, timestamp: 0, packets: 0, octets: 0 });
        let block = reception.report(ms(260), 7);
        assert_eq!((block.last_report, block.since_report), (0x2222_3333, 1 << 14));
        assert_eq!(super::super::from_short(block.since_report), Duration::from_millis(250));
    }
}
