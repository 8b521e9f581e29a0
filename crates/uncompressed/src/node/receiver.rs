//! A receiving node: sockets, the thread that receives, recordings and records.

use std::net::{SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

use suiro_record::Writer;
use suiro_record::flows::{End, Flow, FlowLog};
use suiro_record::tables::{UncompressedFrameRow, UncompressedReceivedRow};
use suiro_record::words::{Carries, FlowRole, Transport};
use suiro_units::Duration;

use super::{Error, Records, TOLD_MAX, rows};
use crate::clock;
use crate::geometry::Geometry;
use crate::measure::Seen;
use crate::packet::Layout;
use crate::picture::Raster;
use crate::receive::{self, Counts, Lane, Recording, RecordingEnd, Told, Track, Wanted};
use crate::socket::{Inlet, Joined};
use crate::store::{self, Content, Header};

/// One stream to receive.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiverStream {
    /// Its number, from 0: the same at its sender.
    pub number: u32,
    /// A local address, or a group, and the port.
    pub address: SocketAddrV4,
    /// The group to join.
    pub joined: Option<Joined>,
    /// How its packets are formatted, whatever size its sender gives them.
    pub layout: Layout,
    /// RTP payload type.
    pub payload_type: u8,
    /// The store to record into.
    pub record: Option<PathBuf>,
}

/// A callback for what a user should know immediately.
pub type Warn = fn(&str);

/// The configuration of a receiving node.
#[derive(Debug, Clone)]
pub struct ReceiverJob {
    /// The streams, at least one.
    pub streams: Vec<ReceiverStream>,
    /// Receive buffer of each socket in bytes.
    pub buffer_bytes: u32,
    /// Replace existing recordings; otherwise an existing one is an error.
    pub replace: bool,
    /// Called by the writing thread when a recording ends early.
    pub warn: Warn,
    /// Compute every frame's checksum and compare it with its sender's.
    pub verify: bool,
    /// How the thread receives.
    pub options: receive::Options,
    /// Where records go.
    pub records: Records,
}

/// The totals of a stream's receiver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Total {
    /// The stream's number.
    pub stream: u32,
    /// How long it was received.
    pub span: Duration,
    /// What was counted.
    pub counts: Counts,
    /// How often packets found the socket's buffer full: packets that the kernel had coalesced
    /// count once.
    pub dropped: u32,
    /// How evenly packets arrived; `None` if no complete frame arrived before the last one.
    pub evenness: Option<Seen>,
    /// Processor time of the thread, for all its streams.
    pub thread: Duration,
}

/// How receiving ended.
#[derive(Debug)]
pub struct Received {
    /// For each stream.
    pub totals: Vec<Total>,
    /// How the recordings ended, with the stream's number.
    pub recordings: Vec<(u32, RecordingEnd)>,
}

/// Receives until the time is up or `stop` is set. Calls `ready` with the addresses when all
/// sockets are open.
///
/// # Errors
/// If a socket or a store cannot be opened, receiving fails, or the records cannot be written: then
/// `stop` is set at once. Recordings are closed properly all the same.
pub fn receive(
    job: &ReceiverJob,
    ready: impl FnOnce(&[SocketAddrV4]),
    stop: &AtomicBool,
) -> Result<Received, Error> {
    let mut lanes =
        job.streams.iter().map(|stream| lane(job, stream)).collect::<Result<Vec<_>, _>>()?;
    let addresses: Vec<_> = lanes.iter().map(Lane::address).collect();
    let mut log = Log::create(job)?;
    let (tell, told) = sync_channel(TOLD_MAX);
    ready(&addresses);
    let ended = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("receiver".to_owned());
        let (lanes, options) = (&mut lanes, &job.options);
        let receiver = thread
            .spawn_scoped(scope, move || receive::run(lanes, options, stop, &tell))
            .map_err(|cause| Error::Io { doing: "starting the receiver", cause })?;
        let followed = log.follow(&told);
        if followed.is_err() {
            // Otherwise it would not be noticed before the time is up.
            stop.store(true, Ordering::Relaxed);
        }
        let done = receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        followed.and(done.map_err(|cause| Error::Io { doing: "receiving", cause }))
    });
    let recordings = job.streams.iter().zip(&mut lanes);
    let recordings = recordings
        .filter_map(|(stream, lane)| Some((stream.number, lane.end_recording()?)))
        .collect();
    ended?;
    let mut totals = log.close()?;
    // The thread's reports may have gaps; the lanes have the totals.
    for (total, lane) in totals.iter_mut().zip(&lanes) {
        (total.counts, total.dropped) = (*lane.counts(), lane.dropped());
    }
    Ok(Received { totals, recordings })
}

