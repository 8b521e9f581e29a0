//! Requests of viewers to answers: from what the cache has, from what is on its way, or from the origin.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, HeaderName, HeaderValue, IF_NONE_MATCH, RANGE, RETRY_AFTER, VIA,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use suiro_record::tables::AccessRow;
use suiro_record::words::CacheOutcome;
use suiro_units::{Duration, Time, to_i64};
use tokio::sync::{mpsc, watch};

use super::fault::Met;
use super::fetch::{Entry, Fetch};
use super::headers::{Said, report, via};
use super::object::{Coming, Following, Found, Head, Key, Stored};
use super::pass::{Pass, Piecewise};
use super::service::Service;
use crate::cmcd;
use crate::cmsd::{self, Cmsd};
use crate::coding::{GZIP, IDENTITY};
use crate::forwarded::{Asked, FORWARDED};
use crate::http3::client::Early;
use crate::priority::PRIORITY;
use crate::server::{
    Body, Passed, Posted, Refusal, Source, connection, date, deliver, share, without_object,
};

/// How long a client is to wait that the cache has no place for.
const FULL: Duration = Duration::from_secs(1);
/// The longest path and query, in bytes.
const TARGET_MAX: usize = 8192;

/// An answer, and where it was had from.
struct Answer {
    response: Response<Body>,
    outcome: CacheOutcome,
    age: Option<Duration>,
}

impl Answer {
    fn own(response: Response<Body>) -> Self {
        Self { response, outcome: CacheOutcome::Own, age: None }
    }

    /// Without an object; `outcome` is what the cache did for one.
    fn refused(refused: Refused, outcome: CacheOutcome) -> Self {
        let mut response = refused.refusal.response();
        if let Some(wait) = refused.retry_after {
            let seconds = HeaderValue::from(wait.as_nanos().div_ceil(1_000_000_000));
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        Self { response, outcome, age: None }
    }
}

/// Why there is no object in the answer, and when to come again.
#[derive(Clone, Copy)]
struct Refused {
    refusal: Refusal,
    retry_after: Option<Duration>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, retry_after: None }
    }
}

/// For whom the origin is asked.
enum Reach {
    /// One request alone.
    One,
    /// Everybody who asks meanwhile; with what the cache had and has expired.
    All(Option<Arc<Stored>>),
}

/// How an object on its way is followed.
struct Way {
    following: Following,
    outcome: CacheOutcome,
    expired: bool,
}

/// RFC 8470 §5.1.
const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

const BAD: Refusal = Refusal(StatusCode::BAD_REQUEST, "this is no path of an origin");

impl Service {
    /// Answers one request.
    pub async fn respond(
        self: Arc<Self>,
        peer: SocketAddr,
        request: Request<Posted>,
    ) -> Response<Body> {
        let asked = self.clock.now();
        let (head, _) = request.into_parts();
        let mut fault = None;
        let mut answer = match head.method {
            Method::GET | Method::HEAD => {
                fault = self.faults.of(self.numbers.fetch_add(1, Relaxed), asked);
                self.answer(&head, fault).await
            }
            ref method => Answer::own(without_object(method)),
        };
        self.report(asked, &head, &mut answer);
        let headers = answer.response.headers_mut();
        share(headers);
        date(headers, self.clock.unix_ns(self.clock.now()));
        self.done.outcomes[answer.outcome as usize].fetch_add(1, Relaxed);
        self.record(asked, peer, &head, fault, &mut answer);
        answer.response
    }

    /// Adds what is known of the connection to an answer with which the origin has reported anything (CMSD).
    fn report(&self, asked: Time, head: &Parts, answer: &mut Answer) {
        // Of a body that is still to come, it is not known when it begins; and some answers have none.
        let is_whole = matches!(answer.response.body(), Body::Whole(Some(_)));
        let is_there = is_whole && head.method != Method::HEAD;
        let is_new = matches!(answer.outcome, CacheOutcome::Miss | CacheOutcome::Revalidated);
        let headers = answer.response.headers_mut();
        if !cmsd::is_in(headers) {
            return;
        }
        let delay = self.clock.now().saturating_since(asked).as_nanos() / 1_000_000;
        let delay_ms = is_there.then_some(to_i64(delay));
        let known = Cmsd { delay_ms, ..connection(head) };
        report(headers, is_new, &self.name, &known);
    }

