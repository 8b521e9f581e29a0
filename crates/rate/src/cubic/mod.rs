//! CUBIC (RFC 9438) with HyStart++ (RFC 9406): congestion control by loss, for a transport that counts a window in
//! bytes.
//!
//! After a loss the window is reduced to 70 %, and then grows as a cubic function of time: fast at first, slowly near
//! the window at which the loss occurred, and faster and faster beyond it. §4.10 of RFC 9438 asks for a slow start that
//! ends before it fills the queue; without that, a window in a long queue doubles until a whole window is lost.

mod hystart;

use suiro_units::{Bytes, Duration, Time};

use hystart::HyStart;

/// §5: how fast the window grows, in packets per second cubed.
const C: f64 = 0.4;
/// §4.6: what is left of the window after a loss.
const BETA: f64 = 0.7;
/// §4.3: growth that is as fast as Reno's, on average.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// §4.4: the window grows in a round trip to at most this multiple.
const GROWTH: f64 = 1.5;
/// The window to begin with, and the least one, in packets (RFC 9002 §7.2).
const INITIAL: f64 = 10.0;
const LEAST: f64 = 2.0;
/// Largest window in packets: more than 10 Gbit/s over 100 ms.
const MOST: f64 = 100_000.0;

/// A packet that was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    /// When it was sent.
    pub sent: Time,
    /// Its size.
    pub size: Bytes,
    /// The smoothed round-trip time.
    pub smoothed: Duration,
    /// True if there was no more to send, so that the window was not what held the sender back, and must not grow.
    pub limited: bool,
}

/// The time since the window was reduced last, or since slow start ended.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    /// When it began; what the sender had too little to send for is not counted (§5.8).
    since: Time,
    /// Seconds until the window is what it was before.
    k: f64,
    /// The window that Reno would have.
    reno: f64,
}

#[derive(Debug, Clone)]
struct State {
    /// All windows are in packets.
    window: f64,
    /// `None`: no loss has ended slow start yet.
    threshold: Option<f64>,
    /// The window when it was reduced last, and what it was before that (§4.7).
    most: f64,
    before: f64,
    epoch: Option<Epoch>,
    start: HyStart,
    /// What was sent until then has been answered with a smaller window.
    reduced: Option<Time>,
    /// When something was acknowledged last.
    acked: Option<Time>,
}

/// The controller of one path.
#[derive(Debug, Clone)]
pub struct Cubic {
    packet: Bytes,
    state: State,
    /// As it was before the last reduction, which may turn out to be wrong.
    kept: Option<Box<State>>,
}

impl Cubic {
    /// The controller of a path whose packets have at most that size.
    pub fn new(packet: Bytes) -> Self {
        let state = State {
            window: INITIAL,
            threshold: None,
            most: 0.0,
            before: 0.0,
            epoch: None,
            start: HyStart::default(),
            reduced: None,
            acked: None,
        };
        Self { packet: packet.max(Bytes::new(1)), state, kept: None }
    }

    /// The size of packets has changed.
    pub fn set_packet(&mut self, packet: Bytes) {
        self.packet = packet.max(Bytes::new(1));
    }

    /// A packet was acknowledged.
    pub fn on_ack(&mut self, now: Time, acked: Acked) {
        let packets = acked.size.get() as f64 / self.packet.get() as f64;
        let state = &mut self.state;
        let idle = state.acked.replace(now).map_or(Duration::ZERO, |at| now.saturating_since(at));
        if state.reduced.is_some_and(|reduced| acked.sent <= reduced) {
            return;
        }
        if state.slow_start() && state.threshold.is_some() {
            // RFC 9406 §4.2 is for the first slow start.
            let grown = if acked.limited { 0.0 } else { packets };
            return state.set_window(state.window + grown);
        }
        if state.slow_start() {
            let rtt = now.saturating_since(acked.sent);
            match state.start.on_ack(now, acked.sent, rtt) {
                Some(_) if acked.limited => {}
                Some(part) => state.set_window(state.window + packets * part),
                None => {
                    // §4.10: there was no loss, so the function begins at its plateau.
                    state.threshold = Some(state.window);
                    (state.most, state.before) = (state.window, state.window);
                }
            }
            return;
        }
        if acked.limited {
            if let Some(epoch) = &mut state.epoch {
                epoch.since += idle;
            }
            return;
        }
        state.avoid(now, packets, acked.smoothed);
    }

