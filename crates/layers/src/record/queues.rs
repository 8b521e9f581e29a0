//! Which datagram a receiving system call took. The call only provides its socket and a length, but
//! a socket's queue is first in, first out. So this module keeps the queue's contents in order,
//! removes what the kernel dropped, and gives each call the first datagram.

use std::collections::{BTreeMap, VecDeque};

use crate::event::Key;

/// Most sockets that are followed at once; for further ones, those are forgotten that were used longest ago.
const SOCKETS_MAX: usize = 4096;
/// Most datagrams that are held per socket: more than fit in a default buffer of 212,992 bytes.
const DATAGRAMS_MAX: usize = 1 << 16;

/// A datagram in a socket's queue. Datagrams of a super-packet that the application takes in one
/// call (UDP_GRO) follow its first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// Flow in the recording; `None` if it belongs to none.
    pub flow: Option<u16>,
    /// Its key.
    pub key: Key,
    /// IPv4 identification.
    pub ip_id: u16,
    /// Payload.
    pub bytes: u32,
    /// Number within its super-packet.
    pub segment: u16,
}

/// The queues of all sockets of interest.
#[derive(Debug, Default)]
pub struct Queues {
    /// By the socket's cookie, which no later socket has.
    sockets: BTreeMap<u64, Queue>,
    /// Datagrams that have entered a queue.
    entered: u64,
    /// Calls whose datagram is unknown.
    pub unjoined: u64,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Datagram>,
    /// Calls that will take datagrams from before the first known one; `None` if unknown.
    ahead: Option<u32>,
    /// The number of the latest datagram that entered, over all queues.
    latest: u64,
}

impl Queues {
    /// A datagram is about to enter the queue of `socket`, which holds `queued` datagrams.
    pub fn enter(&mut self, socket: u64, queued: u32, datagram: Datagram) {
        if self.sockets.len() >= SOCKETS_MAX && !self.sockets.contains_key(&socket) {
            self.make_room();
        }
        self.entered += 1;
        let queue = self.sockets.entry(socket).or_default();
        if queue.waiting.len() == DATAGRAMS_MAX {
            *queue = Queue::default();
        }
        queue.ahead.get_or_insert(queued);
        queue.latest = self.entered;
        queue.waiting.push_back(datagram);
    }

    /// Forgets the sockets with an empty queue. The kernel does not report when a socket closes, so if many are left, it forgets
    /// the half that was used longest ago.
    fn make_room(&mut self) {
        self.sockets.retain(|_, queue| !queue.waiting.is_empty());
        let mut latest: Vec<u64> = self.sockets.values().map(|queue| queue.latest).collect();
        if latest.len() > SOCKETS_MAX / 2 {
            let half = latest.len() / 2;
            let (_, &mut middle, _) = latest.select_nth_unstable(half);
            self.sockets.retain(|_, queue| queue.latest >= middle);
        }
    }

    /// The kernel dropped a datagram: the latest with that key, if it was in a queue at all. Without its socket (0), it was in
    /// the queue that was used last.
    pub fn leave(&mut self, socket: u64, flow: Option<u16>, key: Key) {
        let place = |queue: &Queue| {
            let is = |d: &Datagram| d.key.may_be(key) && d.flow == flow;
            queue.waiting.iter().rposition(is)
        };
        let queue = if socket == 0 {
            let holding = self.sockets.values_mut().filter(|queue| place(queue).is_some());
            holding.max_by_key(|queue| queue.latest)
        } else {
            self.sockets.get_mut(&socket)
        };
        if let Some(queue) = queue
            && let Some(at) = place(queue)
        {
            queue.waiting.remove(at);
        }
    }

    /// A system call took `bytes` bytes from `socket`: the datagram, or those of a super-packet.
    pub fn take(&mut self, socket: u64, bytes: u32, mut each: impl FnMut(Datagram)) {
        let queue = match self.sockets.get_mut(&socket) {
            Some(queue) if queue.ahead.is_some() => queue,
            _ => return self.unjoined += 1,
        };
        if let Some(ahead) = queue.ahead.as_mut().filter(|ahead| **ahead > 0) {
            *ahead -= 1;
            self.unjoined += 1;
            return;
        }
        let following = queue.waiting.iter().skip(1).take_while(|d| d.segment > 0).count();
        let count = queue.waiting.len().min(1 + following);
        let whole: u32 = queue.waiting.iter().take(count).map(|d| d.bytes).sum();
        // A buffer may be too short for the datagram, but the datagram is never shorter than what
        // was read.
        if count == 0 || bytes > whole {
            self.unjoined += 1;
            queue.waiting.clear();
            queue.ahead = queue.ahead.filter(|_| count == 0);
            return;
        }
        queue.waiting.drain(..count).for_each(&mut each);
    }

