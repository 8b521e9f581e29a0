//! One direction of a link: loss, queue, server, propagation, in this order.

use std::collections::VecDeque;

use suiro_units::{Duration, Seed, Time};

use crate::config::PathConfig;
use crate::loss::Loss;
use crate::outcomes::{Counts, Outcomes, Sink};
use crate::packet::{Cause, Direction, Event, MAX_PACKET, Packet, Passage, Verdict};
use crate::propagation::Propagation;
use crate::queue::Queue;
use crate::server::Server;
use crate::turns::Turns;

#[derive(Debug)]
pub(crate) struct Path {
    /// None if nothing is drawn for packets by themselves.
    turns: Option<Turns>,
    loss: Loss,
    queue: Queue,
    server: Server,
    service: Service,
    propagation: Propagation,
    outcomes: Outcomes,
}

/// What the server is doing.
#[derive(Debug)]
enum Service {
    /// The queue is empty.
    Idle,
    /// Not its own: the medium that stations share takes packets when it can.
    Shared,
    /// It will take the next packet at this time; `None`: never.
    Waiting(Option<Time>),
    /// This packet will be out at that time; `None`: never.
    Busy(Passage, Option<Time>),
}

impl Path {
    pub fn new(config: &PathConfig, direction: Direction, seed: Seed) -> Self {
        let seed = seed.derive(direction.name());
        Self {
            turns: config.draws_for_packets().then(Turns::default),
            loss: Loss::new(&config.loss, seed.derive("loss")),
            queue: Queue::new(&config.queue, seed.derive("queue")),
            server: Server::new(&config.server, seed.derive("server")),
            service: if config.server.is_shared() { Service::Shared } else { Service::Idle },
            propagation: Propagation::new(&config.propagation, seed.derive("propagation")),
            outcomes: Outcomes::new(direction),
        }
    }

    /// A packet arrives; everything due by `now` has been done.
    pub fn arrive(&mut self, now: Time, packet: Packet, events: &mut VecDeque<Event>) {
        let counts = &mut self.outcomes.counts;
        let passage = Passage {
            packet,
            number: counts.arrived,
            turn: self.turns.as_mut().map_or(0, |turns| turns.next(packet.flow)),
            arrived: now,
            backlog: self.queue.backlog(),
            dequeued: None,
            ecn_marked: false,
            attempts: 0,
        };
        counts.arrived += 1;
        counts.arrived_bytes += packet.size;
        counts.inside += 1;
        let mut sink = Sink { outcomes: &mut self.outcomes, events };
        if self.loss.loses(now, &passage) {
            sink.dropped(now, passage, Cause::Loss);
            return;
        }
        let largest = self.server.largest().unwrap_or(MAX_PACKET.get()).min(MAX_PACKET.get());
        if passage.size() > largest {
            sink.dropped(now, passage, Cause::Size);
            return;
        }
        self.queue.enqueue(now, passage, &mut sink);
        if matches!(self.service, Service::Idle) {
            self.go_on(now, events);
        }
    }

    /// The server is free: it takes a packet, or waits until it can, or rests. It asks an empty
    /// queue too, as a network card does: FQ-CoDel forgets a flow when it finds its queue empty (RFC
    /// 8290 §4.2), and CoDel that packets waited for long (RFC 8289 §5.6).
    fn go_on(&mut self, now: Time, events: &mut VecDeque<Event>) {
        if self.queue.backlog().packets == 0 {
            self.take(now, events);
            return;
        }
        let takes_at = self.server.takes_at(now);
        self.service = Service::Waiting(takes_at);
        if takes_at == Some(now) {
            self.take(now, events);
        }
    }

    /// The server takes the packet that the discipline gives it, if it gives one.
    fn take(&mut self, now: Time, events: &mut VecDeque<Event>) {
        let mut sink = Sink { outcomes: &mut self.outcomes, events };
        match self.queue.dequeue(now, &mut sink) {
            Some(mut passage) => {
                passage.dequeued = Some(now);
                self.service = Service::Busy(passage, self.server.serve(now, passage.size()));
            }
            None => self.rest(),
        }
    }