    /// Counts and records an answer when all of it has been sent.
    fn record(
        self: Arc<Self>,
        asked: Time,
        peer: SocketAddr,
        head: &Parts,
        fault: Option<Met>,
        answer: &mut Answer,
    ) {
        let status = answer.response.status().as_u16();
        // An answer is as it should be if it had not expired, gives no age, or has no body to cut off.
        let (outcome, age) = (answer.outcome, answer.age);
        let without_body = head.method == Method::HEAD;
        let is_cut = !without_body && matches!(answer.response.body(), Body::Passed(_));
        let met = |fault: &Met| match fault {
            Met::Stale => outcome == CacheOutcome::Stale,
            Met::Age(_) => age.is_some(),
            Met::Reset => is_cut,
            Met::Slow { .. } | Met::Unavailable { .. } => true,
        };
        let row = self.log.as_ref().map(|log| AccessRow {
            status: i64::from(status),
            answered_ns: self.clock.now().as_nanos_i64(),
            cache: Some(outcome),
            cache_age_ms: age.map(|age| to_i64(age.as_nanos() / 1_000_000)),
            cache_fault: fault.filter(met).map(Met::word),
            ..log.row(asked, peer, head)
        });
        answer.response.body_mut().when_over(move |sent| {
            let body_bytes = if without_body { 0 } else { sent };
            self.tally.count(status, body_bytes);
            if let (Some(log), Some(row)) = (&self.log, row) {
                log.push(AccessRow { body_bytes: to_i64(body_bytes), ..row });
            }
        });
    }

    async fn answer(self: &Arc<Self>, head: &Parts, fault: Option<Met>) -> Answer {
        match fault {
            Some(Met::Unavailable { retry_after }) => {
                let reason = "a fault of the scenario";
                let refusal = Refusal(StatusCode::SERVICE_UNAVAILABLE, reason);
                return Answer::refused(Refused { refusal, retry_after }, CacheOutcome::Own);
            }
            Some(Met::Slow { delay: Some(delay), .. }) => {
                self.clock.sleep_until(self.clock.now() + delay).await;
            }
            _ => {}
        }
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
        if target.len() > TARGET_MAX {
            let reason = "the path is too long";
            return Answer::own(Refusal(StatusCode::URI_TOO_LONG, reason).response());
        }
        let host = Asked::of(head).map(|asked| asked.host).unwrap_or_default();
        // What the player says of itself differs from request to request.
        let key = Key::of(host, cmcd::without(target), &head.headers);
        let found = self.objects().find(&key, self.clock.now(), fault == Some(Met::Stale));
        match found {
            Found::Stored(stored, outcome) => {
                let source = Source::Whole(stored.body.clone());
                self.deliver((head, fault), &stored.head, source, (outcome, false))
            }
            Found::Coming(following) => {
                let expired = following.borrow().expired;
                let way = Way { following, outcome: CacheOutcome::Joined, expired };
                self.follow(head, fault, key, way).await
            }
            Found::Nowhere(old) => {
                let expired = old.is_some();
                match self.begin(head, &key, Reach::All(old)) {
                    Ok(following) => {
                        let way = Way { following, outcome: CacheOutcome::Miss, expired };
                        self.follow(head, fault, key, way).await
                    }
                    Err(refused) => Answer::refused(refused, CacheOutcome::Own),
                }
            }
        }
    }

