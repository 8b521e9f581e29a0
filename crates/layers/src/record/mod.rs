//! The recorder: a thread in the chosen namespace that attaches the probes, empties their buffer a hundred times a
//! second, and writes down what it finds.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use libbpf_rs::{RingBuffer, RingBufferBuilder};
use suiro_clock::kernel;
use suiro_record::{RecordError, Text};

use crate::clock::discipline;
use crate::errno;
use crate::event::{Cost, Moment, Point, PointStatus, Protocol, Recording, Second};
use crate::flow::FlowFilter;
use crate::namespace::{Namespace, NamespaceError, ports_of};
use crate::probe::raw::{RAW_BYTES, Raw};
use crate::probe::schedule::{Schedule, Sums};
use crate::probe::settings::{FILTERS_MAX, Settings};
use crate::probe::timing::Timing;
use crate::probe::{Kernel, ProbeError, Probes, why_missing};

use cost::Sampling;
use file::EventWriter;
use reading::Reading;
use spool::Spool;

mod cost;
mod file;
mod intake;
mod live;
mod queues;
mod reading;
mod spool;

pub use file::{FileError, of_rows};
pub use live::LiveTap;

/// Interval between two readings of the buffer, which holds a second of 100,000 packets/s. A longer interval is not
/// cheaper, because older events are no longer in the CPU's cache.
const PERIOD: StdDuration = StdDuration::from_millis(10);
/// Most raw events that are taken before they are written.
const BATCH: usize = 1 << 16;
const SECOND_NS: u64 = 1_000_000_000;

/// What to record, and where to write it.
#[derive(Debug)]
pub struct RecorderSpec {
    /// The host's name in the records.
    pub host: String,
    /// The flows; 1 to 8.
    pub flows: Vec<FlowFilter>,
    /// Restricts to sockets of this process, and its threads.
    pub process: Option<u32>,
    /// The network namespace; the calling thread's by default.
    pub namespace: Option<Namespace>,
    /// Trace system calls, which costs every system call on the machine a little. Without it, [`Point::SendCall`] is
    /// not recorded.
    pub system_calls: bool,
    /// The folder, which must exist.
    pub dir: PathBuf,
    /// Inserted between `layers` and the extension in file names; nothing by default.
    pub name: Option<String>,
}

/// Why a recording failed.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// No flow, or too many.
    #[error("flows: expected 1 to 8, found {0}\nhint: combine flows with wildcards")]
    Flows(usize),
    /// The namespace or the process.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The kernel.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The files.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that describes the machine.
    #[error("{path}: {cause}")]
    System {
        /// The file.
        path: &'static str,
        /// The system's error.
        cause: std::io::Error,
    },
    /// Its owner dropped it.
    #[error("the recorder was dropped before it began")]
    NotBegun,
    /// The thread could not be started.
    #[error("starting the recorder's thread: {0}")]
    Thread(std::io::Error),
}

impl From<libbpf_rs::Error> for RecorderError {
    fn from(error: libbpf_rs::Error) -> Self {
        Self::Probe(error.into())
    }
}

impl From<RecordError> for RecorderError {
    fn from(error: RecordError) -> Self {
        Self::File(error.into())
    }
}

/// The result of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The recording without its events, which are on disk.
    pub recording: Recording,
    /// Passages written.
    pub events: u64,
}

/// A recorder whose probes are attached but which does not record yet. Attaching takes some 100 ms, which is best done
/// before a trial begins. When dropped, it detaches the probes.
#[derive(Debug)]
pub struct Prepared {
    begin: Sender<Begin>,
    recorder: Recorder,
}

/// When a recording begins, and the zero of its times.
#[derive(Debug, Clone, Copy)]
struct Begin {
    start: Moment,
    epoch_ns: u64,
}

/// A recording in progress.
#[derive(Debug)]
pub struct Recorder {
    stop: Sender<()>,
    points: Vec<PointStatus>,
    thread: JoinHandle<Result<Recorded, RecorderError>>,
}

