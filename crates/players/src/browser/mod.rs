//! dash.js and hls.js in Chromium without a window. A page of ours, served to the browser in its own
//! host, loads the library and the manifest, and reports what it sees several times a second.

mod report;
mod server;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration as StdDuration;

use bytes::Bytes;
use tokio::process::ChildStderr;
use tokio::sync::mpsc::{Receiver, channel};

use crate::child::{self, Guarded, Lines};
use crate::installed::LIBRARY_BYTES_MAX;
use crate::record::State;
use crate::session::Session;
use crate::{Installed, PlayError};
use report::PageClock;
use server::Site;

/// The browser starts, loads the page and reports within this time, or something is wrong.
const FIRST_REPORT_WITHIN: StdDuration = StdDuration::from_secs(30);
/// Reports come five times a second; after this long without one the page is dead.
const REPORT_WITHIN: StdDuration = StdDuration::from_secs(20);
/// Reports that wait to be read.
const REPORTS_MAX: usize = 16;

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

/// Plays until the stream ends or breaks; why it broke.
pub(crate) async fn play(
    session: &mut Session<'_>,
    installed: &Installed,
) -> Result<Option<String>, PlayError> {
    let library = installed.at.library.as_ref().expect("a library belongs to a browser player");
    let (sender, reports) = channel(REPORTS_MAX);
    let listener = server::listen()
        .map_err(|e| PlayError::system("listening for the browser")(std::io::Error::other(e)))?;
    let doing = "listening for the browser";
    let port = listener.local_addr().map_err(PlayError::system(doing))?.port();
    let site = Site {
        library: suiro_outside::file::read(library, LIBRARY_BYTES_MAX)
            .map_err(PlayError::system(format!("reading {}", library.display())))?,
        job: job(session),
        reports: sender,
    };
    let profile = Profile::make(&session.job.dir, &session.job.name)?;
    let mut command = child::command(&installed.at.command);
    command.args(ARGUMENTS).arg(format!("--user-data-dir={}", profile.0.display()));
    command.arg(format!("http://127.0.0.1:{port}/")).env("HOME", &profile.0);
    command.env_remove("DISPLAY").env_remove("DBUS_SESSION_BUS_ADDRESS").stderr(Stdio::piped());
    child::bind(&mut command, false);
    let mut guarded =
        Guarded::spawn(&mut command).map_err(PlayError::system("starting Chromium"))?;
    let mut messages = Lines::new(guarded.child().stderr.take().expect("standard error is piped"));
    tokio::select! {
        never = server::serve(listener, site) => match never {},
        ended = last_words(&mut guarded, &mut messages) => Ok(Some(ended)),
        failure = hear(session, reports) => failure,
    }
}

/// What the page is to play.
fn job(session: &Session<'_>) -> String {
    serde_json::json!({
        "player": session.job.program.name(),
        "manifest": session.job.url.to_string(),
        "buffer_s": session.job.buffer.as_secs_f64(),
        "target_latency_s": session.job.target_latency.map(|latency| latency.as_secs_f64()),
    })
    .to_string()
}

/// Reads what the browser says, which is of no interest until it ends.
async fn last_words(guarded: &mut Guarded, messages: &mut Lines<ChildStderr>) -> String {
    let mut last = String::new();
    while let Some(line) = messages.next().await {
        last = line;
    }
    match guarded.wait().await {
        Ok(status) => format!("Chromium ended with {status}: {last}"),
        Err(error) => format!("waiting for Chromium: {error}"),
    }
}

async fn hear(
    session: &mut Session<'_>,
    mut reports: Receiver<Bytes>,
) -> Result<Option<String>, PlayError> {
    let mut clock = PageClock::default();
    let mut within = FIRST_REPORT_WITHIN;
    loop {
        let Ok(body) = tokio::time::timeout(within, reports.recv()).await else {
            return Ok(Some(format!("the page reported nothing for {} s", within.as_secs())));
        };
        within = REPORT_WITHIN;
        let Some(body) = body else { return Ok(Some("the page is gone".to_owned())) };
        let report = match report::parse(&body) {
            Ok(report) => report,
            Err(reason) => return Ok(Some(reason)),
        };
        clock.hear(session.clock.now(), &report);
        if report.left_out > 0 {
            return Ok(Some(format!("the page left out {} entries", report.left_out)));
        }
        for request in &report.requests {
            session.request(&request.request(&clock))?;
        }
        for state in &report.states {
            let at = state.at(&clock);
            let unix_ns = session.clock.unix_ns(at);
            state.apply(&mut session.view, unix_ns, &session.ladder);
            session.tick_at(at)?;
        }
        match report.failure {
            Some(reason) => return Ok(Some(reason)),
            None if session.view.state == State::Ended => return Ok(None),
            None => {}
        }
    }
}

/// The browser's profile: a folder that is removed after.
struct Profile(PathBuf);

impl Profile {
    fn make(dir: &Path, name: &str) -> Result<Self, PlayError> {
        let absolute = std::path::absolute(dir).map_err(PlayError::system("finding the folder"))?;
        let path = absolute.join(format!(".{name}.profile"));
        std::fs::create_dir_all(&path)
            .map_err(PlayError::system(format!("making {}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // The browser was killed just before; what it still writes makes a second try needed.
        if std::fs::remove_dir_all(&self.0).is_err() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
