//! A sending node: rings, sockets, the thread that sends, and its records.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

use suiro_record::Writer;
use suiro_record::flows::{End, Flow, FlowLog};
use suiro_record::tables::{UncompressedRingRow, UncompressedSentRow};
use suiro_record::words::{Carries, FlowRole, Transport};
use suiro_units::{Duration, Time};

use super::rows::{self, SentStream};
use super::{Error, Records, TOLD_MAX};
use crate::clock;
use crate::geometry::Geometry;
use crate::packet::{self, Format, Layout};
use crate::reader::{self, Meter, Ring};
use crate::send::{self, Counts, LEAD, Lane, Told};
use crate::socket::{Outlet, Route, Segmentation};
use crate::store::{Content, Header};

/// The source of a stream's frames.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A frame store.
    Store(PathBuf),
    /// Synthetic frames with this geometry; so many are kept in memory and sent repeatedly.
    Synthetic {
        /// Their geometry.
        geometry: Geometry,
        /// How many.
        frames: u32,
    },
}

/// One stream to send.
#[derive(Debug, Clone, PartialEq)]
pub struct SenderStream {
    /// Its number, from 0: the same at its receiver.
    pub number: u32,
    /// The source of its frames.
    pub source: Source,
    /// How packets are formatted.
    pub format: Format,
    /// Largest IP packet in bytes.
    pub packet_bytes: u32,
    /// RTP payload type and synchronisation source.
    pub stream: packet::Stream,
    /// Its destination.
    pub route: Route,
}

/// The configuration of a sending node.
#[derive(Debug, Clone)]
pub struct SenderJob {
    /// The streams, at least one.
    pub streams: Vec<SenderStream>,
    /// How rings are filled.
    pub ring: reader::Options,
    /// Most packets that are sent together.
    pub burst: u32,
    /// Who splits bursts into packets.
    pub segmentation: Segmentation,
    /// How the thread sends.
    pub options: send::Options,
    /// How long to send, from the start of the first frame; `None` until stopped.
    pub duration: Option<Duration>,
    /// Where records go.
    pub records: Records,
}

/// The totals of a stream's sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentTotal {
    /// The stream's number.
    pub stream: u32,
    /// From the first frame's start to the last one's end.
    pub span: Duration,
    /// What was counted.
    pub counts: Counts,
    /// Frames sent again because the next one was not ready.
    pub repeats: u64,
    /// CPU time of the thread, for all its streams.
    pub thread: Duration,
    /// Why its frames ended early; `None` if they did not.
    pub failure: Option<String>,
}

/// Sends until the frames end, the time is up, or `stop` is set. Calls `ready` before the first
/// frame. Calls `warn` with a stream's number and the reason within a second after its reader has
/// failed: the frames left in its ring are sent, then the stream ends.
pub fn send(
    job: &SenderJob,
    ready: impl FnOnce(&[Ring]),
    warn: &mut dyn FnMut(u32, &str),
    stop: &AtomicBool,
) -> Result<Vec<SentTotal>, Error> {
    let rings =
        job.streams.iter().map(|stream| ring(job, stream, stop)).collect::<Result<Vec<_>, _>>()?;
    let layouts: Vec<_> = job
        .streams
        .iter()
        .zip(&rings)
        .map(|(stream, ring)| layout(stream, ring.header()))
        .collect::<Result<_, _>>()?;
    let outlets = job
        .streams
        .iter()
        .zip(&layouts)
        .map(|(stream, layout)| outlet(job, stream, layout))
        .collect::<Result<Vec<_>, _>>()?;
    ready(&rings);
    let meters = rings.iter().map(Ring::meter).collect();
    let epoch = clock::epoch();
    let soon = clock::monotonic() + LEAD;
    let begin = job.options.begin.map_or(soon, |begin| begin.max(soon));
    let mut lanes: Vec<_> = job
        .streams
        .iter()
        .zip(layouts)
        .zip(outlets.into_iter().zip(rings))
        .map(|((stream, layout), (outlet, ring))| {
            let first = epoch.first_from(layout.geometry().rate(), begin);
            let how = (layout, stream.stream);
            Lane::new(stream.number, how, outlet, ring, job.burst, (epoch, first))
        })
        .collect();
    let mut log = Log::create(job, meters, warn)?;
    let (tell, told) = sync_channel(TOLD_MAX);
    let account = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("sender".to_owned());
        let until = job.duration.map(|time| begin + time);
        let options = send::Options { until: job.options.until.or(until), ..job.options };
        let lanes = &mut lanes[..];
        let sender = thread
            .spawn_scoped(scope, move || send::run(lanes, &options, stop, &tell))
            .map_err(|cause| Error::Io { doing: "starting the sender", cause })?;
        // If records cannot be written, the node ends too.
        log.follow(&told).inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        let done = sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        done.map_err(|error| failed(job, error))
    })?;
    let mut totals = log.close()?;
    // The thread's reports may have gaps; the thread and its lanes have the totals.
    for (total, lane) in totals.iter_mut().zip(&lanes) {
        (total.counts, total.span, total.thread) = (lane.counts(), account.span, account.running);
    }
    Ok(totals)
}

/// The error that ended the thread, with the stream that it was sending.
fn failed(job: &SenderJob, error: send::Error) -> Error {
    match error {
        send::Error::Thread(cause) => Error::Io { doing: "sending", cause },
        send::Error::Stream { stream, packet, cause } => {
            let own = job.streams.iter().find(|own| own.number == stream);
            let destination = own.expect("a lane belongs to a stream").route.destination;
            Error::Sending { stream, destination, packet, cause }
        }
    }
}

