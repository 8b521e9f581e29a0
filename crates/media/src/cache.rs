//! The cache: sources that were fetched, packages that were made.
//!
//! ```text
//! sources/NAME      files as they were fetched, their checksums verified
//! footage/HASH.yuv  pictures that are not encoded, for real-time sources
//! packages/HASH/    packages; HASH is of everything that bears on the content
//! packages/HASH.new a package that is being made; packages/HASH.lock whoever holds it, makes it
//! ```
//!
//! A package of the default ladder takes about 21 MB; `bbb` itself 23 MB. Nothing is ever evicted:
//! what is not wanted any more may be removed by hand, while no run uses it.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use suiro_units::Bytes;

use crate::MediaError;

/// Suiro's cache folder: `suiro` below `XDG_CACHE_HOME`, else below `~/.cache`.
pub fn folder() -> PathBuf {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || set("HOME").unwrap_or_else(|| "/root".into()).join(".cache");
    set("XDG_CACHE_HOME").unwrap_or_else(home).join("suiro")
}

/// Bytes of the sources, footage and packages in a cache folder; what cannot be read counts nothing.
pub fn size(cache: &Path) -> Bytes {
    Bytes::new(
        ["sources", "footage", "packages"].iter().map(|part| size_below(&cache.join(part))).sum(),
    )
}

fn size_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let each = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    each.sum()
}

/// The right to make one thing in the cache; given back when dropped, and by the kernel when the
/// process dies.
pub(crate) struct Lock(#[expect(dead_code, reason = "held for its lock")] File);

impl Lock {
    /// Takes the lock `file`, making the folder it is in. If another process holds it, says so by
    /// `waiting` and waits.
    pub fn take(file: &Path, waiting: impl FnOnce()) -> Result<Self, MediaError> {
        let folder = file.parent().expect("a lock lies in the cache");
        fs::create_dir_all(folder).map_err(MediaError::io("making", folder))?;
        let lock = File::options().create(true).truncate(false).write(true).open(file);
        let lock = lock.map_err(MediaError::io("opening", file))?;
        match lock.try_lock() {
            Ok(()) => return Ok(Self(lock)),
            Err(TryLockError::WouldBlock) => waiting(),
            Err(TryLockError::Error(error)) => return Err(MediaError::io("locking", file)(error)),
        }
        lock.lock().map_err(MediaError::io("locking", file))?;
        Ok(Self(lock))
    }
}

/// Makes `folder` empty, whatever was there. Only the holder of its lock does this.
pub(crate) fn make_anew(folder: &Path) -> Result<(), MediaError> {
    remove(folder)?;
    fs::create_dir(folder).map_err(MediaError::io("making", folder))
}

/// Removes a folder, if there is one.
pub(crate) fn remove(folder: &Path) -> Result<(), MediaError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(MediaError::io("removing", folder)(error))
        }
        _ => Ok(()),
    }
}
