//! Requests of a cache to its origin, with the connections that a player has.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hyper::header::{HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use suiro_scenario::{Download, HttpVersion};
use tokio::time::timeout;

use super::object::Failure;
use crate::Clock;
use crate::player::{Connection, FetchError, Incoming, PROGRESS_TIMEOUT, Recorded, Transport};
use crate::url::Url;

/// Connections of HTTP/1.1 that are kept for later requests.
const IDLE_MAX: usize = 64;

/// The origin.
pub(super) struct Upstream {
    home: Url,
    transport: Transport,
    recorded: Option<Recorded>,
    idle: Mutex<Vec<Connection>>,
}

/// A response, and what its body comes by.
pub(super) struct Answer {
    pub response: Response<Incoming>,
    pub connection: Connection,
}

impl Upstream {
    /// The origin at `home`, which left its certificate in that file.
    pub fn new(
        home: Url,
        http: HttpVersion,
        certificate: &Path,
        recorded: Option<Recorded>,
        clock: Clock,
    ) -> Self {
        let transport = Transport::new(Download::Segment, None, http, certificate, clock);
        Self { home, transport, recorded, idle: Mutex::default() }
    }

    /// Where the object is that a client calls by this path and query. `None` if nothing of this origin can be.
    pub fn url(&self, target: &str) -> Option<Url> {
        // Two slashes would name a host.
        let is_path = target.starts_with('/') && !target.starts_with("//");
        is_path.then(|| self.home.join(target).ok()).flatten()
    }

    /// Sends a request. An idle connection that the origin has closed is replaced once (RFC 9110 §9.2.2).
    pub async fn ask(
        &self,
        url: &Url,
        headers: &[(HeaderName, HeaderValue)],
    ) -> Result<Answer, FetchError> {
        let mut fresh = false;
        loop {
            let (mut connection, reused) = self.connect(url, fresh).await?;
            let sent = timeout(PROGRESS_TIMEOUT.into(), connection.send(url, None, headers)).await;
            let error = match sent.unwrap_or(Err(FetchError::ProgressTimeout)) {
                Ok(response) => return Ok(Answer { response, connection }),
                Err(error) => error,
            };
            self.failed(&connection, &error).await;
            let is_late = matches!(error, FetchError::ProgressTimeout);
            if is_late || error.is_of_request() || !reused || fresh {
                return Err(error);
            }
            fresh = true;
        }
    }

    /// A request on that connection has failed. Later ones need another, unless the origin has ended this one alone, or this
    /// cache does not take what came.
    pub async fn failed(&self, connection: &Connection, error: &FetchError) {
        if !error.is_of_request() && !matches!(error, FetchError::Media(_)) {
            self.transport.forget(connection).await;
        }
    }

    async fn connect(&self, url: &Url, fresh: bool) -> Result<(Connection, bool), FetchError> {
        let idle = if fresh { None } else { self.idle().pop() };
        if let Some(connection) = idle.filter(|connection| !connection.is_closed()) {
            return Ok((connection, true));
        }
        self.transport.connect(url, (&self.home, self.recorded.as_ref())).await
    }

    /// The body on it has been read to its end: it can be used again.
    pub fn give_back(&self, connection: Connection) {
        let mut idle = self.idle();
        if matches!(connection, Connection::One(..))
            && !connection.is_closed()
            && idle.len() < IDLE_MAX
        {
            idle.push(connection);
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a client gets for it (RFC 9110 §15.6.3, §15.6.5).
pub(super) fn failure(error: &FetchError) -> Failure {
    let status = match error {
        FetchError::ConnectTimeout | FetchError::ProgressTimeout | FetchError::TotalTimeout => {
            StatusCode::GATEWAY_TIMEOUT
        }
        _ => StatusCode::BAD_GATEWAY,
    };
    Failure { status, reason: error.to_string() }
}
