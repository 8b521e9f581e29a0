//! What the page for Media over QUIC reports, read strictly.

use serde::Deserialize;
use suiro_browser::Ms;

/// Bytes before each object: time, size.
const HEADER_BYTES: usize = 8 + 4;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Report {
    pub session: Option<SessionReport>,
    pub statistics: Vec<StatisticsReport>,
    pub shown: Vec<ShownReport>,
    /// Frames that the camera or the encoder missed because the page was late, so far.
    pub missed: u64,
    /// Frames that were encoded or decoded so far, of these the key frames, and the time that it took.
    pub coded: u64,
    /// Objects that could not be read.
    pub malformed: u64,
    /// How often the decoder of a viewer fell behind, and the frames that were given up then, so far.
    pub behind: u64,
    /// Of a viewer: frames that its decoder gave up.
    pub given_up: u64,
    /// Why it does not work; null if it does.
    pub failure: Option<String>,
    /// Entries that were left out of reports because there were too many.
    pub left_out: u64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SessionReport {
    pub opened_ms: Ms,
    /// When QUIC and HTTP/3 were ready.
    pub connected_ms: Option<Ms>,
    pub set_up_ms: Option<Ms>,
    pub ended_ms: Option<Ms>,
    pub ended: Option<String>,
    /// The protocol that is offered, such as `moqt-18`.
    pub protocol: Option<String>,
    /// What the browser is asked to optimise its sending rate for.
    pub congestion: Option<String>,
    /// What becomes a stream.
    pub streams: u64,
}

/// Counters of the connection since its beginning, from getStats; null: Chromium does not know it (yet).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct StatisticsReport {
    pub at_ms: Ms,
    pub sent_packets: Option<u64>,
    pub sent_bytes: Option<u64>,
    pub received_bytes: Option<u64>,
    pub lost_packets: Option<u64>,
    pub srtt_ms: Option<Ms>,
    pub min_rtt_ms: Option<Ms>,
    /// The rate at which it thinks that it can send.
    pub send_bps: Option<f64>,
    /// Bytes that streams were given, and of these those that they have taken.
    pub given_bytes: u64,
    pub taken_bytes: u64,
    /// Frames that were encoded or decoded so far, of these the key frames, and the time that it took.
    pub coded: u64,
    pub key_frames: u64,
    pub coding_ms: Ms,
    /// Of a viewer: frames that its decoder gave up.
    pub given_up: Option<u64>,
}

/// A frame that was shown.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ShownReport {
    /// The time in its object, in microseconds.
    pub time_us: u64,
    pub shown_ms: Ms,
    /// The number in its stamp, and its capture time in milliseconds since 1970; null: it cannot be read.
    pub frame: Option<u32>,
    pub captured_unix_ms: Option<u64>,
}

/// An object of the video, and when it was whole.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Object {
    pub at: Ms,
    pub bytes: Vec<u8>,
}

/// A report, if it is one.
pub(super) fn parse(body: &[u8]) -> Result<Report, String> {
    serde_json::from_slice(body).map_err(|error| format!("the page's report: {error}"))
}

/// Objects, one after the other.
pub(super) fn parse_objects(mut body: &[u8]) -> Result<Vec<Object>, String> {
    let mut objects = Vec::new();
    while !body.is_empty() {
        let cut = || format!("the page's objects: object {} is cut", objects.len());
        let (header, rest) = body.split_first_chunk::<HEADER_BYTES>().ok_or_else(cut)?;
        let [time @ .., b0, b1, b2, b3] = *header;
        let at = Ms::try_from(f64::from_be_bytes(time))?;
        let length = u32::from_be_bytes([b0, b1, b2, b3]) as usize;
        let (bytes, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        objects.push(Object { at, bytes: bytes.to_vec() });
        body = rest;
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use suiro_units::{Duration, Time};

    use super::*;

    const EMPTY: &str = r#"{"session":null,"statistics":[],"shown":[],"missed":0,"coded":0,"malformed":0,"behind":0,"given_up":0,"failure":null,"left_out":0}"#;

    #[test]
    fn what_is_no_report_is_refused() {
        assert_eq!(parse(EMPTY.as_bytes()).unwrap().session, None);
        let refused = |text: &str| parse(text.as_bytes()).unwrap_err();
        assert!(refused("{").contains("EOF"));
        assert!(refused(&EMPTY.replace("missed", "mist")).contains("unknown field `mist`"));
        let shown =
            r#""shown":[{"time_us":1,"shown_ms":1e300,"frame":null,"captured_unix_ms":null}]"#;
        assert!(refused(&EMPTY.replace(r#""shown":[]"#, shown)).contains("a time of"));
    }

    #[test]
    fn objects_are_read_and_cut_ones_refused() {
        let object = |at: f64, bytes: &[u8]| {
            let mut all = at.to_be_bytes().to_vec();
            all.extend((bytes.len() as u32).to_be_bytes());
            all.extend(bytes);
            all
        };
        let body = [object(12.5, &[1, 2, 3]), object(40.0, &[])].concat();
        let objects = parse_objects(&body).unwrap();
        assert_eq!((objects.len(), &objects[0].bytes[..]), (2, &[1, 2, 3][..]));
        assert_eq!(objects[0].at.time(), Time::ZERO + Duration::from_micros(12_500));
        for cut in 1..body.len() {
            let whole = cut == body.len() - HEADER_BYTES;
            assert_eq!(parse_objects(&body[..cut]).is_ok(), whole, "{cut}");
        }
        assert!(parse_objects(&object(f64::NAN, &[])).unwrap_err().contains("NaN"));
    }
}
