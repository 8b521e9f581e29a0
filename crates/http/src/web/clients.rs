//! The people: each loads page after page, and the table `pages`.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use suiro_endpoint::{Context, Failure, Summary};
use suiro_record::tables::PageRow;
use suiro_record::words::Carries;
use suiro_record::{RecordError, Text, Writer};
use suiro_scenario::{EndpointSpec, Job, WebClients};
use suiro_units::{Duration, Seed, Time, to_i64};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::pages::{Page, Pages};
use crate::Clock;
use crate::flows::{Flows, OWN_AGENT};

/// How long a page may take; then its reader gives it up.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// Pages that wait to be recorded; their readers wait with them.
const ROWS_WAITING: usize = 64;

/// Why the people stop, or a page is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// No connection.
    #[error("connecting to {host} port {port}: {cause}")]
    Connect {
        /// The server's host.
        host: String,
        /// The server's port.
        port: u16,
        /// What the system said.
        cause: io::Error,
    },
    /// It is no HTTP, or the connection broke.
    #[error("http: {}", crate::net::causes(.0))]
    Http(hyper::Error),
    /// Not what was asked for.
    #[error("requested {asked} bytes, got status {status} and {bytes} bytes")]
    Answer {
        /// The size asked for.
        asked: u64,
        /// The status of the answer.
        status: u16,
        /// Bytes of its body.
        bytes: u64,
    },
    /// It took too long.
    #[error("the page took longer than {PAGE_TIMEOUT}")]
    Timeout,
    /// The trial ended first.
    #[error("the trial ended first")]
    Stopped,
}

impl From<hyper::Error> for WebError {
    fn from(cause: hyper::Error) -> Self {
        Self::Http(cause)
    }
}

/// What the people are to do.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientsJob {
    /// Their name, for records.
    pub name: String,
    /// The server's name, for records.
    pub server_name: String,
    /// Host and port of the server.
    pub server: (String, u16),
    /// What they load, and how.
    pub clients: WebClients,
    /// The seed of their random numbers.
    pub seed: Seed,
    /// Folder for records.
    pub dir: PathBuf,
}

impl ClientsJob {
    /// What a trial's job file asks for; `None` if the endpoint is no web clients, or their server is
    /// not among the peers.
    pub fn from_job(job: &Job) -> Option<Self> {
        let EndpointSpec::WebClients(clients) = &job.endpoint.spec else { return None };
        let peer = job.peers.get(&clients.server)?;
        Some(Self {
            name: job.endpoint.name.clone(),
            server_name: clients.server.clone(),
            server: (peer.host.clone(), peer.port?),
            clients: clients.clone(),
            seed: job.seed,
            dir: job.dir.clone(),
        })
    }
}

/// Runs a trial's job of web clients.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Summary, Failure> {
    let work = ClientsJob::from_job(job).ok_or("a web clients' job names its server")?;
    let done = context.run(async |pulse, ready, stop| run(&work, pulse.clock(), ready, stop).await);
    Ok(Summary::new(format!("{} pages", done?)))
}

