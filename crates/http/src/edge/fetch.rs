//! Brings one object from the origin, for all who follow it.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Response;
use hyper::header::{HeaderName, HeaderValue};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;

use super::headers;
use super::object::{Coming, Failure, Head, Key, Stored};
use super::service::Service;
use super::upstream::{Answer, failure};
use crate::caching::Freshness;
use crate::player::{FetchError, Incoming, PROGRESS_TIMEOUT, TOTAL_TIMEOUT};
use crate::url::Url;

/// One object that is to come.
pub(super) struct Fetch {
    pub key: Key,
    pub url: Url,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// True if other requests may follow it.
    pub is_open: bool,
    pub coming: watch::Sender<Coming>,
    /// Its place among the objects that are on their way.
    pub place: OwnedSemaphorePermit,
}

impl Fetch {
    pub async fn run(mut self, service: Arc<Service>) {
        let whole = timeout(TOTAL_TIMEOUT.into(), self.bring(&service)).await;
        let end = whole.unwrap_or_else(|_| Err(failure(&FetchError::TotalTimeout)));
        let head = self.coming.borrow().head.clone();
        {
            let mut objects = service.objects();
            match (&end, head.filter(|head| head.is_shared())) {
                (Ok(body), Some(head)) => {
                    objects.keep(self.key.clone(), Stored { head, body: body.clone() });
                }
                _ if self.is_open => objects.end(&self.key),
                _ => {}
            }
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
        let head = head(service, requested, &response).map_err(|error| failure(&error))?;
        let is_shared = head.is_shared();
        if self.is_open && !is_shared {
            // Whoever asks from now on asks the origin.
            service.objects().end(&self.key);
            self.is_open = false;
        }
        self.coming.send_modify(|coming| coming.head = Some(Arc::new(head)));
        match self.body(service, response.into_body(), is_shared).await {
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
            self.coming.send_modify(|coming| taken = coming.push(data, service.object_max));
            taken.map_err(FetchError::Media)?;
            // An object that is kept is fetched to its end even if the client is gone.
            if !is_shared && self.coming.is_closed() {
                return Err(FetchError::Media("its client is gone".into()));
            }
        }
        self.coming.borrow().finish().map_err(FetchError::Media)
    }
}

fn head(
    service: &Service,
    requested: suiro_units::Time,
    response: &Response<Incoming>,
) -> Result<Head, FetchError> {
    let too_much = || FetchError::Media("the response has too many headers".into());
    let received = service.clock.now();
    let unix_ns = service.clock.unix_ns(received);
    let freshness = Freshness::of(response.headers(), requested, received, unix_ns);
    Ok(Head {
        status: response.status(),
        headers: headers::kept(response.headers()).ok_or_else(too_much)?,
        version: response.version(),
        length: response.body().length(),
        freshness,
    })
}
