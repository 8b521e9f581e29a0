//! A file is written next to its place and renamed into it: no reader sees half of it, a full disk leaves
//! the old one, and a symbolic link at its place or next to it is replaced, not followed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Unfinished;
use crate::unfinished::gone;

/// A file that is being written; without [`keep`](Self::keep) it goes away again.
#[derive(Debug)]
pub struct Beside {
    file: Option<File>,
    part: Unfinished,
    place: PathBuf,
}

impl Beside {
    /// Begins a file for `place`, which is replaced when it is kept.
    ///
    /// # Errors
    /// What the system says.
    pub fn replace(place: &Path) -> io::Result<Self> {
        let mut name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let part = place.with_file_name(name);
        let (part, file) = Unfinished::begin(part, |part| {
            // What a process of this number left when it was killed, or a link that a stranger made.
            gone(std::fs::remove_file(part))?;
            OpenOptions::new().read(true).write(true).create_new(true).open(part)
        })?;
        Ok(Self { file: Some(file), part, place: place.to_owned() })
    }

    /// What is written so far.
    pub fn file(&mut self) -> &mut File {
        self.file.as_mut().expect("it is there until it is kept")
    }

    /// Where the file is until it is kept, for what writes to a path.
    pub fn part(&self) -> &Path {
        self.part.path()
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// What the system says; the file next to is gone then too.
    pub fn keep(mut self) -> io::Result<()> {
        self.file().flush()?;
        self.part.keep(&self.place)?;
        self.file = None;
        Ok(())
    }
}

impl Write for Beside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if self.file.is_some() {
            // A second failure would hide the first.
            let _ = std::fs::remove_file(self.part.path());
        }
    }
}

/// Writes a whole file in this way.
///
/// # Errors
/// What the system says.
pub fn write(place: &Path, content: &[u8]) -> io::Result<()> {
    let mut beside = Beside::replace(place)?;
    beside.write_all(content)?;
    beside.keep()
}

/// The same, with the permissions of the file that is replaced: nobody can read a new text who could not read the old one.
///
/// # Errors
/// What the system says.
pub fn rewrite(place: &Path, content: &[u8]) -> io::Result<()> {
    let mut beside = Beside::replace(place)?;
    match place.symlink_metadata() {
        Ok(old) if old.is_file() => beside.file().set_permissions(old.permissions())?,
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    beside.write_all(content)?;
    beside.keep()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        std::fs::write(&place, "old").unwrap();
        let mut begun = Beside::replace(&place).unwrap();
        begun.write_all(b"ne").unwrap();
        assert_eq!(std::fs::read(&place).unwrap(), b"old");
        drop(begun);
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing is left next to it"
        );
        write(&place, b"new").unwrap();
        assert_eq!(std::fs::read(&place).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_rewritten_file_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        rewrite(&place, b"new").unwrap();
        for mode in [0o600, 0o640, 0o444] {
            std::fs::set_permissions(&place, std::fs::Permissions::from_mode(mode)).unwrap();
            rewrite(&place, b"newer").unwrap();
            let found = std::fs::metadata(&place).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{mode:o}, {found:o}");
        }
        assert_eq!(std::fs::read(&place).unwrap(), b"newer");
    }

    #[test]
    fn links_at_its_place_and_beside_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (secret, place) = (folder.path().join("secret"), folder.path().join("x"));
        std::fs::write(&secret, "years of work").unwrap();
        let part = Beside::replace(&place).unwrap().part().to_owned();
        for link in [&place, &part] {
            std::os::unix::fs::symlink(&secret, link).unwrap();
        }
        write(&place, b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "years of work");
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "new");
        assert!(place.symlink_metadata().unwrap().is_file());
    }
}
