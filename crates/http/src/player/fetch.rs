//! HTTP as a player speaks it, with bounds on everything. What connections it has is the business of `wire`.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyper::header::{ACCEPT_ENCODING, LOCATION};
use hyper::{Response, StatusCode};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::chunked::{Chunk, Read, Splitter};
use super::failure::{FetchError, PROGRESS_TIMEOUT, REDIRECTS, TOTAL_TIMEOUT, whole};
use super::request::{Fetch, Fetched, Head, Progress};
use super::retry;
use super::wire::{Connection, Incoming, Recorded, Transport};
use crate::Clock;
use crate::cmcd::Told;
use crate::cmsd::Cmsd;
use crate::coding::{Coding, GZIP};
use crate::http3::client::{Early, Http3Error};
use crate::priority::PRIORITY;
use crate::url::Url;

/// The longest body of an error that is read.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// A client with at most one open connection.
pub(crate) struct Client {
    clock: Clock,
    transport: Transport,
    /// What the user asked for: its host may be of this machine.
    home: Arc<Url>,
    open: Option<(String, Connection)>,
    /// Where connections are recorded, and the endpoint that the user asked for; `None` to keep no record.
    flows: Option<Recorded>,
    /// The playhead, by which bodies are read.
    head: watch::Receiver<Head>,
    /// How far the request has come.
    progress: watch::Sender<Progress>,
    /// Where chunks go, of which a response has a bounded number.
    chunks: mpsc::UnboundedSender<Chunk>,
}

impl Client {
    pub(crate) fn new(
        clock: Clock,
        transport: Transport,
        home: Arc<Url>,
        flows: Option<Recorded>,
        head: watch::Receiver<Head>,
    ) -> Self {
        let (progress, (chunks, _)) = (watch::Sender::default(), mpsc::unbounded_channel());
        Self { clock, transport, home, open: None, flows, head, progress, chunks }
    }

    /// How far the next request will have come, and the chunks that come of it.
    pub(crate) fn follow(&mut self) -> (watch::Receiver<Progress>, mpsc::UnboundedReceiver<Chunk>) {
        self.progress.send_replace(Progress::default());
        let (sender, chunks) = mpsc::unbounded_channel();
        self.chunks = sender;
        (self.progress.subscribe(), chunks)
    }

    /// Makes one request. Whatever fails closes the connection.
    pub(crate) async fn fetch(&mut self, fetch: &Fetch) -> Fetched {
        let requested = self.clock.now();
        self.progress.send_replace(Progress { requested: Some(requested), ..Progress::default() });
        let mut url = fetch.resource.url.clone();
        let whole = timeout(TOTAL_TIMEOUT.into(), self.redirected(fetch, &mut url)).await;
        let body = whole.unwrap_or(Err(FetchError::TotalTimeout));
        // After an error status, or the end of a stream among many, the connection is in order; after anything else it may not be.
        if body.as_ref().is_err_and(|error| !error.is_of_request()) {
            self.give_up().await;
        }
        let Progress {
            first_byte, held, handshake, server, retry_after, status, bytes, early, ..
        } = *self.progress.borrow();
        let body = body.map_err(|error| error.to_string());
        let finished = self.clock.now();
        Fetched {
            requested,
            first_byte,
            finished,
            held,
            handshake,
            server,
            retry_after,
            status,
            early,
            bytes,
            url,
            body,
        }
    }

    async fn redirected(&mut self, fetch: &Fetch, url: &mut Url) -> Result<Bytes, FetchError> {
        for _ in 0..=REDIRECTS {
            let response = self.respond(fetch, url).await?;
            let status = response.status();
            let server = Cmsd::read(response.headers());
            let retry_after = retry::asked(response.headers());
            self.progress.send_modify(|progress| {
                progress.status = Some(status.as_u16());
                progress.server = server;
                progress.retry_after = retry_after;
            });
            if status.is_redirection() {
                let location = response.headers().get(LOCATION).and_then(|l| l.to_str().ok());
                let location = location.ok_or(FetchError::NoLocation)?;
                *url = url.join(location).map_err(FetchError::Redirect)?;
                self.open = None;
                continue;
            }
            let wanted = match fetch.resource.range {
                Some(_) if status == StatusCode::OK => return Err(FetchError::RangeIgnored),
                Some(_) => StatusCode::PARTIAL_CONTENT,
                None => StatusCode::OK,
            };
            if status != wanted {
                self.drain(response).await;
                return Err(FetchError::Status(status.as_u16()));
            }
            let coding = Coding::of(response.headers(), fetch.what.is_manifest())?;
            let content = self.body(fetch, response.into_body()).await?;
            return Ok(coding.decode(content, fetch.bytes_max)?);
        }
        Err(FetchError::Redirects)
    }

