//! The report as text for a terminal.

use std::collections::BTreeMap;
use std::fmt::Write;
use suiro_outside::printable;

use super::{Host, Report};
use crate::account::{Account, Delay, Hop, Layer, LayerAccount, Sap, Second, title};
use crate::clock::{Alignment, How};
use crate::event::{Point, Protocol};
use crate::verdict::place;

/// Most seconds that are shown individually; longer recordings are shown in longer steps.
const STEPS: usize = 20;

/// The whole report, at most about 110 columns wide.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    let mut put = |line: &str| writeln!(out, "{line}").expect("a string takes all");
    report.hosts.iter().for_each(|host| put(&of_host(host)));
    put(&of_clock(&report.clock));
    for account in &report.accounts {
        put("");
        put(&headline(account));
        account.unseen.iter().for_each(|unseen| {
            put(&format!("  not seen at {}: {}", name(unseen.point), unseen.why));
        });
        if account.saps.iter().all(|sap| sap.passed == 0) {
            continue;
        }
        let watched: Vec<_> =
            account.layers.iter().filter(|layer| layer.loss_between.is_some()).collect();
        if !watched.is_empty() {
            put(&table(LAYER_HEAD, watched.iter().map(|layer| of_layer(layer))));
        }
        put(&table(HOP_HEAD, account.hops.iter().map(of_hop)));
        put(&table(SAP_HEAD, account.saps.iter().map(of_sap)));
        let watched: Vec<Layer> = watched.iter().map(|layer| layer.layer).collect();
        put(&table(&step_head(&watched), steps(account, &watched)));
        let verdicts: Vec<_> =
            report.verdicts.iter().filter(|verdict| verdict.flow == account.flow).collect();
        if verdicts.is_empty() {
            put("  no problem found: less than 0.1 % lost, and no part of the path is slow");
        }
        verdicts.iter().for_each(|verdict| put(&format!("  ► {}", verdict.sentence)));
    }
    if report.accounts.is_empty() {
        put("\nno flow was recorded\nhint: check the filter, and that the application ran");
    }
    // The names come from other hosts.
    printable(&out).into_owned()
}

fn of_host(host: &Host) -> String {
    let seconds = host.recorded_ns as f64 / 1e9;
    let mut text = format!("host {}: {seconds:.1} s, kernel {}", host.name, host.kernel);
    match host.recording.events_lost {
        0 => text.push_str("; the recorder lost nothing"),
        lost => text.push_str(&format!("; THE RECORDER LOST {lost} EVENTS of its own")),
    }
    if host.paused_ns > 0 {
        text.push_str(&format!("; not recorded for {:.1} s of it", host.paused_ns as f64 / 1e9));
    }
    if host.fragments > 0 {
        text.push_str(&format!("; {} fragments", host.fragments));
    }
    text.push_str(&format!("\n  {}", host.recording));
    let mut unwatched: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for status in &host.points {
        if let Some(why) = &status.missing {
            unwatched.entry(why).or_default().push(status.point.name());
        }
    }
    for (why, points) in unwatched {
        text.push_str(&format!("\n  not watched: {}: {why}", points.join(", ")));
    }
    text
}

fn of_clock(clock: &Alignment) -> String {
    let how = match clock.how {
        How::SameHost => return "clock: shared by both hosts".into(),
        How::Disciplined => "disciplined on both hosts",
        How::Exchange => "compared by packets in both directions",
        How::Unknown => "CLOCK_REALTIME of each host",
    };
    match clock.error_ns {
        Some(error) => format!(
            "clock: {how}; one-way delays between the hosts are accurate to ±{:.1} µs, drift {:.3} ppm",
            error as f64 / 1e3,
            clock.drift_ppb / 1e3 + 0.0
        ),
        None => format!(
            "clock: {how}; the error of one-way delays between the hosts is unknown, so no cause is named for them\n\
             hint: run chrony or ptp4l on both hosts, or record a flow with packets in both directions"
        ),
    }
}

