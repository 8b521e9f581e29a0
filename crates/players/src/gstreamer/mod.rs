//! GStreamer's `playbin3`, run by `gst-launch-1.0`, heard by its bus messages and by what its adaptive
//! demultiplexer says of its downloads.

mod lines;

use std::process::Stdio;

use suiro_browser::child::{self, Guarded, Lines};
use suiro_units::{Duration, Time};
use tokio::process::{ChildStderr, ChildStdout};

use crate::record::{Request, State};
use crate::session::Session;
use crate::{Installed, PlayError};
use lines::{Download, Message};

/// Decodes all, and throws the result away at the pace of the clock.
const ARGUMENTS: &[&str] = &[
    "--messages",
    "--verbose",
    "--exclude=caps",
    "playbin3",
    "audio-sink=fakesink sync=true",
    "video-sink=fpsdisplaysink text-overlay=false video-sink=fakesink",
];

/// Plays until the stream ends or breaks; why it broke.
pub(crate) async fn play(
    session: &mut Session<'_>,
    installed: &Installed,
) -> Result<Option<String>, PlayError> {
    let mut command = child::command(&installed.at.command);
    command.args(ARGUMENTS).arg(format!("uri={}", session.job.url));
    // Its own words for its downloads; the plain debug format; no search for new plugins.
    command.env("GST_DEBUG", "adaptivedemux2:6").env("GST_DEBUG_NO_COLOR", "1");
    command.env("LC_ALL", "C").env_remove("GST_DEBUG_FILE").env_remove("DISPLAY");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    child::bind(&mut command, false);
    let mut guarded =
        Guarded::spawn(&mut command).map_err(PlayError::system("starting gst-launch-1.0"))?;
    let streams = guarded.child();
    let messages = Lines::new(streams.stdout.take().expect("standard output is piped"));
    let downloads = Lines::new(streams.stderr.take().expect("standard error is piped"));
    let playhead = Playhead::default();
    Watch { guarded, messages, downloads, playhead, over: false, last_error: None }
        .run(session)
        .await
}

/// It does not report its position: it begins with the first segment that it fetched, and goes on
/// at normal speed while it plays.
#[derive(Debug, Clone, Copy, Default)]
struct Playhead {
    first_s: Option<f64>,
    /// How long it has played.
    played: Duration,
    /// Until when that was counted; `None` while it stands.
    since: Option<Time>,
}

impl Playhead {
    fn count(&mut self, now: Time) {
        if let Some(since) = self.since {
            self.played += now.saturating_since(since);
            self.since = Some(now);
        }
    }

    fn turn(&mut self, now: Time, moves: bool) {
        self.count(now);
        self.since = moves.then_some(now);
    }

    fn position_s(&self) -> Option<f64> {
        self.first_s.map(|first_s| first_s + self.played.as_secs_f64())
    }
}

struct Watch {
    guarded: Guarded,
    messages: Lines<ChildStdout>,
    downloads: Lines<ChildStderr>,
    playhead: Playhead,
    over: bool,
    last_error: Option<String>,
}

impl Watch {
    async fn run(mut self, session: &mut Session<'_>) -> Result<Option<String>, PlayError> {
        loop {
            let due = session.next_row().max(session.clock.now() + Duration::from_millis(1));
            tokio::select! {
                line = self.messages.next() => match line {
                    Some(line) => self.hear(session, &line),
                    None => return self.end(session).await,
                },
                Some(line) = self.downloads.next() => self.fetch(session, &line)?,
                () = session.clock.sleep_until(due) => {}
            }
            self.look(session);
            session.tick()?;
            if self.over {
                // At the end it prints a message, and then waits to be stopped or exits.
                return Ok(None);
            }
        }
    }

    fn hear(&mut self, session: &mut Session<'_>, line: &str) {
        match lines::message(line) {
            Some(Message::Moves(moves)) => {
                self.playhead.turn(session.clock.now(), moves);
                if moves { session.view.turn(State::Playing) } else { session.view.wait() }
            }
            Some(Message::Dropped(count)) => session.view.dropped = Some(count),
            Some(Message::Over) => {
                self.over = true;
                session.view.turn(State::Ended);
            }
            None => {}
        }
    }

    fn fetch(&mut self, session: &mut Session<'_>, line: &str) -> Result<(), PlayError> {
        let now = session.clock.now();
        match lines::download(line) {
            Some(Download::Sent(target)) => {
                self.playhead.first_s = self.playhead.first_s.or_else(|| {
                    let segment = session.ladder.place(&target)?.segment?;
                    Some(segment.start_s)
                });
                session.sent(Request { sent: now, target, ..Request::default() })?;
            }
            Some(Download::FirstByte(target)) => {
                session.answered_to(&target, |request| request.first_byte = Some(now));
            }
            Some(Download::Done(target, status)) => {
                session.answered_to(&target, |request| {
                    request.status = Some(status);
                    match status {
                        400.. => request.error = Some(format!("status {status}")),
                        _ => request.done = Some(now),
                    }
                });
                session.finished_to(&target)?;
            }
            None => {
                if let Some(error) = lines::error(line) {
                    self.last_error = Some(error.to_owned());
                }
            }
        }
        Ok(())
    }

    /// What follows from the time that has passed.
    fn look(&mut self, session: &mut Session<'_>) {
        let now = session.clock.now();
        self.playhead.count(now);
        let Some(position_s) = self.playhead.position_s() else { return };
        if session.view.state != State::Playing {
            return;
        }
        session.view.position_ms = Some(position_s * 1e3);
        session.view.latency_ms = session.latency_ms(now, position_s);
        session.view.rung_bps = session.rung_at(position_s).or(session.view.rung_bps);
    }

    async fn end(mut self, session: &Session<'_>) -> Result<Option<String>, PlayError> {
        if session.view.state == State::Ended {
            return Ok(None);
        }
        let doing = "waiting for gst-launch-1.0";
        let status = self.guarded.wait().await.map_err(PlayError::system(doing))?;
        let because = self.last_error.map(|text| format!(": {text}")).unwrap_or_default();
        Ok(Some(format!("gst-launch-1.0 ended with {status}{because}")))
    }
}
