//! The JSON documents of a results folder that a run writes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use suiro_units::Seed;

use crate::words::{CheckedQuantity, CheckedUnit, Direction, LinkCause, Privilege, TcpSource};

/// One combination of a scenario's matrix: axis name to the value's label, in the scenario's order.
pub type Cell = Map<String, Value>;

/// A label of a cell as people write it: a text without quotes.
pub fn label_text(label: &Value) -> String {
    match label {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `manifest.json`: what was run, with what, on what. Written before the first trial and again at
/// the end.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Version of suiro that made the folder.
    pub suiro: String,
    /// The scenario's name.
    pub scenario: String,
    /// One line on what it shows.
    pub title: String,
    /// The study it repeats, such as `S0`; null if none.
    pub study: Option<String>,
    /// The scenario's text, as run (after `--set`).
    pub text: String,
    /// The command line.
    pub command: Vec<String>,
    /// When the run began: UTC, RFC 3339.
    pub started: String,
    /// The seed of the run; each trial's own derives from it.
    pub seed: Seed,
    /// Names and labels of the matrix's axes.
    pub axes: Vec<Axis>,
    /// Every trial planned, in order.
    pub plan: Vec<PlannedTrial>,
    /// Trials of the whole plan, with those that `--only` or `--trial` leaves out; null in folders made before trials
    /// had numbers.
    #[serde(default)]
    pub plan_trials: Option<u32>,
    /// The machine; in a folder made by `suiro merge`, that of its first trial. Each trial has its own (`trial.json`). In
    /// virtual time it is the guest.
    pub machine: Machine,
    /// The kernel of the guests if the trials ran in virtual time; null for the machine's own time.
    #[serde(default)]
    pub virtual_time: Option<VirtualTime>,
    /// Versions of the programs taking part, by name.
    pub versions: BTreeMap<String, String>,
    /// What each trial's links showed before it began, by the trial's folder; empty with 500 trials or more,
    /// whose `trial.json` have it.
    pub self_checks: BTreeMap<String, Vec<SelfCheck>>,
}

impl Manifest {
    /// From 500 trials on, a run is one of very many: what each trial has alone is not repeated for the whole.
    pub const MANY: usize = 500;

    /// Whether there are very many trials in the plan.
    pub fn has_many(&self) -> bool {
        self.plan.len() >= Self::MANY
    }
}

/// One axis of the matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// The parameter it varies.
    pub name: String,
    /// Its values' labels.
    pub labels: Vec<String>,
}

impl Axis {
    /// Its name and its labels.
    pub fn named(&self) -> (&str, Vec<&str>) {
        (&self.name, self.labels.iter().map(String::as_str).collect())
    }
}

/// A trial that the plan holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedTrial {
    /// Its cell.
    pub cell: Cell,
    /// Its repetition, from 1.
    pub repetition: u32,
    /// Its seed.
    pub seed: Seed,
    /// Its folder below the results folder, `trials/CELL/REP`.
    pub folder: String,
    /// Its number in the whole plan, from 1, whatever `--only` leaves out: `--trial` takes it. Null in folders made
    /// before trials had numbers.
    #[serde(default)]
    pub number: Option<u32>,
}

/// The machine a run was made on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Its host name, which distinguishes the machines of a sweep; empty if it is not known.
    #[serde(default)]
    pub name: String,
    /// Kernel release.
    pub kernel: String,
    /// Distribution.
    pub system: String,
    /// CPU model.
    pub cpu: String,
    /// Logical cores.
    pub cores: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The kernel's clock source.
    pub clock_source: String,
    /// `root`, or `user` (rootless, in a user namespace).
    pub privilege: Privilege,
    /// Kernel settings that affect the results, such as `net.ipv4.tcp_rmem`, and `nice`, the priority of the trial's
    /// processes.
    pub settings: BTreeMap<String, String>,
}

/// What made the time of a trial virtual: it advanced only when all processes of a guest were idle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VirtualTime {
    /// Version of the guest's kernel.
    pub kernel: String,
    /// SHA-256 of the guest's kernel, in hexadecimal.
    pub kernel_sha256: String,
}

/// What the self-check of one direction of one link found.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SelfCheck {
    /// The link's name.
    pub link: String,
    /// Which of its directions.
    pub direction: Direction,
    /// Which attempt this was, from 1. A link is checked again if a check fails or measures nothing, because a machine
    /// that was busy for a moment may cause it. This is the last attempt.
    pub attempt: u32,
    /// Its parts.
    pub checks: Vec<Check>,
    /// True if all parts hold.
    pub ok: bool,
}

