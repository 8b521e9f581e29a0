//! The watcher's side: fetches what an agent records, and copes with broken connections.

use std::sync::{Arc, Mutex};

use rustls::ClientConfig;

use super::AgentError;
use super::connection::{self, Call, Line, lost, receive, send};
use super::message::{ANSWER_BYTES_MAX, Answer, Batch, Head, Request};
use crate::clock::{Alignment, Pair, estimate};
use crate::{DropCause, Event, Moment, Pause, Point, Recording};
use suiro_units::to_i64;

/// Most events that are kept per agent: some 1 GB.
const EVENTS_MAX: usize = 20_000_000;
/// Most time exchanges that are kept.
const SAMPLES_MAX: usize = 100_000;

/// One time exchange, there and back: times of the watcher and of the agent, each by its own
/// CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSample {
    /// The watcher sent the request.
    pub asked_ns: u64,
    /// The request reached the agent.
    pub received_ns: u64,
    /// The agent sent the answer.
    pub sent_ns: u64,
    /// The answer arrived.
    pub answered_ns: u64,
}

/// A gap in the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// The agent no longer had this many events: they were not fetched in time, or another watcher
    /// fetched them.
    Missed(u64),
    /// The agent restarted; in between, by its CLOCK_MONOTONIC, nothing was recorded.
    Restarted {
        /// The last known time before the gap.
        from_ns: u64,
        /// When it started again.
        to_ns: u64,
    },
    /// The watcher has no room for more.
    Full,
}

impl Gap {
    fn pause(&self) -> Option<Pause> {
        match *self {
            Self::Restarted { from_ns, to_ns } => Some(Pause { from_ns, to_ns }),
            Self::Missed(_) | Self::Full => None,
        }
    }
}

/// An agent and its recording so far.
pub struct Watched {
    peer: String,
    config: Arc<ClientConfig>,
    now: fn() -> Moment,
    call: Option<Call>,
    line: Arc<Mutex<Line>>,
    session: Option<u64>,
    /// The next event to fetch.
    next: u64,
    head: Option<Head>,
    /// The recording of earlier sessions.
    earlier: Option<Head>,
    events: Vec<Event>,
    samples: Vec<TimeSample>,
    /// Events that the agent no longer had.
    missed: u64,
    /// Whether events came for which there was no room.
    full: bool,
    gaps: Vec<Gap>,
}

/// Ends a watcher's waiting for an agent that does not answer.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<Mutex<Line>>);

impl Stopper {
    /// Breaks the connection off: what waits for the agent fails at once. [`Watched::end`] may still
    /// call it, and gives it two seconds for each answer.
    pub fn stop(&self) {
        self.0.lock().expect("no holder panics").hurry();
    }
}

impl Watched {
    /// Prepares to watch the agent at `HOST[:PORT]`; nothing is sent yet.
    pub fn new(peer: &str, config: Arc<ClientConfig>, now: fn() -> Moment) -> Self {
        Self {
            peer: peer.into(),
            config,
            now,
            call: None,
            line: Arc::default(),
            session: None,
            next: 0,
            head: None,
            earlier: None,
            events: Vec::new(),
            samples: Vec::new(),
            missed: 0,
            full: false,
            gaps: Vec::new(),
        }
    }

