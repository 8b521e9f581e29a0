//! The joint result of two recordings.

mod html;
mod overhead;
mod table;
mod text;

use serde::Serialize;
use suiro_record::flows;
use suiro_record::tables::FlowRow;
use suiro_units::to_i64;

pub use html::html;
pub use overhead::Overhead;
pub use table::{rows, write};
pub use text::text;

use crate::account::{Account, account};
use crate::clock::Alignment;
use crate::event::{PointStatus, Recording, Second};
use crate::matching::{align, matched};
use crate::verdict::{Evidence, Verdict, verdicts};

/// The joint report of two hosts. Its JSON form is what `suiro layers report --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The recordings, in the order in which they were given.
    pub hosts: Vec<Host>,
    /// How the second's clock was aligned to the first's.
    pub clock: Alignment,
    /// The account of each direction of each flow.
    pub accounts: Vec<Account>,
    /// The causes of loss and delay, flow by flow.
    pub verdicts: Vec<Verdict>,
}

impl Report {
    /// Names the flows by what endpoints reported of them, table `flows` of their trial.
    pub fn name_flows(&mut self, rows: &[FlowRow]) {
        for account in &mut self.accounts {
            account.reported = flows::find_named(rows, &account.flow).map(flows::words);
        }
    }
}

/// A recording's own data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its kernel.
    pub kernel: String,
    /// How long it was recorded.
    pub recorded_ns: u64,
    /// Of that, how long nothing was recorded, because an agent restarted.
    pub paused_ns: u64,
    /// From when to when that was, in seconds from the start of the first recording.
    pub pauses_s: Vec<(f64, f64)>,
    /// Its points: watched or why not, events, events lost by the recorder.
    pub points: Vec<PointStatus>,
    /// Fragments other than the first of each datagram; the first stands for all.
    pub fragments: u64,
    /// CPU time of the application and the softirq, by second.
    pub scheduling: Vec<Second>,
    /// What recording cost it.
    pub recording: Overhead,
}

impl Host {
    /// `seconds` converts its times to those from the start of the first recording.
    fn of(recording: &Recording, seconds: impl Fn(u64) -> f64) -> Self {
        let Recording { start, end, pauses, .. } = recording;
        let paused = pauses.iter().map(|pause| pause.to_ns.saturating_sub(pause.from_ns));
        let pauses_s = pauses.iter().map(|pause| (seconds(pause.from_ns), seconds(pause.to_ns)));
        Self {
            name: recording.host.clone(),
            kernel: recording.kernel.clone(),
            recorded_ns: end.monotonic_ns.saturating_sub(start.monotonic_ns),
            paused_ns: paused.fold(0, u64::saturating_add),
            pauses_s: pauses_s.collect(),
            points: recording.points.clone(),
            fragments: recording.fragments,
            scheduling: recording.scheduling.clone(),
            recording: Overhead::of(recording),
        }
    }
}

/// Joins two recordings by the best information they have about their clocks.
pub fn joined(first: &Recording, second: &Recording) -> Report {
    report(first, second, &align(first, second))
}

/// Joins two recordings. Flows that only one of them has get an account of that host alone.
pub fn report(first: &Recording, second: &Recording, clock: &Alignment) -> Report {
    let recordings = [first, second];
    let (mut accounts, mut found) = (Vec::new(), Vec::new());
    for (direction, matched) in matched(recordings, clock) {
        let account = account(&direction, &matched, recordings, clock);
        let host = |end: Option<(usize, u16)>| end.map(|(number, _)| recordings[number]);
        let (sender, receiver) = (host(direction.sender), host(direction.receiver));
        let evidence = Evidence { account: &account, matched: &matched, sender, receiver };
        found.extend(verdicts(&evidence));
        accounts.push(account);
    }
    let start_ns = to_i64(first.start.monotonic_ns);
    let seconds = |t_ns: i64| t_ns.saturating_sub(start_ns) as f64 / 1e9;
    let hosts = vec![
        Host::of(first, |t_ns| seconds(to_i64(t_ns))),
        Host::of(second, |t_ns| seconds(clock.to_first(t_ns))),
    ];
    Report { hosts, clock: *clock, accounts, verdicts: found }
}
