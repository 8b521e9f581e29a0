//! Files and folders that are written next to their places, and that must not stay if this process is asked to end.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Those of this process.
static PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// How often the removal of a folder is tried, to which another thread still adds files.
const TRIES: usize = 100;

/// A file or folder without a place, until it is dropped or kept.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Has `make` make it. Returns it with what `make` returns.
    ///
    /// # Errors
    /// What `make` says.
    pub fn begin<T>(
        path: PathBuf,
        make: impl FnOnce(&Path) -> io::Result<T>,
    ) -> io::Result<(Self, T)> {
        // Under the lock: what is made must be known to `remove_then`.
        let mut paths = paths();
        let made = make(&path)?;
        paths.insert(path.clone());
        Ok((Self(path), made))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Puts it in its place.
    ///
    /// # Errors
    /// What the system says.
    pub fn keep(&self, place: &Path) -> io::Result<()> {
        let mut paths = paths();
        std::fs::rename(&self.0, place)?;
        paths.remove(&self.0);
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        paths().remove(&self.0);
    }
}

/// Removes all that is unfinished, and calls `end`, which ends this process. Meanwhile nothing is begun and nothing kept.
pub fn remove_then(end: impl FnOnce()) {
    let mut paths = paths();
    while let Some(path) = paths.pop_first() {
        // A file, or a folder. A failure would keep the process from its end.
        if std::fs::remove_file(&path).is_err() {
            let _ = (0..TRIES).find(|_| std::fs::remove_dir_all(&path).is_ok());
        }
    }
    end();
}

/// The outcome of a removal: what is not there needs none.
///
/// # Errors
/// Any other error of the removal.
pub fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn paths() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PATHS.lock().expect("no holder panics")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stays_and_the_rest_is_removed() {
        let room = tempfile::tempdir().unwrap();
        let at = |name: &str| room.path().join(name);
        let file = |name: &str| Unfinished::begin(at(name), |path| std::fs::write(path, name));
        let (kept, ()) = file("kept.part").unwrap();
        let (_begun, ()) = file("begun.part").unwrap();
        let (_folder, ()) = Unfinished::begin(at("folder.part"), |path| {
            std::fs::create_dir(path)?;
            std::fs::write(path.join("x"), "x")
        })
        .unwrap();
        drop(file("given up.part").unwrap());
        assert!(Unfinished::begin(at("none/x"), |path| std::fs::write(path, "x")).is_err());
        kept.keep(&at("kept")).unwrap();
        let mut ended = false;
        remove_then(|| ended = true);
        let mut left: Vec<_> =
            std::fs::read_dir(room.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        left.sort();
        assert_eq!((ended, left), (true, ["given up.part", "kept"].map(Into::into).to_vec()));
    }
}
