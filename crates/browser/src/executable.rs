//! What Chromium's executable contains: the names of the field trials that it knows.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::installed::{self, Missing};

/// Bytes that are read at a time.
const BLOCK: usize = 1 << 20;

/// Whether Chromium knows a field trial of libwebrtc: its name is then a text in the executable. Chromium ignores one that it
/// does not know, and says nothing.
///
/// # Errors
/// [`Missing`]: it does not know the trial, its executable cannot be found or read, or Chromium is not installed.
pub fn field_trial(name: &str) -> Result<(), Missing> {
    let command = installed::chromium()?;
    let missing = |reason| {
        let remedy = "use a Chromium that has this field trial, or remove it from field_trials";
        Missing { name: "chromium", reason, remedy }
    };
    let Some(file) = behind(&command) else {
        let script = command.display();
        return Err(missing(format!(
            "{script} is a script, and its executable is not where distributions have it, so it is unknown whether \
             it has the field trial `{name}`"
        )));
    };
    let found = File::open(&file).and_then(|opened| contains(opened, name.as_bytes()));
    match found {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(missing(format!("{} does not have the field trial `{name}`", file.display())))
        }
        Err(cause) => Err(missing(format!("reading {}: {cause}", file.display()))),
    }
}

/// The executable of a command: itself, or what a script of that name starts, which distributions have in a folder of that name
/// (`/usr/lib/chromium/chromium`) and Google next to the script (`chrome`).
fn behind(command: &Path) -> Option<PathBuf> {
    let command = command.canonicalize().ok()?;
    let name = command.file_name()?;
    let prefix = command.parent()?.parent()?;
    let below = |libraries: &str| prefix.join(libraries).join(name).join(name);
    let next_to_it = command.with_file_name("chrome");
    let places = [command.clone(), below("lib"), below("lib64"), next_to_it];
    places.into_iter().find(|file| is_elf(file))
}

fn is_elf(file: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(file).and_then(|mut opened| opened.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

/// Whether a text is among the bytes of `reader`, of which a block is in memory at a time.
fn contains(mut reader: impl Read, text: &[u8]) -> io::Result<bool> {
    let mut bytes = Vec::with_capacity(BLOCK + text.len());
    loop {
        let read = reader.by_ref().take(BLOCK as u64).read_to_end(&mut bytes)?;
        if is_among(&bytes, text) {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        // A text that begins in this block may end in the next one.
        let before = bytes.len().saturating_sub(text.len().saturating_sub(1));
        bytes.drain(..before);
    }
}

/// The C library searches hundreds of megabytes in a part of a second, also where this crate is not optimised.
fn is_among(bytes: &[u8], text: &[u8]) -> bool {
    // SAFETY: both are slices, with their own lengths; memmem only reads them.
    let found = unsafe {
        libc::memmem(bytes.as_ptr().cast(), bytes.len(), text.as_ptr().cast(), text.len())
    };
    !found.is_null()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"WebRTC-Bwe-ScreamV2";

    #[test]
    fn a_text_is_found_wherever_a_block_ends() {
        for before in [0, 1, BLOCK - KEY.len(), BLOCK - 10, BLOCK - 1, BLOCK, 3 * BLOCK - 5] {
            let bytes = || io::repeat(b'W').take(before as u64);
            let with = bytes().chain(KEY).chain(&b"\0"[..]);
            assert!(contains(with, KEY).unwrap(), "{before} bytes before it");
            let cut = bytes().chain(&KEY[..KEY.len() - 1]);
            assert!(!contains(cut, KEY).unwrap(), "{before} bytes before a part of it");
        }
    }

    #[test]
    fn a_script_of_a_distribution_leads_to_its_executable() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let write = |path: &str, bytes: &[u8]| {
            let file = root.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, bytes).unwrap();
            file
        };
        let script = write("usr/bin/chromium", b"#!/bin/sh\nexec $LIBDIR/chromium \"$@\"\n");
        assert_eq!(behind(&script), None, "nothing is where it could be");
        let elf = write("usr/lib/chromium/chromium", b"\x7fELF\x02");
        assert_eq!(behind(&script), Some(elf.clone()));
        assert_eq!(behind(&elf), Some(elf));

        let script = write("opt/google/chrome/google-chrome", b"#!/bin/bash\n");
        let chrome = write("opt/google/chrome/chrome", b"\x7fELF\x02");
        let link = root.join("usr/bin/google-chrome");
        std::os::unix::fs::symlink(script, &link).unwrap();
        assert_eq!(behind(&link), Some(chrome));
    }

    #[test]
    fn names_are_found_in_the_installed_chromium() {
        let command = match installed::chromium() {
            Ok(command) => command,
            Err(missing) => {
                suiro_units::skipped(&missing);
                return;
            }
        };
        if behind(&command).is_none() {
            let command = command.display();
            suiro_units::skipped(&format!("no executable is found behind {command}"));
            return;
        }
        // What most of their names begin with.
        assert_eq!(field_trial("WebRTC-"), Ok(()));
    }
}
