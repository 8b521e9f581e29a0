//! Files that a scenario names: traces, videos.

use std::io;
use std::path::{Path, PathBuf};

/// Largest text that is read: a scenario or a trace. In bytes.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Where the files are that a scenario names.
pub trait Files {
    /// The text of a file.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// The file's absolute path, to be opened later by whom it concerns; an error if there is none.
    fn locate(&self, path: &Path) -> io::Result<PathBuf>;
}

/// Files on disk; relative paths start at a folder.
#[derive(Debug, Clone)]
pub struct Disk {
    base: PathBuf,
}

impl Disk {
    /// Relative paths start at `base`.
    pub fn new(base: impl Into<PathBuf>) -> Self {
        Self { base: base.into() }
    }
}

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<String> {
        read_text(&self.base.join(path))
    }

    fn locate(&self, path: &Path) -> io::Result<PathBuf> {
        let path = self.base.join(path).canonicalize()?;
        if path.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(path) }
    }
}

/// No files at all: for a scenario whose text is all there is.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn locate(&self, _: &Path) -> io::Result<PathBuf> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The text of a file, if it is not too large.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    suiro_outside::file::read_text(path, TEXT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_start_at_the_base_and_name_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.csv"), "0,1").unwrap();
        let disk = Disk::new(folder.path());
        assert_eq!(disk.read(Path::new("a.csv")).unwrap(), "0,1");
        assert!(disk.locate(Path::new("a.csv")).unwrap().is_absolute());
        assert_eq!(disk.locate(Path::new(".")).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(disk.locate(Path::new("b.csv")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn large_files_and_devices_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large");
        std::fs::File::create(&large).unwrap().set_len(TEXT_BYTES_MAX + 1).unwrap();
        assert_eq!(read_text(&large).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let error = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "expected a regular file, found a device");
    }
}
