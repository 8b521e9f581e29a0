//! Requests to responses.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use suiro_record::RecordError;
use suiro_record::tables::AccessRow;
use suiro_scenario::Protocol;
use suiro_units::{Time, fnv1a, to_i64};

use super::access::AccessLog;
use super::cache::Cache;
use super::catalogue::{Catalogue, Container};
use super::range::{Part, part};
use super::timeline::{Availability, Schedule};
use super::{MPD_PATH, MULTIVARIANT_PATH, Media, TIME_PATH, hls, mpd};
use crate::Clock;
use crate::iso8601::format_date_time;
use crate::presentation::TrackKind;

/// What an origin has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Requests answered.
    pub requests: u64,
    /// Of them, with a status of 400 or more.
    pub refused: u64,
    /// Bytes of bodies in those answers.
    pub body_bytes: u64,
}

/// Names one body: track, rung, number; the initialisation segment has none.
type Key = (usize, usize, Option<u64>);

/// Serves one catalogue.
pub(super) struct Service {
    catalogue: Catalogue,
    media: Arc<dyn Media>,
    clock: Clock,
    cache: Mutex<Cache<Key>>,
    requests: AtomicU64,
    refused: AtomicU64,
    body_bytes: AtomicU64,
    log: Option<AccessLog>,
}

/// A response before the request's conditions and ranges are applied.
struct Content {
    body: Bytes,
    kind: &'static str,
    caching: &'static str,
    /// Quoted; `None` for what changes all the time.
    tag: Option<String>,
}

/// How long caches may keep what (RFC 9111 §5.2.2, RFC 8246).
mod caching {
    /// What never changes.
    pub const FOR_EVER: &str = "public, max-age=31536000, immutable";
    /// Manifests of what is on demand.
    pub const SHORT: &str = "public, max-age=60";
    /// Live manifests: half a second would do, but the unit is a second.
    pub const LEAST: &str = "public, max-age=1";
    /// The clock, and what is not there yet.
    pub const NONE: &str = "no-store";
}

impl Service {
    pub(super) fn new(
        catalogue: Catalogue,
        media: Arc<dyn Media>,
        clock: Clock,
        cache_bytes: usize,
        log: Option<AccessLog>,
    ) -> Self {
        Self {
            catalogue,
            media,
            clock,
            cache: Mutex::new(Cache::new(cache_bytes)),
            requests: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            body_bytes: AtomicU64::new(0),
            log,
        }
    }

