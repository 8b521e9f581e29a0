//! Streams: sent and received by hand.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::json;
use suiro_outside::file;
use suiro_scenario::UncompressedReceiver;
use suiro_uncompressed::node::{
    self, Received, ReceiverJob, ReceiverStream, Records, SenderJob, SenderStream, SentTotal,
    Source,
};
use suiro_uncompressed::output::Tally;
use suiro_uncompressed::packet::{
    Format, IP_UDP_BYTES, Layout, PAYLOAD_TYPE, STANDARD_PACKET_BYTES, STUDY_PACKET_BYTES, Stream,
};
use suiro_uncompressed::reader::{self, Bound, Ring};
use suiro_uncompressed::receive::LeftOut;
use suiro_uncompressed::sdp::{self, Description};
use suiro_uncompressed::socket::{BUFFER_MAX_BYTES, Joined, Route, Segmentation};
use suiro_uncompressed::{Geometry, clock, receive, send, synth};
use suiro_units::{Bytes, Duration};

use super::describe::{self, TROFF, TROFF_HELP};
use crate::args::within;
use crate::{Outcome, Usage};

/// Most streams of one process.
pub const STREAMS_MAX: usize = 64;

/// Different synthetic frames of a stream, by default.
const SYNTHETIC: u32 = 60;

/// How packets are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Layouts {
    /// SMPTE ST 2110-20 in Ethernet's standard packets: the format that other tools receive.
    St2110,
    /// The study's format: any bytes, in packets of 8800 bytes, with number and checksum of each
    /// frame.
    Raster,
}

impl Layouts {
    const fn format(self) -> Format {
        match self {
            Self::St2110 => Format::St2110,
            Self::Raster => Format::Raster,
        }
    }

    const fn packet_bytes(self) -> u32 {
        match self {
            Self::St2110 => STANDARD_PACKET_BYTES,
            Self::Raster => STUDY_PACKET_BYTES,
        }
    }
}

/// Where frames are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum From {
    /// The disk, bypassing the page cache (O_DIRECT).
    Direct,
    /// The page cache, which reads the disk when it must.
    Cached,
    /// The page cache, in place: the only copy is into the socket; the cache must have room for the
    /// ring.
    Mapped,
    /// Memory: the ring is filled once and sent repeatedly.
    Memory,
}

/// What `send` and `receive` have in common.
#[derive(Debug, Args)]
struct Common {
    /// How packets are written.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Layouts::St2110)]
    format: Layouts,
    /// Largest IP packet in bytes [default: 1500 for st2110, 8800 for raster].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(64..=65_535))]
    packet: Option<u32>,
    /// RTP payload type.
    #[arg(long, value_name = "N", default_value_t = PAYLOAD_TYPE, value_parser = clap::value_parser!(u8).range(..128))]
    payload_type: u8,
    /// The CPU to pin the thread to [default: any].
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// Stop after this long [default: on Ctrl-C].
    #[arg(long, value_name = "TIME")]
    duration: Option<Duration>,
    /// Folder for the records; none are written otherwise.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Common {
    fn packet_bytes(&self) -> u32 {
        self.packet.unwrap_or(self.format.packet_bytes())
    }

    fn records(&self, endpoint: &str) -> Result<Records> {
        if let Some(dir) = &self.out {
            std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
        }
        let endpoint = endpoint.to_owned();
        Ok(Records { endpoint, dir: self.out.clone(), peer: None, epoch: clock::monotonic() })
    }
}

/// Arguments of `send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// Where each stream goes: a host's or a group's ADDRESS:PORT.
    #[arg(required = true, value_name = "ADDRESS:PORT")]
    destinations: Vec<SocketAddrV4>,
    /// The frame store of each stream, in the same order [default: synthetic frames].
    #[arg(long, value_name = "FILE")]
    store: Vec<PathBuf>,
    /// Synthetic frames: their format [default: 1920x1080; for raster, its SDI raster of
    /// 2200x1125].
    #[arg(long, value_name = "TEXT", conflicts_with = "store")]
    geometry: Option<Geometry>,
    /// Where stores are read from.
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = From::Direct)]
    from: From,
    /// Frames in each stream's ring; fewer if --memory does not allow it [default: 600, for
    /// synthetic frames 60].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    ring: Option<u32>,
    /// Memory for all rings together.
    #[arg(long, value_name = "SIZE", default_value = "4 GB")]
    memory: Bytes,
    /// Stop after the last frame instead of starting over.
    #[arg(long)]
    once: bool,
    /// Limit on the packets of one burst.
    #[arg(long, value_name = "N", default_value_t = send::BURST, value_parser = within(suiro_scenario::UncompressedSender::BURST))]
    burst: u32,
    /// Local address: the packets' source, and for multicast the interface to send from.
    #[arg(long, value_name = "ADDRESS")]
    source: Option<Ipv4Addr>,
    /// Maximum number of hops.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..))]
    ttl: u8,
    /// One call for each packet, instead of one for a burst that the kernel splits (UDP_SEGMENT).
    #[arg(long)]
    no_gso: bool,
    /// As fast as possible, without a schedule.
    #[arg(long)]
    unpaced: bool,
    /// Write a session description of each stream, `stream-N.sdp`, to this folder (st2110 only).
    #[arg(long, value_name = "DIR")]
    sdp: Option<PathBuf>,
    #[arg(long, value_name = "TIME", requires = "sdp", value_parser = within(TROFF), help = TROFF_HELP)]
    troff: Option<Duration>,
    #[command(flatten)]
    common: Common,
}

