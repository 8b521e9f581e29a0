//! How an encoder follows what its connection can send. Pure.
//!
//! While data waits in the connection, the rate at which bytes are acknowledged is the capacity of the path. While none
//! waits, it is only what the encoder made, and the capacity is at least that. Data waits in queues for the round-trip time
//! above the least one of the last seconds, and in the connection for the time that it takes to send it. If that is long, the
//! rate is lowered; if it is short, the rate grows. WebRTC's congestion control works in the same way
//! (draft-ietf-rmcat-gcc).
//!
//! A round-trip time above the least one is not always a queue of ours: the route may have become longer, or another sender
//! fills the queue. Lowering the rate again and again would then give up the path for nothing. So each lowering is a test. If
//! the queue is ours, as much is delivered as before until it is empty, although less is sent. If what is delivered falls with
//! what is sent, twice, the delay is not ours: it is left out for some time, and the rate returns to what it was before.
//! Nimbus (Goyal et al., "Elasticity detection", SIGCOMM 2022) tests the same with pulses of its rate.
//!
//! The least round-trip time is that of an empty path only if a queue of ours is emptied now and then. So the rate is also
//! lowered when the path has not been empty for two seconds.

use std::collections::VecDeque;

use suiro_rate::Least;
use suiro_realtime::Share;
use suiro_units::{BitRate, Bytes, Duration, Time};

/// The encoder gets 90 % of the rate: headers of MoQT, QUIC, UDP and IP take about a tenth with frames of this size. The
/// queue should be empty within half a second.
const SHARE: Share = Share { encoder: 0.9, drain: Duration::from_millis(500), least: 0.3 };
/// The time over which acknowledged bytes are a rate.
const OVER: Duration = Duration::from_millis(500);
/// A frame that takes this long to send shows what the path carries, though it is empty before and after.
const BURST: Duration = Duration::from_millis(150);
/// With a longer time in queues, besides that of one packet, the rate is lowered.
const LONG: Duration = Duration::from_millis(120);
/// With a shorter one the rate grows.
const SHORT: Duration = Duration::from_millis(60);
/// With a shorter one the path is empty.
const EMPTY: Duration = Duration::from_millis(15);
/// A full packet, and the least capacity that its time is computed for.
const PACKET: Bytes = Bytes::new(1500);
const NARROW: BitRate = BitRate::from_kbps(100);
/// What waits in the connection stands there, and is no key frame, if it waits in all samples of this time.
const STANDS: Duration = Duration::from_millis(250);
/// Share of what is delivered that the rate is lowered to, and the least share of itself.
const BACK: f64 = 0.92;
const BACK_MOST: f64 = 0.5;
/// How much the rate grows in a second: while the path is empty and the rate far below what it carried, and else.
const GROWTH: f64 = 0.5;
const GROWTH_SLOW: f64 = 0.15;
const FAR: f64 = 0.7;
/// The rate grows to at most this multiple of the capacity that was seen: a sender that sends little learns nothing more.
const AHEAD: f64 = 1.5;
const AHEAD_AT_LEAST: BitRate = BitRate::from_kbps(100);
/// The least round-trip time is that of so long a time.
const LEAST_OVER: Duration = Duration::from_secs(10);
/// The rate is lowered if the path has not been empty for so long.
const EMPTIED_EVERY: Duration = Duration::from_secs(2);
/// Until a lower rate is the encoder's, and over how long its effect is seen then.
const REACTION: Duration = Duration::from_millis(100);
const JUDGED_OVER: Duration = Duration::from_millis(400);
/// Clearly less is sent if it is at most this share of what was delivered.
const CLEARLY: f64 = 0.85;
/// With so many doubts, the delay is not ours. If what is delivered follows what is sent, that is two; if no less could be
/// sent, one.
const DOUBTS: u32 = 4;
/// For how long a delay is taken for not ours; longer than [`LEAST_OVER`], so that a longer route is not doubted again. For
/// twice that time, half of the doubts are enough.
const BELIEVED: Duration = Duration::from_secs(12);
/// In this time, in seconds, a delay that is not ours falls to one that is shorter.
const FALLS: f64 = 2.0;
/// How long samples are kept, and how many at most.
const KEPT: Duration = Duration::from_secs(12);
const SAMPLES_MAX: usize = 256;

