//! What a client reports to a server about its playback with each request: Common Media Client Data (CTA-5004, and
//! CTA-5004-A and -B for version 2); pure.
//!
//! Version 2 has other keys and another syntax of some values (`br=(2010;v)` instead of `br=2010`); both are read.

pub mod events;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use suiro_record::tables::AccessRow;
use suiro_scenario::Cmcd as Mode;

use crate::fields::{self, Member};
use crate::url::Url;

/// The argument of a query that has it, and its four headers.
const ARGUMENT: &str = "CMCD";
const HEADERS: [&str; 4] = ["cmcd-object", "cmcd-request", "cmcd-status", "cmcd-session"];
/// The highest version that is understood.
const VERSION_MAX: i64 = 2;
/// The longest text that is kept of a value, in bytes: as long as the standard lets a session be.
const KEPT_MAX: usize = 64;
/// The longest name of content, in bytes: that of version 2. Version 1 has 64.
const CONTENT_MAX: usize = 128;
/// The longest address that is kept, in bytes.
const ADDRESS_MAX: usize = 256;

/// What a request says. Bit rates are in bit/s, times in milliseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cmcd {
    /// `v`: the version; 1 if it is not said.
    pub version: i64,
    /// `sid`: the session.
    pub session: Option<String>,
    /// `cid`: the content.
    pub content: Option<String>,
    /// `sn`, version 2: counts what the client reports.
    pub sequence: Option<i64>,
    /// `ot`: what is asked for: `v` video, `a` sound, `av` both, `i` an initialisation segment, `m` a manifest, `o` other.
    pub object: Option<String>,
    /// `sf`: `d` for DASH, `h` for HLS.
    pub format: Option<String>,
    /// `st`: `v` on demand, `l` live; in version 2 also `ll`, live at low latency.
    pub stream: Option<String>,
    /// `sta`, version 2: what the player does, `p` for playing.
    pub state: Option<String>,
    /// `br`: bit rate of the object.
    pub bitrate_bps: Option<i64>,
    /// `tb`: the highest rung.
    pub top_bps: Option<i64>,
    /// `d`: how long the object plays.
    pub duration_ms: Option<i64>,
    /// `bl`: media that is buffered.
    pub buffer_ms: Option<i64>,
    /// `dl`: when the buffer will be empty.
    pub deadline_ms: Option<i64>,
    /// `mtp`: throughput as the client measured it.
    pub measured_bps: Option<i64>,
    /// `rtp`: more than this is of no use to the client.
    pub maximum_bps: Option<i64>,
    /// `su`: it is needed at once, to start or after a seek or a stall.
    pub startup: Option<bool>,
    /// `bs`: the buffer ran empty since the last request.
    pub starved: Option<bool>,
    /// `pr`: the speed; 0 while nothing is played.
    pub speed: Option<f64>,
    /// `ltc`, version 2: latency of a live stream.
    pub latency_ms: Option<i64>,
    /// `nor`: what will be asked for next, relative to this.
    pub next: Option<String>,
    /// `nrr`: the range of bytes of it.
    pub next_range: Option<String>,
}

/// What a request says, and what of it could not be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Read {
    /// What was understood.
    pub said: Cmcd,
    /// The first thing that was not.
    pub problem: Option<String>,
}

/// Reads what a request says, in its headers, or else in its query; `None` if it says nothing.
pub fn read(query: Option<&str>, headers: &HeaderMap) -> Option<Read> {
    let mut read = Read { said: Cmcd { version: 1, ..Cmcd::default() }, problem: None };
    let mut in_headers = false;
    for name in HEADERS {
        let Some(value) = headers.get(name) else { continue };
        in_headers = true;
        match value.to_str() {
            Ok(text) => read.take(name, text),
            Err(_) => read.problem(format!("{name}: not ASCII")),
        }
    }
    // CTA-5004-B §6: one of the two, and headers come first.
    if !in_headers {
        let mut pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(name, _)| *name == ARGUMENT)?;
        match decoded(value) {
            Some(text) => read.take(ARGUMENT, &text),
            None => read.problem("CMCD: not an escaped text of at most 8192 bytes".into()),
        }
    }
    read.forget_later_version();
    Some(read)
}

/// What a request says about its player.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// In its query.
    Argument(String),
    /// In its headers.
    Headers(Vec<(HeaderName, HeaderValue)>),
}

impl Told {
    /// What is said, where this mode says it.
    pub fn new(mode: Mode, said: &Cmcd) -> Self {
        match mode {
            Mode::Query | Mode::QueryV2 => Self::Argument(said.argument()),
            Mode::Headers | Mode::HeadersV2 => Self::Headers(said.headers()),
        }
    }

    /// The address to ask for, with what is said in it. Without, if it would be too long.
    pub fn address(&self, url: &Url) -> Option<Url> {
        let Self::Argument(argument) = self else { return None };
        let target = url.target();
        let joint = if target.contains('?') { '&' } else { '?' };
        url.join(&format!("{target}{joint}{argument}")).ok()
    }

