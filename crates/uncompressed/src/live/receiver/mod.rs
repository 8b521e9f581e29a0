//! A running receiver: its handle, and its state as others see it.

mod state;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use suiro_units::{Duration, Time};

use super::command::{self, Accepted, At, LANES_MAX, ORDERS_MAX, Order, PATHS_MAX, Refusal};
use super::event::{Events, Teller, What};
use super::merge::{BUDGET_FRAMES_MAX, LaneCounts, SkewClass};
use super::plan::{PLANNED_MAX, Planned};
use super::receiving::{Message, Step, Worker};
use crate::clock;
use crate::epoch::Epoch;
use crate::node::Error;
use crate::picture::Raster;
use crate::receive::{Frame, Recording};
use crate::socket::{Inlet, Joined};
use crate::store::{Content, Header};

pub(super) use state::Shared;
pub use state::{Leg, PathState, ReceiverLane, ReceiverLaneConfig, ReceiverState};

/// Where frames are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storing {
    /// In a new store at this path; an existing file is replaced only if `replace`.
    To {
        /// The file.
        path: PathBuf,
        /// Replace an existing file.
        replace: bool,
    },
    /// Nowhere.
    Off,
}

/// What changes in a receiver's lane; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiverChange {
    /// The paths to receive on, up to [`PATHS_MAX`]; none to leave. Sockets are opened at once, so that a group's
    /// packets flow when they are needed; frames before the boundary are taken from the paths before. A path that stays
    /// the same is not touched.
    pub legs: Option<Vec<Leg>>,
    /// Where to store the frames from the boundary on.
    pub store: Option<Storing>,
    /// The delay budget: how long after its sender's frame time a frame may be complete. At most 16 frame times.
    pub budget: Option<Duration>,
}

impl ReceiverChange {
    /// Receives on these paths.
    pub fn join(legs: Vec<Leg>) -> Self {
        Self { legs: Some(legs), ..Self::default() }
    }

    /// Receives nothing.
    pub fn leave() -> Self {
        Self::join(Vec::new())
    }

    /// Stores frames.
    pub fn store(storing: Storing) -> Self {
        Self { store: Some(storing), ..Self::default() }
    }
}

/// The configuration of a running receiver.
#[derive(Debug, Clone)]
pub struct ReceiverConfig {
    /// Its lanes, 1 to [`LANES_MAX`].
    pub lanes: Vec<ReceiverLaneConfig>,
    /// Receive buffer of each socket in bytes.
    pub buffer_bytes: u32,
    /// Compute every frame's checksum and compare it with its sender's.
    pub verify: bool,
    /// The CPU to pin the receiving thread to; `None` for any.
    pub cpu: Option<usize>,
    /// Where decided frames are reported, with their lane's number; those that it has no room for are left out.
    pub frames: Option<SyncSender<(u32, Frame)>>,
}

/// How long the node's thread may take to forget an order.
const PATIENCE: Duration = Duration::from_millis(500);

/// The paths of a lane once everything that was ordered has happened.
#[derive(Debug, Clone, Default)]
struct Ahead {
    legs: Vec<Leg>,
    /// Those that it had before the order that was last, and the boundary of that.
    before: Option<(u64, Vec<Leg>)>,
}

