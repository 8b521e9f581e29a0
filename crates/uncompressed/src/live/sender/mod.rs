//! A running sender: its handle, and its state as others see it.

mod state;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use suiro_units::{Bytes, Duration, Time};

use super::command::{
    self, Accepted, LANES_MAX, Load, Material, ORDERS_MAX, Order, Refusal, SenderChange,
};
use super::event::{Events, Teller, What};
use super::plan::{PLANNED_MAX, Planned};
use super::sending::{Loading, Message, Step, Worker};
use crate::clock;
use crate::epoch::Epoch;
use crate::geometry::Geometry;
use crate::node::{Error, Source};
use crate::packet::Layout;
use crate::reader::{self, Ring};
use crate::send::Counts;
use crate::socket::{Outlet, Route, Segmentation};
use crate::store::{Content, Header, Store};

pub(super) use state::Shared;
pub use state::{LaneConfig, Phase, RingState, SenderLane, SenderState};

/// The configuration of a running sender.
#[derive(Debug, Clone)]
pub struct SenderConfig {
    /// Its lanes, 1 to [`LANES_MAX`].
    pub lanes: Vec<LaneConfig>,
    /// How each ring is filled; whether frames are repeated is the material's.
    pub ring: reader::Options,
    /// Most packets that are sent together.
    pub burst: u32,
    /// Who splits bursts into packets.
    pub segmentation: Segmentation,
    /// The CPU to pin the sending thread to; `None` for any.
    pub cpu: Option<usize>,
}

impl SenderConfig {
    /// The usual rings, bursts and segmentation.
    pub fn new(lanes: Vec<LaneConfig>) -> Self {
        let ring = reader::Options {
            source: reader::Source::Cached,
            frames: reader::FRAMES,
            memory: Bytes::new(4_000_000_000),
            repeat: true,
            depth: reader::DEPTH,
            shape: None,
        };
        let (burst, segmentation) = (crate::send::BURST, Segmentation::Kernel);
        Self { lanes, ring, burst, segmentation, cpu: None }
    }
}

/// A ring to be filled.
struct Job {
    lane: usize,
    ticket: u64,
    number: u32,
    geometry: Geometry,
    material: Material,
    /// The frame that the ring's first one is for, and its index in the material.
    base: u64,
    index: u64,
}

/// What a lane will be once everything that was ordered has happened.
#[derive(Debug, Clone, Default)]
struct Ahead {
    routed: bool,
    /// When its ring began to be filled; `None` if it has no material.
    cued: Option<Time>,
    runs: bool,
}

/// The handle of a running sender. Dropping it ends the node after the current frames.
#[derive(Debug)]
pub struct Sender {
    lanes: Vec<(LaneConfig, Layout)>,
    numbers: Vec<u32>,
    ring: reader::Options,
    segmentation: Segmentation,
    epoch: Epoch,
    orders: SyncSender<Message>,
    jobs: Option<SyncSender<Job>>,
    shared: Arc<Shared>,
    ahead: Mutex<BTreeMap<usize, Ahead>>,
    tickets: AtomicU64,
    missed: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ring of lane {} from frame {}", self.number, self.base)
    }
}

