//! A scenario expanded: cells × repetitions = trials.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use suiro_record::{Axis, Cell, PlannedTrial};
use suiro_units::Seed;

use crate::cell;
use crate::document::{self, Node, entries, entry};
use crate::error::{Error as ScenarioError, REFUSALS_MAX};
use crate::files::Files;
use crate::header::{self, Date, Header, Parts, TimeKind};
use crate::known::Known;
use crate::limits::{self, NamedLimit};
use crate::overrides::Overrides;
use crate::refusal::{Place, Refusal, Span};
use crate::setup::Setup;
use crate::source::Source;
use crate::substitute::{Bindings, Use, substitute};

/// Most trials that a plan may have.
pub const TRIALS_MAX: usize = 100_000;

/// What a run is going to do. Every value has been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The scenario's name.
    pub name: String,
    /// One line on what it shows.
    pub title: String,
    /// The study that it reproduces, such as `S0`.
    pub study: Option<String>,
    /// The scenario's text as run: with every override put in. It gives this plan again.
    pub text: String,
    /// The axes of the matrix, all their values, in the scenario's order.
    pub axes: Vec<Axis>,
    /// The seed of the run.
    pub seed: Seed,
    /// Trials to run in parallel in the machine's time, unless the command line says otherwise.
    pub jobs: u32,
    /// The time that trials run in.
    pub time: TimeKind,
    /// The date at which trials in virtual time begin.
    pub date: Date,
    /// What its results must keep to. Whether there are such metrics is not checked here.
    pub limits: Vec<NamedLimit>,
    /// Trials of the whole plan, whatever `--only` leaves out.
    pub total: u32,
    /// The trials in the order to run them: all cells of the first repetition, then of the next,
    /// so that a run cut off has whole repetitions.
    pub trials: Vec<Trial>,
}

/// One trial of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Its cell, repetition, seed and folder, as they stand in records.
    ///
    /// The seed hangs on the run's seed and the repetition only: all cells of one repetition meet
    /// the same random numbers on the link, so that cells are compared in pairs.
    pub planned: PlannedTrial,
    /// What to set up and run; shared by the repetitions of a cell.
    pub setup: Arc<Setup>,
}

/// One combination of the axes' values: an index into each axis's points.
type Combination = Vec<usize>;

/// Expands a text into its plan.
pub(crate) fn expand(
    source: &Source,
    overrides: &Overrides,
    files: &dyn Files,
) -> Result<Plan, ScenarioError> {
    let mut refusals = Vec::new();
    let root = document::parse(source.text()).map_err(|refusals| source.error(refusals))?;
    let mut parts = header::read(&root, &mut refusals);
    let used = fill_in_axes(&mut parts, &mut refusals);
    let limits = limits::read(&root, Some(&parts.axes), source, &mut refusals);
    let kept = match selected(&parts.axes, &overrides.only) {
        Ok(kept) => kept,
        Err(error) => return Err(both(error, source.error(refusals))),
    };
    let repetitions = parts.header.as_ref().map_or(1, |header| header.repetitions);
    if let Err(refusal) = bounded(&parts.axes, repetitions, &root) {
        refusals.push(refusal);
        return Err(source.error(refusals));
    }
    if overrides.set.is_empty() {
        unused(&parts, used, &mut refusals);
    }
    let combinations = combinations(&kept);
    let setups = setups(source, &parts, &combinations, files, &mut refusals);
    if refusals.is_empty() && overrides.only.is_empty() {
        let is_set = |span: &Range<usize>| source.set_by(span).is_some();
        unused_names(
            &parts.body,
            &setups,
            &|span| overrides.set.is_empty() || is_set(span),
            &mut refusals,
        );
    }
    let Some(header) = parts.header.filter(|_| refusals.is_empty()) else {
        return Err(source.error(refusals));
    };
    let axes = parts.axes;
    let cells: Vec<PlannedCell> = combinations
        .iter()
        .zip(setups)
        .map(|(point, setup)| PlannedCell {
            cell: cell(&axes, point),
            folder: folder(&axes, point),
            place: place(&axes, point),
            setup,
        })
        .collect();
    let in_all = short(axes.iter().map(|axis| axis.points.len()).product());
    let trials = trials(&header, &cells, in_all);
    let axes = axes.iter().map(|axis| Axis {
        name: axis.name.clone(),
        labels: axis.points.iter().map(|point| point.label.clone()).collect(),
    });
    Ok(Plan {
        name: header.name,
        title: header.title.trim().to_owned(),
        study: header.study,
        axes: axes.collect(),
        seed: header.seed,
        jobs: header.jobs,
        time: header.time,
        date: header.date,
        limits,
        total: in_all * header.repetitions,
        trials,
        text: source.text().to_owned(),
    })
}

/// What is wrong on the command line, then what is wrong in the text.
fn both(mut first: ScenarioError, second: ScenarioError) -> ScenarioError {
    first.refusals.extend(second.refusals);
    ScenarioError { refusals: first.refusals, more: first.more + second.more }
}

