//! `suiro compare`: several trials side by side in one video.

use std::io::Write;

use anyhow::{Context, Result};
use suiro_record::folder;
use suiro_screens::compare::{self, Request};

use crate::cli::CompareArgs;
use crate::progress::Work;
use crate::{Outcome, report, say};

/// `suiro compare DIR`.
pub fn run(args: &CompareArgs) -> Result<Outcome> {
    let results = &report::results(&args.dir)?;
    let output = args.out.clone().unwrap_or_else(|| results.root().join(folder::COMPARISON));
    let (cells, player) = (&args.cells, args.player.as_deref());
    let request = Request { results, cells, player, output: &output };
    let mut work = Work::new("comparison");
    let made = compare::make(&request, &mut |done, doing| work.update(done, doing));
    work.finish();
    let poster = made?;
    writeln!(say::results(), "{}\n{}", output.display(), poster.display())?;
    if args.out.is_none() {
        let built = suiro_report::build(results).context("showing it in the report")?;
        writeln!(say::results(), "{}", built.report.display())?;
    }
    Ok(Outcome::Done)
}
