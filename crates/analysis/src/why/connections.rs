//! What a sender over QUIC says of its connection, slice by slice: HTTP/3.

use suiro_record::flows::is_end;
use suiro_record::tables::{FlowRow, QuicRow};
use suiro_record::words::{Carries, FlowRole, Transport};

use super::rules::Rules;
use super::sender::{Account, Samples, Sender, arrived, bytes, growth, lifetime, share};
use super::slices::Slices;
use crate::group::grouped;
use crate::held::{Stretch, hold};
use crate::view::View;

/// The least that a path of QUIC carries in a datagram (RFC 9000 §14), in bytes.
const DATAGRAM: i64 = 1200;

/// The connections by which players fetch over HTTP/3.
pub(super) fn senders<'v>(view: &'v View<'_>, slices: Slices) -> Vec<Sender<'v>> {
    let asks = |row: &&FlowRow| {
        (row.protocol, row.role, row.carries)
            == (Transport::Udp, FlowRole::Client, Carries::HttpMedia)
    };
    let flows: Vec<&FlowRow> = view.records.flows.iter().filter(asks).collect();
    if flows.is_empty() {
        return Vec::new();
    }
    let of = |row: &'v QuicRow| (&*row.endpoint, row.session);
    let connections = grouped(&view.records.quic, of, |row| row.t_ns.as_nanos_i64());
    let named = connections.into_iter().filter_map(|((endpoint, _), rows)| {
        let remote = rows.iter().find_map(|row| row.remote.as_deref())?;
        let of =
            |row: &&&FlowRow| row.peer.as_deref() == Some(endpoint) && is_end(&row.local, remote);
        let name = format!("{}>{remote}", flows.iter().find(of)?.remote);
        sender(name, &rows, slices, view.duration_ns, view.rules)
    });
    named.collect()
}

fn sender<'v>(
    name: String,
    rows: &[&'v QuicRow],
    slices: Slices,
    end_ns: i64,
    rules: Rules,
) -> Option<Sender<'v>> {
    let last_ns = rows.last()?.t_ns.as_nanos_i64();
    let samples = hold(rows.iter().map(|row| (row.t_ns.as_nanos_i64(), *row)), last_ns, end_ns);
    let lifetime = lifetime(&samples, slices)?;
    let mut accounts = vec![Account::default(); slices.count];
    held(&samples, slices, rules.short_segments, &mut accounts);
    for index in lifetime.clone() {
        let (from, to) = slices.span(index);
        accounts[index].acked = growth(&samples, (from, to), arrived);
    }
    for (from, to) in recoveries(&samples) {
        slices.spread(from, to, |index, ns| accounts[index].recovery += share(ns, slices, index));
    }
    let acked_bytes = arrived(samples.last()?.value);
    Some(Sender { name, samples: Samples::Quic(samples), acked_bytes, lifetime, accounts })
}

/// What a sample says as long as it stands.
fn held(samples: &[Stretch<&QuicRow>], slices: Slices, short: i64, accounts: &mut [Account]) {
    for sample in samples {
        let row = sample.value;
        let (Some(window), Some(in_flight)) = (row.cwnd_bytes, row.in_flight_bytes) else {
            continue;
        };
        let (window, in_flight) = (bytes(window), bytes(in_flight));
        let waits = row.waiting_bytes.map(|waiting| waiting > 0);
        slices.spread(sample.from_ns, sample.to_ns, |index, ns| {
            let part = share(ns, slices, index);
            let account = &mut accounts[index];
            if in_flight > 0 || waits == Some(true) {
                account.busy += part;
            }
            if in_flight.saturating_add(short.saturating_mul(DATAGRAM)) > window {
                account.window_full += part;
            }
            if let Some(waits) = waits {
                *account.unsent.get_or_insert(0.0) += if waits { part } else { 0.0 };
            }
            if window > 0 {
                account.filled += part * (in_flight as f64 / window as f64).clamp(0.0, 1.0);
            }
            account.cwnd = window;
            account.in_flight = in_flight;
            account.pacing_bps = row.pacing_bps.map(|rate| bytes(rate.as_bps()));
        });
    }
}

/// A round trip from each sample on that has more lost packets than the one before: until then, the loss is being repaired
/// (RFC 9002 §7.3.2).
fn recoveries(samples: &[Stretch<&QuicRow>]) -> Vec<(i64, i64)> {
    let mut found: Vec<(i64, i64)> = Vec::new();
    let mut known = samples.first().and_then(|sample| sample.value.lost_packets);
    for sample in samples {
        let row = sample.value;
        if row.lost_packets > known {
            let to = sample.from_ns.saturating_add(row.srtt_ns.as_nanos_i64());
            match found.last_mut() {
                Some(last) if last.1 >= sample.from_ns => last.1 = last.1.max(to),
                _ => found.push((sample.from_ns, to)),
            }
        }
        known = known.max(row.lost_packets);
    }
    found
}
