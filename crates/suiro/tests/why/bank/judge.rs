//! Whether what `suiro why` says of a case is right.

use std::fmt;

use serde_json::Value;
use suiro_analysis::why::Why;

use super::cases::Case;
use super::faults::Fault;

/// What a fault did goes on for so long after it: until what waited has come, and is shown.
const AFTER_MS: f64 = 4000.0;
/// What a fault did begins no sooner than this before it.
const BEFORE_MS: f64 = 300.0;
/// A cause with this share of an effect is said in its sentence.
const SAID: f64 = 0.2;
/// Causes that act in every case of their own accord, and that records show by themselves.
const OWN: &[&str] = &["unknown", "encoder_choice"];
/// What makes a player choose a lower rung on a link that does nothing to it: the link's own rate and length.
const OF_QUALITY: &[&str] = &["round_trip", "congestion_window", "link_rate", "handshake"];
/// What delays the first frames where nothing else does: the first key frame is larger than the rate allows.
const OF_THE_START: &[&str] = &["encoder", "pacing", "link_rate"];
/// A fault has an effect of its own if without it this share of what the viewer bears is gone, and so much time.
const OWN_EFFECT: f64 = 0.1;
const OWN_EFFECT_LEAST_MS: f64 = 100.0;
/// The start.
const START_MS: f64 = 2000.0;

/// An effect and its causes, as the program says.
#[derive(Clone)]
pub struct Found {
    effect: String,
    from_ms: f64,
    to_ms: f64,
    causes: Vec<Named>,
    sentence: String,
}

/// A cause, its share, and what the trial without it showed.
#[derive(Clone)]
struct Named {
    cause: String,
    share: f64,
    proof: Option<String>,
}

/// The same without the causes that their own proof refuted.
pub fn without_refuted(found: &[Found]) -> Vec<Found> {
    let mut found = found.to_vec();
    for effect in &mut found {
        effect.causes.retain(|named| named.proof.as_deref() != Some("refuted"));
    }
    found
}

/// How many causes were named and how many faults showed, and what proof said of the causes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Causes that were named and acted, or were a consequence of what acted; and those that did not.
    pub right: u32,
    pub wrong: u32,
    /// Faults with an effect at the time; and those of them that were named.
    pub seen: u32,
    pub named: u32,
    /// Of those that were named and acted: proved, refuted, not tried. And of those that did not act.
    pub of_right: [u32; 3],
    pub of_wrong: [u32; 3],
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        let Self { right, wrong, seen, named, of_right, of_wrong } = other;
        for (sum, more) in [
            (&mut self.right, right),
            (&mut self.wrong, wrong),
            (&mut self.seen, seen),
            (&mut self.named, named),
        ] {
            *sum += more;
        }
        self.of_right.iter_mut().zip(of_right).for_each(|(sum, more)| *sum += more);
        self.of_wrong.iter_mut().zip(of_wrong).for_each(|(sum, more)| *sum += more);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio = |of: u32, all: u32| match all {
            0 => "-".to_owned(),
            all => format!("{:.3}", f64::from(of) / f64::from(all)),
        };
        let (precision, recall) =
            (ratio(self.right, self.right + self.wrong), ratio(self.named, self.seen));
        write!(
            f,
            "precision {precision} ({} of {}), recall {recall} ({} of {}); \
             proved, refuted, not tried: {:?} of those that acted, {:?} of the others",
            self.right,
            self.right + self.wrong,
            self.named,
            self.seen,
            self.of_right,
            self.of_wrong
        )
    }
}

impl Found {
    /// Whether this cause needs no fault to act.
    fn is_own(&self, cause: &str) -> bool {
        OWN.contains(&cause)
            || (self.effect == "quality" && OF_QUALITY.contains(&cause))
            || (self.from_ms < START_MS && OF_THE_START.contains(&cause))
    }
}

impl Found {
    /// Whether its causes act in every case, fault or none.
    fn is_by_itself(&self) -> bool {
        let said = self.causes.iter().filter(|named| named.share >= SAID);
        said.map(|named| &*named.cause).all(|cause| cause != "unknown" && self.is_own(cause))
    }
}