    /// Makes its record whole.
    pub(super) fn close(self) -> Result<(), RecordError> {
        self.log.map_or(Ok(()), AccessLog::close)
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            requests: self.requests.load(Relaxed),
            refused: self.refused.load(Relaxed),
            body_bytes: self.body_bytes.load(Relaxed),
        }
    }

    /// Answers one request.
    pub(super) async fn respond<B>(
        &self,
        peer: SocketAddr,
        request: Request<B>,
    ) -> Response<Full<Bytes>> {
        let asked = self.clock.now();
        let (head, _) = request.into_parts();
        let mut response = match head.method {
            Method::GET | Method::HEAD => {
                match self.content(head.uri.path(), &head.headers).await {
                    Ok(content) => deliver(content, &head.headers),
                    Err(refusal) => refusal.response(),
                }
            }
            Method::OPTIONS => preflight(),
            _ => Refusal(StatusCode::METHOD_NOT_ALLOWED, "only GET, HEAD and OPTIONS").response(),
        };
        let headers = response.headers_mut();
        let any = HeaderValue::from_static("*");
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any.clone());
        headers.insert("timing-allow-origin", any);
        let exposed = HeaderValue::from_static("content-length, content-range, date, etag");
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        self.record(asked, peer, &head, &response);
        response
    }

    fn record(
        &self,
        asked: Time,
        peer: SocketAddr,
        head: &Parts,
        response: &Response<Full<Bytes>>,
    ) {
        let length = hyper::body::Body::size_hint(response.body()).exact().unwrap_or(0);
        let length = if head.method == Method::HEAD { 0 } else { length };
        let status = response.status().as_u16();
        self.requests.fetch_add(1, Relaxed);
        self.body_bytes.fetch_add(length, Relaxed);
        self.refused.fetch_add(u64::from(status >= 400), Relaxed);
        let Some(log) = &self.log else { return };
        log.push(AccessRow {
            t_ns: asked.as_nanos_i64(),
            endpoint: log.endpoint(),
            peer: SocketAddr::new(peer.ip().to_canonical(), peer.port()).to_string().into(),
            method: head.method.as_str().into(),
            path: head.uri.path_and_query().map_or("/", |path| path.as_str()).into(),
            status: i64::from(status),
            body_bytes: to_i64(length),
            answered_ns: self.clock.now().as_nanos_i64(),
        });
    }

    async fn content(&self, path: &str, headers: &HeaderMap) -> Result<Content, Refusal> {
        let unix_ns = self.clock.unix_ns(self.clock.now());
        match path {
            MPD_PATH => self.manifest(headers, unix_ns),
            MULTIVARIANT_PATH => {
                Ok(self.playlist(hls::multivariant(&self.catalogue), caching::SHORT))
            }
            TIME_PATH => Ok(Content {
                body: format_date_time(unix_ns).into(),
                kind: "text/plain; charset=utf-8",
                caching: caching::NONE,
                tag: None,
            }),
            _ => match path.strip_prefix('/').and_then(|path| path.split_once('/')) {
                Some((rung, file)) => self.file(rung, file, unix_ns).await,
                None => self.rung_playlist(path, unix_ns),
            },
        }
    }

    fn manifest(&self, headers: &HeaderMap, unix_ns: u64) -> Result<Content, Refusal> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let text = mpd::write(&self.catalogue, unix_ns, host).ok_or(Refusal(
            StatusCode::NOT_FOUND,
            "this package is MPEG-TS only, which DASH does not carry: play /master.m3u8",
        ))?;
        let (kind, caching) = ("application/dash+xml", self.manifest_caching());
        Ok(Content { body: text.into(), kind, caching, tag: None })
    }

    fn manifest_caching(&self) -> &'static str {
        match self.catalogue.schedule {
            Schedule::Vod { .. } => caching::SHORT,
            Schedule::Live { .. } => caching::LEAST,
        }
    }

    fn playlist(&self, text: String, caching: &'static str) -> Content {
        // RFC 8216 §4.
        let kind = "application/vnd.apple.mpegurl";
        let tag = Some(format!("\"{:016x}\"", fnv1a(text.bytes())));
        Content { body: text.into(), kind, caching, tag }
    }

    fn rung_playlist(&self, path: &str, unix_ns: u64) -> Result<Content, Refusal> {
        let id = path.strip_prefix('/').and_then(|path| path.strip_suffix(".m3u8"));
        let (id, container) = id.zip(self.catalogue.container(Protocol::Hls)).ok_or(NOTHING)?;
        let (track, rung) = self.catalogue.find(id, container).ok_or(NOTHING)?;
        let rung = &self.catalogue.tracks[track].rungs[rung];
        let text = hls::media(container, rung, &self.catalogue.schedule, unix_ns);
        Ok(self.playlist(text, self.manifest_caching()))
    }

    async fn file(&self, id: &str, file: &str, unix_ns: u64) -> Result<Content, Refusal> {
        let (container, which) = parse_file(file).ok_or(NOTHING)?;
        let (track, rung) = self.catalogue.find(id, container).ok_or(NOTHING)?;
        let entry = &self.catalogue.tracks[track];
        let timeline = &entry.rungs[rung].timeline;
        let number = match which {
            Which::Init => None,
            Which::Number(number) => Some(number),
            Which::Start(ticks) => Some(timeline.number_at(ticks).ok_or(NOTHING)?),
        };
        if let Some(number) = number {
            match self.catalogue.schedule.availability(timeline, number, unix_ns) {
                Availability::There => {}
                Availability::NotYet => {
                    return Err(Refusal(StatusCode::NOT_FOUND, "this segment is not there yet"));
                }
                Availability::Gone => {
                    return Err(Refusal(StatusCode::GONE, "this segment has left the window"));
                }
            }
        }
        let kind = match (container, entry.kind) {
            (Container::MpegTs, _) => "video/mp2t",
            (Container::Fmp4, TrackKind::Video) => "video/mp4",
            (Container::Fmp4, TrackKind::Audio) => "audio/mp4",
        };
        let body = self.body((track, rung, number)).await?;
        let name = number.map_or("init".into(), |number| number.to_string());
        let version = &self.catalogue.version;
        let tag = Some(format!("\"{version}-{id}-{name}-{}\"", container.extension()));
        Ok(Content { body, kind, caching: caching::FOR_EVER, tag })
    }

    async fn body(&self, key: Key) -> Result<Bytes, Refusal> {
        let lock = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(body) = lock().get(key) {
            return Ok(body);
        }
        let (media, (track, rung, number)) = (self.media.clone(), key);
        let read = tokio::task::spawn_blocking(move || match number {
            None => media.init(track, rung),
            Some(number) => media.segment(track, rung, number),
        });
        match read.await {
            Ok(Ok(body)) => {
                lock().insert(key, body.clone());
                Ok(body)
            }
            _ => Err(Refusal(StatusCode::INTERNAL_SERVER_ERROR, "the package cannot be read")),
        }
    }
}

