//! The study's benchmarks: a storage read, dummy data sent, both at once.

use std::io::Write;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use suiro_uncompressed::node::{
    self, ReadTotal, ReaderJob, Records, SenderJob, SenderStream, SentTotal, Source,
};
use suiro_uncompressed::packet::{Format, PAYLOAD_TYPE, STUDY_PACKET_BYTES, Stream};
use suiro_uncompressed::reader::{self, Shape};
use suiro_uncompressed::socket::{Route, Segmentation};
use suiro_uncompressed::{FrameRate, Geometry, clock, send};
use suiro_units::{BitRate, Bytes, Duration};

use super::stream::{STREAMS_MAX, rate, stop_flag, tell_sent, went_well};
use super::switching;
use crate::{Outcome, Usage};

/// What 60 frames may take: as long as they are shown.
const WITHIN: Duration = Duration::from_micros(1_001_000);

/// Different frames of dummy data.
const FRAMES: u32 = 10;

/// What is measured.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Read frame stores as fast as they can be, all at once: the time of 60 frames, mean and worst.
    /// More than the 1.001 s that they are shown for is a failure.
    Read {
        #[command(flatten)]
        read: ReadArgs,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Send dummy data from memory at a constant rate.
    Send {
        #[command(flatten)]
        send: SendArgs,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Both at once, which the study found to be the critical case.
    Both {
        #[command(flatten)]
        read: ReadArgs,
        #[command(flatten)]
        send: SendArgs,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Count the frames that are lost when a stream moves to another node, when a node is killed, with a twin on another
    /// path (ST 2022-7) and without, and when all nodes start together. The nodes are processes of their own in network
    /// namespaces. A lost frame where none should be is a failure.
    Switching(switching::SwitchingArgs),
    /// A node of `switching`.
    #[command(hide = true)]
    Node(switching::node::NodeArgs),
}

/// Where frames are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum From {
    /// The disk, bypassing the page cache (O_DIRECT).
    Direct,
    /// The page cache, which reads the disk when it must.
    Cached,
}

/// What is read.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// The frame stores, each read by its own thread.
    #[arg(long = "store", value_name = "FILE", required = true)]
    stores: Vec<PathBuf>,
    /// Where stores are read from.
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = From::Direct)]
    from: From,
    /// Emulate storage that reads this many bits per second for each store [default: none].
    #[arg(long, value_name = "RATE")]
    storage_rate: Option<BitRate>,
    /// Time from a request to the first byte of the emulated storage.
    #[arg(long, value_name = "TIME", default_value = "0 s", requires = "storage_rate")]
    storage_latency: Duration,
    /// Frames in each ring that is read into.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(3..=100_000))]
    ring: u32,
}

/// What is sent.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// Where each stream of dummy data goes.
    #[arg(long = "to", value_name = "ADDRESS:PORT", required = true)]
    destinations: Vec<SocketAddrV4>,
    /// Rate of each stream, as frames of 6.2 MB at a constant frame rate [default: 59.94 of them a second,
    /// 2.967 Gbit/s].
    #[arg(long, value_name = "RATE")]
    rate: Option<BitRate>,
    /// The CPU to pin the sending thread to [default: any].
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
}

/// What all have in common.
#[derive(Debug, Args)]
pub struct CommonArgs {
    /// How long to measure.
    #[arg(long, value_name = "TIME", default_value = "10 s")]
    duration: Duration,
    /// Folder for the records; none are written otherwise.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON, a line for each stream.
    #[arg(long)]
    json: bool,
}

/// `suiro uncompressed bench`
pub fn run(command: &BenchCommand) -> Result<Outcome> {
    match command {
        BenchCommand::Switching(args) => return switching::run(args),
        BenchCommand::Node(args) => return switching::node::run(args),
        BenchCommand::Read { .. } | BenchCommand::Send { .. } | BenchCommand::Both { .. } => {}
    }
    let stop = stop_flag()?;
    match command {
        BenchCommand::Switching(_) | BenchCommand::Node(_) => unreachable!("they have ended"),
        BenchCommand::Read { read, common } => {
            let totals = node::read(&reader_job(read, common)?, |_| (), &stop)?;
            tell_read(&totals, common.json)
        }
        BenchCommand::Send { send, common } => {
            let totals = node::send(&sender_job(send, common)?, |_| (), &mut |_, _| (), &stop)?;
            told_sent(&totals, common.json)
        }
        BenchCommand::Both { read, send, common } => {
            let jobs = (reader_job(read, common)?, sender_job(send, common)?);
            let (read, sent) = both(&jobs.0, &jobs.1, &stop)?;
            let outcomes = [tell_read(&read, common.json)?, told_sent(&sent, common.json)?];
            let well = outcomes.iter().all(|outcome| *outcome == Outcome::Done);
            Ok(if well { Outcome::Done } else { Outcome::Failed })
        }
    }
}

/// Reads and sends at the same time; where one fails, the other ends.
fn both(
    reader: &ReaderJob,
    sender: &SenderJob,
    stop: &AtomicBool,
) -> Result<(Vec<ReadTotal>, Vec<SentTotal>)> {
    let ended = |failed: bool| {
        if failed {
            stop.store(true, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let read = node::read(reader, |_| (), stop);
            ended(read.is_err());
            read
        });
        let sent = node::send(sender, |_| (), &mut |_, _| (), stop);
        ended(sent.is_err());
        let read = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((read?, sent?))
    })
}

