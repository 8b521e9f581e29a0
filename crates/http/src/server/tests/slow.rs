//! Clients that ask for much and read nothing of it.

use std::time::Duration;

use suiro_scenario::HttpVersion::{Http2, Http3};
use tokio::sync::mpsc;

use super::bounds::{connect, request};
use super::*;
use crate::server::Passed;

/// Requests at the same time.
const REQUESTS: usize = 8;
/// What responses without end consist of.
static PIECE: [u8; 64 << 10] = [b'.'; 64 << 10];
/// A server gives up between one and two minutes after it has noticed, and an idle connection 15 s later; in seconds.
const AT_LAST: usize = 200;
/// How often the other tasks run within a second, and the sockets are looked at: more often than packets cross in it.
const ROUNDS: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    Asked,
    /// The server has let go of a response.
    Over,
}

/// A server whose responses never end.
fn endless(http: HttpVersion) -> (Served, mpsc::UnboundedReceiver<Event>) {
    let (tell, told) = mpsc::unbounded_channel();
    let served = Served::start(http, move |_| {
        let (send, receive) = mpsc::channel(1);
        let tell = tell.clone();
        tell.send(Event::Asked).expect("the test waits");
        tokio::spawn(async move {
            while send.send(Ok(Bytes::from_static(&PIECE))).await.is_ok() {}
            let _ = tell.send(Event::Over);
        });
        async { Response::new(Body::Passed(Passed::new(receive, None))) }
    });
    (served, told)
}

async fn take(events: &mut mpsc::UnboundedReceiver<Event>, wanted: Event) {
    for _ in 0..REQUESTS {
        assert_eq!(events.recv().await, Some(wanted));
    }
}

/// What comes of `future`, if it comes in time. A second passes at once, but only after what was sent in the one before has
/// arrived: a client that has no time to answer a PING is taken for one that is gone.
async fn in_time<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    tokio::time::pause();
    let came = 'came: {
        for _ in 0..AT_LAST {
            for _ in 0..ROUNDS {
                tokio::select! {
                    biased;
                    came = &mut future => break 'came Some(came),
                    () = tokio::task::yield_now() => {}
                }
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        None
    };
    tokio::time::resume();
    came
}

#[tokio::test]
async fn responses_of_which_nothing_is_read_are_given_up_over_http2() {
    let (served, mut events) = endless(Http2);
    let (mut sender, _connection) = served.http2().await;
    let mut unread = Vec::new();
    for _ in 0..REQUESTS {
        sender = sender.ready().await.expect("it is open");
        let request = Request::get("https://127.0.0.1/").body(()).expect("a request");
        unread.push(sender.send_request(request, true).expect("it is open"));
    }
    take(&mut events, Event::Asked).await;
    let over = in_time(take(&mut events, Event::Over)).await;
    assert!(over.is_some(), "the server keeps responses that its client does not read");
    drop(unread);
    served.stop().await;
}

#[tokio::test]
async fn responses_of_which_nothing_is_read_are_given_up_over_http3() {
    let (served, mut events) = endless(Http3);
    let certificate = served.folder.path().join("certificate.der");
    let connection = connect(served.port, "127.0.0.1", &certificate).await;
    let mut unread = Vec::new();
    for _ in 0..REQUESTS {
        let (mut send, receive) = connection.open_bi().await.expect("a stream");
        send.write_all(&request(0)).await.expect("a server");
        send.finish().expect("it is open");
        unread.push(receive);
    }
    take(&mut events, Event::Asked).await;
    // From now on, time passes at once when nothing else happens: in steps of a second, QUIC's pacer would need minutes.
    tokio::time::pause();
    let at_last = Duration::from_secs(AT_LAST as u64);
    let over = tokio::time::timeout(at_last, take(&mut events, Event::Over)).await;
    assert!(over.is_ok(), "the server keeps responses that its client does not read");
    tokio::time::resume();
    drop(unread);
    served.stop().await;
}

/// As over HTTP/1.1. The client answers PINGs, and hears of the end before it comes (RFC 9113 §9.1): h2 takes an end without GOAWAY
/// for an error.
#[tokio::test]
async fn a_connection_of_http2_without_requests_ends() {
    let served = Served::start(Http2, async |_| Response::new(Body::whole("here")));
    let (sender, connection) = served.http2().await;
    let mut sender = sender.ready().await.expect("it is open");
    let request = Request::get("https://127.0.0.1/").body(()).expect("a request");
    let (response, _) = sender.send_request(request, true).expect("it is open");
    assert_eq!(response.await.expect("an answer").status(), 200);
    let ended = in_time(connection).await.expect("it is still open").expect("no panic");
    assert!(ended.is_ok(), "{ended:?}");
    drop(sender);
    served.stop().await;
}
