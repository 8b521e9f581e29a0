//! Writes a results folder of synthetic data and its report, for trying the page without a lab:
//! `cargo run -p suiro-report --example synthetic -- DIR [quick|matrix|flawed|large]`.

mod folder;
mod model;

use std::path::PathBuf;

use folder::Shape;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir =
        PathBuf::from(arguments.next().ok_or("usage: synthetic DIR [quick|matrix|flawed|large]")?);
    let kind = arguments.next().unwrap_or_else(|| "quick".into());
    let shape = match kind.as_str() {
        "quick" => Shape {
            tcp: vec!["reno", "cubic"],
            abr: vec![("throughput", 0.85)],
            queue: vec![("deep", 100_000)],
            repetitions: 1,
            seconds: 40.0,
            flawed: false,
        },
        "matrix" => Shape {
            tcp: vec!["reno", "cubic", "vegas"],
            abr: vec![("throughput", 0.85), ("bold", 1.3)],
            queue: vec![("shallow", 20_000), ("deep", 150_000)],
            repetitions: 2,
            seconds: 40.0,
            flawed: false,
        },
        "flawed" => Shape {
            tcp: vec!["reno", "cubic", "vegas"],
            abr: vec![("bold", 1.3)],
            queue: vec![("deep", 100_000)],
            repetitions: 3,
            seconds: 40.0,
            flawed: true,
        },
        "large" => Shape {
            tcp: vec!["reno", "cubic", "vegas", "westwood", "illinois"],
            abr: vec![("throughput", 0.85), ("bold", 1.3)],
            queue: vec![("shallow", 20_000), ("deep", 150_000)],
            repetitions: 5,
            seconds: 60.0,
            flawed: false,
        },
        other => return Err(format!("`{other}` is none of quick, matrix, flawed, large").into()),
    };
    folder::write(&dir, &shape)?;
    let built = suiro_report::build(&suiro_record::Folder::new(&dir))?;
    eprint!("{}", suiro_report::terminal_table(&built.summary, &built.report, 100, false));
    Ok(())
}
