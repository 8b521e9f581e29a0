//! What a stream complies with, and why with no more.

use std::fmt;

use serde::Serialize;

use super::model::Schedule;
use super::receiver::Reading;
use super::spread::Levels;
use crate::measure::Limits;

/// The sender types of ST 2110-21, from the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Type N: within the narrow limits, read with pauses.
    Narrow,
    /// Type NL: within the narrow limits, read evenly.
    NarrowLinear,
    /// Type W: within the wide limits.
    Wide,
    /// None of them.
    NotCompliant,
}

impl Profile {
    fn narrow(schedule: Schedule) -> Self {
        match schedule {
            Schedule::Gapped => Self::Narrow,
            Schedule::Linear => Self::NarrowLinear,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Narrow => "narrow",
            Self::NarrowLinear => "narrow linear",
            Self::Wide => "wide",
            Self::NotCompliant => "not compliant",
        })
    }
}

/// Which VRX decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// With the default offset TRO_DEFAULT.
    Default,
    /// With the offset that the sender announces, TROFF.
    Announced,
    /// With the least offset that leaves no packet late, because clocks cannot be compared or the height is not known.
    Least,
}

/// What a stream complies with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Of both models.
    pub profile: Profile,
    /// Of C_INST alone.
    pub network: Profile,
    /// Of VRX alone.
    pub receiver: Profile,
    /// Which VRX decided.
    pub basis: Basis,
    /// What keeps it from a stricter type; empty if it is narrow.
    pub reasons: Vec<String>,
}

/// Judges both models.
pub fn verdict(
    limits: &Limits,
    schedule: Schedule,
    c_inst: &Levels,
    (basis, vrx): (Basis, &Reading),
    lost: u64,
) -> Verdict {
    let narrow = Profile::narrow(schedule);
    let mut reasons = Vec::new();
    let network = judge_network(limits, narrow, c_inst, &mut reasons);
    let receiver = judge_receiver(limits, narrow, vrx, &mut reasons);
    if lost > 0 && receiver == Profile::NotCompliant {
        reasons.push(format!(
            "{lost} packets are missing from this capture: each of them lowers VRX by one until its frame ends"
        ));
    }
    Verdict { profile: network.max(receiver), network, receiver, basis, reasons }
}

/// What narrow and wide senders or receivers allow of a measure.
struct Ladder<'a> {
    /// Its name, that of its limit, and who has it.
    names: [&'static str; 3],
    levels: &'a Levels,
    narrow: u32,
    wide: u32,
}

impl Ladder<'_> {
    fn judge(&self, narrow: Profile, reasons: &mut Vec<String>) -> Profile {
        let ([measure, limit, who], levels) = (self.names, self.levels);
        if levels.max <= self.narrow.into() {
            return narrow;
        }
        let (most, of, profile) = if levels.max <= self.wide.into() {
            (self.narrow, "narrow", Profile::Wide)
        } else {
            (self.wide, "wide", Profile::NotCompliant)
        };
        let packets = levels.above(most.into());
        reasons.push(format!(
            "{measure} reaches {}, above {limit} of {of} {who}, {most}, at {packets} packets",
            levels.max
        ));
        profile
    }
}

fn judge_network(
    limits: &Limits,
    narrow: Profile,
    c_inst: &Levels,
    reasons: &mut Vec<String>,
) -> Profile {
    let names = ["C_INST", "C_MAX", "senders"];
    let ladder =
        Ladder { names, levels: c_inst, narrow: limits.burst_narrow, wide: limits.burst_wide };
    ladder.judge(narrow, reasons)
}

fn judge_receiver(
    limits: &Limits,
    narrow: Profile,
    vrx: &Reading,
    reasons: &mut Vec<String>,
) -> Profile {
    let levels = &vrx.levels;
    if levels.min < 0 {
        reasons.push(format!(
            "VRX falls to {}: {} packets came after their reading, up to {:.1} µs",
            levels.min,
            levels.below(0),
            -vrx.margin_us.min
        ));
        return Profile::NotCompliant;
    }
    let names = ["VRX", "VRX_FULL", "receivers"];
    let ladder = Ladder { names, levels, narrow: limits.buffer_narrow, wide: limits.buffer_wide };
    ladder.judge(narrow, reasons)
}

/// Something else that a stream should keep, with the values that it has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What is checked.
    pub name: &'static str,
    /// What was found.
    pub found: String,
    /// What was expected, and by which document.
    pub expected: String,
    /// Whether it holds.
    pub holds: bool,
}
