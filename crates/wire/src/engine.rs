//! One turn of the work that carries a link or a segment: frames go from any of its hosts into the link core, and leave when
//! the core decides.
//!
//! The core runs in logical time. A frame's arrival time is when the kernel received it, not when
//! a thread read it; its departure time is the core's. So a late wake-up delays frames once, is
//! measured as lateness, and does not accumulate. The core is never advanced past a moment before
//! it has been handed everything that arrived until then.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use suiro_clock::Axis;
use suiro_link::{Cause, Ecn, Event, Packet, Verdict};
use suiro_units::{Bytes, Duration, Time};

use crate::flows::{FlowId, Flows, Known};
use crate::frame::{self, Headers};
use crate::link_core::Core;
use crate::pool::{Pool, Slot};
use crate::recorder::{PacketRow, Recorder};
use crate::socket::{BATCH, PacketSocket, Received};
use crate::totals::Counts;
use crate::words;

/// Most frames taken from the rings before due departures are sent.
const ARRIVALS_MAX: usize = 128;

/// How long a frame that was sent before the link's end may take into a ring.
const SETTLE: Duration = Duration::from_millis(1);
/// Longest that frames wait in the rings unread; the rings hold ten times as much.
const LOOKAHEAD_MAX: Duration = Duration::from_millis(5);

/// A running link or segment.
pub(crate) struct Engine {
    clock: Axis,
    /// Each is the source of frames, with their counters.
    sides: Vec<Side>,
    core: Core,
    pool: Pool<Meta>,
    flows: Flows,
    recorder: Option<Recorder>,
    /// The core has been advanced to this time.
    reached: Time,
    /// CLOCK_REALTIME, in nanoseconds: frames that the kernel received later are not the link's any more.
    until_ns: u64,
    /// The shortest time in which an arriving frame can leave: the rings are left unread for that
    /// long, because frames carry timestamps. That halves the wake-ups.
    lookahead: Duration,
    /// By receiving side: packets that the core has released and that are not sent yet.
    outbox: Vec<Vec<Event>>,
}

/// One host's end of the link or segment.
pub(crate) struct Side {
    pub socket: PacketSocket,
    pub counts: Counts,
    /// Whether it shares a medium with the others.
    pub shared: bool,
}

impl Side {
    pub(crate) fn new(socket: PacketSocket, shared: bool) -> Self {
        Self { socket, counts: Counts::new(), shared }
    }
}

/// What the core does not know about a packet in it.
#[derive(Debug, Clone, Copy)]
struct Meta {
    /// The side that it came from, and the one that it is for.
    from: u16,
    to: u16,
    flow: FlowId,
    payload: Option<u32>,
}

/// What remains of a link that has ended.
pub(crate) struct Carried {
    pub sides: Vec<Side>,
    pub recorder: Option<Recorder>,
    /// CLOCK_MONOTONIC at the link's end, in nanoseconds.
    pub until_monotonic_ns: u64,
}

impl Engine {
    /// `least_delay`: every packet stays in the core at least this long.
    pub(crate) fn new(
        clock: Axis,
        sides: Vec<Side>,
        (core, least_delay): (Core, Duration),
        recorder: Option<Recorder>,
    ) -> Self {
        let mtu = sides.iter().map(|side| side.socket.mtu).max().unwrap_or(0);
        Self {
            clock,
            core,
            pool: Pool::new(mtu + frame::ETHERNET_BYTES),
            flows: Flows::of(sides.len()),
            recorder,
            reached: Time::ZERO,
            until_ns: u64::MAX,
            lookahead: least_delay.min(LOOKAHEAD_MAX),
            outbox: vec![Vec::new(); sides.len()],
            sides,
        }
    }

    /// Takes what arrived, [`ARRIVALS_MAX`] frames at most, and sends what is due. Returns false if there is more to take
    /// at once.
    pub(crate) fn turn(&mut self) -> bool {
        let now = self.clock.now();
        let all_taken = self.take_arrivals();
        self.advance(if all_taken { now } else { self.reached });
        self.send();
        all_taken
    }

    /// The sockets once more, to wait for frames.
    pub(crate) fn sockets(&self) -> io::Result<Vec<OwnedFd>> {
        self.sides.iter().map(|side| side.socket.as_fd().try_clone_to_owned()).collect()
    }

    /// When the core next has something to do; `None` until something arrives.
    pub(crate) fn next_event(&self) -> Option<Time> {
        self.core.next_event()
    }

    /// Whether frames that arrive before the next event may stay in the rings until then.
    pub(crate) fn may_leave_unread(&self) -> bool {
        self.core.next_event().is_some_and(|next| next <= self.reached + self.lookahead)
    }

