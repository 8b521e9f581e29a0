//! The results folder: where each document lies, read and written whole.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Findings, Manifest, PlannedTrial, Screens, Summary, Trial};

/// Why a document of a results folder could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not that document.
    #[error("{path}: not a document of this version of suiro: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
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
    pub fn manifest(&self) -> Result<Manifest, FolderError> {
        read(&self.root.join("manifest.json"))
    }

    /// Writes `manifest.json`.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), FolderError> {
        write(&self.root.join("manifest.json"), manifest)
    }

    /// Reads `summary.json`.
    pub fn summary(&self) -> Result<Summary, FolderError> {
        read(&self.root.join("summary.json"))
    }

    /// Writes `summary.json`.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), FolderError> {
        write(&self.root.join("summary.json"), summary)
    }

    /// Reads `findings.json`.
    pub fn findings(&self) -> Result<Findings, FolderError> {
        read(&self.root.join("findings.json"))
    }

    /// Writes `findings.json`.
    pub fn write_findings(&self, findings: &Findings) -> Result<(), FolderError> {
        write(&self.root.join("findings.json"), findings)
    }

    /// Reads a trial's `trial.json`; `None` if the trial did not get that far.
    pub fn outcome(&self, planned: &PlannedTrial) -> Result<Option<Trial>, FolderError> {
        let path = self.trial(planned).join("trial.json");
        if path.exists() { read(&path).map(Some) } else { Ok(None) }
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
/// `.png` beside it.
pub const COMPARISON: &str = "compare.mp4";

/// Reads a trial's `screens.json`; `None` if nothing was made of its screens.
pub fn screens(dir: &Path) -> Result<Option<Screens>, FolderError> {
    let path = dir.join("screens.json");
    if path.exists() { read(&path).map(Some) } else { Ok(None) }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, FolderError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| FolderError::Io { path: path.into(), source })?;
    serde_json::from_str(&text).map_err(|source| FolderError::Json { path: path.into(), source })
}

/// Writes beside and renames, so that a reader never sees half a document.
fn write<T: Serialize>(path: &Path, document: &T) -> Result<(), FolderError> {
    let io = |source| FolderError::Io { path: path.into(), source };
    let mut text = serde_json::to_string_pretty(document)
        .map_err(|source| FolderError::Json { path: path.into(), source })?;
    text.push('\n');
    let beside = path.with_extension("json.part");
    std::fs::write(&beside, text).map_err(io)?;
    std::fs::rename(&beside, path).map_err(io)
}
