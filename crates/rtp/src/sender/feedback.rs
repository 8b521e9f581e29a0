//! What the receiver's reports mean, and which are not believed. Whoever can send packets to this
//! host may have made them up: what cannot be so, given what was sent, is counted and changes nothing.

use std::collections::VecDeque;

use suiro_rate::{Arrived, Feedback, PacketReport};
use suiro_units::{Duration, Time};

use suiro_scenario::RoundTrip;

use super::history::{Departures, History, Numbered};
use crate::rtcp::congestion::CONGESTION_EXPERIENCED;
use crate::rtcp::{Arrival, Block, Congestion, TransportWide, from_short};
use suiro_payload::sequence::Unwrap;

/// How many of our own reports an echo may be of.
const REPORTS_MAX: usize = 64;

/// Packets of one stream that a report may be about at most: half a turn.
const SPAN_MAX: u64 = 1 << 15;

/// What the clocks may differ by in the time between two reports, with what rounding adds.
const CLOCK_SLACK: Duration = Duration::from_secs(1);
/// After so long without a report that was believed, the receiver's clock was set, or ours stopped.
const CLOCK_SILENCE: Duration = Duration::from_secs(5);

/// Why a report was not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Disbelieved {
    /// It is about a stream that is not ours.
    #[error("about another stream")]
    Stream,
    /// It is in the format that the sender does not use.
    #[error("in a format that was not asked for")]
    Format,
    /// It is about packets that were never sent.
    #[error("about packets that were not sent")]
    NotSent,
    /// It says nothing that an earlier one has not said.
    #[error("old or repeated")]
    Old,
    /// It reports more losses than there were packets.
    #[error("more lost than sent")]
    Losses,
    /// It echoes a report that was never sent, or one from the future.
    #[error("an echo of a report that was not sent")]
    Echo,
    /// Since the report before it, its clock went on for longer than ours.
    #[error("a clock that is ahead of ours")]
    Clock,
}

/// Follows the reports about one stream.
#[derive(Debug)]
pub struct Reports {
    ssrc: u32,
    /// The stream of what is sent again, which a transport-wide report may name.
    again_ssrc: Option<u32>,
    round_trip: RoundTrip,
    /// Our own reports: the middle of the NTP time, and when each left.
    sent: VecDeque<(u32, Time)>,
    /// Of the last report block: the highest number, the losses, the echo, and when it came.
    last: Option<Told>,
    /// The first number sent.
    first: u64,
    start: Time,
    /// The first number that no congestion feedback was about; `None` before any came.
    congestion: Option<u64>,
    /// When the latest such feedback left, on the receiver's clock.
    congestion_at: Option<Time>,
    /// A time on our clock before which that feedback cannot have left: a packet that it is about had just arrived.
    congestion_left: Time,
    /// The receiver's clock, as RFC 8888 and as transport-wide reports carry it.
    clock: Unwrap<32>,
    reference: Unwrap<24>,
}

#[derive(Debug, Clone, Copy)]
struct Told {
    highest: u64,
    lost: i32,
    echo: u32,
    at: Time,
}

impl Reports {
    /// Of a stream that begins now with that number.
    pub fn new(now: Time, round_trip: RoundTrip, ssrc: u32, first: u64) -> Self {
        let (sent, last, congestion) = (VecDeque::new(), None, None);
        let clock = Unwrap::default();
        Self {
            ssrc,
            again_ssrc: None,
            round_trip,
            sent,
            last,
            first,
            start: now,
            congestion,
            congestion_at: None,
            congestion_left: now,
            clock,
            reference: Unwrap::default(),
        }
    }

    /// The same of a sender with this stream for what is sent again.
    pub fn with_again(self, ssrc: u32) -> Self {
        Self { again_ssrc: Some(ssrc), ..self }
    }

    /// A report of our own leaves.
    pub fn on_sent(&mut self, now: Time, middle: u32) {
        if self.sent.len() == REPORTS_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back((middle, now));
    }