    /// A handle that ends the waiting for this agent from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.line))
    }

    /// The agent's address.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Connects to the agent if necessary and fetches everything it has. After an error that [may
    /// pass](AgentError::may_pass), the next call continues where this one stopped.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn update(&mut self) -> Result<(), AgentError> {
        let updated = self.fetch_all();
        if updated.is_err() {
            self.call = None;
        }
        updated
    }

    /// Fetches the rest and ends the recording. If the connection was broken off, by its [`Stopper`] or by the network, the
    /// agent is called once more.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn end(&mut self) -> Result<(), AgentError> {
        let was_connected = self.call.is_some();
        match self.update() {
            Err(AgentError::Lost { .. }) if was_connected => self.update()?,
            updated => updated?,
        }
        if let Some(session) = self.session.take() {
            self.ask(Request::End { session })?;
        }
        self.call = None;
        Ok(())
    }

    /// Breaks the connection, as a network would; the recording continues.
    pub fn hang_up(&mut self) {
        self.call = None;
    }

    /// The recording so far; `None` before the first [`Self::update`]. Events that the agent saw and that did not get here
    /// count as lost by the recorder: they are no losses of a layer.
    pub fn recording(&self) -> Option<Recording> {
        let mut recording = self.head.clone()?.with(self.events.clone());
        recording.pauses = self.gaps.iter().filter_map(Gap::pause).collect();
        if self.missed > 0 || self.full {
            let mut kept = [0u64; Point::ALL.len()];
            recording.events.iter().for_each(|event| kept[event.point as usize] += 1);
            for status in &mut recording.points {
                let missing = status.events.saturating_sub(kept[status.point as usize]);
                status.lost = status.lost.saturating_add(missing);
            }
        }
        Some(recording)
    }

    /// The time exchanges so far.
    pub fn samples(&self) -> &[TimeSample] {
        &self.samples
    }

    /// The agent's clock relative to the watcher's, from these exchanges.
    pub fn alignment(&self) -> Option<Alignment> {
        let pair = |first_ns, second_ns, outward| {
            let [first_ns, second_ns] = [first_ns, second_ns].map(to_i64);
            Pair { first_ns, second_ns, outward }
        };
        let pairs = self.samples.iter().flat_map(|sample| {
            let there = pair(sample.asked_ns, sample.received_ns, true);
            [there, pair(sample.answered_ns, sample.sent_ns, false)]
        });
        estimate(&pairs.collect::<Vec<_>>())
    }

    /// The gaps in the recording.
    pub fn gaps(&self) -> Vec<Gap> {
        let missed = (self.missed > 0).then_some(Gap::Missed(self.missed));
        let full = self.full.then_some(Gap::Full);
        self.gaps.iter().cloned().chain(full).chain(missed).collect()
    }

    fn fetch_all(&mut self) -> Result<(), AgentError> {
        if self.call.is_none() {
            self.call = Some(connection::call(&self.peer, &self.config, &self.line)?);
            self.begin()?;
        }
        self.exchange_time()?;
        loop {
            let session = self.session.expect("started with the call");
            let answer = self.ask(Request::Fetch { session, from: self.next })?;
            let Answer::Batch(batch) = answer else { return Err(self.unexpected()) };
            let more = batch.more;
            self.take(*batch);
            if !more || self.events.len() >= EVENTS_MAX {
                return Ok(());
            }
        }
    }

    fn begin(&mut self) -> Result<(), AgentError> {
        let Answer::Begun { session } = self.ask(Request::Begin)? else {
            return Err(self.unexpected());
        };
        if let Some(before) = self.session.replace(session).filter(|before| *before != session) {
            let from_ns = self.head.as_ref().map_or(before, |head| head.end.monotonic_ns);
            self.gaps.push(Gap::Restarted { from_ns, to_ns: session });
            self.earlier = self.head.clone();
            self.next = 0;
        }
        Ok(())
    }

    fn exchange_time(&mut self) -> Result<(), AgentError> {
        let asked_ns = (self.now)().monotonic_ns;
        let Answer::Time { received, sent } = self.ask(Request::Time)? else {
            return Err(self.unexpected());
        };
        let answered_ns = (self.now)().monotonic_ns;
        if self.samples.len() < SAMPLES_MAX {
            let (received_ns, sent_ns) = (received.monotonic_ns, sent.monotonic_ns);
            self.samples.push(TimeSample { asked_ns, received_ns, sent_ns, answered_ns });
        }
        Ok(())
    }

    /// Appends a batch. After a restart, flows and causes may have other numbers.
    fn take(&mut self, batch: Batch) {
        self.missed += batch.first.saturating_sub(self.next);
        self.next = batch.first.saturating_add(batch.events.len() as u64);
        let Batch { mut head, events, .. } = batch;
        let before = self.head.take();
        let flows = number(&mut head.flows, before.as_ref().map(|head| &head.flows));
        let causes = number(&mut head.causes, before.as_ref().map(|head| &head.causes));
        if let Some(earlier) = &self.earlier {
            head.follow(earlier);
        }
        self.head = Some(head);
        let room = EVENTS_MAX.saturating_sub(self.events.len());
        self.full |= events.len() > room;
        self.events.extend(events.into_iter().take(room).map(|event| Event {
            direction_flow: flows[usize::from(event.direction_flow)],
            cause: event.cause.map(|DropCause(cause)| DropCause(causes[usize::from(cause)])),
            ..event
        }));
    }

    fn ask(&mut self, request: Request) -> Result<Answer, AgentError> {
        let peer = &self.peer;
        let call = self.call.as_mut().expect("connected before a request is sent");
        let closed = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let answered = send(call, &request.to_bytes())
            .and_then(|()| receive(call, ANSWER_BYTES_MAX))
            .and_then(|answer| answer.ok_or_else(closed))
            .map_err(|error| lost(peer, error))?;
        let answer = answered.and_then(|bytes| Answer::parse(&bytes));
        match answer {
            Ok(Answer::Refused { because }) => {
                Err(AgentError::Refused { peer: peer.clone(), because })
            }
            Ok(answer) => Ok(answer),
            Err(cause) => Err(AgentError::Message { peer: peer.clone(), cause }),
        }
    }

    fn unexpected(&self) -> AgentError {
        let because = "its answer does not match the request".into();
        AgentError::Refused { peer: self.peer.clone(), because }
    }
}

/// Puts the entries known before in front of new ones, each once, and returns the new index of each
/// entry of `list`.
fn number<T: Clone + PartialEq>(list: &mut Vec<T>, before: Option<&Vec<T>>) -> Vec<u16> {
    let mut all = before.cloned().unwrap_or_default();
    let place = |item: &T| {
        let found = all.iter().position(|other| other == item);
        let place = found.unwrap_or_else(|| {
            all.push(item.clone());
            all.len() - 1
        });
        // No agent has that many: its own numbers have 16 bits, and a restart renames few.
        u16::try_from(place).unwrap_or(u16::MAX - 1)
    };
    let places = list.iter().map(place).collect();
    *list = all;
    places
}
