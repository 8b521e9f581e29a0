//! Limits on metrics: those of the scenario and of `--limit`, judged when a run is over.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use suiro_analysis::{LimitOutcome, catalogue, describe};
use suiro_record::{Axis, Folder, Summary, TrialSummary};
use suiro_report::Limits;
use suiro_scenario::{NamedLimit, Place, Refusal, ScenarioError};
use suiro_study::limit::{self, Limit};

use crate::args::LimitArgs;
use crate::folders;
use crate::{Outcome, say};

/// The limits of a run, checked.
pub struct Asked {
    limits: Vec<(String, Limit)>,
    /// All axes of the plan with all their labels, those that `--only` leaves out as well.
    axes: Vec<Axis>,
    baseline: Option<(PathBuf, Vec<TrialSummary>)>,
}

/// Those of a scenario and of the command line, for the cells of these axes.
///
/// # Errors
/// One is wrong, names no metric or no label of the axes, or needs a baseline; or the baseline cannot be read.
pub fn asked(of_scenario: Vec<NamedLimit>, args: &LimitArgs, axes: &[Axis]) -> Result<Asked> {
    check(&of_scenario)?;
    let typed = args.limit.iter().map(|text| typed(text, args.baseline.is_some(), axes));
    let typed: Vec<NamedLimit> = typed.collect::<Result<_, ScenarioError>>()?;
    check(&typed)?;
    let all = of_scenario.into_iter().chain(typed);
    let limits = all.map(|NamedLimit { name, limit, .. }| (name, limit)).collect();
    let baseline = args.baseline.as_deref().map(baseline).transpose()?;
    Ok(Asked { limits, axes: axes.to_vec(), baseline })
}

/// Those of the scenario that a results folder was made with, and of the command line.
///
/// # Errors
/// As [`asked`].
pub fn of_folder(folder: &Folder, args: &LimitArgs) -> Result<Asked> {
    let manifest = folder.manifest().context("reading the results folder")?;
    let of_scenario = suiro_scenario::limits(&manifest.text, &folders::scenario_of(folder))?;
    asked(of_scenario, args, &manifest.axes)
}

fn baseline(dir: &Path) -> Result<(PathBuf, Vec<TrialSummary>)> {
    let summary = folders::summary(&folders::open(dir)?).context("--baseline")?;
    Ok((dir.to_owned(), summary.trials))
}

/// A limit of the command line.
fn typed(text: &str, has_baseline: bool, axes: &[Axis]) -> Result<NamedLimit, ScenarioError> {
    let place = Place::from(format!("--limit {text:?}"));
    let limit = limit::parse(text).map_err(|refusal| {
        let at = refusal.place.bytes.clone().and_then(|bytes| text.get(bytes));
        let near = at.filter(|at| !at.trim().is_empty() && *at != text).map(str::to_owned);
        let Refusal { found, expected, hint, .. } = refusal;
        let found = match near {
            Some(near) if !found.contains(near.trim()) => format!("{found}, at `{}`", near.trim()),
            _ => found,
        };
        ScenarioError::from(Refusal { place: place.clone(), found, expected, hint })
    })?;
    let axes: Vec<_> = axes.iter().map(Axis::named).collect();
    let checked = limit.check_labels(&axes);
    checked.map_err(|refusal| ScenarioError::from(refusal.at(|()| place.clone())))?;
    if limit.bound.needs_baseline() && !has_baseline {
        let refusal =
            Refusal::<Place>::new(place, "it is relative to a baseline, and there is none");
        return Err(refusal.hint("name a results folder with --baseline").into());
    }
    Ok(NamedLimit { name: limit.text.clone(), limit, place })
}

/// Refuses limits on metrics that no summary can have.
///
/// # Errors
/// All such limits, each with its place.
pub fn check(limits: &[NamedLimit]) -> Result<(), ScenarioError> {
    let unknown = limits.iter().filter(|it| describe(&it.limit.metric).is_none());
    let refusals: Vec<Refusal<Place>> = unknown.map(no_metric).collect();
    if refusals.is_empty() { Ok(()) } else { Err(ScenarioError { refusals, more: 0 }) }
}

fn no_metric(NamedLimit { limit, place, .. }: &NamedLimit) -> Refusal<Place> {
    let metric = &limit.metric;
    let message = format!("there is no metric `{metric}`");
    // Names with what stands between the family and the field, such as a link's name.
    let middle = metric.split_once('.').and_then(|(_, rest)| rest.rsplit_once('.'));
    let name = |family: &str, field: &str| match middle {
        Some((path, _)) => format!("{family}.{path}.{field}"),
        None => format!("{family}.{field}"),
    };
    let known: BTreeSet<String> = catalogue().map(|it| name(it.family, it.field)).collect();
    let refusal = Refusal::new(place.clone(), message);
    let refusal = refusal.instead(metric, known.iter().map(String::as_str));
    Refusal { expected: Some("a metric of docs/metrics.md".to_owned()), ..refusal }
}

impl Asked {
    /// Judges the limits, prints what became of them, and writes the files in the results folder. Without limits it removes
    /// those files: their verdict would be that of other limits.
    ///
    /// # Errors
    /// A file cannot be written or removed.
    pub fn judge(&self, folder: &Folder, summary: &Summary) -> Result<Outcome> {
        if self.limits.is_empty() {
            Limits::remove(folder.root()).context("removing what became of earlier limits")?;
            return Ok(Outcome::Done);
        }
        let limits = self.of(summary);
        let stdout = std::io::stdout();
        let colour = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        write!(say::results(), "\n{}", limits.text(colour))?;
        let files = limits.write(folder.root()).context("writing what became of the limits")?;
        let [xml, markdown] = [&files.junit, &files.markdown].map(|path| path.display());
        writeln!(say::results(), "  JUnit XML: {xml}\n  Markdown:  {markdown}")?;
        Ok(match limits.count(LimitOutcome::Broken) {
            0 if limits.kept => Outcome::Done,
            0 => Outcome::Failed,
            _ => Outcome::LimitBroken,
        })
    }

    fn of(&self, summary: &Summary) -> Limits {
        let stored = self.baseline.as_ref();
        let trials = stored.map(|(_, trials)| &**trials);
        let judged = suiro_analysis::limits(&self.limits, &self.axes, &summary.trials, trials);
        Limits::new(&summary.scenario, stored.map(|(path, _)| &**path), judged)
    }

    /// Whether all limits are kept, and what was found of the first that is not, or of the first.
    ///
    /// # Errors
    /// A limit cannot be judged.
    pub fn decide(&self, summary: &Summary) -> Result<(bool, String)> {
        let limits = self.of(summary);
        let worst = limits.worst().unwrap_or_default();
        let undecided = [LimitOutcome::NotJudged, LimitOutcome::Skipped];
        if worst.is_empty() || undecided.iter().any(|outcome| limits.count(*outcome) > 0) {
            bail!("a limit cannot be judged\n{}", limits.text(false).trim_end());
        }
        Ok((limits.kept, worst))
    }
}
