//! dash.js, hls.js and Shaka Player in Chromium without a window. A page of ours, served to the browser in its own
//! host, loads the library and the manifest, and reports what it sees several times a second.

mod message;
mod report;

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration as StdDuration;

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use suiro_browser::server::{self, JSON, SCRIPT, content, empty};
use suiro_browser::{Browser, written};
use suiro_quic::tls::key_sha256;
use suiro_scenario::{HttpVersion, Program};
use suiro_units::Ratio;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::installed::LIBRARY_BYTES_MAX;
use crate::record::State;
use crate::session::Session;
use crate::{Installed, PlayError, Served, Settings};
use message::{CmcdJob, Job, Library};
use report::{PageClock, REPORT_BYTES_MAX};

const PAGE: &str = include_str!("../../assets/page.html");
const PAGE_SCRIPT: &str = include_str!("../../assets/page.js");

/// The browser starts, loads the page and reports within this time, or something is wrong.
const FIRST_REPORT_WITHIN: StdDuration = StdDuration::from_secs(30);
/// Reports come five times a second; after this long without one the page is dead.
const REPORT_WITHIN: StdDuration = StdDuration::from_secs(20);
/// Reports that wait to be read.
const REPORTS_MAX: usize = 16;

/// Plays until the stream ends or breaks; why it broke.
pub(crate) async fn play(
    session: &mut Session<'_>,
    installed: &Installed,
) -> Result<Option<String>, PlayError> {
    let library = installed.at.library.as_ref().expect("a library belongs to a browser player");
    let (sender, reports) = channel(REPORTS_MAX);
    let (listener, port) = server::listen().await?;
    let site = Rc::new(Site {
        library: suiro_outside::file::read(library, LIBRARY_BYTES_MAX)
            .map_err(PlayError::system(format!("reading {}", library.display())))?,
        job: written(&job(session)),
        reports: sender,
    });
    let url = format!("http://127.0.0.1:{port}/");
    let at = (session.job.dir.as_path(), session.job.name.as_str());
    let trust = trust(session)?;
    let trust: Vec<&str> = trust.iter().map(String::as_str).collect();
    let mut browser = Browser::start(&installed.at.command, at, &url, &trust)?;
    tokio::select! {
        never = server::serve(listener, move |request| answer(site.clone(), request)) => match never {},
        ended = browser.ended() => Ok(Some(ended)),
        failure = hear(session, reports) => failure,
    }
}

/// Arguments by which Chromium trusts the server's certificate, and asks over QUIC if that is what the server speaks: it would
/// try TCP otherwise.
fn trust(session: &Session<'_>) -> Result<Vec<String>, PlayError> {
    let (Served { http, certificate }, url) = (&session.job.served, &session.job.url);
    if !http.is_secure() {
        return Ok(Vec::new());
    }
    let key = BASE64_STANDARD.encode(key_sha256(certificate)?);
    let mut arguments = vec![format!("--ignore-certificate-errors-spki-list={key}")];
    if *http == HttpVersion::Http3 {
        arguments.push(format!("--origin-to-force-quic-on={}:{}", url.host(), url.port()));
    }
    Ok(arguments)
}

/// What the page is to play.
fn job(session: &Session<'_>) -> Job {
    let Settings { rules, estimate, catch_up, speed_change, max_drift, cmcd } =
        session.job.settings.clone();
    let program = session.job.program;
    Job {
        player: match program {
            Program::Shaka => Library::Shaka,
            _ if program.is_dashjs() => Library::Dashjs,
            _ => Library::Hlsjs,
        },
        manifest: session.job.url.to_string(),
        buffer_s: session.job.buffer.as_secs_f64(),
        target_latency_s: session.job.target_latency.map(|latency| latency.as_secs_f64()),
        rules,
        estimate,
        catch_up,
        speed_change: speed_change.map(Ratio::get),
        max_drift_s: max_drift.map(|drift| drift.as_secs_f64()),
        cmcd: cmcd.map(|cmcd| CmcdJob {
            version: if cmcd.is_version_2() { 2 } else { 1 },
            headers: cmcd.is_in_headers(),
        }),
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

/// What is served to the browser.
#[derive(Debug)]
struct Site {
    /// The player's library.
    library: Vec<u8>,
    /// What the page is to play, as JSON.
    job: String,
    /// Where bodies of reports go.
    reports: Sender<Bytes>,
}

async fn answer(
    site: Rc<Site>,
    request: Request<Incoming>,
) -> Result<Response<server::Body>, Infallible> {
    Ok(match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => content(server::HTML, PAGE),
        (&Method::GET, "/page.js") => content(SCRIPT, PAGE_SCRIPT),
        (&Method::GET, "/library.js") => content(SCRIPT, site.library.clone()),
        (&Method::GET, "/job.json") => content(JSON, site.job.clone()),
        (&Method::POST, "/report") => match server::read(request, REPORT_BYTES_MAX).await {
            Some(body) => {
                // Sending fails only when everything has ended.
                let _ = site.reports.send(body).await;
                empty(StatusCode::NO_CONTENT)
            }
            None => empty(StatusCode::PAYLOAD_TOO_LARGE),
        },
        _ => empty(StatusCode::NOT_FOUND),
    })
}

/// Whether a page's report is taken.
pub(crate) fn check_report(body: &[u8]) -> Result<(), String> {
    report::parse(body).map(drop)
}