/// Arguments of `receive`.
#[derive(Debug, Args)]
pub struct ReceiveArgs {
    /// Where to receive each stream: a local or a group's ADDRESS:PORT, or a session description
    /// (.sdp).
    #[arg(required = true, value_name = "ADDRESS:PORT|FILE")]
    streams: Vec<String>,
    /// The frames, if there is no session description [default: as for `send`].
    #[arg(long, value_name = "TEXT")]
    geometry: Option<Geometry>,
    /// Local address of the interface on which to receive groups.
    #[arg(long, value_name = "ADDRESS", default_value_t = Ipv4Addr::UNSPECIFIED)]
    interface: Ipv4Addr,
    /// Receive buffer of each stream, 4 KiB to 1 GB.
    #[arg(long, value_name = "SIZE", default_value = "64 MiB")]
    buffer: Bytes,
    /// Do not verify the frames' checksums, only the packets.
    #[arg(long)]
    no_verify: bool,
    /// Show each frame N frame times after it begins, 4 to 8, as a genlocked converter does, and count the ticks at which
    /// there was no new one. Both hosts' clocks must be synchronised; ticks after the last frame count, too.
    #[arg(long, value_name = "N", value_parser = within(UncompressedReceiver::DELAY))]
    delay: Option<u8>,
    /// Write complete frames to stores, `stream-N.frames`, in this folder, placed by their RTP
    /// timestamps: `join` uses the frames that all stores have, and names a missing one.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Replace existing recordings in the folder.
    #[arg(long, requires = "record")]
    replace: bool,
    #[command(flatten)]
    common: Common,
}

/// `suiro uncompressed send`.
pub fn send(args: &SendArgs) -> Result<Outcome> {
    let stop = stop_flag()?;
    let job = sender_job(args)?;
    if let Some(dir) = &args.sdp {
        if args.common.format != Layouts::St2110 {
            bail!(Usage("--sdp: only streams of st2110 have a session description".to_owned()));
        }
        describe::write(&job, args.troff, dir)?;
    }
    let tell = |rings: &[Ring]| {
        for (stream, ring) in job.streams.iter().zip(rings) {
            let (to, geometry) = (stream.route.destination, ring.header().geometry);
            let ring = told_ring(ring.bound(), ring.header().frames, args);
            say!("stream {} to {to}: {geometry}, {ring}", stream.number);
        }
        say!("press Ctrl-C to stop");
    };
    let totals = match node::send(&job, tell, &mut warn_of_end, &stop) {
        Err(node::Error::Frames { cause: reader::Error::Stopped, .. }) => {
            say!("stopped while the rings were being filled: nothing was sent");
            return Ok(Outcome::Failed);
        }
        totals => totals?,
    };
    tell_sent(&totals, args.common.json)?;
    let well = totals.iter().all(|total| went_well(total, !args.unpaced));
    Ok(if well { Outcome::Done } else { Outcome::Failed })
}

/// Says at once that a stream ends before its time.
fn warn_of_end(stream: u32, reason: &str) {
    say!("{}", suiro_uncompressed::job::end(stream, reason));
}

/// True if a stream was sent as it should be: all of it, to somebody, and where it is `paced`, in time.
pub fn went_well(total: &SentTotal, paced: bool) -> bool {
    let counts = &total.counts;
    let in_time = counts.late == 0 && counts.skipped == 0 && total.repeats == 0;
    let all = counts.frames > 0 && counts.unreachable == 0 && total.failure.is_none();
    all && (in_time || !paced)
}

