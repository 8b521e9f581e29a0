//! Two ends in one process, over the loopback interface.

use suiro_record::Reader;

use super::*;

/// Ports that the kernel chose, and that are free again.
fn ports() -> [u16; 2] {
    let sockets = [(); 2].map(|()| bind());
    sockets.map(|socket| socket.local_addr().unwrap().port())
}

#[expect(clippy::disallowed_methods, reason = "asks the kernel for a free port")]
fn bind() -> std::net::UdpSocket {
    std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap()
}

fn job(name: &str, port: u16, to: u16, dir: &std::path::Path) -> CallJob {
    CallJob {
        name: name.to_owned(),
        with: "other".into(),
        to: ("127.0.0.1".to_owned(), to),
        port,
        size: Size::new(64, 48).unwrap(),
        fps: 50,
        picture: Bytes::new(3000),
        packet: Bytes::new(1500),
        send_buffer: None,
        receive_buffer: None,
        cpu: None,
        dir: dir.to_owned(),
        start: Time::ZERO,
        until: Time::from_secs(3600),
        seed: Seed(u64::from(port)),
    }
}

#[tokio::test]
async fn both_ends_see_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = ports();
    let (first, second) =
        (job("one", one, two, folder.path()), job("two", two, one, folder.path()));
    let clock = Clock::from_now();
    let (stop_first, stop_second) =
        [(); 2].map(|()| clock.sleep_until(Time::from_millis(700))).into();
    let (first, second) = tokio::join!(
        run(&first, clock, || (), stop_first),
        run(&second, clock, || (), stop_second)
    );
    let (first, second) = (first.unwrap(), second.unwrap());
    assert!(first.captured >= 2 && first.captured + first.skipped <= 36, "{first:?}");
    assert!(second.received > 0 && second.received <= first.sent, "{first:?} {second:?}");
    assert_eq!((first.refused, first.dropped_other), (0, 0), "{first:?}");

    let frames: Vec<FrameRow> =
        Reader::read_file(&folder.path().join("frames.two.parquet")).unwrap();
    let shown: Vec<_> = frames.iter().filter(|row| row.displayed_ns.is_some()).collect();
    assert!(!shown.is_empty());
    for row in shown {
        let (captured, sent) = (row.captured_ns.unwrap(), row.sent_ns.unwrap());
        assert!(captured <= sent && sent <= row.received_ns.unwrap(), "{row:?}");
        assert!(
            row.received_ns <= row.displayed_ns && row.encoded_bytes.unwrap() <= 3000,
            "{row:?}"
        );
    }
    let accounts: Vec<ConferenceRow> =
        Reader::read_file(&folder.path().join("conference.one.parquet")).unwrap();
    assert_eq!(accounts.iter().map(|row| row.sent_packets).sum::<i64>(), first.sent);
}

#[tokio::test]
async fn a_send_call_that_fails_drops_its_packet_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let [one, _] = ports();
    // The kernel refuses to send to port 0.
    let job = job("one", one, 0, folder.path());
    let clock = Clock::from_now();
    let stop = clock.sleep_until(Time::from_millis(100));
    let account = run(&job, clock, || (), stop).await.unwrap();
    assert!(account.captured > 0 && account.dropped_other > 0, "{account:?}");
    assert_eq!((account.sent, account.dropped_again, account.dropped_buffers), (0, 0, 0));
}

#[test]
fn errors_of_send_calls_are_told_apart() {
    let mut account = Account::default();
    [Errno::AGAIN, Errno::NOBUFS, Errno::NOBUFS, Errno::MSGSIZE]
        .into_iter()
        .for_each(|error| account.failed(error));
    let dropped = (account.dropped_again, account.dropped_buffers, account.dropped_other);
    assert_eq!(dropped, (1, 2, 1));
}
