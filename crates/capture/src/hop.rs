//! A hop: what one interface sent and another received.

use crate::identity::Identity;

/// An IP packet that passed an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// When, on the file's clock.
    pub t_ns: u64,
    pub identity: Identity,
    /// Its size in bytes, headers included.
    pub bytes: u32,
}

/// What became of a packet that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was received, after this time; `None` if it is one of several equal packets, not all of which were.
    Received(Option<u64>),
    /// It was received with other contents.
    Altered,
    /// It was not received.
    Lost,
    /// It was not received, and no packet that was sent after it was: it may still be on its way.
    InFlight,
}

/// What a received packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A packet that was sent.
    Original,
    /// One more of a packet that was sent.
    Copy,
    /// Nobody sent it, not even with one bit changed.
    Unknown,
    /// A packet that was sent, with other contents.
    Altered,
}

/// The packets of a hop, each with what became of it or what it is; both in order of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Matched {
    pub sent: Vec<(Seen, Fate)>,
    pub received: Vec<(Seen, Kind)>,
}

/// Matches packets by their contents. Equal packets are matched in order of time.
pub(crate) fn matched(sent: &[Seen], received: &[Seen]) -> Matched {
    let with = |seen: &Seen, fate| (*seen, fate);
    let mut matched = Matched {
        sent: sent.iter().map(|seen| with(seen, Fate::Lost)).collect(),
        received: received.iter().map(|seen| (*seen, Kind::Unknown)).collect(),
    };
    matched.sent.sort_by_key(|(seen, _)| seen.t_ns);
    matched.received.sort_by_key(|(seen, _)| seen.t_ns);
    matched.join_equal();
    matched.join_altered(|identity| identity.first);
    matched.join_altered(|identity| identity.rest);
    matched.join_copies(|identity| identity.first);
    matched.join_copies(|identity| identity.rest);
    let last = matched.sent.iter().rposition(|(_, fate)| *fate != Fate::Lost);
    for (_, fate) in &mut matched.sent[last.map_or(0, |last| last + 1)..] {
        *fate = Fate::InFlight;
    }
    matched
}

impl Matched {
    /// Packets with equal contents.
    fn join_equal(&mut self) {
        let sent = by(&self.sent, |_| true, |identity| identity);
        let received = by(&self.received, |_| true, |identity| identity);
        each_common(&sent, &received, |sent, received| {
            // Of several equal packets, it is unclear which of them were lost.
            let is_clear = sent.len() == 1 || sent.len() == received.len();
            for (&from, &to) in sent.iter().zip(received) {
                let took = self.received[to].0.t_ns.saturating_sub(self.sent[from].0.t_ns);
                self.sent[from].1 = Fate::Received(is_clear.then_some(took));
                self.received[to].1 = Kind::Original;
            }
            for &to in received.iter().skip(sent.len()) {
                self.received[to].1 = Kind::Copy;
            }
        });
    }

    /// Among those that are left over, packets with one part in common.
    fn join_altered(&mut self, part: fn(Identity) -> u64) {
        let sent = by(&self.sent, |fate| *fate == Fate::Lost, part);
        let received = by(&self.received, |kind| *kind == Kind::Unknown, part);
        each_common(&sent, &received, |sent, received| {
            for (&from, &to) in sent.iter().zip(received) {
                self.sent[from].1 = Fate::Altered;
                self.received[to].1 = Kind::Altered;
            }
        });
    }

    /// Those left over that have one part in common with a packet that was sent: it came too, and this is a copy of it that
    /// was altered.
    fn join_copies(&mut self, part: fn(Identity) -> u64) {
        let sent = by(&self.sent, |_| true, part);
        let received = by(&self.received, |kind| *kind == Kind::Unknown, part);
        each_common(&sent, &received, |_, received| {
            for &to in received {
                self.received[to].1 = Kind::Copy;
            }
        });
    }
}

/// The positions of packets, sorted by a key and, among equals, by time.
fn by<K: Ord, T>(
    packets: &[(Seen, T)],
    which: impl Fn(&T) -> bool,
    key: impl Fn(Identity) -> K,
) -> Vec<(K, usize)> {
    let chosen = packets.iter().enumerate().filter(|(_, (_, state))| which(state));
    let mut sorted: Vec<_> = chosen.map(|(at, (seen, _))| (key(seen.identity), at)).collect();
    sorted.sort_unstable();
    sorted
}