    /// A report block has come. What it says of losses is `expected` and `received` of the feedback;
    /// where the receiver also sends congestion feedback, which says more, they are zero.
    ///
    /// # Errors
    /// [`Disbelieved`]: nothing changes.
    pub fn on_block(
        &mut self,
        now: Time,
        block: &Block,
        history: &History,
    ) -> Result<Feedback, Disbelieved> {
        if block.media != self.ssrc {
            return Err(Disbelieved::Stream);
        }
        let highest = history.extend(block.highest as u16).ok_or(Disbelieved::NotSent)?;
        let before = self.last.map_or(self.first.saturating_sub(1), |last| last.highest);
        let newest = history.highest().unwrap_or(0);
        if highest < before || newest - highest > SPAN_MAX {
            // Behind what was reported before: old, or beyond what was sent by less than a turn.
            return Err(if newest - highest > SPAN_MAX {
                Disbelieved::NotSent
            } else {
                Disbelieved::Old
            });
        }
        let echo = block.last_report;
        if self.last.is_some_and(|last| last.highest == highest && last.echo == echo) {
            return Err(Disbelieved::Old);
        }
        let expected = highest - before;
        let lost = i64::from(block.cumulative_lost) - i64::from(self.last.map_or(0, |l| l.lost));
        let lost = u64::try_from(lost).unwrap_or(0); // late ones: fewer than before
        if lost > expected {
            return Err(Disbelieved::Losses);
        }
        let rtt = self.rtt(now, block)?;
        let since = self.last.map_or(self.start, |last| last.at);
        self.last = Some(Told { highest, lost: block.cumulative_lost, echo, at: now });
        if self.congestion.is_some() {
            return Ok(Feedback { rtt, ..Feedback::default() });
        }
        let received = expected - lost;
        let receive_rate = (expected > 0 && now > since).then(|| {
            let bytes = history.bytes(before + 1..=highest);
            (bytes / now.saturating_since(since)).mul_f64(received as f64 / expected as f64)
        });
        Ok(Feedback { expected, received, rtt, receive_rate, ..Feedback::default() })
    }

    /// RFC 3550 §6.4.1: now, less when the echoed report was sent, less how long the receiver had it, unless that counts,
    /// too.
    fn rtt(&self, now: Time, block: &Block) -> Result<Option<Duration>, Disbelieved> {
        if block.last_report == 0 {
            return Ok(None);
        }
        let of = |(middle, _): &&(u32, Time)| *middle == block.last_report;
        let (_, sent) = self.sent.iter().rev().find(of).ok_or(Disbelieved::Echo)?;
        let (away, held) = (now.saturating_since(*sent), from_short(block.since_report));
        // The echo counts in 2^-16 s: it may be 15 µs too long.
        if held > away + from_short(1) {
            return Err(Disbelieved::Echo);
        }
        let rtt = match self.round_trip {
            RoundTrip::Path => away.saturating_sub(held),
            RoundTrip::Ends => away,
        };
        Ok(Some(rtt.max(Duration::from_nanos(1))))
    }

    /// Whether the receiver sends congestion control feedback.
    pub fn has_congestion(&self) -> bool {
        self.congestion.is_some()
    }

    /// Congestion control feedback has come.
    ///
    /// # Errors
    /// [`Disbelieved`]: nothing changes.
    pub fn on_congestion(
        &mut self,
        now: Time,
        told: &Congestion,
        history: &History,
    ) -> Result<Feedback, Disbelieved> {
        if told.media != self.ssrc {
            return Err(Disbelieved::Stream);
        }
        let at = short_time(self.clock.peek(told.at));
        let feedback = self.on_packets(now, (told.first, at), &told.arrivals, history)?;
        self.clock.take(told.at);
        Ok(feedback)
    }

    /// Transport-wide feedback has come. It counts as made when the latest of its packets came.
    ///
    /// # Errors
    /// [`Disbelieved`]: nothing changes.
    pub fn on_transport_wide(
        &mut self,
        now: Time,
        told: &TransportWide,
        departures: &Departures,
    ) -> Result<Feedback, Disbelieved> {
        if told.media != self.ssrc && Some(told.media) != self.again_ssrc {
            return Err(Disbelieved::Stream);
        }
        let (at, arrivals) = told.arrivals(self.reference.peek(told.reference));
        let feedback = self.on_packets(now, (told.first, at), &arrivals, departures)?;
        self.reference.take(told.reference);
        Ok(feedback)
    }

