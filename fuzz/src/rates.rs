//! Reports of each packet at a sender under every rate control that needs them, anything at its RTCP port, and headers of RTP.

use suiro_payload::Codec;
use suiro_rate::{RateKind, RateSpec};
use suiro_rtp::packet::Packet;
use suiro_rtp::rtcp::Outgoing;
use suiro_rtp::sender::{Config, ReportTimes, Sender, SourceFrame, Transmit};
use suiro_scenario::{FeedbackFormat, OnBreak, RoundTrip};
use suiro_units::{BitRate, Bytes, Duration, Seed, Time};

/// Reports that are made of one input at most.
const REPORTS_MAX: usize = 200;
/// The bounds of the controllers.
const MIN: BitRate = BitRate::from_kbps(100);
const MAX: BitRate = BitRate::from_mbps(20);

fn config(feedback: FeedbackFormat) -> Config {
    Config {
        codec: Codec::H264,
        payload_type: 96,
        again_type: None,
        packet_max: Bytes::new(1500),
        cname: "fuzz".into(),
        reports: ReportTimes::Pictures(1),
        rtt: RoundTrip::Path,
        feedback,
        drain: None,
        times: (Duration::from_millis(33), Duration::from_secs(1)),
        on_break: OnBreak::Tell,
        pauses: Vec::new(),
        epoch_unix_ns: 1,
    }
}

fn sender(kind: RateKind, feedback: FeedbackFormat) -> Sender {
    let spec = RateSpec { min: Some(MIN), max: Some(MAX), ..RateSpec::new(kind) };
    let control = spec.build(Time::ZERO).expect("the bounds are in order");
    Sender::new(Time::ZERO, config(feedback), control, Seed(1).random())
}

/// Sends until then, and a frame; the stream and the number of its latest packet that reports are about, if one left.
fn send(sender: &mut Sender, now: Time, number: u64, latest: &mut Option<(u32, u16)>) {
    let mut picture = vec![0, 0, 1, 0x65, 0x88];
    picture.resize(3000, 7);
    let frame = SourceFrame {
        number,
        captured: now,
        references: None,
        data: &picture,
        rate: BitRate::from_mbps(1),
        quantiser: None,
        begins_group: true,
        budget: None,
    };
    sender.on_frame(now, &frame).expect("it is a picture");
    let left = std::iter::from_fn(|| sender.poll(now)).take(1000);
    for transmit in left {
        if let Transmit::Rtp(bytes) = transmit {
            let packet = Packet::parse(&bytes).expect("our own packet");
            *latest = Some((packet.ssrc, packet.wide.unwrap_or(packet.sequence)));
        }
    }
    while sender.take_period().is_some() {}
}

/// What a report says, apart from what became of each packet.
struct Report {
    media: u32,
    first: u16,
    at: u32,
    /// Other streams in it, and how many of them come first.
    others: (u8, u8),
    /// Words that are missing from the end of its streams, and bytes from its own.
    cut: (usize, usize),
}

