//! What publisher and viewer have in common: sockets, offers and their answers, sessions.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use suiro_clock::Clock;
use suiro_record::Text;
use suiro_record::words::{FlowRole, SessionEnd, Signalling};
use suiro_scenario::{Job, WebrtcQuality};
use suiro_units::{BitRate, Seed, Time};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::EndpointError;
use crate::log::Log;
use crate::net::{self, Sockets};
use crate::peer::{Certificate, Happened, Setup, Way};
use crate::plain;
use crate::sending::Sending;
use crate::sessions::Sessions;
use crate::signalling::client::{Answered, Server};
use crate::signalling::server::{self, WAITING_MAX, Waiting};
use crate::signalling::{Command, Door, Reply};

pub use crate::log::Summary;

/// Packets that are taken in before anything else is looked at.
const BATCH: usize = 64;
/// How long an end that leaves waits for the answer to its DELETE.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(2);

/// Who makes the offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meeting {
    /// This end, to that server.
    Offers(Server),
    /// The other end, at this TCP port of that address.
    Waits {
        /// The address; `None`: every one.
        address: Option<IpAddr>,
        /// The port.
        port: u16,
        /// The bearer token that is asked for.
        token: Option<String>,
    },
}

/// What both kinds of endpoint need to know.
#[derive(Debug, Clone, PartialEq)]
pub struct Common {
    /// Its name, for records.
    pub name: String,
    /// Who makes the offer.
    pub meeting: Meeting,
    /// The endpoint at the other end, which is one of suiro's; `None` if it is not known.
    pub peer: Option<String>,
    /// The host's addresses, which become its candidates.
    pub addresses: Vec<IpAddr>,
    /// Folder for records.
    pub dir: PathBuf,
    /// When to begin.
    pub start: Time,
    /// The seed of its random numbers.
    pub seed: Seed,
    /// Whether RTP and RTCP are recorded as they are without encryption.
    pub plain: bool,
    /// Whether there is sound next to the video: a sender has a microphone, and a receiver takes what comes. A receiver that
    /// makes the offer asks for it.
    pub sound: bool,
}

impl Common {
    /// What a job says: this end makes an offer to `other` and asks for this quality, or waits for one at its port; `None` if the
    /// other end is not among the peers.
    ///
    /// # Errors
    /// The host's addresses are not known.
    pub(crate) fn of(
        job: &Job,
        other: Option<&String>,
        (port, token, signalling): (u16, &Option<String>, Signalling),
        quality: WebrtcQuality,
    ) -> Result<Option<Self>, EndpointError> {
        let token = token.clone();
        let meeting = match other {
            None => Meeting::Waits { address: None, port, token },
            Some(other) => {
                let Some(peer) = job.peers.get(other) else { return Ok(None) };
                let Some(port) = peer.port else { return Ok(None) };
                let door = Door { signalling, token: None };
                let path = Some(door.resource(quality));
                Meeting::Offers(Server { host: peer.host.clone(), port, signalling, path, token })
            }
        };
        // Nobody knows what a stranger offers.
        let sound = other.is_none_or(|other| job.peers.get(other).is_some_and(|peer| peer.sound));
        // Without a name of its own, the other end is the only one that refers to this one.
        let referring: Vec<&str> = job.referring().map(|(name, _)| name).collect();
        let alone = match referring[..] {
            [one] => Some(one.to_owned()),
            _ => None,
        };
        Ok(Some(Self {
            name: job.endpoint.name.clone(),
            meeting,
            peer: other.cloned().or(alone),
            addresses: net::addresses()?,
            dir: job.dir.clone(),
            start: Time::ZERO + job.endpoint.start,
            seed: job.seed,
            plain: job.rtp,
            sound,
        }))
    }
}

/// What woke an endpoint.
pub(crate) enum Woken {
    Packet(usize, (SocketAddr, SocketAddr)),
    Ask(Waiting),
    Due,
}

/// The endpoint without its video.
pub(crate) struct Endpoint {
    pub clock: Clock,
    pub sessions: Sessions,
    way: Way,
    sockets: Sockets,
    door: Door,
    desk: mpsc::Receiver<Waiting>,
    /// The HTTP server; `None` if this end makes the offer.
    server: Option<JoinHandle<()>>,
    /// The session that this end opened: where it is to be deleted.
    opened: Option<(Server, Answered)>,
    log: Log,
}

