//! `suiro compare`: several trials side by side in one video.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use suiro_record::folder;
use suiro_screens::compare::{self, Request};

use crate::args::CompareArgs;
use crate::folders;
use crate::outputs::{self, Existing};
use crate::progress::Work;
use crate::{Outcome, Usage, interrupt, say};

/// `suiro compare DIR`.
pub fn run(args: &CompareArgs) -> Result<Outcome> {
    let results = &folders::open(&args.dir)?;
    let output = args.out.clone().unwrap_or_else(|| results.root().join(folder::COMPARISON));
    // That in the results folder is our own.
    let existing = Existing::of(args.replace || args.out.is_none());
    outputs::check(&[output.clone(), output.with_extension("png")], &[], existing)?;
    let within = |folder: &Path| Some(output.canonicalize().ok()?.starts_with(folder));
    if results.root().join("trials").canonicalize().ok().and_then(|trials| within(&trials))
        == Some(true)
    {
        let hint = "hint: name another file";
        bail!(Usage(format!("{} is a file of a trial\n{hint}", output.display())));
    }
    let manifest = results.manifest()?;
    let trials = compare::choose(results, &manifest.plan, &args.cells)?;
    let player = args.player.as_deref();
    let title = &manifest.title;
    let poster = film(&Request { title, trials: &trials, player, output: &output })?;
    writeln!(say::results(), "{}\n{}", output.display(), poster.display())?;
    if args.out.is_none() {
        let built = suiro_report::build(results).context("showing it in the report")?;
        writeln!(say::results(), "{}", built.report.display())?;
    }
    Ok(Outcome::Done)
}

/// Makes a comparison and shows how far it is; returns where its poster is.
pub fn film(request: &Request<'_>) -> Result<PathBuf> {
    interrupt::leave_nothing_half()?;
    let mut work = Work::new("comparison");
    let made = compare::make(request, &mut |done, doing| work.update(done, doing));
    work.finish();
    made
}