/// Hands over the positions of each key that occurs in both.
fn each_common<K: Ord>(
    mut left: &[(K, usize)],
    mut right: &[(K, usize)],
    mut take: impl FnMut(&[usize], &[usize]),
) {
    while let (Some((l, _)), Some((r, _))) = (left.first(), right.first()) {
        let key = l.max(r);
        let skip = |side: &[(K, usize)]| side.partition_point(|(it, _)| it < key);
        let equal = |side: &[(K, usize)]| side.partition_point(|(it, _)| it <= key);
        let (l_ends, r_ends) = ((skip(left), equal(left)), (skip(right), equal(right)));
        let positions = |side: &[(K, usize)], (from, to): (usize, usize)| -> Vec<usize> {
            side[from..to].iter().map(|(_, at)| *at).collect()
        };
        let (in_left, in_right) = (positions(left, l_ends), positions(right, r_ends));
        if !in_left.is_empty() && !in_right.is_empty() {
            take(&in_left, &in_right);
        }
        left = &left[l_ends.1..];
        right = &right[r_ends.1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(t_ns: u64, first: u64, rest: u64) -> Seen {
        Seen { t_ns, identity: Identity { first, rest }, bytes: 100 }
    }

    #[test]
    fn a_loss_a_copy_and_an_altered_packet() {
        let sent = [seen(10, 1, 1), seen(20, 2, 2), seen(30, 3, 3), seen(40, 4, 4), seen(50, 5, 5)];
        // 2 is lost, 3 comes twice, 4 and 5 are altered in their first and second part.
        let received =
            [seen(15, 1, 1), seen(36, 3, 3), seen(37, 3, 3), seen(48, 99, 4), seen(59, 5, 98)];
        let Matched { sent, received } = matched(&sent, &received);
        let fates: Vec<_> = sent.into_iter().map(|(_, fate)| fate).collect();
        let got = |ns| Fate::Received(Some(ns));
        assert_eq!(fates, [got(5), Fate::Lost, got(6), Fate::Altered, Fate::Altered]);
        let kinds: Vec<_> = received.into_iter().map(|(_, kind)| kind).collect();
        assert_eq!(
            kinds,
            [Kind::Original, Kind::Original, Kind::Copy, Kind::Altered, Kind::Altered]
        );
    }

    #[test]
    fn a_copy_that_is_altered_is_a_copy() {
        let sent = [seen(10, 1, 1), seen(20, 2, 2)];
        let received =
            [seen(15, 1, 9), seen(16, 1, 9), seen(25, 2, 2), seen(26, 2, 7), seen(27, 3, 3)];
        let kinds = matched(&sent, &received).received.into_iter().map(|(_, kind)| kind);
        let expected = [Kind::Altered, Kind::Copy, Kind::Original, Kind::Copy, Kind::Unknown];
        assert_eq!(kinds.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_was_sent_after_the_last_that_came_may_be_on_its_way() {
        let sent: Vec<_> = (1..=5).map(|n| seen(n * 10, n, n)).collect();
        let fates = |received: &[Seen]| -> Vec<Fate> {
            matched(&sent, received).sent.into_iter().map(|(_, fate)| fate).collect()
        };
        let got = Fate::Received(Some(5));
        let two = fates(&[seen(15, 1, 1), seen(35, 3, 3)]);
        assert_eq!(two, [got, Fate::Lost, got, Fate::InFlight, Fate::InFlight]);
        assert_eq!(fates(&[]), [Fate::InFlight; 5]);
    }

    #[test]
    fn equal_packets_are_counted_exactly_and_their_delay_is_not_guessed() {
        let sent: Vec<_> = (0..5).map(|at| seen(at * 10, 7, 7)).collect();
        let three = [seen(12, 7, 7), seen(33, 7, 7), seen(41, 7, 7)];
        let fates = matched(&sent, &three).sent;
        let count = |of: Fate| fates.iter().filter(|(_, fate)| *fate == of).count();
        assert_eq!((count(Fate::Received(None)), count(Fate::InFlight)), (3, 2));
        // All of them received: in order.
        let five: Vec<_> = (0..5).map(|at| seen(at * 10 + at, 7, 7)).collect();
        let fates = matched(&sent, &five).sent.into_iter().map(|(_, fate)| fate);
        assert_eq!(
            fates.collect::<Vec<_>>(),
            (0..5).map(|ns| Fate::Received(Some(ns))).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_packet_that_nobody_sent_is_unknown() {
        let Matched { sent, received } = matched(&[], &[seen(1, 2, 3)]);
        assert_eq!((sent.len(), received[0].1), (0, Kind::Unknown));
    }
}
