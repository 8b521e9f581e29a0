//! What is said about other programs' records: sources, streams, effects.

use serde::Serialize;
use suiro_record::words::Cause;
use suiro_units::words;

words! {
    /// What happened to a stream or a connection.
    pub enum Effect {
        /// A browser's video froze.
        Freeze = "freeze",
        /// A browser showed or sent fewer frames per second.
        FrameRate = "frame_rate",
        /// A browser sent smaller frames.
        Quality = "quality",
        /// Nothing came for a while.
        Gap = "gap",
        /// Packets came late, compared with the fastest.
        Late = "late",
        /// Packets were lost.
        Loss = "loss",
        /// A program was slower than real time.
        Slow = "slow",
        /// A connection did not come about.
        NoConnection = "no_connection",
        /// A program reported a fault.
        Fault = "fault",
    }
}

/// Everything that sources say, on one time axis.
#[derive(Debug, Clone, Serialize)]
pub struct Account {
    /// Time zero, as seconds since 1970; null if no source says when it was made.
    pub began_s: Option<f64>,
    /// The files.
    pub sources: Vec<SourceLine>,
    /// What they contain.
    pub streams: Vec<Stream>,
    /// What happened, in order of time.
    pub effects: Vec<Happened>,
    /// Effects beyond the most that are reported.
    pub left_out: usize,
}

/// A file and what was read from it.
#[derive(Debug, Clone, Serialize)]
pub struct SourceLine {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: &'static str,
    /// What was read from it, and what could not be.
    pub note: String,
}

/// A stream or a connection.
#[derive(Debug, Clone, Serialize)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// The file that it is in.
    pub source: String,
    /// What was measured of it.
    pub text: String,
}

/// Something that happened, and its cause.
#[derive(Debug, Clone, Serialize)]
pub struct Happened {
    /// The stream or connection.
    pub subject: String,
    /// What it was.
    pub effect: Effect,
    /// When it began, in nanoseconds; on the clock of its source until all sources are on one axis.
    #[serde(rename = "from_s", serialize_with = "seconds")]
    pub from_ns: i64,
    /// When it ended.
    #[serde(rename = "to_s", serialize_with = "seconds")]
    pub to_ns: i64,
    /// Its cause; unknown if the sources do not show it.
    pub cause: Cause,
    /// What happened, without time and cause, such as `no packet for 1.2 s`.
    pub what: String,
    /// The cause in words with its numbers; or which record would show it.
    pub because: String,
    /// Where that is recorded.
    pub evidence: Vec<Evidence>,
    /// SSRC of its RTP stream, by which sources are joined.
    #[serde(skip)]
    pub ssrc: Option<u32>,
}

/// A place in a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The file.
    pub source: String,
    /// Which part of it: a display filter of Wireshark, a key, or a line.
    pub place: String,
}

impl Evidence {
    pub(crate) fn new(source: &str, place: impl Into<String>) -> Self {
        Self { source: source.to_owned(), place: place.into() }
    }

    /// Packets of a capture, as a display filter of Wireshark.
    pub(crate) fn packets(source: &str, first: u32, last: u32) -> Self {
        let place = match first == last {
            true => format!("frame.number == {first}"),
            false => format!(
                "frame.number >= {} && frame.number <= {}",
                first.min(last),
                first.max(last)
            ),
        };
        Self::new(source, place)
    }
}

fn seconds<S: serde::Serializer>(ns: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*ns as f64 / 1e9)
}
