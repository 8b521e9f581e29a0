//! Whether what `suiro why` says of a case is right.

use std::fmt;

use serde_json::Value;

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
/// The start.
const START_MS: f64 = 2000.0;

/// An effect and its causes, as the program says.
pub struct Found {
    effect: String,
    from_ms: f64,
    to_ms: f64,
    causes: Vec<(String, f64)>,
    sentence: String,
}

impl Found {
    /// Whether this cause needs no fault to act.
    fn is_own(&self, cause: &str) -> bool {
        OWN.contains(&cause)
            || (self.effect == "quality" && OF_QUALITY.contains(&cause))
            || (self.from_ms < START_MS && OF_THE_START.contains(&cause))
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
                .filter_map(|it| Some((it["cause"].as_str()?.to_owned(), it["share"].as_f64()?)))
                .collect(),
            sentence: effect["sentence"].as_str()?.to_owned(),
        })
    };
    effects.iter().map(|effect| one(effect).ok_or_else(|| effect.to_string())).collect()
}

/// The verdict about a case, and a line for each effect.
pub fn judge(case: &Case, found: &[Found]) -> (Verdict, Vec<String>) {
    let (mut named, mut near) = (vec![false; case.faults.len()], false);
    let (mut lied, mut seen) = (false, vec![false; case.faults.len()]);
    let mut lines = Vec::new();
    for effect in found {
        let acting: Vec<usize> =
            (0..case.faults.len()).filter(|at| acts(&case.faults[*at], effect)).collect();
        acting.iter().for_each(|at| seen[*at] = true);
        let mut mark = ' ';
        for (cause, _) in effect.causes.iter().filter(|(_, share)| *share >= SAID) {
            let right = acting.iter().find(|at| case.faults[**at].kind.right().contains(&&**cause));
            let about = acting.iter().any(|at| case.faults[*at].kind.near().contains(&&**cause));
            // A viewer's buffer grows with whatever disturbed it.
            let about = about || (cause == "jitter_buffer" && !acting.is_empty());
            match right {
                Some(at) => named[*at] = true,
                None if about => near = true,
                None if effect.is_own(cause) => {}
                None => (lied, mark) = (true, '!'),
            }
        }
        let causes: Vec<String> = effect
            .causes
            .iter()
            .filter(|(_, share)| *share >= 0.05)
            .map(|(cause, share)| format!("{cause} {:.0}", share * 100.0))
            .collect();
        lines.push(format!("    {mark} [{}] {}", causes.join(", "), effect.sentence));
    }
    (verdict(case, found, lied, near, &named, &seen), lines)
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
        () if !seen.iter().any(|seen| *seen) && found.is_empty() => Verdict::Silent,
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
