//! Table `flows`: endpoints write it; a reader asks which flow a packet or a socket belongs to.

use std::net::SocketAddr;
use std::path::Path;

use suiro_units::Time;

use crate::tables::FlowRow;
use crate::words::{Carries, FlowRole, Transport};
use crate::{RecordError, Text, Writer};

/// Flows of one endpoint that have a row of their own; the others share one.
pub const FLOWS_MAX: u64 = 1000;

/// One end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Any address and port.
    Any,
    /// This port of any address.
    Port(u16),
    /// This port of this address.
    Address(SocketAddr),
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Any => f.write_str("*:*"),
            Self::Port(port) => write!(f, "*:{port}"),
            // An IPv6 socket shows an IPv4 address as a mapped one (RFC 4291 §2.5.5.2).
            Self::Address(at) => SocketAddr::new(at.ip().to_canonical(), at.port()).fmt(f),
        }
    }
}

impl From<SocketAddr> for End {
    fn from(address: SocketAddr) -> Self {
        match (address.ip().is_unspecified(), address.port()) {
            (true, 0) => Self::Any,
            (true, port) => Self::Port(port),
            (false, _) => Self::Address(address),
        }
    }
}

/// A flow, before it is a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// What the endpoint does in it.
    pub role: FlowRole,
    /// Its transport protocol.
    pub protocol: Transport,
    /// The endpoint's own end.
    pub local: End,
    /// The other end.
    pub remote: End,
    /// What it carries.
    pub carries: Carries,
}

/// Writes the flows of one endpoint.
pub struct FlowLog {
    endpoint: Text,
    writer: Writer<FlowRow>,
    written: u64,
    /// The latest of those without a row, and how many there are.
    left_out: Option<(Time, Flow, u64)>,
}

impl FlowLog {
    /// Makes `DIR/flows.ENDPOINT.parquet`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(dir: &Path, endpoint: &str) -> Result<Self, RecordError> {
        let writer = Writer::create_of(dir, endpoint)?;
        Ok(Self { endpoint: endpoint.into(), writer, written: 0, left_out: None })
    }

    /// Writes all flows of an endpoint that knows them when it starts.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(
        dir: &Path,
        endpoint: &str,
        now: Time,
        flows: impl IntoIterator<Item = Flow>,
    ) -> Result<(), RecordError> {
        let mut log = Self::create(dir, endpoint)?;
        for flow in flows {
            log.opened(now, flow)?;
        }
        log.close()
    }

    /// A flow was opened.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn opened(&mut self, now: Time, flow: Flow) -> Result<(), RecordError> {
        if self.written == FLOWS_MAX {
            let before = self.left_out.map_or(0, |(_, _, flows)| flows);
            self.left_out = Some((now, flow, before + 1));
            return Ok(());
        }
        self.written += 1;
        self.push(now, flow, 1)
    }

    fn push(&mut self, t_ns: Time, flow: Flow, flows: u64) -> Result<(), RecordError> {
        self.writer.push(FlowRow {
            t_ns,
            endpoint: self.endpoint.clone(),
            role: flow.role,
            protocol: flow.protocol,
            local: flow.local.to_string().into(),
            remote: flow.remote.to_string().into(),
            carries: flow.carries,
            flows,
        })
    }

    /// Makes the file whole. Flows without a row of their own are counted in a last one, whose remote end
    /// is any.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn close(mut self) -> Result<(), RecordError> {
        if let Some((now, flow, flows)) = self.left_out {
            // A server's own port is the same for all of them.
            let local = if flow.role == FlowRole::Server { flow.local } else { End::Any };
            self.push(now, Flow { local, remote: End::Any, ..flow }, flows)?;
        }
        self.writer.close()
    }
}

/// True if `found`, such as `10.0.0.1:5004`, is an end that a row names, such as `*:5004`.
pub fn is_end(named: &str, found: &str) -> bool {
    match named.strip_prefix("*:") {
        Some("*") => true,
        Some(port) => found.rsplit_once(':').is_some_and(|(_, found)| found == port),
        None => named == found,
    }
}

/// How exactly a row names its ends: a connection more than a port, a port more than nothing.
fn exactness(row: &FlowRow) -> usize {
    let of = |end: &str| match end {
        "*:*" => 0,
        _ if end.starts_with('*') => 1,
        _ => 2,
    };
    of(&row.local) + of(&row.remote)
}

