//! Whether every endpoint ran while it should have, and what it means for the trial if one did not: the table
//! `lateness`, of the heartbeats of our own endpoints and of what the scheduler says about programs of others.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use suiro_record::tables::{FrameRow, LatenessRow};
use suiro_record::words::LatenessSource;
use suiro_record::{EndpointLateness, Reader, RecordError, Writer};
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

/// What the rows say about one endpoint, of which the scheduler's looks left out so many threads; `None` if they say
/// nothing.
pub fn summary(
    rows: &[LatenessRow],
    endpoint: &str,
    threads_left_out: u64,
) -> Option<EndpointLateness> {
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
        threads_left_out,
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

/// When each viewer showed a frame, by its name.
#[derive(Debug, Default)]
pub struct Shown(BTreeMap<String, Vec<Time>>);

impl Shown {
    /// What table `frames` of the trial in this folder says; nothing if no program waited long enough for it to matter.
    pub fn read(dir: &Path, rows: &[LatenessRow]) -> Result<Self, RecordError> {
        let mut shown: BTreeMap<String, Vec<Time>> = BTreeMap::new();
        if !rows.iter().any(|row| waited(row) && row.worst_ns > BOUND) {
            return Ok(Self(shown));
        }
        let frames: Vec<FrameRow> = Reader::read_all(dir)?;
        for frame in &frames {
            let Some(at) = frame.displayed_ns.and_then(|at| u64::try_from(at).ok()) else {
                continue;
            };
            match shown.get_mut(&*frame.endpoint) {
                Some(times) => times.push(Time::from_nanos(at)),
                None => drop(shown.insert(frame.endpoint.to_string(), vec![Time::from_nanos(at)])),
            }
        }
        shown.values_mut().for_each(|times| times.sort_unstable());
        Ok(Self(shown))
    }

    /// Whether the viewer of this name showed a frame at least every [`BOUND`], from before `from` until after `to`.
    fn went_on(&self, viewer: &str, from: Time, to: Time) -> bool {
        let Some(times) = self.0.get(viewer) else { return false };
        let first = times.partition_point(|at| *at <= from);
        let Some(before) = first.checked_sub(1) else { return false };
        let pairs = times[before..].windows(2).take_while(|pair| pair[0] <= to);
        let steady = |pair: &[Time]| pair[1].saturating_since(pair[0]) <= BOUND;
        pairs.into_iter().all(steady) && times.last().is_some_and(|last| *last > to)
    }
}

/// Whether the row is about a thread that waited for a CPU.
fn waited(row: &LatenessRow) -> bool {
    row.source == LatenessSource::Scheduler && !row.stopped
}

/// Why the rows make a trial invalid that measured until `ended`: a fault for each endpoint that did not run for
/// longer than [`BOUND`], unless the scenario expects that.
///
/// A thread of somebody else's program may wait without any effect: a browser has a hundred threads, and most do nothing
/// for the video. So such a wait does not count while the program's screen went on (`shown`).
pub fn faults(
    rows: &[LatenessRow],
    endpoints: &[Endpoint],
    ended: Time,
    shown: &Shown,
) -> Vec<Fault> {
    let expected = |endpoint: &&Endpoint| endpoint.absence == Absence::Fails;
    let fault = |endpoint: &Endpoint| {
        let own = rows.iter().filter(|row| *row.endpoint == endpoint.name);
        let gaps = own.map(|row| Gap::of(row, ended)).filter(Gap::counts);
        let over: Vec<Gap> = gaps
            .filter(|gap| !(gap.waited && shown.went_on(&endpoint.name, gap.from, gap.to)))
            .collect();
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
        Self { from, to, waited: waited(row) }
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
        let shown = Shown::default();
        assert_eq!(faults(&rows, &endpoints, Time::from_secs(10), &shown), expected);
        let origin = summary(&rows, "origin", 7).unwrap();
        assert_eq!((origin.worst_s, origin.worst_from_s, origin.times_over), (3.0, 4.0, 2));
        assert_eq!(origin.threads_left_out, 7);
        assert_eq!(summary(&rows, "nobody", 0), None);
    }

    /// 30 frames a second from 1 s to 9 s, without those of this time.
    fn shown_but(from_ms: u64, to_ms: u64) -> Shown {
        let times = (30..270).map(|n| Time::from_nanos(n * 1_000_000_000 / 30));
        let missing = Time::from_millis(from_ms)..Time::from_millis(to_ms);
        Shown([("browser".to_owned(), times.filter(|at| !missing.contains(at)).collect())].into())
    }

    #[test]
    fn a_wait_counts_only_if_the_screen_stood_too() {
        let endpoints = ["browser", "other"].map(|name| endpoint(name, Absence::Fails));
        let judge = |row: LatenessRow, shown: &Shown| {
            faults(&[row], &endpoints, Time::from_secs(10), shown).len()
        };
        let wait = |name: &str, from_ms| row(name, LatenessSource::Scheduler, from_ms, 400);
        let all = shown_but(0, 0);
        assert_eq!(judge(wait("browser", 4000), &all), 0, "a frame every 33 ms");
        assert_eq!(judge(wait("browser", 4000), &shown_but(4100, 4190)), 0, "a freeze of 133 ms");
        assert_eq!(judge(wait("browser", 4000), &shown_but(4100, 4300)), 1, "it froze meanwhile");
        assert_eq!(judge(wait("browser", 4000), &shown_but(4390, 4600)), 1, "it froze at its end");
        assert_eq!(judge(wait("browser", 4000), &shown_but(3800, 4050)), 1, "it froze as it began");
        assert_eq!(judge(wait("browser", 4000), &shown_but(5000, 5400)), 0, "that is another time");
        assert_eq!(judge(wait("browser", 700), &all), 1, "nothing was shown yet");
        assert_eq!(judge(wait("browser", 8800), &all), 1, "nothing was shown any more");
        assert_eq!(judge(wait("other", 4000), &all), 1, "it has no screen");
        let stopped = LatenessRow { stopped: true, ..wait("browser", 4000) };
        assert_eq!(judge(stopped, &all), 1, "who is stopped shows nothing");
    }

    #[test]
    fn what_was_shown_is_read_when_a_program_waited() {
        let dir = tempfile::tempdir().unwrap();
        let mut table = Writer::create_of(dir.path(), "browser").unwrap();
        for (frame, displayed_ns) in [(0, Some(66_000_000)), (1, None), (2, Some(33_000_000))] {
            let row = FrameRow {
                t_ns: frame,
                endpoint: "browser".into(),
                frame,
                captured_ns: None,
                rung_bps: None,
                encoded_bytes: None,
                sent_ns: None,
                received_ns: None,
                decodable: true,
                damaged: false,
                displayed_ns,
            };
            table.push(row).unwrap();
        }
        table.close().unwrap();
        let read = |from: LatenessSource| {
            let rows = [row("browser", from, 1000, 151)];
            Shown::read(dir.path(), &rows).unwrap().0
        };
        let times = vec![Time::from_millis(33), Time::from_millis(66)];
        assert_eq!(read(LatenessSource::Scheduler), [("browser".to_owned(), times)].into());
        assert!(read(LatenessSource::Heartbeat).is_empty());
    }
}
