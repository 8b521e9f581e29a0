//! Transport-wide feedback: draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.

use rtcp_types::prelude::FciParser;
use rtcp_types::{
    FciFeedbackPacketType, RtcpParseError, TWCC_MAX_REFERENCE_TIME, Twcc, TwccBuilder,
    TwccPacketStatus,
};
use suiro_units::{Duration, Time};

use super::Arrival;
use super::congestion::Came;
use super::reception::JUMP_MAX;

/// Most packets that a sender remembers: two seconds at 48 Mbit/s. A report about more is not read.
pub const PACKETS_MAX: usize = 8192;

/// The unit of the times between arrivals.
const TICK_NS: u64 = 250_000;
/// The unit of the reference time, 64 ms, in those.
const REFERENCE_TICKS: u64 = 256;

/// A report about packets of a sender, whichever stream they are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportWide {
    /// One of the sender's streams.
    pub media: u32,
    /// The number of the first packet that it is about.
    pub first: u16,
    /// How many it is about.
    pub packets: u16,
    /// Those that came, each by its place after the first, and the time since the one before it in 250 µs. It is negative if
    /// the packet overtook that one. For the first one that came it counts from `reference`.
    pub arrived: Vec<(u16, i16)>,
    /// A time on the receiver's clock in 64 ms, 24 bits.
    pub reference: u32,
    /// How many reports the receiver has sent before it, modulo 256.
    pub count: u8,
}

impl TransportWide {
    /// When the latest of its packets came, on the receiver's clock, and how long before that each one came; without any, the
    /// reference time. `reference` is the extended one.
    pub fn arrivals(&self, reference: u64) -> (Time, Vec<Option<Arrival>>) {
        let start = reference.saturating_mul(REFERENCE_TICKS).min(i64::MAX as u64).cast_signed();
        let step = |at: &mut i64, (place, delta): &(u16, i16)| {
            *at = at.saturating_add(i64::from(*delta));
            Some((usize::from(*place), *at))
        };
        let came: Vec<(usize, i64)> = self.arrived.iter().scan(start, step).collect();
        let latest = came.iter().map(|(_, at)| *at).max().unwrap_or(start);
        let mut arrivals = vec![None; self.packets.into()];
        for (place, at) in came {
            let ago = Some(Duration::from_nanos((latest - at).unsigned_abs() * TICK_NS));
            if let Some(arrival) = arrivals.get_mut(place) {
                *arrival = Some(Arrival { ecn: 0, ago });
            }
        }
        (Time::from_nanos(latest.max(0).unsigned_abs().saturating_mul(TICK_NS)), arrivals)
    }

    /// As it is written.
    pub(super) fn builder(&self) -> TwccBuilder {
        let mut statuses = vec![TwccPacketStatus::NotReceived; self.packets.into()];
        for &(place, delta) in &self.arrived {
            if let Some(status) = statuses.get_mut(usize::from(place)) {
                *status = TwccPacketStatus::Received { delta };
            }
        }
        let reference = self.reference & TWCC_MAX_REFERENCE_TIME;
        Twcc::builder(self.first, reference, self.count, &statuses, None)
    }
}

/// The packet's header names the stream.
impl<'a> FciParser<'a> for TransportWide {
    const PACKET_TYPE: FciFeedbackPacketType = FciFeedbackPacketType::TRANSPORT;
    const FCI_FORMAT: u8 = 15;

    fn parse(data: &'a [u8]) -> Result<Self, RtcpParseError> {
        let body = Twcc::parse(data)?;
        let packets = u16::from_be_bytes([data[2], data[3]]);
        if usize::from(packets) > PACKETS_MAX {
            let (expected, actual) = (PACKETS_MAX, packets.into());
            return Err(RtcpParseError::TooLarge { expected, actual });
        }
        let (mut arrived, mut told) = (Vec::new(), 0);
        for packet in body.packets() {
            if let (_, TwccPacketStatus::Received { delta }) = packet? {
                arrived.push((told, delta));
            }
            told += 1;
        }
        if told < packets {
            let (expected, actual) = (packets.into(), told.into());
            return Err(RtcpParseError::Truncated { expected, actual });
        }
        let (first, reference) = (body.base_sequence_number(), body.reference_time());
        let count = body.feedback_packet_count();
        Ok(Self { media: 0, first, packets, arrived, reference, count })
    }
}

