//! Timing of video streams in captures: the models of ST 2110-21, with the numbers that the EBU's LIST made common, and the
//! skew between the two legs of ST 2022-7. Pure: captures come as bytes.
//!
//! Each stream is divided into frames (fields, if it is interlaced), from the second one on, because the first may be
//! incomplete. Then C_INST follows from the times of arrival alone ([`network`]). VRX also needs to know
//! when a receiver reads ([`receiver`]): after an offset from the beginning of a frame, which is a whole number of frame times
//! since the SMPTE epoch, 1970-01-01 00:00:00 TAI.

mod clock;
mod detect;
mod frames;
mod legs;
pub mod model;
pub mod network;
mod packets;
pub mod receiver;
mod spread;
mod stream;
mod verdict;

use std::net::SocketAddr;

use serde::Serialize;
use suiro_capture::file::FileError;

pub use clock::{Clock, Known, LEAP_SECONDS};
pub use detect::{Given, Unfit};
pub use legs::Pair;
pub use packets::{Key, PACKETS_MAX};
pub use spread::{Levels, Spread};
pub use stream::{Found, Markers, Report, Sequence};
pub use verdict::{Basis, Check, Profile, Verdict};

use crate::sdp::Announced;

/// Most pairs of streams that are compared.
const PAIRS_MAX: usize = 64;

/// A capture.
#[derive(Debug, Clone, Copy)]
pub struct Capture<'a> {
    /// Its name, for errors.
    pub name: &'a str,
    /// Its bytes: pcap or pcapng.
    pub content: &'a [u8],
}

/// What is known before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// What holds for all streams.
    pub given: Given,
    /// What session descriptions announce, each for its destination.
    pub announced: Vec<Announced>,
    /// Seconds that make a capture's times TAI: 0 for PTP, 37 for UTC; `None` to compare with RTP timestamps.
    pub tai_offset_s: Option<i64>,
    /// Only streams to these destinations; all if empty.
    pub only: Vec<SocketAddr>,
}

/// Why nothing was analysed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A file is no capture, or is malformed.
    #[error("{name}: {cause}")]
    File {
        /// Its name.
        name: String,
        /// Why.
        cause: FileError,
    },
    /// No stream of RTP.
    #[error(
        "no RTP stream of 10 packets or more: found {0} other packets\n\
         hint: is the capture from the interface of the stream, and are at least 96 bytes of each packet kept?"
    )]
    NoRtp(u64),
    /// None of the streams that were asked for.
    #[error("no RTP stream to {wanted}: the captures have streams to {there}")]
    Elsewhere {
        /// What was asked for.
        wanted: String,
        /// Destinations.
        there: String,
    },
    /// Streams, but none that can be analysed.
    #[error("no stream can be analysed\n{0}")]
    Unfit(String),
}

/// A stream that is not analysed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Other {
    /// Its capture, source, destination and synchronisation source.
    pub stream: Name,
    /// Its packets.
    pub packets: usize,
    /// Why not.
    pub because: String,
}

/// What a stream is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Name {
    /// The capture.
    pub file: String,
    /// The source.
    pub from: SocketAddr,
    /// The destination.
    pub to: SocketAddr,
    /// RTP synchronisation source.
    pub ssrc: u32,
    /// RTP payload type.
    pub payload_type: u8,
}

/// What a capture says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Whether it ends within a packet.
    pub cut: bool,
    /// Packets that the capturing tool lost.
    pub lost: u64,
    /// Packets without a time.
    pub untimed: u64,
}

/// What captures show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// The captures.
    pub files: Vec<File>,
    /// Packets that are not of these streams.
    pub other_packets: u64,
    /// Packets beyond the most that are read, [`PACKETS_MAX`].
    pub left_out: u64,
    /// Streams of video.
    pub streams: Vec<Report>,
    /// Streams that are not analysed.
    pub others: Vec<Other>,
    /// Pairs of streams with the same packets; `legs` are positions in `streams`.
    pub pairs: Vec<Pair>,
}

