//! The thread of a running receiver: takes what has arrived on all paths, and makes each change at its frame.

use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use suiro_units::{Duration, Time};

use super::event::{Teller, What};
use super::merge::{Merge, Output, SkewClass};
use super::plan::{Plan, Planned};
use super::receiver::{Leg, PathState, ReceiverLaneConfig, Shared};
use crate::clock;
use crate::epoch::Epoch;
use crate::geometry::FrameRate;
use crate::receive::{Frame, Recording, RecordingEnd, Wanted};
use crate::socket::{Datagrams, Inlet};

/// How long the thread rests when it has taken all packets, as [`crate::receive`] does.
const REST: Duration = Duration::from_micros(100);
/// Longest wait of a thread that has sockets: orders and frames whose time is over are looked at this often.
const LOOK_NS: i64 = 2_000_000;
/// Longest wait of a thread without sockets.
const IDLE: Duration = Duration::from_millis(100);
/// Consecutive calls that take one socket's packets, so that the others get their turn.
const TAKES_MAX: usize = 64;

/// Messages to the thread.
#[derive(Debug)]
pub(super) enum Message {
    /// Changes of lanes, by their index.
    Order(Vec<(usize, Planned<Step>)>),
    /// Forget what a lane, by its index, was ordered for a frame, and report whether anything was.
    Cancel {
        lane: usize,
        frame: u64,
        done: SyncSender<bool>,
    },
    Stop,
}

/// A change of a lane with all that it needs. A path without a socket is one that the lane has.
#[derive(Debug)]
pub(super) struct Step {
    pub legs: Option<Vec<(Leg, Option<Inlet>)>>,
    pub store: Option<Option<(PathBuf, Recording)>>,
    pub budget: Option<Duration>,
}

/// A path in use.
struct Path {
    /// As it was ordered: with port 0 for any.
    ordered: Leg,
    leg: Leg,
    inlet: Inlet,
    slot: usize,
    from: u64,
    until: Option<u64>,
    source: Option<SocketAddrV4>,
    dropped: u32,
}

/// A store that frames go to.
struct Storage {
    path: PathBuf,
    recording: Recording,
    from: u64,
    until: Option<u64>,
}

/// A lane of the thread.
struct Own {
    config: ReceiverLaneConfig,
    merge: Merge,
    paths: Vec<Path>,
    stores: Vec<Storage>,
    budget: Duration,
    plan: Plan<Step>,
}

/// The thread.
pub(super) struct Worker {
    lanes: Vec<Own>,
    epoch: Epoch,
    verify: bool,
    shared: Arc<Shared>,
    teller: Teller,
    frames: Option<SyncSender<(u32, Frame)>>,
    /// Ends recordings, which waits for a disk.
    ends: Vec<std::thread::JoinHandle<()>>,
}

/// Where a lane's frames and events go.
struct Outputs<'a> {
    number: u32,
    stores: &'a mut [Storage],
    teller: &'a Teller,
    frames: Option<&'a SyncSender<(u32, Frame)>>,
}

impl Output for Outputs<'_> {
    fn frame(&mut self, frame: &Frame, picture: &[u8]) {
        let takes = |store: &Storage| {
            frame.number >= store.from && store.until.is_none_or(|until| frame.number < until)
        };
        for store in self.stores.iter_mut().filter(|store| takes(store)) {
            store.recording.frame(frame, picture);
        }
        if let Some(frames) = self.frames {
            // The thread does not wait for a slow reader: missed reports show as a gap.
            let _ = frames.try_send((self.number, *frame));
        }
    }

    fn event(&mut self, at: Time, what: What) {
        self.teller.tell(at, Some(self.number), what);
    }
}

