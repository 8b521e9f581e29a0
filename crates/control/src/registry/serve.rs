//! A running registry.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration as StdDuration;

use suiro_record::RecordError;
use suiro_units::{Duration, Time};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::query::Steps;
use super::subscriptions::News;
use super::{Change, Kind, Moment, Registry, socket};
use crate::discovery::{Announcement, Announcer, Service, texts};
use crate::events::{Journal, Log};
use crate::net;
use crate::nmos::Id;
use crate::node::Place;
use crate::server::{Next, Serving, Upgraded};

/// Different refusals that are reported at most.
const TOLD_MAX: usize = 100;
/// WebSockets at the same time.
const SOCKETS_MAX: usize = 256;
/// How often nodes without heartbeats are looked for.
const TICK: StdDuration = StdDuration::from_secs(1);
/// A registry that looks less often than that was suspended, or had a long answer to make.
const STALLED: Duration = Duration::from_secs(2);

/// Runs a registry until `stop` is ready; returns how many nodes it had then. With a priority, it announces itself by multicast
/// DNS: those of a smaller one are used first.
///
/// # Errors
/// If records cannot be written.
pub async fn run(
    place: Place,
    priority: Option<u8>,
    log: Log,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<usize, RecordError> {
    let Place { listener, door, tls } = place;
    let mut journal = Journal::create(log)?;
    let address = listener.local_addr().ok();
    let announced = priority.zip(address).map(|(priority, address)| {
        announce(address, priority, texts(tls.is_some(), door.is_closed()))
    });
    let announcer = announced.and_then(|announced| {
        let failed = |reason: &String| {
            journal.note("registry", None, None, &format!("it is not announced: {reason}"));
        };
        announced.inspect_err(failed).ok()
    });
    let address = address.map(|address| address.to_string()).unwrap_or_default();
    let mut registry = Registry::at(address, tls.is_some());
    let mut sockets = Sockets::default();
    // Refusals that were reported: a node that is refused tries again every second.
    let mut told = BTreeSet::new();
    let mut serving = Serving::begin_in_turn(listener, tls);
    ready();
    let mut stop = std::pin::pin!(stop);
    let mut tick = net::every(TICK);
    let mut looked = net::monotonic();
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(next) = serving.either() => {
                let waiting = match next {
                    Next::Request(waiting) => *waiting,
                    Next::Upgraded(upgraded) => {
                        sockets.open(&mut registry, upgraded);
                        continue;
                    }
                };
                let before = registry.of(Kind::Node).count();
                let now = look(&mut registry, &mut looked);
                let reply = registry.answer(now, &waiting.ask, &door);
                let nodes = registry.of(Kind::Node).count();
                if nodes != before {
                    journal.note("registry", None, None, &format!("{nodes} nodes"));
                }
                if reply.status == 409 {
                    let reason = reply.reason();
                    if told.len() < TOLD_MAX && told.insert(reason.clone()) {
                        journal.note("refused", None, None, &reason);
                    }
                }
                // Who asked may have gone.
                drop(waiting.reply.send(reply));
                sockets.tell(&mut registry);
            }
            Some(closed) = sockets.running.join_next() => sockets.closed(&mut registry, closed.ok()),
            _ = tick.tick() => {
                let now = look(&mut registry, &mut looked);
                for id in registry.collect(now.monotonic) {
                    let detail = format!("no heartbeat of the node {id}: it is removed");
                    journal.note("registry", None, None, &detail);
                }
                sockets.tell(&mut registry);
            }
        }
    }
    if let Some(mut announcer) = announcer {
        announcer.withdraw().await;
    }
    serving.end().await;
    journal.close()?;
    Ok(registry.of(Kind::Node).count())
}

/// Looks at the clocks. Nodes that could not be heard since the last look are not silent for that.
fn look(registry: &mut Registry, looked: &mut Time) -> Moment {
    let monotonic = net::monotonic();
    let paused = monotonic.saturating_since(std::mem::replace(looked, monotonic));
    if paused > STALLED {
        registry.stalled(paused, monotonic);
    }
    Moment { tai: net::tai(), monotonic }
}

/// Announces both APIs of a registry (IS-04 v1.3, Discovery: Registered Operation).
fn announce(
    address: SocketAddr,
    priority: u8,
    mut texts: Vec<(String, String)>,
) -> Result<Announcer, String> {
    texts.push(("pri".to_owned(), priority.to_string()));
    let mut announcer = Announcer::begin()?;
    for service in [Service::Register, Service::Query] {
        announcer.announce(&Announcement {
            service,
            name: format!("suiro registry at {address}"),
            address: address.ip(),
            port: address.port(),
            texts: texts.clone(),
        })?;
    }
    Ok(announcer)
}

/// The WebSockets of clients.
#[derive(Default)]
struct Sockets {
    /// Of each, its subscription, and where what is new for it goes.
    open: BTreeMap<u64, (Id, mpsc::Sender<News>)>,
    running: JoinSet<u64>,
    opened: u64,
}

impl Sockets {
    /// A connection was answered with 101. Beyond [`SOCKETS_MAX`], or if what it asks for takes too long, it is closed at once.
    fn open(&mut self, registry: &mut Registry, upgraded: Upgraded) {
        let Upgraded { path, connection } = upgraded;
        let Some((id, own)) = registry.subscription_at(&path) else { return };
        if self.open.len() >= SOCKETS_MAX {
            return;
        }
        let (tell, entries) = mpsc::channel(socket::WAITING_MAX);
        let Some(sync) = own.sync(registry) else { return };
        let own = own.clone();
        registry.subscriptions.opened(&id);
        self.opened += 1;
        let number = self.opened;
        self.open.insert(number, (id.clone(), tell));
        self.running.spawn(async move {
            socket::run(connection, (id, own), sync, entries).await;
            number
        });
    }

    /// Sends the changes to all subscribers. A subscriber that does not keep up, or whose filter takes too long, is
    /// disconnected.
    fn tell(&mut self, registry: &mut Registry) {
        let changes: Vec<Change> = registry.take_changes();
        let subscriptions = &registry.subscriptions;
        self.open.values_mut().for_each(|(id, tell)| {
            let Some(own) = subscriptions.get(id) else { return };
            let mut steps = Steps::of_changes();
            let mut entries = changes.iter().filter_map(|change| own.entry(change, &mut steps));
            let is_behind = entries.any(|entry| tell.try_send(entry).is_err());
            if is_behind || steps.is_over() {
                // Without a sender the connection is closed; the client must begin anew.
                *tell = mpsc::channel(1).0;
            }
        });
    }

    /// A connection was closed.
    fn closed(&mut self, registry: &mut Registry, number: Option<u64>) {
        if let Some((id, _)) = number.and_then(|number| self.open.remove(&number)) {
            registry.subscriptions.closed(&id, net::monotonic());
        }
    }
}