    /// A report that was made at that time, on the receiver's clock, says what became of packets from a number on.
    fn on_packets<P>(
        &mut self,
        now: Time,
        (first, at): (u16, Time),
        arrivals: &[Option<Arrival>],
        history: &Numbered<P>,
    ) -> Result<Feedback, Disbelieved> {
        let newest = history.highest().ok_or(Disbelieved::NotSent)?;
        let first = history.extend(first).ok_or(Disbelieved::NotSent)?;
        let end = first + arrivals.len() as u64;
        if first < self.first || end > newest + 1 || newest - first > SPAN_MAX {
            return Err(Disbelieved::NotSent);
        }
        let before = self.congestion.unwrap_or(self.first);
        // A later one without a higher number is about packets that came late.
        let is_later = self.congestion_at.is_none_or(|latest| latest < at);
        if arrivals.is_empty() || end <= before && !is_later {
            return Err(Disbelieved::Old);
        }
        if self.is_ahead(now, at) {
            return Err(Disbelieved::Clock);
        }
        // Of packets that a lost report was about nothing is known: they do not count as lost.
        let expected = end.saturating_sub(before.max(first));
        let mut feedback = Feedback { expected, ..Feedback::default() };
        let (mut bytes, mut left) = (0, self.congestion_left);
        for (sequence, arrival) in (first..end).zip(arrivals) {
            let Some(past) = history.get(sequence) else { continue };
            if let Some(ago) = arrival.and_then(|arrival| arrival.ago) {
                if past.sent + ago > now + Duration::from_millis(1) {
                    return Err(Disbelieved::Echo); // it came before it was sent
                }
                left = left.max(past.sent + ago);
                // The last one that came: what it took, without the time that it lay there.
                feedback.rtt = Some(now.saturating_since(past.sent + ago));
            }
            if arrival.is_some() && sequence >= before {
                feedback.received += 1;
                bytes += past.size.get();
            }
            feedback.packets.push(PacketReport {
                sequence,
                size: past.size,
                sent: past.sent,
                arrived: arrived(at, *arrival),
                ecn_ce: arrival.is_some_and(|arrival| arrival.ecn == CONGESTION_EXPERIENCED),
            });
        }
        // Of the first, it is not known since when.
        let span = match self.congestion_at {
            Some(latest) => at.saturating_since(latest),
            None => now.saturating_since(self.start),
        };
        feedback.receive_rate = (!span.is_zero()).then(|| suiro_units::Bytes::new(bytes) / span);
        self.congestion = Some(end.max(before));
        self.congestion_at = self.congestion_at.max(Some(at));
        if is_later {
            self.congestion_left = left;
        }
        Ok(feedback)
    }

    /// Whether more time has passed at the receiver since the latest feedback than can have passed here. True reports would
    /// be old to one that was believed from there, until their clock gets to it. A clock that stays ahead was set.
    fn is_ahead(&self, now: Time, at: Time) -> bool {
        let here = now.saturating_since(self.congestion_left);
        let ahead = |latest| at.saturating_since(latest) > here + CLOCK_SLACK;
        here <= CLOCK_SILENCE && self.congestion_at.is_some_and(ahead)
    }
}

/// What a report that was made at that time says of a packet.
fn arrived(at: Time, arrival: Option<Arrival>) -> Arrived {
    match arrival {
        None => Arrived::No,
        Some(Arrival { ago: None, .. }) => Arrived::Untimed,
        Some(Arrival { ago: Some(ago), .. }) => Arrived::At(at.saturating_sub(ago)),
    }
}

