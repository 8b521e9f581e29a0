//! `suiro export parquet`: each table of all trials in few files, in folders named after the axes as Hive names them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use anyhow::{Context, Result, bail};
use clap::Args;
use suiro_outside::beneath;
use suiro_record::table::{Bounds, Place, Written};
use suiro_record::tables::TABLES;
use suiro_record::{
    Axis, Compact, CompactError, Folder, PlannedTrial, RecordError, Summary, Table, Text,
};

use super::{chosen, labels, rows, table};
use crate::folders;
use crate::outputs::NewFolder;
use crate::{Outcome, Usage, interrupt};

pub const EXAMPLES: &str = "Examples:
  suiro export parquet results/many --out dataset
  suiro export parquet results/many --table tcp,link --by tcp,queue --out dataset

DuckDB:  from read_parquet('dataset/tcp/**/*.parquet', hive_partitioning = true) where valid
polars:  pl.scan_parquet(\"dataset/tcp\", hive_partitioning=True).filter(pl.col(\"valid\"))";

/// The most folders of one table that are made without `--by`: readers list all of them.
const FOLDERS_MAX: usize = 1000;

/// Bytes of a folder's name on Linux.
const NAME_BYTES_MAX: usize = 255;

/// Files that could not be read, of which each has a message.
const LISTED: u64 = 20;

/// Arguments of `export parquet`.
#[derive(Debug, Args)]
pub struct ParquetArgs {
    /// The results folder.
    dir: PathBuf,
    /// The new folder: `DATASET/TABLE/AXIS=VALUE/…/part-N.parquet`.
    #[arg(long, value_name = "DATASET")]
    out: PathBuf,
    /// Only these tables of docs/records.md [default: all]
    #[arg(long, value_name = "TABLE", value_delimiter = ',')]
    table: Vec<String>,
    /// Only this cell: its values, or `AXIS=VALUE`, joined with `+`; `#N` for one repetition. Several may be named.
    #[arg(long, value_name = "CELL", value_delimiter = ',')]
    cell: Vec<String>,
    /// The axes that become folders; the others become columns; `--by ""` makes all of them columns [default: all axes; of
    /// more than 1000 combinations, only the first axes]
    #[arg(long, value_name = "AXIS", value_delimiter = ',')]
    by: Option<Vec<String>>,
}

/// `suiro export parquet`.
pub fn run(args: &ParquetArgs) -> Result<Outcome> {
    let tables: Vec<Table> = match &args.table[..] {
        [] => TABLES.to_vec(),
        names => names.iter().map(|name| table(name, None)).collect::<Result<_>>()?,
    };
    let folder = folders::open(&args.dir)?;
    let manifest = folder.manifest().context("reading the results folder")?;
    let axes = Axes::of(&manifest.axes, args.by.as_deref(), &manifest.plan)?;
    let planned = chosen(&manifest.plan, &args.cell)?;
    let (groups, missing) = groups(&axes, &planned, &folders::summary(&folder)?);
    // Two signals more end it at once.
    let (events, _kept) = mpsc::channel();
    interrupt::forward_to(events)?;
    let out = NewFolder::begin(&args.out)?;
    let (folder, written) = (&folder, Written::default());
    let mut export = Export { folder, axes: &axes, out: out.path(), written, broken: 0 };
    for (by, trials) in &groups {
        export.group(&tables, by, trials)?;
    }
    let Export { written: Written { files, rows }, broken, .. } = export;
    if rows == 0 && broken == 0 {
        let told = "no trial has rows in these tables\n\
                    hint: docs/records.md says what writes them; [record] in the scenario may turn them on";
        bail!(Usage(told.to_owned()));
    }
    if rows > 0 {
        out.keep()?;
        say!("{}: {rows} rows in {files} files", args.out.display());
    }
    if missing > 0 {
        say!(
            "{missing} trials of the plan are not in the summary, and are left out\n\
             hint: suiro run --resume runs those that are missing; suiro report writes the summary"
        );
    }
    if broken > 0 {
        say!("{broken} files of the results folder could not be read, and are left out");
        return Ok(Outcome::Failed);
    }
    Ok(Outcome::Done)
}

/// Trials by the values of the axes that are folders.
type Groups<'p> = BTreeMap<Vec<Option<String>>, Vec<Trial<'p>>>;

/// The trials that share a folder, and how many trials are not in the summary.
fn groups<'p>(
    axes: &Axes<'_>,
    planned: &[&'p PlannedTrial],
    summary: &Summary,
) -> (Groups<'p>, u64) {
    let rows = rows(axes.all, summary);
    let (mut groups, mut missing) = (Groups::new(), 0);
    for planned in planned {
        let all = labels(axes.all, &planned.cell);
        let by = axes.folders.iter().map(|at| all[*at].clone()).collect();
        let columns = axes.columns.iter().map(|at| all[*at].as_deref().map(Text::from)).collect();
        match rows.get(&(all, planned.repetition)) {
            Some(row) => {
                let trial = Trial { planned, axes: columns, valid: row.valid };
                groups.entry(by).or_default().push(trial);
            }
            None => missing += 1,
        }
    }
    (groups, missing)
}

/// Which axes are folders, and which are columns: their places in the manifest.
struct Axes<'m> {
    all: &'m [Axis],
    folders: Vec<usize>,
    columns: Vec<usize>,
}

