//! The report of 100 one-minute trials: at most 5 s and 20 MB on two cores.
//!
//! `cargo bench -p suiro-report`. The trials are synthetic, made in a temporary folder first.

mod synthetic;

use suiro_bench::{Figure, Target};
use synthetic::{folder, folder::Shape, model};

const MOST_SECONDS: f64 = 5.0;
const MOST_MEGABYTES: f64 = 20.0;

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
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
    Ok(())
}
