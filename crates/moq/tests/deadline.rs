//! Over loopback: a stream whose group is late is reset, and the connection goes on.

mod common;
#[path = "common/light.rs"]
mod light;

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use common::{LOCALHOST, beside, relay};
use light::{Publisher, Socket, subscribe, within};
use moq_net::web_transport_trait::poll::{SendStream as _, Session as _};
use moq_net::{group, track};
use suiro_clock::Clock;
use suiro_endpoint::net::free_port;
use suiro_moq::control;
use suiro_moq::deadline::{Deadline, Groups};
use suiro_moq::transport::{SendStream, Session};
use suiro_scenario::QuicCongestion;
use suiro_units::Duration;

/// Later than the test ends.
const AFTER: Duration = Duration::from_secs(3600);
/// Its integers are those of QUIC. Whoever accepts a connection for it reads no streams of objects before the session is set up.
const PROTOCOL: &str = "moqt-16";

/// Begins a stream of track 3, and writes to it for as long as it accepts anything.
async fn begin(session: &mut Session, group: u8) -> SendStream {
    let mut stream = std::future::poll_fn(|cx| session.poll_open_uni(cx)).await.unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let mut next = vec![0x18, 3, group, 128];
    while let Poll::Ready(written) = stream.poll_write(&mut cx, &next) {
        written.unwrap();
        next = vec![0; 50_000];
    }
    stream
}

fn is_open(stream: &mut SendStream) -> bool {
    stream.poll_closed(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[tokio::test]
async fn the_stream_of_a_late_group_is_reset_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, port) = (Clock::from_now(), free_port());
    let job = relay(dir.path(), port, None);
    beside(&job, clock, || async {
        let behaviour = common::behaviour(QuicCongestion::NewReno);
        let (endpoint, config) = common::quic(dir.path(), vec![PROTOCOL.into()], &behaviour);
        let to = (LOCALHOST, port).into();
        let connection = endpoint.connect_with(config, to, "127.0.0.1").unwrap().await.unwrap();
        let groups = Groups::new(clock, Deadline { after: AFTER, priorities: None });
        let mut session = Session::new(connection.clone(), Some(PROTOCOL.to_owned()))
            .with_deadline(Some(Arc::clone(&groups)));
        let mut first = begin(&mut session, 7).await;
        let mut second = begin(&mut session, 8).await;
        let (accepted, waiting) = (session.written().bytes(), session.written().waiting());
        groups.look(clock.now());
        assert!(is_open(&mut first) && is_open(&mut second));
        groups.look(clock.now() + AFTER);
        assert!(!is_open(&mut first) && is_open(&mut second));
        let written = session.written();
        assert_eq!((written.given_up(), written.bytes()), (1, accepted));
        assert!(written.waiting() < waiting, "most of the group was not sent");
        assert_eq!(connection.close_reason(), None);
        connection.close(0u32.into(), b"done");
    })
    .await;
}

async fn next(track: &mut track::Subscriber) -> group::Consumer {
    within("a group", track.recv_group()).await.unwrap().expect("the track goes on")
}

/// The number of the group's next object; `None` if no further one comes.
async fn number(group: &mut group::Consumer) -> Option<u64> {
    let frame = within("an object", group.read_frame()).await.ok().flatten()?;
    Some(u64::from_be_bytes(frame.payload[..8].try_into().unwrap()))
}

#[tokio::test]
async fn a_viewer_receives_the_groups_after_one_that_was_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, port) = (Clock::from_now(), free_port());
    let job = relay(dir.path(), port, None);
    beside(&job, clock, || async {
        let socket = Socket::open(clock, dir.path(), port, 100);
        let groups = Groups::new(clock, Deadline { after: AFTER, priorities: None });
        let mut publisher = Publisher::with_deadline(&socket, Some(Arc::clone(&groups))).await;
        let (_link, mut track) = subscribe(&socket).await;
        // The first group is not complete when the second is.
        let _open = publisher.begin(clock, 1000);
        let mut first = next(&mut track).await;
        assert_eq!(number(&mut first).await, Some(0));
        publisher.send(clock, 1000);
        let mut second = next(&mut track).await;
        assert_eq!((number(&mut second).await, number(&mut second).await), (Some(1), None));
        let written = control::written(&publisher.link.connection);
        groups.look(clock.now());
        assert_eq!(written.given_up(), 0);
        groups.look(clock.now() + AFTER);
        assert_eq!(number(&mut first).await, None, "the relay passes on that it was reset");
        assert_eq!(written.given_up(), 1);
        publisher.send(clock, 1000);
        assert_eq!(number(&mut next(&mut track).await).await, Some(2));
    })
    .await;
}
