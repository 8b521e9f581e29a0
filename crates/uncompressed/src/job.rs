//! Streams as endpoints of a trial: what runs the kinds `uncompressed-sender` and `uncompressed-receiver`.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use crate::node::{
    self, ReaderJob, ReceiverJob, ReceiverStream, Records, SenderJob, SenderStream, Source,
};
use crate::packet::{Format, Layout, PAYLOAD_TYPE, Stream};
use crate::reader::Shape;
use crate::socket::{Joined, Route, Segmentation};
use crate::store::{Content, Header, Recorder};
use crate::{Geometry, reader, receive, send, synth};
use suiro_endpoint::net::address_now;
use suiro_endpoint::{Context, Failure, Stop, Summary};
use suiro_scenario::{
    Job, UncompressedFormat, UncompressedPicture, UncompressedReceiver, UncompressedSender,
    UncompressedSource,
};
use suiro_units::{Bytes, Time};

/// Memory that the frames of one endpoint may have at most: 600 of a raster have 3.7 GB.
const MEMORY_MAX: Bytes = Bytes::new(4_000_000_000);
/// Endpoints that the machine's memory is for: eight senders then use half of it at most.
const SHARES: u64 = 16;

/// Runs an `uncompressed-sender` until SIGTERM.
///
/// # Errors
/// If the job is not one, its frames cannot be had or end early, or a record cannot be written.
pub fn run_sender(job: &Job, context: Context) -> Result<Summary, Failure> {
    let spec: &UncompressedSender =
        job.endpoint.spec.downcast().ok_or("it is not an uncompressed sender's job")?;
    let log = context.log;
    let (pulse, ready, _) = context.parts();
    if let UncompressedSource::Storage { send: false, .. } = spec.source {
        return pulse.beside(|| read(job, spec, ready));
    }
    let stop = Stop::flag()?;
    let (format, full) = what(spec.format);
    let geometry = picture(spec.picture, full);
    let (source, read, shape) = source(job, spec, &geometry)?;
    let stream = SenderStream {
        number: spec.stream.into(),
        source: source.clone(),
        format,
        packet_bytes: bytes(spec.packet),
        stream: Stream { payload_type: PAYLOAD_TYPE, ssrc: u32::from(spec.stream) + 1 },
        route: Route { destination: destination(job, spec)?, source: None, ttl: 16 },
    };
    let work = SenderJob {
        streams: vec![stream],
        ring: ring(spec, read, shape),
        burst: spec.burst,
        segmentation: Segmentation::Kernel,
        options: send::Options {
            paced: true,
            cpu: spec.cpu.and_then(suiro_endpoint::cpu::nth),
            begin: Some(begin(job, spec)),
            until: None,
        },
        duration: None,
        records: Records { peer: spec.to.clone(), ..records(job) },
    };
    let mut ended = |stream, reason: &str| log(&end(stream, reason));
    let totals =
        pulse.beside(|| node::send(&work, |_| ready(), &mut ended, &stop).map_err(Failure::from));
    if let Source::Store(path) = source {
        let _ = std::fs::remove_file(path);
    }
    let totals = totals?;
    if let Some(failure) = totals.iter().find_map(|total| total.failure.as_ref()) {
        return Err(format!("the frames ended: {failure}").into());
    }
    Ok(Summary::of(&totals))
}

/// The group, or the address of the receiver.
fn destination(job: &Job, spec: &UncompressedSender) -> Result<SocketAddrV4, Failure> {
    let port = UncompressedReceiver::port(spec.stream);
    if let Some(group) = spec.group {
        return Ok(SocketAddrV4::new(group, port));
    }
    let peer = spec.to.as_ref().and_then(|to| job.peers.get(to));
    let host = &peer.ok_or("a sender's job names its receiver")?.host;
    Ok(SocketAddrV4::new(address_now(host)?, port))
}

/// Only reads the frames of an `uncompressed-sender`, until SIGTERM.
fn read(job: &Job, spec: &UncompressedSender, ready: impl FnOnce()) -> Result<Summary, Failure> {
    let stop = Stop::flag()?;
    let geometry = picture(spec.picture, what(spec.format).1);
    let (source, read, shape) = source(job, spec, &geometry)?;
    let Source::Store(path) = source else { return Err("only a storage is read".into()) };
    let work = ReaderJob {
        stores: vec![(spec.stream.into(), path.clone())],
        ring: ring(spec, read, shape),
        begin: Some(begin(job, spec)),
        duration: None,
        records: Records { peer: spec.to.clone(), ..records(job) },
    };
    let totals = node::read(&work, |_| ready(), &stop);
    let _ = std::fs::remove_file(path);
    Ok(Summary::of(&totals?))
}

fn ring(
    spec: &UncompressedSender,
    source: reader::Source,
    shape: Option<Shape>,
) -> reader::Options {
    let (frames, depth) = (spec.ring.unwrap_or(spec.frames), reader::DEPTH);
    let memory = memory();
    reader::Options { source, frames, memory, repeat: true, depth, shape }
}

/// Memory that the frames of one endpoint may have on this machine.
fn memory() -> Bytes {
    let told = rustix::system::sysinfo();
    let bytes = (told.totalram as u64).saturating_mul(told.mem_unit.into());
    MEMORY_MAX.min(Bytes::new(bytes / SHARES))
}

