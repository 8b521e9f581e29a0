//! Connections of QUIC over one link core, in virtual time: noq's state machines, without sockets, and the link between them.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use moq_noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use moq_noq_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, FourTuple, PathId, ServerConfig, StreamEvent, StreamId, TransportConfig,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use suiro_link::{Direction, Ecn, Link, LinkSpec, Packet, Verdict};
use suiro_moq::control::Look;
use suiro_quic::Span;
use suiro_units::{Bytes, Duration, Seed, Time};

/// Bytes of a packet that are not in its datagram: the headers of IPv4 and UDP.
const HEADERS: usize = 28;

/// What a connection sends.
pub trait Source {
    /// When [`Self::act`] is called next.
    fn next(&self) -> Time;
    /// Does what is due.
    fn act(&mut self, now: Time, sender: &mut Sender<'_>);
}

/// The sending end of a connection.
pub struct Sender<'a> {
    connection: &'a mut Connection,
    unsent: &'a mut VecDeque<(StreamId, usize)>,
}

impl Sender<'_> {
    /// What its congestion control does.
    pub fn look(&self) -> Option<Look> {
        Look::of(self.connection.congestion_state(PathId::ZERO)?)
    }

    /// Its smoothed round-trip time.
    pub fn rtt(&self) -> Option<Duration> {
        Some(self.connection.rtt(PathId::ZERO)?.into())
    }

    /// Sends so many bytes as a stream.
    pub fn send(&mut self, bytes: usize) {
        let id =
            self.connection.streams().open(Dir::Uni).expect("streams are without a bound here");
        self.unsent.push_back((id, bytes));
        self.push();
    }

    /// Writes what the connection accepts.
    fn push(&mut self) {
        static ZEROS: [u8; 65_536] = [0; 65_536];
        let controller = self.connection.congestion_state(PathId::ZERO);
        let written = controller.map(suiro_moq::control::written_of).unwrap_or_default();
        while let Some((id, left)) = self.unsent.front_mut() {
            let mut stream = self.connection.send_stream(*id);
            while *left > 0 {
                let Ok(count) = stream.write(&ZEROS[..ZEROS.len().min(*left)]) else { return };
                written.add(&mut Span::default(), count as u64);
                *left -= count;
            }
            stream.finish().expect("nobody stopped it");
            self.unsent.pop_front();
        }
    }
}

/// One end of a connection.
struct End {
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    connection: Option<Connection>,
}

struct Flow<'a> {
    ends: [End; 2],
    source: &'a mut dyn Source,
    start: Time,
    unsent: VecDeque<(StreamId, usize)>,
    connected: bool,
    /// Bytes of packets that arrived, by tenths of a second.
    arrived: Vec<u64>,
}

/// A link, and the connections that share it. Their senders are at its upper end.
pub struct Path<'a> {
    link: Link,
    begun: Instant,
    now: Time,
    flows: Vec<Flow<'a>>,
    packets: BTreeMap<u64, BytesMut>,
    count: u64,
}

fn address(flow: usize, end: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, flow as u8, 1 + end as u8), 443))
}

fn configurations(transport: TransportConfig) -> (ClientConfig, ServerConfig) {
    // Signatures of Ed25519 have one size, those of ECDSA several.
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a known algorithm");
    let mut named = rcgen::CertificateParams::new(["relay".to_owned()]).expect("a valid name");
    named.serial_number = Some(1_u64.into());
    let certificate = named.self_signed(&key).expect("a key of its own");
    let certificate = CertificateDer::from(certificate.der().to_vec());
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], private)
        .expect("a certificate of its own");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = QuicClientConfig::try_from(client).expect("ciphers of QUIC");
    let server = QuicServerConfig::try_from(server).expect("ciphers of QUIC");
    let transport = Arc::new(transport);
    let mut client = ClientConfig::new(Arc::new(client));
    client.transport_config(Arc::clone(&transport));
    let mut server = ServerConfig::with_crypto(Arc::new(server));
    server.transport_config(transport);
    (client, server)
}

impl<'a> Path<'a> {
    /// A link as a scenario has it.
    #[expect(clippy::disallowed_methods, reason = "an origin of times: only differences are used")]
    pub fn new(link: &str) -> Self {
        let spec: LinkSpec = toml::from_str(link).unwrap_or_else(|error| panic!("{link}: {error}"));
        let config = spec.resolve(&mut |_| Err("no files here".to_owned()));
        let config = config.unwrap_or_else(|error| panic!("{link}: {error}"));
        Self {
            link: Link::new(&config, Seed(1)),
            begun: Instant::now(),
            now: Time::ZERO,
            flows: Vec::new(),
            packets: BTreeMap::new(),
            count: 0,
        }
    }

    /// Adds a connection that begins at `start`. Returns its number.
    pub fn connect(
        &mut self,
        start: Time,
        transport: TransportConfig,
        source: &'a mut dyn Source,
    ) -> usize {
        let (client, server) = configurations(transport);
        let flow = self.flows.len();
        let endpoint = |server: Option<ServerConfig>, end: usize| {
            let mut config = EndpointConfig::default();
            config.rng_seed(Some([flow as u8 * 2 + end as u8; 32]));
            let endpoint = Endpoint::new(Arc::new(config), server.map(Arc::new), true);
            End { endpoint, handle: None, connection: None }
        };
        let mut ends = [endpoint(None, 0), endpoint(Some(server), 1)];
        let at = self.begun + std::time::Duration::from(start.saturating_since(Time::ZERO));
        let connected = ends[0].endpoint.connect(at, client, address(flow, 1), "relay");
        let (handle, connection) = connected.expect("a valid configuration");
        (ends[0].handle, ends[0].connection) = (Some(handle), Some(connection));
        let (unsent, arrived) = (VecDeque::new(), Vec::new());
        self.flows.push(Flow { ends, source, start, unsent, connected: false, arrived });
        flow
    }

