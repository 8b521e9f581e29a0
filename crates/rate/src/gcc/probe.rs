//! Probes: short bursts that are faster than the target, to find out at once whether more would pass (libwebrtc's
//! `ProbeController` and `ProbeBitrateEstimator`); and whether the application sends less than it may (`AlrDetector`).

use std::collections::VecDeque;

use suiro_units::{Duration, Time};

use crate::PacketReport;

/// The first probes, in initial rates.
const FIRST: [f64; 2] = [3.0, 6.0];
/// A probe that has found more than this share of its rate is followed by one of twice what it found.
const FURTHER_FROM: f64 = 0.7;
const FURTHER: f64 = 2.0;
/// While the application limits the rate, a probe of twice the target each five seconds. In libwebrtc a call with sound has these
/// (`WebRTC-Audio-AlrProbing`), and video alone has not.
const LIMITED: f64 = 2.0;
const LIMITED_EVERY: Duration = Duration::from_secs(5);
/// After a fall of the rate that did not last: this share of the rate before it, if the target is less than this share of that.
const RECOVER: f64 = 0.85;
const RECOVERED: f64 = 0.95;
const RECOVER_WITHIN: Duration = Duration::from_secs(5);
/// A fall to less than this share is a large one.
const LARGE_FALL: f64 = 0.66;
/// A probe's least length, in packets and in time.
const PACKETS_MIN: u32 = 5;
const LENGTH: Duration = Duration::from_millis(15);
/// A probe that could not be sent or was not reported within this time comes to nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// The share of its packets and bytes that must be reported.
const HEARD: f64 = 0.8;
/// A rate of arrival so far above the rate of sending is a measurement that failed.
const RATIO_MAX: f64 = 2.0;
/// Below this share, the path was full, and a little less than what arrived is taken.
const FULL_BELOW: f64 = 0.9;
const OF_FULL: f64 = 0.95;
/// Probes that wait for their turn.
const WAITING_MAX: usize = 4;

/// A probe that is being sent.
#[derive(Debug, Clone, Copy)]
struct Burst {
    rate: f64,
    began: Time,
    latest: Time,
    packets: u32,
    bytes: f64,
    last_bytes: f64,
}

/// A probe that was sent, and what was reported of it.
#[derive(Debug, Clone, Copy)]
struct Sent {
    burst: Burst,
    packets: u32,
    bytes: f64,
    first: Option<(Time, f64)>,
    last: Time,
}

/// Decides when to probe, and judges the results.
#[derive(Debug, Clone)]
pub struct Prober {
    most: f64,
    /// Rates of probes that wait for their turn.
    waiting: VecDeque<f64>,
    /// The probe that is being sent: `None` in it until its first packet has left.
    active: Option<(f64, Time, Option<Burst>)>,
    sent: Option<Sent>,
    /// When a probe was last asked for.
    latest: Option<Time>,
    /// The rate before the latest large fall, and when that was.
    fall: Option<(f64, Time)>,
    /// When a probe was last asked for after a fall.
    recovery: Option<Time>,
}

impl Prober {
    /// Probes are no faster than `most`.
    pub fn new(initial: f64, most: f64, start: Time) -> Self {
        let mut prober = Self {
            most,
            waiting: VecDeque::new(),
            active: None,
            sent: None,
            latest: None,
            fall: None,
            recovery: None,
        };
        prober.begin(start, initial);
        prober
    }

    /// As little is known as at the start.
    pub fn begin(&mut self, now: Time, rate: f64) {
        FIRST.into_iter().for_each(|times| self.ask(now, times * rate));
    }

    fn ask(&mut self, now: Time, rate: f64) {
        let rate = rate.min(self.most);
        if self.waiting.len() < WAITING_MAX && self.waiting.back().is_none_or(|last| *last < rate) {
            self.waiting.push_back(rate);
            self.latest = Some(now);
        }
    }

    /// The rate of the probe that is to be sent now.
    pub fn rate(&self) -> Option<f64> {
        self.active.map(|(rate, ..)| rate)
    }

