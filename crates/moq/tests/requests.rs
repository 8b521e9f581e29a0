//! Over loopback: a subscription that is cancelled while its track is read.

mod common;
#[path = "common/light.rs"]
mod light;

use std::task::{Context, Waker};

use common::{beside, relay};
use light::{Publisher, Socket, TRACK, subscribe, within};
use suiro_clock::Clock;
use suiro_endpoint::net::free_port;

#[tokio::test]
async fn a_cancelled_subscription_is_sent_nothing_and_its_track_does_not_end() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, port) = (Clock::from_now(), free_port());
    let job = relay(dir.path(), port, None);
    beside(&job, clock, || async {
        let socket = Socket::open(clock, dir.path(), port, 100);
        let mut publisher = Publisher::connect(&socket).await;
        let (link, mut track) = subscribe(&socket).await;
        // A group that is not complete.
        let _open = publisher.begin(clock, 1000);
        let mut group = within("a group", track.recv_group()).await.unwrap().unwrap();
        let object = within("an object", group.read_frame()).await.unwrap().unwrap();
        assert_eq!(object.payload.len(), 1000);
        assert!(!link.requests.cancel("another"));
        assert!(link.requests.cancel(TRACK));
        within("the end of the subscription", publisher.unused()).await;
        // The relay resets the stream of the group.
        let is_reset = async {
            while link.connection.stats().frame_rx.reset_stream == 0 {
                tokio::task::yield_now().await;
            }
        };
        within("the end of the group", is_reset).await;
        // What another viewer receives is not sent to this one.
        let (_other, mut others) = subscribe(&socket).await;
        let number = publisher.send(clock, 1000);
        let mut received = None;
        while received != Some(number) {
            let mut group = within("a group", others.recv_group()).await.unwrap().unwrap();
            let object = within("an object", group.read_frame()).await.unwrap().unwrap();
            received = object.payload.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        }
        let mut next = std::pin::pin!(track.recv_group());
        let is_over = next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert!(!is_over, "the track has ended, or goes on");
        assert!(!link.requests.cancel(TRACK), "it is cancelled");
    })
    .await;
}
