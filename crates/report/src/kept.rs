//! Results that were computed from a trial's records are kept next to them, in `analysis.json`: a report on thousands
//! of trials does not read all records again.

use std::fmt::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use suiro_outside::beneath::{self, Kind};
use suiro_outside::beside;
use suiro_record::{Metrics, PlannedTrial, Trial};
use suiro_units::Seed;

use crate::sums::Sums;

/// The document's name, in the trial's folder.
const NAME: &str = "analysis.json";

/// Largest such document that is read, in bytes: a usual one has some kB.
const BYTES_MAX: u64 = 16 << 20;

/// Largest `trial.json` that is compared, in bytes.
const TRIAL_BYTES_MAX: u64 = 256 << 20;

/// What is kept of a trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// What it was computed from.
    pub inputs: String,
    pub metrics: Metrics,
    pub warnings: Vec<String>,
    /// What is wrong with records that could not be read.
    pub problems: Vec<String>,
    /// What `trial.json` says, without what only the trial's own page shows: reading all of 100,000 takes minutes.
    pub outcome: Trial,
    /// What that has of its links.
    pub sums: Sums,
}

impl Kept {
    /// What was kept of a trial, if it was computed from these inputs.
    pub(crate) fn read(root: &Path, planned: &PlannedTrial, inputs: &str) -> Option<Self> {
        let path = Path::new(&planned.folder).join(NAME);
        let text = beneath::read_text(root, &path, BYTES_MAX).ok()?;
        serde_json::from_str(&text).ok().filter(|kept: &Self| kept.inputs == inputs)
    }

    /// Keeps it. A folder that cannot be written to is reported all the same, only later.
    pub(crate) fn write(&self, root: &Path, planned: &PlannedTrial) {
        let folder = Path::new(&planned.folder);
        if let Ok(text) = serde_json::to_string(self)
            && beneath::check_folder(root, folder).is_ok()
        {
            let _ = beside::write(&root.join(folder).join(NAME), text.as_bytes());
        }
    }
}

/// What an analysis depends on: the version that makes it, the trial's outcome, and the names and sizes of its records.
pub(crate) fn inputs(root: &Path, planned: &PlannedTrial) -> Option<String> {
    let folder = Path::new(&planned.folder);
    let mut text = format!("suiro {}, sums", env!("CARGO_PKG_VERSION"));
    let outcome = beneath::read_text(root, &folder.join("trial.json"), TRIAL_BYTES_MAX).ok()?;
    let Seed(mark) = Seed(0).derive(&outcome);
    write!(text, ", trial.json {mark:016x}").ok()?;
    for (name, kind) in beneath::entries(root, folder).ok()? {
        let name = name.to_string_lossy();
        // The causes are made from the records, by the report itself.
        let is_record = name.ends_with(".parquet") && !name.starts_with("causes.");
        let is_record = is_record || name == "screens.json";
        match kind {
            Kind::File(bytes) if is_record => write!(text, ", {name} {bytes}").ok()?,
            Kind::Other if is_record => return None,
            _ => {}
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trial that offered one packet.
    fn trial() -> Trial {
        let trial = serde_json::json!({
            "cell": {}, "repetition": 1, "seed": 1, "valid": true, "invalid_because": null,
            "started": "2026-01-01T00:00:00Z", "duration_s": 2.0, "epoch_monotonic_ns": 0,
            "self_checks": [], "links": [], "endpoints": [], "versions": {},
        });
        let mut trial: Trial = serde_json::from_value(trial).unwrap();
        let mut link = suiro_record::LinkTotals::new("access", suiro_units::Direction::Down);
        link.offered = 1;
        trial.links.push(link);
        trial
    }

    #[test]
    fn an_analysis_is_used_until_its_inputs_change() {
        let room = tempfile::tempdir().unwrap();
        let folder = "trials/all/1".to_owned();
        let planned = PlannedTrial {
            cell: Default::default(),
            repetition: 1,
            seed: Seed(1),
            folder,
            number: Some(1),
        };
        let dir = room.path().join(&planned.folder);
        std::fs::create_dir_all(&dir).unwrap();
        assert_eq!(
            inputs(room.path(), &planned),
            None,
            "without an outcome there is nothing to keep"
        );
        std::fs::write(dir.join("trial.json"), "{}").unwrap();
        std::fs::write(dir.join("tcp.client.parquet"), "PAR1").unwrap();
        let now = || inputs(room.path(), &planned).unwrap();
        let first = now();
        let metrics = [("x".to_owned(), Some(0.1 + 0.2)), ("y".to_owned(), None)].into();
        let kept = Kept {
            inputs: first.clone(),
            metrics,
            warnings: vec!["late".into()],
            problems: Vec::new(),
            outcome: trial(),
            sums: Sums::of(&trial()),
        };
        kept.write(room.path(), &planned);
        assert_eq!(now(), first, "it is no input of itself");
        let read = || Kept::read(room.path(), &planned, &now());
        let text = |kept: &Kept| serde_json::to_value(kept).unwrap();
        assert_eq!(read().as_ref().map(text), Some(text(&kept)), "every bit of a number");
        std::fs::write(dir.join("logs.txt"), "more").unwrap();
        assert_eq!(now(), first);
        std::fs::write(dir.join("tcp.client.parquet"), "PAR1PAR1").unwrap();
        assert_ne!(now(), first);
        assert!(read().is_none());
        std::fs::write(dir.join("tcp.client.parquet"), "PAR1").unwrap();
        std::fs::write(dir.join("trial.json"), "{ }").unwrap();
        assert!(read().is_none());
    }
}
