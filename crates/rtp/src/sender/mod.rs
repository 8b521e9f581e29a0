//! The sender, as a state machine: frames and RTCP in, packets out, under a rate control. It is handed
//! the time, and has no sockets.

mod breaker;
mod config;
mod counters;
mod feedback;
mod history;
mod pacer;
mod period;

use std::collections::VecDeque;

use suiro_rate::{Controller, Feedback};
use suiro_scenario::{FeedbackFormat, OnBreak};
use suiro_units::{BitRate, Bytes, Duration, Random, Time};

pub use breaker::{Breaker, Cause};
pub use config::{Config, ReportTimes};
pub use counters::Counters;
pub use feedback::{Disbelieved, Reports};
pub use history::{Departures, History};
pub use pacer::Pacer;
pub use period::Period;

use crate::packet::{
    HEADER_BYTES, IP_UDP_BYTES, MARK_BYTES, PADDING_BYTES, Packet, WIDE_BYTES, extension_bytes,
};
use crate::rtcp::{self, Message, Outgoing, Sent, interval::Interval};
use period::Account;
use suiro_payload::{FrameMark, PayloadError};

/// What retransmissions may take, of what is sent for the first time.
const AGAIN_SHARE: f64 = 0.25;
/// How many bytes of retransmissions may be saved up.
const AGAIN_MAX: f64 = 64_000.0;

/// Key frames are not asked of the source more often than this.
const KEY_FRAMES: Duration = Duration::from_millis(250);

/// The round-trip time before it is known.
const RTT_FIRST: Duration = Duration::from_millis(100);

/// A frame, as a source hands it over.
#[derive(Debug, Clone, Copy)]
pub struct SourceFrame<'a> {
    /// The source frame's number.
    pub number: u64,
    /// When it is shown, in the sender's time: for real-time video, when it was captured.
    pub captured: Time,
    /// The frame without which it cannot be decoded; `None` for a key frame.
    pub references: Option<u64>,
    /// The elementary stream's bytes.
    pub data: &'a [u8],
    /// The bit rate of the version that it comes from, or that the encoder is set to.
    pub rate: BitRate,
    /// The quantiser scale of a prepared version.
    pub quantiser: Option<i64>,
    /// Whether a group of pictures begins with it.
    pub begins_group: bool,
    /// What may be sent of it, in bytes of IP packets; the rest is cut off. `None`: all.
    pub budget: Option<Bytes>,
}

/// A packet that is to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transmit {
    /// From and to the RTP port.
    Rtp(Vec<u8>),
    /// From and to the RTCP port.
    Rtcp(Vec<u8>),
}

/// What waits for its turn.
#[derive(Debug)]
struct Waiting {
    packet: Packet,
    /// Whether it goes out for the first time.
    new: bool,
    ends_picture: bool,
    /// When its frame was captured.
    captured: Time,
}

/// A sender of one stream.
#[derive(Debug)]
pub struct Sender {
    config: Config,
    controller: Box<dyn Controller>,
    random: Random,
    ssrc: u32,
    again_ssrc: u32,
    first_timestamp: u32,
    sequence: u16,
    again_sequence: u16,
    pacer: Pacer<Waiting>,
    history: History,
    /// All packets by their transport-wide numbers, if they bear any. These begin where the stream's own numbers do.
    departures: Option<Departures>,
    reports: Reports,
    interval: Interval,
    breaker: Breaker,
    /// Whether it was reported that the circuit breaker was triggered.
    broken: bool,
    report_due: bool,
    /// Frames since the last report.
    pictures: u32,
    again_credit: f64,
    rtt: Option<Duration>,
    key_frame: Option<Time>,
    key_frame_wanted: bool,
    /// Whether frames were left out in a pause, so that the next one sent must be a key frame.
    paused: bool,
    account: Account,
    periods: VecDeque<Period>,
    counters: Counters,
    bye: bool,
    /// Whether the stream was ended.
    ended: bool,
}

