//! Congestion control feedback: RFC 8888.

use std::collections::BTreeMap;

use rtcp_types::prelude::{FciBuilder, FciParser, RtcpPacketWriter};
use rtcp_types::{FciFeedbackPacketType, RtcpParseError, RtcpWriteError};
use suiro_units::{Duration, Time};

use super::{middle, ntp};

/// Most packets that one report of ours is about. RFC 8888 §3.1 allows 16384.
pub const REPORTED_MAX: usize = 512;

/// So many numbers above the last report make the next one due at once, and so does a late packet that it has just room for. A
/// packet can be left out of both only if others are lost just then.
const REPORTED_EARLY: u64 = 256;

/// Explicit Congestion Notification: congestion experienced (RFC 3168 §5).
pub const CONGESTION_EXPERIENCED: u8 = 3;

/// Most that are heeded of a report received.
const HEEDED_MAX: usize = 16_384;

/// §3.1: offsets up to 8189/1024 s are reported; larger ones, or arrivals after the report, are
/// not.
const OFFSET_MAX: u64 = 0x1ffd;
const TOO_OLD: u16 = 0x1ffe;
const UNKNOWN: u16 = 0x1fff;

/// A report about one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Congestion {
    /// The stream.
    pub media: u32,
    /// The number of the first packet that it is about.
    pub first: u16,
    /// What became of each from there on; `None`: it did not come.
    pub arrivals: Vec<Option<Arrival>>,
    /// When the report was made: the middle of the receiver's NTP time.
    pub at: u32,
}

/// A packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The two bits of Explicit Congestion Notification (RFC 3168 §5).
    pub ecn: u8,
    /// How long before the report, to 1/1024 s; `None` if that was too long or not known.
    pub ago: Option<Duration>,
}

impl Arrival {
    fn write(arrival: Option<Self>) -> u16 {
        let Some(Self { ecn, ago }) = arrival else { return 0 };
        let offset = match ago.map(|ago| ago.as_nanos().saturating_mul(1024) / 1_000_000_000) {
            Some(units) if units <= OFFSET_MAX => units as u16,
            Some(_) => TOO_OLD,
            None => UNKNOWN,
        };
        1 << 15 | u16::from(ecn & 3) << 13 | offset
    }

    fn read(block: u16) -> Option<Self> {
        let offset = block & 0x1fff;
        let span = Duration::from_nanos((u64::from(offset) * 1_000_000_000).div_ceil(1024));
        let ago = (u64::from(offset) <= OFFSET_MAX).then_some(span);
        (block >> 15 == 1).then_some(Self { ecn: (block >> 13) as u8 & 3, ago })
    }
}

/// The feedback of a packet, as read: of several streams, the first of which the packet's own header
/// names.
#[derive(Debug)]
pub(super) struct Streams<'a> {
    data: &'a [u8],
}

impl<'a> FciParser<'a> for Streams<'a> {
    const PACKET_TYPE: FciFeedbackPacketType = FciFeedbackPacketType::TRANSPORT;
    const FCI_FORMAT: u8 = 11;

    fn parse(data: &'a [u8]) -> Result<Self, RtcpParseError> {
        // At least a first and a count, and the time.
        match data.len() {
            8.. => Ok(Self { data }),
            actual => Err(RtcpParseError::Truncated { expected: 8, actual }),
        }
    }
}

impl Streams<'_> {
    /// What is said of each stream, the first being `media`; what is cut short, is left out.
    pub fn of(&self, media: u32) -> impl Iterator<Item = Congestion> + '_ {
        let (body, at) = self.data.split_last_chunk::<4>().expect("parse has seen to that");
        let at = u32::from_be_bytes(*at);
        let mut rest = body;
        let mut media = Some(media);
        std::iter::from_fn(move || {
            let media = media.take().or_else(|| {
                let (ssrc, after) = rest.split_first_chunk::<4>()?;
                rest = after;
                Some(u32::from_be_bytes(*ssrc))
            })?;
            let (&[a, b, c, d], after) = rest.split_first_chunk::<4>()?;
            let (first, count) =
                (u16::from_be_bytes([a, b]), usize::from(u16::from_be_bytes([c, d])));
            let (blocks, after) = after.split_at_checked((count * 2).next_multiple_of(4))?;
            rest = after;
            let blocks = blocks.chunks_exact(2).take(count.min(HEEDED_MAX));
            let arrivals = blocks.map(|b| Arrival::read(u16::from_be_bytes([b[0], b[1]])));
            Some(Congestion { media, first, arrivals: arrivals.collect(), at })
        })
    }
}

