//! Whether every endpoint ran while it should have, and what it means for the trial if one did not: the table
//! `lateness`, of the heartbeats of our own endpoints and of what the scheduler says about programs of others.

use std::path::Path;

use anyhow::{Context, Result};
use suiro_record::tables::LatenessRow;
use suiro_record::words::LatenessSource;
use suiro_record::{EndpointLateness, Reader, Writer};
use suiro_scenario::{Absence, Endpoint};
use suiro_units::{Duration, Time};

/// The longest time without running that does not make a trial invalid. A frame that stands 150 ms longer than usual
/// is a freeze (W3C, `freezeCount`), and TCP's shortest retransmission timeout in Linux is 200 ms: within the bound an
/// absence causes neither. docs/method.md argues it.
pub const BOUND: Duration = Duration::from_millis(150);

/// Who writes what the lab itself found out, for the file's name; no endpoint's name begins so.
const OWN: &str = "_lab";

/// Writes the rows that the lab made, if there are any.
pub fn write(dir: &Path, rows: Vec<LatenessRow>) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let writing = "writing the table lateness";
    let mut table = Writer::create_of(dir, OWN).context(writing)?;
    for row in rows {
        table.push(row).context(writing)?;
    }
    table.close().context(writing)
}

/// The table of the trial in this folder: of all endpoints, and of both sources.
pub fn read(dir: &Path) -> Result<Vec<LatenessRow>> {
    Reader::read_all(dir).context("reading the table lateness")
}

/// What the rows say about one endpoint; `None` if they say nothing.
pub fn summary(rows: &[LatenessRow], endpoint: &str) -> Option<EndpointLateness> {
    let own = || rows.iter().filter(|row| &*row.endpoint == endpoint);
    let worst = own().max_by_key(|row| row.worst_ns)?;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let late: u64 = own().filter(|row| row.worst_ns > BOUND).count() as u64;
    Some(EndpointLateness {
        looks: own().map(|row| row.looks).sum(),
        worst_s: seconds(worst.worst_ns.as_nanos()),
        worst_from_s: seconds(worst.worst_from_ns.as_nanos()),
        bound_s: seconds(BOUND.as_nanos()),
        times_over: late,
    })
}

/// Why an endpoint makes a trial invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The reason, a sentence.
    pub because: String,
    /// True if it only waited for a CPU: the machine was busy.
    pub waited: bool,
}

/// Why the rows make a trial invalid that measured until `ended`: a fault for each endpoint that did not run for
/// longer than [`BOUND`], unless the scenario expects that.
pub fn faults(rows: &[LatenessRow], endpoints: &[Endpoint], ended: Time) -> Vec<Fault> {
    let expected = |endpoint: &&Endpoint| endpoint.absence == Absence::Fails;
    let fault = |endpoint: &Endpoint| {
        let own = rows.iter().filter(|row| *row.endpoint == endpoint.name);
        let over: Vec<Gap> = own.map(|row| Gap::of(row, ended)).filter(Gap::counts).collect();
        let worst = over.iter().max_by_key(|gap| gap.duration())?;
        let others = match over.len() {
            1 => String::new(),
            2 => format!("; once more for over {BOUND}"),
            n => format!("; {} more times for over {BOUND}", n - 1),
        };
        let because = format!("endpoint {} {worst}{others}", endpoint.name);
        Some(Fault { because, waited: over.iter().all(|gap| gap.waited) })
    };
    endpoints.iter().filter(expected).filter_map(fault).collect()
}

/// A time in which an endpoint did not run, as far as it lies within what was measured.
#[derive(Debug)]
struct Gap {
    from: Time,
    to: Time,
    waited: bool,
}

impl Gap {
    fn of(row: &LatenessRow, ended: Time) -> Self {
        let from = row.worst_from_ns.min(ended);
        let to = (row.worst_from_ns + row.worst_ns).min(ended);
        Self { from, to, waited: row.source == LatenessSource::Scheduler && !row.stopped }
    }

    fn duration(&self) -> Duration {
        self.to.saturating_since(self.from)
    }

    fn counts(&self) -> bool {
        self.duration() > BOUND
    }
}

impl std::fmt::Display for Gap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let did = if self.waited { "waited for a CPU" } else { "did not run" };
        let seconds = |time: Time| time.as_nanos() as f64 / 1e9;
        write!(f, "{did} from {:.2} s to {:.2} s", seconds(self.from), seconds(self.to))
    }
}

#[cfg(test)]
mod tests {
    use suiro_scenario::EndpointSpec;

    use super::*;

    fn row(name: &str, source: LatenessSource, from_ms: u64, worst_ms: u64) -> LatenessRow {
        let (from, worst) = (Time::from_millis(from_ms), Duration::from_millis(worst_ms));
        LatenessRow {
            t_ns: from + worst,
            endpoint: name.into(),
            source,
            period_ns: worst,
            looks: 1,
            mean_ns: None,
            worst_ns: worst,
            worst_from_ns: from,
            stopped: false,
        }
    }

    fn endpoint(name: &str, absence: Absence) -> Endpoint {
        let spec: EndpointSpec = serde_json::from_value(serde_json::json!({
            "kind": "command", "command": ["true"]
        }))
        .unwrap();
        let (host, start) = ("server".to_owned(), Duration::ZERO);
        Endpoint { name: name.to_owned(), host, start, end: None, absence, spec }
    }

    #[test]
    fn who_did_not_run_is_named_with_the_time() {
        use LatenessSource::{Heartbeat, Scheduler};
        let rows = [
            row("origin", Heartbeat, 1000, 150),
            row("origin", Heartbeat, 4000, 3000),
            row("origin", Heartbeat, 8000, 200),
            row("player", Heartbeat, 5000, 150),
            row("iperf", Scheduler, 2500, 300),
            row("hogs", Scheduler, 2500, 900),
            row("late", Heartbeat, 9950, 5000),
        ];
        let names = ["origin", "player", "iperf", "late"];
        let mut endpoints = names.map(|name| endpoint(name, Absence::Fails)).to_vec();
        endpoints.push(endpoint("hogs", Absence::Ignored));
        let expected = [
            ("endpoint origin did not run from 4.00 s to 7.00 s; once more for over 150 ms", false),
            ("endpoint iperf waited for a CPU from 2.50 s to 2.80 s", true),
        ];
        let expected = expected.map(|(why, waited)| Fault { because: why.into(), waited });
        // The last 50 ms of the trial are within the bound, and what is after it does not count.
        assert_eq!(faults(&rows, &endpoints, Time::from_secs(10)), expected);
        let origin = summary(&rows, "origin").unwrap();
        assert_eq!((origin.worst_s, origin.worst_from_s, origin.times_over), (3.0, 4.0, 2));
        assert_eq!(summary(&rows, "nobody"), None);
    }
}