/// The transport-wide numbers of the packets that come, extended. Two late ones in a row are only late; RFC 3550 A.1 would take
/// them for a sender that has restarted.
#[derive(Debug)]
pub struct Numbers {
    highest: u64,
    /// After one that is far from the highest: the number that would show that it is meant.
    resume: Option<u16>,
}

impl Numbers {
    /// That begin with this one. There is room below it for what was sent before and comes later.
    pub fn new(first: u16) -> Self {
        Self { highest: (1 << 16) + u64::from(first), resume: None }
    }

    /// The number extended; `None` if it is far from the highest, unless it follows on another such.
    pub fn extend(&mut self, number: u16) -> Option<u64> {
        let ahead = number.wrapping_sub(self.highest as u16);
        let behind = ahead.wrapping_neg();
        if behind < JUMP_MAX {
            return self.highest.checked_sub(behind.into());
        }
        if ahead < JUMP_MAX || self.resume == Some(number) {
            self.resume = None;
            self.highest += u64::from(ahead);
            return Some(self.highest);
        }
        self.resume = Some(number.wrapping_add(1));
        None
    }
}

/// Reports about the packets from the number `first` on, up to the last one that came. There are several if a time between two
/// arrivals does not fit (§3.1.5). `count` goes on with each.
pub fn reports(
    media: u32,
    first: u64,
    arrivals: &[Option<Came>],
    count: &mut u8,
) -> Vec<TransportWide> {
    let mut reports: Vec<TransportWide> = Vec::new();
    // The first packet of the report at hand, the next one that no report is about, and the latest arrival.
    let (mut begin, mut next, mut before) = (first, first, 0);
    for (number, came) in (first..).zip(arrivals) {
        let Some(Came { at, .. }) = came else { continue };
        let ticks = at.as_nanos() / TICK_NS;
        let delta = i16::try_from(ticks.cast_signed() - before);
        let delta = match delta {
            Ok(delta) if !reports.is_empty() => delta,
            _ => {
                begin = next;
                reports.push(TransportWide {
                    media,
                    first: begin as u16,
                    packets: 0,
                    arrived: Vec::new(),
                    reference: (ticks / REFERENCE_TICKS) as u32 & TWCC_MAX_REFERENCE_TIME,
                    count: *count,
                });
                *count = count.wrapping_add(1);
                (ticks % REFERENCE_TICKS) as i16
            }
        };
        let report = reports.last_mut().expect("one was begun for the first that came");
        report.arrived.push(((number - begin) as u16, delta));
        report.packets = (number - begin + 1) as u16;
        (next, before) = (number + 1, ticks.cast_signed());
    }
    reports
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rtcp::{Message, Outgoing, parse};

    /// The part of a report of ours behind the fixed header and the two SSRCs.
    fn body(report: &TransportWide) -> Vec<u8> {
        let transport_wide = vec![report.clone()];
        let bytes = Outgoing { ssrc: 7, transport_wide, ..Outgoing::default() }.write();
        // Version 2, format 15 of 205, behind an empty report and a name.
        let begin = bytes.windows(2).position(|two| two == [0x8f, 205]).unwrap();
        let words = u16::from_be_bytes([bytes[begin + 2], bytes[begin + 3]]);
        assert_eq!(bytes.len() - begin, 4 * (usize::from(words) + 1));
        assert_eq!(bytes[begin + 4..begin + 12], [0, 0, 0, 7, 0, 0, 0, 9]);
        bytes[begin + 12..].to_vec()
    }

    /// It is written as these bytes, and read from them.
    fn is(report: &TransportWide, bytes: &[u8]) {
        assert_eq!(body(report), bytes);
        let read = TransportWide::parse(bytes).unwrap();
        assert_eq!(TransportWide { media: 9, ..read }, *report);
    }

    fn report(first: u16, packets: u16, arrived: &[(u16, i16)]) -> TransportWide {
        let (reference, count) = (0x01_02_03, 4);
        TransportWide { media: 9, first, packets, arrived: arrived.to_vec(), reference, count }
    }

    #[test]
    fn a_run_of_small_deltas_is_one_chunk() {
        let arrived: Vec<(u16, i16)> = (0..8).map(|place| (place, 4)).collect();
        // §3.1.3: bit 0, symbol 01 for a small delta, 13 bits of length; then a byte for each packet.
        let bytes = [0xff, 0xfe, 0, 8, 1, 2, 3, 4, 0x20, 8, 4, 4, 4, 4, 4, 4, 4, 4, 0, 0];
        is(&report(65_534, 8, &arrived), &bytes);
    }

    #[test]
    fn losses_are_a_vector_of_one_bit_each() {
        let arrived = [(0, 0), (1, 255), (3, 1), (9, 2), (12, 3), (13, 4)];
        // §3.1.4: bits 1 and 0, then fourteen symbols: 11010000 010011.
        let bytes = [0, 5, 0, 14, 1, 2, 3, 4, 0xb4, 0x13, 0, 255, 1, 2, 3, 4];
        is(&report(5, 14, &arrived), &bytes);
    }

    #[test]
    fn large_and_negative_deltas_are_two_bytes_behind_a_vector_of_two_bits_each() {
        let arrived = [(0, 1), (2, 256), (3, -1), (5, -32_768), (6, 255)];
        // §3.1.4: bits 1 and 1, then seven symbols: 01 00 10 10 00 10 01.
        let bytes = [0, 5, 0, 7, 1, 2, 3, 4, 0xd2, 0x89, 1, 1, 0, 0xff, 0xff, 0x80, 0, 255, 0, 0];
        is(&report(5, 7, &arrived), &bytes);
    }

    #[test]
    fn a_run_of_losses_needs_no_more_than_a_chunk() {
        // A run of 600 packets that did not come, and a vector whose other six symbols are of no packet.
        let bytes = [0, 5, 2, 0x59, 1, 2, 3, 4, 2, 0x58, 0xd0, 0, 9, 0, 0, 0];
        is(&report(5, 601, &[(600, 9)]), &bytes);
    }

    #[test]
    fn what_cannot_be_read_is_no_report() {
        let good = body(&report(5, 9, &[(0, 1), (2, 300), (8, -4)]));
        assert!(TransportWide::parse(&good).is_ok());
        // Two chunks, and five bytes of deltas.
        for end in 0..8 + 4 + 5 {
            assert!(TransportWide::parse(&good[..end]).is_err(), "{end} bytes");
        }
        let changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            TransportWide::parse(&bytes).is_ok()
        };
        assert!(!changed(2, 0xff), "more packets than a sender remembers");
        assert!(!changed(8, 0xff), "a reserved symbol");
        let head = [0_u8, 5, 0, 9, 1, 2, 3, 4];
        assert!(TransportWide::parse(&[head, [0; 8]].concat()).is_err(), "chunks of no packets");
        assert!(TransportWide::parse(&[head, [0xc0, 0, 0xc0, 0, 0, 0, 0, 0]].concat()).is_ok());
        // In a compound packet: it is about more packets than it has bytes for.
        let one = report(5, 9, &[(0, 1)]);
        let transport_wide = vec![one.clone()];
        let mut bytes = Outgoing { transport_wide, ..Outgoing::default() }.write();
        assert_eq!(parse(&bytes).unwrap().len(), 1);
        let count = bytes.len() - body(&one).len() + 3;
        bytes[count] = 200;
        assert_eq!(parse(&bytes).unwrap(), []);
    }

    #[test]
    fn one_that_cannot_be_read_is_left_out_and_the_others_are_read() {
        let (bad, good) = (report(5, 9, &[(0, 1)]), report(6, 1, &[(0, 1)]));
        let transport_wide = vec![bad.clone(), good.clone()];
        let mut bytes =
            Outgoing { missing: vec![7], transport_wide, ..Outgoing::default() }.write();
        // Behind each fixed header and the two SSRCs, 12 bytes.
        let count = bytes.len() - body(&good).len() - 12 - body(&bad).len() + 3;
        assert_eq!((bytes[count], parse(&bytes).unwrap().len()), (9, 3));
        bytes[count] = 200;
        let missing = Message::Missing { media: 0, sequences: vec![7] };
        assert_eq!(parse(&bytes).unwrap(), [missing, Message::TransportWide(good)]);
    }

    #[test]
    fn numbers_are_extended_around_the_highest() {
        let mut numbers = Numbers::new(65_535);
        let mut extend = |number: u16| numbers.extend(number).map(|it| it - (1 << 16));
        let near = [65_535, 0, 2, 65_534].map(&mut extend);
        assert_eq!(near, [65_535, 65_536, 65_538, 65_534].map(Some));
        let far = [40_000, 3, 40_001].map(&mut extend);
        assert_eq!(far, [None, Some(65_539), None], "not two in a row");
        assert_eq!([40_002, 40_003].map(&mut extend), [105_538, 105_539].map(Some));
        assert_eq!(Numbers::new(1).extend(65_535), Some(65_535), "from before the first");
    }

    fn came(ms: f64) -> Option<Came> {
        Some(Came { at: Time::from_nanos((ms * 1e6) as u64), ecn: 3 })
    }

    #[test]
    fn reports_count_from_the_reference_time() {
        let mut count = 255;
        let arrivals = [None, came(130.1), came(130.6), None, came(129.9)];
        let reports = reports(9, 65_535, &arrivals, &mut count);
        // Two of 64 ms, and 8 of 250 µs; what is left over is dropped.
        let arrived = vec![(1, 8), (2, 2), (4, -3)];
        let expected = TransportWide {
            media: 9,
            first: 65_535,
            packets: 5,
            arrived,
            reference: 2,
            count: 255,
        };
        assert_eq!((&reports[..], count), (&[expected][..], 0));
        let (at, arrivals) = reports[0].arrivals(2);
        assert_eq!(at, Time::from_nanos(130_500_000));
        let ago = |arrival: Option<Arrival>| arrival.map(|it| it.ago.unwrap().as_nanos() / 1000);
        let ago: Vec<_> = arrivals.into_iter().map(ago).collect();
        assert_eq!(ago, [None, Some(500), Some(0), None, Some(750)]);
    }

    #[test]
    fn a_delta_that_does_not_fit_begins_another_report() {
        let mut count = 7;
        // 32,767 and 32,768 of 250 µs.
        let arrivals = [came(0.0), came(8191.75), None, came(16_383.75), came(0.0)];
        let reports = reports(9, 10, &arrivals, &mut count);
        let told: Vec<_> =
            reports.iter().map(|it| (it.first, it.packets, it.reference, it.count)).collect();
        assert_eq!(told, [(10, 2, 0, 7), (12, 2, 255, 8), (14, 1, 0, 9)]);
        let arrived: Vec<_> = reports.iter().map(|it| it.arrived.clone()).collect();
        assert_eq!(arrived, [vec![(0, 0), (1, 32_767)], vec![(1, 255)], vec![(0, 0)]]);
        let none: [Option<Came>; 2] = [None; 2];
        assert_eq!(super::reports(9, 10, &none, &mut count), []);
    }

    #[test]
    fn a_reference_time_of_more_than_24_bits_wraps() {
        let ms = 64.0 * 16_777_217.0;
        let reports = reports(9, 10, &[came(ms)], &mut 0);
        assert_eq!((reports[0].reference, reports[0].arrived[0]), (1, (0, 0)));
    }

    proptest! {
        /// What came when is read as it was written, to 250 µs.
        #[test]
        fn what_is_written_is_read_back(
            first in 0..1_u64 << 20,
            steps in prop::collection::vec(prop::option::of(-20_000..20_000_i64), 0..300),
        ) {
            let mut at = 20_000_000_i64; // in µs
            let arrivals: Vec<Option<Came>> = steps.iter().map(|step| {
                at = (at + (*step)?).max(0);
                Some(Came { at: Time::from_nanos(at.unsigned_abs() * 1000), ecn: 0 })
            }).collect();
            let transport_wide = reports(9, first, &arrivals, &mut 0);
            let written = Outgoing { transport_wide: transport_wide.clone(), ..Outgoing::default() };
            let read = parse(&written.write()).unwrap();
            let expected: Vec<_> =
                transport_wide.iter().cloned().map(Message::TransportWide).collect();
            prop_assert_eq!(&read, &expected);
            let mut found = Vec::new();
            for report in &transport_wide {
                let (at, arrivals) = report.arrivals(report.reference.into());
                let time = |it: Arrival| at.saturating_sub(it.ago.unwrap()).as_nanos();
                found.extend(arrivals.into_iter().map(|it| it.map(time)));
            }
            let last = arrivals.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            let tick = |came: &Option<Came>| came.map(|it| it.at.as_nanos() / 250_000 * 250_000);
            let expected: Vec<_> = arrivals[..last].iter().map(tick).collect();
            prop_assert_eq!(found, expected);
        }

        /// Any bytes are a report or an error, and its times can be computed.
        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..300), reference: u64) {
            if let Ok(report) = TransportWide::parse(&bytes) {
                let (_, arrivals) = report.arrivals(reference);
                prop_assert_eq!(arrivals.len(), usize::from(report.packets));
                prop_assert!(report.arrived.len() <= bytes.len());
            }
        }
    }
}