    /// The headers to ask with.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        match self {
            Self::Argument(_) => &[],
            Self::Headers(headers) => headers,
        }
    }
}

/// A path and query without the argument of CMCD, which differs from request to request.
pub fn without(path_and_query: &str) -> String {
    let Some((path, query)) = path_and_query.split_once('?') else {
        return path_and_query.to_owned();
    };
    let is_other = |pair: &&str| pair.split_once('=').is_none_or(|(name, _)| name != ARGUMENT);
    let rest: Vec<&str> = query.split('&').filter(is_other).collect();
    if rest.is_empty() { path.to_owned() } else { format!("{path}?{}", rest.join("&")) }
}

impl Read {
    fn problem(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    /// CTA-5004-B §6: keys of a version that is not known may mean something else.
    fn forget_later_version(&mut self) {
        let version = self.said.version;
        if version > VERSION_MAX {
            self.said = Cmcd { version, ..Cmcd::default() };
            self.problem = Some(format!("version {version} is not understood"));
        }
    }

    fn take(&mut self, place: &str, text: &str) {
        match fields::dictionary(text) {
            Ok(members) => members.iter().for_each(|member| self.member(member)),
            Err(problem) => self.problem(format!("{place}: {problem}")),
        }
    }

    fn member(&mut self, member: &Member) {
        let Member { key, value, .. } = member;
        let said = &mut self.said;
        let count = || value.integer().filter(|number| *number >= 0);
        let rate = || count().map(|kbps| kbps.saturating_mul(1000));
        let text = |most: usize| {
            let text = value.text().filter(|text| text.len() <= most);
            text.map(str::to_owned)
        };
        let understood = match key.as_str() {
            "v" => set(&mut Some(&mut said.version), count()),
            "sid" => keep(&mut said.session, text(KEPT_MAX)),
            "cid" => keep(&mut said.content, text(CONTENT_MAX)),
            "sn" => keep(&mut said.sequence, count()),
            "ot" => keep(&mut said.object, text(KEPT_MAX)),
            "sf" => keep(&mut said.format, text(KEPT_MAX)),
            "st" => keep(&mut said.stream, text(KEPT_MAX)),
            "sta" => keep(&mut said.state, text(KEPT_MAX)),
            "br" => keep(&mut said.bitrate_bps, rate()),
            "tb" => keep(&mut said.top_bps, rate()),
            "d" => keep(&mut said.duration_ms, count()),
            "bl" => keep(&mut said.buffer_ms, count()),
            "dl" => keep(&mut said.deadline_ms, count()),
            "mtp" => keep(&mut said.measured_bps, rate()),
            "rtp" => keep(&mut said.maximum_bps, rate()),
            "su" => keep(&mut said.startup, value.boolean()),
            "bs" => keep(&mut said.starved, value.boolean()),
            "pr" => keep(&mut said.speed, value.number().filter(|speed| *speed >= 0.0)),
            "ltc" => keep(&mut said.latency_ms, count()),
            "nor" => keep(&mut said.next, text(ADDRESS_MAX)),
            "nrr" => keep(&mut said.next_range, text(KEPT_MAX)),
            // Other keys of the standard, and those that anybody may add.
            _ => true,
        };
        if !understood {
            self.problem(format!("the value of `{}` is not one", shown(key)));
        }
    }
}

/// Puts a value in its place; false if it is none.
fn keep<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let is_one = value.is_some();
    *place = value.or_else(|| place.take());
    is_one
}

fn set<T>(place: &mut Option<&mut T>, value: Option<T>) -> bool {
    match (place, value) {
        (Some(place), Some(value)) => {
            **place = value;
            true
        }
        _ => false,
    }
}

fn shown(key: &str) -> String {
    key.chars().take(20).collect()
}

