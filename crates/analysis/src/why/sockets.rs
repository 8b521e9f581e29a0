//! What a sender's own account says, slice by slice: that of a TCP socket; `connections` has QUIC's.

use suiro_record::tables::QuicRow;
use suiro_record::words::{TcpState, Transport};

use super::connections::arrived;
use super::evidence::Evidence;
use super::rules::Rules;
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
    /// `None` for a socket without samples within the trial.
    pub fn of(socket: &'v Socket<'v>, slices: Slices, rules: Rules) -> Option<Self> {
        let (first, last) = (socket.samples.first()?, socket.samples.last()?);
        let lifetime = slices.at(first.from_ns)..slices.at(last.to_ns.saturating_sub(1)) + 1;
        let mut accounts = vec![Account::default(); slices.count];
        let timeouts = timeouts(socket);
        held(socket, slices, rules.short_segments, &mut accounts);
        counted(socket, slices, &lifetime, &mut accounts);
        for (from, to) in &timeouts {
            slices.spread(*from, *to, |index, ns| {
                accounts[index].timeout += share(ns, slices, index);
            });
        }
        let (name, acked_bytes) = (first.value.socket.to_string(), socket.acked_bytes);
        Some(Self { name, samples: Samples::Tcp(socket), acked_bytes, lifetime, accounts })
    }

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

pub(super) fn share(ns: i64, slices: Slices, index: usize) -> f64 {
    let (from, to) = slices.span(index);
    ns as f64 / (to - from).max(1) as f64
}

/// What a sample says as long as it stands.
fn held(socket: &Socket, slices: Slices, short_segments: i64, accounts: &mut [Account]) {
    let largest = socket.samples.iter().filter_map(|s| s.value.peer_window_bytes).max();
    // A row of an ACK does not have these: the last known stand on.
    let (mut unsent, mut window) = (None, None);
    for sample in &socket.samples {
        let row = sample.value;
        unsent = row.unsent_bytes.or(unsent);
        window = row.peer_window_bytes.or(window);
        slices.spread(sample.from_ns, sample.to_ns, |index, ns| {
            let part = share(ns, slices, index);
            let account = &mut accounts[index];
            let short = short_segments.saturating_mul(row.mss_bytes);
            if row.in_flight_bytes.saturating_add(short) > row.cwnd_bytes {
                account.window_full += part;
            }
            if row.state == TcpState::Recovery {
                account.recovery += part;
            }
            if let Some(unsent) = unsent {
                *account.unsent.get_or_insert(0.0) += if unsent > 0 { part } else { 0.0 };
            }
            if let (Some(window), Some(1..)) = (window, unsent) {
                // The kernel's account leaves out what its pacing delayed first.
                let full = row.in_flight_bytes.saturating_add(row.mss_bytes) > window;
                *account.receive_window.get_or_insert(0.0) += if full { part } else { 0.0 };
            }
            account.cwnd = row.cwnd_bytes;
            account.in_flight = row.in_flight_bytes;
            if row.cwnd_bytes > 0 {
                let filled = row.in_flight_bytes as f64 / row.cwnd_bytes as f64;
                account.filled += part * filled.clamp(0.0, 1.0);
            }
            if row.in_flight_bytes > 0 && row.busy_us.is_none() {
                account.busy += part;
            }
            account.pacing_bps = row.pacing_rate_bps;
            if let (Some(window), Some(largest)) = (window, largest) {
                let left = window as f64 / largest.max(1) as f64;
                account.window_left =
                    Some(account.window_left.map_or(left, |least| least.min(left)));
            }
        });
    }
}

/// What counters say by how much they grew.
fn counted(
    socket: &Socket,
    slices: Slices,
    life: &std::ops::Range<usize>,
    accounts: &mut [Account],
) {
    let counters = Counters::of(socket);
    for index in life.clone() {
        let (from, to) = slices.span(index);
        let account = &mut accounts[index];
        let grown = |of: fn(&Counts) -> i64| {
            Some(of(counters.at(to)?).saturating_sub(counters.at(from).map_or(0, of)))
        };
        let timed = |of: fn(&Counts) -> i64| {
            Some((grown(of)? as f64 * 1e3 / (to - from).max(1) as f64).clamp(0.0, 1.0))
        };
        if let Some(busy) = timed(|counts| counts.busy_us) {
            account.busy = busy;
            let counted = timed(|counts| counts.receive_us).unwrap_or(0.0);
            account.receive_window =
                Some(account.receive_window.map_or(counted, |seen| seen.max(counted)));
            account.send_buffer = timed(|counts| counts.send_us);
        }
        account.acked = acked(socket, from, to);
    }
}

fn acked(socket: &Socket, from_ns: i64, to_ns: i64) -> i64 {
    let at = |t_ns: i64| {
        let after = socket.samples.partition_point(|sample| sample.from_ns <= t_ns);
        after.checked_sub(1).map_or(0, |index| socket.samples[index].value.acked_bytes)
    };
    at(to_ns).saturating_sub(at(from_ns)).max(0)
}

/// The kernel's account at the samples that have it.
struct Counters(Vec<Counts>);

struct Counts {
    t_ns: i64,
    busy_us: i64,
    receive_us: i64,
    send_us: i64,
}

impl Counters {
    fn of(socket: &Socket) -> Self {
        let counts = socket.samples.iter().filter_map(|sample| {
            let row = sample.value;
            Some(Counts {
                t_ns: sample.from_ns,
                busy_us: row.busy_us?,
                receive_us: row.rwnd_limited_us.unwrap_or(0),
                send_us: row.sndbuf_limited_us.unwrap_or(0),
            })
        });
        Self(counts.collect())
    }

    /// Those in force at a time; `None` before the first.
    fn at(&self, t_ns: i64) -> Option<&Counts> {
        let after = self.0.partition_point(|counts| counts.t_ns <= t_ns);
        after.checked_sub(1).map(|index| &self.0[index])
    }
}

/// From the last progress before each timeout to the end of its repair.
fn timeouts(socket: &Socket) -> Vec<(i64, i64)> {
    let mut found: Vec<(i64, i64)> = Vec::new();
    let (mut progress_ns, mut acked, mut known) = (None, i64::MIN, None);
    let mut open = false;
    for sample in &socket.samples {
        let row = sample.value;
        let counted = row.timeouts.is_some_and(|now| known.is_some_and(|before| now > before));
        known = row.timeouts.or(known);
        if (counted || row.state == TcpState::Loss) && !open {
            found.push((progress_ns.unwrap_or(sample.from_ns), sample.to_ns));
            open = true;
        }
        if row.acked_bytes > acked {
            (acked, progress_ns) = (row.acked_bytes, Some(sample.from_ns));
            let repaired = row.state != TcpState::Loss;
            if open
                && repaired
                && let Some(last) = found.last_mut()
            {
                last.1 = sample.from_ns.max(last.0);
                open = false;
            }
        }
        if open && let Some(last) = found.last_mut() {
            last.1 = sample.to_ns;
        }
        if row.in_flight_bytes == 0 {
            // Nothing waits for an ACK: the wait for a timeout cannot have begun before.
            progress_ns = Some(sample.to_ns);
        }
    }
    found
}
