//! The lock of a desired state: of several controllers with one file, one at a time holds it. The kernel releases it when its
//! process ends, however it ends. A holder that hangs does not touch it any more, and loses it to the next one.

use std::fs::{File, FileTimes, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};
use suiro_outside::beside::Beside;
use suiro_units::Time;

use crate::claim::LEASE;

/// The lock of a desired state.
pub struct Lease {
    place: PathBuf,
    file: File,
    holds: bool,
    /// When another one was seen to touch it last, and the time that it wrote.
    touched: Option<(Time, SystemTime)>,
}

impl Lease {
    /// The lock next to a file, `FILE.lock`.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn beside(state: &Path) -> io::Result<Self> {
        let mut name = state.as_os_str().to_owned();
        name.push(".lock");
        let place = PathBuf::from(name);
        Ok(Self { file: open(&place)?, place, holds: false, touched: None })
    }

    /// Tries to get the lock, or to keep it, and writes who holds it. `now` is the monotonic time, `date` what the holder
    /// writes. True if it is held.
    ///
    /// # Errors
    /// What the system says.
    pub fn take(&mut self, who: &str, now: Time, date: SystemTime) -> io::Result<bool> {
        if !is_same(&self.place, &self.file)? {
            // Another one took it away, or somebody deleted it.
            (self.file, self.holds, self.touched) = (open(&self.place)?, false, None);
        }
        if !self.holds {
            self.holds = match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => true,
                Err(error) if error == rustix::io::Errno::WOULDBLOCK => self.is_left(now)?,
                Err(error) => return Err(error.into()),
            };
            if self.holds {
                self.write(who);
            }
        }
        if self.holds {
            // This needs no room on the disk.
            self.file.set_times(FileTimes::new().set_modified(date))?;
        }
        Ok(self.holds)
    }

    /// Whether the holder has not touched it for too long; then it is replaced, and the new one is ours.
    fn is_left(&mut self, now: Time) -> io::Result<bool> {
        let written = self.file.metadata()?.modified()?;
        let (seen, last) = *self.touched.get_or_insert((now, written));
        if last != written {
            self.touched = Some((now, written));
            return Ok(false);
        }
        if now.saturating_since(seen) <= LEASE {
            return Ok(false);
        }
        let mut new = Beside::replace(&self.place)?;
        let file = new.file().try_clone()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        new.keep()?;
        (self.file, self.touched) = (file, None);
        // Of two that replace it at once, the later one has it.
        is_same(&self.place, &self.file)
    }

    /// Writes who holds it. A full disk does not matter: it is for people.
    fn write(&mut self, who: &str) {
        let written = self.file.set_len(0).and_then(|()| self.file.rewind());
        let _ = written.and_then(|()| self.file.write_all(who.as_bytes()));
    }

    /// Who holds it, as it wrote.
    pub fn holder(&mut self) -> String {
        let mut text = String::new();
        let read =
            self.file.rewind().and_then(|()| (&mut self.file).take(200).read_to_string(&mut text));
        match read {
            Ok(_) => suiro_outside::text::printable(&text).into_owned(),
            Err(_) => String::new(),
        }
    }
}

fn open(place: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).open(place)
}

/// Whether this file is still the one at its place.
fn is_same(place: &Path, file: &File) -> io::Result<bool> {
    let own = file.metadata()?;
    match std::fs::metadata(place) {
        Ok(there) => Ok((own.dev(), own.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn date(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn one_leads_and_the_other_can_say_who() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state.toml");
        let (mut one, mut two) = (Lease::beside(&state).unwrap(), Lease::beside(&state).unwrap());
        assert!(one.take("one", at(0), date(1)).unwrap());
        assert!(one.take("one", at(1), date(1)).unwrap());
        assert!(!two.take("two", at(1), date(1)).unwrap());
        assert_eq!(two.holder(), "one");
        drop(one);
        assert!(two.take("two", at(2), date(2)).unwrap());
        assert_eq!(two.holder(), "two");
    }

    #[test]
    fn a_holder_that_hangs_loses_it() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state.toml");
        let (mut one, mut two) = (Lease::beside(&state).unwrap(), Lease::beside(&state).unwrap());
        assert!(one.take("one", at(0), date(1)).unwrap());
        for ms in (0..5000).step_by(200) {
            assert!(one.take("one", at(ms), date(2 + ms)).unwrap());
            assert!(!two.take("two", at(ms), date(0)).unwrap(), "it is touched");
        }
        assert!(!two.take("two", at(5000), date(0)).unwrap());
        assert!(!two.take("two", at(5800), date(0)).unwrap());
        assert!(
            two.take("two", at(5801), date(9000)).unwrap(),
            "one lease after the last touch was seen"
        );
        assert!(
            !one.take("one", at(5802), date(9001)).unwrap(),
            "the first one sees that it lost it"
        );
        assert_eq!(one.holder(), "two");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
    }
}