impl Endpoint {
    /// Opens sockets and tables; from now on offers are taken, if this end waits for them.
    pub async fn open(
        common: &Common,
        clock: Clock,
        (way, rates): (Way, (BitRate, BitRate)),
    ) -> Result<Self, EndpointError> {
        let signalling = match (way, &common.meeting) {
            (Way::Sends, Meeting::Waits { .. }) | (Way::Receives, Meeting::Offers(_)) => {
                Signalling::Whep
            }
            _ => Signalling::Whip,
        };
        let sockets = Sockets::bind(&common.addresses)?;
        let certificate = Certificate::generate().ok_or(EndpointError::Certificate)?;
        let setup = Setup {
            way,
            local: sockets.addresses(),
            certificate,
            rates,
            answers: matches!(common.meeting, Meeting::Waits { .. }),
            sound: common.sound,
            plain: common.plain,
        };
        let zero = clock.instant(Time::ZERO);
        let name = common.name.clone();
        let sessions = Sessions::new(name, signalling, zero, setup);
        let peer = common.peer.as_deref().map(Text::from);
        let mut log = Log::create(&common.dir, &common.name, (way, peer))?;
        if common.plain {
            let plain = plain::Log::create(&common.dir, &common.name, clock.epoch_unix_ns());
            log.plain = Some(plain.map_err(EndpointError::Plain)?);
        }
        let (post, desk) = mpsc::channel(WAITING_MAX);
        let (server, token) = match &common.meeting {
            Meeting::Waits { address, port, token } => {
                let server = server::open(*address, *port, post).await?;
                log.signalling(clock.now(), FlowRole::Server, *port);
                (Some(server), token.clone())
            }
            Meeting::Offers(server) => {
                log.signalling(clock.now(), FlowRole::Client, server.port);
                (None, None)
            }
        };
        let door = Door { signalling, token };
        Ok(Self { clock, sessions, way, sockets, door, desk, server, opened: None, log })
    }

    /// Meets the other end when the trial begins for this one. False if `stop` was ready before they had met.
    pub async fn begin(
        &mut self,
        common: &Common,
        stop: impl Future<Output = ()>,
    ) -> Result<bool, EndpointError> {
        let meets = async {
            self.clock.sleep_until(common.start).await;
            self.meet(&common.meeting).await
        };
        tokio::select! {
            biased;
            () = stop => Ok(false),
            met = meets => met.map(|()| true),
        }
    }

    /// Makes an offer, if this end does, and takes the answer.
    async fn meet(&mut self, meeting: &Meeting) -> Result<(), EndpointError> {
        let Meeting::Offers(server) = meeting else { return Ok(()) };
        let (number, offered) = self.sessions.offer(self.clock.now())?;
        let answered = server.offer(offered.description.clone()).await?;
        let answer = (offered, answered.description.as_str());
        self.sessions.on_answer(self.clock.now(), number, answer)?;
        self.opened = Some((server.clone(), answered));
        Ok(())
    }

    /// Waits for a packet, a request, or what is due here or at `other`.
    pub async fn wait(
        &mut self,
        buffer: &mut [u8],
        other: Option<Time>,
    ) -> Result<Woken, EndpointError> {
        let due = [self.sessions.next_event(), other].into_iter().flatten().min();
        let serves = self.server.is_some();
        let woken = tokio::select! {
            received = self.sockets.receive(buffer) => {
                let (length, route) = received?;
                Woken::Packet(length, route)
            }
            Some(waiting) = self.desk.recv(), if serves => Woken::Ask(waiting),
            () = self.clock.sleep_until_due(due) => Woken::Due,
        };
        Ok(woken)
    }

    /// Deals with what woke it. Everything that has come is taken in, so that no packet waits for a timer.
    pub fn on_woken(&mut self, woken: Woken, buffer: &mut [u8]) {
        match woken {
            Woken::Packet(mut length, mut route) => {
                for taken in 1.. {
                    self.sessions.on_packet(self.clock.now(), route, &buffer[..length]);
                    if taken == BATCH {
                        break;
                    }
                    let Some(next) = self.sockets.receive_now(buffer) else { break };
                    (length, route) = next;
                }
            }
            Woken::Ask(Waiting { ask, reply }) => {
                let replied = self.door.judge(&ask).map(|command| self.obey(command));
                // Who asked may be gone.
                let _ = reply.send(replied.unwrap_or_else(|refusal| refusal));
            }
            Woken::Due => {}
        }
        let now = self.clock.now();
        self.sessions.on_time(now);
        if self.way == Way::Receives
            && self.sessions.len() > 1
            && let Some(first) = self.sessions.connected().first()
        {
            self.sessions.keep_only(now, *first);
        }
    }

