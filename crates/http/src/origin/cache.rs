//! Bodies of segments in memory, up to a bound; those not asked for longest make room.

use std::collections::BTreeMap;

use bytes::Bytes;

/// A bounded map from a key to a body.
#[derive(Debug)]
pub(crate) struct Cache<K> {
    bodies: BTreeMap<K, (u64, Bytes)>,
    /// Keys by when they were last asked for.
    order: BTreeMap<u64, K>,
    bytes: usize,
    bytes_max: usize,
    clock: u64,
}

impl<K: Ord + Copy> Cache<K> {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bodies: BTreeMap::new(), order: BTreeMap::new(), bytes: 0, bytes_max, clock: 0 }
    }

    pub(crate) fn get(&mut self, key: K) -> Option<Bytes> {
        let (used, body) = self.bodies.get_mut(&key)?;
        self.order.remove(used);
        self.clock += 1;
        *used = self.clock;
        self.order.insert(self.clock, key);
        Some(body.clone())
    }

    /// Keeps a body; one that is larger than the bound is not kept.
    pub(crate) fn insert(&mut self, key: K, body: Bytes) {
        self.remove(key);
        if body.len() > self.bytes_max {
            return;
        }
        self.clock += 1;
        self.bytes += body.len();
        self.bodies.insert(key, (self.clock, body));
        self.order.insert(self.clock, key);
        while self.bytes > self.bytes_max {
            let (_, &oldest) = self.order.first_key_value().expect("what is counted is ordered");
            self.remove(oldest);
        }
    }

    fn remove(&mut self, key: K) {
        if let Some((used, body)) = self.bodies.remove(&key) {
            self.order.remove(&used);
            self.bytes -= body.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_least_recently_used_makes_room() {
        let mut cache = Cache::new(10);
        cache.insert(1, Bytes::from_static(b"1111"));
        cache.insert(2, Bytes::from_static(b"2222"));
        assert!(cache.get(1).is_some());
        cache.insert(3, Bytes::from_static(b"3333"));
        assert_eq!(
            (cache.get(1).is_some(), cache.get(2), cache.get(3).is_some()),
            (true, None, true)
        );
        cache.insert(4, Bytes::from_static(b"too large a body"));
        assert_eq!((cache.get(4), cache.bytes), (None, 8));
    }

    proptest! {
        #[test]
        fn never_beyond_its_bound(steps in prop::collection::vec((0u8..9, 0usize..12), 1..80)) {
            let mut cache = Cache::new(20);
            for (key, length) in steps {
                cache.insert(key, Bytes::from(vec![key; length]));
                let held: usize = cache.bodies.values().map(|(_, b)| b.len()).sum();
                prop_assert!(held == cache.bytes && held <= 20);
                prop_assert_eq!(cache.order.len(), cache.bodies.len());
                prop_assert_eq!(cache.get(key).map(|b| b.len()), Some(length));
            }
        }
    }
}