fn ring(job: &SenderJob, stream: &SenderStream, stop: &AtomicBool) -> Result<Ring, Error> {
    let ring = match &stream.source {
        Source::Store(path) => Ring::open(path, None, &job.ring, stop),
        Source::Synthetic { geometry, frames } => {
            let header = Header { part: stream.number, ..Header::new(*geometry, Content::Picture) };
            Ring::synthetic(&header, *frames, &job.ring, stop)
        }
    };
    ring.map_err(|cause| Error::Frames { stream: stream.number, cause })
}

fn layout(stream: &SenderStream, header: &Header) -> Result<Layout, Error> {
    let geometry = &header.geometry;
    if stream.format == Format::St2110 && header.content == Content::Raster {
        return Err(Error::Raster { stream: stream.number, geometry: *geometry });
    }
    Layout::new(stream.format, geometry, stream.packet_bytes)
        .map_err(|cause| Error::Layout { stream: stream.number, cause })
}

fn outlet(job: &SenderJob, stream: &SenderStream, layout: &Layout) -> Result<Outlet, Error> {
    let (header, datagram) = (layout.header_bytes(), layout.datagram_bytes());
    Ok(Outlet::open(&stream.route, job.segmentation, header, datagram)?)
}

/// The records of a sending node, and its totals.
struct Log<'a> {
    job: &'a SenderJob,
    warn: &'a mut dyn FnMut(u32, &str),
    begun: Time,
    streams: Vec<(SentStream, Meter)>,
    sent: Option<Writer<UncompressedSentRow>>,
    rings: Option<Writer<UncompressedRingRow>>,
    thread: Option<send::ThreadSecond>,
    totals: Vec<SentTotal>,
}

impl<'a> Log<'a> {
    fn create(
        job: &'a SenderJob,
        meters: Vec<Meter>,
        warn: &'a mut dyn FnMut(u32, &str),
    ) -> Result<Self, Error> {
        let Records { endpoint, dir, .. } = &job.records;
        let streams = job.streams.iter().zip(meters).map(|(stream, meter)| {
            let of = SentStream {
                endpoint: job.records.name(),
                destination: Arc::from(stream.route.destination.to_string()),
                segmentation: rows::segmentation(job.segmentation),
            };
            (of, meter)
        });
        let total = |stream: &SenderStream| SentTotal {
            stream: stream.number,
            span: Duration::ZERO,
            counts: Counts::default(),
            repeats: 0,
            thread: Duration::ZERO,
            failure: None,
        };
        let dir = dir.as_deref();
        if let Some(dir) = dir {
            let flow = |stream: &SenderStream| Flow {
                role: FlowRole::Sender,
                protocol: Transport::Udp,
                local: End::Any,
                remote: SocketAddr::V4(stream.route.destination).into(),
                carries: Carries::Video,
                peer: job.records.peer.as_deref().map(Into::into),
            };
            FlowLog::write(dir, endpoint, job.records.now(), job.streams.iter().map(flow))?;
        }
        Ok(Self {
            job,
            warn,
            begun: clock::monotonic(),
            streams: streams.collect(),
            sent: dir.map(|dir| Writer::create_of(dir, endpoint)).transpose()?,
            rings: dir.map(|dir| Writer::create_of(dir, endpoint)).transpose()?,
            thread: None,
            totals: job.streams.iter().map(total).collect(),
        })
    }

    /// Writes the thread's reports until it has ended, and records the rings once a second.
    fn follow(&mut self, told: &Receiver<Told>) -> Result<(), Error> {
        let mut next = self.begun;
        loop {
            let now = clock::monotonic();
            if now >= next {
                self.look(now)?;
                next += Duration::from_secs(1);
            }
            match told.recv_timeout(next.saturating_since(now).into()) {
                Ok(Told::Thread(second)) => self.thread = Some(second),
                Ok(Told::Stream(second)) => self.second(&second)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.look(clock::monotonic())
    }

    fn look(&mut self, now: Time) -> Result<(), Error> {
        let t_ns = self.job.records.t_ns(now);
        for ((of, meter), total) in self.streams.iter_mut().zip(&mut self.totals) {
            let row = meter.row(now, t_ns, &of.endpoint, total.stream);
            total.repeats = row.repeated_frames.cast_unsigned();
            if total.failure.is_none() {
                total.failure = meter.failure();
                if let Some(failure) = &total.failure {
                    (self.warn)(total.stream, failure);
                }
            }
            if let Some(rings) = &mut self.rings {
                rings.push(row)?;
            }
        }
        Ok(())
    }

    fn second(&mut self, second: &send::Second) -> Result<(), Error> {
        let streams = self.streams.iter().zip(&mut self.totals);
        let own = streams.into_iter().find(|(_, total)| total.stream == second.stream);
        let (Some(((of, _), _)), Some(thread)) = (own, &self.thread) else { return Ok(()) };
        if let Some(sent) = &mut self.sent {
            sent.push(rows::sent(&self.job.records, of, second, thread))?;
        }
        Ok(())
    }

    fn close(self) -> Result<Vec<SentTotal>, Error> {
        self.sent.map(Writer::close).transpose()?;
        self.rings.map(Writer::close).transpose()?;
        Ok(self.totals)
    }
}
