//! The thread of a running sender: each packet at its time, each change between two frames.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use suiro_units::{Duration, Time};

use super::event::{Teller, What};
use super::plan::{Plan, Planned};
use super::sender::{LaneConfig, Phase, Shared};
use crate::clock;
use crate::epoch::Epoch;
use crate::geometry::FrameRate;
use crate::packet::Layout;
use crate::reader::Ring;
use crate::send::{Lane, Thread};
use crate::socket::{Outlet, Route};

/// A wait at least this long is for orders too; shorter ones end precisely.
const LISTEN: Duration = Duration::from_micros(150);
/// Longest wait without a look at the clock.
const IDLE: Duration = Duration::from_millis(100);
/// Rings that may wait in a lane for their change.
const CUED_MAX: usize = 4;

/// Messages to the thread.
#[derive(Debug)]
pub(super) enum Message {
    /// Changes of lanes, by their index.
    Order(Vec<(usize, Planned<Step>)>),
    /// A ring has its first frame, or cannot be filled. Its first frame is shown in frame `base`.
    Cued { lane: usize, ticket: u64, ring: Result<(Ring, u64), String> },
    /// End after the current frames.
    Stop,
}

/// A change of a lane with all that it needs.
#[derive(Debug)]
pub(super) struct Step {
    pub on: Option<bool>,
    pub paths: Option<(Vec<Route>, Vec<Outlet>)>,
    pub load: Option<Loading>,
}

/// A change of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loading {
    /// The ring with this ticket, as soon as it is there.
    Ticket(u64),
    Empty,
}

/// A lane of the thread.
struct Own {
    config: LaneConfig,
    layout: Layout,
    lane: Option<Lane>,
    /// The paths of a lane that has no ring.
    outlets: Vec<Outlet>,
    plan: Plan<Step>,
    cued: Vec<(u64, Ring, u64)>,
    full: bool,
    /// The frame that it has moved on to as a standby.
    passed: u64,
    /// The first frame in trouble; `None` while it is well.
    starved: Option<u64>,
    lagging: Option<u64>,
    failed: Option<String>,
}

/// The thread.
pub(super) struct Worker {
    lanes: Vec<Own>,
    epoch: Epoch,
    burst: u32,
    shared: Arc<Shared>,
    teller: Teller,
    stopping: bool,
}

impl Worker {
    pub fn new(
        lanes: Vec<(LaneConfig, Layout)>,
        (epoch, burst): (Epoch, u32),
        shared: Arc<Shared>,
        teller: Teller,
    ) -> Self {
        let own = |(config, layout): (LaneConfig, Layout)| Own {
            config,
            layout,
            lane: None,
            outlets: Vec::new(),
            plan: Plan::default(),
            cued: Vec::new(),
            full: false,
            passed: 0,
            starved: None,
            lagging: None,
            failed: None,
        };
        let lanes = lanes.into_iter().map(own).collect();
        Self { lanes, epoch, burst, shared, teller, stopping: false }
    }

    /// Sends until it is asked to stop, or its handle is gone.
    pub fn run(mut self, orders: &Receiver<Message>, cpu: Option<usize>) -> std::io::Result<()> {
        clock::prepare_thread(cpu)?;
        let mut thread = Thread::new(clock::monotonic());
        loop {
            while let Ok(message) = orders.try_recv() {
                self.take(message);
            }
            thread.now = clock::monotonic();
            self.shared.beat.store(thread.now.as_nanos(), Ordering::Relaxed);
            self.settle_all(thread.now);
            if self.stopping && self.lanes.iter().all(|own| own.sending().is_none()) {
                return Ok(());
            }
            let (at, lane) = self.earliest(thread.now);
            if at > thread.now + LISTEN {
                let left = at.saturating_since(thread.now).saturating_sub(LISTEN);
                match orders.recv_timeout(left.into()) {
                    Ok(message) => self.take(message),
                    Err(RecvTimeoutError::Timeout) => {}
                    // The handle is gone.
                    Err(RecvTimeoutError::Disconnected) => self.take(Message::Stop),
                }
                continue;
            }
            if at > thread.now {
                thread.wait(at, self.catches_up(lane, at, thread.now));
                // What was ordered meanwhile may change what is sent now.
                if self.lanes.iter().any(|own| own.lane.as_ref().is_some_and(Lane::is_fresh)) {
                    while let Ok(message) = orders.try_recv() {
                        self.take(message);
                    }
                    self.settle_all(thread.now);
                }
            }
            match lane {
                Some(lane) => self.send(lane, &mut thread),
                None => self.pass(thread.now),
            }
        }
    }

