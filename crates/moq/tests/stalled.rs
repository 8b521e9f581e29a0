//! A viewer that reads nothing: the relay's memory stays bounded, and the others receive everything.

mod common;
#[path = "common/light.rs"]
mod light;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use common::{beside, relay};
use light::{Counts, Publisher, Socket, Viewer};
use suiro_clock::Clock;
use suiro_endpoint::net::free_port;
use suiro_moq::relay as relaying;
use suiro_units::{Bytes, Duration};

const OBJECT: usize = 100_000;
/// Objects that may be on their way before the next one is sent.
const AHEAD: u64 = 4;
/// What the relay may keep.
const CACHE: u64 = 2_000_000;

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Sends so many objects, each when those before it have been received.
async fn send(clock: Clock, publisher: &mut Publisher, counts: &Counts, objects: u64) {
    let received = |least: u64| {
        let last = clock.now() + Duration::from_secs(30);
        async move {
            while counts.objects.load(Relaxed) < least {
                assert!(clock.now() < last, "{} objects received", counts.objects.load(Relaxed));
                tokio::task::yield_now().await;
            }
        }
    };
    let before = counts.objects.load(Relaxed);
    for sent in 0..objects {
        publisher.send(clock, OBJECT);
        received((before + sent + 1).saturating_sub(AHEAD)).await;
    }
    received(before + objects).await;
}

#[tokio::test]
async fn a_viewer_that_reads_nothing_costs_a_bounded_memory_and_nobody_else_an_object() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, port) = (Clock::from_now(), free_port());
    let job = relaying::RelayJob { cache: Bytes::new(CACHE), ..relay(dir.path(), port, None) };
    let served = beside(&job, clock, || async {
        let socket = Socket::open(clock, dir.path(), port, 1000);
        let (counts, ignored) = (Arc::new(Counts::default()), Arc::new(Counts::default()));
        counts.to.store(u64::MAX, Relaxed);
        let mut publisher = Publisher::connect(&socket).await;
        let _reads = Viewer::connect(&socket, Arc::clone(&counts)).await;
        let narrow = Socket::open(clock, dir.path(), port, 16);
        let stalled = Viewer::connect(&narrow, ignored).await;
        stalled.link.stall();
        // The first objects fill what is bounded.
        send(clock, &mut publisher, &counts, 200).await;
        let before = resident();
        send(clock, &mut publisher, &counts, 800).await;
        let grown = resident().saturating_sub(before);
        // 80 MB have passed meanwhile.
        assert!(grown < 20_000_000, "{grown} bytes more");
        assert!(stalled.link.connection.close_reason().is_none(), "it is still there");
    })
    .await;
    assert_eq!(served.sessions, 3);
}
