//! How a viewer changes between the qualities of a video. Pure.
//!
//! The time that pictures take from capture to arrival, less the least time that one ever took, is the time that they wait
//! in queues: those of publisher and relay, and those of the path. While it is long, the next lower quality that is below
//! the received rate is played; when it has been short for a while, the next higher one is tried. An attempt that fails
//! doubles that while.
//!
//! The qualities of our publishers have the same frame numbers, and key frames at the same numbers, the multiples of one. A change happens at a
//! key frame of the new quality that is newer than every picture of the old one that was played, so that a decoder always
//! has what a picture refers to. A change to a higher quality is asked for shortly before such a frame, so that both are
//! received for a short time only.

use std::collections::VecDeque;

use suiro_units::{BitRate, Duration, Time};

/// The time over which delay and rate are judged.
const OVER: Duration = Duration::from_secs(1);
/// Waiting longer is too long.
const LONG: Duration = Duration::from_millis(250);
/// Waiting no longer is short.
const SHORT: Duration = Duration::from_millis(80);
/// Without a picture for this time, something waits that does not arrive.
const SILENCE: Duration = Duration::from_millis(700);
/// How long the effect of a change is waited for: to a higher quality, and to a lower one, after which queues must drain.
const SETTLE_UP: Duration = Duration::from_millis(1500);
const SETTLE_DOWN: Duration = Duration::from_secs(4);
/// Share of the received rate that a lower quality may have: headers take a tenth.
const SHARE: f64 = 0.85;
/// For how long waiting must be short before a higher quality is tried: at first, after a failure, and at most.
const UP_FIRST: Duration = Duration::from_secs(2);
const UP_AGAIN: Duration = Duration::from_secs(8);
const UP_MOST: Duration = Duration::from_secs(64);
/// A higher quality that is given up within this time has failed.
const FAILED_WITHIN: Duration = Duration::from_secs(15);
/// How many frames before a key frame a higher quality is asked for.
const LEAD: u64 = 12;
/// A change that has not happened after this time is given up.
const GIVE_UP: Duration = Duration::from_secs(5);
/// Pictures of the new quality that arrived before their key frame, at most.
const EARLY_MAX: usize = 128;
/// Samples that are kept at most.
const SAMPLES_MAX: usize = 512;

/// What is to be subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Also receive this quality.
    Begin(usize),
    /// Receive this quality no longer.
    End(usize),
}

/// A picture that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The quality of its track; 0 is the lowest.
    pub quality: usize,
    /// The number of its frame.
    pub number: u64,
    /// Whether it is a key frame.
    pub key: bool,
    /// From its capture until it had arrived.
    pub took: Duration,
    /// Its size in bytes.
    pub bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Time,
    took: Duration,
    bytes: usize,
}

/// The changes of one viewer. `T` is a picture.
#[derive(Debug)]
pub struct Switch<T> {
    /// The bit rates of the qualities, from the lowest to the highest.
    rates: Vec<BitRate>,
    /// What is played; `None` before the first picture.
    playing: Option<usize>,
    /// What is to be played.
    wanted: usize,
    /// When it was asked for.
    asked: Time,
    /// The newest number that was played, the newest key frame, and the frames from one key frame to the next.
    last: Option<u64>,
    key: Option<u64>,
    period: Option<u64>,
    /// From this number on, the old quality is not played any more.
    until: Option<u64>,
    /// Pictures of the new quality that arrived before its key frame.
    early: Vec<(u64, T)>,
    samples: VecDeque<Sample>,
    least: Option<Duration>,
    heard: Option<Time>,
    short_since: Option<Time>,
    up_after: Duration,
    went_up: Option<Time>,
    changes: u64,
    orders: VecDeque<Order>,
}

impl<T> Switch<T> {
    /// Begins with the lowest of the qualities, whose bit rates rise.
    pub fn new(now: Time, rates: Vec<BitRate>) -> Self {
        Self {
            rates,
            playing: None,
            wanted: 0,
            asked: now,
            last: None,
            key: None,
            period: None,
            until: None,
            early: Vec::new(),
            samples: VecDeque::new(),
            least: None,
            heard: None,
            short_since: None,
            up_after: UP_FIRST,
            went_up: None,
            changes: 0,
            orders: [Order::Begin(0)].into(),
        }
    }

    /// How often the quality has changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The next thing to do.
    pub fn take_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// A picture has arrived. Returns what is to be played because of it.
    pub fn on_picture(&mut self, now: Time, arrival: Arrival, picture: T) -> Vec<T> {
        let Arrival { quality, number, key, .. } = arrival;
        if self.playing == Some(quality) {
            self.sample(now, arrival);
            if self.until.is_some_and(|until| number >= until) {
                return Vec::new();
            }
            self.played(number, key);
            return vec![picture];
        }
        if quality != self.wanted {
            return Vec::new();
        }
        if !key || self.last.is_some_and(|last| number <= last) {
            if self.early.len() < EARLY_MAX {
                self.early.push((number, picture));
            }
            return Vec::new();
        }
        self.change(now, arrival);
        let mut early = std::mem::take(&mut self.early);
        early.retain(|(other, _)| *other > number);
        early.iter().for_each(|(number, _)| self.played(*number, false));
        std::iter::once(picture).chain(early.into_iter().map(|(_, picture)| picture)).collect()
    }

