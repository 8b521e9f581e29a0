//! The server: `GET /N` is answered with N bytes.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use suiro_endpoint::{Failure, Summary};
use suiro_record::words::Carries;
use suiro_scenario::{EndpointSpec, Job, WebServer};

use crate::Clock;
use crate::flows::{Accepting, Records};
use crate::net;
use suiro_serving as serving;

/// What objects are made of.
static FILLING: [u8; 32 << 10] = [0x5a; 32 << 10];

/// What a server is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerJob {
    /// Where to listen; [`net::any_address`] for every address.
    pub listen: std::net::SocketAddr,
    /// TCP congestion control of its connections; `None`: the kernel's default.
    pub congestion: Option<String>,
    /// Where connections are recorded; `None` to keep no record.
    pub records: Option<Records>,
}

impl ServerJob {
    /// What a trial's job file asks for; `None` if the endpoint is no web server.
    pub fn from_job(job: &Job) -> Option<Self> {
        let EndpointSpec::WebServer(server) = &job.endpoint.spec else { return None };
        let listen = net::any_address(server.port);
        let records = Some(Records::of(job));
        Some(Self { listen, congestion: server.tcp.clone(), records })
    }
}

/// Runs a trial's job of a web server.
///
/// # Errors
/// If it is not one, or as [`serve`].
pub fn run_job(job: &Job, context: suiro_endpoint::Context) -> Result<Summary, Failure> {
    let work = ServerJob::from_job(job).ok_or("it is not a web server's job")?;
    let done = context
        .run(async |pulse, ready, stop| serve(&work, pulse.clock(), |_| ready(), stop).await);
    Ok(Summary::new(format!("{} requests", done?)))
}

/// Serves until `stop` is ready; gives the number of requests. `ready` is called once, with the
/// address that it listens at.
///
/// # Errors
/// If the address or the congestion control is not to be had, or the record cannot be written.
pub async fn serve(
    job: &ServerJob,
    clock: Clock,
    ready: impl FnOnce(std::net::SocketAddr),
    stop: impl Future<Output = ()>,
) -> Result<u64, Failure> {
    let listener = net::listen(job.listen, job.congestion.as_deref())?;
    let address = listener.local_addr().unwrap_or(job.listen);
    let flows = match &job.records {
        Some(records) => {
            Some(Accepting::create(records, address.port(), Carries::Web, clock).await?)
        }
        None => None,
    };
    ready(address);
    let requests = Arc::new(AtomicU64::new(0));
    let count = requests.clone();
    let respond = move |_, request: Request<Incoming>| {
        count.fetch_add(1, Relaxed);
        std::future::ready(respond(request.method(), request.uri().path()))
    };
    let limits = serving::Limits::per_address(serving::CONNECTIONS_MAX);
    serving::run(listener, limits, flows, respond, stop).await?;
    Ok(requests.load(Relaxed))
}

/// The answer to a request. Only what [`parse`] takes has a body.
fn respond(method: &Method, path: &str) -> Response<Filled> {
    let (status, left) = match parse(path) {
        _ if *method != Method::GET => (StatusCode::METHOD_NOT_ALLOWED, 0),
        Some(size) => (StatusCode::OK, size),
        None => (StatusCode::NOT_FOUND, 0),
    };
    let mut response = Response::new(Filled { left });
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    }
    response
}

/// The size that a path asks for: `/` and up to ten digits, not more than the largest object.
fn parse(path: &str) -> Option<u64> {
    let digits = path.strip_prefix('/')?;
    let plain =
        !digits.is_empty() && digits.len() <= 10 && digits.bytes().all(|b| b.is_ascii_digit());
    let size = digits.parse().ok().filter(|_| plain)?;
    (size <= WebServer::OBJECT_MAX.get()).then_some(size)
}

/// A body of this many bytes, none of which is stored.
#[derive(Debug)]
struct Filled {
    left: u64,
}

impl Body for Filled {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let size = usize::try_from(self.left).unwrap_or(usize::MAX).min(FILLING.len());
        if size == 0 {
            return Poll::Ready(None);
        }
        self.left -= size as u64;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&FILLING[..size])))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_asked_for_by_path() {
        assert_eq!(parse("/0"), Some(0));
        assert_eq!(parse("/1000000000"), Some(1_000_000_000));
        for path in ["", "/", "/1000000001", "/-1", "/+1", "/1/2", "/99999999999", "/٣", "1"] {
            assert_eq!(parse(path), None, "{path}");
        }
    }

    #[test]
    fn only_get_is_answered() {
        assert_eq!(respond(&Method::GET, "/7").status(), StatusCode::OK);
        assert_eq!(respond(&Method::GET, "/x").status(), StatusCode::NOT_FOUND);
        let refused = respond(&Method::POST, "/7");
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert!(refused.headers().contains_key(ALLOW) && refused.body().is_end_stream());
    }

    proptest! {
        #[test]
        fn any_path_is_taken(path in ".*") {
            parse(&path);
        }
    }
}
