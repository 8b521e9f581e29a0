//! Logs of ffmpeg and ffplay: their progress, and the messages that name a fault.

use chrono::NaiveDateTime;
use suiro_record::words::Cause;

use crate::model::{Effect, Evidence, Happened, Stream};
use crate::times::bounded;
use suiro_analysis::why::wording::{count, span};

/// Slower than this is not real time.
const REAL_TIME: f64 = 0.95;
/// The first lines of progress are of the start.
const SETTLED: usize = 3;
/// The most messages that are reported.
const TOLD_MAX: usize = 100;

/// A message and what it means.
struct Known {
    text: &'static str,
    effect: Effect,
    cause: Cause,
    meaning: &'static str,
}

/// From ffmpeg's sources: libavformat (rtpdec.c, hls.c, udp.c, tcp.c, http.c), libavcodec and fftools.
const MESSAGES: &[Known] = &[
    known("RTP: missed", Effect::Loss, Cause::Loss, "RTP packets were missing"),
    known(
        "max delay reached",
        Effect::Loss,
        Cause::Loss,
        "it gave up waiting for a missing RTP packet",
    ),
    known(
        "Circular buffer overrun",
        Effect::Loss,
        Cause::ClientProcessor,
        "it read too slowly, and its own buffer overflowed",
    ),
    known(
        "Thread message queue blocking",
        Effect::Slow,
        Cause::ClientProcessor,
        "a later stage was slower than its input",
    ),
    known(
        "expired from playlists",
        Effect::Gap,
        Cause::Unknown,
        "it fell out of the window of a live playlist",
    ),
    known(
        "Connection refused",
        Effect::NoConnection,
        Cause::Application,
        "no program listened there",
    ),
    known(
        "Connection timed out",
        Effect::NoConnection,
        Cause::Unknown,
        "the peer did not answer; a capture would show whether it was asked",
    ),
    known("No route to host", Effect::NoConnection, Cause::Unknown, "there was no route"),
    known("HTTP error", Effect::Fault, Cause::Application, "the server refused the request"),
    known(
        "error while decoding",
        Effect::Fault,
        Cause::Unknown,
        "damaged or missing data; a capture would show whether packets were lost",
    ),
    known(
        "concealing",
        Effect::Fault,
        Cause::Unknown,
        "damaged or missing data; a capture would show whether packets were lost",
    ),
    known(
        "corrupt decoded frame",
        Effect::Fault,
        Cause::Unknown,
        "damaged or missing data; a capture would show whether packets were lost",
    ),
    known(
        "Non-monotonic DTS",
        Effect::Fault,
        Cause::Application,
        "its input has timestamps that go back",
    ),
];

const fn known(text: &'static str, effect: Effect, cause: Cause, meaning: &'static str) -> Known {
    Known { text, effect, cause, meaning }
}

/// Whether a text is such a log.
pub(crate) fn is_log(text: &str) -> bool {
    text.contains("ffmpeg version")
        || text.contains("ffplay version")
        || text.split(['\n', '\r']).any(|line| progress(line).is_some())
}

/// A line of progress.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Progress {
    media_ns: i64,
    speed: Option<f64>,
    dropped: u64,
}

/// Streams and effects of a log. Its times are of the media; if lines have a date (`-loglevel +datetime`), they count from
/// the first. Dates are local and have no zone, so that they cannot be compared with other sources.
pub(crate) fn told(name: &str, text: &str) -> (Vec<Stream>, Vec<Happened>) {
    let (mut at, mut began) = (0i64, None);
    let (mut reports, mut effects) = (Vec::new(), Vec::<Happened>::new());
    for (number, line) in text.split(['\n', '\r']).enumerate() {
        let dated = date(line).map(|date| date - *began.get_or_insert(date));
        at = dated.unwrap_or(at);
        if let Some(found) = progress(line) {
            at = dated.unwrap_or(found.media_ns);
            reports.push((at, number + 1, found));
            continue;
        }
        let Some(known) = MESSAGES.iter().find(|known| line.contains(known.text)) else { continue };
        let place = |first: usize| format!("line {first}");
        // The same again continues it.
        let is_again =
            |it: &&mut Happened| it.because == known.meaning && at - it.to_ns < 2_000_000_000;
        if let Some(last) = effects.last_mut().filter(|it| is_again(it)) {
            last.to_ns = at;
            continue;
        }
        if effects.len() < TOLD_MAX {
            effects.push(Happened {
                subject: name.to_owned(),
                effect: known.effect,
                from_ns: at,
                to_ns: at,
                cause: known.cause,
                what: format!("\"{}\"", line.trim().chars().take(120).collect::<String>()),
                because: known.meaning.to_owned(),
                evidence: vec![Evidence::new(name, place(number + 1))],
                ssrc: None,
            });
        }
    }
    effects.extend(slow(name, &reports));
    let last = reports.last().map(|it| it.2);
    let text = last.map(|last| {
        let speed =
            last.speed.map_or_else(String::new, |speed| format!(", {speed:.2} × real time"));
        format!(
            "{} of media{speed}, {} dropped",
            span(last.media_ns),
            count(last.dropped as usize, "frame")
        )
    });
    let stream = |text| Stream { name: name.to_owned(), source: name.to_owned(), text };
    (text.map(stream).into_iter().collect(), effects)
}

/// Times in which it was slower than real time.
fn slow(name: &str, reports: &[(i64, usize, Progress)]) -> Option<Happened> {
    let slow: Vec<&(i64, usize, Progress)> = reports
        .iter()
        .skip(SETTLED)
        .filter(|it| it.2.speed.is_some_and(|speed| speed < REAL_TIME))
        .collect();
    let (first, last) = (slow.first()?, slow.last()?);
    // Once is noise.
    if slow.len() * 2 < reports.len().saturating_sub(SETTLED) {
        return None;
    }
    let speed = last.2.speed.unwrap_or(0.0);
    Some(Happened {
        subject: name.to_owned(),
        effect: Effect::Slow,
        from_ns: first.0,
        to_ns: last.0,
        cause: Cause::Unknown,
        what: format!("{speed:.2} × real time at the end"),
        because: "a filter, a codec, or its input was too slow; `-benchmark` would show which"
            .into(),
        evidence: vec![Evidence::new(name, format!("lines {} to {}", first.1, last.1))],
        ssrc: None,
    })
}

fn progress(line: &str) -> Option<Progress> {
    let value = |key: &str| {
        let rest = line.split(key).nth(1)?.trim_start();
        rest.split_whitespace().next()
    };
    let is_progress = line.contains("frame=") || line.contains("size=");
    let time = value(" time=").filter(|_| is_progress)?;
    let mut parts = time.split(':');
    let mut number = || parts.next()?.parse::<f64>().ok();
    let (hours, minutes, seconds) = (number()?, number()?, number()?);
    let all = hours * 3600.0 + minutes * 60.0 + seconds;
    let speed = value("speed=").and_then(|text| text.trim_end_matches('x').parse().ok());
    let dropped = value("drop=").and_then(|text| text.parse().ok()).unwrap_or(0);
    (0.0..1e9).contains(&all).then_some(Progress { media_ns: (all * 1e9) as i64, speed, dropped })
}

/// `2026-11-26 01:02:03.456 ` at the beginning (libavutil, log.c), as if it were UTC.
fn date(line: &str) -> Option<i64> {
    let (text, _) = line.split_at_checked(23).filter(|(_, rest)| rest.starts_with(' '))?;
    let date = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").ok()?;
    date.and_utc().timestamp_nanos_opt().map(bounded)
}
