//! VLC 3: `vlc` without a screen, heard by its messages and asked for its statistics.

mod lines;

use std::process::Stdio;

use suiro_browser::child::{self, Guarded, Lines};
use suiro_units::{Duration, Time};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use crate::record::{Request, State};
use crate::session::Session;
use crate::{Installed, PlayError};
use lines::{Head, Message, Statistic};

/// How often it is asked for its statistics, which it renews once a second.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// With no new frame for so long, playback has stalled: two renewals of the statistics.
const STILL: Duration = Duration::from_millis(2500);
/// What it buffers after demultiplexing, its default (`network-caching`): the frame shown is that
/// much older than what it has demultiplexed.
const CACHING_MS: u64 = 1000;

const ARGUMENTS: &[&str] = &[
    "--intf=oldrc",
    "--rc-fake-tty",
    "--ignore-config",
    "--no-media-library",
    "--no-lua",
    "--no-color",
    "--verbose=2",
    "--vout=vdummy",
    "--aout=adummy",
    "--avcodec-hw=none",
    "--no-spu",
    "--no-osd",
    "--play-and-exit",
];

/// Plays until the stream ends or breaks; why it broke.
pub(crate) async fn play(
    session: &mut Session<'_>,
    installed: &Installed,
) -> Result<Option<String>, PlayError> {
    let mut command = child::command(&installed.at.command);
    command.args(ARGUMENTS).arg(format!("--network-caching={CACHING_MS}"));
    command.arg(session.job.url.to_string()).env("HOME", "/nonexistent");
    command.env_remove("DISPLAY").env_remove("DBUS_SESSION_BUS_ADDRESS");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // It refuses to run as root.
    child::bind(&mut command, true);
    let mut guarded = Guarded::spawn(&mut command).map_err(PlayError::system("starting vlc"))?;
    let streams = guarded.child();
    Watch {
        input: streams.stdin.take().expect("standard input is piped"),
        answers: Lines::new(streams.stdout.take().expect("standard output is piped")),
        messages: Lines::new(streams.stderr.take().expect("standard error is piped")),
        guarded,
        head: None,
        clock: Playhead::default(),
        shown: (0, session.clock.now()),
        delay_ms: CACHING_MS,
        over: false,
        last_error: None,
    }
    .run(session)
    .await
}

/// Where the demultiplexer was when, and what its timestamps mean.
#[derive(Debug, Clone, Copy, Default)]
struct Playhead {
    /// When it said so, and in seconds of the stream's timestamps.
    demuxed: Option<(Time, f64)>,
    /// Timestamp minus media time, in seconds: by the first segment that it asked for.
    offset_s: Option<f64>,
    /// Media time of that segment.
    first_s: Option<f64>,
}

struct Watch {
    guarded: Guarded,
    input: ChildStdin,
    answers: Lines<ChildStdout>,
    messages: Lines<ChildStderr>,
    /// The head of the HTTP message that it is showing.
    head: Option<Head>,
    clock: Playhead,
    /// Frames shown so far, and when that number grew last.
    shown: (u64, Time),
    delay_ms: u64,
    over: bool,
    last_error: Option<String>,
}

impl Watch {
    async fn run(mut self, session: &mut Session<'_>) -> Result<Option<String>, PlayError> {
        let mut ask_at = session.clock.now() + ASK_EVERY;
        loop {
            let due = session.next_row().max(session.clock.now() + Duration::from_millis(1));
            tokio::select! {
                line = self.messages.next() => match line {
                    Some(line) => self.hear(session, &line)?,
                    None => return self.end(session).await,
                },
                Some(line) = self.answers.next() => self.count(session, &line),
                () = session.clock.sleep_until(due.min(ask_at)) => {}
            }
            let now = session.clock.now();
            if now >= ask_at {
                // When it has ended, its messages end too.
                let _ = self.input.write_all(b"stats\n").await;
                ask_at = now + ASK_EVERY;
            }
            self.look(session, now);
            session.tick()?;
        }
    }