fn begin(job: &Job, spec: &UncompressedSender) -> Time {
    Time::from_nanos(job.epoch_monotonic_ns) + spec.begin
}

/// Runs an `uncompressed-receiver` until SIGTERM.
///
/// # Errors
/// If the job is not one, an address cannot be had, or a record cannot be written.
pub fn run_receiver(job: &Job, context: Context) -> Result<Summary, Failure> {
    let spec: &UncompressedReceiver =
        job.endpoint.spec.downcast().ok_or("it is not an uncompressed receiver's job")?;
    let warn = context.log;
    let (pulse, ready, _) = context.parts();
    let stop = Stop::flag()?;
    let (format, full) = what(spec.format);
    let geometry = picture(spec.picture, full);
    // Whatever size its packets have: this one is for computing how many are lost.
    let layout = Layout::new(format, &geometry, 8800)?;
    let stream = |(at, number): (usize, &u8)| {
        let joined = joined(job, spec, at)?;
        let at = joined.map_or(Ipv4Addr::UNSPECIFIED, |joined| joined.group);
        Ok(ReceiverStream {
            number: (*number).into(),
            address: SocketAddrV4::new(at, UncompressedReceiver::port(*number)),
            joined,
            layout,
            payload_type: PAYLOAD_TYPE,
            record: None,
        })
    };
    let work = ReceiverJob {
        streams: spec.streams.iter().enumerate().map(stream).collect::<Result<_, Failure>>()?,
        buffer_bytes: bytes(spec.buffer),
        replace: false,
        warn,
        verify: spec.verify,
        delay: Some(spec.delay),
        options: receive::Options { cpu: spec.cpu.and_then(suiro_endpoint::cpu::nth), until: None },
        // Who sends to a group records the flow.
        records: Records {
            peer: if spec.groups.is_empty() { records(job).peer } else { Some(String::new()) },
            ..records(job)
        },
    };
    let received =
        pulse.beside(|| node::receive(&work, |_| ready(), &stop).map_err(Failure::from))?;
    Ok(Summary::of(&received))
}

/// The group that the stream number `at` of a receiver comes in, if it is one.
fn joined(job: &Job, spec: &UncompressedReceiver, at: usize) -> Result<Option<Joined>, Failure> {
    let Some(group) = spec.groups.get(at).copied() else { return Ok(None) };
    let source = spec.sources.get(at).map(|name| {
        let sender = job.peers.get(name).ok_or("a receiver's job names its sources")?;
        Ok::<_, Failure>(address_now(&sender.host)?)
    });
    let (interface, source) = (Ipv4Addr::UNSPECIFIED, source.transpose()?);
    Ok(Some(Joined { group, interface, source }))
}

/// Where the frames come from: of a storage, the file is written first.
fn source(
    job: &Job,
    spec: &UncompressedSender,
    geometry: &Geometry,
) -> Result<(Source, reader::Source, Option<Shape>), Failure> {
    let UncompressedSource::Storage { rate, latency, copies, .. } = spec.source else {
        let source = Source::Synthetic { geometry: *geometry, frames: spec.frames };
        return Ok((source, reader::Source::Memory, None));
    };
    let path = job.dir.join(format!("{}.frames", job.endpoint.name));
    store(&path, geometry, spec.frames, spec.stream.into())?;
    let shape = Shape { rate, latency, later: None };
    let read = if copies { reader::Source::Cached } else { reader::Source::Mapped };
    Ok((Source::Store(path), read, Some(shape)))
}

/// Writes so many synthetic frames of a stream into a new store.
///
/// # Errors
/// If the file cannot be written.
pub fn store(path: &Path, geometry: &Geometry, frames: u32, stream: u16) -> Result<(), Failure> {
    let header = Header::new(*geometry, Content::Picture);
    let mut recorder = Recorder::create(path, header)?;
    let mut frame = vec![0; geometry.frame_bytes()];
    for number in 0..u64::from(frames) {
        synth::draw(geometry, number, stream, &mut frame);
        recorder.write(&frame)?;
    }
    recorder.finish()?;
    Ok(())
}

/// The format of packets, and of full images.
pub const fn what(format: UncompressedFormat) -> (Format, Geometry) {
    match format {
        UncompressedFormat::Raster => (Format::Raster, Geometry::HD_RASTER),
        UncompressedFormat::St2110 => (Format::St2110, Geometry::HD),
    }
}

/// The images that a scenario names; `full` for the full ones.
pub fn picture(picture: UncompressedPicture, full: Geometry) -> Geometry {
    match picture {
        UncompressedPicture::Full => full,
        other => Geometry::new(other.size(), full.sampling(), full.depth(), full.rate())
            .expect("the sizes of scenarios are images"),
    }
}

fn bytes(size: Bytes) -> u32 {
    u32::try_from(size.get()).expect("the scenario was checked")
}

fn records(job: &Job) -> Records {
    Records {
        endpoint: job.endpoint.name.clone(),
        dir: Some(job.dir.clone()),
        peer: job.referring().next().map(|(name, _)| name.to_owned()),
        epoch: Time::from_nanos(job.epoch_monotonic_ns),
    }
}

/// A stream that ends before it was asked to, in words.
pub fn end(stream: u32, reason: &str) -> String {
    format!("stream {stream} ends early: {reason}")
}