    /// When something that waits is given up, or is next.
    pub fn next(&self) -> Option<Time> {
        let given_up = |(_, since, _): (f64, Time, Option<Burst>)| since + PATIENCE;
        self.active.map(given_up)
    }

    /// Time has come: begins the next probe, or gives one up. Nothing begins before anything was sent.
    pub fn on_time(&mut self, now: Time, flows: bool) {
        if self.next().is_some_and(|at| at <= now) {
            self.active = None;
            self.waiting.clear();
        }
        if self.active.is_none() && flows && !self.waits(now) {
            self.active = self.waiting.pop_front().map(|rate| (rate, now, None));
        }
    }

    /// Whether the result of a probe is still to come.
    fn waits(&self, now: Time) -> bool {
        self.sent.is_some_and(|sent| now.saturating_since(sent.burst.latest) < PATIENCE)
    }

    /// A packet has left.
    pub fn on_sent(&mut self, now: Time, bytes: f64) {
        let Some((rate, _, burst)) = &mut self.active else { return };
        let burst = burst.get_or_insert(Burst {
            rate: *rate,
            began: now,
            latest: now,
            packets: 0,
            bytes: 0.0,
            last_bytes: 0.0,
        });
        (burst.latest, burst.last_bytes) = (now, bytes);
        burst.packets += 1;
        burst.bytes += bytes;
        let enough = *rate * LENGTH.as_secs_f64() / 8.0;
        if burst.packets >= PACKETS_MIN && burst.bytes >= enough {
            let (burst, first) = (*burst, None);
            self.sent = Some(Sent { burst, packets: 0, bytes: 0.0, first, last: Time::ZERO });
            self.active = None;
        }
    }

    /// A packet has been reported; the rate that a probe has found, if this was its last packet that was missing.
    pub fn on_packet(&mut self, packet: &PacketReport) -> Option<f64> {
        let sent = self.sent.as_mut()?;
        if !(sent.burst.began..=sent.burst.latest).contains(&packet.sent) {
            return None;
        }
        let bytes = packet.size.get() as f64;
        if let Some(at) = packet.arrived.time() {
            sent.packets += 1;
            sent.bytes += bytes;
            sent.first = sent.first.or(Some((at, bytes)));
            sent.last = sent.last.max(at);
        }
        if packet.sent < sent.burst.latest {
            return None;
        }
        let found = sent.result();
        self.sent = None;
        found
    }

    /// The target is known anew. `found`: by a probe of which this is the result; `limited`: since when the application sends less.
    pub fn on_target(
        &mut self,
        now: Time,
        target: f64,
        found: Option<(f64, f64)>,
        limited: Option<Time>,
    ) {
        if let Some((rate, found)) = found
            && found > FURTHER_FROM * rate
            && rate < self.most
        {
            self.ask(now, FURTHER * found);
        }
        let since = limited.map(|since| self.latest.map_or(since, |latest| latest.max(since)));
        let due = since.is_some_and(|since| now.saturating_since(since) >= LIMITED_EVERY);
        if due && target < self.most && self.is_idle(now) {
            self.ask(now, LIMITED * target);
        }
    }

    fn is_idle(&self, now: Time) -> bool {
        self.active.is_none() && self.waiting.is_empty() && !self.waits(now)
    }

    /// The rate has changed.
    pub fn on_change(&mut self, now: Time, before: f64, after: f64) {
        if after < LARGE_FALL * before {
            self.fall = Some((before, now));
        }
    }

    /// The queue has drained, and the application limits the rate: one probe tests whether the path has its capacity back.
    pub fn on_recovery(&mut self, now: Time, target: f64) {
        let Some((before, at)) = self.fall else { return };
        let is_recent = |at: Time| now.saturating_since(at) < RECOVER_WITHIN;
        let tried = self.recovery.is_some_and(is_recent);
        let rate = RECOVER * before;
        if is_recent(at) && !tried && RECOVERED * rate > target && self.is_idle(now) {
            self.recovery = Some(now);
            self.ask(now, rate);
        }
    }