impl RtcpPacketWriter for Congestion {
    fn calculate_size(&self) -> Result<usize, RtcpWriteError> {
        Ok(4 + (self.arrivals.len() * 2).next_multiple_of(4) + 4)
    }

    fn write_into_unchecked(&self, buf: &mut [u8]) -> usize {
        let mut bytes = Vec::with_capacity(8 + 2 * self.arrivals.len());
        bytes.extend(self.first.to_be_bytes());
        bytes.extend((self.arrivals.len() as u16).to_be_bytes());
        bytes.extend(self.arrivals.iter().flat_map(|a| Arrival::write(*a).to_be_bytes()));
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(self.at.to_be_bytes());
        buf[..bytes.len()].copy_from_slice(&bytes);
        bytes.len()
    }

    fn get_padding(&self) -> Option<u8> {
        None
    }
}

impl FciBuilder<'_> for Congestion {
    fn format(&self) -> u8 {
        Streams::FCI_FORMAT
    }

    fn supports_feedback_type(&self) -> FciFeedbackPacketType {
        FciFeedbackPacketType::TRANSPORT
    }
}

/// A packet that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Came {
    /// When.
    pub at: Time,
    /// The two bits of Explicit Congestion Notification (RFC 3168 §5).
    pub ecn: u8,
}

/// What a receiver keeps for its reports: when each packet came, of those that a report may be about.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// By extended number.
    arrived: BTreeMap<u64, Came>,
    /// The lowest of those that came, or whose mark did, since the last report.
    new: Option<u64>,
    /// The first above all that were reported.
    next: Option<u64>,
}

impl Arrivals {
    /// A packet has come. Of one that comes twice, the first counts.
    pub fn on_packet(&mut self, now: Time, sequence: u64, ecn: u8) {
        let highest = self.arrived.last_key_value().map_or(0, |(highest, _)| *highest);
        let is_known = self.arrived.contains_key(&sequence);
        if is_known || sequence + REPORTED_MAX as u64 <= highest {
            return;
        }
        self.arrived.insert(sequence, Came { at: now, ecn });
        self.note(sequence);
        if self.arrived.len() > 2 * REPORTED_MAX {
            self.arrived.pop_first();
        }
    }

    /// Another copy of a packet has come. RFC 8888 §3.1: its time does not count, but a packet counts as marked if any copy is.
    pub fn on_copy(&mut self, sequence: u64, ecn: u8) {
        if ecn == CONGESTION_EXPERIENCED
            && let Some(came) = self.arrived.get_mut(&sequence)
            && came.ecn != CONGESTION_EXPERIENCED
        {
            came.ecn = CONGESTION_EXPERIENCED;
            self.note(sequence);
        }
    }

    fn note(&mut self, sequence: u64) {
        self.new = Some(self.new.map_or(sequence, |new| new.min(sequence)));
    }

    /// Whether there is anything to report.
    pub const fn is_empty(&self) -> bool {
        self.new.is_none()
    }

    /// Whether the next report is about so many numbers that it should not wait: one has room for [`REPORTED_MAX`].
    pub fn is_many(&self) -> bool {
        let Some((&last, _)) = self.arrived.last_key_value() else { return false };
        let is =
            |first: Option<u64>, many: u64| first.is_some_and(|first| last + 1 - first >= many);
        is(self.next.or(self.new), REPORTED_EARLY) || is(self.new, REPORTED_MAX as u64)
    }

    /// Everything since the last report, up to the highest that came: its first number, and what came from there on. `None` if
    /// nothing did.
    pub fn take(&mut self) -> Option<(u64, Vec<Option<Came>>)> {
        let new = self.new.take()?;
        let (&last, _) = self.arrived.last_key_value()?;
        let oldest = (last + 1).saturating_sub(REPORTED_MAX as u64);
        // A packet that arrives after a report covered its number is reported with those that follow, as far as there is
        // room. A packet that was reported as received is reported so again (§3.1).
        let first = self.next.map_or(new, |next| next.min(new)).max(oldest);
        let arrivals =
            (first..=last).map(|sequence| self.arrived.get(&sequence).copied()).collect();
        self.arrived = self.arrived.split_off(&oldest);
        self.next = Some(last + 1);
        Some((first, arrivals))
    }

