//! The bank of causes: scenarios made from seeds, in virtual time, each with no, one or two causes that the program does
//! not know of; and how often `suiro why` is right about them.
//!
//! `cargo test -p suiro --test why -- bank` runs all of them and prints a line for each and a table. `bank 7 8` runs those
//! of seeds 7 and 8, `bank tuned` and `bank held-out` two thirds and the other third. `bank prove` proves each cause by the
//! trial without it, and judges what is left without those that this refutes as well. `bank sensitivity` judges all cases
//! again with each number of the rules changed. With `SUIRO_BANK` set to a folder,
//! trials are kept there, and used if they are there already; `SUIRO_BANK_PROGRAM` is another program to judge.

mod cases;
mod faults;
mod judge;
mod sensitivity;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use cases::{CASES, Case, is_held_out};
use judge::{Found, Tally, Verdict};

use crate::abreast::abreast;

/// The budget: shares of all cases.
const FALSE_MOST: f64 = 0.03;
const RIGHT_LEAST: f64 = 0.8;
/// Trials at one time.
const ABREAST: usize = 2;

/// Runs the chosen cases and prints what was said about them. Returns how many could not be run.
pub fn run(words: &[&str]) -> usize {
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let chosen = |seed: &u64| match numbers.is_empty() {
        false => numbers.contains(seed),
        true if words.contains(&"tuned") => !is_held_out(*seed),
        true => !words.contains(&"held-out") || is_held_out(*seed),
    };
    // Seeds beyond the bank's are cases that nobody has seen.
    let seeds: Vec<u64> =
        (0..CASES).chain(numbers.iter().copied().filter(|n| *n >= CASES)).collect();
    let seeds: Vec<u64> = seeds.into_iter().filter(chosen).collect();
    let folder = std::env::var_os("SUIRO_BANK").map(PathBuf::from);
    let temporary = tempfile::tempdir().expect("a folder for trials");
    let folder = folder.unwrap_or_else(|| temporary.path().to_owned());
    if words.contains(&"sensitivity") {
        return sensitivity::run(&seeds, &folder);
    }
    let prove = words.contains(&"prove");
    let judged = judged(&seeds, &folder, (prove, words.contains(&"captures")));
    for held_out in [false, true] {
        let of = || judged.iter().filter(|(seed, _)| is_held_out(**seed) == held_out);
        let what = if held_out { "held out" } else { "tuned" };
        print_table(what, of().map(|(_, judged)| &judged.before));
        if prove {
            let what = format!("{what}, without what is refuted");
            print_table(&what, of().map(|(_, judged)| &judged.after));
        }
    }
    let not_run = judged.values().filter(|judged| judged.before.0 == Verdict::NotRun).count();
    not_run + if words.contains(&"budget") { over_budget(&judged) } else { 0 }
}

/// How many of the shares of all cases are beyond what the program is to keep to.
fn over_budget(judged: &BTreeMap<u64, Judged>) -> usize {
    let share = |verdict: Verdict| {
        let count = judged.values().filter(|judged| judged.before.0 == verdict).count();
        count as f64 / judged.len().max(1) as f64
    };
    let shares = [
        ("false", share(Verdict::False), share(Verdict::False) <= FALSE_MOST, FALSE_MOST),
        ("right", share(Verdict::Right), share(Verdict::Right) >= RIGHT_LEAST, RIGHT_LEAST),
    ];
    for (what, share, is_kept, limit) in shares {
        let word = if is_kept { "kept" } else { "BROKEN" };
        println!("budget {word}: {:.1} % {what}, limit {:.0} %", share * 100.0, limit * 100.0);
    }
    shares.iter().filter(|(.., is_kept, _)| !is_kept).count()
}

/// How right the program is about a case: as it is, and without the causes that it refutes itself.
struct Judged {
    before: One,
    after: One,
}

/// The verdict, the faults of the case, and the numbers.
type One = (Verdict, usize, Tally);

