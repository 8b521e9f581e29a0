//! The messages between agents and watchers, as bytes. Pure; input is untrusted until it is parsed.
//!
//! A message is its length in four bytes (big endian), then that many bytes. A request is JSON. An
//! answer is the length of its JSON in four bytes, the JSON, and then, for a batch, its events in
//! [`EVENT_BYTES`] each.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use suiro_record::words::KeyKind;

use crate::{
    ClockStatus, Cost, DropCause, Event, Flow, Key, Moment, Point, PointStatus, Recording, Second,
};

/// Most bytes in a request.
pub const REQUEST_BYTES_MAX: usize = 4 << 10;
/// Most bytes in an answer.
pub const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Most events in a batch: 2 MiB.
pub const BATCH_EVENTS_MAX: usize = 1 << 16;
/// Most seconds of CPU time in an answer: the latest day, up to 9 MB.
pub const SECONDS_MAX: usize = 86_400;
/// Bytes per event.
pub const EVENT_BYTES: usize = 32;
/// The code for an event without a cause.
const NO_CAUSE: u16 = u16::MAX;

/// A watcher's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Start recording, or continue if it is already recording.
    Begin,
    /// What was recorded from event number `from` on; everything before it has arrived.
    Fetch {
        /// The session, from [`Answer::Begun`].
        session: u64,
        /// The first event wanted.
        from: u64,
    },
    /// The agent's clocks.
    Time,
    /// Stop recording; what was not fetched is lost.
    End {
        /// The session.
        session: u64,
    },
}

/// An agent's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// It is recording.
    Begun {
        /// A number that identifies the session on this host: when it began, by CLOCK_MONOTONIC.
        session: u64,
    },
    /// A batch of the recording. The events follow the JSON.
    Batch(Box<Batch>),
    /// Its clocks: when the request arrived and when this answer was sent.
    Time {
        /// When the request arrived.
        received: Moment,
        /// When this answer was sent.
        sent: Moment,
    },
    /// It is no longer recording.
    Ended,
    /// It refuses, or cannot do it.
    Refused {
        /// The reason.
        because: String,
    },
}

/// A part of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The recording so far, without its events.
    pub head: Head,
    /// Number of the first event.
    pub first: u64,
    /// Whether more events were available at the time.
    pub more: bool,
    /// The events.
    #[serde(skip)]
    pub events: Vec<Event>,
}

/// A recording without its events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "each is the field of Recording with that name")]
pub struct Head {
    pub host: String,
    pub boot_id: String,
    pub kernel: String,
    pub start: Moment,
    pub end: Moment,
    pub asked: Vec<String>,
    pub flows: Vec<Flow>,
    pub causes: Vec<String>,
    pub points: Vec<PointStatus>,
    pub fragments: u64,
    pub unjoined: u64,
    pub unplaced: u64,
    pub scheduling: Vec<Second>,
    pub clock: Option<ClockStatus>,
    pub cost: Option<Cost>,
}

impl Head {
    /// The head of a recording.
    pub fn of(recording: &Recording) -> Self {
        let recording = recording.clone();
        Self {
            host: recording.host,
            boot_id: recording.boot_id,
            kernel: recording.kernel,
            start: recording.start,
            end: recording.end,
            asked: recording.asked,
            flows: recording.flows,
            causes: recording.causes.iter().map(ToString::to_string).collect(),
            points: recording.points,
            fragments: recording.fragments,
            unjoined: recording.unjoined,
            unplaced: recording.unplaced,
            scheduling: recording.scheduling,
            clock: recording.clock,
            cost: recording.cost,
        }
    }

    /// The recording with the given events.
    pub fn with(self, events: Vec<Event>) -> Recording {
        Recording {
            host: self.host,
            boot_id: self.boot_id,
            kernel: self.kernel,
            start: self.start,
            end: self.end,
            pauses: Vec::new(),
            asked: self.asked,
            flows: self.flows,
            causes: self.causes.iter().map(|cause| cause.as_str().into()).collect(),
            points: self.points,
            fragments: self.fragments,
            unjoined: self.unjoined,
            unplaced: self.unplaced,
            scheduling: self.scheduling,
            clock: self.clock,
            cost: self.cost,
            events,
        }
    }
}

