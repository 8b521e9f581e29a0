//! The agent: records, and answers watchers that it trusts.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::connection::{lost, prepare, receive, send};
use super::counts::SECOND_NS;
use super::flows::Flows;
use super::message::{
    Answer, BATCH_EVENTS_MAX, Batch, Head, REQUEST_BYTES_MAX, Request, SECONDS_MAX,
};
use super::spool::Spool;
use super::{AgentError, Fetched};
use crate::{Event, Moment, Second};

/// Most watchers served at a time.
const WATCHERS_MAX: usize = 8;
/// Most connections in their handshake; for another one, the oldest is closed.
const STRANGERS_MAX: usize = 16;
/// How often the accepting thread checks whether it should stop.
const LOOK: Duration = Duration::from_millis(100);

/// The source of an agent's events.
pub trait Tap {
    /// Waits a tenth of a second at most, appends new events to `events`, and returns the recording so far. Its counters
    /// count from the start of the tap; its seconds are those that have ended since the last call. It lists the flows
    /// of these events, and the next call may number them differently. All events before its end have been handed over by then.
    ///
    /// # Errors
    /// Why no more events can be recorded.
    fn poll(&mut self, events: &mut Vec<Event>) -> Result<Head, String>;
}

/// The limits of an agent.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most events that wait to be fetched.
    pub events: usize,
    /// How long it keeps recording without requests, in nanoseconds.
    pub unheard_ns: u64,
    /// How long a whole handshake may take, in nanoseconds.
    pub handshake_ns: u64,
}

impl Default for Limits {
    /// Four million events (some 200 MB), ten minutes, five seconds.
    fn default() -> Self {
        Self { events: 4_000_000, unheard_ns: 600_000_000_000, handshake_ns: 5_000_000_000 }
    }
}

/// An agent. It makes one recording at a time: of two watchers, each gets what it fetches first.
pub struct Agent {
    config: Arc<ServerConfig>,
    limits: Limits,
    now: fn() -> Moment,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    session: Option<Session>,
    head: Option<Head>,
    /// Why it cannot record any more.
    failed: Option<String>,
    /// Connections by number, so that they can be closed from here: those that have shown a certificate…
    watchers: BTreeMap<u64, TcpStream>,
    /// … and those that have not yet, with their time of arrival. They do not count as watchers.
    strangers: BTreeMap<u64, (Moment, TcpStream)>,
    /// The number of the next connection.
    next: u64,
}

struct Session {
    start: Moment,
    /// What had been counted when it began.
    before: Option<Head>,
    flows: Flows,
    spool: Spool,
    /// The latest seconds.
    scheduling: VecDeque<Second>,
    /// When it last received a request.
    heard: Moment,
}

impl Agent {
    /// An agent with these credentials, and the clocks of its host.
    pub fn new(config: Arc<ServerConfig>, limits: Limits, now: fn() -> Moment) -> Self {
        Self { config, limits, now, state: Mutex::default() }
    }

