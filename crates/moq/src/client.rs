//! The part that publisher and viewer share: the connection to a relay, and the session in it.

use std::path::PathBuf;
use std::sync::Arc;

use moq_net::{Client, Session, Version};
use moq_noq::Connection;
use moq_noq::crypto::rustls::HandshakeData;
use suiro_clock::Clock;
use suiro_record::words::FlowRole;
use suiro_scenario::Job;
use suiro_units::Time;

use crate::deadline::Groups;
use crate::net::{self, Behaviour, NetError};
use crate::records::{Carried, Records};
use crate::requests::Requests;
use crate::{EndpointError, tls, transport};

/// The part of a session's path that holds the token, as moq-relay of moq-net takes it: `?jwt=TOKEN`.
pub const TOKEN_KEY: &str = "jwt";
/// How long connecting may take, set-up of the session included.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(20);
/// Code of a connection that is closed because its work is done (moq-transport, `NO_ERROR`).
const DONE: u32 = 0;

/// The configuration that publisher and viewer share.
#[derive(Debug, Clone, PartialEq)]
pub struct Common {
    /// Its name, for records.
    pub name: String,
    /// The relay's name, host and port.
    pub relay: (String, String, u16),
    /// The name of the broadcast.
    pub broadcast: String,
    /// The token that is presented to the relay.
    pub token: Option<String>,
    /// The draft of moq-transport that is offered.
    pub draft: u8,
    /// How its connection behaves.
    pub behaviour: Behaviour,
    /// Folder for records.
    pub dir: PathBuf,
    /// When to begin.
    pub start: Time,
}

impl Common {
    /// What a trial's job file says; `None` if the relay is not among the peers.
    pub(crate) fn from_job(
        job: &Job,
        relay: &str,
        (broadcast, token, draft): (&str, Option<&String>, u8),
        behaviour: Behaviour,
    ) -> Option<Self> {
        let peer = job.peers.get(relay)?;
        Some(Self {
            name: job.endpoint.name.clone(),
            relay: (relay.to_owned(), peer.host.clone(), peer.port?),
            broadcast: broadcast.to_owned(),
            token: token.cloned(),
            draft,
            behaviour,
            dir: job.dir.clone(),
            start: Time::ZERO + job.endpoint.start,
        })
    }

    /// The path of the session: the root of the relay, with the token in the query, as other clients of moq-net send it.
    fn path(&self) -> String {
        match &self.token {
            Some(token) => format!("/?{}={token}", TOKEN_KEY),
            None => "/".to_owned(),
        }
    }

    /// Connects to the relay and sets a session up, in which `groups` are sent.
    pub(crate) async fn connect(
        &self,
        clock: Clock,
        client: Client,
        records: &mut Records,
        role: FlowRole,
        groups: Option<Arc<Groups>>,
    ) -> Result<Link, EndpointError> {
        let (relay, host, port) = &self.relay;
        let doing = format!("connecting to `{relay}` at {host}:{port}");
        let late =
            |_| EndpointError::Session { doing: doing.clone(), cause: moq_net::Error::Timeout };
        tokio::time::timeout(CONNECT, self.set_up(clock, client, records, role, groups))
            .await
            .map_err(late)?
    }

    async fn set_up(
        &self,
        clock: Clock,
        client: Client,
        records: &mut Records,
        role: FlowRole,
        groups: Option<Arc<Groups>>,
    ) -> Result<Link, EndpointError> {
        let (relay, host, port) = &self.relay;
        let version: Version = format!("moq-transport-{}", self.draft)
            .parse()
            .map_err(|_| EndpointError::session(self.doing())(moq_net::Error::Version))?;
        let tls = tls::client(&tls::file(&self.dir, relay), vec![version.alpn().into()])?;
        let address = suiro_endpoint::net::address(host).await?.into();
        let socket = suiro_endpoint::net::udp_towards(address)?;
        let (endpoint, config) = net::client(socket, tls, &self.behaviour)?;
        let failed = |cause: String| NetError::Connect { host: format!("{host}:{port}"), cause };
        let begun = clock.now();
        let connecting = endpoint
            .connect_with(config, (address, *port).into(), host)
            .map_err(|error| failed(error.to_string()))?;
        let connection = connecting.await.map_err(|error| failed(error.to_string()))?;
        let local = endpoint.local_addr().map_err(|error| failed(error.to_string()))?;
        let carried = Carried { role, peer: Some(relay.as_str().into()) };
        let (times, own) = ((begun, clock.now()), (FlowRole::Client, local));
        let number = records.connected(times, &connection, own, Some(carried));
        let requests = Arc::<Requests>::default();
        let session = transport::Session::new(connection.clone(), protocol(&connection))
            .with_deadline(groups)
            .with_requests(Some(Arc::clone(&requests)));
        let client = client.with_versions(version.into()).with_path(self.path());
        let now = clock.instant(clock.now());
        let set_up = client.connect(now, session).await;
        let (session, driver) = set_up.map_err(EndpointError::session(self.doing()))?;
        records.set_up(clock.now(), number, session.version().as_str());
        tokio::spawn(moq_net::time::run(driver));
        Ok(Link { endpoint, connection, session, requests, number })
    }

    fn doing(&self) -> String {
        let (relay, host, port) = &self.relay;
        format!("setting up a session with `{relay}` at {host}:{port}")
    }
}

/// The protocol that ALPN negotiated.
pub(crate) fn protocol(connection: &Connection) -> Option<String> {
    let data = connection.handshake_data()?.downcast::<HandshakeData>().ok()?;
    String::from_utf8(data.protocol?).ok()
}

/// Whether the session ended because the relay was stopped, and not because of an error.
pub(crate) fn is_farewell(cause: &moq_net::Error) -> bool {
    matches!(cause.session(), Some(moq_net::SessionError::Cancel))
}

/// A session with a relay.
pub(crate) struct Link {
    endpoint: moq_noq::Endpoint,
    pub connection: Connection,
    pub session: Session,
    /// What it has subscribed to.
    pub requests: Arc<Requests>,
    pub number: u64,
}

impl Link {
    /// Closes the connection, and waits until the relay knows.
    pub async fn close(self) {
        self.connection.close(DONE.into(), b"done");
        // The relay may be gone already.
        let _ =
            tokio::time::timeout(std::time::Duration::from_millis(200), self.endpoint.wait_idle())
                .await;
    }
}
