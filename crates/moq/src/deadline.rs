//! Which groups are given up because they are late: those of which not everything is delivered when a later group of their
//! track began a given time ago. Such a stream is reset.
//!
//! QUIC sends what it has accepted of a stream, however late, unless the stream is reset, and moq-net applies no maximum age
//! to what it sends of the groups of an origin. The rule is SUBGROUP_DELIVERY_TIMEOUT of draft-ietf-moq-transport-18
//! (Delivery Timeouts), except for when its time begins: not when the group is complete, but when the next one begins. So
//! the newest group is never given up. Earlier drafts have a time for each object only.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use suiro_clock::Clock;
use suiro_units::{Duration, Time};

use crate::order::Header;
use crate::signal::Signal;

/// The code with which streams of late groups are reset: `DELIVERY_TIMEOUT` of moq-transport, in all drafts since 14.
pub(crate) const CODE: u32 = 0x2;

/// The groups of a connection that have a deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadline {
    /// The time from the beginning of the next group of the track.
    pub after: Duration,
    /// The publisher's priorities of the tracks that have it; `None`: all tracks have it.
    pub priorities: Option<Vec<u8>>,
}

impl Deadline {
    fn has(&self, priority: Option<u8>) -> bool {
        let has = |all: &Vec<u8>| priority.is_some_and(|priority| all.contains(&priority));
        self.priorities.as_ref().is_none_or(has)
    }
}

/// The groups that one connection sends.
#[derive(Debug)]
pub struct Groups {
    clock: Clock,
    deadline: Deadline,
    tracks: Mutex<Tracks>,
}

impl Groups {
    /// Those of a connection that sends nothing yet.
    pub fn new(clock: Clock, deadline: Deadline) -> Arc<Self> {
        Arc::new(Self { clock, deadline, tracks: Mutex::default() })
    }

    /// Gives up what is late. To be called every few milliseconds.
    pub fn look(&self, now: Time) {
        let late = self.tracks.lock().expect("no holder panics").late(now, self.deadline.after);
        for stream in late {
            stream.give();
        }
    }

    /// A stream with this header begins. Returns what is given when the stream is late; `None` if it has no deadline.
    pub(crate) fn began(&self, header: Header) -> Option<Arc<Signal>> {
        let sending = self.deadline.has(header.publisher).then(Arc::<Signal>::default);
        self.follow(header.track, header.group, sending.as_ref());
        sending
    }

    /// A group was sent as a datagram.
    pub(crate) fn passed(&self, (track, group): (u64, u64)) {
        self.follow(track, group, None);
    }

    fn follow(&self, track: u64, group: u64, stream: Option<&Arc<Signal>>) {
        let now = self.clock.now();
        let mut tracks = self.tracks.lock().expect("no holder panics");
        tracks.began(now, (track, group), stream.map(Arc::downgrade));
    }
}

/// The tracks by their aliases.
#[derive(Debug, Default)]
struct Tracks(BTreeMap<u64, Track>);

#[derive(Debug)]
struct Track {
    /// The newest group, and when it began.
    newest: u64,
    since: Time,
    streams: Vec<Stream>,
}

#[derive(Debug)]
struct Stream {
    /// When a later group began.
    followed: Option<Time>,
    /// Its sender holds it until everything is delivered.
    sending: Weak<Signal>,
}

impl Tracks {
    fn began(&mut self, now: Time, (track, group): (u64, u64), sending: Option<Weak<Signal>>) {
        let empty = || Track { newest: group, since: now, streams: Vec::new() };
        let track = self.0.entry(track).or_insert_with(empty);
        if group > track.newest {
            (track.newest, track.since) = (group, now);
            for stream in &mut track.streams {
                stream.followed.get_or_insert(now);
            }
        }
        let followed = (group < track.newest).then_some(track.since);
        track.streams.extend(sending.map(|sending| Stream { followed, sending }));
    }

