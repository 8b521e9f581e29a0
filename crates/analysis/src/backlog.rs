//! When senders had data to send, by the tables that they write themselves: a flow of which no packet comes may be one that may
//! not send.

use std::collections::BTreeMap;
use std::ops::Range;

use suiro_record::flows::{find_named, is_end};
use suiro_record::tables::{QuicRow, RateRow, TcpRow, WebrtcRow};
use suiro_record::words::FlowRole;

use crate::Records;
use crate::flow::{Flow, Over};
use crate::group::grouped;
use crate::guess;

/// For how long a sample stands at most, in nanoseconds: connections are sampled once a second or more often.
const STANDS_NS: i64 = 2_000_000_000;

/// Packets may come to the first link so long after the circuit breaker stopped their sender, in nanoseconds.
const UNDER_WAY_NS: i64 = 1_000_000_000;

/// When one sender had data to send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// Times in which it had data, sent and not acknowledged or not sent yet; sorted.
    pub times: Vec<Range<i64>>,
    /// How long some of it had not been sent yet.
    pub waited_ns: i64,
}

impl Backlog {
    /// It had data in this time, which begins no earlier than those before.
    fn push(&mut self, time: Range<i64>, waits: bool) {
        if waits {
            self.waited_ns = self.waited_ns.saturating_add(time.end.saturating_sub(time.start));
        }
        match self.times.last_mut() {
            Some(last) if time.start <= last.end => last.end = last.end.max(time.end),
            _ => self.times.push(time),
        }
    }

    /// The sender was gone from then on.
    fn end_at(&mut self, closed_ns: i64) {
        self.times.retain(|time| time.start < closed_ns);
        if let Some(last) = self.times.last_mut() {
            last.end = last.end.min(closed_ns);
        }
    }
}