fn headline(account: &Account) -> String {
    let unit = if account.protocol == Protocol::Udp { "packets" } else { "bytes" };
    let host = |host: &Option<String>| host.clone().unwrap_or_else(|| "not recorded".into());
    let reported = account.reported.as_ref().map_or(String::new(), |words| format!(" ({words})"));
    let mut text = format!(
        "{}{reported}   {} → {}: {} {unit} sent, {} delivered",
        account.flow,
        host(&account.sender),
        host(&account.receiver),
        account.sent,
        account.delivered
    );
    let counts = [
        (account.repeated, "resent"),
        (account.unsettled, "in transit at the end, the beginning or a pause"),
        (account.appeared.saturating_sub(account.repeated), "first seen in transit"),
        (account.hops.iter().map(|hop| hop.unplaced).sum(), "lost or missed by the recorder"),
    ];
    for (count, what) in counts {
        if count > 0 && (account.protocol == Protocol::Udp || what != "first seen in transit") {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}

const LAYER_HEAD: &[&str] = &[
    "layer",
    "own loss",
    "between SAPs",
    "own delay ms",
    "p95",
    "max",
    "jitter",
    "between SAPs ms",
];

fn of_layer(account: &LayerAccount) -> Vec<String> {
    let mut row = vec![
        title(account.layer).to_string(),
        percent(account.own_loss),
        percent(account.loss_between),
    ];
    row.extend(delay(account.own_delay.as_ref()));
    row.push(account.delay_between.map_or("-".into(), |delay| ms(delay.mean_ns)));
    row
}

const HOP_HEAD: &[&str] = &[
    "part of the path",
    "arrived",
    "lost",
    "share",
    "delay ms",
    "p95",
    "max",
    "jitter",
    "reasons",
];

fn of_hop(hop: &Hop) -> Vec<String> {
    let share = (hop.entered > 0).then(|| hop.lost as f64 / hop.entered as f64);
    let mut row = vec![
        format!("{} → {}", place(hop.from), place(hop.to)),
        hop.entered.to_string(),
        hop.lost.to_string(),
        percent(share),
    ];
    row.extend(delay(hop.delay.as_ref()));
    let reasons = hop.causes.iter().map(|(reason, count)| format!("{reason} {count}"));
    row.push(reasons.collect::<Vec<_>>().join(", "));
    row
}

fn name(point: Point) -> String {
    point.name().replace('_', " ")
}

const SAP_HEAD: &[&str] =
    &["point", "passed", "kbit/s", "duplicates", "reordered", "unseen", "lost by recorder"];

fn of_sap(sap: &Sap) -> Vec<String> {
    let rate = sap.throughput_bps.map_or("-".into(), |bps| format!("{:.1}", bps / 1e3));
    let counts = [sap.duplicates, sap.reordered, sap.unseen, sap.recorder_lost];
    [name(sap.point), sap.passed.to_string(), rate]
        .into_iter()
        .chain(counts.map(|c| c.to_string()))
        .collect()
}

fn step_head(watched: &[Layer]) -> Vec<&'static str> {
    let losses = watched.iter().map(|layer| match layer {
        Layer::SystemCall => "call",
        Layer::Transport => "transport",
        Layer::Network => "IP",
        Layer::Link => "link",
    });
    let delays = watched.iter().map(|layer| match layer {
        Layer::SystemCall => "ms: call",
        Layer::Transport => "ms: transport",
        Layer::Network => "ms: IP",
        Layer::Link => "ms: link",
    });
    ["from s", "sent", "lost %"].into_iter().chain(losses).chain(delays).collect()
}

/// Loss and delay between the service access points of each layer, over time.
fn steps(account: &Account, watched: &[Layer]) -> impl Iterator<Item = Vec<String>> {
    let step = account.seconds.len().div_ceil(STEPS).max(1);
    account.seconds.chunks(step).enumerate().filter_map(move |(number, seconds)| {
        let sum = |of: &dyn Fn(&Second) -> u64| seconds.iter().map(of).sum::<u64>();
        let sent = sum(&|second| second.sent);
        if sent == 0 {
            return None;
        }
        let share = |lost: u64| format!("{:.1}", lost as f64 * 100.0 / sent as f64);
        let all = share(sum(&|second| second.lost_after.iter().sum()));
        let lost = watched.iter().map(|&layer| share(sum(&|s| s.lost_between[layer as usize])));
        let delays = watched.iter().map(|&layer| mean_delay(seconds, layer));
        let begin = [(number * step).to_string(), sent.to_string(), all];
        Some(begin.into_iter().chain(lost).chain(delays).collect())
    })
}

/// Mean delay between the service access points of a layer, over what was sent in these seconds.
fn mean_delay(seconds: &[Second], layer: Layer) -> String {
    let of = |second: &Second| {
        let count = second.delays[layer as usize];
        Some((second.delay_between_ns[layer as usize]? * count as f64, count))
    };
    let (sum, count) = seconds
        .iter()
        .filter_map(of)
        .fold((0.0, 0), |(sum, all), (delays, count)| (sum + delays, all + count));
    if count > 0 { ms(sum / count as f64) } else { "-".into() }
}

/// Mean, 95th percentile, maximum, jitter.
fn delay(delay: Option<&Delay>) -> [String; 4] {
    match delay {
        None => ["-", "-", "-", "-"].map(String::from),
        Some(delay) => {
            [delay.mean_ns, delay.p95_ns as f64, delay.max_ns as f64, delay.jitter_ns].map(ms)
        }
    }
}

fn percent(share: Option<f64>) -> String {
    // Adding zero turns -0 into a plain 0.
    share.map_or("-".into(), |share| format!("{:.2} %", (share * 1e4).round() / 1e2 + 0.0))
}

fn ms(ns: f64) -> String {
    format!("{:.3}", (ns / 1e3).round() / 1e3 + 0.0)
}

/// Aligned columns: the first and last to the left, numbers to the right.
fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head = head.iter().map(ToString::to_string).collect();
    let rows: Vec<Vec<String>> = [head].into_iter().chain(rows).collect();
    let columns = rows[0].len();
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            let is_text = column == 0 || rows[0][column] == "reasons";
            if is_text { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        format!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n") + "\n"
}