fn reader_job(args: &ReadArgs, common: &CommonArgs) -> Result<ReaderJob> {
    counted(args.stores.len())?;
    let shape =
        args.storage_rate.map(|rate| Shape { rate, latency: args.storage_latency, later: None });
    let source = match args.from {
        From::Direct => reader::Source::Direct,
        From::Cached => reader::Source::Cached,
    };
    let (repeat, depth, memory) = (true, reader::DEPTH, Bytes::new(4_000_000_000));
    Ok(ReaderJob {
        stores: (0..).zip(args.stores.iter().cloned()).collect(),
        ring: reader::Options { source, frames: args.ring, memory, repeat, depth, shape },
        begin: None,
        duration: Some(common.duration),
        records: records(common, "bench-read")?,
    })
}

fn sender_job(args: &SendArgs, common: &CommonArgs) -> Result<SenderJob> {
    counted(args.destinations.len())?;
    let geometry = args.rate.map_or(Ok(Geometry::HD_RASTER), at_rate)?;
    let stream = |(number, destination): (usize, &SocketAddrV4)| SenderStream {
        number: number as u32,
        source: Source::Synthetic { geometry, frames: FRAMES },
        format: Format::Raster,
        packet_bytes: STUDY_PACKET_BYTES,
        stream: Stream { payload_type: PAYLOAD_TYPE, ssrc: number as u32 + 1 },
        route: Route { destination: *destination, source: None, ttl: 16 },
    };
    Ok(SenderJob {
        streams: args.destinations.iter().enumerate().map(stream).collect(),
        ring: reader::Options {
            source: reader::Source::Memory,
            frames: FRAMES,
            memory: Bytes::new(4_000_000_000),
            repeat: true,
            depth: reader::DEPTH,
            shape: None,
        },
        burst: send::BURST,
        segmentation: Segmentation::Kernel,
        options: send::Options { paced: true, cpu: args.cpu, begin: None, until: None },
        duration: Some(common.duration),
        records: records(common, "bench-send")?,
    })
}

/// Frames of the usual size that come to `rate` together: a thousandth of a frame per second exact.
fn at_rate(rate: BitRate) -> Result<Geometry> {
    let usual = Geometry::HD_RASTER;
    let bits = usual.frame_bytes() as f64 * 8.0;
    let thousandths = (rate.as_bps() as f64 * 1000.0 / bits).round() as u32;
    let least = bits / 1e9;
    let frame_rate = FrameRate::new(thousandths, 1000).map_err(|_| {
        Usage(format!("--rate {rate}: from {least:.3} to {:.0} Gbit/s can be sent", least * 1000.0))
    })?;
    let size = (usual.width(), usual.height());
    Ok(Geometry::new(size, usual.sampling(), usual.depth(), frame_rate)?)
}

fn counted(count: usize) -> Result<()> {
    if count > STREAMS_MAX {
        bail!(Usage(format!("{count} streams: one process has {STREAMS_MAX} at most")));
    }
    Ok(())
}

fn records(common: &CommonArgs, endpoint: &str) -> Result<Records> {
    if let Some(dir) = &common.out {
        std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    }
    let (endpoint, dir) = (endpoint.to_owned(), common.out.clone());
    Ok(Records { endpoint, dir, peer: None, epoch: clock::monotonic() })
}

fn told_sent(totals: &[SentTotal], json: bool) -> Result<Outcome> {
    tell_sent(totals, json)?;
    let well = totals.iter().all(|total| went_well(total, true));
    Ok(if well { Outcome::Done } else { Outcome::Failed })
}

fn tell_read(totals: &[ReadTotal], json: bool) -> Result<Outcome> {
    let mut out = crate::say::results();
    let mut well = true;
    for ReadTotal { stream, span, frames, bytes, times } in totals {
        let gbps = rate(*bytes, *span);
        let worst = times.map(|times| times.worst);
        well &= worst.is_some_and(|worst| worst <= WITHIN);
        if json {
            let row = json!({
                "store": stream, "seconds": span.as_secs_f64(), "frames": frames, "bytes": bytes,
                "gbps": gbps, "groups": times.map_or(0, |times| times.groups),
                "sixty_mean_s": times.map(|times| times.mean.as_secs_f64()),
                "sixty_worst_s": worst.map(Duration::as_secs_f64),
            });
            writeln!(out, "{row}")?;
            continue;
        }
        let sixty = times.map_or("fewer than 60 frames".to_owned(), |times| {
            let (mean, worst) = (times.mean.as_secs_f64(), times.worst.as_secs_f64());
            let verdict = if times.worst <= WITHIN { "in time" } else { "too slow" };
            let groups = times.groups;
            format!("60 frames in {mean:.3} s, {worst:.3} s at worst of {groups} times: {verdict}")
        });
        writeln!(out, "store {stream}: {gbps:.3} Gbit/s, {frames} frames, {sixty}")?;
    }
    Ok(if well { Outcome::Done } else { Outcome::Failed })
}
