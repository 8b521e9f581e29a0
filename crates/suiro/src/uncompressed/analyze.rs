//! `suiro uncompressed analyze`: the timing of streams in captures.

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use suiro_outside::file;
use suiro_uncompressed::sdp::{self, Announced};
use suiro_uncompressed::timing::model::{PACKETS_MAX, Scan, Schedule};
use suiro_uncompressed::timing::{Analysis, Capture, Given, Options, Report, analyze};
use suiro_uncompressed::{FrameRate, geometry};

use super::timing_text::text;
use crate::{Outcome, Usage};

/// Most bytes of a capture.
const FILE_BYTES_MAX: u64 = 4 << 30;
/// Most captures and session descriptions.
const FILES_MAX: usize = 64;

/// How rows follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scans {
    /// Whole frames.
    Progressive,
    /// Two fields for each frame; also segmented frames (PsF).
    Interlaced,
}

/// When a receiver reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Schedules {
    /// With a pause between frames.
    Gapped,
    /// Evenly over the frame time.
    Linear,
}

/// Arguments of `analyze`.
#[derive(Debug, Args)]
pub struct AnalyzeArgs {
    /// Captures (pcap or pcapng): one with all streams, or one for each leg of ST 2022-7.
    #[arg(required = true, value_name = "FILE")]
    captures: Vec<PathBuf>,
    /// Session descriptions of the streams: frame rate, height, scan, sender type (TP) and TROFF [default: what packets
    /// show, and TRO_DEFAULT].
    #[arg(long, value_name = "FILE")]
    sdp: Vec<PathBuf>,
    /// Only streams to this destination; may be repeated.
    #[arg(long = "to", value_name = "ADDRESS:PORT")]
    only: Vec<SocketAddr>,
    /// Seconds that make the captures' times TAI: 0 if the capturing clock was PTP's, 37 if it was UTC [default: 0 or 37,
    /// whichever brings RTP timestamps within a second of the times of arrival].
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-1_000_000..=1_000_000))]
    tai_offset: Option<i64>,
    /// Frames per second, 60000/1001 or 25, also of interlaced video [default: from the timestamps].
    #[arg(long, value_name = "N/M")]
    rate: Option<FrameRate>,
    /// Packets of a frame, or of a field [default: that of most].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(PACKETS_MAX)))]
    packets: Option<u32>,
    /// Rows of a frame [default: from the packets' rows].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(geometry::SIDE_MAX)))]
    height: Option<u32>,
    /// Frames or fields [default: from the packets' field bits].
    #[arg(long, value_name = "SCAN", value_enum)]
    scan: Option<Scans>,
    /// When a receiver reads [default: gapped if most frames end with a pause].
    #[arg(long, value_name = "SCHEDULE", value_enum)]
    schedule: Option<Schedules>,
    /// TROFF in µs: from the beginning of a frame to the reading of its first packet [default: TRO_DEFAULT].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    troff: Option<u32>,
    /// Print how often each value of C_INST and VRX occurred.
    #[arg(long)]
    histograms: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl AnalyzeArgs {
    fn given(&self) -> Given {
        Given {
            packets: self.packets,
            rate: self.rate,
            height: self.height,
            scan: self.scan.map(|scan| match scan {
                Scans::Progressive => Scan::Progressive,
                Scans::Interlaced => Scan::Interlaced,
            }),
            schedule: self.schedule.map(|schedule| match schedule {
                Schedules::Gapped => Schedule::Gapped,
                Schedules::Linear => Schedule::Linear,
            }),
            troff_us: self.troff,
            ip_bytes: None,
        }
    }
}

/// `suiro uncompressed analyze`.
pub fn run(args: &AnalyzeArgs) -> Result<Outcome> {
    let count = args.captures.len() + args.sdp.len();
    if count > FILES_MAX {
        bail!(Usage(format!("{count} files: expected at most {FILES_MAX}")));
    }
    let mut announced = Vec::new();
    for path in &args.sdp {
        let text = file::read_text(path, sdp::BYTES_MAX as u64);
        let text = text.map_err(|error| Usage::file(path, error))?;
        announced.extend(Announced::read(&text).map_err(|error| Usage::file(path, error))?);
    }
    let files: Vec<(String, Vec<u8>)> =
        args.captures.iter().map(|path| read(path)).collect::<Result<_>>()?;
    let captures: Vec<Capture<'_>> =
        files.iter().map(|(name, content)| Capture { name, content }).collect();
    let options = Options {
        given: args.given(),
        announced,
        tai_offset_s: args.tai_offset,
        only: args.only.clone(),
    };
    let analysis = analyze(&captures, &options).map_err(|error| Usage(error.to_string()))?;
    warn(&analysis, &options.announced);
    let mut out = crate::say::results();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &analysis)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", text(&analysis, args.histograms))?;
    }
    let well = analysis.streams.iter().all(Report::is_well);
    Ok(if well { Outcome::Done } else { Outcome::Failed })
}

fn read(path: &Path) -> Result<(String, Vec<u8>)> {
    let content = file::read(path, FILE_BYTES_MAX).map_err(|error| {
        let large = error.kind() == ErrorKind::FileTooLarge;
        let hint = "\nhint: editcap -s 96 keeps what is needed of each packet";
        Usage::file(path, format!("{error}{}", if large { hint } else { "" }))
    })?;
    Ok((path.display().to_string(), content))
}

/// What limits the result.
fn warn(analysis: &Analysis, announced: &[Announced]) {
    for file in &analysis.files {
        let name = &file.name;
        if file.cut {
            say!("note: {name} ends within a packet: what is before it is analysed");
        }
        if file.lost > 0 {
            say!(
                "note: {name}: the capturing tool lost {} packets, which look like lost ones of the streams",
                file.lost
            );
        }
        if file.untimed > 0 {
            say!("note: {name}: {} packets without a time are left out", file.untimed);
        }
    }
    if analysis.left_out > 0 {
        say!("note: {} packets beyond the first 40 million are left out", analysis.left_out);
    }
    for announced in announced {
        let to = SocketAddr::from(announced.destination);
        let mut names = analysis.streams.iter().map(|report| report.name.to);
        if !names.any(|name| name == to) {
            say!("note: a description is of a stream to {to}, which is not analysed");
        }
    }
}
