//! A relay over WebTransport, as a browser asks for it: what it accepts, what it refuses, and that it goes on afterwards.

mod common;

use common::{LOCALHOST, beside, relay};
use moq_noq::{Connection, ConnectionError, RecvStream, SendStream, VarInt};
use suiro_clock::Clock;
use suiro_endpoint::net::free_port;
use suiro_scenario::QuicCongestion;
use suiro_units::{Random, Seed};
use url::Url;
use web_transport_proto::{ConnectRequest, ConnectResponse, Frame, Settings, StreamUni};

/// A client of WebTransport that has sent its request.
struct Client {
    connection: Connection,
    send: SendStream,
    receive: RecvStream,
    _kept: (moq_noq::Endpoint, SendStream),
}

impl Client {
    async fn ask(dir: &std::path::Path, port: u16, path: &str, protocol: &str) -> Self {
        let behaviour = common::behaviour(QuicCongestion::NewReno);
        let (endpoint, config) = common::quic(dir, vec![b"h3".to_vec()], &behaviour);
        let to = (LOCALHOST, port).into();
        let connection = endpoint.connect_with(config, to, "127.0.0.1").unwrap().await.unwrap();
        let mut settings = Settings::default();
        settings.enable_webtransport(1);
        let mut control = connection.open_uni().await.unwrap();
        settings.write(&mut control).await.unwrap();
        let (mut send, receive) = connection.open_bi().await.unwrap();
        let url = format!("https://127.0.0.1:{port}{path}").parse::<Url>().unwrap();
        let request = ConnectRequest::new(url).with_protocol(protocol);
        request.write(&mut send).await.unwrap();
        Self { connection, send, receive, _kept: (endpoint, control) }
    }

    /// What the relay answers: the protocol, or why there is none.
    async fn answer(&mut self) -> Result<Option<String>, String> {
        let answer = ConnectResponse::read(&mut self.receive).await;
        answer.map(|answer| answer.protocol).map_err(|error| error.to_string())
    }

    fn session(&self) -> web_transport_proto::VarInt {
        web_transport_proto::VarInt::from_u64(u64::from(self.send.id())).unwrap()
    }
}

#[tokio::test]
async fn the_url_has_token_and_path_and_others_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let job = relay(dir.path(), port, Some("s3cret"));
    let deep = format!("/{}?jwt=s3cret", vec!["a"; 40].join("/"));
    let summary = beside(&job, Clock::from_now(), || async {
        for (path, protocol, status) in [
            ("/", "moqt-18", "401"),
            ("/?jwt=wrong", "moqt-18", "401"),
            (deep.as_str(), "moqt-18", "404"),
            ("/?jwt=s3cret", "moqt-99", "400"),
        ] {
            let mut client = Client::ask(dir.path(), port, path, protocol).await;
            let refused = client.answer().await.unwrap_err();
            assert!(refused.contains(status), "{path}: {refused}");
        }
        let mut client = Client::ask(dir.path(), port, "/studio?jwt=s3cret", "moqt-18").await;
        assert_eq!(client.answer().await, Ok(Some("moqt-18".to_owned())));
        client.connection.close(VarInt::from_u32(0), b"");
    })
    .await;
    assert_eq!((summary.sessions, summary.refused), (0, 5), "none has sent SETUP");
}

/// Sends random bytes that are not MoQT: on streams and datagrams of the session, and on streams that belong to no session.
async fn babble(client: &Client, random: &mut Random) {
    let mut bytes = |most: u64| -> Vec<u8> {
        (0..random.below(most)).map(|_| random.next_u64() as u8).collect()
    };
    let session = client.session();
    for belongs in [false, true, false, true] {
        let mut beginning = Vec::new();
        if belongs {
            StreamUni::WEBTRANSPORT.encode(&mut beginning);
            session.encode(&mut beginning);
        }
        beginning.extend(bytes(300));
        // The relay may have closed the connection by now, which is as it should be.
        if let Ok(mut stream) = client.connection.open_uni().await {
            let _ = stream.write_all(&beginning).await;
            let _ = stream.finish();
        }
        let mut beginning = Vec::new();
        if belongs {
            Frame::WEBTRANSPORT.encode(&mut beginning);
            session.encode(&mut beginning);
        }
        beginning.extend(bytes(300));
        if let Ok((mut send, _receive)) = client.connection.open_bi().await {
            let _ = send.write_all(&beginning).await;
            let _ = send.finish();
        }
        let _ = client.connection.send_datagram(bytes(500).into());
    }
}

#[tokio::test]
async fn what_is_no_moqt_ends_its_own_session_only() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let job = relay(dir.path(), port, None);
    let summary = beside(&job, Clock::from_now(), || async {
        let mut other = Client::ask(dir.path(), port, "/", "moqt-18").await;
        assert_eq!(other.answer().await, Ok(Some("moqt-18".to_owned())));
        let mut random = Seed(11).random();
        for _ in 0..4 {
            let mut client = Client::ask(dir.path(), port, "/", "moqt-16").await;
            assert_eq!(client.answer().await, Ok(Some("moqt-16".to_owned())));
            babble(&client, &mut random).await;
            let reason = client.connection.closed().await;
            assert!(matches!(reason, ConnectionError::ApplicationClosed(_)), "{reason}");
        }
        assert_eq!(other.connection.close_reason(), None);
        other.connection.close(VarInt::from_u32(0), b"");
    })
    .await;
    assert_eq!((summary.sessions, summary.refused), (0, 5));
}