    /// When something is to be done next, and the lane that sends then; `None` if a standby moves on.
    fn earliest(&self, now: Time) -> (Time, Option<usize>) {
        let mut next = (now + IDLE, None);
        for (at, own) in self.lanes.iter().enumerate() {
            let turn = match (own.sending(), &own.lane) {
                (Some(lane), _) => lane.next().map(|burst| burst.at.max(lane.not_before())),
                (None, lane) if lane.is_some() || !own.plan.is_empty() => {
                    Some(self.epoch.start(own.rate(), own.passed + 1))
                }
                (None, _) => None,
            };
            if let Some(turn) = turn.filter(|turn| *turn < next.0) {
                next = (turn, own.sending().map(|_| at));
            }
        }
        next
    }

    /// Whether a lane's next burst, which leaves at `at`, should have left. A stream that waits for room does not catch up.
    fn catches_up(&self, lane: Option<usize>, at: Time, now: Time) -> bool {
        let next = lane.and_then(|lane| self.lanes[lane].sending()?.next());
        next.is_some_and(|burst| burst.at == at && burst.is_late(now))
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Order(steps) => {
                for (lane, planned) in steps {
                    // The handle counts what waits; only what it cannot know is left out here.
                    if self.lanes[lane].plan.add(planned).is_err() {
                        let because = "too many changes wait for their frames".to_owned();
                        self.tell(clock::monotonic(), lane, What::Failed { because });
                    }
                }
            }
            Message::Cued { lane, ticket, ring } => self.cued(lane, ticket, ring),
            Message::Stop => {
                self.stopping = true;
                for own in &mut self.lanes {
                    if let Some(lane) = &mut own.lane {
                        if lane.is_fresh() {
                            lane.halt();
                        }
                        lane.stop();
                    }
                }
            }
        }
    }

    fn cued(&mut self, lane: usize, ticket: u64, ring: Result<(Ring, u64), String>) {
        let own = &mut self.lanes[lane];
        match ring {
            Ok((ring, base)) => {
                if own.cued.len() == CUED_MAX {
                    own.cued.remove(0);
                }
                *self.shared.meter(lane) = Some(ring.meter());
                own.cued.push((ticket, ring, base));
            }
            Err(because) => {
                // What should have been sent cannot be; the rest of the lane's changes stay as they are.
                own.plan.remove(|step| step.load == Some(Loading::Ticket(ticket)));
                own.failed = Some(because.clone());
                self.tell(clock::monotonic(), lane, What::Failed { because });
                self.publish(lane);
            }
        }
    }

    fn settle_all(&mut self, now: Time) {
        if self.stopping {
            return;
        }
        for lane in 0..self.lanes.len() {
            if !self.lanes[lane].plan.is_empty() {
                self.settle(lane, now);
            }
        }
    }

    /// Makes the changes of a lane whose frame has come.
    fn settle(&mut self, lane: usize, now: Time) {
        let mut changed = false;
        loop {
            let own = &mut self.lanes[lane];
            let Some((ordered, frame)) = own.due(self.epoch, now) else { break };
            let Some(planned) = own.plan.due(frame) else { break };
            changed = true;
            if let Some(ordered) = ordered.filter(|ordered| *ordered < frame) {
                self.tell(now, lane, What::Late { ordered, frame });
            }
            self.apply(lane, frame, planned.change, now);
        }
        if changed {
            self.publish(lane);
        }
    }

    fn apply(&mut self, at: usize, frame: u64, step: Step, now: Time) {
        let (epoch, burst, shared) = (self.epoch, self.burst, Arc::clone(&self.shared));
        let own = &mut self.lanes[at];
        let was_on = own.sending().is_some();
        if let Some((routes, outlets)) = step.paths {
            match &mut own.lane {
                Some(lane) => lane.reroute(outlets),
                None => own.outlets = outlets,
            }
            shared.lane(at).routes = routes;
        }
        match step.load {
            Some(Loading::Ticket(ticket)) => own.load(ticket, epoch, burst),
            Some(Loading::Empty) => own.empty(),
            None => {}
        }
        match (step.on, was_on && own.sending().is_some()) {
            (Some(true), false) => own.start(frame),
            (Some(false), true) => own.halt(),
            _ => {}
        }
        let is_on = own.sending().is_some();
        let first = own.lane.as_ref().and_then(Lane::frame).unwrap_or(frame);
        match (was_on, is_on) {
            (false, true) => self.tell(now, at, What::Started { frame: first }),
            (true, false) => self.tell(now, at, What::Stopped { last: frame.saturating_sub(1) }),
            _ => self.tell(now, at, What::Changed { frame }),
        }
    }

    /// Standbys move on with time.
    fn pass(&mut self, now: Time) {
        for at in 0..self.lanes.len() {
            let own = &mut self.lanes[at];
            let frame = self.epoch.frame_at(own.rate(), now);
            own.passed = frame;
            let Some(lane) = own.lane.as_mut().filter(|lane| lane.frame().is_none()) else {
                continue;
            };
            // Before it moves on: a storage needs a part of a frame time to fill the slot that becomes free.
            let full = lane.ring().is_full();
            lane.pass(frame);
            let filled = full && !std::mem::replace(&mut own.full, true);
            // Who hears of it finds it in the state.
            self.publish(at);
            if filled {
                self.tell(now, at, What::Filled);
            }
        }
    }

    fn send(&mut self, at: usize, thread: &mut Thread) {
        let own = &mut self.lanes[at];
        let Some((lane, burst)) = own.lane.as_mut().and_then(|lane| {
            let burst = lane.next()?;
            Some((lane, burst))
        }) else {
            return;
        };
        // A change may have moved what is next.
        if burst.at > thread.now {
            return;
        }
        match lane.send(thread.now, &burst) {
            Ok(_) => {}
            // The kernel finds no memory behind the frame: its store was mapped, and has changed.
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => lane.lose(),
            Err(error) => {
                let because = lane.failed(error).to_string();
                lane.give_up();
                own.failed = Some(because.clone());
                self.tell(thread.now, at, What::Failed { because });
                self.publish(at);
                return;
            }
        }
        thread.now = clock::monotonic();
        if lane.is_frame_over() {
            self.end_frame(at, thread);
        }
    }

    fn end_frame(&mut self, at: usize, thread: &mut Thread) {
        let own = &mut self.lanes[at];
        let Some((lane, frame)) = own.lane.as_mut().and_then(|lane| {
            let frame = lane.frame()?;
            Some((lane, frame))
        }) else {
            return;
        };
        let starved = lane.is_starved();
        let (is_late, late) = (lane.is_late(thread.now), lane.behind(thread.now));
        let spent = thread.spent(is_late);
        lane.end_frame(spent, true);
        let over = lane.frame().is_none();
        let mut told = Vec::new();
        let was_well = own.starved.is_none() && own.lagging.is_none();
        if starved && own.starved.is_none() {
            told.push(What::Starved { frame });
        }
        if is_late && own.lagging.is_none() {
            told.push(What::Lagging { frame, late });
        }
        own.starved = starved.then(|| own.starved.unwrap_or(frame));
        own.lagging = is_late.then(|| own.lagging.unwrap_or(frame));
        if !was_well && own.starved.is_none() && own.lagging.is_none() {
            told.push(What::Recovered { frame });
        }
        if over {
            if let Some(because) = lane.ring().failure() {
                own.failed = Some(because.clone());
                told.push(What::Failed { because });
            }
            told.push(What::Stopped { last: frame });
        }
        self.publish(at);
        told.into_iter().for_each(|what| self.tell(thread.now, at, what));
    }

    fn tell(&self, now: Time, lane: usize, what: What) {
        self.teller.tell(now, Some(self.lanes[lane].config.number), what);
    }

    /// Shows the lane's state to whoever reads it. A reader that is at it just now sees the next one.
    fn publish(&self, at: usize) {
        let own = &self.lanes[at];
        let Some(mut state) = self.shared.try_lane(at) else { return };
        state.phase = own.phase();
        state.frame = own.sending().and_then(Lane::frame);
        if let Some(lane) = &own.lane {
            state.counts = lane.counts();
        }
        state.starved = own.starved;
        state.lagging = own.lagging;
        state.planned = own.plan.len();
        state.failed.clone_from(&own.failed);
    }
}

