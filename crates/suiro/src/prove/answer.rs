//! What the trial without a cause says.

use suiro_analysis::Why;
use suiro_analysis::why::wording::span;
use suiro_analysis::why::{Explained, covered_ns};
use suiro_record::words::{Effect, Proof};
use suiro_report::{Proved, cause_label};

use super::{Asked, Found, Question};

/// An effect that comes later by up to half of its length, or by this, is the same.
const SAME_NS: i64 = 2_000_000_000;
/// A cause is proved if without it at least this share is gone of the time that it was blamed for.
const GONE: f64 = 0.5;

/// What changed trials say about a question.
pub struct Answer {
    pub verdict: Proof,
    /// How much of the effect remained, with the trial's own seed.
    remains_ns: Option<i64>,
    seeds: Seeds,
    /// Why it was not tried.
    reason: Option<String>,
    /// The trial without this cause and the others of its effect, and the share of all of them; none if that was not needed.
    pub together: Option<(Asked, f64)>,
    /// Whether it was this trial that proved it.
    is_joint: bool,
}

/// Seeds with which the changed trial was compared with the unchanged one, the trial's own among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Seeds {
    all: u32,
    /// Those of them whose unchanged trial has the effect.
    with_effect: u32,
    /// Those of these without which the effect is gone.
    proved: u32,
}

impl Answer {
    /// What the trial with the seed of its own says.
    pub fn of(question: &Question, effect: &Explained, found: &Found) -> Self {
        let why = match &question.asked {
            Ok(asked) => found
                .get(&(asked.variant, 0))
                .map_or(Err("it was not run"), |why| why.as_ref().map_err(String::as_str)),
            Err(reason) => Err(reason.as_str()),
        };
        let remains = why.map(|why| remains(effect, why));
        let reason = remains.as_ref().err().map(|reason| (*reason).to_owned());
        let remains_ns = remains.ok();
        let proved = remains_ns.map(|ns| is_proved(length(effect), question.share, ns));
        let verdict = match proved {
            Some(true) => Proof::Proved,
            Some(false) => Proof::Refuted,
            None => Proof::NotTried,
        };
        let [all, proved] = [proved.is_some(), proved == Some(true)].map(u32::from);
        let seeds = Seeds { all, with_effect: all, proved };
        let (together, is_joint) = (None, false);
        Self { verdict, remains_ns, seeds, reason, together, is_joint }
    }

    /// The trial that decides about it.
    pub fn asked<'a>(&'a self, question: &'a Question) -> Option<&'a Asked> {
        match (&self.together, self.is_joint) {
            (Some((asked, _)), true) => Some(asked),
            _ => question.asked.as_ref().ok(),
        }
    }

    /// Each of several causes may be enough: then only the trial without all of them proves each.
    pub fn joined(&mut self, question: &Question, effect: &Explained, found: &Found) {
        let Some((asked, share)) = &self.together else { return };
        let (true, Some(Ok(why))) = (question.asked.is_ok(), found.get(&(asked.variant, 0))) else {
            return;
        };
        let remains_ns = remains(effect, why);
        if is_proved(length(effect), *share, remains_ns) {
            (self.verdict, self.remains_ns) = (Proof::Proved, Some(remains_ns));
            (self.seeds.proved, self.is_joint) = (1, true);
        }
    }

    /// Counts what other seeds say of a cause that was proved; `control` is the variant that changes nothing. Where the
    /// unchanged trial does not have the effect, a changed one without it proves nothing.
    pub fn repeat(
        &mut self,
        question: &Question,
        effect: &Explained,
        (found, control, seeds): (&Found, usize, u32),
    ) {
        let (Some(asked), Proof::Proved) = (self.asked(question), self.verdict) else { return };
        let variant = asked.variant;
        let joint = self.together.as_ref().filter(|_| self.is_joint);
        let share = joint.map_or(question.share, |(_, share)| *share);
        let remains = |variant, number| {
            let why = found.get(&(variant, number))?.as_ref().ok()?;
            Some(remains(effect, why))
        };
        for number in 1..seeds {
            let was_ns = remains(control, number);
            match (was_ns, remains(variant, number)) {
                (Some(0), _) => self.seeds.all += 1,
                (Some(was_ns), Some(remains_ns)) => {
                    self.seeds.all += 1;
                    self.seeds.with_effect += 1;
                    self.seeds.proved += u32::from(is_proved(was_ns, share, remains_ns));
                }
                // One of them is not valid: nothing is known.
                (None, _) | (Some(_), None) => {}
            }
        }
    }