    /// A report about that. The receiver's wall clock says `unix_ns`.
    pub fn report(&mut self, now: Time, unix_ns: u64, media: u32) -> Option<Congestion> {
        let (first, came) = self.take()?;
        let arrival =
            |came: Came| Arrival { ecn: came.ecn, ago: Some(now.saturating_since(came.at)) };
        let arrivals = came.into_iter().map(|came| came.map(arrival)).collect();
        Some(Congestion { media, first: first as u16, arrivals, at: middle(ntp(unix_ns)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn blocks_are_those_of_the_specification() {
        let arrival = |ecn, ago| Some(Arrival { ecn, ago });
        // RFC 8888 figure 2: received, ECN, arrival time offset.
        assert_eq!(Arrival::write(None), 0);
        assert_eq!(Arrival::write(arrival(3, Some(Duration::from_secs(1)))), 0xe400);
        assert_eq!(Arrival::write(arrival(0, Some(Duration::from_secs(8)))), 0x8000 | TOO_OLD);
        assert_eq!(Arrival::write(arrival(1, None)), 0xa000 | UNKNOWN);
        for block in [0x8000, 0x8400, 0xe001, 0x9ffd, 0xbfff] {
            assert_eq!(Arrival::write(Arrival::read(block)), block, "{block:x}");
        }
    }

    /// A stream's part of a report, behind its SSRC.
    fn part(first: u16, count: u16, blocks: &[u16]) -> Vec<u8> {
        let words = [first, count].into_iter().chain(blocks.iter().copied());
        words.flat_map(u16::to_be_bytes).collect()
    }

    /// What is read of a report that says this before its time: the streams, each with its first number and how many
    /// packets it is about.
    fn read(body: &[u8]) -> Vec<(u32, u16, usize)> {
        let data = [body, &[0u8, 0, 0, 2][..]].concat();
        let streams = Streams::parse(&data).unwrap();
        let read = streams.of(9).inspect(|told| assert_eq!(told.at, 2));
        read.map(|told| (told.media, told.first, told.arrivals.len())).collect()
    }

    #[test]
    fn a_stream_that_is_cut_short_is_left_out() {
        assert_eq!(read(&part(1, 3, &[0x8000; 4])), [(9, 1, 3)], "three, and padding");
        assert_eq!(read(&part(1, 10, &[0x8000; 4])), []);
        let second = [&10u32.to_be_bytes()[..], &part(5, 4, &[0x8000; 4])].concat();
        for end in (0..=second.len()).step_by(4) {
            let body = [part(1, 2, &[0x8000; 2]), second[..end].to_vec()].concat();
            let both = [(9, 1, 2), (10, 5, 4)];
            let whole = if end == second.len() { 2 } else { 1 };
            assert_eq!(read(&body), both[..whole], "{end} bytes of the second");
        }
    }

    #[test]
    fn of_the_highest_count_some_are_heeded_and_the_next_stream_is_found() {
        assert_eq!(read(&part(1, u16::MAX, &[0x8000; 100])), []);
        let second = [&10u32.to_be_bytes()[..], &part(5, 2, &[0x8000; 2])].concat();
        let body = [part(1, u16::MAX, &vec![0x8000; 65_536]), second].concat();
        assert_eq!(read(&body), [(9, 1, HEEDED_MAX), (10, 5, 2)]);
    }

    #[test]
    fn reports_follow_on_one_another() {
        let mut arrivals = Arrivals::default();
        assert!(arrivals.report(ms(0), 0, 9).is_none());
        arrivals.on_packet(ms(10), 65_534, 0);
        arrivals.on_packet(ms(20), 65_536, 3);
        let first = arrivals.report(ms(20), 0, 9).unwrap();
        assert_eq!((first.first, first.arrivals.len()), (65_534, 3));
        assert_eq!(first.arrivals[1], None);
        assert_eq!(first.arrivals[2], Some(Arrival { ecn: 3, ago: Some(Duration::ZERO) }));
        arrivals.on_packet(ms(30), 65_539, 0);
        let second = arrivals.report(ms(30), 0, 9).unwrap();
        assert_eq!((second.first, second.arrivals.len()), (1, 3), "what is missing is told");
        // A late one is reported with those that follow it.
        arrivals.on_packet(ms(40), 65_535, 0);
        let third = arrivals.report(ms(50), 0, 9).unwrap();
        assert_eq!((third.first, third.arrivals.len()), (65_535, 5));
        let came: Vec<bool> = third.arrivals.iter().map(Option::is_some).collect();
        assert_eq!(came, [true, true, false, false, true], "what came is not taken back");
        assert!(arrivals.report(ms(55), 0, 9).is_none(), "nothing is new");
        arrivals.on_packet(ms(56), 65_535, 0);
        assert!(arrivals.is_empty(), "nor is a copy");
        arrivals.on_packet(ms(60), 65_540, 0);
        let fourth = arrivals.report(ms(60), 0, 9).unwrap();
        assert_eq!((fourth.first, fourth.arrivals.len()), (4, 1));
    }

    #[test]
    fn the_first_copy_gives_the_time_and_any_copy_the_mark() {
        let mut arrivals = Arrivals::default();
        let arrival = |ecn, ago| Some(Arrival { ecn, ago: Some(Duration::from_millis(ago)) });
        (10..13).for_each(|n| arrivals.on_packet(ms(n), n, 1));
        arrivals.on_copy(11, 3);
        let first = arrivals.report(ms(20), 0, 9).unwrap();
        assert_eq!(first.arrivals, [arrival(1, 10), arrival(3, 9), arrival(1, 8)]);
        // Of copies, only a mark is news, and once; of what never came there is no copy.
        for (sequence, ecn) in [(10, 0), (10, 2), (11, 3), (9, 3), (13, 3)] {
            arrivals.on_copy(sequence, ecn);
            assert!(arrivals.is_empty(), "{sequence} with {ecn}");
        }
        arrivals.on_copy(10, 3);
        let second = arrivals.report(ms(30), 0, 9).unwrap();
        assert_eq!(second.arrivals, [arrival(3, 20), arrival(3, 19), arrival(1, 18)]);
        assert_eq!((first.first, second.first), (10, 10));
    }

    #[test]
    fn a_report_is_due_at_once_before_it_has_no_room() {
        let mut arrivals = Arrivals::default();
        let mut many = |numbers: std::ops::Range<u64>| {
            numbers.for_each(|n| arrivals.on_packet(ms(n), n, 0));
            let many = arrivals.is_many();
            if many {
                arrivals.take();
            }
            many
        };
        assert_eq!([many(0..0), many(10..265), many(265..266)], [false, false, true]);
        assert_eq!([many(266..521), many(521..522)], [false, true], "as many again");
        // A hundred are lost.
        assert_eq!([many(622..777), many(777..778)], [false, true]);
        // What comes late has room behind the last report.
        assert!(!many(522..622));
        assert!(arrivals.take().is_some_and(|(first, came)| (first, came.len()) == (522, 256)));
    }

    #[test]
    fn a_report_is_due_at_once_before_it_has_no_room_for_a_late_packet() {
        let mut arrivals = Arrivals::default();
        (10..522).filter(|n| *n != 11).for_each(|n| arrivals.on_packet(ms(n), n, 0));
        arrivals.take();
        // 11 to 521 are 511, and with one more there is no room.
        arrivals.on_packet(ms(600), 11, 0);
        assert!(!arrivals.is_many());
        arrivals.on_packet(ms(601), 522, 0);
        assert!(arrivals.is_many());
        let (first, came) = arrivals.take().unwrap();
        assert_eq!((first, came.len()), (11, REPORTED_MAX));
        assert_eq!(came[0], Some(Came { at: ms(600), ecn: 0 }));
        assert!(!arrivals.is_many());
    }

    #[test]
    fn a_report_is_bounded() {
        let mut arrivals = Arrivals::default();
        arrivals.on_packet(ms(0), 5, 0);
        arrivals.on_packet(ms(0), 1 << 20, 0);
        let report = arrivals.report(ms(0), 0, 9).unwrap();
        assert_eq!(report.arrivals.len(), REPORTED_MAX);
        assert!(report.arrivals.last().unwrap().is_some());
    }
}
