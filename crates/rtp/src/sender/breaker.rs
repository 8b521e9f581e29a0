//! The circuit breaker of a sender (RFC 8083): when to stop for the network's sake. Pure.
//!
//! It is no rate control. It stands behind one, and looks for a path or a peer that is gone, and for
//! congestion that the rate control does not answer:
//!
//! - *RTCP timeout* (§4.1): media is sent, and no report has come for three reporting intervals.
//! - *Media timeout* (§4.2): reports come, and say again and again that no media does.
//! - *Congestion* (§4.3): more than ten times is sent of what a TCP would send at that loss and
//!   round-trip time.
//!
//! Media usability (§4.4) is left to people. Who triggers it stops until somebody says otherwise
//! (§4.5); a tenth of the rate is not tried first, which §4.3 allows and does not ask for.

use std::collections::VecDeque;
use std::fmt;

use suiro_rate::Feedback;
use suiro_units::{Duration, Time};

/// §4.1: reporting intervals without a report.
const SILENT_INTERVALS: u32 = 3;
/// §4.1: the interval is computed with the fixed least one of RFC 3550 §6.2.
const INTERVAL_LEAST: Duration = Duration::from_secs(5);
/// §4.2: its *k*, as recommended.
const STILL_REPORTS: u32 = 5;
/// §4.3: an order of magnitude above TCP.
const TIMES_TCP: f64 = 10.0;
/// §4.3: groups of frames, or round trips, over which congestion is looked at.
const LONG: u64 = 10;
/// §4.3: the most that this is, unless three reporting intervals are more.
const WINDOW_MAX: Duration = Duration::from_secs(15);
/// Bounds for what is known of the receiver's reporting interval.
const REPORTING: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(60));
/// §4.3: reports that it takes at least.
const REPORTS_LEAST: usize = 3;
/// Most reports that are remembered: of more, congestion is not looked for.
const REPORTS_MAX: usize = 2048;

/// What triggered it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cause {
    /// No report has come for this long.
    Silence(Duration),
    /// This many consecutive reports confirmed no packets, over this time.
    NoMedia(u32, Duration),
    /// Over this long so many times was sent of what a TCP would send.
    Congestion(Duration, f64),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silence(time) => {
                write!(f, "RTCP timeout: no report for {:.1} s", time.as_secs_f64())
            }
            Self::NoMedia(reports, time) => write!(
                f,
                "media timeout: {reports} reports over {:.1} s confirmed no packets",
                time.as_secs_f64()
            ),
            Self::Congestion(time, times) => write!(
                f,
                "congestion: over {:.1} s {times:.0} times the rate of a TCP",
                time.as_secs_f64()
            ),
        }
    }
}

/// Watches what is sent and reported.
#[derive(Debug, Clone)]
pub struct Breaker {
    /// The time of a frame.
    frame: Duration,
    /// The time of a group of pictures.
    group: Duration,
    /// Packets sent since the last report that confirmed any, and since when.
    sent: u64,
    since: Option<Time>,
    last_sent: Option<Time>,
    /// The last report, or the first packet if none came.
    heard: Option<Time>,
    /// The receiver's reporting interval, smoothed.
    reporting: Option<Duration>,
    /// Since when packets are in flight that no report confirmed, and the number of such reports.
    unheard: Option<(Time, u32)>,
    /// What each report covers, the latest last.
    reports: VecDeque<Covered>,
    rtt: Option<Duration>,
    tripped: Option<Cause>,
}

/// What one report is about.
#[derive(Debug, Clone, Copy)]
struct Covered {
    time: Duration,
    /// Packets sent in that time.
    packets: u64,
    /// The share lost.
    lost: f64,
}

impl Breaker {
    /// Of a stream of frames and groups of pictures that last so long.
    pub fn new(frame: Duration, group: Duration) -> Self {
        Self {
            frame,
            group,
            sent: 0,
            since: None,
            last_sent: None,
            heard: None,
            reporting: None,
            unheard: None,
            reports: VecDeque::new(),
            rtt: None,
            tripped: None,
        }
    }

    /// What triggered it; it stays so.
    pub fn tripped(&self) -> Option<Cause> {
        self.tripped
    }

    /// A packet leaves.
    pub fn on_sent(&mut self, now: Time) {
        self.heard.get_or_insert(now);
        self.since.get_or_insert(now);
        self.unheard.get_or_insert((now, 0));
        self.last_sent = Some(now);
        self.sent += 1;
    }

    /// A report that is believed has come, or one that says nothing new. `interval` is the reporting
    /// interval that RFC 3550 §6.3.1 gives.
    pub fn on_report(&mut self, now: Time, feedback: &Feedback, interval: Duration) {
        if self.last_sent.is_none() {
            return;
        }
        self.heard = Some(now);
        self.rtt = feedback.rtt.or(self.rtt);
        if feedback.expected > 0 {
            self.unheard = None;
            self.cover(now, feedback);
            self.forget(interval);
        } else if let Some((_, reports)) = &mut self.unheard {
            *reports += 1;
        }
        let cause = self.still(now).or_else(|| self.congested(interval));
        self.tripped = self.tripped.or(cause);
    }