/// The handle of a running receiver. Dropping it ends the node.
#[derive(Debug)]
pub struct Receiver {
    lanes: Vec<ReceiverLaneConfig>,
    numbers: Vec<u32>,
    buffer_bytes: u32,
    epoch: Epoch,
    orders: SyncSender<Message>,
    shared: Arc<Shared>,
    ahead: Mutex<BTreeMap<usize, Ahead>>,
    missed: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Receiver {
    /// Starts the node's thread. Its lanes receive nothing.
    ///
    /// # Errors
    /// If the thread cannot be started.
    ///
    /// # Panics
    /// If there are no lanes, more than [`LANES_MAX`], or a budget above 16 frame times.
    pub fn start(config: ReceiverConfig) -> Result<(Self, Events), Error> {
        let lanes = config.lanes;
        assert!((1..=LANES_MAX).contains(&lanes.len()), "a node has 1 to {LANES_MAX} lanes");
        assert!(
            lanes.iter().all(|lane| is_budget(lane, lane.budget)),
            "a budget within its bounds"
        );
        let epoch = clock::epoch();
        let shared = Arc::new(Shared {
            lanes: lanes.iter().map(|lane| Mutex::new(blank(lane))).collect(),
            beat: AtomicU64::new(clock::monotonic().as_nanos()),
            over: Mutex::new(None),
        });
        let (teller, events) = Teller::new(epoch);
        let (orders, ordered) = sync_channel(ORDERS_MAX);
        let (verify, frames) = (config.verify, config.frames);
        let worker =
            Worker::new(&lanes, (epoch, verify), Arc::clone(&shared), teller.clone(), frames);
        let (ended, cpu) = (Arc::clone(&shared), config.cpu);
        let receive = move || {
            let because = worker.run(&ordered, cpu).err().map(|error| error.to_string());
            *ended.over() = Some(because.clone().unwrap_or_else(|| "it was stopped".to_owned()));
            teller.tell(clock::monotonic(), None, What::Over { because });
        };
        let thread = std::thread::Builder::new().name("receiver".to_owned()).spawn(receive);
        let thread =
            thread.map_err(|cause| Error::Io { doing: "starting a node's thread", cause })?;
        let receiver = Self {
            numbers: lanes.iter().map(|lane| lane.number).collect(),
            lanes,
            buffer_bytes: config.buffer_bytes,
            epoch,
            orders,
            shared,
            ahead: Mutex::default(),
            missed: events.missed_counter(),
            threads: vec![thread],
        };
        Ok((receiver, events))
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
    pub fn order(&self, order: &Order<ReceiverChange>) -> Result<Accepted, Refusal> {
        let now = clock::monotonic();
        command::lanes(order, &self.numbers)?;
        let rate = self.lanes[0].layout.geometry().rate();
        command::clocks(order.issued, self.epoch, now, rate.start_of(BUDGET_FRAMES_MAX))?;
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let mut after = ahead.clone();
        let (mut steps, mut accepted) = (Vec::new(), None);
        for (number, change) in &order.changes {
            let at = self.numbers.iter().position(|own| own == number).expect("checked above");
            let rate = self.lanes[at].layout.geometry().rate();
            let frame = command::boundary(order.at, self.epoch, rate, now)?;
            let own = after.entry(at).or_default();
            let before = own.legs.clone();
            let step = self.prepare(at, change, &mut own.legs)?;
            own.before = frame.map(|frame| (frame, before));
            let current = self.epoch.frame_at(rate, now);
            steps.push((at, Planned { frame: Some(frame.unwrap_or(current + 1)), change: step }));
            let tai = frame.map(|frame| rate.start_of(frame));
            accepted.get_or_insert(Accepted { frame, tai });
        }
        self.hand_over(Message::Order(steps))?;
        *ahead = after;
        Ok(accepted.expect("an order has changes: checked above"))
    }

    /// Forgets the last order of a lane, which was accepted for the boundary at `tai`: the lane goes on as it is. Waits for
    /// the node's thread, which makes a change while the frame before is being received.
    ///
    /// # Errors
    /// [`Refusal::Made`] if the change is made already, or was not the last one; otherwise as of [`Self::order`].
    pub fn cancel(&self, lane: u32, tai: Duration) -> Result<(), Refusal> {
        let now = clock::monotonic();
        let order = Order::one(At::Tai(tai), lane, ());
        command::lanes(&order, &self.numbers)?;
        let at = self.numbers.iter().position(|own| *own == lane).expect("checked above");
        let rate = self.lanes[at].layout.geometry().rate();
        let frame = command::boundary(order.at, self.epoch, rate, now)?;
        let frame = frame.expect("a time has a boundary");
        let made = || Refusal::Made { lane, frame };
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let own = ahead.entry(at).or_default();
        let before = own.before.clone().filter(|(own, _)| *own == frame);
        let (_, legs) = before.ok_or_else(made)?;
        let (done, cancelled) = sync_channel(1);
        self.hand_over(Message::Cancel { lane: at, frame, done })?;
        if !cancelled.recv_timeout(PATIENCE.into()).map_err(|_| Refusal::Busy)? {
            return Err(made());
        }
        *own = Ahead { legs, before: None };
        Ok(())
    }

    fn hand_over(&self, message: Message) -> Result<(), Refusal> {
        self.orders.try_send(message).map_err(|error| match error {
            TrySendError::Full(_) => Refusal::Busy,
            TrySendError::Disconnected(_) => Refusal::Over(self.shared.over().clone()),
        })
    }

    /// Checks a lane's change, and opens what it needs.
    fn prepare(
        &self,
        at: usize,
        change: &ReceiverChange,
        ahead: &mut Vec<Leg>,
    ) -> Result<Step, Refusal> {
        let config = &self.lanes[at];
        let lane = config.number;
        if self.shared.lane(at).planned >= PLANNED_MAX {
            return Err(Refusal::Planned { lane });
        }
        if let Some(budget) = change.budget.filter(|budget| !is_budget(config, *budget)) {
            let most = config.layout.geometry().rate().start_of(BUDGET_FRAMES_MAX);
            return Err(Refusal::Budget { lane, budget, most });
        }
        let legs = match &change.legs {
            Some(legs) => {
                command::legs(lane, legs)?;
                let open = |leg: &Leg| {
                    if ahead.contains(leg) {
                        return Ok((*leg, None));
                    }
                    self.inlet(lane, leg).map(|inlet| (*leg, Some(inlet)))
                };
                let opened = legs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
                ahead.clone_from(legs);
                Some(opened)
            }
            None => None,
        };
        let store = match &change.store {
            Some(Storing::To { path, replace }) => {
                Some(Some((path.clone(), self.recording(at, path, *replace)?)))
            }
            Some(Storing::Off) => Some(None),
            None => None,
        };
        Ok(Step { legs, store, budget: change.budget })
    }

    fn inlet(&self, lane: u32, leg: &Leg) -> Result<Inlet, Refusal> {
        let group = *leg.address.ip();
        let joined = group.is_multicast().then_some(Joined {
            group,
            interface: leg.interface,
            source: leg.source,
        });
        Inlet::open(leg.address, joined.as_ref(), self.buffer_bytes)
            .map_err(|cause| Refusal::Socket { lane, cause })
    }

    fn recording(
        &self,
        at: usize,
        path: &std::path::Path,
        replace: bool,
    ) -> Result<Recording, Refusal> {
        let config = &self.lanes[at];
        let geometry = *config.layout.geometry();
        let content = match Raster::of_total(&geometry) {
            Some(_) => Content::Raster,
            None => Content::Picture,
        };
        let header = Header::new(geometry, content);
        // A failure is in the event that reports the recording's end.
        Recording::create(path, header, replace, |_| ()).map_err(|cause| Refusal::Recording {
            lane: config.number,
            path: path.to_owned(),
            cause,
        })
    }

    /// Its clock now: TAI since the SMPTE epoch, as the kernel had it when the node began.
    pub fn tai(&self) -> Duration {
        self.epoch.tai(clock::monotonic())
    }

    /// The node's state now.
    pub fn state(&self) -> ReceiverState {
        let now = clock::monotonic();
        let beat = Time::from_nanos(self.shared.beat.load(Ordering::Relaxed));
        ReceiverState {
            tai: self.epoch.tai(now),
            frame: self.epoch.frame_at(self.lanes[0].layout.geometry().rate(), now),
            idle: now.saturating_since(beat),
            lanes: (0..self.lanes.len()).map(|at| self.shared.lane(at).clone()).collect(),
            events_missed: self.missed.load(Ordering::Relaxed),
            over: self.shared.over().clone(),
        }
    }

    /// Ends the node and closes its recordings; waits for that.
    pub fn stop(mut self) -> ReceiverState {
        self.end();
        self.state()
    }

    fn end(&mut self) {
        // A full queue is emptied by a thread that runs; one that has ended needs no message.
        let _ = self.orders.send(Message::Stop);
        for thread in self.threads.drain(..) {
            // A panic was a bug that printed itself.
            let _ = thread.join();
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.end();
    }
}

fn is_budget(lane: &ReceiverLaneConfig, budget: Duration) -> bool {
    budget <= lane.layout.geometry().rate().start_of(BUDGET_FRAMES_MAX)
}

fn blank(lane: &ReceiverLaneConfig) -> ReceiverLane {
    ReceiverLane {
        number: lane.number,
        first: None,
        last: None,
        ssrc: None,
        counts: LaneCounts::default(),
        paths: Vec::with_capacity(PATHS_MAX),
        budget: lane.budget,
        class: SkewClass::of(lane.budget),
        trouble: None,
        storing: None,
        planned: 0,
    }
}

#[cfg(test)]
mod tests;