/// Why bytes are not a valid message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// Longer than any message.
    #[error("message: expected at most {most} bytes, found {bytes}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The largest length.
        most: usize,
    },
    /// It ends too early.
    #[error("a message of {0} bytes is truncated")]
    Cut(usize),
    /// Its JSON is not what was expected.
    #[error("not a valid message: {0}")]
    Json(String),
    /// An invalid event.
    #[error("event {index} of the batch has {what}")]
    Event {
        /// Its index in the batch.
        index: usize,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl Request {
    /// As bytes, without the length before them.
    pub fn to_bytes(self) -> Vec<u8> {
        serde_json::to_vec(&self).expect("numbers are JSON")
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`BadMessage`].
    pub fn parse(bytes: &[u8]) -> Result<Self, BadMessage> {
        check_length(bytes.len(), REQUEST_BYTES_MAX)?;
        json(bytes)
    }
}

impl Answer {
    /// As bytes, without the length before them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let json = serde_json::to_vec(self).expect("text and numbers are JSON");
        let mut bytes = (json.len() as u32).to_be_bytes().to_vec();
        bytes.extend(json);
        if let Self::Batch(batch) = self {
            batch.events.iter().for_each(|event| bytes.extend(event_bytes(event)));
        }
        bytes
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`BadMessage`].
    pub fn parse(bytes: &[u8]) -> Result<Self, BadMessage> {
        check_length(bytes.len(), ANSWER_BYTES_MAX)?;
        let cut = || BadMessage::Cut(bytes.len());
        let (length, rest) = bytes.split_first_chunk().ok_or_else(cut)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (text, events) = rest.split_at_checked(length).ok_or_else(cut)?;
        let mut answer: Self = json(text)?;
        let none = &mut Vec::new();
        let (into, flows, causes) = match &mut answer {
            Self::Batch(batch) => {
                (&mut batch.events, batch.head.flows.len(), batch.head.causes.len())
            }
            _ => (none, 0, 0),
        };
        let (events, rest) = events.as_chunks::<EVENT_BYTES>();
        if !rest.is_empty() {
            return Err(cut());
        }
        for (index, bytes) in events.iter().enumerate() {
            let bad = |what| BadMessage::Event { index, what };
            let event = event(bytes).map_err(bad)?;
            if usize::from(event.direction_flow) >= flows {
                return Err(bad("a flow that the head does not list"));
            }
            if event.cause.is_some_and(|DropCause(cause)| usize::from(cause) >= causes) {
                return Err(bad("a cause that the head does not list"));
            }
            into.push(event);
        }
        Ok(answer)
    }
}

fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BadMessage> {
    serde_json::from_slice(bytes).map_err(|error| BadMessage::Json(error.to_string()))
}

/// Refuses anything longer than a message may be, before it is read.
pub(super) fn check_length(bytes: usize, most: usize) -> Result<(), BadMessage> {
    if bytes > most { Err(BadMessage::TooLong { bytes, most }) } else { Ok(()) }
}

/// Time, key, payload, cause, flow, IP id, segments, point, kind of key; all big endian.
fn event_bytes(event: &Event) -> [u8; EVENT_BYTES] {
    let (kind, key) = event.key.parts();
    let kind = KeyKind::ALL.iter().position(|known| *known == kind).expect("ALL has all");
    let point = Point::ALL.iter().position(|point| *point == event.point).expect("ALL has all");
    let mut bytes = [0; EVENT_BYTES];
    bytes[0..8].copy_from_slice(&event.t_ns.to_be_bytes());
    bytes[8..16].copy_from_slice(&key.to_be_bytes());
    bytes[16..20].copy_from_slice(&event.payload_bytes.to_be_bytes());
    let cause = event.cause.map_or(NO_CAUSE, |DropCause(cause)| cause);
    let words = [cause, event.direction_flow, event.ip_id, event.segments];
    for (word, at) in words.iter().zip(bytes[20..28].chunks_exact_mut(2)) {
        at.copy_from_slice(&word.to_be_bytes());
    }
    bytes[28..30].copy_from_slice(&[point as u8, kind as u8]);
    bytes
}

