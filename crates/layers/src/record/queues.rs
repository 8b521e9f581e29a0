//! Which datagram a receiving system call took. The call only provides its socket and a length, but
//! a socket's queue is first in, first out. So this module keeps the queue's contents in order,
//! removes what the kernel dropped, and gives each call the first datagram.

use std::collections::{BTreeMap, VecDeque};

use crate::event::Key;

/// Most sockets that are followed at once; datagrams of further ones are not joined.
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
    sockets: BTreeMap<u64, Queue>,
    /// Calls whose datagram is unknown.
    pub unjoined: u64,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Datagram>,
    /// Calls that will take datagrams from before the first known one; `None` if unknown.
    ahead: Option<u32>,
}

impl Queues {
    /// A datagram is about to enter the queue of `socket`, which holds `queued` datagrams.
    pub fn enter(&mut self, socket: u64, queued: u32, datagram: Datagram) {
        if self.sockets.len() >= SOCKETS_MAX && !self.sockets.contains_key(&socket) {
            self.sockets.retain(|_, queue| !queue.waiting.is_empty());
            if self.sockets.len() >= SOCKETS_MAX {
                return;
            }
        }
        let queue = self.sockets.entry(socket).or_default();
        if queue.waiting.len() == DATAGRAMS_MAX {
            *queue = Queue::default();
        }
        queue.ahead.get_or_insert(queued);
        queue.waiting.push_back(datagram);
    }

    /// The kernel dropped a datagram: the latest with that key, if it was in a queue at all.
    pub fn leave(&mut self, socket: u64, flow: Option<u16>, key: Key) {
        let take_out = |queue: &mut Queue| {
            let is = |d: &Datagram| d.key.may_be(key) && d.flow == flow;
            let at = queue.waiting.iter().rposition(is);
            at.is_some_and(|at| queue.waiting.remove(at).is_some())
        };
        match self.sockets.get_mut(&socket) {
            Some(queue) => drop(take_out(queue)),
            None if socket == 0 => drop(self.sockets.values_mut().any(take_out)),
            None => {}
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
            *queue = Queue { waiting: VecDeque::new(), ahead: queue.ahead.filter(|_| count == 0) };
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
