//! One peer connection: ICE, DTLS, SRTP, RTCP, congestion control and pacing, by str0m. It is handed the time and
//! packets, and has no sockets.

mod candidate;
mod guard;
mod setup;
mod sound;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

use str0m::bwe::Bitrate;
use str0m::change::{SdpAnswer, SdpOffer, SdpPendingOffer};
use str0m::format::Codec;
use str0m::media::{Direction, KeyframeRequestKind, MediaKind, Mid, Pt};
use str0m::net::{Protocol, Receive};
use str0m::rtp::rtcp::Rtcp;
use str0m::rtp::{AbsCaptureTime, ExtensionValues, RawPacket, RtpWrite};
use str0m::stats::PeerStats;
use str0m::{Candidate, Event, IceConnectionState, Input, Output, Rtc, RtcError};
use suiro_payload::{FrameMark, Piece};
use suiro_units::{BitRate, Bytes, Duration, Time};

use crate::counts::{Counter, Counts};
use crate::flight::Flight;
use crate::mark;
use crate::plain::{Plain, Tap};
use guard::guarded;
use setup::{bps, config};

pub use setup::{Certificate, Setup, Way};
pub use sound::{Sound, SoundOut};

/// How often statistics are due: a row of table `webrtc` each.
pub const STATISTICS_EVERY: Duration = Duration::from_millis(100);
/// Bytes of a payload so that its packet is at most 1200 B of UDP payload with every header and the tag of SRTP,
/// also when it is sent again: what libwebrtc has.
pub const PAYLOAD_MAX: usize = 1120;
/// Candidates of the other end that are taken, from its description and afterwards.
pub const CANDIDATES_MAX: usize = 32;
/// Statistics and packets that wait for the caller at most; it fetches them after every call. More are left out and counted.
const EVENTS_MAX: usize = 4096;
/// What is farther away than this is no event: str0m's word for "never".
const NEVER: Duration = Duration::from_secs(86_400);

/// Why a peer connection is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The text is no session description.
    #[error("the session description: {0}")]
    Description(String),
    /// The description cannot be agreed on.
    #[error("the session description: {0}")]
    Refused(RtcError),
    /// It does not have the video that is wanted.
    #[error("the session description: expected {expected}, found {found}")]
    NoVideo {
        /// What was looked for.
        expected: &'static str,
        /// What there was.
        found: String,
    },
    /// A candidate is none, or is not of a kind that is taken.
    #[error("candidate `{text}`: {problem}")]
    Candidate {
        /// As it came.
        text: String,
        /// What is wrong.
        problem: String,
    },
    /// The connection broke.
    #[error("the connection: {0}")]
    Broken(RtcError),
    /// str0m panicked on what the peer sent.
    #[error("the connection: a packet of the peer cannot be handled")]
    Panicked,
}

impl From<RtcError> for PeerError {
    fn from(error: RtcError) -> Self {
        Self::Broken(error)
    }
}

/// A packet on its way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// The socket that it leaves by.
    pub from: SocketAddr,
    /// Where to.
    pub to: SocketAddr,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What happened in a connection.
#[derive(Debug)]
pub enum Happened {
    /// ICE and DTLS are done: media can flow.
    Connected,
    /// The other end has not confirmed for long that it wants to receive (RFC 7675), or has said good-bye.
    Gone(Why),
    /// The other end needs a key frame.
    KeyFrame,
    /// A packet of video has come.
    Packet(Box<Video>),
    /// A packet of sound has come.
    Sound(Box<Sound>),
    /// An interval of statistics is over.
    Statistics(Box<Statistics>),
    /// A packet was sent or has come, as it is without encryption; if [`Setup::plain`] asks for it.
    Plain(Box<Plain>),
}

/// Why a connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Consent was not renewed (RFC 7675 §5.1), or no pair of candidates worked.
    NoConsent,
    /// The other end closed it.
    Closed,
}

/// A packet of video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Video {
    /// Its number, extended.
    pub sequence: u64,
    /// What it has of a frame.
    pub piece: Piece,
    /// The sender's wall clock at a timestamp, in nanoseconds since 1970, if this packet has it.
    pub clock: Option<(u32, u64)>,
}

