//! The cache: sources that were fetched, packages that were made.
//!
//! ```text
//! sources/NAME      files as they were fetched, their checksums verified
//! footage/HASH.yuv  frames that are not encoded, for real-time sources
//! packages/HASH/    packages; HASH is of everything that bears on the content
//! packages/HASH.new a package that is being made; packages/HASH.lock whoever holds it, makes it
//! ```
//!
//! A package of the default ladder takes about 21 MB; `bbb` itself 23 MB. Nothing is ever evicted:
//! what is not wanted any more may be removed by hand, while no run uses it.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use suiro_outside::file;
use suiro_outside::unfinished::gone;
use suiro_units::Bytes;

use crate::MediaError;
use crate::checksum::hex;

/// Told how far long work is: the part done, 0 to 1, and what is being done.
pub type Progress<'p> = &'p mut dyn FnMut(f64, &str);

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
    /// Takes the lock `file`, making the folder it is in. If another process holds it, calls
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

/// The name of what is kept, made of everything that bears on its content.
pub(crate) struct Recipe(Sha256);

impl Recipe {
    /// Of nothing yet.
    pub fn new() -> Self {
        Self(Sha256::new())
    }

    /// Adds a part; where one ends and the next begins counts too.
    pub fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
    }

    /// SHA-256, in part, of all that was added.
    pub fn name(self) -> String {
        hex(&self.0.finalize()[..16])
    }
}

/// Finds the folder `name` of `cache`'s packages with `load`, or makes it, once: in a folder of its own,
/// which is renamed when it is whole. Whoever wants the same meanwhile, waits. What is damaged is made anew.
pub(crate) fn once<T>(
    cache: &Path,
    name: &str,
    progress: Progress,
    load: impl Fn(&Path) -> Result<T, MediaError>,
    make: impl FnOnce(&Path, Progress) -> Result<(), MediaError>,
) -> Result<T, MediaError> {
    let packages = cache.join("packages");
    let folder = packages.join(name);
    // It gets this name when it is whole, so a cache that cannot be written to serves as well.
    if let Ok(made) = load(&folder) {
        progress(1.0, "prepared before");
        return Ok(made);
    }
    let _lock = Lock::take(&packages.join(format!("{name}.lock")), || {
        progress(0.0, "waiting for another run that prepares the same video");
    })?;
    if let Ok(made) = load(&folder) {
        progress(1.0, "prepared before");
        return Ok(made);
    }
    // Left by a run that was killed, or damaged. The lock keeps other processes out.
    let new = packages.join(format!("{name}.new"));
    make_anew(&new)?;
    let made = make(&new, progress).and_then(|()| remove(&folder));
    if let Err(error) = made {
        // What led here matters more than what may be left.
        let _ = remove(&new);
        return Err(error.of_full_disk(&new));
    }
    fs::rename(&new, &folder).map_err(MediaError::io("renaming", &new))?;
    progress(1.0, "prepared");
    load(&folder)
}

/// Reads what stands in the file `index`, if it is no larger than `bytes_max`.
///
/// # Errors
/// [`MediaError::Damaged`], naming the file.
pub(crate) fn read_index<T: DeserializeOwned>(
    index: &Path,
    bytes_max: u64,
) -> Result<T, MediaError> {
    let damaged = |message: String| MediaError::damaged(index, message);
    let text = file::read(index, bytes_max).map_err(|error| damaged(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))
}

/// Makes `folder` empty, whatever was there. Only the holder of its lock does this.
pub(crate) fn make_anew(folder: &Path) -> Result<(), MediaError> {
    remove(folder)?;
    fs::create_dir(folder).map_err(MediaError::io("making", folder))
}

/// Removes a folder, if there is one.
pub(crate) fn remove(folder: &Path) -> Result<(), MediaError> {
    gone(fs::remove_dir_all(folder)).map_err(MediaError::io("removing", folder))
}