/// The tables of all senders.
pub(crate) struct Backlogs<'a> {
    records: &'a Records,
    duration_ns: i64,
    rate: BTreeMap<&'a str, Vec<&'a RateRow>>,
    tcp: BTreeMap<&'a str, Vec<&'a TcpRow>>,
    webrtc: BTreeMap<(&'a str, u64), Vec<&'a WebrtcRow>>,
    quic: BTreeMap<(&'a str, u64), Vec<&'a QuicRow>>,
}

impl<'a> Backlogs<'a> {
    pub fn of(records: &'a Records, duration_ns: i64) -> Self {
        let sends = |row: &&WebrtcRow| row.role == FlowRole::Sender;
        let webrtc = records.webrtc.iter().filter(sends);
        Self {
            records,
            duration_ns,
            rate: grouped(&records.rate, |row| &*row.endpoint, |row| row.t_ns),
            tcp: grouped(&records.tcp, |row| &*row.socket, |row| row.t_ns),
            webrtc: grouped(
                webrtc,
                |row| (&*row.endpoint, row.session),
                |it| it.t_ns.as_nanos_i64(),
            ),
            quic: grouped(
                &records.quic,
                |row| (&*row.endpoint, row.session),
                |row| row.t_ns.as_nanos_i64(),
            ),
        }
    }

    /// That of the sender of a flow; `None` if it wrote nothing about it, not even when it closed it.
    pub fn of_flow(&self, flow: &Flow) -> Option<Backlog> {
        let found = match flow.over {
            Over::Rtp => self.rate.get(&*flow.name).map(|rows| self.rtp(rows, flow)),
            Over::Tcp => {
                let socket = flow.flow.split_once(' ').and_then(|(_, ends)| self.tcp.get(ends));
                socket.map(|rows| tcp(rows))
            }
            Over::Webrtc => self.webrtc(flow.flow),
            Over::Moq => self.moq(flow.flow),
        };
        let told = find_named(&self.records.flows, flow.flow);
        match told.and_then(|row| row.closed_ns) {
            Some(closed) => {
                let mut backlog = found.unwrap_or_default();
                backlog.end_at(closed.as_nanos_i64());
                Some(backlog)
            }
            None => found,
        }
    }

    /// Periods in which a sender of RTP sent nothing although there was video. In a pause there is none. One that the circuit
    /// breaker stopped would go on.
    fn rtp(&self, rows: &[&RateRow], flow: &Flow) -> Backlog {
        let has = |row: &RateRow| row.media_bps > 0 || row.queue_bytes > 0;
        let mut backlog = Backlog::default();
        let mut had = false;
        for row in rows {
            if has(row) && row.send_bps == 0 {
                // Of the first such period after a pause it is not known when the video began.
                let before = if had { row.period_ns } else { 0 };
                backlog.push(row.t_ns.saturating_sub(before)..row.t_ns.saturating_add(1), true);
            }
            had = has(row);
        }
        let broken = rows.iter().find(|row| row.broken.is_some()).map(|row| row.t_ns);
        let last = flow.sent().last().copied().unwrap_or(0);
        if let Some(broken) = broken.filter(|at| last <= at.saturating_add(UNDER_WAY_NS)) {
            backlog.push(broken..self.duration_ns, true);
        }
        backlog
    }

    /// The time of a connection at its sender: the camera of a publisher has frames all the time.
    fn webrtc(&self, flow: &str) -> Option<Backlog> {
        let (_, ends) = flow.split_once(' ')?;
        let mut sessions = self.records.webrtc_sessions.iter();
        let session = sessions
            .find(|row| row.role == FlowRole::Sender && row.pair.as_deref() == Some(ends))?;
        let mut backlog = Backlog::default();
        for row in self.webrtc.get(&(&*session.endpoint, session.session))? {
            let t_ns = row.t_ns.as_nanos_i64();
            let from = t_ns.saturating_sub(row.period_ns.as_nanos_i64());
            backlog.push(from..t_ns, row.queue_bytes.is_some_and(|bytes| bytes > 0));
        }
        Some(backlog)
    }

    fn moq(&self, flow: &str) -> Option<Backlog> {
        let (from, to) = guess::ends(flow)?;
        let told = find_named(&self.records.flows, flow)?;
        let goes_out = is_end(&told.local, from) && is_end(&told.remote, to);
        let sends = |row: &QuicRow| match (row.endpoint == told.endpoint, row.remote.as_deref()) {
            (own, Some(remote)) => own == goes_out && remote == to,
            (own, None) => own && goes_out,
        };
        let opened = told.t_ns.as_nanos_i64();
        let mut all = self.quic.values();
        let rows = all.find(|rows| {
            let last = rows.last().filter(|last| last.t_ns.as_nanos_i64() >= opened);
            last.is_some_and(|last| sends(last))
        })?;
        Some(quic(rows))
    }
}

/// Until when a sample stands.
fn until(t_ns: i64, next_ns: Option<i64>) -> i64 {
    next_ns.unwrap_or(t_ns.saturating_add(1)).min(t_ns.saturating_add(STANDS_NS))
}

fn tcp(rows: &[&TcpRow]) -> Backlog {
    let mut backlog = Backlog::default();
    // A row at an ACK does not have it.
    let mut unsent = 0;
    for (place, row) in rows.iter().enumerate() {
        unsent = row.unsent_bytes.unwrap_or(unsent);
        if row.in_flight_bytes > 0 || unsent > 0 {
            let next = rows.get(place + 1).map(|next| next.t_ns);
            backlog.push(row.t_ns..until(row.t_ns, next), unsent > 0);
        }
    }
    backlog
}

fn quic(rows: &[&QuicRow]) -> Backlog {
    let mut backlog = Backlog::default();
    for (place, row) in rows.iter().enumerate() {
        let waits = row.waiting_bytes.is_some_and(|bytes| bytes > 0);
        // A browser does not report what is in flight, but its encoder has frames all the time.
        let sends = match row.in_flight_bytes {
            Some(bytes) => bytes > 0,
            None => row.target_bps.is_some(),
        };
        if sends || waits {
            let t_ns = row.t_ns.as_nanos_i64();
            let next = rows.get(place + 1).map(|next| next.t_ns.as_nanos_i64());
            backlog.push(t_ns..until(t_ns, next), waits);
        }
    }
    backlog
}