/// What one interval was like.
#[derive(Debug, Clone)]
pub struct Statistics {
    /// When it ended.
    pub at: Time,
    /// What was counted in it.
    pub counts: Counts,
    /// The round-trip time: of RTCP, or else of the checks of ICE; `None` before the first.
    pub rtt: Option<Duration>,
    /// Share of packets lost on the way from here, of the last second, by transport-wide feedback; `None` without
    /// any.
    pub loss: Option<f64>,
    /// The two ends of the pair of candidates that is used; `None` before one is.
    pub pair: Option<(SocketAddr, SocketAddr)>,
    /// What waits to be sent, and for how long the first of it has; of senders.
    pub queue: Option<(Bytes, Duration)>,
}

/// What both ends have agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    /// The payload type, and that of retransmissions.
    pub types: (u8, Option<u8>),
    /// The codec and its parameters, as SDP writes them.
    pub codec: String,
    /// Which feedback is used: `transport-cc nack pli fir`.
    pub feedback: String,
    /// The header extensions, by their names.
    pub extensions: String,
    /// The codec of the sound with its parameters, and its payload type; `None` without sound.
    pub sound: Option<(String, u8)>,
}

/// One peer connection.
pub struct Peer {
    rtc: Rtc,
    /// The instant of [`Time::ZERO`].
    zero: Instant,
    way: Way,
    desired: BitRate,
    mid: Option<Mid>,
    /// The medium of the sound, if this end has any and the other takes it.
    sound: Option<Mid>,
    has_sound: bool,
    transmits: VecDeque<Transmit>,
    happened: VecDeque<Happened>,
    next: Option<Time>,
    counter: Counter,
    estimate: BitRate,
    candidates: usize,
    tap: Option<Tap>,
    flight: Flight,
    over: bool,
    /// str0m panicked: what it left is not used again.
    lost: bool,
}

/// An offer that was made and waits for its answer.
pub struct Offered {
    pending: SdpPendingOffer,
    /// The session description.
    pub description: String,
}

impl Peer {
    /// A connection that does nothing yet. `zero` is the instant of [`Time::ZERO`].
    ///
    /// # Errors
    /// [`PeerError::Candidate`]: an address of the host cannot be one.
    pub fn new(now: Time, zero: Instant, setup: Setup) -> Result<Self, PeerError> {
        let (start, desired) = setup.rates;
        let mut rtc = config(&setup, bps(start)).build(instant(zero, now));
        for address in setup.local {
            let host = Candidate::host(address, "udp").map_err(|error| PeerError::Candidate {
                text: address.to_string(),
                problem: error.to_string(),
            })?;
            rtc.add_local_candidate(host);
        }
        Ok(Self {
            rtc,
            zero,
            way: setup.way,
            desired,
            mid: None,
            sound: None,
            has_sound: setup.sound,
            transmits: VecDeque::new(),
            happened: VecDeque::new(),
            next: None,
            counter: Counter::default(),
            estimate: start,
            candidates: 0,
            tap: setup.plain.then(Tap::new),
            flight: Flight::default(),
            over: false,
            lost: false,
        })
    }

