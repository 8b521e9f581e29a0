//! A scenario expanded: cells × repetitions = trials.

use std::sync::Arc;

use suiro_record::{Axis, PlannedTrial};
use suiro_units::Seed;

use crate::Setup;

/// Most trials that a plan may have.
pub const TRIALS_MAX: usize = 10_000;

/// What a run is going to do. Every value has been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The scenario's name.
    pub name: String,
    /// One line on what it shows.
    pub title: String,
    /// The study that it repeats, such as `S0`.
    pub study: Option<String>,
    /// The scenario's text as run: with every override put in. It gives this plan again.
    pub text: String,
    /// The axes of the matrix, all their values, in the scenario's order.
    pub axes: Vec<Axis>,
    /// The seed of the run.
    pub seed: Seed,
    /// Trials to run side by side, unless the command line says otherwise.
    pub jobs: u32,
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
    /// the same chance on the link, so that cells are compared in pairs.
    pub planned: PlannedTrial,
    /// What to set up and run; shared by the repetitions of a cell.
    pub setup: Arc<Setup>,
}