/// How right the program is about a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Each fault that had an effect was named, and nothing else.
    Right,
    /// Some were named, or by a consequence.
    Partly,
    /// Something was named that did not act at that time.
    False,
    /// No cause was named, although the viewer had to bear something.
    Unknown,
    /// There was no effect.
    Silent,
    /// The trial failed.
    NotRun,
}

impl Verdict {
    pub const ALL: [Self; 6] =
        [Self::Right, Self::Partly, Self::False, Self::Unknown, Self::Silent, Self::NotRun];
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Right => "right",
            Self::Partly => "partly",
            Self::False => "false",
            Self::Unknown => "unknown",
            Self::Silent => "silent",
            Self::NotRun => "not run",
        })
    }
}

/// The effects in the program's JSON.
pub fn read(json: &str) -> Result<Vec<Found>, String> {
    let trials: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    if let Some(problem) = trials[0]["problem"].as_str() {
        return Err(problem.to_owned());
    }
    let effects = trials[0]["effects"].as_array().ok_or("no effects")?;
    let one = |effect: &Value| {
        let causes = effect["causes"].as_array()?.iter();
        Some(Found {
            effect: effect["effect"].as_str()?.to_owned(),
            from_ms: effect["from_s"].as_f64()? * 1e3,
            to_ms: effect["to_s"].as_f64()? * 1e3,
            causes: causes
                .filter_map(|it| {
                    let proof = it["proof"]["verdict"].as_str().map(str::to_owned);
                    let cause = it["cause"].as_str()?.to_owned();
                    Some(Named { cause, share: it["share"].as_f64()?, proof })
                })
                .collect(),
            sentence: effect["sentence"].as_str()?.to_owned(),
        })
    };
    effects.iter().map(|effect| one(effect).ok_or_else(|| effect.to_string())).collect()
}

/// The effects that the program's own code finds.
pub fn of(why: &Why) -> Vec<Found> {
    let named = |(cause, share): &(suiro_record::words::Cause, f64)| Named {
        cause: cause.to_string(),
        share: *share,
        proof: None,
    };
    let one = |it: &suiro_analysis::why::Explained| Found {
        effect: it.effect.to_string(),
        from_ms: it.from_ns as f64 / 1e6,
        to_ms: it.to_ns as f64 / 1e6,
        causes: it.shares.iter().map(named).collect(),
        sentence: it.sentence.clone(),
    };
    why.effects.iter().map(one).collect()
}

/// The effects in what the program prints of captures, whose first packet is sent when the trial begins.
pub fn read_account(json: &str, is_real_time: bool) -> Result<Vec<Found>, String> {
    let account: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let one = |effect: &Value| {
        let cause = match effect["cause"].as_str()? {
            // Packets do not show why a sender sends nothing; an encoder that follows the path does so by its choice.
            "application"
                if is_real_time && effect["to_s"].as_f64()? - effect["from_s"].as_f64()? < 1.0 =>
            {
                "encoder_choice"
            }
            "application" => "server_processor",
            cause => cause,
        };
        let sentence = ["subject", "what", "because"].map(|key| effect[key].as_str().unwrap_or(""));
        Some(Found {
            effect: effect["effect"].as_str()?.to_owned(),
            from_ms: effect["from_s"].as_f64()? * 1e3,
            to_ms: effect["to_s"].as_f64()? * 1e3,
            causes: vec![Named { cause: cause.to_owned(), share: 1.0, proof: None }],
            sentence: format!("{:.1} s {}", effect["from_s"].as_f64()?, sentence.join(": ")),
        })
    };
    let effects = account["effects"].as_array().ok_or("no effects")?;
    effects.iter().map(|effect| one(effect).ok_or_else(|| effect.to_string())).collect()
}

/// How long a viewer had to bear something in the time of a fault, in milliseconds.
fn borne_ms(found: &[Found], fault: &Fault) -> f64 {
    const BORNE: &[&str] = &["stall", "freeze", "late", "missing", "startup"];
    let borne = found.iter().filter(|it| BORNE.contains(&&*it.effect) && acts(fault, it));
    let mut spans: Vec<(f64, f64)> = borne.map(|it| (it.from_ms, it.to_ms)).collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut until) = (0.0, f64::MIN);
    for (from, to) in spans {
        sum += (to - from.max(until)).max(0.0);
        until = until.max(to);
    }
    sum
}