impl<'m> Axes<'m> {
    fn of(all: &'m [Axis], by: Option<&[String]>, plan: &[PlannedTrial]) -> Result<Self> {
        let folders = match by {
            Some(by) => named(all, by)?,
            None => (0..first(all, plan)).collect(),
        };
        let columns = (0..all.len()).filter(|at| !folders.contains(at)).collect();
        Ok(Self { all, folders, columns })
    }
}

/// The axes of these names.
fn named(all: &[Axis], by: &[String]) -> Result<Vec<usize>> {
    let mut folders = Vec::new();
    for name in by.iter().filter(|name| !name.is_empty()) {
        let Some(at) = all.iter().position(|axis| axis.name == *name) else {
            let names: Vec<&str> = all.iter().map(|axis| axis.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            bail!(Usage(format!(
                "--by {name}: there is no such axis\nhint: the axes are: {names}"
            )));
        };
        if !folders.contains(&at) {
            folders.push(at);
        }
    }
    Ok(folders)
}

/// How many axes can be folders, from the first on.
fn first(all: &[Axis], plan: &[PlannedTrial]) -> usize {
    let fits = |count: &usize| {
        let folders: BTreeSet<_> = plan.iter().map(|it| labels(&all[..*count], &it.cell)).collect();
        folders.len() <= FOLDERS_MAX
    };
    (0..=all.len()).rev().find(fits).unwrap_or(0)
}

struct Trial<'p> {
    planned: &'p PlannedTrial,
    /// Values of the axes that are columns.
    axes: Vec<Option<Text>>,
    valid: bool,
}

struct Export<'a> {
    folder: &'a Folder,
    axes: &'a Axes<'a>,
    out: &'a Path,
    written: Written,
    broken: u64,
}

