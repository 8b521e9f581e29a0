//! Records of TLS: a client must have all of one before it reads any of it.

use std::io::{ErrorKind, Read, Write};

use rustls::ClientConnection;
use suiro_scenario::HttpVersion::Http2;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// Bytes of the body: several of the largest records that TLS has.
const BODY: usize = 100_000;
/// What a packet of 1500 bytes carries: less 40 of IPv6, 20 of TCP and 12 of its timestamps.
const PACKET: usize = 1428;
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// The lengths of records, headers included (RFC 8446 §5.1).
fn lengths(mut records: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = records {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        lengths.push(5 + length);
        records = rest.get(length..).expect("whole records");
    }
    lengths
}

#[tokio::test]
async fn a_record_of_tls_fits_in_a_packet() {
    let served =
        Served::start(Http2, async |_: Request<()>| Response::new(Body::whole("x".repeat(BODY))));
    let certificate = served.folder.path().join("certificate.der");
    let tls = suiro_quic::tls::client(&certificate, vec![b"http/1.1".to_vec()]).expect("TLS");
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    let mut client = ClientConnection::new(Arc::new(tls), name).expect("a client");
    client.writer().write_all(REQUEST).expect("it waits for the handshake");
    let mut stream = crate::net::connect("127.0.0.1", served.port, None).await.expect("a server");
    let (mut came, mut text) = (Vec::new(), Vec::new());
    loop {
        let mut out = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut out).expect("memory");
        }
        stream.write_all(&out).await.expect("a server");
        let before = came.len();
        if stream.read_buf(&mut came).await.expect("an answer") == 0 {
            break;
        }
        let mut new = &came[before..];
        while !new.is_empty() {
            client.read_tls(&mut new).expect("memory");
            client.process_new_packets().expect("TLS");
            if let Err(error) = client.reader().read_to_end(&mut text) {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
            }
        }
    }
    assert!(text.len() > BODY, "{} bytes of head and body", text.len());
    assert_eq!(lengths(&came).into_iter().max(), Some(PACKET));
    served.stop().await;
}