impl Sender {
    /// Starts the node's threads in the calling thread's network namespace. Its lanes have neither frames nor
    /// destinations.
    ///
    /// # Errors
    /// If a lane's frames cannot be split into packets of its size, or a thread cannot be started.
    ///
    /// # Panics
    /// If there are no lanes, more than [`LANES_MAX`], or two with one number: the configuration is the caller's.
    pub fn start(config: SenderConfig) -> Result<(Self, Events), Error> {
        assert!((1..=LANES_MAX).contains(&config.lanes.len()), "a node has 1 to {LANES_MAX} lanes");
        let numbers: Vec<_> = config.lanes.iter().map(|lane| lane.number).collect();
        let layout = |lane: LaneConfig| {
            let layout = Layout::new(lane.format, &lane.geometry, lane.packet_bytes)
                .map_err(|cause| Error::Layout { stream: lane.number, cause })?;
            Ok((lane, layout))
        };
        let lanes = config.lanes.into_iter().map(layout).collect::<Result<Vec<_>, Error>>()?;
        let epoch = clock::epoch();
        let shared = Arc::new(Shared {
            lanes: numbers.iter().map(|number| Mutex::new(blank(*number))).collect(),
            meters: numbers.iter().map(|_| Mutex::new(None)).collect(),
            beat: AtomicU64::new(clock::monotonic().as_nanos()),
            over: Mutex::new(None),
        });
        let (teller, events) = Teller::new(epoch);
        let (orders, ordered) = sync_channel(ORDERS_MAX);
        let (jobs, todo) = sync_channel(ORDERS_MAX);
        let stop = Arc::new(AtomicBool::new(false));
        let worker =
            Worker::new(lanes.clone(), (epoch, config.burst), Arc::clone(&shared), teller.clone());
        let ended = Arc::clone(&shared);
        let cpu = config.cpu;
        let send = move || {
            let because = worker.run(&ordered, cpu).err().map(|error| error.to_string());
            *ended.over() = Some(because.clone().unwrap_or_else(|| "it was stopped".to_owned()));
            teller.tell(clock::monotonic(), None, What::Over { because });
        };
        let (cued, options, stopped) = (orders.clone(), config.ring, Arc::clone(&stop));
        let cue = move || fill(&todo, &cued, &options, &stopped);
        let thread = |name: &str, run: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread
                .spawn(run)
                .map_err(|cause| Error::Io { doing: "starting a node's thread", cause })
        };
        let threads = vec![thread("cue", Box::new(cue))?, thread("sender", Box::new(send))?];
        let sender = Self {
            lanes,
            numbers,
            ring: config.ring,
            segmentation: config.segmentation,
            epoch,
            orders,
            jobs: Some(jobs),
            shared,
            ahead: Mutex::default(),
            tickets: AtomicU64::new(0),
            missed: events.missed_counter(),
            stop,
            threads,
        };
        Ok((sender, events))
    }

    /// When frames begin.
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Gives the node an order: all of it takes effect at one boundary, or none of it and the reason is returned. Does
    /// not wait for the boundary.
    ///
    /// # Errors
    /// [`Refusal`] lists the reasons.
    pub fn order(&self, order: &Order<SenderChange>) -> Result<Accepted, Refusal> {
        let now = clock::monotonic();
        command::lanes(order, &self.numbers)?;
        let rate = self.lanes[0].1.geometry().rate();
        command::clocks(order.issued, self.epoch, now, rate.start_of(self.ring.frames.into()))?;
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let mut after = ahead.clone();
        let (mut steps, mut jobs, mut accepted) = (Vec::new(), Vec::new(), None);
        for (number, change) in &order.changes {
            let at = self.numbers.iter().position(|own| own == number).expect("checked above");
            let rate = self.lanes[at].1.geometry().rate();
            let frame = command::boundary(order.at, self.epoch, rate, now)?;
            let lane = after.entry(at).or_default();
            let (step, job) = self.prepare(at, change, frame, lane, now)?;
            steps.push((at, Planned { frame, change: step }));
            jobs.extend(job);
            let tai = frame.map(|frame| rate.start_of(frame));
            accepted.get_or_insert(Accepted { frame, tai });
        }
        self.hand_over(steps, jobs)?;
        *ahead = after;
        Ok(accepted.expect("an order has changes: checked above"))
    }

    /// Checks a lane's change, and prepares what it needs.
    fn prepare(
        &self,
        at: usize,
        change: &SenderChange,
        frame: Option<u64>,
        ahead: &mut Ahead,
        now: Time,
    ) -> Result<(Step, Option<Job>), Refusal> {
        let (config, layout) = &self.lanes[at];
        let lane = config.number;
        if self.shared.lane(at).planned >= PLANNED_MAX {
            return Err(Refusal::Planned { lane });
        }
        if let Some(routes) = &change.routes {
            command::routes(lane, routes)?;
            ahead.routed = true;
        }
        let mut job = None;
        let load = match &change.load {
            Some(Load::Cue(material)) => {
                let ring_begins = frame.filter(|_| change.on == Some(true) || ahead.runs);
                let current = self.epoch.frame_at(layout.geometry().rate(), now);
                let base = ring_begins.unwrap_or(current);
                let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
                job = Some(self.job(at, (ticket, base), material)?);
                ahead.cued = Some(now);
                Some(Loading::Ticket(ticket))
            }
            Some(Load::Empty) => {
                (ahead.cued, ahead.runs) = (None, false);
                Some(Loading::Empty)
            }
            None => None,
        };
        if change.on == Some(true) {
            let cued = ahead.cued.ok_or(Refusal::NoMaterial(lane))?;
            if !ahead.routed {
                return Err(Refusal::NoRoute(lane));
            }
            if let Some(frame) = frame.filter(|_| load.is_none() && !ahead.runs) {
                self.is_filled_by(at, frame, cued, now)?;
            }
        }
        ahead.runs = change.on.unwrap_or(ahead.runs);
        let paths = match &change.routes {
            Some(routes) => Some((routes.clone(), self.outlets(lane, layout, routes)?)),
            None => None,
        };
        Ok((Step { on: change.on, paths, load }, job))
    }

    fn outlets(
        &self,
        lane: u32,
        layout: &Layout,
        routes: &[Route],
    ) -> Result<Vec<Outlet>, Refusal> {
        let (header, datagram) = (layout.header_bytes(), layout.datagram_bytes());
        let open = |route| Outlet::open(route, self.segmentation, header, datagram);
        let outlets = routes.iter().map(open).collect::<Result<Vec<_>, _>>();
        outlets.map_err(|cause| Refusal::Socket { lane, cause })
    }

    /// The ring that `material` needs from frame `base` on.
    fn job(
        &self,
        at: usize,
        (ticket, base): (u64, u64),
        material: &Material,
    ) -> Result<Job, Refusal> {
        let (config, _) = &self.lanes[at];
        let lane = config.number;
        let failed = |cause: reader::Error| Refusal::Material { lane, cause };
        let (found, frames) = match &material.source {
            Source::Store(path) => {
                let store = Store::open(path).and_then(Store::with_frames);
                let header = *store.map_err(|cause| failed(cause.into()))?.header();
                (header.geometry, header.frames)
            }
            Source::Synthetic { geometry, frames } => (*geometry, u64::from(*frames)),
        };
        if found != config.geometry {
            return Err(Refusal::Format { lane, wanted: config.geometry, found });
        }
        // A material that is shown only once holds its first frame until its time comes.
        let (base, index) = match material.index(base, frames) {
            Some(index) => (base, index),
            None => (material.origin, 0),
        };
        if !material.repeat && index >= frames {
            return Err(Refusal::Ended { lane, frames, origin: material.origin });
        }
        let (number, geometry, material) = (lane, config.geometry, material.clone());
        Ok(Job { lane: at, ticket, number, geometry, material, base, index })
    }

    /// Checks that a ring which has been filling since `cued` will be full when frame `frame` begins.
    fn is_filled_by(&self, at: usize, frame: u64, cued: Time, now: Time) -> Result<(), Refusal> {
        let Some(mut meter) = self.shared.meter(at).clone() else { return Ok(()) };
        if self.shared.lane(at).phase != Phase::Filling {
            return Ok(());
        }
        let (slots, rate) = (meter.slots(), self.lanes[at].1.geometry().rate());
        let filled = meter.look(now).waiting.min(slots);
        let begin = self.epoch.start(rate, frame);
        let late =
            lateness((filled, slots), now.saturating_since(cued), begin.saturating_since(now));
        let Some(late) = late else { return Ok(()) };
        let frames = (late / rate.period()).ceil() as u64;
        Err(Refusal::NotFilled { lane: self.lanes[at].0.number, frame, filled, slots, frames })
    }

    fn hand_over(&self, steps: Vec<(usize, Planned<Step>)>, jobs: Vec<Job>) -> Result<(), Refusal> {
        let over = || Refusal::Over(self.shared.over().clone());
        match self.orders.try_send(Message::Order(steps)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(Refusal::Busy),
            Err(TrySendError::Disconnected(_)) => return Err(over()),
        }
        let queue = self.jobs.as_ref().expect("the queue lives as long as the handle");
        for job in jobs {
            // There is one lane at most for each: the queue has room for as many as may wait, and the thread of
            // rings takes them one by one; a caller waits only if it cues faster than stores open.
            queue.send(job).map_err(|_| over())?;
        }
        Ok(())
    }

    /// Its clock now: TAI since the SMPTE epoch, as the kernel had it when the node began.
    pub fn tai(&self) -> Duration {
        self.epoch.tai(clock::monotonic())
    }

    /// The node's state now.
    pub fn state(&self) -> SenderState {
        let now = clock::monotonic();
        let lane = |at: usize| {
            let mut lane = self.shared.lane(at).clone();
            let meter = self.shared.meter(at).clone().filter(|_| lane.phase != Phase::Empty);
            lane.ring = meter.map(|mut meter| {
                let (slots, second) = (meter.slots(), meter.look(now));
                let (waiting, reading) = (second.waiting, second.reading);
                RingState { slots, waiting, reading, repeats: second.repeats_all }
            });
            lane
        };
        let beat = Time::from_nanos(self.shared.beat.load(Ordering::Relaxed));
        SenderState {
            tai: self.epoch.tai(now),
            frame: self.epoch.frame_at(self.lanes[0].1.geometry().rate(), now),
            idle: now.saturating_since(beat),
            lanes: (0..self.lanes.len()).map(lane).collect(),
            events_missed: self.missed.load(Ordering::Relaxed),
            over: self.shared.over().clone(),
        }
    }

    /// Sends the current frames completely and ends the node; waits for its threads.
    pub fn stop(self) -> SenderState {
        self.end();
        while !self.threads[1].is_finished() {
            std::thread::yield_now();
        }
        self.state()
    }

    fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // A full queue is emptied by a thread that runs; one that has ended needs no message.
        let _ = self.orders.send(Message::Stop);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.end();
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A panic was a bug that printed itself.
            let _ = thread.join();
        }
    }
}

