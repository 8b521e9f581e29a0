//! RTCP: messages, and the state machines that make and take them. All are handed the time.

pub mod congestion;
pub mod interval;
pub mod nack;
pub mod reception;
pub mod transport_wide;

use rtcp_types::{
    Bye, Compound, Nack, Packet, PayloadFeedback, Pli, ReceiverReport, ReportBlock,
    RtcpPacketWriterExt, RtcpParseError, Sdes, SdesChunk, SdesItem, SenderReport,
    TransportFeedback,
};
use suiro_units::{Duration, Time};

pub use congestion::{Arrival, Congestion};
pub use transport_wide::TransportWide;

/// Most sequence numbers that one NACK of ours names, and that are heeded of one received.
pub const NACK_MAX: usize = 256;

/// Seconds between 1900, where NTP counts from, and 1970.
const NTP_OFFSET: u64 = 2_208_988_800;

/// The SDES item of the canonical name (RFC 3550 §6.5.1).
const CNAME: u8 = 1;

/// One message of a compound packet.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// What a sender has sent (RFC 3550 §6.4.1).
    Sent(Sent),
    /// How a stream is received (RFC 3550 §6.4).
    Received(Block),
    /// Packets that are missing (RFC 4585 §6.2.1).
    Missing {
        /// The stream.
        media: u32,
        /// Their numbers, at most [`NACK_MAX`].
        sequences: Vec<u16>,
    },
    /// A frame is lost (picture loss indication, RFC 4585 §6.3.1): send a key frame.
    PictureLoss {
        /// The stream.
        media: u32,
    },
    /// What became of each packet (RFC 8888).
    Congestion(Congestion),
    /// What became of each packet (draft-holmer-rmcat-transport-wide-cc-extensions-01).
    TransportWide(TransportWide),
    /// Somebody leaves (RFC 3550 §6.6).
    Bye {
        /// Who.
        ssrc: u32,
    },
}

/// A sender's report about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Who.
    pub ssrc: u32,
    /// Wall clock time, as NTP writes it: seconds since 1900 and 2^-32 of them.
    pub ntp: u64,
    /// The same instant as RTP timestamp.
    pub timestamp: u32,
    /// Packets since the start; wraps.
    pub packets: u32,
    /// Bytes of payload since the start; wraps.
    pub octets: u32,
}

/// A report block: how one stream is received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The reporter.
    pub from: u32,
    /// The stream.
    pub media: u32,
    /// Share of packets lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the start, 24 bits with a sign: those that came twice count as found.
    pub cumulative_lost: i32,
    /// The highest number received; the upper half counts its turns.
    pub highest: u32,
    /// Variation of the transit time, in units of the RTP timestamp.
    pub jitter: u32,
    /// The middle of the NTP time of the last sender report; zero if none came.
    pub last_report: u32,
    /// How long ago that came, in 2^-16 s.
    pub since_report: u32,
}

/// Reads a compound packet.
///
/// # Errors
/// Why it is none.
pub fn parse(bytes: &[u8]) -> Result<Vec<Message>, RtcpParseError> {
    let mut messages = Vec::new();
    for packet in Compound::parse(bytes)? {
        match packet? {
            Packet::Sr(report) => {
                messages.push(Message::Sent(Sent {
                    ssrc: report.ssrc(),
                    ntp: report.ntp_timestamp(),
                    timestamp: report.rtp_timestamp(),
                    packets: report.packet_count(),
                    octets: report.octet_count(),
                }));
                let from = report.ssrc();
                messages.extend(report.report_blocks().map(|b| Message::Received(block(from, &b))));
            }
            Packet::Rr(report) => {
                let from = report.ssrc();
                messages.extend(report.report_blocks().map(|b| Message::Received(block(from, &b))));
            }
            Packet::TransportFeedback(feedback) => messages.extend(transport(&feedback)),
            Packet::PayloadFeedback(feedback) if feedback.parse_fci::<Pli>().is_ok() => {
                messages.push(Message::PictureLoss { media: feedback.media_ssrc() });
            }
            Packet::Bye(bye) => messages.extend(bye.ssrcs().map(|ssrc| Message::Bye { ssrc })),
            _ => {}
        }
    }
    Ok(messages)
}

fn block(from: u32, block: &ReportBlock) -> Block {
    // 24 bits with a sign.
    let lost = (block.cumulative_lost() << 8).cast_signed() >> 8;
    Block {
        from,
        media: block.ssrc(),
        fraction_lost: block.fraction_lost(),
        cumulative_lost: lost,
        highest: block.extended_sequence_number(),
        jitter: block.interarrival_jitter(),
        last_report: block.last_sender_report_timestamp(),
        since_report: block.delay_since_last_sender_report_timestamp(),
    }
}

