//! Figures that criterion left in its folder: `…/new/benchmark.json` and `…/new/estimates.json` of each benchmark.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use serde::Deserialize;

use crate::Figure;

/// Most folders below each other: criterion makes four.
const DEPTH_MAX: u32 = 8;

#[derive(Deserialize)]
struct Benchmark {
    full_id: String,
    throughput: Option<Throughput>,
}

/// What one iteration processes.
#[derive(Deserialize)]
enum Throughput {
    Elements(u64),
    Bytes(u64),
}

#[derive(Deserialize)]
struct Estimates {
    median: Estimate,
}

/// Nanoseconds of one iteration.
#[derive(Deserialize)]
struct Estimate {
    point_estimate: f64,
}

/// The medians of all benchmarks in `folder` that were measured at `since` or later, sorted by name.
///
/// # Errors
/// If a file cannot be read, or is not what criterion writes.
pub fn figures(folder: &Path, since: SystemTime) -> io::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    if folder.is_dir() {
        visit(folder, since, DEPTH_MAX, &mut figures)?;
    }
    figures.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(figures)
}

fn visit(folder: &Path, since: SystemTime, depth: u32, into: &mut Vec<Figure>) -> io::Result<()> {
    let (benchmark, estimates) = (folder.join("benchmark.json"), folder.join("estimates.json"));
    let is_new = folder.file_name().is_some_and(|name| name == "new");
    if is_new && benchmark.is_file() && estimates.is_file() {
        if estimates.metadata()?.modified()? >= since {
            into.push(figure(read(&benchmark)?, &read(&estimates)?));
        }
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if depth > 0 && entry.file_type()?.is_dir() {
            visit(&entry.path(), since, depth - 1, into)?;
        }
    }
    Ok(())
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> io::Result<T> {
    let text = std::fs::read(path)?;
    let bad = |e| io::Error::other(format!("{}: {e}", path.display()));
    serde_json::from_slice(&text).map_err(bad)
}

fn figure(benchmark: Benchmark, estimates: &Estimates) -> Figure {
    let ns = estimates.median.point_estimate;
    match benchmark.throughput {
        Some(Throughput::Elements(count @ 1..)) => {
            Figure::new(benchmark.full_id, ns / count as f64, "ns each")
        }
        Some(Throughput::Bytes(count @ 1..)) => {
            Figure::new(benchmark.full_id, count as f64 / ns, "GB/s")
        }
        _ => Figure::new(benchmark.full_id, ns, "ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leave(folder: &Path, name: &str, throughput: &str) {
        let folder = folder.join(name).join("new");
        std::fs::create_dir_all(&folder).unwrap();
        let benchmark =
            format!(r#"{{"full_id": "{name}", "throughput": {throughput}, "more": 1}}"#);
        std::fs::write(folder.join("benchmark.json"), benchmark).unwrap();
        let estimates =
            r#"{"median": {"point_estimate": 500.0, "standard_error": 1.0}, "mean": null}"#;
        std::fs::write(folder.join("estimates.json"), estimates).unwrap();
    }

    #[test]
    fn medians_are_per_element_and_bytes_a_rate() {
        let dir = tempfile::tempdir().unwrap();
        leave(dir.path(), "b/each", r#"{"Elements": 10}"#);
        leave(dir.path(), "a", "null");
        leave(dir.path(), "c", r#"{"Bytes": 1000}"#);
        let figures = figures(dir.path(), SystemTime::UNIX_EPOCH).unwrap();
        let expected = [("a", 500.0, "ns"), ("b/each", 50.0, "ns each"), ("c", 2.0, "GB/s")];
        assert_eq!(figures, expected.map(|(name, value, unit)| Figure::new(name, value, unit)));
    }

    #[test]
    fn older_ones_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        leave(dir.path(), "a", "null");
        let file = dir.path().join("a/new/estimates.json");
        let written = file.metadata().unwrap().modified().unwrap();
        let later = written + std::time::Duration::from_secs(1);
        assert_eq!(figures(dir.path(), later).unwrap(), []);
        assert_eq!(figures(&dir.path().join("none"), later).unwrap(), []);
    }

    #[test]
    fn a_bad_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        leave(dir.path(), "a", "\"Much\"");
        let error = figures(dir.path(), SystemTime::UNIX_EPOCH).unwrap_err().to_string();
        assert!(error.contains("benchmark.json: "), "{error}");
    }
}