/// The row of a packet's flow or a socket, between two ends (each `ADDRESS:PORT`): of those that fit, the
/// one that names its ends most exactly; of those, one whose own end is the first. `None` if no endpoint
/// reported such a flow.
pub fn find<'a>(
    rows: &'a [FlowRow],
    protocol: Transport,
    (one, other): (&str, &str),
) -> Option<&'a FlowRow> {
    let named = rows.iter().filter(|row| row.protocol == protocol && exactness(row) > 0);
    let fitting = named.filter_map(|row| {
        let out = is_end(&row.local, one) && is_end(&row.remote, other);
        let back = is_end(&row.local, other) && is_end(&row.remote, one);
        (out || back).then_some((exactness(row), out, row))
    });
    fitting.max_by_key(|(exact, out, _)| (*exact, *out)).map(|(_, _, row)| row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;

    fn media(local: End, remote: End) -> Flow {
        let (role, protocol) = (FlowRole::Server, Transport::Tcp);
        Flow { role, protocol, local, remote, carries: Carries::HttpMedia }
    }

    #[test]
    fn thousands_of_flows_are_bounded_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = FlowLog::create(dir.path(), "origin").unwrap();
        for port in 0..FLOWS_MAX + 7 {
            let peer = SocketAddr::from(([10, 0, 0, 2], 10_000 + port as u16));
            log.opened(Time::from_nanos(port), media(End::Port(8080), peer.into())).unwrap();
        }
        log.close().unwrap();
        let rows: Vec<FlowRow> = Reader::read_all(dir.path()).unwrap();
        assert_eq!(rows.len() as u64, FLOWS_MAX + 1);
        assert_eq!(rows.iter().map(|row| row.flows).sum::<u64>(), FLOWS_MAX + 7);
        let last = rows.last().unwrap();
        assert_eq!((&*last.local, &*last.remote, last.flows), ("*:8080", "*:*", 7));
    }

    #[test]
    fn a_packet_belongs_to_the_row_that_names_it_best() {
        let dir = tempfile::tempdir().unwrap();
        let viewer: SocketAddr = "[::ffff:10.0.0.2]:5006".parse().unwrap();
        let protocol = Transport::Udp;
        let udp = |role, local, remote, carries| Flow { role, protocol, local, remote, carries };
        let rtp = udp(FlowRole::Sender, End::Port(5004), viewer.into(), Carries::Video);
        let heard = udp(FlowRole::Receiver, End::Port(5006), End::Any, Carries::Video);
        let rtcp = udp(FlowRole::Sender, End::Port(5005), End::Any, Carries::Feedback);
        FlowLog::write(dir.path(), "film", Time::ZERO, [rtp, rtcp]).unwrap();
        FlowLog::write(dir.path(), "viewer", Time::ZERO, [heard]).unwrap();
        FlowLog::write(dir.path(), "origin", Time::ZERO, [media(End::Port(80), End::Any)]).unwrap();
        let rows: Vec<FlowRow> = Reader::read_all(dir.path()).unwrap();
        let of = |protocol, source, destination| {
            let row = find(&rows, protocol, (source, destination))?;
            Some((&*row.endpoint, row.carries))
        };
        let (a, b) = ("10.0.0.1:5004", "10.0.0.2:5006");
        assert_eq!(of(Transport::Udp, a, b), Some(("film", Carries::Video)));
        assert_eq!(of(Transport::Udp, b, a), Some(("film", Carries::Video)));
        assert_eq!(of(Transport::Tcp, a, b), None);
        let other = of(Transport::Udp, "10.0.0.9:1", b);
        assert_eq!(other, Some(("viewer", Carries::Video)));
        let feedback = of(Transport::Udp, "10.0.0.2:5007", "10.0.0.1:5005");
        assert_eq!(feedback, Some(("film", Carries::Feedback)));
        let page = of(Transport::Tcp, "[fd00::1]:80", "[fd00::2]:40000");
        assert_eq!(page, Some(("origin", Carries::HttpMedia)));
        assert_eq!(of(Transport::Udp, "10.0.0.1:53", "10.0.0.2:4000"), None);
    }
}
