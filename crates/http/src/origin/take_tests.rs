//! Events that players report to an origin, and what becomes of them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, StatusCode};
use suiro_record::Reader;
use suiro_record::tables::{AccessRow, CmcdEventRow};

use super::parts_tests::{Unreadable, ZERO, catalogue};
use super::serve::Service;
use crate::Clock;
use crate::server::{AccessLog, Posted, Unread};

/// An origin with a record.
struct Recorded {
    service: Arc<Service>,
    dir: tempfile::TempDir,
}

impl Recorded {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let log = AccessLog::create(dir.path(), "origin").expect("a record");
        let clock = Clock::new(Clock::new(0, 0).now().as_nanos(), ZERO);
        let service = Service::new(catalogue(500), Arc::new(Unreadable), clock, 0, Some(log), None);
        Self { service: Arc::new(service), dir }
    }

    /// The status and the text of the answer to a request with this body.
    async fn post(&self, path: &str, kind: &str, body: Posted) -> (StatusCode, String) {
        let request = Request::builder().method(Method::POST).uri(path).header(CONTENT_TYPE, kind);
        let request = request.body(body).expect("a request");
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        let response = Arc::clone(&self.service).respond(peer, request).await;
        let status = response.status();
        let text = response.into_body().collect().await.expect("an end").to_bytes();
        (status, String::from_utf8_lossy(&text).into_owned())
    }

    fn close(self) -> tempfile::TempDir {
        Arc::into_inner(self.service)
            .expect("no request is in progress")
            .close()
            .expect("the record is whole");
        self.dir
    }
}

fn body(text: &'static str) -> Posted {
    Ok(Bytes::from_static(text.as_bytes()))
}

#[tokio::test(start_paused = true)]
async fn events_are_recorded_one_by_one() {
    let origin = Recorded::new();
    // 1.5 s after the epoch, and a millisecond before it.
    let at_ms = ZERO / 1_000_000;
    let text = format!(
        "bl=(2100;v 1800;a),e=ps,sid=\"s\",sn=1,sta=r,ts={},v=2\nbs,e=t,sn=2,ts={},v=2",
        at_ms + 1500,
        at_ms - 1
    );
    let answer = origin.post("/cmcd", "application/cmcd", Ok(text.into())).await;
    assert_eq!(answer, (StatusCode::NO_CONTENT, String::new()));
    let more = body("bl=x,e=t,ts=0,v=2");
    let answer = origin.post("/cmcd?a=1", "Application/CMCD; charset=utf-8", more).await;
    assert_eq!(answer.0, StatusCode::NO_CONTENT);
    let dir = origin.close();
    let rows: Vec<CmcdEventRow> = Reader::read_all(dir.path()).expect("the table of events");
    let seen: Vec<_> = rows.iter().map(|row| (&*row.event, row.sequence)).collect();
    assert_eq!(seen, [("ps", Some(1)), ("t", Some(2)), ("t", None)]);
    let epoch_ns = i64::try_from(ZERO).expect("a time of this century");
    let when: Vec<_> = rows.iter().map(|row| row.happened_ns).collect();
    assert_eq!(when, [1_500_000_000, -1_000_000, -epoch_ns]);
    let first = &rows[0];
    assert_eq!((&*first.endpoint, &*first.peer), ("origin", "127.0.0.1:9"));
    assert_eq!((first.state.as_deref(), first.session.as_deref()), (Some("r"), Some("s")));
    assert_eq!((first.buffer_ms, first.starved), (Some(2100), None));
    assert_eq!(rows[1].starved, Some(true));
    let unread: Vec<_> = rows.iter().map(|row| row.unread.as_deref()).collect();
    assert_eq!(unread, [None, None, Some("the value of `bl` is not one")]);
    let requests: Vec<AccessRow> = Reader::read_all(dir.path()).expect("the table of requests");
    assert!(requests.iter().all(|row| (&*row.method, row.status) == ("POST", 204)));
    assert_eq!(requests.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_refused_with_the_reason_and_leaves_no_record() {
    let origin = Recorded::new();
    let good = "e=t,ts=1,v=2";
    for (path, kind, posted, status, text) in [
        ("/cmcd", "text/plain", body(good), 415, "expected content of type application/cmcd\n"),
        (
            "/cmcd",
            "application/cmcd",
            body("e=t,ts=1,v=2\ne=t"),
            400,
            "line 2: there is no valid `ts`\n",
        ),
        (
            "/cmcd",
            "application/cmcd",
            Err(Unread::TooLong),
            413,
            "the body is longer than 65536 bytes\n",
        ),
        ("/cmcd", "application/cmcd", Err(Unread::Late), 408, "the body has not come in time\n"),
        ("/cmcd", "application/cmcd", Err(Unread::Cut), 400, "the body was cut off\n"),
        ("/time", "application/cmcd", body(good), 405, "only GET, HEAD and OPTIONS\n"),
    ] {
        let (found, reason) = origin.post(path, kind, posted).await;
        assert_eq!((found.as_u16(), reason.as_str()), (status, text), "{path}");
    }
    let dir = origin.close();
    let rows: Vec<CmcdEventRow> = Reader::read_all(dir.path()).expect("it is not there");
    assert!(rows.is_empty());
}