    /// A report confirms packets.
    fn cover(&mut self, now: Time, feedback: &Feedback) {
        let Some(since) = self.since.replace(now) else { return };
        let time = now.saturating_since(since);
        let smooth = |old: Duration| old.mul_f64(0.875) + time / 8;
        let (least, most) = REPORTING;
        self.reporting = Some(self.reporting.map_or(time, smooth).clamp(least, most));
        let lost = feedback.lost() as f64 / feedback.expected as f64;
        self.reports.push_back(Covered { time, packets: std::mem::take(&mut self.sent), lost });
    }

    /// When silence will be too long; `None` while nothing is sent.
    pub fn next(&self, interval: Duration) -> Option<Time> {
        let (heard, _) = self.heard.zip(self.last_sent)?;
        self.tripped.is_none().then(|| heard + Self::silence(interval))
    }

    /// Time has come.
    pub fn on_timer(&mut self, now: Time, interval: Duration) {
        let Some((heard, sent)) = self.heard.zip(self.last_sent) else { return };
        let silence = Self::silence(interval);
        if self.tripped.is_some() || now < heard + silence {
            return;
        }
        if sent + silence > now {
            self.tripped = Some(Cause::Silence(now.saturating_since(heard)));
        } else {
            // Nothing was sent, so nothing was to be heard.
            (self.heard, self.last_sent, self.since) = (None, None, None);
        }
    }

    fn silence(interval: Duration) -> Duration {
        interval.max(INTERVAL_LEAST) * u64::from(SILENT_INTERVALS)
    }

    /// §4.2: no packet arrives, by reports over *k* of the longest of a frame's time, the round-trip
    /// time and the receiver's reporting interval.
    fn still(&self, now: Time) -> Option<Cause> {
        let (since, reports) = self.unheard?;
        let round = self.rtt.unwrap_or_default();
        let reporting = self.reporting.unwrap_or(INTERVAL_LEAST);
        let longest = self.frame.max(round).max(reporting);
        let time = now.saturating_since(since);
        let long = time >= longest * u64::from(STILL_REPORTS) + round;
        (reports >= STILL_REPORTS && long).then_some(Cause::NoMedia(reports, time))
    }

    /// §4.3: CB_INTERVAL, as the time that so many reports at their usual interval take: they may come
    /// in gusts, with what else a receiver has to say.
    fn window(&self, interval: Duration) -> Duration {
        let reporting = self.reporting.unwrap_or(INTERVAL_LEAST);
        let round = self.rtt.unwrap_or_default();
        let long = (self.group * LONG).max(round * LONG).max(reporting * REPORTS_LEAST as u64);
        long.min(WINDOW_MAX.max(interval * 3))
    }

    /// How long the reports that are remembered cover.
    fn covered(&self) -> Duration {
        self.reports.iter().fold(Duration::ZERO, |sum, covered| sum + covered.time)
    }

    /// Forgets what is older than the window.
    fn forget(&mut self, interval: Duration) {
        let (window, mut covered) = (self.window(interval), self.covered());
        while let Some(first) = self.reports.front() {
            let rest = covered.saturating_sub(first.time);
            let enough = rest >= window && self.reports.len() > REPORTS_LEAST;
            if !enough && self.reports.len() <= REPORTS_MAX {
                break;
            }
            covered = rest;
            self.reports.pop_front();
        }
    }