    /// The rate of the probe whose result is waited for.
    pub fn probed(&self) -> Option<f64> {
        self.sent.map(|sent| sent.burst.rate)
    }

    /// Lets everything go that waits.
    pub fn clear(&mut self) {
        self.waiting.clear();
        (self.active, self.sent) = (None, None);
    }
}

impl Sent {
    /// The rate that passes: what was sent and what arrived, each without the packet at the end that took no time.
    fn result(&self) -> Option<f64> {
        let (first, first_bytes) = self.first?;
        let heard = f64::from(self.packets) >= HEARD * f64::from(self.burst.packets)
            && self.bytes >= HEARD * self.burst.bytes;
        let span = |from: Time, to: Time| to.saturating_since(from).as_secs_f64();
        let (sending, receiving) =
            (span(self.burst.began, self.burst.latest), span(first, self.last));
        let plausible = |seconds: f64| seconds > 0.0 && seconds <= 1.0;
        if !heard || !plausible(sending) || !plausible(receiving) {
            return None;
        }
        let sent = (self.bytes - self.burst.last_bytes) * 8.0 / sending;
        let received = (self.bytes - first_bytes) * 8.0 / receiving;
        if received > RATIO_MAX * sent || sent <= 0.0 {
            return None;
        }
        let full = received < FULL_BELOW * sent;
        Some(if full { OF_FULL * received } else { sent.min(received) })
    }
}

/// The share of the target that a source which follows it sends at least.
const USUAL: f64 = 0.65;
/// The share of the budget that must be unused to begin, and below which it ends.
const BEGINS: f64 = 0.8;
const ENDS: f64 = 0.5;
/// The budget is that of so much time.
const WINDOW: f64 = 0.5;
/// How recent an end is.
const RECENT: Duration = Duration::from_secs(3);

/// Whether the application sends less than it may.
#[derive(Debug, Clone, Default)]
pub struct Limited {
    /// What is left of the budget, in bits.
    left: f64,
    target: f64,
    latest: Option<Time>,
    since: Option<Time>,
    ended: Option<Time>,
}

impl Limited {
    /// The target has changed.
    pub fn set(&mut self, target: f64) {
        self.target = target * USUAL;
        self.left = self.left.clamp(-self.most(), self.most());
    }

    fn most(&self) -> f64 {
        self.target * WINDOW
    }

    /// A packet has left.
    pub fn on_sent(&mut self, now: Time, bytes: f64) {
        let before = self.latest.replace(now).unwrap_or(now);
        let elapsed = now.saturating_since(before).as_secs_f64();
        self.left =
            (self.left + self.target * elapsed - bytes * 8.0).clamp(-self.most(), self.most());
        let share = if self.most() > 0.0 { self.left / self.most() } else { 0.0 };
        if share > BEGINS {
            self.since.get_or_insert(now);
        } else if share < ENDS && self.since.take().is_some() {
            self.ended = Some(now);
        }
    }

    /// Since when it does; `None` if it does not.
    pub const fn since(&self) -> Option<Time> {
        self.since
    }

