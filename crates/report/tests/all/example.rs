//! Writes a results folder of synthetic data and its report, for trying the page without a lab:
//! `cargo run -p suiro-report --example synthetic -- DIR [quick|matrix|flawed|large|study|diff]`.

mod synthetic;

use std::path::{Path, PathBuf};

use synthetic::folder::{self, Shape};
use synthetic::model::falls_and_rises;

/// What the axes of a folder that repeats no study are called.
const AXES: [&str; 3] = ["tcp", "abr", "queue"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(
        arguments.next().ok_or("usage: synthetic DIR [quick|matrix|flawed|large|study|diff]")?,
    );
    let kind = arguments.next().unwrap_or_else(|| "quick".into());
    if kind == "diff" {
        return compared(&dir);
    }
    let shape = match kind.as_str() {
        "quick" => Shape {
            tcp: vec!["reno", "cubic"],
            abr: vec![("throughput", 0.85)],
            queue: vec![("deep", 100_000, falls_and_rises)],
            names: AXES,
            study: None,
            repetitions: 1,
            seconds: 40.0,
            flawed: false,
        },
        "matrix" => Shape {
            tcp: vec!["reno", "cubic", "vegas"],
            abr: vec![("throughput", 0.85), ("bold", 1.3)],
            queue: vec![("shallow", 20_000, falls_and_rises), ("deep", 150_000, falls_and_rises)],
            names: AXES,
            study: None,
            repetitions: 2,
            seconds: 40.0,
            flawed: false,
        },
        "flawed" => Shape {
            tcp: vec!["reno", "cubic", "vegas"],
            abr: vec![("bold", 1.3)],
            queue: vec![("deep", 100_000, falls_and_rises)],
            names: AXES,
            study: None,
            repetitions: 3,
            seconds: 40.0,
            flawed: true,
        },
        "large" => Shape {
            tcp: vec!["reno", "cubic", "vegas", "westwood", "illinois"],
            abr: vec![("throughput", 0.85), ("bold", 1.3)],
            queue: vec![("shallow", 20_000, falls_and_rises), ("deep", 150_000, falls_and_rises)],
            names: AXES,
            study: None,
            repetitions: 5,
            seconds: 60.0,
            flawed: false,
        },
        "study" => Shape {
            tcp: vec!["reno", "vegas", "cubic"],
            abr: vec![("dash", 0.85), ("hls", 9.0)],
            queue: vec![("clear", 100_000, clear), ("obstacle", 100_000, dips)],
            names: ["tcp", "protocol", "scene"],
            study: Some("S0"),
            repetitions: 1,
            seconds: 120.0,
            flawed: false,
        },
        other => {
            return Err(
                format!("`{other}` is none of quick, matrix, flawed, large, study, diff").into()
            );
        }
    };
    folder::write(&dir, &shape)?;
    let built = suiro_report::build(&suiro_record::Folder::new(&dir))?;
    eprint!("{}", suiro_report::terminal_table(&built, 100, false));
    Ok(())
}

/// Two folders below `dir` whose players differ, and the page of their comparison in it.
fn compared(dir: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let shape = |share| Shape {
        tcp: vec!["reno", "cubic"],
        abr: vec![("player", share)],
        queue: vec![("deep", 100_000, falls_and_rises)],
        names: AXES,
        study: None,
        repetitions: 3,
        seconds: 40.0,
        flawed: false,
    };
    let mut folders = Vec::new();
    for (name, share) in [("careful", 0.6), ("bold", 1.3)] {
        let of = dir.join(name);
        folder::write(&of, &shape(share))?;
        folders.push(suiro_record::Folder::new(of));
        suiro_report::build(folders.last().expect("it was pushed"))?;
    }
    let found = suiro_report::difference(&folders, suiro_report::MARGIN)?;
    eprint!("{}", suiro_report::diff_text(&found, false, false));
    suiro_report::diff_page(&dir.join("report.html"), &found)?;
    Ok(())
}

/// Steady.
fn clear(_: f64, _: f64) -> f64 {
    12e6
}

/// Slower, and nearly nothing for a while, three times.
fn dips(t_s: f64, _: f64) -> f64 {
    let dip =
        [(10.0, 20.0), (40.0, 50.0), (100.0, 120.0)].iter().any(|(a, b)| (*a..*b).contains(&t_s));
    if dip { 0.9e6 } else { 6e6 }
}
