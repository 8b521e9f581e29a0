//! Which packets a receiver asks for again: RFC 4585 §6.2.1, answered by RFC 4588.
//!
//! With two members in the session feedback may be sent at once (RFC 4585 §3.3, *immediate feedback
//! mode*). What it costs is bounded here.

use std::collections::BTreeMap;

use suiro_units::{Duration, Time};

use super::NACK_MAX;

/// How long a packet may be late before it is asked for: reordering is no loss.
const REORDER: Duration = Duration::from_millis(10);
/// How often one packet is asked for at most.
const TRIES_MAX: u32 = 5;
/// The round-trip time before it is known.
const RTT_FIRST: Duration = Duration::from_millis(100);
/// Most packets that are awaited at one time; of more, the first are given up.
const AWAITED_MAX: usize = 1024;

/// What is missing and worth asking for.
#[derive(Debug, Clone, Default)]
pub struct Nacks {
    /// By extended number.
    awaited: BTreeMap<u64, Awaited>,
    /// Smoothed as TCP does (RFC 6298 §2); `None` before the first answer.
    rtt: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Awaited {
    /// When it is asked for next.
    next: Time,
    /// When it was asked for last.
    asked: Option<Time>,
    tries: u32,
    /// When it is of no use any more.
    until: Time,
}

impl Nacks {
    /// A packet is missing; from `until` on it is of no use.
    pub fn miss(&mut self, now: Time, sequence: u64, until: Time) {
        let awaited = Awaited { next: now + REORDER, asked: None, tries: 0, until };
        self.awaited.insert(sequence, awaited);
        if self.awaited.len() > AWAITED_MAX {
            self.awaited.pop_first();
        }
    }

    /// The original has come, late: it answers nothing, so it says nothing about the round-trip time.
    pub fn late(&mut self, sequence: u64) {
        self.awaited.remove(&sequence);
    }

    /// It has been sent again. True if it was asked for.
    pub fn again(&mut self, now: Time, sequence: u64) -> bool {
        let Some(awaited) = self.awaited.remove(&sequence) else { return false };
        let Some(asked) = awaited.asked else { return false };
        if awaited.tries == 1 {
            // Karn's rule: an answer to one of several requests gives no round-trip time.
            let sample = now.saturating_since(asked);
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.mul_f64(0.875) + sample / 8));
        }
        true
    }

    /// When there is something to ask for; `None`: nothing is awaited.
    pub fn next(&self) -> Option<Time> {
        self.awaited.values().map(|awaited| awaited.next).min()
    }

    /// What to ask for now, [`NACK_MAX`] at most. What could not come in time any more, or was asked for
    /// often enough, is given up.
    pub fn poll(&mut self, now: Time) -> Vec<u16> {
        let rtt = self.rtt.unwrap_or(RTT_FIRST);
        // RFC 4588 has no rule; an answer that cannot be here in time is not asked for.
        self.awaited.retain(|_, awaited| {
            awaited.next > now || awaited.tries < TRIES_MAX && now + rtt <= awaited.until
        });
        let due = self.awaited.iter_mut().filter(|(_, awaited)| awaited.next <= now);
        due.take(NACK_MAX)
            .map(|(sequence, awaited)| {
                awaited.tries += 1;
                awaited.asked = Some(now);
                // Half as long again, for what varies.
                awaited.next = now + rtt.mul_f64(1.5).max(REORDER);
                *sequence as u16
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn what_is_only_late_is_not_asked_for() {
        let mut nacks = Nacks::default();
        nacks.miss(ms(0), 65_537, ms(1000));
        assert!(nacks.poll(ms(5)).is_empty());
        nacks.late(65_537);
        assert_eq!(nacks.next(), None);
    }

    #[test]
    fn an_original_that_comes_late_tells_no_round_trip_time() {
        let mut nacks = Nacks::default();
        nacks.miss(ms(0), 1, ms(1000));
        assert_eq!(nacks.poll(ms(10)), [1]);
        nacks.late(1);
        assert!(!nacks.again(ms(50), 1), "it is not awaited any more");
        nacks.miss(ms(100), 2, ms(1000));
        assert_eq!(nacks.poll(ms(110)), [2]);
        // Half as long again as the first round-trip time, as before any answer.
        assert_eq!(nacks.next(), Some(ms(260)));
    }

    #[test]
    fn it_is_asked_for_again_until_it_would_be_too_late() {
        let mut nacks = Nacks::default();
        nacks.miss(ms(0), 65_537, ms(400));
        let mut asked = Vec::new();
        while let Some(at) = nacks.next() {
            for sequence in nacks.poll(at) {
                assert_eq!(sequence, 1);
                asked.push(at);
            }
        }
        assert_eq!(asked, [ms(10), ms(160)]);
    }

    #[test]
    fn answers_tell_the_round_trip_time() {
        let mut nacks = Nacks::default();
        nacks.miss(ms(0), 1, ms(1000));
        assert_eq!(nacks.poll(ms(10)), [1]);
        assert!(nacks.again(ms(50), 1));
        nacks.miss(ms(100), 2, ms(145));
        assert!(nacks.poll(ms(110)).is_empty(), "40 ms are too long");
        nacks.miss(ms(100), 3, ms(1000));
        nacks.poll(ms(110));
        assert_eq!(nacks.next(), Some(ms(170)));
    }

    #[test]
    fn what_is_awaited_is_bounded() {
        let mut nacks = Nacks::default();
        for sequence in 0..5000 {
            nacks.miss(ms(0), sequence, ms(1000));
        }
        assert_eq!(nacks.awaited.len(), AWAITED_MAX);
        assert_eq!(nacks.poll(ms(10)).len(), NACK_MAX);
    }
}
