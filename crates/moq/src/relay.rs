//! The relay: it accepts sessions, and forwards the broadcasts of publishers to the sessions that subscribe to them.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use moq_net::{Error, Pattern, Patterns, Server, Session, Version, Versions, cache, origin, stats};
use moq_noq::{Connection, Incoming};
use suiro_clock::Clock;
use suiro_endpoint::{Context, Failure, Summary as Said};
use suiro_record::words::FlowRole;
use suiro_scenario::{Job, MoqRelay};
use suiro_units::{Bytes, Duration, Time};
use tokio::sync::mpsc;

use crate::client::{TOKEN_KEY, protocol};
use crate::deadline::{Deadline, Groups};
use crate::job::{FOREVER, RECEIVE_WINDOW, SEND_WINDOW, qlog};
use crate::net::{self, Behaviour};
use crate::places::{Answer, Place, Places};
use crate::records::{Carried, EVERY, Records, Summary};
use crate::{EndpointError, tls, transport, webtransport};

/// How long a client may take to set its session up.
const SET_UP: std::time::Duration = std::time::Duration::from_secs(10);
/// Names of broadcasts that a session may have announced at the same time. Each takes about 10 kB.
const NAMES_MAX: usize = 1000;
/// Code of a session that has too many: `TOO_MANY_REQUESTS` of moq-transport until draft 16. Later ones have none for it.
const TOO_MANY: u32 = 0x7;
/// Largest number of events of sessions that wait to be recorded.
const EVENTS_MAX: usize = 1024;

/// What a relay needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct RelayJob {
    /// Its name, for records, and for its certificate.
    pub name: String,
    /// The names that clients call its host by.
    pub hosts: Vec<String>,
    /// The address that it listens at; `None`: every one.
    pub address: Option<IpAddr>,
    /// The UDP port that it listens at.
    pub port: u16,
    /// The token that clients must present.
    pub token: Option<String>,
    /// How long after the beginning of the next group a group may still be passed on; `None`: for ever.
    pub deadline: Option<Duration>,
    /// Memory for groups.
    pub cache: Bytes,
    /// Sessions at the same time.
    pub sessions: u32,
    /// How its connections behave.
    pub behaviour: Behaviour,
    /// Whether its clients are endpoints of the same trial, which then write the table `flows` themselves.
    pub known_clients: bool,
    /// Folder for records.
    pub dir: PathBuf,
}

impl RelayJob {
    /// What a trial's job file asks for; `None` if the endpoint is no relay.
    pub fn from_job(job: &Job) -> Option<Self> {
        let spec = job.endpoint.spec.downcast::<MoqRelay>()?;
        Some(Self {
            name: job.endpoint.name.clone(),
            hosts: vec![job.endpoint.host.clone(), "localhost".to_owned()],
            address: None,
            port: spec.port,
            token: spec.token.clone(),
            deadline: spec.deadline,
            cache: spec.cache,
            sessions: spec.sessions,
            behaviour: Behaviour {
                congestion: spec.congestion,
                delta: spec.delta,
                streams: spec.streams,
                // A frame is sent before the next one begins.
                fair: false,
                send_window: SEND_WINDOW,
                receive_window: RECEIVE_WINDOW,
                offload: false,
                ecn: spec.ecn,
                qlog: spec.qlog.then(|| qlog(job)),
            },
            known_clients: job.referring().next().is_some(),
            dir: job.dir.clone(),
        })
    }
}

/// Runs a trial's job of a relay.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Said, Failure> {
    let work = RelayJob::from_job(job).ok_or("the job is no relay's")?;
    let done = context.run(async |pulse, ready, stop| run(&work, pulse.clock(), ready, stop).await);
    Ok(Said::of(&done?))
}

