//! QUIC on the UDP sockets of the endpoints, one for each.

use std::io;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use moq_noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use moq_noq::{
    ClientConfig, Endpoint, EndpointConfig, IdleTimeout, MtuDiscoveryConfig, Runtime, ServerConfig,
    TokioRuntime, TransportConfig, VarInt,
};
use suiro_rate::QuicCongestion;

use crate::control::Factory;
use crate::ecn::WithoutEcn;

/// A connection is closed if the peer sends nothing for this time.
const IDLE: Duration = Duration::from_secs(30);
/// How often an idle connection sends a keep-alive.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// A relay's packets become larger in one step, from the 1200 bytes that every path carries to the 1452 that Ethernet carries,
/// or not at all: a difference below this is not searched for. Each probe of a search takes 40 ms of a link of 300 kbit/s,
/// just when the first frame is waited for.
const MTU_STEP: u16 = 200;
/// Bidirectional streams, which carry requests, that a peer may have open.
const REQUESTS: u32 = 256;

/// Why an endpoint has no connection.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// TLS cannot be used for QUIC.
    #[error("setting up TLS for QUIC: {0}")]
    Tls(String),
    /// There is no folder for qlogs.
    #[error("creating the folder of qlogs {}: {cause}", folder.display())]
    Qlog {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The socket cannot be used for QUIC.
    #[error("using a socket for QUIC: {0}")]
    Socket(io::Error),
    /// The connection cannot be begun.
    #[error("connecting to {host}: {cause}")]
    Connect {
        /// The host.
        host: String,
        /// What QUIC said.
        cause: String,
    },
}

/// How an endpoint's connections behave.
#[derive(Debug, Clone, PartialEq)]
pub struct Behaviour {
    /// Their congestion control.
    pub congestion: QuicCongestion,
    /// δ of Copa; the others have none.
    pub delta: f64,
    /// Unidirectional streams that each peer may have open.
    pub streams: u32,
    /// Bytes that a connection accepts from streams before they are acknowledged: the memory that a peer takes by silence.
    pub send_window: u64,
    /// Bytes that a peer may send on all streams together before they are read: the memory that unread streams take. On each stream it
    /// may send 1.25 MB, as noq has it.
    pub receive_window: u32,
    /// Whether streams of the same priority take turns. Otherwise what one has to send is sent before that of the next.
    pub fair: bool,
    /// Whether packets that leave at the same time are handed to the kernel together, which splits them (UDP GSO). That costs less
    /// CPU time; but on an emulated link, every packet crosses on its own, when pacing lets it.
    pub offload: bool,
    /// Whether packets are sent with ECT(0), as noq does of itself (RFC 9000 §13.4.2).
    pub ecn: bool,
    /// Folder and prefix of qlogs, if they are kept.
    pub qlog: Option<(PathBuf, String)>,
}

impl Behaviour {
    /// `grows`: whether packets may become larger than what every path carries.
    fn transport(&self, grows: bool) -> Result<Arc<TransportConfig>, NetError> {
        let mut config = TransportConfig::default();
        let mut mtu = MtuDiscoveryConfig::default();
        mtu.minimum_change(MTU_STEP);
        config
            .congestion_controller_factory(Factory::new(self.congestion, self.delta))
            .max_concurrent_uni_streams(VarInt::from_u32(self.streams))
            .max_concurrent_bidi_streams(VarInt::from_u32(REQUESTS))
            .max_idle_timeout(IdleTimeout::try_from(IDLE).ok())
            .keep_alive_interval(Some(KEEP_ALIVE))
            .send_window(self.send_window)
            .receive_window(VarInt::from_u32(self.receive_window))
            .send_fairness(self.fair)
            .enable_segmentation_offload(self.offload)
            .mtu_discovery_config(grows.then_some(mtu));
        if let Some((folder, prefix)) = &self.qlog {
            // noq writes nothing, and says nothing, where there is no folder.
            let failed = |cause| NetError::Qlog { folder: folder.clone(), cause };
            std::fs::create_dir_all(folder).map_err(failed)?;
            config.qlog_from_path(folder, prefix);
        }
        Ok(Arc::new(config))
    }
}

/// A server at a socket.
///
/// # Errors
/// [`NetError`].
pub fn serve(
    socket: UdpSocket,
    tls: rustls::ServerConfig,
    behaviour: &Behaviour,
) -> Result<Endpoint, NetError> {
    let quic = QuicServerConfig::try_from(tls).map_err(|error| NetError::Tls(error.to_string()))?;
    let mut config = ServerConfig::with_crypto(Arc::new(quic));
    config.transport_config(behaviour.transport(true)?);
    endpoint(socket, Some(config), behaviour.ecn)
}

/// A client at a socket, with the configuration of its connections.
///
/// # Errors
/// [`NetError`].
pub fn client(
    socket: UdpSocket,
    tls: rustls::ClientConfig,
    behaviour: &Behaviour,
) -> Result<(Endpoint, ClientConfig), NetError> {
    let quic = QuicClientConfig::try_from(tls).map_err(|error| NetError::Tls(error.to_string()))?;
    let mut config = ClientConfig::new(Arc::new(quic));
    // Its probe would leave before the rest of its handshake, and on a narrow link delay the first frame by 40 ms.
    config.transport_config(behaviour.transport(false)?);
    Ok((endpoint(socket, None, behaviour.ecn)?, config))
}

fn endpoint(
    socket: UdpSocket,
    server: Option<ServerConfig>,
    ecn: bool,
) -> Result<Endpoint, NetError> {
    let runtime: Arc<dyn Runtime> = if ecn { Arc::new(TokioRuntime) } else { Arc::new(WithoutEcn) };
    Endpoint::new(EndpointConfig::default(), server, socket, runtime).map_err(NetError::Socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_windows_of_a_connection_are_those_that_it_is_to_have() {
        let behaviour = Behaviour {
            congestion: QuicCongestion::default(),
            delta: 0.5,
            streams: 16,
            send_window: 4_000_007,
            receive_window: 1_000_003,
            fair: true,
            offload: false,
            ecn: true,
            qlog: None,
        };
        for grows in [false, true] {
            let config = format!("{:?}", behaviour.transport(grows).unwrap());
            assert!(config.contains(" receive_window: 1000003,"), "{config}");
            assert!(config.contains(" send_window: 4000007,"), "{config}");
        }
    }
}
