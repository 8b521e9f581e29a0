//! Scenarios made so that exactly one cause acts: `suiro report` must name it, and no other for more than 10 % of the time (live, 15 %).
//! The causes that no run makes on demand are in `crates/analysis/tests/all/why.rs`.
//!
//! `cargo test -p suiro --test why` runs those that `make test` has time for, in virtual time if there is a kernel for it,
//! unless a culprit is `live`. Live, `-- all` runs every one, `-- noisy` every one again with 10 ms of jitter and
//! 0.1 % of loss, and `-- NAME` one. `-- bank` runs the [bank].

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test program that makes traffic, and prints its results"
)]

mod abreast;
mod bank;
#[path = "../common/mod.rs"]
mod common;
mod culprits;
mod traffic;

use std::process::ExitCode;
use std::time::Instant;

use abreast::abreast;
use common::{Done, Room, Trials};
use culprits::{CULPRITS, Culprit, Held};
use suiro_hosts::tests_ended;
use suiro_media::Ffmpeg;
use suiro_record::Reader;
use suiro_record::tables::CauseRow;
use suiro_record::words::{Cause, Effect};

/// Runs at one time.
const ABREAST: usize = 3;
/// No other cause may have more of the time.
const OTHERS: f64 = 0.1;
/// On a machine that is busy, some of the time has its causes.
const OTHERS_LIVE: f64 = 0.15;
/// How many of the noisy ones must be named.
const NOISY_AT_LEAST: f64 = 14.0 / 16.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == "traffic") {
        traffic::run(&arguments[1..]);
        return ExitCode::SUCCESS;
    }
    let words: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    if words.first() == Some(&"bank") {
        let began = Instant::now();
        let failures = bank::run(&words[1..]);
        return tests_ended(1, failures, 0, began.elapsed().as_secs_f64());
    }
    let noisy = words.contains(&"noisy");
    let every = noisy || words.contains(&"all");
    let chosen = |culprit: &&Culprit| match words.is_empty() {
        true => culprit.quick,
        false => every || words.iter().any(|word| culprit.name.contains(word)),
    };
    let chosen: Vec<&Culprit> = CULPRITS.iter().filter(chosen).collect();
    if !common::can_run() || chosen.is_empty() {
        return tests_ended(0, 0, CULPRITS.len(), 0.0);
    }
    let began = Instant::now();
    let place = if words.is_empty() { Trials::find } else { Trials::live };
    let verdicts = judge_all(&chosen, noisy, place);
    let count =
        |of: fn(&Verdict) -> bool| verdicts.iter().filter(|(_, verdict)| of(verdict)).count();
    let passed = count(|verdict| matches!(verdict, Verdict::Named(_)));
    let skipped = count(|verdict| matches!(verdict, Verdict::Skipped(_)));
    let failed = count(|verdict| matches!(verdict, Verdict::Failed(_)));
    let judged = passed + failed;
    let failures = match noisy && judged > 0 && passed as f64 / judged as f64 >= NOISY_AT_LEAST {
        true => 0,
        false => failed,
    };
    let left_out = CULPRITS.len() - chosen.len() + skipped;
    tests_ended(passed, failures, left_out, began.elapsed().as_secs_f64())
}

/// What a culprit's run showed.
enum Verdict {
    /// It was named, and no other; the shares.
    Named(String),
    /// Another cause was named, or another next to it.
    Failed(String),
    /// It could not be judged.
    Skipped(String),
}

/// Runs culprits, [`ABREAST`] at a time, and prints what each showed.
fn judge_all(
    chosen: &[&Culprit],
    noisy: bool,
    place: fn() -> Option<Trials>,
) -> Vec<(&'static str, Verdict)> {
    let ffmpeg = Ffmpeg::locate().inspect_err(suiro_units::skipped).ok();
    abreast(ABREAST, chosen, |culprit| {
        let verdict = match culprit.needs_media && ffmpeg.is_none() {
            true => Verdict::Skipped("ffmpeg is missing".into()),
            false => judged(culprit, noisy, place, ffmpeg.as_ref()),
        };
        match &verdict {
            Verdict::Named(shares) => println!("test {} ... ok: {shares}", culprit.name),
            Verdict::Failed(reason) => println!("test {} ... FAILED: {reason}", culprit.name),
            Verdict::Skipped(reason) => {
                suiro_units::skipped(&format!("{}: {reason}", culprit.name));
            }
        }
        (culprit.name, verdict)
    })
}

