//! Bodies of POST, which are read before the answer.

use suiro_scenario::HttpVersion::{Http1, Http2, Http3};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::bounds::{DATA, connect, frame, head};
use super::*;
use crate::server::BODY_MAX;

/// A server that answers with the length of what came, or why nothing did.
fn counting(http: HttpVersion) -> Served {
    Served::start(http, async |request: Request<()>| {
        let posted = request.extensions().get::<Posted>().expect("every request has one");
        let text = match posted {
            Ok(body) => body.len().to_string(),
            Err(unread) => format!("{unread:?}"),
        };
        Response::new(Body::whole(text))
    })
}

async fn over_http1(served: &Served, body: Vec<u8>) -> Vec<u8> {
    let mut stream = crate::net::connect("127.0.0.1", served.port, None).await.expect("a server");
    let length = body.len();
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n");
    let head = format!("{head}Connection: close\r\n\r\n");
    stream.write_all(&[head.as_bytes(), &body].concat()).await.expect("a server");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    answer
}

async fn over_http2(served: &Served, body: Vec<u8>) -> Vec<u8> {
    let (sender, _connection) = served.http2().await;
    let mut sender = sender.ready().await.expect("it is open");
    let request = Request::post("https://127.0.0.1/").body(()).expect("a request");
    let (response, mut send) = sender.send_request(request, false).expect("it is open");
    send.send_data(Bytes::from(body), true).expect("it is open");
    let mut body = response.await.expect("an answer").into_body();
    let mut answer = Vec::new();
    while let Some(data) = body.data().await {
        answer.extend(data.expect("all of it"));
    }
    answer
}

async fn over_http3(served: &Served, body: Vec<u8>) -> Vec<u8> {
    let certificate = served.folder.path().join("certificate.der");
    let connection = connect(served.port, "127.0.0.1", &certificate).await;
    let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
    // `:method: POST`, `:scheme: https` and `:path: /`, numbers 20, 23 and 1 of QPACK's static table; `:authority: a`.
    let head = head(&[0xc0 | 20, 0xc0 | 23, 0xc0 | 1, 0x50, 1, b'a'], 0);
    let request = [head, frame(DATA, body.len() as u64, &body)].concat();
    // Whoever refuses a long body does not read it to its end.
    if send.write_all(&request).await.is_ok() {
        let _ = send.finish();
    }
    let answer = receive.read_to_end(1 << 16).await.expect("an answer");
    // HEADERS and DATA, then frames of unknown types (RFC 9114 §7.2.8). Each is a type, a length and its content.
    let [1, length, content @ ..] = &answer[..] else { panic!("no HEADERS: {answer:?}") };
    let [DATA, length, content @ ..] = &content[usize::from(*length)..] else {
        panic!("no DATA: {answer:?}")
    };
    content[..usize::from(*length)].to_vec()
}

#[tokio::test]
async fn a_body_of_64_kib_is_read_and_no_longer_one() {
    for http in [Http1, Http2, Http3] {
        let served = counting(http);
        for (length, text) in [(0, "0"), (5, "5"), (BODY_MAX, "65536"), (BODY_MAX + 1, "TooLong")] {
            let body = vec![b'.'; length];
            let answering = async {
                match http {
                    Http1 => over_http1(&served, body).await,
                    Http2 => over_http2(&served, body).await,
                    Http3 => over_http3(&served, body).await,
                }
            };
            let answer = tokio::time::timeout(BOUND, answering).await.expect("an end");
            assert!(answer.ends_with(text.as_bytes()), "{http:?}, {length}: {answer:?}");
        }
        served.stop().await;
    }
}
