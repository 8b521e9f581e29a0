//! Which of several controllers leads: the one that holds the lock next to the desired state. The kernel releases it when
//! its process ends, however it ends.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// The lock of a desired state.
pub struct Lease {
    file: File,
    holds: bool,
}

impl Lease {
    /// The lock next to a file, `FILE.lock`.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn beside(state: &Path) -> io::Result<Self> {
        let mut name = state.as_os_str().to_owned();
        name.push(".lock");
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(PathBuf::from(name))?;
        Ok(Self { file, holds: false })
    }

    /// Tries to get the lock, and writes who holds it. True if it is held.
    ///
    /// # Errors
    /// What the system says.
    pub fn take(&mut self, who: &str) -> io::Result<bool> {
        if self.holds {
            return Ok(true);
        }
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                self.holds = true;
                self.file.set_len(0)?;
                self.file.rewind()?;
                self.file.write_all(who.as_bytes())?;
                Ok(true)
            }
            Err(error) if error == rustix::io::Errno::WOULDBLOCK => Ok(false),
            Err(error) => Err(error.into()),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_leads_and_the_other_can_say_who() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state.toml");
        let (mut one, mut two) = (Lease::beside(&state).unwrap(), Lease::beside(&state).unwrap());
        assert!(one.take("one").unwrap() && one.take("one").unwrap());
        assert!(!two.take("two").unwrap());
        assert_eq!(two.holder(), "one");
        drop(one);
        assert!(two.take("two").unwrap());
        assert_eq!(two.holder(), "two");
    }
}