    /// Whether it does, or did a short while ago.
    pub fn is_or_was(&self, now: Time) -> bool {
        self.since.is_some() || self.ended.is_some_and(|at| now.saturating_since(at) < RECENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arrived;
    use suiro_units::Bytes;

    /// Sends a probe of so many kbit/s in packets of 1000 bytes, over a path of so many; what it finds.
    fn probe(prober: &mut Prober, path_kbps: f64, lost: u64) -> Option<f64> {
        let start = Time::from_secs(1);
        prober.on_time(start, true);
        let (rate, mut reports) = (prober.rate().expect("a probe is due"), Vec::new());
        for n in 0u64.. {
            let sent = start + Duration::from_secs_f64(8000.0 / rate) * n;
            let took = Duration::from_secs_f64(8.0 / rate.min(path_kbps * 1e3) * 1000.0) * n;
            let at = Arrived::At(start + took + Duration::from_millis(50));
            let arrived = if n >= lost { at } else { Arrived::No };
            let size = Bytes::new(1000);
            reports.push(PacketReport { sequence: n, size, sent, arrived, ecn_ce: false });
            prober.on_sent(sent, 1000.0);
            if prober.rate().is_none() {
                break;
            }
        }
        reports.iter().find_map(|report| prober.on_packet(report))
    }

    #[test]
    fn a_probe_finds_what_passes() {
        let prober = || Prober::new(300e3, 10e6, Time::ZERO);
        let close = |found: Option<f64>, expected: f64| {
            let found = found.expect("it is found");
            assert!((found / expected - 1.0).abs() < 0.01, "{found}, not {expected}");
        };
        close(probe(&mut prober(), 5000.0, 0), 900e3);
        close(probe(&mut prober(), 600.0, 0), 0.95 * 600e3);
        assert_eq!(probe(&mut prober(), 5000.0, 2), None, "two of five are lost");
    }

    #[test]
    fn what_was_found_says_whether_there_is_another() {
        let mut prober = Prober::new(300e3, 10e6, Time::ZERO);
        assert_eq!(prober.waiting, [900e3, 1800e3]);
        prober.waiting.clear();
        prober.on_target(Time::from_secs(1), 900e3, Some((900e3, 890e3)), None);
        prober.on_target(Time::from_secs(1), 900e3, Some((1800e3, 1000e3)), None);
        assert_eq!(prober.waiting, [1780e3], "the second found much less than it tried");
        let mut prober = Prober::new(300e3, 1000e3, Time::ZERO);
        assert_eq!(prober.waiting, [900e3, 1000e3], "no more than the greatest rate");
        prober.on_time(Time::from_secs(5), true);
        assert_eq!(prober.rate(), Some(900e3));
        prober.on_time(Time::from_secs(7), true);
        assert_eq!(prober.rate(), None, "it could not be sent");
    }

    #[test]
    fn a_source_that_sends_half_of_what_it_may_is_limited() {
        let mut limited = Limited::default();
        limited.set(1e6);
        let mut send = |from: u64, kbps: f64| {
            let bytes = kbps * 10.0 / 8.0;
            (from..from + 200).for_each(|n| limited.on_sent(Time::from_millis(10 * n), bytes));
            (limited.since().is_some(), limited.is_or_was(Time::from_millis(10 * from + 2000)))
        };
        assert_eq!(send(0, 900.0), (false, false));
        assert_eq!(send(200, 300.0), (true, true));
        assert_eq!([send(400, 900.0), send(600, 900.0)], [(false, true), (false, false)]);
    }

    #[test]
    fn a_limited_source_probes_five_seconds_after_it_became_so_or_probed() {
        let mut prober = Prober::new(300e3, 10e6, Time::ZERO);
        prober.clear();
        let mut asks = |now: u64, since: u64| {
            let (now, since) = (Time::from_secs(now), Time::from_secs(since));
            prober.on_target(now, 500e3, None, Some(since));
            prober.waiting.pop_front()
        };
        assert_eq!([asks(20, 16), asks(21, 16)], [None, Some(1e6)]);
        assert_eq!([asks(25, 16), asks(26, 16)], [None, Some(1e6)]);
    }

    #[test]
    fn a_fall_that_did_not_last_is_probed_once_in_five_seconds() {
        let fallen = |after: f64| {
            let mut prober = Prober::new(300e3, 10e6, Time::ZERO);
            prober.clear();
            prober.on_change(Time::from_secs(10), 2e6, after);
            prober
        };
        let mut prober = fallen(1e6);
        prober.on_recovery(Time::from_secs(11), 1e6);
        assert_eq!(prober.waiting, [1.7e6]);
        prober.waiting.clear();
        prober.on_recovery(Time::from_secs(12), 1e6);
        assert!(prober.waiting.is_empty(), "one is enough");
        for (after, at, target) in [(1.5e6, 11, 1e6), (1e6, 16, 1e6), (1e6, 11, 1.65e6)] {
            let mut prober = fallen(after);
            prober.on_recovery(Time::from_secs(at), target);
            assert!(prober.waiting.is_empty(), "{after} at {at} s, {target} now");
        }
    }
}
