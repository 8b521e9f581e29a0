//! `suiro export`: a results folder for other programs, as CSV or as few large Parquet files.

mod parquet;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use suiro_record::tables::TABLES;
use suiro_record::{
    Axis, Cell, Folder, Manifest, PlannedTrial, Summary, Table, TextTable, TrialSummary, label_text,
};
use suiro_screens::compare::fitting;

use crate::folders;
use crate::outputs::{self, Existing, Output};
use crate::{Outcome, Usage, say};

pub const EXAMPLES: &str = "Examples:
  suiro export csv results/quick > quick.csv             a row per trial, a column per metric
  suiro export csv results/quick --table tcp --cell reno --out tcp.csv
  suiro export parquet results/quick --out dataset       dataset/tcp/AXIS=VALUE/…/part-0.parquet";

/// The table of the summary: a row per trial.
const SUMMARY: &str = "summary";

/// The formats.
#[derive(Debug, Subcommand)]
pub enum ExportCommand {
    /// CSV (RFC 4180) with a header: the values of the axes, the repetition, then the columns.
    #[command(after_help = EXAMPLES)]
    Csv(CsvArgs),
    /// Each table of all trials in few Parquet files, in folders `AXIS=VALUE` (Hive's partitions)
    #[command(after_help = parquet::EXAMPLES)]
    Parquet(parquet::ParquetArgs),
}

/// Arguments of `export csv`.
#[derive(Debug, Args)]
pub struct CsvArgs {
    /// The results folder.
    dir: PathBuf,
    /// Which table: `summary`, with a row per trial and a column per metric, or one of docs/records.md. In column `valid`, false
    /// marks trials that do not count.
    #[arg(long, value_name = "TABLE", default_value = SUMMARY)]
    table: String,
    /// Only this cell: its values, or `AXIS=VALUE`, joined with `+`; `#N` for one repetition. Several may be named.
    #[arg(long, value_name = "CELL", value_delimiter = ',')]
    cell: Vec<String>,
    /// The file [default: standard output].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file if it is there already.
    #[arg(long, requires = "out")]
    replace: bool,
}

/// `suiro export`.
pub fn run(command: &ExportCommand) -> Result<Outcome> {
    match command {
        ExportCommand::Csv(args) => csv(args),
        ExportCommand::Parquet(args) => parquet::run(args),
    }
}

fn csv(args: &CsvArgs) -> Result<Outcome> {
    outputs::check(args.out.as_slice(), &[], Existing::of(args.replace))?;
    if args.table != SUMMARY {
        table(&args.table, Some(SUMMARY))?;
    }
    let folder = folders::open(&args.dir)?;
    let manifest = folder.manifest().context("reading the results folder")?;
    let trials = chosen(&manifest.plan, &args.cell)?;
    let export = Export { folder: &folder, manifest: &manifest, trials };
    match &args.out {
        None => export.write(&args.table, &mut say::results())?,
        Some(path) => {
            let mut output = Output::begin(path)?;
            export.write(&args.table, &mut output)?;
            output.keep().with_context(|| format!("writing {}", path.display()))?;
        }
    }
    Ok(Outcome::Done)
}

/// The table of this name. `other` is what may be named instead.
fn table(name: &str, other: Option<&str>) -> Result<Table> {
    if let Some(known) = TABLES.iter().find(|known| known.name == name) {
        return Ok(*known);
    }
    let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
    let other = other.map(|other| format!("`{other}` or ")).unwrap_or_default();
    let told = format!(
        "--table {name}: there is no such table\nhint: it is {other}one of {}",
        names.join(", ")
    );
    Err(Usage(told).into())
}

/// The trials of these cells in the order of the plan; all if none is named.
fn chosen<'p>(plan: &'p [PlannedTrial], cells: &[String]) -> Result<Vec<&'p PlannedTrial>> {
    let mut folders = BTreeSet::new();
    for cell in cells {
        folders.extend(fitting(plan, cell)?.iter().map(|planned| &*planned.folder));
    }
    Ok(plan.iter().filter(|trial| cells.is_empty() || folders.contains(&*trial.folder)).collect())
}