    /// Serves until `stopped`. A problem with one watcher is passed to `tell`, and the next watcher is served.
    ///
    /// # Errors
    /// [`AgentError::Listen`]: the listener failed.
    pub fn run(
        &self,
        listener: &TcpListener,
        mut tap: impl Tap,
        stopped: &AtomicBool,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<(), AgentError> {
        // So that requests find a head.
        self.record(&mut tap);
        std::thread::scope(|scope| {
            let serve = move |number, stream, peer: String| {
                scope.spawn(move || {
                    if let Err(error) = self.serve(number, stream, &peer) {
                        tell(&error.to_string());
                    }
                    self.close(number);
                });
            };
            let accepting = scope.spawn(move || {
                let accepted = self.accept(listener, stopped, serve);
                stopped.store(true, Ordering::Relaxed);
                accepted
            });
            // Probes stay on the thread that attached them: this one.
            while !stopped.load(Ordering::Relaxed) {
                if !self.record(&mut tap) {
                    break;
                }
            }
            let accepted = accepting.join().expect("accepting does not panic");
            let state = self.state();
            let open: Vec<u64> =
                state.watchers.keys().chain(state.strangers.keys()).copied().collect();
            drop(state);
            open.into_iter().for_each(|number| self.close(number));
            accepted
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics: input never does")
    }

    fn close(&self, number: u64) {
        let mut state = self.state();
        let stranger = state.strangers.remove(&number).map(|(_, stream)| stream);
        if let Some(stream) = stranger.or_else(|| state.watchers.remove(&number)) {
            // A connection that the other end closed needs no closing.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Closes the connections whose handshake takes too long, so that strangers do not occupy threads.
    fn close_slow(&self) {
        let now = (self.now)().monotonic_ns;
        let state = self.state();
        let is_slow = |(_, (came, _)): &(&u64, &(Moment, TcpStream))| {
            now.saturating_sub(came.monotonic_ns) > self.limits.handshake_ns
        };
        let slow: Vec<u64> = state.strangers.iter().filter(is_slow).map(|(n, _)| *n).collect();
        drop(state);
        slow.into_iter().for_each(|number| self.close(number));
    }

    /// Gives a connection whose handshake is over one of the watchers' places; false if all are taken.
    fn admit(&self, number: u64) -> bool {
        let mut state = self.state();
        let Some((_, stream)) = state.strangers.remove(&number) else { return false };
        let room = state.watchers.len() < WATCHERS_MAX;
        if room {
            state.watchers.insert(number, stream);
        }
        room
    }

    /// Takes what the tap has; `false` if it has no more to give.
    fn record(&self, tap: &mut impl Tap) -> bool {
        let mut events = Vec::new();
        let polled = tap.poll(&mut events);
        let now = (self.now)();
        let mut state = self.state();
        match polled {
            Ok(mut head) => {
                let seconds = std::mem::take(&mut head.scheduling);
                if let Some(session) = &mut state.session {
                    session.take(events, &seconds, &head);
                }
                state.head = Some(head);
            }
            Err(because) => state.failed = Some(because),
        }
        let is_unheard = |session: &Session| now.since(session.heard) > self.limits.unheard_ns;
        if state.session.as_ref().is_some_and(is_unheard) {
            state.session = None;
        }
        state.failed.is_none()
    }

    fn accept(
        &self,
        listener: &TcpListener,
        stopped: &AtomicBool,
        serve: impl Fn(u64, TcpStream, String),
    ) -> Result<(), AgentError> {
        let failed = |cause: std::io::Error| {
            let address = listener.local_addr().map(|a| a.to_string()).unwrap_or_default();
            AgentError::Listen { address, cause }
        };
        let look = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
        while !stopped.load(Ordering::Relaxed) {
            let waited = poll(&mut [PollFd::new(&listener.as_fd(), PollFlags::IN)], Some(&look));
            match waited {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
            self.close_slow();
            // A peer that hung up before being accepted does not affect others.
            let Ok((stream, peer)) = listener.accept() else { continue };
            let mut state = self.state();
            let (number, kept) = (state.next, stream.try_clone());
            let Ok(kept) = kept else { continue };
            if prepare(&stream).is_err() {
                continue;
            }
            state.next += 1;
            state.strangers.insert(number, ((self.now)(), kept));
            let crowd = state.strangers.len() > STRANGERS_MAX;
            let oldest = state.strangers.keys().next().copied().filter(|_| crowd);
            drop(state);
            if let Some(oldest) = oldest {
                self.close(oldest);
            }
            serve(number, stream, peer.to_string());
        }
        Ok(())
    }

    /// Answers one watcher until it disconnects.
    fn serve(&self, number: u64, mut stream: TcpStream, peer: &str) -> Result<(), AgentError> {
        let tls = ServerConnection::new(Arc::clone(&self.config));
        let mut tls = tls.map_err(|error| lost(peer, std::io::Error::other(error)))?;
        while tls.is_handshaking() {
            tls.complete_io(&mut stream).map_err(|error| lost(peer, error))?;
        }
        if !self.admit(number) {
            return Err(lost(peer, std::io::Error::other("all places of watchers are taken")));
        }
        let mut stream = StreamOwned::new(tls, stream);
        loop {
            let request = receive(&mut stream, REQUEST_BYTES_MAX);
            let Some(request) = request.map_err(|error| lost(peer, error))? else { return Ok(()) };
            let received = (self.now)();
            let parsed = request.and_then(|bytes| Request::parse(&bytes));
            let answer = match &parsed {
                Ok(request) => self.answer(*request, received),
                Err(bad) => Answer::Refused { because: bad.to_string() },
            };
            send(&mut stream, &answer.to_bytes()).map_err(|error| lost(peer, error))?;
            if let Err(cause) = parsed {
                return Err(AgentError::Message { peer: peer.into(), cause });
            }
        }
    }

    fn answer(&self, request: Request, received: Moment) -> Answer {
        let mut state = self.state();
        match request {
            Request::Time => Answer::Time { received, sent: (self.now)() },
            Request::Begin => {
                let State { session, head, .. } = &mut *state;
                let session = session.get_or_insert_with(|| Session {
                    start: received,
                    before: head.clone(),
                    flows: Flows::default(),
                    spool: Spool::new(self.limits.events),
                    scheduling: VecDeque::new(),
                    heard: received,
                });
                session.heard = received;
                Answer::Begun { session: session.start.monotonic_ns }
            }
            Request::Fetch { session, from } => state.fetch(session, from, received),
            Request::End { session } => {
                if state.session.as_ref().is_some_and(|own| own.id() == session) {
                    state.session = None;
                }
                Answer::Ended
            }
        }
    }
}

impl Session {
    fn id(&self) -> u64 {
        self.start.monotonic_ns
    }

    /// Takes what a tap with this head has, without what began before this session. Seconds are numbered from its start.
    fn take(&mut self, mut events: Vec<Event>, seconds: &[Second], tap: &Head) {
        let start_ns = self.start.monotonic_ns;
        events.retain(|event| event.t_ns >= start_ns);
        self.spool.extend(self.flows.adopt(events, &tap.flows));
        for second in seconds {
            let after_ns = u64::from(second.second) * SECOND_NS;
            let begins_ns = tap.start.monotonic_ns.saturating_add(after_ns);
            let Some(after_ns) = begins_ns.checked_sub(start_ns) else { continue };
            if self.scheduling.len() >= SECONDS_MAX {
                self.scheduling.pop_front();
            }
            self.scheduling.push_back(Second { second: (after_ns / SECOND_NS) as u32, ..*second });
        }
    }

    /// The recording of this session so far, from that of the tap. It ends where the tap's ends: what passed thereafter is yet
    /// to come, and is not lost.
    fn head(&self, tap: &Head) -> Head {
        let scheduling = self.scheduling.iter().copied().collect();
        let flows = self.flows.list().to_vec();
        let begun = tap.end.monotonic_ns >= self.start.monotonic_ns;
        let end = if begun { tap.end } else { self.start };
        let mut head = Head { start: self.start, end, flows, scheduling, ..tap.clone() };
        if let Some(before) = &self.before {
            head.subtract(before);
        }
        head.unplaced = head.unplaced.saturating_add(self.flows.unplaced);
        head
    }
}

impl State {
    fn fetch(&mut self, id: u64, from: u64, now: Moment) -> Answer {
        let refused = |because: &str| Answer::Refused { because: because.into() };
        if let Some(because) = &self.failed {
            return refused(because);
        }
        let Some(session) = self.session.as_mut().filter(|session| session.id() == id) else {
            return refused(
                "that session has ended: the agent restarted, or received no requests for too long",
            );
        };
        session.heard = now;
        let Some(head) = &self.head else { return refused("it has not recorded anything yet") };
        let Fetched { first, events, more } = session.spool.fetch(from, BATCH_EVENTS_MAX);
        let head = session.head(head);
        Answer::Batch(Box::new(Batch { head, first, more, events }))
    }
}
