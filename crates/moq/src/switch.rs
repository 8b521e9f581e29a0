//! How a viewer changes between the qualities of a video. Pure.
//!
//! [`Arrivals`] measures how long frames wait in queues, and what the path carries. **Down**: if every frame of a second
//! waits too long, or one much too long, or none arrives, the best quality below the received rate is asked for; the longer
//! frames wait, the lower, so that queues drain. The relay is asked at once to stop sending the old one, so that
//! the new one does not wait behind it. Frames that the relay has sent are played until the new one has come; those on their way
//! to the relay are lost. To receive both until then is worse: in a simulation like that of the tests, a path of
//! 700 kbit/s that a quality of 1.7 Mbit/s has filled then gets a queue of 27 s. A change to a lower quality is never taken
//! back: where it comes late, the path is full of the old one, and to return to that is to stay with it.
//!
//! **Up**: if frames have not waited for a while, the best quality that the measured capacity carries is asked for. No other
//! is tried, because one that the path does not carry fills a queue of seconds before anybody can know; only where all frames
//! are too small to measure the capacity, the next higher one is. The old quality is played on if the new one does not come in
//! time. One that fails is not tried again for a time that doubles with each failure. The allocator of layers in LiveKit's SFU
//! (`pkg/sfu/streamallocator`) has the same asymmetry: down at once, up after a time without congestion that grows with every
//! failed probe.
//!
//! The qualities of our publishers have the same frame numbers, and key frames at the same numbers, the multiples of
//! one. A change happens at a key frame of the new quality that is newer than every frame of the old one that was
//! played, so that a decoder always has what a frame refers to. A change to a higher quality is asked for shortly
//! before such a frame, so that both are received for a short time only.

use std::collections::VecDeque;

use suiro_units::{BitRate, Duration, Time};

use crate::arrivals::Arrivals;

/// Waiting longer is too long, if all frames of a second do.
const LONG: Duration = Duration::from_millis(250);
/// Waiting longer is much too long for any frame. More than a key frame needs where its quality fits.
const URGENT: Duration = Duration::from_millis(500);
/// Waiting no longer is short.
const SHORT: Duration = Duration::from_millis(80);
/// Without a frame for this time, something waits that does not arrive.
const SILENCE: Duration = Duration::from_millis(500);
/// How long the effect of a change is waited for: to a higher quality, and to a lower one, after which queues must drain.
/// The last is for the case that waiting grows: the old quality is still sent until an order has arrived.
const SETTLE_UP: Duration = Duration::from_secs(3);
const SETTLE_DOWN: Duration = Duration::from_secs(4);
const SETTLE_GROWTH: Duration = Duration::from_millis(500);
/// Share of the received rate that a lower quality may have: headers take a tenth.
const SHARE: f64 = 0.85;
/// In this time, what waits must be received next to the lower quality.
const DRAINED: Duration = Duration::from_secs(2);
/// Share of the measured capacity that a higher quality may have. Both count bytes of frames, without headers. The
/// measured capacity is a little low, because each link of the path receives a packet before it sends it. With a
/// publisher's and a viewer's link of 1 Mbit/s each, key frames of 6 kB show 0.7 to 0.8 Mbit/s, those of 20 kB 0.9 Mbit/s.
const MARGIN: f64 = 1.25;
/// The same for a quality that was tried and failed: where the measurement is not low, only what it shows is carried.
const MARGIN_AGAIN: f64 = 1.1;
/// For how long waiting must be short before a higher quality is tried.
const CALM: Duration = Duration::from_secs(2);
/// A quality that was given up, and any higher one, is not tried for this time. It doubles if the quality had been tried
/// shortly before, up to the most, until one is held for that long.
const BARRED: Duration = Duration::from_secs(8);
const BARRED_MOST: Duration = Duration::from_secs(64);
const HELD: Duration = Duration::from_secs(15);
/// How many frames before a key frame a higher quality is asked for.
const LEAD: u64 = 12;
/// A higher quality that has not come after this time is given up.
const GIVE_UP: Duration = Duration::from_secs(3);
/// For how long frames of the old quality are held back when the key frame of a higher one is due.
const HOLD: Duration = Duration::from_millis(600);
/// A lower quality that has not come after this time is replaced by the lowest.
const LATE: Duration = Duration::from_secs(4);
/// The lowest quality is asked for again if it has not come after this time.
const AGAIN: Duration = Duration::from_secs(30);
/// Frames that wait for a key frame, or for its time, at most.
const PICTURES_MAX: usize = 128;

/// What is to be subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Also receive this quality.
    Begin(usize),
    /// Have this quality sent no longer, but receive what is on its way.
    Stop(usize),
    /// Receive this quality no longer, not even what is on its way.
    End(usize),
}