/// A ring in words: what bounds it, and what of a store is not in memory and so never sent.
fn told_ring(bound: Bound, frames: u64, args: &SendArgs) -> String {
    let mut told = format!("ring of {} frames", bound.frames);
    if bound.frames < bound.asked {
        told += &format!(" of {} asked: {} of memory", bound.asked, args.memory);
        let streams = args.destinations.len();
        if streams > 1 {
            told += &format!(" for {streams} streams");
        }
    }
    if args.from == From::Memory && frames > bound.frames.into() {
        told += &format!(", the first of the store's {frames}");
    }
    told
}

fn sender_job(args: &SendArgs) -> Result<SenderJob> {
    let common = &args.common;
    let count = args.destinations.len();
    if count > STREAMS_MAX {
        bail!(Usage(format!("{count} streams: one process sends {STREAMS_MAX} at most")));
    }
    if !args.store.is_empty() && args.store.len() != count {
        let stores = args.store.len();
        bail!(Usage(format!("{stores} stores for {count} streams: each stream needs its own")));
    }
    let geometry = args.geometry.unwrap_or_else(|| usual(common.format));
    if args.store.is_empty() && !synth::fits(&geometry) {
        let least = synth::STAMP_SAMPLES;
        bail!(Usage(format!("--geometry {geometry}: a row needs {least} samples for the stamp")));
    }
    let usual_ring = if args.store.is_empty() { SYNTHETIC } else { reader::FRAMES };
    let frames = args.ring.unwrap_or(usual_ring);
    let stream = |(number, destination): (usize, &SocketAddrV4)| {
        let source = match args.store.get(number) {
            Some(path) => Source::Store(path.clone()),
            None => Source::Synthetic { geometry, frames },
        };
        let number = number as u32;
        SenderStream {
            number,
            source,
            format: common.format.format(),
            packet_bytes: common.packet_bytes(),
            stream: Stream { payload_type: common.payload_type, ssrc: number + 1 },
            route: Route { destination: *destination, source: args.source, ttl: args.ttl },
        }
    };
    Ok(SenderJob {
        streams: args.destinations.iter().enumerate().map(stream).collect(),
        ring: reader::Options {
            source: match args.from {
                From::Direct => reader::Source::Direct,
                From::Cached => reader::Source::Cached,
                From::Mapped => reader::Source::Mapped,
                From::Memory => reader::Source::Memory,
            },
            frames,
            memory: Bytes::new(args.memory.get() / count as u64),
            repeat: !args.once,
            depth: reader::DEPTH,
            shape: None,
        },
        burst: args.burst,
        segmentation: if args.no_gso { Segmentation::None } else { Segmentation::Kernel },
        options: send::Options { paced: !args.unpaced, cpu: common.cpu, begin: None, until: None },
        duration: common.duration,
        records: common.records("sender")?,
    })
}

/// What is sent by default.
const fn usual(format: Layouts) -> Geometry {
    match format {
        Layouts::St2110 => Geometry::HD,
        Layouts::Raster => Geometry::HD_RASTER,
    }
}

/// Prints what was sent, a line for each stream.
pub fn tell_sent(totals: &[SentTotal], json: bool) -> Result<()> {
    let mut out = crate::say::results();
    for SentTotal { stream, span, counts, repeats, thread, failure } in totals {
        let gbps = rate(counts.bytes, *span);
        if json {
            let row = json!({
                "stream": stream, "seconds": span.as_secs_f64(), "packets": counts.packets,
                "bytes": counts.bytes, "gbps": gbps, "frames": counts.frames, "late": counts.late,
                "late_steal": counts.late_steal, "late_preempted": counts.late_preempted,
                "late_waking": counts.late_waking, "late_no_room": counts.late_no_room,
                "late_load": counts.late_load, "behind_max_ms": counts.behind_max.as_millis_f64(),
                "skipped": counts.skipped, "unreachable": counts.unreachable, "repeats": repeats,
                "thread_seconds": thread.as_secs_f64(), "failure": failure,
            });
            writeln!(out, "{row}")?;
            continue;
        }
        writeln!(
            out,
            "stream {stream}: {gbps:.3} Gbit/s, {} frames, {} late, {} repeated, {} skipped, {} packets \
             unreachable; at most {:.2} ms behind; thread {:.0} % of a CPU",
            counts.frames,
            counts.late,
            repeats,
            counts.skipped,
            counts.unreachable,
            counts.behind_max.as_millis_f64(),
            share(*thread, *span),
        )?;
    }
    Ok(())
}