impl Own {
    const fn rate(&self) -> FrameRate {
        self.layout.geometry().rate()
    }

    /// The lane, if it sends.
    fn sending(&self) -> Option<&Lane> {
        self.lane.as_ref().filter(|lane| lane.frame().is_some())
    }

    fn phase(&self) -> Phase {
        match &self.lane {
            Some(lane) if lane.frame().is_some() => Phase::Running,
            Some(_) if self.failed.is_some() => Phase::Failed,
            Some(_) if self.full => Phase::Standby,
            Some(_) => Phase::Filling,
            None if self.failed.is_some() => Phase::Failed,
            None if self.plan.iter().any(|planned| planned.change.load.is_some()) => Phase::Filling,
            None => Phase::Empty,
        }
    }

    /// The frame at which the next change takes effect, and the one that was ordered, if it can be made now.
    fn due(&self, epoch: Epoch, now: Time) -> Option<(Option<u64>, u64)> {
        let next = self.plan.next()?;
        let frame = match self.sending() {
            Some(lane) if lane.is_fresh() => lane.frame()?,
            Some(_) => return None,
            None => {
                let current = epoch.frame_at(self.rate(), now);
                // A start that the thread saw a little late is still one with that frame.
                let begun = now.saturating_since(epoch.start(self.rate(), current));
                let catches = next.frame == Some(current) && begun < self.rate().period() / 2;
                if catches { current } else { current + 1 }
            }
        };
        let is_time = next.frame.is_none_or(|ordered| ordered <= frame);
        let cued = match next.change.load {
            Some(Loading::Ticket(ticket)) => self.cued.iter().find(|(own, ..)| *own == ticket),
            _ => None,
        };
        let waits = match (next.change.load, cued) {
            (Some(Loading::Ticket(_)), None) => true,
            // Without a time of its own it waits until its ring is full.
            (Some(_), Some((_, ring, _))) => {
                next.frame.is_none()
                    && (next.change.on == Some(true) || self.sending().is_some())
                    && !ring.is_full()
            }
            _ => {
                let ring = self.lane.as_ref().map(Lane::ring);
                let starts = next.change.on == Some(true) && self.sending().is_none();
                next.frame.is_none() && starts && ring.is_some_and(|ring| !ring.is_full())
            }
        };
        (is_time && !waits).then_some((next.frame, frame))
    }

