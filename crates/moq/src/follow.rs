//! How an encoder follows what its connection can send. Pure.
//!
//! While data waits, in the connection or in the path's queues, the rate at which bytes are acknowledged is the capacity of
//! the path. While none waits, it is only what the encoder made, and the capacity is at least that. The time that
//! data spends in queues is the round-trip time above its minimum, plus the time to send what waits in the connection. If
//! that time is long, the rate is set below the capacity; if it is short, the rate grows slowly. WebRTC's congestion
//! control works in the same way (draft-ietf-rmcat-gcc).

use std::collections::VecDeque;

use suiro_realtime::Share;
use suiro_units::{BitRate, Bytes, Duration, Time};

/// The encoder gets 90 % of the rate: headers of MoQT, QUIC, UDP and IP take about a tenth with frames of this size. The
/// queue should be empty within half a second.
const SHARE: Share = Share { encoder: 0.9, drain: Duration::from_millis(500), least: 0.3 };
/// The time over which acknowledged bytes are a rate.
const OVER: Duration = Duration::from_millis(500);
/// A frame that takes this long to send shows what the path carries, though it is empty before and after.
const BURST: Duration = Duration::from_millis(150);
/// With a longer time in queues the rate is lowered.
const LONG: Duration = Duration::from_millis(120);
/// With a shorter time in queues the rate grows.
const SHORT: Duration = Duration::from_millis(60);
/// Share of the capacity that the rate is lowered to.
const BACK: f64 = 0.85;
/// How much the rate grows in a second while queues are short.
const GROWTH: f64 = 0.15;
/// The rate grows to at most this multiple of the capacity that was seen: a sender that sends little learns nothing more.
const AHEAD: f64 = 1.5;
const AHEAD_AT_LEAST: BitRate = BitRate::from_kbps(100);
/// Samples that are kept at most.
const SAMPLES_MAX: usize = 256;

/// What is known of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Bytes of packets that were acknowledged since it began.
    pub acked: u64,
    /// Bytes that wait to be sent.
    pub waiting: Bytes,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Least round-trip time; `None` before the first acknowledgement.
    pub rtt_min: Option<Duration>,
}

/// The rate of one encoder.
#[derive(Debug, Clone)]
pub struct Follow {
    allowed: BitRate,
    most: BitRate,
    samples: VecDeque<(Time, u64)>,
    /// Since when data has waited in each sample.
    busy_since: Option<Time>,
    /// What the path carried when it was last full, or more if it has carried more since.
    capacity: BitRate,
    lowered: Option<Time>,
    at: Option<Time>,
}

impl Follow {
    /// Begins at the rate `start`, and never exceeds `most`.
    pub fn new(start: BitRate, most: BitRate) -> Self {
        let allowed = start.min(most).mul_f64(1.0 / SHARE.encoder);
        let capacity = BitRate::from_bps(0);
        let samples = VecDeque::new();
        Self { allowed, most, samples, busy_since: None, capacity, lowered: None, at: None }
    }

    /// What the encoder is to be set to.
    pub fn on_sample(&mut self, now: Time, sample: Sample) -> BitRate {
        let Some(rtt_min) = sample.rtt_min else { return self.encoder(Bytes::new(0)) };
        let in_path = sample.rtt.saturating_sub(rtt_min);
        let busy = sample.waiting > Bytes::ZERO || in_path > SHORT;
        self.busy_since = busy.then(|| self.busy_since.unwrap_or(now));
        let delivered = self.delivered(now, sample.acked);
        let passed = self.at.replace(now).map_or(Duration::ZERO, |at| now.saturating_since(at));
        let Some(delivered) = delivered else { return self.encoder(sample.waiting) };
        let full = self.busy_since.and_then(|since| self.acked_rate(since, now, OVER / 2));
        let lately = self.acked_rate(now.saturating_sub(BURST), now, BURST / 2);
        let most = lately.map_or(delivered, |lately| lately.max(delivered));
        self.capacity = full.unwrap_or(self.capacity.max(most));
        let waits = sample.waiting / self.capacity.max(BitRate::from_bps(1));
        let queueing = in_path + waits;
        if queueing > LONG {
            let soon =
                self.lowered.is_some_and(|at| now.saturating_since(at) < sample.rtt.max(OVER / 2));
            if !soon {
                self.allowed = self.allowed.min(self.capacity.mul_f64(BACK));
                self.lowered = Some(now);
            }
        } else if queueing < SHORT {
            let grown = self.allowed.mul_f64(1.0 + GROWTH * passed.as_secs_f64());
            let ahead = self.capacity.mul_f64(AHEAD).max(AHEAD_AT_LEAST);
            let most = self.most.mul_f64(1.0 / SHARE.encoder);
            self.allowed = grown.min(ahead.max(self.allowed)).min(most);
        }
        // What is in the path's queues must drain too.
        let in_path =
            Bytes::new((self.capacity.as_bps() as f64 / 8.0 * in_path.as_secs_f64()) as u64);
        self.encoder(Bytes::new(sample.waiting.get().saturating_add(in_path.get())))
    }

    fn encoder(&self, queued: Bytes) -> BitRate {
        SHARE.encoder_rate(self.allowed, queued).min(self.most)
    }

