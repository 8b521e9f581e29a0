//! Who gives way when every place of a server is taken: a connection without a request in progress. Those that never had
//! an answer of success go first, such as strangers who are silent or have no token; then the one that was idle longest.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// So many more requests of a connection may be given up than answered: more than a client of media gives up in its life. It ends
/// floods of requests that are reset at once (CVE-2023-44487): h2 counts only those that no answer was begun for.
pub const GIVEN_UP_MAX: usize = 512;

/// The connections of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    connections: Mutex<Connections>,
    /// A request has ended.
    idle: Notify,
}

#[derive(Debug, Default)]
struct Connections {
    /// Numbers what happens, so that the least is the longest ago.
    events: u64,
    by_number: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    /// It had an answer of success.
    known: bool,
    /// Requests in progress.
    busy: usize,
    /// How many more of its requests were given up than answered.
    given_up: usize,
    /// The event in which this last changed.
    since: u64,
    task: Option<AbortHandle>,
}

impl Connection {
    /// A client has given a request up before it had all of the answer.
    fn give_up(&mut self) {
        self.given_up += 1;
        if let Some(task) = self.task.as_ref().filter(|_| self.given_up > GIVEN_UP_MAX) {
            task.abort();
        }
    }
}

impl Connections {
    fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }
}

/// A connection's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    number: u64,
}

impl Places {
    /// A place for a new connection.
    pub(crate) fn take(&self) -> Arc<Place> {
        let mut connections = self.lock();
        let number = connections.event();
        let connection =
            Connection { known: false, busy: 0, given_up: 0, since: number, task: None };
        connections.by_number.insert(number, connection);
        Arc::new(Place { places: self.clone(), number })
    }

    /// Ends the connection that gives way, if there is one.
    pub(crate) fn evict(&self) {
        let connections = self.lock();
        let idle = connections.by_number.values().filter(|connection| connection.busy == 0);
        let first = idle.min_by_key(|connection| (connection.known, connection.since));
        if let Some(task) = first.and_then(|connection| connection.task.as_ref()) {
            task.abort();
        }
    }

    /// Waits until a request has ended since the last call.
    pub(crate) async fn idle(&self) {
        self.shared.idle.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.shared.connections.lock().expect("no holder panics")
    }
}

impl Place {
    /// The task that serves the connection.
    pub(crate) fn served_by(&self, task: AbortHandle) {
        self.change(|connection| connection.task = Some(task));
    }

    /// A request began. An answer to one without a body (`HEAD`) is sent with its head.
    pub(crate) fn asked(self: &Arc<Self>, bodiless: bool) -> Request {
        self.change(|connection| connection.busy += 1);
        Request { place: Arc::clone(self), is_over: bodiless }
    }

    fn change(&self, change: impl FnOnce(&mut Connection)) {
        let mut connections = self.places.lock();
        let event = connections.event();
        if let Some(connection) = connections.by_number.get_mut(&self.number) {
            change(connection);
            connection.since = event;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().by_number.remove(&self.number);
    }
}

/// A request in progress, until it is dropped.
#[derive(Debug)]
pub(crate) struct Request {
    place: Arc<Place>,
    /// All of its answer has been handed to the connection.
    is_over: bool,
}

impl Request {
    /// It is answered by `body`; the request is in progress until the body is sent, or dropped.
    pub(crate) fn answered<B: Body>(mut self, success: bool, body: B) -> Answer<B> {
        self.is_over |= body.is_end_stream();
        if success {
            self.place.change(|connection| connection.known = true);
        }
        Answer { body, request: self }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let is_over = self.is_over;
        self.place.change(|connection| {
            connection.busy -= 1;
            match is_over {
                true => connection.given_up = connection.given_up.saturating_sub(1),
                false => connection.give_up(),
            }
        });
        self.place.places.shared.idle.notify_one();
    }
}

/// A body that keeps its request in progress.
#[derive(Debug)]
pub(crate) struct Answer<B> {
    body: B,
    request: Request,
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answer<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        let ended = matches!(frame, Poll::Ready(None)) || self.body.is_end_stream();
        self.request.is_over |= ended;
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
