//! Regular files, read up to a bound.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read};
#[cfg(unix)]
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file for reading. Links in `path` are followed: its author is the user.
///
/// # Errors
/// What the system says, or that it is no regular file: a FIFO would block, and a device may never
/// end.
pub fn open(path: &Path) -> io::Result<File> {
    // Before it is opened: to open a device may already do something.
    check(&std::fs::metadata(path)?)?;
    let file = options().open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Without waiting for a writer, should it be a FIFO by now.
#[cfg(unix)]
fn options() -> OpenOptions {
    use rustix::fs::OFlags;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).expect("open(2) takes its flags as an int");
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags);
    options
}

#[cfg(not(unix))]
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    options
}

/// The content of a regular file of `most` bytes at most.
///
/// # Errors
/// As of [`open`], and if the file is larger; at most `most` bytes are read in that case, and none if the metadata
/// already shows that it is too large; [`ErrorKind::OutOfMemory`] if the content does not fit into memory.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    // One allocation of what its size says; files of /proc say that they are empty.
    let length = file.metadata()?.len();
    if length > most {
        return Err(too_large(most));
    }
    let mut content = Vec::new();
    content.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
    fill(content, file, most)
}

/// The text of a regular file of `most` bytes at most.
///
/// # Errors
/// As of [`read`], and if it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    text(read(path, most)?)
}

/// What is left of an open file, `most` bytes at most.
///
/// # Errors
/// As of [`read`].
pub fn bytes(file: impl Read, most: u64) -> io::Result<Vec<u8>> {
    fill(Vec::new(), file, most)
}

fn fill(mut content: Vec<u8>, file: impl Read, most: u64) -> io::Result<Vec<u8>> {
    file.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(too_large(most));
    }
    Ok(content)
}

fn too_large(most: u64) -> io::Error {
    let problem = format!("larger than {}, the most that is read of it", size(most));
    io::Error::new(ErrorKind::FileTooLarge, problem)
}

pub(crate) fn text(content: Vec<u8>) -> io::Result<String> {
    String::from_utf8(content)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "not text: it is not UTF-8"))
}

/// Fails unless this is a regular file.
pub(crate) fn check(file: &std::fs::Metadata) -> io::Result<()> {
    let kind = file.file_type();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let found = name(kind);
    Err(io::Error::new(ErrorKind::InvalidInput, format!("expected a regular file, found {found}")))
}

/// What neither a file nor a folder is.
#[cfg(unix)]
fn name(kind: FileType) -> &'static str {
    match () {
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () if kind.is_symlink() => "a link",
        () => "a device",
    }
}

#[cfg(not(unix))]
fn name(_: FileType) -> &'static str {
    "something else"
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_met_to_the_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, [b'x'; 2048]).unwrap();
        assert_eq!(read(&path, 2048).unwrap().len(), 2048);
        let error = read(&path, 2047).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "larger than 1 KiB, the most that is read of it");
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_text(&path, 10).unwrap_err().to_string(), "not text: it is not UTF-8");
    }

    #[test]
    fn what_blocks_or_never_ends_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| read(path, 10).unwrap_err().to_string();
        assert_eq!(refused(Path::new("/dev/zero")), "expected a regular file, found a device");
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(refused(&fifo), "expected a regular file, found a FIFO");
        assert_eq!(refused(folder.path()), "is a directory");
        // A file of /proc says that it has no bytes, and has some.
        assert!(!read(Path::new("/proc/self/status"), 1 << 20).unwrap().is_empty());
    }
}