/// How much too late a ring is full that has `filled` of `slots` frames after `span`, if it should be in `left`; `None` if
/// it is in time, or nothing is known about its rate. Pure.
fn lateness((filled, slots): (u64, u64), span: Duration, left: Duration) -> Option<Duration> {
    if filled == 0 || filled >= slots {
        return None;
    }
    let needs = span.mul_f64((slots - filled) as f64 / filled as f64);
    Some(needs.saturating_sub(left)).filter(|late| !late.is_zero())
}

const fn blank(number: u32) -> SenderLane {
    SenderLane {
        number,
        phase: Phase::Empty,
        frame: None,
        ring: None,
        counts: Counts::ZERO,
        routes: Vec::new(),
        starved: None,
        lagging: None,
        planned: 0,
        failed: None,
    }
}

/// Opens rings one after the other.
fn fill(
    todo: &Receiver<Job>,
    cued: &SyncSender<Message>,
    options: &reader::Options,
    stop: &AtomicBool,
) {
    for job in todo {
        let options = reader::Options { repeat: job.material.repeat, ..*options };
        let ring = match &job.material.source {
            Source::Store(path) => {
                Ring::open_at(path, Some(&job.geometry), &options, job.index, stop)
            }
            Source::Synthetic { geometry, frames } => {
                let header = Header::new(*geometry, Content::Picture);
                let header = Header { part: job.number, ..header };
                Ring::synthetic(&header, *frames, &options, stop)
                    .map(|ring| ring.starting_at(job.index))
            }
        };
        let ring = ring.map(|ring| (ring, job.base)).map_err(|error| error.to_string());
        if cued.send(Message::Cued { lane: job.lane, ticket: job.ticket, ring }).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
