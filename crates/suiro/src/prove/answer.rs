//! What the trial without a cause says.

use suiro_analysis::Why;
use suiro_analysis::why::Explained;
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
    seeds: u32,
    proved: u32,
    /// Why it was not tried.
    reason: Option<String>,
    /// The trial without this cause and the others of its effect, and the share of all of them; none if that was not needed.
    pub together: Option<(Asked, f64)>,
    /// Whether it was this trial that proved it.
    is_joint: bool,
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
        let proved = remains_ns.map(|ns| is_proved(effect, question.share, ns));
        let verdict = match proved {
            Some(true) => Proof::Proved,
            Some(false) => Proof::Refuted,
            None => Proof::NotTried,
        };
        let [seeds, proved] = [proved.is_some(), proved == Some(true)].map(u32::from);
        let (together, is_joint) = (None, false);
        Self { verdict, remains_ns, seeds, proved, reason, together, is_joint }
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
        if is_proved(effect, *share, remains_ns) {
            (self.verdict, self.remains_ns, self.proved) = (Proof::Proved, Some(remains_ns), 1);
            self.is_joint = true;
        }
    }

    /// Counts what other seeds say of a cause that was proved.
    pub fn repeat(
        &mut self,
        question: &Question,
        effect: &Explained,
        (found, seeds): (&Found, u32),
    ) {
        let (Some(asked), Proof::Proved) = (self.asked(question), self.verdict) else { return };
        let joint = self.together.as_ref().filter(|_| self.is_joint);
        let share = joint.map_or(question.share, |(_, share)| *share);
        let runs = (1..seeds).map(|number| (asked.variant, number));
        let whys = runs.filter_map(|run| found.get(&run)?.as_ref().ok());
        let proved: Vec<bool> =
            whys.map(|why| is_proved(effect, share, remains(effect, why))).collect();
        self.seeds += proved.len() as u32;
        self.proved += proved.iter().filter(|it| **it).count() as u32;
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
                format!("proved: {sentence}, {} of {} seeds){more}", self.proved, self.seeds)
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
            seeds: self.seeds,
            seeds_proved: self.proved,
            sentence,
        }
    }
}

fn length(effect: &Explained) -> i64 {
    effect.to_ns.saturating_sub(effect.from_ns)
}

/// A length of time, as sentences of `why` have it.
fn span(ns: i64) -> String {
    match ns {
        1_000_000_000.. => format!("{:.1} s", ns as f64 / 1e9),
        _ => format!("{} ms", ns / 1_000_000),
    }
}

/// How much of an effect is in a trial without a cause: the time, from when it began until some time after it ended, in
/// which the same viewer bears the same, or worse. At most as long as it was.
pub fn remains(effect: &Explained, why: &Why) -> i64 {
    let later = SAME_NS.min(length(effect) / 2);
    let (from, to) = (effect.from_ns, effect.to_ns.saturating_add(later));
    let as_bad = |other: &&Explained| match (&effect.change, &other.change) {
        (Some(was), Some(is)) => is.level <= was.level,
        _ => true,
    };
    let same = |other: &&Explained| other.subject == effect.subject && alike(effect, other);
    let spans = why.effects.iter().filter(same).filter(as_bad);
    let mut spans: Vec<(i64, i64)> =
        spans.map(|other| (other.from_ns.max(from), other.to_ns.min(to))).collect();
    spans.sort_unstable();
    let (mut sum, mut until) = (0i64, from);
    for (begun, ended) in spans {
        let begun = begun.max(until);
        sum = sum.saturating_add(ended.saturating_sub(begun).max(0));
        until = until.max(ended);
    }
    sum.min(length(effect))
}

/// Whether two effects are the same to a viewer: late frames that freeze the screen are no better than a freeze.
fn alike(effect: &Explained, other: &Explained) -> bool {
    let worse =
        matches!((effect.effect, other.effect), (Effect::Late | Effect::Missing, Effect::Freeze));
    effect.effect == other.effect || worse
}

pub fn is_proved(effect: &Explained, share: f64, remains_ns: i64) -> bool {
    let was_ns = length(effect).max(1);
    was_ns.saturating_sub(remains_ns) as f64 / was_ns as f64 >= share * GONE
}
