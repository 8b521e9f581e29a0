//! The client's side: an offer is posted, and the session deleted at the end.

use std::io;
use std::time::Duration as StdDuration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use suiro_record::words::Signalling;

use super::door::{DESCRIPTION_MAX, Door, SDP};

/// How long a request may take, from the connection to the end of its body.
const PATIENCE: StdDuration = StdDuration::from_secs(10);
/// How much of a refusal's reason is kept.
const REASON_MAX: usize = 500;

/// Why an offer was not answered.
#[derive(Debug, thiserror::Error)]
pub enum SignallingError {
    /// There is no connection.
    #[error("connecting to {host}:{port}: {cause}")]
    Connect {
        /// Name of the host.
        host: String,
        /// TCP port.
        port: u16,
        /// What the system said.
        cause: io::Error,
    },
    /// It took too long.
    #[error("no answer within 10 s")]
    Timeout,
    /// HTTP failed.
    #[error("http: {0}")]
    Http(hyper::Error),
    /// The server refused it.
    #[error("expected status 201, found {status}: {reason}")]
    Refused {
        /// The status.
        status: u16,
        /// The beginning of the body.
        reason: String,
    },
    /// The answer cannot be used.
    #[error("the answer: {0}")]
    Answer(&'static str),
}

impl From<hyper::Error> for SignallingError {
    fn from(error: hyper::Error) -> Self {
        Self::Http(error)
    }
}

/// Where offers go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Name of the host.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The protocol.
    pub signalling: Signalling,
    /// The path of the resource that takes offers; `None`: that of suiro's own servers, `/whip` or `/whep`.
    pub path: Option<String>,
    /// The bearer token, if one is asked for.
    pub token: Option<String>,
}

/// An answer, and where its session is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The session description.
    pub description: String,
    /// The session's path.
    pub location: String,
}

impl Server {
    /// Posts an offer.
    ///
    /// # Errors
    /// [`SignallingError`].
    pub async fn offer(&self, description: String) -> Result<Answered, SignallingError> {
        let door = Door { signalling: self.signalling, token: None };
        let resource = self.path.as_deref().unwrap_or(door.path());
        let (status, location, body) = self.ask(Method::POST, resource, description).await?;
        if status != StatusCode::CREATED {
            let reason = body.chars().take(REASON_MAX).collect();
            return Err(SignallingError::Refused { status: status.as_u16(), reason });
        }
        let location = location.ok_or(SignallingError::Answer("it has no Location"))?;
        let location = session_path(resource, &location);
        let location = location.ok_or(SignallingError::Answer("its Location has no path"))?;
        Ok(Answered { description: body, location })
    }

    /// Deletes a session. The server's status is of no interest.
    ///
    /// # Errors
    /// [`SignallingError`].
    pub async fn delete(&self, location: &str) -> Result<(), SignallingError> {
        self.ask(Method::DELETE, location, String::new()).await.map(|_| ())
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<(StatusCode, Option<String>, String), SignallingError> {
        let whole = tokio::time::timeout(PATIENCE, self.exchange(method, path, body)).await;
        whole.unwrap_or(Err(SignallingError::Timeout))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<(StatusCode, Option<String>, String), SignallingError> {
        let (host, port) = (self.host.as_str(), self.port);
        let failed = |cause| SignallingError::Connect { host: host.to_owned(), port, cause };
        let stream = crate::net::connect(host, port).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let io = TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
        // It ends when the sender is dropped; its error reaches us through the request.
        tokio::spawn(async move { drop(connection.await) });
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(HOST, format!("{host}:{port}"));
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, SDP);
        }
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::from(body)));
        let request = request.map_err(|_| SignallingError::Answer("its Location is no path"))?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.map(str::to_owned);
        let body = Limited::new(response.into_body(), DESCRIPTION_MAX).collect().await;
        let body = body.map_err(|_| SignallingError::Answer("its body is cut or too long"))?;
        let body = String::from_utf8(body.to_bytes().to_vec());
        let body = body.map_err(|_| SignallingError::Answer("its body is no text"))?;
        Ok((status, location, body))
    }
}

/// The path of a session, from the `Location` of the answer to an offer (RFC 3986 §5.2, without `..`). Only the path
/// counts: the session is where the offer went.
fn session_path(resource: &str, location: &str) -> Option<String> {
    let rest = match location.split_once("://") {
        Some((_, rest)) => &rest[rest.find('/')?..],
        None => location,
    };
    match rest.chars().next()? {
        '/' => Some(rest.to_owned()),
        _ => Some(format!("{}/{rest}", resource.rsplit_once('/')?.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_where_its_location_says_on_the_same_server() {
        let path = |location| session_path("/live/whip", location);
        assert_eq!(path("/live/whip/7").as_deref(), Some("/live/whip/7"));
        assert_eq!(path("http://elsewhere:1/x/7").as_deref(), Some("/x/7"));
        assert_eq!(path("whip/7").as_deref(), Some("/live/whip/7"));
        assert_eq!((path(""), path("http://elsewhere")), (None, None));
    }
}
