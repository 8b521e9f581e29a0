//! Table `flows` of connections. A connection has one row: a client of ours writes it, and names itself in its
//! requests; the row of any other client is written by the server.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::header::{HeaderMap, USER_AGENT};
use suiro_record::flows::{End, Flow, FlowLog, Opened};
use suiro_record::words::{Carries, FlowRole, Transport};
use suiro_record::{RecordError, Text};
use suiro_scenario::Job;
use suiro_serving::Witness;
use suiro_units::Time;

use crate::{Clock, net};

/// What clients of ours call themselves in their requests.
pub(crate) const OWN_AGENT: &str = concat!("suiro/", env!("CARGO_PKG_VERSION"));

/// Where a server records, and who may connect to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    /// The endpoint's name, for rows and the names of files.
    pub endpoint: String,
    /// The folder for the files.
    pub dir: PathBuf,
    /// The endpoints that refer to it, and their hosts.
    pub clients: Vec<(String, String)>,
}

impl Records {
    /// Those of a trial's endpoint.
    pub fn of(job: &Job) -> Self {
        let clients = job.referring().map(|(name, peer)| (name.to_owned(), peer.host.clone()));
        Self {
            endpoint: job.endpoint.name.clone(),
            dir: job.dir.clone(),
            clients: clients.collect(),
        }
    }
}

/// The flows of one endpoint. Its clones are the same.
#[derive(Clone)]
pub(crate) struct Flows {
    clock: Clock,
    log: Arc<Mutex<Option<FlowLog>>>,
}

/// A connection with a row; when it is dropped, it is closed.
pub(crate) struct Connected {
    flows: Flows,
    opened: Opened,
}

impl Flows {
    pub fn create(dir: &Path, endpoint: &str, clock: Clock) -> Result<Self, RecordError> {
        let log = Arc::new(Mutex::new(Some(FlowLog::create(dir, endpoint)?)));
        Ok(Self { clock, log })
    }

    /// A connection was opened at `at`. `None` after [`close`](Self::close).
    fn opened(&self, at: Time, flow: Flow) -> Option<Connected> {
        let opened = self.lock().as_mut()?.opened(at, flow);
        Some(Connected { flows: self.clone(), opened })
    }

    /// A client of ours has connected. `None` if the connection has no ends any more.
    pub fn connected(
        &self,
        stream: &tokio::net::TcpStream,
        carries: Carries,
        peer: Option<Text>,
    ) -> Option<Connected> {
        let (local, remote) = stream.local_addr().ok().zip(stream.peer_addr().ok())?;
        let flow = Flow {
            role: FlowRole::Client,
            protocol: Transport::Tcp,
            local: local.into(),
            remote: remote.into(),
            carries,
            peer,
        };
        self.opened(self.clock.now(), flow)
    }

    /// A client of ours has connected over QUIC.
    pub fn connected_quic(
        &self,
        (local, remote): (End, SocketAddr),
        carries: Carries,
        peer: Option<Text>,
    ) -> Option<Connected> {
        let (role, protocol) = (FlowRole::Client, Transport::Udp);
        let remote = remote.into();
        self.opened(self.clock.now(), Flow { role, protocol, local, remote, carries, peer })
    }

    /// Writes the table. Connections that are open still have no end in it.
    pub fn close(&self) -> Result<(), RecordError> {
        let log = self.lock().take();
        log.map_or(Ok(()), FlowLog::close)
    }

    fn lock(&self) -> MutexGuard<'_, Option<FlowLog>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let now = self.flows.clock.now();
        if let Some(log) = self.flows.lock().as_mut() {
            log.closed(now, self.opened);
        }
    }
}

/// What a server knows of the connections that it accepts. Its clones are the same.
#[derive(Clone)]
pub(crate) struct Accepting {
    flows: Flows,
    carries: Carries,
    port: u16,
    /// The only client at each address; `None` where there are several.
    clients: Arc<BTreeMap<IpAddr, Option<Text>>>,
}

impl Accepting {
    /// A server that listens on `port`. Clients whose host has no address are left out.
    pub async fn create(
        records: &Records,
        port: u16,
        carries: Carries,
        clock: Clock,
    ) -> Result<Self, RecordError> {
        let flows = Flows::create(&records.dir, &records.endpoint, clock)?;
        let mut clients = BTreeMap::new();
        for (name, host) in &records.clients {
            for address in net::resolve(host, 0).await.unwrap_or_default() {
                let alone = Some(Text::from(name.as_str()));
                let same =
                    |known: &mut Option<Text>| *known = known.take().filter(|k| **k == **name);
                clients.entry(address.ip().to_canonical()).and_modify(same).or_insert(alone);
            }
        }
        Ok(Self { flows, carries, port, clients: Arc::new(clients) })
    }

    /// The table, for a server that is a client too.
    pub fn flows(&self) -> Flows {
        self.flows.clone()
    }
}

