//! The receiver, as a state machine: packets in, frames, their fate and RTCP out. It is handed the
//! time, and has no sockets.

mod counters;

use suiro_payload::{Codec, Piece};
use suiro_realtime::Incoming;
use suiro_units::{BitRate, Duration, Random, Time};
use suiro_viewer::Policy;

pub use counters::Counters;
pub use suiro_realtime::Seen;

use crate::packet::{HEADER_BYTES, IP_UDP_BYTES, Packet};
use crate::rtcp::congestion::Arrivals;
use crate::rtcp::interval::Interval;
use crate::rtcp::nack::Nacks;
use crate::rtcp::reception::{Arrived, Reception};
use crate::rtcp::transport_wide::{self, Numbers};
use crate::rtcp::{self, Congestion, Message, Outgoing, Sent, TransportWide};

/// How long what is only reordered may take at least, where nothing is sent again: it is of use until the frame is due.
const REORDER: Duration = Duration::from_millis(20);
/// A key frame is not asked for more often than this.
const PICTURE_LOSSES: Duration = Duration::from_millis(500);
/// Bandwidth of the session before any packet came, for RTCP's share.
const SESSION_FIRST: BitRate = BitRate::from_mbps(1);

/// How a receiver receives.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The codec, and so the payload format.
    pub codec: Codec,
    /// The payload type of the stream.
    pub payload_type: u8,
    /// The payload type of retransmissions (RFC 4588); `None`: nothing is asked for again.
    pub again_type: Option<u8>,
    /// The canonical name (RFC 3550 §6.5.1).
    pub cname: String,
    /// Whether each sender report is answered at once, as the study does, next to regular reports.
    pub answer: bool,
    /// How often what became of each packet is reported: transport-wide if the packets bear numbers for it, else as RFC 8888.
    /// A report that would be about many packets is sent before that. `None`: never.
    pub feedback: Option<Duration>,
    /// How the video is played.
    pub policy: Policy,
    /// The wall clock at [`Time::ZERO`], in nanoseconds since 1970.
    pub epoch_unix_ns: u64,
}

/// A receiver of one stream.
#[derive(Debug)]
pub struct Receiver {
    config: Config,
    ssrc: u32,
    random: Random,
    /// The stream, once two packets in a row have come of it; and before that, who sent the first.
    reception: Option<Reception>,
    probation: Option<(Time, u8, Packet)>,
    again_ssrc: Option<u32>,
    incoming: Incoming,
    nacks: Nacks,
    arrivals: Arrivals,
    /// The transport-wide numbers of the packets of all streams, if the stream's first packet bore one.
    wide: Option<Numbers>,
    /// Transport-wide reports so far; it wraps.
    wide_count: u8,
    feedback_at: Option<Time>,
    interval: Interval,
    answer_due: bool,
    /// The sender's last report, and when it came.
    sent: Option<(Sent, Time)>,
    asked: Option<Time>,
    /// Bytes since the last regular report, from which the session's bandwidth follows.
    bytes: u64,
    since: Time,
    counters: Counters,
    ended: bool,
}