/// Undoes percent encoding (RFC 3986 §2.1), and that of forms, in which a space is a plus: browsers' `URLSearchParams`, which
/// dash.js uses, writes it. A plus that is meant is escaped by either. `None` if there is an escape that is none, or too much.
fn decoded(text: &str) -> Option<String> {
    if text.len() > fields::TEXT_MAX {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits =
                    [rest.next()?, rest.next()?].map(|digit| char::from(digit).to_digit(16));
                u8::try_from(digits[0]? * 16 + digits[1]?).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Escapes what a query must not contain, and what separates its arguments.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 3);
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Which header a key of a version belongs to, as an index of [`HEADERS`]; `ltc`, `sn` and `sta` are of version 2.
fn header_of(key: &str, version: i64) -> usize {
    match key {
        "br" | "d" | "ot" | "tb" => 0,
        "bl" | "dl" | "ltc" | "mtp" | "nor" | "nrr" | "sn" | "sta" | "su" => 1,
        "bs" | "rtp" => 2,
        "pr" if version >= 2 => 2,
        _ => 3,
    }
}

impl Cmcd {
    /// Its keys and values in alphabetical order, as they are written.
    fn written(&self) -> Vec<(&'static str, String)> {
        let is_second = self.version >= 2;
        // Version 2: a list, of values of the kind of media that is asked for; manifests are of none.
        let listed = |value: i64| match self.object.as_deref() {
            _ if !is_second => value.to_string(),
            Some(kind @ ("v" | "a" | "av")) => format!("({value};{kind})"),
            _ => format!("({value})"),
        };
        let plain = |value: i64| value.to_string();
        let kbps = |bps: i64| (bps + 500) / 1000;
        // Rounded, as the standard asks, so that they say less about the client.
        let hundreds = |value: i64| (value + 50) / 100 * 100;
        let quoted = |text: &String| format!("\"{}\"", text.replace(['"', '\\'], ""));
        let address = |text: &String| match is_second {
            true => format!("({})", quoted(text)),
            false => format!("\"{}\"", encoded(text)),
        };
        let said = |value: bool| value.then(String::new);
        let short = |speed: f64| {
            let text = format!("{speed:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let all = [
            ("bl", self.buffer_ms.map(|ms| listed(hundreds(ms)))),
            ("br", self.bitrate_bps.map(|bps| listed(kbps(bps)))),
            ("bs", self.starved.and_then(said)),
            ("cid", self.content.as_ref().map(quoted)),
            ("d", self.duration_ms.map(plain)),
            ("dl", self.deadline_ms.map(|ms| plain(hundreds(ms)))),
            ("ltc", self.latency_ms.filter(|_| is_second).map(plain)),
            ("mtp", self.measured_bps.map(|bps| listed(hundreds(kbps(bps))))),
            ("nor", self.next.as_ref().map(address)),
            ("nrr", self.next_range.as_ref().map(quoted)),
            ("ot", self.object.clone()),
            ("pr", self.speed.map(short).filter(|speed| speed != "1")),
            ("rtp", self.maximum_bps.map(|bps| plain(hundreds(kbps(bps))))),
            ("sf", self.format.clone()),
            ("sid", self.session.as_ref().map(quoted)),
            ("sn", self.sequence.filter(|_| is_second).map(plain)),
            ("st", self.stream.clone()),
            ("sta", self.state.clone().filter(|_| is_second)),
            ("su", self.startup.and_then(said)),
            ("tb", self.top_bps.map(|bps| listed(kbps(bps)))),
            ("v", is_second.then(|| plain(self.version))),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }

    /// As the argument of a query.
    pub fn argument(&self) -> String {
        format!("{ARGUMENT}={}", encoded(&joined(&self.written())))
    }

    /// As headers.
    pub fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let all = self.written();
        let of = |index: usize| {
            let is_own = |(key, _): &&(&str, String)| header_of(key, self.version) == index;
            let own: Vec<_> = all.iter().filter(is_own).cloned().collect();
            let value = HeaderValue::from_str(&joined(&own)).ok()?;
            let name = HeaderName::from_static(HEADERS[index]);
            (!own.is_empty()).then_some((name, value))
        };
        (0..HEADERS.len()).filter_map(of).collect()
    }
}

fn joined(written: &[(&'static str, String)]) -> String {
    let one = |(key, value): &(&str, String)| match value.is_empty() {
        true => (*key).to_owned(),
        false => format!("{key}={value}"),
    };
    written.iter().map(one).collect::<Vec<_>>().join(",")
}

/// The version that a mode has.
pub fn version(mode: Mode) -> i64 {
    match mode {
        Mode::Query | Mode::Headers => 1,
        Mode::QueryV2 | Mode::HeadersV2 => 2,
    }
}

/// A row of requests with what one said.
pub fn recorded(read: Option<Read>, row: AccessRow) -> AccessRow {
    let Some(Read { said, problem }) = read else { return row };
    AccessRow {
        cmcd_version: Some(said.version),
        cmcd_session: said.session.map(Into::into),
        cmcd_content: said.content.map(Into::into),
        cmcd_sequence: said.sequence,
        cmcd_object: said.object.map(Into::into),
        cmcd_format: said.format.map(Into::into),
        cmcd_stream: said.stream.map(Into::into),
        cmcd_state: said.state.map(Into::into),
        cmcd_bitrate_bps: said.bitrate_bps,
        cmcd_top_bps: said.top_bps,
        cmcd_duration_ms: said.duration_ms,
        cmcd_buffer_ms: said.buffer_ms,
        cmcd_deadline_ms: said.deadline_ms,
        cmcd_measured_bps: said.measured_bps,
        cmcd_maximum_bps: said.maximum_bps,
        cmcd_startup: said.startup,
        cmcd_starved: said.starved,
        cmcd_speed: said.speed,
        cmcd_latency_ms: said.latency_ms,
        cmcd_next: said.next.map(Into::into),
        cmcd_next_range: said.next_range.map(Into::into),
        cmcd_error: problem.map(Into::into),
        ..row
    }
}

#[cfg(test)]
mod tests;