/// `suiro uncompressed receive`.
pub fn receive(args: &ReceiveArgs) -> Result<Outcome> {
    let stop = stop_flag()?;
    let job = receiver_job(args)?;
    let tell = |addresses: &[SocketAddrV4]| {
        for (stream, address) in job.streams.iter().zip(addresses) {
            say!("stream {} at {address}: {}", stream.number, stream.layout.geometry());
        }
        say!("press Ctrl-C to stop");
    };
    let received = node::receive(&job, tell, &stop)?;
    tell_received(&received, args.common.json)?;
    let well = received.totals.iter().all(|total| came_well(&total.counts));
    let broken = received.recordings.iter().any(|(_, end)| end.written.is_err());
    Ok(if well && !broken { Outcome::Done } else { Outcome::Failed })
}

/// True if a stream came whole and as one sequence. The frames amid which receiving began and ended may be incomplete. Where
/// another sequence began, what was sent before it is unknown: no packet counts as lost.
const fn came_well(counts: &receive::Counts) -> bool {
    let whole = counts.frames > 0 && counts.incomplete <= 2 && counts.corrupt == 0;
    whole && counts.lost == 0 && counts.restarts == 0
}

fn receiver_job(args: &ReceiveArgs) -> Result<ReceiverJob> {
    let common = &args.common;
    if args.streams.len() > STREAMS_MAX {
        let count = args.streams.len();
        bail!(Usage(format!("{count} streams: one process receives {STREAMS_MAX} at most")));
    }
    if let Some(dir) = &args.record {
        recordings_are_new(args, dir)?;
        std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    }
    let streams: Result<_> =
        args.streams.iter().enumerate().map(|(at, text)| receiver_stream(args, at, text)).collect();
    Ok(ReceiverJob {
        streams: streams?,
        buffer_bytes: buffer_bytes(args.buffer)?,
        replace: args.replace,
        warn: |told| say!("{told}"),
        verify: !args.no_verify,
        delay: args.delay,
        options: receive::Options {
            cpu: common.cpu,
            until: common.duration.map(|time| clock::monotonic() + time),
        },
        records: common.records("receiver")?,
    })
}

fn buffer_bytes(buffer: Bytes) -> Result<u32> {
    let bytes = u32::try_from(buffer.get()).ok();
    let bytes = bytes.filter(|bytes| (4096..=BUFFER_MAX_BYTES).contains(bytes));
    bytes.ok_or_else(|| Usage(format!("--buffer \"{buffer}\": 4 KiB to 1 GB can be had")).into())
}

/// An existing recording is not replaced unless that is asked for.
fn recordings_are_new(args: &ReceiveArgs, dir: &Path) -> Result<()> {
    let there = (0..args.streams.len()).map(|at| recording(dir, at)).find(|path| path.exists());
    match there.filter(|_| !args.replace) {
        Some(path) => bail!("{} already exists\nhint: --replace overwrites it", path.display()),
        None => Ok(()),
    }
}

fn recording(dir: &Path, at: usize) -> PathBuf {
    dir.join(format!("stream-{at}.frames"))
}

fn receiver_stream(args: &ReceiveArgs, at: usize, text: &str) -> Result<ReceiverStream> {
    let common = &args.common;
    let mut source = None;
    let (address, geometry, packet_bytes, payload_type) = if text.ends_with(".sdp") {
        if common.format != Layouts::St2110 {
            bail!(Usage(format!(
                "{text}: a session description is of st2110, not of --format raster"
            )));
        }
        let description = read_sdp(Path::new(text))?;
        let path = &description.path;
        let address = SocketAddrV4::new(path.destination, path.port);
        source = path.source;
        let packet = description.datagram_bytes.saturating_add(IP_UDP_BYTES);
        (address, description.geometry, packet, description.payload_type)
    } else {
        let address = text.parse().map_err(|_| {
            Usage(format!("{text:?} is neither an ADDRESS:PORT nor a session description (.sdp)"))
        })?;
        let geometry = args.geometry.unwrap_or_else(|| usual(common.format));
        (address, geometry, common.packet_bytes(), common.payload_type)
    };
    let layout = Layout::new(common.format.format(), &geometry, packet_bytes)?;
    let group = *address.ip();
    let joined =
        group.is_multicast().then_some(Joined { group, interface: args.interface, source });
    let record = args.record.as_ref().map(|dir| recording(dir, at));
    Ok(ReceiverStream { number: at as u32, address, joined, layout, payload_type, record })
}

fn read_sdp(path: &Path) -> Result<Description> {
    let doing = || format!("reading {}", path.display());
    let text = file::read_text(path, sdp::BYTES_MAX as u64).with_context(doing)?;
    text.parse().with_context(|| path.display().to_string())
}

