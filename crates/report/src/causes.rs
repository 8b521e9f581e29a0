//! Causes of a trial, as a document.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use suiro_analysis::Why;
use suiro_record::Cell;
use suiro_record::words::{Cause, Effect, Proof};

/// Why, for one trial.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TrialCauses {
    /// Its cell.
    pub cell: Cell,
    /// Its repetition, from 1.
    pub repetition: u32,
    /// Why nothing is known of it; null if it was read.
    pub problem: Option<String>,
    /// Why the trial is not valid; null if it is.
    pub invalid_because: Option<String>,
    /// Viewers and flows.
    pub subjects: Vec<SubjectCauses>,
    /// Stalls, freezes, late and missing stretches, falls of the quality.
    pub effects: Vec<EffectCauses>,
    /// Flows and effects that are not explained because there are too many.
    pub left_out: u64,
    #[serde(skip)]
    pub(crate) why: Why,
}

/// What limited a viewer or a flow.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SubjectCauses {
    /// The viewer's endpoint, or the flow.
    pub name: String,
    /// True for a viewer.
    pub is_viewer: bool,
    /// Share of its time by cause.
    pub shares: BTreeMap<&'static str, f64>,
    /// What limited it, stretch by stretch.
    pub limits: Vec<LimitCause>,
}

/// A stretch of time and what limited a flow in it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LimitCause {
    /// When it began, in seconds.
    pub from_s: f64,
    /// When it ended, in seconds.
    pub to_s: f64,
    /// The cause.
    pub cause: Cause,
    /// Rows of tables that show it.
    pub evidence: Vec<String>,
}

/// An effect and its causes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EffectCauses {
    /// The viewer.
    pub subject: String,
    /// What it was.
    pub effect: Effect,
    /// When it began, in seconds.
    pub from_s: f64,
    /// When it ended, in seconds.
    pub to_s: f64,
    /// Its causes, the greatest share first.
    pub causes: Vec<CauseShare>,
    /// From the effect back to its cause.
    pub chain: Vec<ChainStep>,
    /// All of it in words.
    pub sentence: String,
}

/// A cause and its share.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CauseShare {
    /// The cause.
    pub cause: Cause,
    /// Its share, 0 to 1.
    pub share: f64,
    /// What the trial without it showed; absent unless `suiro why --prove` was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proved>,
}

/// A step of a chain.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChainStep {
    /// What happened.
    pub what: String,
    /// Rows of a table that show it.
    pub evidence: String,
}

/// What the trial without a cause showed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Proved {
    /// Whether it was the cause.
    pub verdict: Proof,
    /// The trial that was run, such as `without the outage of link access`; null if none was.
    pub change: Option<String>,
    /// How long the effect lasted, in seconds.
    pub was_s: f64,
    /// How much of it remained without the cause, in seconds; null if that was not tried.
    pub remains_s: Option<f64>,
    /// Seeds with which the cause was tried, that of the trial itself first.
    pub seeds: u32,
    /// Of these, how many have the effect if nothing is changed.
    pub seeds_with_effect: u32,
    /// Of these with the effect, how many showed that it was the cause.
    pub seeds_proved: u32,
    /// All of it in words.
    pub sentence: String,
}

impl TrialCauses {
    /// What its records say.
    pub const fn why(&self) -> &Why {
        &self.why
    }

    /// Adds what the trial without a cause of one of its effects showed.
    pub fn prove(&mut self, effect: usize, cause: Cause, proved: Proved) {
        let causes = self.effects.get_mut(effect).map(|effect| &mut effect.causes);
        let own = causes.into_iter().flatten().find(|share| share.cause == cause);
        if let Some(share) = own {
            share.proof = Some(proved);
        }
    }

    /// What was proved of a cause of one of its effects.
    pub(crate) fn proof(&self, effect: usize, cause: Cause) -> Option<Proof> {
        let causes = &self.effects.get(effect)?.causes;
        Some(causes.iter().find(|share| share.cause == cause)?.proof.as_ref()?.verdict)
    }
}
