//! Which programs of others this host has, where, and in which version.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration as StdDuration;

use suiro_media::program;

use crate::child::{self, Guarded, Lines};

/// A program that has not printed its version by then is recorded without one.
const VERSION_WITHIN: StdDuration = StdDuration::from_secs(5);
/// Names of Chromium.
pub const CHROMIUM: &[&str] = &["chromium", "chromium-browser", "google-chrome"];

/// A player or a browser that cannot be used here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("player {name}: {reason}\nhint: {remedy}")]
pub struct Missing {
    /// The player.
    pub name: &'static str,
    /// What is missing or wrong.
    pub reason: String,
    /// How to fix it.
    pub remedy: &'static str,
}

/// Where Chromium is.
///
/// # Errors
/// [`Missing`] names the remedy.
pub fn chromium() -> Result<PathBuf, Missing> {
    let remedy = "make players, or sudo apt-get install chromium";
    first_of(CHROMIUM).map_err(|reason| Missing { name: "chromium", reason, remedy })
}

/// Where a program is that `make peers` builds into suiro's cache folder.
///
/// # Errors
/// [`Missing`] names the remedy.
pub fn peer(name: &'static str) -> Result<PathBuf, Missing> {
    let path = suiro_media::cache::folder().join("peers").join(name);
    if program::can_start(path.as_os_str()) {
        return Ok(path);
    }
    let reason = format!("there is no program {}", path.display());
    Err(Missing { name, reason, remedy: "make peers, in the sources of suiro, which needs Go" })
}

/// The first of these that is in PATH.
///
/// # Errors
/// In words, if none is.
pub fn first_of(commands: &[&str]) -> Result<PathBuf, String> {
    let found = commands.iter().find_map(|command| program::find(OsStr::new(command)));
    found.ok_or_else(|| format!("no program `{}` in PATH", commands.join("`, `")))
}

/// The version that a program prints when asked.
pub async fn version(command: &Path) -> Option<String> {
    let mut ask = child::command(command);
    ask.arg("--version").env("HOME", "/nonexistent").stdout(Stdio::piped());
    child::bind(&mut ask, true);
    let mut guarded = Guarded::spawn(&mut ask).ok()?;
    let mut lines = Lines::new(guarded.child().stdout.take()?);
    let told = async {
        while let Some(line) = lines.next().await {
            if let Some(version) = version_in(&line) {
                return Some(version);
            }
        }
        None
    };
    tokio::time::timeout(VERSION_WITHIN, told).await.ok()?
}

/// The first word of a line that is a version: `3.0.24` of `VLC media player 3.0.24 Vetinari`.
fn version_in(line: &str) -> Option<String> {
    let is_version = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.contains('.')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || ".-+~".contains(c))
    };
    line.split_whitespace().find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_was_not_built_is_missing_with_the_remedy() {
        let missing = peer("no-such-peer").unwrap_err();
        assert!(missing.reason.ends_with("suiro/peers/no-such-peer"), "{missing}");
        assert!(missing.remedy.starts_with("make peers"), "{missing}");
    }

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let of = |line| version_in(line);
        assert_eq!(of("VLC media player 3.0.24 Vetinari"), Some("3.0.24".into()));
        assert_eq!(of("gst-launch-1.0 version 1.22.0"), Some("1.22.0".into()));
        assert_eq!(of("Chromium 156.0.8078.79 built on Debian"), Some("156.0.8078.79".into()));
        assert_eq!(of("VLC is not supposed to be run as root. Sorry."), None);
    }
}