    /// Makes an offer of the video.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn offer(&mut self, now: Time) -> Result<Offered, PeerError> {
        let mut sdp = self.rtc.sdp_api();
        let direction = match self.way {
            Way::Sends => Direction::SendOnly,
            Way::Receives => Direction::RecvOnly,
        };
        // Video first: str0m probes for capacity with the first medium.
        self.mid = Some(sdp.add_media(MediaKind::Video, direction, None, None, None));
        if self.has_sound {
            self.sound = Some(sdp.add_media(MediaKind::Audio, direction, None, None, None));
        }
        let (offer, pending) = sdp.apply().expect("a medium was added");
        self.drain(now)?;
        let description = offer.to_sdp_string();
        let description = match self.way {
            Way::Sends => description,
            Way::Receives => without_sources(&description),
        };
        Ok(Offered { pending, description })
    }

    /// Takes the answer to an offer.
    ///
    /// # Errors
    /// [`PeerError`]: it is no answer to that.
    pub fn on_answer(&mut self, now: Time, offered: Offered, text: &str) -> Result<(), PeerError> {
        let answer = SdpAnswer::from_sdp_string(text)
            .map_err(|error| PeerError::Description(error.to_string()))?;
        self.rtc.sdp_api().accept_answer(offered.pending, answer).map_err(PeerError::Refused)?;
        self.drain(now)?;
        self.check()
    }

    /// Takes an offer, and answers it.
    ///
    /// # Errors
    /// [`PeerError`]: it is no offer, or not one of the video that this end has.
    pub fn answer(&mut self, now: Time, text: &str) -> Result<String, PeerError> {
        let offer = SdpOffer::from_sdp_string(text)
            .map_err(|error| PeerError::Description(error.to_string()))?;
        let answer = self.rtc.sdp_api().accept_offer(offer).map_err(PeerError::Refused)?;
        self.mid = mid(text, "m=video").map(Mid::from);
        self.sound = mid(text, "m=audio").map(Mid::from).filter(|_| self.has_sound);
        self.drain(now)?;
        self.check()?;
        Ok(answer.to_sdp_string())
    }

    /// Whether there is video of the right direction and codec.
    fn check(&mut self) -> Result<(), PeerError> {
        let (expected, direction) = match self.way {
            Way::Sends => ("video in H.264 that is received (a=recvonly)", Direction::SendOnly),
            Way::Receives => ("video in H.264 that is sent (a=sendonly)", Direction::RecvOnly),
        };
        let no_video = |found: &str| PeerError::NoVideo { expected, found: found.to_owned() };
        let mid = self.mid.ok_or_else(|| no_video("no video"))?;
        let media = self.rtc.media(mid).ok_or_else(|| no_video("no video"))?;
        if media.direction() != direction && media.direction() != Direction::SendRecv {
            return Err(no_video(&format!("a=`{}` of this end", media.direction())));
        }
        if self.payload_type().is_none() {
            return Err(no_video("no H.264 with packetization-mode=1"));
        }
        let (minimum, desired) = (Bitrate::ZERO, bps(self.desired));
        if self.way == Way::Sends {
            self.rtc.bwe().set_bitrate(minimum, desired);
        }
        Ok(())
    }

    fn payload_type(&self) -> Option<(Pt, Option<Pt>)> {
        self.agreed_type(self.mid?, Codec::H264)
    }

    /// The payload type of a codec that the other end takes in a medium, and that of retransmissions.
    fn agreed_type(&self, mid: Mid, codec: Codec) -> Option<(Pt, Option<Pt>)> {
        let media = self.rtc.media(mid)?;
        let usable = |pt: &Pt| media.remote_pts().contains(pt);
        let params = self.rtc.codec_config().params().iter();
        let mut params = params.filter(|params| params.spec().codec == codec);
        let params = params.find(|params| usable(&params.pt()))?;
        Some((params.pt(), params.resend()))
    }

    /// What both ends agreed on; `None` before they have.
    pub fn agreed(&self) -> Option<Agreed> {
        let (pt, again) = self.payload_type()?;
        let params = self.rtc.codec_config().params();
        let params = params.iter().find(|params| params.pt() == pt)?;
        let feedback = [
            ("transport-cc", params.fb_transport_cc()),
            ("nack", params.fb_nack()),
            ("pli", params.fb_pli()),
            ("fir", params.fb_fir()),
        ];
        let feedback = feedback.into_iter().filter(|(_, used)| *used).map(|(name, _)| name);
        let media = self.rtc.media(self.mid?)?;
        let extensions = media.remote_extmap().iter().map(|(_, extension)| extension.to_string());
        Some(Agreed {
            types: (*pt, again.map(|again| *again)),
            codec: format!("H264/90000 {}", params.spec().format),
            feedback: feedback.collect::<Vec<_>>().join(" "),
            extensions: extensions.collect::<Vec<_>>().join(" "),
            sound: self.agreed_sound(),
        })
    }

    /// Takes a candidate of the other end, as SDP writes it: `candidate:…`. False if it is passed over: it is not of UDP, or
    /// has a name instead of an address.
    ///
    /// # Errors
    /// [`PeerError::Candidate`]: it is malformed, nobody's address, or one too many.
    pub fn on_candidate(&mut self, now: Time, text: &str) -> Result<bool, PeerError> {
        let refused = |problem: String| PeerError::Candidate { text: text.to_owned(), problem };
        let Some(candidate) = candidate::read(text).map_err(refused)? else { return Ok(false) };
        if self.candidates == CANDIDATES_MAX {
            return Err(refused(format!("more than {CANDIDATES_MAX} candidates")));
        }
        self.candidates += 1;
        self.rtc.add_remote_candidate(candidate);
        self.drain(now)?;
        Ok(true)
    }

    /// Whether a packet is for this connection.
    pub fn accepts(&self, now: Time, (from, to): (SocketAddr, SocketAddr), bytes: &[u8]) -> bool {
        let receive = Receive::new(Protocol::Udp, from, to, bytes);
        receive.is_ok_and(|receive| self.rtc.accepts(&Input::Receive(self.instant(now), receive)))
    }

    /// A packet has come. What is malformed is counted.
    ///
    /// # Errors
    /// [`PeerError::Broken`], [`PeerError::Panicked`].
    pub fn on_packet(
        &mut self,
        now: Time,
        (from, to): (SocketAddr, SocketAddr),
        bytes: &[u8],
    ) -> Result<(), PeerError> {
        self.counter.received(from, bytes.len());
        if let Some(tap) = &mut self.tap {
            tap.on_datagram((from, to), bytes);
        }
        let Ok(receive) = Receive::new(Protocol::Udp, from, to, bytes) else {
            self.counter.malformed();
            return Ok(());
        };
        let input = Input::Receive(self.instant(now), receive);
        self.handle(input)?;
        self.drain(now)
    }

    /// When to call [`Self::on_time`] next; `None`: nothing happens without a packet.
    pub fn next_event(&self) -> Option<Time> {
        self.next
    }

    /// Hands something to str0m, which may panic on it.
    fn handle(&mut self, input: Input<'_>) -> Result<(), PeerError> {
        let handled = guarded(|| self.rtc.handle_input(input));
        self.lost |= matches!(handled, Err(PeerError::Panicked));
        handled
    }

    /// Does what is due.
    ///
    /// # Errors
    /// [`PeerError::Broken`], [`PeerError::Panicked`].
    pub fn on_time(&mut self, now: Time) -> Result<(), PeerError> {
        let input = Input::Timeout(self.instant(now));
        self.handle(input)?;
        self.drain(now)
    }

    /// Sends a packet of video, when the pacer lets it. `sequence` counts from a number below 65,536.
    ///
    /// # Errors
    /// [`PeerError::Broken`].
    pub fn send(&mut self, now: Time, sequence: u64, outgoing: Outgoing) -> Result<(), PeerError> {
        let Some(((pt, _), mid)) = self.payload_type().zip(self.mid) else { return Ok(()) };
        let captured = self.instant(outgoing.captured);
        let mut values = ExtensionValues::default();
        if let Some(mark) = outgoing.piece.mark {
            values.user_values.set(mark::Leaving::new(mark, captured));
            let unix = std::time::Duration::from_nanos(outgoing.captured_unix_ns);
            values.abs_capture_time = Some(AbsCaptureTime {
                capture_time: std::time::SystemTime::UNIX_EPOCH + unix,
                clock_offset: None,
            });
        }
        let Piece { timestamp, marker, payload, .. } = outgoing.piece;
        let write = RtpWrite::new(pt, sequence.into(), timestamp, captured, payload)
            .marker(marker)
            .ext_vals(values)
            .nackable(true);
        let mut direct = self.rtc.direct_api();
        let Some(stream) = direct.stream_tx_by_mid(mid, None) else { return Ok(()) };
        stream.write_rtp(write);
        self.drain(now)
    }

    /// Asks the sender for a key frame (PLI, RFC 4585 §6.3.1).
    ///
    /// # Errors
    /// [`PeerError::Broken`].
    pub fn request_key_frame(&mut self, now: Time) -> Result<(), PeerError> {
        let Some(mid) = self.mid else { return Ok(()) };
        let mut direct = self.rtc.direct_api();
        let Some(stream) = direct.stream_rx_by_mid(mid, None) else { return Ok(()) };
        stream.request_keyframe(KeyframeRequestKind::Pli);
        self.drain(now)
    }

    /// What the path is estimated to carry, with everything that is sent on it.
    pub fn estimate(&self) -> BitRate {
        self.estimate
    }

    /// Bytes that wait to be sent, and for how long the first of them has.
    pub fn queue(&mut self, now: Time) -> (Bytes, Duration) {
        let now = self.instant(now);
        let Some(mid) = self.mid else { return (Bytes::ZERO, Duration::ZERO) };
        let mut direct = self.rtc.direct_api();
        let queue = direct.stream_tx_by_mid(mid, None).and_then(|stream| {
            let info = stream.queue_info()?;
            let waited = info.first_unsent().map(|since| now.saturating_duration_since(since));
            let bytes = Bytes::new(info.byte_size() as u64);
            Some((bytes, waited.map_or(Duration::ZERO, Duration::from)))
        });
        queue.unwrap_or((Bytes::ZERO, Duration::ZERO))
    }

    /// What waits in the queues of the path, as far as more is on its way than the estimate explains.
    pub fn standing(&self) -> Bytes {
        self.flight.standing(self.estimate)
    }

    /// Ends the connection: RTCP BYE and the end of DTLS are sent, unless str0m panicked.
    pub fn close(&mut self, now: Time) {
        if self.lost {
            return;
        }
        // It may be broken already; then there is nobody to notify.
        let _ = self.rtc.close().map_err(PeerError::from).and_then(|()| self.drain(now));
    }

    /// The next packet that leaves.
    pub fn take_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// What happened next.
    pub fn take_happened(&mut self) -> Option<Happened> {
        self.happened.pop_front()
    }

    fn instant(&self, time: Time) -> Instant {
        instant(self.zero, time)
    }

    /// Fetches everything that the connection has to say, as str0m requires after every change.
    fn drain(&mut self, now: Time) -> Result<(), PeerError> {
        loop {
            match self.rtc.poll_output()? {
                Output::Timeout(at) => {
                    let ahead = Duration::from(at.saturating_duration_since(self.zero));
                    let at = Time::ZERO + ahead;
                    self.next = Some(at).filter(|at| at.saturating_since(now) < NEVER);
                    return Ok(());
                }
                Output::Transmit(transmit) => {
                    let bytes = transmit.contents.to_vec();
                    self.counter.sent(transmit.destination, bytes.len());
                    let (from, to) = (transmit.source, transmit.destination);
                    if let Some(tap) = &mut self.tap {
                        tap.on_transmit((from, to), &bytes);
                    }
                    self.transmits.push_back(Transmit { from, to, bytes });
                }
                Output::Event(event) => self.on_event(now, event),
            }
        }
    }

    fn on_event(&mut self, now: Time, event: Event) {
        match event {
            Event::Connected => self.happen(Happened::Connected),
            Event::IceConnectionStateChange(IceConnectionState::Disconnected) => {
                self.end(Why::NoConsent);
            }
            Event::Closed => self.end(Why::Closed),
            Event::KeyframeRequest(_) => self.happen(Happened::KeyFrame),
            Event::RtpPacket(packet) if self.is_sound(&packet) => {
                let clock = clock(&packet);
                self.happen(Happened::Sound(Box::new(Sound::of(&packet, clock))));
            }
            Event::RtpPacket(packet) => {
                let mark = packet.header.ext_vals.user_values.get::<mark::Came>();
                let clock = clock(&packet);
                let piece = Piece {
                    timestamp: packet.header.timestamp,
                    marker: packet.header.marker,
                    mark: mark.map(|mark::Came(mark)| *mark),
                    payload: packet.payload.to_vec(),
                };
                let video = Video { sequence: *packet.seq_no, piece, clock };
                self.happen(Happened::Packet(Box::new(video)));
            }
            Event::RawPacket(raw) => {
                self.fly(&raw);
                let again = self.payload_type().and_then(|(_, again)| again).map(|again| *again);
                self.counter.on_raw(&raw, again);
                let plain = self.tap.as_ref().and_then(|tap| tap.packet(now, &raw));
                if let Some(plain) = plain {
                    self.happen(Happened::Plain(Box::new(plain)));
                }
            }
            Event::PeerStats(stats) => self.on_statistics(now, &stats),
            _ => {}
        }
    }

    /// Notes what leaves, and what the other end has reported.
    fn fly(&mut self, raw: &RawPacket) {
        match raw {
            RawPacket::RtpTx(header, bytes) => {
                if let Some(number) = header.ext_vals.transport_cc {
                    self.flight.on_sent(number, bytes.len());
                }
            }
            RawPacket::RtcpRx(Rtcp::Twcc(twcc)) => {
                self.flight.on_feedback(twcc.base_seq, twcc.status_count);
            }
            _ => {}
        }
    }

    fn end(&mut self, why: Why) {
        if !self.over {
            self.over = true;
            self.happen(Happened::Gone(why));
        }
    }

    fn on_statistics(&mut self, now: Time, stats: &PeerStats) {
        // Not that of the event, which is a mean over 3 s: after a fall of the capacity it is far too much for as long, while
        // the pacer follows the estimate itself, and frames wait there.
        if let Some(estimate) = stats.bwe_tx {
            self.estimate = BitRate::from_bps(estimate.as_u64());
        }
        let pair = stats.selected_candidate_pair.as_ref();
        let checked = pair.and_then(|pair| pair.current_round_trip_time);
        if let Some(rtt) = stats.rtt {
            self.flight.on_rtt(now, rtt.into());
        }
        if self.happened.len() >= EVENTS_MAX {
            // What was counted is of the next interval.
            self.counter.left_out();
            return;
        }
        let queue = (self.way == Way::Sends).then(|| self.queue(now));
        let statistics = Statistics {
            at: now,
            counts: self.counter.take(),
            rtt: stats.rtt.or(checked).map(Duration::from),
            loss: stats.egress_loss_fraction.map(f64::from).filter(|_| self.way == Way::Sends),
            pair: pair.map(|pair| (pair.local.addr, pair.remote.addr)),
            queue,
        };
        self.happen(Happened::Statistics(Box::new(statistics)));
    }

    fn happen(&mut self, happened: Happened) {
        if self.happened.len() < EVENTS_MAX || self.is_kept(&happened) {
            self.happened.push_back(happened);
        } else {
            self.counter.left_out();
        }
    }

    /// Whether an event has a place although too many wait: what changes the session, and does not wait already.
    fn is_kept(&self, happened: &Happened) -> bool {
        let kind = std::mem::discriminant(happened);
        matches!(happened, Happened::Connected | Happened::Gone(_) | Happened::KeyFrame)
            && !self.happened.iter().any(|other| std::mem::discriminant(other) == kind)
    }
}

