//! Results folders that a command is given.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::{Context, Result, bail};
use suiro_record::Folder;

use crate::Usage;

/// Whether `suiro run` holds the folder, as it does until it is over.
pub fn is_being_written(dir: &Path) -> Result<bool> {
    let folder = File::open(dir).with_context(|| format!("opening {}", dir.display()))?;
    // A file system without locks has no say.
    Ok(matches!(folder.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The results folder at `dir`.
pub fn open(dir: &Path) -> Result<Folder> {
    if matches!(dir.join("manifest.json").try_exists(), Ok(false)) {
        bail!(Usage(format!(
            "{} is not a results folder: it has no manifest.json\n\
             hint: give the folder that suiro run wrote, named after --out or below results/",
            dir.display()
        )));
    }
    Ok(Folder::new(dir))
}
