//! Requests to responses.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use suiro_record::RecordError;
use suiro_record::tables::AccessRow;
use suiro_scenario::Protocol;
use suiro_units::{Duration, Time, fnv1a, to_i64};

use super::catalogue::{Catalogue, Container};
use super::chunks::Part;
use super::parts::{Directives, Held, LiveRung};
use super::timeline::{Availability, Loop, Schedule};
use super::{EVENTS_PATH, MPD_PATH, MULTIVARIANT_PATH, Media, TIME_PATH, hls, mpd};
use crate::Clock;
use crate::coding::{Coding, GZIP, gzip, takes_gzip};
use crate::forwarded::Asked;
use crate::iso8601::format_date_time;
use crate::presentation::TrackKind;
use crate::recent::Recent;
use crate::server::{
    AccessLog, Body, Counts, Live, Posted, Refusal, Source, Tally, date, deliver, share,
    without_object,
};

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

    /// A playlist that was waited for, of segments of at most this length.
    pub fn blocked(target_s: u64) -> String {
        format!("public, max-age={}", target_s * 6)
    }
}

/// The most that is kept of manifests in gzip, in bytes: some hundreds of a live stream.
const CODED_BYTES_MAX: usize = 256 << 10;

const NOTHING: Refusal = Refusal(StatusCode::NOT_FOUND, "there is nothing at this path");

/// A response before the request's conditions and ranges are applied.
struct Content {
    body: Source,
    kind: &'static str,
    caching: Cow<'static, str>,
    /// Quoted; `None` for what changes all the time, and for what is still being captured: its beginning is not all of it.
    tag: Option<String>,
    /// How its body is coded; `None` for what everybody gets as it is: media, and the clock.
    coding: Option<Coding>,
    /// How long HLS has the response wait for media that it asked for, a part or a playlist; `None`: not at all.
    held: Option<Duration>,
}

/// What is known of a response before the request's conditions and ranges are applied.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Brings {
    /// The size of the object.
    pub bytes: Option<suiro_units::Bytes>,
    /// When its first byte is there; `None`: it is.
    pub begins: Option<Time>,
    /// How long HLS has the response wait; `None`: not at all.
    pub held: Option<Duration>,
}

impl Content {
    fn brings(&self) -> Brings {
        let (bytes, begins) = match &self.body {
            Source::Whole(whole) => (Some(whole.len() as u64), None),
            Source::Coming(Body::Live(live)) => (Some(live.bytes()), live.begins()),
            Source::Coming(_) => (None, None),
        };
        Brings { bytes: bytes.map(suiro_units::Bytes::new), begins, held: self.held }
    }

