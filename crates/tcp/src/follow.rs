//! Which sockets a host has, and the last row of each.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::os::unix::fs::FileExt;

use suiro_record::tables::TcpRow;
use suiro_record::words::TcpSource;
use suiro_record::{Text, Writer};
use suiro_units::{Time, to_i64};

use crate::diag::{STATE_ESTABLISHED, STATE_SYN_SENT, STATES_WITH_DATA, Sample, SocketId};
use crate::info::TcpInfo;
use crate::netlink::{Answer, Diagnostics};
use crate::probe::Probe;
use crate::sampling::{Counts, LIST_EVERY, REPEAT_EVERY, SOCKETS_MAX, SamplerError, SamplerSpec};

/// What to do with a row that repeats the last one.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Repeats {
    LeaveOut,
    Write,
}

/// Follows the sockets of the network namespace that it was made in.
pub(crate) struct Follower {
    diagnostics: Diagnostics,
    probe: Option<Probe>,
    open: OpenSockets,
    /// `None`: list them at the next sample.
    listed: Option<Time>,
    table: Table,
    ids: Vec<SocketId>,
}

impl Follower {
    pub(crate) fn new(spec: &SamplerSpec) -> Result<Self, SamplerError> {
        let (host, dir) = (&spec.host, &spec.dir);
        // Open what may fail permanently before creating the file.
        let probe = spec.each_ack.then(Probe::start).transpose()?;
        Ok(Self {
            diagnostics: Diagnostics::open()?,
            probe,
            open: OpenSockets::open(),
            listed: None,
            table: Table::new(host, Writer::create_of(dir, host)?),
            ids: Vec::new(),
        })
    }

    /// Adds the ACKs since the last call, with times counted from that zero of CLOCK_MONOTONIC.
    pub(crate) fn trace(&mut self, epoch_ns: u64) -> Result<(), SamplerError> {
        let Some(probe) = &self.probe else { return Ok(()) };
        for ack in probe.acks()? {
            let now = Time::from_nanos(ack.monotonic_ns.saturating_sub(epoch_ns));
            self.table.counts.acks += 1;
            let (info, congestion) = (Some(ack.info), Some(ack.congestion()));
            let sample = Sample { id: ack.id, state: STATE_ESTABLISHED, info, congestion };
            self.table.take(now, &sample, TcpSource::TcpProbe, Repeats::LeaveOut)?;
        }
        Ok(())
    }

    /// Samples every socket once.
    pub(crate) fn sample(&mut self, now: Time, repeats: Repeats) -> Result<(), SamplerError> {
        self.table.counts.samples += 1;
        let changed = self.open.changed();
        let fresh = self.listed.is_some_and(|at| now.saturating_since(at) < LIST_EVERY);
        if changed || !fresh { self.list(now, repeats) } else { self.ask(now, repeats) }
    }

    /// Every socket in the namespace, by one walk of the kernel's table.
    fn list(&mut self, now: Time, repeats: Repeats) -> Result<(), SamplerError> {
        let Self { diagnostics, table, .. } = self;
        let states = STATES_WITH_DATA | 1 << STATE_SYN_SENT;
        table.sockets.values_mut().for_each(|socket| socket.seen = false);
        diagnostics.all(states, |sample| table.take(now, &sample, TcpSource::SockDiag, repeats))?;
        table.sockets.retain(|_, socket| socket.seen);
        self.listed = Some(now);
        Ok(())
    }

    /// Only the known sockets, each requested by its identity.
    fn ask(&mut self, now: Time, repeats: Repeats) -> Result<(), SamplerError> {
        let Self { diagnostics, table, ids, .. } = self;
        ids.clear();
        ids.extend(table.sockets.values().map(|socket| socket.id));
        let (mut answers, mut gone) = (0, false);
        diagnostics.each(ids, |index, answer| {
            answers += 1;
            match answer {
                Answer::Sample(sample) => table.take(now, &sample, TcpSource::SockDiag, repeats),
                Answer::Gone => {
                    gone = true;
                    table.sockets.remove(&ids[index].cookie());
                    Ok(())
                }
            }
        })?;
        table.counts.unanswered += ids.len() as u64 - answers;
        if gone {
            // If one socket closed, another may have opened without changing the count.
            self.listed = None;
        }
        Ok(())
    }

