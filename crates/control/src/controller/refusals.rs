//! Changes that nodes refused: each is tried again, after a longer and longer pause. Pure.

use std::collections::BTreeMap;

use suiro_units::{Duration, Time};

use crate::nmos::connection::Side;
use crate::plan::Change;

/// The pause after the first refusal.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(5);
/// Changes that are remembered at most; beyond it, all are forgotten and tried at once.
const REMEMBERED_MAX: usize = 1024;

/// A change, apart from its addresses.
type Key = (Side, u32, Option<String>, Vec<String>);

/// What was refused.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<Key, Refused>);

#[derive(Debug)]
struct Refused {
    reason: String,
    pause: Duration,
    until: Time,
}

fn key(change: &Change) -> Key {
    (change.side, change.stream, change.on.clone(), change.off.clone())
}

impl Refusals {
    /// Whether a change may be tried now.
    pub fn allows(&self, change: &Change, now: Time) -> bool {
        self.0.get(&key(change)).is_none_or(|refused| now >= refused.until)
    }

    /// A change was refused. True if the reason is news.
    pub fn refused(&mut self, change: &Change, reason: &str, now: Time) -> bool {
        if self.0.len() >= REMEMBERED_MAX {
            self.0.clear();
        }
        let (key, reason) = (key(change), reason.to_owned());
        let before = self.0.get(&key);
        let is_news = before.is_none_or(|before| before.reason != reason);
        let pause = before.map_or(FIRST, |before| (before.pause * 2).min(LONGEST));
        self.0.insert(key, Refused { reason, pause, until: now + pause });
        is_news
    }

    /// A change was accepted.
    pub fn accepted(&mut self, change: &Change) {
        self.0.retain(|(side, stream, ..), _| (*side, *stream) != (change.side, change.stream));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_is_refused_is_tried_less_and_less_often() {
        let change = |on: &str| Change {
            side: Side::Sender,
            stream: 1,
            to: Vec::new(),
            on: Some(on.to_owned()),
            off: Vec::new(),
        };
        let (one, other) = (change("n1"), change("n2"));
        let mut refusals = Refusals::default();
        let mut now = Time::ZERO;
        let mut tried = 0;
        while now < Time::from_secs(60) {
            if refusals.allows(&one, now) {
                tried += 1;
                assert_eq!(refusals.refused(&one, "why", now), tried == 1, "reported once");
            }
            now += Duration::from_millis(10);
        }
        // 0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, then every 5 s.
        assert_eq!(tried, 17);
        assert!(refusals.allows(&other, now), "another node is another change");
        assert!(refusals.refused(&one, "another reason", now));
        refusals.accepted(&other);
        assert!(refusals.allows(&one, now), "the stream is where it shall be");
    }
}
