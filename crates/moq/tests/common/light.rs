//! Clients that only count: many of them are cheap, so that what is measured is the relay.

#![allow(dead_code, reason = "each program uses a part of it")]

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::Poll;

use moq_net::track::Subscription;
use moq_net::{
    Client, Session, Timescale, Timestamp, Version, broadcast, cache, group, origin, track,
};
use moq_noq::{ClientConfig, Connection, Endpoint};
use suiro_clock::Clock;
use suiro_moq::deadline::Groups;
use suiro_moq::net::Behaviour;
use suiro_moq::requests::Requests;
use suiro_moq::transport;
use suiro_scenario::QuicCongestion;

use crate::common::{self, LOCALHOST};

const BROADCAST: &str = "bench/camera";
pub const TRACK: &str = "video";
const ALPN: &str = "moqt-18";
/// What a client keeps of what has passed, in bytes.
const KEPT: u64 = 4_000_000;
/// How long one step of connecting may take on a machine that has other things to do.
const STEP: std::time::Duration = std::time::Duration::from_secs(60);
/// Late objects count too, however late.
const FOREVER: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// A socket for connections to a relay that listens at that port of this machine.
#[derive(Clone)]
pub struct Socket {
    endpoint: Endpoint,
    config: ClientConfig,
    port: u16,
    clock: Clock,
}

impl Socket {
    /// Its connections let the relay open so many streams at the same time.
    pub fn open(clock: Clock, dir: &Path, port: u16, streams: u32) -> Self {
        let behaviour = Behaviour { streams, ..common::behaviour(QuicCongestion::NewReno) };
        let (endpoint, config) = common::quic(dir, vec![ALPN.into()], &behaviour);
        Self { endpoint, config, port, clock }
    }
}

/// Keeps a bounded amount of what has passed.
fn origin() -> origin::Producer {
    let mut config = origin::Config::default();
    config.pool = cache::Pool::new(cache::Config::default().with_capacity(KEPT));
    config.default_max_age = FOREVER;
    let (origin, driver) = origin::Producer::new(config);
    tokio::spawn(moq_net::time::run(driver));
    origin
}

/// Waits for a step of connecting; one that takes too long is named.
pub async fn within<T>(step: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(STEP, work).await.unwrap_or_else(|_| panic!("{step}: not in {STEP:?}"))
}

/// A session with a relay that listens at that port of this machine. It ends when it is dropped.
pub struct Link {
    pub connection: Connection,
    /// What it has subscribed to.
    pub requests: Arc<Requests>,
    _session: Session,
    driver: tokio::task::JoinHandle<()>,
    /// Once it is set, the session reads nothing more; its connection goes on.
    stalled: Arc<AtomicBool>,
}

impl Link {
    /// The groups that it sends have a deadline if there are `groups`.
    pub async fn connect(socket: &Socket, client: Client, groups: Option<Arc<Groups>>) -> Self {
        let Socket { endpoint, config, port, clock } = socket;
        let to = (LOCALHOST, *port).into();
        let connecting = endpoint.connect_with(config.clone(), to, "127.0.0.1").unwrap();
        let connection = within("the handshake", connecting).await.unwrap();
        let requests = Arc::<Requests>::default();
        let session = transport::Session::new(connection.clone(), Some(ALPN.to_owned()))
            .with_deadline(groups)
            .with_requests(Some(Arc::clone(&requests)));
        let version: Version = "moq-transport-18".parse().unwrap();
        let client = client.with_versions(version.into());
        let set_up = client.connect(clock.instant(clock.now()), session);
        let (session, driver) = within("setting up a session", set_up).await.unwrap();
        let stalled = Arc::new(AtomicBool::new(false));
        let driver = tokio::spawn(drive(Arc::clone(&stalled), moq_net::time::run(driver)));
        Self { connection, requests, _session: session, driver, stalled }
    }

    pub fn stall(&self) {
        self.stalled.store(true, Relaxed);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
        self.connection.close(0u32.into(), b"done");
    }
}

/// Runs the session until it is stalled.
async fn drive<T>(stalled: Arc<AtomicBool>, session: impl Future<Output = T>) {
    let mut session = std::pin::pin!(session);
    std::future::poll_fn(|context| {
        if stalled.load(Relaxed) {
            return Poll::Pending;
        }
        Pin::as_mut(&mut session).poll(context).map(drop)
    })
    .await;
}

/// A track whose objects are numbered, each a group of its own.
pub struct Publisher {
    pub link: Link,
    _broadcast: broadcast::Producer,
    track: track::Producer,
    next: u64,
}

impl Publisher {
    pub async fn connect(socket: &Socket) -> Self {
        Self::with_deadline(socket, None).await
    }