    /// The new quality is played from this key frame on.
    fn change(&mut self, now: Time, arrival: Arrival) {
        if let Some(before) = self.playing.replace(arrival.quality) {
            self.orders.push_back(Order::End(before));
            self.changes += 1;
            self.went_up = (arrival.quality > before).then_some(now);
        }
        // What waited on the way of the old one says nothing of the new one.
        self.samples.clear();
        (self.until, self.short_since, self.asked) = (None, None, now);
        self.sample(now, arrival);
        self.played(arrival.number, true);
    }

    fn played(&mut self, number: u64, key: bool) {
        self.last = self.last.max(Some(number));
        if key {
            let before = self.key.replace(number);
            let period = before.and_then(|before| number.checked_sub(before));
            // Those in turn are at multiples; one that begins a quality or another size of pictures is not.
            let in_turn = |period: &u64| *period > 0 && number.is_multiple_of(*period);
            self.period = period.filter(in_turn).or(self.period);
        }
    }

    fn sample(&mut self, now: Time, Arrival { took, bytes, .. }: Arrival) {
        self.least = Some(self.least.map_or(took, |least| least.min(took)));
        self.heard = Some(now);
        self.samples.push_back(Sample { at: now, took, bytes });
        if self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
    }

    /// The first key frame after all that was played, as far as is known.
    fn next_key(&self) -> Option<u64> {
        let (period, last) = (self.period?, self.last?);
        Some((last / period + 1) * period)
    }

    /// Decides, every few milliseconds.
    pub fn on_time(&mut self, now: Time) {
        while self.samples.front().is_some_and(|first| now.saturating_since(first.at) > OVER) {
            self.samples.pop_front();
        }
        let (Some(playing), Some(heard)) = (self.playing, self.heard) else { return };
        let since = now.saturating_since(self.asked);
        if self.wanted != playing {
            if since > GIVE_UP {
                self.orders.push_back(Order::End(self.wanted));
                self.failed();
                (self.wanted, self.until, self.asked) = (playing, None, now);
                self.early.clear();
            }
            return;
        }
        let silent = now.saturating_since(heard) > SILENCE;
        let waits = self.samples.iter().map(|sample| sample.took).min();
        let waits = waits.zip(self.least).map(|(took, least)| took.saturating_sub(least));
        let long = silent || waits.is_some_and(|waits| waits > LONG);
        let short = !silent && waits.is_some_and(|waits| waits <= SHORT);
        self.short_since = short.then(|| self.short_since.unwrap_or(now));
        let went_down = self.went_up.is_none() && self.changes > 0;
        let settle = if went_down { SETTLE_DOWN } else { SETTLE_UP };
        if long && playing > 0 && since >= settle {
            self.down(now, playing);
        } else if self.short_since.is_some_and(|at| now.saturating_since(at) >= self.up_after) {
            self.up(now, playing);
        }
    }

    fn down(&mut self, now: Time, playing: usize) {
        if self.went_up.take().is_some_and(|at| now.saturating_since(at) < FAILED_WITHIN) {
            self.failed();
        } else {
            self.up_after = self.up_after.max(UP_AGAIN);
        }
        let bits = self.samples.iter().map(|sample| sample.bytes as f64 * 8.0).sum::<f64>();
        let fits = |rate: &BitRate| rate.as_bps() as f64 <= bits / OVER.as_secs_f64() * SHARE;
        let to = self.rates[..playing].iter().rposition(fits).unwrap_or(0);
        self.ask(now, to);
    }

    fn up(&mut self, now: Time, playing: usize) {
        let soon = |key: u64, last: u64| key - last <= LEAD;
        if playing + 1 < self.rates.len()
            && self.next_key().zip(self.last).is_some_and(|(key, last)| soon(key, last))
        {
            self.ask(now, playing + 1);
        }
    }

    fn ask(&mut self, now: Time, to: usize) {
        (self.wanted, self.asked, self.until) = (to, now, self.next_key());
        self.early.clear();
        self.orders.push_back(Order::Begin(to));
    }