/// The description of an end that only receives, without the sources that str0m describes all the same: nothing is sent
/// from them, and on a narrow link they delay the first frame.
fn without_sources(description: &str) -> String {
    let unused = ["a=ssrc:", "a=ssrc-group:", "a=msid:", "a=msid-semantic:"];
    let lines = description.split_inclusive("\r\n");
    lines.filter(|line| !unused.iter().any(|unused| line.starts_with(unused))).collect()
}

/// The identifier of the first medium of a kind in a session description (RFC 8843 §8.1), which str0m has read already.
fn mid<'t>(text: &'t str, kind: &str) -> Option<&'t str> {
    let mut lines = text.lines();
    lines.find(|line| line.starts_with(kind))?;
    let section = lines.take_while(|line| !line.starts_with("m="));
    section.into_iter().find_map(|line| line.trim_end().strip_prefix("a=mid:"))
}

/// A packet of video that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// What it has of a frame.
    pub piece: Piece,
    /// When the frame was captured.
    pub captured: Time,
    /// The same in nanoseconds since 1970.
    pub captured_unix_ns: u64,
}

/// The sender's wall clock, as a packet has it: from our senders when the frame was captured, from others by their
/// reports.
fn clock(packet: &str0m::rtp::RtpPacket) -> Option<(u32, u64)> {
    let unix_ns = |time: std::time::SystemTime| {
        let since = time.duration_since(std::time::SystemTime::UNIX_EPOCH).ok()?;
        u64::try_from(since.as_nanos()).ok()
    };
    if let Some(captured) = &packet.header.ext_vals.abs_capture_time {
        return Some((packet.header.timestamp, unix_ns(captured.capture_time)?));
    }
    let report = packet.last_sender_info.as_ref()?;
    Some((report.rtp_time.numer() as u32, unix_ns(report.ntp_time)?))
}

fn instant(zero: Instant, time: Time) -> Instant {
    zero + std::time::Duration::from(time.saturating_since(Time::ZERO))
}

/// When a frame was captured, as RTP counts: 90 kHz (RFC 6184 §8.2.1).
pub(crate) fn timestamp(captured: Time) -> u32 {
    (u128::from(captured.as_nanos()) * 9 / 100_000) as u32
}

/// The mark of a frame, before it waits for the pacer.
pub(crate) fn mark(number: u64, references: Option<u64>, rate: BitRate) -> FrameMark {
    let back = references.map_or(0, |before| number.saturating_sub(before).max(1));
    FrameMark {
        number: number as u32,
        references: u8::try_from(back).unwrap_or(u8::MAX),
        rate_bps: u32::try_from(rate.as_bps()).unwrap_or(u32::MAX),
        waited: None,
    }
}

#[cfg(test)]
mod tests;