/// What is known of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Bytes of packets that were sent since it began.
    pub sent: u64,
    /// Bytes of those that were acknowledged.
    pub acked: u64,
    /// Bytes that wait to be sent.
    pub waiting: Bytes,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// The newest round-trip time; `None` before the first acknowledgement.
    pub newest: Option<Duration>,
}

/// The rate of one encoder.
#[derive(Debug, Clone)]
pub struct Follow {
    allowed: BitRate,
    most: BitRate,
    samples: VecDeque<(Time, Sample)>,
    least: Least,
    /// Since when data has waited in each sample.
    busy_since: Option<Time>,
    /// When the path was empty last.
    empty: Option<Time>,
    /// What the path carried when it was last full, or more if it has carried more since.
    capacity: BitRate,
    /// What was delivered when the rate was lowered last.
    carried: Option<BitRate>,
    /// The delay that is not ours, and since when that is known.
    foreign: Option<(Time, Duration)>,
    lowered: Option<Lowered>,
    /// When a delay was found to be not ours last.
    judged: Option<Time>,
    at: Option<Time>,
}

/// The rate is lowered, until the path is empty or its delay turns out not to be ours.
#[derive(Debug, Clone, Copy)]
struct Lowered {
    since: Time,
    /// What is empty since then.
    emptied: Option<Time>,
    /// The rate, and the least round-trip time, when it was lowered first.
    before: BitRate,
    least: Duration,
    /// What was delivered when it was lowered last.
    delivered: BitRate,
    doubts: u32,
}

/// Where data waits, as times.
#[derive(Debug, Clone, Copy)]
struct Queues {
    rtt: Duration,
    /// The round-trip time above the least one.
    above: Duration,
    /// The part of it that is not ours.
    foreign: Duration,
    /// In the connection.
    waits: Duration,
    /// That of one packet.
    packet: Duration,
}

impl Queues {
    /// In queues of ours on the path.
    fn path(self) -> Duration {
        self.above.saturating_sub(self.foreign)
    }

    fn all(self) -> Duration {
        self.path() + self.waits
    }

    fn is_empty(self) -> bool {
        self.path() <= self.packet + EMPTY
    }

    fn is_short(self) -> bool {
        self.all() < self.packet + SHORT.max(self.foreign / 4)
    }

    /// A queue that others fill varies with its length.
    fn is_long(self) -> bool {
        self.all() > self.packet + LONG.max(self.foreign / 3)
    }
}

impl Follow {
    /// Begins at the rate `start`, and never exceeds `most`.
    pub fn new(start: BitRate, most: BitRate) -> Self {
        Self {
            allowed: start.min(most).mul_f64(1.0 / SHARE.encoder),
            most,
            samples: VecDeque::new(),
            least: Least::default(),
            busy_since: None,
            empty: None,
            capacity: BitRate::from_bps(0),
            carried: None,
            foreign: None,
            lowered: None,
            judged: None,
            at: None,
        }
    }

    /// What the encoder is to be set to.
    pub fn on_sample(&mut self, now: Time, sample: Sample) -> BitRate {
        let Some(newest) = sample.newest else { return self.encoder(Bytes::ZERO) };
        let passed = self.at.replace(now).map_or(Duration::ZERO, |at| now.saturating_since(at));
        self.keep(now, sample);
        let queues = self.queues(now, passed, (sample, newest));
        if queues.is_empty() {
            self.empty = Some(now);
        }
        let since = now.saturating_since(*self.empty.get_or_insert(now));
        if let Some(lowered) = self.lowered {
            self.judge(now, lowered, queues);
        } else if queues.is_long() || since > EMPTIED_EVERY {
            let delivered = self.acked_rate(now, OVER).unwrap_or(self.capacity);
            let lately = self.judged.is_some_and(|at| now.saturating_since(at) < BELIEVED * 2);
            let lowered = Lowered {
                since: now,
                emptied: None,
                before: self.allowed,
                least: sample.rtt.saturating_sub(queues.above),
                delivered,
                doubts: if lately { DOUBTS / 2 } else { 0 },
            };
            self.lower(lowered, queues);
        } else if queues.is_short() {
            self.grow(passed, queues);
        }
        // What is in the path's queues must drain too.
        let in_path = self.capacity.as_bps() as f64 / 8.0 * queues.path().as_secs_f64();
        self.encoder(Bytes::new(sample.waiting.get().saturating_add(in_path as u64)))
    }

