//! A folder of this process alone, for as long as it needs one.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A folder in the system's place for temporary files, readable by this user only, and removed with this value.
pub struct Work(PathBuf);

impl Work {
    /// One for this purpose.
    pub fn new(purpose: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("suiro-{purpose}-{}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("making {}", path.display()))?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // If it cannot be removed, it stays where the system removes what is old.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
