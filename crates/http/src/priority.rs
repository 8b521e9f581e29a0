//! Priorities of responses that share a connection (RFC 9218); pure.
//!
//! A client says with its request how urgent the response is, from 0 (most) to 7, and whether it can use the beginning of it
//! before the rest is there (*incremental*). Of everything that waits on a connection of HTTP/2 or HTTP/3, the most urgent is sent
//! first. Of equally urgent responses, those that are not incremental follow one another in the order of the requests. The
//! incremental ones share what is left.
//!
//! QUIC sends its streams by rank. h2 sends what it has of all responses in turns, so `serving` gives it no more of one while one of
//! a higher rank has something to send. What h2 has by then, 32 KiB of each, does not give way. A request cannot be given another
//! priority later, because h2 and h3 skip the frame `PRIORITY_UPDATE`.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use crate::fields::{self, Value};

/// The header of requests.
pub(crate) const PRIORITY: HeaderName = HeaderName::from_static("priority");
/// Urgency of what is not said to have another (§4.1).
const URGENCY: u8 = 3;
/// The least urgent.
const URGENCY_MAX: u8 = 7;
/// Ranks of one urgency: how many responses of a connection have one of their own.
const STEPS: i32 = 1 << 27;

/// How urgent a response is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    /// From 0, the most urgent, to 7.
    pub urgency: u8,
    /// True if the client uses what has come before the rest is there.
    pub incremental: bool,
}

impl Default for Priority {
    /// §4: of a request that says nothing.
    fn default() -> Self {
        Self { urgency: URGENCY, incremental: false }
    }
}

impl Priority {
    /// Reads the value of the header. What has another type, is out of range or unknown is ignored (§4); `None` if the whole
    /// is no dictionary.
    pub fn parse(text: &str) -> Option<Self> {
        let mut found = Self::default();
        // Of a key that comes twice, the last counts (RFC 8941 §3.2).
        for member in fields::dictionary(text).ok()? {
            match (member.key.as_str(), member.value) {
                ("u", Value::Integer(urgency)) => {
                    let urgency = u8::try_from(urgency).ok().filter(|u| *u <= URGENCY_MAX);
                    found.urgency = urgency.unwrap_or(found.urgency);
                }
                ("i", Value::Boolean(incremental)) => found.incremental = incremental,
                _ => {}
            }
        }
        Some(found)
    }

    /// What a request says; `None` if it says nothing that can be read. Several headers are one list (§5).
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(PRIORITY).iter();
        let first = lines.next()?.to_str().ok()?.to_owned();
        let joined = lines.try_fold(first, |joined, line| {
            let line = line.to_str().ok()?;
            (joined.len() + line.len() < fields::TEXT_MAX).then(|| format!("{joined},{line}"))
        });
        Self::parse(&joined?)
    }

    /// The header's value; defaults are left out, unless nothing would be left (RFC 8941 §4.1: an empty dictionary has no field).
    pub(crate) fn written(self) -> HeaderValue {
        let is_said = self.urgency != URGENCY || !self.incremental;
        let urgency = is_said.then(|| format!("u={}", self.urgency));
        let incremental = self.incremental.then(|| "i".to_owned());
        let text: Vec<String> = urgency.into_iter().chain(incremental).collect();
        HeaderValue::try_from(text.join(",")).expect("letters, digits and commas")
    }

    /// The rank of a response among those of its connection, below 0: whatever has the highest is sent first, and those of the
    /// same rank take turns. `request` counts the requests of the connection (§10).
    pub(crate) fn rank(self, request: u64) -> i32 {
        let urgency = i32::from(self.urgency.min(URGENCY_MAX));
        let last = STEPS - 1;
        // Beyond so many requests, the later ones take turns.
        let step = i32::try_from(request).unwrap_or(last).min(last - 1);
        -1 - urgency * STEPS - if self.incremental { last } else { step }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(urgency: u8, incremental: bool) -> Priority {
        Priority { urgency, incremental }
    }

    #[test]
    fn what_can_be_read_counts_and_the_rest_is_ignored() {
        for (text, expected) in [
            ("u=5, i", of(5, true)),
            ("i=?0,u=0", of(0, false)),
            ("", of(3, false)),
            // Out of range, of another type, unknown.
            ("u=8,i", of(3, true)),
            ("u=-1", of(3, false)),
            ("u=2.0,i=1", of(3, false)),
            ("u=\"1\"", of(3, false)),
            ("u,i=a", of(3, false)),
            ("x=1;u=7,u=2;i", of(2, false)),
            ("u=1,u=6", of(6, false)),
            ("u=1,u=9", of(1, false)),
        ] {
            assert_eq!(Priority::parse(text), Some(expected), "{text}");
        }
        for text in ["u=", "u=1,", "=", "u=1 i", "u=(1"] {
            assert_eq!(Priority::parse(text), None, "{text}");
        }
    }

    #[test]
    fn several_headers_are_one() {
        let mut headers = HeaderMap::new();
        assert_eq!(Priority::read(&headers), None);
        headers.append(PRIORITY, HeaderValue::from_static("u=1"));
        headers.append(PRIORITY, HeaderValue::from_static("i"));
        assert_eq!(Priority::read(&headers), Some(of(1, true)));
        for _ in 0..100 {
            headers.append(PRIORITY, HeaderValue::try_from("a".repeat(100)).expect("letters"));
        }
        assert_eq!(Priority::read(&headers), None, "too long to be read");
    }

    #[test]
    fn what_is_urgent_has_a_high_rank() {
        let ranks = [
            of(0, false).rank(9),
            of(1, false).rank(0),
            of(1, false).rank(1),
            of(1, false).rank(u64::MAX),
            of(1, true).rank(0),
            of(2, false).rank(0),
            of(7, true).rank(0),
        ];
        assert!(ranks.is_sorted_by(|a, b| a > b) && ranks[0] < 0, "{ranks:?}");
        assert_eq!(of(4, true).rank(1), of(4, true).rank(2), "incremental ones take turns");
    }

    #[test]
    fn values_by_hand() {
        let written = |priority: Priority| priority.written().to_str().expect("ASCII").to_owned();
        let values = [of(3, false), of(3, true), of(0, false), of(5, true)].map(written);
        assert_eq!(values, ["u=3", "i", "u=0", "u=5,i"]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(urgency in 0u8..8, incremental: bool) {
            let priority = of(urgency, incremental);
            let mut headers = HeaderMap::new();
            headers.append(PRIORITY, priority.written());
            prop_assert_eq!(Priority::read(&headers), Some(priority));
        }
    }
}