    /// Sends the request, on the open connection if there is one. A connection that the server
    /// closed while it was idle is replaced once, silently (RFC 9110 §9.2.2: GET may be repeated).
    async fn respond(
        &mut self,
        fetch: &Fetch,
        url: &Url,
    ) -> Result<Response<Incoming>, FetchError> {
        let told = fetch.told.as_ref();
        let address = told.and_then(|told| told.address(url));
        let mut headers = told.map_or(&[][..], Told::headers).to_vec();
        headers.extend(fetch.priority.map(|priority| (PRIORITY, priority.written())));
        headers.extend(fetch.what.is_manifest().then_some((ACCEPT_ENCODING, GZIP)));
        let mut again = true;
        loop {
            let reused = self.connect(url).await?;
            let Some((_, connection)) = self.open.as_mut() else {
                unreachable!("a connection was opened or is open")
            };
            let address = address.as_ref().unwrap_or(url);
            let sent = connection.send(address, fetch.resource.range, &headers);
            match timeout(PROGRESS_TIMEOUT.into(), sent).await {
                Ok(Ok(response)) => {
                    if response.extensions().get::<Early>().is_some() {
                        self.progress.send_modify(|progress| progress.early = Some(true));
                    }
                    return Ok(response);
                }
                // RFC 9001 §4.6.2: what was refused is sent again, after a handshake.
                Ok(Err(FetchError::Http3(Http3Error::EarlyRefused))) if again => {
                    again = false;
                    self.open = None;
                    self.transport.refused_early();
                    self.progress.send_modify(|progress| progress.early = Some(false));
                }
                // What the server has reset alone, it would reset on another connection too.
                Ok(Err(error)) if error.is_of_request() => return Err(error),
                Ok(Err(_)) if reused => self.give_up().await,
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(FetchError::ProgressTimeout),
            }
        }
    }

    /// Opens a connection to the server of `url` unless one is open; says whether one was.
    async fn connect(&mut self, url: &Url) -> Result<bool, FetchError> {
        let authority = url.authority();
        if self.open.as_ref().is_some_and(|(at, c)| *at == authority && !c.is_closed()) {
            return Ok(true);
        }
        let began = self.clock.now();
        let home = (&*self.home, self.flows.as_ref());
        let (connection, reused) = self.transport.connect(url, home).await?;
        self.open = Some((authority, connection));
        let took = self.clock.now().saturating_since(began);
        self.progress.send_modify(|progress| progress.handshake += took);
        Ok(reused)
    }

    /// Lets go of the connection, also for others who share it: it may not be in order.
    async fn give_up(&mut self) {
        if let Some((_, connection)) = self.open.take() {
            self.transport.forget(&connection).await;
        }
    }

    async fn body(&self, fetch: &Fetch, mut body: Incoming) -> Result<Bytes, FetchError> {
        let mut kept = BytesMut::new();
        let length = body.length();
        let mut splitter = fetch.chunks.clone().map(Splitter::new);
        let mut total = 0u64;
        self.progress.send_modify(|progress| progress.length = length);
        loop {
            self.hold(fetch, total, length).await;
            let data = timeout(PROGRESS_TIMEOUT.into(), body.data()).await;
            let data = data.map_err(|_| FetchError::ProgressTimeout)??;
            let Some((data, came)) = data else { break };
            total += data.len() as u64;
            let all = self.transport.received(data.len() as u64);
            self.progress.send_modify(|progress| {
                if progress.bytes == 0 && total > 0 {
                    progress.first_byte = Some(self.clock.now());
                }
                progress.bytes = total;
            });
            if total > fetch.bytes_max {
                return Err(FetchError::TooLarge(fetch.bytes_max));
            }
            if let Some(splitter) = &mut splitter {
                // Nobody listens once the request has been given up.
                let pass_on = |chunk| {
                    let _ = self.chunks.send(chunk);
                };
                let now = self.clock.now();
                let read = Read { data: &data, came, all };
                splitter.push(now, read, pass_on).map_err(FetchError::Media)?;
            }
            if fetch.keep_body {
                kept.extend_from_slice(&data);
            }
        }
        whole(total, length)?;
        if let Some(splitter) = &splitter {
            splitter.finish().map_err(FetchError::Media)?;
        }
        Ok(kept.freeze())
    }

    /// Waits until the buffer has room for what has been read: meanwhile TCP's window fills, and
    /// holds the sender back. A body of unknown length is not held.
    async fn hold(&self, fetch: &Fetch, read: u64, length: Option<u64>) {
        let (Some(room), Some(length)) = (&fetch.room, length) else { return };
        loop {
            let head = *self.head.borrow();
            let Some(wait) = room.wait(&head, self.clock.now(), read, length) else { break };
            self.clock.sleep_until(self.clock.now() + wait).await;
            self.progress.send_modify(|progress| progress.held += wait);
        }
    }

    /// Reads the short body of an error, so that the connection can go on; gives up on a long one.
    async fn drain(&mut self, response: Response<Incoming>) {
        let mut body = response.into_body();
        let reading = async {
            let mut total = 0;
            while let Ok(Some((data, _))) = body.data().await {
                total += data.len();
                if total > ERROR_BYTES_MAX {
                    return false;
                }
            }
            true
        };
        if !matches!(timeout(PROGRESS_TIMEOUT.into(), reading).await, Ok(true)) {
            self.open = None;
        }
    }
}