    /// Something that was sent at `sent` is lost, or was marked on its way. One reduction answers all that was sent before
    /// it.
    pub fn on_congestion(&mut self, now: Time, sent: Time) {
        if self.state.reduced.is_some_and(|reduced| sent <= reduced) {
            return;
        }
        self.kept = Some(Box::new(self.state.clone()));
        let state = &mut self.state;
        // §4.7: a window that did not reach the last one makes room for others.
        let reached = state.window >= state.most;
        state.most = if reached { state.window } else { state.window * (1.0 + BETA) / 2.0 };
        state.before = state.window;
        state.set_window(state.window * BETA);
        state.threshold = Some(state.window);
        (state.reduced, state.epoch) = (Some(now), None);
    }

    /// Nothing came through for so long that what is known of the path is worthless (RFC 9002 §7.6, RFC 9438 §4.8). The loss
    /// that shows it, which [`Self::on_congestion`] hears of first, has reduced the threshold: it is not reduced again.
    pub fn on_persistent_congestion(&mut self) {
        let state = &mut self.state;
        let threshold = state.threshold.unwrap_or(state.window * BETA).max(LEAST);
        (state.most, state.before) = (threshold, threshold);
        *state = State {
            window: LEAST,
            threshold: Some(threshold),
            epoch: None,
            reduced: None,
            ..state.clone()
        };
        self.kept = None;
    }

    /// The last reduction answered a loss that was none: the window is as before, if it is not larger by now (§4.9).
    pub fn on_spurious(&mut self) {
        if let Some(kept) = self.kept.take()
            && kept.window > self.state.window
        {
            self.state = *kept;
        }
    }

    /// How much may be in flight.
    pub fn window(&self) -> Bytes {
        self.bytes(self.state.window)
    }

    /// The window at which slow start ends; `None` until it ended for the first time.
    pub fn threshold(&self) -> Option<Bytes> {
        self.state.threshold.map(|threshold| self.bytes(threshold))
    }

    fn bytes(&self, packets: f64) -> Bytes {
        Bytes::new((packets * self.packet.get() as f64).round() as u64)
    }
}

impl State {
    fn slow_start(&self) -> bool {
        self.threshold.is_none_or(|threshold| self.window < threshold)
    }

    fn set_window(&mut self, window: f64) {
        self.window = window.clamp(LEAST, MOST);
    }

    /// §4.2 to §4.5: congestion avoidance, of so many packets acknowledged.
    fn avoid(&mut self, now: Time, packets: f64, smoothed: Duration) {
        let window = self.window;
        if self.epoch.is_none() {
            self.most = self.most.max(window);
        }
        let most = self.most;
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            since: now,
            k: ((most - window) / C).cbrt(),
            reno: window,
        });
        let t = now.saturating_since(epoch.since).as_secs_f64();
        let cubic = |t: f64| C * (t - epoch.k).powi(3) + most;
        let (at, ahead) = (cubic(t), cubic(t + smoothed.as_secs_f64()));
        let alpha = if epoch.reno < self.before { ALPHA } else { 1.0 };
        epoch.reno += alpha * packets / window;
        let reno = epoch.reno;
        if at < reno {
            self.set_window(window.max(reno));
        } else {
            let target = ahead.clamp(window, GROWTH * window);
            self.set_window(window + packets * (target - window) / window);
        }
    }
}

#[cfg(test)]
mod tests;
