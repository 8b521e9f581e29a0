//! What the page for WebRTC reports, read strictly.

use serde::Deserialize;
use suiro_browser::Ms;
use suiro_record::words::{Limitation, SessionEnd};

/// Bytes before each coded frame: RTP timestamp, time, key frame, size.
const HEADER_BYTES: usize = 4 + 8 + 1 + 4;
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Report {
    pub sessions: Vec<SessionReport>,
    pub statistics: Vec<StatisticsReport>,
    pub shown: Vec<ShownReport>,
    /// Frames that the camera missed because the page was late, so far.
    pub missed: u64,
    /// Why it does not work; null if it does.
    pub failure: Option<String>,
    /// Entries that were left out of reports because there were too many.
    pub left_out: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) enum Ended {
    Closed,
    Broken,
    Unanswered,
    Deleted,
}

impl From<Ended> for SessionEnd {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Closed => Self::Closed,
            Ended::Broken => Self::Broken,
            Ended::Unanswered => Self::Unanswered,
            Ended::Deleted => Self::Deleted,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SessionReport {
    pub session: u64,
    pub opened_ms: Ms,
    pub answered_ms: Option<Ms>,
    pub connected_ms: Option<Ms>,
    pub ended_ms: Option<Ms>,
    pub ended: Option<Ended>,
    /// Where it can be deleted, if this end made the offer.
    pub location: Option<String>,
    /// This end's candidates over UDP, as `ADDRESS:PORT`.
    pub candidates: Vec<String>,
    pub agreed: Option<Agreed>,
}

/// What both ends agreed on, as their session descriptions have it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Agreed {
    /// The codec of the video, without any other as a fallback.
    pub codec: String,
    pub payload_types: String,
    pub feedback: String,
    pub extensions: String,
}

/// Counters of a connection since its beginning, from getStats; null: Chromium does not know it (yet).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct StatisticsReport {
    pub session: u64,
    pub at_ms: Ms,
    pub local: Option<String>,
    pub remote: Option<String>,
    /// Packets and bytes of the pair of candidates, without headers of UDP and IP.
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub received_packets: u64,
    pub received_bytes: u64,
    pub rtt_ms: Option<Ms>,
    pub estimate_bps: Option<f64>,
    pub target_bps: Option<f64>,
    pub loss_ratio: Option<f64>,
    pub nacks: u64,
    pub retransmissions: u64,
    pub plis: u64,
    pub firs: u64,
    /// Packets of video so far.
    pub video_packets: u64,
    pub width: Option<u32>,
    pub height: Option<u32>,
    /// Time that frames took to be encoded or decoded so far, and how many.
    pub coding_ms: Ms,
    pub coded: u64,
    pub key_frames: Option<u64>,
    /// Quantiser parameters of these frames so far, added up.
    pub qp_sum: Option<u64>,
    /// Of a receiver: frames that came and were not shown, and freezes, so far.
    pub dropped: Option<u64>,
    pub freezes: Option<u64>,
    pub freezes_ms: Option<Ms>,
    /// Frames that left the jitter buffer so far; the time that they were in it and were to be in it, added up.
    pub jitter_buffer_frames: Option<u64>,
    pub jitter_buffer_ms: Option<Ms>,
    pub jitter_buffer_target_ms: Option<Ms>,
    /// What limits the encoder of a sender now.
    pub limitation: Option<Limitation>,
    /// The codec of the video, without any other as a fallback.
    pub codec: Option<String>,
}

/// A frame that was shown.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ShownReport {
    pub rtp: u32,
    pub shown_ms: Ms,
    /// When its last packet came.
    pub received_ms: Option<Ms>,
    /// The number in its stamp, and its capture time in milliseconds since 1970; null: it cannot be read.
    pub frame: Option<u32>,
    pub captured_unix_ms: Option<u64>,
    /// Frames that were presented so far, also those that the page did not see.
    pub presented: u64,
}

/// A coded frame on its way to the browser's decoder.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Coded {
    pub rtp: u32,
    pub at: Ms,
    pub key: bool,
    pub data: Vec<u8>,
}

/// A report, if it is one.
pub(super) fn parse(body: &[u8]) -> Result<Report, String> {
    serde_json::from_slice(body).map_err(|error| format!("the page's report: {error}"))
}

/// Coded frames, one after the other.
pub(super) fn parse_frames(mut body: &[u8]) -> Result<Vec<Coded>, String> {
    let mut frames = Vec::new();
    while !body.is_empty() {
        let cut = || format!("the page's frames: frame {} is cut", frames.len());
        let (header, rest) = body.split_first_chunk::<HEADER_BYTES>().ok_or_else(cut)?;
        let [r0, r1, r2, r3, time @ .., key, b0, b1, b2, b3] = *header;
        let at = Ms::try_from(f64::from_be_bytes(time))?;
        let length = u32::from_be_bytes([b0, b1, b2, b3]) as usize;
        let (data, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        let rtp = u32::from_be_bytes([r0, r1, r2, r3]);
        frames.push(Coded { rtp, at, key: key != 0, data: data.to_vec() });
        body = rest;
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use suiro_units::{Duration, Time};

    use super::*;

    const EMPTY: &str =
        r#"{"sessions":[],"statistics":[],"shown":[],"missed":0,"failure":null,"left_out":0}"#;

    #[test]
    fn what_is_no_report_is_refused() {
        assert!(parse(EMPTY.as_bytes()).unwrap().sessions.is_empty());
        let refused = |text: &str| parse(text.as_bytes()).unwrap_err();
        assert!(refused("{").contains("EOF"));
        assert!(refused(&EMPTY.replace("missed", "mist")).contains("unknown field `mist`"));
        let shown = r#""shown":[{"rtp":1,"shown_ms":1e300,"received_ms":null,"frame":null,"captured_unix_ms":null,"presented":1}]"#;
        assert!(refused(&EMPTY.replace(r#""shown":[]"#, shown)).contains("a time of"));
    }

    #[test]
    fn coded_frames_are_read_and_cut_ones_refused() {
        let frame = |at: f64, data: &[u8]| {
            let mut bytes = 90_000_u32.to_be_bytes().to_vec();
            bytes.extend(at.to_be_bytes());
            bytes.push(1);
            bytes.extend((data.len() as u32).to_be_bytes());
            bytes.extend(data);
            bytes
        };
        let body = [frame(12.5, &[1, 2, 3]), frame(40.0, &[])].concat();
        let frames = parse_frames(&body).unwrap();
        assert_eq!((frames.len(), &frames[0].data[..]), (2, &[1, 2, 3][..]));
        assert_eq!(frames[0].at.time(), Time::ZERO + Duration::from_micros(12_500));
        assert!(frames[0].key && frames[1].rtp == 90_000);
        for cut in 1..body.len() {
            let whole = cut == body.len() - HEADER_BYTES;
            assert_eq!(parse_frames(&body[..cut]).is_ok(), whole, "{cut}");
        }
        assert!(parse_frames(&frame(f64::NAN, &[])).unwrap_err().contains("NaN"));
    }
}