/// Which part of a rung is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Init,
    /// The segment of that number.
    Number(u64),
    /// The segment that begins at that tick.
    Start(u64),
}

/// What a file's name says: `init.mp4`, `NUMBER.m4s`, `NUMBER.ts` or `tTICKS.m4s`.
fn parse_file(file: &str) -> Option<(Container, Which)> {
    if file == "init.mp4" {
        return Some((Container::Fmp4, Which::Init));
    }
    let (name, extension) = file.split_once('.')?;
    let (which, number): (fn(u64) -> Which, _) = match name.strip_prefix('t') {
        Some(ticks) => (Which::Start, ticks),
        None => (Which::Number, name),
    };
    let container = [Container::Fmp4, Container::MpegTs].into_iter();
    let container = container.into_iter().find(|c| c.extension() == extension)?;
    let digits = number.len() <= 19 && number.bytes().all(|b| b.is_ascii_digit());
    Some((container, which(number.parse().ok().filter(|_| digits)?)))
}

/// A request that gets no content, and why.
#[derive(Debug, Clone, Copy)]
struct Refusal(StatusCode, &'static str);

const NOTHING: Refusal = Refusal(StatusCode::NOT_FOUND, "there is nothing at this path");

impl Refusal {
    fn response(self) -> Response<Full<Bytes>> {
        let Self(status, reason) = self;
        let mut response = Response::new(Full::new(Bytes::from(format!("{reason}\n"))));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, text);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching::NONE));
        if status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
        }
        response
    }
}

/// The answer to a browser that asks whether it may (Fetch standard, CORS preflight).
fn preflight() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, OPTIONS"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "range, if-none-match, cmcd-request, cmcd-object, cmcd-status, cmcd-session",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "86400"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Applies conditions and ranges in the order of RFC 9110 §13.2.2.
fn deliver(content: Content, request: &HeaderMap) -> Response<Full<Bytes>> {
    let text = |name| request.get(name).and_then(|value| value.to_str().ok());
    let length = content.body.len() as u64;
    let tag = content.tag.as_deref();
    let mut response = Response::new(Full::default());
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(content.caching));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(tag) = tag.and_then(|tag| HeaderValue::from_str(tag).ok()) {
        headers.insert(header::ETAG, tag);
    }
    if text(header::IF_NONE_MATCH).is_some_and(|wanted| matches_tag(wanted, tag)) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content.kind));
    // §13.1.5: a range of another version is no use; the whole is.
    let range = match text(header::IF_RANGE) {
        Some(wanted) if Some(wanted) != tag => None,
        _ => text(header::RANGE),
    };
    let (status, body, range) = match part(range, length) {
        Part::Whole => (StatusCode::OK, content.body, None),
        Part::Range(first, last) => {
            let bounds = usize::try_from(first).ok().zip(usize::try_from(last).ok());
            let (from, to) = bounds.expect("a range lies within the body");
            let body = content.body.slice(from..=to);
            (StatusCode::PARTIAL_CONTENT, body, Some(format!("bytes {first}-{last}/{length}")))
        }
        Part::Unsatisfiable => {
            let range = Some(format!("bytes */{length}"));
            (StatusCode::RANGE_NOT_SATISFIABLE, Bytes::new(), range)
        }
    };
    if let Some(range) = range.and_then(|range| HeaderValue::from_str(&range).ok()) {
        headers.insert(header::CONTENT_RANGE, range);
    }
    *response.status_mut() = status;
    *response.body_mut() = Full::new(body);
    response
}

/// §13.1.2: whether one of the listed tags is ours, compared weakly.
fn matches_tag(wanted: &str, tag: Option<&str>) -> bool {
    let Some(tag) = tag else { return false };
    let strip = |t: &str| t.trim().trim_start_matches("W/").to_owned();
    wanted.trim() == "*" || wanted.split(',').any(|one| strip(one) == tag)
}