impl Report {
    /// A packet of RFC 8888 §3.1, which says the same of each stream, behind the report that a compound packet begins with.
    fn write(&self, blocks: &[u8]) -> Vec<u8> {
        let (others, before) = self.others;
        let mut streams = Vec::new();
        for n in 0..=others {
            let media = if n == before { self.media } else { (!self.media).wrapping_sub(n.into()) };
            streams.extend(media.to_be_bytes());
            streams.extend(self.first.to_be_bytes());
            streams.extend(((blocks.len() / 2) as u16).to_be_bytes());
            streams.extend(&blocks[..blocks.len() & !1]);
            streams.resize(streams.len().next_multiple_of(4), 0);
        }
        streams.truncate(streams.len().saturating_sub(4 * self.cut.0).max(4));
        let mut bytes = Outgoing { media: self.media, ..Outgoing::default() }.write();
        bytes.extend([0x8b, 205]); // version 2, format 11 of transport layer feedback
        bytes.extend((streams.len() as u16 / 4 + 2).to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(streams);
        bytes.extend(self.at.to_be_bytes());
        bytes.truncate(bytes.len() - self.cut.1);
        bytes
    }

    /// A transport-wide report about `count` packets: `body` is all that is behind its fixed part.
    fn write_wide(&self, count: u16, body: &[u8]) -> Vec<u8> {
        let media = if self.others.1 == 0 { self.media } else { !self.media };
        let mut fci = Vec::new();
        fci.extend(self.first.to_be_bytes());
        fci.extend(count.to_be_bytes());
        // A sixteenth of a second is about 64 ms.
        fci.extend((self.at >> 12 << 8 | u32::from(self.others.0)).to_be_bytes());
        fci.extend(body);
        fci.resize(fci.len().next_multiple_of(4), 0);
        fci.truncate(fci.len().saturating_sub(4 * self.cut.0).max(4));
        let mut bytes = Outgoing { media: self.media, ..Outgoing::default() }.write();
        bytes.extend([0x8f, 205]); // version 2, format 15 of transport layer feedback
        bytes.extend((fci.len() as u16 / 4 + 2).to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(media.to_be_bytes());
        bytes.extend(fci);
        bytes.truncate(bytes.len() - self.cut.1);
        bytes
    }
}

/// Reports about packets that were sent, or not: each as one of RFC 8888, and as a transport-wide one. Each has a byte for the
/// time since the one before, one for how far behind the latest packet it begins, and one for the number of its packets. Two say
/// how far the receiver's clock is off, in sixteenths of a second. One is for streams that are not ours, and one for where the
/// packet is cut. Then it has two bytes for each of its packets, as on the wire; in a transport-wide report these are chunks and
/// deltas. Targets stay within their bounds, and nothing is sent without end.
pub fn congestion(data: &[u8]) {
    for kind in [RateKind::Nada, RateKind::Scream, RateKind::Gcc, RateKind::Tfrc] {
        for feedback in [FeedbackFormat::Rfc8888, FeedbackFormat::TransportWide] {
            hear(sender(kind, feedback), (kind, feedback), data);
        }
    }
}

/// What [`congestion`] does with one sender.
fn hear(mut sender: Sender, (kind, feedback): (RateKind, FeedbackFormat), data: &[u8]) {
    let (mut now, mut latest, mut rest) = (Time::ZERO, None, data);
    for number in 0..REPORTS_MAX as u64 {
        let Some((&[wait, behind, count, off_high, off_low, others, cut], after)) =
            rest.split_first_chunk::<7>()
        else {
            break;
        };
        let (blocks, after) = after.split_at(after.len().min(usize::from(count) * 2));
        rest = after;
        now += Duration::from_millis(u64::from(wait));
        send(&mut sender, now, number, &mut latest);
        let Some((media, highest)) = latest else { continue };
        let at = (now.as_nanos() * 65_536 / 1_000_000_000) as u32;
        let off = i32::from(i16::from_be_bytes([off_high, off_low])) * (65_536 / 16);
        let report = Report {
            media,
            first: highest.wrapping_sub(behind.into()),
            at: at.wrapping_add_signed(off),
            others: (others % 4, others / 4 % 4),
            cut: (usize::from(cut / 4), usize::from(cut % 4)),
        };
        let bytes = match feedback {
            FeedbackFormat::Rfc8888 => report.write(blocks),
            FeedbackFormat::TransportWide => report.write_wide(count.into(), blocks),
        };
        sender.on_rtcp(now, &bytes);
        let target = sender.target();
        assert!(MIN <= target && target <= MAX, "{kind}, {feedback:?}: {target}");
    }
}

/// Anything at the RTCP port of a sender, in the middle of its stream.
pub fn rtcp(data: &[u8]) {
    for feedback in [FeedbackFormat::Rfc8888, FeedbackFormat::TransportWide] {
        rtcp_of(feedback, data);
    }
}

/// What [`rtcp`] does with a sender that asks for that feedback.
fn rtcp_of(feedback: FeedbackFormat, data: &[u8]) {
    let config = Config { again_type: Some(97), on_break: OnBreak::Stop, ..config(feedback) };
    let control = RateSpec::fixed(BitRate::from_mbps(100)).build(Time::ZERO);
    let control = control.expect("a rate within bounds");
    let mut sender = Sender::new(Time::ZERO, config, control, Seed(1).random());
    let mut picture = vec![0, 0, 1, 0x65, 0x88];
    picture.resize(20_000, 7);
    let frame = SourceFrame {
        number: 0,
        captured: Time::ZERO,
        references: None,
        data: &picture,
        rate: BitRate::from_mbps(1),
        quantiser: None,
        begins_group: true,
        budget: None,
    };
    sender.on_frame(Time::ZERO, &frame).expect("it is a picture");
    for (now, _, packet) in crate::packets(data) {
        while sender.poll(now).is_some() {}
        sender.on_rtcp(now, packet);
        while sender.take_period().is_some() {}
    }
    assert!(sender.target() == BitRate::from_mbps(100), "what is said changes no fixed rate");
}

/// A packet with its header extensions: what is read is written and read again.
pub fn rtp_header(data: &[u8]) {
    let Ok(packet) = Packet::parse(data) else { return };
    assert!(packet.payload.len() <= data.len());
    let again = Packet::parse(&packet.write()).expect("our own packet");
    assert_eq!(again, packet);
}
