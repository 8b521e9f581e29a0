//! Results folders that a command is given.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, bail};
use suiro_record::{Folder, Summary};

use crate::Usage;

/// Whether `suiro run` holds the folder, as it does until it is over.
pub fn is_being_written(dir: &Path) -> Result<bool> {
    let folder = File::open(dir).with_context(|| format!("opening {}", dir.display()))?;
    // A file system without locks has no say.
    Ok(matches!(folder.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The results folder at `dir`.
pub fn open(dir: &Path) -> Result<Folder> {
    let has_none = match dir.join("manifest.json").try_exists() {
        Ok(is_there) => !is_there,
        Err(error) => error.kind() == ErrorKind::NotADirectory,
    };
    if has_none {
        let found = match dir {
            dir if dir.is_file() => "it is a file",
            dir if dir.is_dir() => "it has no manifest.json",
            _ => "there is nothing of this name",
        };
        bail!(Usage(format!(
            "{} is not a results folder: {found}\n\
             hint: give the folder that suiro run wrote, named after --out or below results/",
            dir.display()
        )));
    }
    Ok(Folder::new(dir))
}

/// What errors call the scenario in a folder's manifest, whose lines they count.
pub fn scenario_of(folder: &Folder) -> String {
    format!("the scenario of {}", folder.root().display())
}

/// Refuses a folder without a summary.
pub fn check_summary(folder: &Folder) -> Result<()> {
    check_document(folder, "summary.json")
}

/// Refuses a folder without a document that `suiro report` writes.
pub fn check_document(folder: &Folder, name: &str) -> Result<()> {
    let dir = folder.root().display();
    if matches!(folder.root().join(name).try_exists(), Ok(false)) {
        bail!(Usage(format!("{dir} has no {name}\nhint: suiro report {dir} writes it")));
    }
    Ok(())
}

/// The folder's summary.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn summary(folder: &Folder) -> Result<Summary> {
    check_summary(folder)?;
    folder.summary().with_context(|| format!("reading the summary of {}", folder.root().display()))
}