    fn hear(&mut self, session: &mut Session<'_>, line: &str) -> Result<(), PlayError> {
        let Some(message) = lines::message(line) else { return Ok(()) };
        let now = session.clock.now();
        match message {
            Message::Begins(head) => self.head = Some(head),
            Message::Target(target) if self.head == Some(Head::Request) => {
                self.clock.first_s = self.clock.first_s.or_else(|| {
                    let segment = session.ladder.place(&target)?.segment?;
                    Some(segment.start_s)
                });
                session.sent(Request { sent: now, target, ..Request::default() })?;
            }
            Message::Status(status) if self.head == Some(Head::Answer) => {
                session.answered(|request| request.status = Some(status));
            }
            Message::Length(bytes) if self.head == Some(Head::Answer) => {
                session.answered(|request| request.body_bytes = bytes);
            }
            Message::HeadEnds => {
                if self.head.take() == Some(Head::Answer) {
                    session.finished()?;
                }
            }
            Message::Buffering => session.view.wait(),
            Message::Buffered => {
                self.shown.1 = now;
                session.view.turn(State::Playing);
            }
            Message::Delay(ms) => self.delay_ms = ms,
            Message::Demuxed { at_us, began_us } if began_us > 0 => {
                self.demuxed(now, at_us, began_us);
            }
            Message::Over => self.over = true,
            Message::Error(text) => self.last_error = Some(text),
            Message::Target(_)
            | Message::Status(_)
            | Message::Length(_)
            | Message::Demuxed { .. } => {}
        }
        Ok(())
    }

    fn demuxed(&mut self, now: Time, at_us: u64, began_us: u64) {
        let seconds = |us: u64| us as f64 / 1e6;
        self.clock.demuxed = Some((now, seconds(at_us)));
        let first_s = self.clock.first_s;
        self.clock.offset_s =
            self.clock.offset_s.or(first_s.map(|first| seconds(began_us) - first));
    }

    fn count(&mut self, session: &mut Session<'_>, line: &str) {
        match lines::statistic(line) {
            Some(Statistic::Displayed(count)) if count > self.shown.0 => {
                self.shown = (count, session.clock.now());
                if session.view.state == State::Stalled {
                    session.view.turn(State::Playing);
                }
            }
            Some(Statistic::Lost(count)) => session.view.dropped = Some(count),
            Some(Statistic::Displayed(_)) | None => {}
        }
    }

    /// What follows from the time that has passed.
    fn look(&self, session: &mut Session<'_>, now: Time) {
        if now.saturating_since(self.shown.1) > STILL {
            session.view.wait();
        }
        let Some(((since, demuxed_s), offset_s)) = self.clock.demuxed.zip(self.clock.offset_s)
        else {
            return;
        };
        if session.view.state != State::Playing {
            return;
        }
        // It reports about once a second: a longer silence means no progress.
        let ahead_s = now.saturating_since(since).as_secs_f64().min(1.0);
        let position_s = (demuxed_s - offset_s - self.delay_ms as f64 / 1e3 + ahead_s).max(0.0);
        session.view.position_ms = Some(position_s * 1e3);
        session.view.latency_ms = session.latency_ms(now, position_s);
        session.view.rung_bps = session.rung_at(position_s).or(session.view.rung_bps);
    }

    async fn end(mut self, session: &mut Session<'_>) -> Result<Option<String>, PlayError> {
        let status = self.guarded.wait().await.map_err(PlayError::system("waiting for vlc"))?;
        if self.over && status.success() && session.view.state != State::Starting {
            session.view.turn(State::Ended);
            return Ok(None);
        }
        let because = self.last_error.map(|text| format!(": {text}")).unwrap_or_default();
        Ok(Some(format!("vlc ended with {status}{because}")))
    }
}