    fn encoder(&self, queued: Bytes) -> BitRate {
        SHARE.encoder_rate(self.allowed, queued).min(self.most)
    }

    fn queues(
        &mut self,
        now: Time,
        passed: Duration,
        (sample, newest): (Sample, Duration),
    ) -> Queues {
        let rtt = sample.rtt;
        let above = rtt.saturating_sub(self.least(now, newest.min(rtt)));
        let packet = PACKET / self.capacity.max(NARROW);
        self.foreign = self.foreign.filter(|(at, _)| now.saturating_since(*at) < BELIEVED);
        if let Some((_, delay)) = &mut self.foreign {
            let less = delay.saturating_sub(above).mul_f64(passed.as_secs_f64() / FALLS);
            *delay = delay.saturating_sub(less);
        }
        if above <= packet + EMPTY {
            self.foreign = None;
        }
        let foreign = self.foreign.map_or(Duration::ZERO, |(_, delay)| delay);
        self.measure(now, above.saturating_sub(foreign), sample.waiting);
        let waits = self.stands(now) / self.capacity.max(BitRate::from_bps(1));
        Queues { rtt, above, foreign, waits, packet }
    }

    fn grow(&mut self, passed: Duration, queues: Queues) {
        let is_near = self.carried.is_some_and(|carried| self.allowed > carried.mul_f64(FAR));
        let is_empty = queues.all() <= queues.packet + EMPTY.max(queues.foreign / 6);
        let fast = is_empty && (!is_near || !queues.foreign.is_zero());
        let growth = if fast { GROWTH } else { GROWTH_SLOW };
        let grown = self.allowed.mul_f64(1.0 + growth * passed.as_secs_f64());
        let ahead = self.capacity.mul_f64(AHEAD).max(AHEAD_AT_LEAST).max(self.allowed);
        self.allowed = grown.min(ahead).min(self.most.mul_f64(1.0 / SHARE.encoder));
    }

    fn lower(&mut self, lowered: Lowered, queues: Queues) {
        let delivered = lowered.delivered;
        let back = delivered.mul_f64(BACK).max(self.allowed.mul_f64(BACK_MOST));
        self.allowed = self.allowed.min(back);
        self.lowered = Some(lowered);
        // What a connection that starts slowly delivers says nothing of the path.
        self.carried = if queues.path() > queues.waits { Some(delivered) } else { self.carried };
    }

    /// The rate is lowered. Whether the delay is ours shows when what is sent now is delivered.
    fn judge(&mut self, now: Time, lowered: Lowered, queues: Queues) {
        let Lowered { since, delivered, .. } = lowered;
        let is_empty = queues.is_empty() && queues.waits <= SHORT;
        let emptied = is_empty.then(|| lowered.emptied.unwrap_or(now));
        self.lowered = Some(Lowered { emptied, ..lowered });
        if let Some(at) = emptied {
            // The round-trip time is an older one.
            if now.saturating_since(at) >= queues.rtt + REACTION / 2 {
                self.lowered = None;
            }
            return;
        }
        let from = since + REACTION;
        if now.saturating_since(from) < queues.rtt + JUDGED_OVER {
            return;
        }
        let sent = self.rate(from, now.saturating_sub(queues.rtt), |sample| sample.sent);
        let acked = self.rate(from + queues.rtt, now, |sample| sample.acked);
        let Some((sent, acked)) = sent.zip(acked).filter(|(_, acked)| !acked.is_zero()) else {
            return;
        };
        let shows = sent <= delivered.mul_f64(CLEARLY);
        let ours = shows && acked.as_bps() >= (sent.as_bps() + delivered.as_bps()) / 2;
        let doubts = match (queues.path() > queues.waits, ours, shows) {
            (false, ..) => lowered.doubts,
            (true, true, _) => 0,
            (true, false, true) => lowered.doubts + 2,
            (true, false, false) => lowered.doubts + 1,
        };
        if doubts >= DOUBTS {
            self.foreign = Some((now, queues.above));
            (self.judged, self.empty, self.lowered) = (Some(now), Some(now), None);
            self.allowed = lowered.before;
            return;
        }
        self.foreign = self.foreign.filter(|_| !ours);
        self.capacity = acked;
        self.lower(
            Lowered { since: now, emptied: None, delivered: acked, doubts, ..lowered },
            queues,
        );
    }

