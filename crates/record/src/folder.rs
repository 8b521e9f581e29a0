//! The results folder: where each document lies, read and written whole.
//!
//! A results folder may come from a stranger: no link in it is followed, and no name in its documents
//! leads out of it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use suiro_outside::{beneath, beside};

use crate::{Axis, Findings, Manifest, PlannedTrial, RecordError, Screens, Summary, Trial, rows};

/// Largest document that is read, in bytes: the manifest of 100,000 trials has some tens of MB.
const DOCUMENT_BYTES_MAX: u64 = 256 << 20;

/// Why a document of a results folder could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The system refused.
    #[error("{path}: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file is not that document.
    #[error("{path}: {}", not_that(path, cause))]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and why.
        cause: serde_json::Error,
    },
    /// The plan names a trial's folder that does not lie in the results folder.
    #[error("{path}: expected the folder of a trial below {root}, found `{folder}`", root = path.parent().unwrap_or(path).display())]
    Outside {
        /// The manifest.
        path: PathBuf,
        /// What it names.
        folder: String,
    },
    /// The table of the summary could not be written or read.
    #[error(transparent)]
    Table(#[from] RecordError),
}

/// Why a document cannot be read, and what helps.
fn not_that(path: &Path, cause: &serde_json::Error) -> String {
    if !cause.is_eof() {
        return format!("not a document of this version of suiro: {cause}");
    }
    let hint = match path.file_name().and_then(|name| name.to_str()) {
        Some("summary.json" | "findings.json") => "suiro report writes it again",
        Some("trial.json") => "suiro run --resume runs the trial again",
        _ => "copy the folder again",
    };
    format!("the file is cut off at line {} column {}\nhint: {hint}", cause.line(), cause.column())
}

/// A results folder.
#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Names a folder; nothing is touched.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of one trial.
    pub fn trial(&self, planned: &PlannedTrial) -> PathBuf {
        self.root.join(&planned.folder)
    }

    /// The page.
    pub fn report(&self) -> PathBuf {
        self.root.join("report.html")
    }

    /// Reads `manifest.json`.
    ///
    /// # Errors
    /// As for every document; and if it names a trial's folder outside of this one.
    pub fn manifest(&self) -> Result<Manifest, FolderError> {
        let manifest: Manifest = read(&self.root, Path::new("manifest.json"))?;
        match manifest.plan.iter().find(|trial| !beneath::stays(Path::new(&trial.folder))) {
            None => Ok(manifest),
            Some(trial) => Err(FolderError::Outside {
                path: self.root.join("manifest.json"),
                folder: trial.folder.clone(),
            }),
        }
    }

    /// Writes `manifest.json`.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), FolderError> {
        write(&self.root.join("manifest.json"), manifest)
    }

    /// Reads `summary.json`, and the rows of very many trials from `summary.parquet`.
    ///
    /// # Errors
    /// As for every document; and if that table is missing or damaged.
    pub fn summary(&self) -> Result<Summary, FolderError> {
        let mut summary: Summary = read(&self.root, Path::new("summary.json"))?;
        match summary.rows_in.as_deref() {
            None => {}
            Some(Summary::TABLE) => {
                let path = self.root.join(Summary::TABLE);
                let file = beneath::open(&self.root, Path::new(Summary::TABLE));
                let file = file.map_err(|cause| FolderError::Io { path: path.clone(), cause })?;
                summary.trials = rows::read(&path, file)?;
            }
            Some(other) => {
                let problem = format!("`rows_in`: expected `{}`, found `{other}`", Summary::TABLE);
                let path = self.root.join("summary.json");
                return Err(RecordError::Schema { path, problem }.into());
            }
        }
        Ok(summary)
    }

    /// Writes `summary.parquet`, a row per trial of the plan, and `summary.json`, which has the rows of
    /// [`Summary::ROWS_MAX`] trials at most.
    ///
    /// # Errors
    /// What the system says, with the file's name.
    pub fn write_summary(
        &self,
        summary: &Summary,
        axes: &[Axis],
        plan: &[PlannedTrial],
    ) -> Result<(), FolderError> {
        rows::write(&self.root.join(Summary::TABLE), axes, plan, &summary.trials)?;
        let path = self.root.join("summary.json");
        if summary.trials.len() <= Summary::ROWS_MAX {
            return write(&path, summary);
        }
        let Summary { scenario, interval, metrics, .. } = summary;
        let (trials, cells) = (Vec::new(), Vec::new());
        let rows_in = Some(Summary::TABLE.to_owned());
        let (scenario, interval, metrics) = (scenario.clone(), interval.clone(), metrics.clone());
        write(&path, &Summary { scenario, trials, cells, interval, metrics, rows_in })
    }

    /// Reads `findings.json`.
    pub fn findings(&self) -> Result<Findings, FolderError> {
        read(&self.root, Path::new("findings.json"))
    }

    /// Writes `findings.json`.
    pub fn write_findings(&self, findings: &Findings) -> Result<(), FolderError> {
        write(&self.root.join("findings.json"), findings)
    }

    /// Reads a trial's `trial.json`; `None` if the trial did not get that far.
    pub fn outcome(&self, planned: &PlannedTrial) -> Result<Option<Trial>, FolderError> {
        read_if_there(&self.root, &Path::new(&planned.folder).join("trial.json"))
    }

    /// Whether a trial has ended and is valid.
    pub fn is_valid(&self, planned: &PlannedTrial) -> bool {
        matches!(self.outcome(planned), Ok(Some(trial)) if trial.valid)
    }
}