impl Sender {
    /// A sender that begins now. Its identifiers come from `random`.
    pub fn new(
        now: Time,
        config: Config,
        controller: Box<dyn Controller>,
        mut random: Random,
    ) -> Self {
        let target = controller.target();
        let ssrc = random.next_u64() as u32;
        let sequence = random.next_u64() as u16;
        let reduced = config.reports == ReportTimes::Standard;
        let interval = Interval::new(now, target, reduced, random.uniform());
        let again_ssrc = ssrc.wrapping_add(1 + random.next_u64() as u32 / 2);
        let reports = Reports::new(now, config.rtt, ssrc, sequence.into()).with_again(again_ssrc);
        Self {
            ssrc,
            again_ssrc,
            first_timestamp: random.next_u64() as u32,
            sequence,
            again_sequence: random.next_u64() as u16,
            pacer: Pacer::new(controller.pacing())
                .within(config.drain)
                .with_burst(controller.burst()),
            history: History::new(sequence.into()),
            departures: (config.feedback == FeedbackFormat::TransportWide)
                .then(|| Departures::new(sequence.into())),
            reports,
            interval,
            breaker: Breaker::new(config.times.0, config.times.1),
            broken: false,
            report_due: true,
            pictures: 0,
            again_credit: 0.0,
            rtt: None,
            key_frame: None,
            key_frame_wanted: false,
            paused: false,
            account: Account::new(now),
            periods: VecDeque::new(),
            counters: Counters::default(),
            bye: false,
            ended: false,
            config,
            controller,
            random,
        }
    }

    /// What the rate control allows: bits per second of IP packets.
    pub fn target(&self) -> BitRate {
        self.controller.target()
    }