    /// All of it, as a document.
    pub fn told(self, question: &Question, effect: &Explained) -> Proved {
        let was_ns = length(effect);
        let cause = cause_label(question.cause);
        let change = self.asked(question).map(|asked| asked.change.clone());
        let sentence = match (&change, self.remains_ns) {
            (Some(change), Some(0)) => {
                format!("{change} it does not happen (0 ms of {}", span(was_ns))
            }
            (Some(change), Some(ns)) if self.verdict == Proof::Proved => {
                format!("{change} it is shorter ({} of {}", span(ns), span(was_ns))
            }
            (Some(change), Some(ns)) => format!(
                "{change} it still happens ({} of {}): this was not the cause, {cause}",
                span(ns),
                span(was_ns)
            ),
            _ => format!("{cause}: {}", self.reason.as_deref().unwrap_or("no trial was run")),
        };
        let sentence = match self.verdict {
            Proof::Proved => {
                let alone = "; without one of them alone it still happens";
                let more = if self.is_joint { alone } else { "" };
                format!("proved: {sentence}, {}){more}", self.seeds.told())
            }
            Proof::Refuted => format!("refuted: {sentence}"),
            Proof::NotTried => format!("not tried: {sentence}"),
        };
        let seconds = |ns: i64| ns as f64 / 1e9;
        Proved {
            verdict: self.verdict,
            change,
            was_s: seconds(was_ns),
            remains_s: self.remains_ns.map(seconds),
            seeds: self.seeds.all,
            seeds_with_effect: self.seeds.with_effect,
            seeds_proved: self.seeds.proved,
            sentence,
        }
    }
}

impl Seeds {
    /// `2 of 2 seeds; 2 of 3 seeds have the effect`.
    fn told(self) -> String {
        let Self { all, with_effect, proved } = self;
        match all {
            1 => format!("{proved} of {with_effect} seeds"),
            _ => format!(
                "{proved} of {with_effect} seeds; {with_effect} of {all} seeds have the effect"
            ),
        }
    }
}

fn length(effect: &Explained) -> i64 {
    effect.to_ns.saturating_sub(effect.from_ns)
}

/// How much of an effect is in another trial: the time, from when it began until some time after it ended, in which the same
/// viewer bears the same, or worse. At most as long as it was.
pub fn remains(effect: &Explained, why: &Why) -> i64 {
    let later = SAME_NS.min(length(effect) / 2);
    let (from, to) = (effect.from_ns, effect.to_ns.saturating_add(later));
    let as_bad = |other: &&Explained| match (&effect.change, &other.change) {
        (Some(was), Some(is)) => is.level <= was.level,
        _ => true,
    };
    let same = |other: &&Explained| other.subject == effect.subject && alike(effect, other);
    let spans = why.effects.iter().filter(same).filter(as_bad);
    let spans = spans.map(|other| (other.from_ns.max(from), other.to_ns.min(to)));
    covered_ns(spans).min(length(effect))
}

/// Whether two effects are the same to a viewer: late frames that freeze the screen are no better than a freeze.
fn alike(effect: &Explained, other: &Explained) -> bool {
    let worse =
        matches!((effect.effect, other.effect), (Effect::Late | Effect::Missing, Effect::Freeze));
    effect.effect == other.effect || worse
}

/// Whether of an effect that lasted for `was_ns`, half of the share that a cause was blamed for is gone without it.
pub fn is_proved(was_ns: i64, share: f64, remains_ns: i64) -> bool {
    let was_ns = was_ns.max(1);
    was_ns.saturating_sub(remains_ns) as f64 / was_ns as f64 >= share * GONE
}
