//! Chromium as an end of live video, whatever the protocol: a page of ours, served to the browser in its own host. It
//! asks for its job, for commands and for the camera's frames, and sends what it measured.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::Serialize;
use suiro_clock::Clock;
use suiro_media::live::{Footage, FootageSpec, LiveError};
use suiro_media::{Ffmpeg, cache};
use suiro_units::{Duration, Time};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::chromium::Browser;
use crate::site::{Page, Sent, Site};
use crate::{BrowserError, installed, server};

/// The page reports five times a second; after this long without a report it is dead.
const REPORT_WITHIN: Duration = Duration::from_secs(20);
/// What the page sent and waits to be looked at.
const SENT_MAX: usize = 64;

/// Chromium, as it is installed.
pub struct Chromium {
    command: PathBuf,
    /// Its version, for records.
    pub versions: BTreeMap<String, String>,
}

/// What is to be shown in it.
pub struct Show<'a> {
    /// The page.
    pub page: Page,
    /// What the page is to do, as JSON.
    pub job: String,
    /// What a publisher's camera sees.
    pub footage: Option<Footage>,
    /// Arguments of Chromium next to those that every page of ours has.
    pub arguments: &'a [&'a str],
    /// Commands to the page that may wait.
    pub commands: usize,
}

/// A browser with its page, which is served while [`Self::run`] is.
pub struct Stage {
    browser: Browser,
    listener: TcpListener,
    site: Rc<Site>,
}

/// What an end has to deal with.
pub enum Event {
    /// The trial begins.
    Begin,
    /// The page sent this.
    Sent(Sent),
    /// The page failed.
    Failed(String),
}

/// What happens to an end, in its order.
pub struct Events<R> {
    sent: Receiver<Sent>,
    clock: Clock,
    start: Time,
    /// What to call when the page has all that it needs; `None` once it was called.
    ready: Option<R>,
    /// When the trial begins; `None` until the page is ready, and after the beginning.
    begins: Option<Time>,
    heard: Time,
}

impl Chromium {
    /// Finds it, and its version.
    ///
    /// # Errors
    /// [`BrowserError::Missing`].
    pub async fn find() -> Result<Self, BrowserError> {
        let command = installed::chromium()?;
        let version = installed::version(&command).await.unwrap_or_else(|| "unknown".to_owned());
        Ok(Self { command, versions: BTreeMap::from([("chromium".to_owned(), version)]) })
    }

    /// Starts it for the endpoint of that name, whose records are in the folder. Gives where commands to the page go, as
    /// JSON, and what the page sends.
    ///
    /// # Errors
    /// [`BrowserError::System`].
    pub async fn start(
        &self,
        (dir, name): (&Path, &str),
        clock: Clock,
        show: Show<'_>,
    ) -> Result<(Stage, Sender<String>, Receiver<Sent>), BrowserError> {
        let (listener, port) = server::listen().await?;
        let (orders, commands) = mpsc::channel(show.commands);
        let (sender, sent) = mpsc::channel(SENT_MAX);
        let Show { page, job, footage, arguments, .. } = show;
        let commands = RefCell::new(Some(commands));
        let site = Rc::new(Site { page, clock, job, footage, commands, sent: sender });
        let url = format!("http://127.0.0.1:{port}/");
        let browser = Browser::start(&self.command, (dir, name), &url, arguments)?;
        Ok((Stage { browser, listener, site }, orders, sent))
    }
}

impl Stage {
    /// Serves the page until it fails, its browser or `end` ends, or `stop` is ready; then the browser is gone. Gives why it
    /// failed, if it did.
    ///
    /// # Errors
    /// As of `end`.
    pub async fn run<E>(
        self,
        end: impl Future<Output = Result<String, E>>,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<String>, E> {
        let Self { mut browser, listener, site } = self;
        let mut stop = std::pin::pin!(stop);
        tokio::select! {
            () = &mut stop => Ok(None),
            never = server::serve(listener, move |request| site.clone().answer(request)) => match never {},
            ended = browser.ended() => Ok(Some(ended)),
            failure = end => failure.map(Some),
        }
    }
}

impl<R: FnOnce()> Events<R> {
    /// Those of a page that was started just now, in a trial that begins at `start`. `ready` is called once, when the page
    /// has all that it needs.
    pub fn new(sent: Receiver<Sent>, (clock, start): (Clock, Time), ready: R) -> Self {
        Self { sent, clock, start, ready: Some(ready), begins: None, heard: clock.now() }
    }

    /// The next one. Nothing is lost if the future is dropped before it is ready.
    pub async fn next(&mut self) -> Event {
        loop {
            let (clock, begins) = (self.clock, self.begins);
            tokio::select! {
                () = clock.sleep_until_due(begins) => {
                    self.begins = None;
                    return Event::Begin;
                }
                () = clock.sleep_until(self.heard + REPORT_WITHIN) => {
                    return Event::Failed(format!("it reported nothing for {REPORT_WITHIN}"));
                }
                sent = self.sent.recv() => {
                    self.heard = clock.now();
                    let Some(sent) = sent else { return Event::Failed("it is gone".to_owned()) };
                    match self.ready.take_if(|_| matches!(sent, Sent::Ready)) {
                        Some(ready) => {
                            ready();
                            self.begins = Some(self.start);
                        }
                        None => return Event::Sent(sent),
                    }
                }
            }
        }
    }
}

/// A message to the page.
///
/// # Panics
/// If it has other keys than texts, which no message of ours has.
pub fn written(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("our messages have texts as keys")
}

/// The footage of a camera, prepared if it is not yet.
///
/// # Errors
/// If ffmpeg is missing, or cannot prepare it.
pub fn footage(spec: &FootageSpec) -> Result<Footage, LiveError> {
    Footage::prepare(&Ffmpeg::locate()?, spec, &cache::folder(), &mut |_, _| {})
}

/// What a failure of the page means: an error before it `worked`. What breaks afterwards is a measurement, and is logged.
///
/// # Errors
/// That failure.
pub fn judge(failure: Option<String>, worked: bool, log: fn(&str)) -> Result<(), String> {
    match failure {
        Some(failure) if worked => log(&failure),
        Some(failure) => return Err(failure),
        None => {}
    }
    Ok(())
}
