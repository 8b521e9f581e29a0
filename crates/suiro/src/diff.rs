//! `suiro diff`: results folders compared.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use suiro_record::Folder;
use suiro_report::{Difference, diff_page, diff_text, difference};

use crate::folders;
use crate::outputs::{self, Existing};
use crate::{Outcome, say};

/// Shown below the help.
pub const EXAMPLES: &str = "Examples:
  suiro diff results/before results/after
  suiro diff results/before results/after --all --html changes.html
  suiro diff results/monday results/tuesday results/wednesday --json";

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The results folders; each is compared with the first. Only their manifests and summaries are read.
    #[arg(required = true, num_args = 2..=FOLDERS, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// List every metric; otherwise only those that became better or worse, and main metrics that changed.
    #[arg(long)]
    pub all: bool,
    /// A difference counts as none if its 95 % interval is within this share of the first folder's mean, 0 to 1.
    #[arg(long, value_name = "SHARE", value_parser = share, default_value_t = suiro_report::MARGIN)]
    pub margin: f64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Also write a page: tables, the distributions of each metric, and one metric over another.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Replace the file of --html if it is there already.
    #[arg(long, requires = "html")]
    pub replace: bool,
}

/// Folders that `diff` takes: as many as a figure has colours.
const FOLDERS: usize = 8;

/// Reads a share, 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    value.ok_or_else(|| "expected a number from 0 to 1, such as 0.02".to_owned())
}

/// `suiro diff A B …`.
pub fn run(args: &DiffArgs) -> Result<Outcome> {
    let folders = args.dirs.iter().map(|dir| folders::open(dir));
    let folders: Vec<Folder> = folders.collect::<Result<_>>()?;
    if let Some(page) = &args.html {
        outputs::check(std::slice::from_ref(page), &[], Existing::of(args.replace))?;
    }
    folders.iter().try_for_each(folders::check_summary)?;
    let found = difference(&folders, args.margin).context("reading the results")?;
    print(&found, args.json, args.all)?;
    if let Some(page) = &args.html {
        write_page(page, &found)?;
    }
    Ok(Outcome::Done)
}

/// Prints a comparison as JSON or as text.
pub fn print(found: &Difference, json: bool, all: bool) -> Result<()> {
    let mut out = say::results();
    if json {
        serde_json::to_writer_pretty(&mut out, found)?;
        writeln!(out)?;
        return Ok(());
    }
    let stdout = std::io::stdout();
    let colour = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    write!(out, "{}", diff_text(found, all, colour))?;
    Ok(())
}

/// Writes the page, and prints where it is.
pub fn write_page(page: &Path, found: &Difference) -> Result<()> {
    diff_page(page, found)?;
    say!("page: {}", page.display());
    Ok(())
}
