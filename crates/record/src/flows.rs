//! Table `flows`: endpoints write it; a reader asks which flow a packet or a socket belongs to.

use std::net::SocketAddr;
use std::path::Path;

use suiro_units::Time;

use crate::tables::FlowRow;
use crate::words::{Carries, FlowRole, Transport};
use crate::{RecordError, Text, Writer};

/// Flows of one endpoint that have a row of their own; the others share one.
pub const FLOWS_MAX: usize = 1000;

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
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// The endpoint at the other end, if it is known.
    pub peer: Option<Text>,
}

/// Collects the flows of one endpoint and writes them when it ends.
pub struct FlowLog {
    endpoint: Text,
    writer: Writer<FlowRow>,
    /// At most [`FLOWS_MAX`].
    rows: Vec<FlowRow>,
    /// Those without a row of their own.
    left_out: Option<FlowRow>,
}

/// A flow of a [`FlowLog`], by which its end is reported. `None`: it shares a row with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened(Option<usize>);

impl FlowLog {
    /// Makes `DIR/flows.ENDPOINT.parquet`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(dir: &Path, endpoint: &str) -> Result<Self, RecordError> {
        let writer = Writer::create_of(dir, endpoint)?;
        Ok(Self { endpoint: endpoint.into(), writer, rows: Vec::new(), left_out: None })
    }

    /// Writes all flows of an endpoint that knows them when it starts, and keeps them until it is stopped.
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
            log.opened(now, flow);
        }
        log.close()
    }

    /// A flow was opened at `at`.
    pub fn opened(&mut self, at: Time, flow: Flow) -> Opened {
        let place = self.rows.len();
        let row = FlowRow {
            t_ns: at,
            endpoint: self.endpoint.clone(),
            role: flow.role,
            protocol: flow.protocol,
            local: flow.local.to_string().into(),
            remote: flow.remote.to_string().into(),
            carries: flow.carries,
            flows: 1,
            closed_ns: None,
            peer: flow.peer,
        };
        if place < FLOWS_MAX {
            self.rows.push(row);
            return Opened(Some(place));
        }
        match &mut self.left_out {
            None => self.left_out = Some(row),
            Some(shared) => share(shared, &row),
        }
        Opened(None)
    }

    /// A flow was closed at `at`.
    pub fn closed(&mut self, at: Time, flow: Opened) {
        if let Some(row) = flow.0.and_then(|place| self.rows.get_mut(place)) {
            row.closed_ns = Some(at);
        }
    }

    /// Writes the rows. Flows without a row of their own are counted in a last one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn close(mut self) -> Result<(), RecordError> {
        for row in self.rows.into_iter().chain(self.left_out) {
            self.writer.push(row)?;
        }
        self.writer.close()
    }
}

/// Lets one row stand for another flow too: what differs between them is any.
fn share(row: &mut FlowRow, other: &FlowRow) {
    let any = |end: &mut Text, other: &Text| {
        if end != other {
            *end = End::Any.to_string().into();
        }
    };
    any(&mut row.local, &other.local);
    any(&mut row.remote, &other.remote);
    if row.peer != other.peer {
        row.peer = None;
    }
    row.flows += 1;
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

/// As [`find`], for a flow as tables name it: `PROTOCOL SOURCE:PORT>DESTINATION:PORT`.
pub fn find_named<'a>(rows: &'a [FlowRow], flow: &str) -> Option<&'a FlowRow> {
    let (protocol, ends) = flow.split_once(' ')?;
    find(rows, protocol.parse().ok()?, ends.split_once('>')?)
}