/// Which faults of a case had an effect of their own: without one, its viewer bears less in that time, by a tenth or more. Of a
/// case with fewer than two faults, all.
pub fn with_effect(case: &Case, found: &[Found], without: &[Vec<Found>]) -> Vec<bool> {
    let bears_less = |(fault, without): (&Fault, &Vec<Found>)| {
        let all = borne_ms(found, fault);
        all - borne_ms(without, fault) >= (OWN_EFFECT * all).max(OWN_EFFECT_LEAST_MS)
    };
    match without.len() == case.faults.len() {
        true => case.faults.iter().zip(without).map(bears_less).collect(),
        false => vec![true; case.faults.len()],
    }
}

/// What is right about a case, a line for each effect, and the numbers. Only faults `with_effect` must be named.
pub fn judge(case: &Case, found: &[Found], with_effect: &[bool]) -> (Verdict, Vec<String>, Tally) {
    let (mut named, mut near) = (vec![false; case.faults.len()], false);
    let (mut lied, mut seen) = (false, vec![false; case.faults.len()]);
    let (mut lines, mut tally) = (Vec::new(), Tally::default());
    for effect in found {
        let acting: Vec<usize> =
            (0..case.faults.len()).filter(|at| acts(&case.faults[*at], effect)).collect();
        acting.iter().filter(|at| with_effect[**at]).for_each(|at| seen[*at] = true);
        let mut mark = ' ';
        for said in effect.causes.iter().filter(|named| named.share >= SAID) {
            let cause = &*said.cause;
            let right = acting.iter().find(|at| case.faults[**at].kind.right().contains(&cause));
            let about = acting.iter().any(|at| case.faults[*at].kind.near().contains(&cause));
            // A viewer's buffer grows with whatever disturbed it.
            let about = about || (cause == "jitter_buffer" && !acting.is_empty());
            match right {
                Some(at) => named[*at] = true,
                None if about => near = true,
                None if effect.is_own(cause) => continue,
                None => (lied, mark) = (true, '!'),
            }
            let acted = right.is_some() || about;
            let (sum, proofs) = match acted {
                true => (&mut tally.right, &mut tally.of_right),
                false => (&mut tally.wrong, &mut tally.of_wrong),
            };
            *sum += 1;
            let verdicts = ["proved", "refuted", "not_tried"];
            let proof = verdicts.iter().position(|word| said.proof.as_deref() == Some(word));
            proof.into_iter().for_each(|at| proofs[at] += 1);
        }
        let causes: Vec<String> = effect
            .causes
            .iter()
            .filter(|named| named.share >= 0.05)
            .map(|Named { cause, share, proof }| {
                let proof = proof.as_ref().map_or(String::new(), |proof| format!(" {proof}"));
                format!("{cause} {:.0}{proof}", share * 100.0)
            })
            .collect();
        lines.push(format!("    {mark} [{}] {}", causes.join(", "), effect.sentence));
    }
    let count = |flags: &[bool]| flags.iter().filter(|flag| **flag).count() as u32;
    let named_of_seen: Vec<bool> = named.iter().zip(&seen).map(|(a, b)| *a && *b).collect();
    (tally.seen, tally.named) = (count(&seen), count(&named_of_seen));
    (verdict(case, found, lied, near, &named, &seen), lines, tally)
}

fn verdict(
    case: &Case,
    found: &[Found],
    lied: bool,
    near: bool,
    named: &[bool],
    seen: &[bool],
) -> Verdict {
    // Of two at the same time one may have had no effect of its own; then naming the other is not all, nor wrong.
    let all = named.iter().zip(seen).all(|(named, seen)| *named || !*seen);
    let any = named.iter().any(|named| *named);
    match () {
        () if lied => Verdict::False,
        () if case.faults.is_empty() => Verdict::Right,
        () if !seen.iter().any(|seen| *seen) && found.iter().all(Found::is_by_itself) => {
            Verdict::Silent
        }
        () if all && any => Verdict::Right,
        () if any || near => Verdict::Partly,
        () => Verdict::Unknown,
    }
}

fn acts(fault: &Fault, effect: &Found) -> bool {
    let from = fault.from_ms as f64 - BEFORE_MS;
    effect.effect != "trial"
        && effect.to_ms >= from
        && effect.from_ms <= fault.to_ms as f64 + AFTER_MS
}
