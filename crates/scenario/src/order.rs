//! What a trial's process is handed: `order.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use suiro_record::{Machine, PlannedTrial};

use crate::Setup;

/// What a trial's process is told: a file `order.json` in the trial's folder, so that a trial can
/// also be run by hand.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Which trial of the plan.
    pub trial: PlannedTrial,
    /// The machine, as seen outside of the trial's namespaces; null in orders of before.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// What it runs.
    pub setup: Setup,
    /// The trial's folder.
    pub dir: PathBuf,
    /// Where each prepared package of media lies, by its name in the scenario.
    pub packages: BTreeMap<String, PathBuf>,
}