/// Lets the users load pages until `stop` is ready; returns the number of pages started. `ready` is
/// called once, when they begin. A page that cannot be loaded is recorded, and its reader goes on.
///
/// # Errors
/// If the record cannot be written.
pub async fn run(
    job: &ClientsJob,
    clock: Clock,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<u64, WebError> {
    let mut table = Writer::create_of(&job.dir, &job.name)?;
    let flows = Flows::create(&job.dir, &job.name, clock)?;
    let (rows, mut read) = mpsc::channel(ROWS_WAITING);
    let (tell, told) = watch::channel(false);
    let mut people = JoinSet::new();
    for number in 1..=job.clients.users {
        let visits = Visits { job: Arc::new(job.clone()), flows: flows.clone() };
        let person = Person { visits, clock, number, stop: told.clone() };
        people.spawn(person.live(rows.clone()));
    }
    drop((rows, told));
    ready();
    let mut pages = 0;
    let mut stop = std::pin::pin!(stop);
    let mut stopping = false;
    loop {
        let row: Option<PageRow> = tokio::select! {
            () = &mut stop, if !stopping => {
                stopping = true;
                flows.close()?;
                tell.send_replace(true);
                continue;
            }
            row = read.recv() => row,
        };
        let Some(row) = row else { break };
        pages += 1;
        table.push(row)?;
    }
    table.close()?;
    flows.close()?;
    Ok(pages)
}

/// One of them.
struct Person {
    visits: Visits,
    clock: Clock,
    number: u16,
    /// True when the trial ends.
    stop: watch::Receiver<bool>,
}

impl Person {
    /// Loads page after page until the trial ends.
    async fn live(mut self, rows: mpsc::Sender<PageRow>) {
        let pages = Pages::new(&self.visits.job.clients, self.number, self.visits.job.seed);
        for (number, page) in (1..).zip(pages) {
            let begin = self.clock.now() + page.think;
            tokio::select! {
                () = self.clock.sleep_until(begin) => {}
                _ = self.stop.changed() => return,
            }
            let row = self.visit(&page, number).await;
            let over = *self.stop.borrow();
            if rows.send(row).await.is_err() || over {
                return;
            }
        }
    }

    /// Loads a page, or as much of it as there is time for.
    async fn visit(&mut self, page: &Page, number: i64) -> PageRow {
        let seen = Arc::new(Seen::default());
        let begun = self.clock.now();
        let result = {
            let loading = load(self.visits.clone(), page, seen.clone());
            tokio::select! {
                loaded = tokio::time::timeout(PAGE_TIMEOUT.into(), loading) => {
                    loaded.unwrap_or(Err(WebError::Timeout))
                }
                _ = self.stop.changed() => Err(WebError::Stopped),
            }
        };
        let done = result.is_ok().then(|| nanoseconds(self.clock.now()));
        let sizes = page.objects.iter().map(|size| size.get());
        PageRow {
            t_ns: nanoseconds(begun),
            endpoint: Text::from(self.visits.job.name.as_str()),
            user: i64::from(self.number),
            page: number,
            objects: to_i64(page.objects.len() as u64),
            page_bytes: to_i64(sizes.sum()),
            connections: to_i64(seen.connections.load(Relaxed)),
            body_bytes: to_i64(seen.bytes.load(Relaxed)),
            done_ns: done,
            error: result.err().map(|error| error.to_string().into()),
        }
    }
}

/// How pages are loaded.
#[derive(Clone)]
struct Visits {
    job: Arc<ClientsJob>,
    flows: Flows,
}

/// How far a page has come.
#[derive(Debug, Default)]
struct Seen {
    connections: AtomicU64,
    bytes: AtomicU64,
}

type Connection = SendRequest<Empty<Bytes>>;

/// The first object, then the others side by side.
async fn load(visits: Visits, page: &Page, seen: Arc<Seen>) -> Result<(), WebError> {
    let Some((first, rest)) = page.objects.split_first() else { return Ok(()) };
    let mut connection = connect(&visits, &seen).await?;
    fetch(&mut connection, &visits.job, first.get(), &seen).await?;
    let left: VecDeque<u64> = rest.iter().map(|size| size.get()).collect();
    let lanes = usize::from(visits.job.clients.connections).min(left.len());
    let left = Arc::new(Mutex::new(left));
    let mut open = Some(connection);
    let mut running = JoinSet::new();
    for _ in 0..lanes {
        running.spawn(lane(visits.clone(), open.take(), left.clone(), seen.clone()));
    }
    while let Some(ended) = running.join_next().await {
        // A task is cancelled only with this one.
        ended.unwrap_or(Err(WebError::Stopped))?;
    }
    Ok(())
}

/// Takes objects over one connection until none are left.
async fn lane(
    visits: Visits,
    open: Option<Connection>,
    left: Arc<Mutex<VecDeque<u64>>>,
    seen: Arc<Seen>,
) -> Result<(), WebError> {
    let mut connection = match open {
        Some(open) => open,
        None => connect(&visits, &seen).await?,
    };
    loop {
        let next = left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(size) = next else { return Ok(()) };
        fetch(&mut connection, &visits.job, size, &seen).await?;
    }
}

async fn connect(visits: &Visits, seen: &Seen) -> Result<Connection, WebError> {
    let job = &visits.job;
    let (host, port) = (&job.server.0, job.server.1);
    seen.connections.fetch_add(1, Relaxed);
    let stream = crate::net::connect(host, port, None).await;
    let stream = stream.map_err(|cause| WebError::Connect { host: host.clone(), port, cause })?;
    let server = Some(job.server_name.as_str().into());
    let flow = visits.flows.connected(&stream, Carries::Web, server);
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends when the sender is dropped; its error reaches us through the request.
    tokio::spawn(async move {
        drop(connection.await);
        drop(flow);
    });
    Ok(sender)
}

async fn fetch(
    connection: &mut Connection,
    job: &ClientsJob,
    asked: u64,
    seen: &Seen,
) -> Result<(), WebError> {
    let request = Request::get(format!("/{asked}"))
        .header(HOST, format!("{}:{}", job.server.0, job.server.1))
        .header(USER_AGENT, OWN_AGENT)
        .body(Empty::new())
        .expect("a host of a scenario has a name of letters and digits");
    connection.ready().await?;
    let response = connection.send_request(request).await?;
    let status = response.status();
    let mut body = response.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        bytes += data.len() as u64;
        seen.bytes.fetch_add(data.len() as u64, Relaxed);
        if bytes > asked {
            break;
        }
    }
    if status != StatusCode::OK || bytes != asked {
        return Err(WebError::Answer { asked, status: status.as_u16(), bytes });
    }
    Ok(())
}