impl Export<'_> {
    /// Writes the tables of trials that share a folder.
    fn group(
        &mut self,
        tables: &[Table],
        by: &[Option<String>],
        trials: &[Trial<'_>],
    ) -> Result<()> {
        let names = self.names(trials)?;
        for table in tables {
            let mut folder = self.out.join(table.name);
            for (at, value) in self.axes.folders.iter().zip(by) {
                let axis = Compact::axis(table, &self.axes.all[*at].name);
                folder.push(partition(&axis, value.as_deref())?);
            }
            let axes = self.axes.columns.iter().map(|at| &self.axes.all[*at].name);
            let axes: Vec<String> = axes.map(|name| Compact::axis(table, name)).collect();
            let mut compact = Compact::new(&folder, *table, &axes, Bounds::default())?;
            for (trial, names) in trials.iter().zip(&names) {
                for name in names {
                    if let Some(own) = file_of(table.name, name) {
                        self.append(&mut compact, trial, name, own)?;
                    }
                }
            }
            let Written { files, rows } = compact.close()?;
            self.written.files += files;
            self.written.rows += rows;
        }
        Ok(())
    }

    /// The names of the files in the trials' folders. Trials have mostly the same, which are kept once.
    fn names(&mut self, trials: &[Trial<'_>]) -> Result<Vec<Vec<Arc<str>>>> {
        let mut known: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut all = Vec::new();
        for trial in trials {
            let entries =
                match beneath::entries(self.folder.root(), Path::new(&trial.planned.folder)) {
                    Ok(entries) => entries,
                    Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
                    Err(error) => {
                        self.leave_out(&format!(
                            "{}: {error}",
                            self.folder.trial(trial.planned).display()
                        ));
                        Vec::new()
                    }
                };
            let mut names = Vec::new();
            for (name, kind) in entries {
                let is_folder = kind == beneath::Kind::Folder;
                let Some(name) = name.to_str().filter(|it| !is_folder && it.ends_with(".parquet"))
                else {
                    continue;
                };
                if !known.contains(name) {
                    known.insert(name.into());
                }
                names.extend(known.get(name).cloned());
            }
            all.push(names);
        }
        Ok(all)
    }

    fn append(
        &mut self,
        compact: &mut Compact,
        trial: &Trial<'_>,
        name: &str,
        own: Option<&str>,
    ) -> Result<()> {
        if interrupt::happened() {
            bail!("interrupted: nothing was exported");
        }
        let path = Path::new(&trial.planned.folder).join(name);
        let full = self.folder.root().join(&path);
        let file = beneath::open(self.folder.root(), &path)
            .map_err(|cause| CompactError::Read(RecordError::Io { path: full.clone(), cause }));
        let place = Place {
            axes: trial.axes.clone(),
            trial: trial.planned.number,
            repetition: trial.planned.repetition,
            valid: trial.valid,
            file: own.map(Text::from),
        };
        match file.and_then(|file| compact.append(&full, file, &place)) {
            Err(CompactError::Read(error)) => self.leave_out(&error.to_string()),
            added => {
                added.context("writing the dataset")?;
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, why: &str) {
        self.broken += 1;
        if self.broken <= LISTED {
            say!("left out: {why}");
        }
    }
}

/// Whether a file is of a table, and if so which: `Some(None)` for `TABLE.parquet`, `Some(NAME)` for `TABLE.NAME.parquet`.
fn file_of<'n>(table: &str, name: &'n str) -> Option<Option<&'n str>> {
    let rest = name.strip_prefix(table)?.strip_suffix(".parquet")?;
    if rest.is_empty() { Some(None) } else { rest.strip_prefix('.').map(Some) }
}

/// The folder of a value: `AXIS=VALUE`. An axis without a value has Hive's word for null, and so has, as in Hive, an empty one.
fn partition(axis: &str, value: Option<&str>) -> Result<String> {
    let value = match value {
        None | Some("") => "__HIVE_DEFAULT_PARTITION__".to_owned(),
        Some(value) => escaped(value),
    };
    let name = format!("{}={value}", escaped(axis));
    if name.len() > NAME_BYTES_MAX {
        bail!(Usage(format!(
            "the value `{value}` of axis {axis} is too long for a folder's name\n\
             hint: --by names the axes that become folders; leave {axis} out, and it becomes a column"
        )));
    }
    Ok(name)
}

/// A name or value as Hive writes it into a path: what it escapes is `%` and two hexadecimal digits.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '\0'..='\x1f'
            | '\x7f'
            | '"'
            | '#'
            | '%'
            | '\''
            | '*'
            | '/'
            | ':'
            | '='
            | '?'
            | '\\'
            | '{'
            | '['
            | ']'
            | '^' => {
                escaped.push_str(&format!("%{:02X}", u32::from(c)));
            }
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_as_hive_names_them() {
        let named = |value| partition("queue", value).unwrap();
        assert_eq!(named(Some("10 kB")), "queue=10 kB");
        assert_eq!(named(Some("50 %/s: a=b")), "queue=50 %25%2Fs%3A a%3Db");
        assert_eq!(named(Some("é\n'")), "queue=é%0A%27");
        assert_eq!(named(Some("..")), "queue=..");
        assert_eq!((named(None), named(Some(""))), (named(None), named(None)));
        assert_eq!(named(None), "queue=__HIVE_DEFAULT_PARTITION__");
        assert_eq!(partition("a/..=", Some("1")).unwrap(), "a%2F..%3D=1");
        let error = partition("queue", Some(&"%".repeat(90))).unwrap_err().to_string();
        assert!(error.contains("too long") && error.contains("--by"), "{error}");
    }

    #[test]
    fn files_are_found_by_their_table() {
        assert_eq!(file_of("link", "link.parquet"), Some(None));
        assert_eq!(file_of("link", "link.access.parquet"), Some(Some("access")));
        assert_eq!(file_of("layer", "layers.parquet"), None);
        assert_eq!(file_of("link", "link.access.csv"), None);
    }

    #[test]
    fn of_very_many_cells_only_the_first_axes_are_folders() {
        let axis = |name: &str, count: u32| Axis {
            name: name.into(),
            labels: (0..count).map(|it| it.to_string()).collect(),
        };
        let all = [axis("a", 2), axis("b", 500), axis("c", 2)];
        let plan = |last: u32| -> Vec<PlannedTrial> {
            let cells = (0..2).flat_map(|a| (0..500).map(move |b| (a, b)));
            let cells =
                cells.flat_map(|(a, b)| (0..last).map(move |c| [("a", a), ("b", b), ("c", c)]));
            let planned = cells.map(|cell| PlannedTrial {
                cell: cell.map(|(name, it)| (name.to_owned(), it.into())).into_iter().collect(),
                repetition: 1,
                seed: Default::default(),
                folder: "trials/x/1".into(),
                number: None,
            });
            planned.collect()
        };
        let folders = |plan: &[PlannedTrial]| Axes::of(&all, None, plan).unwrap().folders;
        assert_eq!(folders(&plan(1)), [0, 1, 2]);
        assert_eq!(folders(&plan(2)), [0, 1]);
        let by = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Axes::of(&all, Some(&names), &plan(1)).map(|axes| (axes.folders, axes.columns))
        };
        assert_eq!(by(&["c", "a", "c"]).unwrap(), (vec![2, 0], vec![1]));
        assert_eq!(by(&[""]).unwrap(), (vec![], vec![0, 1, 2]));
        assert!(by(&["d"]).unwrap_err().to_string().contains("the axes are: a, b, c"));
    }
}
