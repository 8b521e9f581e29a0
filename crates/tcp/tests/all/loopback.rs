//! The sampler against real sockets of this process, over loopback.
#![expect(clippy::disallowed_methods, reason = "the test is the peer, and opens sockets")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use suiro_record::Reader;
use suiro_record::tables::TcpRow;
use suiro_record::words::{TcpSource, TcpState};
use suiro_tcp::probe::{Ack, Probe};
use suiro_tcp::{Counts, PERIOD, Prepared, SamplerError, SamplerSpec};
use suiro_units::Duration;

const PAYLOAD_BYTES: usize = 3_000_000;

fn spec(dir: &Path, period: Duration) -> SamplerSpec {
    let (host, dir) = ("server".into(), dir.into());
    SamplerSpec { host, period, each_ack: false, dir }
}

/// Sends `PAYLOAD_BYTES` from the accepting side; the other side answers with one byte, which also
/// acknowledges everything. Both sockets live until the sampler has stopped.
fn transfer(address: &str, spec: &SamplerSpec) -> (Counts, String) {
    let listener = TcpListener::bind(address).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let name = format!("{}>{}", server.local_addr().unwrap(), server.peer_addr().unwrap());
    let sampler = Prepared::new(spec).unwrap().start(0).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            client.read_exact(&mut vec![0; PAYLOAD_BYTES]).unwrap();
            client.write_all(&[1]).unwrap();
        });
        server.write_all(&vec![7; PAYLOAD_BYTES]).unwrap();
        server.read_exact(&mut [0]).unwrap();
    });
    (sampler.stop().unwrap(), name)
}

fn rows_of(dir: &Path, name: &str) -> Vec<TcpRow> {
    let rows = Reader::read_all::<TcpRow>(dir).unwrap();
    rows.into_iter().filter(|row| &*row.socket == name).collect()
}

fn check(address: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (counts, name) = transfer(address, &spec(dir.path(), Duration::from_millis(1)));
    let rows = rows_of(dir.path(), &name);
    let last = rows.last().expect("the last sample is written in full");
    assert_eq!(last.acked_bytes, i64::try_from(PAYLOAD_BYTES).unwrap(), "{last:?}");
    assert_eq!((last.in_flight_bytes, last.received_bytes), (0, 1), "{last:?}");
    assert!(rows.iter().all(|row| row.cwnd_bytes > 0 && row.mss_bytes > 0), "{rows:?}");
    assert!(last.srtt_us > 0 && last.min_rtt_us.is_some_and(|rtt| rtt > 0), "{last:?}");
    assert!(rows.is_sorted_by(|a, b| a.t_ns < b.t_ns && a.acked_bytes <= b.acked_bytes));
    assert_eq!(
        (&*last.host, last.source, last.state),
        ("server", TcpSource::SockDiag, TcpState::Open)
    );
    assert!(counts.samples >= 1 && counts.sockets >= 2 && counts.unanswered == 0, "{counts:?}");
}

#[test]
fn ipv4_is_seen_to_the_last_byte() {
    check("127.0.0.1:0");
}

#[test]
fn ipv6_is_seen_to_the_last_byte() {
    check("[::1]:0");
}

#[test]
fn ipv4_on_an_ipv6_socket_is_named_as_ipv4() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("[::]:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (_server, _) = listener.accept().unwrap();
    assert!(suiro_tcp::count_sockets().unwrap() >= 2);
    Prepared::new(&spec(dir.path(), PERIOD)).unwrap().start(0).unwrap().stop().unwrap();
    let name = format!("127.0.0.1:{port}>{}", client.local_addr().unwrap());
    assert!(!rows_of(dir.path(), &name).is_empty(), "no row of {name}");
}

#[test]
fn a_period_out_of_range_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for period in [Duration::from_micros(999), Duration::from_millis(1001)] {
        let error = Prepared::new(&spec(dir.path(), period)).err().unwrap();
        assert!(matches!(error, SamplerError::Period(_)), "{error}");
    }
}

#[test]
fn a_missing_folder_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    let error = Prepared::new(&spec(&missing, PERIOD)).err().unwrap().to_string();
    let file = missing.join("tcp.server.parquet");
    assert!(error.contains(&file.display().to_string()), "{error}");
}

/// Only root may trace; for others, that must be the error.
#[test]
fn each_ack_is_seen_by_the_probe() {
    let probe = match Probe::start() {
        Ok(probe) => probe,
        Err(error) if !rustix::process::geteuid().is_root() => {
            assert!(error.to_string().contains("needs root"), "{error}");
            suiro_units::skipped(&error);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let dir = tempfile::tempdir().unwrap();
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (_, name) = transfer(address, &spec(dir.path(), Duration::from_millis(1)));
        let named = |ack: &Ack| format!("{}>{}", ack.id.local(), ack.id.remote()) == name;
        let acks: Vec<_> = probe.acks().unwrap().filter(named).collect();
        let (first, last) = (acks.first().unwrap(), acks.last().unwrap());
        assert!(acks.is_sorted_by_key(|ack| (ack.monotonic_ns, ack.info.bytes_acked)));
        assert!(acks.iter().all(|ack| ack.id == first.id && ack.info.unacked > 0), "{acks:?}");
        assert!(last.info.bytes_acked > 0 && last.info.rtt_us > 0, "{last:?}");
        assert!(last.info.snd_cwnd > 0 && last.info.snd_mss > 500, "{last:?}");
        // Even loopback loses packets, and swaps them, where the receiver gets no CPU.
        if last.info.total_retrans == 0 {
            let state = last.info.congestion_state();
            assert!(matches!(state, TcpState::Open | TcpState::Disorder), "{last:?}");
            assert!(last.info.snd_cwnd >= 10, "{last:?}");
        }
        // The sampler's last sample was taken after the last ACK.
        let row = rows_of(dir.path(), &name).pop().unwrap();
        assert_eq!(*row.congestion, *last.congestion());
        assert!(last.info.bytes_acked <= row.acked_bytes.cast_unsigned());
        assert_eq!(i64::from(last.info.snd_mss), row.mss_bytes);
    }
    assert_eq!(probe.lost().unwrap(), 0);
    let each_ack = SamplerSpec { each_ack: true, ..spec(dir.path(), PERIOD) };
    let (counts, name) = transfer("127.0.0.1:0", &each_ack);
    let rows = rows_of(dir.path(), &name);
    let traced = rows.iter().filter(|row| row.source == TcpSource::TcpProbe).count() as u64;
    assert!((1..=counts.acks).contains(&traced), "{counts:?}");
    let last = rows.last().unwrap();
    assert_eq!((last.source, counts.acks_lost), (TcpSource::SockDiag, 0), "{last:?}");
    assert_eq!(last.acked_bytes, i64::try_from(PAYLOAD_BYTES).unwrap(), "{last:?}");
}
