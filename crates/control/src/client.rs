//! HTTP/1.1 to nodes, registries and controllers: one connection, kept open; bounded in time and size.

use std::io;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use crate::net;
use crate::nmos::{AFTER, Ask, CLAIM, JSON, Reply};

/// An activation is scheduled already (IS-05 v1.1, Scheduled Activations).
const LOCKED: u16 = 423;
/// Longest answer that is read, in bytes.
const ANSWER_MAX: usize = 8 << 20;

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Base {
    /// Whether it is reached over TLS.
    pub tls: bool,
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl Base {
    /// From a URL such as `http://192.0.2.1:8080`. A path is of no interest: those of NMOS are fixed.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        const EXPECTED: &str = "a URL such as \"http://192.0.2.1:8080\"";
        let (scheme, rest) = url.split_once("://").ok_or(EXPECTED)?;
        let tls = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err(EXPECTED),
        };
        let authority = rest.split('/').next().unwrap_or_default();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !host.ends_with(':') => {
                (host, port.parse().map_err(|_| EXPECTED)?)
            }
            _ => (authority, if tls { 443 } else { 80 }),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let fits = |c: char| c.is_ascii_alphanumeric() || "-.:_".contains(c);
        if host.is_empty() || host.len() > 255 || !host.chars().all(fits) || port == 0 {
            return Err(EXPECTED);
        }
        Ok(Self { tls, host: host.to_owned(), port })
    }
}

impl std::fmt::Display for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        let Self { host, port, .. } = self;
        if host.contains(':') {
            write!(f, "{scheme}://[{host}]:{port}")
        } else {
            write!(f, "{scheme}://{host}:{port}")
        }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no connection.
    #[error("connecting to {base}: {cause}")]
    Connect {
        /// The server.
        base: Base,
        /// What the system said.
        cause: io::Error,
    },
    /// It took too long.
    #[error("{0}: no answer in time")]
    Late(Base),
    /// The connection failed, or was closed.
    #[error("{base}: {cause}")]
    Http {
        /// The server.
        base: Base,
        /// What went wrong.
        cause: hyper::Error,
    },
    /// The answer cannot be read.
    #[error("{base}: the answer {because}")]
    Answer {
        /// The server.
        base: Base,
        /// What is wrong with it.
        because: &'static str,
    },
}

/// How servers are approached.
#[derive(Debug, Clone, Default)]
pub struct Manners {
    /// The bearer token to show.
    pub token: Option<String>,
    /// TLS, with the authorities whose certificates are accepted; `None`: no `https`.
    pub tls: Option<Arc<ClientConfig>>,
}

/// A connection to a server, made when it is needed.
pub struct Client {
    base: Base,
    manners: Manners,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    /// A client of one server.
    pub const fn new(base: Base, manners: Manners) -> Self {
        Self { base, manners, sender: None }
    }

    /// Where the server is.
    pub const fn base(&self) -> &Base {
        &self.base
    }

    /// Asks, within a time. A connection that was closed while it was idle is made anew.
    ///
    /// # Errors
    /// [`ClientError`]; the next request makes a new connection.
    pub async fn ask(&mut self, ask: &Ask, within: StdDuration) -> Result<Reply, ClientError> {
        let answer = tokio::time::timeout(within, self.exchange(ask)).await;
        let answer = answer.unwrap_or_else(|_| Err(ClientError::Late(self.base.clone())));
        if answer.is_err() {
            self.sender = None;
        }
        answer
    }

