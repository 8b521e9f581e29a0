//! The TCP sockets that send media or load.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::flows;
use suiro_record::tables::{FlowRow, TcpRow};
use suiro_record::words::{Carries, FlowRole, TcpSource, Transport};

use crate::guess;

use crate::Records;
use crate::group::grouped;
use crate::held::{Stretch, distribution, hold};
use crate::period::Period;
use crate::stats::Distribution;

/// Connections that sent less than this share of what the busiest one sent are not counted. Where an endpoint reported its
/// connections, the busiest one is that to the same peer. The connection over which a player fetched a manifest is left
/// out, because it would otherwise stand next to that of the media for the whole trial, idle. Where only the port was
/// reported, the busiest one is that of the trial: iperf3's connection for control is left out.
const LEAST_SHARE: f64 = 0.01;

/// A socket and its samples.
pub(crate) struct Socket<'a> {
    pub host: &'a str,
    /// Each sample and how long it stood; the last one of a socket stands for no time.
    pub samples: Vec<Stretch<&'a TcpRow>>,
    /// The samples taken at an ACK.
    pub acks: Vec<&'a TcpRow>,
    /// Payload acknowledged by the peer at the trial's last sample.
    pub acked_bytes: i64,
    /// What of it was acknowledged within the period.
    pub acked_within_bytes: i64,
    /// Segments retransmitted within the period.
    pub retransmits: i64,
}

/// The sockets that send media or load, as endpoints reported.
pub(crate) fn media_sockets(records: &Records, period: Period) -> Vec<Socket<'_>> {
    let rows = grouped(&records.tcp, |row| (&*row.host, &*row.socket), |row| row.t_ns);
    let end_ns = period.to_ns;
    let mut sockets: Vec<(Socket, Sends, &str)> = Vec::new();
    for ((host, name), rows) in rows {
        let within = || rows.iter().filter(|row| row.t_ns <= end_ns);
        let most = |of: fn(&TcpRow) -> i64| within().map(|row| of(row)).max().unwrap_or(0);
        let (acked_bytes, received) = (most(|row| row.acked_bytes), most(|row| row.received_bytes));
        let sends = match records.flows.is_empty() {
            true if guess::sends(acked_bytes, received) => Sends::Perhaps,
            true => Sends::Nothing,
            false => sends(&records.flows, name, acked_bytes > received),
        };
        if sends != Sends::Nothing {
            let within_period = |of: fn(&TcpRow) -> i64| {
                let before = rows.iter().filter(|row| period.is_counted_before(row.t_ns));
                most(of).saturating_sub(before.map(|row| of(row)).max().unwrap_or(0))
            };
            let acked_within_bytes = within_period(|row| row.acked_bytes);
            let retransmits = within_period(|row| row.retransmits);
            let last_ns = rows.last().map_or(0, |row| row.t_ns);
            let samples = hold(rows.iter().map(|row| (row.t_ns, *row)), last_ns, end_ns);
            let samples = period.cut(samples);
            let at_ack =
                |row: &&TcpRow| row.source == TcpSource::TcpProbe && row.t_ns >= period.from_ns;
            let acks = within().copied().filter(at_ack).collect();
            let socket =
                Socket { host, samples, acks, acked_bytes, acked_within_bytes, retransmits };
            sockets.push((socket, sends, peer(name)));
        }
    }
    without_idle(sockets)
}

/// The sockets that sent at least [`LEAST_SHARE`] of what the busiest one did.
fn without_idle<'a>(sockets: Vec<(Socket<'a>, Sends, &str)>) -> Vec<Socket<'a>> {
    let mut busiest = 0;
    let mut busiest_to: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for (socket, _, peer) in &sockets {
        busiest = busiest.max(socket.acked_bytes);
        let most = busiest_to.entry((socket.host, peer)).or_default();
        *most = (*most).max(socket.acked_bytes);
    }
    let is_busy = |(socket, sends, peer): &(Socket, Sends, &str)| {
        let most = match sends {
            Sends::Media => busiest_to[&(socket.host, *peer)],
            Sends::Perhaps | Sends::Nothing => busiest,
        };
        socket.acked_bytes as f64 >= most as f64 * LEAST_SHARE
    };
    sockets.into_iter().filter(is_busy).map(|(socket, ..)| socket).collect()
}

/// The address of the other end of a socket, `LOCAL:PORT>REMOTE:PORT`, without its port.
fn peer(socket: &str) -> &str {
    let remote = socket.split_once('>').map_or(socket, |(_, remote)| remote);
    remote.rsplit_once(':').map_or(remote, |(address, _)| address)
}

