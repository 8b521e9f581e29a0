//! Paths, and the medium that they share if they share one, as one state machine: what [`crate::Link`] and
//! [`crate::Segment`] are made of.

use std::collections::VecDeque;

use suiro_units::Time;

use crate::medium::Medium;
use crate::outcomes::Counts;
use crate::packet::{Event, Packet};
use crate::path::Path;

#[derive(Debug)]
pub(crate) struct Machine {
    paths: Box<[Path]>,
    medium: Option<Medium>,
    /// What the caller has not yet fetched, in order of time.
    events: VecDeque<Event>,
    /// The latest thing done.
    now: Time,
}

/// What acts next.
enum Next {
    Medium,
    Path(usize),
}

impl Machine {
    pub fn new(paths: Box<[Path]>, medium: Option<Medium>) -> Self {
        Self { paths, medium, events: VecDeque::new(), now: Time::ZERO }
    }

    /// A packet arrives at the entrance of a path.
    pub fn arrive(&mut self, now: Time, path: usize, packet: Packet) {
        self.advance(now);
        self.now = self.now.max(now);
        self.paths[path].arrive(self.now, packet, &mut self.events);
        if let Some(medium) = &mut self.medium {
            medium.wake(self.now, &mut self.paths, &mut self.events);
        }
    }

    /// See [`crate::Link::next_event`].
    pub fn next_event(&self) -> Option<Time> {
        if let Some(event) = self.events.front() {
            return Some(event.at);
        }
        let on_medium = self.medium.as_ref().and_then(Medium::next_delivery);
        self.paths.iter().filter_map(Path::next_delivery).chain(on_medium).min()
    }

    /// See [`crate::Link::poll`].
    pub fn poll(&mut self, now: Time) -> Option<Event> {
        if self.events.is_empty() {
            self.advance(now);
        }
        self.events.pop_front_if(|event| event.at <= now)
    }

    /// See [`crate::Link::drain`].
    pub fn drain(&mut self, now: Time) {
        self.advance(now);
        self.now = self.now.max(now);
        if let Some(medium) = &mut self.medium {
            medium.drain(self.now, &mut self.paths, &mut self.events);
        }
        for path in &mut self.paths {
            path.drain(self.now, &mut self.events);
        }
    }

    pub fn counts(&self, path: usize) -> Counts {
        self.paths[path].counts(self.now)
    }

    /// Does everything that is due by `now`, in order of time.
    fn advance(&mut self, now: Time) {
        while let Some((at, next)) = self.next().filter(|(at, _)| *at <= now) {
            self.now = self.now.max(at);
            match next {
                Next::Path(path) => self.paths[path].step(&mut self.events),
                Next::Medium => {
                    let medium = self.medium.as_mut().expect("what acts is there");
                    medium.step(&mut self.paths, &mut self.events);
                }
            }
        }
    }

    /// When something next happens, and where. At equal times the medium comes first, then the paths in their order.
    fn next(&self) -> Option<(Time, Next)> {
        let mut next = self.medium.as_ref().and_then(Medium::next).map(|at| (at, Next::Medium));
        for (index, path) in self.paths.iter().enumerate() {
            if let Some(at) = path.next()
                && next.as_ref().is_none_or(|(first, _)| at < *first)
            {
                next = Some((at, Next::Path(index)));
            }
        }
        next
    }
}
