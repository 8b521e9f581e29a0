//! A folder of this process alone, for as long as it needs one.

use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use suiro_outside::unfinished::Unfinished;

/// Names that are tried for one. A process that was killed leaves its folder, and another may have its number later.
const NAMES_MAX: u32 = 1000;

/// A folder in the system's place for temporary files, readable by this user only. It is removed with this value, and when a
/// signal ends this process.
pub struct Work(Unfinished);

impl Work {
    /// One for this purpose.
    pub fn new(purpose: &str) -> Result<Self> {
        Self::below(&std::env::temp_dir(), purpose)
    }

    fn below(folder: &Path, purpose: &str) -> Result<Self> {
        let name = format!("suiro-{purpose}-{}", std::process::id());
        let make =
            |path: &Path| -> io::Result<()> { std::fs::DirBuilder::new().mode(0o700).create(path) };
        for number in 1..=NAMES_MAX {
            let path = match number {
                1 => folder.join(&name),
                number => folder.join(format!("{name}-{number}")),
            };
            match Unfinished::begin(path.clone(), make) {
                Ok((begun, ())) => return Ok(Self(begun)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("making {}", path.display()));
                }
            }
        }
        bail!(
            "{}: there are {NAMES_MAX} folders {name}-N already\nhint: remove them",
            folder.display()
        )
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // If it cannot be removed, it stays where the system removes what is old.
        let _ = std::fs::remove_dir_all(self.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_another_process_left_is_not_taken() {
        let room = tempfile::tempdir().unwrap();
        let first = Work::below(room.path(), "verify").unwrap();
        std::fs::write(first.path().join("x"), "").unwrap();
        let second = Work::below(room.path(), "verify").unwrap();
        assert_ne!(first.path(), second.path());
        let kept = second.path().to_owned();
        drop(first);
        let left: Vec<_> =
            std::fs::read_dir(room.path()).unwrap().map(|it| it.unwrap().path()).collect();
        assert_eq!(left, [kept]);
        let third = Work::below(room.path(), "verify").unwrap();
        assert!(third.path().is_dir());
        assert!(Work::below(&room.path().join("nowhere"), "verify").is_err());
    }
}
