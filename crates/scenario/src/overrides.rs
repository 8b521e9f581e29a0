//! What the command line changes in a scenario.

use suiro_units::{Duration, Seed};

/// Changes to a scenario, as typed. The default changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `PATH=VALUE`: a parameter's name, an axis's name (which fixes it), or the dotted path of
    /// any key. A value is TOML, or else a text without its quotes.
    pub set: Vec<String>,
    /// `AXIS=VALUE`: cells to keep. Values of one axis add up, axes intersect.
    pub only: Vec<String>,
    /// How long each trial measures.
    pub duration: Option<Duration>,
    /// Repetitions of each cell.
    pub repetitions: Option<u32>,
    /// The seed of the run.
    pub seed: Option<Seed>,
    /// Take the scenario's `[quick]` form. What else is given here wins over it.
    pub quick: bool,
}