/// Writes a trial's `trial.json` into its folder.
pub fn write_outcome(dir: &Path, trial: &Trial) -> Result<(), FolderError> {
    write(&dir.join("trial.json"), trial)
}

/// Writes a trial's `screens.json` into its folder.
pub fn write_screens(dir: &Path, screens: &Screens) -> Result<(), FolderError> {
    write(&dir.join("screens.json"), screens)
}

/// The video of several trials side by side, where no other name is asked for; its poster is the
/// `.png` next to it.
pub const COMPARISON: &str = "compare.mp4";

/// Reads a trial's `screens.json`; `None` if nothing was made of its screens.
pub fn screens(dir: &Path) -> Result<Option<Screens>, FolderError> {
    read_if_there(dir, Path::new("screens.json"))
}

fn read_if_there<T: DeserializeOwned>(
    folder: &Path,
    name: &Path,
) -> Result<Option<T>, FolderError> {
    match read(folder, name) {
        Err(FolderError::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

fn read<T: DeserializeOwned>(folder: &Path, name: &Path) -> Result<T, FolderError> {
    let path = || folder.join(name);
    let text = beneath::read_text(folder, name, DOCUMENT_BYTES_MAX)
        .map_err(|cause| FolderError::Io { path: path(), cause })?;
    serde_json::from_str(&text).map_err(|cause| FolderError::Json { path: path(), cause })
}

fn write<T: Serialize>(path: &Path, document: &T) -> Result<(), FolderError> {
    let mut text = serde_json::to_string_pretty(document)
        .map_err(|cause| FolderError::Json { path: path.into(), cause })?;
    text.push('\n');
    beside::write(path, text.as_bytes())
        .map_err(|cause| FolderError::Io { path: path.into(), cause })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::{Value, json};
    use suiro_units::Seed;

    use super::*;

    fn planned(folder: &str) -> PlannedTrial {
        let (cell, folder) = (crate::Cell::new(), folder.to_owned());
        PlannedTrial { cell, repetition: 1, seed: Seed(1), folder, number: None }
    }

    /// A manifest as a version of suiro wrote it that numbered no trials.
    fn manifest(folders: &[&str]) -> Value {
        let trial =
            |folder: &&str| json!({ "cell": {}, "repetition": 1, "seed": 1, "folder": folder });
        let machine = json!({
            "kernel": "6.1", "system": "Debian", "cpu": "", "cores": 2, "memory_bytes": 1,
            "clock_source": "tsc", "privilege": "user", "settings": {},
        });
        json!({
            "suiro": "0.1.0", "scenario": "ping", "title": "", "study": null, "text": "", "command": [],
            "started": "2026-11-21T01:57:00Z", "seed": 1, "axes": [], "machine": machine,
            "plan": folders.iter().map(trial).collect::<Vec<_>>(), "versions": {}, "self_checks": {},
        })
    }

    #[test]
    fn a_manifest_of_an_older_version_is_read_and_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path());
        let path = dir.path().join("manifest.json");
        fs::write(&path, manifest(&["trials/all/1"]).to_string()).unwrap();
        let read = folder.manifest().unwrap();
        assert_eq!((read.plan_trials, &read.plan[..]), (None, &[planned("trials/all/1")][..]));
        assert_eq!(folder.trial(&read.plan[0]), dir.path().join("trials/all/1"));
        folder.write_manifest(&read).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        folder.write_manifest(&folder.manifest().unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        assert!(whole.ends_with("}\n"));
    }

    #[test]
    fn a_plan_that_leaves_the_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path());
        for leaves in ["../other", "/etc", "trials/../../other", ".."] {
            let text = manifest(&["trials/all/1", leaves]).to_string();
            fs::write(dir.path().join("manifest.json"), text).unwrap();
            let error = folder.manifest().unwrap_err().to_string();
            let expected = format!("expected the folder of a trial below {}", dir.path().display());
            assert!(error.contains(&expected) && error.ends_with(&format!("found `{leaves}`")));
        }
    }

    #[test]
    fn a_trial_that_did_not_end_has_no_outcome_and_a_damaged_one_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, trial) = (Folder::new(dir.path()), planned("trials/all/1"));
        assert!(folder.outcome(&trial).unwrap().is_none(), "there is no such folder");
        let place = folder.trial(&trial);
        fs::create_dir_all(&place).unwrap();
        assert!(folder.outcome(&trial).unwrap().is_none() && screens(&place).unwrap().is_none());
        for damaged in ["", "{", "{}", "[]", "null", "\u{0}", r#"{"cell": {}, "repetition": -1}"#] {
            fs::write(place.join("trial.json"), damaged).unwrap();
            fs::write(place.join("screens.json"), "7").unwrap();
            let error = folder.outcome(&trial).unwrap_err().to_string();
            let told = match damaged.len() {
                0 | 1 if damaged != "\u{0}" => "trial.json: the file is cut off at line 1 column ",
                _ => "trial.json: not a document of this version",
            };
            assert!(error.contains(told), "{error}");
            assert!(screens(&place).unwrap_err().to_string().contains("screens.json"));
        }
        fs::write(place.join("trial.json"), [0xff, 0xfe]).unwrap();
        assert!(folder.outcome(&trial).unwrap_err().to_string().contains("trial.json"));
    }

    #[test]
    fn no_link_of_a_stranger_is_followed() {
        let (dir, secret) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let text = manifest(&["trials/all/1"]).to_string();
        fs::write(secret.path().join("manifest.json"), text).unwrap();
        fs::write(secret.path().join("trial.json"), "secret").unwrap();
        let folder = Folder::new(dir.path());
        symlink(secret.path().join("manifest.json"), dir.path().join("manifest.json")).unwrap();
        assert!(matches!(folder.manifest(), Err(FolderError::Io { .. })));
        // Neither the document nor its folder.
        symlink(secret.path(), dir.path().join("trials")).unwrap();
        let read = folder.outcome(&planned("trials"));
        assert!(matches!(&read, Err(FolderError::Io { .. })), "{read:?}");
    }

    #[test]
    fn rows_in_a_table_of_another_name_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let text = json!({ "scenario": "ping", "trials": [], "rows_in": "../summary.parquet" });
        fs::write(dir.path().join("summary.json"), text.to_string()).unwrap();
        let error = Folder::new(dir.path()).summary().unwrap_err().to_string();
        let expected = "`rows_in`: expected `summary.parquet`, found `../summary.parquet`";
        assert!(error.ends_with(expected), "{error}");
    }
}
