//! Over loopback: which packets of QUIC say that their transport understands ECN, and peers of which only one does.

mod common;

use std::io::{ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::path::Path;

use common::{LOCALHOST, quic};
use moq_noq::udp::{EcnCodepoint, RecvMeta, UdpSocketState};
use suiro_clock::Clock;
use suiro_endpoint::net::udp;
use suiro_moq::net::{self, Behaviour};
use suiro_moq::tls;
use suiro_scenario::QuicCongestion;
use tokio::io::Interest;
use tokio::net::UdpSocket;

const SENT: usize = 100_000;

fn protocols() -> Vec<Vec<u8>> {
    vec![b"ecn".to_vec()]
}

fn behaviour(ecn: bool) -> Behaviour {
    Behaviour { ecn, ..common::behaviour(QuicCongestion::Cubic) }
}

fn any_port() -> std::net::UdpSocket {
    udp(SocketAddr::new(LOCALHOST, 0)).unwrap()
}

/// The TLS configuration of a server whose certificate clients find in the folder.
fn certified(dir: &Path) -> rustls::ServerConfig {
    let (names, file) = (vec!["127.0.0.1".to_owned()], tls::file(dir, "relay"));
    tls::server(names, Clock::from_now().epoch_unix_ns(), &file, protocols()).unwrap()
}

/// The marks of the first packet that arrives.
async fn first_marks(socket: &UdpSocket, state: &UdpSocketState) -> Option<EcnCodepoint> {
    let mut buffer = [0; 65_536];
    loop {
        socket.readable().await.unwrap();
        let mut meta = [RecvMeta::default()];
        let received = socket.try_io(Interest::READABLE, || {
            state.recv(socket.into(), &mut [IoSliceMut::new(&mut buffer)], &mut meta)
        });
        match received {
            Ok(_) => return meta[0].ecn,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// RFC 9000 §13.4.2: an endpoint may begin with ECT(0) in all packets.
#[tokio::test]
async fn packets_have_ect_0_unless_ecn_is_off() {
    let dir = tempfile::tempdir().unwrap();
    certified(dir.path());
    for (ecn, expected) in [(true, Some(EcnCodepoint::Ect0)), (false, None)] {
        let socket = UdpSocket::from_std(any_port()).unwrap();
        let state = UdpSocketState::new((&socket).into()).unwrap();
        let (endpoint, config) = quic(dir.path(), protocols(), &behaviour(ecn));
        let to = socket.local_addr().unwrap();
        let _handshake = endpoint.connect_with(config, to, "127.0.0.1").unwrap();
        assert_eq!(first_marks(&socket, &state).await, expected, "ecn = {ecn}");
    }
}

/// Everything arrives, whichever end has no ECN.
#[tokio::test]
async fn an_end_without_ecn_talks_to_one_with_it() {
    let dir = tempfile::tempdir().unwrap();
    for (at_server, at_client) in [(false, false), (false, true), (true, false)] {
        let tls = certified(dir.path());
        let server = net::serve(any_port(), tls, &behaviour(at_server)).unwrap();
        let (endpoint, config) = quic(dir.path(), protocols(), &behaviour(at_client));
        let to = server.local_addr().unwrap();
        let sends = async {
            let handshake = endpoint.connect_with(config, to, "127.0.0.1").unwrap();
            let connection = handshake.await.unwrap();
            let mut stream = connection.open_uni().await.unwrap();
            stream.write_all(&[7; SENT]).await.unwrap();
            stream.finish().unwrap();
            connection
        };
        let receives = async {
            let connection = server.accept().await.unwrap().await.unwrap();
            let mut stream = connection.accept_uni().await.unwrap();
            stream.read_to_end(SENT).await.unwrap()
        };
        let (_open, received) = tokio::join!(sends, receives);
        assert_eq!(received.len(), SENT, "server {at_server}, client {at_client}");
    }
}