/// Analyses the streams of captures.
///
/// # Errors
/// If a capture cannot be read, or has no stream that can be analysed.
pub fn analyze(captures: &[Capture<'_>], options: &Options) -> Result<Analysis, Error> {
    let contents: Vec<&[u8]> = captures.iter().map(|capture| capture.content).collect();
    let read = packets::read(&contents).map_err(|(file, cause)| {
        let name = captures[file].name.to_owned();
        Error::File { name, cause }
    })?;
    if read.streams.is_empty() {
        return Err(Error::NoRtp(read.others));
    }
    let wanted = chosen(&read.streams, &options.only)?;
    let (mut streams, mut others, mut of) = (Vec::new(), Vec::new(), Vec::new());
    for at in wanted {
        let stream = &read.streams[at];
        let name = name(captures, &stream.key);
        let destination = stream.key.to;
        let announced = options.announced.iter().find(|it| destination == it.destination.into());
        match stream::report(name.clone(), stream, options, announced) {
            Ok(report) => {
                streams.push(report);
                of.push(at);
            }
            Err(unfit) => {
                let (packets, because) = (stream.packets.len(), unfit.to_string());
                others.push(Other { stream: name, packets, because });
            }
        }
    }
    if streams.is_empty() {
        let line = |it: &Other| format!("{} to {}: {}", it.stream.file, it.stream.to, it.because);
        return Err(Error::Unfit(others.iter().map(line).collect::<Vec<_>>().join("\n")));
    }
    let files = captures.iter().zip(&read.files).map(|(capture, file)| File {
        name: capture.name.to_owned(),
        cut: file.cut,
        lost: file.lost,
        untimed: file.untimed,
    });
    Ok(Analysis {
        files: files.collect(),
        other_packets: read.others,
        left_out: read.left_out,
        pairs: pairs(&read.streams, &of),
        streams,
        others,
    })
}

fn name(captures: &[Capture<'_>], key: &Key) -> Name {
    let Key { file, from, to, ssrc, payload_type } = *key;
    Name { file: captures[file].name.to_owned(), from, to, ssrc, payload_type }
}

/// The positions of the streams that are wanted.
fn chosen(streams: &[packets::Stream<'_>], only: &[SocketAddr]) -> Result<Vec<usize>, Error> {
    let is_wanted = |to: &SocketAddr| only.is_empty() || only.contains(to);
    let chosen = streams.iter().enumerate().filter(|(_, stream)| is_wanted(&stream.key.to));
    let chosen: Vec<usize> = chosen.map(|(at, _)| at).collect();
    let list = |addresses: &mut dyn Iterator<Item = SocketAddr>| {
        let mut all: Vec<SocketAddr> = addresses.collect();
        all.sort_unstable();
        all.dedup();
        all.iter().take(20).map(SocketAddr::to_string).collect::<Vec<_>>().join(", ")
    };
    if chosen.is_empty() {
        return Err(Error::Elsewhere {
            wanted: list(&mut only.iter().copied()),
            there: list(&mut streams.iter().map(|stream| stream.key.to)),
        });
    }
    Ok(chosen)
}

/// Streams with the same packets, among those that were analysed.
fn pairs(streams: &[packets::Stream<'_>], of: &[usize]) -> Vec<Pair> {
    let both = of.iter().enumerate().flat_map(|(first, a)| {
        of.iter().enumerate().skip(first + 1).map(move |(second, b)| ([first, second], [*a, *b]))
    });
    let same = both.filter(|(_, [a, b])| streams[*a].key.ssrc == streams[*b].key.ssrc);
    let found = same
        .take(PAIRS_MAX)
        .filter_map(|(legs, at)| legs::compare(streams, at).map(|pair| Pair { legs, ..pair }));
    found.collect()
}