impl Accepting {
    /// A connection of QUIC was accepted, at this address if it is known.
    pub fn accepted_quic(&self, local: Option<IpAddr>, remote: SocketAddr) -> Accepted {
        let local = local.map(|address| SocketAddr::new(address, self.port));
        self.seen(Transport::Udp, local, remote)
    }

    fn seen(&self, protocol: Transport, local: Option<SocketAddr>, remote: SocketAddr) -> Accepted {
        let (at, server) = (self.flows.clock.now(), self.clone());
        Accepted { server, at, protocol, local, remote, known: Mutex::new(Client::Unknown) }
    }
}

impl Witness for Accepting {
    type Seen = Accepted;
    type Error = RecordError;

    fn accepted(&self, local: Option<SocketAddr>, remote: SocketAddr) -> Accepted {
        self.seen(Transport::Tcp, local, remote)
    }

    fn asked(seen: &Accepted, headers: &HeaderMap) {
        seen.asked(headers);
    }

    fn stopping(self) -> Result<(), RecordError> {
        self.flows.close()
    }
}

/// An accepted connection; when it is dropped, it is closed.
pub(crate) struct Accepted {
    server: Accepting,
    at: Time,
    protocol: Transport,
    local: Option<SocketAddr>,
    remote: SocketAddr,
    known: Mutex<Client>,
}

/// Whose connection it is.
enum Client {
    /// It has not asked for anything.
    Unknown,
    /// One of ours, which writes the row itself.
    Own,
    /// Another one, and what ends its row; `None` after the table was written.
    Other(#[expect(dead_code, reason = "it is dropped with the connection")] Option<Connected>),
}

impl Accepted {
    /// The client made a request. Its first says who it is.
    pub fn asked(&self, request: &HeaderMap) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*known, Client::Unknown) {
            *known = match request.get(USER_AGENT) {
                Some(agent) if agent == OWN_AGENT => Client::Own,
                _ => Client::Other(self.open()),
            };
        }
    }

    fn open(&self) -> Option<Connected> {
        let Accepting { flows, carries, port, clients } = &self.server;
        let any = End::Port(*port);
        let flow = Flow {
            role: FlowRole::Server,
            protocol: self.protocol,
            local: self.local.map_or(any, Into::into),
            remote: self.remote.into(),
            carries: *carries,
            peer: clients.get(&self.remote.ip().to_canonical()).cloned().flatten(),
        };
        flows.opened(self.at, flow)
    }
}

impl Drop for Accepted {
    fn drop(&mut self) {
        let known = self.known.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Browsers connect ahead of requests that they never make.
        if matches!(known, Client::Unknown) {
            drop(self.open());
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use suiro_record::Reader;
    use suiro_record::tables::FlowRow;

    use super::*;

    fn asks(agent: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(USER_AGENT, HeaderValue::from_static(agent))])
    }

    #[tokio::test]
    async fn only_clients_of_others_have_a_row_of_the_server() {
        let dir = tempfile::tempdir().unwrap();
        let client = |name: &str, host: &str| (name.to_owned(), host.to_owned());
        let records = Records {
            endpoint: "origin".into(),
            dir: dir.path().to_owned(),
            clients: vec![
                client("vlc", "10.0.0.2"),
                client("one", "10.0.0.3"),
                client("two", "10.0.0.3"),
            ],
        };
        let server = Accepting::create(&records, 80, Carries::HttpMedia, Clock::from_now());
        let server = server.await.unwrap();
        let accepted = |remote: &str| {
            let local = Some("[::ffff:10.0.0.1]:80".parse().unwrap());
            server.accepted(local, remote.parse().unwrap())
        };
        let (vlc, own) = (accepted("[::ffff:10.0.0.2]:4000"), accepted("[::ffff:10.0.0.2]:4001"));
        let (two, idle) = (accepted("10.0.0.3:4002"), accepted("10.0.0.4:4003"));
        vlc.asked(&asks("VLC/3.0.18"));
        vlc.asked(&asks("VLC/3.0.18"));
        own.asked(&asks(OWN_AGENT));
        two.asked(&HeaderMap::new());
        drop((own, two, idle));
        server.stopping().unwrap();
        drop(vlc);
        let rows: Vec<FlowRow> = Reader::read_all(dir.path()).unwrap();
        let of = |row: &FlowRow| {
            assert_eq!(
                (&*row.endpoint, &*row.local, row.role),
                ("origin", "10.0.0.1:80", FlowRole::Server)
            );
            let closed = row.closed_ns.inspect(|closed| assert!(*closed >= row.t_ns)).is_some();
            (row.remote.to_string(), row.peer.as_deref().map(str::to_owned), closed)
        };
        let expected = [
            ("10.0.0.2:4000".to_owned(), Some("vlc".to_owned()), false),
            ("10.0.0.3:4002".to_owned(), None, true),
            ("10.0.0.4:4003".to_owned(), None, true),
        ];
        assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), expected);
    }
}
