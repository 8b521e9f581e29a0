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
/// Redirections of an offer that are followed.
const REDIRECTS_MAX: u32 = 5;
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
    /// It was sent on and on.
    #[error("more than {REDIRECTS_MAX} redirections")]
    Redirects,
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
    /// Where its session is.
    pub session: Place,
}

/// Where a request goes: over HTTP, in clear text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name of the host, or its address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

impl Place {
    /// What a `Location` in an answer from here refers to (RFC 3986 §5.2, without `..`); `None` if that is nothing over HTTP.
    pub fn join(&self, location: &str) -> Option<Self> {
        let location = location.split('#').next()?;
        let absolute = match location.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => Some(rest),
            // In a query it is no scheme.
            Some((scheme, _)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                return None;
            }
            _ => location.strip_prefix("//"),
        };
        if let Some(absolute) = absolute {
            let end = absolute.find(['/', '?']).unwrap_or(absolute.len());
            let (authority, path) = absolute.split_at(end);
            let (host, port) = authority_of(authority)?;
            let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
            return Some(Self { host, port, path });
        }
        let path = match location.chars().next()? {
            '/' => location.to_owned(),
            _ => format!("{}/{location}", self.path.split('?').next()?.rsplit_once('/')?.0),
        };
        Some(Self { path, ..self.clone() })
    }

    fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

/// Host and port of `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`. Who may ask is no part of it.
fn authority_of(text: &str) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match port {
        "" | ":" => 80,
        port => port.strip_prefix(':')?.parse().ok()?,
    };
    let is_host = !host.is_empty() && !host.contains(['@', '[', ']']);
    is_host.then(|| (host.to_owned(), port))
}

impl Server {
    /// Where it takes offers.
    pub fn place(&self) -> Place {
        let door = Door { signalling: self.signalling, token: None };
        let path = self.path.as_deref().unwrap_or(door.path()).to_owned();
        Place { host: self.host.clone(), port: self.port, path }
    }

    /// Posts an offer, also where the server sends it on to (RFC 9725 §4.5).
    ///
    /// # Errors
    /// [`SignallingError`].
    pub async fn offer(&self, description: String) -> Result<Answered, SignallingError> {
        let mut place = self.place();
        for _ in 0..=REDIRECTS_MAX {
            let asked = self.ask(Method::POST, &place, description.clone());
            let (status, location, body) = asked.await?;
            let location = match status {
                StatusCode::CREATED
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT => location,
                _ => {
                    let reason = body.chars().take(REASON_MAX).collect();
                    return Err(SignallingError::Refused { status: status.as_u16(), reason });
                }
            };
            let location = location.ok_or(SignallingError::Answer("it has no Location"))?;
            let there = place.join(&location);
            let there = there.ok_or(SignallingError::Answer("its Location is no URL of HTTP"))?;
            if status == StatusCode::CREATED {
                return Ok(Answered { description: body, session: there });
            }
            place = there;
        }
        Err(SignallingError::Redirects)
    }

    /// Deletes a session. The server's status is of no interest.
    ///
    /// # Errors
    /// [`SignallingError`].
    pub async fn delete(&self, session: &Place) -> Result<(), SignallingError> {
        self.ask(Method::DELETE, session, String::new()).await.map(|_| ())
    }

    /// The token is for this server alone, not for one that it names.
    fn token_for(&self, place: &Place) -> Option<&str> {
        let is_here = place.host.eq_ignore_ascii_case(&self.host) && place.port == self.port;
        self.token.as_deref().filter(|_| is_here)
    }

    async fn ask(
        &self,
        method: Method,
        place: &Place,
        body: String,
    ) -> Result<(StatusCode, Option<String>, String), SignallingError> {
        let whole = tokio::time::timeout(PATIENCE, self.exchange(method, place, body)).await;
        whole.unwrap_or(Err(SignallingError::Timeout))
    }