/// What a socket sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sends {
    /// Media, on a connection that an endpoint reported by itself.
    Media,
    /// Media or load, if it is busy: only the port was reported, or nothing.
    Perhaps,
    /// Neither: it receives them, or carries something else.
    Nothing,
}

/// What a socket, `LOCAL:PORT>REMOTE:PORT`, sends, as an endpoint reported. `sent_more`: than it received.
fn sends(told: &[FlowRow], socket: &str, sent_more: bool) -> Sends {
    let row = socket.split_once('>').and_then(|(local, remote)| {
        let row = flows::find(told, Transport::Tcp, (local, remote))?;
        let own = flows::is_end(&row.local, local) && flows::is_end(&row.remote, remote);
        Some((row, own))
    });
    let Some((row, own)) = row else { return Sends::Nothing };
    match row.carries {
        Carries::HttpMedia | Carries::Video | Carries::Audio => {
            match own == matches!(row.role, FlowRole::Server | FlowRole::Sender) {
                true => Sends::Media,
                false => Sends::Nothing,
            }
        }
        // Which of the two ends sends it is not reported.
        Carries::Load | Carries::Unknown if sent_more => Sends::Perhaps,
        Carries::Load | Carries::Unknown => Sends::Nothing,
        Carries::Feedback | Carries::Control | Carries::Web => Sends::Nothing,
    }
}

/// Media sockets that belong together: all of a trial, or those of one sending host.
pub(crate) struct Senders<'a> {
    /// The host; none for all of them.
    pub host: Option<&'a str>,
    pub sockets: Vec<&'a Socket<'a>>,
    /// The time that metrics are about.
    pub period: Period,
}

/// All senders, then, if several hosts send, each host's.
pub(crate) fn senders<'v>(sockets: &'v [Socket<'_>], period: Period) -> Vec<Senders<'v>> {
    let group = |host: Option<&'v str>| {
        let of_host = |socket: &&Socket| host.is_none_or(|host| socket.host == host);
        Senders { host, sockets: sockets.iter().filter(of_host).collect(), period }
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

    /// What `value` makes of the samples taken at ACKs, each with the same weight.
    pub fn per_ack(&self, value: impl Fn(&TcpRow) -> Option<f64>) -> Distribution {
        let acks = self.sockets.iter().flat_map(|socket| &socket.acks);
        Distribution::weighted(acks.filter_map(|row| Some((value(row)?, 1.0))))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_endpoints_reported_says_which_sockets_send() {
        let row = |role, local: &str, remote: &str, carries| FlowRow {
            t_ns: suiro_units::Time::ZERO,
            endpoint: "it".into(),
            role,
            protocol: Transport::Tcp,
            local: local.into(),
            remote: remote.into(),
            carries,
            flows: 1,
            closed_ns: None,
            peer: None,
        };
        let (viewer, origin) = ("10.0.0.2:4000", "10.0.0.1:8080");
        let told = [
            row(FlowRole::Client, viewer, origin, Carries::HttpMedia),
            row(FlowRole::Server, origin, "10.0.0.2:4001", Carries::HttpMedia),
            row(FlowRole::Server, "*:5201", "*:*", Carries::Load),
            row(FlowRole::Client, "10.0.0.2:4002", "10.0.0.1:80", Carries::Web),
        ];
        let of = |local: &str, remote: &str, more| sends(&told, &format!("{local}>{remote}"), more);
        for more in [false, true] {
            assert_eq!(of(origin, viewer, more), Sends::Media);
            assert_eq!(of(viewer, origin, more), Sends::Nothing);
            assert_eq!(of(origin, "10.0.0.2:4001", more), Sends::Media);
            assert_eq!(of("10.0.0.2:4001", origin, more), Sends::Nothing);
            assert_eq!(of("10.0.0.1:80", "10.0.0.2:4002", more), Sends::Nothing);
            assert_eq!(of("10.0.0.1:9", "10.0.0.2:9", more), Sends::Nothing);
        }
        assert_eq!(of("10.0.0.1:5201", "10.0.0.2:9", true), Sends::Perhaps);
        assert_eq!(of("10.0.0.1:5201", "10.0.0.2:9", false), Sends::Nothing);
        assert_eq!(of("10.0.0.2:9", "10.0.0.1:5201", true), Sends::Perhaps);
    }
}