    fn rest(&mut self) {
        self.server.rest();
        self.service = Service::Idle;
    }

    /// When something next happens inside.
    pub fn next(&self) -> Option<Time> {
        match (self.server_acts(), self.propagation.next()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// A time before which nothing is delivered.
    pub fn next_delivery(&self) -> Option<Time> {
        let served = self.server_acts().map(|at| self.propagation.soonest(at));
        match (served, self.propagation.next()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn server_acts(&self) -> Option<Time> {
        match self.service {
            Service::Idle | Service::Shared => None,
            Service::Waiting(at) | Service::Busy(_, at) => at,
        }
    }

    /// Does what happens next, at the time that [`Self::next`] gave. At equal times the server goes
    /// first.
    pub fn step(&mut self, events: &mut VecDeque<Event>) {
        let delivery = self.propagation.next();
        let due = |at: Time| delivery.is_none_or(|delivery| at <= delivery);
        match self.service {
            Service::Waiting(Some(at)) if due(at) => self.take(at, events),
            Service::Busy(passage, Some(at)) if due(at) => {
                let service = at.saturating_since(passage.dequeued.unwrap_or(at));
                let mut sink = Sink { outcomes: &mut self.outcomes, events };
                self.propagation.enter(at, passage, service, &mut sink);
                self.go_on(at, events);
            }
            _ => self.propagation.deliver(&mut Sink { outcomes: &mut self.outcomes, events }),
        }
    }

    /// Everything still inside, as [`Verdict::Queued`].
    pub fn drain(&mut self, now: Time, events: &mut VecDeque<Event>) {
        let mut sink = Sink { outcomes: &mut self.outcomes, events };
        while let Some((passage, last)) = self.propagation.pop() {
            sink.ends(now, passage, Verdict::Queued, last);
        }
        if let Service::Busy(passage, _) = self.service {
            sink.ends(now, passage, Verdict::Queued, true);
        }
        if !matches!(self.service, Service::Shared) {
            self.service = Service::Idle;
        }
        while let Some(passage) = self.queue.pop() {
            sink.ends(now, passage, Verdict::Queued, true);
        }
        self.server.rest();
    }

    /// Whether nothing waits in the queue.
    pub fn is_empty(&self) -> bool {
        self.queue.backlog().packets == 0
    }

    /// The medium takes the packet that the discipline gives it, if it gives one.
    pub fn take_for_medium(&mut self, now: Time, events: &mut VecDeque<Event>) -> Option<Passage> {
        let mut sink = Sink { outcomes: &mut self.outcomes, events };
        let passage = self.queue.dequeue(now, &mut sink)?;
        Some(Passage { dequeued: Some(now), ..passage })
    }

    /// Nothing waits for the medium: asks the empty queue, as [`Self::go_on`] does.
    pub fn rest_in_medium(&mut self, now: Time, events: &mut VecDeque<Event>) {
        let passage = self.take_for_medium(now, events);
        debug_assert!(passage.is_none(), "the queue is empty");
    }

    /// A packet has come through the medium, maybe together with others: it had no time of service of its own.
    pub fn out_of_the_medium(&mut self, now: Time, passage: Passage, events: &mut VecDeque<Event>) {
        let mut sink = Sink { outcomes: &mut self.outcomes, events };
        self.propagation.enter(now, passage, Duration::ZERO, &mut sink);
    }

    /// A packet has not come through the medium, or was still in it: how it ends.
    pub fn ends_in_medium(
        &mut self,
        now: Time,
        passage: Passage,
        verdict: Verdict,
        events: &mut VecDeque<Event>,
    ) {
        Sink { outcomes: &mut self.outcomes, events }.ends(now, passage, verdict, true);
    }

    pub fn counts(&self, now: Time) -> Counts {
        Counts { trace_wraps: self.server.wraps(now), ..self.outcomes.counts }
    }
}
