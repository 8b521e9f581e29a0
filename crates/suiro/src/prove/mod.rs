//! `suiro why --prove`: each trial again without each cause that `why` names. In virtual time a trial with the same seed
//! is the same until the change acts, so what the change removes is what the cause did. With other seeds, the unchanged
//! trial shows first whether there is anything to remove.

mod answer;
mod curve;
mod remove;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use suiro_analysis::Why;
use suiro_analysis::why::Explained;
use suiro_lab::guests::Guests;
use suiro_lab::runner::Order;
use suiro_record::words::{Cause, Proof};
use suiro_record::{Folder, Manifest, PlannedTrial};
use suiro_report::{TrialCauses, keep_proofs};
use suiro_scenario::{CapturePoints, EndpointSpec, Setup};
use suiro_units::Duration;

use crate::args::WhyArgs;
use crate::progress::label;
use crate::work::Work;
use crate::{Usage, run, verify};

use answer::{Answer, remains};
use remove::{Blamed, Removal};

/// A cause with a smaller share of an effect is not in its sentence, and is not tried.
const NAMED: f64 = 0.2;
/// A changed trial goes on for so long after the effect: it may come later.
const LATER: Duration = Duration::from_secs(3);

/// One cause of one effect.
struct Question {
    /// Which of the chosen trials.
    trial: usize,
    /// Number of the effect in its trial.
    effect: usize,
    cause: Cause,
    share: f64,
    /// The trial to run; or why there is none.
    asked: Result<Asked, String>,
}

/// A trial that is to answer a question.
#[derive(Debug, Clone)]
struct Asked {
    /// Its place among the variants.
    variant: usize,
    /// What is different in it.
    change: String,
}

/// A changed trial, which may answer several questions, or one that is as it was.
struct Variant {
    trial: usize,
    setup: Setup,
}

/// Runs the trials of `chosen` again without the causes of their effects, and adds what they showed to `causes`.
///
/// # Errors
/// The results are not of virtual time, an effect has no such number, or no trial can be run.
pub fn prove(
    args: &WhyArgs,
    folder: &Folder,
    chosen: &[PlannedTrial],
    causes: &mut [TrialCauses],
) -> Result<()> {
    let manifest = folder.manifest().context("reading the results folder")?;
    let guests = verify::guests(&manifest, &args.dir, "proved")?;
    let mut orders = BTreeMap::new();
    for (trial, planned) in chosen.iter().enumerate() {
        // Nothing is known of one that was not run, or whose records are damaged.
        if causes[trial].problem.is_none() {
            orders.insert(trial, verify::order(folder, planned)?);
        }
    }
    let mut variants = Vec::new();
    let mut questions = Vec::new();
    for (trial, order) in &orders {
        let trial = *trial;
        questions.extend(ask(args, trial, (&order.setup, causes[trial].why()), &mut variants));
    }
    let lab = Lab::new(args, &manifest, &guests, &orders)?;
    let all: Vec<Run> = (0..variants.len()).map(|variant| (variant, 0)).collect();
    let mut found = lab.run(&mut variants, &all)?;
    let effect = |question: &Question| &causes[question.trial].why().effects[question.effect];
    let mut answers: Vec<Answer> =
        questions.iter().map(|question| Answer::of(question, effect(question), &found)).collect();
    let lasted: Vec<Duration> = variants.iter().map(|it| it.setup.duration).collect();
    let joint = join(&orders, (&questions, &mut answers), causes, &mut variants);
    // One that was run for another effect may have ended too early for this one.
    let is_known = |at: &usize| lasted.get(*at) == Some(&variants[*at].setup.duration);
    let joint = joint.into_iter().filter(|at| !is_known(at)).map(|variant| (variant, 0));
    let joint: Vec<Run> = joint.collect();
    found.extend(lab.run(&mut variants, &joint)?);
    for (question, answer) in questions.iter().zip(&mut answers) {
        answer.joined(question, effect(question), &found);
    }
    let all: Vec<_> = questions.iter().map(|it| (it, effect(it))).zip(&mut answers).collect();
    repeat(&lab, args.seeds, all, &mut variants)?;
    for (question, answer) in questions.iter().zip(answers) {
        let effect = &causes[question.trial].why().effects[question.effect];
        let proved = answer.told(question, effect);
        causes[question.trial].prove(question.effect, question.cause, proved);
    }
    for trial in orders.keys() {
        let planned = &chosen[*trial];
        keep_proofs(folder, planned, &causes[*trial])
            .with_context(|| format!("{}: writing table `causes`", label(planned)))?;
    }
    Ok(())
}