/// What is said there; a report that cannot be read is left out.
fn transport(feedback: &TransportFeedback) -> Vec<Message> {
    let media = feedback.media_ssrc();
    if let Ok(nack) = feedback.parse_fci::<Nack>() {
        let sequences = nack.entries().take(NACK_MAX).collect();
        return vec![Message::Missing { media, sequences }];
    }
    if let Ok(streams) = feedback.parse_fci::<congestion::Streams>() {
        return streams.of(media).map(Message::Congestion).collect();
    }
    let told = feedback.parse_fci::<TransportWide>().ok();
    told.map(|told| Message::TransportWide(TransportWide { media, ..told })).into_iter().collect()
}

/// A compound packet in the making. It begins with a report and a name, as RFC 3550 §6.1 asks of
/// every one.
#[derive(Debug, Clone, Default)]
pub struct Outgoing {
    /// Who sends it.
    pub ssrc: u32,
    /// Its canonical name.
    pub cname: String,
    /// What it has sent; `None` of one who only receives.
    pub sent: Option<Sent>,
    /// What it has received.
    pub received: Option<Block>,
    /// The stream that the following are about.
    pub media: u32,
    /// Packets to be sent again, at most [`NACK_MAX`].
    pub missing: Vec<u16>,
    /// Whether a key frame is asked for.
    pub picture_loss: bool,
    /// What became of packets.
    pub congestion: Option<Congestion>,
    /// The same by transport-wide numbers.
    pub transport_wide: Vec<TransportWide>,
    /// Whether it leaves.
    pub bye: bool,
}

impl Outgoing {
    /// The packet's bytes.
    pub fn write(&self) -> Vec<u8> {
        let block = self.received.map(|block| {
            ReportBlock::builder(block.media)
                .fraction_lost(block.fraction_lost)
                .cumulative_lost(block.cumulative_lost.cast_unsigned() & 0x00ff_ffff)
                .extended_sequence_number(block.highest)
                .interarrival_jitter(block.jitter)
                .last_sender_report_timestamp(block.last_report)
                .delay_since_last_sender_report_timestamp(block.since_report)
        });
        let mut compound = Compound::builder();
        compound = match self.sent {
            Some(sent) => {
                let mut report = SenderReport::builder(self.ssrc)
                    .ntp_timestamp(sent.ntp)
                    .rtp_timestamp(sent.timestamp)
                    .packet_count(sent.packets)
                    .octet_count(sent.octets);
                if let Some(block) = block {
                    report = report.add_report_block(block);
                }
                compound.add_packet(report)
            }
            None => {
                let mut report = ReceiverReport::builder(self.ssrc);
                if let Some(block) = block {
                    report = report.add_report_block(block);
                }
                compound.add_packet(report)
            }
        };
        let name = SdesChunk::builder(self.ssrc).add_item(SdesItem::builder(CNAME, &self.cname));
        compound = compound.add_packet(Sdes::builder().add_chunk(name));
        compound = self.add_feedback(compound);
        if self.bye {
            compound = compound.add_packet(Bye::builder().add_source(self.ssrc));
        }
        let mut bytes = vec![0; 64 << 10];
        let length = compound.write_into(&mut bytes).expect("all parts are within their bounds");
        bytes.truncate(length);
        bytes
    }

    fn add_feedback<'a>(
        &'a self,
        mut compound: rtcp_types::CompoundBuilder<'a>,
    ) -> rtcp_types::CompoundBuilder<'a> {
        if !self.missing.is_empty() {
            let add = |nack: rtcp_types::NackBuilder, &n: &u16| nack.add_rtp_sequence(n);
            let nack = self.missing.iter().take(NACK_MAX).fold(Nack::builder(), add);
            let feedback = TransportFeedback::builder_owned(nack);
            compound = compound.add_packet(feedback.sender_ssrc(self.ssrc).media_ssrc(self.media));
        }
        if self.picture_loss {
            let feedback = PayloadFeedback::builder_owned(Pli::builder());
            compound = compound.add_packet(feedback.sender_ssrc(self.ssrc).media_ssrc(self.media));
        }
        if let Some(congestion) = &self.congestion {
            let feedback = TransportFeedback::builder(congestion);
            compound =
                compound.add_packet(feedback.sender_ssrc(self.ssrc).media_ssrc(congestion.media));
        }
        for told in &self.transport_wide {
            let feedback = TransportFeedback::builder_owned(told.builder());
            compound = compound.add_packet(feedback.sender_ssrc(self.ssrc).media_ssrc(told.media));
        }
        compound
    }
}

/// A wall clock time, in nanoseconds since 1970, as NTP writes it.
pub fn ntp(unix_ns: u64) -> u64 {
    let (seconds, nanos) = (unix_ns / 1_000_000_000, unix_ns % 1_000_000_000);
    ((seconds + NTP_OFFSET) << 32) | ((nanos << 32) / 1_000_000_000)
}

