//! The page, the library and the job, served to the browser of the same host; reports, received.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::mpsc::Sender;

use super::report::REPORT_BYTES_MAX;

const PAGE: &str = include_str!("../../assets/page.html");
const SCRIPT: &str = include_str!("../../assets/page.js");

/// What is served.
#[derive(Debug)]
pub(super) struct Site {
    /// The player's library.
    pub library: Vec<u8>,
    /// What the page is to play, as JSON.
    pub job: String,
    /// Where bodies of reports go.
    pub reports: Sender<Bytes>,
}

/// A port of this host that the browser alone will know.
pub(super) fn listen() -> Result<TcpListener, suiro_http::net::ListenError> {
    suiro_http::net::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None)
}

/// Serves until it is dropped.
pub(super) async fn serve(listener: TcpListener, site: Site) -> Infallible {
    let site = Rc::new(site);
    let mut connections = tokio::task::JoinSet::new();
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async {
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let Ok((stream, _)) = accepted else { continue };
                        let site = site.clone();
                        let answer = service_fn(move |request| answer(site.clone(), request));
                        let connection =
                            http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
                        connections.spawn_local(async move { drop(connection.await) });
                    }
                    Some(_) = connections.join_next() => {}
                }
            }
        })
        .await
}

async fn answer(
    site: Rc<Site>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let script = "text/javascript; charset=utf-8";
    Ok(match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => content("text/html; charset=utf-8", PAGE.into()),
        (&Method::GET, "/page.js") => content(script, SCRIPT.into()),
        (&Method::GET, "/library.js") => content(script, site.library.clone().into()),
        (&Method::GET, "/job.json") => content("application/json", site.job.clone().into()),
        (&Method::POST, "/report") => {
            match Limited::new(request.into_body(), REPORT_BYTES_MAX).collect().await {
                Ok(body) => {
                    // Sending fails only when everything has ended.
                    let _ = site.reports.send(body.to_bytes()).await;
                    empty(StatusCode::NO_CONTENT)
                }
                Err(_) => empty(StatusCode::PAYLOAD_TOO_LARGE),
            }
        }
        _ => empty(StatusCode::NOT_FOUND),
    })
}

fn content(kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
