//! What a trial's process is handed: `order.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use suiro_record::{Machine, PlannedTrial, VirtualTime};

use crate::Setup;

/// The orders of a trial's process: a file `order.json` in the trial's folder, so that a trial can
/// also be run by hand.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Which trial of the plan.
    pub trial: PlannedTrial,
    /// The machine, as seen outside of the trial's namespaces; null in orders of before, and in virtual time, where the
    /// machine is the guest.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// The kernel of the guest that it runs in; null for the machine's own time.
    #[serde(default)]
    pub virtual_time: Option<VirtualTime>,
    /// What it runs.
    pub setup: Setup,
    /// The trial's folder.
    pub dir: PathBuf,
    /// Where each prepared package of media lies, by its name in the scenario.
    pub packages: BTreeMap<String, PathBuf>,
}