    /// Asks a Connection API to change what is staged. If another program has scheduled an activation, that one is cancelled, and
    /// the command given again.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn command(&mut self, ask: &Ask, within: StdDuration) -> Result<Reply, ClientError> {
        let reply = self.ask(ask, within).await?;
        if reply.status != LOCKED {
            return Ok(reply);
        }
        let cancel = json!({ "activation": { "mode": null } });
        let cancel = Ask { claim: ask.claim.clone(), ..Ask::json("PATCH", &ask.path, &cancel) };
        let cancelled = self.ask(&cancel, within).await?;
        if cancelled.status < 300 { self.ask(ask, within).await } else { Ok(cancelled) }
    }

    async fn exchange(&mut self, ask: &Ask) -> Result<Reply, ClientError> {
        let base = self.base.clone();
        let http = |cause| ClientError::Http { base: base.clone(), cause };
        let usable = self.sender.take().filter(|sender| !sender.is_closed());
        let mut sender = match usable {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        sender.ready().await.map_err(http)?;
        let wrong = |because| ClientError::Answer { base: base.clone(), because };
        let response = sender.send_request(self.request(ask)?).await.map_err(http)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
        let body = body.map_err(|_| wrong("is cut or too long"))?.to_bytes().to_vec();
        let body = String::from_utf8(body).map_err(|_| wrong("is no text"))?;
        if status != StatusCode::SWITCHING_PROTOCOLS {
            self.sender = Some(sender);
        }
        Ok(Reply { status: status.as_u16(), content_type: JSON, headers: Vec::new(), body })
    }

    fn request(&self, ask: &Ask) -> Result<Request<Full<Bytes>>, ClientError> {
        let path = match &ask.query {
            Some(query) => format!("{}?{query}", ask.path),
            None => ask.path.clone(),
        };
        let Base { host, port, .. } = &self.base;
        let mut request = Request::builder().method(ask.method.as_str()).uri(path);
        request = request.header(HOST, format!("{host}:{port}"));
        if let Some(kind) = &ask.content_type {
            request = request.header(CONTENT_TYPE, kind);
        }
        if ask.method != "GET" && ask.method != "HEAD" {
            // Also of an empty body (IS-04 v1.3, Heartbeating; RFC 9110 §8.6).
            request = request.header(CONTENT_LENGTH, ask.body.len());
        }
        for (name, value) in [(CLAIM, &ask.claim), (AFTER, &ask.after)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        if let Some(token) = &self.manners.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let because = "cannot be requested: its path is not valid";
        request
            .body(Full::new(Bytes::from(ask.body.clone())))
            .map_err(|_| ClientError::Answer { base: self.base.clone(), because })
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        let failed = |cause| ClientError::Connect { base: self.base.clone(), cause };
        let stream = net::connect(&self.base.host, self.base.port).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        if !self.base.tls {
            return self.handshake(stream).await;
        }
        let config = self.manners.tls.clone().ok_or_else(|| {
            failed(io::Error::other(
                "it requires TLS\nhint: give the certificate to trust with --authority FILE",
            ))
        })?;
        let name = ServerName::try_from(self.base.host.clone());
        let name =
            name.map_err(|_| failed(io::Error::other("its name cannot be in a certificate")))?;
        let stream = TlsConnector::from(config).connect(name, stream).await.map_err(failed)?;
        self.handshake(stream).await
    }

    async fn handshake<S>(&self, stream: S) -> Result<SendRequest<Full<Bytes>>, ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let http = |cause| ClientError::Http { base: self.base.clone(), cause };
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
        // It ends when the sender is dropped; its error reaches us through the request.
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_server() {
        let base = |url| Base::parse(url).map(|base| base.to_string());
        assert_eq!(base("http://192.0.2.1:8080/x-nmos/").as_deref(), Ok("http://192.0.2.1:8080"));
        assert_eq!(base("https://node.example").as_deref(), Ok("https://node.example:443"));
        assert_eq!(base("http://[2001:db8::1]:90").as_deref(), Ok("http://[2001:db8::1]:90"));
        for wrong in [
            "",
            "node:80",
            "ftp://x",
            "http://",
            "http://:80",
            "http://x:0",
            "http://x:y",
            "http://a b",
        ] {
            assert!(base(wrong).is_err(), "{wrong}");
        }
    }
}