impl SelfCheck {
    /// True if nothing was compared with the scenario except packet counts: the check itself missed packets, for example.
    pub fn measured_nothing(&self) -> bool {
        let compared =
            |check: &Check| check.what != CheckedQuantity::Accounting && check.ok.is_some();
        !self.checks.is_empty() && !self.checks.iter().any(compared)
    }
}

/// One quantity, asked for and measured.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The quantity.
    pub what: CheckedQuantity,
    /// Its unit.
    pub unit: CheckedUnit,
    /// What the scenario asks for; null for no limit.
    pub asked: Option<f64>,
    /// What was measured; null if it could not be.
    pub measured: Option<f64>,
    /// The least that passes; null for no bound.
    pub at_least: Option<f64>,
    /// The most that passes; null for no bound.
    pub at_most: Option<f64>,
    /// True if it passes; null if it was not measured.
    pub ok: Option<bool>,
    /// Why it was not measured, or what it means.
    pub note: Option<String>,
}

/// `trial.json`: how one trial went. Written last: its presence says that the trial is complete.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Its cell.
    pub cell: Cell,
    /// Its repetition, from 1.
    pub repetition: u32,
    /// Its seed.
    pub seed: Seed,
    /// False if the emulator or an endpoint failed it.
    pub valid: bool,
    /// Why it is not valid.
    pub invalid_because: Option<String>,
    /// True if it is not valid only because the machine was busy: packets left an emulated link too late, or an endpoint
    /// waited for a CPU.
    #[serde(default)]
    pub only_late: bool,
    /// Earlier attempts of the same trial, each of which was invalid for that reason only.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
    /// True if it was not tried because this machine is missing something it needs;
    /// `invalid_because` names it and how to get it.
    #[serde(default)]
    pub skipped: bool,
    /// The machine that it ran on, a guest in virtual time; null in folders made before trials recorded it.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// The kernel of its guest if it ran in virtual time; null for the machine's own time.
    #[serde(default)]
    pub virtual_time: Option<VirtualTime>,
    /// When it began: UTC, RFC 3339.
    pub started: String,
    /// How long it measured.
    pub duration_s: f64,
    /// For how long it warmed up, from `t_ns` = 0 on: metrics are about the time after that. Absent without a warm-up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warm_up_s: f64,
    /// CLOCK_MONOTONIC at `t_ns` = 0.
    pub epoch_monotonic_ns: u64,
    /// The links before the run.
    pub self_checks: Vec<SelfCheck>,
    /// The links during the run.
    pub links: Vec<LinkTotals>,
    /// When CPUs stalled, in all; null if the trial was not watched.
    #[serde(default)]
    pub standstills: Option<Standstills>,
    /// What rate each direction of a link was to have; those without a limit are left out.
    #[serde(default)]
    pub link_rates: Vec<LinkRate>,
    /// The plain cables; an emulated link has no offloads.
    #[serde(default)]
    pub cables: Vec<Cable>,
    /// How the sockets of each host were sampled; empty if they were not.
    #[serde(default)]
    pub tcp: Vec<TcpSampling>,
    /// The capture points; empty if there were none.
    #[serde(default)]
    pub captures: Vec<Capture>,
    /// The endpoints.
    pub endpoints: Vec<EndpointOutcome>,
    /// Versions of programs that this trial's endpoints reported.
    pub versions: BTreeMap<String, String>,
}

/// Serde passes a reference.
fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl Trial {
    /// How it went, without links, endpoints and what else only the trial's own page shows.
    pub fn short(&self) -> Self {
        Self {
            attempts: Vec::new(),
            self_checks: Vec::new(),
            links: Vec::new(),
            standstills: None,
            link_rates: Vec::new(),
            cables: Vec::new(),
            tcp: Vec::new(),
            captures: Vec::new(),
            endpoints: Vec::new(),
            versions: BTreeMap::new(),
            ..self.clone()
        }
    }
}

/// An attempt of a trial after which it was run again. Its tables were replaced by those of the next one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// When it began: UTC, RFC 3339.
    pub started: String,
    /// How long it measured.
    pub duration_s: f64,
    /// Why it is not valid.
    pub invalid_because: String,
    /// What the links did.
    pub links: Vec<LinkTotals>,
}