/// An event of a session, for the records.
enum Event {
    Connected {
        begun: Time,
        at: Time,
        connection: Connection,
        tell: tokio::sync::oneshot::Sender<u64>,
    },
    SetUp {
        at: Time,
        number: u64,
        version: Version,
    },
    Ended {
        at: Time,
        number: u64,
        why: String,
    },
}

/// The state that all sessions share.
struct Shared {
    clock: Clock,
    token: Option<String>,
    origin: origin::Producer,
    versions: Versions,
    events: mpsc::Sender<Event>,
    places: Places,
    deadline: Option<Deadline>,
    served: Mutex<Vec<Served>>,
}

/// What a session has announced and what it is sent, which the relay looks at now and then.
struct Served {
    by_name: stats::Registry,
    connection: Connection,
    /// What is being sent, if it has a deadline.
    groups: Option<Arc<Groups>>,
}

impl Served {
    /// Gives up what is late. Ends the connection if there are too many names. Returns whether it goes on.
    fn look(&self, now: Time) -> bool {
        if let Some(groups) = &self.groups {
            groups.look(now);
        }
        let mut report = stats::Report::default();
        self.by_name.report(&mut report);
        let names = report.traffic.iter().filter(|it| it.subscriber.is_announced()).count();
        if names > NAMES_MAX {
            let why = format!("{names} names are announced, and at most {NAMES_MAX} may be");
            self.connection.close(TOO_MANY.into(), why.as_bytes());
        }
        self.connection.close_reason().is_none()
    }
}

/// Runs a relay until `stop` is ready. `ready` is called once, when clients can connect.
///
/// # Errors
/// [`EndpointError`].
pub async fn run(
    job: &RelayJob,
    clock: Clock,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<Summary, EndpointError> {
    let mut records = Records::create(&job.dir, &job.name, job.behaviour.congestion.name())?;
    let versions = Versions::all();
    let http = std::iter::once(webtransport::ALPN);
    let protocols = versions.alpns().into_iter().chain(http).map(Into::into).collect();
    let file = tls::file(&job.dir, &job.name);
    let tls = tls::server(job.hosts.clone(), clock.unix_ns(clock.now()), &file, protocols)?;
    let everywhere = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let at = SocketAddr::new(job.address.unwrap_or(everywhere), job.port);
    let endpoint = net::serve(suiro_endpoint::net::udp(at)?, tls, &job.behaviour)?;
    let (origin, driver) = origin::Producer::new(config(job));
    tokio::spawn(moq_net::time::run(driver));
    let (events, mut happened) = mpsc::channel(EVENTS_MAX);
    let token = job.token.clone();
    let places = Places::new(job.sessions);
    let deadline = job.deadline.map(|after| Deadline { after, priorities: None });
    let served = Mutex::default();
    let shared =
        Arc::new(Shared { clock, token, origin, versions, events, places, deadline, served });
    ready();
    let mut stop = std::pin::pin!(stop);
    let mut look = clock.now();
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(event) = happened.recv() => on_event(job, &mut records, event)?,
            Some(incoming) = endpoint.accept() => shared.admit(incoming, &mut records.summary),
            () = clock.sleep_until(look) => {
                let now = clock.now();
                records.look(now)?;
                let mut served = shared.served.lock().expect("no holder panics");
                served.retain(|session| session.look(now));
                look = now + EVERY;
            }
        }
    }
    let summary = records.close()?;
    endpoint.close(0u32.into(), b"the relay ends");
    let _ = tokio::time::timeout(std::time::Duration::from_millis(200), endpoint.wait_idle()).await;
    Ok(summary)
}

fn config(job: &RelayJob) -> origin::Config {
    let capacity = cache::Config::default().with_capacity(job.cache.get());
    let mut config = origin::Config::default();
    config.pool = cache::Pool::new(capacity);
    config.default_max_age = job.deadline.map_or(FOREVER, Into::into);
    config.cache_duration = config.default_max_age;
    config
}