/// Tries causes that were proved with further seeds: the unchanged trial first, and the changed one if that has the effect.
fn repeat(
    lab: &Lab<'_>,
    seeds: u32,
    mut all: Vec<((&Question, &Explained), &mut Answer)>,
    variants: &mut Vec<Variant>,
) -> Result<()> {
    all.retain(|(_, answer)| answer.verdict == Proof::Proved);
    let mut controls = BTreeMap::new();
    for ((question, effect), _) in &all {
        let setup = lab.orders[&question.trial].setup.clone();
        controls.insert(question.trial, place(question.trial, setup, effect, variants));
    }
    let control: Vec<Run> =
        controls.values().flat_map(|at| (1..seeds).map(|number| (*at, number))).collect();
    let mut found = lab.run(variants, &control)?;
    let mut again = BTreeSet::new();
    for ((question, effect), answer) in &all {
        let Some(asked) = answer.asked(question) else { continue };
        let has = |number: &u32| {
            let why = found.get(&(controls[&question.trial], *number));
            why.and_then(|why| why.as_ref().ok()).is_some_and(|why| remains(effect, why) > 0)
        };
        again.extend((1..seeds).filter(has).map(|number| (asked.variant, number)));
    }
    found.extend(lab.run(variants, &again.into_iter().collect::<Vec<_>>())?);
    for ((question, effect), answer) in all {
        answer.repeat(question, effect, (&found, controls[&question.trial], seeds));
    }
    Ok(())
}

/// Whether there is an effect with the number that is asked for.
pub fn check_effect(args: &WhyArgs, causes: &[TrialCauses]) -> Result<()> {
    let Some(number) = args.effect else { return Ok(()) };
    let most = causes.iter().map(|trial| trial.why().effects.len()).max().unwrap_or(0);
    if number >= most as u64 {
        let found = match most {
            0 => "there is no effect".to_owned(),
            most => format!("expected a number from 0 to {}", most - 1),
        };
        bail!(Usage(format!(
            "--effect {number}: {found}\nhint: suiro why {} prints effects with their numbers",
            args.dir.display()
        )));
    }
    Ok(())
}

/// A question for each cause that is named of each effect, and the changed trials that answer them.
fn ask(
    args: &WhyArgs,
    trial: usize,
    (setup, why): (&Setup, &Why),
    variants: &mut Vec<Variant>,
) -> Vec<Question> {
    let mut questions = Vec::new();
    let wanted = |number: usize| args.effect.is_none_or(|effect| effect == number as u64);
    for (number, effect) in why.effects.iter().enumerate().filter(|(number, _)| wanted(*number)) {
        let named = effect
            .shares
            .iter()
            .filter(|(cause, share)| *share >= NAMED && *cause != Cause::Unknown);
        for (cause, share) in named {
            let crossed = why.crossed.iter().find(|it| it.subject == effect.subject);
            let blamed = Blamed { setup, effect, cause: *cause, crossed };
            let asked = match blamed.removal() {
                Ok(Removal { change, setup }) => {
                    Ok(Asked { variant: place(trial, setup, effect, variants), change })
                }
                Err(reason) => Err(reason.to_owned()),
            };
            questions.push(Question { trial, effect: number, cause: *cause, share: *share, asked });
        }
    }
    questions
}

/// The place of a trial among the variants, where it lasts until some time after an effect.
fn place(trial: usize, mut setup: Setup, effect: &Explained, variants: &mut Vec<Variant>) -> usize {
    let whole = setup.duration;
    let ends = Duration::from_nanos(u64::try_from(effect.to_ns).unwrap_or(0)) + LATER;
    setup.record.capture = CapturePoints::default();
    for endpoint in &mut setup.endpoints {
        // By default it is as long as the trial.
        if let EndpointSpec::Origin(origin) = &mut endpoint.spec {
            origin.length = origin.length.or(Some(whole));
        }
    }
    let same = |it: &Variant| {
        let lasting = Setup { duration: it.setup.duration, ..setup.clone() };
        it.trial == trial && it.setup == lasting
    };
    let found = variants.iter().position(same);
    let at = found.unwrap_or_else(|| {
        setup.duration = Duration::ZERO;
        variants.push(Variant { trial, setup });
        variants.len() - 1
    });
    let duration = &mut variants[at].setup.duration;
    *duration = (*duration).max(ends).min(whole);
    at
}

