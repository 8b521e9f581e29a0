//! Chromium without a window, in the host of its endpoint.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::ChildStderr;

use crate::BrowserError;
use crate::child::{self, Guarded, Lines};

/// Without a window, a sandbox (root may not have one, and the page is ours), a GPU, or anything
/// that asks the network on its own; and never slowed down for being in the background.
const ARGUMENTS: &[&str] = &[
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--autoplay-policy=no-user-gesture-required",
    "--mute-audio",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-features=Translate,MediaRouter,OptimizationHints,LocalNetworkAccessChecks",
];

/// A browser that shows one page. Dropping it kills it with all that it started, and removes its profile.
pub struct Browser {
    guarded: Guarded,
    messages: Lines<ChildStderr>,
    /// Dropped last, after Chromium, which writes to it.
    _profile: Profile,
}

impl Browser {
    /// Starts the program `command` with the page `url`, for the endpoint of that name, whose records are in the folder.
    /// `more` are further arguments.
    ///
    /// # Errors
    /// [`BrowserError::System`].
    pub fn start(
        command: &Path,
        (dir, name): (&Path, &str),
        url: &str,
        more: &[&str],
    ) -> Result<Self, BrowserError> {
        let profile = Profile::make(dir, name)?;
        let mut command = child::command(command);
        command.args(ARGUMENTS).args(more);
        command.arg(format!("--user-data-dir={}", profile.0.display()));
        command.arg(url).env("HOME", &profile.0);
        command.env_remove("DISPLAY").env_remove("DBUS_SESSION_BUS_ADDRESS");
        command.stderr(Stdio::piped());
        child::bind(&mut command, false);
        let mut guarded =
            Guarded::spawn(&mut command).map_err(BrowserError::system("starting Chromium"))?;
        let messages = Lines::new(guarded.child().stderr.take().expect("standard error is piped"));
        Ok(Self { guarded, messages, _profile: profile })
    }

    /// Waits until the browser ends: how it did, and the last that it said.
    pub async fn ended(&mut self) -> String {
        let mut last = String::new();
        while let Some(line) = self.messages.next().await {
            last = line;
        }
        match self.guarded.wait().await {
            Ok(status) => format!("Chromium ended with {status}: {last}"),
            Err(error) => format!("waiting for Chromium: {error}"),
        }
    }
}

/// The browser's profile: a folder that is removed after.
struct Profile(PathBuf);

impl Profile {
    fn make(dir: &Path, name: &str) -> Result<Self, BrowserError> {
        let absolute =
            std::path::absolute(dir).map_err(BrowserError::system("finding the folder"))?;
        let path = absolute.join(format!(".{name}.profile"));
        std::fs::create_dir_all(&path)
            .map_err(BrowserError::system(format!("making {}", path.display())))?;
        Ok(Self(path))
    }
}

/// The folder in the system's folder for temporary files with which Chromium keeps a profile to one browser; one that is killed
/// leaves it behind.
fn lock(profile: &Path) -> Option<PathBuf> {
    let socket = std::fs::read_link(profile.join("SingletonSocket")).ok()?;
    let folder = socket.parent()?;
    let is_its = folder.file_name()?.to_str()?.starts_with("org.chromium.Chromium.")
        && folder.parent()? == std::env::temp_dir();
    is_its.then(|| folder.to_owned())
}

impl Drop for Profile {
    fn drop(&mut self) {
        if let Some(lock) = lock(&self.0) {
            let _ = std::fs::remove_dir_all(lock);
        }
        // The browser was killed just before; what it still writes makes a second try needed.
        if std::fs::remove_dir_all(&self.0).is_err() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_of_a_browser_is_left() {
        let room = tempfile::tempdir().expect("a folder");
        let lock = tempfile::Builder::new().prefix("org.chromium.Chromium.").tempdir();
        let (lock, other) = (lock.expect("a folder"), room.path().join("org.chromium.Chromium.1"));
        std::fs::create_dir(&other).expect("a folder");
        for (name, kept) in [("one", lock.path()), ("two", &*other)] {
            let profile = Profile::make(room.path(), name).expect("a folder");
            symlink(kept.join("SingletonSocket"), profile.0.join("SingletonSocket")).expect("made");
        }
        assert!(!lock.path().exists() && other.exists());
        assert_eq!(std::fs::read_dir(room.path()).expect("it is there").count(), 1);
    }
}