fn on_event(job: &RelayJob, records: &mut Records, event: Event) -> Result<(), EndpointError> {
    match event {
        Event::Connected { begun, at, connection, tell } => {
            let local = (std::net::Ipv4Addr::UNSPECIFIED, job.port).into();
            let carried = Carried { role: FlowRole::Server, peer: None };
            let carried = Some(carried).filter(|_| !job.known_clients);
            let own = (FlowRole::Server, local);
            let number = records.connected((begun, at), &connection, own, carried);
            // This fails only if the session has ended in the meantime.
            let _ = tell.send(number);
        }
        Event::SetUp { at, number, version } => records.set_up(at, number, version.as_str()),
        Event::Ended { at, number, why } => records.ended(at, number, &why)?,
    }
    Ok(())
}

impl Shared {
    /// Serves a client if there is a place for it.
    fn admit(self: &Arc<Self>, incoming: Incoming, summary: &mut Summary) {
        let proven = incoming.remote_address_validated();
        match self.places.take(incoming.remote_address().ip(), proven) {
            Answer::Place(place) => {
                tokio::spawn(Arc::clone(self).serve(incoming, place));
            }
            Answer::Full => {
                summary.refused += 1;
                incoming.refuse();
            }
            // It fails for an address that is proven, and this one is not.
            Answer::Prove => drop(incoming.retry()),
        }
    }

    /// Serves one connection until it ends.
    async fn serve(self: Arc<Self>, incoming: Incoming, place: Place) {
        let begun = self.clock.now();
        let connection = tokio::select! {
            connection = tokio::time::timeout(SET_UP, incoming) => connection,
            () = place.gives_way() => return,
        };
        if let Ok(Ok(connection)) = connection {
            self.connected(begun, connection, &place).await;
        }
    }

    async fn connected(&self, begun: Time, connection: Connection, place: &Place) {
        let (tell, number) = tokio::sync::oneshot::channel();
        let at = self.clock.now();
        let kept = connection.clone();
        self.tell(Event::Connected { begun, at, connection: kept, tell }).await;
        let Ok(number) = number.await else { return };
        let set_up = tokio::time::timeout(SET_UP, self.set_up(connection.clone()));
        let set_up = tokio::select! {
            set_up = set_up => set_up.map_err(|_| "the session was not set up in time"),
            () = place.gives_way() => Err("the relay is full, and no session was set up"),
        };
        let why = match set_up {
            Ok(Ok(session)) => {
                place.is_set_up();
                let version = session.version();
                self.tell(Event::SetUp { at: self.clock.now(), number, version }).await;
                session.closed().await
            }
            Ok(Err(error)) => error,
            Err(because) => {
                let late = moq_net::SessionError::Timeout;
                connection.close(late.to_code().into(), because.as_bytes());
                Error::Timeout
            }
        };
        let at = self.clock.now();
        self.tell(Event::Ended { at, number, why: why.to_string() }).await;
    }

    /// Sets up a session. It must present the token, if there is one, and its broadcasts are those below its path.
    async fn set_up(&self, connection: Connection) -> Result<Session, Error> {
        let protocol = protocol(&connection);
        let kept = connection.clone();
        let (session, url) = match protocol.as_deref() {
            Some(webtransport::ALPN) => self.over_http(connection).await?,
            _ => (transport::Session::new(connection, protocol), None),
        };
        let groups = self.deadline.clone().map(|deadline| Groups::new(self.clock, deadline));
        let session = session.with_deadline(groups.clone());
        let now = self.clock.instant(self.clock.now());
        let by_name = stats::Registry::new(stats::Config::new());
        let counts = by_name.tier(stats::Tier::default()).session("");
        let server = Server::new().with_versions(self.versions.clone()).with_stats(counts);
        let handshake = server.accept_request(now, session).await?;
        let (root, shown) = split(url.as_deref().unwrap_or(handshake.path()));
        let shown = shown.map(str::as_bytes);
        let in_setup = handshake.token().map(|token| token.value.as_slice());
        if !admits(self.token.as_deref(), [shown, in_setup]) {
            handshake.close(Error::Unauthorized);
            return Err(Error::Unauthorized);
        }
        let scope = match self.scope(root) {
            Ok(scope) => scope,
            Err(error) => {
                handshake.close(error.clone());
                return Err(error);
            }
        };
        let handshake = handshake.with_publisher(&scope).with_subscriber(scope);
        let (session, driver) = handshake.ok().await?;
        tokio::spawn(moq_net::time::run(driver));
        let served = Served { by_name, connection: kept, groups };
        self.served.lock().expect("no holder panics").push(served);
        Ok(session)
    }