    /// Finishes the file.
    pub(crate) fn close(self) -> Result<Counts, SamplerError> {
        self.table.writer.close()?;
        let lost = self.probe.as_ref().map(Probe::lost).transpose()?;
        Ok(Counts { acks_lost: lost.unwrap_or(0), ..self.table.counts })
    }
}

/// How many sockets of the calling thread's network namespace a [`Sampler`](crate::Sampler) would
/// follow now: a way to find out whether this kernel has socket diagnostics.
///
/// # Errors
/// [`SamplerError`] if the kernel does not have them.
pub fn count_sockets() -> Result<usize, SamplerError> {
    let mut count = 0;
    Diagnostics::open()?.all(STATES_WITH_DATA | 1 << STATE_SYN_SENT, |_| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

/// The sockets and their rows.
struct Table {
    sockets: BTreeMap<u64, Socket>,
    words: Words,
    writer: Writer<TcpRow>,
    counts: Counts,
}

struct Socket {
    id: SocketId,
    text: Text,
    last: Option<TcpRow>,
    seen: bool,
}

impl Table {
    fn new(host: &str, writer: Writer<TcpRow>) -> Self {
        Self {
            sockets: BTreeMap::new(),
            words: Words::new(host),
            writer,
            counts: Counts::default(),
        }
    }

    fn take(
        &mut self,
        now: Time,
        sample: &Sample<'_>,
        source: TcpSource,
        repeats: Repeats,
    ) -> Result<(), SamplerError> {
        let Some(socket) = follow(&mut self.sockets, &mut self.counts, sample.id) else {
            return Ok(());
        };
        socket.seen = true;
        let has_data = STATES_WITH_DATA.unbounded_shr(sample.state.into()) & 1 == 1;
        let (true, Some(info), Some(congestion)) = (has_data, sample.info, sample.congestion)
        else {
            return Ok(());
        };
        let row = self.words.row(now, &socket.text, source, (&info, congestion));
        let news = socket.last.as_ref().is_none_or(|last| is_news(last, &row));
        if news || repeats == Repeats::Write {
            socket.last = Some(row.clone());
            self.counts.rows += 1;
            self.writer.push(row)?;
        }
        Ok(())
    }
}

/// The entry of `id`, created if there is room.
fn follow<'a>(
    sockets: &'a mut BTreeMap<u64, Socket>,
    counts: &mut Counts,
    id: SocketId,
) -> Option<&'a mut Socket> {
    let full = sockets.len() >= SOCKETS_MAX;
    match sockets.entry(id.cookie()) {
        Entry::Occupied(known) => Some(known.into_mut()),
        Entry::Vacant(_) if full => {
            counts.over_limit += 1;
            None
        }
        Entry::Vacant(new) => {
            counts.sockets += 1;
            let text = format!("{}>{}", id.local(), id.remote()).into();
            Some(new.insert(Socket { id, text, last: None, seen: false }))
        }
    }
}

/// True if `row` differs from `last` in more than its time and source, or is due anyway.
fn is_news(last: &TcpRow, row: &TcpRow) -> bool {
    let age_ns = u64::try_from(row.t_ns - last.t_ns).unwrap_or(0);
    let again = || TcpRow { t_ns: row.t_ns, source: row.source, ..last.clone() };
    age_ns >= REPEAT_EVERY.as_nanos() || again() != *row
}

/// The texts that rows share, each allocated once instead of once per row.
struct Words {
    host: Text,
    others: BTreeMap<String, Text>,
}

impl Words {
    fn new(host: &str) -> Self {
        Self { host: host.into(), others: BTreeMap::new() }
    }