    /// Events were lost: the state of the queues is unknown until the next datagram enters.
    pub fn forget(&mut self) {
        self.sockets.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn datagram(number: u64) -> Datagram {
        Datagram { flow: Some(0), key: Key::Hash(number), ip_id: 0, bytes: 100, segment: 0 }
    }

    fn take(queues: &mut Queues, bytes: u32) -> Vec<Key> {
        let mut keys = Vec::new();
        queues.take(1, bytes, |datagram| keys.push(datagram.key));
        keys
    }

    #[test]
    fn datagrams_queued_before_the_recorder_started_are_skipped() {
        let mut queues = Queues::default();
        queues.enter(1, 2, datagram(7));
        assert_eq!(take(&mut queues, 100), []);
        assert_eq!(take(&mut queues, 100), []);
        assert_eq!(take(&mut queues, 100), [Key::Hash(7)]);
        assert_eq!(queues.unjoined, 2);
    }

    #[test]
    fn dropped_datagrams_are_never_taken() {
        let mut queues = Queues::default();
        (0..3).for_each(|number| queues.enter(1, 0, datagram(number)));
        queues.leave(1, Some(0), Key::Hash(1));
        queues.leave(0, Some(0), Key::Hash(0));
        queues.leave(9, Some(0), Key::Hash(2));
        assert_eq!(take(&mut queues, 100), [Key::Hash(2)]);
        assert_eq!(take(&mut queues, 100), []);
        assert_eq!(queues.unjoined, 1);
    }

    #[test]
    fn a_super_packet_is_taken_at_once() {
        let mut queues = Queues::default();
        for segment in 0..3 {
            queues.enter(1, 0, Datagram { segment, ..datagram(segment.into()) });
        }
        queues.enter(1, 0, datagram(3));
        assert_eq!(take(&mut queues, 300), [0, 1, 2].map(Key::Hash));
        assert_eq!(take(&mut queues, 20), [Key::Hash(3)], "into a short buffer");
    }

    #[test]
    fn an_impossible_length_resets_the_queue() {
        let mut queues = Queues::default();
        queues.enter(1, 0, datagram(0));
        assert_eq!(take(&mut queues, 101), []);
        assert_eq!(take(&mut queues, 100), [], "nothing is known until a datagram enters");
        queues.enter(1, 1, datagram(1));
        assert_eq!(take(&mut queues, 100), []);
        assert_eq!(take(&mut queues, 100), [Key::Hash(1)]);
    }

    #[test]
    fn a_queue_beyond_the_bound_begins_anew() {
        let mut queues = Queues::default();
        let most = DATAGRAMS_MAX as u64;
        (0..most).for_each(|number| queues.enter(1, number as u32, datagram(number)));
        // The socket's own queue had been read but for one datagram, without our seeing it.
        queues.enter(1, 1, datagram(most));
        queues.enter(1, 2, datagram(most + 1));
        assert_eq!(take(&mut queues, 100), []);
        assert_eq!(take(&mut queues, 100), [Key::Hash(most)]);
        assert_eq!(take(&mut queues, 100), [Key::Hash(most + 1)]);
    }

    /// A socket that closes before it has read a datagram never takes it, and its closing is not recorded.
    #[test]
    fn closed_sockets_make_room_for_new_ones() {
        let mut queues = Queues::default();
        let most = SOCKETS_MAX as u64;
        (1..=most + 1).for_each(|socket| queues.enter(socket, 0, datagram(socket)));
        let mut taken = Vec::new();
        for socket in [most + 1, most, 1] {
            queues.take(socket, 100, |datagram| taken.push(datagram.key));
        }
        assert_eq!(taken, [most + 1, most].map(Key::Hash));
        assert_eq!(queues.unjoined, 1, "the first was used longest ago");
    }

    #[test]
    fn a_drop_without_its_socket_is_in_the_queue_that_was_used_last() {
        let mut queues = Queues::default();
        queues.enter(1, 0, datagram(7));
        queues.enter(2, 0, datagram(7));
        queues.leave(0, Some(0), Key::Hash(7));
        assert_eq!(take(&mut queues, 100), [Key::Hash(7)]);
        queues.take(2, 100, |datagram| panic!("{datagram:?} was dropped"));
    }

    proptest! {
        /// Compared with a real queue: entries, drops of the latest entry, and calls.
        #[test]
        fn calls_take_what_the_socket_holds(steps in proptest::collection::vec(0u8..3, 0..200)) {
            let (mut queues, mut socket) = (Queues::default(), VecDeque::new());
            for (number, step) in (0u64..).zip(steps) {
                match step {
                    0 => {
                        queues.enter(1, socket.len() as u32, datagram(number));
                        socket.push_back(Key::Hash(number));
                    }
                    1 => {
                        queues.enter(1, socket.len() as u32, datagram(number));
                        queues.leave(1, Some(0), Key::Hash(number));
                    }
                    _ => {
                        let expected: Vec<Key> = socket.pop_front().into_iter().collect();
                        if !expected.is_empty() {
                            prop_assert_eq!(take(&mut queues, 100), expected);
                        }
                    }
                }
            }
            prop_assert_eq!(queues.unjoined, 0);
        }
    }
}
