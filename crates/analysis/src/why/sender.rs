//! A connection that sends, and what its own account says, slice by slice. `sockets` makes it of TCP, `connections` of QUIC.

use suiro_record::tables::QuicRow;
use suiro_record::words::Transport;

use super::evidence::Evidence;
use super::slices::Slices;
use crate::Records;
use crate::held::Stretch;
use crate::tcp::Socket;

/// What a sender's samples say about a slice. Times are shares of the slice.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Account {
    /// With data to send or in flight.
    pub busy: f64,
    /// Held back by the receive window, by the kernel's account or because no segment fitted into it any more; `None` if
    /// neither is recorded.
    pub receive_window: Option<f64>,
    /// Held back by the send buffer.
    pub send_buffer: Option<f64>,
    /// With data that was not sent yet.
    pub unsent: Option<f64>,
    /// With the congestion window full.
    pub window_full: f64,
    /// In recovery, by duplicate or selective ACKs. Disorder is not: packets that overtook others cause it, too.
    pub recovery: f64,
    /// After a timeout, or waiting for one.
    pub timeout: f64,
    /// Bytes acknowledged.
    pub acked: i64,
    /// The congestion window, at the end.
    pub cwnd: i64,
    /// The pacing rate, at the end.
    pub pacing_bps: Option<i64>,
    /// Bytes in flight as a share of the congestion window, mean.
    pub filled: f64,
    /// Bytes in flight, at the end.
    pub in_flight: i64,
    /// The least receive window as a share of the largest one of the connection.
    pub window_left: Option<f64>,
}

/// The samples of a connection.
pub(super) enum Samples<'v> {
    Tcp(&'v Socket<'v>),
    Quic(Vec<Stretch<&'v QuicRow>>),
}

/// A connection that sends, in slices.
pub(super) struct Sender<'v> {
    /// `LOCAL:PORT>REMOTE:PORT`.
    pub name: String,
    pub samples: Samples<'v>,
    /// Bytes that arrived.
    pub acked_bytes: i64,
    /// The slices in which it existed.
    pub lifetime: std::ops::Range<usize>,
    /// By slice, from the trial's start.
    pub accounts: Vec<Account>,
}

impl<'v> Sender<'v> {
    /// Whether its other end is this one.
    pub fn ends_at(&self, peer: &str) -> bool {
        self.name.split_once('>').is_some_and(|(_, remote)| remote == peer)
    }

    /// What carries it.
    pub const fn transport(&self) -> Transport {
        match self.samples {
            Samples::Tcp(_) => Transport::Tcp,
            Samples::Quic(_) => Transport::Udp,
        }
    }

    /// As links name it.
    pub fn flow(&self) -> String {
        format!("{} {}", self.transport(), self.name)
    }

    /// The least of the smoothed round-trip times; 0 if none is known.
    pub fn least_rtt_ns(&self) -> i64 {
        let least = match &self.samples {
            Samples::Tcp(socket) => {
                let each = socket.samples.iter().map(|sample| sample.value.srtt_us);
                each.filter(|us| *us > 0).min().map(|us| us.saturating_mul(1000))
            }
            Samples::Quic(samples) => {
                samples.iter().map(|sample| sample.value.srtt_ns.as_nanos_i64()).min()
            }
        };
        least.unwrap_or(0)
    }

    /// The samples of a stretch of time, and how many bytes arrived from the first to the last of them.
    pub fn evidence(&self, records: &Records, from_ns: i64, to_ns: i64) -> Option<(i64, Evidence)> {
        match &self.samples {
            Samples::Tcp(socket) => {
                let (first, last) = ends(&socket.samples, from_ns, to_ns)?;
                let evidence = Evidence::of("tcp", &records.tcp, first, last)?;
                let of = format!("host={},socket={}", socket.host, self.name);
                Some((last.acked_bytes.saturating_sub(first.acked_bytes), evidence.only(of)))
            }
            Samples::Quic(samples) => {
                let (first, last) = ends(samples, from_ns, to_ns)?;
                let evidence = Evidence::of("quic", &records.quic, first, last)?;
                let of = format!("endpoint={},session={}", first.endpoint, first.session);
                Some((arrived(last).saturating_sub(arrived(first)), evidence.only(of)))
            }
        }
    }
}

/// The first and the last sample of a stretch of time.
fn ends<'v, R>(samples: &[Stretch<&'v R>], from_ns: i64, to_ns: i64) -> Option<(&'v R, &'v R)> {
    let first = samples.partition_point(|sample| sample.to_ns <= from_ns);
    let last = samples.partition_point(|sample| sample.from_ns < to_ns).checked_sub(1)?;
    Some((samples.get(first)?.value, samples.get(last.max(first))?.value))
}

/// The slices in which a connection with these samples existed; `None` without any.
pub(super) fn lifetime<R>(
    samples: &[Stretch<&R>],
    slices: Slices,
) -> Option<std::ops::Range<usize>> {
    let (first, last) = (samples.first()?, samples.last()?);
    Some(slices.at(first.from_ns)..slices.at(last.to_ns.saturating_sub(1)) + 1)
}

/// By how much a counter grew in a stretch of time; before the first sample it is 0.
pub(super) fn growth<R>(
    samples: &[Stretch<&R>],
    (from_ns, to_ns): (i64, i64),
    counter: impl Fn(&R) -> i64,
) -> i64 {
    let at = |t_ns: i64| {
        let after = samples.partition_point(|sample| sample.from_ns <= t_ns);
        after.checked_sub(1).map_or(0, |index| counter(samples[index].value))
    };
    at(to_ns).saturating_sub(at(from_ns)).max(0)
}

/// A time as a share of a slice.
pub(super) fn share(ns: i64, slices: Slices, index: usize) -> f64 {
    let (from, to) = slices.span(index);
    ns as f64 / (to - from).max(1) as f64
}

/// Bytes that are neither in flight nor to be sent; those of lost datagrams are among them.
pub(super) fn arrived(row: &QuicRow) -> i64 {
    let sent = row.sent_bytes.unwrap_or(0);
    bytes(sent.saturating_sub(row.in_flight_bytes.unwrap_or(0)))
}

/// A count of bytes; none is larger than a column holds.
pub(super) fn bytes(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
