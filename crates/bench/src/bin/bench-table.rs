//! `bench-table FIGURES CRITERION SINCE OUT`: prints the table of what benchmarks measured, and writes it as JSON.
//!
//! `FIGURES` has one figure per line, as `Figure::tell` writes them; it need not exist. `CRITERION` is criterion's
//! folder, `SINCE` the time in seconds since 1970 before which its results are old, `OUT` the file to write.
#![expect(clippy::print_stdout, reason = "it prints the table")]

use std::error::Error;
use std::path::Path;
use std::time::{Duration, SystemTime};

use suiro_bench::{Figure, criterion, table};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [told, folder, since, out] = &arguments[..] else {
        return Err("usage: bench-table FIGURES CRITERION SINCE OUT".into());
    };
    let since = SystemTime::UNIX_EPOCH + Duration::from_secs(since.parse()?);
    let mut figures = Vec::new();
    if Path::new(told).exists() {
        for line in std::fs::read_to_string(told)?.lines() {
            figures.push(serde_json::from_str::<Figure>(line)?);
        }
    }
    figures.extend(criterion::figures(Path::new(folder), since)?);
    print!("{}", table::table(&figures));
    std::fs::write(out, serde_json::to_string_pretty(&figures)? + "\n")?;
    println!("\nthe same as JSON: {out}");
    Ok(())
}
