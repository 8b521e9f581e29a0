//! What other programs recorded, as causes: captures of packets, WebRTC statistics of browsers, logs of QUIC connections
//! (qlog), logs of ffmpeg.
//!
//! Each source is read into streams and what happened to them ([`Happened`]), with a cause where the source itself shows it.
//! Sources whose clocks count from 1970 are put on one axis, and joined: a browser's freeze inherits the cause of the gap
//! that a capture shows in the same RTP stream. With two captures of the same packets, the path between them is known,
//! packet by packet.
//!
//! There is no cause by default: what the sources do not show is unknown, with the record that would show it.

mod browser;
mod datagrams;
mod effects;
mod ffmpeg;
mod hole;
mod media;
mod model;
mod numbers;
mod packets;
mod pair;
mod path;
mod qlog;
mod statistics;
mod tcp;
mod text;
mod times;

use serde_json::Value;
use suiro_analysis::why::wording;
use suiro_capture::file::FileError;
use suiro_record::words::Cause;

use packets::Capture;

pub use model::{Account, Effect, Evidence, Happened, SourceLine, Stream};
pub use text::text;

/// The most effects that are reported.
pub const EFFECTS_MAX: usize = 1000;
/// A browser's effect is joined with what packets show up to this time before it.
const JOINED_NS: i64 = 2_000_000_000;
/// A source whose time zero is later counts from 1970: nothing of this field is older than 1990.
const EPOCH_NS: i64 = 631_152_000_000_000_000;

/// A file that another program made.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Its name, for the sentences.
    pub name: &'a str,
    /// Its content.
    pub content: &'a [u8],
}

/// Why a source cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// It is none of the kinds that are known.
    #[error(
        "{0}: expected a capture (pcap or pcapng), a dump of chrome://webrtc-internals, reports of getStats() as JSON, a qlog, or a log of ffmpeg{1}"
    )]
    Unknown(String, &'static str),
    /// It is of a kind that is known, and malformed.
    #[error("{0}: {1}")]
    Broken(String, String),
}

impl SourceError {
    pub(crate) fn broken(name: &str, what: String) -> Self {
        Self::Broken(name.to_owned(), what)
    }
}

