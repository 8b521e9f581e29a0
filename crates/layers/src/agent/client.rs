//! The watcher's side: fetches what an agent records, and copes with broken connections.

use std::sync::{Arc, Mutex};

use rustls::ClientConfig;

use super::AgentError;
use super::connection::{self, Call, Line, lost, receive, send};
use super::flows::Flows;
use super::message::{ANSWER_BYTES_MAX, Answer, Batch, Head, Request};
use crate::clock::{Alignment, Pair, estimate};
use crate::event::PAUSES_MAX;
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
    /// The host has rebooted. Its recording ends there, because its clock has begun anew.
    Rebooted,
    /// The agent restarted once more than the 1,000 times that a recording can have. Its recording ends there.
    Restarts,
    /// So many events are of flows beyond the 32,768 that a recording can have.
    Unplaced(u64),
    /// The watcher has no room for more.
    Full,
}

impl Gap {
    fn pause(&self) -> Option<Pause> {
        match *self {
            Self::Restarted { from_ns, to_ns } => Some(Pause { from_ns, to_ns }),
            Self::Missed(_) | Self::Rebooted | Self::Restarts | Self::Unplaced(_) | Self::Full => {
                None
            }
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
    /// Whether the session is a later one than that of `head`.
    restarted: bool,
    /// Why the recording has ended, if it has.
    over: Option<Gap>,
    /// The next event to fetch.
    next: u64,
    head: Option<Head>,
    /// The recording of earlier sessions.
    earlier: Option<Head>,
    flows: Flows,
    events: Vec<Event>,
    samples: Vec<TimeSample>,
    /// Events that the agent no longer had.
    missed: u64,
    /// Whether events came for which there was no room.
    full: bool,
    /// Whether the agent had more events when the latest batch came.
    behind: bool,
    /// Sessions that ended when it had more.
    cut: u64,
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
            restarted: false,
            over: None,
            next: 0,
            head: None,
            earlier: None,
            flows: Flows::default(),
            events: Vec::new(),
            samples: Vec::new(),
            missed: 0,
            full: false,
            behind: false,
            cut: 0,
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
    /// pass](AgentError::may_pass), the next call continues where this one stopped. After [`Gap::Rebooted`] or
    /// [`Gap::Restarts`] it fetches nothing more.
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
        self.end_session()
    }

    fn end_session(&mut self) -> Result<(), AgentError> {
        if let Some(session) = self.session.take() {
            self.ask(Request::End { session })?;
        }
        self.call = None;
        Ok(())
    }

    /// Whether the agent records for this watcher, as far as the watcher knows.
    pub fn is_recording(&self) -> bool {
        self.session.is_some()
    }

    /// Whether the recording has ended for good, by [`Gap::Rebooted`] or [`Gap::Restarts`].
    pub fn is_over(&self) -> bool {
        self.over.is_some()
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
        recording.unplaced = self.unplaced();
        if self.missed > 0 || self.full || self.behind || self.cut > 0 {
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
        let unplaced = Some(self.unplaced()).filter(|&events| events > 0).map(Gap::Unplaced);
        let full = self.full.then_some(Gap::Full);
        let all = self.gaps.iter().cloned().chain(self.over.clone()).chain(unplaced);
        all.chain(full).chain(missed).collect()
    }

    /// Events of flows beyond the bound: of the agent's recording, and of this one.
    fn unplaced(&self) -> u64 {
        let of_agent = self.head.as_ref().map_or(0, |head| head.unplaced);
        of_agent.saturating_add(self.flows.unplaced)
    }

    fn fetch_all(&mut self) -> Result<(), AgentError> {
        if self.over.is_some() {
            return Ok(());
        }
        if self.call.is_none() {
            self.call = Some(connection::call(&self.peer, &self.config, &self.line)?);
            self.begin()?;
        }
        self.fetch()?;
        // The batches have shown whether the host's clock is still the one that was compared before.
        if self.over.is_some() { self.end_session() } else { self.exchange_time() }
    }

    fn fetch(&mut self) -> Result<(), AgentError> {
        loop {
            let session = self.session.expect("started with the call");
            let answer = self.ask(Request::Fetch { session, from: self.next })?;
            let Answer::Batch(batch) = answer else { return Err(self.unexpected()) };
            let more = batch.more;
            self.over = self.ends_before(&batch.head);
            if self.over.is_some() {
                return Ok(());
            }
            self.take(*batch);
            if !more || self.events.len() >= EVENTS_MAX {
                return Ok(());
            }
        }
    }

    /// Why the recording cannot go on with a batch that has this head.
    fn ends_before(&self, head: &Head) -> Option<Gap> {
        if self.head.as_ref()?.boot_id != head.boot_id {
            return Some(Gap::Rebooted);
        }
        (self.restarted && self.gaps.len() >= PAUSES_MAX).then_some(Gap::Restarts)
    }

    fn begin(&mut self) -> Result<(), AgentError> {
        let Answer::Begun { session } = self.ask(Request::Begin)? else {
            return Err(self.unexpected());
        };
        if self.session.replace(session).is_some_and(|before| before != session) {
            self.restarted = true;
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
        let Batch { mut head, events, more, .. } = batch;
        let before = self.head.take();
        if std::mem::take(&mut self.restarted)
            && let Some(before) = &before
        {
            let (from_ns, to_ns) = (before.end.monotonic_ns, head.start.monotonic_ns);
            self.gaps.push(Gap::Restarted { from_ns, to_ns });
            self.earlier = Some(before.clone());
            self.cut += u64::from(self.behind);
        }
        self.behind = more;
        let events = self.flows.adopt(events, &head.flows);
        head.flows = self.flows.list().to_vec();
        let causes = number(&mut head.causes, before.as_ref().map(|head| &head.causes));
        if let Some(earlier) = &self.earlier {
            head.follow(earlier);
        }
        self.head = Some(head);
        let room = EVENTS_MAX.saturating_sub(self.events.len());
        self.full |= events.len() > room;
        self.events.extend(events.into_iter().take(room).map(|event| Event {
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

/// Puts the names known before in front of new ones, each once, and returns the new index of each
/// entry of `list`.
fn number(list: &mut Vec<String>, before: Option<&Vec<String>>) -> Vec<u16> {
    let mut all = before.cloned().unwrap_or_default();
    let place = |item: &String| {
        let found = all.iter().position(|other| other == item);
        let place = found.unwrap_or_else(|| {
            all.push(item.clone());
            all.len() - 1
        });
        // No agent has that many: its own numbers have 16 bits, and the names of a kernel stay the same.
        u16::try_from(place).unwrap_or(u16::MAX - 1)
    };
    let places = list.iter().map(place).collect();
    *list = all;
    places
}

#[cfg(test)]
mod tests {
    use rustls::RootCertStore;
    use rustls::crypto::aws_lc_rs;

    use super::super::message;
    use super::*;
    use crate::PointStatus;

    fn watched() -> Watched {
        let config = ClientConfig::builder_with_provider(aws_lc_rs::default_provider().into())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let now = || Moment { monotonic_ns: 0, realtime_ns: 0 };
        Watched::new("studio", Arc::new(config), now)
    }

    /// The first of a session that began then.
    fn batch(start_ns: u64) -> Batch {
        let at = |monotonic_ns| Moment { monotonic_ns, realtime_ns: monotonic_ns };
        let head = Head { start: at(start_ns), end: at(start_ns + 1), ..message::tests::head() };
        Batch { head, first: 0, more: false, events: Vec::new() }
    }

    /// Its agent saw five events, and the connection broke before they were fetched.
    #[test]
    fn what_was_not_fetched_is_lost_by_the_recorder() {
        let status = |events| PointStatus {
            point: Point::SendIp,
            missing: None,
            events,
            lost: 0,
            skipped: 0,
        };
        let seen = |start_ns, events, more| {
            let Batch { head, .. } = batch(start_ns);
            let head = Head { points: vec![status(events)], ..head };
            Batch { head, first: 0, more, events: Vec::new() }
        };
        let lost = |watched: &Watched| watched.recording().unwrap().points[0].lost;
        let mut watched = watched();
        watched.take(seen(0, 5, true));
        assert_eq!(lost(&watched), 5);
        // They will never come.
        watched.restarted = true;
        watched.take(seen(10, 0, false));
        assert_eq!(lost(&watched), 5);
    }

    #[test]
    fn a_recording_ends_where_its_agent_restarts_too_often() {
        let mut watched = watched();
        watched.take(batch(0));
        for start_ns in 1..=1000 {
            watched.restarted = true;
            assert_eq!(watched.ends_before(&batch(10 * start_ns).head), None);
            watched.take(batch(10 * start_ns));
        }
        let pauses = watched.recording().unwrap().pauses;
        assert_eq!(pauses.len(), 1000);
        assert_eq!(pauses[999], Pause { from_ns: 9991, to_ns: 10_000 });
        let next = batch(20_000).head;
        assert_eq!(watched.ends_before(&next), None, "the session goes on");
        watched.restarted = true;
        assert_eq!(watched.ends_before(&next), Some(Gap::Restarts));
    }
}
