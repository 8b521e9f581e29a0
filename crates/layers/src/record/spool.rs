//! The raw output of the BPF programs, in a file without a name: while an application is watched, the recorder does no
//! more than write it. It is interpreted when the recording has ended.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::file::FileError;
use crate::probe::raw::RAW_BYTES;

/// Bytes read at once; whole events.
const PIECE: u64 = (RAW_BYTES as u64) << 14;

/// The file.
pub struct Spool {
    file: File,
    dir: PathBuf,
    written: u64,
}

impl Spool {
    /// Creates it in this folder. The file disappears when it is dropped, or the program is killed.
    ///
    /// # Errors
    /// A folder that cannot be written to.
    pub fn create(dir: &Path) -> Result<Self, FileError> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let file = openat(CWD, dir, flags, Mode::RUSR | Mode::WUSR).map(File::from);
        // Some file systems do not support files without names.
        let file = file.or_else(|_| nameless(dir));
        let file = file.map_err(|cause| FileError::Io { path: dir.into(), cause })?;
        Ok(Self { file, dir: dir.into(), written: 0 })
    }

    /// Appends raw events.
    ///
    /// # Errors
    /// A full disk.
    pub fn push(&mut self, raw: &[u8]) -> Result<(), FileError> {
        self.written += raw.len() as u64;
        self.file.write_all(raw).map_err(|cause| FileError::Io { path: self.dir.clone(), cause })
    }

    /// Reads everything again, in order, in pieces.
    ///
    /// # Errors
    /// A file that cannot be read, or the first error of `each`.
    pub fn read<E: From<FileError>>(
        mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let io = |cause| FileError::Io { path: self.dir.clone(), cause };
        self.file.rewind().map_err(io)?;
        let (mut at, mut piece) = (0, Vec::new());
        while at < self.written {
            piece.resize((self.written - at).min(PIECE) as usize, 0);
            self.file.read_exact(&mut piece).map_err(io)?;
            at += piece.len() as u64;
            each(&piece)?;
        }
        Ok(())
    }
}

fn nameless(dir: &Path) -> std::io::Result<File> {
    let path = dir.join(format!("layers.{}.spool", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path).map(|()| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_again_in_pieces() {
        let dir = tempfile::tempdir().unwrap();
        let mut spool = Spool::create(dir.path()).unwrap();
        let many = PIECE as usize / RAW_BYTES + 1;
        spool.push(&[1; RAW_BYTES]).unwrap();
        spool.push(&vec![2; RAW_BYTES * many]).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "it has no name");
        let mut pieces = Vec::new();
        let read = spool.read(|piece| -> Result<(), FileError> {
            pieces.push((piece[0], piece.len() / RAW_BYTES));
            Ok(())
        });
        read.unwrap();
        assert_eq!(pieces, [(1, many - 1), (2, 2)]);
    }
}