    fn shared(&mut self, word: &str) -> Text {
        if let Some(text) = self.others.get(word) {
            return text.clone();
        }
        let text: Text = word.into();
        self.others.insert(word.to_owned(), text.clone());
        text
    }

    /// A row: segments and bytes/s of the kernel become bytes and bit/s.
    fn row(
        &mut self,
        now: Time,
        socket: &Text,
        source: TcpSource,
        (info, congestion): (&TcpInfo, &str),
    ) -> TcpRow {
        let mss = u64::from(info.snd_mss);
        let bytes = |segments: u64| to_i64(segments.saturating_mul(mss));
        let rate = |bytes_per_second: u64| to_i64(bytes_per_second.saturating_mul(8));
        TcpRow {
            t_ns: now.as_nanos_i64(),
            host: self.host.clone(),
            socket: socket.clone(),
            source,
            congestion: self.shared(congestion),
            state: info.congestion_state(),
            cwnd_bytes: bytes(info.snd_cwnd.into()),
            ssthresh_bytes: info.snd_ssthresh.map(|segments| bytes(segments.into())),
            mss_bytes: info.snd_mss.into(),
            srtt_us: info.rtt_us.into(),
            rttvar_us: info.rttvar_us.into(),
            min_rtt_us: info.min_rtt_us.map(Into::into),
            in_flight_bytes: bytes(info.in_flight()),
            pacing_rate_bps: info.pacing_rate.map(rate),
            delivery_rate_bps: info.delivery_rate.map(rate),
            retransmits: info.total_retrans.into(),
            acked_bytes: to_i64(info.bytes_acked),
            received_bytes: to_i64(info.bytes_received),
            app_limited: info.limits.app_limited,
            unsent_bytes: info.limits.unsent_bytes.map(Into::into),
            peer_window_bytes: info.limits.peer_window_bytes.map(Into::into),
            busy_us: info.limits.busy_us.map(to_i64),
            rwnd_limited_us: info.limits.rwnd_limited_us.map(to_i64),
            sndbuf_limited_us: info.limits.sndbuf_limited_us.map(to_i64),
            rto_us: info.limits.rto_us.map(Into::into),
            timeouts: info.limits.timeouts.map(Into::into),
        }
    }
}

/// The number of TCP sockets in the namespace, by the kernel's own count. It is cheap to read, and
/// when it changes the sockets are listed again. Where /proc does not show it, a new socket is still
/// found within [`LIST_EVERY`].
struct OpenSockets {
    files: Vec<File>,
    count: Option<u64>,
}

impl OpenSockets {
    /// Opens the counters of the calling thread's network namespace.
    fn open() -> Self {
        let paths = ["/proc/thread-self/net/sockstat", "/proc/thread-self/net/sockstat6"];
        let files = paths.iter().filter_map(|path| File::open(path).ok()).collect();
        Self { files, count: None }
    }

    /// True if the count has changed since the last call.
    fn changed(&mut self) -> bool {
        let mut buffer = [0; 1024];
        let mut read = |file: &File| {
            let length = file.read_at(&mut buffer, 0).ok()?;
            tcp_in_use(std::str::from_utf8(&buffer[..length]).ok()?)
        };
        let count = self.files.iter().map(&mut read).sum();
        std::mem::replace(&mut self.count, count) != count
    }
}

/// `TCP: inuse 3 orphan 0 …` of /proc/net/sockstat, `TCP6: inuse 3` of sockstat6.
fn tcp_in_use(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("TCP"))?;
    line.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_open_sockets() {
        let text =
            "sockets: used 9\nTCP: inuse 3 orphan 0 tw 1 alloc 4 mem 0\nUDP: inuse 1 mem 0\n";
        assert_eq!(tcp_in_use(text), Some(3));
        assert_eq!(tcp_in_use("TCP6: inuse 12\nUDP6: inuse 0\n"), Some(12));
        assert_eq!(tcp_in_use("UDP6: inuse 0\n"), None);
    }
}
