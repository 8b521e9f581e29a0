//! A folder of a stranger's is copied: regular files and folders alone, up to a bound.

use std::io;
use std::path::Path;

/// The most that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Files and folders.
    pub entries: u32,
    /// Bytes of all files.
    pub bytes: u64,
    /// Folders in folders.
    pub depth: u32,
}

/// Copies what is in `path` below `folder` into the new folder `to`. A link, device, FIFO or socket is refused, and so
/// is what exceeds the bounds. What was copied before an error stays.
///
/// # Errors
/// As of [`crate::beneath::open`], with the path; if `to` exists; what the system says about writing.
pub fn copy(folder: &Path, path: &Path, to: &Path, bounds: Bounds) -> io::Result<()> {
    let mut left = bounds;
    copy_folder(folder, path, to, &mut left).map_err(|error| explain(error, bounds))
}

fn explain(error: io::Error, bounds: Bounds) -> io::Error {
    if error.kind() != io::ErrorKind::QuotaExceeded {
        return error;
    }
    let Bounds { entries, bytes, depth } = bounds;
    let mib = bytes >> 20;
    let most =
        format!("at most {entries} files of {mib} MiB in all, {depth} folders deep, are copied");
    io::Error::new(error.kind(), format!("{error}: {most}"))
}

fn too_much(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::QuotaExceeded, format!("{}: too much", path.display()))
}

fn copy_folder(folder: &Path, path: &Path, to: &Path, left: &mut Bounds) -> io::Result<()> {
    left.depth = left.depth.checked_sub(1).ok_or_else(|| too_much(path))?;
    std::fs::create_dir(to)?;
    for (name, kind) in crate::beneath::entries(folder, path)? {
        left.entries = left.entries.checked_sub(1).ok_or_else(|| too_much(path))?;
        let (from, to) = (path.join(&name), to.join(&name));
        if kind == crate::beneath::Kind::Folder {
            copy_folder(folder, &from, &to, left)?;
        } else {
            copy_file(folder, &from, &to, left).map_err(|error| at(&from, error))?;
        }
    }
    left.depth += 1;
    Ok(())
}

fn copy_file(folder: &Path, from: &Path, to: &Path, left: &mut Bounds) -> io::Result<()> {
    let mut source = crate::beneath::open(folder, from)?;
    if source.metadata()?.len() > left.bytes {
        return Err(too_much(from));
    }
    let mut target = std::fs::OpenOptions::new().write(true).create_new(true).open(to)?;
    let copied = io::copy(&mut io::Read::take(&mut source, left.bytes), &mut target)?;
    left.bytes -= copied;
    Ok(())
}

/// An error with its place.
fn at(path: &Path, error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::QuotaExceeded => error,
        kind => io::Error::new(kind, format!("{}: {error}", path.display())),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { entries: 4, bytes: 100, depth: 2 };

    #[test]
    fn files_and_folders_are_copied_and_nothing_else() {
        let room = tempfile::tempdir().unwrap();
        let inside = room.path().join("in");
        std::fs::create_dir_all(inside.join("t/logs")).unwrap();
        std::fs::write(inside.join("t/a"), "one").unwrap();
        std::fs::write(inside.join("t/logs/b"), "two").unwrap();
        let copied = |to: &str| copy(&inside, Path::new("t"), &room.path().join(to), BOUNDS);
        copied("out").unwrap();
        assert_eq!(std::fs::read_to_string(room.path().join("out/logs/b")).unwrap(), "two");
        assert_eq!(copied("out").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        // What is not a file or folder has its place in the error.
        std::os::unix::fs::symlink("/etc/passwd", inside.join("t/logs/link")).unwrap();
        let error = copied("linked").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().starts_with("t/logs/link: a link"), "{error}");
        std::fs::remove_file(inside.join("t/logs/link")).unwrap();
        // Each bound.
        std::fs::create_dir(inside.join("t/logs/deep")).unwrap();
        assert!(
            copied("deep").unwrap_err().to_string().starts_with("t/logs/deep: too much: at most")
        );
        std::fs::remove_dir(inside.join("t/logs/deep")).unwrap();
        std::fs::File::create(inside.join("t/large")).unwrap().set_len(101).unwrap();
        assert!(copied("large").unwrap_err().to_string().starts_with("t/large: too much"));
        std::fs::remove_file(inside.join("t/large")).unwrap();
        (0..4).for_each(|n| std::fs::write(inside.join(format!("t/{n}")), "").unwrap());
        assert!(copied("many").unwrap_err().to_string().contains("too much"));
    }
}