    /// Takes out what is late, and forgets what is delivered.
    fn late(&mut self, now: Time, after: Duration) -> Vec<Arc<Signal>> {
        let mut late = Vec::new();
        self.0.retain(|_, track| {
            track.streams.retain(|stream| {
                let Some(sending) = stream.sending.upgrade() else { return false };
                let is_late = stream.followed.is_some_and(|at| now.saturating_since(at) >= after);
                if is_late {
                    late.push(sending);
                }
                !is_late
            });
            !track.streams.is_empty()
        });
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Duration = Duration::from_millis(500);

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// Begins a stream of a group.
    fn begin(tracks: &mut Tracks, ms: u64, track: u64, group: u64) -> Arc<Signal> {
        let sending = Arc::<Signal>::default();
        tracks.began(at(ms), (track, group), Some(Arc::downgrade(&sending)));
        sending
    }

    /// Whether what is late by then is these.
    fn are_late(tracks: &mut Tracks, ms: u64, expected: &[&Arc<Signal>]) -> bool {
        let late = tracks.late(at(ms), AFTER);
        late.len() == expected.len() && late.iter().zip(expected).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    #[test]
    fn a_group_is_late_when_the_next_one_began_so_long_ago() {
        let mut tracks = Tracks::default();
        let first = begin(&mut tracks, 0, 3, 7);
        assert!(are_late(&mut tracks, 60_000, &[]), "nothing follows");
        let second = begin(&mut tracks, 60_000, 3, 8);
        let _third = begin(&mut tracks, 60_200, 3, 9);
        assert!(are_late(&mut tracks, 60_499, &[]));
        assert!(are_late(&mut tracks, 60_500, &[&first]));
        assert!(are_late(&mut tracks, 60_500, &[]), "once");
        assert!(are_late(&mut tracks, 60_700, &[&second]));
        assert!(are_late(&mut tracks, 120_000, &[]), "the newest is never late");
    }

    #[test]
    fn what_is_delivered_is_forgotten() {
        let mut tracks = Tracks::default();
        let first = begin(&mut tracks, 0, 3, 7);
        let second = begin(&mut tracks, 10, 3, 8);
        drop(first);
        assert!(are_late(&mut tracks, 9000, &[]));
        drop(second);
        assert!(are_late(&mut tracks, 9000, &[]));
        assert!(tracks.0.is_empty());
    }

    #[test]
    fn each_track_has_its_own_groups_and_an_older_one_may_begin_later() {
        let mut tracks = Tracks::default();
        let _other = begin(&mut tracks, 0, 4, 1);
        let _newest = begin(&mut tracks, 100, 3, 9);
        let older = begin(&mut tracks, 300, 3, 8);
        assert!(are_late(&mut tracks, 599, &[]));
        assert!(are_late(&mut tracks, 600, &[&older]));
    }

    #[test]
    fn a_datagram_is_a_later_group_too() {
        let mut tracks = Tracks::default();
        let key = begin(&mut tracks, 0, 3, 7);
        tracks.began(at(40), (3, 8), None);
        tracks.began(at(80), (3, 9), None);
        assert!(are_late(&mut tracks, 539, &[]));
        assert!(are_late(&mut tracks, 540, &[&key]));
    }

    #[test]
    fn only_tracks_of_the_named_priorities_have_a_deadline() {
        let deadline = Deadline { after: AFTER, priorities: Some(vec![127, 220]) };
        let groups = Groups::new(Clock::from_now(), deadline);
        let began = |publisher| groups.began(Header { track: 1, group: 1, publisher }).is_some();
        let found = [Some(127), Some(220), Some(200), None].map(began);
        assert_eq!(found, [true, true, false, false]);
        let deadline = Deadline { after: AFTER, priorities: None };
        let groups = Groups::new(Clock::from_now(), deadline);
        assert!(groups.began(Header { track: 1, group: 1, publisher: None }).is_some());
    }
}
