//! A page, its job and footage, served to the browser of the same host; and what the page sends.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration as StdDuration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use suiro_clock::Clock;
use suiro_media::live::{Footage, Picture};
use suiro_units::Time;
use tokio::sync::mpsc::{Receiver, Sender};

use crate::report::REPORT_BYTES_MAX;
use crate::server::{self, Body, HTML, JSON, SCRIPT, content, empty};

/// Frames of footage in one response.
const PER_PART: u64 = 8;
/// A page that asks for a command waits this long, then asks again.
const ASK_AGAIN: StdDuration = StdDuration::from_secs(5);
/// Longest session description, or reason for none.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The worker of a page that publishes, as it is asked for: it has the camera.
pub const CAMERA: (&str, &str) = ("/worker.js", include_str!("../assets/camera.js"));

/// A page, and its workers, which have the camera or the decoder.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// The page.
    pub html: &'static str,
    /// Its script.
    pub script: &'static str,
    /// The path of each worker, and the worker's script.
    pub workers: &'static [(&'static str, &'static str)],
}

/// What the page sends.
#[derive(Debug)]
pub enum Sent {
    /// It has all that it needs.
    Ready,
    /// What it measured.
    Report(Bytes),
    /// A batch of frames.
    Frames(Bytes),
    /// The answer to the offer of a session, or why there is none.
    Answer(u64, Result<String, String>),
}

/// What is served.
pub struct Site {
    pub page: Page,
    pub clock: Clock,
    /// What the page is to do, as JSON.
    pub job: String,
    /// What a publisher shows.
    pub footage: Option<Footage>,
    /// Commands to the page, as JSON; taken while one request waits for the next.
    pub commands: RefCell<Option<Receiver<String>>>,
    /// Where goes what the page sends.
    pub sent: Sender<Sent>,
}

impl Site {
    /// Answers a request of the browser.
    pub async fn answer(
        self: Rc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let path = request.uri().path().to_owned();
        Ok(match (request.method(), path.as_str()) {
            (&Method::GET, "/") => content(HTML, self.page.html),
            (&Method::GET, "/page.js") => content(SCRIPT, self.page.script),
            (&Method::GET, "/job.json") => content(JSON, self.job.clone()),
            (&Method::GET, "/time") => content("text/plain", self.time()),
            (&Method::GET, "/next") => self.next().await,
            (&Method::GET, path) => match self.page.workers.iter().find(|it| it.0 == path) {
                Some((_, script)) => content(SCRIPT, *script),
                None => self.footage(path),
            },
            (&Method::POST, path) => match self.taken(path, request).await {
                Some(sent) => {
                    // Sending fails only when everything has ended.
                    let _ = self.sent.send(sent).await;
                    empty(StatusCode::NO_CONTENT)
                }
                None => empty(StatusCode::BAD_REQUEST),
            },
            _ => empty(StatusCode::NOT_FOUND),
        })
    }

    /// Milliseconds since the trial's epoch.
    fn time(&self) -> String {
        format!("{}", self.clock.now().as_nanos() as f64 / 1e6)
    }

    async fn next(&self) -> Response<Body> {
        let Some(mut commands) = self.commands.take() else {
            return empty(StatusCode::CONFLICT);
        };
        let next = tokio::time::timeout(ASK_AGAIN, commands.recv()).await;
        self.commands.replace(Some(commands));
        match next {
            Ok(Some(command)) => content(JSON, command),
            _ => empty(StatusCode::NO_CONTENT),
        }
    }

    fn footage(&self, path: &str) -> Response<Body> {
        let part = path.strip_prefix("/footage/").and_then(|part| part.parse().ok());
        let (Some(footage), Some(part)) = (&self.footage, part) else {
            return empty(StatusCode::NOT_FOUND);
        };
        match read(footage, part) {
            Some(bytes) => content("application/octet-stream", bytes),
            None => empty(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    async fn taken(&self, path: &str, request: Request<Incoming>) -> Option<Sent> {
        let number = |name: &str| path.strip_prefix(name)?.parse().ok();
        let text = async |request| {
            let body = server::read(request, ANSWER_BYTES_MAX).await?;
            String::from_utf8(body.to_vec()).ok()
        };
        if let Some(session) = number("/answer/") {
            return Some(Sent::Answer(session, Ok(text(request).await?)));
        }
        if let Some(session) = number("/refusal/") {
            return Some(Sent::Answer(session, Err(text(request).await?)));
        }
        match path {
            "/ready" => Some(Sent::Ready),
            "/report" => Some(Sent::Report(server::read(request, REPORT_BYTES_MAX).await?)),
            "/frames" => Some(Sent::Frames(server::read(request, REPORT_BYTES_MAX).await?)),
            _ => None,
        }
    }
}

/// Frames in 8 bit 4:2:0 that repeat: `/footage/N` has those from N times `per_part` on.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Footage")]
pub struct FootageMessage {
    width: u32,
    height: u32,
    fps: u32,
    frames: u64,
    per_part: u64,
}

impl From<&Footage> for FootageMessage {
    fn from(footage: &Footage) -> Self {
        let (width, height) = footage.size();
        let (fps, frames) = (footage.fps(), footage.frames());
        Self { width, height, fps, frames, per_part: PER_PART }
    }
}

/// A time in which the camera captures nothing, in milliseconds since the trial's epoch.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Pause")]
pub struct PauseMessage {
    from_ms: f64,
    to_ms: f64,
}

impl From<&(Time, Time)> for PauseMessage {
    fn from((from, to): &(Time, Time)) -> Self {
        let ms = |time: &Time| time.as_nanos() as f64 / 1e6;
        Self { from_ms: ms(from), to_ms: ms(to) }
    }
}

/// The frames of one part; of the last, those that there are.
fn read(footage: &Footage, part: u64) -> Option<Vec<u8>> {
    let first = part.checked_mul(PER_PART)?;
    let (width, height) = footage.size();
    let mut picture = Picture::new(width, height).ok()?;
    let mut bytes = Vec::with_capacity(picture.data().len() * PER_PART as usize);
    for number in first..footage.frames().min(first + PER_PART) {
        footage.read(number, &mut picture).ok()?;
        bytes.extend_from_slice(picture.data());
    }
    (!bytes.is_empty()).then_some(bytes)
}