    fn load(&mut self, ticket: u64, epoch: Epoch, burst: u32) {
        let Some(at) = self.cued.iter().position(|(own, ..)| *own == ticket) else { return };
        let (_, ring, base) = self.cued.remove(at);
        (self.full, self.failed) = (false, None);
        match &mut self.lane {
            Some(lane) => lane.replace(ring, base),
            None => {
                let how = (self.layout, self.config.stream);
                let outlets = std::mem::take(&mut self.outlets);
                let number = self.config.number;
                self.lane =
                    Some(Lane::standby(number, how, outlets, (ring, Some(base)), burst, epoch));
            }
        }
    }

    fn empty(&mut self) {
        if let Some(lane) = self.lane.take() {
            self.outlets = lane.into_outlets();
        }
        (self.full, self.starved, self.lagging, self.failed) = (false, None, None, None);
    }

    fn start(&mut self, frame: u64) {
        self.failed = None;
        let Some(lane) = self.lane.as_mut().filter(|lane| lane.is_routed()) else { return };
        let first = lane.base().map_or(frame, |base| frame.max(base));
        lane.resume(first);
    }

    fn halt(&mut self) {
        if let Some(lane) = &mut self.lane {
            lane.halt();
        }
        (self.starved, self.lagging) = (None, None);
    }
}