/// The values of these axes in a cell, as text: in the summary of very many trials they are nothing else.
fn labels(axes: &[Axis], cell: &Cell) -> Vec<Option<String>> {
    axes.iter().map(|axis| cell.get(&axis.name).map(label_text)).collect()
}

/// The rows of a summary by [`labels`] and repetition.
fn rows<'s>(
    axes: &[Axis],
    summary: &'s Summary,
) -> BTreeMap<(Vec<Option<String>>, u32), &'s TrialSummary> {
    let rows = summary.trials.iter();
    rows.map(|row| ((labels(axes, &row.cell), row.repetition), row)).collect()
}

struct Export<'a> {
    folder: &'a Folder,
    manifest: &'a Manifest,
    trials: Vec<&'a PlannedTrial>,
}

impl Export<'_> {
    fn write(&self, table: &str, out: &mut impl Write) -> Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        match table {
            SUMMARY => self.summary(&mut csv)?,
            table => self.table(table, &mut csv)?,
        }
        csv.flush().context("writing the rows")
    }

    /// The axes' names, and what else says which trial it is.
    fn header(&self) -> impl Iterator<Item = &str> {
        let axes = self.manifest.axes.iter().map(|axis| axis.name.as_str());
        axes.chain(["repetition"])
    }

    /// The values of [`Export::header`].
    fn place(&self, trial: &PlannedTrial) -> Vec<String> {
        let values = labels(&self.manifest.axes, &trial.cell).into_iter();
        values.map(Option::unwrap_or_default).chain([trial.repetition.to_string()]).collect()
    }

    fn summary(&self, csv: &mut csv::Writer<impl Write>) -> Result<()> {
        let axes = &self.manifest.axes;
        let summary = folders::summary(self.folder)?;
        let rows = rows(axes, &summary);
        let metrics: BTreeSet<&String> =
            summary.trials.iter().flat_map(|trial| trial.metrics.keys()).collect();
        let fixed = ["seed", "valid", "invalid_because"];
        let names = metrics.iter().map(|name| name.as_str());
        csv.write_record(self.header().chain(fixed).chain(names))?;
        for trial in &self.trials {
            // A trial that has not run yet has no row.
            let Some(row) = rows.get(&(labels(axes, &trial.cell), trial.repetition)) else {
                continue;
            };
            let mut record = self.place(trial);
            record.push(row.seed.to_string());
            record.push(row.valid.to_string());
            record.push(row.invalid_because.clone().unwrap_or_default());
            record.extend(metrics.iter().map(|name| {
                row.metrics
                    .get(name)
                    .copied()
                    .flatten()
                    .map(|it| it.to_string())
                    .unwrap_or_default()
            }));
            csv.write_record(&record)?;
        }
        Ok(())
    }

    fn table(&self, table: &str, csv: &mut csv::Writer<impl Write>) -> Result<()> {
        let mut columns: Option<Vec<String>> = None;
        for trial in &self.trials {
            let dir = self.folder.trial(trial);
            if !dir.is_dir() {
                continue;
            }
            let mut place = self.place(trial);
            place.push(self.folder.is_valid(trial).to_string());
            TextTable::each(&dir, table, |names, values| -> Result<()> {
                let columns = match &columns {
                    Some(columns) => columns,
                    None => {
                        let own = names.iter().map(String::as_str);
                        csv.write_record(self.header().chain(["valid"]).chain(own))?;
                        columns.insert(names.to_owned())
                    }
                };
                // A file of an older version may lack columns.
                let value = |column| {
                    let at = names.iter().position(|name| name == column);
                    at.and_then(|at| values.get(at)).map_or("", String::as_str)
                };
                let own = columns.iter().map(value);
                csv.write_record(place.iter().map(String::as_str).chain(own))?;
                Ok(())
            })?;
        }
        if columns.is_none() {
            let told = format!(
                "no trial has rows in table {table}\nhint: docs/records.md says what writes it; [record] in the scenario may turn it on"
            );
            return Err(Usage(told).into());
        }
        Ok(())
    }
}
