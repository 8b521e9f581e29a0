//! Sequence numbers of one stream: which packets were lost, duplicated or late. Pure.

/// How many packets behind the newest are still distinguished: a fifth of a second of 1080p in
/// small packets.
const WINDOW: u32 = 1 << 14;
/// A step ahead of more than this is a new sequence instead of loss: two seconds of 1080p in small
/// packets.
const JUMP_MAX: u32 = 1 << 19;

/// The meaning of a sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The next one, or one ahead, after so many that are missing.
    Ahead(u32),
    /// One that was missing until now.
    Reordered,
    /// One that has arrived before.
    Duplicate,
    /// One too old to be distinguished: a replay.
    Old,
    /// The first of another sequence: the sender restarted.
    Restart,
}

/// The newest packets of a stream.
#[derive(Debug, Clone)]
pub struct Sequence {
    /// The highest number; `None` before the first packet.
    newest: Option<u32>,
    /// A bit for each of the last [`WINDOW`] numbers, indexed by its lowest bits: set if it
    /// arrived.
    came: Vec<u64>,
    /// The number that would follow a packet far outside the window: two in a row are a new
    /// sequence (RFC 3550 §A.1).
    probation: Option<u32>,
}

impl Default for Sequence {
    fn default() -> Self {
        Self { newest: None, came: vec![0; WINDOW as usize / 64], probation: None }
    }
}

impl Sequence {
    /// A packet with that number arrived.
    pub fn arrive(&mut self, number: u32) -> Arrival {
        let Some(newest) = self.newest else {
            self.begin(number);
            return Arrival::Ahead(0);
        };
        let ahead = number.wrapping_sub(newest);
        if (1..=JUMP_MAX).contains(&ahead) {
            self.forget(newest, ahead);
            self.newest = Some(number);
            self.mark(number);
            self.probation = None;
            return Arrival::Ahead(ahead - 1);
        }
        if newest.wrapping_sub(number) >= WINDOW {
            return self.outside(number);
        }
        if self.has(number) {
            return Arrival::Duplicate;
        }
        self.mark(number);
        Arrival::Reordered
    }

    fn outside(&mut self, number: u32) -> Arrival {
        if self.probation.replace(number.wrapping_add(1)) != Some(number) {
            return Arrival::Old;
        }
        self.begin(number);
        Arrival::Restart
    }

    fn begin(&mut self, number: u32) {
        // Packets before the first of a sequence will never arrive: treat them as if they had.
        self.came.fill(u64::MAX);
        (self.newest, self.probation) = (Some(number), None);
    }

    /// Makes room for the `ahead` numbers after `newest`.
    fn forget(&mut self, newest: u32, ahead: u32) {
        for step in 1..=ahead.min(WINDOW) {
            let at = newest.wrapping_add(step) % WINDOW;
            self.came[at as usize / 64] &= !(1 << (at % 64));
        }
    }

    fn mark(&mut self, number: u32) {
        let at = number % WINDOW;
        self.came[at as usize / 64] |= 1 << (at % 64);
    }

    fn has(&self, number: u32) -> bool {
        let at = number % WINDOW;
        self.came[at as usize / 64] & 1 << (at % 64) != 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn arrivals(numbers: impl IntoIterator<Item = u32>) -> Vec<Arrival> {
        let mut sequence = Sequence::default();
        numbers.into_iter().map(|number| sequence.arrive(number)).collect()
    }

    #[test]
    fn gaps_and_duplicates_are_distinguished() {
        use Arrival::{Ahead, Duplicate, Reordered};
        assert_eq!(
            arrivals([7, 8, 11, 10, 10, 9, 11, 12]),
            [Ahead(0), Ahead(0), Ahead(2), Reordered, Duplicate, Reordered, Duplicate, Ahead(0)]
        );
        assert_eq!(arrivals([7, 6]), [Ahead(0), Duplicate], "nothing comes before the first");
    }

    #[test]
    fn numbers_wrap() {
        let all = arrivals([u32::MAX - 1, u32::MAX, 1, 0]);
        let expected =
            [Arrival::Ahead(0), Arrival::Ahead(0), Arrival::Ahead(1), Arrival::Reordered];
        assert_eq!(all, expected);
    }

    #[test]
    fn a_replay_is_old_and_two_in_a_row_are_a_new_sequence() {
        use Arrival::{Ahead, Old, Restart};
        let far = 1 << 25;
        assert_eq!(
            arrivals([far, 5, far + 1, 9, 10, 11]),
            [Ahead(0), Old, Ahead(0), Old, Restart, Ahead(0)]
        );
    }

    proptest! {
        #[test]
        fn what_is_missing_in_the_end_was_counted(
            came in proptest::collection::vec(any::<bool>(), 2..500),
            swaps in proptest::collection::vec(0usize..499, 0..50),
        ) {
            let mut numbers: Vec<u32> = (0..came.len() as u32).filter(|at| came[*at as usize]).collect();
            prop_assume!(numbers.len() > 2);
            for at in swaps {
                // The first stays the first: a stream is known from its first packet on.
                if at > 0 && at + 1 < numbers.len() {
                    numbers.swap(at, at + 1);
                }
            }
            let (mut missing, mut received) = (0i64, 0);
            for arrival in arrivals(numbers.iter().copied()) {
                match arrival {
                    Arrival::Ahead(lost) => { missing += i64::from(lost); received += 1 }
                    Arrival::Reordered => { missing -= 1; received += 1 }
                    other => panic!("{other:?}"),
                }
            }
            let span = numbers.iter().max().unwrap() - numbers[0] + 1;
            prop_assert_eq!(received, numbers.len() as i64);
            prop_assert_eq!(missing, i64::from(span) - received);
        }
    }
}