    async fn exchange(
        &self,
        method: Method,
        place: &Place,
        body: String,
    ) -> Result<(StatusCode, Option<String>, String), SignallingError> {
        let (host, port) = (place.host.as_str(), place.port);
        let failed = |cause| SignallingError::Connect { host: host.to_owned(), port, cause };
        let stream = crate::net::connect(host, port).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let io = TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
        // It ends when the sender is dropped; its error reaches us through the request.
        tokio::spawn(async move { drop(connection.await) });
        let mut request = Request::builder().method(method).uri(&place.path);
        request = request.header(HOST, place.authority());
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, SDP);
        }
        if let Some(token) = self.token_for(place) {
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

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    fn place(host: &str, port: u16, path: &str) -> Place {
        Place { host: host.into(), port, path: path.into() }
    }

    #[test]
    fn a_location_is_joined_to_where_it_came_from() {
        let from = place("here", 8889, "/live/whip?x=a/b");
        let here = |path| Some(place("here", 8889, path));
        let join = |location| from.join(location);
        assert_eq!(join("/live/whip/7"), here("/live/whip/7"));
        assert_eq!(join("whip/7?u=http://x/"), here("/live/whip/7?u=http://x/"));
        assert_eq!(join("http://elsewhere:1/x/7#y"), Some(place("elsewhere", 1, "/x/7")));
        assert_eq!(join("//elsewhere"), Some(place("elsewhere", 80, "/")));
        assert_eq!(join("HTTP://[fd00::1]:9?x"), Some(place("fd00::1", 9, "/?x")));
        for nowhere in [
            "",
            "#x",
            "https://here/7",
            "http://",
            "http://:1/",
            "http://a@b/",
            "http://a:b/",
            "http://[::1/",
            "http://a:99999/",
        ] {
            assert_eq!(join(nowhere), None, "{nowhere}");
        }
        assert_eq!(place("fd00::1", 9, "/").authority(), "[fd00::1]:9");
    }

    async fn listener() -> (TcpListener, u16) {
        let listener = crate::net::listen(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    /// Answers one request without a body, or with `v=0`; returns its head.
    async fn answer(listener: &TcpListener, status: &str, location: &str) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(request).unwrap();
        if head.starts_with("POST") {
            stream.read_exact(&mut [0; 3]).await.unwrap();
        }
        let reply = format!(
            "HTTP/1.1 {status} X\r\nLocation: {location}\r\nContent-Length: 3\r\nConnection: close\r\n\r\nv=0"
        );
        stream.write_all(reply.as_bytes()).await.unwrap();
        head
    }

    #[tokio::test]
    async fn an_offer_follows_the_server_and_the_session_is_deleted_where_it_is() {
        let ((one, port), (other, other_port)) = (listener().await, listener().await);
        let token = Some("s3cret".to_owned());
        let host = "127.0.0.1".to_owned();
        let server = Server { host, port, signalling: Signalling::Whip, path: None, token };
        let there = format!("http://127.0.0.1:{other_port}/live/whip");
        let asks = async {
            let answered = server.offer("v=0".into()).await.unwrap();
            assert_eq!(answered.session, place("127.0.0.1", other_port, "/live/session/7"));
            server.delete(&answered.session).await.unwrap();
        };
        let serves = async {
            let first = answer(&one, "307", "/again").await;
            let second = answer(&one, "308", &there).await;
            let third = answer(&other, "201", "session/7").await;
            [first, second, third, answer(&other, "200", "").await]
        };
        let ((), heads) = tokio::join!(asks, serves);
        let begins = ["POST /whip ", "POST /again ", "POST /live/whip ", "DELETE /live/session/7 "];
        for (head, begin) in heads.iter().zip(begins) {
            assert!(head.starts_with(begin), "{head}");
        }
        // The token is for the first alone.
        let told = heads.map(|head| head.contains("Bearer s3cret"));
        assert_eq!(told, [true, true, false, false]);
    }

    #[tokio::test]
    async fn redirections_are_bounded() {
        let (listener, port) = listener().await;
        let (host, signalling) = ("127.0.0.1".to_owned(), Signalling::Whep);
        let server = Server { host, port, signalling, path: None, token: None };
        let serves = async {
            for _ in 0..=REDIRECTS_MAX {
                answer(&listener, "307", "/whep").await;
            }
        };
        let (offered, ()) = tokio::join!(server.offer("v=0".into()), serves);
        assert_eq!(offered.unwrap_err().to_string(), "more than 5 redirections");
    }
}
