//! Files of a folder that somebody else may have made, reached without leaving the folder.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Component, Path};

#[cfg(unix)]
use system::{list, resolve};

use crate::file;

/// What is to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    File,
    Folder,
    Entries,
}

/// Opens a regular file below `folder` for reading. No link on the way is followed, the last one
/// included, and `..` does not lead out; `folder` itself is the user's own word and may be a link.
///
/// # Errors
/// What the system says; that the path leads out of the folder or is a link; that it is no regular
/// file.
pub fn open(folder: &Path, path: &Path) -> io::Result<File> {
    let file = resolve(folder, path, Wanted::File)?;
    file::check(&file.metadata()?)?;
    Ok(file)
}

/// The text of such a file of `most` bytes at most.
///
/// # Errors
/// As of [`open`] and of [`file::read_text`].
pub fn read_text(folder: &Path, path: &Path, most: u64) -> io::Result<String> {
    file::text(file::bytes(open(folder, path)?, most)?)
}

/// Fails unless `path` is a folder that can be reached from `folder` in this way.
///
/// # Errors
/// As of [`open`].
pub fn check_folder(folder: &Path, path: &Path) -> io::Result<()> {
    resolve(folder, path, Wanted::Folder).map(drop)
}

/// What a name in a folder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file, with its size in bytes.
    File(u64),
    /// A folder.
    Folder,
    /// A link, a device, a socket.
    Other,
}

/// What is in a folder below `folder`, in the order of the names.
///
/// # Errors
/// As of [`open`].
pub fn entries(folder: &Path, path: &Path) -> io::Result<Vec<(OsString, Kind)>> {
    list(&resolve(folder, path, Wanted::Entries)?)
}

/// Whether `path` is made of names alone: neither absolute nor with `..`.
pub fn stays(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn leads_out() -> io::Error {
    let problem = "a link, or a path that leads out of its folder: neither is followed here";
    io::Error::new(ErrorKind::PermissionDenied, problem)
}

#[cfg(not(unix))]
fn resolve(_: &Path, path: &Path, _: Wanted) -> io::Result<File> {
    if stays(path) { Err(ErrorKind::Unsupported.into()) } else { Err(leads_out()) }
}

#[cfg(not(unix))]
fn list(_: &File) -> io::Result<Vec<(OsString, Kind)>> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(unix)]
mod system {
    use std::ffi::{OsStr, OsString};
    use std::fs::File;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use rustix::fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2, statat,
    };
    use rustix::io::Errno;

    use super::{Kind, Wanted, leads_out, stays};

    pub(super) fn resolve(folder: &Path, path: &Path, wanted: Wanted) -> io::Result<File> {
        if !stays(path) {
            return Err(leads_out());
        }
        let flags = OFlags::CLOEXEC
            | match wanted {
                Wanted::File => OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY,
                Wanted::Folder => OFlags::PATH | OFlags::DIRECTORY,
                Wanted::Entries => OFlags::RDONLY | OFlags::DIRECTORY,
            };
        let root = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, folder, root, Mode::empty())?;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = match openat2(&root, path, flags, Mode::empty(), how) {
            // Kernels before 5.6 have no openat2; some containers refuse it.
            Err(Errno::NOSYS | Errno::PERM) => step_by_step(root, path, flags),
            opened => opened,
        };
        opened.map(File::from).map_err(|error| match error {
            Errno::LOOP | Errno::XDEV => leads_out(),
            error => error.into(),
        })
    }

    pub(super) fn list(folder: &File) -> io::Result<Vec<(OsString, Kind)>> {
        let mut found = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            // Some file systems do not say in the listing what a name is.
            let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let kind = match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Kind::File(stat.st_size.cast_unsigned()),
                FileType::Directory => Kind::Folder,
                _ => Kind::Other,
            };
            found.push((name.to_owned(), kind));
        }
        found.sort();
        Ok(found)
    }

    /// The same without `openat2`: one name after another, none of which may be a link.
    pub(super) fn step_by_step(
        root: OwnedFd,
        path: &Path,
        flags: OFlags,
    ) -> Result<OwnedFd, Errno> {
        let mut at = root;
        let mut names = path.components().peekable();
        while let Some(name) = names.next() {
            let on_the_way = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let flags = if names.peek().is_some() { on_the_way } else { flags };
            let name = name.as_os_str();
            let opened = openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty());
            at = opened.map_err(|error| match error {
                // With O_DIRECTORY the kernel says of a link that it is no directory.
                Errno::NOTDIR if rustix::fs::readlinkat(&at, name, Vec::new()).is_ok() => {
                    Errno::LOOP
                }
                error => error,
            })?;
        }
        Ok(at)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, Mode, OFlags, openat};
    use rustix::io::Errno;

    use super::system::step_by_step;
    use super::*;

    /// A folder `in` with files and links, and a file next to it.
    fn room() -> tempfile::TempDir {
        let room = tempfile::tempdir().unwrap();
        let inside = room.path().join("in");
        std::fs::create_dir_all(inside.join("sub")).unwrap();
        std::fs::write(inside.join("sub/file"), "here").unwrap();
        std::fs::write(room.path().join("secret"), "there").unwrap();
        symlink(room.path().join("secret"), inside.join("out")).unwrap();
        symlink("sub", inside.join("near")).unwrap();
        symlink(room.path(), inside.join("up")).unwrap();
        room
    }

    #[test]
    fn nothing_leads_out_of_a_folder() {
        let room = room();
        let folder = room.path().join("in");
        assert_eq!(read_text(&folder, Path::new("sub/file"), 9).unwrap(), "here");
        let secret = room.path().join("secret");
        for path in ["out", "up/secret", "near/file", "../secret", "sub/../../secret", ".", ""] {
            let error = open(&folder, Path::new(path)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{path}: {error}");
        }
        assert_eq!(open(&folder, &secret).unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(open(&folder, Path::new("none")).unwrap_err().kind(), ErrorKind::NotFound);
        // The folder itself is what the user typed.
        symlink(&folder, room.path().join("link")).unwrap();
        let through = room.path().join("link");
        assert_eq!(read_text(&through, Path::new("sub/file"), 9).unwrap(), "here");
        assert!(check_folder(&folder, Path::new("sub")).is_ok());
        assert!(check_folder(&folder, Path::new("up")).is_err());
        // What is there, links for what they are.
        let (near, out, sub) = ("near".into(), "out".into(), "sub".into());
        let found = [
            (near, Kind::Other),
            (out, Kind::Other),
            (sub, Kind::Folder),
            ("up".into(), Kind::Other),
        ];
        assert_eq!(
            entries(&room.path().join("in"), Path::new("sub")).unwrap(),
            [("file".into(), Kind::File(4))]
        );
        assert_eq!(entries(room.path(), Path::new("in")).unwrap(), found);
        assert!(entries(&folder, Path::new("near")).is_err());
    }

    #[test]
    fn a_kernel_without_openat2_follows_no_link_either() {
        let room = room();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let root = || {
            openat(CWD, room.path().join("in"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
                .unwrap()
        };
        let at = |path: &str| step_by_step(root(), Path::new(path), flags);
        assert!(at("sub/file").is_ok());
        for path in ["out", "up/secret", "near/file"] {
            assert_eq!(at(path).unwrap_err(), Errno::LOOP, "{path}");
        }
        assert_eq!(at("none").unwrap_err(), Errno::NOENT);
        assert_eq!(at("sub/file/x").unwrap_err(), Errno::NOTDIR);
    }
}