impl Worker {
    pub fn new(
        lanes: &[ReceiverLaneConfig],
        (epoch, verify): (Epoch, bool),
        shared: Arc<Shared>,
        teller: Teller,
        frames: Option<SyncSender<(u32, Frame)>>,
    ) -> Self {
        let own = |config: &ReceiverLaneConfig| {
            let mut merge = Merge::new(config.layout, config.payload_type, epoch, config.budget);
            merge.want(Wanted { verify, pictures: false });
            let (paths, stores, plan) = (Vec::new(), Vec::new(), Plan::default());
            Own { config: config.clone(), merge, paths, stores, budget: config.budget, plan }
        };
        let lanes = lanes.iter().map(own).collect();
        Self { lanes, epoch, verify, shared, teller, frames, ends: Vec::new() }
    }

    /// Receives until it is asked to stop, or its handle is gone.
    pub fn run(mut self, orders: &Receiver<Message>, cpu: Option<usize>) -> std::io::Result<()> {
        clock::prepare_thread(cpu)?;
        let mut buffers = Datagrams::new();
        loop {
            while let Ok(message) = orders.try_recv() {
                if !self.take(message) {
                    return self.end();
                }
            }
            // What is taken now arrived before: a frame whose time is over by then is decided.
            let now = clock::monotonic();
            self.shared.beat.store(now.as_nanos(), Ordering::Relaxed);
            self.settle(now);
            let (any, all) = self.take_all(&mut buffers)?;
            if all {
                self.tick(now);
            }
            (0..self.lanes.len()).for_each(|at| self.publish(at));
            if any {
                clock::wait_until(clock::monotonic() + REST);
            } else if self.lanes.iter().any(|own| !own.paths.is_empty()) {
                self.rest()?;
            } else {
                let message = match orders.recv_timeout(self.idle(now).into()) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Timeout) => continue,
                    // The handle is gone.
                    Err(RecvTimeoutError::Disconnected) => Message::Stop,
                };
                if !self.take(message) {
                    return self.end();
                }
            }
        }
    }

    /// How long nothing has to be done: until the next change.
    fn idle(&self, now: Time) -> Duration {
        let next = self.lanes.iter().filter_map(|own| {
            let frame = own.plan.next()?.frame?;
            Some(self.epoch.start(own.rate(), frame.saturating_sub(1)))
        });
        next.min().map_or(IDLE, |next| next.saturating_since(now).min(IDLE))
    }

    fn rest(&self) -> std::io::Result<()> {
        let inlets = self.lanes.iter().flat_map(|own| own.paths.iter().map(|path| &path.inlet));
        let mut polled: Vec<_> = inlets.map(|inlet| PollFd::new(inlet, PollFlags::IN)).collect();
        match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: LOOK_NS })) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// False if it is to end.
    fn take(&mut self, message: Message) -> bool {
        let steps = match message {
            Message::Order(steps) => steps,
            Message::Cancel { lane, frame, done } => {
                // Whoever asked may not have waited.
                let _ = done.try_send(self.cancel(lane, frame));
                return true;
            }
            Message::Stop => return false,
        };
        for (at, planned) in steps {
            let own = &mut self.lanes[at];
            if own.plan.add(planned).is_err() {
                let because = "too many changes wait for their frames".to_owned();
                let what = What::Failed { because };
                self.teller.tell(clock::monotonic(), Some(own.config.number), what);
            }
        }
        true
    }

    /// Forgets what a lane was ordered for a frame. True if there was anything.
    fn cancel(&mut self, at: usize, frame: u64) -> bool {
        let steps = self.lanes[at].plan.cancel(frame);
        let any = !steps.is_empty();
        for (path, recording) in steps.into_iter().filter_map(|step| step.store.flatten()) {
            self.close(at, Storage { path, recording, from: frame, until: Some(frame) });
        }
        any
    }

    /// Takes what has arrived: if there was anything, and if all of it was taken.
    fn take_all(&mut self, buffers: &mut Datagrams) -> std::io::Result<(bool, bool)> {
        let (mut any, mut all) = (false, true);
        let lead_ns = clock::realtime_lead_ns();
        for own in &mut self.lanes {
            let Own { config, merge, paths, stores, .. } = own;
            let frames = self.frames.as_ref();
            let number = config.number;
            let mut out = Outputs { number, stores, teller: &self.teller, frames };
            for path in paths {
                let (some, rest) = path.take(merge, buffers, lead_ns, &mut out)?;
                any |= some;
                all &= !rest;
            }
        }
        Ok((any, all))
    }

    fn tick(&mut self, now: Time) {
        for at in 0..self.lanes.len() {
            let own = &mut self.lanes[at];
            let Own { config, merge, stores, .. } = own;
            let (number, frames) = (config.number, self.frames.as_ref());
            merge.tick(now, &mut Outputs { number, stores, teller: &self.teller, frames });
            self.tidy(at, now);
        }
    }

    /// Closes what is over.
    fn tidy(&mut self, at: usize, now: Time) {
        let own = &mut self.lanes[at];
        let over = own.paths.iter().position(|path| own.merge.is_over(path.slot, now));
        if let Some(over) = over {
            let path = own.paths.remove(over);
            own.merge.remove(path.slot);
            let until = path.until.unwrap_or_default();
            // Who hears that it has left may join again at once: the socket is closed before.
            drop(path);
            if own.paths.is_empty() {
                let (number, last) = (own.config.number, until.saturating_sub(1));
                // Who hears of it finds it in the state.
                self.publish(at);
                self.teller.tell(now, Some(number), What::Stopped { last });
            }
        }
        let own = &mut self.lanes[at];
        let done = |store: &Storage| {
            store.until.is_some_and(|until| until == 0 || now >= own.merge.deadline(until - 1))
        };
        if let Some(done) = own.stores.iter().position(done) {
            let store = own.stores.remove(done);
            let pictures = !own.stores.is_empty();
            own.merge.want(Wanted { verify: self.verify, pictures });
            self.close(at, store);
        }
    }

    /// Ends a recording, on a thread of its own.
    fn close(&mut self, at: usize, store: Storage) {
        self.ends.retain(|end| !end.is_finished());
        let (teller, number) = (self.teller.clone(), self.lanes[at].config.number);
        let end = move || {
            let RecordingEnd { written, left_out } = store.recording.end();
            let what = match written {
                Ok(done) => What::Stored {
                    path: store.path,
                    frames: done.frames - done.missing,
                    missing: done.missing,
                    slow: left_out.slow,
                },
                Err(error) => What::Failed { because: format!("the recording ended: {error}") },
            };
            teller.tell(clock::monotonic(), Some(number), what);
        };
        let thread = std::thread::Builder::new().name("recording".to_owned());
        if let Ok(end) = thread.spawn(end) {
            self.ends.push(end);
        }
    }

    /// Makes the changes whose frame is next: the frames before it are not touched by them.
    fn settle(&mut self, now: Time) {
        for at in 0..self.lanes.len() {
            loop {
                let own = &mut self.lanes[at];
                let next = self.epoch.frame_at(own.rate(), now) + 1;
                let Some(Planned { frame, change }) = own.plan.due(next) else { break };
                let ordered = frame.unwrap_or(next);
                let number = own.config.number;
                // Until half of a frame has passed, little of it has arrived that is not taken.
                let begun = now.saturating_since(self.epoch.start(own.rate(), ordered));
                let frame = if begun < own.rate().period() / 2 { ordered } else { next };
                if frame > ordered {
                    self.teller.tell(now, Some(number), What::Late { ordered, frame });
                }
                own.apply(frame, change, self.verify);
                self.teller.tell(now, Some(number), What::Changed { frame });
            }
        }
    }

    fn publish(&self, at: usize) {
        let own = &self.lanes[at];
        // A reader that is at it just now sees the next one.
        let Some(mut state) = self.shared.try_lane(at) else { return };
        let span = own.merge.span();
        state.first = span.map(|(first, _)| first);
        state.last = span.map(|(_, last)| last);
        state.ssrc = own.merge.owner();
        state.counts = *own.merge.counts();
        state.trouble = own.merge.trouble();
        state.planned = own.plan.len();
        state.budget = own.budget;
        state.class = SkewClass::of(own.budget);
        state.storing = own.stores.last().map(|store| store.path.clone());
        state.paths.clear();
        state.paths.extend(own.paths.iter().map(|path| PathState {
            leg: path.leg,
            from: path.from,
            until: path.until,
            source: path.source,
            counts: own.merge.path(path.slot),
            dropped: path.dropped,
        }));
    }

    fn end(mut self) -> std::io::Result<()> {
        for at in 0..self.lanes.len() {
            while let Some(store) = self.lanes[at].stores.pop() {
                self.close(at, store);
            }
            self.publish(at);
        }
        for end in self.ends {
            // A panic was a bug that printed itself.
            let _ = end.join();
        }
        Ok(())
    }
}

