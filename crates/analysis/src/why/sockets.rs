//! What a TCP sender's own account says, slice by slice.

use suiro_record::words::TcpState;

use super::rules::Rules;
use super::sender::{Account, Samples, Sender, growth, lifetime, share};
use super::slices::Slices;
use crate::tcp::Socket;

/// `None` for a socket without samples within the trial.
pub(super) fn sender<'v>(
    socket: &'v Socket<'v>,
    slices: Slices,
    rules: Rules,
) -> Option<Sender<'v>> {
    let first = socket.samples.first()?;
    let lifetime = lifetime(&socket.samples, slices)?;
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
    Some(Sender { name, samples: Samples::Tcp(socket), acked_bytes, lifetime, accounts })
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
        account.acked = growth(&socket.samples, (from, to), |row| row.acked_bytes);
    }
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