impl Prepared {
    /// Attaches the probes.
    ///
    /// # Errors
    /// Invalid flows, no such process or namespace, missing privileges, a kernel without support, or files that cannot
    /// be written.
    pub fn new(spec: RecorderSpec) -> Result<Self, RecorderError> {
        if spec.flows.is_empty() || spec.flows.len() > FILTERS_MAX {
            return Err(RecorderError::Flows(spec.flows.len()));
        }
        let namespace = match (&spec.namespace, spec.process) {
            (None, Some(process)) => Namespace::of_process(process)?,
            (None, None) => Namespace::current()?,
            (Some(_), _) => spec.namespace.expect("it is there"),
        };
        let RecorderSpec { host, flows, process, system_calls, dir, name, .. } = spec;
        let target = Target { host, flows, process, system_calls };
        let (stop, stopped) = channel();
        let (begin, begins) = channel();
        let (ready, is_ready) = channel();
        let run = move || {
            let work = match Work::into_files(target, &namespace, &dir) {
                Ok(work) => work,
                Err(error) => return Err(drop_and(ready, error)),
            };
            // The requester waits below.
            let _ = ready.send(work.points());
            work.run(&begins, &stopped, &Files { dir, name })
        };
        let thread = std::thread::Builder::new().name("layers".into()).spawn(run);
        let thread = thread.map_err(RecorderError::Thread)?;
        match is_ready.recv() {
            Ok(points) => Ok(Self { begin, recorder: Recorder { stop, points, thread } }),
            Err(_) => match thread.join() {
                Ok(Err(error)) => Err(error),
                Ok(Ok(_)) => unreachable!("it reports that it is ready before it ends"),
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
    }

    /// Starts to record now; `t_ns` of the table counts from `epoch_monotonic_ns` (CLOCK_MONOTONIC), or else from now.
    /// Everything that passes from here on is recorded; a few packets of the last 10 ms may be included.
    pub fn start(self, epoch_monotonic_ns: Option<u64>) -> Recorder {
        let start = Moment::now();
        let epoch_ns = epoch_monotonic_ns.unwrap_or(start.monotonic_ns);
        // If the recorder has ended, stopping it gives the reason.
        let _ = self.begin.send(Begin { start, epoch_ns });
        self.recorder
    }
}

impl Recorder {
    /// Starts at once. When this returns, the probes are attached.
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub fn start(spec: RecorderSpec) -> Result<Self, RecorderError> {
        Ok(Prepared::new(spec)?.start(None))
    }

    /// The watched points, and why the others are not watched.
    pub fn points(&self) -> &[PointStatus] {
        &self.points
    }

    /// True if it ended by itself, with an error that [`Recorder::stop`] returns.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the recording; when this returns, the files are complete.
    ///
    /// # Errors
    /// What went wrong during the recording.
    pub fn stop(self) -> Result<Recorded, RecorderError> {
        // If it has already ended, it does not receive this.
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The sender is dropped first, so that a waiting caller sees the error.
fn drop_and<T>(ready: Sender<T>, error: RecorderError) -> RecorderError {
    drop(ready);
    error
}

/// The destination of raw events.
trait Sink {
    /// Takes events.
    fn take(&mut self, raw: &[u8]) -> Result<(), RecorderError>;
}

/// What is watched.
#[derive(Debug)]
struct Target {
    host: String,
    flows: Vec<FlowFilter>,
    process: Option<u32>,
    system_calls: bool,
}

/// The state of the recorder's thread.
struct Work<S> {
    target: Target,
    probes: Probes,
    ring: RingBuffer<'static>,
    raw: Rc<RefCell<Vec<u8>>>,
    sink: S,
    schedule: Schedule,
    /// At the beginning of the current second.
    sums: Sums,
    /// The number of the current second.
    second: u32,
    /// The seconds that were not handed over yet.
    scheduling: Vec<Second>,
    start: Moment,
    cpu_start_ns: u64,
    /// The kernel's timing of the programs.
    sampling: Sampling,
}

impl<S: Sink> Work<S> {
    /// Attaches the probes. `sink` receives the kernel's names of drop reasons.
    fn start(
        target: Target,
        namespace: &Namespace,
        sink: impl FnOnce(BTreeMap<u16, Text>) -> Result<S, RecorderError>,
    ) -> Result<Self, RecorderError> {
        namespace.enter()?;
        let kernel = Kernel::read().map_err(ProbeError::from)?;
        let settings = Settings {
            namespace_inode: namespace.inode(),
            process: target.process,
            drops_name_socket: kernel.drops_name_socket(),
            reads_pages: true,
            flows: &target.flows,
        };
        let probes = Probes::attach(&kernel, &settings, target.system_calls)?;
        let raw = Rc::new(RefCell::new(Vec::with_capacity(BATCH * RAW_BYTES)));
        let taken = Rc::clone(&raw);
        let events = probes.map("events")?;
        let mut builder = RingBufferBuilder::new();
        builder.add(&events, move |bytes| {
            let event: &[u8; RAW_BYTES] = bytes.first_chunk().expect("events have one length");
            taken.borrow_mut().extend_from_slice(event);
            0
        })?;
        let ring = builder.build()?;
        let schedule = Schedule::of(&probes)?;
        let start = Moment::now();
        let work = Self {
            probes,
            ring,
            raw,
            sink: sink(kernel.drop_reasons().into_iter().chain(errno::causes()).collect())?,
            sums: schedule.sums(start.monotonic_ns, &Sums::default())?,
            schedule,
            second: 0,
            scheduling: Vec::new(),
            start,
            cpu_start_ns: kernel::thread_cpu_ns(),
            sampling: Sampling::Waiting,
            target,
        };
        work.open_ports()?;
        Ok(work)
    }

    /// Takes what the buffer holds, at most one batch. Returns the number of events.
    fn take(&mut self) -> Result<usize, RecorderError> {
        let taken = self.consume()?;
        let mut raw = self.raw.take();
        self.sampling.count(&raw);
        let result = self.sink.take(&raw);
        raw.clear();
        self.raw.replace(raw);
        result.map(|()| taken)
    }

    /// Discards all events except those of the latest reading.
    fn discard(&mut self) -> Result<(), RecorderError> {
        loop {
            self.raw.borrow_mut().clear();
            if self.consume()? < BATCH {
                return Ok(());
            }
        }
    }

    fn consume(&mut self) -> Result<usize, RecorderError> {
        let taken = self.ring.consume_raw_n(BATCH);
        if taken < 0 {
            return Err(libbpf_rs::Error::from_raw_os_error(-taken).into());
        }
        Ok(taken.unsigned_abs() as usize)
    }

    /// Takes everything in the buffer, and starts or ends the sample of the recording's cost.
    fn take_all(&mut self) -> Result<(), RecorderError> {
        let taken = self.empty()?;
        if taken > 0 && self.sampling.waits() {
            let timing = Timing::start();
            // Events up to here were not timed.
            self.empty()?;
            self.sampling.begin(timing, &self.probes, kernel::monotonic_ns());
        }
        self.sampling.look(&self.probes, kernel::monotonic_ns());
        Ok(())
    }

    fn empty(&mut self) -> Result<usize, RecorderError> {
        let mut all = 0;
        loop {
            let taken = self.take()?;
            all += taken;
            if taken < BATCH {
                return Ok(all);
            }
        }
    }

    /// The cost so far, without the packets, which are counted when the events are read.
    fn cost(&self) -> Cost {
        let kernel = self.sampling.told();
        Cost {
            packets: 0,
            recorder_ns: kernel::thread_cpu_ns() - self.cpu_start_ns,
            writing_ns: 0,
            kernel: kernel.as_ref().ok().copied(),
            kernel_missing: kernel.err(),
        }
    }

    /// What the programs still held when they were detached.
    fn take_rest(&mut self) -> Result<(), RecorderError> {
        let rest = self.probes.unfinished()?;
        self.sink.take(&rest)
    }

    fn next_second_ns(&self) -> u64 {
        self.start.monotonic_ns + (u64::from(self.second) + 1) * SECOND_NS
    }

    /// A late recorder assigns the sum so far to the first of the missing seconds.
    fn second_ends(&mut self, now_ns: u64) -> Result<(), RecorderError> {
        let sums = self.schedule.sums(now_ns, &self.sums)?;
        self.scheduling.push(sums.since(&self.sums, self.second));
        self.second += 1;
        self.sums = sums;
        self.open_ports()
    }

    /// Passes to the programs the ports that the process has open now.
    fn open_ports(&self) -> Result<(), RecorderError> {
        let Some(process) = self.target.process else { return Ok(()) };
        // A process that has ended opens no more.
        let ports = match ports_of(process) {
            Ok(ports) => ports,
            Err(_) if self.second > 0 => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        self.probes.allow_ports(ports.into_iter().map(|(protocol, port)| {
            let number = match protocol {
                Protocol::Udp => libc::IPPROTO_UDP,
                Protocol::Tcp => libc::IPPROTO_TCP,
            };
            (number as u32) << 16 | u32::from(port)
        }))?;
        Ok(())
    }

    fn points(&self) -> Vec<PointStatus> {
        let missing = |point| why_missing(point, self.probes.missing());
        let status =
            |point| PointStatus { point, missing: missing(point), events: 0, lost: 0, skipped: 0 };
        Point::ALL.map(status).into()
    }

    /// The recording so far, without its events and what is derived from them. Seconds are handed over once.
    fn recording(&mut self) -> Result<Recording, RecorderError> {
        let counters = self.probes.counters()?;
        let skipped = self.probes.skipped().unwrap_or_default();
        let mut points = self.points();
        for status in &mut points {
            status.lost = counters.lost(status.point);
            status.skipped = skipped.get(&status.point).copied().unwrap_or(0);
            // For UDP, these are reported in the event of the next point.
            if matches!(status.point, Point::SendCall | Point::SendTransport) {
                status.lost += counters.lost(Point::SendIp);
            }
        }
        Ok(Recording {
            host: self.target.host.clone(),
            boot_id: system("/proc/sys/kernel/random/boot_id")?,
            kernel: system("/proc/sys/kernel/osrelease")?,
            start: self.start,
            end: Moment::now(),
            pauses: Vec::new(),
            asked: self.target.flows.iter().map(FlowFilter::to_string).collect(),
            flows: Vec::new(),
            causes: Vec::new(),
            points,
            fragments: counters.fragments(),
            unjoined: 0,
            unplaced: 0,
            scheduling: std::mem::take(&mut self.scheduling),
            clock: None,
            cost: Some(self.cost()),
            events: Vec::new(),
        })
    }
}

/// The files of a recording.
struct Files {
    dir: PathBuf,
    name: Option<String>,
}

/// A spool, and the kernel's names of reasons for drops.
struct Raws {
    spool: Spool,
    causes: BTreeMap<u16, Text>,
}

impl Sink for Raws {
    fn take(&mut self, raw: &[u8]) -> Result<(), RecorderError> {
        Ok(self.spool.push(raw)?)
    }
}

impl Work<Raws> {
    /// Attaches the probes for a recording into files.
    fn into_files(
        target: Target,
        namespace: &Namespace,
        dir: &Path,
    ) -> Result<Self, RecorderError> {
        Self::start(target, namespace, |causes| Ok(Raws { spool: Spool::create(dir)?, causes }))
    }

    /// Discards what passes until the recording begins. Returns the zero of its times.
    fn wait(&mut self, begins: &Receiver<Begin>) -> Result<u64, RecorderError> {
        loop {
            match begins.recv_timeout(PERIOD) {
                Ok(Begin { start, epoch_ns }) => {
                    self.start = start;
                    // It may have begun just before the latest reading.
                    let is_new = |raw: &[u8; RAW_BYTES]| {
                        Raw::parse(raw).is_some_and(|raw| raw.t_ns >= start.monotonic_ns)
                    };
                    let held = self.raw.take();
                    let kept = held.as_chunks().0.iter().filter(|raw| is_new(raw)).flatten();
                    self.raw.replace(kept.copied().collect());
                    self.cpu_start_ns = kernel::thread_cpu_ns();
                    self.sums = self.schedule.sums(start.monotonic_ns, &self.sums)?;
                    self.open_ports()?;
                    return Ok(epoch_ns);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(RecorderError::NotBegun),
                Err(RecvTimeoutError::Timeout) => self.discard()?,
            }
        }
    }

    fn run(
        mut self,
        begins: &Receiver<Begin>,
        stopped: &Receiver<()>,
        files: &Files,
    ) -> Result<Recorded, RecorderError> {
        let epoch_ns = self.wait(begins)?;
        loop {
            let goes_on = stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout);
            if !goes_on {
                let before_ns = kernel::thread_cpu_ns();
                self.probes.detach();
                self.cpu_start_ns += kernel::thread_cpu_ns() - before_ns;
            }
            self.take_all()?;
            let now_ns = kernel::monotonic_ns();
            if now_ns >= self.next_second_ns() || !goes_on {
                self.second_ends(now_ns)?;
            }
            if !goes_on {
                self.sampling.end(&self.probes, now_ns);
                self.take_rest()?;
                return self.finish(files, epoch_ns);
            }
        }
    }

    /// Reads what was recorded and writes the files.
    fn finish(mut self, files: &Files, epoch_ns: u64) -> Result<Recorded, RecorderError> {
        let recorded_cpu_ns = kernel::thread_cpu_ns();
        let mut recording = self.recording()?;
        recording.clock = discipline::status();
        let named = (&*self.target.host, epoch_ns);
        let Raws { spool, causes } = self.sink;
        let mut rows = EventWriter::create(&files.dir, files.name.as_deref(), named, causes)?;
        let mut reading = Reading::default();
        spool.read(|raw| reading.take(raw, |event, flows| Ok(rows.push(event, flows)?)))?;
        reading.finish(|event, flows| Ok(rows.push(event, flows)?))?;
        rows.close()?;
        reading.tell(&mut recording);
        if let Some(cost) = &mut recording.cost {
            cost.writing_ns = kernel::thread_cpu_ns() - recorded_cpu_ns;
        }
        file::write_document(&files.dir, files.name.as_deref(), epoch_ns, &recording)?;
        Ok(Recorded { recording, events: reading.written })
    }
}

fn system(path: &'static str) -> Result<String, RecorderError> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|cause| RecorderError::System { path, cause })?;
    Ok(text.trim().to_owned())
}