    /// Bit/s of a flow's packets that arrived between these times.
    pub fn rate(&self, flow: usize, from: Time, to: Time) -> f64 {
        let tenth = |at: Time| (at.as_nanos() / 100_000_000) as usize;
        let arrived = self.flows[flow].arrived.iter().take(tenth(to)).skip(tenth(from));
        arrived.sum::<u64>() as f64 * 8.0 / to.saturating_since(from).as_secs_f64()
    }

    /// Runs until `end`.
    pub fn run(&mut self, end: Time) {
        loop {
            for flow in 0..self.flows.len() {
                self.drive(flow);
            }
            let next = self.flows.iter().filter_map(|flow| flow.next(self.begun, self.now));
            let next = next.chain(self.link.next_event()).min();
            let Some(next) = next.filter(|next| *next < end) else { break };
            self.now = self.now.max(next);
            while let Some(event) = self.link.poll(self.now) {
                let data = self.packets.remove(&event.packet.id).expect("each packet once");
                if matches!(event.verdict, Verdict::Delivered { .. }) {
                    self.deliver(event.packet, event.direction, data);
                }
            }
        }
        self.now = end;
    }

    fn deliver(&mut self, packet: Packet, direction: Direction, data: BytesMut) {
        let (flow, tenth) = (packet.flow as usize, (self.now.as_nanos() / 100_000_000) as usize);
        let end = usize::from(direction == Direction::Down);
        if direction == Direction::Down {
            let arrived = &mut self.flows[flow].arrived;
            arrived.resize(arrived.len().max(tenth + 1), 0);
            arrived[tenth] += packet.size.get();
        }
        let now = self.begun + std::time::Duration::from(self.now.saturating_since(Time::ZERO));
        let from = FourTuple::new(address(flow, 1 - end), None);
        let (mut buffer, mut answer) = (Vec::new(), None);
        let to = &mut self.flows[flow].ends[end];
        match to.endpoint.handle(now, from, None, data, &mut buffer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = to.endpoint.accept(incoming, now, &mut buffer, None);
                let (handle, connection) = accepted.expect("a valid handshake");
                (to.handle, to.connection) = (Some(handle), Some(connection));
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                to.connection.as_mut().expect("it has begun").handle_event(event);
            }
            Some(DatagramEvent::Response(_)) => answer = Some(buffer),
            None => {}
        }
        if let Some(answer) = answer {
            self.send(flow, end, &answer);
        }
    }

    fn send(&mut self, flow: usize, end: usize, data: &[u8]) {
        let size = Bytes::new((data.len() + HEADERS) as u64);
        let packet = Packet { id: self.count, size, flow: flow as u64, ecn: Ecn::NotEct };
        self.count += 1;
        self.packets.insert(packet.id, data.into());
        let direction = [Direction::Down, Direction::Up][end];
        self.link.arrive(self.now, direction, packet);
    }

    /// Lets a flow do what is due.
    fn drive(&mut self, number: usize) {
        let flow = &mut self.flows[number];
        if self.now < flow.start {
            return;
        }
        let now = self.begun + std::time::Duration::from(self.now.saturating_since(Time::ZERO));
        let mut out = Vec::new();
        for end in 0..2 {
            let End { endpoint, handle, connection } = &mut flow.ends[end];
            let (Some(handle), Some(connection)) = (handle, connection) else { continue };
            if connection.poll_timeout().is_some_and(|at| at <= now) {
                connection.handle_timeout(now);
            }
            while let Some(event) = connection.poll() {
                match event {
                    Event::Connected => flow.connected = true,
                    Event::Stream(StreamEvent::Readable { id }) => read(connection, id),
                    Event::ConnectionLost { reason } => panic!("connection {number}: {reason}"),
                    _ => {}
                }
            }
            while let Some(id) = connection.streams().accept(Dir::Uni) {
                read(connection, id);
            }
            if end == 0 && flow.connected {
                let mut sender = Sender { connection, unsent: &mut flow.unsent };
                sender.push();
                while flow.source.next() <= self.now {
                    flow.source.act(self.now, &mut sender);
                }
            }
            let mut buffer = Vec::new();
            loop {
                while connection.poll_transmit(now, NonZeroUsize::MIN, &mut buffer).is_some() {
                    out.push((end, std::mem::take(&mut buffer)));
                }
                let Some(event) = connection.poll_endpoint_events() else { break };
                if let Some(event) = endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
        }
        for (end, data) in out {
            self.send(number, end, &data);
        }
    }
}

impl Flow<'_> {
    /// When it has something to do next, not before `now`.
    fn next(&self, begun: Instant, now: Time) -> Option<Time> {
        if now < self.start {
            return Some(self.start);
        }
        let timeouts = self.ends.iter().filter_map(|end| end.connection.as_ref()?.poll_timeout());
        let timeouts = timeouts.map(|at| Time::ZERO + at.saturating_duration_since(begun).into());
        let source = self.connected.then(|| self.source.next());
        timeouts.chain(source).min().map(|at| at.max(now))
    }
}

/// Reads what has arrived of a stream.
fn read(connection: &mut Connection, id: StreamId) {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(false) else { return };
    while let Ok(Some(_)) = chunks.next(usize::MAX) {}
    let _ = chunks.finalize();
}