fn tell_received(received: &Received, json: bool) -> Result<()> {
    let mut out = crate::say::results();
    for total in &received.totals {
        let (counts, seen) = (&total.counts, total.evenness);
        let own = received.shown.iter().find(|(stream, _)| *stream == total.stream);
        let shown = own.map(|(_, shown)| shown);
        let late = counts.late_if_known();
        let gbps = rate(counts.bytes, total.span);
        if json {
            let row = json!({
                "stream": total.stream, "seconds": total.span.as_secs_f64(),
                "packets": counts.packets, "bytes": counts.bytes, "gbps": gbps, "lost": counts.lost,
                "dropped": total.dropped, "reordered": counts.reordered,
                "duplicate": counts.duplicate, "replayed": counts.replayed,
                "foreign": counts.foreign, "malformed": counts.malformed,
                "restarts": counts.restarts, "frames": counts.frames,
                "incomplete": counts.incomplete, "damaged": counts.corrupt, "late": late,
                "burst_max": seen.map(|seen| seen.burst_max),
                "over_wide": seen.map(|seen| seen.above_wide),
                "over_narrow": seen.map(|seen| seen.above_narrow),
                "buffer_max": seen.map(|seen| seen.buffer_max),
                "thread_seconds": total.thread.as_secs_f64(),
                "shown": shown.map(|shown| json!({
                    "ticks": shown.ticks, "underruns": shown.underruns, "repeats": shown.repeats,
                    "skipped": shown.skipped,
                })),
            });
            writeln!(out, "{row}")?;
            continue;
        }
        writeln!(
            out,
            "stream {}: {gbps:.3} Gbit/s, {} packets lost, {} frames whole, {} not, {} damaged, {} restarts, {}; {}; \
             thread {:.0} % of a CPU",
            total.stream,
            counts.lost,
            counts.frames,
            counts.incomplete,
            counts.corrupt,
            counts.restarts,
            late.map_or("no common clock".to_owned(), |late| format!("{late} late")),
            seen.map_or("bursts unknown".to_owned(), |seen| {
                let (most, above) = (seen.burst_max, seen.above_wide);
                format!("bursts of at most {most:.0} packets, {above} above the wide limit")
            }),
            share(total.thread, total.span),
        )?;
        if let Some(Tally { ticks, underruns, repeats, skipped }) = shown {
            writeln!(
                out,
                "stream {} shown: {ticks} ticks from the first frame on, {underruns} without a new frame, {repeats} with \
                 a frame that its sender had repeated; {skipped} frames never shown",
                total.stream,
            )?;
        }
    }
    tell_recordings(received);
    Ok(())
}

/// Says what was recorded of each stream.
fn tell_recordings(received: &Received) {
    for (stream, end) in &received.recordings {
        match &end.written {
            Ok(done) => {
                let (path, whole) = (done.path.display(), done.frames - done.missing);
                say!(
                    "stream {stream}: {whole} frames in {path}, {} missing in \
                between",
                    done.missing
                );
            }
            Err(error) => say!("stream {stream}: the recording ended: {error}"),
        }
        let LeftOut { incomplete, slow, ended } = end.left_out;
        if end.left_out != LeftOut::default() {
            say!(
                "stream {stream}: not recorded: {incomplete} frames incomplete, {slow} for a slow disk, {ended} \
                 when the recording had ended"
            );
        }
    }
}

/// Gbit/s.
pub fn rate(bytes: u64, span: Duration) -> f64 {
    if span.is_zero() { 0.0 } else { bytes as f64 * 8.0 / 1e9 / span.as_secs_f64() }
}

fn share(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { 100.0 * (part / whole) }
}

/// Set by Ctrl-C and SIGTERM.
pub fn stop_flag() -> Result<Arc<AtomicBool>> {
    suiro_endpoint::Stop::flag().context("handling signals")
}

#[cfg(test)]
mod tests {
    use suiro_uncompressed::receive::Counts;

    use super::*;

    #[test]
    fn a_stream_whose_sender_restarted_did_not_come_well() {
        // Receiving began and ended amid a frame.
        let well = Counts { frames: 600, incomplete: 2, ..Counts::default() };
        assert!(came_well(&well));
        let faults = [
            // Its clock is not ours, so nothing of the outage counts.
            Counts { restarts: 1, ..well },
            Counts { frames: 0, ..well },
            Counts { incomplete: 3, ..well },
            Counts { corrupt: 1, ..well },
            Counts { lost: 1, ..well },
            Counts { lost: -1, ..well },
        ];
        for counts in faults {
            assert!(!came_well(&counts), "{counts:?}");
        }
    }
}
