//! Values that change at given times.

use serde::{Deserialize, Serialize};
use suiro_units::{Duration, Time};

/// A value, and the times at which another one takes its place. Times count from [`Time::ZERO`],
/// the trial's start, and increase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule<T> {
    /// The value from the start.
    pub first: T,
    /// The values that follow, in order of time.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change<T>>,
}

/// One change of a [`Schedule`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change<T> {
    /// When, counted from the trial's start.
    pub at: Duration,
    /// The value from then on.
    pub value: T,
}

impl<T> Schedule<T> {
    /// A value that never changes.
    pub const fn constant(value: T) -> Self {
        Self { first: value, changes: Vec::new() }
    }

    /// The value in force at a time; a change is in force from its very time on.
    pub fn at(&self, time: Time) -> &T {
        let past = self.changes.partition_point(|change| Time::ZERO + change.at <= time);
        past.checked_sub(1).map_or(&self.first, |index| &self.changes[index].value)
    }

    /// Every value with the time from which it is in force.
    pub fn steps(&self) -> impl Iterator<Item = (Duration, &T)> {
        let first = std::iter::once((Duration::ZERO, &self.first));
        first.chain(self.changes.iter().map(|change| (change.at, &change.value)))
    }

    /// The same times with other values.
    pub fn map<U>(&self, mut f: impl FnMut(&T) -> U) -> Schedule<U> {
        Schedule {
            first: f(&self.first),
            changes: self
                .changes
                .iter()
                .map(|change| Change { at: change.at, value: f(&change.value) })
                .collect(),
        }
    }
}

/// Walks along a schedule: times asked for never decrease.
#[derive(Debug)]
pub(crate) struct Follow<T> {
    current: T,
    rest: std::vec::IntoIter<Change<T>>,
}

impl<T> Follow<T> {
    pub fn new(schedule: Schedule<T>) -> Self {
        Self { current: schedule.first, rest: schedule.changes.into_iter() }
    }

    pub fn at(&mut self, now: Time) -> &mut T {
        while self.rest.as_slice().first().is_some_and(|next| Time::ZERO + next.at <= now) {
            let Change { value, .. } = self.rest.next().expect("the first was just looked at");
            self.current = value;
        }
        &mut self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_in_force_from_its_time_on() {
        let at = |ms| Change { at: Duration::from_millis(ms), value: ms };
        let schedule = Schedule { first: 0, changes: vec![at(10), at(20)] };
        let mut follow = Follow::new(schedule.clone());
        for (ms, value) in [(0, 0), (9, 0), (10, 10), (19, 10), (20, 20), (500, 20)] {
            assert_eq!(*schedule.at(Time::from_millis(ms)), value);
            assert_eq!(*follow.at(Time::from_millis(ms)), value);
        }
    }
}
