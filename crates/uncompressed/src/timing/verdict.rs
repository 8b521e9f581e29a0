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

fn judge_network(
    limits: &Limits,
    narrow: Profile,
    c_inst: &Levels,
    reasons: &mut Vec<String>,
) -> Profile {
    let over = |limit: u32, of: &str| {
        let packets = c_inst.above(limit.into());
        format!(
            "C_INST reaches {}, above C_MAX of {of} senders, {limit}, at {packets} packets",
            c_inst.max
        )
    };
    if c_inst.max <= limits.burst_narrow.into() {
        return narrow;
    }
    if c_inst.max <= limits.burst_wide.into() {
        reasons.push(over(limits.burst_narrow, "narrow"));
        return Profile::Wide;
    }
    reasons.push(over(limits.burst_wide, "wide"));
    Profile::NotCompliant
}

fn judge_receiver(
    limits: &Limits,
    narrow: Profile,
    vrx: &Reading,
    reasons: &mut Vec<String>,
) -> Profile {
    let levels = &vrx.levels;
    let over = |limit: u32, of: &str| {
        let packets = levels.above(limit.into());
        format!(
            "VRX reaches {}, above VRX_FULL of {of} receivers, {limit}, at {packets} packets",
            levels.max
        )
    };
    if levels.min < 0 {
        reasons.push(format!(
            "VRX falls to {}: {} packets came after their reading, up to {:.1} µs",
            levels.min,
            levels.below(0),
            -vrx.margin_us.min
        ));
        return Profile::NotCompliant;
    }
    if levels.max <= limits.buffer_narrow.into() {
        return narrow;
    }
    if levels.max <= limits.buffer_wide.into() {
        reasons.push(over(limits.buffer_narrow, "narrow"));
        return Profile::Wide;
    }
    reasons.push(over(limits.buffer_wide, "wide"));
    Profile::NotCompliant
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