fn lane(job: &ReceiverJob, stream: &ReceiverStream) -> Result<Lane, Error> {
    let inlet = Inlet::open(stream.address, stream.joined.as_ref(), job.buffer_bytes)?;
    let (warn, number) = (job.warn, stream.number);
    let recording = stream.record.as_ref().map(|path| {
        let geometry = *stream.layout.geometry();
        let header = Header::new(geometry, content(&geometry));
        let failed = move |error: &store::Error| {
            warn(&format!("stream {number}: the recording ended: {error}"));
        };
        Recording::create(path, header, job.replace, failed)
    });
    let wanted = Wanted { verify: job.verify, pictures: recording.is_some() };
    let track = Track::new(stream.layout, stream.payload_type, clock::epoch(), wanted);
    Ok(Lane::new(stream.number, inlet, track, recording.transpose()?))
}

/// What frames of this size are assembled for.
fn content(geometry: &Geometry) -> Content {
    match Raster::of_total(geometry) {
        Some(_) => Content::Raster,
        None => Content::Picture,
    }
}

/// The records of a receiving node, and its totals.
struct Log<'a> {
    job: &'a ReceiverJob,
    received: Option<Writer<UncompressedReceivedRow>>,
    frames: Option<Writer<UncompressedFrameRow>>,
    totals: Vec<Total>,
}

impl<'a> Log<'a> {
    fn create(job: &'a ReceiverJob) -> Result<Self, Error> {
        let Records { endpoint, dir, .. } = &job.records;
        let dir = dir.as_deref();
        // A sender of the trial records its flows.
        if let Some(dir) = dir.filter(|_| job.records.peer.is_none()) {
            let flow = |stream: &ReceiverStream| Flow {
                role: FlowRole::Receiver,
                protocol: Transport::Udp,
                local: SocketAddr::V4(stream.address).into(),
                remote: End::Any,
                carries: Carries::Video,
                peer: None,
            };
            FlowLog::write(dir, endpoint, job.records.now(), job.streams.iter().map(flow))?;
        }
        let total = |stream: &ReceiverStream| Total {
            stream: stream.number,
            span: Duration::ZERO,
            counts: Counts::default(),
            dropped: 0,
            evenness: None,
            thread: Duration::ZERO,
        };
        let received = dir.map(|dir| Writer::create_of(dir, endpoint));
        let frames = dir.map(|dir| Writer::create_of(dir, endpoint));
        Ok(Self {
            job,
            received: received.transpose()?,
            frames: frames.transpose()?,
            totals: job.streams.iter().map(total).collect(),
        })
    }

    fn follow(&mut self, told: &Receiver<Told>) -> Result<(), Error> {
        let (records, endpoint) = (&self.job.records, self.job.records.name());
        for told in told {
            match told {
                Told::Second(second) => {
                    let own = self.totals.iter_mut().find(|total| total.stream == second.stream);
                    if let Some(total) = own {
                        total.span += second.span;
                        total.thread += second.running;
                        total.evenness = Seen::both(total.evenness, second.evenness);
                    }
                    if let Some(received) = &mut self.received {
                        received.push(rows::received(records, &endpoint, &second))?;
                    }
                }
                Told::Frame(number, frame) => {
                    let own = self.job.streams.iter().find(|stream| stream.number == number);
                    if let (Some(frames), Some(stream)) = (&mut self.frames, own) {
                        let period = stream.layout.geometry().rate().period();
                        frames.push(rows::frame(records, &endpoint, number, period, &frame))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn close(self) -> Result<Vec<Total>, Error> {
        self.received.map(Writer::close).transpose()?;
        self.frames.map(Writer::close).transpose()?;
        Ok(self.totals)
    }
}