/// An instant in 2^-16 s.
fn short_time(units: u64) -> Time {
    let nanos = (u128::from(units) * 1_000_000_000) >> 16;
    Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use suiro_units::{BitRate, Bytes};

    use super::*;
    use crate::packet::Packet;
    use crate::rtcp::{Arrival, short};

    const FIRST: u64 = 65_530;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// A hundred packets of 1000 bytes, one each 10 ms.
    fn history() -> History {
        let mut history = History::new(FIRST);
        for n in 0..100 {
            let packet = Packet {
                ssrc: 9,
                payload_type: 96,
                sequence: (FIRST + n) as u16,
                timestamp: 0,
                marker: false,
                mark: None,
                wide: None,
                payload: Vec::new(),
            };
            history.push(ms(10 * n), Bytes::new(1000), packet);
        }
        history
    }

    fn block(packets: u64, lost: i32) -> Block {
        let highest = (FIRST + packets - 1) as u32;
        Block {
            from: 7,
            media: 9,
            fraction_lost: 0,
            cumulative_lost: lost,
            highest,
            jitter: 0,
            last_report: 0,
            since_report: 0,
        }
    }

    fn reports() -> Reports {
        Reports::new(ms(0), RoundTrip::Path, 9, FIRST)
    }

    #[test]
    fn losses_and_rate_are_those_between_two_reports() {
        let (mut reports, history) = (reports(), history());
        let first = reports.on_block(ms(500), &block(50, 10), &history).unwrap();
        assert_eq!((first.expected, first.received), (50, 40));
        // 50,000 bytes in half a second, of which four fifths came.
        assert_eq!(first.receive_rate, Some(BitRate::from_kbps(640)));
        let second = reports.on_block(ms(1000), &block(100, 10), &history).unwrap();
        assert_eq!((second.expected, second.received), (50, 50));
        // Late ones came: the count of losses falls.
        let mut later = block(100, 8);
        later.last_report = 0;
        assert_eq!(reports.on_block(ms(1100), &later, &history), Err(Disbelieved::Old));
    }

    #[test]
    fn a_lost_report_loses_nothing() {
        let (mut reports, history) = (reports(), history());
        reports.on_block(ms(100), &block(10, 1), &history).unwrap();
        // That about packets 11 to 20 was lost.
        let third = reports.on_block(ms(300), &block(30, 6), &history).unwrap();
        assert_eq!((third.expected, third.received), (20, 15));
    }

    #[test]
    fn the_echo_tells_the_round_trip() {
        let (mut reports, history) = (reports(), history());
        reports.on_sent(ms(100), 0x1234);
        let mut echo = block(10, 0);
        (echo.last_report, echo.since_report) = (0x1234, short(Duration::from_millis(30)));
        let feedback = reports.on_block(ms(170), &echo, &history).unwrap();
        let rtt = feedback.rtt.unwrap().as_millis_f64();
        assert!((rtt - 40.0).abs() < 0.02, "{rtt}");
        let mut reports = Reports::new(ms(0), RoundTrip::Ends, 9, FIRST);
        reports.on_sent(ms(100), 0x1234);
        let feedback = reports.on_block(ms(170), &echo, &history).unwrap();
        assert_eq!(feedback.rtt, Some(Duration::from_millis(70)), "the receiver's time included");
    }

    #[test]
    fn what_cannot_be_changes_nothing() {
        let (mut reports, history) = (reports(), history());
        reports.on_sent(ms(100), 0x1234);
        reports.on_block(ms(400), &block(40, 5), &history).unwrap();
        let mut refuse = |change: fn(&mut Block)| {
            let mut block = block(50, 5);
            change(&mut block);
            let before = format!("{reports:?}");
            let why = reports.on_block(ms(500), &block, &history).unwrap_err();
            assert_eq!(format!("{reports:?}"), before, "{why}");
            why
        };
        assert_eq!(refuse(|b| b.media = 8), Disbelieved::Stream);
        assert_eq!(refuse(|b| b.highest += 51), Disbelieved::NotSent);
        assert_eq!(refuse(|b| b.highest += 30_000), Disbelieved::NotSent);
        assert_eq!(refuse(|b| b.highest -= 11), Disbelieved::Old);
        assert_eq!(refuse(|b| b.cumulative_lost = 16), Disbelieved::Losses);
        assert_eq!(refuse(|b| b.cumulative_lost = 0x7f_ffff), Disbelieved::Losses);
        assert_eq!(refuse(|b| b.last_report = 0x4321), Disbelieved::Echo);
        assert_eq!(
            refuse(|b| (b.last_report, b.since_report) = (0x1234, u32::MAX)),
            Disbelieved::Echo
        );
        let feedback = reports.on_block(ms(500), &block(50, 5), &history).unwrap();
        assert_eq!((feedback.expected, feedback.received), (10, 10));
        assert!(History::new(3).extend(3).is_none());
    }

    /// When those reports were made, by a clock that begins after one turn.
    const REPORTED: Time = Time::from_secs(65_536 + 5);

    fn congestion(first: u64, arrivals: &[Option<u64>]) -> Congestion {
        let arrival = |ago: u64| Arrival { ecn: 0, ago: Some(Duration::from_millis(ago)) };
        let arrivals = arrivals.iter().map(|ago| ago.map(arrival)).collect();
        Congestion { media: 9, first: first as u16, arrivals, at: 5 << 16 }
    }

    #[test]
    fn congestion_feedback_tells_of_each_packet() {
        let (mut reports, history) = (reports(), history());
        let told = congestion(FIRST, &[Some(40), None, Some(20)]);
        let feedback = reports.on_congestion(ms(100), &told, &history).unwrap();
        assert_eq!((feedback.expected, feedback.received), (3, 2));
        // The last was sent at 20 ms and lay there for 20 of the 100.
        assert_eq!(feedback.rtt, Some(Duration::from_millis(60)));
        assert_eq!(feedback.receive_rate, Some(BitRate::from_kbps(160)));
        let ago = |ms| Arrived::At(REPORTED - Duration::from_millis(ms));
        let came: Vec<Arrived> = feedback.packets.iter().map(|p| p.arrived).collect();
        assert_eq!(came, [ago(40), Arrived::No, ago(20)]);
        // Told again, with one more: only that one counts.
        let told = congestion(FIRST + 1, &[None, Some(60), Some(10)]);
        let feedback = reports.on_congestion(ms(150), &told, &history).unwrap();
        assert_eq!((feedback.expected, feedback.received), (1, 1));
        assert_eq!(feedback.packets.len(), 3);
        // The report about the next two was lost.
        let told = congestion(FIRST + 6, &[Some(10), None, Some(10)]);
        let feedback = reports.on_congestion(ms(200), &told, &history).unwrap();
        assert_eq!((feedback.expected, feedback.received), (3, 2));
        // And report blocks say only how long the way is.
        let feedback = reports.on_block(ms(210), &block(50, 10), &history).unwrap();
        assert_eq!((feedback.expected, feedback.receive_rate), (0, None));
    }

    #[test]
    fn a_packet_that_came_at_an_unknown_time_is_received_and_has_no_delay() {
        let (mut reports, history) = (reports(), history());
        let mut told = congestion(FIRST, &[Some(80), None, None]);
        told.arrivals[1..].fill(Some(Arrival { ecn: CONGESTION_EXPERIENCED, ago: None }));
        let feedback = reports.on_congestion(ms(100), &told, &history).unwrap();
        assert_eq!((feedback.expected, feedback.received), (3, 3));
        assert_eq!(feedback.receive_rate, Some(BitRate::from_kbps(240)));
        assert_eq!(feedback.rtt, Some(Duration::from_millis(20)), "that of the first");
        let seen = feedback.packets.iter().map(|packet| (packet.arrived, packet.ecn_ce));
        let first = Arrived::At(REPORTED - Duration::from_millis(80));
        let expected = [(first, false), (Arrived::Untimed, true), (Arrived::Untimed, true)];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_rate_is_over_the_receivers_time() {
        let (mut reports, history) = (reports(), history());
        // Reports of ten packets of 1000 bytes each that left 100 ms apart, two of which arrive together.
        let rates = [(0, 150), (1, 350), (2, 351)].map(|(n, at)| {
            let told = Congestion {
                at: (5 << 16) + n * 6554,
                ..congestion(FIRST + 10 * u64::from(n), &[Some(10); 10])
            };
            let feedback = reports.on_congestion(ms(at), &told, &history).unwrap();
            feedback.receive_rate.unwrap().as_bps() / 1000
        });
        assert_eq!(rates[1..], [799, 799]);
    }

    #[test]
    fn a_late_packet_is_heard_of_and_a_repeated_report_is_not() {
        let (mut reports, history) = (reports(), history());
        let told = congestion(FIRST, &[Some(10), None, Some(10)]);
        reports.on_congestion(ms(100), &told, &history).unwrap();
        assert_eq!(reports.on_congestion(ms(101), &told, &history), Err(Disbelieved::Old));
        let late = Congestion { at: (5 << 16) + 655, ..congestion(FIRST + 1, &[Some(5)]) };
        let feedback = reports.on_congestion(ms(110), &late, &history).unwrap();
        assert_eq!((feedback.expected, feedback.received, feedback.packets.len()), (0, 0, 1));
        // A packet above the highest is still new.
        let next = Congestion { at: (5 << 16) + 1310, ..congestion(FIRST + 3, &[Some(5)]) };
        let feedback = reports.on_congestion(ms(120), &next, &history).unwrap();
        assert_eq!((feedback.expected, feedback.received), (1, 1));
    }

    #[test]
    fn congestion_feedback_that_cannot_be_changes_nothing() {
        let (mut reports, history) = (reports(), history());
        let told = congestion(FIRST, &[Some(100), Some(100)]);
        reports.on_congestion(ms(300), &told, &history).unwrap();
        let mut refuse = |told: &Congestion| {
            let before = format!("{reports:?}");
            let why = reports.on_congestion(ms(400), told, &history).unwrap_err();
            assert_eq!(format!("{reports:?}"), before, "{why}");
            why
        };
        let not_sent = congestion(FIRST + 99, &[Some(1), Some(1)]);
        assert_eq!(refuse(&not_sent), Disbelieved::NotSent);
        let early = congestion(FIRST + 30, &[Some(200)]);
        assert_eq!(refuse(&early), Disbelieved::Echo, "sent at 300, there at 200");
        assert_eq!(refuse(&congestion(FIRST, &[])), Disbelieved::Old);
        let other = Congestion { media: 8, ..congestion(FIRST, &[Some(1)]) };
        assert_eq!(refuse(&other), Disbelieved::Stream);
        let repeated = congestion(FIRST + 1, &[Some(1)]);
        assert_eq!(refuse(&repeated), Disbelieved::Old);
        // The packets of the first report were there at 110 ms, so that it left after that: 290 ms before now, or less.
        let mut at = |ms: u32| refuse(&Congestion { at: (5 << 16) + ms * 65_536 / 1000, ..next() });
        assert_eq!((at(1291), at(30_000)), (Disbelieved::Clock, Disbelieved::Clock));
        assert!(reports.on_congestion(ms(400), &next(), &history).is_ok());
    }

    /// A report about the third packet and one that follows it.
    fn next() -> Congestion {
        congestion(FIRST + 2, &[Some(100), Some(100)])
    }

    #[test]
    fn a_clock_that_is_ahead_leaves_the_rate_and_late_packets_known() {
        let (mut reports, history) = (reports(), history());
        let at = |seconds: u32, told| Congestion { at: seconds << 16, ..told };
        let first = congestion(FIRST, &[Some(10), None, Some(10)]);
        reports.on_congestion(ms(100), &at(5, first), &history).unwrap();
        // By nine hours, which is almost half a turn of that clock.
        let ahead = at(5 + 9 * 3600, congestion(FIRST + 3, &[Some(10)]));
        assert_eq!(reports.on_congestion(ms(1100), &ahead, &history), Err(Disbelieved::Clock));
        // The true one of that time.
        let second = at(6, congestion(FIRST + 3, &[Some(10); 10]));
        let feedback = reports.on_congestion(ms(1100), &second, &history).unwrap();
        assert_eq!(feedback.receive_rate, Some(BitRate::from_kbps(80)));
        let late = at(7, congestion(FIRST + 1, &[Some(10)]));
        assert!(reports.on_congestion(ms(2100), &late, &history).is_ok());
    }

    #[test]
    fn a_clock_that_was_set_forward_is_believed_in_the_end() {
        let (mut reports, history) = (reports(), history());
        let at = |seconds: u32, told| Congestion { at: seconds << 16, ..told };
        let first = at(5, congestion(FIRST, &[Some(10); 3]));
        reports.on_congestion(ms(100), &first, &history).unwrap();
        let told = || congestion(FIRST + 3, &[Some(10)]);
        let early = reports.on_congestion(ms(1100), &at(16, told()), &history);
        assert_eq!(early, Err(Disbelieved::Clock));
        assert!(reports.on_congestion(ms(6100), &at(21, told()), &history).is_ok());
    }

    #[test]
    fn a_report_that_overtakes_a_queue_is_not_ahead() {
        let (mut reports, history) = (reports(), history());
        // The first waited for five seconds on its path; the second, made then, for none.
        reports.on_congestion(ms(5100), &congestion(FIRST, &[Some(10); 3]), &history).unwrap();
        let second = Congestion { at: 10 << 16, ..congestion(FIRST + 3, &[Some(10)]) };
        assert!(reports.on_congestion(ms(5100), &second, &history).is_ok());
    }
}