    /// The least round-trip time lately. While the rate is lowered, that before does not become too old.
    fn least(&mut self, now: Time, rtt: Duration) -> Duration {
        self.least.add(now, rtt, LEAST_OVER);
        let least = self.least.get().unwrap_or(rtt);
        self.lowered.map_or(least, |lowered| lowered.least.min(least))
    }

    /// What has waited in the connection in all of the last samples.
    fn stands(&self, now: Time) -> Bytes {
        let lately = self.samples.iter().rev();
        let lately = lately.take_while(|(at, _)| now.saturating_since(*at) <= STANDS);
        lately.map(|(_, sample)| sample.waiting).min().unwrap_or(Bytes::ZERO)
    }

    /// Measures what the path carries. `path` is the time in queues of ours.
    fn measure(&mut self, now: Time, path: Duration, waiting: Bytes) {
        let busy = waiting > Bytes::ZERO || path > SHORT;
        self.busy_since = busy.then(|| self.busy_since.unwrap_or(now));
        let Some(delivered) = self.acked_rate(now, OVER) else { return };
        let lately = self.acked_rate(now, BURST);
        let most = lately.map_or(delivered, |lately| lately.max(delivered));
        // While less is sent to see what follows, it says nothing that less is delivered.
        let busy = self.busy_since.filter(|_| self.lowered.is_none());
        let busy = busy.map(|since| now.saturating_since(since));
        let full = busy.filter(|time| *time >= OVER / 2);
        let full = full.and_then(|time| self.acked_rate(now, time.min(OVER)));
        self.capacity = full.unwrap_or(self.capacity.max(most));
    }

    fn keep(&mut self, now: Time, sample: Sample) {
        self.samples.push_back((now, sample));
        let old = |entry: &(Time, Sample)| now.saturating_since(entry.0) > KEPT;
        while self.samples.front().is_some_and(old) || self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
    }

    /// The rate at which bytes were acknowledged in the last time of that length.
    fn acked_rate(&self, now: Time, over: Duration) -> Option<BitRate> {
        self.rate(now.saturating_sub(over), now, |sample| sample.acked)
    }

    /// The rate of a counter between two times; `None` if samples cover less than half of that time.
    fn rate(&self, from: Time, to: Time, of: fn(&Sample) -> u64) -> Option<BitRate> {
        let mut within = self.samples.iter().filter(|(at, _)| *at >= from && *at <= to);
        let (first, before) = within.next()?;
        let (last, after) = within.next_back()?;
        let time = last.saturating_since(*first);
        (time >= to.saturating_since(from) / 2).then(|| {
            let bits = of(after).saturating_sub(of(before)) as f64 * 8.0;
            BitRate::from_bps((bits / time.as_secs_f64()) as u64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(40);
    const STEP: Duration = Duration::from_millis(50);

    fn sample(sent: u64, acked: u64, waiting: u64, rtt: Duration) -> Sample {
        Sample { sent, acked, waiting: Bytes::new(waiting), rtt, newest: Some(rtt) }
    }

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
            let sample = sample((acked + queue) as u64, acked as u64, 0, BASE + delay);
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
        let sample = |acked, waiting| sample(acked, acked, waiting, BASE);
        let first = follow.on_sample(Time::ZERO, Sample { newest: None, ..sample(0, 0) });
        assert!((999_990..=1_000_000).contains(&first.as_bps()), "{first}");
        for step in 1..20 {
            // 800 kbit/s are acknowledged.
            follow.on_sample(Time::ZERO + STEP * step, sample(5000 * step, 0));
        }
        let at = |step| Time::from_secs(1) + STEP * step;
        let lower = follow.on_sample(at(0), sample(100_000, 50_000));
        assert!(lower < BitRate::from_kbps(350), "{lower}: half a second of it waits");
        let lower =
            (1..7).map(|step| follow.on_sample(at(step), sample(100_000 + 5000 * step, 50_000)));
        let lower = lower.last().expect("there are samples");
        assert!(lower < BitRate::from_kbps(260), "{lower}: it is no key frame");
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
            rate = follow.on_sample(Time::ZERO + STEP * step, sample(acked, acked, waiting, BASE));
            if step > 300 {
                least = least.min(rate);
            }
        }
        assert!(rate > BitRate::from_kbps(450), "{rate}");
        assert!(least > BitRate::from_kbps(250), "{least}");
    }
}
