//! What a trial in virtual time costs: CPU time for each of its seconds, and how many trials a machine runs in a minute.
//! Live, a second takes a second, and trials that must not disturb each other run one after the other.

use std::path::Path;
use std::process::{Command, Stdio};

use suiro_bench::{Figure, Target};
use suiro_clock::kernel::monotonic_ns;
use suiro_record::Folder;

/// A scenario, what is chosen of it, and the most CPU time that a second of it is to take. On one core, `quick` and
/// `webrtc` are to run ten and four times as fast as live. On two cores, 20 repetitions of `tfrcp` are to take 15 minutes.
const SCENARIOS: [(&str, &[&str], Option<f64>); 4] = [
    ("quick", &["quick"], Some(0.1)),
    ("webrtc", &["webrtc", "--quick"], Some(0.25)),
    ("moq-webrtc", &["moq-webrtc", "--quick"], None),
    ("tfrcp", &["tfrcp", "--quick", "--only", "control=improved"], Some(0.15)),
];

fn main() {
    for (name, arguments, target) in SCENARIOS {
        let folder = tempfile::tempdir().expect("a folder for results");
        let out = folder.path().join("out");
        // The first run prepares media.
        let Some(_) = run(arguments, &folder.path().join("first")) else { return };
        let (cpu_s, real_s) = run(arguments, &out).expect("it ran before");
        let (trials, seconds) = measured(&out);
        let figure = |what: &str, value, unit: &str| {
            Figure::new(format!("virtual time, {name}: {what}"), value, unit)
        };
        let cost = figure("CPU time for a second", cpu_s / seconds, "s");
        let target = target.map(Target::AtMost);
        Figure { target, ..cost }.tell();
        let minute = 60.0 * trials as f64;
        let live = ("live at most, one at a time", minute / seconds);
        figure("trials in a minute", minute / real_s, "").beside(live.0, live.1).tell();
    }
}

/// Runs a scenario: CPU time and real time in seconds; `None`, with the reason, if it cannot run here.
fn run(arguments: &[&str], out: &Path) -> Option<(f64, f64)> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_suiro"));
    command.arg("run").args(arguments).arg("--virtual").arg("--out").arg(out);
    let (cpu, real) = (cpu_of_children_s(), monotonic_ns());
    let done = command.stdin(Stdio::null()).stdout(Stdio::null()).output().expect("it starts");
    if !done.status.success() {
        suiro_units::skipped(&String::from_utf8_lossy(&done.stderr));
        return None;
    }
    Some((cpu_of_children_s() - cpu, (monotonic_ns() - real) as f64 / 1e9))
}

/// How many trials a folder has, and how long they measured.
fn measured(out: &Path) -> (usize, f64) {
    let folder = Folder::new(out);
    let plan = folder.manifest().expect("a manifest").plan;
    let trials = plan.iter().filter_map(|planned| folder.outcome(planned).ok().flatten());
    let durations: Vec<f64> = trials.map(|trial| trial.duration_s).collect();
    (durations.len(), durations.iter().sum())
}

/// CPU time of all processes that this one started and waited for, and of theirs.
fn cpu_of_children_s() -> f64 {
    // SAFETY: plain numbers, which the call fills in.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    // SAFETY: `usage` is alive.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