    /// Asks the origin: whether what has expired is still valid, or for the object.
    fn begin(
        self: &Arc<Self>,
        head: &Parts,
        key: &Key,
        reach: Reach,
    ) -> Result<Following, Refused> {
        let url = self.upstream.url(&key.target).ok_or(BAD)?;
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            self.done.full.fetch_add(1, Relaxed);
            let reason = "too many objects are on their way";
            let refusal = Refusal(StatusCode::SERVICE_UNAVAILABLE, reason);
            return Err(Refused { refusal, retry_after: Some(FULL) });
        };
        let (is_open, old) = match reach {
            Reach::One => (false, None),
            Reach::All(old) => (true, old),
        };
        let (coming, following) =
            watch::channel(Coming { expired: old.is_some(), ..Coming::default() });
        let others = is_open.then(|| following.clone());
        let entry = Entry::begin(Arc::clone(self), key.clone(), others);
        let mut headers = self.said(head, &key.host);
        headers.push((ACCEPT_ENCODING, if key.gzip { GZIP } else { IDENTITY }));
        // RFC 9111 §4.3.1
        let tag = old.as_ref().and_then(|old| old.tag().cloned());
        let old = old.filter(|_| tag.is_some());
        headers.extend(tag.map(|tag| (IF_NONE_MATCH, tag)));
        let fetch = Fetch { entry, url, headers, old, coming, place };
        self.spawn(fetch.run());
        Ok(following)
    }

    /// Headers for the origin: the hosts on the way, the name by which the client reached this cache, and the priority.
    fn said(&self, head: &Parts, host: &str) -> Vec<(HeaderName, HeaderValue)> {
        let asked = Asked { scheme: self.scheme, host: host.to_owned() };
        let before = head.headers.get_all(VIA).iter().cloned();
        let vias = before.chain(via(head.version, &self.name)).map(|via| (VIA, via));
        // It is meant for every server on the way (RFC 9218 §5).
        let priorities = head.headers.get_all(PRIORITY).iter().cloned();
        let priorities = priorities.map(|priority| (PRIORITY, priority));
        // RFC 8470 §5.1: what came before the handshake, here or before, may be a replay.
        let is_early =
            head.extensions.get::<Early>().is_some() || head.headers.contains_key(EARLY_DATA);
        let early = is_early.then(|| (EARLY_DATA, HeaderValue::from_static("1")));
        let asked = asked.written().map(|asked| (FORWARDED, asked));
        vias.chain(asked).chain(priorities).chain(early).collect()
    }

    /// Answers with what is on its way.
    async fn follow(
        self: &Arc<Self>,
        head: &Parts,
        fault: Option<Met>,
        key: Key,
        mut way: Way,
    ) -> Answer {
        let found = loop {
            let found = match settled(&mut way.following).await {
                Ok(found) => found,
                Err(refused) => return Answer::refused(refused, way.outcome),
            };
            if way.outcome == CacheOutcome::Miss || found.is_shared() {
                break found;
            }
            // It was for one request alone (RFC 9111 §4).
            match self.begin(head, &key, Reach::One) {
                Ok(following) => {
                    way = Way { following, outcome: CacheOutcome::Miss, expired: false };
                }
                Err(refused) => return Answer::refused(refused, CacheOutcome::Own),
            }
        };
        if way.outcome == CacheOutcome::Miss && found.is_revalidated() {
            way.outcome = CacheOutcome::Revalidated;
        }
        let how = (way.outcome, way.expired);
        // A range is cut from the whole. A stored object is whole already.
        let is_cut = head.method == Method::GET && head.headers.contains_key(RANGE);
        if is_cut && found.is_shared() || found.is_revalidated() {
            return match whole(&mut way.following).await {
                Ok(body) => self.deliver((head, fault), &found, Source::Whole(body), how),
                Err(refused) => Answer::refused(refused, way.outcome),
            };
        }
        let passed = self.pass(Piecewise::Coming(way.following), fault, found.length);
        self.deliver((head, fault), &found, Source::Coming(passed), how)
    }

    /// The answer to a request with an object, or with what the origin said instead.
    fn deliver(
        self: &Arc<Self>,
        (head, fault): (&Parts, Option<Met>),
        found: &Head,
        source: Source,
        (outcome, expired): (CacheOutcome, bool),
    ) -> Answer {
        let now = self.clock.now();
        let age = match fault {
            Some(Met::Age(age)) => age,
            _ => found.freshness.age(now),
        };
        // What was generated or validated for this request has none of ours (RFC 9111 §5.1).
        let is_aged = !matches!(outcome, CacheOutcome::Miss | CacheOutcome::Revalidated)
            || found.freshness.has_age
            || matches!(fault, Some(Met::Age(_)));
        let mut headers = found.headers.clone();
        let said = Said {
            name: &self.name,
            outcome,
            expired,
            stored: found.is_shared(),
            status: found.answered.as_u16(),
            ttl_s: found.freshness.ttl_s(now),
            age: Some(age).filter(|_| is_aged),
            received: found.version,
        };
        said.add(&mut headers);
        let mut response = match found.status {
            StatusCode::OK => deliver(headers, source, head),
            status => {
                let body = match source {
                    Source::Whole(whole) => Body::whole(whole),
                    Source::Coming(body) => body,
                };
                let mut response = Response::new(body);
                *response.headers_mut() = headers;
                *response.status_mut() = status;
                response
            }
        };
        if let (Body::Whole(whole), Some(Met::Slow { rate: Some(_), .. } | Met::Reset)) =
            (response.body_mut(), fault)
            && let Some(whole) = whole.take()
        {
            let length = whole.len() as u64;
            *response.body_mut() = self.pass(Piecewise::Whole(whole), fault, Some(length));
        }
        Answer { response, outcome, age: Some(age) }
    }

    /// A body that is sent on as it comes, or as the fault allows.
    fn pass(&self, from: Piecewise, fault: Option<Met>, length: Option<u64>) -> Body {
        let (to, pieces) = mpsc::channel(1);
        self.spawn(Pass::new(self.clock, fault, to).run(from));
        Body::Passed(Passed::new(pieces, length))
    }
}

