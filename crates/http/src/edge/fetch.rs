//! Brings one object from the origin, for all who follow it, or learns that what has expired is still valid.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{AGE, DATE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use suiro_units::Time;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;

use super::headers;
use super::object::{Coming, Failure, Following, Head, Key, Stored};
use super::service::Service;
use super::upstream::{Answer, failure};
use crate::caching::{Freshness, http_date};
use crate::player::{FetchError, Incoming, PROGRESS_TIMEOUT, TOTAL_TIMEOUT};
use crate::url::Url;

/// What an object on its way is called, by which other requests find it until it has come, or this is dropped. So they do not
/// find what nobody brings any more, whatever ended that.
pub(super) struct Entry {
    service: Arc<Service>,
    key: Key,
    /// True if other requests find it.
    is_open: bool,
}

impl Entry {
    /// `others` is how other requests follow the object; `None` if it is for one request alone.
    pub fn begin(service: Arc<Service>, key: Key, others: Option<Following>) -> Self {
        let is_open = others.is_some();
        if let Some(following) = others {
            service.objects().begin(key.clone(), following);
        }
        Self { service, key, is_open }
    }

    fn keep(&mut self, stored: Stored) {
        self.service.objects().keep(self.key.clone(), stored);
        self.is_open = false;
    }

    /// No further request finds it.
    fn close(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.service.objects().end(&self.key);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.close();
    }
}

/// One object that is to come.
pub(super) struct Fetch {
    /// Dropped before `coming`: who finds it can follow it.
    pub entry: Entry,
    pub url: Url,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The expired object that the origin is asked about; `headers` has its entity tag.
    pub old: Option<Arc<Stored>>,
    pub coming: watch::Sender<Coming>,
    /// Its place among the objects that are on their way.
    pub place: OwnedSemaphorePermit,
}

impl Fetch {
    pub async fn run(mut self) {
        let service = Arc::clone(&self.entry.service);
        let whole = timeout(TOTAL_TIMEOUT.into(), self.bring(&service)).await;
        let end = whole.unwrap_or_else(|_| Err(failure(&FetchError::TotalTimeout)));
        let head = self.coming.borrow().head.clone();
        match (&end, head.filter(|head| head.is_shared())) {
            (Ok(body), Some(head)) => self.entry.keep(Stored { head, body: body.clone() }),
            _ => self.entry.close(),
        }
        if end.is_err() {
            service.failed();
        }
        drop(self.place);
        self.coming.send_modify(|coming| coming.end = Some(end));
    }

    async fn bring(&mut self, service: &Service) -> Result<Bytes, Failure> {
        let requested = service.clock.now();
        let asked = service.upstream.ask(&self.url, &self.headers).await;
        let Answer { response, connection } = asked.map_err(|error| failure(&error))?;
        let brought = match response.status() {
            StatusCode::NOT_MODIFIED => self.revalidated(service, requested, response).await,
            _ => self.whole(service, requested, response).await,
        };
        match brought {
            Ok(whole) => {
                service.upstream.give_back(connection);
                Ok(whole)
            }
            Err(error) => {
                service.upstream.failed(&connection, &error).await;
                Err(failure(&error))
            }
        }
    }

    async fn whole(
        &mut self,
        service: &Service,
        requested: Time,
        response: Response<Incoming>,
    ) -> Result<Bytes, FetchError> {
        let head = head(service, requested, &response, None)?;
        let is_shared = head.is_shared();
        self.has_head(head);
        self.body(service, response.into_body(), is_shared).await
    }

    /// The expired object is still valid (RFC 9111 §4.3.3, §4.3.4). Returns its body, also if it has made room meanwhile.
    async fn revalidated(
        &mut self,
        service: &Service,
        requested: Time,
        response: Response<Incoming>,
    ) -> Result<Bytes, FetchError> {
        let wrong = |what: &str| FetchError::Media(format!("status 304 {what}"));
        let old = self.old.take().ok_or_else(|| wrong("without a condition"))?;
        let head = match headers::is_about(&old.head.headers, response.headers()) {
            true => head(service, requested, &response, Some(&old.head)),
            false => Err(wrong("without the tag that was asked about")),
        };
        if !head.as_ref().is_ok_and(Head::is_shared) {
            // The next request asks for the whole.
            service.objects().forget(&self.entry.key, &old);
        }
        let head = head?;
        let mut body = response.into_body();
        let data = timeout(PROGRESS_TIMEOUT.into(), body.data()).await;
        let data = data.map_err(|_| FetchError::ProgressTimeout)??;
        if data.is_some_and(|(data, _)| !data.is_empty()) {
            return Err(wrong("with content"));
        }
        self.has_head(head);
        Ok(old.body.clone())
    }

    /// The head is there. Whoever asks from now on asks the origin, unless others may have the object too.
    fn has_head(&mut self, head: Head) {
        if !head.is_shared() {
            self.entry.close();
        }
        self.coming.send_modify(|coming| coming.head = Some(Arc::new(head)));
    }

    async fn body(
        &self,
        service: &Service,
        mut body: Incoming,
        is_shared: bool,
    ) -> Result<Bytes, FetchError> {
        loop {
            let data = timeout(PROGRESS_TIMEOUT.into(), body.data()).await;
            let data = data.map_err(|_| FetchError::ProgressTimeout)??;
            let Some((data, _)) = data else { break };
            let mut taken = Ok(());
            self.coming.send_modify(|coming| taken = coming.push(data, &service.bounds));
            taken.map_err(FetchError::Media)?;
            // An object that is kept is fetched to its end even if the client is gone.
            if !is_shared && self.coming.is_closed() {
                return Err(FetchError::Media("its client is gone".into()));
            }
        }
        self.coming.borrow().finish().map_err(FetchError::Media)
    }
}

/// What an origin said before the body; of a stored object that is still valid, with what it said before (RFC 9111 §3.2).
fn head(
    service: &Service,
    requested: Time,
    response: &Response<Incoming>,
    old: Option<&Head>,
) -> Result<Head, FetchError> {
    let too_much = || FetchError::Media("the response has too many headers".into());
    let received = service.clock.now();
    let unix_ns = service.clock.unix_ns(received);
    let mut headers = headers::kept(response.headers()).ok_or_else(too_much)?;
    // RFC 9110 §6.6.1
    headers.entry(DATE).or_insert_with(|| http_date(unix_ns));
    if let Some(old) = old {
        headers = headers::updated(&old.headers, &headers).ok_or_else(too_much)?;
    }
    // Its age is no part of what is stored.
    let mut said = headers.clone();
    said.extend(response.headers().get(AGE).map(|age| (AGE, age.clone())));
    let freshness = Freshness::of(&said, requested, received, unix_ns);
    let answered = response.status();
    let (status, length) = match old {
        Some(old) => (old.status, old.length),
        None => (answered, response.body().length()),
    };
    let version = response.version();
    Ok(Head { status, answered, headers, version, length, freshness })
}
