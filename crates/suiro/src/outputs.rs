//! Files that a command is asked to write: an existing file is not overwritten unless that is asked
//! for, and an input never is. A signal that ends the command leaves none of them half written.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use suiro_outside::unfinished::gone;
use suiro_outside::{Beside, Unfinished};

use crate::{Usage, interrupt};

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It is kept: the command is refused.
    Kept,
    /// `--replace`.
    Replaced,
}

impl Existing {
    /// As `--replace` says.
    pub const fn of(replace: bool) -> Self {
        if replace { Self::Replaced } else { Self::Kept }
    }
}

/// Refuses outputs that are inputs, and those that are there already, unless they may be replaced.
/// Devices and FIFOs, such as /dev/null, are written to as they are.
pub fn check(outputs: &[PathBuf], inputs: &[PathBuf], existing: Existing) -> Result<()> {
    let same = |input: &&PathBuf, output: &std::fs::Metadata| {
        let input = input.metadata().map(|found| (found.dev(), found.ino())).ok();
        input == Some((output.dev(), output.ino()))
    };
    for output in outputs {
        let name = output.display();
        let found = match output.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            found => found.with_context(|| format!("examining {name}"))?,
        };
        if found.is_dir() {
            bail!(Usage(format!("{name} is a folder\nhint: name a file")));
        }
        if let Some(input) = inputs.iter().find(|input| same(input, &found)) {
            let input = input.display();
            bail!(Usage(format!("{name} is the input {input}\nhint: name another file")));
        }
        if found.is_file() && existing == Existing::Kept {
            bail!(Usage(format!("{name} is there already\nhint: --replace replaces it")));
        }
    }
    Ok(())
}

/// Makes the folder `dir` for the records of the endpoint `name`, and what it saves. If an earlier one has left such files there, it
/// is refused, unless they may be replaced: then they are removed.
pub fn make_room(dir: &Path, name: &str, existing: Existing) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let doing = || format!("reading {}", dir.display());
    let (record, saved) = (format!(".{name}.parquet"), format!("played.{name}."));
    for entry in std::fs::read_dir(dir).with_context(doing)? {
        let path = entry.with_context(doing)?.path();
        let file = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if !file.ends_with(&record) && !file.starts_with(&saved) {
            continue;
        }
        let shown = path.display();
        if existing == Existing::Kept {
            let hint = "hint: --replace replaces what is there, or name another folder";
            bail!(Usage(format!("{shown} is there already\n{hint}")));
        }
        std::fs::remove_file(&path).with_context(|| format!("removing {shown}"))?;
    }
    Ok(())
}

/// A file that appears when it is whole; a device or FIFO is written to at once.
pub enum Output {
    /// Next to its place until it is kept.
    Beside(Beside),
    /// Not a regular file.
    Direct(File),
}

impl Output {
    /// Begins to write `path`, which [`check`] has found free.
    pub fn begin(path: &Path) -> Result<Self> {
        let doing = || format!("writing {}", path.display());
        let place = match path.metadata() {
            Ok(found) if !found.is_file() => {
                let file = File::options().write(true).open(path).with_context(doing)?;
                return Ok(Self::Direct(file));
            }
            // What a link leads to is replaced, not the link.
            Ok(_) => path.canonicalize()?,
            Err(_) => path.to_owned(),
        };
        interrupt::leave_nothing_half()?;
        Ok(Self::Beside(Beside::replace(&place).with_context(doing)?))
    }

    /// Puts it in its place.
    pub fn keep(self) -> std::io::Result<()> {
        match self {
            Self::Beside(beside) => beside.keep(),
            Self::Direct(mut file) => file.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Beside(beside) => beside.write(bytes),
            Self::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Beside(beside) => beside.flush(),
            Self::Direct(file) => file.flush(),
        }
    }
}

/// Writes a whole file, which [`check`] has found free.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let mut output = Output::begin(path)?;
    let written = output.write_all(text.as_bytes()).and_then(|()| output.keep());
    written.with_context(|| format!("writing {}", path.display()))
}

/// A new folder that appears when it is whole.
pub struct NewFolder {
    part: Unfinished,
    place: PathBuf,
}

impl NewFolder {
    /// Begins to write `place` next to it. The folder may be there already if it is empty.
    pub fn begin(place: &Path) -> Result<Self> {
        let name = place.display();
        match std::fs::read_dir(place).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Ok(false) => bail!(Usage(format!("{name} is not empty\nhint: name a new folder"))),
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                bail!(Usage(format!("{name} is there already\nhint: name a new folder")));
            }
            Err(error) => return Err(error).with_context(|| format!("examining {name}")),
        }
        // What a link leads to gets the content, not the link.
        let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        let Some(own) = place.file_name().and_then(OsStr::to_str) else {
            bail!(Usage(format!("{name} does not name a folder\nhint: name a new folder")));
        };
        let part = place.with_file_name(format!(".{own}.{}.part", std::process::id()));
        interrupt::leave_nothing_half()?;
        Ok(Self { part: part_folder(&part)?, place })
    }

    /// Where it is until it is kept.
    pub fn path(&self) -> &Path {
        self.part.path()
    }

    /// Puts it in its place.
    pub fn keep(self) -> Result<()> {
        let kept = self.part.keep(&self.place);
        kept.with_context(|| format!("writing {}", self.place.display()))
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // It is not there any more if it was kept. A second failure would hide the first.
        let _ = std::fs::remove_dir_all(self.part.path());
    }
}

/// An empty folder for what has no place yet.
fn part_folder(path: &Path) -> Result<Unfinished> {
    let make = |part: &Path| {
        // What a process of this number left when it was killed.
        gone(std::fs::remove_dir_all(part))?;
        std::fs::create_dir_all(part)
    };
    let doing = || format!("making {}", path.display());
    let (part, ()) = Unfinished::begin(path.to_owned(), make).with_context(doing)?;
    Ok(part)
}

/// Several files that are written in a folder next to their places, and renamed together.
pub struct Batch {
    folder: Unfinished,
    places: Vec<PathBuf>,
}

impl Batch {
    /// Begins to write `places`, all in `folder`, which is made.
    pub fn begin(folder: &Path, places: Vec<PathBuf>) -> Result<Self> {
        let part = folder.join(format!(".suiro-{}.part", std::process::id()));
        interrupt::leave_nothing_half()?;
        Ok(Self { folder: part_folder(&part)?, places })
    }

    /// Where the files are to be written, under the names of their places.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Puts what was written into its places.
    pub fn keep(self) -> Result<()> {
        for place in &self.places {
            let name = place.file_name().context("a place has a name")?;
            match std::fs::rename(self.folder().join(name), place) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("writing {}", place.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // A second failure would hide the first.
        let _ = std::fs::remove_dir_all(self.folder());
    }
}
