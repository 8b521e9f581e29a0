//! Memberships over time: when to join and leave, and what packets say about it. Pure.

use suiro_units::{Duration, Time};

/// One membership, from joining to the next joining or the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// When it began.
    pub joined: Time,
    /// The first packet after that.
    pub first: Option<Time>,
    /// When it ended.
    pub left: Option<Time>,
    /// The last packet after that.
    pub last: Option<Time>,
    /// Packets before leaving.
    pub packets: u64,
    /// Packets after leaving.
    pub packets_after: u64,
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Join the group.
    Join,
    /// Leave the group.
    Leave,
}

/// A receiver that joins at once, stays, leaves, and joins again after a pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    hold: Option<Duration>,
    pause: Option<Duration>,
    current: Option<Membership>,
    due: Option<Time>,
}

impl Schedule {
    /// `hold` is how long it stays, `None` for ever; `pause` how long it stays away, `None` for ever.
    pub const fn new(hold: Option<Duration>, pause: Option<Duration>) -> Self {
        Self { hold, pause, current: None, due: Some(Time::ZERO) }
    }

    /// When the next step is due; `None` if there is none.
    pub const fn due(&self) -> Option<Time> {
        self.due
    }

    /// The step that is due, which counts as taken at `now`, and the membership that it ends.
    pub fn step(&mut self, now: Time) -> Option<(Step, Option<Membership>)> {
        self.due.filter(|due| now >= *due)?;
        match &mut self.current {
            Some(current) if current.left.is_none() => {
                current.left = Some(now);
                self.due = self.pause.map(|pause| now + pause);
                Some((Step::Leave, None))
            }
            _ => {
                self.due = self.hold.map(|hold| now + hold);
                let begun = Membership {
                    joined: now,
                    first: None,
                    left: None,
                    last: None,
                    packets: 0,
                    packets_after: 0,
                };
                Some((Step::Join, self.current.replace(begun)))
            }
        }
    }

    /// A packet of the group came.
    pub fn packet(&mut self, now: Time) {
        let Some(current) = &mut self.current else { return };
        if current.left.is_some() {
            current.last = Some(now);
            current.packets_after += 1;
        } else {
            current.first.get_or_insert(now);
            current.packets += 1;
        }
    }

    /// The membership at the end.
    pub fn end(self) -> Option<Membership> {
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn it_joins_leaves_and_joins_again() {
        let (hold, pause) = (Duration::from_millis(100), Duration::from_millis(50));
        let mut schedule = Schedule::new(Some(hold), Some(pause));
        // Before joining there is nothing to count.
        schedule.packet(ms(0));
        assert_eq!(schedule.step(ms(1)), Some((Step::Join, None)));
        assert_eq!(schedule.step(ms(100)), None);
        schedule.packet(ms(13));
        schedule.packet(ms(14));
        assert_eq!(schedule.step(ms(102)), Some((Step::Leave, None)));
        schedule.packet(ms(110));
        assert_eq!(schedule.due(), Some(ms(152)));
        let (step, ended) = schedule.step(ms(152)).unwrap();
        let expected = Membership {
            joined: ms(1),
            first: Some(ms(13)),
            left: Some(ms(102)),
            last: Some(ms(110)),
            packets: 2,
            packets_after: 1,
        };
        assert_eq!((step, ended), (Step::Join, Some(expected)));
        let left = schedule.end().unwrap();
        assert_eq!((left.joined, left.first, left.left), (ms(152), None, None));
    }

    #[test]
    fn without_hold_it_stays_and_without_pause_it_stays_away() {
        let mut stays = Schedule::new(None, None);
        assert_eq!(stays.step(ms(0)), Some((Step::Join, None)));
        assert_eq!((stays.due(), stays.step(ms(1_000_000))), (None, None));
        let mut leaves = Schedule::new(Some(Duration::from_millis(1)), None);
        assert_eq!(leaves.step(ms(0)), Some((Step::Join, None)));
        assert_eq!(leaves.step(ms(5)), Some((Step::Leave, None)));
        assert_eq!((leaves.due(), leaves.step(ms(1_000_000))), (None, None));
    }
}