    /// The rate at which bytes were acknowledged lately; `None` before there are two samples far enough apart.
    fn delivered(&mut self, now: Time, acked: u64) -> Option<BitRate> {
        self.samples.push_back((now, acked));
        let old = |samples: &VecDeque<(Time, u64)>| {
            // The second must be old too, so that the first is about as old as is asked for.
            samples.get(1).is_some_and(|(at, _)| now.saturating_since(*at) >= OVER)
        };
        while old(&self.samples) || self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
        let (since, _) = *self.samples.front()?;
        self.acked_rate(since, now, OVER / 2)
    }

    /// The rate at which bytes were acknowledged from the first sample at `since` or later on; `None` if that is a shorter
    /// time than `least`.
    fn acked_rate(&self, since: Time, now: Time, least: Duration) -> Option<BitRate> {
        let (from, before) = self.samples.iter().find(|(at, _)| *at >= since)?;
        let passed = now.saturating_since(*from);
        let (_, acked) = self.samples.back()?;
        (passed >= least).then(|| {
            let bits = acked.saturating_sub(*before) as f64 * 8.0;
            BitRate::from_bps((bits / passed.as_secs_f64()) as u64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(40);
    const STEP: Duration = Duration::from_millis(50);

    /// An encoder that makes exactly what it is set to, before a path of that capacity and a queue that is never full.
    /// Returns the rates of the encoder and the queue's delays over the last half.
    fn run(capacity: u64, start: u64) -> (f64, Duration) {
        let capacity = BitRate::from_kbps(capacity);
        let mut follow = Follow::new(BitRate::from_kbps(start), BitRate::from_mbps(2));
        let (mut rate, mut queue, mut acked, mut now) =
            (BitRate::from_kbps(start), 0.0, 0.0, Time::ZERO);
        let (mut sum, mut worst, steps) = (0.0, Duration::ZERO, 1200);
        for step in 0..steps {
            let could = capacity.as_bps() as f64 / 8.0 * STEP.as_secs_f64();
            // A tenth on top of what the encoder makes.
            queue += rate.as_bps() as f64 * 1.1 / 8.0 * STEP.as_secs_f64();
            let sent = f64::min(queue, could);
            (queue, acked) = (queue - sent, acked + sent);
            now += STEP;
            let delay = Duration::from_secs_f64(queue * 8.0 / capacity.as_bps() as f64);
            let sample = Sample {
                acked: acked as u64,
                waiting: Bytes::new(0),
                rtt: BASE + delay,
                rtt_min: Some(BASE),
            };
            rate = follow.on_sample(now, sample);
            if step > steps / 2 {
                sum += rate.as_bps() as f64;
                worst = worst.max(delay);
            }
        }
        (sum / f64::from(steps / 2) / capacity.as_bps() as f64, worst)
    }

    #[test]
    fn it_uses_the_path_and_keeps_its_queue_short() {
        for (capacity, start) in [(300, 450), (500, 450), (1000, 450), (300, 1500), (1000, 100)] {
            let (share, worst) = run(capacity, start);
            assert!(share > 0.7 && share < 1.0, "{capacity} from {start}: {share}");
            assert!(worst < Duration::from_millis(400), "{capacity} from {start}: {worst}");
        }
    }

    #[test]
    fn what_waits_for_the_connection_counts_and_the_most_is_kept() {
        let mut follow = Follow::new(BitRate::from_mbps(3), BitRate::from_mbps(1));
        let sample = |acked, waiting| Sample {
            acked,
            waiting: Bytes::new(waiting),
            rtt: BASE,
            rtt_min: Some(BASE),
        };
        let first = follow.on_sample(Time::ZERO, Sample { rtt_min: None, ..sample(0, 0) });
        assert!((999_990..=1_000_000).contains(&first.as_bps()), "{first}");
        for step in 1..20 {
            // 800 kbit/s are acknowledged.
            follow.on_sample(Time::ZERO + STEP * step, sample(5000 * step, 0));
        }
        let lower = follow.on_sample(Time::from_secs(1), sample(100_000, 50_000));
        assert!(lower < BitRate::from_kbps(300), "{lower}: half a second of it waits");
    }

    /// An encoder that makes little, and now and then a key frame that waits for a moment.
    #[test]
    fn a_key_frame_that_waits_does_not_make_the_path_narrow() {
        let most = BitRate::from_kbps(1500);
        let mut follow = Follow::new(BitRate::from_kbps(450), most);
        let (mut acked, mut waiting, mut rate, mut least) = (0, 0, most, most);
        for step in 0..600 {
            // Of 1 Mbit/s, a still scene makes 100 kbit/s, and 25 kB more every two seconds.
            waiting += 625 + if step % 40 == 0 { 25_000 } else { 0 };
            let sent = u64::min(waiting, 6250);
            (waiting, acked) = (waiting - sent, acked + sent);
            let (rtt, rtt_min) = (BASE, Some(BASE));
            let sample = Sample { acked, waiting: Bytes::new(waiting), rtt, rtt_min };
            rate = follow.on_sample(Time::ZERO + STEP * step, sample);
            if step > 300 {
                least = least.min(rate);
            }
        }
        assert!(rate > BitRate::from_kbps(450), "{rate}");
        assert!(least > BitRate::from_kbps(250), "{least}");
    }
}