/// The points of each axis that `--only` keeps.
fn selected(axes: &[header::Axis<'_>], only: &[String]) -> Result<Vec<Vec<usize>>, ScenarioError> {
    let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for item in only {
        let refuse = |found: String| Refusal::<Place>::new(format!("--only {item}"), found);
        let Some((name, label)) = item.split_once('=') else {
            let refusal = refuse("no `=` between an axis and a value".into());
            return Err(refusal.hint("write --only tcp=reno,tcp=cubic").into());
        };
        let (name, label) = (name.trim(), label.trim());
        let names = || axes.iter().map(|axis| axis.name.as_str());
        let Some(axis) = axes.iter().find(|axis| axis.name == name) else {
            let refusal = refuse(format!("the matrix has no axis `{name}`"));
            return Err(refusal.instead(name, names()).into());
        };
        let labels = || axis.points.iter().map(|point| point.label.as_str());
        if !labels().any(|known| known == label) {
            let refusal = refuse(format!("the axis `{name}` has no value `{label}`"));
            return Err(refusal.instead(label, labels()).into());
        }
        wanted.entry(name).or_default().insert(label);
    }
    let keep = |axis: &header::Axis<'_>| {
        let wanted = wanted.get(axis.name.as_str());
        let kept = |n: &usize| wanted.is_none_or(|set| set.contains(&*axis.points[*n].label));
        (0..axis.points.len()).filter(kept).collect()
    };
    Ok(axes.iter().map(keep).collect())
}