fn judged(seeds: &[u64], folder: &Path, (prove, captures): (bool, bool)) -> BTreeMap<u64, Judged> {
    let judged = abreast(ABREAST, seeds, |seed| {
        let case = Case::of(*seed);
        let found = match captures {
            true => captured(&case, folder),
            false => found(&case, folder, prove),
        };
        let (found, mut problem) = match found {
            Ok(found) => (found, None),
            Err(reason) => (Vec::new(), Some(reason)),
        };
        let without = without(&case, folder, captures).unwrap_or_else(|reason| {
            problem = Some(reason);
            Vec::new()
        });
        let own = judge::with_effect(&case, &found, &without);
        let (mut before, mut lines, tally) = judge::judge(&case, &found, &own);
        let (mut after, _, tally_after) =
            judge::judge(&case, &judge::without_refuted(&found), &own);
        if let Some(problem) = problem {
            (before, after) = (Verdict::NotRun, Verdict::NotRun);
            lines.push(problem);
        }
        let held_out = if is_held_out(*seed) { " (held out)" } else { "" };
        println!("{before:8} {}{held_out}\n{}", case.name(), lines.join("\n"));
        let faults = case.faults.len();
        let judged =
            Judged { before: (before, faults, tally), after: (after, faults, tally_after) };
        (*seed, judged)
    });
    judged.into_iter().collect()
}

fn print_table<'a>(what: &str, judged: impl Iterator<Item = &'a One>) {
    let judged: Vec<&One> = judged.collect();
    let count = |verdict: Verdict| judged.iter().filter(|it| it.0 == verdict).count();
    let all = Verdict::ALL.map(|verdict| format!("{verdict} {}", count(verdict)));
    println!("{what}: {} cases: {}", judged.len(), all.join(", "));
    for (faults, words) in ["no fault", "one fault", "two faults"].iter().enumerate() {
        let mut sum = Tally::default();
        judged.iter().filter(|it| it.1 == faults).for_each(|it| sum.add(&it.2));
        println!("    {words}: {sum}");
    }
}

/// The effects of a case by `suiro why`, after a trial of it.
fn found(case: &Case, folder: &Path, prove: bool) -> Result<Vec<Found>, String> {
    let out = folder.join(format!("case-{:03}", case.seed));
    run_case(case, &out, "")?;
    let out = out.display().to_string();
    let proof: &[&str] = if prove { &["--prove", "--seeds", "1", "--jobs", "1"] } else { &[] };
    judge::read(&output(&[&["why", &out, "--json"], proof].concat())?)
}

/// The effects of a case with two faults, without one and without the other. Captures are judged by what they show, and not so.
fn without(case: &Case, folder: &Path, captures: bool) -> Result<Vec<Vec<Found>>, String> {
    let scenarios = case.without.iter().filter(|_| !captures).enumerate();
    let one = |(at, scenario): (usize, &String)| {
        let out = folder.join(format!("case-{:03}-without-{at}", case.seed));
        run_trial(scenario, &out)?;
        judge::read(&output(&["why", &out.display().to_string(), "--json"])?)
    };
    scenarios.map(one).collect()
}

/// Runs the trial of a case unless it is there already.
fn run_case(case: &Case, out: &Path, record: &str) -> Result<(), String> {
    run_trial(&format!("{}{record}", case.scenario), out)
}

fn run_trial(scenario: &str, out: &Path) -> Result<(), String> {
    if out.join("summary.json").exists() {
        return Ok(());
    }
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let traffic = format!("\"{}\", \"traffic\"", this.display());
    let file = out.with_extension("toml");
    let scenario = scenario.replace("TRAFFIC", &traffic);
    std::fs::write(&file, scenario).map_err(|error| error.to_string())?;
    let (file, out) = (file.display().to_string(), out.display().to_string());
    output(&["run", &file, "--out", &out, "--virtual", "--retries", "0", "--seed", "7"]).map(drop)
}

/// What captures of both hosts show, after a trial of a case.
fn captured(case: &Case, folder: &Path) -> Result<Vec<Found>, String> {
    let out = folder.join(format!("captured-{:03}", case.seed));
    run_case(case, &out, "[record]\ncapture = true\n")?;
    let list = |folder: &Path| -> Result<Vec<PathBuf>, String> {
        let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
        paths.sort();
        Ok(paths)
    };
    let files = list(&out.join("trials/all/1/pcapng"))?;
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let mut arguments: Vec<&str> = vec!["why", "--json"];
    arguments.extend(files.iter().map(String::as_str));
    judge::read_account(&output(&arguments)?, case.protocol.is_real_time())
}

/// What the program prints.
fn output(arguments: &[&str]) -> Result<String, String> {
    let program = std::env::var_os("SUIRO_BANK_PROGRAM")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_suiro").into());
    let done = Command::new(program).args(arguments).output().map_err(|error| error.to_string())?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}
