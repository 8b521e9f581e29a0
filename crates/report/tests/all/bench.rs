//! The report of 100 one-minute trials: at most 5 s and 20 MB on two cores. And what finding out causes adds to it: at most a
//! tenth, and a second for a minute of one flow.
//!
//! `cargo bench -p suiro-report`. The trials are synthetic, made in a temporary folder first.

mod synthetic;

use suiro_bench::{Figure, Target};
use synthetic::{folder, folder::Shape, model};

const MOST_SECONDS: f64 = 5.0;
const MOST_MEGABYTES: f64 = 20.0;
const MOST_WHY_SECONDS: f64 = 1.0;
const MOST_WHY_SHARE: f64 = 0.1;
const ROUNDS: u32 = 10;

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

fn main() -> Result<(), Box<dyn std::error::Error>> {
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
    why(&folder, trials, seconds)?;
    Ok(())
}