fn event(bytes: &[u8; EVENT_BYTES]) -> Result<Event, &'static str> {
    fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
        bytes[at..at + N].try_into().expect("the slice has the array's length")
    }
    let word = |at| u16::from_be_bytes(part(bytes, at));
    let kind = *KeyKind::ALL.get(usize::from(bytes[28 + 1])).ok_or("an unknown kind of key")?;
    let key = Key::from_parts(kind, u64::from_be_bytes(part(bytes, 8)));
    let cause = word(20);
    if bytes[30..] != [0, 0] {
        return Err("nonzero padding");
    }
    Ok(Event {
        t_ns: u64::from_be_bytes(part(bytes, 0)),
        point: *Point::ALL.get(usize::from(bytes[28])).ok_or("an unknown point")?,
        direction_flow: word(22),
        key: key.ok_or("a key that is too large")?,
        ip_id: word(24),
        payload_bytes: u32::from_be_bytes(part(bytes, 16)),
        segments: word(26),
        cause: (cause != NO_CAUSE).then_some(DropCause(cause)),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Protocol;

    /// Without points.
    pub fn head() -> Head {
        let moment = Moment { monotonic_ns: 7, realtime_ns: 9 };
        let flow = Flow {
            protocol: Protocol::Udp,
            local: "10.0.0.1:5000".parse().unwrap(),
            remote: "10.0.0.2:5004".parse().unwrap(),
            sent: true,
        };
        Head {
            host: "a".into(),
            boot_id: "b".into(),
            kernel: "c".into(),
            start: moment,
            end: moment,
            asked: vec!["udp:*-*".into()],
            flows: vec![flow; 3],
            causes: vec!["SOCKET_RCVBUFF".into(); 2],
            points: Vec::new(),
            fragments: 0,
            unjoined: 0,
            unplaced: 0,
            scheduling: Vec::new(),
            clock: None,
            cost: None,
        }
    }

    fn events() -> impl Strategy<Value = Event> {
        let key = prop_oneof![
            (any::<u32>(), any::<u16>()).prop_map(|(ssrc, sequence)| Key::Rtp { ssrc, sequence }),
            any::<(u16, u16)>().prop_map(|(id, check)| Key::IpId { id, check }),
            any::<u64>().prop_map(Key::Hash),
            any::<u32>().prop_map(|start| Key::Bytes { start }),
        ];
        let point = prop::sample::select(Point::ALL.to_vec());
        let cause = prop::option::of((0..2_u16).prop_map(DropCause));
        let words = (any::<u64>(), any::<u16>(), any::<u32>(), any::<u16>());
        (words, key, point, 0..3_u16, cause).prop_map(|(words, key, point, flow, cause)| Event {
            t_ns: words.0,
            point,
            direction_flow: flow,
            key,
            ip_id: words.1,
            payload_bytes: words.2,
            segments: words.3,
            cause,
        })
    }

    fn batch(events: Vec<Event>) -> Answer {
        Answer::Batch(Box::new(Batch { head: head(), first: 5, more: true, events }))
    }

    proptest! {
        #[test]
        fn a_batch_survives_the_wire(events in prop::collection::vec(events(), 0..50)) {
            let answer = batch(events);
            prop_assert_eq!(Answer::parse(&answer.to_bytes()), Ok(answer));
        }

        #[test]
        fn a_cut_batch_is_refused(events in prop::collection::vec(events(), 1..5), cut in 1..32_usize) {
            let bytes = batch(events).to_bytes();
            prop_assert!(Answer::parse(&bytes[..bytes.len() - cut]).is_err());
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::parse(&bytes);
            let _ = Answer::parse(&bytes);
        }
    }

    #[test]
    fn requests_survive_the_wire() {
        for request in [
            Request::Begin,
            Request::Fetch { session: u64::MAX, from: 7 },
            Request::Time,
            Request::End { session: 1 },
        ] {
            assert_eq!(Request::parse(&request.to_bytes()), Ok(request));
        }
        assert!(matches!(
            Request::parse(br#"{"fetch": {"session": 1}}"#),
            Err(BadMessage::Json(_))
        ));
        let long = vec![b' '; REQUEST_BYTES_MAX + 1];
        assert!(matches!(Request::parse(&long), Err(BadMessage::TooLong { .. })));
    }

    #[test]
    fn the_longest_answer_is_not_too_long() {
        let second = Second {
            second: SECONDS_MAX as u32,
            // 64 CPUs, and as many threads as are followed.
            waiting_ns: Some(4_096_000_000_000),
            running_ns: Some(64_000_000_000),
            softirq_late_ns: Some(1_000_000_000),
        };
        let address = |host: u16| format!("[fd00:1111:2222:3333:4444:5555:6666:{host:x}]:65535");
        let flow = Flow {
            protocol: Protocol::Udp,
            local: address(0xffff).parse().unwrap(),
            remote: address(0xfffe).parse().unwrap(),
            sent: false,
        };
        let head =
            Head { flows: vec![flow; 1 << 15], scheduling: vec![second; SECONDS_MAX], ..head() };
        let event = Event {
            t_ns: u64::MAX,
            point: Point::ReceiveCall,
            direction_flow: 0,
            key: Key::Hash(u64::MAX),
            ip_id: 0,
            payload_bytes: 1,
            segments: 1,
            cause: None,
        };
        let events = vec![event; BATCH_EVENTS_MAX];
        let batch = Batch { head, first: u64::MAX, more: false, events };
        let bytes = Answer::Batch(Box::new(batch)).to_bytes().len();
        assert!(bytes <= ANSWER_BYTES_MAX, "{bytes}");
    }

    #[test]
    fn events_with_unlisted_flows_and_causes_are_refused() {
        let event = Event {
            t_ns: 1,
            point: Point::Dropped,
            direction_flow: 2,
            key: Key::IpId { id: 1, check: 0 },
            ip_id: 1,
            payload_bytes: 1,
            segments: 1,
            cause: Some(DropCause(1)),
        };
        let said = |event| Answer::parse(&batch(vec![event]).to_bytes()).unwrap_err().to_string();
        assert!(Answer::parse(&batch(vec![event]).to_bytes()).is_ok());
        assert_eq!(
            said(Event { direction_flow: 3, ..event }),
            "event 0 of the batch has a flow that the head does not list"
        );
        assert_eq!(
            said(Event { cause: Some(DropCause(2)), ..event }),
            "event 0 of the batch has a cause that the head does not list"
        );
    }
}