/// Where no cause of an effect was proved, each may be enough: the trials without all of them. Returns their places.
fn join(
    orders: &BTreeMap<usize, Order>,
    (questions, answers): (&[Question], &mut [Answer]),
    causes: &[TrialCauses],
    variants: &mut Vec<Variant>,
) -> BTreeSet<usize> {
    let mut joint = BTreeSet::new();
    let same = |a: &Question, b: &Question| (a.trial, a.effect) == (b.trial, b.effect);
    let mut from = 0;
    for group in questions.chunk_by(same) {
        let own = &mut answers[from..from + group.len()];
        from += group.len();
        let refuted = own.iter().filter(|answer| answer.verdict == Proof::Refuted).count();
        if refuted < 2 || own.iter().any(|answer| answer.verdict == Proof::Proved) {
            continue;
        }
        let (trial, why) = (group[0].trial, causes[group[0].trial].why());
        let effect = &why.effects[group[0].effect];
        let mut all: Option<Removal> = None;
        let mut share = 0.0;
        for question in group.iter().filter(|question| question.asked.is_ok()) {
            let crossed = why.crossed.iter().find(|it| it.subject == effect.subject);
            let setup = all.as_ref().map_or(&orders[&trial].setup, |all| &all.setup);
            let next = Blamed { setup, effect, cause: question.cause, crossed }.removal();
            // What the first left out, the second cannot.
            let Ok(next) = next else { continue };
            let before = all.map_or(String::new(), |all| format!("{} and ", all.change));
            all = Some(Removal { change: format!("{before}{}", next.change), setup: next.setup });
            share += question.share;
        }
        let Some(Removal { change, setup }) = all else { continue };
        let asked = Asked { variant: place(trial, setup, effect, variants), change };
        joint.insert(asked.variant);
        own.iter_mut().for_each(|answer| answer.together = Some((asked.clone(), share)));
    }
    joint
}

/// Where changed trials run.
struct Lab<'a> {
    orders: &'a BTreeMap<usize, Order>,
    packages: run::Packages,
    lab: verify::Lab<'a>,
    work: Work,
}

/// A variant and the number of a seed; 0 is the trial's own.
type Run = (usize, u32);
/// What the records of changed trials say; or why a trial says nothing.
type Found = BTreeMap<Run, Result<Why, String>>;

impl<'a> Lab<'a> {
    fn new(
        args: &WhyArgs,
        manifest: &Manifest,
        guests: &'a Guests,
        orders: &'a BTreeMap<usize, Order>,
    ) -> Result<Self> {
        let mut versions = manifest.versions.clone();
        let setups = orders.values().map(|order| &order.setup);
        let packages = run::prepare_media(setups.clone(), &mut versions)?;
        // Each trial is run in several variants.
        let jobs = run::guests_at_once(args.jobs, usize::MAX, setups);
        let lab = verify::Lab::new(guests, jobs)?;
        let work = Work::new("prove")?;
        Ok(Self { orders, packages, lab, work })
    }

    /// Runs some of the variants. One that ends too early to be valid is run to the end of its trial.
    fn run(&self, variants: &mut [Variant], runs: &[Run]) -> Result<Found> {
        let mut found = self.run_once(variants, runs)?;
        let whole = |variant: &Variant| self.orders[&variant.trial].setup.duration;
        let failed = |run: &&Run| found.get(run).is_some_and(Result::is_err);
        let is_cut = |run: &&Run| variants[run.0].setup.duration < whole(&variants[run.0]);
        let again: Vec<Run> = runs.iter().filter(failed).filter(is_cut).copied().collect();
        for (variant, _) in &again {
            variants[*variant].setup.duration = whole(&variants[*variant]);
        }
        found.extend(self.run_once(variants, &again)?);
        Ok(found)
    }

    fn run_once(&self, variants: &[Variant], runs: &[Run]) -> Result<Found> {
        if runs.is_empty() {
            return Ok(Found::new());
        }
        let folder = Folder::new(self.work.path().to_owned());
        let orders: Vec<Order> =
            runs.iter().map(|run| self.order(&folder, *run, &variants[run.0])).collect();
        let planned: Vec<PlannedTrial> = orders.iter().map(|order| order.trial.clone()).collect();
        self.lab.run(orders, &folder, "proved")?;
        Ok(runs.iter().copied().zip(planned.iter().map(|planned| why(&folder, planned))).collect())
    }

    fn order(&self, folder: &Folder, (at, number): Run, variant: &Variant) -> Order {
        let order = &self.orders[&variant.trial];
        let own = order.trial.seed;
        let seed = if number == 0 { own } else { own.nth(number.into()) };
        let trial = PlannedTrial {
            seed,
            folder: format!("trials/{at}/{number}/{}", variant.setup.duration.as_nanos()),
            ..order.trial.clone()
        };
        let mut setup = variant.setup.clone();
        // What would begin later makes a trial invalid that ends before.
        setup.endpoints.retain(|endpoint| endpoint.start < setup.duration);
        Order {
            dir: folder.trial(&trial),
            packages: self.packages.of(&setup),
            setup,
            trial,
            machine: order.machine.clone(),
            virtual_time: None,
        }
    }
}

/// What the records of a changed trial say, if it is valid.
fn why(folder: &Folder, planned: &PlannedTrial) -> Result<Why, String> {
    let outcome = folder.outcome(planned).map_err(|error| error.to_string())?;
    if let Some(reason) = outcome.and_then(|outcome| outcome.invalid_because) {
        return Err(format!("the trial without it is not valid: {reason}"));
    }
    suiro_report::why_of(folder, planned)
}

#[cfg(test)]
mod tests;