impl Path {
    /// Takes what has arrived: if there was anything, and if there may be more.
    fn take(
        &mut self,
        merge: &mut Merge,
        buffers: &mut Datagrams,
        lead_ns: i64,
        out: &mut Outputs<'_>,
    ) -> std::io::Result<(bool, bool)> {
        let mut any = false;
        let Self { inlet, slot, source, dropped, .. } = self;
        for _ in 0..TAKES_MAX {
            let taken = inlet.take(buffers, |datagram| {
                let stamped =
                    datagram.realtime_ns.map(|ns| ns.wrapping_sub(lead_ns.cast_unsigned()));
                let now = stamped.map_or_else(clock::monotonic, Time::from_nanos);
                *source = Some(datagram.from);
                for packet in datagram.bytes.chunks(datagram.segment) {
                    merge.datagram(now, *slot, packet, out);
                }
            })?;
            *dropped = taken.dropped.unwrap_or(*dropped);
            any |= taken.messages > 0;
            if taken.messages < Datagrams::MESSAGES {
                return Ok((any, false));
            }
        }
        Ok((any, true))
    }
}

impl Own {
    const fn rate(&self) -> FrameRate {
        self.config.layout.geometry().rate()
    }

    fn apply(&mut self, frame: u64, step: Step, verify: bool) {
        if let Some(budget) = step.budget {
            self.budget = budget;
            self.merge.set_budget(budget);
        }
        if let Some(store) = step.store {
            for old in self.stores.iter_mut().filter(|old| old.until.is_none()) {
                old.until = Some(frame);
            }
            if let Some((path, recording)) = store {
                self.stores.push(Storage { path, recording, from: frame, until: None });
            }
            self.merge.want(Wanted { verify, pictures: !self.stores.is_empty() });
        }
        let Some(legs) = step.legs else { return };
        let stays = |path: &Path| {
            let own = |(leg, inlet): &(Leg, Option<Inlet>)| *leg == path.ordered && inlet.is_none();
            path.until.is_none() && legs.iter().any(own)
        };
        let leaving: Vec<_> = self
            .paths
            .iter()
            .enumerate()
            .filter(|(_, path)| !stays(path))
            .map(|(at, _)| at)
            .collect();
        for at in leaving {
            let path = &mut self.paths[at];
            path.until.get_or_insert(frame);
            self.merge.leave(path.slot, frame);
        }
        for (leg, inlet) in legs {
            let Some(inlet) = inlet else { continue };
            let Some(slot) = self.merge.join(frame, leg.payload_type) else { continue };
            let (ordered, leg) = (leg, Leg { address: inlet.address(), ..leg });
            let (until, source, dropped) = (None, None, 0);
            self.paths.push(Path {
                ordered,
                leg,
                inlet,
                slot,
                from: frame,
                until,
                source,
                dropped,
            });
        }
    }
}
