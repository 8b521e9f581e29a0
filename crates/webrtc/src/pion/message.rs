//! Messages between an endpoint and pion's program: a line of JSON each, in both directions. An order to send a frame is
//! followed by the frame's bytes. `crates/webrtc/pion/publisher/format.go` has the other end, with the same names.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use suiro_record::words::SessionEnd;

/// The version of these messages.
pub(super) const FORMAT: u64 = 2;
/// Largest frame that the program takes, in bytes.
pub(super) const FRAME_MAX: usize = 4 << 20;

/// What the program is to do, besides what [`crate::desk::Order`] has.
#[derive(Debug, Serialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub(super) enum Order {
    /// The first.
    Set { setup: Setup },
    /// A frame for all sessions, whose bytes follow.
    Frame { frame: Frame },
}

/// What holds for all sessions.
#[derive(Debug, Serialize)]
pub(super) struct Setup {
    /// The addresses that become candidates.
    pub addresses: Vec<IpAddr>,
    /// The estimate to begin with, and the most.
    pub start_bps: u64,
    pub max_bps: u64,
    /// CLOCK_MONOTONIC at the trial's epoch, from which the program counts.
    pub epoch_monotonic_ns: u64,
}

/// What is said of a frame: the fields of its mark, its times, and its size.
#[derive(Debug, Serialize)]
pub(super) struct Frame {
    pub number: u32,
    pub references: u8,
    pub rate_bps: u32,
    pub key: bool,
    pub captured_ns: u64,
    pub captured_unix_ns: u64,
    pub timestamp: u32,
    pub bytes: usize,
}

/// What the program says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Said {
    /// The first: it runs, and which libraries it has, by name.
    Ready { format: u64, versions: BTreeMap<String, String> },
    /// The answer to an offer, and what both ends agreed on.
    Answer {
        session: u64,
        answer: String,
        candidates: Vec<String>,
        codec: String,
        payload_types: String,
        feedback: String,
        extensions: String,
    },
    /// An offer is not answered; `busy`: another time it might be.
    Refused { session: u64, reason: String, busy: bool },
    /// Media can flow.
    Connected { session: u64, t_ns: u64 },
    /// What congestion control allows, and bytes that wait for the pacer.
    Rate { session: u64, target_bps: u64, queue_bytes: u64 },
    /// An interval of statistics is over.
    Statistics(Box<Counted>),
    /// The viewer needs a key frame.
    KeyFrame { session: u64 },
    /// A session is over.
    Ended { session: u64, t_ns: u64, why: Why },
}

/// What was counted since the last statistics. Bytes are those of IP packets.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Counted {
    pub session: u64,
    pub t_ns: u64,
    pub target_bps: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub rtt_ns: Option<u64>,
    pub loss_ratio: Option<f64>,
    pub nacks: u64,
    pub retransmissions: u64,
    pub plis: u64,
    pub firs: u64,
    /// Frames that were not sent because too many packets waited.
    pub left_out: u64,
    pub queue_bytes: u64,
    pub queue_ns: u64,
    pub local: Option<SocketAddr>,
    pub remote: Option<SocketAddr>,
    pub first_packet_ns: Option<u64>,
}

/// Why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Why {
    Deleted,
    Closed,
    Consent,
    Unanswered,
}

impl From<Why> for SessionEnd {
    fn from(why: Why) -> Self {
        match why {
            Why::Deleted => Self::Deleted,
            Why::Closed => Self::Closed,
            Why::Consent => Self::Consent,
            Why::Unanswered => Self::Unanswered,
        }
    }
}

/// Reads a line of the program.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse(line: &str) -> Result<Said, String> {
    let said: Said = serde_json::from_str(line).map_err(|error| format!("a message: {error}"))?;
    if let Said::Statistics(counted) = &said
        && let Some(loss) = counted.loss_ratio
        && !(0.0..=1.0).contains(&loss)
    {
        return Err(format!("a message: loss_ratio: expected 0 to 1, found {loss}"));
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATISTICS: &str = r#"{"said":"statistics","session":1,"t_ns":100,"target_bps":300000,"sent_bytes":10,"received_bytes":20,"rtt_ns":null,"loss_ratio":0.5,"nacks":1,"retransmissions":2,"plis":3,"firs":4,"left_out":0,"queue_bytes":5,"queue_ns":6,"local":"10.0.0.1:9","remote":"[fd00::2]:8","first_packet_ns":7}"#;

    #[test]
    fn what_the_program_says_is_read() {
        let Ok(Said::Statistics(counted)) = parse(STATISTICS) else { panic!("no statistics") };
        assert_eq!((counted.rtt_ns, counted.loss_ratio), (None, Some(0.5)));
        assert_eq!(counted.remote, Some("[fd00::2]:8".parse().unwrap()));
        let said = r#"{"said":"ended","session":3,"t_ns":5,"why":"consent"}"#;
        assert_eq!(parse(said), Ok(Said::Ended { session: 3, t_ns: 5, why: Why::Consent }));
        let said = r#"{"said":"key_frame","session":3}"#;
        assert_eq!(parse(said), Ok(Said::KeyFrame { session: 3 }));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let refused = |text: &str| parse(text).unwrap_err();
        for cut in 0..STATISTICS.len() {
            assert!(!refused(&STATISTICS[..cut]).is_empty(), "{cut}");
        }
        let with = |from: &str, to: &str| refused(&STATISTICS.replace(from, to));
        assert!(with("0.5", "1.5").contains("expected 0 to 1, found 1.5"));
        assert!(with("0.5", "1e999").contains("number out of range"));
        assert!(with("\"nacks\":1", "\"nacks\":-1").contains("invalid value"));
        assert!(with("\"nacks\":1", "\"nicks\":1").contains("unknown field `nicks`"));
        assert!(with("10.0.0.1:9", "10.0.0.1:99999").contains("invalid socket address"));
        assert!(with("statistics", "applause").contains("unknown variant `applause`"));
        assert!(refused(r#"{"said":"key_frame","session":1} {}"#).contains("trailing"));
        assert!(refused(&r#"{"a":"#.repeat(10_000)).contains("recursion limit"));
        assert!(
            refused(r#"{"said":"ended","session":3,"t_ns":5,"why":"bored"}"#).contains("bored")
        );
    }

    #[test]
    fn orders_have_the_names_that_the_program_reads() {
        let setup = Setup {
            addresses: vec!["10.0.0.1".parse().unwrap()],
            start_bps: 1,
            max_bps: 2,
            epoch_monotonic_ns: 3,
        };
        let set = r#"{"do":"set","setup":{"addresses":["10.0.0.1"],"start_bps":1,"max_bps":2,"epoch_monotonic_ns":3}}"#;
        assert_eq!(serde_json::to_string(&Order::Set { setup }).unwrap(), set);
    }
}
