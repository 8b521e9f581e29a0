//! Who may connect to a relay, and who gives way when every place is taken: a client that has not set up its session.
//!
//! An attacker can send first packets from forged addresses, and from a network of its own as many as it likes. The
//! former are answered by a Retry (RFC 9000, section 8.1.2), which costs the relay nothing. Of the clients that set no
//! session up, the oldest of the network that has most of them gives way, so that other networks keep theirs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

/// Clients without a session from which on a new one must prove its address.
const TRUSTED: usize = 32;

/// The places of a relay.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    most: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    /// The number of the next.
    next: u64,
    by_number: BTreeMap<u64, Client>,
}

#[derive(Debug)]
struct Client {
    /// Where it comes from; `None` once its session is set up.
    newcomer: Option<IpAddr>,
    gives_way: Arc<Notify>,
}

/// What becomes of a client.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It is let in.
    Place(Place),
    /// It must first prove that it receives at its address.
    Prove,
    /// All places are those of sessions.
    Full,
}

/// The place of a client, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    number: u64,
    gives_way: Arc<Notify>,
}

impl Places {
    /// As many places.
    pub(crate) fn new(most: u32) -> Self {
        Self { most: most as usize, taken: Arc::default() }
    }

    /// Asks for a place. `proven`: the client has shown that it receives at `address`.
    pub(crate) fn take(&self, address: IpAddr, proven: bool) -> Answer {
        let mut taken = self.lock();
        if !proven && taken.newcomers().count() >= TRUSTED {
            return Answer::Prove;
        }
        if taken.by_number.len() >= self.most {
            let Some(first) = taken.first_to_go() else { return Answer::Full };
            if let Some(gone) = taken.by_number.remove(&first) {
                gone.gives_way.notify_one();
            }
        }
        let (number, gives_way) = (taken.next, Arc::<Notify>::default());
        taken.next += 1;
        let newcomer = Some(network(address));
        taken.by_number.insert(number, Client { newcomer, gives_way: Arc::clone(&gives_way) });
        Answer::Place(Place { places: self.clone(), number, gives_way })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().expect("no holder panics")
    }
}

impl Taken {
    /// Number and network of the clients without a session, the oldest first.
    fn newcomers(&self) -> impl Iterator<Item = (u64, IpAddr)> {
        self.by_number.iter().filter_map(|(number, client)| Some((*number, client.newcomer?)))
    }

    /// The oldest of the network that has most of the clients without a session.
    fn first_to_go(&self) -> Option<u64> {
        let mut networks: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
        for (number, network) in self.newcomers() {
            networks.entry(network).or_insert((0, number)).0 += 1;
        }
        let most = networks.values().max_by_key(|(count, oldest)| (*count, u64::MAX - oldest));
        most.map(|(_, oldest)| *oldest)
    }
}

impl Place {
    /// The client's session is set up: it keeps its place.
    pub(crate) fn is_set_up(&self) {
        if let Some(client) = self.places.lock().by_number.get_mut(&self.number) {
            client.newcomer = None;
        }
    }

    /// Waits until another client has this place.
    pub(crate) async fn gives_way(&self) {
        self.gives_way.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().by_number.remove(&self.number);
    }
}

/// The network of one customer: of IPv6 the first 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn place(answer: Answer) -> Place {
        match answer {
            Answer::Place(place) => place,
            other => panic!("{other:?}"),
        }
    }

    fn numbers(places: &Places) -> Vec<u64> {
        places.lock().by_number.keys().copied().collect()
    }

    #[test]
    fn the_network_with_most_newcomers_gives_way() {
        let places = Places::new(4);
        let session = place(places.take(address(1), true));
        session.is_set_up();
        let other = place(places.take(address(2), true));
        let crowd = [(); 2].map(|()| place(places.take(address(1), true)));
        let new = place(places.take(address(3), true));
        assert_eq!(numbers(&places), [session.number, other.number, crowd[1].number, new.number]);
        // What has given way frees no place of another.
        drop(crowd);
        assert_eq!(numbers(&places), [session.number, other.number, new.number]);
    }

    #[test]
    fn sessions_never_give_way() {
        let places = Places::new(2);
        let both = [1, 2].map(|last| place(places.take(address(last), true)));
        both.iter().for_each(Place::is_set_up);
        assert!(matches!(places.take(address(3), true), Answer::Full));
        drop(both);
        assert!(matches!(places.take(address(3), true), Answer::Place(_)));
    }

    #[test]
    fn a_crowd_must_prove_its_addresses() {
        let places = Places::new(1000);
        let crowd: Vec<Place> =
            (0..TRUSTED).map(|last| place(places.take(address(last as u8), false))).collect();
        assert!(matches!(places.take(address(99), false), Answer::Prove));
        assert!(matches!(places.take(address(99), true), Answer::Place(_)));
        crowd.iter().for_each(Place::is_set_up);
        assert!(matches!(places.take(address(99), false), Answer::Place(_)));
    }

    #[test]
    fn a_network_of_ipv6_is_64_bits() {
        let of = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
    }
}
