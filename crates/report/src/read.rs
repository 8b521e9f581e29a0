//! Reads the trials of a results folder, two at a time, and keeps only what the report needs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use suiro_analysis::{
    Analysis, Records, Timeline, Why, analyse, difference, disagreements, explain,
};
use suiro_record::table::Row;
use suiro_record::tables::{CauseRow, HopRow, RateRow};
use suiro_record::words::Proof;
use suiro_record::{
    Attempt, Capture, Folder, FolderError, Machine, Metrics, PlannedTrial, Reader, RecordError,
    ScreenOutcome, SelfCheck, Source, Trial, Writer,
};

use crate::Run;
use crate::flows;
use crate::kept::{Kept, inputs};
use crate::page::{PageFlow, PageState};
use crate::sums::Sums;

/// Trials read at one time: as many as the cores of the smallest machine we think of, and a bound on
/// memory, because a trial's records are let go before the next is read.
const READERS: usize = 2;

/// A table larger than this is not read: its rows would take some ten times as much memory.
const TABLE_BYTES_MAX: u64 = 256 << 20;

/// Limit on the points of all series of all trials together: about 20 MB of page at most.
const POINTS_MAX: usize = 3_000_000;

/// Kinds of series that a usual trial has; more only make the page larger than planned.
const SERIES_USUAL: usize = 16;

/// Most warnings of one trial; more would be of as many senders.
const WARNINGS_MAX: usize = 20;

/// What the report keeps of one trial.
#[derive(Clone)]
pub(crate) struct Read {
    pub planned: PlannedTrial,
    pub state: PageState,
    /// Why the trial is missing or damaged.
    pub problem: Option<String>,
    /// What `trial.json` says; in a report of very many trials without what only the trial's own page shows.
    pub outcome: Option<Trial>,
    /// What the outcome has of its links, and had where it is cut short.
    pub sums: Sums,
    /// The machine that it ran on; trials of one machine share it.
    pub machine: Option<Arc<Machine>>,
    pub metrics: Metrics,
    pub timeline: Timeline,
    /// What limited its flows, and what its effects came from.
    pub why: Why,
    /// Its flows.
    pub flows: Vec<PageFlow>,
    /// What was made of the screens of its viewers.
    pub screens: Vec<ScreenOutcome>,
    /// What happened in it that does not make it invalid.
    pub warnings: Vec<String>,
}

/// Of a trial that is not valid for a reason that its files do not have.
pub(crate) const NO_REASON: &str = "no reason was recorded";

/// How much of each trial is read.
#[derive(Clone, Copy)]
pub(crate) enum Depth<'a> {
    /// All that the page shows.
    Whole,
    /// What tables and maps need: a page of many trials has no more. Whatever had to be computed is first handed over
    /// whole, for a page of the trial's own.
    Metrics(&'a (dyn Fn(Read) + Sync)),
}

/// Reads every trial, in the order of the plan.
pub(crate) fn trials(
    folder: &Folder,
    plan: &[PlannedTrial],
    run: Run,
    depth: Depth<'_>,
) -> Vec<Read> {
    let bins = match depth {
        Depth::Whole => (POINTS_MAX / SERIES_USUAL / plan.len().max(1)).clamp(50, 600),
        Depth::Metrics(_) => 600,
    };
    let next = AtomicUsize::new(0);
    let done: Mutex<BTreeMap<usize, Read>> = Mutex::new(BTreeMap::new());
    let (machines, names) = (Pool::<Arc<Machine>>::default(), Pool::<Metrics>::default());
    let work = || {
        while let Some((index, planned)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            plan.get(index).map(|planned| (index, planned))
        } {
            let mut read = trial(folder, planned, bins, run, depth);
            let machine = read.outcome.as_mut().and_then(|outcome| outcome.machine.take());
            read.machine = machine.map(|machine| machines.first(&Arc::new(machine), Arc::eq));
            let named = names.first(&read.metrics, Metrics::has_names_of);
            read.metrics.share(&named);
            done.lock().expect("no reader panics: input never does").insert(index, read);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..READERS.min(plan.len()) {
            scope.spawn(work);
        }
        work();
    });
    done.into_inner().expect("no reader panics: input never does").into_values().collect()
}