/// Nanoseconds since 1970 of an NTP time; `None` before that.
pub fn unix_ns(ntp: u64) -> Option<u64> {
    let seconds = (ntp >> 32).checked_sub(NTP_OFFSET)?;
    let nanos = ((ntp & 0xffff_ffff) * 1_000_000_000) >> 32;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// The middle 32 bits of an NTP time, as report blocks repeat it: 2^-16 s, turning in 18 hours.
pub fn middle(ntp: u64) -> u32 {
    (ntp >> 16) as u32
}

/// A span in 2^-16 s, as report blocks write it; the most that fits if it is longer.
pub fn short(span: Duration) -> u32 {
    let units = (u128::from(span.as_nanos()) << 16) / 1_000_000_000;
    u32::try_from(units).unwrap_or(u32::MAX)
}

/// A span of 2^-16 s.
pub fn from_short(units: u32) -> Duration {
    Duration::from_nanos((u64::from(units) * 1_000_000_000) >> 16)
}

/// An instant in units of a 90 kHz clock, from time zero.
pub fn ticks(time: Time) -> u64 {
    let ticks = u128::from(time.as_nanos()) * 9 / 100_000;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BLOCK: Block = Block {
        from: 7,
        media: 9,
        fraction_lost: 3,
        cumulative_lost: -5,
        highest: 0x0001_fffe,
        jitter: 40,
        last_report: 0x8000_0001,
        since_report: 655,
    };

    #[test]
    fn what_is_written_is_read_back() {
        let sent =
            Sent { ssrc: 7, ntp: 0xdead_beef_1234_5678, timestamp: 1, packets: 2, octets: 3 };
        let arrivals = vec![None, Some(Arrival { ecn: 3, ago: Some(Duration::ZERO) }), None];
        let congestion = Congestion { media: 9, first: 65_535, arrivals, at: 0x1234_5678 };
        let arrived = vec![(0, 3), (2, -700)];
        let wide = TransportWide {
            media: 9,
            first: 65_535,
            packets: 3,
            arrived,
            reference: 7,
            count: 255,
        };
        let outgoing = Outgoing {
            ssrc: 7,
            cname: "suiro@server".into(),
            sent: Some(sent),
            received: Some(BLOCK),
            media: 9,
            missing: vec![1, 2, 17, 18, 65_535],
            picture_loss: true,
            congestion: Some(congestion.clone()),
            transport_wide: vec![wide.clone()],
            bye: true,
        };
        let messages = parse(&outgoing.write()).unwrap();
        let expected = [
            Message::Sent(sent),
            Message::Received(BLOCK),
            Message::Missing { media: 9, sequences: vec![1, 2, 17, 18, 65_535] },
            Message::PictureLoss { media: 9 },
            Message::Congestion(congestion),
            Message::TransportWide(wide),
            Message::Bye { ssrc: 7 },
        ];
        assert_eq!(messages, expected);
    }

    #[test]
    fn who_only_receives_reports_that() {
        let outgoing = Outgoing {
            ssrc: 7,
            cname: "suiro@client".into(),
            received: Some(BLOCK),
            ..Outgoing::default()
        };
        assert_eq!(parse(&outgoing.write()).unwrap(), [Message::Received(BLOCK)]);
    }

    #[test]
    fn ntp_counts_from_1900() {
        // RFC 5905 figure 4: the Unix epoch is second 2,208,988,800.
        assert_eq!(ntp(0), 2_208_988_800 << 32);
        assert_eq!(ntp(1_500_000_000) & 0xffff_ffff, 1 << 31);
        assert_eq!(unix_ns(ntp(1_500_000_000)), Some(1_500_000_000));
        assert_eq!(unix_ns(5), None);
        assert_eq!(short(Duration::from_millis(500)), 1 << 15);
        assert_eq!(from_short(1 << 15), Duration::from_millis(500));
        assert_eq!(short(Duration::from_secs(1 << 20)), u32::MAX);
        assert_eq!(ticks(Time::from_secs(2)), 180_000);
    }

    proptest! {
        /// Any bytes are messages or an error.
        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }

        /// A valid packet with any byte changed, too.
        #[test]
        fn no_damage_does_harm(at in any::<prop::sample::Index>(), value: u8) {
            let arrivals = vec![Some(Arrival { ecn: 0, ago: None }); 5];
            let congestion = Congestion { media: 9, first: 1, arrivals, at: 2 };
            let mut bytes = Outgoing {
                received: Some(BLOCK),
                missing: vec![5],
                congestion: Some(congestion),
                ..Outgoing::default()
            }
            .write();
            let at = at.index(bytes.len());
            bytes[at] = value;
            let _ = parse(&bytes);
        }
    }
}