    fn obey(&mut self, command: Command) -> Reply {
        let now = self.clock.now();
        let unknown = || Reply::problem(404, "not found", "no session of that name");
        match command {
            // Who has only made an offer does not keep others out: the first that is connected publishes.
            Command::Offer(..)
                if self.way == Way::Receives && !self.sessions.connected().is_empty() =>
            {
                Reply::problem(409, "conflict", "another publisher is already connected")
            }
            Command::Offer(offer, quality) => match self.sessions.answer(now, &offer) {
                Ok((number, answer)) => match self.sessions.get(number) {
                    Some(session) => {
                        session.quality = quality;
                        self.door.created(&session.name, &session.tag, answer)
                    }
                    None => unknown(),
                },
                Err(crate::sessions::Refused::Full) => {
                    let detail = crate::sessions::Refused::Full.to_string();
                    Reply::problem(503, "busy", &detail)
                }
                Err(error) => Reply::problem(400, "malformed offer", &error.to_string()),
            },
            Command::Trickle(name, tag, fragment) => {
                let Some(number) = self.sessions.named(&name) else { return unknown() };
                self.trickle(now, number, (tag, &fragment.candidates))
            }
            Command::Delete(name) => {
                let Some(number) = self.sessions.named(&name) else { return unknown() };
                self.sessions.end(now, number, SessionEnd::Deleted);
                Reply::empty(200)
            }
        }
    }

    /// RFC 9725 §4.3.1: the entity tag says to which ICE session candidates belong.
    fn trickle(
        &mut self,
        now: Time,
        number: u64,
        (tag, candidates): (Option<String>, &[String]),
    ) -> Reply {
        let Some(session) = self.sessions.get(number) else { return Reply::empty(404) };
        let expected = format!("\"{}\"", session.tag);
        match tag.as_deref() {
            None => {
                let detail = "expected If-Match with the session's entity tag";
                return Reply::problem(428, "precondition required", detail);
            }
            Some("*") => {
                return Reply::problem(422, "unprocessable", "ICE restarts are not supported");
            }
            Some(found) if found != expected => {
                let detail = format!("expected If-Match: {expected}, found {found}");
                return Reply::problem(412, "precondition failed", &detail);
            }
            Some(_) => {}
        }
        for candidate in candidates {
            let mut taken = Ok(true);
            self.sessions.with(now, number, |session| {
                taken = session.peer.on_candidate(now, candidate);
                Ok(())
            });
            match taken {
                // RFC 9725 §4.3.2: what cannot be used is discarded, and the rest processed.
                Ok(is_used) => self.log.summary.unused += u64::from(!is_used),
                Err(error) => {
                    return Reply::problem(400, "malformed candidate", &error.to_string());
                }
            }
        }
        Reply::empty(204)
    }

    /// What happened next, after it was recorded; `sends` is what a sender's encoders are set to.
    pub fn take_happened(
        &mut self,
        sends: Option<&Sending>,
    ) -> Result<Option<(u64, Happened)>, EndpointError> {
        let Some((number, happened)) = self.sessions.take_happened(self.clock.now()) else {
            return Ok(None);
        };
        if let (Happened::Plain(plain), Some(log)) = (&happened, &mut self.log.plain) {
            log.push(plain).map_err(EndpointError::Plain)?;
        }
        if let Happened::Statistics(statistics) = &happened
            && let Some(session) = self.sessions.get(number)
        {
            session.on_pair(statistics.pair);
            let estimate = session.peer.estimate();
            let is_connected = session.is_connected();
            if let Some(pair) = statistics.pair {
                self.log.pair(statistics.at, number, pair);
            }
            if is_connected {
                let set = sends.and_then(|sends| sends.sent_to(number));
                self.log.statistics(number, statistics, set.map(|set| (estimate, set)))?;
            }
        }
        Ok(Some((number, happened)))
    }

    /// Sends what is to be sent, and writes down which sessions have ended.
    pub async fn flush(&mut self) -> Result<(), EndpointError> {
        while let Some(transmit) = self.sessions.take_transmit() {
            self.log.summary.unsent += u64::from(!self.sockets.send(&transmit).await);
        }
        for row in self.sessions.take_ended() {
            self.log.session(row)?;
        }
        Ok(())
    }

    /// Ends all sessions and completes the records.
    pub async fn close(mut self) -> Result<Summary, EndpointError> {
        self.sessions.finish(self.clock.now());
        self.flush().await?;
        // Whatever the other end does, the records are complete.
        let summary = self.log.close();
        if let Some((server, answered)) = self.opened.take() {
            // The other end may be gone already, or be asked to stop too, or be far behind a queue.
            let _ = tokio::time::timeout(FAREWELL, server.delete(&answered.session)).await;
        }
        if let Some(server) = self.server.take() {
            server.abort();
        }
        summary
    }
}