/// The head of what is on its way, once it is there.
async fn settled(following: &mut Following) -> Result<Arc<Head>, Refused> {
    let there = |coming: &Coming| coming.head.is_some() || coming.end.is_some();
    let (head, end) = match following.wait_for(there).await {
        Ok(coming) => (coming.head.clone(), coming.end.clone()),
        Err(_) => return Err(gone()),
    };
    match (head, end) {
        (Some(head), _) => Ok(head),
        (None, Some(Err(failure))) => Err(failed(failure.status)),
        (None, _) => Err(gone()),
    }
}

/// All of what is on its way.
async fn whole(following: &mut Following) -> Result<Bytes, Refused> {
    let end = match following.wait_for(|coming| coming.end.is_some()).await {
        Ok(coming) => coming.end.clone(),
        Err(_) => return Err(gone()),
    };
    match end {
        Some(Ok(whole)) => Ok(whole),
        Some(Err(failure)) => Err(failed(failure.status)),
        None => Err(gone()),
    }
}

/// The cache stops.
fn gone() -> Refused {
    failed(StatusCode::BAD_GATEWAY)
}

fn failed(status: StatusCode) -> Refused {
    let reason = match status {
        StatusCode::GATEWAY_TIMEOUT => "the origin has not answered in time",
        _ => "the origin has not answered",
    };
    Refusal(status, reason).into()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use suiro_scenario::HttpVersion;
    use suiro_units::Seed;

    use super::*;
    use crate::edge::{EdgeJob, service};
    use crate::{Clock, Url};

    #[tokio::test]
    async fn what_nobody_brings_any_more_is_not_on_its_way() {
        let job = EdgeJob {
            name: "edge".into(),
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            congestion: None,
            secure: None,
            origin: Url::parse("http://127.0.0.1:9/").expect("a URL"),
            origin_http: HttpVersion::Http1,
            certificate: "none".into(),
            server: None,
            store: suiro_units::Bytes::new(1_000_000),
            in_flight: 16,
            fault: None,
            seed: Seed(1),
            records: None,
        };
        let cache = Arc::new(service(&job, Clock::from_now(), None, None));
        let (head, ()) = Request::new(()).into_parts();
        let key = Key { host: "edge".into(), target: "/a".into(), gzip: false };
        let find = || cache.objects().find(&key, Time::ZERO, false);
        assert!(cache.begin(&head, &key, Reach::All(None)).is_ok());
        assert!(matches!(find(), Found::Coming(_)));
        // What brings it is dropped, as it is when it panics.
        cache.stop().await;
        assert!(matches!(find(), Found::Nowhere(None)));
    }
}