    /// Accepts a session of WebTransport, if its URL has the token and a path that exists. Returns it with that URL.
    async fn over_http(
        &self,
        connection: Connection,
    ) -> Result<(transport::Session, Option<String>), Error> {
        let failed = |error: webtransport::RequestError| Error::Transport(error.to_string());
        let request = webtransport::Request::read(&connection).await.map_err(failed)?;
        let url = request.path();
        let spoken = self.versions.alpns();
        let protocol = request.protocols().iter().find(|wanted| spoken.contains(&wanted.as_str()));
        let refusal = match (split(&url), protocol) {
            ((_, shown), _) if !admits(self.token.as_deref(), [shown.map(str::as_bytes), None]) => {
                Some((401, Error::Unauthorized))
            }
            ((root, _), _) if self.scope(root).is_err() => Some((404, Error::NotFound)),
            (_, None) => Some((400, Error::Version)),
            _ => None,
        };
        if let Some((status, error)) = refusal {
            request.refuse(status).await.map_err(failed)?;
            return Err(error);
        }
        let protocol = protocol.cloned();
        let http = request.accept(protocol.as_deref()).await.map_err(failed)?;
        let session = transport::Session::over_http(connection, protocol.as_deref(), http);
        Ok((session, Some(url)))
    }

    /// Everything below a path.
    fn scope(&self, root: &str) -> Result<origin::Producer, Error> {
        let all: Patterns = [Pattern::all()].into_iter().collect();
        self.origin.scope(root, &all)
    }

    async fn tell(&self, event: Event) {
        // Without the loop that writes records, the relay has ended.
        let _ = self.events.send(event).await;
    }
}

/// The path of a session without its query, and the token in the query.
pub fn split(path: &str) -> (&str, Option<&str>) {
    let (root, query) = path.split_once('?').unwrap_or((path, ""));
    let token = query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key == TOKEN_KEY).then_some(value)
    });
    (root.trim_matches('/'), token)
}

/// Whether one of the presented tokens is the required one. Without a required token, everybody is admitted.
pub fn admits(asked: Option<&str>, shown: [Option<&[u8]>; 2]) -> bool {
    let Some(asked) = asked else { return true };
    shown.into_iter().flatten().any(|shown| same(asked.as_bytes(), shown))
}

/// Compares two secrets in constant time: it depends on their lengths only.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b));
    one.len() == other.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_a_root_and_maybe_a_token() {
        assert_eq!(split(""), ("", None));
        assert_eq!(split("/"), ("", None));
        assert_eq!(split("/?jwt=a=b"), ("", Some("a=b")));
        assert_eq!(split("/studio/one?x=1&jwt=s3cret"), ("studio/one", Some("s3cret")));
        assert_eq!(split("studio?token=s3cret"), ("studio", None));
    }

    #[test]
    fn only_the_token_admits() {
        assert!(admits(None, [None, None]));
        assert!(!admits(Some("s3cret"), [None, None]));
        assert!(admits(Some("s3cret"), [Some(b"s3cret"), None]));
        assert!(admits(Some("s3cret"), [Some(b"x"), Some(b"s3cret")]));
        assert!(!admits(Some("s3cret"), [Some(b"s3cre"), Some(b"s3crets")]));
    }
}