/// What the capture of one interface saw. Packets that are missing in the file make what was lost between it and the
/// other end of its link unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capture {
    /// The capture point: `HOST:LINK`.
    pub point: String,
    /// The host's interface, such as `eth0`.
    pub interface: String,
    /// The file, below the trial's folder.
    pub file: String,
    /// Packets in the file.
    pub packets: u64,
    /// Packets that the kernel dropped because the capture was not read in time.
    pub dropped: u64,
    /// Packets that are not in the file because it had reached its greatest length.
    pub beyond_limit: u64,
    /// CPU time of its thread in seconds, without the kernel's copying.
    pub cpu_s: f64,
}

/// A plain cable, and which offloads of its two interfaces the kernel had on, by its own names. If
/// none of the segmentation offloads (`tx-…-segmentation`) is on, every packet crossed on its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cable {
    /// Its name: `FROM-TO`.
    pub link: String,
    /// What is on at the `from` end.
    pub from: Vec<String>,
    /// What is on at the `to` end.
    pub to: Vec<String>,
}

/// What one direction of a link did in a trial. `offered` = `delivered` + `dropped` + `queued`,
/// less `duplicated`; what does not add up is `unaccounted`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LinkTotals {
    /// The link's name.
    pub link: String,
    /// Which of its directions.
    pub direction: Direction,
    /// The segment whose medium the link's stations share with those of other links; null for other links, and in records
    /// of earlier versions.
    #[serde(default)]
    pub segment: Option<String>,
    /// Packets that arrived.
    pub offered: u64,
    /// Packets handed to the receiving host.
    pub delivered: u64,
    /// Packets dropped on purpose, by cause.
    pub dropped: BTreeMap<LinkCause, u64>,
    /// Packets still in the link at the end.
    pub queued: u64,
    /// Copies that the link made.
    pub duplicated: u64,
    /// Those of them that were handed to the receiving host; `delivered` includes them. Null in records of earlier versions.
    #[serde(default)]
    pub duplicates_delivered: Option<u64>,
    /// Packets lost by the emulator itself: socket drops and failed sends. Must be 0.
    pub unaccounted: u64,
    /// Frames that are not IP and were not carried.
    pub foreign: u64,
    /// Actual minus scheduled departure.
    pub lateness: Lateness,
    /// The most by which the recorded departure of a packet may differ from the actual one: how long the system call
    /// took that it left with.
    #[serde(default)]
    pub departure_error: Lateness,
    /// The largest 99th percentile of `lateness` at which this direction is valid; null in records of earlier versions,
    /// where it was 2000.
    #[serde(default)]
    pub lateness_bound_us: Option<f64>,
    /// Share of one core that the emulator took for the whole link.
    pub cpu_cores: Option<f64>,
    /// Share of the time in which a thread of the link was of the real-time class; 0 for an ordinary user.
    #[serde(default)]
    pub real_time: Option<f64>,
    /// How often the link's other thread took over because the one on duty was not awake in time.
    #[serde(default)]
    pub takeovers: u64,
}

impl LinkTotals {
    /// Of a direction that nothing has met yet.
    pub fn new(link: impl Into<String>, direction: Direction) -> Self {
        Self {
            link: link.into(),
            direction,
            segment: None,
            offered: 0,
            delivered: 0,
            dropped: BTreeMap::new(),
            queued: 0,
            duplicated: 0,
            duplicates_delivered: None,
            unaccounted: 0,
            foreign: 0,
            lateness: Lateness::default(),
            departure_error: Lateness::default(),
            lateness_bound_us: None,
            cpu_cores: None,
            real_time: None,
            takeovers: 0,
        }
    }

    /// Packets dropped on purpose, whatever the cause. Counts of a file may be anything: at most the greatest number.
    pub fn all_dropped(&self) -> u64 {
        self.dropped.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// The rate that one direction of a link was to have during a trial; of a half-duplex Ethernet, that of the medium, which its
/// stations share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkRate {
    /// The link's name.
    pub link: String,
    /// Which of its directions.
    pub direction: Direction,
    /// Length of the spans that `rate_bps` counts in.
    pub span_s: f64,
    /// The mean rate of IP packets in each span, from the trial's start.
    pub rate_bps: Vec<f64>,
}

/// How the sockets of one host were sampled: the rows of table `tcp`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpSampling {
    /// The host.
    pub host: String,
    /// `tcp_probe`: at each ACK, and in between every so often; `sock_diag`: every so often alone.
    pub source: TcpSource,
    /// Why not at each ACK, if that was requested.
    pub because: Option<String>,
    /// Samples of all of the host's sockets.
    pub samples: u64,
    /// Samples that were due but not taken because the machine was too busy.
    pub samples_lost: u64,
    /// ACKs traced.
    pub acks: u64,
    /// ACKs that arrived but were not traced because the machine was too busy.
    pub acks_lost: u64,
    /// CPU time that it took, without the kernel's share at each ACK.
    pub cpu_s: f64,
}