    fn deliver(self, request: &Parts) -> Response<Body> {
        let mut headers = HeaderMap::new();
        let caching = HeaderValue::try_from(&*self.caching).expect("directives are ASCII");
        headers.insert(header::CACHE_CONTROL, caching);
        if let Some(tag) = self.tag.and_then(|tag| HeaderValue::try_from(tag).ok()) {
            headers.insert(header::ETAG, tag);
        }
        if self.coding.is_some() {
            // RFC 9110 §12.5.5: caches must not give it to clients that take no gzip.
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        if self.coding == Some(Coding::Gzip) {
            headers.insert(header::CONTENT_ENCODING, GZIP);
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        deliver(headers, self.body, request)
    }
}

/// Names one body: track, rung, number; the initialisation segment has none.
type Key = (usize, usize, Option<u64>);

/// Serves one catalogue.
pub(super) struct Service {
    pub(super) catalogue: Catalogue,
    media: Arc<dyn Media>,
    pub(super) clock: Clock,
    cache: Mutex<Recent<Key, Bytes>>,
    /// Manifests in gzip, by their text: the viewers of a live stream ask for the same.
    coded: Mutex<Recent<Bytes, Bytes>>,
    tally: Tally,
    pub(super) log: Option<AccessLog>,
    /// What the server is called in CMSD; `None`: it says nothing.
    pub(super) cmsd: Option<String>,
}

impl Service {
    pub(super) fn new(
        catalogue: Catalogue,
        media: Arc<dyn Media>,
        clock: Clock,
        cache_bytes: usize,
        log: Option<AccessLog>,
        cmsd: Option<String>,
    ) -> Self {
        Self {
            catalogue,
            media,
            clock,
            cache: Mutex::new(Recent::new(cache_bytes)),
            coded: Mutex::new(Recent::new(CODED_BYTES_MAX)),
            tally: Tally::default(),
            log,
            cmsd,
        }
    }

    /// Makes its record whole.
    pub(super) fn close(self) -> Result<(), RecordError> {
        self.log.map_or(Ok(()), AccessLog::close)
    }

    pub(super) fn counts(&self) -> Counts {
        self.tally.counts()
    }

    /// Answers one request.
    pub(super) async fn respond(
        self: Arc<Self>,
        peer: SocketAddr,
        request: Request<Posted>,
    ) -> Response<Body> {
        let asked = self.clock.now();
        let (head, posted) = request.into_parts();
        let mut brings = Brings::default();
        let mut response = match head.method {
            Method::GET | Method::HEAD => match self.content(&head).await {
                Ok(content) => {
                    brings = content.brings();
                    self.coded(content, &head.headers).deliver(&head)
                }
                Err(refusal) => refusal.response(),
            },
            Method::POST if head.uri.path() == EVENTS_PATH => {
                self.take_events(asked, peer, &head, posted)
            }
            ref method => without_object(method),
        };
        let headers = response.headers_mut();
        share(headers);
        date(headers, self.clock.unix_ns(self.clock.now()));
        self.tell(asked, &head, brings, &mut response);
        self.record(asked, peer, &head, &mut response);
        response
    }

    /// Counts and records an answer: at once, or when all of it has been sent.
    fn record(
        self: Arc<Self>,
        asked: Time,
        peer: SocketAddr,
        head: &Parts,
        response: &mut Response<Body>,
    ) {
        let status = response.status().as_u16();
        let row = self.log.as_ref().map(|log| AccessRow {
            status: i64::from(status),
            answered_ns: self.clock.now().as_nanos_i64(),
            ..log.row(asked, peer, head)
        });
        let without_body = head.method == Method::HEAD;
        response.body_mut().when_over(move |sent| {
            let body_bytes = if without_body { 0 } else { sent };
            self.tally.count(status, body_bytes);
            if let (Some(log), Some(row)) = (&self.log, row) {
                log.push(AccessRow { body_bytes: to_i64(body_bytes), ..row });
            }
        });
    }

    /// The time of the endpoint's clock at a time of the wall clock; zero for one before the epoch.
    fn time_of(&self, unix_ns: u64) -> Time {
        Time::from_nanos(unix_ns.saturating_sub(self.clock.epoch_unix_ns()))
    }

    async fn content(&self, head: &Parts) -> Result<Content, Refusal> {
        let path = head.uri.path();
        let unix_ns = self.clock.unix_ns(self.clock.now());
        match path {
            MPD_PATH => self.manifest(head, unix_ns),
            MULTIVARIANT_PATH => Ok(playlist(hls::multivariant(&self.catalogue), caching::SHORT)),
            TIME_PATH => Ok(Content {
                body: Source::Whole(format_date_time(unix_ns).into()),
                kind: "text/plain; charset=utf-8",
                caching: caching::NONE.into(),
                tag: None,
                coding: None,
                held: None,
            }),
            _ => match path.strip_prefix('/').and_then(|path| path.split_once('/')) {
                Some((rung, file)) => self.file(rung, file, unix_ns).await,
                None => self.rung_playlist(path, head.uri.query(), unix_ns).await,
            },
        }
    }

    /// A manifest as a client takes it: in gzip, or as it is.
    fn coded(&self, content: Content, asked: &HeaderMap) -> Content {
        let Content { body: Source::Whole(text), tag: Some(tag), coding: Some(_), .. } = &content
        else {
            return content;
        };
        if !takes_gzip(asked) {
            return content;
        }
        let lock = || self.coded.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = lock().get(text);
        let coded = kept.unwrap_or_else(|| {
            let coded = gzip(text);
            lock().insert(text.clone(), coded.clone());
            coded
        });
        // RFC 9110 §8.8.3.3: each coding has a tag of its own.
        let tag = tag.strip_suffix('"').map(|tag| format!("{tag}-gzip\""));
        Content { body: Source::Whole(coded), tag, coding: Some(Coding::Gzip), ..content }
    }

    fn manifest(&self, head: &Parts, unix_ns: u64) -> Result<Content, Refusal> {
        // Through a cache, players call the cache.
        let host = Asked::read(&head.headers).or_else(|| Asked::of(head));
        let host = host.map(|Asked { scheme, host }| format!("{scheme}://{host}"));
        let text = mpd::write(&self.catalogue, unix_ns, host.as_deref()).ok_or(Refusal(
            StatusCode::NOT_FOUND,
            "this package is MPEG-TS only, which DASH does not carry: play /master.m3u8",
        ))?;
        Ok(document(text, "application/dash+xml", self.manifest_caching()))
    }

    fn manifest_caching(&self) -> &'static str {
        match self.catalogue.schedule {
            Schedule::Vod { .. } => caching::SHORT,
            Schedule::Live { .. } => caching::LEAST,
        }
    }

    async fn rung_playlist(
        &self,
        path: &str,
        query: Option<&str>,
        unix_ns: u64,
    ) -> Result<Content, Refusal> {
        let id = path.strip_prefix('/').and_then(|path| path.strip_suffix(".m3u8"));
        let (id, container) = id.zip(self.catalogue.container(Protocol::Hls)).ok_or(NOTHING)?;
        let (track, rung) = self.catalogue.find(id, container).ok_or(NOTHING)?;
        let rung = &self.catalogue.tracks[track].rungs[rung];
        let Some(live) = LiveRung::new(&self.catalogue, rung, unix_ns) else {
            let text = hls::media(container, rung, &self.catalogue.schedule, unix_ns);
            return Ok(playlist(text, self.manifest_caching()));
        };
        let bad = |reason| Refusal(StatusCode::BAD_REQUEST, reason);
        let directives = Directives::parse(query).map_err(bad)?;
        let held = live.held(&directives).map_err(bad)?;
        let (Held::Until(until) | Held::InVain(until)) = held;
        self.clock.sleep_until(self.time_of(until)).await;
        if let Held::InVain(_) = held {
            let reason = "what was asked for has not come in time";
            return Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, reason));
        }
        let live = LiveRung { unix_ns: unix_ns.max(until), ..live };
        let text = live.playlist(directives.skip);
        // RFC 8216bis §6.2.5.2: what directives ask for is one version of the playlist, so caches may keep it; appendix B: for
        // six target durations.
        let content = match directives.segment {
            Some(_) => playlist(text, caching::blocked(live.target_s())),
            None => playlist(text, self.manifest_caching()),
        };
        let held_ns = until.checked_sub(unix_ns).filter(|ns| *ns > 0);
        Ok(Content { held: held_ns.map(Duration::from_nanos), ..content })
    }

    async fn file(&self, id: &str, file: &str, unix_ns: u64) -> Result<Content, Refusal> {
        let (container, which) = parse_file(file).ok_or(NOTHING)?;
        let (track, rung) = self.catalogue.find(id, container).ok_or(NOTHING)?;
        let entry = &self.catalogue.tracks[track];
        let timeline = &entry.rungs[rung].timeline;
        let live = LiveRung::new(&self.catalogue, &entry.rungs[rung], unix_ns);
        let (number, part) = match which {
            Which::Init => (None, None),
            Which::Number(number) => (Some(number), None),
            Which::Start(ticks) => (Some(timeline.number_at(ticks).ok_or(NOTHING)?), None),
            Which::Part(number, part) => {
                let chunks = entry.rungs[rung].chunks.as_ref().ok_or(NOTHING)?;
                (Some(number), Some(chunks.part(number, part).ok_or(NOTHING)?))
            }
        };
        if let Some(number) = number {
            self.check_there(number, part.as_ref(), live.as_ref(), timeline, unix_ns)?;
        }
        let kind = match (container, entry.kind) {
            (Container::MpegTs, _) => "video/mp2t",
            (Container::Fmp4, TrackKind::Video) => "video/mp4",
            (Container::Fmp4, TrackKind::Audio) => "audio/mp4",
        };
        let body = self.body((track, rung, number)).await?;
        let body = match (live, number) {
            (Some(live), Some(number)) => self.pieces(&live, number, part.as_ref(), &body)?,
            _ => Source::Whole(body),
        };
        let name = match (number, &part) {
            (None, _) => "init".to_owned(),
            (Some(number), None) => number.to_string(),
            (Some(number), Some(part)) => format!("{number}.{}", part.part),
        };
        let (version, extension) = (&self.catalogue.version, container.extension());
        let is_whole = matches!(body, Source::Whole(_));
        let tag = is_whole.then(|| format!("\"{version}-{id}-{name}-{extension}\""));
        let content = Content {
            body,
            kind,
            caching: caching::FOR_EVER.into(),
            tag,
            coding: None,
            held: None,
        };
        // A segment is sent while it is captured. A part is held until all of it is there.
        let begins = content.brings().begins.filter(|_| part.is_some());
        let held = begins.map(|begins| begins.saturating_since(self.clock.now()));
        Ok(Content { held, ..content })
    }

    /// Refuses what is not there. In chunks, what begins within a segment's length from now can be waited for.
    fn check_there(
        &self,
        number: u64,
        part: Option<&Part>,
        live: Option<&LiveRung<'_>>,
        timeline: &Loop,
        unix_ns: u64,
    ) -> Result<(), Refusal> {
        let soon = live.is_some_and(|live| live.is_soon(number, part));
        match self.catalogue.schedule.availability(timeline, number, unix_ns) {
            Availability::NotYet if !soon => {
                Err(Refusal(StatusCode::NOT_FOUND, "this segment is not there yet"))
            }
            Availability::There | Availability::NotYet => Ok(()),
            Availability::Gone => {
                Err(Refusal(StatusCode::GONE, "this segment has left the window"))
            }
        }
    }

    /// A segment, or a part of it, as far as it has been captured, and the rest as it will be. Bytes of a part are sent
    /// when all of it is there, at the full speed of the link, so that clients can measure that (RFC 8216bis §6.2.6).
    fn pieces(
        &self,
        live: &LiveRung<'_>,
        number: u64,
        part: Option<&Part>,
        body: &Bytes,
    ) -> Result<Source, Refusal> {
        let damaged = Refusal(StatusCode::INTERNAL_SERVER_ERROR, "the package cannot be read");
        let ends = suiro_media::mp4::ends(body).map_err(|_| damaged)?;
        let all = live.chunks.of(number);
        if ends.len() as u64 != all.end - all.start {
            return Err(damaged);
        }
        let end_of = |chunk: u64| usize::try_from(chunk - all.start).ok().map(|at| ends[at]);
        let start_of = |chunk: u64| if chunk == all.start { Some(0) } else { end_of(chunk - 1) };
        let at = |chunk: u64| self.time_of(live.unix_ns_at(live.chunks.captured_at(chunk)));
        let slice = |first: u64, last: u64| {
            let bounds = start_of(first).zip(end_of(last)).ok_or(damaged)?;
            Ok::<_, Refusal>(body.slice(bounds.0..bounds.1))
        };
        let (last, pieces) = match part {
            Some(part) => {
                let (first, last) = (part.chunks.start, part.chunks.end - 1);
                (last, vec![(at(last), slice(first, last)?)])
            }
            None => {
                let pieces = all.clone().map(|chunk| Ok((at(chunk), slice(chunk, chunk)?)));
                (all.end - 1, pieces.collect::<Result<_, Refusal>>()?)
            }
        };
        if at(last) > self.clock.now() {
            return Ok(Source::Coming(Body::Live(Live::new(self.clock, pieces))));
        }
        slice(part.map_or(all.start, |part| part.chunks.start), last).map(Source::Whole)
    }

    async fn body(&self, key: Key) -> Result<Bytes, Refusal> {
        let lock = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(body) = lock().get(&key) {
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

/// A manifest, tagged by its text.
fn document(text: String, kind: &'static str, caching: impl Into<Cow<'static, str>>) -> Content {
    let tag = Some(format!("\"{:016x}\"", fnv1a(text.bytes())));
    Content {
        body: Source::Whole(text.into()),
        kind,
        caching: caching.into(),
        tag,
        coding: Some(Coding::Identity),
        held: None,
    }
}

fn playlist(text: String, caching: impl Into<Cow<'static, str>>) -> Content {
    // RFC 8216 §4.
    document(text, "application/vnd.apple.mpegurl", caching)
}

/// Which part of a rung is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Init,
    /// The segment of that number.
    Number(u64),
    /// The segment that begins at that tick.
    Start(u64),
    /// A part of the segment of that number.
    Part(u64, u64),
}

/// What a file's name says: `init.mp4`, `NUMBER.m4s`, `NUMBER.PART.m4s`, `NUMBER.ts` or `tTICKS.m4s`.
pub(super) fn parse_file(file: &str) -> Option<(Container, Which)> {
    if file == "init.mp4" {
        return Some((Container::Fmp4, Which::Init));
    }
    let (name, extension) = file.rsplit_once('.')?;
    let container = [Container::Fmp4, Container::MpegTs].into_iter();
    let container = container.into_iter().find(|c| c.extension() == extension)?;
    let which = match (name.strip_prefix('t'), name.split_once('.')) {
        (Some(ticks), _) => Which::Start(number(ticks)?),
        (None, Some((segment, part))) if container == Container::Fmp4 => {
            Which::Part(number(segment)?, number(part)?)
        }
        (None, _) => Which::Number(number(name)?),
    };
    Some((container, which))
}

/// A whole number of at most 19 digits.
fn number(text: &str) -> Option<u64> {
    let digits = text.len() <= 19 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}
