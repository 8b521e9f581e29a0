//! The report of 100 one-minute trials: at most 5 s and 20 MB on two cores. And what finding out causes adds to it: at most a
//! tenth, and a second for a minute of one flow.
//!
//! And a report of 100,000 trials of two seconds, which were analysed before, as `suiro sweep` has them: at most 60 s and
//! 2 GB, with a page of at most 20 MB.
//!
//! `cargo bench -p suiro-report`. The trials are synthetic, made in a temporary folder first; with `SUIRO_KEEP=DIR` those of
//! the second report stay in DIR.

mod synthetic;

use std::path::{Path, PathBuf};

use suiro_bench::{Figure, Target};
use suiro_record::{Axis, Folder};
use synthetic::{folder, folder::Shape, model};

const MOST_SECONDS: f64 = 5.0;
const MOST_MEGABYTES: f64 = 20.0;
const MOST_WHY_SECONDS: f64 = 1.0;
const MOST_WHY_SHARE: f64 = 0.1;
const ROUNDS: u32 = 10;
const MANY: usize = 100_000;
const MOST_MANY_SECONDS: f64 = 60.0;
const MOST_MANY_GIGABYTES: f64 = 2.0;

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// What the causes cost: of one trial, and as a share of the report, which reads two trials at a time.
fn why(
    folder: &suiro_record::Folder,
    trials: usize,
    report_s: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let planned = &folder.manifest()?.plan[0];
    let trial = folder.outcome(planned)?.ok_or("the first trial was written")?;
    let setup = model::Setup {
        tcp: "reno",
        boldness: 0.85,
        queue_bytes: 20_000,
        rate: model::falls_and_rises,
        seconds: 60.0,
    };
    let records = model::run(setup, planned.seed);
    let began = now();
    for _ in 0..ROUNDS {
        std::hint::black_box(suiro_analysis::explain(&trial, &records));
    }
    let each = began.elapsed().as_secs_f64() / f64::from(ROUNDS);
    let name = "causes of a minute of one flow";
    Figure::new(name, each, "s").target(Target::AtMost(MOST_WHY_SECONDS)).tell();
    let share = each * trials as f64 / 2.0 / report_s;
    let name = "causes, share of the report";
    Figure::new(name, share, "ratio").target(Target::AtMost(MOST_WHY_SHARE)).tell();
    Ok(())
}

/// A folder of very many trials: links to those of another, under other cells. A file has 65,000 links at most.
fn copied(from: &Folder, dir: &Path) -> Result<Folder, Box<dyn std::error::Error>> {
    let mut manifest = from.manifest()?;
    let first = std::mem::take(&mut manifest.plan);
    let labels = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
    let axis = |name: &str, count| Axis { name: name.into(), labels: labels(count) };
    manifest.axes = vec![axis("rate", 1000), axis("delay", MANY / 1000)];
    let folder = Folder::new(dir);
    for number in 0..MANY {
        let original = &first[number % first.len()];
        let (rate, delay) = ((number % 1000).to_string(), (number / 1000).to_string());
        let mut planned = original.clone();
        planned.folder = format!("trials/rate={rate},delay={delay}/1");
        planned.cell = [("rate".to_owned(), rate.into()), ("delay".to_owned(), delay.into())]
            .into_iter()
            .collect();
        planned.repetition = 1;
        planned.number = u32::try_from(number + 1).ok();
        let to = folder.trial(&planned);
        std::fs::create_dir_all(&to)?;
        for file in std::fs::read_dir(from.trial(original))? {
            let file = file?;
            std::fs::hard_link(file.path(), to.join(file.file_name()))?;
        }
        manifest.plan.push(planned);
    }
    manifest.plan_trials = u32::try_from(MANY).ok();
    folder.write_manifest(&manifest)?;
    Ok(folder)
}

/// The most memory that this process had resident since it was asked for last, in bytes.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    // proc(5): 5 resets it.
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    Some(kilobytes * 1024.0)
}

fn many() -> Result<(), Box<dyn std::error::Error>> {
    let (few, dir) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let shape = Shape {
        tcp: vec!["reno", "cubic"],
        abr: vec![("throughput", 0.85)],
        queue: vec![("deep", 100_000, model::falls_and_rises)],
        names: ["tcp", "abr", "queue"],
        study: None,
        repetitions: 5,
        seconds: 2.0,
        flawed: false,
    };
    let dir = std::env::var_os("SUIRO_KEEP").map_or(dir.path().to_owned(), PathBuf::from);
    let mut folder = Folder::new(&dir);
    if !dir.join("manifest.json").exists() {
        folder::write(few.path(), &shape)?;
        folder = copied(&Folder::new(few.path()), &dir)?;
    }
    for (what, target) in [("first report", None), ("report", Some(MOST_MANY_SECONDS))] {
        peak();
        let began = now();
        let built = suiro_report::build(&folder)?;
        let text = suiro_report::terminal_table(&built, 100, false);
        let seconds = began.elapsed().as_secs_f64();
        assert!(text.contains("all valid"), "{}", &text[..200.min(text.len())]);
        let megabytes = built.report_bytes as f64 / 1e6;
        drop(built);
        let name = format!("{what} of {MANY} trials");
        let took = Figure::new(&name, seconds, "s");
        let Some(target) = target else {
            took.tell();
            continue;
        };
        took.target(Target::AtMost(target)).tell();
        Figure::new(&name, megabytes, "MB").target(Target::AtMost(MOST_MEGABYTES)).tell();
        if let Some(bytes) = peak() {
            let target = Target::AtMost(MOST_MANY_GIGABYTES);
            Figure::new(&name, bytes / 1e9, "GB").target(target).tell();
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    few()?;
    many()
}

fn few() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let shape = Shape {
        tcp: vec!["reno", "cubic", "vegas", "westwood", "illinois"],
        abr: vec![("throughput", 0.85), ("bold", 1.3)],
        queue: vec![
            ("shallow", 20_000, model::falls_and_rises),
            ("deep", 150_000, model::falls_and_rises),
        ],
        names: ["tcp", "abr", "queue"],
        study: None,
        repetitions: 5,
        seconds: 60.0,
        flawed: false,
    };
    folder::write(dir.path(), &shape)?;
    let folder = suiro_record::Folder::new(dir.path());
    let began = now();
    let built = suiro_report::build(&folder)?;
    let seconds = began.elapsed().as_secs_f64();
    let trials = built.summary.trials.len();
    let megabytes = built.report_bytes as f64 / 1e6;
    let name = format!("report of {trials} one-minute trials");
    Figure::new(&name, seconds, "s").target(Target::AtMost(MOST_SECONDS)).tell();
    Figure::new(&name, megabytes, "MB").target(Target::AtMost(MOST_MEGABYTES)).tell();
    why(&folder, trials, seconds)
}