impl Receiver {
    /// A receiver that begins now. Its identifier comes from `random`.
    pub fn new(now: Time, config: Config, mut random: Random) -> Self {
        let interval = Interval::new(now, SESSION_FIRST, !config.answer, random.uniform());
        Self {
            ssrc: random.next_u64() as u32,
            reception: None,
            probation: None,
            again_ssrc: None,
            incoming: Incoming::new(config.codec, config.policy),
            nacks: Nacks::default(),
            arrivals: Arrivals::default(),
            wide: None,
            wide_count: 0,
            feedback_at: None,
            interval,
            answer_due: false,
            sent: None,
            asked: None,
            bytes: 0,
            since: now,
            counters: Counters::default(),
            ended: false,
            config,
            random,
        }
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How the stream is received; `None` before it is known.
    pub fn reception(&self) -> Option<&Reception> {
        self.reception.as_ref()
    }

    /// True when the sender has said good-bye.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// A packet has come from an address that is not the sender's.
    pub fn on_stranger_address(&mut self) {
        self.counters.strangers += 1;
    }

    /// A packet has come at the RTP port, with these bits of ECN. True if it is of the stream.
    pub fn on_rtp(&mut self, now: Time, bytes: &[u8], ecn: u8) -> bool {
        let Ok(packet) = Packet::parse(bytes) else {
            self.counters.malformed += 1;
            return false;
        };
        if Some(packet.payload_type) == self.config.again_type {
            return self.on_again(now, &packet);
        }
        if packet.payload_type != self.config.payload_type {
            self.counters.foreign += 1;
            return false;
        }
        match &self.reception {
            Some(reception) if reception.ssrc() == packet.ssrc => self.on_media(now, ecn, packet),
            Some(_) => {
                self.counters.foreign += 1;
                return false;
            }
            None => return self.on_stranger(now, ecn, packet),
        }
        true
    }

    /// RFC 3550 A.1: a stream is one of which two packets in a row have come; it then stays the only
    /// one. The first is kept until the second shows that it was meant.
    fn on_stranger(&mut self, now: Time, ecn: u8, packet: Packet) -> bool {
        let follows = |first: &Packet| {
            first.ssrc == packet.ssrc && first.sequence.wrapping_add(1) == packet.sequence
        };
        match self.probation.take() {
            Some((at, first_ecn, first)) if follows(&first) => {
                let mut reception = Reception::new(first.ssrc, first.sequence);
                match self.sent {
                    Some((sent, at)) if sent.ssrc == first.ssrc => reception.on_report(at, &sent),
                    _ => self.sent = None,
                }
                self.reception = Some(reception);
                self.wide = first.wide.map(Numbers::new);
                self.on_media(at, first_ecn, first);
                self.on_media(now, ecn, packet);
                true
            }
            other => {
                self.counters.foreign += u64::from(other.is_some());
                self.probation = Some((now, ecn, packet));
                false
            }
        }
    }

    fn on_media(&mut self, now: Time, ecn: u8, packet: Packet) {
        // It has arrived, whatever its number in the stream says.
        self.note_wide(now, &packet);
        let Some(reception) = &mut self.reception else { return };
        let bytes = HEADER_BYTES + packet.payload.len();
        self.bytes += bytes as u64 + IP_UDP_BYTES;
        let before = reception.highest();
        let arrived = reception.on_packet(now, packet.sequence, packet.timestamp);
        let sequence = match arrived {
            Arrived::New(sequence) | Arrived::Restarted(sequence) => sequence,
            Arrived::Repeated(sequence) => {
                self.counters.repeated += 1;
                if let Some(sequence) = sequence.filter(|_| self.wide.is_none()) {
                    self.arrivals.on_copy(sequence, ecn);
                }
                return;
            }
            Arrived::Jump => {
                self.counters.jumps += 1;
                return;
            }
        };
        self.counters.packets += 1;
        if self.wide.is_none() && self.config.feedback.is_some() {
            self.arrivals.on_packet(now, sequence, ecn);
        }
        if let Arrived::New(_) = arrived {
            self.ask_for(now, before + 1..sequence);
        }
        self.nacks.late(sequence);
        if packet.payload.is_empty() {
            self.counters.padding += 1;
            return;
        }
        self.take(now, sequence, packet);
    }

    /// A packet is to be reported by its transport-wide number, if the stream bears these.
    fn note_wide(&mut self, now: Time, packet: &Packet) {
        let Some((wide, number)) = self.wide.as_mut().zip(packet.wide) else { return };
        if self.config.feedback.is_some()
            && let Some(number) = wide.extend(number)
        {
            self.arrivals.on_packet(now, number, 0);
        }
    }

    /// A packet that was sent again (RFC 4588 §4): its original's number comes before its payload.
    fn on_again(&mut self, now: Time, packet: &Packet) -> bool {
        let Some(highest) = self.reception.as_ref().map(Reception::highest) else { return false };
        let Some((&number, payload)) = packet.payload.split_first_chunk::<2>() else {
            self.counters.malformed += 1;
            return false;
        };
        if *self.again_ssrc.get_or_insert(packet.ssrc) != packet.ssrc {
            self.counters.foreign += 1;
            return false;
        }
        self.note_wide(now, packet);
        let sequence = u16::from_be_bytes(number);
        let behind = (highest as u16).wrapping_sub(sequence);
        let extended = highest.checked_sub(behind.into());
        let Some(extended) = extended.filter(|extended| self.nacks.again(now, *extended)) else {
            self.counters.not_asked += 1;
            return false;
        };
        self.counters.recovered += 1;
        let original = Packet { sequence, payload: payload.to_vec(), ..*packet };
        self.take(now, extended, original);
        true
    }

    fn ask_for(&mut self, now: Time, missing: std::ops::Range<u64>) {
        self.counters.missing += missing.end.saturating_sub(missing.start);
        if self.config.again_type.is_some() {
            let until = now + self.grace();
            missing.for_each(|sequence| self.nacks.miss(now, sequence, until));
        }
    }

    /// How long what is missing is of use: until the frame is due, and as long as the viewer waits
    /// for it then.
    fn grace(&self) -> Duration {
        if self.config.again_type.is_none() {
            return REORDER;
        }
        let buffer = self.incoming.buffer().unwrap_or(Duration::ZERO);
        (buffer + self.config.policy.wait).max(REORDER)
    }

    fn take(&mut self, now: Time, sequence: u64, packet: Packet) {
        let grace = self.grace();
        let Packet { timestamp, marker, mark, payload, .. } = packet;
        let piece = Piece { timestamp, marker, mark, payload };
        if !self.incoming.on_packet(now, sequence, piece, grace) {
            self.counters.late += 1;
        }
        self.advance(now);
    }

    /// The process did not run between these times, as [`suiro_realtime::Viewer::on_absence`] takes it.
    pub fn on_absence(&mut self, from: Time, to: Time) {
        self.incoming.on_absence(from, to);
    }

    fn advance(&mut self, now: Time) {
        let sent = self.sent;
        self.incoming.advance(now, |timestamp| captured(sent?.0, timestamp));
        self.counters.refused = self.incoming.refused();
    }

    /// What became of the next frame.
    pub fn take_seen(&mut self) -> Option<Seen> {
        self.incoming.take_seen()
    }

    /// A packet has come at the RTCP port.
    pub fn on_rtcp(&mut self, now: Time, bytes: &[u8]) {
        let Ok(messages) = rtcp::parse(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        self.interval.on_packet(bytes.len() as u64 + IP_UDP_BYTES);
        for message in messages {
            let known = self.reception.as_ref().map(Reception::ssrc);
            match message {
                Message::Sent(sent) if known.is_none_or(|ssrc| ssrc == sent.ssrc) => {
                    self.sent = Some((sent, now));
                    if let Some(reception) = &mut self.reception {
                        reception.on_report(now, &sent);
                        self.answer_due |= self.config.answer;
                    }
                }
                Message::Bye { ssrc } if known == Some(ssrc) => self.ended = true,
                Message::Sent(_) | Message::Bye { .. } => self.counters.foreign += 1,
                _ => {}
            }
        }
    }

    /// When to poll next.
    pub fn next_event(&self) -> Option<Time> {
        if self.answer_due || self.arrivals.is_many() {
            return Some(Time::ZERO);
        }
        let feedback = self.feedback_at.filter(|_| !self.arrivals.is_empty());
        let regular = self.reception.is_some().then(|| self.interval.next());
        let picture = self.picture_loss_at();
        let frames = self.incoming.next_event();
        [feedback, regular, picture, frames, self.nacks.next()].into_iter().flatten().min()
    }

    /// When a key frame is asked for; `None`: none is needed.
    fn picture_loss_at(&self) -> Option<Time> {
        let since = self.incoming.broken_since()?;
        Some(self.asked.map_or(since, |asked| asked + PICTURE_LOSSES))
    }

    /// The next RTCP packet that leaves now; call until `None`.
    pub fn poll(&mut self, now: Time) -> Option<Vec<u8>> {
        self.advance(now);
        let missing = self.nacks.poll(now);
        let picture_loss = self.picture_loss_at().is_some_and(|at| at <= now);
        let (congestion, transport_wide) = self.feedback(now);
        let reception = self.reception.as_mut()?;
        let report = self.answer_due || self.interval.next() <= now;
        let feedback = congestion.is_some() || !transport_wide.is_empty();
        if !report && missing.is_empty() && !picture_loss && !feedback {
            return None;
        }
        self.counters.asked += missing.len() as u64;
        if picture_loss {
            self.asked = Some(now);
            self.counters.picture_losses += 1;
        }
        // A report that is not regular says nothing of an interval: RFC 3550 §6.4.1 counts from one
        // report to the next, so every packet has one.
        let received = Some(reception.report(now, self.ssrc));
        let media = reception.ssrc();
        self.answer_due = false;
        let outgoing = Outgoing {
            ssrc: self.ssrc,
            cname: self.config.cname.clone(),
            received,
            media,
            missing,
            picture_loss,
            congestion,
            transport_wide,
            ..Outgoing::default()
        };
        let bytes = outgoing.write();
        self.interval.on_packet(bytes.len() as u64 + IP_UDP_BYTES);
        if report {
            self.on_regular(now);
        }
        self.counters.reports += 1;
        Some(bytes)
    }

    fn on_regular(&mut self, now: Time) {
        let span = now.saturating_since(self.since);
        if self.bytes > 0 && !span.is_zero() {
            let session = suiro_units::Bytes::new(self.bytes) / span;
            self.interval.set_session(session, self.random.uniform());
        }
        (self.bytes, self.since) = (0, now);
        self.interval.on_report(now, self.random.uniform());
    }

    /// What became of each packet, if it is time to report that, in the format that the packets ask for.
    fn feedback(&mut self, now: Time) -> (Option<Congestion>, Vec<TransportWide>) {
        let nothing = (None, Vec::new());
        let Some(every) = self.config.feedback else { return nothing };
        let due = *self.feedback_at.get_or_insert(now);
        let Some(media) = self.reception.as_ref().map(Reception::ssrc) else { return nothing };
        let is_due = due <= now || self.arrivals.is_many();
        if !is_due || self.arrivals.is_empty() {
            return nothing;
        }
        // One that is late does not move those after it; one that is early does.
        self.feedback_at = Some((due.min(now) + every).max(now));
        if self.wide.is_some() {
            let Some((first, came)) = self.arrivals.take() else { return nothing };
            return (None, transport_wide::reports(media, first, &came, &mut self.wide_count));
        }
        let unix_ns = self.config.epoch_unix_ns.saturating_add(now.as_nanos());
        (self.arrivals.report(now, unix_ns, media), Vec::new())
    }

    /// Ends the viewing: everything still held has its fate. A last report says good-bye.
    pub fn finish(&mut self, now: Time) -> Vec<u8> {
        self.advance(now);
        self.incoming.finish(now);
        let received = self.reception.as_mut().map(|reception| reception.report(now, self.ssrc));
        let cname = self.config.cname.clone();
        Outgoing { ssrc: self.ssrc, cname, received, bye: true, ..Outgoing::default() }.write()
    }
}

/// The sender's wall clock at a timestamp, by its last report.
fn captured(sent: Sent, timestamp: u64) -> Option<u64> {
    let reported = rtcp::unix_ns(sent.ntp)?;
    let ticks = i64::from((timestamp as u32).wrapping_sub(sent.timestamp).cast_signed());
    reported.checked_add_signed(ticks * 100_000 / 9)
}

#[cfg(test)]
mod tests;