    /// Ends the link: every frame that the kernel received until now counts, no later one does. Packets still in it are
    /// recorded as queued.
    pub(crate) fn finish(mut self) -> Carried {
        let end = suiro_clock::kernel::realtime();
        self.until_ns = end.other;
        let settled = self.clock.now() + SETTLE;
        while !self.turn() || self.clock.now() < settled {}
        let now = self.clock.now().max(self.reached);
        self.core.drain(now);
        self.advance(now);
        self.send();
        for (from, side) in self.sides.iter_mut().enumerate() {
            // The core's count: a copy that is still in the link ends as a queued packet like any other.
            side.counts.duplicated = self.core.counts(from).duplicated;
        }
        let until_monotonic_ns = end.monotonic_ns;
        Carried { sides: self.sides, recorder: self.recorder, until_monotonic_ns }
    }

    /// Takes frames from all rings in order of arrival, [`ARRIVALS_MAX`] at most. Returns true if
    /// they are empty now, or hold only what arrived after the link's end.
    fn take_arrivals(&mut self) -> bool {
        let mut reading = None;
        for _ in 0..ARRIVALS_MAX {
            let in_time = |arrived: &u64| *arrived <= self.until_ns;
            let first = |(from, side): (usize, &mut Side)| {
                Some((side.socket.peek_realtime_ns().filter(in_time)?, from))
            };
            let firsts = self.sides.iter_mut().enumerate().filter_map(first);
            let Some((_, from)) = firsts.min() else { return true };
            let reading = reading.get_or_insert_with(|| Reading::of(self.clock));
            self.take(from, reading);
        }
        false
    }

    /// Hands the next frame of a side to the core.
    fn take(&mut self, from: usize, reading: &mut Reading) {
        let Self { sides, core, pool, flows, recorder, .. } = self;
        let Side { socket, counts, .. } = &mut sides[from];
        let taken = socket.receive(|frame: &Received<'_>| {
            let headers = frame::parse(frame.bytes).filter(|_| !frame.tagged);
            let Some((headers, to)) = headers.zip(core.receiver(from, frame.bytes)) else {
                counts.foreign += 1;
                return None;
            };
            counts.offered += 1;
            let flow = flows.find(from, headers.flow, |flow| {
                if let Some(recorder) = recorder {
                    recorder.flow(flow);
                }
            });
            if !frame.whole {
                // It is missing at the end: offered and nothing else.
                return None;
            }
            let payload = headers.payload;
            let meta = Meta { from: from as u16, to: to as u16, flow: flow.id, payload };
            let slot = admit(pool, counts, frame.bytes, meta)?;
            Some((packet(slot, flow, &headers), frame.realtime_ns))
        });
        if let Some(Some((packet, realtime_ns))) = taken {
            let at = reading.arrival(realtime_ns, self.clock).max(self.reached);
            self.advance(at);
            self.core.arrive(at, from, packet);
        }
    }

    /// Advances the core to a moment, unless it is already past it.
    fn advance(&mut self, to: Time) {
        self.reached = self.reached.max(to);
        while let Some(event) = self.core.poll(self.reached) {
            match event.verdict {
                Verdict::Delivered { .. } => {
                    let to = meta(&self.pool, &event).to;
                    self.outbox[usize::from(to)].push(event);
                }
                _ => end(&event, &mut self.sides, &mut self.pool, self.recorder.as_mut(), None),
            }
        }
    }

    /// Sends everything that the core has released.
    fn send(&mut self) {
        for to in 0..self.outbox.len() {
            let mut due = std::mem::take(&mut self.outbox[to]);
            let mut rest = &due[..];
            while !rest.is_empty() {
                let (batch, later) = rest.split_at(batch_length(rest));
                self.send_batch(to, batch);
                rest = later;
            }
            due.clear();
            self.outbox[to] = due;
        }
    }

    fn send_batch(&mut self, to: usize, batch: &[Event]) {
        let Self { sides, pool, .. } = self;
        for event in batch {
            pool.warm(slot(event));
            alter(pool.frame_mut(slot(event)), event);
        }
        let mut frames: [&[u8]; BATCH] = [&[]; BATCH];
        for (frame, event) in frames.iter_mut().zip(batch) {
            *frame = pool.frame(slot(event));
        }
        let before = self.clock.now();
        let sent = sides[to].socket.send(&frames[..batch.len()]);
        let took = self.clock.now() - before;
        for (i, event) in (0u64..).zip(batch) {
            restore(pool.frame_mut(slot(event)), event);
            // The kernel takes them one after the other, each in about the same time.
            let departed = before + took * i / batch.len() as u64;
            let departed = (i < sent as u64).then_some(departed);
            if departed.is_some() {
                let from = usize::from(meta(pool, event).from);
                sides[from].counts.departure_error.add(took);
            }
            end(event, sides, pool, self.recorder.as_mut(), departed);
        }
    }
}

/// The clocks, read once for many frames: a reading costs a tenth of what a packet costs the carrier.
struct Reading {
    now: Time,
    lead_ns: i64,
}

impl Reading {
    fn of(clock: Axis) -> Self {
        Self { now: clock.now(), lead_ns: clock.realtime_lead_ns() }
    }