fn judged(
    culprit: &Culprit,
    noisy: bool,
    place: fn() -> Option<Trials>,
    ffmpeg: Option<&Ffmpeg>,
) -> Verdict {
    let place = if culprit.live { Trials::live } else { place };
    let Some(trials) = place() else {
        return Verdict::Skipped("no trial can run here".into());
    };
    let room = Room::new();
    room.write("x.toml", &culprit.scenario(noisy));
    let done = ran(culprit, &room, &trials, ffmpeg);
    let out = room.results("out");
    if !out.has("trials/all/1/trial.json") {
        return Verdict::Failed(format!("no trial: {}", done.stderr));
    }
    if let Ok(kept) = std::env::var("SUIRO_KEEP_WHY") {
        let to = std::path::Path::new(&kept).join(culprit.name);
        let _ = std::process::Command::new("cp").arg("-r").arg(out.root()).arg(to).status();
    }
    let invalid = out.trial("all/1").invalid_because.filter(|_| !culprit.invalid);
    if let Some(reason) = invalid {
        let told = format!("the trial is not valid: {reason}");
        // Live, something else acted too: on a machine that is too busy, its CPUs.
        return if trials.are_virtual() { Verdict::Failed(told) } else { Verdict::Skipped(told) };
    }
    let rows: Vec<CauseRow> = match Reader::read_all(&out.root().join("trials/all/1")) {
        Ok(rows) => rows,
        Err(error) => return Verdict::Failed(error.to_string()),
    };
    let shares = shares(&rows, culprit);
    let own = shares.first().is_some_and(|(cause, _)| *cause == culprit.cause);
    let others = shares
        .iter()
        .filter(|(cause, _)| *cause != culprit.cause)
        .all(|(_, share)| *share <= if trials.are_virtual() { OTHERS } else { OTHERS_LIVE });
    let told = told(&shares);
    match own && others {
        true => Verdict::Named(told),
        false => Verdict::Failed(format!(
            "expected {} alone, found {told}\n{}",
            culprit.cause, done.stderr
        )),
    }
}

/// Runs a culprit's scenario, and holds up what it asks for.
fn ran(culprit: &Culprit, room: &Room, trials: &Trials, ffmpeg: Option<&Ffmpeg>) -> Done {
    let mut command = trials.run(room, "x.toml");
    command.args(["--seed", "7", "--retries", "0"]);
    if let Some(ffmpeg) = ffmpeg {
        command.env("SUIRO_FFMPEG", ffmpeg.path());
        // Encoded media is shared by all.
        command.env("XDG_CACHE_HOME", std::env::temp_dir().join("suiro-why-media"));
    }
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    if culprit.held == Held::Emulator {
        traffic::hold_trial(&child);
    }
    Done::wait(child)
}

/// The time that each cause has, of what the culprit shows in: the time of its flow, or of its viewer's effects.
fn shares(rows: &[CauseRow], culprit: &Culprit) -> Vec<(Cause, f64)> {
    let mut sums: Vec<(Cause, f64)> = Vec::new();
    for row in rows.iter().filter(|row| culprit.shows_in.contains(&row.effect)) {
        let time = (row.to_ns - row.t_ns) as f64 * row.share;
        match sums.iter_mut().find(|(cause, _)| *cause == row.cause) {
            Some((_, sum)) => *sum += time,
            None => sums.push((row.cause, time)),
        }
    }
    let all: f64 = sums.iter().map(|(_, sum)| sum).sum();
    sums.iter_mut().for_each(|(_, sum)| *sum /= all);
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    sums
}

fn told(shares: &[(Cause, f64)]) -> String {
    let words = shares.iter().map(|(cause, share)| format!("{cause} {:.1} %", share * 100.0));
    let words: Vec<String> = words.collect();
    if words.is_empty() { "nothing".into() } else { words.join(", ") }
}

/// The effects that a culprit shows in.
pub const FLOW: &[Effect] = &[Effect::Trial];
/// Interruptions of a viewer.
pub const VIEWER: &[Effect] = &[Effect::Stall, Effect::Freeze];