    /// §4.3: the loss is the mean over the window; TCP's throughput is that of §3, without timeouts.
    fn congested(&self, interval: Duration) -> Option<Cause> {
        if self.reports.len() < REPORTS_LEAST || self.covered() < self.window(interval) {
            return None;
        }
        let total = |value: fn(&Covered) -> f64| self.reports.iter().map(value).sum::<f64>();
        let seconds = total(|covered| covered.time.as_secs_f64());
        let loss = total(|covered| covered.lost * covered.time.as_secs_f64()) / seconds;
        let packets = total(|covered| covered.packets as f64);
        let round = self.rtt?.as_secs_f64();
        // Packets of TCP in this time, were they as large.
        let tcp = seconds / (round * (2.0 * loss / 3.0).sqrt());
        let times = packets / tcp;
        let time = Duration::from_secs_f64(seconds);
        (times > TIMES_TCP).then_some(Cause::Congestion(time, times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TD: Duration = Duration::from_secs(5);
    const RTT: Duration = Duration::from_millis(50);

    /// A sender of so many packets in each 100 ms, of whose reports, one each 100 ms,
    /// `report` makes what they say; it may leave one out. When it was triggered, and by what.
    fn run(
        seconds: u64,
        packets: u64,
        mut report: impl FnMut(u64) -> Option<Feedback>,
    ) -> Option<(Time, Cause)> {
        let mut breaker = Breaker::new(Duration::from_millis(33), Duration::from_secs(1));
        for step in 0..seconds * 10 {
            let now = Time::from_millis(100 * step);
            (0..packets).for_each(|_| breaker.on_sent(now));
            let now = now + Duration::from_millis(99);
            breaker.on_timer(now, TD);
            if let Some(feedback) = report(step) {
                breaker.on_report(now, &feedback, TD);
            }
            if let Some(cause) = breaker.tripped() {
                return Some((now, cause));
            }
        }
        None
    }

    fn heard(expected: u64, lost: u64) -> Option<Feedback> {
        Some(Feedback::counts(expected, expected - lost).with_rtt(RTT))
    }

    #[test]
    fn a_stream_that_is_received_goes_on() {
        assert_eq!(run(60, 40, |_| heard(40, 0)), None);
    }

    #[test]
    fn three_intervals_of_silence_are_too_long() {
        let (at, cause) = run(60, 40, |step| heard(40, 0).filter(|_| step < 100)).unwrap();
        // The last report came at 9.999 s.
        assert_eq!(at, Time::from_millis(24_999));
        assert!(matches!(cause, Cause::Silence(time) if time >= TD * 3), "{cause}");
        assert_eq!(run(20, 40, |step| heard(40, 0).filter(|_| step != 50)), None, "one is lost");
        let (at, _) = run(60, 40, |_| None).unwrap();
        assert_eq!(
            at,
            Time::from_millis(15_099),
            "none ever came: it counts from the first packet"
        );
    }

    #[test]
    fn who_sends_nothing_waits_for_nothing() {
        let mut breaker = Breaker::new(Duration::from_millis(33), Duration::from_secs(1));
        assert_eq!(breaker.next(TD), None);
        breaker.on_sent(Time::ZERO);
        assert_eq!(breaker.next(TD), Some(Time::from_secs(15)));
        breaker.on_timer(Time::from_secs(40), TD);
        assert_eq!((breaker.tripped(), breaker.next(TD)), (None, None));
    }

    #[test]
    fn reports_of_no_media_trip_it() {
        let told = |step| if step < 50 { heard(40, 0) } else { heard(0, 0) };
        let (at, cause) = run(60, 40, told).unwrap();
        // Packets are under way from 5 s on; five reports over five of their intervals and a round
        // trip later:
        assert_eq!(at, Time::from_millis(5_599));
        assert!(matches!(cause, Cause::NoMedia(6, _)), "{cause}");
        let gap = |step| if (50..54).contains(&step) { heard(0, 0) } else { heard(40, 0) };
        assert_eq!(run(60, 40, gap), None, "four reports are too few");
        assert_eq!(run(60, 0, |_| heard(0, 0)), None, "nothing was sent");
    }

    #[test]
    fn ten_times_tcp_is_congestion_after_ten_groups() {
        // 10 % loss: a TCP would send a packet per 50 ms · √(2 · 0.1 / 3) = 12.9 ms, 77 a second.
        let (at, cause) = run(60, 100, |_| heard(100, 10)).unwrap();
        let Cause::Congestion(time, times) = cause else { panic!("{cause}") };
        assert!((times - 1000.0 / 77.46).abs() < 0.1, "{times}");
        assert!((9.8..=10.1).contains(&time.as_secs_f64()), "{time}");
        assert!(at >= Time::from_secs(9) && at <= Time::from_millis(10_200), "{at}");
        assert_eq!(run(60, 70, |_| heard(70, 7)), None, "nine times is not");
        // Half of the time is not all of it: 5 % at the mean, 109 packets a second of TCP.
        assert_eq!(run(60, 100, |step| heard(100, if step % 100 < 50 { 10 } else { 0 })), None);
    }

    #[test]
    fn the_window_is_that_of_the_rfc() {
        let mut breaker = Breaker::new(Duration::from_millis(33), Duration::from_secs(1));
        breaker.reporting = Some(Duration::from_secs(1));
        assert_eq!(breaker.window(TD), Duration::from_secs(10), "ten groups");
        breaker.rtt = Some(Duration::from_secs(2));
        assert_eq!(breaker.window(TD), Duration::from_secs(15), "ten round trips, at most 15 s");
        breaker.reporting = Some(Duration::from_secs(20));
        assert_eq!(breaker.window(TD * 10), Duration::from_secs(60), "three reports at least");
    }

    #[test]
    fn reports_in_gusts_make_no_window_of_a_moment() {
        let mut breaker = Breaker::new(Duration::from_millis(33), Duration::from_secs(1));
        let mut now = Time::ZERO;
        // Five seconds of a report each 10 ms with 10 % loss, then one after a pause.
        for gap in std::iter::repeat_n(10, 500).chain([1000]) {
            (0..10).for_each(|_| breaker.on_sent(now));
            now += Duration::from_millis(gap);
            breaker.on_report(now, &Feedback::counts(10, 9).with_rtt(RTT), TD);
            assert_eq!(breaker.tripped(), None, "{now}");
        }
    }
}