/// A frame that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The quality of its track; 0 is the lowest.
    pub quality: usize,
    /// The number of its frame.
    pub number: u64,
    /// Whether it is a key frame.
    pub key: bool,
    /// From its departure until it had arrived.
    pub took: Duration,
    /// Its size in bytes.
    pub bytes: usize,
}

/// The changes of one viewer. `T` is a frame.
#[derive(Debug)]
pub struct Switch<T> {
    /// The bit rates of the qualities, from the lowest to the highest.
    rates: Vec<BitRate>,
    /// What is played; `None` before the first frame.
    playing: Option<usize>,
    /// What is to be played.
    wanted: usize,
    /// When it was asked for, or has come.
    asked: Time,
    /// How long the first frame of what is played waited, and how long the effect of it is waited for.
    at_first: Duration,
    settle: Duration,
    /// The newest number that was played, the newest key frame, and the frames from one key frame to the next.
    last: Option<u64>,
    key: Option<u64>,
    period: Option<u64>,
    /// From this number on, frames of the old quality are held back, since that time.
    until: Option<u64>,
    held: Vec<(u64, bool, T)>,
    held_since: Option<Time>,
    /// Frames of the new quality that arrived before its key frame.
    early: Vec<(u64, T)>,
    arrivals: Arrivals,
    short_since: Option<Time>,
    /// The quality that was given up last, and until when it is not tried; for how long the next one is not.
    barred: Option<(usize, Time)>,
    bar: Duration,
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
            at_first: Duration::ZERO,
            settle: SETTLE_UP,
            last: None,
            key: None,
            period: None,
            until: None,
            held: Vec::new(),
            held_since: None,
            early: Vec::new(),
            arrivals: Arrivals::default(),
            short_since: None,
            barred: None,
            bar: BARRED,
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

    /// A frame has arrived. Returns what is to be played because of it.
    pub fn on_picture(&mut self, now: Time, arrival: Arrival, picture: T) -> Vec<T> {
        let Arrival { quality, number, key, took, bytes } = arrival;
        if self.playing != Some(quality) && self.wanted != quality {
            return Vec::new();
        }
        self.arrivals.on_picture(now, took, bytes);
        if self.playing == Some(quality) {
            return self.on_old(now, (number, key), picture);
        }
        if !key || self.last.is_some_and(|last| number <= last) {
            if self.early.len() < PICTURES_MAX {
                self.early.push((number, picture));
            }
            return Vec::new();
        }
        let mut pictures = self.release(Some(number));
        self.change(now, quality);
        self.played(number, true);
        pictures.push(picture);
        for (number, picture) in std::mem::take(&mut self.early) {
            if self.last < Some(number) {
                self.played(number, false);
                pictures.push(picture);
            }
        }
        pictures
    }

    /// A frame of the quality that is played.
    fn on_old(&mut self, now: Time, (number, key): (u64, bool), picture: T) -> Vec<T> {
        if self.until.is_some_and(|until| number >= until) {
            let since = *self.held_since.get_or_insert(now);
            if now.saturating_since(since) <= HOLD && self.held.len() < PICTURES_MAX {
                self.held.push((number, key, picture));
                return Vec::new();
            }
            self.stay(now);
        }
        let mut pictures = self.release(None);
        self.played(number, key);
        pictures.push(picture);
        pictures
    }

    /// What was held back and is older than the new quality, if that has come.
    fn release(&mut self, new: Option<u64>) -> Vec<T> {
        self.held_since = None;
        let held = std::mem::take(&mut self.held).into_iter();
        let held = held.filter(|(number, ..)| new.is_none_or(|new| *number < new));
        held.map(|(number, key, picture)| {
            self.played(number, key);
            picture
        })
        .collect()
    }

    /// The new quality is played from its key frame on.
    fn change(&mut self, now: Time, quality: usize) {
        if let Some(before) = self.playing.replace(quality) {
            self.orders.push_back(Order::End(before));
            self.changes += 1;
            let higher = quality > before;
            self.went_up = higher.then_some(now);
            self.settle = if higher { SETTLE_UP } else { SETTLE_DOWN };
        }
        (self.until, self.short_since) = (None, None);
        // What waited on the way of the old one says nothing of the new one.
        self.asked = now;
        self.at_first = self.arrivals.newest_waited().unwrap_or_default();
    }

