use std::net::{SocketAddr, UdpSocket};

use super::*;
use crate::packet::HEADER_BYTES_MAX;

const LOOPBACK: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

fn inlet() -> Inlet {
    Inlet::open(LOOPBACK, None, 200_000).unwrap()
}

fn outlet(to: &Inlet, segmentation: Segmentation) -> Outlet {
    let route = Route { destination: to.address(), source: None, ttl: 1 };
    Outlet::open(&route, segmentation, 4, 1004).unwrap()
}

fn burst(payload: &[u8]) -> impl Iterator<Item = ([u8; HEADER_BYTES_MAX], &[u8])> {
    payload.chunks(1000).enumerate().map(|(number, piece)| {
        let mut header = [0; HEADER_BYTES_MAX];
        header[..4].copy_from_slice(&(number as u32).to_be_bytes());
        (header, piece)
    })
}

/// What has arrived, datagram by datagram: loopback delivers before `send` returns.
fn received(inlet: &Inlet) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut buffers = Datagrams::new();
    while inlet
        .take(&mut buffers, |datagram| {
            assert!(datagram.realtime_ns.is_some() && !datagram.cut);
            assert_eq!(datagram.from.ip(), &Ipv4Addr::LOCALHOST);
            all.extend(datagram.bytes.chunks(datagram.segment).map(<[u8]>::to_vec));
        })
        .unwrap()
        .messages
        > 0
    {}
    all
}

#[test]
fn a_burst_arrives_packet_by_packet_however_it_was_segmented() {
    let payload: Vec<u8> = (0..12_345u32).map(|at| at as u8).collect();
    for segmentation in [Segmentation::Kernel, Segmentation::None] {
        let inlet = inlet();
        let mut outlet = outlet(&inlet, segmentation);
        let all = Sent { packets: 13, ..Sent::default() };
        assert_eq!(outlet.send(burst(&payload)).unwrap(), all);
        let datagrams = received(&inlet);
        assert_eq!(datagrams.len(), 13);
        for (number, datagram) in datagrams.iter().enumerate() {
            assert_eq!(datagram[..4], (number as u32).to_be_bytes());
        }
        let back: Vec<u8> = datagrams.iter().flat_map(|datagram| &datagram[4..]).copied().collect();
        assert_eq!(back, payload);
    }
}

#[test]
fn packets_without_room_are_counted_by_the_kernel() {
    let inlet = inlet();
    let mut outlet = outlet(&inlet, Segmentation::None);
    let payload = vec![0; 60_000];
    for _ in 0..40 {
        outlet.send(burst(&payload)).unwrap();
    }
    let first = received(&inlet).len();
    assert!(first < 2400, "{first}");
    outlet.send(burst(&payload[..1000])).unwrap();
    let mut buffers = Datagrams::new();
    let taken = inlet.take(&mut buffers, |_| {}).unwrap();
    assert_eq!(taken, Taken { messages: 1, dropped: Some(2400 - first as u32) });
}

#[test]
fn a_stream_goes_on_without_a_listener() {
    let inlet = inlet();
    let mut outlet = outlet(&inlet, Segmentation::Kernel);
    drop(inlet);
    // Each packet of a burst is answered with an ICMP error, up to the kernel's limit per second,
    // before the next burst is sent: loopback has no delay.
    let sent: Vec<_> = (0..3).map(|_| outlet.send(burst(&[0; 5000])).unwrap()).collect();
    assert!(sent.iter().all(|sent| (sent.packets, sent.no_room) == (5, false)), "{sent:?}");
    assert_eq!(sent[0].refused, 0, "no error has arrived yet");
    assert!(sent[1..].iter().all(|sent| (1..=5).contains(&sent.refused)), "{sent:?}");
}

#[test]
fn a_refused_buffer_names_the_setting() {
    // Root is granted any size, so the test checks the message.
    let error = Error::Buffer { wanted: 67_108_864, granted: 212_992 };
    assert_eq!(
        error.to_string(),
        "receive buffer: expected 67108864 bytes, but the system grants only 212992\n\
         hint: run `sysctl -w net.core.rmem_max=67108864`"
    );
}

#[test]
fn an_address_in_use_is_reported() {
    #[expect(clippy::disallowed_methods, reason = "a port that is taken")]
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let SocketAddr::V4(address) = taken.local_addr().unwrap() else { panic!("an IPv4 address") };
    let error = Inlet::open(address, None, 1000).unwrap_err();
    assert!(error.to_string().starts_with(&format!("binding to {address}: ")), "{error}");
}

#[test]
fn a_stream_on_this_host_leaves_by_loopback_which_has_no_hardware_address() {
    let route = Route { destination: LOOPBACK, source: None, ttl: 1 };
    let route = Route { destination: SocketAddrV4::new(*route.destination.ip(), 9), ..route };
    let departure = Departure { address: Ipv4Addr::LOCALHOST, mac: None };
    assert_eq!(Departure::of(&route).unwrap(), departure);
    let lo = Interface { name: "lo".to_owned(), mac: None };
    assert_eq!(Interface::with(Ipv4Addr::LOCALHOST).unwrap(), Some(lo));
    assert_eq!(Interface::with(Ipv4Addr::new(192, 0, 2, 77)).unwrap(), None);
}
