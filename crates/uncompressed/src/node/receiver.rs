//! A receiving node: sockets, the thread that receives, recordings and records.

use std::net::{SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

use suiro_record::Writer;
use suiro_record::flows::{End, Flow, FlowLog};
use suiro_record::tables::{UncompressedFrameRow, UncompressedReceivedRow, UncompressedShownRow};
use suiro_record::words::{Carries, FlowRole, Transport};
use suiro_units::Duration;

use super::{Error, Records, TOLD_MAX, rows};
use crate::clock;
use crate::geometry::Geometry;
use crate::measure::Seen;
use crate::output::Tally;
use crate::packet::Layout;
use crate::picture::Raster;
use crate::receive::{self, Counts, Lane, Recording, RecordingEnd, Showing, Told, Track, Wanted};
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
    /// Show each frame so many frame times after it begins, as a converter: table `uncompressed_shown`. `None` for no
    /// output. All streams must have the frame rate of the first; others are not shown.
    pub delay: Option<u8>,
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
    /// CPU time of the thread, for all its streams.
    pub thread: Duration,
}

/// How receiving ended.
#[derive(Debug)]
pub struct Received {
    /// For each stream.
    pub totals: Vec<Total>,
    /// What the outputs showed, with the stream's number.
    pub shown: Vec<(u32, Tally)>,
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
    let mut showing = showing(job, &mut lanes);
    ready(&addresses);
    let ended = std::thread::scope(|scope| {
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let failed = |doing| move |cause| Error::Io { doing, cause };
        let (lanes, options, to_log) = (&mut lanes, &job.options, tell.clone());
        let receiver = named("receiver")
            .spawn_scoped(scope, move || receive::run(lanes, options, stop, &to_log))
            .map_err(failed("starting the receiver"))?;
        let shower = showing.as_mut().map(|showing| {
            named("output")
                .spawn_scoped(scope, move || showing.run(&tell))
                .inspect_err(|_| stop.store(true, Ordering::Relaxed))
        });
        let followed = log.follow(&told);
        // Without a reader, the output ends.
        drop(told);
        if followed.is_err() {
            // Otherwise it would not be noticed before the time is up.
            stop.store(true, Ordering::Relaxed);
        }
        let done = receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let shown = shower
            .transpose()
            .map_err(failed("starting the output"))?
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        followed.and(done.map_err(failed("receiving")))?;
        shown.transpose().map_err(failed("showing frames")).map(|_| ())
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
    let shown = showing.iter().flat_map(Showing::tallies).collect();
    Ok(Received { totals, shown, recordings })
}

/// The outputs of a job that has some, joined to their lanes.
fn showing(job: &ReceiverJob, lanes: &mut [Lane]) -> Option<Showing> {
    let rate = job.streams.first()?.layout.geometry().rate();
    let is_shown = |stream: &&ReceiverStream| stream.layout.geometry().rate() == rate;
    let numbers = || job.streams.iter().filter(is_shown).map(|stream| stream.number);
    let (showing, frames) = Showing::new(clock::epoch(), rate, job.delay?, numbers());
    for lane in lanes.iter_mut().filter(|lane| numbers().any(|number| number == lane.number)) {
        lane.shown_by(frames.clone());
    }
    Some(showing)
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
    shown: Option<Writer<UncompressedShownRow>>,
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
        let shown = dir.filter(|_| job.delay.is_some());
        let shown = shown.map(|dir| Writer::create_of(dir, endpoint));
        Ok(Self {
            job,
            received: received.transpose()?,
            frames: frames.transpose()?,
            shown: shown.transpose()?,
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
                    let period = self.period(number);
                    if let (Some(frames), Some(period)) = (&mut self.frames, period) {
                        frames.push(rows::frame(records, &endpoint, number, period, &frame))?;
                    }
                }
                Told::Shown(number, shown) => {
                    let period = self.period(number);
                    if let (Some(table), Some(period)) = (&mut self.shown, period) {
                        table.push(rows::shown(records, &endpoint, number, period, &shown))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Length of a stream's frame times.
    fn period(&self, number: u32) -> Option<Duration> {
        let own = self.job.streams.iter().find(|stream| stream.number == number)?;
        Some(own.layout.geometry().rate().period())
    }

    fn close(self) -> Result<Vec<Total>, Error> {
        self.received.map(Writer::close).transpose()?;
        self.frames.map(Writer::close).transpose()?;
        self.shown.map(Writer::close).transpose()?;
        Ok(self.totals)
    }
}
