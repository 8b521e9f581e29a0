//! A recorder that keeps nothing: its events are taken at once.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use suiro_clock::kernel;
use suiro_record::Text;

use super::reading::Reading;
use super::{PERIOD, RecorderError, Sink, Target, Work};
use crate::agent::Tap;
use crate::agent::message::Head;
use crate::event::{DropCause, Event, Moment, Recording};
use crate::flow::FlowFilter;
use crate::namespace::Namespace;
use crate::probe::settings::FILTERS_MAX;

/// Attached probes, for an agent. Once they are attached, no privileges are needed any more.
pub struct LiveTap {
    work: Work<Read>,
    /// The kernel's names of drop reasons, by number.
    names: BTreeMap<u16, Text>,
    /// Those seen, in the order of their first drop: their positions are the numbers used in
    /// events.
    causes: Vec<u16>,
    pause: (Sender<()>, Receiver<()>),
}

/// Events that are read as soon as they arrive.
#[derive(Default)]
struct Read {
    reading: Reading,
    events: Vec<Event>,
}

impl Sink for Read {
    fn take(&mut self, raw: &[u8]) -> Result<(), RecorderError> {
        let Self { reading, events } = self;
        // The bound is one of a recording on disk. What waits for watchers has its own.
        reading.written = 0;
        reading.take(raw, |event, _| {
            events.push(*event);
            Ok(())
        })
    }
}

impl LiveTap {
    /// Attaches the probes in the calling thread's network namespace, for these flows, 1 to 8. It
    /// stays on this thread.
    ///
    /// # Errors
    /// [`RecorderError`]: no flow or too many, missing privileges, a kernel without support.
    pub fn attach(
        host: String,
        flows: Vec<FlowFilter>,
        system_calls: bool,
    ) -> Result<Self, RecorderError> {
        if flows.is_empty() || flows.len() > FILTERS_MAX {
            return Err(RecorderError::Flows(flows.len()));
        }
        let target = Target { host, flows, process: None, system_calls };
        let mut names = BTreeMap::new();
        let work = Work::start(target, &Namespace::current()?, |causes| {
            names = causes;
            Ok(Read::default())
        })?;
        Ok(Self { work, names, causes: Vec::new(), pause: channel() })
    }

    fn take(&mut self, events: &mut Vec<Event>) -> Result<Head, RecorderError> {
        // No messages are ever sent: this only passes the time.
        let _ = self.pause.1.recv_timeout(PERIOD);
        self.work.sink.reading.intake.make_room();
        // What passes from here on may come only with the next call.
        let end = Moment::now();
        self.work.take_all()?;
        let now_ns = kernel::monotonic_ns();
        if now_ns >= self.work.next_second_ns() {
            self.work.second_ends(now_ns)?;
        }
        let taken = std::mem::take(&mut self.work.sink.events);
        events.extend(
            taken
                .into_iter()
                .map(|event| Event { cause: event.cause.map(|cause| self.number(cause)), ..event }),
        );
        let names = self.causes.iter().map(|cause| match self.names.get(cause) {
            Some(name) => Text::clone(name),
            None => format!("REASON_{cause}").into(),
        });
        let causes = names.collect();
        let mut recording = Recording { end, causes, ..self.work.recording()? };
        self.work.sink.reading.tell(&mut recording);
        Ok(Head::of(&recording))
    }

    /// A cause by its number in events.
    fn number(&mut self, DropCause(cause): DropCause) -> DropCause {
        let known = self.causes.iter().position(|other| *other == cause);
        let place = known.unwrap_or_else(|| {
            self.causes.push(cause);
            self.causes.len() - 1
        });
        DropCause(u16::try_from(place).expect("the kernel's own numbers have 16 bits"))
    }
}

impl Tap for LiveTap {
    fn poll(&mut self, events: &mut Vec<Event>) -> Result<Head, String> {
        self.take(events).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::event::Point;
    use crate::probe::raw::{received, sent_from};

    #[test]
    fn an_agent_hands_over_more_than_a_recording_may_hold() {
        let mut read = Read::default();
        // It has run for weeks.
        read.reading.written = u64::MAX / 2;
        for number in 0..3 {
            read.take(&received(Point::ReceiveSocket, number, false)).unwrap();
        }
        assert_eq!(read.events.len(), 3);
        assert_eq!(read.reading.beyond.iter().sum::<u64>(), 0);
    }

    /// More flows than have numbers, a hundred in each poll.
    #[test]
    fn an_agent_follows_new_flows_however_many_it_has_seen() {
        let mut read = Read::default();
        for poll in 0..400 {
            read.reading.intake.make_room();
            for flow in poll * 100..(poll + 1) * 100 {
                read.take(&sent_from(flow)).unwrap();
            }
            let flows = &read.reading.intake.flows;
            let local = |event: Event| flows[usize::from(event.direction_flow)].local.ip();
            let seen: Vec<IpAddr> = read.events.drain(..).map(local).collect();
            let sent = (poll * 100..(poll + 1) * 100).map(|flow| Ipv4Addr::from(flow).into());
            assert_eq!(seen, sent.collect::<Vec<IpAddr>>());
        }
        assert_eq!(read.reading.intake.unplaced, 0);
    }
}