/// A source, read.
enum Read {
    Capture(Capture),
    Statistics(&'static str, statistics::Statistics),
    Qlog(Vec<qlog::Connection>),
    Ffmpeg(String),
}

/// Explains what the sources show, together.
///
/// # Errors
/// If a source is of no known kind, or malformed.
pub fn explain(sources: &[Source<'_>]) -> Result<Account, SourceError> {
    let read: Vec<Read> = sources.iter().map(read).collect::<Result<_, _>>()?;
    let captures: Vec<&Capture> = read
        .iter()
        .filter_map(|read| if let Read::Capture(capture) = read { Some(capture) } else { None })
        .collect();
    let (mut crossings, mut streams) = (Vec::new(), Vec::new());
    for (at, a) in captures.iter().enumerate() {
        for b in &captures[at + 1..] {
            let (found, unknown) = pair::crossings(a, b);
            crossings.extend(found);
            streams.extend(unknown);
        }
    }
    let directions = path::directions(&crossings);
    let connections: Vec<tcp::Connections> =
        captures.iter().map(|capture| tcp::connections(capture)).collect();
    let pauses: Vec<(&str, &[tcp::Pause])> = captures
        .iter()
        .zip(&connections)
        .map(|(capture, of)| (&*capture.name, &*of.pauses))
        .collect();
    streams.extend(crossings.iter().map(datagrams::stream));
    let mut of_captures = captures.iter().zip(&connections);
    let mut account =
        Account { began_s: None, sources: Vec::new(), streams, effects: Vec::new(), left_out: 0 };
    for (source, read) in sources.iter().zip(&read) {
        let (kind, note) = note(read);
        account.sources.push(SourceLine { name: source.name.to_owned(), kind, note });
        let (streams, effects) = match read {
            Read::Capture(capture) => {
                let Some((_, of)) = of_captures.next() else { continue };
                told((capture, of), &crossings, &directions, &pauses)
            }
            Read::Statistics(_, statistics) => browser::told(statistics),
            Read::Qlog(connections) => (
                connections.iter().map(qlog::Connection::stream).collect(),
                connections.iter().flat_map(qlog::Connection::effects).collect(),
            ),
            Read::Ffmpeg(text) => ffmpeg::told(source.name, text),
        };
        account.streams.extend(streams);
        account.effects.extend(effects);
    }
    join(&mut account.effects);
    put_on_one_axis(&mut account, read.iter().filter_map(began).min());
    Ok(account)
}

fn told(
    (capture, connections): (&Capture, &tcp::Connections),
    crossings: &[pair::Crossing<'_>],
    directions: &[path::Direction<'_>],
    pauses: &[(&str, &[tcp::Pause])],
) -> (Vec<Stream>, Vec<Happened>) {
    let mut streams = connections.streams.clone();
    let mut effects = connections.failed.clone();
    // What two captures have, they explain together.
    let both: Vec<packets::Way> = crossings
        .iter()
        .filter(|it| [it.near, it.far].iter().any(|of| std::ptr::eq(*of, capture)))
        .map(|it| it.way)
        .collect();
    let alone = connections.pauses.iter().filter(|pause| !pause.is_among(&both));
    effects.extend(alone.map(|pause| pause.effect(&capture.name)));
    let again = connections.again.iter();
    let again = again.filter(|(way, _)| !both.contains(way) && !both.contains(&way.back()));
    effects.extend(again.map(|(_, effect)| effect.clone()));
    for media in media::streams(capture, crossings) {
        streams.extend(media.stream());
        effects.extend(media.effects(directions, pauses));
    }
    effects.extend(datagrams::unanswered(capture));
    (streams, effects)
}

fn read(source: &Source<'_>) -> Result<Read, SourceError> {
    let Source { name, content } = *source;
    match content {
        [0x1f, 0x8b, ..] => {
            return Err(SourceError::Unknown(
                name.to_owned(),
                "\nhint: decompress it first: gunzip",
            ));
        }
        [0x0a, 0x0d, 0x0d, 0x0a, ..]
        | [0xd4 | 0x4d, 0xc3 | 0x3c, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0xc3 | 0x3c, 0xd4 | 0x4d, ..] => {
            let broken = |error: FileError| SourceError::broken(name, error.to_string());
            return Ok(Read::Capture(Capture::read(name, content).map_err(broken)?));
        }
        _ => {}
    }
    let text = String::from_utf8_lossy(content);
    let text = text.trim_start_matches(['\u{feff}', '\u{1e}', ' ', '\n', '\r', '\t']);
    if text.starts_with(['{', '[']) && !ffmpeg::is_log(text) {
        return document(name, text);
    }
    match ffmpeg::is_log(text) {
        true => Ok(Read::Ffmpeg(text.to_owned())),
        false => Err(SourceError::Unknown(name.to_owned(), "")),
    }
}

/// JSON: one document, or a sequence of records.
fn document(name: &str, text: &str) -> Result<Read, SourceError> {
    let documents: Vec<Value> = match serde_json::from_str(text) {
        Ok(whole) => vec![whole],
        Err(error) => {
            let records = text.split(['\n', '\u{1e}']).map(str::trim).filter(|it| !it.is_empty());
            let documents: Vec<Value> =
                records.map_while(|it| serde_json::from_str(it).ok()).collect();
            // The last record is cut off if its program was killed; the first says what the file is.
            if documents.len() < 2 {
                return Err(SourceError::broken(name, format!("not JSON: {error}")));
            }
            documents
        }
    };
    match &documents[0] {
        first if first["PeerConnections"].is_object() => {
            Ok(Read::Statistics("dump of webrtc-internals", statistics::internals(name, first)?))
        }
        first if qlog::is_qlog(first) => Ok(Read::Qlog(qlog::read(name, &documents)?)),
        first if statistics::is_report(first) => {
            let reports = statistics::reports(name, documents.iter())?;
            Ok(Read::Statistics("reports of getStats()", reports))
        }
        _ => Err(SourceError::Unknown(name.to_owned(), "; this JSON is none of them")),
    }
}

/// What a source is, and what was read from it.
fn note(read: &Read) -> (&'static str, String) {
    match read {
        Read::Capture(capture) => {
            let mut note =
                format!("{} of UDP and TCP", wording::count(capture.packets.len(), "packet"));
            for (number, what) in [
                (capture.others, "others"),
                (capture.left_out, "left out"),
                (capture.lost, "lost by the capturing tool"),
            ] {
                if number > 0 {
                    note += &format!(", {number} {what}");
                }
            }
            if capture.cut {
                note += ", cut off at the end";
            }
            ("capture", note)
        }
        Read::Statistics(kind, statistics) => {
            let mut note = wording::count(statistics.objects.len(), "object");
            if statistics.others > 0 {
                note += &format!(
                    ", {} that are no statistics",
                    wording::count(statistics.others, "value")
                );
            }
            (kind, note)
        }
        Read::Qlog(connections) => {
            let others = connections.iter().map(|it| it.others).sum();
            let note = format!(
                "{}, {} not used",
                wording::count(connections.len(), "connection"),
                wording::count(others, "event")
            );
            ("qlog", note)
        }
        Read::Ffmpeg(text) => ("log of ffmpeg", wording::count(text.lines().count(), "line")),
    }
}

/// An effect in a browser has the same cause as one in packets of the same stream at that time; they are reported as
/// one.
fn join(effects: &mut Vec<Happened>) {
    let is_packets = |it: &Happened| matches!(it.effect, Effect::Gap | Effect::Late | Effect::Loss);
    let (packets, mut others): (Vec<Happened>, Vec<Happened>) =
        effects.drain(..).partition(is_packets);
    let mut used = vec![false; packets.len()];
    for effect in others.iter_mut().filter(|it| it.ssrc.is_some()) {
        let near = |it: &Happened| {
            it.ssrc == effect.ssrc
                && it.from_ns <= effect.to_ns
                && it.to_ns >= effect.from_ns - JOINED_NS
        };
        let length = |it: &Happened| it.to_ns - it.from_ns;
        let found = packets.iter().enumerate().filter(|(_, it)| near(it));
        let known = |it: &Happened| it.cause != Cause::Unknown;
        let Some((at, found)) = found.max_by_key(|(_, it)| (known(it), length(it))) else {
            continue;
        };
        used[at] = true;
        if found.cause == Cause::Unknown && effect.cause != Cause::Unknown {
            continue;
        }
        effect.because = format!("{}, because {}", found.what, found.because);
        effect.cause = found.cause;
        effect.evidence.extend(found.evidence.iter().cloned());
    }
    let left = packets.into_iter().zip(used).filter(|(_, used)| !used).map(|(it, _)| it);
    *effects = others.into_iter().chain(left).collect();
}

/// When a source began, if its clock counts from 1970.
fn began(read: &Read) -> Option<i64> {
    let first = match read {
        Read::Capture(capture) => capture.packets.first()?.t_ns,
        Read::Statistics(_, statistics) => statistics.began()?,
        Read::Qlog(connections) => {
            let began = connections.iter().filter_map(qlog::Connection::began);
            began.filter(|began| *began >= EPOCH_NS).min()?
        }
        Read::Ffmpeg(_) => return None,
    };
    (first >= EPOCH_NS).then_some(first)
}

/// Time zero is when the first source began; sources that do not count from 1970 count from their own start.
fn put_on_one_axis(account: &mut Account, zero: Option<i64>) {
    let zero = zero.unwrap_or(0);
    account.began_s = (zero > 0).then_some(zero as f64 / 1e9);
    for effect in account.effects.iter_mut().filter(|it| it.from_ns >= EPOCH_NS) {
        effect.from_ns -= zero;
        effect.to_ns -= zero;
    }
    account.effects.sort_by(|a, b| (a.from_ns, &a.subject).cmp(&(b.from_ns, &b.subject)));
    account.left_out = account.effects.len().saturating_sub(EFFECTS_MAX);
    account.effects.truncate(EFFECTS_MAX);
}