/// A flow in words: what it carries, the endpoint's role and name, and the other endpoint if it is known:
/// `video from film to viewer`, `http media, client viewer, server origin`.
pub fn words(row: &FlowRow) -> String {
    let (own, other) = match row.role {
        FlowRole::Sender => (" from ", " to "),
        FlowRole::Receiver => (" to ", " from "),
        FlowRole::Client => (", client ", ", server "),
        FlowRole::Server => (", server ", ", client "),
    };
    let mut words = row.carries.name().replace('_', " ") + own + &row.endpoint;
    if let Some(peer) = &row.peer {
        words.push_str(&(other.to_owned() + peer));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reader, table};

    fn media(local: End, remote: End) -> Flow {
        let (role, protocol) = (FlowRole::Server, Transport::Tcp);
        Flow { role, protocol, local, remote, carries: Carries::HttpMedia, peer: None }
    }

    #[test]
    fn thousands_of_flows_are_bounded_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = FlowLog::create(dir.path(), "origin").unwrap();
        for number in 0..FLOWS_MAX + 7 {
            let client = SocketAddr::from(([10, 0, 0, 2], 10_000 + number as u16));
            let at = Time::from_nanos(number as u64);
            let flow = log.opened(at, media(End::Port(8080), client.into()));
            if number % 2 == 1 {
                log.closed(at + suiro_units::Duration::from_nanos(5), flow);
            }
        }
        log.close().unwrap();
        let rows: Vec<FlowRow> = Reader::read_all(dir.path()).unwrap();
        assert_eq!(rows.len(), FLOWS_MAX + 1);
        assert_eq!(rows.iter().map(|row| row.flows).sum::<u64>(), FLOWS_MAX as u64 + 7);
        let times = |row: &FlowRow| (row.t_ns.as_nanos(), row.closed_ns.map(Time::as_nanos));
        assert_eq!((times(&rows[2]), times(&rows[3])), ((2, None), (3, Some(8))));
        let last = rows.last().unwrap();
        assert_eq!((&*last.local, &*last.remote, last.flows), ("*:8080", "*:*", 7));
        assert_eq!(times(last), (FLOWS_MAX as u64, None));
    }

    table! {
        /// Table `flows` as it was before flows had an end.
        Older = "flows" {
            /// When it was opened.
            t_ns: Time,
            /// The endpoint.
            endpoint: Text,
            /// What it does.
            role: FlowRole,
            /// Its protocol.
            protocol: Transport,
            /// Its own end.
            local: Text,
            /// The other end.
            remote: Text,
            /// What it carries.
            carries: Carries,
            /// How many.
            flows: u64,
        }
    }

    #[test]
    fn a_folder_of_before_flows_had_an_end_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::create_of(dir.path(), "film").unwrap();
        let older = Older {
            t_ns: Time::from_nanos(7),
            endpoint: "film".into(),
            role: FlowRole::Sender,
            protocol: Transport::Udp,
            local: "*:5004".into(),
            remote: "10.0.0.2:5006".into(),
            carries: Carries::Video,
            flows: 1,
        };
        writer.push(older).unwrap();
        writer.close().unwrap();
        let rows: Vec<FlowRow> = Reader::read_all(dir.path()).unwrap();
        assert_eq!((&*rows[0].endpoint, rows[0].carries), ("film", Carries::Video));
        assert_eq!((rows[0].closed_ns, &rows[0].peer), (None, &None));
    }

    #[test]
    fn a_packet_belongs_to_the_row_that_names_it_best() {
        let dir = tempfile::tempdir().unwrap();
        let viewer: SocketAddr = "[::ffff:10.0.0.2]:5006".parse().unwrap();
        let protocol = Transport::Udp;
        let udp = |role, local, remote, carries| Flow {
            role,
            protocol,
            local,
            remote,
            carries,
            peer: None,
        };
        let rtp = udp(FlowRole::Sender, End::Port(5004), viewer.into(), Carries::Video);
        let rtp = Flow { peer: Some("viewer".into()), ..rtp };
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
        let named = |flow| find_named(&rows, flow).map(words);
        let video = named("udp 10.0.0.1:5004>10.0.0.2:5006");
        assert_eq!(video.as_deref(), Some("video from film to viewer"));
        let page = named("tcp 10.0.0.2:4000>10.0.0.1:80");
        assert_eq!(page.as_deref(), Some("http media, server origin"));
        assert_eq!(named("icmp 10.0.0.1>10.0.0.2"), None);
    }
}