fn nanoseconds(time: Time) -> i64 {
    to_i64(time.as_nanos())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use suiro_record::Reader;
    use suiro_record::tables::FlowRow;
    use suiro_record::words::FlowRole;
    use suiro_units::Bytes as Size;
    use tokio::sync::oneshot;

    use super::*;
    use crate::web::server::{self, ServerJob};

    /// A server at any port of this machine, and what ends it.
    async fn served() -> (SocketAddr, oneshot::Sender<()>) {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        tokio::spawn(async move {
            let job = ServerJob { listen, congestion: None, records: None };
            let ready = move |address| tell.send(address).unwrap();
            server::serve(&job, Clock::from_now(), ready, async { drop(stopped.await) }).await
        });
        (told.await.unwrap(), stop)
    }

    fn job(server: SocketAddr, users: u16, dir: PathBuf) -> ClientsJob {
        let clients = WebClients {
            users,
            think: Duration::from_millis(1),
            size: Size::new(2000),
            largest: Size::new(1_000_000),
            ..WebClients::of("web".into())
        };
        ClientsJob {
            name: "readers".into(),
            server_name: "web".into(),
            server: (server.ip().to_string(), server.port()),
            clients,
            seed: Seed(1),
            dir,
        }
    }

    fn visits(job: ClientsJob) -> Visits {
        let flows = Flows::create(&job.dir, &job.name, Clock::from_now()).unwrap();
        Visits { job: Arc::new(job), flows }
    }

    #[tokio::test]
    async fn a_page_comes_whole_over_as_many_connections_as_there_is_use_for() {
        let (address, _stop) = served().await;
        let dir = tempfile::tempdir().unwrap();
        let visits = visits(job(address, 1, dir.path().to_owned()));
        for (objects, connections) in [(1, 1), (2, 1), (3, 2), (9, 6)] {
            let objects = vec![Size::new(100_000); objects];
            let page = Page { think: Duration::ZERO, objects };
            let seen = Arc::new(Seen::default());
            load(visits.clone(), &page, seen.clone()).await.unwrap();
            let bytes = 100_000 * page.objects.len() as u64;
            assert_eq!(seen.bytes.load(Relaxed), bytes);
            assert_eq!(seen.connections.load(Relaxed), connections);
        }
        visits.flows.close().unwrap();
        let rows: Vec<FlowRow> = Reader::read_all(dir.path()).unwrap();
        assert_eq!(rows.len(), 1 + 1 + 2 + 6);
        for row in rows {
            assert_eq!((row.role, row.carries), (FlowRole::Client, Carries::Web));
            assert_eq!((&*row.remote, row.peer.as_deref()), (&*address.to_string(), Some("web")));
        }
    }

    #[tokio::test]
    async fn pages_are_recorded_in_the_order_of_each_person() {
        let (address, _stop) = served().await;
        let dir = tempfile::tempdir().unwrap();
        let job = job(address, 3, dir.path().to_owned());
        // They go on for as long as another one takes for these.
        let elsewhere = tempfile::tempdir().unwrap();
        let other = visits(ClientsJob { dir: elsewhere.path().to_owned(), ..job.clone() });
        let objects = vec![Size::new(100_000); 9];
        let page = Page { think: Duration::ZERO, objects };
        let enough = async {
            for _ in 0..20 {
                load(other.clone(), &page, Arc::default()).await.unwrap();
            }
        };
        let pages = run(&job, Clock::from_now(), || (), enough).await.unwrap();
        let rows: Vec<PageRow> = Reader::read_all(dir.path()).unwrap();
        assert_eq!(rows.len() as u64, pages);
        for user in 1..=3u16 {
            let own: Vec<_> = rows.iter().filter(|row| row.user == i64::from(user)).collect();
            let drawn = Pages::new(&job.clients, user, job.seed);
            assert!(!own.is_empty());
            for (number, (row, page)) in (1..).zip(own.iter().zip(drawn)) {
                assert_eq!(row.page, number);
                let bytes: u64 = page.objects.iter().map(|size| size.get()).sum();
                assert_eq!(row.page_bytes, to_i64(bytes));
                assert!(row.done_ns.is_none_or(|_| row.body_bytes == row.page_bytes));
            }
        }
    }

    #[tokio::test]
    async fn without_a_server_pages_fail_and_say_why() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, suiro_endpoint::net::free_port()));
        let dir = tempfile::tempdir().unwrap();
        let visits = visits(job(address, 1, dir.path().to_owned()));
        let page = Page { think: Duration::ZERO, objects: vec![Size::new(1)] };
        let error = load(visits, &page, Arc::default()).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("connecting to 127.0.0.1 port {}", address.port())));
    }
}
