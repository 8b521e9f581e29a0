//! The value of a key up to which limits are kept, by bisection.

use std::io::Write;

use anyhow::{Context, Result, bail};
use serde_json::json;
use suiro_outside::printable;
use suiro_scenario::NamedLimit;

use super::range::Range;
use super::{Origin, WhatIfArgs, again, default_out};
use crate::args::LimitArgs;
use crate::limits::{self, Asked};
use crate::{Outcome, Usage, interrupt, say};

/// Values that are tried at most.
const TRIED_MAX: usize = 40;

/// A value that was tried.
struct Tried {
    value: f64,
    kept: bool,
    /// The limit that was broken, or the first, with what was measured.
    found: String,
}

/// `suiro what-if DIR --search PATH=LOW..HIGH --limit …`.
pub fn run(args: &WhatIfArgs, origin: &Origin, range: &Range) -> Result<Outcome> {
    let of_command = LimitArgs { limit: args.limit.clone(), baseline: None };
    let plan = origin.plan(&args.set)?;
    let of_scenario: Vec<NamedLimit> = if args.limit.is_empty() { plan.limits } else { Vec::new() };
    if of_scenario.is_empty() && args.limit.is_empty() {
        bail!(Usage(
            "--search needs a limit\nhint: --limit \"media.latency_p95_ms < 200 ms\"".to_owned()
        ));
    }
    let limits = limits::asked(of_scenario, &of_command, &plan.axes)?;
    let search = Search { args, origin, range, limits };
    let mut tried = search.bisect()?;
    tried.sort_by(|a, b| a.value.total_cmp(&b.value));
    search.tell(&tried)?;
    let any = tried.iter().any(|it| it.kept);
    Ok(if any { Outcome::Done } else { Outcome::LimitBroken })
}

struct Search<'a> {
    args: &'a WhatIfArgs,
    origin: &'a Origin,
    range: &'a Range,
    limits: Asked,
}

impl Search<'_> {
    /// Tries both ends, and then between a value that keeps the limits and one that does not.
    fn bisect(&self) -> Result<Vec<Tried>> {
        let out = match &self.args.out {
            Some(out) => out.clone(),
            None => default_out(&self.origin.plan(&self.set(self.range.low))?),
        };
        let mut tried = Vec::new();
        let mut attempt = |value: f64| -> Result<bool> {
            let folder = out.join((tried.len() + 1).to_string());
            let (folder, _held) =
                again(&self.origin.plan(&self.set(value))?, &folder, self.args.jobs)?;
            if interrupt::happened() {
                bail!("interrupted; what was tried is in {}", out.display());
            }
            let summary = folder.summary()?;
            let (kept, found) = self
                .limits
                .decide(&summary)
                .with_context(|| format!("{} = {}", self.range.path, self.range.text(value)))?;
            say!("{} = {}: {found}", self.range.path, self.range.text(value));
            tried.push(Tried { value, kept, found });
            Ok(kept)
        };
        let (mut low, mut high) = (self.range.low, self.range.high);
        let (at_low, at_high) = (attempt(low)?, attempt(high)?);
        if at_low != at_high {
            for _ in 2..TRIED_MAX {
                let Some(middle) = self.range.between(low, high) else { break };
                if attempt(middle)? == at_low { low = middle } else { high = middle }
            }
        }
        say!("results: {}", out.display());
        Ok(tried)
    }

    /// The changes, with one of the searched key.
    fn set(&self, value: f64) -> Vec<String> {
        let own = format!("{}={}", self.range.path, self.range.text(value));
        self.args.set.iter().cloned().chain([own]).collect()
    }

    fn tell(&self, tried: &[Tried]) -> Result<()> {
        let mut out = say::results();
        let edge = tried.windows(2).find(|pair| pair[0].kept != pair[1].kept);
        let text = |of: &Tried| self.range.text(of.value);
        if self.args.json {
            let one = |it: &Tried| json!({ "value": text(it), "kept": it.kept, "found": it.found });
            let (kept, broken) = edge.map_or((None, None), |pair| {
                let (kept, broken) = if pair[0].kept { (0, 1) } else { (1, 0) };
                (Some(text(&pair[kept])), Some(text(&pair[broken])))
            });
            let all = tried.iter().map(one).collect::<Vec<_>>();
            let document =
                json!({ "path": self.range.path, "kept": kept, "broken": broken, "tried": all });
            serde_json::to_writer_pretty(&mut out, &document)?;
            writeln!(out)?;
            return Ok(());
        }
        for it in tried {
            let verdict = if it.kept { "kept  " } else { "broken" };
            writeln!(
                out,
                "  {verdict}  {} = {}: {}",
                printable(&self.range.path),
                text(it),
                printable(&it.found)
            )?;
        }
        let path = printable(&self.range.path);
        match edge {
            Some([low, high]) if low.kept => {
                writeln!(
                    out,
                    "the greatest {path} that keeps the limits: {} (at {} they are broken)",
                    text(low),
                    text(high)
                )?;
            }
            Some([low, high]) => {
                writeln!(
                    out,
                    "the least {path} that keeps the limits: {} (at {} they are broken)",
                    text(high),
                    text(low)
                )?;
            }
            _ => {
                let verdict = if tried.iter().all(|it| it.kept) { "kept" } else { "broken" };
                writeln!(out, "the limits are {verdict} at both ends")?;
            }
        }
        Ok(())
    }
}