/// Refuses a matrix of too many trials, whatever `--only` keeps of it.
fn bounded(
    axes: &[header::Axis<'_>],
    repetitions: u32,
    root: &Node<'_>,
) -> Result<(), Refusal<Span>> {
    let trials = axes
        .iter()
        .map(|axis| axis.points.len().max(1))
        .try_fold(repetitions as usize, usize::checked_mul)
        .unwrap_or(usize::MAX);
    if trials <= TRIALS_MAX {
        return Ok(());
    }
    let key = if axes.is_empty() { "repetitions" } else { "matrix" };
    let place = document::key_place(root, &[key]);
    let message = format!("{trials} trials: every value of every axis, {repetitions} times");
    Err(Refusal::new(place, message).expected(format!("at most {TRIALS_MAX}")))
}

/// Every choice of one point per axis, the last axis changing fastest.
fn combinations(kept: &[Vec<usize>]) -> Vec<Combination> {
    kept.iter().fold(vec![Vec::new()], |chosen, points| {
        let with = |start: &Combination| {
            points.iter().map(|point| [start.as_slice(), &[*point]].concat()).collect::<Vec<_>>()
        };
        chosen.iter().flat_map(with).collect()
    })
}

/// Puts parameters in the place of references in the values of axes.
fn fill_in_axes(parts: &mut Parts<'_>, refusals: &mut Vec<Refusal<Span>>) -> Vec<Use> {
    let bindings = entries(&parts.parameters).map(|(name, _, node)| (name, node)).collect();
    let mut uses = Vec::new();
    for point in parts.axes.iter_mut().flat_map(|axis| &mut axis.points) {
        substitute(&mut point.value, &bindings, &mut uses, refusals);
    }
    uses
}

/// Refuses parameters and axes that neither the body nor an axis (`used`) refers to: they would do
/// nothing.
fn unused(parts: &Parts<'_>, used: Vec<Use>, refusals: &mut Vec<Refusal<Span>>) {
    let axes =
        parts.axes.iter().filter_map(|axis| Some((&*axis.name, &axis.points.first()?.value)));
    let parameters = entries(&parts.parameters).map(|(name, _, node)| (name, node));
    let bindings = parameters.chain(axes).collect();
    let (mut uses, mut ignored) = (used, Vec::new());
    substitute(&mut parts.body.clone(), &bindings, &mut uses, &mut ignored);
    for (name, node) in bindings {
        if !uses.iter().any(|used| used.name == name) {
            let refusal = Refusal::new(node.span(), format!("`{name}` is never used"));
            refusals.push(refusal.hint(format!("refer to it as \"${name}\", or remove it")));
        }
    }
}

/// Refuses links and media that no cell uses, of those whose key is one to `check`: nothing in them would do anything.
fn unused_names(
    body: &Node<'_>,
    setups: &[Arc<Setup>],
    check: &dyn Fn(&Range<usize>) -> bool,
    refusals: &mut Vec<Refusal<Span>>,
) {
    let links = |setup: &Arc<Setup>| {
        let links = setup.topology.links.iter().filter(|link| link.config.is_some());
        links.map(|link| link.name.clone()).collect::<Vec<_>>()
    };
    let media = |setup: &Arc<Setup>| setup.media.keys().cloned().collect::<Vec<_>>();
    let used: [(&str, BTreeSet<String>); 2] = [
        ("links", setups.iter().flat_map(links).collect()),
        ("media", setups.iter().flat_map(media).collect()),
    ];
    for (section, used) in used {
        let names = entry(body, section).into_iter().flat_map(entries);
        for (name, span, _) in names.filter(|(name, span, _)| !used.contains(*name) && check(span))
        {
            let refusal = Refusal::new(span, format!("no cell uses `{section}.{name}`"));
            let refusal = refusal.instead(name, used.iter().map(String::as_str));
            refusals.push(refusal.or_hint("remove it, or name it where it is to be used"));
        }
    }
}

/// The setup of each combination, or less if there are refusals.
fn setups(
    source: &Source,
    parts: &Parts<'_>,
    combinations: &[Combination],
    files: &dyn Files,
    refusals: &mut Vec<Refusal<Span>>,
) -> Vec<Arc<Setup>> {
    let (mut setups, mut known) = (Vec::new(), Known::default());
    for combination in combinations {
        let mut bindings: Bindings<'_, '_> =
            entries(&parts.parameters).map(|(name, _, node)| (name, node)).collect();
        for (axis, point) in parts.axes.iter().zip(combination) {
            bindings.insert(&axis.name, &axis.points[*point].value);
        }
        let (mut body, mut uses, mut found) = (parts.body.clone(), Vec::new(), Vec::new());
        substitute(&mut body, &bindings, &mut uses, &mut found);
        if found.is_empty() {
            setups.extend(cell::read(&body, files, &mut known, &mut found).map(Arc::new));
        }
        for refusal in found.into_iter().map(|refusal| explained(refusal, &uses, source)) {
            if !refusals.contains(&refusal) {
                refusals.push(refusal);
            }
        }
        if refusals.len() > REFUSALS_MAX {
            break;
        }
    }
    setups
}

/// A refusal with a value that came from elsewhere: names where from.
fn explained(refusal: Refusal<Span>, uses: &[Use], source: &Source) -> Refusal<Span> {
    let Some(span) = refusal.place.bytes.clone() else { return refusal };
    uses.iter().filter(|used| used.at == span).fold(refusal, |refusal, used| {
        let line = source.line(used.defined.start);
        let from = source.set_by(&used.defined).map_or(format!("line {line}"), str::to_owned);
        refusal.note(format!("`${}` is `{}`, from {from}", used.name, used.value))
    })
}

fn cell(axes: &[header::Axis<'_>], combination: &Combination) -> Cell {
    let label = |(axis, point): (&header::Axis<'_>, &usize)| {
        (axis.name.clone(), axis.points[*point].label.clone().into())
    };
    axes.iter().zip(combination).map(label).collect()
}

/// Longest name of a cell's folder.
const FOLDER_BYTES_MAX: usize = 120;

/// A cell's folder: `tcp=reno,loss=1-pct`, or `all` where there is no matrix. It depends on the
/// scenario and the cell only, not on `--only`, so that `--resume` finds it again.
fn folder(axes: &[header::Axis<'_>], combination: &Combination) -> String {
    if axes.is_empty() {
        return "all".into();
    }
    let part = |(axis, point): (&header::Axis<'_>, &usize)| {
        let safe = |point: &header::Point<'_>| safe(&point.label);
        let own = safe(&axis.points[*point]);
        let twins = axis.points[..*point].iter().filter(|other| safe(other) == own).count();
        match twins {
            0 => format!("{}={own}", axis.name),
            n => format!("{}={own}~{}", axis.name, n + 1),
        }
    };
    let name = axes.iter().zip(combination).map(part).collect::<Vec<_>>().join(",");
    if name.len() <= FOLDER_BYTES_MAX {
        return name;
    }
    let Seed(mark) = Seed(0).derive(&name);
    format!("{}~{mark:016x}", &name[..FOLDER_BYTES_MAX - 17])
}

/// A label in characters that every file system and shell takes as they are.
fn safe(label: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_' || c == '-';
    label.chars().map(|c| if keep(c) { c } else { '-' }).collect()
}

/// A cell of the plan, before it is repeated.
struct PlannedCell {
    cell: Cell,
    folder: String,
    /// Its place among all cells of the matrix, from 0.
    place: u32,
    setup: Arc<Setup>,
}

/// The place of a combination among all of the matrix, from 0: the last axis changes fastest.
fn place(axes: &[header::Axis<'_>], combination: &Combination) -> u32 {
    let points = axes.iter().zip(combination);
    short(points.fold(0, |place, (axis, point)| place * axis.points.len() + point))
}

fn short(count: usize) -> u32 {
    u32::try_from(count).expect("no more than TRIALS_MAX: checked by bounded")
}

fn trials(header: &Header, cells: &[PlannedCell], in_all: u32) -> Vec<Trial> {
    let mut trials = Vec::new();
    for repetition in 1..=header.repetitions {
        let seed = header.seed.derive(&format!("repetition {repetition}"));
        for PlannedCell { cell, folder, place, setup } in cells {
            let folder = format!("trials/{folder}/{repetition}");
            let number = Some((repetition - 1) * in_all + place + 1);
            let planned = PlannedTrial { cell: cell.clone(), repetition, seed, folder, number };
            trials.push(Trial { planned, setup: setup.clone() });
        }
    }
    trials
}