/// Times over all packets that were delivered: how late the emulator was, or how exact a time is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Lateness {
    /// Median; null if nothing was delivered.
    pub p50_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// Worst.
    pub max_us: Option<f64>,
}

/// How one endpoint ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EndpointOutcome {
    /// Its name in the scenario.
    pub name: String,
    /// Its host.
    pub host: String,
    /// Its kind in the scenario, such as `origin`.
    pub kind: String,
    /// Exit code; null if a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why it failed; null if it did not.
    pub failure: Option<String>,
    /// Its log below the trial's folder.
    pub log: String,
    /// When it was asked to stop before the trial's end, as its `end` in the scenario says, in seconds from the trial's start;
    /// null if it was not.
    #[serde(default)]
    pub left_s: Option<f64>,
    /// When it had no video, as `pauses` in the scenario say: of a sender its own, of a viewer those of what it views. Absent
    /// without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
    /// Whether it ran while it should have; null if that is not known.
    #[serde(default)]
    pub lateness: Option<EndpointLateness>,
}

/// A time without video, in seconds from the trial's start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    /// When it begins.
    pub from_s: f64,
    /// When it ends.
    pub to_s: f64,
}

/// Whether an endpoint ran while it should have: a summary of its rows in table `lateness`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointLateness {
    /// How often it was looked.
    pub looks: u64,
    /// The longest time in which it did not run.
    pub worst_s: f64,
    /// When that began, from the trial's start.
    pub worst_from_s: f64,
    /// The longest that does not make the trial invalid.
    pub bound_s: f64,
    /// Rows of the table in which it was longer than that.
    pub times_over: u64,
    /// Threads whose waits for a CPU are not known, the most at one time: a look reads 512 threads of all endpoints.
    #[serde(default)]
    pub threads_left_out: u64,
}

/// How the machine's CPUs stalled during a trial with uncompressed video: a summary of table `standstills`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standstills {
    /// CPUs that were watched.
    pub processors: u64,
    /// How often a watcher looked, of all CPUs.
    pub looks: u64,
    /// Standstills, of all CPUs.
    pub count: u64,
    /// Their lengths, added up.
    pub total_s: f64,
    /// The longest; 0 if there was none.
    pub longest_s: f64,
    /// The shortest that counts.
    pub least_s: f64,
    /// What watching cost: CPUs kept busy by it, on average.
    pub watcher_cores: f64,
}

/// `screens.json`: what was made, after a trial, of what its viewers saw. Its presence means that
/// the screens are done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Screens {
    /// One per viewer.
    pub screens: Vec<ScreenOutcome>,
}

/// What was made of one viewer's screen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScreenOutcome {
    /// The endpoint's name in the scenario.
    pub endpoint: String,
    /// The video, below the trial's folder; null if there is none.
    pub video: Option<String>,
    /// Its pixels across and down; null without a video.
    pub size: Option<(u32, u32)>,
    /// Frames per second: those of the source.
    pub fps: f64,
    /// When its first frame was on the screen, in nanoseconds since the trial began.
    pub from_ns: i64,
    /// Its frames.
    pub ticks: u64,
    /// Frames whose stamp has the number in the records.
    pub stamps_agree: u64,
    /// Frames whose stamp has another number. Must be 0.
    pub stamps_differ: u64,
    /// Frames whose stamp cannot be read.
    pub stamps_unread: u64,
    /// Scores by ITU-T P.1203; null without the program `p1203-standalone` or if it failed.
    #[serde(default)]
    pub p1203: Option<P1203>,
    /// Programs and models that scored it, with their versions; empty if it has no scores.
    pub scored_by: BTreeMap<String, String>,
    /// Why there is no video, or there are no scores, or what is wrong with them; null if all is
    /// well.
    pub problem: Option<String>,
}

/// Scores of one viewing by ITU-T P.1203; all scores are from 1 (bad) to 5 (excellent).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct P1203 {
    /// The overall opinion, `O.46`.
    pub o46: f64,
    /// That of video and sound without stalls, `O.35`; null if the program does not report it.
    pub o35: Option<f64>,
    /// That of start-up and stalls alone, `O.23`; null if the program does not report it.
    pub o23: Option<f64>,
    /// Mode of the Recommendation: 0, bit rates, sizes and frame rates alone.
    pub mode: u8,
    /// Media shown, in seconds. The Recommendation is valid for 60 to 300.
    pub media_s: f64,
}