    /// What waits for its turn.
    pub fn queued(&self) -> Bytes {
        self.pacer.queued()
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The next control period that has ended.
    pub fn take_period(&mut self) -> Option<Period> {
        self.periods.pop_front()
    }

    /// True if the source should make its next frame a key frame.
    pub fn take_key_frame_request(&mut self) -> bool {
        std::mem::take(&mut self.key_frame_wanted)
    }

    /// A frame is to be sent. If too much waits already it is left out, and counted.
    ///
    /// # Errors
    /// [`PayloadError`]: the frame is not one of the codec.
    pub fn on_frame(&mut self, now: Time, frame: &SourceFrame) -> Result<(), PayloadError> {
        if frame.begins_group {
            self.end_period(now);
        }
        if self.has_stopped() {
            self.counters.frames_left_out += 1;
            return Ok(());
        }
        if self.is_paused(now, frame) {
            self.counters.frames_paused += 1;
            return Ok(());
        }
        self.account.on_frame(frame);
        if self.pacer.is_full() {
            self.counters.frames_left_out += 1;
            self.want_key_frame(now);
            self.picture_ends();
            return Ok(());
        }
        let (first, most) = self.payload_max();
        let payloads = self.config.codec.packetise(frame.data, first, most)?;
        let distance = frame.references.map(|other| frame.number.saturating_sub(other));
        let mark = FrameMark {
            number: frame.number as u32,
            references: distance.map_or(0, |distance| distance.clamp(1, 255) as u8),
            rate_bps: u32::try_from(frame.rate.as_bps()).unwrap_or(u32::MAX),
            waited: None,
        };
        let timestamp = self.timestamp(frame.captured);
        let last = payloads.len() - 1;
        let mut left = frame.budget.map_or(u64::MAX, Bytes::get);
        let mut cut = false;
        for (n, payload) in payloads.into_iter().enumerate() {
            let packet = Packet {
                ssrc: self.ssrc,
                payload_type: self.config.payload_type,
                sequence: self.sequence,
                timestamp,
                marker: n == last,
                mark: (n == 0).then_some(mark),
                wide: self.departures.as_ref().map(|_| 0), // until it leaves
                payload,
            };
            let size = size(&packet);
            cut |= size.get() > left;
            if cut {
                self.counters.packets_held_back += 1;
                continue;
            }
            left -= size.get();
            self.sequence = self.sequence.wrapping_add(1);
            let (ends_picture, captured) = (n == last, frame.captured);
            self.pacer.push(now, size, Waiting { packet, new: true, ends_picture, captured });
        }
        if cut {
            self.picture_ends();
        }
        Ok(())
    }

    /// Whether a frame is left out because of a pause: it falls into one, or needs a frame that did.
    fn is_paused(&mut self, now: Time, frame: &SourceFrame) -> bool {
        let pausing = self.config.pauses.iter().any(|(from, to)| *from <= now && now < *to);
        if self.paused && !pausing && !frame.begins_group {
            self.want_key_frame(now);
        }
        self.paused = pausing || self.paused && !frame.begins_group;
        self.paused
    }

    /// Bytes of payload in the largest packet that begins a frame, and in the largest of the others.
    fn payload_max(&self) -> (usize, usize) {
        let most = self.config.packet_max.get().saturating_sub(IP_UDP_BYTES) as usize;
        let wide = if self.departures.is_some() { WIDE_BYTES } else { 0 };
        let (mark, others) = (extension_bytes(MARK_BYTES + wide), extension_bytes(wide));
        // Two more for the number that a retransmission bears.
        let most = most.saturating_sub(HEADER_BYTES + 2).max(64 + mark);
        (most - mark, most - others)
    }

    fn timestamp(&self, time: Time) -> u32 {
        self.first_timestamp.wrapping_add(rtcp::ticks(time) as u32)
    }

    fn picture_ends(&mut self) {
        self.pictures += 1;
        if let ReportTimes::Pictures(every) = self.config.reports
            && self.pictures >= every
        {
            self.report_due = true;
        }
    }

    fn want_key_frame(&mut self, now: Time) {
        if self.key_frame.is_none_or(|last| now.saturating_since(last) >= KEY_FRAMES) {
            self.key_frame = Some(now);
            self.key_frame_wanted = true;
        }
    }

    /// A packet has come from an address that is not the receiver's.
    pub fn on_stranger(&mut self) {
        self.counters.strangers += 1;
    }

    /// An RTCP packet has arrived from the receiver, or from someone who claims to be it.
    pub fn on_rtcp(&mut self, now: Time, bytes: &[u8]) {
        let Ok(mut messages) = rtcp::parse(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        self.interval.on_packet(bytes.len() as u64 + IP_UDP_BYTES);
        if !self.reports.has_congestion() {
            // The report blocks before the first congestion feedback leave the losses to it, too.
            messages.sort_by_key(|message| {
                !matches!(message, Message::Congestion(_) | Message::TransportWide(_))
            });
        }
        for message in messages {
            let feedback = match message {
                Message::Received(block) => {
                    let told = self.reports.on_block(now, &block, &self.history);
                    if told.is_ok() {
                        self.account.on_jitter(block.jitter);
                    }
                    told
                }
                Message::Congestion(_) if self.departures.is_some() => Err(Disbelieved::Format),
                Message::Congestion(told) => self.reports.on_congestion(now, &told, &self.history),
                Message::TransportWide(told) => match &self.departures {
                    Some(sent) => self.reports.on_transport_wide(now, &told, sent),
                    None => Err(Disbelieved::Format),
                },
                Message::Missing { media, .. } if media == self.ssrc && self.has_stopped() => {
                    continue;
                }
                Message::Missing { media, sequences } if media == self.ssrc => {
                    self.send_again(now, &sequences);
                    continue;
                }
                Message::PictureLoss { media } if media == self.ssrc => {
                    self.counters.picture_losses += 1;
                    self.want_key_frame(now);
                    continue;
                }
                Message::Missing { .. } | Message::PictureLoss { .. } => Err(Disbelieved::Stream),
                Message::Sent(_) | Message::Bye { .. } => continue,
            };
            match feedback {
                Ok(feedback) => self.on_feedback(now, &feedback),
                Err(why) => {
                    if why == Disbelieved::Old {
                        self.heed_breaker(now, |breaker, interval| {
                            breaker.on_report(now, &Feedback::default(), interval);
                        });
                    }
                    self.counters.disbelieve(why);
                }
            }
        }
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        if let Some(sample) = feedback.rtt {
            // RFC 6298 §2, as the study does.
            let smooth = |rtt: Duration| rtt.mul_f64(0.875) + sample / 8;
            self.rtt = Some(self.rtt.map_or(sample, smooth));
        }
        self.counters.reports += 1;
        self.rest_if_blocked(now);
        self.controller.on_feedback(now, feedback);
        self.account.on_feedback(feedback);
        self.heed_breaker(now, |breaker, interval| breaker.on_report(now, feedback, interval));
        if feedback.expected > 0 || !feedback.packets.is_empty() {
            self.end_period(now);
        }
    }

    /// True if the circuit breaker has ended the stream.
    pub fn has_stopped(&self) -> bool {
        self.broken && self.config.on_break == OnBreak::Stop
    }

    /// Passes something to the circuit breaker, and does what it asks for.
    fn heed_breaker(&mut self, now: Time, tell: impl FnOnce(&mut Breaker, Duration)) {
        tell(&mut self.breaker, self.interval.mean());
        let Some(cause) = self.breaker.tripped().filter(|_| !self.broken) else { return };
        self.broken = true;
        self.account.on_break(cause);
        if self.config.on_break == OnBreak::Stop {
            self.pacer.clear();
            (self.bye, self.report_due) = (true, true);
        }
        self.end_period(now);
    }

    fn end_period(&mut self, now: Time) {
        self.pacer.set_rate(self.controller.pacing());
        let rtt = self.controller.estimate().rtt.or(self.rtt);
        let queued = self.pacer.queued();
        let period = self.account.end(now, self.controller.target(), rtt, queued);
        self.periods.extend(period);
    }

    /// RFC 4588: sends packets again that are asked for, if they can still be had and it is not too
    /// much.
    fn send_again(&mut self, now: Time, sequences: &[u16]) {
        let Some(payload_type) = self.config.again_type else { return };
        for &sequence in sequences {
            let rtt = self.rtt.unwrap_or(RTT_FIRST);
            let Some(extended) = self.history.extend(sequence) else { continue };
            let size = self.history.get(extended).map_or(0, |past| past.size.get());
            if size as f64 > self.again_credit {
                self.counters.not_sent_again += 1;
                continue;
            }
            let again = self.history.again(now, extended, rtt);
            let Some(packet) = again.filter(|packet| !packet.payload.is_empty()) else {
                self.counters.not_sent_again += 1;
                continue;
            };
            self.again_credit -= size as f64;
            let mut payload = packet.sequence.to_be_bytes().to_vec();
            payload.extend(&packet.payload);
            // §4: another stream, with its own numbers; the original's comes before the payload.
            let packet = Packet {
                ssrc: self.again_ssrc,
                payload_type,
                sequence: self.again_sequence,
                payload,
                ..packet
            };
            self.again_sequence = self.again_sequence.wrapping_add(1);
            let size = self::size(&packet);
            // Its timestamp shows when it left for the first time.
            let again = Waiting { packet, new: false, ends_picture: false, captured: now };
            self.pacer.push_first(now, size, again);
        }
    }

    /// Ends the stream: what waits is let go, and the last report says good-bye.
    pub fn finish(&mut self, now: Time) {
        self.pacer.clear();
        (self.bye, self.report_due, self.ended) = (true, true, true);
        self.end_period(now);
    }

    /// When to poll next; `None`: only after another event.
    pub fn next_event(&self) -> Option<Time> {
        if self.report_due {
            return Some(Time::ZERO);
        }
        if self.has_stopped() {
            return None;
        }
        let silence = self.breaker.next(self.interval.mean());
        let regular = Some(self.interval.next());
        let leaves = self.pacer.next().or_else(|| self.padding_at());
        let packet = leaves.filter(|_| !self.controller.is_blocked());
        let timers = [self.controller.next_timer(), packet, regular, silence];
        timers.into_iter().flatten().min()
    }

    /// What the rate control holds back is not late, whatever it decides next.
    fn rest_if_blocked(&mut self, now: Time) {
        if self.controller.is_blocked() {
            self.pacer.rest(now);
        }
    }

    /// The next packet that leaves now; call until `None`.
    pub fn poll(&mut self, now: Time) -> Option<Transmit> {
        if self.controller.next_timer().is_some_and(|at| at <= now) {
            self.rest_if_blocked(now);
            self.controller.on_timer(now);
            self.end_period(now);
        }
        self.heed_breaker(now, |breaker, interval| breaker.on_timer(now, interval));
        if self.report_due || self.interval.next() <= now && !self.has_stopped() {
            return Some(Transmit::Rtcp(self.report(now)));
        }
        if self.controller.is_blocked() {
            return None;
        }
        self.pacer.set_rate(self.controller.pacing());
        let Some(mut waiting) = self.pacer.poll(now) else {
            return self.pad(now);
        };
        if waiting.new {
            let captured = waiting.captured;
            let leaving = |mark: FrameMark| mark.leaving(now, captured);
            waiting.packet.mark = waiting.packet.mark.map(leaving);
        }
        self.number(now, &mut waiting.packet);
        let (bytes, size) = (waiting.packet.write(), size(&waiting.packet));
        self.controller.on_sent(now, size);
        self.account.on_sent(size);
        self.breaker.on_sent(now);
        if waiting.ends_picture {
            self.picture_ends();
        }
        if waiting.new {
            self.counters.packets += 1;
            self.counters.octets += waiting.packet.payload.len() as u64;
            self.again_credit =
                (self.again_credit + size.get() as f64 * AGAIN_SHARE).min(AGAIN_MAX);
            self.history.push(now, size, waiting.packet);
        } else {
            self.counters.sent_again += 1;
        }
        Some(Transmit::Rtp(bytes))
    }

    /// A packet leaves: it gets the next transport-wide number, if it is to bear one.
    fn number(&mut self, now: Time, packet: &mut Packet) {
        if let Some(departures) = &mut self.departures {
            packet.wide = Some(departures.next() as u16);
            departures.push(now, size(packet), ());
        }
    }

    /// When a packet of padding leaves; `None`: the rate control wants none, or there is no stream.
    fn padding_at(&self) -> Option<Time> {
        let flows = self.history.highest().is_some() && !self.paused && !self.ended;
        let wanted = flows && !self.has_stopped() && self.controller.wants_padding();
        self.pacer.idle_at().filter(|_| wanted)
    }

    /// A packet of padding, if its time has come.
    fn pad(&mut self, now: Time) -> Option<Transmit> {
        self.padding_at().filter(|at| *at <= now)?;
        let mut packet = Packet {
            ssrc: self.ssrc,
            payload_type: self.config.payload_type,
            sequence: self.sequence,
            timestamp: self.timestamp(now),
            marker: false,
            mark: None,
            wide: None,
            payload: Vec::new(),
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.number(now, &mut packet);
        let (bytes, size) = (packet.write(), size(&packet));
        self.pacer.spend(now, size);
        self.controller.on_sent(now, size);
        self.account.on_sent(size);
        self.breaker.on_sent(now);
        self.counters.packets += 1;
        self.counters.padding += 1;
        self.history.push(now, size, packet);
        Some(Transmit::Rtp(bytes))
    }

    /// RFC 3550 §6.4.1.
    fn report(&mut self, now: Time) -> Vec<u8> {
        let ntp = rtcp::ntp(self.config.epoch_unix_ns.saturating_add(now.as_nanos()));
        let sent = Sent {
            ssrc: self.ssrc,
            ntp,
            timestamp: self.timestamp(now),
            packets: self.counters.packets as u32,
            octets: self.counters.octets as u32,
        };
        let outgoing = Outgoing {
            ssrc: self.ssrc,
            cname: self.config.cname.clone(),
            sent: Some(sent),
            bye: std::mem::take(&mut self.bye),
            ..Outgoing::default()
        };
        let bytes = outgoing.write();
        self.reports.on_sent(now, rtcp::middle(ntp));
        (self.report_due, self.pictures) = (false, 0);
        self.interval.on_packet(bytes.len() as u64 + IP_UDP_BYTES);
        self.interval.set_session(self.controller.target(), self.random.uniform());
        self.interval.on_report(now, self.random.uniform());
        bytes
    }
}

/// Size of the IP packet that a packet travels in.
fn size(packet: &Packet) -> Bytes {
    let padding = if packet.payload.is_empty() { PADDING_BYTES.into() } else { 0 };
    Bytes::new((packet.header_bytes() + padding + packet.payload.len()) as u64 + IP_UDP_BYTES)
}

#[cfg(test)]
mod tests;