    fn played(&mut self, number: u64, key: bool) {
        self.last = self.last.max(Some(number));
        // Those in turn are at multiples; one that begins a quality or another size of frames is not.
        if key && self.period.is_none_or(|period| number.is_multiple_of(period)) {
            let before = self.key.replace(number);
            let period = before.and_then(|before| number.checked_sub(before));
            let in_turn = |period: &u64| *period > 0 && number.is_multiple_of(*period);
            self.period = period.filter(in_turn).or(self.period);
        }
    }

    /// The first key frame after all that was played, as far as is known.
    fn next_key(&self) -> Option<u64> {
        let (period, last) = (self.period?, self.last?);
        Some((last / period + 1) * period)
    }

    /// Decides, every few milliseconds.
    pub fn on_time(&mut self, now: Time) {
        let (Some(playing), Some(heard)) = (self.playing, self.arrivals.heard()) else { return };
        let silence = now.saturating_since(heard);
        let waited = self.arrivals.newest_waited().unwrap_or_default();
        let urgent = silence > SILENCE || waited > URGENT;
        let since = now.saturating_since(self.asked);
        if self.wanted > playing {
            if urgent || since > GIVE_UP {
                self.stay(now);
            }
            return;
        }
        if self.wanted < playing {
            if since > if self.wanted > 0 { LATE } else { AGAIN } {
                self.orders.push_back(Order::End(self.wanted));
                self.ask(now, 0);
            }
            return;
        }
        let waits = self.arrivals.waiting(now, self.asked);
        let long = urgent || waits.is_some_and(|waits| waits > LONG);
        let short = !urgent && waits.is_some_and(|waits| waits <= SHORT);
        self.short_since = short.then(|| self.short_since.unwrap_or(now));
        if self.went_up.take_if(|at| now.saturating_since(*at) >= HELD).is_some()
            && self.barred.is_some_and(|(quality, _)| quality <= playing)
        {
            self.bar = BARRED;
        }
        let grows = urgent
            && silence.max(waited) > self.at_first + LONG
            && since >= self.at_first + SETTLE_GROWTH;
        if playing > 0 && (grows || long && since >= self.settle) {
            self.down(now, playing);
        } else if self.short_since.is_some_and(|at| now.saturating_since(at) >= CALM) {
            self.up(now, playing);
        }
    }

    fn down(&mut self, now: Time, playing: usize) {
        let failed = self.went_up.take().is_some();
        self.bar(now, playing, failed);
        let waited = self.arrivals.newest_waited().unwrap_or_default();
        let drains = (1.0 - waited.as_secs_f64() / DRAINED.as_secs_f64()).max(0.0);
        let carried = self.arrivals.received(now).mul_f64(SHARE * drains);
        let to = self.rates[..playing].iter().rposition(|rate| *rate <= carried).unwrap_or(0);
        self.arrivals.forget_capacity();
        self.ask(now, to);
        self.orders.push_back(Order::Stop(playing));
    }

    fn up(&mut self, now: Time, playing: usize) {
        let barred = self.barred.filter(|(_, until)| now < *until).map(|(quality, _)| quality);
        let end = barred.unwrap_or(self.rates.len());
        let first = playing + 1;
        let higher = self.rates.get(first..end).unwrap_or_default();
        let failed = self.barred.filter(|_| self.bar > BARRED).map(|(quality, _)| quality);
        let margin = |quality| match failed {
            Some(failed) if quality >= failed => MARGIN_AGAIN,
            _ => MARGIN,
        };
        let to = match self.arrivals.capacity(now) {
            Some(carried) => (0..higher.len())
                .rfind(|&index| higher[index] <= carried.mul_f64(margin(first + index))),
            None => (!higher.is_empty()).then_some(0),
        };
        let soon = |key: u64, last: u64| key - last <= LEAD;
        if let Some(to) = to
            && self.next_key().zip(self.last).is_some_and(|(key, last)| soon(key, last))
        {
            self.until = self.next_key();
            self.ask(now, first + to);
        }
    }

    fn ask(&mut self, now: Time, to: usize) {
        (self.wanted, self.asked) = (to, now);
        self.early.clear();
        self.orders.push_back(Order::Begin(to));
    }

    /// Gives a higher quality up.
    fn stay(&mut self, now: Time) {
        let Some(playing) = self.playing else { return };
        self.orders.push_back(Order::End(self.wanted));
        self.bar(now, self.wanted, true);
        (self.wanted, self.until, self.asked) = (playing, None, now);
        self.early.clear();
    }

    /// Does not try a quality for a while; for a longer one if it has failed soon.
    fn bar(&mut self, now: Time, quality: usize, failed: bool) {
        self.barred = Some((quality, now + self.bar));
        if failed {
            self.bar = (self.bar * 2).min(BARRED_MOST);
        }
        self.short_since = None;
    }
}

#[cfg(test)]
mod tests;
