//! What a relay refuses, and that it goes on afterwards: wrong tokens, sessions beyond its limit, and bytes that are no
//! MoQT.

mod common;

use common::{LOCALHOST, beside, client, publisher, relay, viewer};
use moq_noq::{Connection, VarInt};
use suiro_clock::Clock;
use suiro_endpoint::Pulse;
use suiro_endpoint::net::free_port;
use suiro_moq::view;
use suiro_moq::{publish, relay as relaying, transport};
use suiro_scenario::{MoqStreams, QuicCongestion};
use suiro_units::{Duration, Random, Seed};

#[tokio::test]
async fn a_wrong_token_is_refused_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, port) = (Clock::from_now(), free_port());
    let pulse = Pulse::new(clock);
    let job = relay(dir.path(), port, Some("s3cret"));
    let viewer = |token| viewer(client("viewer", dir.path(), port, token, 18));
    let summary = beside(&job, clock, || async {
        for token in [Some("wrong"), None] {
            let refused = view::run(&viewer(token), &pulse, || (), std::future::pending()).await;
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("unauthorized") && error.contains("hint: "), "{error}");
        }
    })
    .await;
    assert_eq!((summary.sessions, summary.refused), (0, 2));
}

/// A connection without a session, for this draft of MoQT.
async fn connect(dir: &std::path::Path, port: u16, draft: u8) -> (moq_noq::Endpoint, Connection) {
    let protocol = format!("moqt-{draft}").into_bytes();
    let behaviour = common::behaviour(QuicCongestion::NewReno);
    let (endpoint, config) = common::quic(dir, vec![protocol], &behaviour);
    let connecting = endpoint.connect_with(config, (LOCALHOST, port).into(), "127.0.0.1").unwrap();
    let connection = connecting.await.unwrap();
    (endpoint, connection)
}

/// Sends bytes that are no MoQT, in streams and datagrams.
async fn babble(connection: &Connection, random: &mut Random) {
    let mut bytes = |most: u64| -> Vec<u8> {
        (0..random.below(most)).map(|_| random.next_u64() as u8).collect()
    };
    for _ in 0..4 {
        // The relay may have closed the connection by now, which is as it should be.
        if let Ok(mut stream) = connection.open_uni().await {
            let _ = stream.write_all(&bytes(300)).await;
            let _ = stream.finish();
        }
        if let Ok((mut send, _receive)) = connection.open_bi().await {
            let _ = send.write_all(&bytes(300)).await;
            let _ = send.reset(VarInt::from_u32(7));
        }
        let _ = connection.send_datagram(bytes(500).into());
    }
}

#[tokio::test]
async fn what_is_no_moqt_ends_its_own_connection_only() {
    if !common::has_ffmpeg() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (clock, port) = (Clock::from_now(), free_port());
    let job = relay(dir.path(), port, None);
    let camera = publisher(client("camera", dir.path(), port, None, 18), MoqStreams::Frame);
    let summary = beside(&job, clock, || async {
        // All at once: a relay waits for the rest of what may be a message.
        let mut babblers = tokio::task::JoinSet::new();
        for seed in 7..11 {
            let dir = dir.path().to_owned();
            babblers.spawn(async move {
                let (_endpoint, connection) = connect(&dir, port, 18).await;
                babble(&connection, &mut Seed(seed).random()).await;
                connection.closed().await
            });
        }
        while let Some(reason) = babblers.join_next().await {
            let reason = reason.unwrap();
            assert!(
                matches!(reason, moq_noq::ConnectionError::ApplicationClosed(_)),
                "closed with a code: {reason}"
            );
        }
        let end = clock.now() + Duration::from_secs(1);
        publish::run(&camera, clock, || (), clock.sleep_until(end)).await.unwrap();
    })
    .await;
    assert_eq!((summary.sessions, summary.refused), (1, 4));
}

/// A session of one that announces `names` names, with its connection. All are announced in one stream, as the draft has it,
/// so that the bound on streams does not bound them.
async fn announcer(dir: &std::path::Path, port: u16, names: usize) -> Announcer {
    let (endpoint, connection) = connect(dir, port, 16).await;
    let version: moq_net::Version = "moq-transport-16".parse().unwrap();
    let carried = transport::Session::new(connection.clone(), Some("moqt-16".to_owned()));
    let (origin, driver) = moq_net::origin::Producer::new(Default::default());
    tokio::spawn(moq_net::time::run(driver));
    let name = |number| origin.publish(format!("name/{number}"), Default::default()).unwrap();
    let broadcasts = (0..names).map(name).collect();
    let client = moq_net::Client::new().with_versions(version.into()).with_publisher(&origin);
    let clock = Clock::from_now();
    let now = clock.instant(clock.now());
    let (session, driver) = client.connect(now, carried).await.unwrap();
    tokio::spawn(moq_net::time::run(driver));
    Announcer { connection, session, _broadcasts: broadcasts, _endpoint: endpoint }
}

struct Announcer {
    connection: Connection,
    session: moq_net::Session,
    _broadcasts: Vec<moq_net::broadcast::Producer>,
    _endpoint: moq_noq::Endpoint,
}

#[tokio::test]
async fn a_session_with_too_many_names_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, port) = (Clock::from_now(), free_port());
    let job = relay(dir.path(), port, None);
    let summary = beside(&job, clock, || async {
        let modest = announcer(dir.path(), port, 900).await;
        let greedy = announcer(dir.path(), port, 1100).await;
        let reason = greedy.session.closed().await.to_string();
        assert_eq!(reason, "unknown code=7", "moq-net has no name for TOO_MANY_REQUESTS");
        assert_eq!(modest.connection.close_reason(), None);
    })
    .await;
    assert_eq!((summary.sessions, summary.refused), (2, 0));
}

#[tokio::test]
async fn who_sets_no_session_up_gives_way_and_sessions_beyond_the_limit_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, port) = (Clock::from_now(), free_port());
    let job = relaying::RelayJob { sessions: 2, ..relay(dir.path(), port, None) };
    let summary = beside(&job, clock, || async {
        let (_endpoint, silent) = connect(dir.path(), port, 18).await;
        let (_first, _second) =
            (announcer(dir.path(), port, 1).await, announcer(dir.path(), port, 1).await);
        let reason = silent.closed().await.to_string();
        assert!(reason.contains("the relay is full, and no session was set up"), "{reason}");
        let behaviour = common::behaviour(QuicCongestion::NewReno);
        let (endpoint, config) = common::quic(dir.path(), vec![b"moqt-18".to_vec()], &behaviour);
        let third = endpoint.connect_with(config, (LOCALHOST, port).into(), "127.0.0.1").unwrap();
        let refused = third.await.unwrap_err();
        assert!(matches!(refused, moq_noq::ConnectionError::ConnectionClosed(_)), "{refused}");
    })
    .await;
    assert!(summary.refused >= 1, "{summary:?}");
}
