//! The TCP sockets that carry media.

use std::collections::BTreeSet;

use suiro_record::flows;
use suiro_record::tables::{FlowRow, TcpRow};
use suiro_record::words::{Carries, FlowRole, Transport};

use crate::guess;

use crate::held::{Stretch, distribution, hold};
use crate::stats::Distribution;
use crate::view::{View, grouped};
use crate::{Records, duration_ns};

/// A socket and its samples.
pub(crate) struct Socket<'a> {
    pub host: &'a str,
    /// Each sample and how long it stood; the last one of a socket stands for no time.
    pub samples: Vec<Stretch<&'a TcpRow>>,
    /// Payload acknowledged by the peer at the trial's last sample.
    pub acked_bytes: i64,
    /// Whether an endpoint reported that it sends media; false if that is guessed.
    pub told: bool,
    /// Segments retransmitted by the trial's last sample.
    pub retransmits: i64,
}

/// The sockets that carry media, as endpoints reported; of those that none reported, those that had more
/// payload acknowledged than they received, and at least a hundredth of what the busiest socket had.
pub(crate) fn media_sockets<'a>(
    trial: &suiro_record::Trial,
    records: &'a Records,
) -> Vec<Socket<'a>> {
    let rows = grouped(&records.tcp, |row| (&*row.host, &*row.socket), |row| row.t_ns);
    let end_ns = duration_ns(trial);
    let mut sockets: Vec<Socket> = Vec::new();
    for ((host, name), rows) in rows {
        let within = || rows.iter().filter(|row| row.t_ns <= end_ns);
        let most = |of: fn(&TcpRow) -> i64| within().map(|row| of(row)).max().unwrap_or(0);
        let (acked_bytes, received) = (most(|row| row.acked_bytes), most(|row| row.received_bytes));
        let told = sends_media(&records.flows, name);
        if told.unwrap_or_else(|| guess::sends(acked_bytes, received)) {
            let told = told.is_some();
            let retransmits = most(|row| row.retransmits);
            let last_ns = rows.last().map_or(0, |row| row.t_ns);
            let samples = hold(rows.iter().map(|row| (row.t_ns, *row)), last_ns, end_ns);
            sockets.push(Socket { host, samples, acked_bytes, told, retransmits });
        }
    }
    let busiest = sockets.iter().map(|socket| socket.acked_bytes).max().unwrap_or(0);
    sockets.retain(|socket| socket.told || guess::is_busy(socket, busiest));
    sockets
}

/// Whether a socket, `LOCAL:PORT>REMOTE:PORT`, sends media, as an endpoint reported; `None` if none
/// reported what it carries or which side sends.
fn sends_media(told: &[FlowRow], socket: &str) -> Option<bool> {
    let (local, remote) = socket.split_once('>')?;
    let row = flows::find(told, Transport::Tcp, (local, remote))?;
    match row.carries {
        Carries::HttpMedia | Carries::Video | Carries::Audio => {
            let own = flows::is_end(&row.local, local) && flows::is_end(&row.remote, remote);
            Some(own == matches!(row.role, FlowRole::Server | FlowRole::Sender))
        }
        Carries::Feedback | Carries::Control => Some(false),
        Carries::Web | Carries::Load | Carries::Unknown => None,
    }
}

/// Media sockets that belong together: all of a trial, or those of one sending host.
pub(crate) struct Senders<'a> {
    /// The host; none for all of them.
    pub host: Option<&'a str>,
    pub sockets: Vec<&'a Socket<'a>>,
    /// The trial's length.
    pub duration_ns: i64,
}

/// All senders, then, if several hosts send, each host's.
pub(crate) fn senders<'v>(view: &'v View<'_>) -> Vec<Senders<'v>> {
    let (sockets, duration_ns) = (view.sockets(), view.duration_ns);
    let group = |host: Option<&'v str>| {
        let of_host = |socket: &&Socket| host.is_none_or(|host| socket.host == host);
        Senders { host, sockets: sockets.iter().filter(of_host).collect(), duration_ns }
    };
    let hosts: BTreeSet<&str> = sockets.iter().map(|socket| socket.host).collect();
    match hosts.len() {
        0 => Vec::new(),
        1 => vec![group(None)],
        _ => std::iter::once(None).chain(hosts.into_iter().map(Some)).map(group).collect(),
    }
}

impl Senders<'_> {
    /// What `value` makes of the samples, over time and sockets.
    pub fn over_time(&self, value: impl Fn(&TcpRow) -> Option<f64>) -> Distribution {
        let samples = self.sockets.iter().flat_map(|socket| &socket.samples);
        distribution(samples, |row| value(row))
    }

    /// The stretches of `value`, for bins.
    pub fn stretches(
        &self,
        value: impl Fn(&TcpRow) -> Option<f64>,
    ) -> impl Iterator<Item = Stretch<f64>> {
        let samples = self.sockets.iter().flat_map(|socket| &socket.samples);
        samples.filter_map(move |sample| {
            let value = value(sample.value)?;
            Some(Stretch { from_ns: sample.from_ns, to_ns: sample.to_ns, value })
        })
    }
}

/// The smoothed round-trip time in milliseconds; `None` before the first measurement.
pub(crate) fn srtt_ms(row: &TcpRow) -> Option<f64> {
    (row.srtt_us > 0).then(|| row.srtt_us as f64 / 1e3)
}