    /// The same, whose groups have a deadline if there are `groups`.
    pub async fn with_deadline(socket: &Socket, groups: Option<Arc<Groups>>) -> Self {
        let origin = origin();
        let broadcast = origin.create_broadcast(BROADCAST).unwrap();
        let info = track::Info::default().with_timescale(Timescale::MICRO).with_max_age(FOREVER);
        let track = broadcast.create_track(TRACK, info).unwrap();
        broadcast.announce(Default::default()).unwrap();
        let link = Link::connect(socket, Client::new().with_publisher(&origin), groups).await;
        Self { link, _broadcast: broadcast, track, next: 0 }
    }

    /// Waits until its track has no subscriber.
    pub async fn unused(&self) {
        self.track.unused().await.unwrap();
    }

    /// Sends an object of so many bytes. Returns its number.
    pub fn send(&mut self, clock: Clock, bytes: usize) -> u64 {
        let (time, object) = self.object(clock, bytes);
        self.track.write_frame(time, object).unwrap();
        self.next - 1
    }

    /// Sends such an object, and returns its group, in which more may follow.
    pub fn begin(&mut self, clock: Clock, bytes: usize) -> group::Producer {
        let (time, object) = self.object(clock, bytes);
        let mut group = self.track.append_group().unwrap();
        group.write_frame(time, object).unwrap();
        group
    }

    /// The next object.
    fn object(&mut self, clock: Clock, bytes: usize) -> (Timestamp, Vec<u8>) {
        let mut object = vec![0; bytes.max(16)];
        object[..8].copy_from_slice(&self.next.to_be_bytes());
        object[8..16].copy_from_slice(&clock.now().as_nanos().to_be_bytes());
        let time = Timestamp::from_micros(clock.now().as_nanos() / 1000).unwrap();
        self.next += 1;
        (time, object)
    }
}

/// What viewers have received.
#[derive(Default)]
pub struct Counts {
    /// The first number that counts, and the first that does not any more.
    pub from: AtomicU64,
    pub to: AtomicU64,
    /// Objects in between, and their bytes.
    pub objects: AtomicU64,
    pub bytes: AtomicU64,
    /// How long they took: up to 1 ms, 2 ms, 4 ms, …
    pub took: [AtomicU64; 16],
}

impl Counts {
    fn add(&self, clock: Clock, object: &[u8]) {
        let field = |at: usize| {
            object.get(at..at + 8).map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap()))
        };
        let Some((number, sent_ns)) = field(0).zip(field(8)) else { return };
        if (self.from.load(Relaxed)..self.to.load(Relaxed)).contains(&number) {
            self.objects.fetch_add(1, Relaxed);
            self.bytes.fetch_add(object.len() as u64, Relaxed);
            let ms = clock.now().as_nanos().saturating_sub(sent_ns) / 1_000_000;
            let slot = (u64::BITS - ms.leading_zeros()).min(15) as usize;
            self.took[slot].fetch_add(1, Relaxed);
        }
    }

    /// So many milliseconds or less took that share of the objects.
    pub fn percentile_ms(&self, share: f64) -> u64 {
        let all: Vec<u64> = self.took.iter().map(|slot| slot.load(Relaxed)).collect();
        let (wanted, mut sum) = (all.iter().sum::<u64>() as f64 * share, 0);
        let slot = all.iter().position(|count| {
            sum += count;
            sum as f64 >= wanted
        });
        1 << slot.unwrap_or(15)
    }
}

/// A session that has subscribed to the publisher's track.
pub async fn subscribe(socket: &Socket) -> (Link, track::Subscriber) {
    let origin = origin();
    let client = Client::new().with_subscriber(origin.clone());
    let link = Link::connect(socket, client, None).await;
    let origin = origin.consume();
    let broadcast = within("an announcement", origin.routed_broadcast(BROADCAST)).await.unwrap();
    let wanted = Subscription::default().with_max_age(FOREVER);
    let subscribed = broadcast.track(TRACK).unwrap().subscribe(wanted);
    let track = within("a subscription", subscribed).await.unwrap();
    (link, track)
}

/// A viewer that counts. It is there when its subscription is confirmed, and goes on until it is dropped.
pub struct Viewer {
    pub link: Link,
    reading: tokio::task::JoinHandle<()>,
}

impl Viewer {
    pub async fn connect(socket: &Socket, counts: Arc<Counts>) -> Self {
        let clock = socket.clock;
        let (link, mut track) = subscribe(socket).await;
        let reading = tokio::spawn(async move {
            // Both end when the relay does.
            while let Ok(Some(mut group)) = track.recv_group().await {
                while let Ok(Some(frame)) = group.read_frame().await {
                    counts.add(clock, &frame.payload);
                }
            }
        });
        Self { link, reading }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