/// What trials may have in common, such as the machine, so that it is kept once.
struct Pool<T>(Mutex<Vec<T>>);

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Pool<T> {
    /// Most that are searched for the same: one for each kind of cell.
    const MAX: usize = 100;

    /// The first that is the same as `one`; that one if there is none.
    fn first(&self, one: &T, is_same: impl Fn(&T, &T) -> bool) -> T {
        let mut known = self.0.lock().expect("no reader panics: input never does");
        if let Some(first) = known.iter().find(|it| is_same(it, one)) {
            return first.clone();
        }
        if known.len() < Self::MAX {
            known.push(one.clone());
        }
        one.clone()
    }
}

fn trial(folder: &Folder, planned: &PlannedTrial, bins: usize, run: Run, depth: Depth<'_>) -> Read {
    let now = inputs(folder.root(), planned);
    if let (Depth::Metrics(_), Some(now)) = (depth, &now)
        && let Some(kept) = Kept::read(folder.root(), planned, now)
    {
        let Kept { metrics, warnings, problems, outcome, sums, .. } = kept;
        let read = Read { metrics, warnings, outcome: Some(outcome), sums, ..Read::of(planned) };
        return judged(read, &problems);
    }
    let mut read = match outcome(folder, planned, run) {
        Ok(read) => read,
        Err(without) => return *without,
    };
    let outcome = read.outcome.as_ref().expect("there is an outcome: checked by `outcome`");
    let (records, problems) = records(&folder.trial(planned), outcome);
    Analysis { metrics: read.metrics, timeline: read.timeline, why: read.why } =
        analyse(outcome, &records, bins);
    read.warnings = attempts(outcome);
    read.warnings.extend(unchecked(outcome));
    read.warnings.extend(warnings(&records.rate));
    let written = write_causes_again(&folder.trial(planned), &read.why, |_| None);
    read.warnings.extend(written.err().map(|error| format!("writing the causes: {error}")));
    read.warnings.extend(captures(outcome, &records.hops));
    read.flows = flows::lines(&records.flows);
    read.screens = records.screens;
    if let (Run::Over, Some(inputs)) = (run, now) {
        let kept = Kept {
            inputs,
            metrics: read.metrics.clone(),
            warnings: read.warnings.clone(),
            problems: problems.clone(),
            outcome: outcome.short(),
            sums: read.sums.clone(),
        };
        kept.write(folder.root(), planned);
    }
    let read = judged(read, &problems);
    match depth {
        Depth::Whole => read,
        Depth::Metrics(whole) => {
            let slim = read.slim();
            whole(read);
            slim
        }
    }
}

