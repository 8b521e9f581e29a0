//! Programs that are run, and that never outlive us.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Most of a program's messages that is kept: their end.
const TOLD_MAX: usize = 8 << 10;

/// Most lines of a program's messages that an error shows.
const LINES_MAX: usize = 12;

/// A command without input that is killed when the thread that starts it ends.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    // SAFETY: between fork and exec, only one system call is made, with no memory of ours.
    unsafe {
        command.pre_exec(|| {
            let kill = rustix::process::Signal::KILL;
            rustix::process::set_parent_process_death_signal(Some(kill))?;
            Ok(())
        });
    }
    command
}

/// The command as a person would type it.
pub(crate) fn words(command: &Command) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    let quoted = |word: &OsStr| {
        let word = word.to_string_lossy();
        let bare = !word.is_empty() && word.chars().all(plain);
        if bare { word.into_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    let all = std::iter::once(command.get_program()).chain(command.get_args());
    all.map(quoted).collect::<Vec<_>>().join(" ")
}

/// A child that is killed, and waited for, if it is dropped.
pub(crate) struct Guarded(pub Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        // Neither does anything to a child that has been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The last lines of what `from` prints until it ends.
pub(crate) fn last_lines(mut from: impl Read) -> String {
    let mut told = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut piece) {
        told.extend(&piece[..read]);
        if told.len() > TOLD_MAX {
            told.drain(..told.len() - TOLD_MAX);
        }
    }
    let told = String::from_utf8_lossy(&told);
    let lines: Vec<&str> = told.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_can_be_typed_again() {
        let mut command = Command::new("ffmpeg");
        command.args(["-i", "file:it's.mp4", "", "a=1,b=2"]);
        assert_eq!(words(&command), r"ffmpeg -i 'file:it'\''s.mp4' '' a=1,b=2");
    }

    #[test]
    fn only_the_end_is_kept() {
        let told: String = (0..10_000).map(|n| format!("line {n}\n\n")).collect();
        let last = last_lines(told.as_bytes());
        assert_eq!(last.lines().count(), LINES_MAX);
        assert!(last.starts_with("line 9988\n") && last.ends_with("line 9999"), "{last}");
    }
}
