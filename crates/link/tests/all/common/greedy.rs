//! Sources that answer to drops and marks, for disciplines that count on it.

use std::collections::BTreeMap;

use suiro_link::{Direction, Ecn, Event, Link, Packet, Verdict};
use suiro_units::{Bytes, Duration, Time};

use super::delivered;

/// Sources with a window each: one packet more per round trip, half of it after a drop or a mark,
/// once per round trip. Not a TCP: no slow start, no timeouts, no acknowledgements on the wire.
pub struct Greedy {
    sources: Vec<Source>,
    /// When the sources hear of what became of a packet.
    heard: BTreeMap<(Time, u64), (usize, bool)>,
    back: Duration,
    sent: u64,
}

#[derive(Clone)]
struct Source {
    ecn: Ecn,
    /// Half a packet less for each mark, as DCTCP and Prague on average.
    scalable: bool,
    window: f64,
    in_flight: u32,
    deaf_until: Time,
}

const SIZE: u64 = 1500;

impl Greedy {
    /// So many sources; `back` is the way back from the link's far end.
    pub fn new(count: usize, back: Duration, ecn: Ecn) -> Self {
        let source =
            Source { ecn, scalable: false, window: 10.0, in_flight: 0, deaf_until: Time::ZERO };
        Self { sources: vec![source; count], heard: BTreeMap::new(), back, sent: 0 }
    }

    /// And so many of L4S, whose windows shrink by half a packet for each mark.
    pub fn with_scalable(mut self, count: usize) -> Self {
        let source = Source {
            ecn: Ecn::Ect1,
            scalable: true,
            window: 10.0,
            in_flight: 0,
            deaf_until: Time::ZERO,
        };
        self.sources.extend(vec![source; count]);
        self
    }

    /// Runs until `end`: everything that the link said.
    pub fn run(mut self, link: &mut Link, end: Time) -> Vec<Event> {
        let mut events = Vec::new();
        (0..self.sources.len()).for_each(|source| self.fill(source, Time::ZERO, link));
        loop {
            let heard = self.heard.first_key_value().map(|(key, _)| key.0);
            let Some(now) = [heard, link.next_event()].into_iter().flatten().min() else { break };
            if now > end {
                break;
            }
            while let Some(event) = link.poll(now) {
                self.learn(&event);
                events.push(event);
            }
            while let Some(entry) = self.heard.first_entry().filter(|e| e.key().0 <= now) {
                let (source, signalled) = entry.remove();
                self.answer(source, signalled, now);
                self.fill(source, now, link);
            }
        }
        events
    }

    fn learn(&mut self, event: &Event) {
        let signalled = event.ecn_marked || matches!(event.verdict, Verdict::Dropped(_));
        assert!(signalled || delivered(event));
        let source = event.packet.flow as usize;
        self.heard.insert((event.at + self.back, event.packet.id), (source, signalled));
    }

    fn answer(&mut self, source: usize, signalled: bool, now: Time) {
        let source = &mut self.sources[source];
        source.in_flight -= 1;
        if !signalled {
            source.window += 1.0 / source.window;
        } else if source.scalable {
            source.window = (source.window - 0.5).max(2.0);
        } else if now >= source.deaf_until {
            source.window = (source.window / 2.0).max(2.0);
            source.deaf_until = now + self.back * 2;
        }
    }

    fn fill(&mut self, source: usize, now: Time, link: &mut Link) {
        while f64::from(self.sources[source].in_flight) < self.sources[source].window.floor() {
            self.sources[source].in_flight += 1;
            let size = Bytes::new(SIZE);
            let packet =
                Packet { id: self.sent, size, flow: source as u64, ecn: self.sources[source].ecn };
            self.sent += 1;
            link.arrive(now, Direction::Down, packet);
        }
    }
}
