//! The account of control periods, for the table `rate`.

use suiro_rate::Feedback;
use suiro_units::{BitRate, Bytes, Duration, Ratio, Time};

use super::{Cause, SourceFrame};

/// Shorter ones are joined to the next: what comes together belongs together.
const LEAST: Duration = Duration::from_millis(1);

/// One control period: from one look of the rate control at the network to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Period {
    /// When it ended.
    pub end: Time,
    /// How long it was.
    pub length: Duration,
    /// What the rate control allows from now on.
    pub target: BitRate,
    /// What was sent: IP packets.
    pub sent: BitRate,
    /// What the source made: the elementary stream.
    pub media: BitRate,
    /// Share of packets lost, from a report; `None` if none came, or it was about none.
    pub loss: Option<Ratio>,
    /// The round-trip time.
    pub rtt: Option<Duration>,
    /// What the receiver received.
    pub received: Option<BitRate>,
    /// The quantiser scale of the version being sent.
    pub quantiser: Option<i64>,
    /// The bit rate of that version, or that the encoder is set to; `None` before the first frame.
    pub encoder: Option<BitRate>,
    /// What waits in the sender.
    pub queued: Bytes,
    /// What triggered the circuit breaker in it.
    pub broken: Option<Cause>,
    /// The interarrival jitter, from the last report; `None` if none came.
    pub jitter: Option<Duration>,
}

/// The period at hand.
#[derive(Debug)]
pub(super) struct Account {
    since: Time,
    sent: Bytes,
    media: Bytes,
    expected: u64,
    received: u64,
    rate: Option<BitRate>,
    quantiser: Option<i64>,
    encoder: Option<BitRate>,
    broken: Option<Cause>,
    jitter: Option<Duration>,
}

impl Account {
    pub fn new(now: Time) -> Self {
        Self {
            since: now,
            sent: Bytes::ZERO,
            media: Bytes::ZERO,
            expected: 0,
            received: 0,
            rate: None,
            quantiser: None,
            encoder: None,
            broken: None,
            jitter: None,
        }
    }

    /// The jitter of a report (RFC 3550 §6.4.1), in ticks of the 90 kHz clock of video.
    pub fn on_jitter(&mut self, ticks: u32) {
        self.jitter = Some(Duration::from_nanos(u64::from(ticks) * 100_000 / 9));
    }

    pub fn on_frame(&mut self, frame: &SourceFrame) {
        self.media += Bytes::new(frame.data.len() as u64);
        (self.quantiser, self.encoder) = (frame.quantiser, Some(frame.rate));
    }

    pub fn on_break(&mut self, cause: Cause) {
        self.broken = Some(cause);
    }

    pub fn on_sent(&mut self, size: Bytes) {
        self.sent += size;
    }

    pub fn on_feedback(&mut self, feedback: &Feedback) {
        self.expected += feedback.expected;
        self.received += feedback.received.min(feedback.expected);
        self.rate = feedback.receive_rate.or(self.rate);
    }

    /// Ends the period, unless it has only just begun.
    pub fn end(
        &mut self,
        now: Time,
        target: BitRate,
        rtt: Option<Duration>,
        queued: Bytes,
    ) -> Option<Period> {
        let length = now.saturating_since(self.since);
        if length < LEAST {
            return None;
        }
        let lost = (self.expected - self.received) as f64;
        let period = Period {
            end: now,
            length,
            target,
            sent: self.sent / length,
            media: self.media / length,
            loss: (self.expected > 0).then(|| Ratio::new(lost / self.expected as f64)).flatten(),
            rtt,
            received: self.rate,
            quantiser: self.quantiser,
            encoder: self.encoder,
            queued,
            broken: self.broken,
            jitter: self.jitter,
        };
        let (quantiser, encoder) = (self.quantiser, self.encoder);
        *self = Self { quantiser, encoder, ..Self::new(now) };
        Some(period)
    }
}