    fn failed(&mut self) {
        self.up_after = (self.up_after * 2).max(UP_AGAIN).min(UP_MOST);
        self.short_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Duration = Duration::from_millis(40);
    /// Frames from one key frame to the next.
    const PERIOD: u64 = 50;

    /// A publisher, and a path before which pictures wait: those of the newest subscription are sent first.
    struct Path {
        /// What it carries in a frame time, in bits.
        carries: f64,
        /// Bit rates of the qualities, in kbit/s.
        rates: Vec<f64>,
        /// Since which number each is subscribed to.
        since: Vec<Option<u64>>,
        /// What waits: when it was captured, and how many bits of it are not sent yet.
        waits: Vec<(u64, f64, Arrival)>,
        switch: Switch<Arrival>,
        played: Vec<Arrival>,
    }

    impl Path {
        fn new(kbps: f64, rates: [u64; 3]) -> Self {
            let kbit = rates.map(BitRate::from_kbps);
            Self {
                carries: kbps * FRAME.as_millis_f64(),
                rates: rates.map(|rate| rate as f64).to_vec(),
                since: vec![None; 3],
                waits: Vec::new(),
                switch: Switch::new(Time::ZERO, kbit.to_vec()),
                played: Vec::new(),
            }
        }

        fn capture(&mut self, number: u64) {
            for quality in 0..self.rates.len() {
                let Some(since) = self.since[quality] else { continue };
                let key = number.is_multiple_of(PERIOD) || number == since;
                let bits =
                    self.rates[quality] * FRAME.as_millis_f64() * if key { 6.0 } else { 0.9 };
                let (took, bytes) = (Duration::ZERO, (bits / 8.0) as usize);
                let arrival = Arrival { quality, number, key, took, bytes };
                self.waits.push((number, bits, arrival));
            }
            let since = &self.since;
            self.waits.sort_by_key(|(number, _, arrival)| {
                (std::cmp::Reverse(since[arrival.quality]), *number)
            });
        }

        fn send(&mut self, now: u64) {
            let mut left = self.carries;
            while let Some((captured, bits, arrival)) = self.waits.first_mut() {
                let part = bits.min(left);
                (*bits, left) = (*bits - part, left - part);
                if *bits > 0.0 {
                    break;
                }
                let arrival = Arrival { took: FRAME * (now + 1 - *captured), ..*arrival };
                self.waits.remove(0);
                let at = Time::ZERO + FRAME * (now + 1);
                self.played.extend(self.switch.on_picture(at, arrival, arrival));
            }
        }

        fn run(&mut self, numbers: std::ops::Range<u64>) {
            for number in numbers {
                while let Some(order) = self.switch.take_order() {
                    match order {
                        Order::Begin(quality) => self.since[quality] = Some(number),
                        Order::End(quality) => {
                            self.since[quality] = None;
                            self.waits.retain(|(_, _, arrival)| arrival.quality != quality);
                        }
                    }
                }
                self.capture(number);
                self.send(number);
                self.switch.on_time(Time::ZERO + FRAME * (number + 1));
            }
        }

        /// Every picture comes after those of lower numbers, and a change is at a key frame.
        fn check(&self) {
            for pair in self.played.windows(2) {
                assert!(pair[0].number < pair[1].number, "{pair:?}");
                assert!(pair[0].quality == pair[1].quality || pair[1].key, "{pair:?}");
            }
        }
    }

    #[test]
    fn it_finds_the_best_quality_that_the_path_carries() {
        for (kbps, best) in [(2000.0, 2), (400.0, 1), (200.0, 0)] {
            let mut path = Path::new(kbps, [120, 250, 450]);
            path.run(0..3000);
            path.check();
            let last = &path.played[path.played.len() - 1000..];
            let share = |wanted: usize| {
                last.iter().filter(|picture| picture.quality == wanted).count() as f64 / 1000.0
            };
            let shares = [0, 1, 2].map(share);
            assert!(shares[best] > 0.7, "{kbps}: {shares:?}, {} changes", path.switch.changes());
        }
    }

    #[test]
    fn a_path_that_becomes_narrow_is_followed_without_a_long_gap() {
        let mut path = Path::new(1000.0, [120, 250, 450]);
        path.run(0..1000);
        assert_eq!(path.switch.playing, Some(2), "after 40 s");
        path.carries = 300.0 * FRAME.as_millis_f64();
        path.run(1000..1500);
        path.check();
        let after = path.played.iter().filter(|picture| picture.number > 1000);
        let worst = after.clone().map(|picture| picture.took).max().unwrap();
        let played: Vec<Duration> =
            after.map(|picture| FRAME * picture.number + picture.took).collect();
        let gap = played.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap();
        assert!(worst < Duration::from_millis(1500) && gap < LONG * 2, "{worst}, {gap}");
    }

    #[test]
    fn a_picture_that_arrives_before_its_key_frame_is_played_after_it() {
        let mut switch = Switch::new(Time::ZERO, vec![BitRate::from_kbps(100)]);
        let arrival = |number, key| {
            let took = Duration::from_millis(20);
            Arrival { quality: 0, number, key, took, bytes: 100 }
        };
        assert!(switch.on_picture(Time::ZERO, arrival(5, false), 5).is_empty());
        assert_eq!(switch.on_picture(Time::ZERO, arrival(4, true), 4), [4, 5]);
        assert_eq!(switch.on_picture(Time::ZERO, arrival(6, false), 6), [6]);
        assert_eq!((switch.take_order(), switch.changes()), (Some(Order::Begin(0)), 0));
    }
}