    /// When a frame arrived: the kernel's timestamp on our clock, but never in the future, as after a step of the wall
    /// clock. Frames that arrived since the last reading need another one.
    #[inline]
    fn arrival(&mut self, realtime_ns: u64, clock: Axis) -> Time {
        let stamp = realtime_ns.cast_signed().saturating_sub(self.lead_ns).max(0);
        let stamp = Time::from_nanos(stamp.cast_unsigned());
        if stamp > self.now {
            self.now = clock.now();
        }
        stamp.min(self.now)
    }
}

/// A packet as the core sees it.
fn packet(slot: Slot, flow: Known, headers: &Headers) -> Packet {
    Packet {
        id: slot.into(),
        size: Bytes::new(headers.size.into()),
        flow: flow.identity,
        ecn: Ecn::from_bits(headers.ecn),
    }
}

/// Copies a frame into the pool. If that is full, a bound of the emulator is reached: the packet is counted as dropped for it,
/// but has no row and no number, because the core does not hear of it.
fn admit(pool: &mut Pool<Meta>, counts: &mut Counts, frame: &[u8], meta: Meta) -> Option<Slot> {
    let slot = pool.put(frame, meta);
    if slot.is_none() {
        counts.count_end(Verdict::Dropped(Cause::Limit));
    }
    slot
}

fn slot(event: &Event) -> Slot {
    Slot::try_from(event.packet.id).expect("the core hands back the slot it was given")
}

fn meta(pool: &Pool<Meta>, event: &Event) -> Meta {
    *pool.meta(slot(event)).expect("a packet in the link has its slot")
}

/// How many of the first packets may go in one batch: a corrupted one goes on its own, because a
/// copy of it may share its memory.
fn batch_length(due: &[Event]) -> usize {
    let corrupted =
        |event: &Event| matches!(event.verdict, Verdict::Delivered { corruption: Some(_), .. });
    let whole = due.iter().take(BATCH).take_while(|event| !corrupted(event)).count();
    whole.max(1)
}

/// Applies to a frame the changes that the core decided on.
fn alter(frame: &mut [u8], event: &Event) {
    if event.ecn_marked {
        frame::mark_congestion(frame);
    }
    restore(frame, event);
}

/// Flips the packet's bit, or flips it back: a copy may still be in the link.
fn restore(frame: &mut [u8], event: &Event) {
    if let Verdict::Delivered { corruption: Some(corruption), .. } = event.verdict {
        frame::flip_bit(frame, corruption.byte, corruption.bit);
    }
}

/// A packet leaves the link: it is counted and recorded, and its memory is freed. A delivery
/// without a departure time failed: it is not counted, and therefore missing.
fn end(
    event: &Event,
    sides: &mut [Side],
    pool: &mut Pool<Meta>,
    recorder: Option<&mut Recorder>,
    departed: Option<Time>,
) {
    let Meta { from, flow, payload, .. } = meta(pool, event);
    let Side { counts, shared, .. } = &mut sides[usize::from(from)];
    counts.count_end(event.verdict);
    let delivered = matches!(event.verdict, Verdict::Delivered { .. });
    if let Some(departed) = departed {
        counts.count_delivered(event.verdict);
        counts.lateness.add(departed.saturating_since(event.at));
    }
    if event.last {
        pool.take(slot(event));
    }
    let Some(recorder) = recorder else { return };
    recorder.row(PacketRow {
        arrived: event.arrived,
        direction: event.direction,
        number: event.number,
        from,
        flow,
        size: event.packet.size.get() as u32,
        payload,
        queue_bytes: event.backlog.bytes.get(),
        queue_packets: event.backlog.packets.into(),
        verdict: words::verdict(&event.verdict),
        cause: words::cause(&event.verdict),
        ecn_marked: event.ecn_marked,
        dequeued: event.dequeued,
        scheduled: delivered.then_some(event.at),
        departed,
        attempts: shared.then_some(event.attempts),
    });
}

#[cfg(test)]
mod tests {
    use suiro_link::Direction;
    use suiro_record::words::LinkCause;

    use super::*;
    use crate::pool::POOL_BYTES_MAX;
    use crate::totals::{KernelLosses, fault};

    #[test]
    fn a_full_pool_is_a_bound_of_the_emulator_and_no_loss() {
        // Of frames as large as this, not even one chunk fits.
        let mut pool = Pool::new(POOL_BYTES_MAX);
        let mut counts = Counts::new();
        counts.offered = 1;
        let meta = Meta { from: 0, to: 1, flow: 0, payload: None };
        assert_eq!(admit(&mut pool, &mut counts, &[0; 60], meta), None);
        let totals = counts.totals("access", Direction::Down, KernelLosses::default());
        assert!(fault(&totals).unwrap().because.contains("own bounds"));
        assert_eq!((totals.unaccounted, totals.dropped), (0, [(LinkCause::Limit, 1)].into()));
    }
}