impl Read {
    /// Of a trial of which nothing is known yet.
    fn of(planned: &PlannedTrial) -> Self {
        Self {
            planned: planned.clone(),
            state: PageState::Missing,
            problem: None,
            outcome: None,
            sums: Sums::default(),
            machine: None,
            metrics: Metrics::default(),
            timeline: Timeline::default(),
            why: Why::default(),
            flows: Vec::new(),
            screens: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The machine that it ran on.
    pub(crate) fn machine(&self) -> Option<&Machine> {
        self.machine.as_deref().or_else(|| self.outcome.as_ref()?.machine.as_ref())
    }

    /// What a page of many trials shows of it.
    fn slim(&self) -> Self {
        Self {
            state: self.state,
            problem: self.problem.clone(),
            outcome: self.outcome.as_ref().map(Trial::short),
            sums: self.sums.clone(),
            metrics: self.metrics.clone(),
            warnings: self.warnings.clone(),
            ..Self::of(&self.planned)
        }
    }
}

/// A trial whose records were read, with these problems.
fn judged(mut read: Read, problems: &[String]) -> Read {
    read.state = if problems.is_empty() { PageState::Complete } else { PageState::Damaged };
    read.problem = (!problems.is_empty()).then(|| problems.join("; "));
    read
}

/// A trial with its outcome; or, without one that has records, all that there is to say.
fn outcome(folder: &Folder, planned: &PlannedTrial, run: Run) -> Result<Read, Box<Read>> {
    let mut read = Read::of(planned);
    match folder.outcome(planned) {
        Ok(Some(outcome)) => {
            let skipped = outcome.skipped;
            read.sums = Sums::of(&outcome);
            read.outcome = Some(outcome);
            if !skipped {
                return Ok(read);
            }
            read.state = PageState::Skipped;
        }
        Ok(None) => {
            let begun = folder.trial(planned).exists();
            let problem = match (run, begun) {
                (Run::Over, true) => "it was interrupted: trial.json is missing",
                (Run::Over, false) => "it was not run",
                (Run::UnderWay, true) => "it is running",
                (Run::UnderWay, false) => "it has not begun: the run is under way",
            };
            read.problem = Some(problem.into());
        }
        Err(error) => {
            read.state = PageState::Damaged;
            read.problem = Some(error.to_string());
        }
    }
    Err(Box::new(read))
}

/// Writes table `causes` into a trial's folder, each row with what was proved of it now, or before of the same cause of the
/// same effect.
pub(crate) fn write_causes_again(
    dir: &Path,
    why: &Why,
    now: impl Fn(&CauseRow) -> Option<Proof>,
) -> Result<(), RecordError> {
    // A table that cannot be read is replaced.
    let before: Vec<CauseRow> = Reader::read_all(dir).unwrap_or_default();
    let key = |row: &CauseRow| (row.subject.clone(), row.effect, row.t_ns, row.to_ns, row.cause);
    let known = before.iter().filter_map(|row| Some((key(row), row.proof?)));
    let known: Vec<_> = known.collect();
    let before = |row: &CauseRow| {
        let key = key(row);
        known.iter().find(|(it, _)| *it == key).map(|(_, proof)| *proof)
    };
    let mut writer = Writer::<CauseRow>::create(dir)?;
    for row in suiro_analysis::why::rows(why) {
        let proof = now(&row).or_else(|| before(&row));
        writer.push(CauseRow { proof, ..row })?;
    }
    writer.close()
}

/// Why, for one trial.
///
/// # Errors
/// What is wrong with its records, in words.
pub(crate) fn why(folder: &Folder, planned: &PlannedTrial) -> Result<Why, String> {
    whole(folder, planned).map(|(outcome, records)| explain(&outcome, &records))
}

/// How a trial went, and all of its records.
///
/// # Errors
/// What is wrong with them, in words.
pub(crate) fn whole(folder: &Folder, planned: &PlannedTrial) -> Result<(Trial, Records), String> {
    let outcome = folder.outcome(planned).map_err(|error| error.to_string())?;
    let outcome = outcome.ok_or("trial.json is missing: it was not run, or was interrupted")?;
    let (records, problems) = records(&folder.trial(planned), &outcome);
    match problems.is_empty() {
        true => Ok((outcome, records)),
        false => Err(problems.join("; ")),
    }
}

/// Earlier attempts, each of which was not valid.
fn attempts(trial: &Trial) -> Vec<String> {
    let told = |(n, attempt): (usize, &Attempt)| {
        format!("attempt {n} was not valid, so the trial ran again: {}", attempt.invalid_because)
    };
    (1..).zip(&trial.attempts).map(told).take(WARNINGS_MAX).collect()
}

/// Links that no attempt compared with the scenario.
fn unchecked(trial: &Trial) -> Vec<String> {
    let told = |check: &SelfCheck| {
        let SelfCheck { link, direction, attempt, .. } = check;
        let why = check.checks.iter().find_map(|part| part.note.as_deref());
        let why = why.unwrap_or("it is not known why");
        format!(
            "link {link} {direction}: the self-check measured nothing in {attempt} attempts: {why}"
        )
    };
    let blind = trial.self_checks.iter().filter(|check| check.measured_nothing());
    blind.map(told).take(WARNINGS_MAX).collect()
}

/// Circuit breakers that were triggered: each sender's first.
fn warnings(rates: &[RateRow]) -> Vec<String> {
    let broken = rates.iter().filter_map(|row| Some((row, row.broken.as_deref()?)));
    let told = |(row, why): (&RateRow, &str)| {
        format!("{}: circuit breaker at {:.1} s: {why}", row.endpoint, row.t_ns as f64 / 1e9)
    };
    broken.map(told).take(WARNINGS_MAX).collect()
}

/// Captures that are not complete, and those that differ from the link's own counts.
fn captures(trial: &Trial, hops: &[HopRow]) -> Vec<String> {
    let missing = |capture: &Capture| capture.dropped + capture.beyond_limit;
    let incomplete = trial.captures.iter().filter(|capture| missing(capture) > 0).map(|capture| {
        let (point, missing) = (&capture.point, missing(capture));
        format!(
            "capture at {point}: {missing} packets are missing, so what its link lost is not known"
        )
    });
    let differs = hops.iter().filter(|row| row.t_ns.is_none()).filter_map(|row| {
        let mut totals = trial.links.iter();
        let link = totals.find(|it| it.link == *row.link && it.direction == row.direction)?;
        let packets = difference(row, link).filter(|packets| *packets > 0)?;
        let (link, direction) = (&row.link, row.direction);
        Some(format!(
            "captures of link {link} {direction} differ from its own counts by {packets} packets"
        ))
    });
    incomplete.chain(differs).take(WARNINGS_MAX).collect()
}

/// What is wrong with the tables of a trial; `None` if it can be used as its `trial.json` says.
pub(crate) fn damage(folder: &Folder, planned: &PlannedTrial, outcome: &Trial) -> Option<String> {
    let kept = inputs(folder.root(), planned)
        .and_then(|inputs| Kept::read(folder.root(), planned, &inputs));
    let problems = match kept {
        Some(kept) => kept.problems,
        None => records(&folder.trial(planned), outcome).1,
    };
    (!problems.is_empty()).then(|| problems.join("; "))
}

/// The tables of a trial, and what is wrong with those that could not be read or are not those of its accounts.
fn records(dir: &Path, outcome: &Trial) -> (Records, Vec<String>) {
    let mut tables = Tables { dir, problems: Vec::new() };
    let mut records = Records::read(&mut tables);
    if tables.problems.is_empty() {
        tables.problems = disagreements(outcome, &records.link);
    }
    records.screens = screens(dir, &mut tables.problems);
    (records, tables.problems)
}

fn screens(dir: &Path, problems: &mut Vec<String>) -> Vec<ScreenOutcome> {
    let failed = |error: FolderError| problems.push(error.to_string());
    let read = suiro_record::folder::screens(dir).map_err(failed);
    read.ok().flatten().unwrap_or_default().screens
}

/// The tables in a trial's folder.
struct Tables<'a> {
    dir: &'a Path,
    /// What is wrong with those that could not be read.
    problems: Vec<String>,
}

impl Source for Tables<'_> {
    fn rows<R: Row>(&mut self) -> Vec<R> {
        if let Err(problem) = check_size(self.dir, R::TABLE) {
            self.problems.push(problem);
            return Vec::new();
        }
        let failed = |error: RecordError| self.problems.push(error.to_string());
        Reader::read_all(self.dir).map_err(failed).unwrap_or_default()
    }
}

/// Refuses tables that would not fit in memory.
fn check_size(dir: &Path, table: &str) -> Result<(), String> {
    let io = |error: std::io::Error| format!("{}: {error}", dir.display());
    let prefix = format!("{table}.");
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&prefix) && name.ends_with(".parquet") {
            bytes += entry.metadata().map_err(io)?.len();
        }
    }
    let (mib, most) = (bytes >> 20, TABLE_BYTES_MAX >> 20);
    if bytes > TABLE_BYTES_MAX {
        return Err(format!(
            "the table `{table}` is {mib} MiB; the report reads at most {most} MiB"
        ));
    }
    Ok(())
}
